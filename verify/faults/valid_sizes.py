"""The sizes with which a program has no access out of bounds: a precondition of every valid run of it.

A run in which the program before has a fault is no run that the program after must preserve. So where sizes alone
decide that an access is made, and that it is outside, they are not considered. Part of the trusted computing base.
"""

from __future__ import annotations

from layoutproof.ir.expr import TRUE, Expr, IntImm, Logical, logical_and
from layoutproof.ir.operators import LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.program.instances import Access
from layoutproof.verify.program.questions import at_least, below

_MOST_CASES = 8


def valid_sizes(function: PrimFunc) -> Expr | None:
    """A condition on the function's symbols that holds in every run without an access out of bounds; None if there is
    nothing to say. Weaker than the exact one where that is not known, or has many cases.
    """
    facts = Facts.of(function)
    found: dict[Expr, None] = {}
    for access in facts.program.accesses:
        for condition in _conditions(facts, access):
            found.setdefault(condition)
    return logical_and(*found) if found else None


def _conditions(facts: Facts, access: Access) -> list[Expr]:
    if access.data_dependent:
        return []
    found = []
    for index, extent in zip(access.indices, access.buffer.shape, strict=True):
        if isinstance(extent, IntImm):
            interval = facts.interval(index, access.domain)
            if interval.low >= 0 and interval.high < extent.value:
                continue
        condition = facts.model.symbols_without(access.domain, below(index, 0), at_least(index, extent))
        if condition is not None and condition != TRUE and _cases(condition) <= _MOST_CASES:
            found.append(condition)
    return found


def _cases(condition: Expr) -> int:
    if isinstance(condition, Logical) and condition.op is LogicalOp.OR:
        return _cases(condition.lhs) + _cases(condition.rhs)
    return 1
