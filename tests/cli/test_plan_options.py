"""`layoutproof plan`: layouts from a file, costs, limits, folding into calls, and what was done before planning."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.calling import Caller, files_below
from tests.graph.nets import arrays_for, filled, running_example
from tests.shares import one_in

from layoutproof.cli.render.plan_report import time_line
from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.graph_files import load_graph, save_graph
from layoutproof.graph.model.graph import Graph
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.planning.costs import load_costs, save_costs
from layoutproof.ir.script.reader import loads

CONV = ("--layout", "conv=NCHW4c")

SHIFTED = """
@T.prim_func
def packed(X: T.Buffer((8, 4), "float32"), Y: T.Buffer((8, 4), "float32")):
    P = T.alloc_buffer((4, 8), "float32")
    for i, j in T.grid(8, 4):
        with T.block("pack"):
            a, b = T.axis.remap("SS", [i, j])
            P[b, a] = X[a, b]
    for i, j in T.grid(8, 4):
        with T.block("compute"):
            a, b = T.axis.remap("SS", [i, j])
            Y[a, b] = P[b, a] * T.float32(2)
"""


@pytest.fixture
def example(saved: Callable[[Graph], str]) -> str:
    """Two convolutions with a bias between them, as a file."""
    return saved(running_example())


@pytest.fixture
def small(saved: Callable[[Graph], str]) -> str:
    """One small convolution, as a file."""
    g = GraphBuilder("small")
    return saved(g.build(g.conv2d(g.input("x", (1, 4, 2, 2)), g.constant(filled(4, 4, 1, 1), "w"))))


LAYOUT_FILES = {
    "one layout": ("layouts.toml", '[operators]\nconv = "NCHW4c"\n'),
    "by array": ("layouts.toml", '[operators.conv2d]\nX = "NCHW4c"\nY = "NCHW4c"\n'),
    "in order": ("layouts.json", '{"operators": {"conv2d": ["NCHW4c", "default", "NCHW4c"]}}'),
    "nothing in between": (
        "layouts.json",
        '{"operators": {"conv2d": ["NCHW4c", null, "lambda n, c, h, w: [n, c//4, h, w, c%4]"]}}',
    ),
    "single calls": ("LAYOUTS.TOML", '[calls]\nconv2d = "NCHW4c"\nconv2d_1 = "NCHW4c"\n'),
}


@one_in(12)
@pytest.mark.parametrize("form", LAYOUT_FILES)
def test_layouts_from_a_file(call: Caller, example: str, form: str) -> None:
    """A file of layouts says what options say, in any of its forms: the plan is the same."""
    name, text = LAYOUT_FILES[form]
    Path(name).write_text(text, encoding="utf-8")
    wanted, found = (
        call("plan", example, *options, "--format", "json").json() for options in (CONV, ("--layouts", name))
    )
    assert found["asked"].keys() == wanted["asked"].keys()
    assert (found["rewrites"], found["layouts"], found["remaining"]) == (
        wanted["rewrites"],
        wanted["layouts"],
        wanted["remaining"],
    )
    assert found["rewrites"]["planned"]["count"] == 2


def test_options_go_before_a_file(call: Caller, example: str) -> None:
    """An array's option overrides the file, a call's own entry the others, and ends that the file frees are free."""
    Path("l.toml").write_text(
        '[operators]\nconv = "NCHW8c"\n[calls]\nadd = "default"\n[ends]\nx = true\nconv2d_1 = "NCHW4c"\n'
    )
    found = call("plan", example, "--layouts", "l.toml", *CONV, "--format", "json").json()
    assert {text for maps in found["asked"].values() for text in maps.values()} == {
        "lambda n, c, h, w: [n, c//4, h, w, c%4]"
    }
    assert found["asked"]["add"] == {} and found["interface"]["inputs"].keys() == {"x"}
    assert found["layouts"]["add"]["arrays"]["Y"] == "lambda i0, i1, i2, i3: [i0, i1, i2, i3]"


WRONG_FILES = {
    "not there": ("none.toml", None, "LP634", "none.toml: it cannot be read: No such file"),
    "another ending": ("l.txt", b"", "LP634", "ends in .toml or .json"),
    "no text": ("l.json", b"\xff\xfe\x00", "LP634", "it is not text in UTF-8"),
    "no TOML": ("l.toml", b"[operators\n", "LP634", "(at line 1, column 11)"),
    "no JSON": ("l.json", b'{"operators": }', "LP634", "line 1, column 15"),
    "nested": ("l.json", b"[" * 100_000, "LP634", "nested too deeply"),
    "a name twice": (
        "l.json",
        b'{"operators": {"conv": "NCHW4c", "conv": "NCHW8c"}}',
        "LP634",
        "conv stands there twice",
    ),
    "a list": ("l.json", b"[]", "LP634", "expected a table of operators, calls, ends"),
    "another section": ("l.toml", b'[operator]\nconv = "NCHW4c"', "LP634", "operator: there is no such section"),
    "a section of another kind": ("l.toml", b"operators = 3", "LP634", "operators: expected a table"),
    "a number": ("l.toml", b"[operators]\nconv = 4", "LP634", "operators.conv: expected a layout, a table"),
    "a number for an array": (
        "l.toml",
        b"[operators.conv2d]\nX = 4",
        "LP634",
        "operators.conv2d.X: expected a layout as text",
    ),
    "an empty text": ("l.toml", b'[operators]\nconv = ""', "LP634", "operators.conv: expected a layout as text"),
    "no layout": ("l.toml", b'[operators]\nconv = "NCHW4"', "LP122", "l.toml: operators.conv"),
    "no operator": (
        "l.toml",
        b'[operators]\ncon = "NCHW4c"',
        "LP631",
        "l.toml: operators.con: no call is of an operator con",
    ),
    "no call": ("l.toml", b'[calls]\ny = "default"', "LP631", "l.toml: calls.y: no call makes a value y"),
    "no array": ("l.toml", b'[operators.conv]\nQ = "NCHW4c"', "LP631", "conv2d has no array Q"),
    "too many arrays": (
        "l.json",
        b'{"operators": {"conv2d": [null, null, null, "NCHW4c"]}}',
        "LP631",
        "conv2d has 3 arrays",
    ),
    "no end": ("l.toml", b"[ends]\nadd = true", "LP631", "l.toml: ends.add: no input or output is called add"),
    "no layout of an end": ("l.toml", b"[ends]\nx = 3", "LP634", "ends.x: expected a layout, or true"),
    "elements of another number": (
        "l.toml",
        b'[ends]\nx = "NC"',
        "LP631",
        "l.toml: ends.x: the layout takes 2 indices",
    ),
}


@one_in(4)
@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_wrong_file_of_layouts(call: Caller, example: str, tmp_path: Path, name: str) -> None:
    """What is wrong with a file of layouts is told with its name and the entry; nothing is printed or written."""
    path, content, code, told = WRONG_FILES[name]
    if content is not None:
        Path(path).write_bytes(content)
    before = files_below(tmp_path)
    found = call("plan", example, "--layouts", path)
    assert (found.code, found.out) == (2, "")
    assert f"error[{code}]" in found.err and told in found.err, found.err
    assert files_below(tmp_path) == before


@one_in(7)
@pytest.mark.parametrize("name", ["costs.json", "costs.csv"])
def test_costs_are_measured_written_and_read(call: Caller, example: str, name: str) -> None:
    """`--measure` writes what rewrites took; with `--costs` they cost that, and nothing more has to be measured."""
    first = call("plan", example, *CONV, "--measure", name, "--format", "json").json()
    table = load_costs(name)
    assert table and all(cost > 0 for cost in table.values()) and first["written"] == [name]
    again = call("plan", example, *CONV, "--costs", name, "--measure", name)
    assert "measured" not in again.out and load_costs(name) == table
    save_costs(dict.fromkeys(table, 7), name)
    found = call("plan", example, *CONV, "--costs", name, "--format", "json").json()["rewrites"]
    assert found["planned"]["cost"] == 14 == found["least"] and found["before"]["cost"] == 7 * found["before"]["count"]
    assert found["planned"]["bytes"] == first["rewrites"]["planned"]["bytes"] > 14


def test_a_rewrite_without_a_cost_is_named(call: Caller, example: str) -> None:
    """Where the table lacks a rewrite, it is named; nothing is guessed."""
    save_costs({}, "costs.json")
    found = call("plan", example, *CONV, "--costs", "costs.json")
    assert (
        (found.code, found.out) == (2, "")
        and "error[LP633]: the rewrite of " in found.err
        and "float32[1, " in found.err
    )


@one_in(4)
def test_limits(call: Caller, example: str) -> None:
    """More rewrites, or more bytes, than `--at-most` allows end with 1 and are told; the proof is told as it is, and
    files are written.
    """
    kept = call("plan", example, *CONV, "--at-most", "2", "--at-most", "1MB")
    assert kept.code == 0 and "TOO MANY" not in kept.out
    found = call(
        "plan", example, *CONV, "--at-most", "1", "--at-most", "0.5kB", "--at-most", "1GiB", "-o", "planned.py"
    )
    assert found.code == 1 and Path("planned.py").exists()
    assert "TOO MANY  at most 1 allowed, got 2\n" in found.out and "at most 0.5kB allowed, got " in found.out
    assert "every value is preserved bit for bit" in found.out and found.out.startswith("running.py: proved\n")
    limits = call("plan", example, *CONV, "--at-most", "1", "--at-most", "1GiB", "--format", "json").json()["limits"]
    assert limits == [{"at_most": "1", "kept": False}, {"at_most": "1GiB", "kept": True}]


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "3 kg", "1e3", "٣", "1.5.2MB", "9" * 30])
def test_what_is_no_limit(call: Caller, example: str, text: str) -> None:
    """What is neither a number of rewrites nor one of bytes is refused."""
    found = call("plan", example, f"--at-most={text}")
    assert (found.code, found.out) == (2, "") and "such as 2.5MB" in found.err


def test_rewrites_are_folded_into_calls(call: Caller, small: str) -> None:
    """`--absorb` folds what is left beside a call into it; the result is proved, drawn and written, and computes the
    same.
    """
    found = call(
        "plan", small, *CONV, "--absorb", "conv2d.X", "--absorb", "conv2d.Y", "-o", "planned.py", "--picture", "p.svg"
    )
    assert (found.code, found.err) == (0, "")
    assert "with some folded into calls      0        0 B moved" in found.out and "stays" not in found.out
    before, after = load_graph(small), load_graph("planned.py")
    assert not after.rewrites
    inputs = arrays_for(before)
    np.testing.assert_array_equal(
        run_graph(before, inputs)[0].view(np.int32), run_graph(after, inputs)[0].view(np.int32)
    )


@pytest.mark.campaign
def test_what_was_folded_into_calls_is_checked_again(call: Caller, small: str) -> None:
    """The certificate of a plan with rewrites folded into calls is checked again by other solvers, and kernels compute
    the same.
    """
    assert call("plan", small, *CONV, "--absorb", "conv2d", "--run", "--certificate", "p.lpcert.json").code == 0
    assert call("recheck", "p.lpcert.json").code == 0


def test_what_is_left_after_folding_into_calls(call: Caller, example: str) -> None:
    """What one call absorbed is not left any more, and the rest is told as before."""
    told = call("plan", example, *CONV, "--absorb", "conv2d", "--format", "json").json()
    assert (
        told["rewrites"]["absorbed"]["count"] == 1 == len(told["remaining"])
        and told["rewrites"]["planned"]["count"] == 2
    )


def test_padding_is_not_folded_into_a_call(call: Caller, saved: Callable[[Graph], str]) -> None:
    """Where a rewrite pads, the pad stays when the rest of it is folded into a call, and is told."""
    g = GraphBuilder("padded")
    source = saved(g.build(g.conv2d(g.input("x", (1, 3, 2, 2)), g.constant(filled(4, 3, 1, 1), "w"))))
    found = call("plan", source, *CONV, "--absorb", "conv2d.X")
    assert found.code == 0 and "stays: x, padded or cropped, 112 B: no call absorbs that" in found.out
    told = call("plan", source, *CONV, "--absorb", "conv2d.X", "--format", "json").json()
    assert told["kept"] == [{"value": "x", "bytes": 112}]
    assert told["rewrites"]["absorbed"] == {"count": 2, "bytes": 112 + sum(each["bytes"] for each in told["remaining"])}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("add", "no layout transform that could go stands beside add"),
        ("conv2d.W", "stands beside W of conv2d"),
        ("conv2d.Q", "conv2d has no array Q"),
        ("x", "no call makes x"),
        ("conv2d=NCHW4c", "expected NAME or NAME.ARRAY"),
        (".X", "expected NAME or NAME.ARRAY"),
        ("", "expected NAME or NAME.ARRAY"),
    ],
)
def test_what_cannot_be_folded_into_a_call(call: Caller, example: str, text: str, told: str) -> None:
    """Where nothing can be folded into a call, or there is no such call, that is told."""
    found = call("plan", example, *CONV, "--absorb", text)
    assert (found.code, found.out) == (2, "") and "error[LP623]" in found.err and told in found.err


def test_what_was_taken_apart_and_folded_is_told(call: Caller, saved: Callable[[Graph], str]) -> None:
    """The report names functions that were taken apart, folds that were made, on whose word, and those that were
    refused, and why.
    """
    g = GraphBuilder("before")
    x = g.input("x", (8, 4))
    (made,) = g.call(loads(SHIFTED), x)
    known = g.crop(g.pad(made, ((0, 0), (0, 2)), 0.0), (0, 0), (8, 4))
    wrong = g.pad(g.crop(known, (0, 0), (8, 3)), ((0, 0), (0, 1)), 0.0)
    claimed = g.pad(g.crop(known, (0, 0), (8, 3), cropped_value=0.0), ((0, 0), (0, 1)), 0.0)
    source = saved(g.build(g.add(wrong, claimed)))
    found = call("plan", source)
    assert found.code == 0, found.err
    assert "layout rewrites taken out of packed: X before; the rest keeps its layouts" in found.out
    assert (
        "precondition that is not checked: what cropped_2 cuts off" in found.out
        and "not folded: padded_1, G.crop(" in found.out
    )
    assert (
        "T.float32(0.0)): refuted: chain: `Y[7, 3]`" in found.out
        and "claims of functions taken apart: all proved" in found.out
    )
    told = call("plan", source, "--format", "json").json()
    assert [each["function"] for each in told["hoisted"]] == ["packed"] and told["folds"] and told["folds_refused"]
    assert (
        "refuted" in {each["status"] for each in told["folds_refused"][0]["obligations"]}
        and told["verdict"] == "proved"
    )


def test_graphs_as_text_have_no_open_extents(call: Caller, example: str) -> None:
    """`--size` and `--onnxruntime` are for models."""
    for options in (("--size", "n=1"), ("--run", "--onnxruntime")):
        found = call("plan", example, *options)
        assert found.code == 2 and "for ONNX models" in found.err


def test_times_are_for_terminals(call: Caller, example: str) -> None:
    """Who watches is told how long it took, and which stages; an output that is kept has no times, so that it can be
    compared.
    """
    assert time_line({"reading": 0.01, "planning": 1.25, "proving": 0.2}) == "  1.5 s: planning 1.2 s, proving 0.2 s"
    assert time_line({"reading": 0.01}) == "  0.0 s"
    assert not any(line.endswith(" s") for line in call("plan", example, *CONV).out.splitlines())


def test_json_has_all_of_it(call: Caller, example: str) -> None:
    """The JSON has the layouts of each call's arrays, and the seconds of each stage."""
    found = json.loads(call("plan", example, *CONV, "--format", "json").out)
    assert found["layouts"]["conv2d"]["operator"] == "conv2d" and found["layouts"]["conv2d"]["arrays"].keys() == {
        "X",
        "W",
        "Y",
    }
    assert list(found["seconds"]) == [
        "reading",
        "folding",
        "planning",
        "giving operators their layouts",
        "proving",
        "writing",
    ]


