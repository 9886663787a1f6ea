"""`linalg`: loops over an iteration domain, with maps from it to the operands; named operations are rows of a table.

The loops are in the order of the dimensions, all serial: what the operation computes, if sums are not regrouped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.importers.mlir.arith_ops import EXPRESSIONS
from layoutproof.importers.mlir.builder import Builder
from layoutproof.importers.mlir.flags import may_deviate
from layoutproof.importers.mlir.memref_ops import live
from layoutproof.importers.mlir.model import AffineExpr, AffineMap, Dim, Num, Op, Operation2, Shaped, Value
from layoutproof.importers.mlir.placement import WRITES, may_be_same, root
from layoutproof.importers.mlir.tensor_ops import destination, shaped
from layoutproof.importers.mlir.values import View, value_of
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr
from layoutproof.ir.visit import loads_in

Body = Callable[[list[Expr], list[Expr]], list[Expr]]  # elements of inputs and outputs -> elements of outputs


@dataclass(frozen=True)
class Structure:
    """Maps of all operands, inputs first, the number of dimensions, and what is computed at each point.

    `reads_out` says whether outputs' old elements are used.
    """

    maps: tuple[AffineMap, ...]
    dims: int
    body: Body
    reads_out: bool


def run(b: Builder, op: Op, structure: Structure) -> None:
    """The loops of a structured operation."""
    inputs, outputs = op.segments()
    given = [live(b, op, value) if isinstance(value.type, Shaped) else None for value in inputs]
    targets = [_target(b, op, value, structure) for value in outputs]
    stored = [target.buffer for target in targets]
    views: list[View | Expr] = [
        view if view is not None else b.settled([b.expr(op, value)], stored, op.span)[0]
        for view, value in zip(given, inputs, strict=True)
    ]
    operands = [*views, *targets]
    extents = domain(b, op, structure, operands)
    count = len(inputs)

    def point(indices: list[Expr]) -> None:
        b.dims.append(indices)
        cells = [m.apply(indices) for m in structure.maps]
        elements = [
            operand.load(cell, b.is_inside, op.span) if isinstance(operand, View) else operand
            for operand, cell in zip(operands, cells, strict=True)
        ]
        values = structure.body(elements[:count], elements[count:])
        loads = [load.buffer for value in values for load in loads_in(value)]
        if len(values) > 1 and not all(b.is_apart(load, target.buffer) for load in loads for target in targets):
            values = [b.named(None, value, op.span) for value in values]
        for target, cell, value in zip(targets, cells[count:], values, strict=True):
            b.store(target.buffer, target.cell(cell, b.is_inside), value, op.span)
        b.dims.pop()

    b.nest(extents, point, op.span, _parallel(b, op, structure, views, targets))
    made = [target for value, target in zip(outputs, targets, strict=True) if shaped(op, value).kind == "tensor"]
    for result, target in zip(op.results, made, strict=True):
        b.bind(result, target)


def _parallel(
    b: Builder, op: Op, structure: Structure, views: Sequence[View | Expr], targets: Sequence[View]
) -> list[bool]:
    """Which dimensions have no order, where that can be seen: where memory that is stored to is read elsewhere, too,
    or where several points store to one element.
    """
    is_read = _stores_in_region(b, op) or any(
        isinstance(view, View) and not b.is_apart(view.buffer, target.buffer) for view in views for target in targets
    )
    of_outputs = [set(_numbers(each)) for each in structure.maps[len(views) :]]
    apart = [all(d in numbers for numbers in of_outputs) for d in range(structure.dims)]
    kinds = op.attributes.get("iterator_types")
    if kinds is None:
        return apart if is_read else []
    return ["parallel" in str(kind) and (is_read or not alone) for kind, alone in zip(kinds, apart, strict=True)]


def _stores_in_region(b: Builder, op: Op) -> bool:
    """Whether the region of an operation writes memory, or reads what the operation writes."""
    outputs = [root(value) for value in op.segments()[1]]
    for each in op.nested():
        if each.name in WRITES:
            return True
        reads = [
            root(value) for value in each.operands if isinstance(value.type, Shaped) and value.type.kind == "memref"
        ]
        if any(may_be_same(memory, output, b.may_alias) for memory in reads for output in outputs):
            return True
    return False


def _target(b: Builder, op: Op, value: Value, structure: Structure) -> View:
    if shaped(op, value).kind == "memref":
        return live(b, op, value)
    return destination(b, op, value, contents=structure.reads_out)


def domain(b: Builder, op: Op, structure: Structure, operands: Sequence[View | Expr]) -> list[Expr]:
    """The extent of each dimension: that of an axis that it indexes alone. Equal ones are a precondition."""
    found: dict[int, Expr] = {}
    for operand, each in zip(operands, structure.maps, strict=True):
        if not isinstance(operand, View):
            continue
        if len(each.results) != len(operand.shape):
            raise op.fail("an indexing map does not fit its operand")
        for result, extent in zip(each.results, operand.shape, strict=True):
            if not isinstance(result, Dim):
                continue
            known = found.setdefault(result.number, extent)
            if known != extent:
                _same_extents(b, op, known, extent)
    missing = [d for d in range(structure.dims) if d not in found]
    if missing:
        raise op.fail(f"the extent of dimension {missing[0]} follows from no operand")
    return [found[d] for d in range(structure.dims)]


def _same_extents(b: Builder, op: Op, known: Expr, extent: Expr) -> None:
    if value_of(known) is not None and value_of(extent) is not None:
        raise op.fail(f"extents {value_of(known)} and {value_of(extent)} of one dimension")
    b.require_same([known], [extent], op.span)


# ---- generic


def _generic(b: Builder, op: Op) -> None:
    maps = tuple(op.attribute("indexing_maps"))
    if not all(isinstance(m, AffineMap) and m.symbols == 0 for m in maps):
        raise op.fail("the indexing maps are not translated")
    run(b, op, Structure(maps, maps[0].dims, _region(b, op), _reads_out(op)))


def _region(b: Builder, op: Op) -> Body:
    block = op.block()

    def body(inputs: list[Expr], outputs: list[Expr]) -> list[Expr]:
        for argument, element in zip(block.arguments, [*inputs, *outputs], strict=True):
            b.bind(argument, element)
        end = b.block(block)
        return [b.expr(end, value) for value in end.operands]

    return body


def _reads_out(op: Op) -> bool:
    inputs, _ = op.segments()
    return any(argument.uses for argument in op.block().arguments[len(inputs) :]) or not _covers(op)


def _covers(op: Op) -> bool:
    """Whether every element of the outputs is stored."""
    inputs, _ = op.segments()
    maps = op.attribute("indexing_maps")[len(inputs) :]
    return all(sorted(_numbers(m)) == list(range(m.dims)) for m in maps)


def _numbers(found: AffineMap) -> list[int]:
    return [result.number for result in found.results if isinstance(result, Dim)]


def _map_elements(b: Builder, op: Op) -> None:
    """Each element of the output from those of the inputs at its indices."""
    rank = shaped(op, op.operands[-1]).rank
    body = _named_body(b, op)
    if body is None:
        region, count = _region(b, op), len(op.block().arguments)

        def body(elements: list[Expr], old: list[Expr]) -> list[Expr]:
            return region([*elements, *old][:count], [])

    run(b, op, Structure((_identity(rank),) * len(op.operands), rank, body, reads_out=False))


def _named_body(b: Builder, op: Op) -> Body | None:
    """Of the short form, `{ arith.addf }`: the operation that it names."""
    names = [name for name in op.attributes if name in EXPRESSIONS]
    if op.regions or len(names) != 1:
        return None
    dtype = shaped(op, op.operands[-1]).element.dtype
    meaning = may_deviate(b, EXPRESSIONS[names[0]])
    return lambda inputs, _: [meaning(op, inputs, dtype)]


def _reduce(b: Builder, op: Op) -> None:
    """Over the axes `dimensions`; an element of the output comes last among the arguments."""
    inputs, outputs = op.segments()
    rank, gone = shaped(op, inputs[0]).rank, [int(axis) for axis in op.attribute("dimensions")]
    kept = AffineMap(rank, 0, tuple(Dim(axis) for axis in range(rank) if axis not in gone))
    maps = (*(_identity(rank) for _ in inputs), *(kept for _ in outputs))
    named = _named_body(b, op)
    # The operation that the short form names takes what is there first.
    body = _region(b, op) if named is None else lambda i, o: named([*o, *i], [])
    run(b, op, Structure(maps, rank, body, reads_out=True))


def _index(b: Builder, op: Op) -> None:
    if not b.dims:
        raise op.fail("outside of a structured operation")
    b.bind(op.results[0], b.dims[-1][op.attribute("dim")])


# ---- named


def _combined(names: tuple[str, str], op: Op, args: list[Expr], dtype: DType) -> Expr:
    """An operation of `arith`, the one for floats or the one for integers."""
    name = names[0] if dtype.is_float else names[1]
    if not name:
        raise op.fail(f"of {dtype} is not translated")
    if any(arg.dtype != dtype for arg in args):
        raise op.fail("elements of several types are not translated")
    if dtype.is_bool:
        if names not in _OF_BITS:
            raise op.fail("of integers of one bit is not translated")
        name = _OF_BITS[names]
    return EXPRESSIONS[name](op, args, dtype)


_ADD, _MUL = ("arith.addf", "arith.addi"), ("arith.mulf", "arith.muli")
# Named operations take truth values for a sum and a product, not integers that wrap.
_OF_BITS = {_ADD: "arith.ori", _MUL: "arith.andi"}


def _contraction(op: Op, ins: list[Expr], outs: list[Expr]) -> list[Expr]:
    dtype = outs[0].dtype
    product = _combined(_MUL, op, ins, dtype)
    return [_combined(_ADD, op, [outs[0], product], dtype)]


def _pooled(names: tuple[str, str]) -> Callable[[Op, list[Expr], list[Expr]], list[Expr]]:
    return lambda op, ins, outs: [_combined(names, op, [outs[0], ins[0]], outs[0].dtype)]


def _elementwise(names: tuple[str, str]) -> Callable[[Op, list[Expr], list[Expr]], list[Expr]]:
    return lambda op, ins, outs: [_combined(names, op, ins, outs[0].dtype)]


def _copied(op: Op, ins: list[Expr], outs: list[Expr]) -> list[Expr]:
    if ins[0].dtype != outs[0].dtype:
        raise op.fail("elements of several types are not translated")
    return [ins[0]]


@dataclass(frozen=True)
class Named:
    """A named operation: its dimensions, the index of each operand as text, and what is computed."""

    dims: int
    maps: tuple[str, ...]
    body: Callable[[Op, list[Expr], list[Expr]], list[Expr]]
    reads_out: bool = True


# Dimensions are letters; `sh*a+dh*b` steps through a window: strides s*, dilations d*.
NAMED: Mapping[str, Named] = {
    "linalg.matmul": Named(3, ("a c", "c b", "a b"), _contraction),
    "linalg.matmul_transpose_a": Named(3, ("c a", "c b", "a b"), _contraction),
    "linalg.matmul_transpose_b": Named(3, ("a c", "b c", "a b"), _contraction),
    "linalg.batch_matmul": Named(4, ("a b d", "a d c", "a b c"), _contraction),
    "linalg.batch_matmul_transpose_a": Named(4, ("a d b", "a d c", "a b c"), _contraction),
    "linalg.batch_matmul_transpose_b": Named(4, ("a b d", "a c d", "a b c"), _contraction),
    "linalg.matvec": Named(2, ("a b", "b", "a"), _contraction),
    "linalg.vecmat": Named(2, ("b", "b a", "a"), _contraction),
    "linalg.dot": Named(1, ("a", "a", ""), _contraction),
    "linalg.mmt4d": Named(6, ("a c d f", "b c e f", "a b d e"), _contraction),
    "linalg.conv_1d": Named(2, ("a+b", "b", "a"), _contraction),
    "linalg.conv_2d": Named(4, ("a+c b+d", "c d", "a b"), _contraction),
    "linalg.conv_2d_nhwc_hwcf": Named(7, ("a b@0+e@0 c@1+f@1 g", "e f g d", "a b c d"), _contraction),
    "linalg.conv_2d_nchw_fchw": Named(7, ("a e c@0+f@0 d@1+g@1", "b e f g", "a b c d"), _contraction),
    "linalg.conv_1d_nwc_wcf": Named(5, ("a b@0+d@0 e", "d e c", "a b c"), _contraction),
    "linalg.depthwise_conv_2d_nhwc_hwc": Named(6, ("a b@0+e@0 c@1+f@1 d", "e f d", "a b c d"), _contraction),
    "linalg.pooling_nhwc_max": Named(6, ("a b@0+e@0 c@1+f@1 d", "e f", "a b c d"),
                                     _pooled(("arith.maximumf", "arith.maxsi"))),
    "linalg.pooling_nhwc_min": Named(6, ("a b@0+e@0 c@1+f@1 d", "e f", "a b c d"),
                                     _pooled(("arith.minimumf", "arith.minsi"))),
    "linalg.pooling_nhwc_sum": Named(6, ("a b@0+e@0 c@1+f@1 d", "e f", "a b c d"), _pooled(_ADD)),
    "linalg.pooling_nchw_max": Named(6, ("a b c@0+e@0 d@1+f@1", "e f", "a b c d"),
                                     _pooled(("arith.maximumf", "arith.maxsi"))),
    "linalg.pooling_nchw_sum": Named(6, ("a b c@0+e@0 d@1+f@1", "e f", "a b c d"), _pooled(_ADD)),
}  # fmt: skip

ELEMENTWISE: Mapping[str, tuple[str, str]] = {
    "linalg.add": _ADD,
    "linalg.sub": ("arith.subf", "arith.subi"),
    "linalg.mul": _MUL,
    "linalg.div": ("arith.divf", ""),
    "linalg.max": ("arith.maximumf", "arith.maxsi"),
    "linalg.min": ("arith.minimumf", "arith.minsi"),
    "linalg.exp": ("math.exp", ""),
    "linalg.log": ("math.log", ""),
    "linalg.abs": ("math.absf", ""),
    "linalg.ceil": ("math.ceil", ""),
    "linalg.floor": ("math.floor", ""),
    "linalg.negf": ("arith.negf", ""),
    "linalg.sqrt": ("math.sqrt", ""),
    "linalg.rsqrt": ("math.rsqrt", ""),
    "linalg.tanh": ("math.tanh", ""),
}


def _named(b: Builder, op: Op) -> None:
    known = NAMED[op.name]
    strides, dilations = (_window(op, name) for name in ("strides", "dilations"))
    maps = tuple(_map(text, known.dims, strides, dilations) for text in known.maps)
    _shapes_fit(op, maps)
    run(b, op, Structure(maps, known.dims, lambda i, o: known.body(op, i, o), known.reads_out))


def _window(op: Op, name: str) -> list[int]:
    found = op.attributes.get(name, [1, 1, 1])
    values = list(found[1]) if isinstance(found, tuple) else list(found)
    return [int(v) for v in values] * (3 if len(values) == 1 else 1)


def _map(text: str, dims: int, strides: Sequence[int], dilations: Sequence[int]) -> AffineMap:
    return AffineMap(dims, 0, tuple(_result(part, strides, dilations) for part in text.split()))


def _result(text: str, strides: Sequence[int], dilations: Sequence[int]) -> AffineExpr:
    terms: list[AffineExpr] = []
    for scales, term in zip((strides, dilations), text.split("+"), strict=False):
        letter, _, axis = term.partition("@")
        dim = Dim("abcdefgh".index(letter))
        factor = scales[int(axis)] if axis else 1
        terms.append(dim if factor == 1 else Operation2("*", dim, Num(factor)))
    return terms[0] if len(terms) == 1 else Operation2("+", terms[0], terms[1])


def _shapes_fit(op: Op, maps: Sequence[AffineMap]) -> None:
    ranks = [shaped(op, value).rank for value in op.operands]
    if ranks != [len(m.results) for m in maps]:
        raise op.fail("operands of these ranks are not translated")
    if "cast" in op.attributes:
        raise op.fail("the attribute cast is not translated")
    if tuple(op.attributes.get("indexing_maps", maps)) != tuple(maps):
        raise op.fail("indexing_maps other than those of its name are not translated")


def _identity(rank: int) -> AffineMap:
    return AffineMap(rank, 0, tuple(Dim(n) for n in range(rank)))


def _by_element(b: Builder, op: Op) -> None:
    rank = shaped(op, op.operands[0]).rank
    body = _copied if op.name == "linalg.copy" else _elementwise(ELEMENTWISE[op.name])
    maps = (_identity(rank),) * len(op.operands)
    run(b, op, Structure(maps, rank, lambda i, o: body(op, i, o), reads_out=False))


def _fill(b: Builder, op: Op) -> None:
    rank = shaped(op, op.operands[1]).rank
    maps = (AffineMap(rank, 0, ()), _identity(rank))
    run(b, op, Structure(maps, rank, lambda i, o: _copied(op, i, o), reads_out=False))


def _transpose(b: Builder, op: Op) -> None:
    order = [int(axis) for axis in op.attribute("permutation")]
    # Axis k of the result is axis order[k] of the input.
    source = AffineMap(len(order), 0, tuple(Dim(order.index(axis)) for axis in range(len(order))))
    run(b, op, Structure((source, _identity(len(order))), len(order), lambda i, o: _copied(op, i, o), False))


def _broadcast(b: Builder, op: Op) -> None:
    added = [int(axis) for axis in op.attribute("dimensions")]
    rank = shaped(op, op.operands[1]).rank
    source = AffineMap(rank, 0, tuple(Dim(axis) for axis in range(rank) if axis not in added))
    run(b, op, Structure((source, _identity(rank)), rank, lambda i, o: _copied(op, i, o), False))


TABLE: Mapping[str, Callable[[Builder, Op], None]] = {
    "linalg.generic": _generic,
    "linalg.index": _index,
    "linalg.map": _map_elements,
    "linalg.reduce": _reduce,
    "linalg.fill": _fill,
    "linalg.transpose": _transpose,
    "linalg.broadcast": _broadcast,
    "linalg.copy": _by_element,
    **dict.fromkeys(ELEMENTWISE, _by_element),
    **dict.fromkeys(NAMED, _named),
}
