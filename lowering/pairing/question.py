"""What a search for a witness is asked, what it answers, and how far it came where it has no answer: plain data.

Nothing here is evidence: a witness is a claim, which the checker accepts or refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from layoutproof.ir.diagnostic import counted
from layoutproof.ir.expr import Expr
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap


@dataclass(frozen=True, slots=True)
class Question:
    """Which instances of `new` compute which of `old`?

    Both functions have the same parameters, data variables and symbols, as nodes (see `comparing.interface`). `cells` says where the cells
    of parameters went whose layouts are known; parameters of one shape of which nothing is said keep their cells. `unknown` names the
    parameters (buffers of `old`) whose layouts are to be found. `where` is a condition on symbols that callers vouch for.
    """

    old: PrimFunc
    new: PrimFunc
    where: Expr | None = None
    cells: tuple[CellMap, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """An answer: a map of instances for each new store, and the cells of all parameters that moved, those of `unknown` among them."""

    instances: tuple[InstanceMap, ...]
    cells: tuple[CellMap, ...]


@dataclass(frozen=True, slots=True)
class Furthest:
    """The place at which a search for a witness ended.

    `reason` is a sentence for people. `new_store` and `old_store` are the stores that it had come to, by their numbers in program order,
    `new_line` and `old_line` the lines they stand in, from 1, `operand` the access that has no counterpart, as text, and `relation` which
    instances were to be equal there, as text; None where there is none. `matched` says how many stores of the new program had theirs.
    """

    reason: str
    new_store: int | None = None
    old_store: int | None = None
    new_line: int | None = None
    old_line: int | None = None
    operand: str | None = None
    relation: str | None = None
    matched: int = 0

    def text(self) -> str:
        """All of it in a few lines."""
        lines = [self.reason]
        if self.operand is not None:
            lines.append(f"operand: {self.operand}")
        if self.relation is not None:
            lines.append(f"relation: {self.relation}")
        if self.matched:
            lines.append(f"{counted(self.matched, 'store', 'stores')} of the new program had a counterpart by then")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "reason": self.reason,
            "new_store": self.new_store,
            "old_store": self.old_store,
            "new_line": self.new_line,
            "old_line": self.old_line,
            "operand": self.operand,
            "relation": self.relation,
            "matched": self.matched,
        }


class NoWitness(Exception):
    """No witness was found; `furthest` says how far the search came, `out_of_budget` whether it was stopped."""

    def __init__(self, furthest: Furthest, *, out_of_budget: bool = False) -> None:
        super().__init__(furthest.reason)
        self.furthest = furthest
        self.out_of_budget = out_of_budget
