"""Loops and branches: their iterations, and the values that they carry, which become memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from layoutproof.importers.mlir.arith_ops import of_buffer
from layoutproof.importers.mlir.builder import Builder, load_cell
from layoutproof.importers.mlir.model import Op, Scalar, Shaped, Value, add, ceildiv, greatest, mul, sub
from layoutproof.importers.mlir.placement import is_empty, last_use
from layoutproof.importers.mlir.values import ZERO, Meaning, Vector, View, number, value_of
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Expr, const
from layoutproof.ir.stmt import ForKind
from layoutproof.ir.visit import loads_in

Bounds = tuple[Expr, Expr, Expr]  # from, to (exclusive), step


@dataclass(frozen=True)
class Carried:
    """The memory of a value that a loop or a branch yields."""

    value: Value
    buffer: Buffer

    def meaning(self, b: Builder, op: Op) -> Meaning:
        """The value, where its memory has not been written since."""
        if isinstance(self.value.type, Scalar):
            return load_cell(self.buffer, op.span)
        view = View.of(self.buffer)
        return of_buffer(b, op, view) if self.value.type.kind == "vector" else view

    def put(self, b: Builder, op: Op, meaning: Meaning) -> None:
        """Store a value."""
        match meaning:
            case View():
                if meaning.buffer is not self.buffer:
                    b.copy(meaning, View.of(self.buffer), op.span)
                elif not meaning.whole:
                    raise op.fail("a part of a tensor in its own place is not translated")
            case Vector():
                b.fill(View.of(self.buffer), b.steady(meaning, self.buffer, tuple, op.span).at, op.span)
            case _:
                b.store(self.buffer, (ZERO,), meaning, op.span)


def carried(b: Builder, op: Op, value: Value, init: Value | None = None) -> Carried:
    """Memory for a value of `op`; that of the initial tensor, where this is its last use."""
    kind = value.type
    if isinstance(kind, Scalar):
        return Carried(value, b.cell(value.name, kind, op.span))
    if kind.kind == "memref":
        raise op.fail("a memref that a loop or a branch yields is not translated")
    start = b.meanings.get(init) if init is not None else None
    if isinstance(start, View):
        assert init is not None
        if start.whole and start.buffer in b.own and last_use(init, op):
            return Carried(value, start.buffer)
        return Carried(value, b.allocate(value.name, start.shape, kind.element.dtype, op.span))
    if None in kind.shape:
        raise op.fail("a tensor of dynamic shape that a branch yields is not translated")
    shape = [number(extent) for extent in kind.shape if extent is not None]
    return Carried(value, b.allocate(value.name, shape, kind.element.dtype, op.span))


def put_all(b: Builder, op: Op, cells: Sequence[Carried], values: Sequence[Value], *, again: bool = False) -> None:
    """Store what is yielded, all at once; `again` in memory that may hold something from the iteration before."""
    if len(cells) != len(values):
        raise op.fail(f"{len(values)} values for {len(cells)} results")
    found = [b.meanings.get(value) for value in values]
    own = {cell.buffer for cell in cells}
    for k, (cell, value, meaning) in enumerate(zip(cells, values, found, strict=True)):
        if meaning is None:
            raise op.fail("an operand has no translation")
        if isinstance(meaning, View) and tuple(meaning.shape) != cell.buffer.shape:
            raise op.fail("a tensor whose extents may not be those of the other ones is not translated")
        if len(cells) > 1 and _reads(b, meaning) & (own - {cell.buffer}):
            if isinstance(meaning, View):
                raise op.fail("tensors that change places are not translated")
            found[k] = b.named(value, meaning, op.span) if isinstance(meaning, Expr) else b.kept(meaning, op.span)
    for cell, value, meaning in zip(cells, values, found, strict=True):
        assert meaning is not None
        if not is_empty(value):
            cell.put(b, op, meaning)
        elif again:
            raise op.fail("a tensor without contents that an iteration yields is not translated")


def _reads(b: Builder, meaning: Meaning) -> set[Buffer]:
    if isinstance(meaning, View):
        return {meaning.buffer}
    expr = meaning.at(b.lanes(meaning)) if isinstance(meaning, Vector) else meaning
    return {load.buffer for load in loads_in(expr)}


def trip_count(op: Op, bounds: Bounds) -> Expr:
    """The number of iterations, negative or zero for none."""
    lower, upper, step = bounds
    known = value_of(step)
    if known is not None and known <= 0:
        raise op.fail(f"a step of {known} is undefined")
    return sub(upper, lower) if known == 1 else ceildiv(sub(upper, lower), step)


def counted_loop(b: Builder, op: Op, bounds: Bounds, inits: Sequence[Value]) -> None:
    """A loop with an induction variable, the first argument of its block, and values that it carries."""
    block = op.block()
    changing = [k for k in range(len(inits)) if not _passed_on(b, op, k, inits[k])]
    cells = [carried(b, op, op.results[k], inits[k]) for k in changing]
    put_all(b, op, cells, [inits[k] for k in changing])

    def body(induction: Expr) -> None:
        b.bind(block.arguments[0], induction)
        for k, cell in zip(changing, cells, strict=True):
            b.bind(block.arguments[1 + k], cell.meaning(b, op))
        end = b.block(block)
        put_all(b, end, cells, [end.operands[k] for k in changing], again=True)

    iterate(b, op, bounds, body, ForKind.SERIAL)
    for k, cell in zip(changing, cells, strict=True):
        b.bind(op.results[k], cell.meaning(b, op))


def _passed_on(b: Builder, op: Op, position: int, init: Value) -> bool:
    """Whether every iteration passes on the value that it was given, a number that reads no memory: then the argument
    and the result are that value.
    """
    argument, result, meaning = op.block().arguments[1 + position], op.results[position], b.meanings.get(init)
    if op.block().ops[-1].operands[position] is not argument or not isinstance(meaning, Expr):
        return False
    if any(True for _ in loads_in(meaning)):
        return False
    b.bind(argument, meaning)
    b.bind(result, meaning)
    return True


def iterate(b: Builder, op: Op, bounds: Bounds, body: Callable[[Expr], None], kind: ForKind) -> None:
    """A loop from `lower` to `upper`; its variable is the induction variable where the step is 1."""
    lower, _, step = bounds
    hint = op.block().arguments[0].name
    count = trip_count(op, bounds)
    if value_of(step) != 1 or value_of(lower) == 0:
        b.loop(hint, count, lambda var: body(add(lower, mul(var, step))), op.span, kind)
        return
    b.loop_from(hint, lower, count, body, op.span, kind)


def parallel_loops(b: Builder, op: Op, bounds: Sequence[Bounds]) -> Op:
    """Nested parallel loops over the arguments of a block; its terminator is returned, without what it does."""
    block = op.block()
    ends: list[Op] = []

    def level(axis: int) -> None:
        if axis == len(bounds):
            ends.append(b.block(block))
            return

        def inside(induction: Expr) -> None:
            b.bind(block.arguments[axis], induction)
            level(axis + 1)

        iterate(b, op, bounds[axis], inside, ForKind.PARALLEL)

    level(0)
    return ends[0]


def branch_with_results(b: Builder, op: Op, condition: Expr) -> None:
    """A branch of one or two regions, and what it yields."""
    cells = [carried_by_branch(b, op, k) for k in range(len(op.results))]

    def region(number: int) -> Callable[[], None]:
        def build() -> None:
            end = b.block(op.block(number))
            put_all(b, end, cells, end.operands)

        return build

    has_else = len(op.regions) > 1 and len(op.regions[1]) > 0
    if cells and not has_else:
        raise op.fail("results without a second region")
    b.branch(condition, region(0), region(1) if has_else else None, op.span)
    for result, cell in zip(op.results, cells, strict=True):
        b.bind(result, cell.meaning(b, op))


def carried_by_branch(b: Builder, op: Op, position: int) -> Carried:
    """Memory for a result of a branch."""
    result = op.results[position]
    if isinstance(result.type, Shaped) and None in result.type.shape:
        # Its extents are those of what is yielded, if that is known outside.
        yields = op.block(0).ops[-1].operands[position]
        outside = b.meanings.get(yields)
        if isinstance(outside, View) and result.type.kind == "tensor":
            buffer = b.allocate(result.name, outside.shape, result.type.element.dtype, op.span)
            return Carried(result, buffer)
    return carried(b, op, result)


def final_value(op: Op, bounds: Bounds) -> Expr:
    """What an induction variable is after the last iteration."""
    lower, _, step = bounds
    return add(lower, mul(greatest([trip_count(op, bounds), const(0, lower.dtype)]), step))
