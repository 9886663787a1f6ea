"""`layoutproof plan`: what it reports, writes and draws of graphs and models, how it ends, and what becomes of input
that is wrong.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from jsonschema import Draft202012Validator
from onnx import TensorProto, helper, numpy_helper
from referencing import Registry, Resource
from tests.cli.calling import Caller, files_below, steady
from tests.conftest import Golden
from tests.graph.nets import arrays_for, filled, running_example, two_results
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.cli.plan import plan_graph as planning
from layoutproof.cli.plan.plan_result import GraphTrial, OutputComparison
from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.graph_files import load_graph
from layoutproof.graph.model.graph import Graph
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.model.graph_witness import GraphRewrite, Interface
from layoutproof.graph.planning import planner
from layoutproof.graph.prove.prove_graph import prove_graph_rewrite
from layoutproof.verify.verdict.verdict import Status, Verdict

SCHEMAS = {
    path.name: json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "docs" / "schemas").glob("*.json")
}
CONV = ("--layout", "conv=NCHW4c")


def folding() -> Graph:
    """Layout operators that fold, on the author's word too, before a convolution."""
    g = GraphBuilder("folding")
    x = g.input("x", (1, 8, 4, 4))
    there = g.layout_transform(x, "lambda n, c, h, w: [n, h, w, c]")
    back = g.layout_transform(there, "lambda n, h, w, c: [n, c, h, w]")
    return g.build(g.conv2d(back, g.constant(filled(8, 8, 1, 1), "w")))


def blocked() -> Graph:
    """An operator in the middle that layouts do not flow through."""
    g = GraphBuilder("blocked")
    x = g.input("x", (1, 8, 4, 4))
    start = g.conv2d(x, g.constant(filled(8, 8, 1, 1), "w"))
    normed = g.response_norm(start, size=3, alpha=0.1, beta=0.75, bias=1.0)
    return g.build(g.conv2d(normed, g.constant(filled(8, 8, 1, 1), "w2")))


def single() -> Graph:
    """One convolution and a relu."""
    g = GraphBuilder("single")
    x = g.input("x", (1, 4, 3, 3))
    return g.build(g.relu(g.conv2d(x, g.constant(filled(4, 4, 1, 1), "w"))))


@one_in(10)
@pytest.mark.parametrize(
    ("graph", "options"),
    [
        (running_example, ()),
        (two_results, ("--greedy",)),
        (folding, ("--frozen", "conv2d=NHWC")),
        (blocked, ("--free", "x", "--free", "conv2d_1=NCHW4c")),
    ],
)
def test_text(
    call: Caller, golden: Golden, saved: Callable[[Graph], str], graph: Callable[[], Graph], options: tuple[str, ...]
) -> None:
    """A plan tells what was asked, the rewrites before and after, why some are left, the layouts of operators, and what
    is proved.
    """
    found = call("plan", saved(graph()), *CONV, *options)
    assert (found.code, found.err) == (0, "")
    golden(f"cli_plan/{graph.__name__}.txt", steady(found.out))


@pytest.mark.parametrize("graph", [running_example, folding, blocked])
def test_json(call: Caller, saved: Callable[[Graph], str], graph: Callable[[], Graph]) -> None:
    """The JSON of a plan has the form that the documentation says, every verdict in it, and no float fast-math
    assumption.
    """
    found = call("plan", saved(graph()), *CONV, "--format", "json").json()
    registry: Registry[Any] = Registry().with_resources(
        (name, Resource.from_contents(s)) for name, s in SCHEMAS.items()
    )
    Draft202012Validator(SCHEMAS["plan.schema.json"], registry=registry).validate(found)
    assert (found["verdict"], found["strictness"], found["refused"], found["run"]) == ("proved", [], None, None)
    assert found["values"] and {verdict["status"] for verdict in found["values"]} == {"proved"}
    assert found["rewrites"]["planned"]["bytes"] == sum(each["bytes"] for each in found["remaining"])
    assert found["rewrites"]["planned"]["count"] == len(found["remaining"])


@one_in(4)
def test_the_planned_graph_is_written(call: Caller, saved: Callable[[Graph], str]) -> None:
    """What `-o` writes is read again, and computes what the graph computed, bit for bit."""
    source = saved(running_example())
    found = call("plan", source, *CONV, "-o", "planned.py")
    assert "written: planned.npz\n  written: planned.py\n" in found.out
    before, after = load_graph(source), load_graph("planned.py")
    inputs = arrays_for(before)
    np.testing.assert_array_equal(
        run_graph(before, inputs)[0].view(np.int32), run_graph(after, inputs)[0].view(np.int32)
    )
    assert len(after.rewrites) == 2


