"""The variants of each call among which a plan chooses, found by layout flow until nothing new follows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from layoutproof.graph.flow.layout_flow import Layouts, NoFlow, check_injective, fitted, flow
from layoutproof.graph.model.graph import Call, Graph, LayoutTransform, Value, shape_of, signature_of
from layoutproof.graph.model.graph_witness import Place, roots_of
from layoutproof.graph.model.layout_maps import inverse_of, is_stored_alike
from layoutproof.graph.operators.copies import as_call
from layoutproof.graph.planning.array_layouts import (
    Layout,
    PadNumber,
    bare,
    holding,
    is_movable,
    layout_of,
    map_of_layout,
    pad_of,
    padding_bytes,
    plain,
    settled,
)
from layoutproof.graph.planning.contracted import contracted, schedule_of
from layoutproof.graph.planning.planning_problem import PlannedCall, Variant
from layoutproof.graph.prove.graph_matching import Replacement
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.lowering.passes.find import find_buffer

Given = frozenset[tuple[str, Layout]]
"""Layouts of some arrays of a function, by name."""


@dataclass(slots=True)
class Flows:
    """The layouts that flowed through one call. `ask` gives the variant of some layouts, or raises NoFlow.

    Where the call has no room for more variants, layouts are no longer combined, and `left_out` counts combinations.
    """

    function: PrimFunc
    ask: Callable[[Layouts], Variant]
    has_room: Callable[[], bool]
    left_out: int = 0
    arrived: dict[tuple[str, Layout], None] = field(default_factory=lambda: dict[tuple[str, Layout], None]())
    tried: set[Given] = field(default_factory=lambda: set[Given]())
    found: dict[Given, Variant] = field(default_factory=lambda: dict[Given, Variant]())

    def arrive(self, array: str, layout: Layout) -> Iterator[tuple[Given, Variant | NoFlow]]:
        """What follows once an array may have a layout: each new set of layouts with its variant, or why it has none.

        Why several layouts do not go together is not reported.
        """
        item = (array, layout)
        if item in self.arrived:
            return
        self.arrived[item] = None
        work = [frozenset({item})]
        while work:
            given = work.pop(0)
            if given in self.tried:
                continue
            if len(given) > 1 and not self.has_room():
                self.left_out += 1
                continue
            self.tried.add(given)
            try:
                variant = self.ask({name: map_of_layout(each) for name, each in given})
            except NoFlow as stop:
                if len(given) == 1:
                    yield given, stop
                continue
            self.found[given] = variant
            yield given, variant
            if len(given) == 1:
                work += [known | given for known in self.found if self.are_independent(known, item)]
            else:
                work += [given | {other} for other in self.arrived if self.are_independent(given, other)]

    def are_independent(self, given: Given, item: tuple[str, Layout]) -> bool:
        """Whether each of these layouts and a further one leave the others' arrays as they are."""
        return all(self.is_independent(one, item[0]) and self.is_independent(item, one[0]) for one in given)

    def is_independent(self, item: tuple[str, Layout], array: str) -> bool:
        """Whether a layout flows by itself, and leaves an array as it is."""
        variant = self.found.get(frozenset({item}))
        return (
            variant is not None
            and item[0] != array
            and item[1] != self.plain(item[0])
            and self.layouts(variant)[array] == self.plain(array)
        )

    def layouts(self, variant: Variant) -> Mapping[str, Layout]:
        """The layouts of a variant, by arrays."""
        signature = signature_of(self.function)
        names = [buffer.name for buffer in (*signature.operands, *signature.results)]
        return dict(zip(names, (*variant.operands, *variant.results), strict=True))

    def plain(self, array: str) -> Layout:
        """The plain layout of an array."""
        return next(plain(buffer.rank) for buffer in self.function.buffers if buffer.name == array)


MOST_VARIANTS = 48
"""The number of variants past which a call gets no more."""


