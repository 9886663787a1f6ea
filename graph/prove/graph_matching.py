"""Whether a second graph is the first one, planned: the witness is reconstructed. Functions given in an operator's
place are proved to be the operator in its layouts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from layoutproof.graph.flow.layout_flow import NAME, Layouts, NoFlow
from layoutproof.graph.model.graph import (
    Call,
    Constant,
    Graph,
    LayoutTransform,
    Pad,
    Rewriting,
    number_of,
    shape_of,
    signature_of,
)
from layoutproof.graph.model.graph_witness import AS_IT_WAS, Chain, GraphRewrite, Interface, Place, roots_of
from layoutproof.graph.model.layout_maps import box_of
from layoutproof.graph.model.wellformed_graph import require_graph
from layoutproof.graph.operators.copies import as_call
from layoutproof.graph.prove.prove_graph import moved_by, prove_graph_rewrite
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.compare.compare_programs import compare_bit_for_bit
from layoutproof.lowering.layout.pad_value import PadText
from layoutproof.verify.verdict.verdict import GOOD, Claim, ClaimKind, Status, Verdict

PRIMITIVE = "compare"


@dataclass(frozen=True, slots=True)
class Replacement:
    """`function` does what the operator does, with arrays, by the operator's names for them, in these layouts; others
    keep theirs.

    Parameters are those of the operator, in its order, whatever they are called. Padding holds nothing that may be
    relied on.
    """

    function: PrimFunc
    layouts: Layouts


def chain_to(func: PrimFunc, given: PrimFunc, layouts: Layouts, pads: Mapping[str, PadText]) -> Chain:
    """The step from an operator to its given function, proved bit for bit. Raises NoFlow where it is not proved."""
    named = replace(func, name=NAME)
    try:
        found = compare_bit_for_bit(
            named, replace(given, name=NAME), layouts={n: index_map_text(m) for n, m in layouts.items()}, pads=pads
        )
    except LayoutproofError as problem:
        raise NoFlow(
            func, f"{given.name}, which is given for it, does not fit: {problem.diagnostics[0].message}"
        ) from problem
    bad = next((verdict for verdict in found.verdicts if verdict.status not in GOOD), None)
    if bad is not None or found.rewrite is None or found.strictness or found.where is not None:
        why = (
            bad.reason
            if bad is not None and bad.reason is not None
            else ""
            if bad is None
            else f"{bad.status.value}: {bad.claim}"
        )
        raise NoFlow(func, f"{given.name}, which is given for it, is not proved to do what it does: {why}")
    for before, after in zip(named.buffers, found.rewrite.new.buffers, strict=True):
        shape = shape_of(before)
        box = box_of(layouts[before.name], shape) if before.name in layouts else shape
        if shape_of(after) != box:
            raise NoFlow(
                func,
                f"{given.name}, which is given for it, has {before.name} as {list(shape_of(after))}, not as "
                f"{list(box)}",
            )
    return Chain(named, found.records)


ENGINE = "pairing"


def prove_planned(old: Graph, new: Graph, interface: Interface = AS_IT_WAS) -> tuple[Verdict, ...]:
    """A verdict for each value of the new graph and one for its outputs, as `prove_graph_rewrite` gives them; or what
    was not paired.

    `interface` says how the new graph is called, where that is otherwise. Raises LayoutproofError for a malformed
    graph.
    """
    found = matched(old, new, interface)
    return (found,) if isinstance(found, Verdict) else prove_graph_rewrite(found, interface)


def matched(old: Graph, new: Graph, interface: Interface = AS_IT_WAS) -> GraphRewrite | Verdict:
    """How the new graph would come of the old one: a claim; or, unknown, what was not paired first, with the reason.

    Raises LayoutproofError for a malformed graph.
    """
    require_graph(old)
    require_graph(new)
    search = _Search(old, new)
    known = {value.name: value for value in old.inputs}
    for value in new.inputs:
        before = known.get(value.name)
        if before is None:
            return _unpaired(value.name, "the old graph has no input of this name")
        index_map = interface.inputs.get(value.name, IndexMap.identity(len(before.shape)))
        if value.shape != box_of(index_map, before.shape):
            wanted = list(box_of(index_map, before.shape))
            return _unpaired(
                value.name, f"it is {list(value.shape)}, and should be {wanted} unless the interface says otherwise"
            )
        search.places[value.name] = Place(value.name, index_map)
    for step in new.steps:
        problem = search.call(step) if isinstance(step, Call) else search.moved(step)
        if problem is not None:
            return _unpaired(", ".join(value.name for value in step.results), problem)
    missing = next((value.name for value in new.values() if value.name not in search.places), None)
    if missing is not None:
        return _unpaired(missing, "no call takes it, and nothing says which constant it is")
    return GraphRewrite(old, new, search.places, search.chains)


def _unpaired(name: str, why: str) -> Verdict:
    claim = Claim(ClaimKind.OTHER, f"{name} is paired with a value of the old graph", about=("paired", name))
    return Verdict(Status.UNKNOWN, claim, ENGINE, reason=why)


@dataclass(slots=True)
class _Search:
    """What is known of the new graph's values so far; `used` are the old calls that were paired, by first results."""

    old: Graph
    new: Graph
    roots: Mapping[str, Place] = field(init=False)
    calls: list[Call] = field(init=False)
    before: Mapping[str, Constant] = field(init=False)
    after: Mapping[str, Constant] = field(init=False)
    places: dict[str, Place] = field(init=False, default_factory=lambda: dict[str, Place]())
    chains: dict[str, Chain] = field(init=False, default_factory=lambda: dict[str, Chain]())
    origins: dict[str, PrimFunc] = field(init=False, default_factory=lambda: dict[str, PrimFunc]())
    used: set[str] = field(init=False, default_factory=lambda: set[str]())

    def __post_init__(self) -> None:
        values = self.old.by_name()
        self.roots = roots_of(self.old)
        self.calls = [as_call(step, values) for step in self.old.steps if not isinstance(step, LayoutTransform)]
        self.before, self.after = (
            {each.value.name: each for each in graph.constants} for graph in (self.old, self.new)
        )

    def moved(self, step: Rewriting) -> str | None:
        """Enter where what a layout operator makes stands; why that is not known, where it is not."""
        before = self.places.get(step.operand)
        if before is None:
            return f"nothing says which constant {step.operand} is"
        pad = step.value if isinstance(step, Pad) and number_of(step.value) is not None else None
        if isinstance(step, LayoutTransform):
            pad = before.pad
        self.places[step.result.name] = Place(before.value, moved_by(step, before.index_map), pad)
        return None

    def call(self, step: Call) -> str | None:
        """Pair a call; why there is none to pair it with, where there is not."""
        why = "no call of the old graph that is not paired yet takes the same"
        for old in self.candidates(step):
            try:
                layouts = layouts_beside(old.function, step.function)
                if layouts is None:
                    why = (
                        f"{step.function.name} has other arrays than {old.function.name}, or records of layouts that "
                        "do not go together"
                    )
                    continue
                self.enter(old, step, layouts)
            except NoFlow as stop:
                why = stop.reason
                continue
            except LayoutproofError as problem:
                why = f"the records of layouts of {step.function.name} do not fit: {problem.diagnostics[0].message}"
                continue
            return None
        return why

    def candidates(self, step: Call) -> Iterator[Call]:
        """The old calls that take what a new one takes, those whose functions are called alike first."""
        fitting = [old for old in self.calls if old.results[0].name not in self.used and self.takes(step, old)]
        alike = [old for old in fitting if _stem(old) == _stem(step)]
        yield from (*alike, *(old for old in fitting if all(old is not other for other in alike)))

    def takes(self, step: Call, old: Call) -> bool:
        """Whether what both take is known to be the same, constants aside, of which nothing is known yet."""
        if len(step.operands) != len(old.operands) or len(step.results) != len(old.results):
            return False
        for ours, theirs in zip(step.operands, old.operands, strict=True):
            if ours in self.after and ours not in self.places and theirs in self.before:
                continue
            place = self.places.get(ours)
            if place is None or self.roots[place.value].value != self.roots[theirs].value:
                return False
        return True

    def enter(self, old: Call, step: Call, layouts: Mapping[str, IndexMap]) -> None:
        """Pair two calls. Raises NoFlow where the functions are not proved equal, or constants differ."""
        signature = signature_of(old.function)
        arrays = (*signature.operands, *signature.results)
        maps = [layouts.get(buffer.name, IndexMap.identity(buffer.rank)) for buffer in arrays]
        found = dict[str, Place]()
        for ours, theirs, index_map in zip(step.operands, old.operands, maps, strict=False):
            if ours not in self.places:
                self.check_constant(old.function, ours, theirs, index_map)
                found[ours] = Place(theirs, index_map)
        self.enter_function(old.function, step.function)
        for mine, theirs_, index_map in zip(step.results, old.results, maps[len(step.operands) :], strict=True):
            found[mine.name] = Place(theirs_.name, index_map)
        self.places |= found
        self.used.add(old.results[0].name)

    def check_constant(self, func: PrimFunc, ours: str, theirs: str, index_map: IndexMap) -> None:
        """Raise NoFlow where a new constant has other elements than an old one: another call may match."""
        new, old = self.after[ours], self.before[theirs]
        if new.sha256 is not None or old.sha256 is not None:
            raise NoFlow(func, f"only digests of {ours} and {theirs} are known")
        fits = new.value.dtype == old.value.dtype and new.value.shape == box_of(index_map, old.value.shape)
        if not fits or index_map.unmap_array(new.data, old.value.shape).tobytes() != old.data.tobytes():
            raise NoFlow(func, f"{ours} holds other elements than {theirs}")

    def enter_function(self, old: PrimFunc, new: PrimFunc) -> None:
        """Keep the step from an old function to a new one. Raises NoFlow where it is not proved."""
        if self.origins.get(new.name) == old:
            return
        same = replace(old, name=NAME) == replace(new, name=NAME)
        self.chains[new.name] = Chain(replace(old, name=NAME), ()) if same else _chain_to(old, new)
        self.origins[new.name] = old


