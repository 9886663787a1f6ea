"""Folding layout operators into one another and into constants, each fold proved before it is made.

Two operators in a row: transforms are composed; a crop is folded into the pad before it; a pad into the crop before it
where the cells that were cut off have the pad's value, or any. Identities disappear. A layout operator on a constant is
applied to it.

Source: Relax's issue `relax-layout-transformation`, "Folding/Fusing Layout Rewrites".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from layoutproof.graph.model.graph import (
    Array,
    Call,
    Constant,
    Crop,
    Graph,
    LayoutTransform,
    Pad,
    Rewriting,
    Shape,
    Step,
    Value,
    number_of,
    reaches_outside,
)
from layoutproof.graph.model.graph_run import box, padded, transformed
from layoutproof.graph.model.layout_maps import is_identity
from layoutproof.graph.model.wellformed_graph import require_graph
from layoutproof.graph.operators.copies import prove_chains
from layoutproof.ir.text import expr_text
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict


@dataclass(frozen=True, slots=True)
class Fold:
    """A fold that was tried: the value that it makes otherwise, the operators before and after, and what was proved of
    them.

    Of a fold into a constant there are no operators after; the verdict says that its elements were computed.
    """

    value: str
    old: tuple[Rewriting, ...]
    new: tuple[Rewriting, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def status(self) -> Status:
        """The worst of the verdicts."""
        return worst(verdict.status for verdict in self.verdicts)

    @property
    def assumed(self) -> str | None:
        """What was taken for granted: the claim of a crop, which is its author's; None where nothing was."""
        first = self.old[0]
        if not isinstance(first, Crop) or first.cropped_value is None:
            return None
        return f"what {first.result.name} cuts off of {first.operand} is {expr_text(first.cropped_value)}"


@dataclass(frozen=True, slots=True)
class Folding:
    """A graph with everything folded that could be, the folds that were made, and those that were refused."""

    old: Graph
    new: Graph
    made: tuple[Fold, ...]
    refused: tuple[Fold, ...]


def fold(graph: Graph) -> Folding:
    """The graph with folded layout operators and no unused steps. Raises LayoutproofError for a malformed one."""
    require_graph(graph)
    current, made, refused = graph, list[Fold](), _Refused()
    while True:
        found = next(_folds(current, refused), None)
        if found is None:
            return Folding(graph, current, tuple(made), tuple(fold for _, fold in refused.values()))
        step, current = found
        made.append(step)


_Refused = dict[tuple[Any, ...], tuple[int, Fold]]


def _folds(graph: Graph, refused: _Refused) -> Iterator[tuple[Fold, Graph]]:
    """The folds that can be made, each with the graph that it leaves.

    Those not proved go to `refused`, and are not tried again while as many values of the chain have other uses.
    """
    producers, consumers = graph.producers(), graph.consumers()
    data = {constant.value.name: constant for constant in graph.constants}
    for step in graph.steps:
        if isinstance(step, Call):
            continue
        if step.operand in data:
            yield _into_constant(graph, step, data[step.operand])
            continue
        chain = chain_to(step, producers)
        root, held = graph.by_name()[chain[0].operand], _held(graph, chain, consumers)
        for length, new in candidates(root, chain):
            key = (step.result.name, chain, new)
            if key in refused and refused[key][0] == held:
                continue
            found = _tried(root, chain, length, new, held)
            if found.status is Status.PROVED:
                refused.pop(key, None)
                yield found, replaced(graph, step, new, chain[-length].operand)
            else:
                refused[key] = held, found


def _held(graph: Graph, chain: Sequence[Rewriting], consumers: Mapping[str, tuple[Step, ...]]) -> int:
    """How many operators of a chain make what others than the next one depend on."""
    used = [
        consumers[step.result.name] != (after,) or step.result.name in graph.outputs for step, after in pairwise(chain)
    ]
    return max((number for number, others in enumerate(used, start=1) if others), default=0)


def _tried(root: Value, chain: tuple[Rewriting, ...], length: int, new: tuple[Rewriting, ...], held: int) -> Fold:
    """The fold of the last operators of a chain, proved by itself or else with all that is known of their operand."""

    def proved(start: int) -> Fold:
        old = chain[start:]
        result = (*chain[start : len(chain) - length], *new)
        operand = chain[start - 1].result if start else root
        return Fold(chain[-1].result.name, old, result, prove_chains(operand, old, result, max(held - start, 0)))

    found = proved(len(chain) - length)
    return found if found.status is Status.PROVED or len(chain) == length else proved(0)


def chain_to(step: Rewriting, producers: Mapping[str, Step]) -> tuple[Rewriting, ...]:
    """The layout operators in a row that end in a step, from the first value that no layout operator makes."""
    chain: list[Rewriting] = [step]
    while True:
        before = producers.get(chain[0].operand)
        if before is None or isinstance(before, Call):
            return tuple(chain)
        chain.insert(0, before)


def candidates(root: Value, chain: Sequence[Rewriting]) -> Iterator[tuple[int, tuple[Rewriting, ...]]]:
    """Candidate folds of the last operators of a chain: how many of them, and the fewer operators in their place."""
    last = chain[-1]
    if _leaves_all(last, (chain[-2].result if len(chain) > 1 else root).shape):
        yield 1, ()
    if len(chain) < 2:
        return
    pair = _PAIRS.get((type(chain[-2]), type(last)))
    if pair is not None:
        new = pair((chain[-3].result if len(chain) > 2 else root).shape, chain[-2], last)
        if new is not None and len(new) < 2:
            yield 2, new


