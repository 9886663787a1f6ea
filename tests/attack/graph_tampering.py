"""A rewritten graph with one thing in it changed: most of these are other programs, or witnesses that lie, and a few
are neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

import numpy as np

from layoutproof.graph.model.graph import Call, Constant, Crop, LayoutTransform, Pad, Step
from layoutproof.graph.model.graph_witness import GraphRewrite, Interface, Place, rooted, roots_of
from layoutproof.graph.prove.prove_graph import moved_by
from layoutproof.ir.expr import const
from layoutproof.ir.index_map import IndexMap
from tests.attack.function_tampering import (
    Claim,
    Tampering,
    body_changed,
    functions_exchanged,
    record_changed,
    schedules_exchanged,
    shuffled,
    step_mutated,
    stepped,
    steps_cut,
)
from tests.attack.graph_claims import SPECIAL
from tests.attack.graphs import like

T = TypeVar("T")


def _placed(rewrite: GraphRewrite, places: Mapping[str, Place]) -> GraphRewrite:
    return replace(rewrite, places={**rewrite.places, **places})


def _one(items: Sequence[T], chance: Random) -> tuple[int, T] | None:
    """One of some items, with its number."""
    if not items:
        return None
    number = chance.randrange(len(items))
    return number, items[number]


def _a_step(rewrite: GraphRewrite, kind: type[Step], chance: Random) -> tuple[int, Step] | None:
    found = [item for item in enumerate(rewrite.new.steps) if isinstance(item[1], kind)]
    return chance.choice(found) if found else None


# ---- places


def places_swapped(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim:
    """Two values are said to be one another."""
    one, other = (chance.choice(list(rewrite.places)) for _ in range(2))
    return _placed(rewrite, {one: rewrite.places[other], other: rewrite.places[one]}), interface


def place_moved(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim:
    """Elements are said to stand elsewhere."""
    name = chance.choice(list(rewrite.places))
    place = rewrite.places[name]
    return _placed(rewrite, {name: replace(place, index_map=shuffled(place.index_map, chance))}), interface


def place_of_another(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim:
    """A value is said to hold another old one."""
    name, old = chance.choice(list(rewrite.places)), chance.choice([value.name for value in rewrite.old.values()])
    return _placed(rewrite, {name: replace(rewrite.places[name], value=old)}), interface


def padding_said(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim:
    """Of padding something else is said, of one value or of all."""
    values = rewrite.new.by_name()
    names = [name for name in rewrite.places if name in values]
    chosen = names if chance.random() < 0.3 else [chance.choice(names)]
    number = chance.choice((0, 1, -0.0, None))
    places = {}
    for name in chosen:
        dtype = values[name].dtype
        pad = (
            None if number is None or dtype.is_bool else const(float(number) if dtype.is_float else int(number), dtype)
        )
        places[name] = replace(rewrite.places[name], pad=pad)
    return _placed(rewrite, places), interface


# ---- the new graph


def constant_changed(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim | None:
    """An element of a constant, or of its padding, is another one; of NaNs one of other bits."""
    found = _one(rewrite.new.constants, chance)
    if found is None:
        return None
    number, constant = found
    data = constant.data.copy()
    place = chance.randrange(data.size)
    if data.dtype.kind == "f":
        data.reshape(-1)[place] = chance.choice((-data.reshape(-1)[place], *SPECIAL))
        if np.isnan(data.reshape(-1)[place]):
            data.view(f"u{data.dtype.itemsize}").reshape(-1)[place] ^= 1
    else:
        data.reshape(-1)[place] = chance.choice((0, 1))
    return _with_constant(rewrite, number, replace(constant, data=data)), interface


def _with_constant(rewrite: GraphRewrite, number: int, constant: Constant) -> GraphRewrite:
    constants = rewrite.new.constants
    return replace(
        rewrite, new=replace(rewrite.new, constants=(*constants[:number], constant, *constants[number + 1 :]))
    )


def constants_exchanged(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim | None:
    """Two constants hold one another's elements."""
    if len(rewrite.new.constants) < 2:
        return None
    (a, first), (b, second) = chance.sample(list(enumerate(rewrite.new.constants)), 2)
    if first.data.size != second.data.size or first.data.dtype.itemsize != second.data.dtype.itemsize:
        return None
    taken = [
        replace(x, data=y.data.view(x.data.dtype).reshape(x.data.shape)) for x, y in ((first, second), (second, first))
    ]
    return _with_constant(_with_constant(rewrite, a, taken[0]), b, taken[1]), interface


