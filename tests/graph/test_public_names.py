"""The public names of `layoutproof.graph`: all there, all documented, and loaded when they are asked for."""

from __future__ import annotations

import operator
import re
import subprocess
import sys
from importlib import import_module

import pytest
from tests.tree import ROOT

from layoutproof import graph


@pytest.mark.parametrize("name", graph.__all__)
def test_names_are_there_and_documented(name: str) -> None:
    """Each public name leads to an object, also after its module was loaded by itself, and stands on the page of the
    Python API.
    """
    module, attribute = graph._HOME[name]
    home = import_module(f"layoutproof.graph.{module}")
    assert getattr(graph, name) is getattr(home, attribute)
    text = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert re.search(rf"layoutproof\.graph\.{name}\b", text)


def test_other_names_are_none() -> None:
    """A name that is not public is no attribute, and none is called as a module beside it."""
    with pytest.raises(AttributeError, match="nothing"):
        operator.attrgetter("nothing")(graph)
    modules = {path.stem for path in (ROOT / "graph").glob("*.py")} | {
        path.name for path in (ROOT / "graph").iterdir() if path.is_dir()
    }
    assert modules.isdisjoint(graph.__all__)
    assert set(graph.__all__) == set(graph._HOME) <= set(dir(graph))


def test_nothing_heavy_is_loaded() -> None:
    """Loading the package loads no solver and no numpy; models need `onnx` only when one is read."""
    program = (
        "import sys, layoutproof.graph, layoutproof.importers.onnx; print({'z3', 'islpy', 'numpy', 'onnx'} & "
        "set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
