"""The certificate of a planned graph: written, read back from its file alone, and refused where anything in it was
changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.graph.nets import NCHW4C, filled
from tests.shares import one_in

from layoutproof.cli.main import main
from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.graph_files import pack
from layoutproof.graph.planning.formulation import FREE
from layoutproof.graph.planning.planner import Plan, plan
from layoutproof.graph.prove import graph_certificate as certificate
from layoutproof.graph.prove.certificate_reading import read_any
from layoutproof.graph.prove.graph_certificate import certify_graph, save_graph_certificate
from layoutproof.ir.script.reader import loads
from layoutproof.verify.certificate.reading import Kind
from layoutproof.verify.certificate.sealed_files import chained, digest, sealed, to_bytes
from layoutproof.verify.verdict.verdict import Status


@cache
def made() -> Plan:
    """The plan of a small graph with padding, a constant of which is stored anew."""
    g = GraphBuilder("net")
    x = g.input("x", (1, 3, 3, 2))
    kept = (NCHW4C, 0.0)
    graph = g.build(g.multiply(g.relu(x), g.constant(filled(1, 3, 3, 2), "b")))
    return plan(graph, {"relu": {"X": kept, "Y": kept}, "multiply": {"A": NCHW4C, "B": NCHW4C}})


@cache
def scaled() -> Plan:
    """The plan of a graph of one call, a constant of which is stored anew."""
    g = GraphBuilder("net")
    graph = g.build(g.multiply(g.input("x", (1, 3, 3, 2)), g.constant(filled(1, 3, 3, 2), "b")))
    return plan(graph, {"multiply": {"A": NCHW4C, "B": NCHW4C}})


@cache
def text() -> str:
    """The text of its certificate."""
    return json.dumps(certify_graph(made().rewrite, made().interface))


@one_in(10)
def test_a_certificate_is_read_back_and_proved(tmp_path: Path) -> None:
    """The claims about a planned graph are proved again from the file alone; what it does not state is listed."""
    found, path = made(), tmp_path / "net.lpcert.json"
    save_graph_certificate(path, found.rewrite, found.interface)
    reading = read_any(path)
    assert (reading.kind, reading.status, reading.problems) == (Kind.CERTIFICATE, Status.PROVED, [])
    assert reading.claims > len(found.verdicts) and reading.questions
    assert any(line.startswith("not stated: how the old graph came about") for line in reading.exceptions)


@one_in(4)
def test_a_changed_interface_is_certified(tmp_path: Path) -> None:
    """A graph whose ends were freed is certified for the way in which it is called."""
    g = GraphBuilder("freed")
    graph = g.build(g.relu(g.input("x", (1, 4, 2, 2))))
    found, path = plan(graph, {"relu": {"X": NCHW4C}}, inputs={"x": FREE}), tmp_path / "freed.lpcert.json"
    save_graph_certificate(path, found.rewrite, found.interface)
    assert read_any(path).status is Status.PROVED
    save_graph_certificate(path, found.rewrite)
    assert read_any(path).status is Status.UNKNOWN


def large(monkeypatch: pytest.MonkeyPatch, path: Path) -> Path:
    """A certificate whose constants stand beside it; the path of these."""
    monkeypatch.setattr(certificate, "MOST_BYTES", 10)
    save_graph_certificate(path, scaled().rewrite, scaled().interface)
    assert json.loads(path.read_text())["arrays"] == {}
    return Path(f"{path}.npz")


@one_in(9)
def test_a_file_is_rechecked_from_the_command_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`recheck` takes a graph's certificate like any other, and constants from a file that is given."""
    path = tmp_path / "small.lpcert.json"
    arrays = large(monkeypatch, path).rename(tmp_path / "weights.npz")
    assert main(["recheck", str(path), "--arrays", str(arrays)]) == 0
    assert capsys.readouterr().out.startswith(f"proved   {path}: certificate")


