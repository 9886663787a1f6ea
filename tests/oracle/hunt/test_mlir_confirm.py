"""Refutations of pairs are confirmed by LLVM's runs of the counterexample, accesses checked as they run."""

from __future__ import annotations

from collections import Counter

import pytest

from layoutproof.importers.mlir.validation import pair_of_texts
from layoutproof.verify.settings import Settings, within
from tests.oracle.hunt.mlir_hunt import BEGIN, END, Hunt, run_opt, written
from tests.oracle.mlir_confirm import confirmed
from tests.shares import one_in

COPY = """#set = affine_set<(d0) : (d0 - 1 >= 0, -d0 + 8 >= 0)>
func.func @f(%a: memref<8xf32>, %b: memref<10xf32>) {
  affine.for %i = 0 to 10 {
    affine.if #set(%i) {
      %x = affine.load %a[%i - 1] : memref<8xf32>
      affine.store %x, %b[%i] : memref<10xf32>
    }
  }
  return
}
"""
MAP = """#map = affine_map<(d0)[s0] -> ((((s0 * 2) ceildiv 4) * 5 + s0 * 42) ceildiv s0)>
func.func @f(%a: index, %b: index) -> index {
  %0 = affine.apply #map(%a)[%b]
  return %0 : index
}
"""
RANGE = """func.func @f(%a: memref<?xi32>, %n: index, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = arith.addi %k, %i : index
    %1 = arith.muli %0, %c4 : index
    %2 = memref.load %a[%1] : memref<?xi32>
    %3 = arith.muli %2, %2 : i32
    memref.store %3, %a[%1] : memref<?xi32>
  }
  return
}
"""
SUM = """func.func @f(%a: tensor<3x7xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
    iterator_types = ["parallel", "reduction"]} ins(%a : tensor<3x7xf32>) outs(%b : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.addf %in, %out : f32
    linalg.yield %1 : f32
  } -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""
# What `transform.structured.pack` makes of it with packed_sizes = [0, 4].
PACKED = """func.func @f(%a: tensor<3x7xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = tensor.empty() : tensor<3x2x4xf32>
  %zero = arith.constant 0.0 : f32
  %pack = tensor.pack %a padding_value(%zero : f32) inner_dims_pos = [1] inner_tiles = [4] into %0
    : tensor<3x7xf32> -> tensor<3x2x4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0)>],
    iterator_types = ["parallel", "reduction", "reduction"]} ins(%pack : tensor<3x2x4xf32>) outs(%b : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = arith.addf %in, %out : f32
    linalg.yield %2 : f32
  } -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
"""
FOUND = {
    "copy": (COPY, "-affine-data-copy-generate=generate-dma=false fast-mem-space=0 fast-mem-capacity=1"),
    "map": (MAP, "-affine-simplify-structures"),
    "range": (RANGE, "-scf-for-loop-range-folding"),
    "sum": (SUM, PACKED),
}


@one_in(7)
@pytest.mark.parametrize("name", FOUND)
def test_refuted(name: str) -> None:
    """The pass is refuted, and LLVM's runs differ on the counterexample."""
    text, after = FOUND[name]
    before = run_opt(text, ("-verify-diagnostics",))
    after = run_opt(text, (after,)) if after.startswith("-") else run_opt(after, ("-verify-diagnostics",))
    with within(Settings(allowed=frozenset())):
        found = pair_of_texts((("before.mlir", before), ("after.mlir", after)), ("f", "f")).compared()
    (first, *_) = found.verdicts
    assert found.status.value == "refuted" and first.counterexample is not None
    assert confirmed(before, after, first.counterexample)


def test_agreement() -> None:
    """Runs of a function and itself do not differ."""
    before = run_opt(SUM, ("-verify-diagnostics",))
    assert confirmed(before, before, {"inputs": {"a": {"shape": [3, 7], "fill": 0.5, "others": []}}}) == []


def test_figures() -> None:
    """The totals of a hunt add up, and go between the marks of the page."""
    hunt = Hunt(programs=9, unchanged=2, failed=Counter({"refused": 1}))
    hunt.verdicts.update({("refuted", "differs"): 1, ("time", "differs"): 2, ("proved", "agrees"): 3})
    page = written(f"before\n{BEGIN}\nold\n{END}\nafter\n", hunt)
    assert page.startswith("before\n") and page.endswith("\nafter\n") and "old" not in page
    assert "| findings: LLVM's runs of before and after differ | 3 |" in page
    assert "| confirmed: of these refuted here | 1 |" in page
    assert "| of these not decided | 2 |" in page
    assert written(page, hunt) == page
