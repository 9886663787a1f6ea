"""Index maps: how a logical index becomes a physical one, with axis separators between the groups that flattening
joins.

The outputs are kept as written, since an axis written `e % k` has extent `k` whatever the domain. What is true of a map
(injective, shape for symbolic extents, inverse) is found in `layoutproof.verify`.

Source: TVM's RFC `buffer-physical-layout`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from layoutproof.ir import codes, semantics
from layoutproof.ir.buffer import axis_groups, check_separators
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import INT32, INT64
from layoutproof.ir.evaluate import evaluate, foreign_part
from layoutproof.ir.expr import (
    Binary,
    Cast,
    Compare,
    Expr,
    ExprLike,
    IfThenElseExpr,
    IntImm,
    Select,
    Var,
    binary,
    compare,
    const,
    widen,
)
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.map_arrays import MapArrays, indices_text
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.semantics import Trap
from layoutproof.ir.shown import Shown
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.ir.written_forms import WrittenForms

if TYPE_CHECKING:
    import numpy as np
else:
    from layoutproof.ir.late import np


class AxisSeparator:
    """The type of AXIS_SEPARATOR; it exists in the API and in text, never in a program."""

    def __repr__(self) -> str:
        return "AXIS_SEPARATOR"


AXIS_SEPARATOR: Final = AxisSeparator()
# What is computed where both sides are constants, as calling a lambda would compute it. Not `%` and `&`: an axis
# written with one of them is a digit, and its extent is seen from how it is written.
FOLDED: Final[Mapping[BinaryOp, Callable[[int, int], int]]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.FLOORDIV: semantics.floordiv,
    BinaryOp.BITOR: lambda a, b: a | b,
    BinaryOp.BITXOR: lambda a, b: a ^ b,
    BinaryOp.SHL: lambda a, b: semantics.shift_left(a, b, INT64),
    BinaryOp.SHR: lambda a, b: semantics.shift_right(a, b, INT64),
}


@dataclass(frozen=True, slots=True, eq=False)
class IndexMap(Node, Shown, WrittenForms, MapArrays):
    """`lambda inputs: outputs`. `separators` are the indices of the last axis of each group but the last."""

    inputs: tuple[Var, ...]
    outputs: tuple[Expr, ...]
    separators: tuple[int, ...] = ()

    def _check(self) -> None:
        names = [v.name for v in self.inputs]
        if len(set(names)) < len(names):
            raise TypeError(f"an index map with two inputs of one name: {', '.join(names)}")
        for axis, output in enumerate(self.outputs):
            dtype = output.dtype
            if dtype is not INT32 and not (dtype.is_integer and dtype.lanes == 1):
                raise TypeError(f"axis {axis} of an index map is a {dtype}, not an integer")
        check_separators(self.separators, len(self.outputs))

    @staticmethod
    def from_outputs(inputs: tuple[Var, ...], items: Sequence[Any]) -> IndexMap:
        """A map from a list of integer expressions and plain integers with AXIS_SEPARATOR between groups.

        Raises LayoutproofError for anything else in the list and for a separator without an axis on both sides.
        """
        outputs: list[Expr] = []
        separators: list[int] = []
        for position, item in enumerate(items):
            if isinstance(item, AxisSeparator):
                separators.append(len(outputs) - 1)
            elif isinstance(item, Expr):
                foreign = foreign_part(item)
                if foreign is not None:
                    shown = expr_text(foreign) if isinstance(foreign, Expr) else type(foreign).__name__
                    message = (
                        f"entry {position} of an index map holds `{shown}`: an index map is made of integers and its "
                        "indices"
                    )
                    raise error(codes.MAP_FORM, message, foreign.span)
                outputs.append(item)
            elif isinstance(item, int | np.integer) and not isinstance(item, bool):
                outputs.append(const(int(item)))
            else:
                raise error(
                    codes.MAP_FORM,
                    f"entry {position} of an index map is {item!r}: an integer expression or AXIS_SEPARATOR is "
                    "expected",
                )
        try:
            return IndexMap(inputs, tuple(outputs), tuple(separators))
        except (TypeError, ValueError) as problem:
            raise error(codes.MAP_FORM, str(problem)) from problem

    @staticmethod
    def identity(rank: int) -> IndexMap:
        """`lambda i0, i1, ...: [i0, i1, ...]`."""
        inputs = tuple(Var(f"i{axis}") for axis in range(rank))
        return IndexMap(inputs, inputs)

    def __repr__(self) -> str:
        return f"IndexMap('{index_map_text(self)}')"

    @property
    def rank(self) -> int:
        """The number of physical axes, before flattening."""
        return len(self.outputs)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The physical axes of each axis group."""
        return axis_groups(self.rank, self.separators)

    def map_indices(self, indices: Sequence[ExprLike]) -> tuple[Expr, ...]:
        """The physical index of a logical one. Raises ValueError for a wrong number of indices."""
        if len(indices) != len(self.inputs):
            raise ValueError(f"the index map takes {indices_text(len(self.inputs))}, not {len(indices)}")
        values = {v: i if isinstance(i, Expr) else const(i) for v, i in zip(self.inputs, indices, strict=True)}
        wide = {Var(v.name, value.dtype): value for v, value in values.items()}
        # A 64-bit index makes the map's arithmetic 64 bits wide; `binary` re-matches constants when the operands are
        # rebuilt.
        if all(v.dtype == i.dtype for v, i in values.items()):
            return tuple(substitute(output, values) for output in self.outputs)
        return tuple(
            substitute(retype(output, {v.name: i.dtype for v, i in values.items()}), wide) for output in self.outputs
        )

    def compose(self, inner: IndexMap) -> IndexMap:
        """First `inner`, then this map: `self(inner(x))`. The separators are this map's."""
        return IndexMap(inner.inputs, self.map_indices(inner.outputs), self.separators)

    def rename(self, names: Sequence[str]) -> IndexMap:
        """The same map with other input names. Raises ValueError for a wrong number of names."""
        if len(names) != len(self.inputs):
            raise ValueError(f"the index map takes {indices_text(len(self.inputs))}, {len(names)} names are given")
        fresh = tuple(Var(name, v.dtype) for name, v in zip(names, self.inputs, strict=True))
        values: dict[Var, Expr] = dict(zip(self.inputs, fresh, strict=True))
        return replace(self, inputs=fresh, outputs=tuple(substitute(o, values) for o in self.outputs))

    def with_symbols(self, symbols: Iterable[Var]) -> IndexMap:
        """The same map with its symbols of the types that they have here."""
        types = {v.name: v.dtype for v in symbols} | {v.name: v.dtype for v in self.inputs}
        return replace(self, outputs=tuple(retype(output, types) for output in self.outputs))

    def narrowed(self) -> IndexMap:
        """The map as its text is read: see `narrowed`."""
        inputs = tuple(Var(v.name) for v in self.inputs)
        return replace(self, inputs=inputs, outputs=tuple(narrowed(output) for output in self.outputs))

    def evaluate(self, index: Sequence[int], symbols: Mapping[str, int] | None = None) -> tuple[int, ...]:
        """The physical index of one concrete logical index. Raises Trap where the map divides by zero."""
        env = {**(symbols or {}), **{v.name: i for v, i in zip(self.inputs, index, strict=True)}}
        return tuple(int(evaluate(output, env)) for output in self.outputs)

    def digit_extent(self, axis: int) -> Expr | None:
        """`k` for an axis `e % k`, `2**m` for `e & (2**m - 1)`; else None, also for a `k` below 1."""
        output = self.outputs[axis]
        if not isinstance(output, Binary):
            return None
        if output.op is BinaryOp.FLOORMOD and not set(free_variables(output.rhs)) & set(self.inputs):
            return output.rhs if free_variables(output.rhs) or evaluate(output.rhs, {}) > 0 else None
        if output.op is BinaryOp.BITAND:
            for mask in (output.rhs, output.lhs):
                if isinstance(mask, IntImm) and mask.value > 0 and mask.value & (mask.value + 1) == 0:
                    return const(mask.value + 1, mask.dtype if mask.value < mask.dtype.max_int else None)
        return None