def of(path: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    """A change of the part at a path, `/` between keys, `*` for each of them."""

    def apply(part: Any, keys: list[str]) -> None:
        key, *rest = keys
        every = range(len(part)) if isinstance(part, list) else list(part)
        for each in every if key == "*" else [key]:
            if rest:
                apply(part[each], rest)
            else:
                part[each] = change(part[each])

    def changed(document: dict[str, Any]) -> None:
        apply(document, path.split("/"))

    return changed


def without(path: str, key: str) -> Callable[[dict[str, Any]], None]:
    """A part that is left out of the one at a path."""
    return of(path, lambda part: {name: value for name, value in part.items() if name != key})


def exchanged(document: dict[str, Any]) -> None:
    """The steps of another function."""
    document["functions"]["relu"] = document["functions"]["multiply"]


def other_question(document: dict[str, Any]) -> None:
    """A question that is answered as well, in place of what is asked."""
    (name, query), *others = document["queries"].items()
    query["text"] = ["(set-logic QF_LIA)", "(assert false)", "(check-sat)", ""]
    document["queries"] = {digest(query): query, **dict(others)}
    claims = [
        {**each, "queries": [digest(query) if q == name else q for q in each["queries"]]} for each in document["maps"]
    ]
    document["maps"] = chained(claims)


def text_of(which: str, old: str, new: str) -> Callable[[dict[str, Any]], None]:
    """Other words in the text of a graph."""
    return of(which, lambda lines: [line.replace(old, new) for line in lines])


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "another place": (of("places/relu/index_map", lambda text: text.replace("i1//4, i2, i3", "i1//4, i3, i2")), "relu"),
    "a place of another value": (of("places/relu/value", lambda _: "x"), "relu"),
    "a place of no value": (of("places/relu/value", lambda _: "nobody"), "a place of nobody, which is no value"),
    "a place that is no map": (of("places/relu/index_map", lambda _: "lambda n: [n"), "lambda n"),
    "a place that is a number": (of("places/relu/index_map", lambda _: 5), "of another kind"),
    "no place": (without("places", "relu"), "nothing says what relu of the new graph holds"),
    "other padding": (of("places/*/pad", lambda pad: None if pad is None else (1.0).hex()), "padding"),
    "padding that is no number": (of("places/*/pad", lambda pad: None if pad is None else "much"), "of another kind"),
    "padding that nobody spoke of": (of("places/x/pad", lambda _: (0.0).hex()), "x holds what the witness says"),
    "no steps to a function": (without("functions", "relu"), "nothing says how relu came about"),
    "the steps of another function": (exchanged, "relu"),
    "the steps of a function that is not there": (
        of("functions", lambda parts: {**parts, "none": parts["relu"]}),
        "nothing in the new graph calls none",
    ),
    "a step less": (of("functions/relu/steps", lambda steps: steps[:-1]), "relu"),
    "a program of a step": (
        of("functions/relu/steps/*/rewrite", lambda lines: [line.replace("T.max", "T.min") for line in lines]),
        "changed",
    ),
    "a step's assumptions": (of("functions/relu/steps/*/licences", lambda _: ["nnan"]), "changed"),
    "functions that are a list": (of("functions", lambda parts: list(parts)), "of another kind"),
    "another way to call it": (of("interface/inputs", lambda _: {"x": NCHW4C}), "an input is given by"),
    "another way to take what it gives": (
        of("interface/outputs", lambda _: [["multiply", NCHW4C]]),
        "the outputs are the old ones",
    ),
    "an output that is not there": (
        of("interface/outputs", lambda _: [["nobody", NCHW4C]]),
        "the outputs are the old ones",
    ),
    "an interface to something else": (of("interface/inputs", lambda _: {"nobody": NCHW4C}), "nobody"),
    "the new graph": (text_of("new", "multiply(relu, ", "multiply(x_2, "), "multiply"),
    "the old graph": (text_of("old", "multiply(relu, b)", "multiply(b, relu)"), "multiply"),
    "the old graph's function": (text_of("old", "T.max", "T.min"), "relu"),
    "the new graph's function": (text_of("new", "T.max", "T.min"), "relu"),
    "a graph cut off": (of("new", lambda lines: lines[:-3]), "the new graph"),
    "a graph that is no text": (of("old", lambda _: "def"), "of another kind"),
    "a constant's elements": (of("arrays/*/data", lambda data: "AAAA" + data[4:]), "was changed"),
    "no elements": (of("arrays", lambda _: {}), "b holds what the witness says"),
    "elements of no use": (of("arrays", lambda kept: {**kept, "x": next(iter(kept.values()))}), "is of no use"),
    "elements that are none": (of("arrays/*/data", lambda _: "%"), "of another kind"),
    "elements of another shape": (of("arrays/*/shape", lambda _: [2]), "of another kind"),
    "elements of another type": (of("arrays/*/dtype", lambda _: "float1"), "of another kind"),
    "a digest": (
        of("constants/new", lambda keys: {name: "0" * 64 + key[64:] for name, key in keys.items()}),
        "not those that are listed",
    ),
    "a digest in a text": (text_of("new", 'sha256="', 'sha256="0'), "not those that are listed"),
    "no list of constants": (of("constants/old", lambda _: {}), "not those that are listed"),
    "a claim about maps left out": (of("maps", lambda claims: chained(claims[1:])), "of no use"),
    "a claim about maps changed": (
        of("maps", lambda claims: chained([{**claims[0], "about": ["all"], "claim": "all is well"}, *claims[1:]])),
        "the checker has no such claim: all is well",
    ),
    "a claim about maps not sealed": (
        of("maps", lambda claims: [{**claims[0], "claim": "all is well"}, *claims[1:]]),
        "changed",
    ),
    "a question": (of("queries/*/text", lambda lines: [*lines, "(assert false)"]), "was changed"),
    "questions that are none": (of("queries", lambda _: {}), "is missing"),
    "another question": (other_question, "its questions are not those that the checker asks"),
    "an excuse for a question": (
        of(
            "maps",
            lambda claims: chained([{**claims[0], "exceptions": [{"what": "time", "reason": "none"}]}, *claims[1:]]),
        ),
        "its questions are not those that the checker asks",
    ),
    "nothing that is not stated": (of("not_stated", lambda _: {}), "what it does not state"),
    "a version that is none": (of("tools/z3", lambda _: 5), "what it was made with"),
    "another form": (of("version", lambda _: 7), "version 7"),
}