@pytest.mark.parametrize("place", ["planned.py", "planned.npz"])
def test_nothing_is_written_where_one_file_cannot_be(
    call: Caller, saved: Callable[[Graph], str], tmp_path: Path, place: str
) -> None:
    """Where the text or the arrays cannot be written, neither is, nor is anything planned."""
    source = saved(running_example())
    (tmp_path / place).mkdir()
    before = files_below(tmp_path)
    found = call("plan", source, *CONV, "-o", "planned.py", "--picture", "a.svg")
    assert (found.code, found.out) == (2, "") and f"cannot write {place}" in found.err
    assert files_below(tmp_path) == before


@one_in(10)
def test_a_certificate_is_written(call: Caller, saved: Callable[[Graph], str]) -> None:
    """What `--certificate` writes is checked again by `recheck`."""
    assert call("plan", saved(single()), *CONV, "--certificate", "single.lpcert.json").out.endswith(
        "written: single.lpcert.json\n"
    )
    found = call("recheck", "single.lpcert.json")
    assert found.code == 0, found.out + found.err


@one_in(9)
def test_run(call: Caller, saved: Callable[[Graph], str]) -> None:
    """The planned graph is run beside the one that was given; results are equal bit for bit, and times are told."""
    found = call("plan", saved(single()), *CONV, "--run", "--free", "relu", "--format", "json")
    told = found.json()["run"]
    assert found.code == 0 and told["equal"]
    assert told["outputs"] == [{"value": "relu", "cells": 36, "differing": 0}]
    assert all(told[key] > 0 for key in ("given_seconds", "unplanned_seconds", "planned_seconds"))


def test_padding_of_freed_ends_is_told(call: Caller, saved: Callable[[Graph], str]) -> None:
    """Of inputs and outputs that come and go in blocks which they do not fill, the plan says what is in the rest."""
    g = GraphBuilder("ends")
    name = saved(g.build(g.relu(g.input("x", (1, 6, 2, 2)))))
    asked = (
        "plan",
        name,
        "--layout",
        "relu.X=NCHW4c",
        "--layout",
        "relu.Y=NCHW4c holding 0",
        "--free",
        "x",
        "--free",
        "relu",
    )
    told = ["the padding of x may hold anything", "the padding of relu holds 0.0"]
    found = call(*asked)
    assert found.code == 0 and all(f"    {each}\n" in found.out for each in told), found.out
    json_found = call(*asked, "--format", "json").json()
    assert json_found["interface"]["padding"] == told
    assert json_found["asked"]["relu"]["Y"].endswith(" holding 0")


@one_in(9)
def test_what_padding_is_to_hold_is_asked_and_proved(call: Caller, saved: Callable[[Graph], str]) -> None:
    """Zeros in a padding go through relu; through exp they come out as ones, so that zeros have to be filled in, and
    the plan says so.
    """
    g = GraphBuilder("contracts")
    name = saved(g.build(g.unary("exp", g.relu(g.input("x", (1, 6, 2, 2))))))
    held = {"X": "NCHW4c holding 0", "Y": "NCHW4c holding 0.0"}
    Path("layouts.json").write_text(json.dumps({"operators": {"relu": held, "exp": held}}))
    found = call("plan", name, "--layouts", "layouts.json", "--run")
    assert found.code == 0 and "padding: relu computes its padding: 0.0" in found.out, found.out
    assert (
        "padding: exp fills its padding: 0.0, since where the padding of X holds 0.0, that of Y does not come out "
        "as 0.0" in found.out
    )


