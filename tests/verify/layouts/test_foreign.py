"""Layouts against the programs whose notations they are in: Triton and CUTLASS's pycute (the extra `layouts`), and
oneDNN (Debian and Ubuntu, apt install libdnnl-dev), which is asked to reorder arrays.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tests.random.layout_campaign import cells_of

from layoutproof.ir.expr import const
from layoutproof.ir.notations.cute import CuteLayout
from layoutproof.ir.notations.triton import HARDWARE, LinearLayout, blocked_layout
from layoutproof.verify.layouts.cute_algebra import composition
from layoutproof.verify.layouts.linear_algebra import invert
from layoutproof.verify.layouts.offsets import offset_map
from layoutproof.verify.maps.layout_text import read_layout

pytestmark = pytest.mark.campaign

TAGS = (
    "abcd acdb bacd cdba aBcd4b aBcd8b aBcd16b aBcd32b ABcd4a4b ABcd8a8b ABcd8b8a ABcd16a16b ABcd16b16a2b Abcd8a "
    "Acdb8a Acdb16a ABcd16b16a4b ABcd8b16a2b ABcd4b16a4b cdba adbc bcda"
).split()
REORDERS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dnnl.h>
static void reorder(const char *name, dnnl_format_tag_t tag, const dnnl_dim_t *dims) {
  dnnl_engine_t engine; dnnl_stream_t stream;
  dnnl_engine_create(&engine, dnnl_cpu, 0);
  dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
  dnnl_memory_desc_t plain, other;
  if (dnnl_memory_desc_init_by_tag(&plain, 4, dims, dnnl_f32, dnnl_abcd)) exit(2);
  if (dnnl_memory_desc_init_by_tag(&other, 4, dims, dnnl_f32, tag)) exit(3);
  size_t bytes = dnnl_memory_desc_get_size(&other);
  long count = dims[0] * dims[1] * dims[2] * dims[3];
  float *from = malloc(count * 4), *to = malloc(bytes);
  for (long k = 0; k < count; k++) from[k] = k + 1;
  memset(to, 0, bytes);
  dnnl_memory_t source, target;
  dnnl_memory_create(&source, &plain, engine, from);
  dnnl_memory_create(&target, &other, engine, to);
  dnnl_primitive_desc_t about; dnnl_primitive_t primitive;
  if (dnnl_reorder_primitive_desc_create(&about, &plain, engine, &other, engine, NULL)) exit(4);
  if (dnnl_primitive_create(&primitive, about)) exit(5);
  dnnl_exec_arg_t arguments[2] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}};
  if (dnnl_primitive_execute(primitive, stream, 2, arguments)) exit(6);
  dnnl_stream_wait(stream);
  printf("%s %ld %ld %ld %ld", name, (long)dims[0], (long)dims[1], (long)dims[2], (long)dims[3]);
  for (size_t k = 0; k < bytes / 4; k++) printf(" %d", (int)to[k]);
  printf("\\n");
}
int main(void) {
"""
BOXES = ((1, 1, 1, 1), (2, 3, 4, 5), (17, 5, 3, 2), (8, 33, 2, 3), (16, 32, 2, 2))