@one_in(9)
def test_a_planned_graph_is_checked(call: Caller, small: str) -> None:
    """`--planned` plans nothing: it proves a graph that `-o` wrote to be the one it was made from, and counts what it
    moves.
    """
    assert call("plan", small, *CONV, "-o", "planned.py").code == 0
    found = call("plan", small, "--planned", "planned.py", "--at-most", "2", "--run", "--certificate", "p.lpcert.json")
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("planned.py is small.py, planned: proved\n  1 call, 2 layout rewrites, 256 B moved\n")
    assert "every value is preserved bit for bit" in found.out and "equal  conv2d: 16 cells, bit for bit" in found.out
    assert found.out.endswith("written: p.lpcert.json\n") and Path("p.lpcert.json").exists()
    told = call("plan", small, "--planned", "planned.py", "--at-most", "1", "--format", "json")
    assert told.code == 1 and told.json()["limits"] == [{"at_most": "1", "kept": False}]
    assert told.json()["rewrites"] == {"count": 2, "bytes": 256} and {v["status"] for v in told.json()["values"]} == {
        "proved"
    }


@one_in(10)
def test_a_planned_graph_that_is_called_otherwise(call: Caller, example: str) -> None:
    """With freed ends, `--planned` is told by `--free` how the graph is called; without, it is not proved."""
    assert call("plan", example, *CONV, "--free", "x", "--free", "conv2d_1=NCHW4c", "-o", "planned.py").code == 0
    free = ("--free", "x=NCHW4c", "--free", "conv2d_1=NCHW4c")
    assert call("plan", example, "--planned", "planned.py", *free, "--run").code == 0
    found = call("plan", example, "--planned", "planned.py")
    assert found.code == 3 and "x is paired with a value of the old graph: unknown" in found.out
    assert "say in which layout" in call("plan", example, "--planned", "planned.py", "--free", "x").err
    assert "other inputs or outputs" in call("plan", example, "--planned", "planned.py", "--run").err


