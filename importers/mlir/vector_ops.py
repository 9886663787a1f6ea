"""`vector`: a vector is its lanes, each an expression; transfers are loops over lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from layoutproof.importers.mlir.arith_ops import EXPRESSIONS
from layoutproof.importers.mlir.builder import Builder, load_cell
from layoutproof.importers.mlir.flags import may_deviate
from layoutproof.importers.mlir.memref_ops import bind_vector_read, live
from layoutproof.importers.mlir.model import AffineMap, Dim, Num, Op, Scalar, Shaped, Value, add
from layoutproof.importers.mlir.tensor_ops import destination
from layoutproof.importers.mlir.values import ZERO, Indices, Vector, View, delinear, linear, number
from layoutproof.ir.expr import TRUE, Expr, IfThenElseExpr, logical_and


def _shape(kind: object) -> tuple[int, ...]:
    assert isinstance(kind, Shaped)
    return tuple(extent for extent in kind.shape if extent is not None)


class _Transfer:
    """Which element of memory each lane is, and whether there is one."""

    def __init__(self, b: Builder, op: Op, view: View, base: Sequence[Expr], mask: Vector | None) -> None:
        found = op.attribute("permutation_map")
        assert isinstance(found, AffineMap)
        self.b = b
        self.op = op
        self.view = view
        self.base = base
        self.results = found.results
        self.in_bounds = [flag != 0 for flag in op.attributes.get("in_bounds", [0] * len(found.results))]
        self.mask = mask
        # A mask has an axis for each axis of memory that lanes go along, in memory's order.
        along = [(result.number, k) for k, result in enumerate(self.results) if isinstance(result, Dim)]
        self.mask_lanes = [k for _, k in sorted(along)]

    def element(self, lanes: Indices) -> list[Expr]:
        """The indices of a lane."""
        indices = list(self.base)
        for result, lane in zip(self.results, lanes, strict=True):
            if isinstance(result, Dim):
                indices[result.number] = add(indices[result.number], lane)
            elif result != Num(0):
                raise self.op.fail("this permutation map is not translated")
        return indices

    def exists(self, lanes: Indices, indices: Indices) -> Expr:
        """Whether the lane is one of memory; of those in bounds it is taken for granted, and proved as an access."""
        terms = []
        for result, sure in zip(self.results, self.in_bounds, strict=True):
            if isinstance(result, Dim) and not sure:
                index, extent = indices[result.number], self.view.shape[result.number]
                if not self.b.is_inside(index, extent):
                    terms.append(index < extent)
        if self.mask is not None:
            terms.append(self.mask.at([lanes[k] for k in self.mask_lanes]))
        return logical_and(*terms)


def _indices(b: Builder, op: Op, values: Sequence[Value], mask: Vector | None) -> list[Expr]:
    """Where a transfer begins, read also where the mask has no lane."""
    return [b.expr(op, value) if mask is None else b.fixed(op, value) for value in values]


def _read(b: Builder, op: Op) -> None:
    source, indices, padding, mask = op.segments()
    view = live(b, op, source[0])
    given = b.whole(b.vector(op, mask[0]), op.span) if mask else None
    transfer = _Transfer(b, op, view, _indices(b, op, indices, given), given)
    if view.inner:
        raise op.fail("of memory of vectors is not translated")
    pad = b.fixed(op, padding[0])  # read also where no lane is outside

    def at(lanes: Indices) -> Expr:
        element = transfer.element(lanes)
        exists = transfer.exists(lanes, element)
        load = view.load(element, b.is_inside, op.span)
        return load if exists == TRUE else IfThenElseExpr(exists, load, pad)

    bind_vector_read(b, op, Vector(_shape(op.results[0].type), at))


def _write(b: Builder, op: Op) -> None:
    value, target, indices, mask = op.segments()
    view = destination(b, op, target[0]) if op.results else live(b, op, target[0])
    some = b.unwritten(b.whole(b.vector(op, mask[0]), op.span), view.buffer, op.span) if mask else None
    base = b.settled(_indices(b, op, indices, some), [view.buffer], op.span)
    transfer = _Transfer(b, op, view, base, some)
    given = b.vector(op, value[0])
    last = [number(extent - 1) for extent in given.shape]
    if transfer.exists(last, transfer.element(last)) != TRUE:
        given = b.whole(given, op.span)
    vector = b.steady(given, view.buffer, lambda lanes: view.cell(transfer.element(lanes), b.is_inside), op.span)

    def lane(lanes: list[Expr]) -> None:
        element = transfer.element(lanes)
        exists = transfer.exists(lanes, element)

        def put() -> None:
            b.store(view.buffer, view.cell(element, b.is_inside), vector.at(lanes), op.span)

        if exists == TRUE:
            put()
        else:
            b.branch(exists, put, None, op.span)

    b.nest([number(extent) for extent in vector.shape], lane, op.span)
    for result in op.results:
        b.bind(result, view)


def load_lanes(b: Builder, op: Op, memory: Value, indices: Sequence[Expr]) -> None:
    """Consecutive elements of the last axes as a vector."""
    view = live(b, op, memory)
    shape = _shape(op.results[0].type)
    vector = Vector(shape, lambda lanes: view.load(_behind(indices, lanes), b.is_inside, op.span))
    bind_vector_read(b, op, vector)


def store_lanes(b: Builder, op: Op, memory: Value, indices: Sequence[Expr], value: Value) -> None:
    """A vector as consecutive elements of the last axes."""
    view = live(b, op, memory)
    indices = b.settled(indices, [view.buffer], op.span)
    vector = b.steady(
        b.vector(op, value), view.buffer, lambda lanes: view.cell(_behind(indices, lanes), b.is_inside), op.span
    )
    b.nest(
        [number(extent) for extent in vector.shape],
        lambda lanes: b.store(view.buffer, view.cell(_behind(indices, lanes), b.is_inside), vector.at(lanes), op.span),
        op.span,
    )


def _behind(indices: Sequence[Expr], lanes: Indices) -> list[Expr]:
    first = len(indices) - len(lanes)
    return [*indices[:first], *(add(i, lane) for i, lane in zip(indices[first:], lanes, strict=True))]


def _load(b: Builder, op: Op) -> None:
    load_lanes(b, op, op.operands[0], [b.expr(op, value) for value in op.operands[1:]])


def _store(b: Builder, op: Op) -> None:
    store_lanes(b, op, op.operands[1], [b.expr(op, value) for value in op.operands[2:]], op.operands[0])


def _broadcast(b: Builder, op: Op) -> None:
    source = b.meanings.get(op.operands[0])
    shape = _shape(op.results[0].type)
    if isinstance(source, Expr):
        b.bind(op.results[0], Vector(shape, lambda _: source))
        return
    vector = b.vector(op, op.operands[0])
    first = len(shape) - len(vector.shape)
    b.bind(
        op.results[0],
        Vector(
            shape,
            lambda lanes: vector.at(
                [lane if extent != 1 else ZERO for lane, extent in zip(lanes[first:], vector.shape, strict=True)]
            ),
        ),
    )


def _extract(b: Builder, op: Op) -> None:
    vector = b.whole(b.vector(op, op.operands[0]), op.span)
    dynamic = [b.expr(op, value) for value in op.operands[1:]]
    position = [dynamic.pop(0) if each == -(1 << 63) else number(each) for each in op.attribute("static_position")]
    for index, extent in zip(position, vector.shape, strict=False):
        if not b.is_inside(index, number(extent)):
            raise op.fail("a position that may be outside is not translated")
    if isinstance(op.results[0].type, Scalar):
        b.bind_expression(op, op.results[0], vector.at(position))
        return
    b.bind(op.results[0], Vector(vector.shape[len(position) :], lambda lanes: vector.at([*position, *lanes])))


def _transpose(b: Builder, op: Op) -> None:
    vector = b.vector(op, op.operands[0])
    order = [int(axis) for axis in op.attribute("permutation")]

    def at(lanes: Indices) -> Expr:
        back = dict(zip(order, lanes, strict=True))
        return vector.at([back[axis] for axis in range(len(order))])

    b.bind(op.results[0], Vector(tuple(vector.shape[axis] for axis in order), at))


def _shape_cast(b: Builder, op: Op) -> None:
    vector = b.vector(op, op.operands[0])
    shape = _shape(op.results[0].type)
    old, new = [number(extent) for extent in vector.shape], [number(extent) for extent in shape]
    b.bind(op.results[0], Vector(shape, lambda lanes: vector.at(delinear(linear(lanes, new), old))))


_KINDS = {
    "add": ("arith.addi", "arith.addf"),
    "mul": ("arith.muli", "arith.mulf"),
    "minsi": ("arith.minsi", ""),
    "maxsi": ("arith.maxsi", ""),
    "minui": ("arith.minui", ""),
    "maxui": ("arith.maxui", ""),
    "and": ("arith.andi", ""),
    "or": ("arith.ori", ""),
    "xor": ("arith.xori", ""),
    "minimumf": ("", "arith.minimumf"),
    "maximumf": ("", "arith.maximumf"),
    "minnumf": ("", "arith.minnumf"),
    "maxnumf": ("", "arith.maxnumf"),
}


def _reduction(b: Builder, op: Op) -> None:
    """Lane after lane, as without `reassoc`; the accumulator comes first."""
    vector = b.vector(op, op.operands[0])
    kind = op.results[0].type
    names = _KINDS.get(str(op.attribute("kind")))
    if names is None or not isinstance(kind, Scalar) or not names[kind.dtype.is_float]:
        raise op.fail("this reduction is not translated")
    combine = may_deviate(b, EXPRESSIONS[names[kind.dtype.is_float]])
    start = b.expr(op, op.operands[1]) if len(op.operands) > 1 else vector.at([ZERO])
    cell = b.cell(op.results[0].name, kind, op.span)
    b.store(cell, (ZERO,), start, op.span)
    skip = 0 if len(op.operands) > 1 else 1

    def lane(var: Expr) -> None:
        value = combine(op, [load_cell(cell, op.span), vector.at([add(var, number(skip))])], kind.dtype)
        b.store(cell, (ZERO,), value, op.span)

    b.loop("lane", number(vector.shape[0] - skip), lane, op.span)
    b.bind(op.results[0], load_cell(cell, op.span))


def _create_mask(b: Builder, op: Op) -> None:
    b.bind(op.results[0], _below(_shape(op.results[0].type), [b.fixed(op, value) for value in op.operands]))


def _constant_mask(b: Builder, op: Op) -> None:
    sizes = [number(size) for size in op.attribute("mask_dim_sizes")]
    b.bind(op.results[0], _below(_shape(op.results[0].type), sizes))


def _below(shape: tuple[int, ...], bounds: Sequence[Expr]) -> Vector:
    """Which lanes are below the bounds."""
    return Vector(shape, lambda lanes: logical_and(*(lane < n for lane, n in zip(lanes, bounds, strict=True))))


TABLE: Mapping[str, Callable[[Builder, Op], None]] = {
    "vector.transfer_read": _read,
    "vector.transfer_write": _write,
    "vector.load": _load,
    "vector.store": _store,
    "vector.broadcast": _broadcast,
    "vector.splat": _broadcast,
    "vector.extract": _extract,
    "vector.transpose": _transpose,
    "vector.shape_cast": _shape_cast,
    "vector.reduction": _reduction,
    "vector.create_mask": _create_mask,
    "vector.constant_mask": _constant_mask,
}
