"""The text of operators: loop nests with one block each, joined and read like any program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from math import inf, isfinite
from typing import ParamSpec

from layoutproof.graph import codes
from layoutproof.graph.model.graph import Shape
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads

FLOATS = ("float16", "bfloat16", "float32", "float64")

P = ParamSpec("P")


def cached_by_number(make: Callable[P, PrimFunc]) -> Callable[P, PrimFunc]:
    """What `functools.cache` makes of a function, but -0.0 is another number than 0.0, and 1 another one than 1.0."""
    made: dict[str, PrimFunc] = {}

    @wraps(make)
    def remembered(*arguments: P.args, **named: P.kwargs) -> PrimFunc:
        key = repr((arguments, named))
        if key not in made:
            made[key] = make(*arguments, **named)
        return made[key]

    return remembered


@dataclass(frozen=True, slots=True)
class Nest:
    """One block with its loops: `store`, `init` of an accumulation; extents of `spatial` and `reduced` variables."""

    block: str
    spatial: Mapping[str, int]
    store: str
    reduced: Mapping[str, int] | None = None
    init: str | None = None

    def text(self) -> str:
        """The nest as lines of a function's body."""
        reduced = dict(self.reduced) if self.reduced is not None else {}
        axes = {**self.spatial, **reduced}
        kinds = "S" * len(self.spatial) + "R" * len(reduced)
        names, loops = ", ".join(axes), ", ".join(f"i{k}" for k in range(len(axes)))
        lines = []
        if axes:
            lines.append(f"for {loops} in T.grid({', '.join(map(str, axes.values()))}):")
        depth = "    " if axes else ""
        lines.append(f'{depth}with T.block("{self.block}"):')
        if len(axes) == 1:
            word = "spatial" if kinds == "S" else "reduce"
            lines.append(f"{depth}    {names} = T.axis.{word}({next(iter(axes.values()))}, i0)")
        elif axes:
            lines.append(f'{depth}    {names} = T.axis.remap("{kinds}", [{loops}])')
        if self.init is not None:
            lines += [f"{depth}    with T.init():", f"{depth}        {self.init}"]
        lines.append(f"{depth}    {self.store}")
        return "\n".join(f"    {line}" for line in lines)


def function(
    name: str,
    arrays: Mapping[str, Shape],
    *nests: Nest,
    dtype: str = "float32",
    temporaries: Mapping[str, Shape] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> PrimFunc:
    """The function of some nests over arrays of one type, but for `dtypes`; arrays that are stored to are results."""
    others = dtypes if dtypes is not None else {}
    held = dict(temporaries) if temporaries is not None else {}
    kinds = {array: f'{tuple_text(shape)}, "{others.get(array, dtype)}"' for array, shape in {**arrays, **held}.items()}
    parameters = ", ".join(f"{array}: T.Buffer({kinds[array]})" for array in arrays)
    lines = ["@T.prim_func", f"def {name}({parameters}):", '    T.func_attr({"tir.noalias": True})']
    lines += [f"    {array} = T.alloc_buffer({kinds[array]})" for array in held]
    lines += [nest.text() for nest in nests]
    return loads("\n".join([*lines, ""]), f"{name}.py")


def tuple_text(items: Iterable[object]) -> str:
    """A tuple as Python writes it."""
    texts = [str(item) for item in items]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def access(array: str, indices: Sequence[str]) -> str:
    """An element; of an array without axes the only one."""
    return f"{array}[{', '.join(indices) if indices else '()'}]"


def variables(shape: Shape, prefix: str = "v") -> dict[str, int]:
    """A variable for each axis, with its extent."""
    return {f"{prefix}{axis}": extent for axis, extent in enumerate(shape)}


def number(value: bool | int | float, dtype: str) -> str:
    """A constant of a type, rounded to it when it is read."""
    if not DType.parse(dtype).is_float:
        return f"T.{dtype}({bool(value) if dtype == 'bool' else int(value)!r})"
    finite = isfinite(value)
    return f"T.{dtype}({float(value)!r})" if finite else f'T.{dtype}("{float(value)!r}")'


def lowest(dtype: str) -> str:
    """What no element of a type is below."""
    return number(-inf, dtype) if DType.parse(dtype).is_float else f'T.min_value("{dtype}")'


def highest(dtype: str) -> str:
    """What no element of a type is above."""
    return number(inf, dtype) if DType.parse(dtype).is_float else f'T.max_value("{dtype}")'


def axis_of(operator: str, axis: int, rank: int) -> int:
    """The axis counted from the front. Raises LayoutproofError for one that is not there."""
    if not -rank <= axis < rank:
        raise refused(operator, f"there is no axis {axis} of {rank}")
    return axis % rank


def refused(operator: str, why: str) -> LayoutproofError:
    """The error of an operator whose shapes and attributes do not fit."""
    return error(codes.OPERATOR_ARGUMENT, f"{operator}: {why}")


def require(holds: bool, operator: str, why: str) -> None:
    """Raise LayoutproofError unless something holds that the operator needs."""
    if not holds:
        raise refused(operator, why)
