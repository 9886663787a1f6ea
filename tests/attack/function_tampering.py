"""The functions of a rewritten graph, and how they came about, with one thing in them changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from layoutproof.graph.model.graph import Call, Step
from layoutproof.graph.model.graph_witness import Chain, GraphRewrite, Interface
from layoutproof.ir.dtype import FLOAT32, INT32
from layoutproof.ir.expr import const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.layout_record import Contract, LayoutRecord, layout_records, with_record
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite, Witness
from layoutproof.verify.step_record import StepRecord
from layoutproof.verify.values.fast_math import ALL
from tests.attack.mutants import mutant

Claim = tuple[GraphRewrite, Interface]
Tampering = Callable[[GraphRewrite, Interface, Random], Claim | None]


def other_body(func: PrimFunc, chance: Random) -> PrimFunc | None:
    """The function with something in its body changed; None where nothing was found to change."""
    for _ in range(6):
        found = mutant(Rewrite(func, func, Witness(())), chance)
        if found is not None and found[1].new != func:
            return found[1].new
    return None


def shuffled(index_map: IndexMap, chance: Random) -> IndexMap:
    return replace(index_map, outputs=tuple(chance.sample(index_map.outputs, len(index_map.outputs))))


def stepped(rewrite: GraphRewrite, number: int, *steps: Step) -> GraphRewrite:
    """The graph with other steps in the place of one."""
    new = rewrite.new
    return replace(rewrite, new=replace(new, steps=(*new.steps[:number], *steps, *new.steps[number + 1 :])))


def _call(rewrite: GraphRewrite, chance: Random) -> tuple[Call, StepRecord, tuple[StepRecord, ...]] | None:
    """A call whose function came about by some steps, with the last of these and the others."""
    calls = [step for step in rewrite.new.steps if isinstance(step, Call)]
    chance.shuffle(calls)
    for call in calls:
        name = call.function.name
        records = rewrite.schedules[name].records
        if records:
            return call, records[-1], records[:-1]
    return None


def _with_function(rewrite: GraphRewrite, old: PrimFunc, new: PrimFunc, chain: Chain | None) -> GraphRewrite:
    """The graph with another function under the name of one, and what is said of how it came about."""
    named = replace(new, name=old.name)
    steps = tuple(
        replace(step, function=named) if isinstance(step, Call) and step.function.name == old.name else step
        for step in rewrite.new.steps
    )
    made = replace(rewrite, new=replace(rewrite.new, steps=steps))
    if chain is None:
        return made
    return replace(made, schedules={**rewrite.schedules, old.name: chain})


def _original(rewrite: GraphRewrite, name: str) -> PrimFunc:
    return rewrite.schedules[name].original


def functions_exchanged(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim | None:
    """A call is one of another function, which may have the same arrays."""
    calls = [(k, step) for k, step in enumerate(rewrite.new.steps) if isinstance(step, Call)]
    if len(calls) < 2:
        return None
    (number, step), (_, other) = chance.sample(calls, 2)
    return stepped(rewrite, number, replace(step, function=other.function)), interface


def schedules_exchanged(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim | None:
    """Two functions are said to have come about as one another."""
    if len(rewrite.schedules) < 2:
        return None
    first, second = chance.sample(list(rewrite.schedules), 2)
    return replace(
        rewrite, schedules={**rewrite.schedules, first: rewrite.schedules[second], second: rewrite.schedules[first]}
    ), interface


def body_changed(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim | None:
    """A function has another body under its name: by itself, or with steps that say so."""
    calls = [step for step in rewrite.new.steps if isinstance(step, Call)]
    if not calls:
        return None
    func = chance.choice(calls).function
    changed = other_body(func, chance)
    if changed is None:
        return None
    if chance.random() < 0.5:
        return _with_function(rewrite, func, changed, None), interface
    return _with_function(
        rewrite, func, changed, Chain(replace(changed, name=_original(rewrite, func.name).name), ())
    ), interface


def step_mutated(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim | None:
    """The last step to a function leads somewhere else, or is there for other reasons."""
    found = _call(rewrite, chance)
    if found is None:
        return None
    call, last, others = found
    changed = mutant(last.rewrite, chance)
    if changed is None:
        return None
    allowed = ALL if chance.random() < 0.3 else last.allowed
    record = replace(last, rewrite=changed[1], allowed=allowed)
    chain = Chain(_original(rewrite, call.function.name), (*others, record))
    return _with_function(rewrite, call.function, changed[1].new, chain), interface


def steps_cut(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim | None:
    """A function is what it was before its last step, or before its first one."""
    found = _call(rewrite, chance)
    if found is None:
        return None
    call, last, others = found
    original = _original(rewrite, call.function.name)
    if chance.random() < 0.5:
        return _with_function(rewrite, call.function, last.rewrite.old, Chain(original, others)), interface
    first = (*others, last)[0]
    return _with_function(
        rewrite, call.function, call.function, Chain(first.rewrite.new, (*others, last)[1:])
    ), interface


def record_changed(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim | None:
    """A function's layout record says another map or another contract, in the last step to it and in the graph."""
    found = _call(rewrite, chance)
    if found is None:
        return None
    call, last, others = found
    func = last.rewrite.new
    records = {name: record for name, record in layout_records(func).items() if record.steps}
    if not records:
        return None
    name, record = chance.choice(list(records.items()))
    end = record.steps[-1]
    dtype = next((buffer.dtype for buffer in func.buffers if buffer.data.name == name), INT32)
    numbers = [Contract((), const(value, dtype)) for value in ((0.0, 1.0, -0.0) if dtype == FLOAT32 else (0, 1))]
    step = chance.choice(
        (
            replace(end, index_map=shuffled(end.index_map, chance)),
            replace(end, contract=chance.choice((None, Contract.undef(dtype), *numbers))),
            replace(end, contract=chance.choice(numbers)),
        )
    )
    changed = replace(
        func, attrs=with_record(func, name, LayoutRecord(record.logical_shape, (*record.steps[:-1], step)))
    )
    record_of_step = replace(last, rewrite=replace(last.rewrite, new=changed))
    chain = Chain(_original(rewrite, call.function.name), (*others, record_of_step))
    return _with_function(rewrite, call.function, changed, chain), interface