@dataclass(slots=True)
class Candidates:
    """The variants of calls so far.

    `interface` are the layouts of values of the interface, `stops` the reasons why layouts did not flow, `cut` the
    variants past the limit, and `refused` the reasons why frozen calls cannot have their layouts and stay as they are.
    """

    graph: Graph
    frozen: dict[str, Variant]
    callbacks: Mapping[str, Callback] = field(default_factory=lambda: dict[str, Callback]())
    interface: Iterable[tuple[str, Layout]] = ()
    values: Mapping[str, Value] = field(init=False)
    constants: frozenset[str] = field(init=False)
    variants: dict[str, dict[Variant, None]] = field(init=False)
    seen: set[tuple[str, Layout]] = field(init=False, default_factory=lambda: set[tuple[str, Layout]]())
    stops: dict[tuple[str, str, Layout], str] = field(
        init=False, default_factory=lambda: dict[tuple[str, str, Layout], str]()
    )
    roots: Mapping[str, Place] = field(init=False)
    layouts: dict[str, list[Layout]] = field(init=False, default_factory=lambda: dict[str, list[Layout]]())
    cut: dict[str, set[Variant]] = field(init=False, default_factory=lambda: dict[str, set[Variant]]())
    outers: dict[tuple[str, Layout], Layout] = field(
        init=False, default_factory=lambda: dict[tuple[str, Layout], Layout]()
    )
    untried: dict[str, int] = field(init=False, default_factory=lambda: dict[str, int]())
    refused: dict[str, str] = field(init=False, default_factory=lambda: dict[str, str]())
    flows: dict[str, Flows] = field(init=False, default_factory=lambda: dict[str, Flows]())

    def __post_init__(self) -> None:
        self.values = self.graph.by_name()
        self.constants = frozenset(constant.value.name for constant in self.graph.constants)
        self.roots = roots_of(self.graph)
        self.variants, self.frozen = {}, {**self.frozen}
        for call in calls_of(self.graph):
            name = call.results[0].name
            reason = self.unmoved(call, self.frozen[name]) if name in self.frozen else None
            if reason is not None:
                self.refused[name] = reason
                self.frozen[name] = plain_variant(call.function)
            self.variants[name] = {self.frozen[name] if name in self.frozen else plain_variant(call.function): None}

    def fill(self, reasons: Mapping[str, str]) -> None:
        """Note why frozen calls, by their first results, fill padding and do not compute it."""
        for call in calls_of(self.graph):
            name = call.results[0].name
            if name in reasons:
                for value, layout in zip(call.results, self.frozen[name].results, strict=True):
                    self._stopped(call, value.name, self.outer(value.name, layout))(reasons[name])

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
                if call.results[0].name not in self.frozen:
                    known = len(self.variants[call.results[0].name])
                    self._flow(call, name, layout)
                    work += self._new(call, known)

    def variant(self, call: Call, given: Layouts) -> Variant:
        """The variant that follows, as the operator's callback has it where there is one. Raises NoFlow."""
        callback = self.callbacks.get(operator_name(call))
        return variant_of(call.function, given) if callback is None else called_back(call.function, given, callback)

    def _new(self, call: Call, known: int = 0) -> Iterator[tuple[str, Layout]]:
        """New layouts of values, other than constants, in a call's variants past the known ones."""
        for variant in islice(self.variants[call.results[0].name], known, None):
            for name, layout in zip(names_of(call), (*variant.operands, *variant.results), strict=True):
                item = (self.roots[name].value, self.outer(name, layout))
                if item not in self.seen and item[0] not in self.constants:
                    self.seen.add(item)
                    yield item

    def outer(self, name: str, layout: Layout) -> Layout:
        """The layout of a value as one of its root; of layouts that are proved to be the same, one."""
        key = (name, layout)
        if key not in self.outers:
            self.outers[key] = self._outer(name, layout)
        return self.outers[key]

    def _outer(self, name: str, layout: Layout) -> Layout:
        root = self.roots[name]
        shape = self.values[root.value].shape
        known = self.layouts.setdefault(root.value, [plain(len(shape))])
        found = map_of_layout(layout) if root.value == name else map_of_layout(layout).compose(root.index_map)
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
        if back is None:
            return None
        return settled(layout_of(map_of_layout(layout).compose(back), pad_of(layout)), self.values[name].shape)

    def _flow(self, call: Call, name: str, layout: Layout) -> None:
        """Give a call the variants that a layout of one of its values gives it."""
        signature = signature_of(call.function)
        for buffer, other in zip((*signature.operands, *signature.results), names_of(call), strict=True):
            own = self.inner(other, layout) if self.roots[other].value == name else None
            if own is None:
                continue
            # What the padding of operands holds is chosen when a contract of a result is.
            for given, found in self._flows(call).arrive(
                buffer.name, own if buffer in signature.results else bare(own)
            ):
                reason = found.reason if isinstance(found, NoFlow) else self.unmoved(call, found)
                if reason is not None:
                    self._stopped(call, name, layout)(reason)
                elif not isinstance(found, NoFlow):
                    self._take(call, given, found, self._stopped(call, name, layout))

    def unmoved(self, call: Call, variant: Variant) -> str | None:
        """Why values, other than constants, could not be rewritten to the layouts of a variant; None where they can."""
        for name, layout in zip(names_of(call), (*variant.operands, *variant.results), strict=True):
            root = self.roots[name]
            stored = layout if root.value == name else layout_of(map_of_layout(layout).compose(root.index_map))
            if root.value not in self.constants and not is_movable(bare(stored), self.values[root.value].shape):
                return (
                    f"no rewrite of {name} to `{bare(layout)}` is known: with all of its padding it is no bijection "
                    "of a box"
                )
        return None

    def _flows(self, call: Call) -> Flows:
        name = call.results[0].name
        if name not in self.flows:
            self.flows[name] = Flows(
                call.function, lambda given: self.variant(call, given), lambda: len(self.variants[name]) < MOST_VARIANTS
            )
        return self.flows[name]

    def _take(self, call: Call, given: Given, found: Variant, stopped: Callable[[str], None]) -> None:
        """Let a call have the variant that follows from some layouts, with the padding that they ask of its results."""
        name, results = call.results[0].name, {buffer.name for buffer in signature_of(call.function).results}
        pads = [
            (array, pad) for array, layout in sorted(given) if array in results and (pad := pad_of(layout)) is not None
        ]
        if not pads:
            self._keep(call, found)
            return
        for wanted in pads:
            # Another result may be filled already: then both are.
            alike = [
                each
                for each in self.variants[name]
                if not each.through and each != found and unpadded(each) == unpadded(found)
            ]
            for base in (found, *alike):
                for each in contracted(
                    call.function, base, wanted, self.pads, stopped, lambda number: self._left_out(name, number)
                ):
                    self._keep(call, each)

    def _left_out(self, name: str, number: int) -> None:
        """Count choices of a call's padding that were not tried."""
        self.untried[name] = self.untried.get(name, 0) + number

    def _stopped(self, call: Call, name: str, layout: Layout) -> Callable[[str], None]:
        """What is told why a layout, or a contract, does not go through a call."""
        return lambda reason: self.stops.update({(call.results[0].name, name, layout): reason})

    def _keep(self, call: Call, variant: Variant) -> None:
        """Let a call have a variant, as long as it has not too many."""
        name = call.results[0].name
        if variant not in self.variants[name] and len(self.variants[name]) >= MOST_VARIANTS:
            self.cut.setdefault(name, set()).add(variant)
        else:
            self.variants[name].setdefault(variant)

    def ban(self, call: Call, variant: Variant, reason: str) -> None:
        """Take a variant from a call, and from all calls of its function, and say why."""
        for other in calls_of(self.graph):
            name = other.results[0].name
            if name in self.frozen or other.function != call.function or variant not in self.variants[name]:
                continue
            del self.variants[name][variant]
            for array, layout in zip(names_of(other), (*variant.operands, *variant.results), strict=True):
                self.stops[name, self.roots[array].value, self.outer(array, layout)] = reason

    def left_out(self) -> Mapping[str, int]:
        """By calls, how many variants were seen and not taken, or not looked at, because there were too many."""
        found = dict(self.untried)
        for name, variants in self.cut.items():
            found[name] = found.get(name, 0) + len(variants)
        for name, flows in self.flows.items():
            if flows.left_out:
                found[name] = found.get(name, 0) + flows.left_out
        return found

    @property
    def pads(self) -> tuple[PadNumber, ...]:
        """The numbers that padding is asked to hold somewhere."""
        found = (pad_of(layout) for variant in self.frozen.values() for layout in (*variant.operands, *variant.results))
        # Zeros of either sign are two numbers here.
        return tuple({repr(pad): pad for pad in found if pad is not None}.values())