def other_outputs(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim:
    """Something else goes out, or in another order, or less."""
    new = rewrite.new
    outputs = chance.choice(
        (
            tuple(chance.choice(like(new, name)) for name in new.outputs),
            tuple(chance.sample(new.outputs, len(new.outputs))),
            (*new.outputs, chance.choice(new.outputs)),
            new.outputs[1:] if len(new.outputs) > 1 else new.outputs,
        )
    )
    return replace(rewrite, new=replace(new, outputs=outputs)), interface


def operands_changed(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim | None:
    """A step takes other values of the same shapes, or its operands in another order."""
    found = _one(rewrite.new.steps, chance)
    if found is None:
        return None
    number, step = found
    if not isinstance(step, Call):
        return stepped(
            rewrite, number, replace(step, operand=chance.choice(like(rewrite.new, step.operand)))
        ), interface
    others = tuple(chance.choice(like(rewrite.new, name)) for name in step.operands)
    operands = chance.choice((others, tuple(chance.sample(step.operands, len(step.operands)))))
    return stepped(rewrite, number, replace(step, operands=operands)), interface


def results_exchanged(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim | None:
    """A call of several results makes them under one another's names."""
    calls = [(k, step) for k, step in enumerate(rewrite.new.steps) if isinstance(step, Call) and len(step.results) > 1]
    if not calls:
        return None
    number, step = chance.choice(calls)
    return stepped(rewrite, number, replace(step, results=tuple(reversed(step.results)))), interface


def step_made_twice(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim | None:
    """A step is made twice; some who use its results use those of the second."""
    twice = [name for step in rewrite.new.steps for name in step.operands if step.operands.count(name) > 1]
    found = [item for item in enumerate(rewrite.new.steps) if any(value.name in twice for value in item[1].results)]
    if not rewrite.new.steps:
        return None
    number, step = chance.choice(found if found and chance.random() < 0.8 else list(enumerate(rewrite.new.steps)))
    names = {value.name: f"{value.name}_again" for value in step.results}
    again = _renamed(step, names)
    rest: list[Step] = []
    for each in rewrite.new.steps[number + 1 :]:
        if isinstance(each, Call):
            operands = tuple(names[name] if name in names and chance.random() < 0.5 else name for name in each.operands)
            rest.append(replace(each, operands=operands))
        else:
            rest.append(replace(each, operand=names.get(each.operand, each.operand)))
    steps = (*rewrite.new.steps[: number + 1], again, *rest)
    places = {other: rewrite.places[name] for name, other in names.items()}
    return _placed(replace(rewrite, new=replace(rewrite.new, steps=steps)), places), interface


def _renamed(step: Step, names: Mapping[str, str]) -> Step:
    made = tuple(replace(value, name=names[value.name]) for value in step.results)
    return replace(step, results=made) if isinstance(step, Call) else replace(step, result=made[0])


def step_left_out(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim | None:
    """A step is not made; who used its results uses others like them."""
    found = _one(rewrite.new.steps, chance)
    if found is None:
        return None
    number, step = found
    left = replace(rewrite.new, steps=(*rewrite.new.steps[:number], *rewrite.new.steps[number + 1 :]))
    instead: dict[str, str] = {}
    for value in step.results:
        others = [name for name in like(rewrite.new, value.name) if name in left.by_name()]
        if not others:
            return None
        instead[value.name] = chance.choice(others)
    steps: list[Step] = []
    for each in left.steps:
        operands = tuple(instead.get(name, name) for name in each.operands)
        steps.append(replace(each, operands=operands) if isinstance(each, Call) else replace(each, operand=operands[0]))
    outputs = tuple(instead.get(name, name) for name in left.outputs)
    return replace(rewrite, new=replace(left, steps=tuple(steps), outputs=outputs)), interface


def mover_changed(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim | None:
    """A layout operator moves, pads or cuts otherwise."""
    found = [(k, step) for k, step in enumerate(rewrite.new.steps) if not isinstance(step, Call)]
    if not found:
        return None
    number, step = chance.choice(found)
    match step:
        case LayoutTransform():
            extent = rewrite.new.by_name()[step.operand].shape[0]
            turned = replace(step.index_map, outputs=tuple(reversed(step.index_map.outputs)))
            back = (
                (const(extent - 1) - step.index_map.inputs[0], *step.index_map.inputs[1:])
                if step.index_map.inputs
                else ()
            )
            backwards = step.index_map.compose(IndexMap(step.index_map.inputs, back)) if back else turned
            return stepped(rewrite, number, replace(step, index_map=chance.choice((turned, backwards)))), interface
        case Pad():
            value = chance.choice((1, -0.0, 0.0)) if step.result.dtype.is_float else chance.choice((0, 1))
            around = replace(step, widths=tuple((after, before) for before, after in step.widths))
            return stepped(
                rewrite, number, chance.choice((around, replace(step, value=const(value, step.result.dtype))))
            ), interface
        case Crop():
            extents = rewrite.new.by_name()[step.operand].shape
            ends = tuple(extent - size for extent, size in zip(extents, step.sizes, strict=True))
            return stepped(rewrite, number, replace(step, starts=ends)), interface
    return None


def mover_and_witness_changed(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim | None:
    """A layout operator does something else, and the witness says so of what it makes and of what layout operators make
    of that.
    """
    changed = mover_changed(rewrite, interface, chance)
    if changed is None:
        return None
    made, _ = changed
    roots, places = roots_of(made.old), dict(made.places)
    touched: set[str] = set()
    for before, step in zip(rewrite.new.steps, made.new.steps, strict=True):
        if not isinstance(step, Call) and (step != before or step.operand in touched):
            place = rooted(places[step.operand], roots)
            if place.index_map.rank != len(made.new.by_name()[step.operand].shape):
                return None
            places[step.result.name] = replace(
                place, index_map=moved_by(step, place.index_map), pad=chance.choice((place.pad, None))
            )
            touched.add(step.result.name)
    return replace(made, places=places), interface


# ---- the interface


def interface_changed(rewrite: GraphRewrite, interface: Interface, chance: Random) -> Claim:
    """The graph is said to be called in another way."""
    old = rewrite.old.by_name()
    identity = {name: IndexMap.identity(len(value.shape)) for name, value in old.items()}
    outputs = (
        interface.outputs
        if interface.outputs is not None
        else tuple((name, identity[name]) for name in rewrite.old.outputs)
    )
    inputs, kind = dict(interface.inputs), chance.randrange(5)
    if kind == 0 and inputs:
        del inputs[chance.choice(list(inputs))]
    elif kind == 1:
        name = chance.choice(rewrite.old.inputs).name
        inputs[name] = shuffled(inputs.get(name, identity[name]), chance)
    elif kind == 2:
        outputs = tuple(chance.sample(outputs, len(outputs)))
    elif kind == 3:
        number = chance.randrange(len(outputs))
        name, index_map = outputs[number]
        outputs = (*outputs[:number], (name, shuffled(index_map, chance)), *outputs[number + 1 :])
    else:
        outputs = (*outputs[1:], (chance.choice(list(old)), identity[rewrite.old.outputs[0]]))
    return rewrite, Interface(inputs, outputs)


TAMPERINGS: Mapping[str, Tampering] = {
    tampering.__name__: tampering
    for tampering in (
        places_swapped,
        place_moved,
        place_of_another,
        padding_said,
        constant_changed,
        constants_exchanged,
        other_outputs,
        operands_changed,
        results_exchanged,
        step_made_twice,
        step_left_out,
        mover_changed,
        mover_and_witness_changed,
        functions_exchanged,
        schedules_exchanged,
        body_changed,
        step_mutated,
        steps_cut,
        record_changed,
        interface_changed,
    )
}
