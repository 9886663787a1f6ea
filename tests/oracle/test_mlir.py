"""Random functions of MLIR do here what LLVM's own code for them does. Runs where mlir-opt and mlir-cpu-runner are."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from layoutproof.importers.mlir.mlir_opt import find_mlir_opt, run_passes
from layoutproof.importers.mlir.validation import pair_of_texts
from layoutproof.verify.settings import Settings, within
from tests.oracle.mlir_campaign import compare_batch
from tests.shares import one_in
from tests.tree import ROOT


@one_in(4)
@pytest.mark.parametrize("seed", [1, 2])
def test_random_functions(seed: int) -> None:
    """Twenty functions in a batch end with the same memories, bit for bit."""
    assert compare_batch(seed) == []


def test_tutorial(tmp_path: Path) -> None:
    """The pipeline of the tutorial gives what the page shows, and each of its passes is proved."""
    page = (ROOT / "docs" / "tutorial" / "mlir.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r":caption: (\w+\.mlir)\n\n(.*?)```", page, flags=re.DOTALL))
    (passes,) = re.findall(r"--mlir-opt '(.*?)'", page)
    path = tmp_path / "smooth.mlir"
    path.write_text(shown["smooth.mlir"], encoding="utf-8")
    dumps = run_passes(find_mlir_opt(), path, passes)
    assert dumps[-1].text.strip() == shown["smooth_tiled.mlir"].strip()
    for before, after in itertools.pairwise(dumps):
        files = (("before.mlir", before.text), ("after.mlir", after.text))
        with within(Settings(allowed=frozenset())):
            assert pair_of_texts(files, ("smooth", "smooth")).compared().status.value == "proved"
