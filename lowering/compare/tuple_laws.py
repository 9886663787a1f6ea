"""The laws of a combiner of tuples under which it does not matter in which order and grouping tuples are joined, asked
of a prover for all values of its types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import FALSE, Expr, IfThenElseExpr, Logical, Select, Var, compare
from layoutproof.ir.node import Node
from layoutproof.ir.operators import CompareOp
from layoutproof.ir.visit import children, free_variables, map_children, substitute
from layoutproof.verify.values.fast_math import IEEE, FastMath, FastMathSet, names_of
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.values.question import Question


class NotPacked(Exception):
    """Tuples that are joined in another way than is understood, and why."""


@dataclass(frozen=True, slots=True)
class Combiner:
    """How two tuples are joined: `results` over the components `left` and `right`."""

    left: tuple[Var, ...]
    right: tuple[Var, ...]
    results: tuple[Expr, ...]

    def joined(self, a: Sequence[Expr], b: Sequence[Expr]) -> tuple[Expr, ...]:
        """Two tuples, joined."""
        values = dict(zip((*self.left, *self.right), (*a, *b), strict=True))
        return tuple(substitute(result, values) for result in self.results)


def laws_of(combiner: Combiner, start: Sequence[Expr], prover: ValueProver, in_any_order: bool) -> tuple[str, ...]:
    """The assumptions under which equal collections of tuples are joined to equal results. Raises NotPacked."""
    for allowed in (IEEE, frozenset({FastMath.NNAN})):
        if not allowed <= prover.allowed:
            continue
        law = _Laws(combiner, tuple(start), prover, allowed)
        if not law.hold():
            continue
        if law.commutes():
            return names_of(allowed)
        if in_any_order and FastMath.REASSOC in prover.allowed:
            return names_of(allowed | {FastMath.REASSOC})
        raise NotPacked("tuples are joined in another order, which makes a difference (of equal values, say)")
    raise NotPacked("the combiner of tuples is not known to be associative, or its starting value to be neutral")


@dataclass(slots=True)
class _Laws:
    """Laws of a combiner for all values, under `allowed`; with `nnan`, for all that are no NaN."""

    combiner: Combiner
    start: tuple[Expr, ...]
    prover: ValueProver
    allowed: FastMathSet

    def hold(self) -> bool:
        """Whether it is associative, and a starting value that is joined after another one changes nothing."""
        f, start = self.combiner.joined, self.start
        x, y, z = (self._any(name) for name in "xyz")
        return (
            self._stays()
            and self._same(f(f(x, y), z), f(x, f(y, z)))
            and self._same(f(start, start), start)
            and self._same(f(start, f(x, start)), f(start, x))
        )

    def commutes(self) -> bool:
        """Whether the order of two tuples makes no difference."""
        x, y = self._any("x"), self._any("y")
        return self._same(self.combiner.joined(x, y), self.combiner.joined(y, x))

    def _any(self, name: str) -> tuple[Var, ...]:
        return tuple(Var(f"{name}_{k}", var.dtype) for k, var in enumerate(self.combiner.left))

    def _stays(self) -> bool:
        """Whether tuples without a NaN are joined to one without, if such are all that is looked at."""
        if FastMath.NNAN not in self.allowed:
            return True
        x, y = self._any("x"), self._any("y")
        floats = [e for e in (*self.combiner.joined(x, y), *self.start) if e.dtype.is_float]
        return all(self._same((compare(CompareOp.NE, e, e),), (FALSE,)) for e in floats)

    def _same(self, new: Sequence[Expr], old: Sequence[Expr]) -> bool:
        for a, b in zip(new, old, strict=True):
            names = {v for e in (a, b) for v in free_variables(e) if v.dtype.is_float}
            question = Question(a, b, computed=frozenset(names), old_is_computed=False)
            answer = self.prover.answer(question, self.allowed)
            if not answer.is_proved:
                return False
        return True


def chosen(value: Expr) -> Iterator[Expr]:
    """What a value may be, or may be computed from, conditions of choices apart."""
    match value:
        case Select(then=a, otherwise=b) | IfThenElseExpr(then=a, otherwise=b):
            yield from chosen(a)
            yield from chosen(b)
        case _:
            yield value


def replaced(expr: Expr, values: Mapping[Any, Expr]) -> Expr:
    """An expression with others in the place of some of its parts."""

    def visit(node: Node) -> Node:
        if isinstance(node, Expr) and node in values:
            return values[node]
        return map_children(node, visit) if not isinstance(node, Buffer) else node

    result = visit(expr)
    assert isinstance(result, Expr)
    return result


def certain_loads(value: Expr) -> Iterator[BufferLoad]:
    """The loads that are done whenever a value is computed."""
    match value:
        case BufferLoad():
            yield value
        case IfThenElseExpr(condition=first) | Logical(lhs=first):
            yield from certain_loads(first)
        case _:
            for child in children(value):
                if isinstance(child, Expr):
                    yield from certain_loads(child)
