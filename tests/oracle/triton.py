"""Triton's layouts as its own compiler has them: linear ones, and those that it converts to linear ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Any

from layoutproof.ir.expr import Expr, const
from layoutproof.ir.notations.notation import Context
from layoutproof.ir.notations.triton import HARDWARE, LinearLayout
from layoutproof.ir.notations.triton_encodings import parse_triton
from layoutproof.verify.maps.layout_text import read_layout

POINTS = 6


def shape_of(extents: Sequence[int]) -> tuple[Expr, ...]:
    """Extents as a shape."""
    return tuple(const(extent) for extent in extents)


def draw_points(draw: Random, shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Some indices of a shape."""
    return [tuple(draw.randrange(extent) for extent in shape) for _ in range(POINTS)]


def linear_layouts(draw: Random, count: int) -> Iterator[tuple[LinearLayout, list[list[list[int]]]]]:
    """Random layouts with their bases, about half of them invertible."""
    for _ in range(count):
        extents = [1 << draw.randint(1, 3) for _ in range(draw.randint(1, 3))]
        axes = range(len(extents))
        vectors = [
            [1 << bit if axis == other else 0 for other in axes]
            for axis in axes
            for bit in range(extents[axis].bit_length() - 1)
        ]
        draw.shuffle(vectors)
        if draw.random() < 0.4:
            vectors = [[draw.randrange(extent) for extent in extents] for _ in range(draw.randint(1, 8))]
        for _ in range(4 if len(vectors) > 1 else 0):
            a, b = draw.sample(range(len(vectors)), 2)
            vectors[a] = [x ^ y for x, y in zip(vectors[a], vectors[b], strict=True)]
        cuts = [0, *sorted(draw.randint(0, len(vectors)) for _ in range(3)), len(vectors)]
        bases = [vectors[a:b] for a, b in pairwise(cuts)]
        inputs = tuple((name, tuple(map(tuple, part))) for name, part in zip(HARDWARE, bases, strict=True))
        yield LinearLayout(inputs, tuple(extents)), bases


def by_triton(draw: Random, count: int) -> int:
    """Linear layouts, read from the text that Triton's own layout prints to."""
    from triton._C.libtriton.linear_layout import LinearLayout as Theirs

    for layout, bases in linear_layouts(draw, count):
        names = [f"dim{axis}" for axis in range(len(layout.extents))]
        theirs = Theirs.from_bases(list(zip(HARDWARE, bases, strict=True)), names, list(layout.extents), False)
        read = read_layout(str(layout)).index_map if any(bases) else layout.index_map()
        for point in draw_points(draw, layout.shape):
            found = theirs.apply(dict(zip(HARDWARE, point, strict=True)))
            assert read.evaluate(point) == tuple(found[name] for name in names), layout
    return count


def by_triton_encodings(draw: Random, count: int) -> int:
    """Blocked, matrix, factor, slice and shared layouts on random tensors, as Triton converts them itself. Before its
    release 3.9 a blocked layout had registers that hold an element again; the tool follows 3.9.
    """
    import triton
    from triton._C.libtriton import gluon_ir, ir

    is_old = tuple(map(int, triton.__version__.split(".")[:2])) < (3, 9)
    context = ir.context()
    ir.load_dialects(context)
    builder = gluon_ir.GluonOpBuilder(context)
    compared = 0
    while compared < count:
        text, theirs, shape = draw.choice([_blocked, _matrix, _factor, _sliced, _shared])(draw)
        try:
            converted = builder.to_linear_layout(theirs._to_ir(builder), shape)
        except (AssertionError, RuntimeError, ValueError):
            continue  # what Triton itself does not convert
        compared += 1
        ours = parse_triton(text, Context(shape_of(shape)))
        parts = {"register": "reg_bases", "lane": "lane_bases", "warp": "warp_bases", "offset": "offset_bases"}
        for name in ours.names:
            expected = getattr(converted, parts[name]) if name in parts else []
            if is_old and name == "register" and "#ttg.blocked" in text:
                expected = [basis for basis in expected if any(basis)]
            assert [list(basis) for basis in ours.bases(name)] == [list(basis) for basis in expected], (text, shape)
    return compared


Encoding = tuple[str, Any, list[int]]


def powers(draw: Random, total: int, rank: int) -> list[int]:
    """Powers of two whose product is `2**total`."""
    found = [1] * rank
    for _ in range(total):
        found[draw.randrange(rank)] *= 2
    return found


def _tensor(draw: Random, rank: int) -> list[int]:
    return [1 << draw.randint(0, 7) for _ in range(rank)]


def _blocked(draw: Random, rank: int | None = None) -> Encoding:
    from triton.experimental.gluon import language

    rank = draw.randint(1, 3) if rank is None else rank
    order = draw.sample(range(rank), rank)
    sizes, threads, warps = powers(draw, draw.randint(0, 4), rank), powers(draw, 5, rank), powers(draw, 2, rank)
    text = (
        f"#ttg.blocked<{{sizePerThread = {sizes}, threadsPerWarp = {threads}, warpsPerCTA = {warps}, order = {order}}}>"
    )
    return text, language.BlockedLayout(sizes, threads, warps, order), _tensor(draw, rank)


def _matrix(draw: Random, version: int | None = None) -> Encoding:
    from triton.experimental.gluon import language

    version = draw.choice([2, 3]) if version is None else version
    shape = [16, 8] if version == 2 else [16, draw.choice([8, 16, 32, 64, 128]), 16]
    warps = [draw.choice([1, 2, 4]) if version == 2 else 4, draw.choice([1, 2, 4])]
    text = (
        f"#ttg.nvidia_mma<{{versionMajor = {version}, versionMinor = 0, warpsPerCTA = {warps}, instrShape = {shape}}}>"
    )
    return text, language.NVMMADistributedLayout([version, 0], warps, shape), _tensor(draw, 2)


def _factor(draw: Random) -> Encoding:
    from triton.experimental.gluon import language

    version, width = draw.choice([2, 3]), draw.choice([1, 2, 4, 8])
    which = draw.choice([0, 1]) if version == 2 else 0
    text, parent, shape = _matrix(draw, version)
    text = f"#ttg.dot_op<{{opIdx = {which}, parent = {text}, kWidth = {width}}}>"
    return text, language.DotOperandLayout(which, parent, width), shape


def _sliced(draw: Random) -> Encoding:
    from triton.experimental.gluon import language

    kind = draw.randrange(3)
    drawn = _blocked(draw, draw.randint(2, 3)) if kind == 0 else _matrix(draw) if kind == 1 else _factor(draw)
    text, parent, shape = drawn
    axis = draw.randrange(len(shape))
    text = f"#ttg.slice<{{dim = {axis}, parent = {text}}}>"
    return text, language.SliceLayout(axis, parent), [*shape[:axis], *shape[axis + 1 :]]


def _shared(draw: Random) -> Encoding:
    from triton.experimental.gluon import language

    rank = draw.randint(1, 3)
    order = draw.sample(range(rank), rank)
    vec, per, most = (1 << draw.randint(0, 4) for _ in range(3))
    text = f"#ttg.swizzled_shared<{{vec = {vec}, perPhase = {per}, maxPhase = {most}, order = {order}}}>"
    return text, language.SwizzledSharedLayout(vec, per, most, order), _tensor(draw, rank)
