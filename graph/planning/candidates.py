"""What may be chosen: the variants of each call, found by letting the layouts of frozen calls flow until nothing new comes of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from layoutproof.graph.copies import as_call
from layoutproof.graph.flow import Layouts, NoFlow, check_injective, fitted, flow
from layoutproof.graph.maps import inverse_of, is_stored_alike
from layoutproof.graph.model import Call, Graph, LayoutTransform, Value
from layoutproof.graph.planning.contracted import contracted, schedule_of
from layoutproof.graph.planning.layouts import (
    Layout,
    PadNumber,
    bare,
    holding,
    layout_of,
    map_of_layout,
    pad_of,
    padding_bytes,
    plain,
    settled,
)
from layoutproof.graph.planning.problem import PlannedCall, Variant
from layoutproof.graph.planning.replaced import Replacement
from layoutproof.graph.roots import roots_of
from layoutproof.graph.signature import shape_of, signature_of
from layoutproof.graph.witness import Place
from layoutproof.ir.kept import Kept
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.find import find_buffer

MOST_VARIANTS = 24
"""The number of variants past which a call gets no more."""


@dataclass(slots=True)
class Candidates:
    """The variants of calls on their way; `stops` says where layouts did not flow, and why, `cut` which variants a call may not have,
    since it has as many as it may.

    `interface` are layouts that values of the interface have.
    """

    graph: Graph
    frozen: Mapping[str, Variant]
    callbacks: Mapping[str, Callback] = field(default_factory=lambda: dict[str, Callback]())
    interface: Iterable[tuple[str, Layout]] = ()
    values: Mapping[str, Value] = field(init=False)
    variants: dict[str, dict[Variant, None]] = field(init=False)
    seen: set[tuple[str, Layout]] = field(init=False, default_factory=lambda: set[tuple[str, Layout]]())
    stops: dict[tuple[str, str, Layout], str] = field(init=False, default_factory=lambda: dict[tuple[str, str, Layout], str]())
    roots: Mapping[str, Place] = field(init=False)
    layouts: dict[str, list[Layout]] = field(init=False, default_factory=lambda: dict[str, list[Layout]]())
    cut: dict[str, set[Variant]] = field(init=False, default_factory=lambda: dict[str, set[Variant]]())

    def __post_init__(self) -> None:
        self.values = self.graph.by_name()
        self.roots = roots_of(self.graph)
        self.variants = {}
        for call in calls_of(self.graph):
            held = self.frozen.get(call.results[0].name)
            self.variants[call.results[0].name] = {held if held is not None else plain_variant(call.function): None}

    def spread(self) -> None:
        """Let every layout that a value may have flow through the calls around it, until none is new."""
        around: dict[str, list[Call]] = {name: [] for name in self.values}
        for call in calls_of(self.graph):
            for name in dict.fromkeys(self.roots[name].value for name in names_of(call)):
                around[name].append(call)
        work = [(self.roots[name].value, self.outer(name, layout)) for name, layout in self.interface]
        self.seen |= set(work)
        work += [item for call in calls_of(self.graph) for item in self._new(call)]
        while work:
            name, layout = work.pop()
            for call in around[name]:
                if call.results[0].name not in self.frozen and self._flowed(call, name, layout):
                    work += self._new(call)

    def variant(self, call: Call, given: Layouts) -> Variant:
        """The variant that follows, as the operator's callback has it where there is one. Raises NoFlow."""
        callback = self.callbacks.get(operator_name(call))
        return variant_of(call.function, given) if callback is None else called_back(call.function, given, callback)

    def _new(self, call: Call) -> Iterator[tuple[str, Layout]]:
        """The layouts that the call's variants give its values for the first time; constants pass nothing on."""
        constants = {constant.value.name for constant in self.graph.constants}
        for variant in self.variants[call.results[0].name]:
            for name, layout in zip(names_of(call), (*variant.operands, *variant.results), strict=True):
                item = (self.roots[name].value, self.outer(name, layout))
                if item not in self.seen and item[0] not in constants:
                    self.seen.add(item)
                    yield item

    def outer(self, name: str, layout: Layout) -> Layout:
        """The layout of a value as one of its root; of layouts that are proved to be the same, one."""
        root = self.roots[name]
        shape = self.values[root.value].shape
        known = self.layouts.setdefault(root.value, [plain(len(shape))])
        found = map_of_layout(layout).compose(root.index_map)
        text = layout_of(found)
        if text not in known:
            same = (bare(other) for other in known if is_stored_alike(map_of_layout(other), found, shape))
            text = next(same, text)
        text = holding(text, pad_of(layout))
        if text not in known:
            known.append(text)
        return text

    def inner(self, name: str, layout: Layout) -> Layout | None:
        """The layout of a root as one of a value; None where that is not found."""
        root = self.roots[name]
        if root.value == name:
            return layout
        back = inverse_of(root.index_map, self.values[root.value].shape)
        return None if back is None else settled(layout_of(map_of_layout(layout).compose(back), pad_of(layout)), self.values[name].shape)

    def _flowed(self, call: Call, name: str, layout: Layout) -> bool:
        """Whether a layout of one of its values gives the call a new variant."""
        known = self.variants[call.results[0].name]
        before = len(known)
        signature = signature_of(call.function)
        for buffer, other in zip((*signature.operands, *signature.results), names_of(call), strict=True):
            own = self.inner(other, layout) if self.roots[other].value == name else None
            if own is None:
                continue
            try:
                found = self.variant(call, {buffer.name: map_of_layout(own)})
                pad = pad_of(own)
                if pad is not None and buffer in signature.results:
                    for each in contracted(call.function, found, (buffer.name, pad), self.pads, self._stopped(call, name, layout)):
                        self._keep(call, each)
                else:
                    self._keep(call, found)
            except NoFlow as stop:
                self.stops[call.results[0].name, name, layout] = stop.reason
        return len(known) > before

    def _stopped(self, call: Call, name: str, layout: Layout) -> Callable[[str], None]:
        """What is told why a contract does not go through a call."""
        return lambda reason: self.stops.update({(call.results[0].name, name, layout): reason})

    def _keep(self, call: Call, variant: Variant) -> None:
        """Let a call have a variant, as long as it has not too many."""
        name = call.results[0].name
        if variant not in self.variants[name] and len(self.variants[name]) >= MOST_VARIANTS:
            self.cut.setdefault(name, set()).add(variant)
        else:
            self.variants[name].setdefault(variant)

    @property
    def pads(self) -> tuple[PadNumber, ...]:
        """The numbers that padding is asked to hold somewhere."""
        found = (pad_of(layout) for variant in self.frozen.values() for layout in (*variant.operands, *variant.results))
        # Zeros of either sign are two numbers here.
        return tuple({repr(pad): pad for pad in found if pad is not None}.values())


