"""Layouts as other systems place them: `python -m tests.oracle.layouts --count 10000`, by MLIR's `mlir-opt`, oneDNN,
Triton, CUTLASS's pycute, TVM, numpy and, where it is installed, torch.

Each function draws a number of random layouts, asks its system where some indices go, and compares with the map that is
read from the same text. It returns how many were compared, and raises AssertionError at the first difference.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from math import prod
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter, time_ns
from typing import Any

import numpy as np

from layoutproof.importers.mlir.mlir_opt import find_mlir_opt
from layoutproof.ir.notations.cute import CuteLayout, parse_cute
from layoutproof.verify.layouts.cute_algebra import complement, cosize
from layoutproof.verify.layouts.offsets import offset_map
from layoutproof.verify.maps.layout_text import read_layout
from tests.oracle.triton import by_triton, by_triton_encodings, draw_points, shape_of
from tests.random.layout_campaign import cells_of
from tests.random.layouts import RandomLayout, cute, mlir

BATCH = 250


def batches(count: int) -> Iterator[int]:
    """The sizes of the batches that make up a number."""
    for start in range(0, count, BATCH):
        yield min(BATCH, count - start)


# MLIR


def by_mlir(draw: Random, count: int) -> int:
    """Affine maps at some indices, folded by `mlir-opt`; and strided memrefs, in which it finds elements."""
    for size in batches(count):
        maps = [(layout, draw_points(draw, layout.shape)) for layout in (mlir(draw) for _ in range(size))]
        strided = [strided_memref(draw) for _ in range(size)]
        text = "".join(_applied(k, layout, points) for k, (layout, points) in enumerate(maps))
        text += "".join(_element(k, *each) for k, each in enumerate(strided))
        constants = _folded(text)
        for k, (layout, points) in enumerate(maps):
            found = read_layout(layout.text, shape_of(layout.shape)).index_map
            ours = [value for point in points for value in found.evaluate(point)]
            assert ours == constants[f"f{k}"], layout
        for k, (written, point, _) in enumerate(strided):
            assert list(read_layout(written).index_map.evaluate(point)) == constants[f"g{k}"], written
    return count


def strided_memref(draw: Random) -> tuple[str, tuple[int, ...], str]:
    """A type, an index, and the type of the single element there without its offset, which `mlir-opt` is to infer."""
    shape = tuple(draw.choice([1, 2, 3, 5, 8]) for _ in range(draw.randint(1, 4)))
    strides = tuple(draw.choice([1, 2, 3, 7, 16, 40]) for _ in shape)
    point = tuple(draw.randrange(extent) for extent in shape)
    offset = draw.choice([0, 0, 3, 11])
    dims = "x".join(map(str, shape))
    written = f"memref<{dims}xf32, strided<{list(strides)}, offset: {offset}>>"
    return written, point, f"memref<{'x'.join('1' * len(shape))}xf32, strided<{list(strides)}, offset: ?>>"


def _applied(number: int, layout: RandomLayout, points: Sequence[tuple[int, ...]]) -> str:
    match = re.fullmatch(r"affine_map<(\(.*?\)) -> \((.*)\)>", layout.text)
    assert match is not None
    lines, names = [], []
    results = [f"affine_map<{match[1]} -> ({result})>" for result in match[2].split(", ")]
    for row, point in enumerate(points):
        for axis, value in enumerate(point):
            lines.append(f"%p{row}_{axis} = arith.constant {value} : index")
        operands = ", ".join(f"%p{row}_{axis}" for axis in range(len(point)))
        for column, result in enumerate(results):
            names.append(f"%r{row}_{column}")
            lines.append(f"{names[-1]} = affine.apply {result}({operands})")
    return _function(f"f{number}", "", lines, names)


def _function(name: str, arguments: str, lines: Sequence[str], results: Sequence[str]) -> str:
    types = ", ".join("index" for _ in results)
    body = "\n  ".join([*lines, f"return {', '.join(results)} : {types}"])
    return f"func.func @{name}({arguments}) -> ({types}) {{\n  {body}\n}}\n"


def _element(number: int, written: str, point: tuple[int, ...], element: str) -> str:
    """The offset of one element. Its indices are values, so that the types tell nothing of the answer."""
    rank = len(point)
    lines = [f"%p{axis} = arith.constant {value} : index" for axis, value in enumerate(point)]
    places, ones = ", ".join(f"%p{axis}" for axis in range(rank)), ", ".join("1" * rank)
    lines.append(f"%v = memref.subview %m[{places}] [{ones}] [{ones}] : {written} to {element}")
    parts = "memref<f32>, index" + ", index" * (2 * rank)
    lines.append(f"%b, %o, %s:{rank}, %t:{rank} = memref.extract_strided_metadata %v : {element} -> {parts}")
    return _function(f"g{number}", f"%m: {written}", lines, ["%o"])


_PASSES = ("-expand-strided-metadata", "-lower-affine", "-canonicalize")


def _folded(text: str) -> dict[str, list[int]]:
    """The constants that each function of a module returns after folding."""
    done = subprocess.run([find_mlir_opt(), *_PASSES], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    found: dict[str, list[int]] = {}
    for name, body in re.findall(r"func\.func @(\w+)\(.*?\{\n(.*?)\n  \}", done.stdout, re.DOTALL):
        values = {key: int(value) for key, value in re.findall(r"(%\S+) = arith\.constant (-?\d+) : index", body)}
        returned = re.search(r"return (.*?) :", body)
        assert returned is not None
        found[name] = [values[key] for key in returned[1].split(", ")]
    return found


# oneDNN

# Threads that wait for each other take longer than such small arrays.
_ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
HEADER = Path("/usr/include/oneapi/dnnl/dnnl_types.h")
_PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dnnl.h>
static const struct { const char *name; dnnl_format_tag_t tag; } tags[] = {
@TAGS@
};
int main(void) {
  dnnl_engine_t engine; dnnl_stream_t stream;
  static const dnnl_format_tag_t plain_tags[] = {dnnl_a, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};
  dnnl_engine_create(&engine, dnnl_cpu, 0);
  dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
  int number, rank;
  while (scanf("%d %d", &number, &rank) == 2) {
    dnnl_dim_t dims[12]; long count = 1;
    for (int k = 0; k < rank; k++) { long d; if (scanf("%ld", &d) != 1) return 2; dims[k] = d; count *= d; }
    dnnl_memory_desc_t plain, other;
    if (dnnl_memory_desc_init_by_tag(&plain, rank, dims, dnnl_f32, plain_tags[rank])) return 3;
    if (dnnl_memory_desc_init_by_tag(&other, rank, dims, dnnl_f32, tags[number].tag)) { printf("none\\n"); continue; }
    size_t bytes = dnnl_memory_desc_get_size(&other);
    float *from = malloc(count * 4), *to = calloc(1, bytes + 4);
    for (long k = 0; k < count; k++) from[k] = k + 1;
    dnnl_memory_t source, target;
    dnnl_memory_create(&source, &plain, engine, from);
    dnnl_memory_create(&target, &other, engine, to);
    dnnl_primitive_desc_t about; dnnl_primitive_t primitive;
    if (dnnl_reorder_primitive_desc_create(&about, &plain, engine, &other, engine, NULL)) { printf("none\\n"); }
    else {
      dnnl_primitive_create(&primitive, about);
      dnnl_exec_arg_t arguments[2] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}};
      if (dnnl_primitive_execute(primitive, stream, 2, arguments)) return 6;
      dnnl_stream_wait(stream);
      printf("%zu", bytes / 4);
      for (size_t k = 0; k < bytes / 4; k++) if (to[k] != 0) printf(" %zu %d", k, (int)to[k]);
      printf("\\n");
      dnnl_primitive_destroy(primitive); dnnl_primitive_desc_destroy(about);
    }
    dnnl_memory_destroy(source); dnnl_memory_destroy(target); free(from); free(to);
  }
  return 0;
}
"""


