"""Random layouts in the notations of others, each as text with what it means by a library or formula of its own: no
code of the parsers is used for the expected cells.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import einops
import islpy
import numpy as np
import tensor_layouts
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class RandomLayout:
    """A text, what is given beside it, and the cell of every logical index: an array with one row for each."""

    notation: str
    text: str
    shape: tuple[int, ...]
    cells: Ints
    axes: Mapping[str, int] = field(default_factory=dict)
    says_shape: bool = False

    def __str__(self) -> str:
        return f"{self.text}  on {list(self.shape)}  {dict(self.axes) or ''}"


def all_indices(shape: tuple[int, ...]) -> Ints:
    """Every index in row-major order, one a row."""
    return np.indices(shape).reshape(len(shape), -1).T.astype(np.int64)


def _modes(draw: Random, budget: int, depth: int = 0) -> Any:
    if depth < 2 and draw.random() < 0.4:
        return tuple(_modes(draw, budget, depth + 1) for _ in range(draw.randint(1, 3)))
    return draw.choice([1, 2, 2, 3, 4, 4, 5, 8])


def _like(draw: Random, shape: Any) -> Any:
    if isinstance(shape, tuple):
        return tuple(_like(draw, item) for item in shape)
    return draw.choice([0, 1, 1, 2, 3, 4, 8, 12, 16, 64])


def _flat(value: Any) -> list[int]:
    return [leaf for item in value for leaf in _flat(item)] if isinstance(value, tuple) else [value]


def cute(draw: Random) -> RandomLayout:
    """Offsets by `tensor_layouts`, on the flattened coordinate."""
    while True:
        shape = tuple(_modes(draw, 512) for _ in range(draw.randint(1, 3)))
        if math.prod(_flat(shape)) <= 512:
            break
    stride = _like(draw, shape)
    layout = tensor_layouts.Layout(shape, stride)
    flat = tuple(_flat(shape))
    size = math.prod(flat)
    offsets = np.array([layout(i) for i in range(size)], dtype=np.int64)
    text = f"{_tuple_text(shape)}:{_tuple_text(stride)}"
    if draw.random() < 0.4:
        bits = draw.randint(0, 3)
        swizzle = (bits, draw.randint(0, 4), draw.choice([1, -1]) * draw.randint(bits, bits + 2) or 1)
        swizzle = swizzle if abs(swizzle[2]) >= bits else (bits, swizzle[1], bits)
        moved = tensor_layouts.Swizzle(*swizzle)
        offsets = np.array([moved(int(o)) for o in offsets], dtype=np.int64)
        text = f"Sw<{','.join(map(str, swizzle))}> o 0 o {text}"
    # CuTe counts the first mode fastest.
    return RandomLayout("cute", text, flat, offsets.reshape(flat, order="F").reshape(-1, 1), says_shape=True)


def _tuple_text(value: Any) -> str:
    return f"({','.join(_tuple_text(item) for item in value)})" if isinstance(value, tuple) else str(value)


def _shape(draw: Random, most: int = 4, extents: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8)) -> tuple[int, ...]:
    return tuple(draw.choice(extents) for _ in range(draw.randint(1, most)))


def strides(draw: Random) -> RandomLayout:
    """Offsets by numpy's own strides over an array that holds its positions."""
    shape = _shape(draw)
    steps = tuple(draw.choice([0, 1, 2, 3, 4, 7, 24, 120, -1, -5]) for _ in shape)
    least = sum(min(0, s) * (e - 1) for s, e in zip(steps, shape, strict=True))
    most = sum(max(0, s) * (e - 1) for s, e in zip(steps, shape, strict=True))
    offset = draw.randint(0, 3) - least
    memory = np.arange(offset + most + 1, dtype=np.int64)
    view = np.lib.stride_tricks.as_strided(memory[offset:], shape, [8 * s for s in steps])
    size = draw.choice([1, 1, 4])
    text = (
        f"shape={shape}, strides={tuple(s * size for s in steps)}, offset={offset * size}"
        + f"{', itemsize=4' if size == 4 else ''}"
    )
    return RandomLayout("strides", text, shape, view.reshape(-1, 1).copy(), says_shape=True)


def einops_pattern(draw: Random) -> RandomLayout:
    """Positions by `einops.rearrange` of an array that holds its own positions."""
    names = iter("abcdefghij")
    left: list[list[str]] = []
    lengths: dict[str, int] = {}
    for _ in range(draw.randint(1, 3)):
        group = [next(names) for _ in range(draw.choice([1, 1, 2, 3]))]
        lengths.update((name, draw.choice([1, 2, 3, 4])) for name in group)
        left.append(group)
    order = list(lengths)
    draw.shuffle(order)
    right: list[list[str]] = []
    while order:
        take = draw.choice([1, 1, 2, 3])
        right.append(order[:take])
        order = order[take:]
    pattern = f"{_groups(left)} -> {_groups(right)}"
    shape = tuple(math.prod(lengths[n] for n in group) for group in left)
    known = {n: lengths[n] for group in left for n in group[draw.randint(0, 1) :] if len(group) > 1}
    for group in left:
        if len(group) > 1 and sum(name not in known for name in group) > 1:
            known.update((name, lengths[name]) for name in group[1:])
    values = np.arange(math.prod(shape)).reshape(shape)
    moved = einops.rearrange(values, pattern, **lengths)
    places = np.empty(moved.size, dtype=np.int64)
    places[moved.reshape(-1)] = np.arange(moved.size)
    return RandomLayout("einops", pattern, shape, np.stack(np.unravel_index(places, moved.shape), axis=1), known)


