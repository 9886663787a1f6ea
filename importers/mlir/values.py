"""What values of MLIR mean: an expression, a view of a buffer (memrefs and tensors), or a vector by its lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from layoutproof.importers.mlir.model import add, floordiv, floormod, mul, sub
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import Span
from layoutproof.ir.dtype import INT64
from layoutproof.ir.expr import Binary, Cast, Expr, IfThenElseExpr, IntImm, const, logical_and
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.visit import walk

Indices = Sequence[Expr]
ZERO = const(0, INT64)
ONE = const(1, INT64)


def number(value: int) -> Expr:
    """A constant of type index."""
    return const(value, INT64)


def is_whole(shape: Sequence[Expr], buffer: Buffer) -> bool:
    """Whether a shape is that of the buffer."""
    return tuple(shape) == buffer.shape


Bounds = Sequence[tuple[Expr, Expr]]  # indices, each with the extent that it is below


def _unbounded(_: Indices) -> Bounds:
    return ()


@dataclass(frozen=True)
class View:
    """A memref or tensor: its shape, and the cell of `buffer` of each of its indices.

    `whole` says that it has the buffer's own indices. An access outside the shape of another view is undefined, even if
    the cell is inside the buffer: `cell` makes it one outside, unless `inside` knows better. `inner` is the shape of
    elements that are vectors: the last axes of the buffer, which are no axes of the view. `linear`: it has strides,
    which are `given` where they do not follow from `place`. `outer` has what else an access is to be inside: the view
    that this one is a part of.
    """

    buffer: Buffer
    shape: tuple[Expr, ...]
    place: Callable[[Indices], tuple[Expr, ...]]
    whole: bool = False
    inner: int = 0
    linear: bool = False
    given: tuple[Expr, tuple[Expr, ...]] | None = None
    outer: Callable[[Indices], Bounds] = _unbounded

    @staticmethod
    def of(buffer: Buffer, inner: int = 0) -> View:
        """All of a buffer."""
        return View(buffer, buffer.shape[: buffer.rank - inner], tuple, True, inner, True)

    def cell(self, indices: Indices, inside: Callable[[Expr, Expr], bool], lanes: Indices = ()) -> tuple[Expr, ...]:
        """The indices into the buffer of an element. `inside(index, extent)` decides `0 <= index < extent`, if it
        can.
        """
        found = self.place(indices)
        open_ones = [(i, n) for i, n in self.bounds(indices) if not inside(i, n)]
        conditions = [c for i, n in open_ones for c in (i >= 0, i < n)]
        if conditions and not found:
            raise ValueError("an access that may be outside of memory for one number is not translated")
        if conditions:
            found = (IfThenElseExpr(logical_and(*conditions), found[0], number(-1)), *found[1:])
        return (*found, *lanes)

    def bounds(self, indices: Indices) -> Bounds:
        """What an access to an element is to be inside, where the buffer's own extents do not say so."""
        own = () if self.whole else tuple(zip(indices, self.shape, strict=True))
        return (*own, *self.outer(indices))

    def part(self, shape: Sequence[Expr], element: Callable[[Indices], Indices]) -> View:
        """A view of this one; `element` gives the indices here of each of its elements."""
        return View(
            self.buffer,
            tuple(shape),
            lambda indices: self.place(element(indices)),
            outer=lambda indices: self.bounds(element(indices)),
        )

    def metadata(self) -> tuple[Expr, list[Expr]] | None:
        """The offset and the strides, in elements of the buffer; None for a view that has none."""
        if self.given is not None:
            return self.given[0], list(self.given[1])
        if not self.linear:
            return None
        zeros = [ZERO] * len(self.shape)
        extents = self.buffer.shape[: self.buffer.rank - self.inner]
        offset = linear(self.place(zeros), extents)
        strides = []
        for axis in range(len(self.shape)):
            one = [*zeros[:axis], ONE, *zeros[axis + 1 :]]
            strides.append(sub(linear(self.place(one), extents), offset))
        return offset, strides

    def load(self, indices: Indices, inside: Callable[[Expr, Expr], bool], span: Span, lanes: Indices = ()) -> Expr:
        """An element."""
        return BufferLoad(self.buffer, self.cell(indices, inside, lanes), span=span)


@dataclass(frozen=True)
class Vector:
    """A vector of static shape: its lanes as expressions of their indices."""

    shape: tuple[int, ...]
    at: Callable[[Indices], Expr]


Meaning = Expr | View | Vector


def linear(indices: Indices, shape: Sequence[Expr]) -> Expr:
    """The row-major number of an element."""
    found: Expr = ZERO
    for index, extent in zip(indices, shape, strict=True):
        found = add(mul(found, extent), index)
    return found


def delinear(position: Expr, shape: Sequence[Expr]) -> tuple[Expr, ...]:
    """The indices of the element with a row-major number."""
    found: list[Expr] = []
    for axis in range(len(shape) - 1, 0, -1):
        found.append(floormod(position, shape[axis]))
        position = floordiv(position, shape[axis])
    return (*([position] if shape else []), *reversed(found))


def value_of(expr: Expr) -> int | None:
    """The number that a constant is; None for other expressions."""
    return expr.value if isinstance(expr, IntImm) else None


def divides(op: BinaryOp, divisor: Expr) -> bool:
    """Whether a divisor is a number that traps for no dividend, or a shift one by less than the width."""
    known = value_of(divisor.value if isinstance(divisor, Cast) else divisor)
    if known is None:
        return False
    return 0 <= known < divisor.dtype.bits if op in (BinaryOp.SHL, BinaryOp.SHR) else known > 0


_TRAPS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD, BinaryOp.SHL, BinaryOp.SHR)


def may_trap(expr: Expr) -> bool:
    """Whether an expression may have no result: a division, a shift, or a float as an integer."""
    for node in walk(expr):
        if isinstance(node, Binary) and node.op in _TRAPS and not divides(node.op, node.rhs):
            return True
        if isinstance(node, Cast) and node.value.dtype.is_float and node.dtype.is_integer:
            return True
    return False