def names_of(call: Call) -> tuple[str, ...]:
    """The names of a call's operands and results."""
    return (*call.operands, *(value.name for value in call.results))


Callback = Callable[[PrimFunc, Layouts], Layouts | Replacement | None]
"""What a user knows of an operator: the layouts of its arrays, temporaries too, that go with those of some, or a function in these layouts
in the operator's place; None where there are none.

It is asked instead of the flow. What it says is proved like anything else before it is used.
"""


def operator_name(call: Call) -> str:
    """The name of a call's operator: its function's, without the number that tells functions of one name apart."""
    return re.sub(r"_\d+$", "", call.function.name)


def called_back(func: PrimFunc, given: Layouts, callback: Callback) -> Variant:
    """The variant that a callback asks for. Raises NoFlow where it knows none or a map would lose elements, LayoutproofError for a map or a
    name that does not fit.
    """
    answer = callback(func, given)
    if answer is None:
        raise NoFlow(func, "its callback knows no layouts that go with these")
    layouts = answer.layouts if isinstance(answer, Replacement) else answer
    maps = {name: fitted(func, name, index_map) for name, index_map in {**given, **layouts}.items()}
    for name, index_map in maps.items():
        check_injective(func, find_buffer(func, name), index_map)
    found = _variant(func, maps)
    if isinstance(answer, Replacement):
        found = replace(found, temporaries=(), function=answer.function)
        schedule_of(func, found)
    return found


def calls_of(graph: Graph) -> Iterator[Call]:
    """The calls of a graph, in order; pads and crops are calls too, of functions that make what they make."""
    values = graph.by_name()
    return (as_call(step, values) for step in graph.steps if not isinstance(step, LayoutTransform))


_VARIANTS: Kept[Variant | NoFlow] = Kept(1 << 14)


def variant_of(func: PrimFunc, given: Layouts) -> Variant:
    """The variant that follows from the layouts of some arrays. Raises NoFlow."""
    key = tuple(sorted((name, layout_of(index_map)) for name, index_map in given.items()))

    def flowed() -> Variant | NoFlow:
        try:
            return _variant(func, flow(func, given))
        except NoFlow as stop:
            return stop

    found = _VARIANTS.get(func, key, flowed)
    if isinstance(found, NoFlow):
        raise found
    return found


def plain_variant(func: PrimFunc) -> Variant:
    """The function as it is."""
    return _variant(func, {})


def _variant(func: PrimFunc, layouts: Layouts) -> Variant:
    signature = signature_of(func)
    found = {
        buffer.name: settled(layout_of(layouts[buffer.name]), shape_of(buffer)) if buffer.name in layouts else plain(buffer.rank)
        for buffer in (*signature.operands, *signature.results)
    }
    inner = tuple((name, layout_of(index_map)) for name, index_map in layouts.items() if name not in found)
    operands, results = (tuple(found[b.name] for b in buffers) for buffers in (signature.operands, signature.results))
    if all(
        layout == plain(buffer.rank)
        for buffer, layout in zip((*signature.operands, *signature.results), (*operands, *results), strict=True)
    ):
        inner = ()
    return Variant(operands, results, inner)


def planned_call(candidates: Candidates, call: Call) -> PlannedCall:
    """A call with its variants, in terms of roots; the plain one, or the frozen one, is the first."""
    own = tuple(candidates.variants[call.results[0].name])
    operands = tuple(candidates.roots[name].value for name in call.operands)
    results = tuple(value.name for value in call.results)
    variants = tuple(
        Variant(
            tuple(candidates.outer(name, layout) for name, layout in zip(call.operands, each.operands, strict=True)),
            tuple(candidates.outer(name, layout) for name, layout in zip(results, each.results, strict=True)),
            each.temporaries,
            each.through,
            each.function,
        )
        for each in own
    )
    fills = tuple(
        0
        if each.through
        else sum(
            padding_bytes(value, layout) for value, layout in zip(call.results, each.results, strict=True) if pad_of(layout) is not None
        )
        for each in own
    )
    return PlannedCall(operands, results, variants, own, fills if any(fills) else ())