def test_results_that_differ_end_as_refuted(
    call: Caller, saved: Callable[[Graph], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the planned graph computes something else, it says how much, no graph is written, and the exit code is
    1.
    """
    trial = GraphTrial((OutputComparison("relu", 36, 5),), 0.1, 0.1, 0.1)
    monkeypatch.setattr(planning, "compare_graphs", lambda *given: trial)
    found = call("plan", saved(single()), *CONV, "--run", "-o", "planned.py")
    assert found.code == 1
    assert "single.py: refuted" in found.out and "DIFFERS  relu: 36 cells, 5 differ" in found.out
    assert not Path("planned.py").exists()


def test_what_is_not_proved_is_told(
    call: Caller, saved: Callable[[Graph], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that is not proved is named with the reason; no graph is written, and the exit code is 3."""

    def doubted(rewrite: GraphRewrite, interface: Interface) -> tuple[Verdict, ...]:
        first, *rest = prove_graph_rewrite(rewrite, interface)
        return (replace(first, status=Status.UNKNOWN, reason="nobody looked"), *rest)

    monkeypatch.setattr(planner, "prove_graph_rewrite", doubted)
    found = call("plan", saved(single()), *CONV, "--run", "-o", "planned.py")
    assert found.code == 3
    assert "single.py: unknown" in found.out and "nobody looked" in found.out and "1 unknown" in found.out
    assert "every value" not in found.out and not Path("planned.py").exists()
    assert found.err == "the planned graph is not run and not written: not all of it is proved\n"


@one_in(4)
def test_pictures(call: Caller, saved: Callable[[Graph], str]) -> None:
    """A picture is a well-formed SVG, the same when drawn again, or a PNG of a size that fits a page."""
    source = saved(running_example())
    for name in ("a.svg", "b.svg", "a.png"):
        assert call("plan", source, *CONV, "--picture", name).out.endswith(f"written: {name}\n")
    assert Path("a.svg").read_bytes() == Path("b.svg").read_bytes()
    assert ET.fromstring(Path("a.svg").read_text(encoding="utf-8")).tag.endswith("svg")
    data = Path("a.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert all(600 <= int.from_bytes(data[start : start + 4], "big") <= 4000 for start in (16, 20))


def model(nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    """A model over an image of eight channels, with an array of filters."""
    given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 4, 4]) for name in ("x", "y"))
    filters = numpy_helper.from_array(filled(8, 8, 1, 1), "w")
    return helper.make_model(
        helper.make_graph(nodes, "net", [given], [made], [filters]), opset_imports=[helper.make_opsetid("", 13)]
    )


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model of a convolution and a relu, in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    onnx.save(model([helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]), "net.onnx")
    return "net.onnx"


def test_a_model(call: Caller, network: str) -> None:
    """A model of ONNX is planned like a graph as text; `-o` writes it as one."""
    found = call("plan", network, "--layout", "conv=NCHW8c", "-o", "net.py")
    assert (found.code, found.err) == (0, "") and "net.onnx: proved" in found.out
    assert call("plan", "net.py").code == 0


def test_values_of_a_model_are_told_with_their_operators(call: Caller, network: str) -> None:
    """Values have the names that the model has; where a name says nothing of the operator, that one stands behind
    it.
    """
    found = call("plan", network, "--layout", "conv=NCHW8c", "--frozen", "y", "--picture", "net.svg")
    assert found.code == 0 and "stays: c (conv2d), NCHW8c to plain, 1,024 B" in found.out
    assert "stays: x, plain to NCHW8c" in found.out


def test_operators_that_are_not_known_are_named_at_once(call: Caller, network: str) -> None:
    """Of a model with operators that are not translated, all are told, with their numbers, and those of other
    domains.
    """
    names = [("Conv", ["x", "w"], "a"), ("Unique", ["a"], "b"), ("Unique", ["a"], "c"), ("Det", ["a"], "y")]
    proto = model([helper.make_node(name, taken, [made]) for name, taken, made in names])
    onnx.save(proto, "odd.onnx")
    found = call("plan", "odd.onnx", "--layout", "conv=NCHW8c")
    assert (found.code, found.out) == (2, "")
    assert "error[LP642]" in found.err and "Det (1 node), Unique (2 nodes)" in found.err


def test_models_need_a_package(call: Caller, network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `onnx` is not installed, the extra that brings it is named."""
    monkeypatch.setitem(sys.modules, "onnx", None)
    found = call("plan", network)
    assert found.code == 2 and "error[LP641]" in found.err and "pip install 'layoutproof[onnx]'" in found.err


@pytest.mark.parametrize("content", [None, b"", b"\x00\xff no model", b"import onnx\n"])
def test_a_file_that_is_no_model(call: Caller, network: str, content: bytes | None) -> None:
    """What is no model, or not there, is said to be so."""
    path = Path("bad.onnx")
    if content is not None:
        path.write_bytes(content)
    found = call("plan", str(path))
    assert (found.code, found.out) == (2, "") and "error[LP641]: bad.onnx cannot be read" in found.err


WRONG = {
    "no operator": (("--layout", "convv=NCHW4c"), "LP631", "did you mean conv?"),
    "no array": (("--layout", "conv.Q=NCHW4c"), "LP631", "conv2d has no array Q"),
    "no layout": (("--layout", "conv"), "LP631", "expected OP=LAYOUT"),
    "nothing behind the sign": (("--layout", "conv="), "LP631", "expected OP=LAYOUT"),
    "a size without an axis": (("--layout", "conv=NCHW4"), "LP122", "--layout conv:1:5"),
    "axes of nothing": (("--layout", "conv=NCHWQ"), "LP631", "the axes of NCHWQ"),
    "other axes": (("--layout", "conv=NHWC->NCH4c"), "LP122", "an axis W that"),
    "too few axes": (("--layout", "conv=NC"), "LP631", "takes 2 indices"),
    "text that is no lambda": (("--layout", "conv=NCHW4c, OIHW"), "LP121", "a lambda"),
    "padding that holds no number": (
        ("--layout", "conv.Y=NCHW4c holding zero"),
        "LP631",
        "padding holds a number, not 'zero'",
    ),
    "padding that its type has not": (("--layout", "conv.Y=NCHW8c holding 0.1"), "LP611", "cannot hold 0.1"),
    "padding of an end": (("--free", "x=NCHW8c holding 0"), "LP631", "not asked of inputs and outputs"),
    "a layout twice": (("--layout", "conv=NCHW4c", "--layout", "conv2d=NCHW8c"), "LP631", "is given two layouts"),
    "elements that get lost": (
        ("--layout", "conv=lambda n, c, h, w: [n, c//4, h, w]"),
        "LP632",
        "is not proved to be injective",
    ),
    "no value": (("--frozen", "y"), "LP631", "no call makes a value y"),
    "an array of one call": (("--frozen", "conv2d.X"), "LP631", "expected NAME or NAME=LAYOUT"),
    "neither input nor output": (("--free", "conv2d"), "LP631", "no input or output is called conv2d"),
    "an input with other axes": (("--free", "x=NC"), "LP631", "takes 2 indices, x has 4 axes"),
    "a picture of another kind": (("--picture", "a.gif"), "LP504", "expected .svg or .png"),
    "a graph in another file": (("-o", "planned.txt"), "LP502", "a graph's text ends in .py"),
    "the graph itself": (("-o", "single.py"), "LP502", "it is what is planned"),
    "two files in one place": (("-o", "a.py", "--certificate", "a.npz"), "LP502", "something else is written there"),
    "a certificate in the graph's place": (("--certificate", "single.npz"), "LP502", "it is what is planned"),
    "a certificate that is a folder": (("--certificate", "."), "LP502", "it is a directory"),
    "a folder that is not there": (("-o", "none/planned.py"), "LP502", "none does not exist"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input(call: Caller, saved: Callable[[Graph], str], tmp_path: Path, name: str) -> None:
    """A wrong option is told with its code and what was expected; nothing is printed or written."""
    options, code, told = WRONG[name]
    source = saved(single())
    before = files_below(tmp_path)
    found = call("plan", source, *options)
    assert (found.code, found.out) == (2, "")
    assert f"error[{code}]" in found.err and told in found.err
    assert files_below(tmp_path) == before


def test_a_file_of_another_kind(call: Caller, saved: Callable[[Graph], str]) -> None:
    """A file that is neither model nor text by its ending is not read."""
    found = call("plan", "graph.txt")
    assert found.code == 2 and "ends in .onnx (a model) or .py" in found.err


@one_in(4)
def test_proofs_are_kept(call: Caller, saved: Callable[[Graph], str]) -> None:
    """Proofs go where `--cache` says, and nowhere with `--no-cache`; the plan is the same. Both at once contradict each
    other.
    """
    source = saved(running_example())
    first = call("plan", source, *CONV, "--cache", "proofs.sqlite")
    size = Path("proofs.sqlite").stat().st_size
    again = call("plan", source, *CONV, "--cache", "proofs.sqlite")
    anew = call("plan", source, *CONV, "--no-cache")
    assert first == again == anew and first.code == 0
    assert Path("proofs.sqlite").stat().st_size == size > 0
    assert call("plan", source, *CONV, "--cache", "proofs.sqlite", "--no-cache").code == 2


def test_one_call_by_its_value(call: Caller, saved: Callable[[Graph], str]) -> None:
    """`--frozen` gives one call a layout, before what its operator is given, or keeps it as it is."""
    found = call(
        "plan", saved(running_example()), *CONV, "--frozen", "conv2d_1", "--frozen", "add=NHWC", "--format", "json"
    ).json()
    layouts = {(each["operator"], each["layout"].partition(": ")[2]): each["calls"] for each in found["operators"]}
    assert layouts == {
        ("conv2d", "[i0, i1//4, i2, i3, i1%4]"): 1,
        ("conv2d", "[i0, i1, i2, i3]"): 1,
        ("add", "[i0, i2, i3, i1]"): 1,
    }