def unpadded(variant: Variant) -> tuple[Layout, ...]:
    """The layouts of a variant's arrays, without what their padding holds."""
    return tuple(bare(layout) for layout in (*variant.operands, *variant.results))


def names_of(call: Call) -> tuple[str, ...]:
    """The names of a call's operands and results."""
    return (*call.operands, *(value.name for value in call.results))


Callback = Callable[[PrimFunc, Layouts], Layouts | Replacement | None]
"""A user's rule for an operator, used instead of the flow: from the layouts of some arrays those of all, temporaries
included, or a function in these layouts; None where there are none. Its answers are proved before they are used.
"""


def operator_name(call: Call) -> str:
    """The name of a call's operator: its function's, without the number that tells functions of one name apart."""
    return re.sub(r"_\d+$", "", call.function.name)


def called_back(func: PrimFunc, given: Layouts, callback: Callback) -> Variant:
    """A callback's variant. Raises NoFlow without one or if a map loses elements, LayoutproofError if none fits."""
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
    """The calls of a graph, in order, with pads and crops as calls of functions."""
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
        buffer.name: settled(layout_of(layouts[buffer.name]), shape_of(buffer))
        if buffer.name in layouts
        else plain(buffer.rank)
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


def planned_call(candidates: Candidates, call: Call, *, fills_cost: bool = True) -> PlannedCall:
    """A call with its variants in terms of roots, the plain or frozen one first. Filled padding may cost its bytes."""
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
        if each.through or not fills_cost
        else sum(
            padding_bytes(value, layout)
            for value, layout in zip(call.results, each.results, strict=True)
            if pad_of(layout) is not None
        )
        for each in own
    )
    return PlannedCall(operands, results, variants, own, fills if any(fills) else ())
