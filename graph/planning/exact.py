"""The cheapest choice: variants, and the rewrites that they make necessary, as clauses with costs; z3's optimiser has the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from layoutproof.graph import codes
from layoutproof.graph.planning.layouts import Layout
from layoutproof.graph.planning.problem import Choice, Problem
from layoutproof.ir.diagnostic import error
from layoutproof.verify.smt.optimise import cheapest_assignment

RLIMIT = 400_000_000
"""Units of z3's work after which the search ends with what it has."""


def cheapest(problem: Problem, *, rlimit: int = RLIMIT) -> tuple[Choice, bool]:
    """The choice of least cost, and whether nothing cheaper is proved to exist. Raises LayoutproofError where none is found."""
    numbers = count(1)
    chosen = [[next(numbers) for _ in call.variants] for call in problem.calls]
    rewritten = {key: next(numbers) for key in problem.costs}
    made, needed = _made(problem, chosen), _needed(problem, chosen)
    clauses: list[list[int]] = []
    for (name, source, target), rewrite in rewritten.items():
        # A value that is made in one layout and needed in another is rewritten; what is so in any case needs no literal.
        for maker in made[name, source] or [0]:
            for user in needed[name, target]:
                clauses.append([rewrite, *(-literal for literal in (maker, user) if literal)])
    costs = {rewritten[key]: cost for key, cost in problem.costs.items()}
    costs |= {literal: call.cost(k) for call, literals in zip(problem.calls, chosen, strict=True) for k, literal in enumerate(literals)}
    found = cheapest_assignment(chosen, clauses, costs, rlimit=rlimit)
    if found is None:
        raise error(codes.NO_PLAN, "no choice of layouts was found")
    choice = [next(k for k, number in enumerate(group) if number in found.true) for group in chosen]
    return choice, found.optimal


Literals = dict[tuple[str, Layout], list[int]]


def _made(problem: Problem, chosen: Sequence[Sequence[int]]) -> Literals:
    """For each value and layout, the choices that make it so; none of a value that comes so in any case."""
    found: Literals = {item: [] for item in problem.fixed.items()}
    for item, literal in _uses(problem, chosen, made=True):
        found.setdefault(item, []).append(literal)
    return found


def _needed(problem: Problem, chosen: Sequence[Sequence[int]]) -> Literals:
    """For each value and layout, the choices that need it so; 0 stands for what is needed in any case."""
    found: Literals = {(name, layout): [0] for name, layout in problem.outputs if layout is not None}
    for item, literal in _uses(problem, chosen, made=False):
        found.setdefault(item, []).append(literal)
    return found


def _uses(problem: Problem, chosen: Sequence[Sequence[int]], *, made: bool) -> Iterator[tuple[tuple[str, Layout], int]]:
    for call, literals in zip(problem.calls, chosen, strict=True):
        for variant, literal in zip(call.variants, literals, strict=True):
            names, layouts = (call.results, variant.results) if made else (call.operands, variant.operands)
            yield from ((item, literal) for item in dict.fromkeys(zip(names, layouts, strict=True)))
