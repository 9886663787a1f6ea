"""Folding layout transforms that a plan leaves into the calls beside them, where that is asked for, with the plan's own witness carried on.

`absorb.fold_into_call` does so for any graph, and says how its result came from that graph; here the result is said to come from the
graph before planning, so that one proof, and one certificate, are about both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layoutproof.graph import codes
from layoutproof.graph.assembly import unused
from layoutproof.graph.maps import inverse_of
from layoutproof.graph.model import Call, Graph, LayoutTransform, Step
from layoutproof.graph.signature import signature_of
from layoutproof.graph.witness import GraphRewrite
from layoutproof.ir.diagnostic import error
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.lowering.layout.transform_layout import ROOT, TransformLayout
from layoutproof.lowering.schedule.schedule import Schedule


def absorbed(rewrite: GraphRewrite, call: str, arrays: Sequence[str] | None = None) -> GraphRewrite:
    """The rewritten graph in which a call, named by what it makes in the old graph, reads or stores arrays as they are beside it.

    `arrays` are those of its function that are meant, all by default. Layout transforms that nobody else needs go. What is returned is a
    claim, which `prove_graph_rewrite` decides.

    Raises LayoutproofError where there is no such call, or no layout transform beside it that could go, and IllegalTransform where the
    function in the other layouts is not proved.
    """
    graph = rewrite.new
    target = next((s for s in graph.steps if isinstance(s, Call) and any(rewrite.places[v.name].value == call for v in s.results)), None)
    if target is None:
        raise error(codes.FOLD_INTO, f"no call makes {call}")
    schedule = rewrite.schedules.get(target.function.name)
    if not isinstance(schedule, Schedule):
        raise error(codes.FOLD_INTO, f"{call} is made by a function that was given for its operator; no layout is folded into that")
    positions, moved, maps = _beside(graph, target, arrays)
    if not maps:
        what = call if arrays is None else f"{', '.join(arrays)} of {call}"
        raise error(
            codes.FOLD_INTO,
            f"no layout transform that could go stands beside {what}",
            help="one can that makes an operand, or that takes a result which nothing else uses",
        )
    made = schedule.fork()
    for name, index_map in maps.items():
        made.apply(TransformLayout(ROOT, name, index_map_text(index_map), None))
    name = unused(target.function.name, {func.name for func in graph.functions()})
    values = graph.by_name()
    new = replace(
        target,
        results=tuple(values[moved.get(value.name, value.name)] for value in target.results),
        operands=tuple(positions.get(number, each) for number, each in enumerate(target.operands)),
        function=replace(made.func, name=name),
    )
    return _with(rewrite, target, new, made)


def _beside(graph: Graph, call: Call, arrays: Sequence[str] | None) -> tuple[dict[int, str], dict[str, str], dict[str, IndexMap]]:
    """What operands become, by position, and results, by name, without the transforms beside the call; maps for arrays of its function.

    Raises LayoutproofError for an array that the function does not have.
    """
    producers, consumers, values = graph.producers(), graph.consumers(), graph.by_name()
    signature = signature_of(call.function)
    known = [buffer.name for buffer in (*signature.operands, *signature.results)]
    for name in arrays if arrays is not None else ():
        if name not in known:
            raise error(codes.FOLD_INTO, f"{call.function.name} has no array {name}", help=f"there are {', '.join(known)}")
    meant = known if arrays is None else arrays
    positions: dict[int, str] = {}
    moved: dict[str, str] = {}
    maps: dict[str, IndexMap] = {}
    for number, (buffer, name) in enumerate(zip(signature.operands, call.operands, strict=True)):
        step = producers.get(name)
        if buffer.name in meant and isinstance(step, LayoutTransform):
            back = inverse_of(step.index_map, values[step.operand].shape)
            assert back is not None  # the map of a well-formed layout_transform is a bijection of numbers
            positions[number], maps[buffer.name] = step.operand, back
    for buffer, value in zip(signature.results, call.results, strict=True):
        users = consumers[value.name]
        if buffer.name in meant and len(users) == 1 and value.name not in graph.outputs and isinstance(users[0], LayoutTransform):
            moved[value.name], maps[buffer.name] = users[0].result.name, users[0].index_map
    return positions, moved, maps


def _with(rewrite: GraphRewrite, old: Call, new: Call, schedule: Schedule) -> GraphRewrite:
    """The rewrite with one call in another's place, without the layout transforms that nobody needs any more."""
    made = {value.name for value in new.results}
    steps = [new if step is old else step for step in rewrite.new.steps if step is old or not made.intersection(_names(step))]
    used = {name for step in steps for name in step.operands} | set(rewrite.new.outputs)
    before = {name for name in old.operands if name not in new.operands}
    steps = [step for step in steps if not (before.intersection(_names(step)) and not used.intersection(_names(step)))]
    graph = replace(rewrite.new, steps=tuple(steps))
    kept = {value.name for value in graph.values()}
    places = {name: place for name, place in rewrite.places.items() if name in kept}
    return replace(rewrite, new=graph, places=places, schedules={**rewrite.schedules, new.function.name: schedule})


def _names(step: Step) -> set[str]:
    return {value.name for value in step.results}
