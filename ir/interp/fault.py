"""What can go wrong in a run: faults of the program, and programs or arguments that cannot be run at all.

A fault is an event of the program's meaning (out of bounds, a trap, a race, the use of an unreadable cell, ...); an
input error is a `LayoutproofError` with a diagnostic.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, Span


class FaultKind(StrEnum):
    """What happened."""

    OUT_OF_BOUNDS = "out of bounds"
    UNINITIALISED = "read of an uninitialised cell"
    FORBIDDEN = "access to padding without a contract"
    TRAP = "trap"
    RACE = "race"
    OVERFLOW = "index overflow"
    ASSUMPTION = "violated assumption"
    UNDEF = "undefined value in control or an index"
    BINDING = "iteration variable outside its domain"


class Fault(Exception):
    """One fault, and the end of the run that met it.

    `span` is the place of the access or statement where the text is known, `block` the innermost block's name, `buffer`
    and `indices` (elements, one an axis) the access, `values` the loop, block and let variables in scope.
    """

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        *,
        span: Span | None = None,
        block: str | None = None,
        buffer: str | None = None,
        indices: tuple[int, ...] = (),
        values: Mapping[str, object] | None = None,
    ) -> None:
        self.kind, self.message, self.span, self.block = kind, message, span, block
        self.buffer, self.indices = buffer, indices
        self.values: Mapping[str, object] = dict(values) if values is not None else {}
        super().__init__(kind, message)

    def located(self, span: Span | None, block: str | None, values: Mapping[str, object]) -> Fault:
        """The same fault with its place filled in where it had none."""
        return Fault(
            self.kind,
            self.message,
            span=self.span if self.span is not None else span,
            block=self.block if self.block is not None else block,
            buffer=self.buffer,
            indices=self.indices,
            values=self.values if self.values else values,
        )

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span is not None else ""
        where = f" in block {self.block}" if self.block is not None else ""
        values = f" (with {', '.join(f'{k} = {v}' for k, v in self.values.items())})" if self.values else ""
        return f"{place}{self.kind.value}{where}: {self.message}{values}"

    def diagnostic(self, code: str) -> Diagnostic:
        """The fault as a message to a user, under the code that the caller's layer gives it."""
        return Diagnostic(code, str(self).removeprefix(f"{self.span}: "), self.span)


def cannot_interpret(what: str, span: Span | None = None) -> LayoutproofError:
    """The error for a program outside what has a meaning here; `what` names it."""
    return LayoutproofError(Diagnostic(codes.NOT_INTERPRETED, f"{what} cannot be interpreted", span))


def bad_argument(message: str, span: Span | None = None) -> LayoutproofError:
    """The error for arguments that do not fit the function."""
    return LayoutproofError(Diagnostic(codes.RUN_ARGUMENT, message, span))


def over_limit(limit: int) -> LayoutproofError:
    """The error for a run that was stopped because it takes too long."""
    help_ = "run the backward slice of chosen cells, or raise the limit"
    return LayoutproofError(Diagnostic(codes.RUN_LIMIT, f"the run was stopped after {limit} iterations", help=help_))


def access_text(buffer: str, indices: tuple[int, ...]) -> str:
    """`A[1, 2]`."""
    return f"{buffer}[{', '.join(map(str, indices))}]"