def _leaves_all(step: Rewriting, shape: Shape) -> bool:
    """Whether an operator on an operand of a shape seems to leave everything where it is."""
    match step:
        case LayoutTransform():
            return is_identity(step.index_map, shape)
        case Pad() | Crop():
            return shape == step.result.shape


Pair = tuple[Rewriting, ...] | None


def _transforms(_: Shape, first: LayoutTransform, second: LayoutTransform) -> Pair:
    composed = second.index_map.compose(first.index_map)
    return (replace(second, operand=first.operand, index_map=composed),)


def _crops(_: Shape, first: Crop, second: Crop) -> Pair:
    starts = tuple(a + b for a, b in zip(first.starts, second.starts, strict=True))
    claimed = second.cropped_value if first.cropped_value == second.cropped_value else None
    return (replace(second, operand=first.operand, starts=starts, cropped_value=claimed),)


def _pads(_: Shape, first: Pad, second: Pad) -> Pair:
    """One pad with both widths, by the number if only one of them has one."""
    widths = tuple((a + c, b + d) for (a, b), (c, d) in zip(first.widths, second.widths, strict=True))
    value = first.value if number_of(second.value) is None else second.value
    return (replace(second, operand=first.operand, widths=widths, value=value),)


def _crop_of_pad(_: Shape, first: Pad, second: Crop) -> Pair:
    """What is left of the pad, or of its operand where more is cut off; both, on different axes, are two operators."""
    inner = [extent - before - after for extent, (before, after) in zip(first.result.shape, first.widths, strict=True)]
    before = [w - s for (w, _), s in zip(first.widths, second.starts, strict=True)]
    after = [s + n - w - e for s, n, (w, _), e in zip(second.starts, second.sizes, first.widths, inner, strict=True)]
    if not any(before) and not any(after):
        return ()
    if min(before) >= 0 and min(after) >= 0:
        return (replace(first, result=second.result, widths=tuple(zip(before, after, strict=True)), span=second.span),)
    if max(before) <= 0 and max(after) <= 0 and all(-b < e for b, e in zip(before, inner, strict=True)):
        return (replace(second, operand=first.operand, starts=tuple(-b for b in before), cropped_value=None),)
    return None


def _pad_of_crop(whole: Shape, first: Crop, second: Pad) -> Pair:
    """The larger box in place of a pad that the crop had cut off; beyond the cropped operand a pad is left."""
    starts = tuple(start - before for start, (before, _) in zip(first.starts, second.widths, strict=True))
    ends = [start + extent - n for start, extent, n in zip(starts, second.result.shape, whole, strict=True)]
    if min(starts) >= 0 and max(ends) <= 0:
        return (Crop(second.result, first.operand, starts, second.result.shape, None, second.span),)
    if max(starts) <= 0 and min(ends) >= 0:
        return (
            replace(
                second,
                operand=first.operand,
                widths=tuple((-start, end) for start, end in zip(starts, ends, strict=True)),
            ),
        )
    return None


_PAIRS: Mapping[tuple[type[Any], type[Any]], Callable[[Shape, Any, Any], Pair]] = {
    (LayoutTransform, LayoutTransform): _transforms,
    (Crop, Crop): _crops,
    (Pad, Pad): _pads,
    (Pad, Crop): _crop_of_pad,
    (Crop, Pad): _pad_of_crop,
}


def _into_constant(graph: Graph, step: Rewriting, constant: Constant) -> tuple[Fold, Graph]:
    """The operator's result as a constant. Undefined padding, which may hold anything, holds zeros."""
    made = Constant(step.result, np.asarray(_computed(step, constant.data), order="C"), step.span)
    steps = tuple(other for other in graph.steps if other is not step)
    name = step.result.name
    claim = Claim(ClaimKind.OTHER, f"{name} is known at compile time", about=("constant", name))
    found = Fold(step.result.name, (step,), (), (Verdict(Status.PROVED, claim, "evaluation"),))
    return found, without_dead(replace(graph, constants=(*graph.constants, made), steps=steps))


def _computed(step: Rewriting, data: Array) -> Array:
    match step:
        case LayoutTransform():
            return transformed(data, step.index_map)
        case Pad():
            number = number_of(step.value)
            return padded(data, step.widths, number if number is not None else 0)
        case Crop():
            return data[box(step.starts, step.sizes)]


def replaced(graph: Graph, step: Rewriting, new: Sequence[Rewriting], operand: str) -> Graph:
    """The graph with one operator in another's place, or with the operand itself in place of its result."""
    if new:
        swapped: list[Step] = [new[0] if other is step else other for other in graph.steps]
        return without_dead(replace(graph, steps=tuple(swapped)))
    renamed = {step.result.name: operand}
    steps = [_with_operands(other, renamed) for other in graph.steps if other is not step]
    outputs = tuple(renamed.get(name, name) for name in graph.outputs)
    return without_dead(replace(graph, steps=tuple(steps), outputs=outputs))


def _with_operands(step: Step, names: Mapping[str, str]) -> Step:
    if isinstance(step, Call):
        return replace(step, operands=tuple(names.get(name, name) for name in step.operands))
    return replace(step, operand=names.get(step.operand, step.operand))


def without_dead(graph: Graph) -> Graph:
    """The graph without the steps and constants that no output, and no call out of the graph, depends on."""
    used = set(graph.outputs)
    kept: list[Step] = []
    for step in reversed(graph.steps):
        outside = isinstance(step, Call) and reaches_outside(step.function)
        if outside or any(value.name in used for value in step.results):
            kept.insert(0, step)
            used |= set(step.operands)
    return replace(graph, steps=tuple(kept), constants=tuple(c for c in graph.constants if c.value.name in used))
