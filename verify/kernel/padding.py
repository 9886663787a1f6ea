"""What a step owes in the padding that it gives to a parameter: a constant in every cell of it at the end.

The evidence names a store of that constant, at which of its instances a cell is written, and the inverse of f. A cell
of the new box either is written by that instance, or is f of the cell that the inverse says, and no padding.
"""

from __future__ import annotations

from layoutproof.verify.kernel.encoding import Context, Env, differ, is_affine_condition
from layoutproof.verify.kernel.extras import extras
from layoutproof.verify.kernel.integers import Case
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import Buffer, Expr
from layoutproof.verify.kernel.refinement import image, parts_of
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.kernel.step import Map, Step


def prove_filled(step: Step, before: Buffer, after: Buffer, f: Map, contract: Expr) -> None:
    """Every cell of `after` that is no f(c) of `before` holds `contract` when the new program ends."""
    fill, back = step.fills.get(after.data), step.backs.get(after.data)
    if fill is None or back is None or not 0 <= fill.index < len(step.new.stores):
        raise Rejected(f"nothing says what fills the padding of {after.name}")
    writer = step.new.stores[fill.index]
    if writer.buffer != after.name or writer.value != contract or contract[0] != "const":
        raise Rejected(f"line {writer.line} does not fill the padding of {after.name}")
    if not all(is_affine_condition(guard) for guard in writer.guards):
        raise Rejected(f"whether line {writer.line} fills the padding depends on data")

    def some_cell() -> tuple[Context, list[Poly], Env]:
        context = step.context()
        cell = [Poly.var(f"q{axis}") for axis in range(len(after.shape))]
        for value, extent in zip(cell, after.shape, strict=True):
            context.between(value, Poly.const(0), context.number(extent, context.symbols))
        return context, cell, image(context, fill.map, fill.map.inputs(cell, context.symbols), writer)

    context, cell, at = some_cell()
    for loop in writer.loops:
        value, start = at[loop.var], context.number(loop.start, at)
        past = value - start - context.number(loop.extent, at)
        step.refuse(context, (Case((start - value - 1,)), Case((past,))))
    for index, value in zip(writer.indices, cell, strict=True):
        step.refuse(context, differ(context.number(index, at), value))
    for guard in writer.guards:
        context, cell, at = some_cell()
        context.add(context.cases(guard, at, False))
        _prove_image(step, context, cell, (before, f, back))
    _prove_last(step, writer.number, after)


def _prove_image(step: Step, context: Context, cell: list[Poly], memory: tuple[Buffer, Map, Map]) -> None:
    """A cell is f of the one that the inverse says, wherever the context holds."""
    before, f, back = memory
    inputs = back.inputs(cell, context.symbols)
    source = [context.number(output, inputs) for output in back.outputs]
    if len(source) != len(before.shape) or len(f.outputs) != len(cell):
        raise Rejected(f"the inverse has not as many outputs as {before.name} has axes")
    for value, extent in zip(source, before.shape, strict=True):
        past = value - context.number(extent, context.symbols)
        step.refuse(context, (Case((-value - 1,)), Case((past,))))
    there = f.inputs(source, context.symbols)
    for output, value in zip(f.outputs, cell, strict=True):
        step.refuse(context, differ(context.number(output, there), value))


def _prove_last(step: Step, number: int, after: Buffer) -> None:
    """Nothing else is stored to padding. What computes an old store writes cells f(c); other instances of a store to
    this memory store the same constant, or there are none.
    """
    parts = parts_of(step)
    for store in step.new.stores:
        if store.buffer == after.name and store.value != step.new.stores[number].value:
            for asked in extras(step, parts, store):
                step.refuse(asked()[0], (Case(),))