def _chain_to(old: PrimFunc, new: PrimFunc) -> Chain:
    """The step from an old function to a new one with layout records. Raises NoFlow where it is not proved."""
    named = replace(old, name=NAME)
    try:
        found = compare_bit_for_bit(named, replace(new, name=NAME))
    except LayoutproofError as problem:
        raise NoFlow(old, f"{new.name} does not fit {old.name}: {problem.diagnostics[0].message}") from problem
    bad = next((verdict for verdict in found.verdicts if verdict.status not in GOOD), None)
    if bad is not None or found.rewrite is None or found.strictness or found.where is not None:
        why = "" if bad is None else f": {bad.status.value}, {bad.reason if bad.reason is not None else bad.claim}"
        raise NoFlow(old, f"{new.name} is not proved to do what {old.name} does{why}")
    return Chain(named, found.records)


def layouts_beside(old: PrimFunc, new: PrimFunc) -> Mapping[str, IndexMap] | None:
    """How a new function stores the arrays of an old one, by its layout records; None if it has other arrays."""
    before, after = layout_records(old), layout_records(new)
    if [len(buffers) for buffers in _roles(old)] != [len(buffers) for buffers in _roles(new)]:
        return None
    found: dict[str, IndexMap] = {}
    both = ((*operands, *results) for operands, results in (_roles(old), _roles(new)))
    for theirs, ours in zip(*both, strict=True):
        known, steps = (
            records[b.data.name].steps if b.data.name in records else ()
            for records, b in ((before, theirs), (after, ours))
        )
        if steps[: len(known)] != known or theirs.dtype != ours.dtype:
            return None
        index_map = IndexMap.identity(theirs.rank)
        for each in steps[len(known) :]:
            if len(each.index_map.inputs) != index_map.rank:
                return None
            index_map = each.index_map.compose(index_map)
        if len(steps) > len(known):
            found[theirs.name] = index_map
    return found


def _roles(func: PrimFunc) -> tuple[tuple[Buffer, ...], tuple[Buffer, ...]]:
    signature = signature_of(func)
    return signature.operands, signature.results


def _stem(call: Call) -> str:
    """What a function is called, without the numbers that tell layouts and shapes apart."""
    return re.sub(r"(_\d+)+$", "", call.function.name)