def onednn_tags() -> list[str]:
    """The tags by letters that the installed library names, of up to six dimensions and two levels a dimension."""
    found = re.findall(r"\bdnnl_([a-fA-F]+(?:[0-9]+[a-f])*)\b(?=,)", HEADER.read_text(encoding="utf-8"))
    return sorted({tag for tag in found if sorted(set(tag.lower()) & set("abcdef")) == sorted(_outer(tag).lower())})


def _outer(tag: str) -> str:
    match = re.match(r"[a-fA-F]+", tag)
    return match[0] if match is not None else ""


def by_onednn(draw: Random, count: int) -> int:
    """Tags of oneDNN's own list on random extents: an array that holds its positions is reordered to each."""
    tags = onednn_tags()
    with TemporaryDirectory() as folder:
        source, binary = Path(folder) / "reorders.c", Path(folder) / "reorders"
        rows = ",\n".join(f'{{"{tag}", dnnl_{tag}}}' for tag in tags)
        source.write_text(_PROGRAM.replace("@TAGS@", rows), encoding="utf-8")
        subprocess.run(["cc", "-O1", str(source), "-o", str(binary), "-ldnnl"], check=True)
        compared = 0
        while compared < count:
            drawn = [_drawn_tag(draw, tags) for _ in range(BATCH)]
            asked = "".join(f"{tags.index(tag)} {len(box)} {' '.join(map(str, box))}\n" for tag, box in drawn)
            out = subprocess.run(
                [str(binary)], input=asked, check=True, capture_output=True, text=True, env=_ONE_THREAD
            ).stdout
            for (tag, box), line in zip(drawn, out.splitlines(), strict=True):
                compared += _compare_memory(tag, box, line)
    return compared


