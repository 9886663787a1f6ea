"""Whether a question has a solution in integers, by z3, which shares nothing with either implementation."""

from __future__ import annotations

from typing import Any

import z3

from tests.oracle.integers.items import Item

RESOURCES = 5_000_000  # of z3's own count, which is the same on each machine


def solution(item: Item) -> str:
    """`none`; a point as text; or `unknown`."""
    facts, zeros, choices = item[:3]
    for solver in (z3.SimpleSolver(), z3.SolverFor("QF_NIA")):
        solver.set("rlimit", RESOURCES)
        solver.add(*_holds(facts, zeros))
        for cases in choices:
            solver.add(z3.Or([z3.And(*_holds(*case)) for case in cases]))
        answer = solver.check()
        if answer != z3.unknown:
            return str(solver.model()) if answer == z3.sat else "none"
    return "unknown"


def _holds(facts: Item, zeros: Item) -> list[Any]:
    return [*(_value(p) >= 0 for p in facts), *(_value(p) == 0 for p in zeros)]


def _value(polynomial: Item) -> Any:
    total: Any = z3.IntVal(0)
    for factor, names in polynomial:
        term: Any = z3.IntVal(factor)
        for name in names:
            term *= z3.Int(name)
        total += term
    return total
