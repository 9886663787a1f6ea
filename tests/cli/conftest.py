"""What the command line's tests share."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.calling import Caller

from layoutproof.graph.graph_files import save_graph
from layoutproof.graph.model.graph import Graph


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Caller:
    """A function that runs the command line in this process: without the default limit of time, which takes others."""
    monkeypatch.setattr("layoutproof.cli.gate_run.SECONDS", None)
    return Caller(capsys)


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Graph], str]:
    """A function that writes a graph into the folder of the test, which is current, and says how its file is called."""
    monkeypatch.chdir(tmp_path)

    def save(graph: Graph) -> str:
        save_graph(graph, f"{graph.name}.py")
        return f"{graph.name}.py"

    return save