@pytest.fixture(scope="module")
def reordered(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """What oneDNN makes of arrays that hold their own positions: tag, extents, memory."""
    folder = tmp_path_factory.mktemp("onednn")
    boxes = "".join(f"  dnnl_dim_t d{k}[4] = {{{', '.join(map(str, box))}}};\n" for k, box in enumerate(BOXES))
    calls = "".join(
        f'  reorder("{tag}", dnnl_{tag}, d{k});\n' for tag in dict.fromkeys(TAGS) for k in range(len(BOXES))
    )
    source = folder / "reorders.c"
    source.write_text(REORDERS + boxes + calls + "  return 0;\n}\n", encoding="utf-8")
    binary: Path = folder / "reorders"
    subprocess.run(["cc", "-O1", str(source), "-o", str(binary), "-ldnnl"], check=True)
    out = subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout
    return [line.split() for line in out.splitlines()]


def test_onednn_puts_every_element_where_its_tag_says(reordered: list[list[str]]) -> None:
    """oneDNN reorders an array to a tag as the tag's map says, with zeros in the padding."""
    assert len(reordered) == len(set(TAGS)) * len(BOXES)
    for tag, *numbers in reordered:
        box, memory = tuple(map(int, numbers[:4])), np.array(numbers[4:], dtype=np.int64)
        shape = tuple(const(extent) for extent in box)
        offset = offset_map(read_layout(tag, shape).index_map, shape)
        places = cells_of(offset, box)[:, 0]
        expected = np.zeros(len(memory), dtype=np.int64)
        expected[places] = np.arange(1, len(places) + 1)
        assert np.array_equal(memory, expected), (tag, box)


def powers(draw: Random, total: int, rank: int) -> list[int]:
    """Powers of two whose product is `2**total`."""
    found = [1] * rank
    for _ in range(total):
        found[draw.randrange(rank)] *= 2
    return found


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


def test_triton_applies_and_inverts_linear_layouts() -> None:
    """Triton's own linear layouts have the same outputs, inverses, and opinion on which have one."""
    from triton._C.libtriton.linear_layout import LinearLayout as Theirs

    draw = Random("linear layouts of Triton")
    inverted = 0
    for layout, bases in linear_layouts(draw, 1500):
        names = [f"dim{axis}" for axis in range(len(layout.extents))]
        theirs = Theirs.from_bases(list(zip(HARDWARE, bases, strict=True)), names, list(layout.extents), False)
        for _ in range(8):
            index = [draw.randrange(size) for size in layout.shape]
            found = theirs.apply(dict(zip(HARDWARE, index, strict=True)))
            expected = tuple(found[name] for name in names)
            assert layout(index) == expected == layout.index_map().evaluate(index)
        if not theirs.is_invertible():
            with pytest.raises(ValueError, match="the layout is not"):
                invert(layout)
            continue
        inverted += 1
        back, ours = theirs.invert(), invert(layout)
        for _ in range(8):
            index = [draw.randrange(extent) for extent in layout.extents]
            found = back.apply(dict(zip(names, index, strict=True)))
            assert ours(index) == tuple(found[name] for name in HARDWARE)
    assert inverted > 300


def test_triton_has_the_same_blocked_layouts() -> None:
    """The bases of a blocked layout on a shape are those that Triton converts it to."""
    from triton._C.libtriton import gluon_ir, ir
    from triton.experimental.gluon import language

    context = ir.context()
    ir.load_dialects(context)
    builder = gluon_ir.GluonOpBuilder(context)
    draw = Random("blocked layouts of Triton")
    for _ in range(1500):
        rank = draw.randint(1, 3)
        order = draw.sample(range(rank), rank)
        lists = {
            "sizePerThread": powers(draw, draw.randint(0, 4), rank),
            "threadsPerWarp": powers(draw, 5, rank),
            "warpsPerCTA": powers(draw, draw.randint(0, 3), rank),
            "order": order,
        }
        shape = [1 << draw.randint(0, 6) for _ in range(rank)]
        theirs = builder.to_linear_layout(language.BlockedLayout(*lists.values())._to_ir(builder), shape)
        ours = blocked_layout(lists, shape)
        for name, bases in (("register", theirs.reg_bases), ("lane", theirs.lane_bases), ("warp", theirs.warp_bases)):
            assert [list(basis) for basis in ours.bases(name)] == [list(basis) for basis in bases], (lists, shape)


def test_pycute_composes_alike() -> None:
    """Where both compose two layouts and B stays inside A, they do it alike; pycute checks less, and may be wrong."""
    import pycute

    draw = Random("compositions of pycute")
    both = wrong = 0
    for _ in range(3000):
        a, b = (_plain(draw) for _ in range(2))
        try:
            theirs = pycute.composition(pycute.Layout(a.shape, a.stride), pycute.Layout(b.shape, b.stride))
        except AssertionError:
            continue
        values = [a(b(index)) for index in range(b.size)]
        # pycute drops coordinates where it divides by what does not divide: 8 of B become 6.
        right = theirs.size() == b.size and [theirs(index) for index in range(b.size)] == values
        ours = composition(a, b)
        if ours.layout is not None:
            both += 1
            assert [ours.layout(index) for index in range(b.size)] == values
        if len(ours.conditions) == 2 and ours.layout is None:
            assert not right
        wrong += not right
    assert both > 300 and wrong > 0


def _plain(draw: Random) -> CuteLayout:
    count = draw.randint(1, 3)
    shape = tuple(draw.choice([1, 2, 3, 4, 6, 8]) for _ in range(count))
    stride = [0] * count
    step = 1
    for axis in draw.sample(range(count), count):
        stride[axis] = step
        step *= shape[axis]
    return CuteLayout(shape, tuple(stride))
