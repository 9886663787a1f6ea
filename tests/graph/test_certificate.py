"""The certificate of a planned graph: written, read back from its file alone, and refused where anything in it was changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.graph.nets import NCHW4C, filled

from layoutproof.cli.main import main
from layoutproof.graph import certificate
from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.certificate import certify_graph, read_any, save_graph_certificate
from layoutproof.graph.planning.ends import FREE
from layoutproof.graph.planning.plan import Plan, plan
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.certificate.reading import Kind
from layoutproof.verify.certificate.sealing import sealed, to_bytes
from layoutproof.verify.verdict import Status


@cache
def made() -> Plan:
    """The plan of a small graph with padding."""
    g = GraphBuilder("net")
    x = g.input("x", (1, 3, 3, 2))
    kept = (NCHW4C, 0.0)
    return plan(g.build(g.multiply(g.relu(x), g.constant(filled(1, 3, 3, 2), "b"))), {"relu": {"X": kept, "Y": kept}})


@cache
def text() -> str:
    """The text of its certificate."""
    return json.dumps(certify_graph(made().rewrite, made().interface))


def test_a_certificate_is_read_back_and_proved(tmp_path: Path) -> None:
    """What was claimed of a planned graph is proved again from the file alone; what the file does not state is listed."""
    found, path = made(), tmp_path / "net.lpcert.json"
    save_graph_certificate(path, found.rewrite, found.interface)
    reading = read_any(path)
    assert (reading.kind, reading.status, reading.problems) == (Kind.CERTIFICATE, Status.PROVED, [])
    assert reading.claims > len(found.verdicts) and reading.questions
    assert any(line.startswith("not stated: how the old graph came about") for line in reading.exceptions)


def test_a_changed_interface_is_certified(tmp_path: Path) -> None:
    """A graph whose ends were freed is certified for the way in which it is called."""
    g = GraphBuilder("freed")
    graph = g.build(g.relu(g.input("x", (1, 4, 2, 2))))
    found, path = plan(graph, {"relu": {"X": NCHW4C}}, inputs={"x": FREE}), tmp_path / "freed.lpcert.json"
    save_graph_certificate(path, found.rewrite, found.interface)
    assert read_any(path).status is Status.PROVED
    save_graph_certificate(path, found.rewrite)
    assert read_any(path).status is Status.UNKNOWN


def test_a_file_is_rechecked_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`recheck` takes a graph's certificate like any other."""
    found, path = made(), tmp_path / "small.lpcert.json"
    save_graph_certificate(path, found.rewrite, found.interface)
    assert main(["recheck", str(path)]) == 0
    assert "small.lpcert.json" in capsys.readouterr().out


def of_place(document: dict[str, Any]) -> None:
    """Another place of a value that a call makes."""
    place = document["places"]["relu"]
    place["index_map"] = place["index_map"].replace("i1//4, i2, i3", "i1//4, i3, i2")


def of_pad(document: dict[str, Any]) -> None:
    """Padding that is said to hold something else."""
    for place in document["places"].values():
        place["pad"] = None if place["pad"] is None else (1.0).hex()


def of_functions(document: dict[str, Any]) -> None:
    """No steps that lead to a function."""
    document["functions"].pop("relu")


def of_exchange(document: dict[str, Any]) -> None:
    """The steps of another function."""
    document["functions"]["relu"] = document["functions"]["multiply"]


def of_interface(document: dict[str, Any]) -> None:
    """Another way in which the graph is called."""
    document["interface"]["inputs"] = {"x": NCHW4C}


def of_graph(document: dict[str, Any]) -> None:
    """A step of the new graph that uses another value."""
    document["new"] = [line.replace("multiply(relu_2, ", "multiply(x, ") for line in document["new"]]


def of_arrays(document: dict[str, Any]) -> None:
    """Other elements of a constant."""
    for entry in document["arrays"].values():
        entry["data"] = "AAAA" + entry["data"][4:]


@pytest.mark.parametrize("change", [of_place, of_pad, of_functions, of_exchange, of_interface, of_graph, of_arrays])
def test_a_changed_certificate_is_not_proved(change: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    """A certificate that claims something else, sealed anew by whoever changed it, is refused or not proved."""
    document = json.loads(text())
    change(document)
    assert document != json.loads(text())
    path = tmp_path / "changed.lpcert.json"
    path.write_bytes(to_bytes(sealed(document)))
    reading = read_any(path)
    assert reading.is_broken or reading.status is not Status.PROVED


def test_a_certificate_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    """A file that was changed without being sealed, or cut off, counts for nothing."""
    path = tmp_path / "cut.lpcert.json"
    data = to_bytes(json.loads(text()))
    for changed in (data[:-30], data.replace(b"relu", b"rely", 1), b'{"format": "layoutproof-graph-certificate"}'):
        path.write_bytes(changed)
        assert read_any(path).is_broken


def test_large_constants_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that would be too large is an error that says so."""
    monkeypatch.setattr(certificate, "MOST_BYTES", 10)
    with pytest.raises(LayoutproofError, match="a certificate holds at most 10"):
        certify_graph(made().rewrite)
