"""What docs/wild-mlir.md says of mlir-opt: LLVM's own runs differ, and the pair is refuted. Runs where it is."""

from __future__ import annotations

import re

import pytest

from layoutproof.importers.mlir.validation import pair_of_texts
from layoutproof.verify.settings import Settings, within
from tests.oracle.hunt.mlir_hunt import run_opt
from tests.oracle.hunt.mlir_reduce import runs_differ
from tests.shares import one_in
from tests.tree import ROOT

PAGE = (ROOT / "docs" / "wild-mlir.md").read_text(encoding="utf-8")
FOUND = re.findall(r"^Pass: `(.*?)`\n.*?:caption: wild/(\w+)\.mlir\n\n(.*?)```", PAGE, flags=re.MULTILINE | re.DOTALL)


@one_in(35)
@pytest.mark.parametrize(("passes", "name", "text"), FOUND, ids=[name for _, name, _ in FOUND])
def test_finding(passes: str, name: str, text: str) -> None:
    """The runs of the function before and after the pass differ, and so says the verdict."""
    assert runs_differ(text, (passes,))
    files = ((f"{name}.mlir", text), ("after.mlir", run_opt(text, (passes,))))
    with within(Settings(allowed=frozenset())):
        assert pair_of_texts(files, ("f", "f")).compared().status.value == "refuted"


def test_there_are_findings() -> None:
    """The page has the functions that the test above runs."""
    assert len(FOUND) == PAGE.count(":caption: wild/") > 8
