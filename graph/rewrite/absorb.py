"""Layout transforms folded into the call before or after them on request, in any graph, or in a planned one with the
plan's witness.

Source: Relax's issue `relax-layout-transformation`, "Folding layout rewrite into an operation".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from layoutproof.graph import codes
from layoutproof.graph.flow.layout_flow import NAME, relaid
from layoutproof.graph.model.graph import Call, Graph, LayoutTransform, Step, Value, signature_of
from layoutproof.graph.model.graph_witness import GraphRewrite, Place
from layoutproof.graph.model.layout_maps import inverse_of
from layoutproof.graph.model.wellformed_graph import require_graph
from layoutproof.graph.operators.copies import as_call
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import fresh
from layoutproof.lowering.layout.transform_layout import ROOT, TransformLayout
from layoutproof.lowering.schedule.schedule import Schedule


def fold_into_call(graph: Graph, transformed: str, call: str) -> GraphRewrite:
    """The graph without the use of a layout transform at a call, both named by what they make.

    A call that makes the transform's operand, for nothing else, makes the result instead; one that takes the result
    takes the operand. Pads and crops become calls. What is returned is a claim, which `prove_graph_rewrite` decides.

    Raises LayoutproofError where there is no such transform or no such call, and IllegalTransform where the call's
    function in the other layout is not proved.
    """
    require_graph(graph)
    step, target = graph.producers().get(transformed), graph.producers().get(call)
    if not isinstance(step, LayoutTransform):
        raise _refused(f"no layout_transform makes {transformed}")
    if not isinstance(target, Call):
        raise _refused(f"no call makes {call}")
    if step.operand in (value.name for value in target.results):
        if graph.consumers()[step.operand] != (step,) or step.operand in graph.outputs:
            raise _refused(f"{step.operand} is used besides by others than {transformed}")
        return _rewritten(graph, step, target, _stored_by(step, target))
    if transformed not in target.operands:
        raise _refused(f"{call} neither makes {step.operand} nor takes {transformed}")
    return _rewritten(graph, step, target, _read_by(graph, step, target))


def _refused(why: str) -> LayoutproofError:
    return error(
        codes.FOLD_INTO,
        why,
        help="a layout_transform folds into the call that makes its operand, or into one that takes its result",
    )


def _stored_by(step: LayoutTransform, call: Call) -> tuple[Call, Schedule]:
    names = [value.name for value in call.results]
    buffer = signature_of(call.function).results[names.index(step.operand)]
    schedule = relaid(call.function, {buffer.name: step.index_map})
    results = tuple(step.result if value.name == step.operand else value for value in call.results)
    return replace(call, results=results), schedule


def _read_by(graph: Graph, step: LayoutTransform, call: Call) -> tuple[Call, Schedule]:
    back = inverse_of(step.index_map, graph.by_name()[step.operand].shape)
    assert back is not None  # the map of a well-formed layout_transform is a bijection of numbers
    given = zip(signature_of(call.function).operands, call.operands, strict=True)
    schedule = relaid(call.function, {buffer.name: back for buffer, name in given if name == step.result.name})
    operands = tuple(step.operand if name == step.result.name else name for name in call.operands)
    return replace(call, operands=operands), schedule


def _rewritten(graph: Graph, step: LayoutTransform, old: Call, made: tuple[Call, Schedule]) -> GraphRewrite:
    """The graph with one call in another's place, and its witness: every value is where it was."""
    call, schedule = made
    values, functions = graph.by_name(), dict[str, PrimFunc]()
    schedules: dict[str, Schedule] = {}
    steps: list[Step] = []
    for each in graph.steps:
        if isinstance(each, LayoutTransform):
            steps.append(each)
        elif each is old:
            steps.append(
                replace(
                    call,
                    function=_named(replace(schedule.func, name=old.function.name), schedule, functions, schedules),
                )
            )
        else:
            kept = as_call(each, values)
            unchanged = Schedule(replace(kept.function, name=NAME), allowed=frozenset())
            steps.append(replace(kept, function=_named(kept.function, unchanged, functions, schedules)))
    used = {name for other in steps if other is not step for name in other.operands} | set(graph.outputs)
    made_by_call = step.result in call.results
    left = tuple(other for other in steps if other is not step or (not made_by_call and step.result.name in used))
    new = replace(graph, steps=left)
    return GraphRewrite(graph, new, _places(new), schedules)


