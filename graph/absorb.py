"""Folding a layout transform into the call before or after it, where that is asked for: the call stores, or reads, the array so itself.

Nothing does this by itself, since the accesses of the function's other arrays may become worse by it; whether they do is not looked at.
Source: the seed `relax-layout-transformation`, "Folding layout rewrite into an operation".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from layoutproof.graph import codes
from layoutproof.graph.assembly import unused
from layoutproof.graph.copies import as_call
from layoutproof.graph.maps import inverse_of
from layoutproof.graph.model import Call, Graph, LayoutTransform, Step, Value
from layoutproof.graph.relaid import NAME, relaid
from layoutproof.graph.signature import signature_of
from layoutproof.graph.wellformed import require_graph
from layoutproof.graph.witness import GraphRewrite, Place
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.schedule.schedule import Schedule


def fold_into_call(graph: Graph, transformed: str, call: str) -> GraphRewrite:
    """The graph without the use of a layout transform at a call, both named by what they make.

    A call that makes the transform's operand, for nothing else, makes the result instead; one that takes the result takes the operand. Pads
    and crops become calls. What is returned is a claim, which `prove_graph_rewrite` decides.

    Raises LayoutproofError where there is no such transform or no such call, and IllegalTransform where the call's function in the other
    layout is not proved.
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
        codes.FOLD_INTO, why, help="a layout_transform folds into the call that makes its operand, or into one that takes its result"
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
            steps.append(replace(call, function=_named(replace(schedule.func, name=old.function.name), schedule, functions, schedules)))
        else:
            kept = as_call(each, values)
            unchanged = Schedule(replace(kept.function, name=NAME), allowed=frozenset())
            steps.append(replace(kept, function=_named(kept.function, unchanged, functions, schedules)))
    used = {name for other in steps if other is not step for name in other.operands} | set(graph.outputs)
    made_by_call = step.result in call.results
    left = tuple(other for other in steps if other is not step or (not made_by_call and step.result.name in used))
    new = replace(graph, steps=left)
    return GraphRewrite(graph, new, _places(new), schedules)


def _named(func: PrimFunc, schedule: Schedule, functions: dict[str, PrimFunc], schedules: dict[str, Schedule]) -> PrimFunc:
    """The function under a name that stands for it alone, entered with how it came about."""
    name = func.name
    if functions.get(name, func) != func:
        name = unused(name, set(functions))
    functions[name] = replace(func, name=name)
    schedules[name] = schedule
    return functions[name]


def _places(graph: Graph) -> Mapping[str, Place]:
    def place(value: Value) -> Place:
        return Place(value.name, IndexMap.identity(len(value.shape)))

    return {value.name: place(value) for value in graph.values()}
