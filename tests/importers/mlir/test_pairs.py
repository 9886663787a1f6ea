"""Functions before and after passes of mlir-opt, and mutants of them: each has the verdict that a run of both gave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.tree import ROOT

from layoutproof.importers.mlir.validation import compare_files
from layoutproof.verify.settings import Settings, within

DATA = ROOT / "tests" / "data" / "mlir"
PAIRS = json.loads((DATA / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: str(pair["id"]))
def test_verdict(pair: dict[str, str]) -> None:
    """The verdict is the wanted one, bit for bit; a refutation has an input."""
    paths = [Path(DATA / f"{pair['id']}.{when}.mlir") for when in ("before", "after")]
    with within(Settings(allowed=frozenset())):
        ((_, found),) = compare_files(paths[0], paths[1])
    assert found.status.value == pair["wanted"], found.verdicts[0].reason
    assert (found.verdicts[0].counterexample is not None) == (pair["wanted"] == "refuted")
