"""The numbers that shape symbols stand for, found from the arrays of a call and checked against each other and their bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layoutproof.ir.diagnostic import error
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, BinaryOp, Expr, IntImm, Var
from layoutproof.ir.interval import Interval
from layoutproof.ir.semantics import Trap
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.lowering.codegen import codes


class Symbols:
    """What is known of the symbols of one call, and from which argument."""

    def __init__(self, bounds: Mapping[str, Interval]) -> None:
        self.values: dict[str, int] = {}
        self._origin: dict[str, str] = {}
        self._bounds = bounds

    def bind(self, name: str, value: int, origin: str) -> None:
        """`name` is `value`, as `origin` says. Raises LayoutproofError (LP426) where that contradicts another or its bounds."""
        known = self.values.setdefault(name, value)
        if known != value:
            raise error(codes.SYMBOLS, f"{name} is {known} by {self._origin[name]} and {value} by {origin}")
        self._origin.setdefault(name, origin)
        limits = self._bounds.get(name)
        if limits is not None and not limits.low <= value <= limits.high:
            raise error(codes.SYMBOLS, f"{name} is {value} by {origin}; this kernel was built for {limits.low} <= {name} <= {limits.high}")

    def match(self, argument: str, kind: str, extents: Sequence[Expr], shape: Sequence[int]) -> None:
        """Learn from the shape of an argument what its extents say. Raises LayoutproofError (LP421) for another number of axes."""
        if len(extents) != len(shape):
            wanted = _listed(extents)
            raise error(
                codes.ARGUMENT_SHAPE, f"{argument} has {len(shape)} axes, {list(shape)}; its {kind} shape is {wanted}, {len(extents)} axes"
            )
        for axis, (extent, actual) in enumerate(zip(extents, shape, strict=True)):
            found = _solve(extent, actual)
            if found is not None:
                self.bind(*found, f"axis {axis} of {argument}")

    def check(self, argument: str, kind: str, extents: Sequence[Expr], shape: Sequence[int]) -> None:
        """Raise LayoutproofError (LP421) unless an argument has the shape that its extents give."""
        wanted = tuple(self.evaluate(extent, argument) for extent in extents)
        if wanted != tuple(shape):
            named = f" ({_listed(extents)})" if any(not isinstance(e, IntImm) for e in extents) else ""
            raise error(codes.ARGUMENT_SHAPE, f"{argument} has shape {list(shape)}; its {kind} shape is {list(wanted)}{named}")

    def value(self, name: str, kernel: str) -> int:
        """A symbol's number. Raises LayoutproofError (LP426) where no argument tells it."""
        if name not in self.values:
            raise error(
                codes.SYMBOLS, f"{name}, a parameter of {kernel}, cannot be found from the arrays", help=f"give it by name: {name}=..."
            )
        return self.values[name]

    def told(self, name: str) -> str:
        """A known symbol's number and the argument that it comes from: `n = 3 (axis 0 of A)`."""
        return f"{name} = {self.values[name]} ({self._origin[name]})"

    def evaluate(self, extent: Expr, argument: str) -> int:
        """An extent's number. Raises LayoutproofError (LP426) where a symbol of it is not known, LP421 for a division by zero."""
        missing = [v.name for v in free_variables(extent) if v.name not in self.values]
        if missing:
            raise error(
                codes.SYMBOLS,
                f"{missing[0]}, in the shape of {argument}, cannot be found from the arrays",
                help=f"give it by name: {missing[0]}=...",
            )
        try:
            return int(evaluate(extent, self.values))
        except Trap as trap:
            raise error(codes.ARGUMENT_SHAPE, f"the shape of {argument} has no value: {trap}") from trap


def _solve(extent: Expr, actual: int) -> tuple[str, int] | None:
    """The one symbol of an extent and its value, where the extent is that symbol or a constant times it."""
    if isinstance(extent, Var):
        return extent.name, actual
    if isinstance(extent, Binary) and extent.op is BinaryOp.MUL:
        for variable, factor in ((extent.lhs, extent.rhs), (extent.rhs, extent.lhs)):
            if isinstance(variable, Var) and isinstance(factor, IntImm) and factor.value != 0 and actual % factor.value == 0:
                return variable.name, actual // factor.value
    return None


def _listed(extents: Sequence[Expr]) -> str:
    return f"[{', '.join(extent_text(e) for e in extents)}]"


def extent_text(extent: Expr) -> str:
    """An extent as a person writes it."""
    return expr_text(extent, "plain")
