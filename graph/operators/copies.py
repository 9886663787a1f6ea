"""Chains of layout operators (pads, crops, transforms) as functions, so that claims about them are proved by the
checker of rewrites.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from layoutproof.graph.model.graph import Call, Crop, LayoutTransform, Pad, Rewriting, Shape, Value, number_of
from layoutproof.graph.model.layout_maps import inverse_of
from layoutproof.graph.operators.convolution import moved
from layoutproof.graph.operators.operator_text import Nest, access, function, variables
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import loops_of_stores
from layoutproof.lowering.proof_cache.remembered import verdicts_of
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status, Verdict

PRIMITIVE = "fold"
NOTHING: Mapping[Any, Any] = MappingProxyType({})


def chain_function(
    root: Value,
    chain: Sequence[Rewriting],
    claims: Sequence[Rewriting] = (),
    name: str = "chain",
    standing: Mapping[int, str] = NOTHING,
    given: Mapping[str, Shape] = NOTHING,
) -> PrimFunc:
    """The function from `X`, which is `root`, to `Y` that makes one copy for each operator; of none, one copy.

    `claims` are operators from the root on whose crops' claims of what was cut off are assumed, as far as the root
    itself holds it. `standing` says for some operators, by their numbers, what they pad with instead of undef, over
    `given` arrays.
    """
    arrays: dict[str, Shape] = {"X": root.shape, **given}
    temporaries: dict[str, Shape] = {}
    nests = [
        _assumption(root.shape, step)
        for step in claims[:1]
        if isinstance(step, Crop) and step.cropped_value is not None
    ]
    source, shape = "X", root.shape
    for number, step in enumerate(chain):
        last = number == len(chain) - 1
        target = "Y" if last else f"T{number}"
        (arrays if last else temporaries)[target] = step.result.shape
        stored = _store(step, source, shape, target, standing.get(number))
        nests.append(Nest(f"copy_{number}", variables(step.result.shape), stored))
        source, shape = target, step.result.shape
    if not chain:
        arrays["Y"] = root.shape
        axes = variables(root.shape)
        nests.append(Nest("copy", axes, f"{access('Y', list(axes))} = {access('X', list(axes))}"))
    return function(name, arrays, *nests, dtype=str(root.dtype), temporaries=temporaries)


def as_call(step: Call | Rewriting, values: Mapping[str, Value]) -> Call:
    """A layout operator as a call of a function that makes the same, what a crop claims aside; a call is itself."""
    if isinstance(step, Call):
        return step
    name = {LayoutTransform: "layout_transform", Pad: "pad", Crop: "crop"}[type(step)]
    return Call((step.result,), _as_function(values[step.operand], step, name), (step.operand,), step.span)


@lru_cache(maxsize=1024)
def _as_function(root: Value, step: Rewriting, name: str) -> PrimFunc:
    return chain_function(root, (step,), name=name)


def _store(step: Rewriting, source: str, shape: Shape, target: str, instead: str | None) -> str:
    axes = list(variables(step.result.shape))
    into = access(target, axes)
    match step:
        case LayoutTransform():
            back = inverse_of(step.index_map, shape)
            assert back is not None  # the map of a well-formed layout_transform is a bijection of numbers
            names = {f"p{axis}": Var(name) for axis, name in enumerate(axes)}
            indices = back.map_indices([names[v.name] if v.name in names else v for v in back.inputs])
            return f"{into} = {access(source, [expr_text(index) for index in indices])}"
        case Crop():
            kept = [moved(name, start) for name, start in zip(axes, step.starts, strict=True)]
            return f"{into} = {access(source, kept)}"
        case Pad():
            element = access(
                source, [moved(name, -before) for name, (before, _) in zip(axes, step.widths, strict=True)]
            )
            inside = _inside(axes, [before for before, _ in step.widths], shape, step.result.shape)
            value = expr_text(step.value) if instead is None else instead
            return f"{into} = T.if_then_else({inside}, {element}, {value})" if inside else f"{into} = {element}"


def _inside(axes: Sequence[str], starts: Sequence[int], sizes: Shape, whole: Shape) -> str:
    """The condition that an index lies in a box."""
    parts = []
    for name, start, size, extent in zip(axes, starts, sizes, whole, strict=True):
        parts += [f"{start} <= {name}"] * (start > 0) + [f"{name} < {start + size}"] * (start + size < extent)
    return " and ".join(parts)


def _assumption(shape: Shape, step: Crop) -> Nest:
    axes = variables(shape)
    inside = _inside(list(axes), step.starts, step.sizes, shape)
    assert step.cropped_value is not None
    held = f"{access('X', list(axes))} == {expr_text(step.cropped_value)}"
    return Nest("claimed", axes, f"T.assume({inside} or {held})" if inside else "T.evaluate(0)")


def prove_chains(root: Value, old: Sequence[Rewriting], new: Sequence[Rewriting], held: int = 0) -> tuple[Verdict, ...]:
    """The checker's verdicts on whether the new chain makes of the root what the old one makes, bit for bit.

    Where the old chain begins with a crop that claims something, that is assumed of the root. Undefined padding may
    become anything, but for that of the first `held` operators: what they make is used by others besides, who have to
    find the same there.
    """
    common = next((k for k, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    fixed = [k for k in _undefined(old) if k < held]
    given = {f"H{k}": old[k].result.shape for k in fixed}
    before = {k: access(f"H{k}", list(variables(old[k].result.shape))) for k in fixed}
    after = {k: text for k, text in before.items() if k < common}
    found = _compared(root, old, new, before, after, given)
    free, own = [k for k in _undefined(old) if k not in before], [k for k in _undefined(new) if k not in after]
    if not free or worst(verdict.status for verdict in found) in (Status.PROVED, Status.REFUTED):
        return found
    # No operator copies a cell twice. So where both pad with one unknown value, and make the same, what is
    # undefined in the new chain was so in the old one; and what is undefined only in the old one may as well have been
    # a number that the new one pads with.
    numbers = dict.fromkeys(expr_text(step.value) for step in new if isinstance(step, Pad))
    for value in ["U[0]"] if own else numbers:
        ours = {**given, "U": (1,)} if own else given
        tried = _compared(
            root, old, new, {**before, **dict.fromkeys(free, value)}, {**after, **dict.fromkeys(own, value)}, ours
        )
        if worst(verdict.status for verdict in tried) is Status.PROVED:
            return tried
    return found


def _undefined(chain: Sequence[Rewriting]) -> list[int]:
    return [k for k, step in enumerate(chain) if isinstance(step, Pad) and number_of(step.value) is None]


def _compared(
    root: Value,
    old: Sequence[Rewriting],
    new: Sequence[Rewriting],
    before: Mapping[int, str],
    after: Mapping[int, str],
    given: Mapping[str, Shape],
) -> tuple[Verdict, ...]:
    """The verdicts with these values for undefined padding of operators of each chain."""
    return _proved(
        chain_function(root, old, old, standing=before, given=given),
        chain_function(root, new, old, standing=after, given=given),
    )


@lru_cache(maxsize=1024)
def _proved(old: PrimFunc, new: PrimFunc) -> tuple[Verdict, ...]:
    before, after = loops_of_stores(old.body), loops_of_stores(new.body)
    maps = [InstanceMap(number, None, None) for number in range(len(after) - 1)]
    inputs = tuple(loop.var for loop in after[-1])
    outputs: tuple[Expr, ...] = tuple(loop.var for loop in before[-1])
    maps.append(InstanceMap(len(after) - 1, len(before) - 1, IndexMap(inputs, outputs)))
    return verdicts_of(Rewrite(old, new, Witness(tuple(maps))), None, frozenset(), True, PRIMITIVE, {})
