"""An index map as strides, as a CuTe layout and as bases over F2, each proved equal to the map; or an index that shows
why it is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, IntImm, const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.cute import CuteLayout, IntTuple, Swizzle
from layoutproof.ir.notations.strides import strided_map, strides_text
from layoutproof.ir.notations.triton import LinearLayout
from layoutproof.ir.semantics import Trap
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.verify.algebra.lift import NumberTooWide
from layoutproof.verify.algebra.rendering import Renderer
from layoutproof.verify.layouts.offsets import concrete_extents, index_text, offset_map
from layoutproof.verify.maps.equal_maps import prove_equal_maps
from layoutproof.verify.maps.problem import Shape, coerce_shape, make_problem
from layoutproof.verify.verdict.verdict import Status

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from layoutproof.ir.late import np

MAX_AXIS = 1 << 22
_FEW = 1 << 12


@dataclass(frozen=True, slots=True)
class Strides:
    """`offset + sum(index * stride)`; sizes are numbers, or expressions over the symbols of the shape."""

    shape: tuple[int | Expr, ...]
    strides: tuple[int | Expr, ...]
    offset: int | Expr

    def __str__(self) -> str:
        shape, strides = (
            tuple(s if isinstance(s, int) else expr_text(s, "plain") for s in sizes)
            for sizes in (self.shape, self.strides)
        )
        offset = self.offset if isinstance(self.offset, int) else expr_text(self.offset, "plain")
        return strides_text(shape, strides, offset)


def refused(index_map: IndexMap, what: str, why: str) -> LayoutproofError:
    """The error for a map that has no such form."""
    return error(codes.NOT_WRITTEN, f"`{index_map_text(index_map)}` is {what}: {why}")


def check_equal(index_map: IndexMap, candidate: IndexMap, shape: Shape, what: str) -> None:
    """Raise LayoutproofError, with an index, unless two maps are proved equal."""
    numbers = [extent.value for extent in coerce_shape(shape) if isinstance(extent, IntImm)]
    if len(numbers) == len(shape) and prod(numbers) > _FEW:
        _check_samples(index_map, candidate, numbers, what)
    verdict = prove_equal_maps(index_map, candidate, shape)
    if verdict.status is Status.PROVED:
        return
    example = verdict.counterexample
    if verdict.status is not Status.REFUTED or example is None:
        raise refused(index_map, f"not proved to be {what}", verdict.reason or "no engine decides it")
    symbols = example.get("symbols")
    given = f" (for {', '.join(f'{k} = {v}' for k, v in symbols.items())})" if symbols else ""
    where, first, second = (index_text(example[key]) for key in ("index", "first", "second"))
    raise refused(index_map, f"not {what}", f"{where} goes to {first}, not to {second}{given}")


def _check_samples(index_map: IndexMap, candidate: IndexMap, extents: Sequence[int], what: str) -> None:
    """Raise LayoutproofError where a few indices of many already show that two maps differ."""
    for factor in (0, 1, 3, 5, 7, 11):
        point = [
            extent - 1 if factor == 0 else factor * (axis + 3) * extent // 40 % extent
            for axis, extent in enumerate(extents)
        ]
        try:
            first, second = index_map.evaluate(point), candidate.evaluate(point)
        except Trap:
            return  # the proof has the message
        if first != second:
            why = f"{index_text(point)} goes to {index_text(first)}, not to {index_text(second)}"
            raise refused(index_map, f"not {what}", why)


# Strides


def to_strides(index_map: IndexMap, shape: Shape) -> Strides:
    """The strides of a map to one offset (one of several axes is flattened first).

    Raises LayoutproofError, with an index, where the offset is no sum of index times stride.
    """
    offset = offset_map(index_map, shape)
    extents = coerce_shape(shape)
    start = _at(offset, [0] * len(extents))
    steps = []
    for axis in range(len(extents)):
        point = [int(k == axis) for k in range(len(extents))]
        steps.append(_simplified(_at(offset, point, start) - start))
    first = _simplified(start)
    check_equal(offset, strided_map(extents, steps, first), shape, "a sum of index times stride")
    return Strides(tuple(map(_number, extents)), tuple(map(_number, steps)), _number(first))


def _at(index_map: IndexMap, point: Sequence[int], otherwise: Expr | None = None) -> Expr:
    """The output at a point; `otherwise` where it has no value, which may be so beside an axis of extent 1."""
    values = {v: const(k, v.dtype) for v, k in zip(index_map.inputs, point, strict=True)}
    found = substitute(index_map.outputs[0], values)
    if free_variables(found):
        return found
    try:
        return const(int(evaluate(found, {})))
    except Trap:
        return const(0) if otherwise is None else otherwise


def _simplified(expr: Expr) -> Expr:
    if not free_variables(expr):
        return const(int(evaluate(expr, {})))
    return simplified_map(IndexMap((), (expr,)), ()).outputs[0]


def _number(size: Expr) -> int | Expr:
    return size.value if isinstance(size, IntImm) else size


# CuTe


def to_cute(index_map: IndexMap, shape: Shape) -> CuteLayout:
    """The CuTe layout of a map to one offset (one of several axes is flattened first), with the map's axes as modes,
    each in as few digits as possible; behind a swizzle where there is one.

    Raises LayoutproofError, with an index, where there is none.
    """
    extents = concrete_extents(shape, "a CuTe layout")
    offset = offset_map(index_map, shape)
    try:
        layout = _plain_cute(offset, extents)
        check_equal(offset, layout.map_on(extents), extents, "a CuTe layout")
        return layout
    except LayoutproofError as problem:
        found = _swizzled(offset, extents)
        if found is None:
            raise problem
        check_equal(offset, found.map_on(extents), extents, "a CuTe layout")
        return found


def _plain_cute(offset: IndexMap, extents: Sequence[int]) -> CuteLayout:
    shape: list[IntTuple] = []
    stride: list[IntTuple] = []
    start = offset.evaluate([0] * len(extents))[0]
    for axis in range(len(extents)):
        modes = axis_digits(offset, axis, extents[axis])
        shape.append(modes[0][0] if len(modes) == 1 else tuple(extent for extent, _ in modes))
        stride.append(modes[0][1] if len(modes) == 1 else tuple(step for _, step in modes))
    flat = len(shape) == 1
    first, second = (shape[0], stride[0]) if flat else (tuple(shape), tuple(stride))
    # CuTe has an offset only behind a swizzle; this one changes nothing.
    return CuteLayout(first, second, Swizzle(0, 4, 3) if start else None, start)


def axis_values(offset: IndexMap, axis: int, extent: int) -> NDArray[np.int64]:
    """The offsets along one axis, the other indices being 0."""
    if extent > MAX_AXIS:
        raise refused(offset, "not converted", f"axis {axis} has {extent} indices, {MAX_AXIS} are tried")
    sides = [extent if k == axis else 1 for k in range(len(offset.inputs))]
    values: NDArray[np.int64] = np.broadcast_to(offset.output_values(sides)[0], sides).reshape(-1)
    return values


def axis_digits(offset: IndexMap, axis: int, extent: int) -> list[tuple[int, int]]:
    """Extent and stride of the digits of one axis, fastest first: where there are any, those with the longest runs are.

    Raises LayoutproofError, with an index, where there are none.
    """
    values = axis_values(offset, axis, extent)
    modes: list[tuple[int, int]] = []
    step, size = 1, len(values)
    while step < size:
        line = values[::step] - values[0]
        stride = int(line[1])
        wrong = np.flatnonzero(line != stride * np.arange(len(line)))
        run = int(wrong[0]) if len(wrong) else len(line)
        if len(line) % run:
            index = [run * step if k == axis else 0 for k in range(len(offset.inputs))]
            why = f"along axis {axis} the stride {stride} ends at {index_text(index)}"
            raise refused(offset, "not a CuTe layout", f"{why}, and {run} does not divide {len(line)}")
        modes.append((run, stride))
        step *= run
    return modes if modes else [(1, 0)]


def _swizzled(offset: IndexMap, extents: Sequence[int]) -> CuteLayout | None:
    """A layout behind the smallest swizzle: one under which all bits of the index go to different bits."""
    if any(extent & (extent - 1) for extent in extents):
        return None
    try:
        columns = [[b[0] for b in bases] for _, bases in bases_of(offset, extents)]
    except Trap:
        return None
    top = max((value.bit_length() for bases in columns for value in bases), default=0)
    for swizzle in swizzles(top):
        plain = [[swizzle(value) for value in bases] for bases in columns]
        if _is_disjoint([value for bases in plain for value in bases]):
            return _of_bits(plain, swizzle)
    return None


def swizzles(bits: int, least: int = 1) -> Iterator[Swizzle]:
    """The swizzles of offsets of so many bits, those of the fewest bits first, then by base and distance."""
    for count in range(least, bits // 2 + 1):
        for base in range(bits - 2 * count + 1):
            for shift in range(count, bits - base - count + 1):
                yield Swizzle(count, base, shift)


def _is_disjoint(values: Sequence[int]) -> bool:
    taken = 0
    for value in values:
        if value & taken:
            return False
        taken |= value
    return True


def _of_bits(columns: Sequence[Sequence[int]], swizzle: Swizzle) -> CuteLayout:
    shape: list[IntTuple] = []
    stride: list[IntTuple] = []
    for bases in columns:
        modes: list[tuple[int, int]] = []
        for value in bases:
            if modes and value == modes[-1][1] * modes[-1][0]:
                modes[-1] = (modes[-1][0] * 2, modes[-1][1])
            else:
                modes.append((2, value))
        modes = modes if modes else [(1, 0)]
        shape.append(modes[0][0] if len(modes) == 1 else tuple(extent for extent, _ in modes))
        stride.append(modes[0][1] if len(modes) == 1 else tuple(step for _, step in modes))
    if len(shape) == 1:
        return CuteLayout(shape[0], stride[0], swizzle)
    return CuteLayout(tuple(shape), tuple(stride), swizzle)


# Bits


def bases_of(index_map: IndexMap, extents: Sequence[int]) -> list[tuple[str, tuple[tuple[int, ...], ...]]]:
    """The image of each bit of each index. Raises Trap."""
    found: list[tuple[str, tuple[tuple[int, ...], ...]]] = []
    for axis, (variable, extent) in enumerate(zip(index_map.inputs, extents, strict=True)):
        points = ([1 << bit if k == axis else 0 for k in range(len(extents))] for bit in range(extent.bit_length() - 1))
        found.append((variable.name, tuple(index_map.evaluate(point) for point in points)))
    return found


def to_linear(index_map: IndexMap, shape: Shape) -> LinearLayout:
    """The map as bases over F2: the image of each bit of each index, whose XOR is the image of an index.

    Raises LayoutproofError where it is not linear, with the bits that do not add.
    """
    extents = concrete_extents(shape, "a map over bits")
    uneven = next((extent for extent in extents if extent & (extent - 1)), None)
    if uneven is not None:
        raise refused(index_map, "not linear over F2", f"the extent {uneven} is no power of two")
    try:
        start = index_map.evaluate([0] * len(extents))
        bases = bases_of(index_map, extents)
    except Trap as problem:
        raise refused(index_map, "not linear over F2", str(problem)) from problem
    if any(start):
        raise refused(index_map, "not linear over F2", f"the index 0 goes to {index_text(start)}")
    images = [image for _, vectors in bases for image in vectors]
    if any(value < 0 for image in images for value in image):
        raise refused(index_map, "not linear over F2", "an image is below 0")
    reach = [max((image[axis] for image in images), default=0).bit_length() for axis in range(index_map.rank)]
    layout = LinearLayout(tuple(bases), tuple(1 << bits for bits in reach))
    _check_pairs(index_map, extents)
    check_equal(index_map, layout.index_map(), extents, "linear over F2")
    return layout


def _check_pairs(index_map: IndexMap, extents: Sequence[int]) -> None:
    """Raise LayoutproofError for two bits whose images do not add: the smallest index that shows it."""
    bits = [(axis, bit) for axis, extent in enumerate(extents) for bit in range(extent.bit_length() - 1)]
    for pair in combinations(bits, 2):
        points = [[sum(1 << b for k, b in chosen if k == axis) for axis in range(len(extents))] for chosen in
                  ((pair[0],), (pair[1],), pair)]  # fmt: skip
        first, second, both = (index_map.evaluate(point) for point in points)
        if tuple(a ^ b for a, b in zip(first, second, strict=True)) != both:
            names = " and ".join(index_text(point) for point in points[:2])
            why = f"the bits of {names} do not add: {index_text(points[2])} goes to {index_text(both)}, not to "
            why += index_text([a ^ b for a, b in zip(first, second, strict=True)])
            raise refused(index_map, "not linear over F2", why)


def simplified_map(index_map: IndexMap, shape: Shape) -> IndexMap:
    """An equal map on a shape, each output in its normal form where it has one. Raises LayoutproofError."""
    problem = make_problem(index_map, shape)
    renderer = Renderer(problem.ring, problem.shown)
    outputs: list[Expr] = []
    for form, written in zip(problem.outputs, problem.index_map.outputs, strict=True):
        try:
            outputs.append(written if form is None else renderer.expr(form))
        except NumberTooWide:
            outputs.append(written)
    return IndexMap(problem.index_map.inputs, tuple(outputs), index_map.separators).rename(
        [v.name for v in index_map.inputs]
    )