def retype(expr: Expr, types: Mapping[str, Any]) -> Expr:
    """Index arithmetic with its variables given other integer widths; constants follow, narrower operands are cast."""
    if isinstance(expr, Var):
        return Var(expr.name, types.get(expr.name, expr.dtype), span=expr.span)
    if isinstance(expr, IntImm) and expr.dtype == INT32:
        return expr
    if isinstance(expr, Call):
        return replace(expr, arguments=tuple(retype(argument, types) for argument in expr.arguments))
    parts = {
        name: retype(value, types)
        for name in expr.__dataclass_fields__
        if isinstance(value := getattr(expr, name), Expr)
    }
    return rebuild(expr, parts)


def narrowed(expr: Expr) -> Expr:
    """Index arithmetic as its plain text is read: variables of 32 bits, constants no wider than they must be and
    computed where both operands are one. What has one plain text is one expression then, whatever the widths of its
    variables were.
    """
    if isinstance(expr, Var):
        return Var(expr.name, span=expr.span)
    if isinstance(expr, IntImm):
        return expr if expr.dtype.is_bool else const(expr.value)
    if isinstance(expr, Call):
        return replace(expr, arguments=tuple(narrowed(argument) for argument in expr.arguments))
    parts = {
        name: narrowed(value) for name in expr.__dataclass_fields__ if isinstance(value := getattr(expr, name), Expr)
    }
    folded: Expr | None = None
    if isinstance(expr, Binary):
        folded = _folded(expr.op, parts["lhs"], parts["rhs"])
    elif (
        isinstance(expr, Cast)
        and expr.dtype.is_integer
        and isinstance(value := parts["value"], IntImm)
        and not value.dtype.is_bool
    ):
        folded = value if expr.dtype.min_int <= value.value <= expr.dtype.max_int else None
    return folded if folded is not None else rebuild(expr, parts)


