"""Variants of a call whose result has padding with a contract: computed from what its operands' padding holds (one run
of the operator tells which numbers), or filled.

Source: TVM's RFC `layout-transformation-padding-roadmap`, "element-wise through the padding".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from math import nan, prod

import numpy as np
from numpy.typing import NDArray

from layoutproof.graph.flow.layout_flow import NAME, Layouts, NoFlow, relaid
from layoutproof.graph.model.graph import Array, Signature, number_in, shape_of, signature_of
from layoutproof.graph.model.graph_witness import Chain
from layoutproof.graph.planning.array_layouts import Layout, PadNumber, holding, map_of_layout, pad_of, plain, settled
from layoutproof.graph.planning.planning_problem import Variant
from layoutproof.graph.prove.graph_matching import chain_to
from layoutproof.graph.tuning.loop_schedules import blocks_of, order_of
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.expr import TRUE, Expr, Var, const
from layoutproof.ir.interp.memory import Fault
from layoutproof.ir.interp.run import run, same_values
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, ForKind, IfThenElse, Let
from layoutproof.ir.visit import children, free_variables, map_children, stores_in, walk
from layoutproof.lowering.layout.pad_value import PadText
from layoutproof.lowering.passes.find import find_block
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.schedule.schedule import Schedule


def through_padding(func: PrimFunc, layouts: Layouts, pads: Mapping[str, PadText]) -> Schedule:
    """The function in these layouts, its results' padding computed instead of filled; `pads` has all contracts, by
    array.

    Raises NoFlow where the padding of a result would hold something else than its contract says, or that is not proved.
    """
    # Nobody else sees a temporary: its padding may hold what is computed there.
    inner: dict[str, PadText] = {
        name: "T.undef()" for name in layouts if name not in {buffer.name for buffer in func.buffers}
    }
    schedule = relaid(func, layouts, {**inner, **pads})
    names = [block.name for block in blocks_of(func)]
    try:
        for name in names:
            index_map = order_of(schedule.func, find_block(schedule.func, name))
            if index_map is not None:
                schedule.transform_block_layout(name, index_map)
            if find_block(schedule.func, name).where != TRUE:
                schedule.remove_branching_through_overcompute(name)
            if inner:
                # What fills a temporary's padding would hide what was computed there.
                schedule.remove_no_op()
        schedule.remove_no_op()
    except IllegalTransform as problem:
        raise NoFlow(
            func, f"its padding cannot be computed like everything else: {problem.diagnostics[0].message}"
        ) from problem
    filled = {f"buffer_{buffer.name}_padding": buffer.name for buffer in signature_of(func).results}
    for node in walk(schedule.func.body):
        if isinstance(node, Block) and node.name in filled:
            name = filled[node.name]
            given = ", ".join(f"{other} holds {value}" for other, value in pads.items() if other != name)
            raise NoFlow(func, f"where the padding of {given}, that of {name} does not come out as {pads[name]}")
    return schedule


Mask = NDArray[np.bool_]
Numbers = tuple[PadNumber | None, ...]
"""For each operand what its padding holds; None where it has none."""

MOST_ROWS = 4096
"""The most assignments that are run."""
_ZEROS = {(True, False): 0.0, (False, False): 0, (False, True): False}


def possible(
    func: PrimFunc, result: str, wanted: PadNumber, choices: Sequence[Sequence[PadNumber | None]]
) -> Iterator[Numbers]:
    """Numbers of the operands' padding that may give a result's padding a number, by name, likely ones first."""
    signature = signature_of(func)
    value = _stored(func, signature, result)
    if value is None or prod(map(len, choices)) > MOST_ROWS:
        yield from _likely_first(choices)
        return
    every = list(_likely_first(choices))
    fits = np.ones(len(every), np.bool_)
    for probe in (2, nan):
        # An element is any number; two of them rule most out.
        fits &= _made(
            signature, result, value, wanted, [[probe if each is None else each for each in row] for row in every]
        )
    yield from (row for row, fit in zip(every, fits, strict=True) if fit)


def _likely_first(choices: Sequence[Sequence[PadNumber | None]]) -> Iterator[Numbers]:
    """Every assignment: those of one number first."""
    alike = list(_alike(choices))
    yield from alike
    known = set(map(repr, alike))  # zeros of either sign are two numbers
    yield from (row for row in product(*choices) if repr(row) not in known)


def _alike(choices: Sequence[Sequence[PadNumber | None]]) -> Iterator[Numbers]:
    for number in dict.fromkeys(repr(each) for each in max(choices, key=len, default=())):
        found = [next((each for each in some if each is None or repr(each) == number), some[0]) for some in choices]
        if all(each is None or repr(each) == number for each in found):
            yield tuple(found)


def _stored(func: PrimFunc, signature: Signature, result: str) -> Expr | None:
    """What the one store of a function makes of elements of operands alone; None where it is not as simple as that."""
    stores = list(stores_in(func.body))
    if len(stores) != 1 or stores[0].buffer.name != result or stores[0].buffer not in signature.results:
        return None
    for node in walk(func.body):
        if isinstance(node, IfThenElse | Let) or (
            isinstance(node, Block) and (node.init is not None or node.where != TRUE)
        ):
            return None
    value = stores[0].value
    loads = list(_outermost(value))
    inside = _without_loads(value)
    return value if all(load.buffer in signature.operands for load in loads) and not free_variables(inside) else None


def _outermost(node: Expr) -> Iterator[BufferLoad]:
    if isinstance(node, BufferLoad):
        yield node
        return
    for child in children(node):
        if isinstance(child, Expr):
            yield from _outermost(child)


def _without_loads(node: Expr) -> Expr:
    """The expression with a number for each load."""
    if isinstance(node, BufferLoad):
        return const(_ZEROS[node.dtype.is_float, node.dtype.is_bool], node.dtype)
    return map_children(node, lambda child: _without_loads(child) if isinstance(child, Expr) else child)


def _made(
    signature: Signature, result: str, value: Expr, wanted: PadNumber, rows: Sequence[Sequence[PadNumber]]
) -> Mask:
    """For each row of numbers, one for each operand, whether the stored value comes out as wanted."""
    row = Var("row")
    size = const(len(rows))
    flat = {buffer: replace(buffer, shape=(size,)) for buffer in (*signature.operands, *signature.results)}
    target = next(buffer for buffer in signature.results if buffer.name == result)

    def at_row(node: Expr) -> Expr:
        if isinstance(node, BufferLoad):
            return BufferLoad(flat[node.buffer], (row,))
        return map_children(node, lambda child: at_row(child) if isinstance(child, Expr) else child)

    used = tuple(dict.fromkeys([*(load.buffer for load in _outermost(value)), target]))
    handles = tuple(Var(f"{buffer.name}_handle", buffer.data.dtype) for buffer in used)
    store = BufferStore(flat[target], (row,), at_row(value))
    func = PrimFunc(
        "padding",
        handles,
        tuple(zip(handles, (flat[b] for b in used), strict=True)),
        For(row, const(0), size, ForKind.SERIAL, store),
    )
    given = {b.name: _column(b, [r[k] for r in rows]) for k, b in enumerate(signature.operands) if b in used}
    try:
        made = run(func, given)[result]
    except Fault:
        return np.ones(len(rows), np.bool_)
    return same_values(made, np.full(made.shape, wanted, made.dtype))


def _column(buffer: Buffer, numbers: Sequence[PadNumber]) -> Array:
    """The numbers of one operand; integers have no NaN."""
    held = [number if buffer.dtype.is_float or number == number else 3 for number in numbers]
    return np.array(held).astype(numpy_dtype(buffer.dtype))


MOST_TRIES = 9
"""The number of proofs that are tried for one result: assignments of numbers to operands' padding that may make what it
is to hold.
"""


def contracted(
    func: PrimFunc,
    variant: Variant,
    wanted: tuple[str, PadNumber],
    pads: Sequence[PadNumber],
    stopped: Callable[[str], None],
    left_out: Callable[[int], None] = lambda number: None,
) -> Iterator[Variant]:
    """The variants in which the padding of a result, by name, holds a number: those that compute it, then the one that
    fills it.

    `pads` are the numbers that operands' padding may hold. Each variant that computes padding is proved here; `stopped`
    hears why none does, and how many assignments of numbers were not tried, which `left_out` hears too.
    """
    if variant.function is not None:
        stopped("the function that is given for it says nothing of padding")
        return
    signature = signature_of(func)
    results = tuple(
        settled(holding(layout, wanted[1]), shape_of(buffer)) if buffer.name == wanted[0] else layout
        for buffer, layout in zip(signature.results, variant.results, strict=True)
    )
    choices = [
        _choices(buffer, layout, pads) for buffer, layout in zip(signature.operands, variant.operands, strict=True)
    ]
    yield from _computed(func, replace(variant, results=results, through=True), wanted, choices, stopped, left_out)
    filled = replace(variant, results=results)
    try:
        schedule_of(func, filled)
    except IllegalTransform as problem:
        stopped(problem.diagnostics[0].message)
    else:
        yield filled


def computing(func: PrimFunc, variant: Variant) -> tuple[Variant, str | None]:
    """The variant that computes the padding which this one fills, where that is proved; else this one, and why it is
    not.

    There is nothing to compute it from where no operand's padding holds anything.
    """
    if variant.function is not None or any(
        all(pad_of(each) is None for each in side) for side in (variant.operands, variant.results)
    ):
        return variant, None
    found = replace(variant, through=True)
    try:
        schedule_of(func, found)
    except NoFlow as stop:
        return variant, stop.reason
    except IllegalTransform as problem:
        return variant, problem.diagnostics[0].message
    return found, None


def _computed(
    func: PrimFunc,
    variant: Variant,
    wanted: tuple[str, PadNumber],
    choices: Sequence[Sequence[Layout]],
    stopped: Callable[[str], None],
    left_out: Callable[[int], None],
) -> Iterator[Variant]:
    """The proved variants that compute a result's padding; `stopped` gets why there is none, or not all were tried."""
    numbers = [[pad_of(layout) for layout in layouts] for layouts in choices]
    if all(each is None for some in numbers for each in some):
        return
    rows = possible(func, *wanted, numbers)
    reasons, found = list[str](), 0
    for row in islice(rows, MOST_TRIES):
        operands = tuple(holding(layouts[0], number) for layouts, number in zip(choices, row, strict=True))
        try:
            schedule_of(func, replace(variant, operands=operands))
        except NoFlow as stop:
            reasons.append(stop.reason)
        except IllegalTransform as problem:
            reasons.append(problem.diagnostics[0].message)
        else:
            found += 1
            yield replace(variant, operands=operands)
    left = sum(1 for _ in islice(rows, MOST_COUNTED))
    if left:
        left_out(left)
        count = f"{left} or more" if left == MOST_COUNTED else f"{left}"
        several = f"{count} assignments of numbers to the padding of its operands were not tried"
        stopped("; ".join([*reasons[:1], several]))
    elif not found:
        names = [buffer.name for buffer in signature_of(func).operands]
        given = ", ".join(
            f"{name} holds {some[0]}" for name, some in zip(names, numbers, strict=True) if some[0] is not None
        )
        stopped(
            reasons[0]
            if reasons
            else f"where the padding of {given}, that of {wanted[0]} does not come out as {wanted[1]}"
        )