@one_in(158)
@pytest.mark.parametrize("name", list(CHANGES))
def test_a_changed_certificate_is_not_proved(name: str, tmp_path: Path) -> None:
    """A certificate that claims something else, sealed anew by whoever changed it, is refused or not proved, and what
    is wrong is named.
    """
    change, told = CHANGES[name]
    document = json.loads(text())
    change(document)
    assert document != json.loads(text())
    path = tmp_path / "changed.lpcert.json"
    path.write_bytes(to_bytes(sealed(document)))
    reading = read_any(path)
    assert reading.is_broken or reading.status is not Status.PROVED
    assert told in " ".join(reading.problems)


def test_a_certificate_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    """A file that was changed without being sealed, or cut off, counts for nothing."""
    path = tmp_path / "cut.lpcert.json"
    data = to_bytes(json.loads(text()))
    for changed in (data[:-30], data.replace(b"relu", b"rely", 1), b'{"format": "layoutproof-graph-certificate"}'):
        path.write_bytes(changed)
        assert read_any(path).is_broken


@one_in(4)
def test_large_constants_stand_beside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Constants that are too large for a certificate are found beside it, or in a file that is given, the old ones or
    the new ones.
    """
    path = tmp_path / "large.lpcert.json"
    beside = large(monkeypatch, path)
    assert read_any(path).status is Status.PROVED
    elsewhere = beside.rename(tmp_path / "elsewhere.npz")
    assert read_any(path, [elsewhere]).status is Status.PROVED
    new = scaled().rewrite.new.constants
    with beside.open("wb") as file:
        pack({constant.value.name: constant.data for constant in new}, file)
    assert read_any(path).status is Status.PROVED


@one_in(4)
def test_constants_that_are_not_at_hand_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without its arrays a certificate is not confirmed, and says what was not looked at; arrays of other elements do
    not help.
    """
    path = tmp_path / "alone.lpcert.json"
    beside = large(monkeypatch, path)
    beside.unlink()
    for _ in range(2):
        reading = read_any(path)
        assert reading.status is Status.UNKNOWN and "not looked at: the elements of 2 constants" in reading.problems[0]
        assert "only digests of it and of b are known" in reading.problems[1]
        np.savez(beside, b=filled(1, 3, 3, 2, seed=9))
    beside.write_bytes(b"PK")
    assert "cannot be read" in read_any(path).problems[0]


def test_what_rests_on_the_checker_alone_is_named(tmp_path: Path) -> None:
    """That a function reads of its result only what it has written is asked of the checker, and named as such."""
    text = """
@T.prim_func
def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tir.noalias": True})
    for i in range(4):
        B[i] = A[i]
    for j in range(4):
        B[j] = B[j] + A[j]
"""
    g = GraphBuilder("again")
    found = plan(g.build(*g.call(loads(text, "twice.py"), g.input("x", (4,)))), {})
    path = tmp_path / "again.lpcert.json"
    save_graph_certificate(path, found.rewrite, found.interface)
    reading = read_any(path)
    assert reading.status is Status.PROVED
    assert any(
        "twice reads no result before it is written: facts: it is asked again" in line for line in reading.exceptions
    )


@one_in(10)
def test_maps_are_asked_of_solvers(tmp_path: Path) -> None:
    """What is claimed of maps between values is asked as questions, which stand in the certificate."""
    path = tmp_path / "maps.lpcert.json"
    save_graph_certificate(path, made().rewrite, made().interface)
    written = [entry["claim"] for entry in json.loads(path.read_text())["maps"]]
    reading = read_any(path)
    assert any("to one place" in claim for claim in written)
    assert set(written) <= {claim for claim, _ in reading.questions} and not any(
        "maps" in line for line in reading.exceptions if "the witness maps it" not in line
    )