def _folded(op: BinaryOp, a: Expr, b: Expr) -> Expr | None:
    """The constant that arithmetic on two constants is; None where it is none."""
    if op not in FOLDED or not (isinstance(a, IntImm) and isinstance(b, IntImm)) or a.dtype.is_bool or b.dtype.is_bool:
        return None
    try:
        number = FOLDED[op](a.value, b.value)
    except Trap:
        return None
    return const(number) if INT64.min_int <= number <= INT64.max_int else None


def index_map_text(index_map: IndexMap) -> str:
    """The canonical text: one line, plain integers, AXIS_SEPARATOR between groups. Reads back equal for 32-bit maps."""
    entries: list[str] = []
    for axis, output in enumerate(index_map.outputs):
        entries.append(expr_text(output, "plain"))
        if axis in index_map.separators:
            entries.append(repr(AXIS_SEPARATOR))
    inputs = ", ".join(v.name for v in index_map.inputs)
    return f"lambda{' ' if inputs else ''}{inputs}: [{', '.join(entries)}]"


def rebuild(expr: Expr, parts: Mapping[str, Expr]) -> Expr:
    """`expr` with operands replaced and their integer widths matched again."""
    if isinstance(expr, Binary):
        return binary(expr.op, parts["lhs"], parts["rhs"])
    if isinstance(expr, Compare):
        return compare(expr.op, parts["lhs"], parts["rhs"])
    if isinstance(expr, Select | IfThenElseExpr):
        then, otherwise = parts["then"], parts["otherwise"]
        wide = then.dtype if then.dtype.bits >= otherwise.dtype.bits else otherwise.dtype
        return replace(expr, condition=parts["condition"], then=widen(then, wide), otherwise=widen(otherwise, wide))
    changes: dict[str, Any] = dict(parts)
    return replace(expr, **changes)
