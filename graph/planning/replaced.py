"""Functions that users give in an operator's place: proved to be the operator in its layouts before anything is planned with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from layoutproof.graph.flow import Layouts, NoFlow
from layoutproof.graph.maps import box_of
from layoutproof.graph.relaid import NAME
from layoutproof.graph.signature import shape_of
from layoutproof.graph.witness import Chain
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.lowering.layout.pad_value import PadText
from layoutproof.verify.checker import StepRecord
from layoutproof.verify.settings import settings, within
from layoutproof.verify.verdict.verdict import GOOD

PRIMITIVE = "compare"


@dataclass(frozen=True, slots=True)
class Replacement:
    """`function` does what the operator does, with arrays, by the operator's names for them, in these layouts; others keep theirs.

    Parameters are those of the operator, in its order, whatever they are called. Padding holds nothing that may be relied on.
    """

    function: PrimFunc
    layouts: Layouts


def chain_to(func: PrimFunc, given: PrimFunc, layouts: Layouts, pads: Mapping[str, PadText]) -> Chain:
    """The one step from an operator to the function that is given for it, proved bit for bit. Raises NoFlow where that is not proved."""
    named = replace(func, name=NAME)
    try:
        with within(settings().under(frozenset())):
            found = compare(named, replace(given, name=NAME), layouts={n: index_map_text(m) for n, m in layouts.items()}, pads=pads)
    except LayoutproofError as problem:
        raise NoFlow(func, f"{given.name}, which is given for it, does not fit: {problem.diagnostics[0].message}") from problem
    bad = next((verdict for verdict in found.verdicts if verdict.status not in GOOD), None)
    if bad is not None or found.rewrite is None or found.strictness or found.where is not None:
        why = bad.reason if bad is not None and bad.reason is not None else "" if bad is None else f"{bad.status.value}: {bad.claim}"
        raise NoFlow(func, f"{given.name}, which is given for it, is not proved to do what it does: {why}")
    for before, after in zip(named.buffers, found.rewrite.new.buffers, strict=True):
        shape = shape_of(before)
        box = box_of(layouts[before.name], shape) if before.name in layouts else shape
        if shape_of(after) != box:
            raise NoFlow(func, f"{given.name}, which is given for it, has {before.name} as {list(shape_of(after))}, not as {list(box)}")
    return Chain(named, (StepRecord(PRIMITIVE, found.arguments, found.rewrite, None, frozenset()),))