def _choices(buffer: Buffer, layout: Layout, pads: Sequence[PadNumber]) -> list[Layout]:
    """An operand's layout with each number that its padding may hold, where it has padding."""
    numbers = [number for pad in pads if (number := number_in(pad, buffer.dtype)) is not None]
    found = [settled(holding(layout, number), shape_of(buffer)) for number in numbers]
    return list(dict.fromkeys(found)) if found else [layout]


MOST_COUNTED = 1000
"""The number past which it is not counted how many assignments were not tried."""
_SCHEDULES: dict[tuple[PrimFunc, Variant], Schedule | Chain | NoFlow | IllegalTransform] = {}


def schedule_of(func: PrimFunc, variant: Variant) -> Schedule | Chain:
    """The proved schedule that gives a function the layouts of a variant; of functions that differ in their name alone,
    one.

    Where a user gave a function, the step to it. Raises IllegalTransform where it is not proved, NoFlow where padding
    that is to be computed does not hold what it should, and where what a user gave is not proved.
    """
    signature = signature_of(func)
    key = (replace(func, name=NAME), variant)
    if key not in _SCHEDULES:
        try:
            _SCHEDULES[key] = _scheduled(func, signature, variant)
        except (NoFlow, IllegalTransform) as problem:
            _SCHEDULES[key] = problem
    found = _SCHEDULES[key]
    if isinstance(found, NoFlow | IllegalTransform):
        raise found
    return found


def _scheduled(func: PrimFunc, signature: Signature, variant: Variant) -> Schedule | Chain:
    given = _named(signature, variant)
    layouts = {buffer.name: map_of_layout(layout) for buffer, layout in given if layout != plain(buffer.rank)}
    layouts |= {name: map_of_layout(layout) for name, layout in variant.temporaries}
    # Layouts have numbers, arrays of truth values have truth values.
    pads: Mapping[str, PadNumber] = {
        buffer.name: bool(pad) if buffer.dtype.is_bool else pad
        for buffer, layout in given
        if (pad := pad_of(layout)) is not None
    }
    if variant.function is not None:
        return chain_to(func, variant.function, layouts, pads)
    return (through_padding if variant.through else relaid)(func, layouts, pads)


def _named(signature: Signature, variant: Variant) -> list[tuple[Buffer, Layout]]:
    buffers, layouts = (*signature.operands, *signature.results), (*variant.operands, *variant.results)
    return list(zip(buffers, layouts, strict=True))
