"""Variants of a call whose result has padding that holds something: computed from what its operands' padding holds, or filled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from layoutproof.graph.contracts import through_padding
from layoutproof.graph.flow import NoFlow
from layoutproof.graph.planning.layouts import Layout, PadNumber, holding, map_of_layout, pad_of, plain, settled
from layoutproof.graph.planning.numbers import possible
from layoutproof.graph.planning.problem import Variant
from layoutproof.graph.planning.replaced import chain_to
from layoutproof.graph.relaid import NAME, relaid
from layoutproof.graph.scalars import number_in
from layoutproof.graph.signature import Signature, shape_of, signature_of
from layoutproof.graph.witness import Chain
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.schedule.schedule import Schedule

MOST_TRIES = 9
"""The number of proofs that are tried for one result: assignments of numbers to operands' padding that may make what it is to hold."""


def contracted(
    func: PrimFunc,
    variant: Variant,
    wanted: tuple[str, PadNumber],
    pads: Sequence[PadNumber],
    stopped: Callable[[str], None],
    left_out: Callable[[int], None] = lambda number: None,
) -> Iterator[Variant]:
    """The variants in which the padding of a result, by name, holds a number: those that compute it, then the one that fills it.

    `pads` are the numbers that operands' padding may hold. Each variant that computes padding is proved here; `stopped` hears why none
    does, and how many assignments of numbers were not tried, which `left_out` hears too.
    """
    if variant.function is not None:
        stopped("the function that is given for it says nothing of padding")
        return
    signature = signature_of(func)
    results = tuple(
        settled(holding(layout, wanted[1]), shape_of(buffer)) if buffer.name == wanted[0] else layout
        for buffer, layout in zip(signature.results, variant.results, strict=True)
    )
    choices = [_choices(buffer, layout, pads) for buffer, layout in zip(signature.operands, variant.operands, strict=True)]
    yield from _computed(func, replace(variant, results=results, through=True), wanted, choices, stopped, left_out)
    filled = replace(variant, results=results)
    try:
        schedule_of(func, filled)
    except IllegalTransform as problem:
        stopped(problem.diagnostics[0].message)
    else:
        yield filled


def computing(func: PrimFunc, variant: Variant) -> tuple[Variant, str | None]:
    """The variant that computes the padding which this one fills, where that is proved; else this one, and why it is not.

    There is nothing to compute it from where no operand's padding holds anything.
    """
    if variant.function is not None or any(all(pad_of(each) is None for each in side) for side in (variant.operands, variant.results)):
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
    """The variants that compute a result's padding, each proved; `stopped` hears why there is none, or that not all were tried."""
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
        several = f"{left}{' or more' if left == MOST_COUNTED else ''} assignments of numbers to the padding of its operands were not tried"
        stopped("; ".join([*reasons[:1], several]))
    elif not found:
        names = [buffer.name for buffer in signature_of(func).operands]
        given = ", ".join(f"{name} holds {some[0]}" for name, some in zip(names, numbers, strict=True) if some[0] is not None)
        stopped(reasons[0] if reasons else f"where the padding of {given}, that of {wanted[0]} does not come out as {wanted[1]}")


def _choices(buffer: Buffer, layout: Layout, pads: Sequence[PadNumber]) -> list[Layout]:
    """An operand's layout with each number that its padding may hold, where it has padding."""
    numbers = [number for pad in pads if (number := number_in(pad, buffer.dtype)) is not None]
    found = [settled(holding(layout, number), shape_of(buffer)) for number in numbers]
    return list(dict.fromkeys(found)) if found else [layout]


MOST_COUNTED = 1000
"""The number past which it is not counted how many assignments were not tried."""
_SCHEDULES: dict[tuple[PrimFunc, Variant], Schedule | Chain | NoFlow | IllegalTransform] = {}


def schedule_of(func: PrimFunc, variant: Variant) -> Schedule | Chain:
    """The proved schedule that gives a function the layouts of a variant; of functions that differ in their name alone, one.

    Where a user gave a function, the step to it. Raises IllegalTransform where it is not proved, NoFlow where padding that is to be
    computed does not hold what it should, and where what a user gave is not proved.
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
        buffer.name: bool(pad) if buffer.dtype.is_bool else pad for buffer, layout in given if (pad := pad_of(layout)) is not None
    }
    if variant.function is not None:
        return chain_to(func, variant.function, layouts, pads)
    return (through_padding if variant.through else relaid)(func, layouts, pads)


def _named(signature: Signature, variant: Variant) -> list[tuple[Buffer, Layout]]:
    buffers, layouts = (*signature.operands, *signature.results), (*variant.operands, *variant.results)
    return list(zip(buffers, layouts, strict=True))