def _named(
    func: PrimFunc, schedule: Schedule, functions: dict[str, PrimFunc], schedules: dict[str, Schedule]
) -> PrimFunc:
    """The function under a name that stands for it alone, entered with how it came about."""
    name = func.name
    if functions.get(name, func) != func:
        name = fresh(name, set(functions))
    functions[name] = replace(func, name=name)
    schedules[name] = schedule
    return functions[name]


def _places(graph: Graph) -> Mapping[str, Place]:
    def place(value: Value) -> Place:
        return Place(value.name, IndexMap.identity(len(value.shape)))

    return {value.name: place(value) for value in graph.values()}


def absorbed(rewrite: GraphRewrite, call: str, arrays: Sequence[str] | None = None) -> GraphRewrite:
    """The rewritten graph in which a call, named by what it makes in the old graph, reads or stores arrays as they are
    beside it.

    `arrays` are those of its function that are meant, all by default. Layout transforms without another use go. What
    is returned is a claim, which `prove_graph_rewrite` decides.

    Raises LayoutproofError where there is no such call, or no layout transform beside it that could go, and
    IllegalTransform where the function in the other layouts is not proved.
    """
    graph = rewrite.new
    target = next(
        (
            s
            for s in graph.steps
            if isinstance(s, Call) and any(rewrite.places[v.name].value == call for v in s.results)
        ),
        None,
    )
    if target is None:
        raise error(codes.FOLD_INTO, f"no call makes {call}")
    schedule = rewrite.schedules.get(target.function.name)
    if not isinstance(schedule, Schedule):
        raise error(
            codes.FOLD_INTO,
            f"{call} is made by a function that was given for its operator; no layout is folded into that",
        )
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
    name = fresh(target.function.name, {func.name for func in graph.functions()})
    values = graph.by_name()
    new = replace(
        target,
        results=tuple(values[moved.get(value.name, value.name)] for value in target.results),
        operands=tuple(positions.get(number, each) for number, each in enumerate(target.operands)),
        function=replace(made.func, name=name),
    )
    return _with(rewrite, target, new, made)


def _beside(
    graph: Graph, call: Call, arrays: Sequence[str] | None
) -> tuple[dict[int, str], dict[str, str], dict[str, IndexMap]]:
    """What operands become, by position, and results, by name, without the transforms beside the call; maps for arrays
    of its function.

    Raises LayoutproofError for an array that the function does not have.
    """
    producers, consumers, values = graph.producers(), graph.consumers(), graph.by_name()
    signature = signature_of(call.function)
    known = [buffer.name for buffer in (*signature.operands, *signature.results)]
    for name in arrays if arrays is not None else ():
        if name not in known:
            raise error(
                codes.FOLD_INTO, f"{call.function.name} has no array {name}", help=f"available: {', '.join(known)}"
            )
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
        if (
            buffer.name in meant
            and len(users) == 1
            and value.name not in graph.outputs
            and isinstance(users[0], LayoutTransform)
        ):
            moved[value.name], maps[buffer.name] = users[0].result.name, users[0].index_map
    return positions, moved, maps


def _with(rewrite: GraphRewrite, old: Call, new: Call, schedule: Schedule) -> GraphRewrite:
    """The rewrite with one call in another's place, without the layout transforms that have no use any more."""
    made = {value.name for value in new.results}
    steps = [
        new if step is old else step for step in rewrite.new.steps if step is old or not made.intersection(_names(step))
    ]
    used = {name for step in steps for name in step.operands} | set(rewrite.new.outputs)
    before = {name for name in old.operands if name not in new.operands}
    steps = [step for step in steps if not (before.intersection(_names(step)) and not used.intersection(_names(step)))]
    graph = replace(rewrite.new, steps=tuple(steps))
    kept = {value.name for value in graph.values()}
    places = {name: place for name, place in rewrite.places.items() if name in kept}
    return replace(rewrite, new=graph, places=places, schedules={**rewrite.schedules, new.function.name: schedule})


def _names(step: Step) -> set[str]:
    return {value.name for value in step.results}
