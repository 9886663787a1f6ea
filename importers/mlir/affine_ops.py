"""`affine`: loops and branches with maps, loads and stores at maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from layoutproof.importers.mlir.builder import Builder
from layoutproof.importers.mlir.loops import branch_with_results, counted_loop, parallel_loops
from layoutproof.importers.mlir.memref_ops import read, write
from layoutproof.importers.mlir.model import AffineMap, AffineSet, Op, Value, floordiv, floormod, greatest, least
from layoutproof.importers.mlir.reductions import of_affine, reduce_in_parallel
from layoutproof.importers.mlir.values import number
from layoutproof.importers.mlir.vector_ops import load_lanes, store_lanes
from layoutproof.ir.expr import Compare, Expr, logical_and
from layoutproof.ir.operators import CompareOp


def _operands(b: Builder, op: Op, values: Sequence[Value]) -> list[Expr]:
    return [b.expr(op, value) for value in values]


def _results(b: Builder, op: Op, name: str, values: Sequence[Value]) -> tuple[Expr, ...]:
    found = op.attribute(name)
    if not isinstance(found, AffineMap):
        raise op.fail(f"the attribute {name} is no affine map")
    return found.apply(_operands(b, op, values))


def _apply(b: Builder, op: Op) -> None:
    b.bind_expression(op, op.results[0], _results(b, op, "map", op.operands)[0])


def _extreme(choose: Callable[[Sequence[Expr]], Expr]) -> Callable[[Builder, Op], None]:
    return lambda b, op: b.bind_expression(op, op.results[0], choose(_results(b, op, "map", op.operands)))


def _load(b: Builder, op: Op) -> None:
    read(b, op, op.operands[0], _results(b, op, "map", op.operands[1:]))


def _store(b: Builder, op: Op) -> None:
    write(b, op, op.operands[1], _results(b, op, "map", op.operands[2:]), op.operands[0])


def _vector_load(b: Builder, op: Op) -> None:
    load_lanes(b, op, op.operands[0], _results(b, op, "map", op.operands[1:]))


def _vector_store(b: Builder, op: Op) -> None:
    store_lanes(b, op, op.operands[1], _results(b, op, "map", op.operands[2:]), op.operands[0])


def _for(b: Builder, op: Op) -> None:
    lower_values, upper_values, inits = op.segments()
    lower = greatest(_results(b, op, "lowerBoundMap", lower_values))
    upper = least(_results(b, op, "upperBoundMap", upper_values))
    counted_loop(b, op, (lower, upper, number(op.attribute("step"))), inits)


def _if(b: Builder, op: Op) -> None:
    condition = op.attribute("condition")
    if not isinstance(condition, AffineSet):
        raise op.fail("the condition is no affine set")
    values = condition.constraints.apply(_operands(b, op, op.operands))
    zero = number(0)
    kinds = [CompareOp.EQ if equal else CompareOp.GE for equal in condition.equalities]
    terms = [Compare(kind, value, zero) for kind, value in zip(kinds, values, strict=True)]
    branch_with_results(b, op, logical_and(*terms))


def _parallel(b: Builder, op: Op) -> None:
    lower_map, upper_map = op.attribute("lowerBoundsMap"), op.attribute("upperBoundsMap")
    count = lower_map.dims + lower_map.symbols
    lower = lower_map.apply(_operands(b, op, op.operands[:count]))
    upper = upper_map.apply(_operands(b, op, op.operands[count:]))
    lows = [greatest(group) for group in _grouped(lower, op.attribute("lowerBoundsGroups"))]
    highs = [least(group) for group in _grouped(upper, op.attribute("upperBoundsGroups"))]
    steps = [number(step) for step in op.attribute("steps")]
    bounds = list(zip(lows, highs, steps, strict=True))
    if op.results:
        end = op.block().ops[-1]
        reduce_in_parallel(b, op, bounds, of_affine(op, end), end)
        return
    parallel_loops(b, op, bounds)


def _grouped(values: Sequence[Expr], sizes: object) -> list[list[Expr]]:
    # A splat: as many groups of one size as there are.
    rest, groups = list(values), []
    counts = [sizes] if isinstance(sizes, int) else _flat(sizes)
    for size in counts:
        groups.append([rest.pop(0) for _ in range(size)])
    return groups


def _flat(sizes: object) -> list[int]:
    if isinstance(sizes, tuple):  # the elements of a dense attribute
        sizes = list(sizes[1])
    assert isinstance(sizes, list)
    return [int(size) for size in sizes]


def _delinearize(b: Builder, op: Op) -> None:
    position = b.expr(op, op.operands[0])
    basis = _operands(b, op, op.operands[1:])
    if len(basis) != len(op.results):
        raise op.fail("a basis without its first extent is not translated")
    for axis in range(len(basis) - 1, 0, -1):
        b.bind(op.results[axis], floormod(position, basis[axis]))
        position = floordiv(position, basis[axis])
    b.bind(op.results[0], position)


TABLE: Mapping[str, Callable[[Builder, Op], None]] = {
    "affine.apply": _apply,
    "affine.min": _extreme(least),
    "affine.max": _extreme(greatest),
    "affine.load": _load,
    "affine.store": _store,
    "affine.vector_load": _vector_load,
    "affine.vector_store": _vector_store,
    "affine.for": _for,
    "affine.if": _if,
    "affine.parallel": _parallel,
    "affine.delinearize_index": _delinearize,
}
