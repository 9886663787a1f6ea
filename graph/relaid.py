"""A function with its arrays in other layouts, proved.

Arrays without a contract for their padding are re-laid together, in one step, which is proved several times faster than one step for each
of them; the others follow, one by one. Bit for bit: no float licence is allowed. The steps are those of a schedule, so each of them is in
its certificate and in the proof cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from layoutproof.graph.flow import Layouts
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.primfunc import LAYOUT_TRANSFORMATIONS, PrimFunc
from layoutproof.lowering.layout.pad_value import PadText
from layoutproof.lowering.layout.transform_layout import ROOT, ApplyBufferTransforms, TransformLayout
from layoutproof.lowering.passes.find import find_buffer
from layoutproof.lowering.schedule.schedule import Schedule

NAME = "operator"
"""What every function is called while it is proved: equal operators of different names then share their proofs and kernels."""


def relaid(func: PrimFunc, layouts: Layouts, pads: Mapping[str, PadText] | None = None) -> Schedule:
    """The schedule that stores arrays by maps; its program is the function in these layouts. `pads` are contracts of padding, by name.

    What its first step applies stands in an attribute of its original, which says nothing of what the function does.
    Raises IllegalTransform where a step is not proved.
    """
    known: Mapping[str, PadText] = pads if pads is not None else {}
    together = {find_buffer(func, name).data.name: [index_map_text(m)] for name, m in layouts.items() if known.get(name) is None}
    named = replace(func, name=NAME)
    if not together:
        schedule = Schedule(named, allowed=frozenset())
    else:
        schedule = Schedule(replace(named, attrs=named.attrs.with_value(LAYOUT_TRANSFORMATIONS, together)), allowed=frozenset())
        schedule.apply(ApplyBufferTransforms())
    for name, index_map in layouts.items():
        if known.get(name) is not None:
            schedule.apply(TransformLayout(ROOT, name, index_map_text(index_map), known[name]))
    return schedule