def _drawn_tag(draw: Random, tags: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    tag = draw.choice(tags)
    rank = len(_outer(tag))
    largest = {1: 40, 2: 20, 3: 9, 4: 6, 5: 4, 6: 3}[rank]
    return tag, tuple(draw.randint(1, largest) for _ in range(rank))


def _compare_memory(tag: str, box: tuple[int, ...], line: str) -> int:
    """1 where the library's memory is the map's; 0 where it does not reorder to this tag."""
    if line == "none":
        return 0
    size, *pairs = map(int, line.split())
    shape = shape_of(box)
    places = cells_of(offset_map(read_layout(tag, shape).index_map, shape), box)[:, 0]
    memory = np.zeros(size, dtype=np.int64)
    memory[pairs[::2]] = pairs[1::2]
    expected = np.zeros(size, dtype=np.int64)
    expected[places] = np.arange(1, len(places) + 1)
    assert np.array_equal(memory, expected), (tag, box)
    return 1


# CuTe


def by_pycute(draw: Random, count: int) -> int:
    """Layouts at every coordinate by `pycute`, whose strides are those of the text."""
    import pycute

    for _ in range(count):
        layout = cute(draw)
        plain = layout.text.rpartition(" o ")[2]
        parsed = parse_cute(plain)
        theirs = pycute.Layout(parsed.shape, parsed.stride)
        offsets = [theirs(index) for index in range(parsed.size)]
        ours = read_layout(plain, shape_of([parsed.size])).index_map
        assert cells_of(ours, (parsed.size,))[:, 0].tolist() == offsets, plain
    return count


def by_pycute_inverse(draw: Random, count: int) -> int:
    """Left inverses by `pycute` lead back from every offset where each stride divides the next: its domain."""
    return sum(1 for _, _, wrong in left_inverses(draw, count) if wrong is None)


def left_inverses(draw: Random, count: int) -> Iterator[tuple[CuteLayout, str, int | None]]:
    """So many injective layouts with the left inverse that `pycute` has of each, and a coordinate that it does not lead
    back to. Raises AssertionError where that happens although the layout has a complement.
    """
    import pycute

    found = 0
    while found < count:
        layout = parse_cute(cute(draw).text.rpartition(" o ")[2])
        offsets = [layout(index) for index in range(layout.size)]
        theirs = pycute.Layout(layout.shape, layout.stride)
        if len(set(offsets)) < layout.size or _is_refused(pycute.left_inverse, theirs):
            continue
        found += 1
        inverse = pycute.left_inverse(theirs)
        wrong = next((index for index, offset in enumerate(offsets) if inverse(offset) != index), None)
        assert wrong is None or complement(layout, cosize(layout)).layout is None, layout
        yield layout, str(inverse), wrong


def _is_refused(operation: Callable[[Any], Any], operand: Any) -> bool:
    try:
        operation(operand)
    except AssertionError:
        return True
    return False


# TVM


def by_tvm(draw: Random, count: int) -> int:
    """Index maps by `IndexMap.map_indices`, and layout strings by its bijective layouts, half of each."""
    for k in range(count):
        (_tvm_map if k % 2 else _tvm_string)(draw)
    return count


def _tvm_map(draw: Random) -> None:
    from tvm.tirx import IndexMap

    shape = tuple(draw.choice([1, 2, 3, 5, 8, 12]) for _ in range(draw.randint(1, 3)))
    names = "ijk"[: len(shape)]
    outputs = []
    for _ in range(draw.randint(1, 3)):
        name, size = draw.choice(names), draw.randint(1, 5)
        outputs.append(draw.choice([f"{name}//{size}", f"{name}%{size}", f"{name}*{size} + {draw.choice(names)}%3"]))
    text = f"lambda {', '.join(names)}: [{', '.join(outputs)}]"
    theirs, ours = IndexMap.from_func(eval(text)), read_layout(text, shape_of(shape)).index_map
    for point in draw_points(draw, shape):
        assert tuple(map(int, theirs.map_indices(list(point)))) == ours.evaluate(point), (text, point)


def _tvm_string(draw: Random) -> None:
    from tvm.s_tir import sbijective_layout

    letters = "NCHWD"[: draw.randint(1, 5)]
    order = draw.sample(letters, len(letters))
    blocked = draw.sample(letters, draw.randint(0, min(2, len(letters))))
    sizes = {letter: draw.choice([2, 4, 8]) for letter in blocked}
    target = "".join(order) + "".join(f"{sizes[letter]}{letter.lower()}" for letter in blocked)
    shape = tuple(sizes.get(letter, 1) * draw.randint(1, 4) for letter in letters)
    theirs = sbijective_layout(letters, target)
    ours = read_layout(f"{letters}->{target}", shape_of(shape)).index_map
    for point in draw_points(draw, shape):
        assert tuple(map(int, theirs.forward_index(list(point)))) == ours.evaluate(point), (letters, target, point)


# Arrays


def by_numpy(draw: Random, count: int) -> int:
    """Views of arrays by their own strides in bytes: each element is its position in memory."""
    for _ in range(count):
        extents = _view_extents(draw)
        item = draw.choice([np.int16, np.int32, np.int64])
        array = np.arange(prod(extents), dtype=item).reshape(extents)
        if draw.random() < 0.5:
            array = np.asfortranarray(array)
        start, memory = array.__array_interface__["data"][0], array.ravel(order="K")
        view = array.transpose(draw.sample(range(array.ndim), array.ndim))
        view = view[tuple(slice(draw.randrange(n), None, draw.choice([1, 1, 2, 3, -1, -2])) for n in view.shape)]
        if draw.random() < 0.3:
            view = np.broadcast_to(view, (draw.randint(1, 3), *view.shape))
        offset = view.__array_interface__["data"][0] - start
        text = f"shape={view.shape}, strides={view.strides}, offset={offset}, itemsize={view.itemsize}"
        ours = read_layout(text).index_map
        for point in draw_points(draw, view.shape):
            (position,) = ours.evaluate(point)
            assert memory[position] == view[point], (text, point)
    return count


def by_torch(draw: Random, count: int) -> int:
    """Views of tensors by their own strides, and tensors of a memory format by its name."""
    torch = import_module("torch")
    for k in range(count):
        if k % 2:
            view = torch.arange(prod(extents := _view_extents(draw))).reshape(extents)
            view = view.permute(draw.sample(range(len(extents)), len(extents)))
            for axis, extent in enumerate(view.shape):
                first = draw.randrange(extent)
                view = view.narrow(axis, first, draw.randint(1, extent - first))
            if draw.random() < 0.3:
                view = view.expand(draw.randint(1, 3), *view.shape)
            text = f"size={view.size()}, stride={view.stride()}, storage_offset={view.storage_offset()}"
        else:
            rank, name = draw.choice([(4, "channels_last"), (5, "channels_last_3d"), (3, "contiguous_format")])
            extents = tuple(draw.randint(1, 4) for _ in range(rank))
            view = torch.arange(prod(extents)).reshape(extents).contiguous(memory_format=getattr(torch, name))
            text = f"size={view.size()}, memory_format=torch.{name}"
        memory = view.new_empty(0).set_(view.untyped_storage())
        ours = read_layout(text).index_map
        for point in draw_points(draw, view.shape):
            (position,) = ours.evaluate(point)
            assert int(memory[position]) == int(view[point]), (text, point)
    return count


def _view_extents(draw: Random) -> tuple[int, ...]:
    return tuple(draw.choice([1, 2, 3, 5, 8]) for _ in range(draw.randint(1, 4)))


ORACLES: Mapping[str, Callable[[Random, int], int]] = {
    "mlir-opt": by_mlir,
    "oneDNN": by_onednn,
    "Triton": by_triton,
    "Triton encodings": by_triton_encodings,
    "pycute": by_pycute,
    "pycute inverses": by_pycute_inverse,
    "TVM": by_tvm,
    "numpy": by_numpy,
    "torch": by_torch,
}


def is_missing(name: str) -> bool:
    """Whether an oracle is not here: torch is too large to be asked for."""
    return name == "torch" and find_spec("torch") is None


def main() -> int:
    """Compare as many layouts with each system as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="layouts for each system")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="another seed every time")
    parser.add_argument("--oracle", choices=list(ORACLES), action="append")
    given = parser.parse_args()
    seed = time_ns() % (1 << 40) if given.fresh else given.seed
    print(f"seed {seed}", flush=True)
    for name in given.oracle or ORACLES:
        if is_missing(name):
            print(f"{name:16} is not installed", flush=True)
            continue
        start = perf_counter()
        compared = ORACLES[name](Random(f"{name} {seed}"), given.count)
        print(f"{name:16} {compared} layouts, 0 differences, {perf_counter() - start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