def _groups(groups: list[list[str]]) -> str:
    return " ".join(group[0] if len(group) == 1 else f"({' '.join(group)})" for group in groups)


def _positions(shape: tuple[int, ...], blocked: Callable[[Ints], Ints]) -> Ints:
    """Where an operation on arrays moves each element, as an index of the result; padding is -1."""
    moved = blocked(np.arange(math.prod(shape), dtype=np.int64).reshape(shape))
    places = np.empty(math.prod(shape), dtype=np.int64)
    flat = moved.reshape(-1)
    inside = np.flatnonzero(flat >= 0)
    places[flat[inside]] = inside
    return np.stack(np.unravel_index(places, moved.shape), axis=1).astype(np.int64)


def onednn(draw: Random) -> RandomLayout:
    """Positions by padding, splitting and transposing an array."""
    rank = draw.randint(1, 4)
    shape = tuple(draw.choice([1, 2, 3, 5, 8, 9, 16]) for _ in range(rank))
    order = list(range(rank))
    draw.shuffle(order)
    blocks = [(draw.choice([2, 3, 4, 8]), draw.randrange(rank)) for _ in range(draw.choice([0, 1, 1, 2, 3]))]
    tiled = {axis for _, axis in blocks}
    text = "".join(chr((65 if axis in tiled else 97) + axis) for axis in order)
    text += "".join(f"{size}{chr(97 + axis)}" for size, axis in blocks)

    def blocked(values: Ints) -> Ints:
        sizes = [[size for size, axis in blocks if axis == k] for k in range(rank)]
        pads = [(0, -values.shape[k] % math.prod(sizes[k])) for k in range(rank)]
        values = np.pad(values, pads, constant_values=-1)
        split: list[int] = []
        first: list[int] = []
        for k in range(rank):
            first.append(len(split))
            split += [values.shape[k] // math.prod(sizes[k]), *sizes[k]]
        seen = [0] * rank
        axes = [first[axis] for axis in order]
        for _, axis in blocks:
            seen[axis] += 1
            axes.append(first[axis] + seen[axis])
        return values.reshape(split).transpose(axes)

    return RandomLayout("onednn", text, shape, _positions(shape, blocked))


def xla(draw: Random) -> RandomLayout:
    """Positions by transposing, then padding and splitting the minor dimensions once for each tile."""
    shape = _shape(draw, 4, (1, 2, 3, 5, 8, 9))
    rank = len(shape)
    order = list(range(rank))
    draw.shuffle(order)
    first = tuple(draw.choice([1, 2, 3, 4]) for _ in range(draw.randint(1, rank)))
    tiles = [] if draw.random() < 0.25 else [first]
    if tiles and draw.random() < 0.5:
        tiles.append(tuple(draw.choice([1, 2, 3]) for _ in range(draw.randint(1, len(first)))))
    text = f"{{{','.join(map(str, order))}{':T' if tiles else ''}{''.join(_tuple_text(t) for t in tiles)}}}"

    def tiled(values: Ints) -> Ints:
        values = values.transpose(list(reversed(order)))
        for tile in tiles:
            kept = values.ndim - len(tile)
            pads = [(0, 0)] * kept + [(0, -n % t) for n, t in zip(values.shape[kept:], tile, strict=True)]
            values = np.pad(values, pads, constant_values=-1)
            split = [*values.shape[:kept]]
            for n, t in zip(values.shape[kept:], tile, strict=True):
                split += [n // t, t]
            pairs = range(kept, len(split), 2)
            values = values.reshape(split).transpose([*range(kept), *pairs, *(k + 1 for k in pairs)])
        return values

    typed = draw.random() < 0.5
    whole = f"f32[{','.join(map(str, shape))}]{text}" if typed else text
    return RandomLayout("xla", whole, shape, _positions(shape, tiled), says_shape=typed)


def mlir(draw: Random) -> RandomLayout:
    """Cells by Python, which has MLIR's `floordiv` and `mod` as `//` and `%`."""
    shape = _shape(draw, 3)
    outputs = [_affine(draw, len(shape), 3) for _ in range(draw.randint(1, 3))]
    names = [f"d{k}" for k in range(len(shape))]
    text = f"affine_map<({', '.join(names)}) -> ({', '.join(outputs)})>"
    rows = all_indices(shape)
    python = [re.sub(r"floordiv", "//", re.sub(r"\bmod\b", "%", output)) for output in outputs]
    python = [re.sub(r"ceildiv", "**", output) for output in python]
    env = {name: _Ceil(rows[:, k]) for k, name in enumerate(names)}
    columns = [np.broadcast_to(_plain(eval(each, {}, dict(env))), len(rows)) for each in python]
    return RandomLayout("mlir", text, shape, np.stack(columns, axis=1).astype(np.int64))


@dataclass(frozen=True)
class _Ceil:
    """Numbers on which `**`, which binds tighter than the others and so stands in parentheses, divides upward."""

    values: Any

    def __add__(self, other: Any) -> _Ceil:
        return _Ceil(self.values + _plain(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> _Ceil:
        return _Ceil(self.values - _plain(other))

    def __mul__(self, other: Any) -> _Ceil:
        return _Ceil(self.values * _plain(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> _Ceil:
        return _Ceil(self.values // _plain(other))

    def __mod__(self, other: Any) -> _Ceil:
        return _Ceil(self.values % _plain(other))

    def __pow__(self, other: Any) -> _Ceil:
        return _Ceil(-(-self.values // _plain(other)))


def _plain(value: Any) -> Any:
    return value.values if isinstance(value, _Ceil) else value


def _affine(draw: Random, rank: int, depth: int) -> str:
    if depth == 0 or draw.random() < 0.2:
        return f"d{draw.randrange(rank)}"
    inner = _affine(draw, rank, depth - 1)
    match draw.randrange(5):
        case 0:
            return f"({inner} + {_affine(draw, rank, depth - 1)})"
        case 1:
            return f"({inner} - {draw.randint(1, 9)})"
        case 2:
            return f"({inner}) * {draw.randint(1, 6)}"
        case 3:
            return f"({inner}) {draw.choice(['floordiv', 'mod'])} {draw.randint(1, 9)}"
        case _:
            return f"(({inner}) ceildiv {draw.randint(1, 6)})"


def isl(draw: Random) -> RandomLayout:
    """Cells by isl itself, which lists the pairs of the relation."""
    shape = _shape(draw, 3, (1, 2, 3, 4, 6))
    names = "ijk"[: len(shape)]
    outputs = []
    for _ in range(draw.randint(1, 2)):
        terms = [f"{draw.randint(1, 5)}{name}" for name in names if draw.random() < 0.8]
        inner = " + ".join([*terms, str(draw.randint(0, 3))])
        divisor = draw.randint(2, 5)
        outputs.append(draw.choice([inner, f"floor(({inner})/{divisor})", f"({inner}) mod {divisor}"]))
    bounds = " and ".join(f"0 <= {name} < {extent}" for name, extent in zip(names, shape, strict=True))
    text = f"{{ [{', '.join(names)}] -> [{', '.join(outputs)}] : {bounds} }}"
    relation = islpy.Map.read_from_str(islpy.Context(), text)
    found: dict[tuple[int, ...], list[int]] = {}

    def keep(point: Any) -> None:
        values = [
            int(point.get_coordinate_val(islpy.dim_type.set, k).to_str()) for k in range(len(shape) + len(outputs))
        ]
        found[tuple(values[: len(shape)])] = values[len(shape) :]

    relation.wrap().foreach_point(keep)
    cells = np.array([found[tuple(map(int, index))] for index in all_indices(shape)], dtype=np.int64)
    return RandomLayout("isl", text, shape, cells.reshape(-1, len(outputs)), says_shape=True)


def triton(draw: Random) -> RandomLayout:
    """Cells by XORing the basis vectors of the bits that are set."""
    rank = draw.randint(1, 3)
    names = ("register", "lane", "warp", "block")
    counts = [draw.randint(0, 3), draw.randint(1, 4), draw.randint(0, 2), draw.choice([0, 0, 1])]
    bases = [[[draw.choice([0, 1, 2, 4, 8, 3, 6, 17]) for _ in range(rank)] for _ in range(n)] for n in counts]
    entries = ", ".join(f"{name} = {vectors}" for name, vectors in zip(names, bases, strict=True))
    shape = tuple(1 << n for n in counts)
    rows = all_indices(shape)
    cells = np.zeros((len(rows), rank), dtype=np.int64)
    for position, vectors in enumerate(bases):
        for bit, vector in enumerate(vectors):
            cells ^= np.outer(rows[:, position] >> bit & 1, vector)
    return RandomLayout("triton", f"#ttg.linear<{{{entries}}}>", shape, cells, says_shape=True)


DRAWS: Mapping[str, Callable[[Random], RandomLayout]] = {
    "cute": cute,
    "strides": strides,
    "einops": einops_pattern,
    "onednn": onednn,
    "xla": xla,
    "mlir": mlir,
    "isl": isl,
    "triton": triton,
}
