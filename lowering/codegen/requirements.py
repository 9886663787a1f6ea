"""What a proof took for granted of a call: conditions on its symbols, which are checked before anything runs, and promises.

Both are evaluated over the integers: what is checked may be the very thing that keeps the program's own arithmetic from overflowing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Compare, CompareOp, Expr, IntImm, Var
from layoutproof.ir.semantics import Trap
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables


@dataclass(frozen=True, slots=True)
class Requirement:
    """`expr`, over symbols alone, is true; with `fits`, it is a number that its type holds. `place` says which line asked for it."""

    expr: Expr
    fits: bool = False
    place: str = ""

    @property
    def text(self) -> str:
        """The requirement as a person writes it: `n % 4 == 0`, `n*m fits int32`."""
        said = expr_text(self.expr, Style.PLAIN)
        return f"{said} fits {self.expr.dtype}" if self.fits else said

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names that it speaks of, in order."""
        return tuple(dict.fromkeys(v.name for v in free_variables(self.expr)))

    @property
    def least(self) -> tuple[str, int] | None:
        """The symbol and the number where it says `symbol >= number` and nothing else."""
        match self.expr:
            case Compare(op=CompareOp.GE, lhs=Var(name=name), rhs=IntImm(value=value)) if not self.fits:
                return name, value
            case _:
                return None

    def failure(self, values: Mapping[str, int]) -> str | None:
        """Why it does not hold for these values, or None. Raises KeyError for a symbol without a value."""
        try:
            found = evaluate(self.expr, values)
        except Trap as trap:
            return f"it has no value: {trap}"
        if not self.fits:
            return None if found else "it does not hold"
        fitting = self.expr.dtype.min_int <= found <= self.expr.dtype.max_int
        return None if fitting else f"it is {found}"


@dataclass(frozen=True, slots=True)
class Contract:
    """All that a function's proofs took for granted: `requirements` are checked at every call, `promises` are the caller's word."""

    requirements: tuple[Requirement, ...] = ()
    promises: tuple[str, ...] = ()


NOTHING_ASSUMED = Contract()
