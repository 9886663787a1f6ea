"""Layout operators as functions, so that what is claimed of them is asked of the checker of rewrites like anything else.

A chain of layout operators becomes a function with one copy for each, through temporaries; two chains from one array are the same when
the function of the one is a rewrite of the function of the other. The checker looks through copies, knows what padding holds, and finds
inputs on which a wrong claim fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from layoutproof.graph.maps import inverse_of
from layoutproof.graph.model import Call, Crop, LayoutTransform, Pad, Rewriting, Shape, Value
from layoutproof.graph.operators.convolution import moved
from layoutproof.graph.operators.page import Nest, access, function, variables
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import loops_of_stores
from layoutproof.lowering.remembered import verdicts_of
from layoutproof.verify.verdict import Verdict

PRIMITIVE = "fold"


def chain_function(root: Value, chain: Sequence[Rewriting], claims: Sequence[Rewriting] = (), name: str = "chain") -> PrimFunc:
    """The function from `X`, which is `root`, to `Y` that makes one copy for each operator; of none, one copy.

    `claims` are operators from the root on whose crops' claims of what was cut off are assumed, as far as the root itself holds it.
    """
    arrays: dict[str, Shape] = {"X": root.shape}
    temporaries: dict[str, Shape] = {}
    nests = [_assumption(root.shape, step) for step in claims[:1] if isinstance(step, Crop) and step.cropped_value is not None]
    source, shape = "X", root.shape
    for number, step in enumerate(chain):
        last = number == len(chain) - 1
        target = "Y" if last else f"T{number}"
        (arrays if last else temporaries)[target] = step.result.shape
        nests.append(Nest(f"copy_{number}", variables(step.result.shape), _store(step, source, shape, target)))
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


def _store(step: Rewriting, source: str, shape: Shape, target: str) -> str:
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
            return f"{into} = {access(source, [moved(name, start) for name, start in zip(axes, step.starts, strict=True)])}"
        case Pad():
            element = access(source, [moved(name, -before) for name, (before, _) in zip(axes, step.widths, strict=True)])
            inside = _inside(axes, [before for before, _ in step.widths], shape, step.result.shape)
            value = expr_text(step.value)
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


def prove_chains(root: Value, old: Sequence[Rewriting], new: Sequence[Rewriting]) -> tuple[Verdict, ...]:
    """The checker's verdicts on whether the new chain makes of the root what the old one makes, bit for bit.

    Where the old chain begins with a crop that claims something, that is assumed of the root. Undefined padding may become anything.
    """
    return _proved(chain_function(root, old, old), chain_function(root, new, old))


@lru_cache(maxsize=1024)
def _proved(old: PrimFunc, new: PrimFunc) -> tuple[Verdict, ...]:
    before, after = loops_of_stores(old.body), loops_of_stores(new.body)
    maps = [InstanceMap(number, None, None) for number in range(len(after) - 1)]
    inputs = tuple(loop.var for loop in after[-1])
    outputs: tuple[Expr, ...] = tuple(loop.var for loop in before[-1])
    maps.append(InstanceMap(len(after) - 1, len(before) - 1, IndexMap(inputs, outputs)))
    return verdicts_of(Rewrite(old, new, Witness(tuple(maps))), None, frozenset(), True, PRIMITIVE, {})
