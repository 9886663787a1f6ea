"""Variants of a call whose result has padding that holds something: computed from what its operands' padding holds, or filled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product

from layoutproof.graph.contracts import through_padding
from layoutproof.graph.flow import NoFlow
from layoutproof.graph.planning.layouts import Layout, PadNumber, holding, map_of_layout, pad_of, plain, settled
from layoutproof.graph.planning.problem import Variant
from layoutproof.graph.planning.replaced import chain_to
from layoutproof.graph.relaid import NAME, relaid
from layoutproof.graph.scalars import number_in
from layoutproof.graph.signature import Signature, shape_of, signature_of
from layoutproof.graph.witness import Chain
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.illegal import IllegalTransform
from layoutproof.lowering.schedule import Schedule

MOST_TRIES = 9
"""The number of assignments of numbers to operands' padding that are tried for one result."""


def contracted(
    func: PrimFunc, variant: Variant, wanted: tuple[str, PadNumber], pads: Sequence[PadNumber], stopped: Callable[[str], None]
) -> Iterator[Variant]:
    """The variants in which the padding of a result, by name, holds a number: those that compute it, then the one that fills it.

    `pads` are the numbers that operands' padding may hold. Each variant that computes padding is proved here; `stopped` hears why one
    does not.
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
    padded = any(len(layouts) > 1 or pad_of(layouts[0]) is not None for layouts in choices)
    for operands in islice(product(*choices), MOST_TRIES if padded else 0):
        found = replace(variant, operands=operands, results=results, through=True)
        try:
            schedule_of(func, found)
        except NoFlow as stop:
            stopped(stop.reason)
        except IllegalTransform as problem:
            stopped(problem.diagnostics[0].message)
        else:
            yield found
    filled = replace(variant, results=results)
    try:
        schedule_of(func, filled)
    except IllegalTransform as problem:
        stopped(problem.diagnostics[0].message)
    else:
        yield filled


def _choices(buffer: Buffer, layout: Layout, pads: Sequence[PadNumber]) -> list[Layout]:
    """An operand's layout with each number that its padding may hold, where it has padding."""
    numbers = [number for pad in pads if (number := number_in(pad, buffer.dtype)) is not None]
    found = [settled(holding(layout, number), shape_of(buffer)) for number in numbers]
    return list(dict.fromkeys(found)) if found else [layout]


_SCHEDULES: dict[tuple[PrimFunc, Variant], Schedule | Chain] = {}


def schedule_of(func: PrimFunc, variant: Variant) -> Schedule | Chain:
    """The proved schedule that gives a function the layouts of a variant; of functions that differ in their name alone, one.

    Where a user gave a function, the step to it. Raises IllegalTransform where it is not proved, NoFlow where padding that is to be
    computed does not hold what it should, and where what a user gave is not proved.
    """
    signature = signature_of(func)
    key = (replace(func, name=NAME), variant)
    if key not in _SCHEDULES:
        given = _named(signature, variant)
        layouts = {buffer.name: map_of_layout(layout) for buffer, layout in given if layout != plain(buffer.rank)}
        layouts |= {name: map_of_layout(layout) for name, layout in variant.temporaries}
        pads: Mapping[str, PadNumber] = {buffer.name: pad for buffer, layout in given if (pad := pad_of(layout)) is not None}
        if variant.function is not None:
            _SCHEDULES[key] = chain_to(func, variant.function, layouts, pads)
        else:
            _SCHEDULES[key] = (through_padding if variant.through else relaid)(func, layouts, pads)
    return _SCHEDULES[key]


def _named(signature: Signature, variant: Variant) -> list[tuple[Buffer, Layout]]:
    buffers, layouts = (*signature.operands, *signature.results), (*variant.operands, *variant.results)
    return list(zip(buffers, layouts, strict=True))