@one_in(9)
def test_a_planned_graph_that_is_another(call: Caller, example: str) -> None:
    """A graph that does something else is not proved, and refuted where it is run; no certificate is written."""
    assert call("plan", example, *CONV, "-o", "planned.py").code == 0
    text = Path("planned.py").read_text(encoding="utf-8")
    Path("planned.py").write_text(text.replace(" + B[", " - B["), encoding="utf-8")
    found = call("plan", example, "--planned", "planned.py", "--certificate", "p.lpcert.json")
    assert found.code == 3 and "add is paired with a value of the old graph: unknown" in found.out
    assert found.err == "no certificate is written: not all of it is proved\n" and not Path("p.lpcert.json").exists()
    run = call("plan", example, "--planned", "planned.py", "--run")
    assert (
        run.code == 1
        and "DIFFERS  conv2d_1" in run.out
        and run.out.startswith("planned.py is running.py, planned: refuted\n")
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (CONV, "--planned and --layout contradict"),
        (("--absorb", "conv2d"), "--planned and --absorb contradict"),
        (("--greedy",), "--planned and --greedy contradict"),
        (("-o", "again.py"), "--planned and --output contradict"),
        (("--picture", "a.svg"), "--planned and --picture contradict"),
        (("--measure", "c.json"), "--planned and --measure contradict"),
        (("--certificate", "planned.npz"), "it is read by the run"),
    ],
)
def test_options_that_say_how_to_plan_contradict_a_check(
    call: Caller, example: str, options: tuple[str, ...], told: str
) -> None:
    """With `--planned`, options that say how to plan, or would write over what is read, are refused."""
    save_graph(running_example(), "planned.py")
    found = call("plan", example, "--planned", "planned.py", *options)
    assert (found.code, found.out) == (2, "") and told in found.err


@pytest.mark.parametrize("name", ["planned.onnx", "none.py", "."])
def test_what_is_no_planned_graph(call: Caller, example: str, name: str) -> None:
    """What is no text of a graph, or is not there, is said to be so."""
    found = call("plan", example, "--planned", name)
    assert (found.code, found.out) == (2, "") and name in found.err
