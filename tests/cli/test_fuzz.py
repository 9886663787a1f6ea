"""Arguments put together at random: the exit code is one of four, and there is no traceback."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cli.calling import OPERATORS
from tests.shares import one_in

from layoutproof.cli.main import main

MAPS = [
    "lambda i: [i//4, i%4]", "lambda i, j: [j, i]", "lambda i: [i//n, i%n]", "NHWC->NCHW4c", "lambda: []",
    "lambda i: [i", "lambda i: [i//0]", "[i]", "lambda i: [i, AXIS_SEPARATOR, 0]", "lambda i: [i << 40]",
    "lambda *i: [i]", "lambda i: [-i]", "lambda i: [i % 1000003]",
]  # fmt: skip
SHAPES = ["14", "n", "4*n", "3,5", "n,m", "0", "-1", "", "2147483647", "1.5", "1,2,3,4", "n-n", "()", "n//m"]
CONDITIONS = ["n >= 1", "n < 1 and n > 1", "True", "n", "i >= 0", "n % 2 == 0", ")("]
SIZES = ["n=5", "n=0", "m=3", "n", "=", "n=-1", "k=2", "n=99999999999999999999"]
FITTING = [
    ["lambda i: [i//4, i%4]", "--shape", "14"], ["lambda i: [i//4, i%4]", "--shape", "n"],
    ["lambda i, j: [j, i]", "--shape", "3,5"], ["lambda i: [i//n, i%n]", "--shape", "4*n"],
    ["NHWC->NCHW4c", "--shape", "1,2,3,4"], ["lambda i: [i, 0]", "--shape", "14"],
    ["lambda i: [i//5]", "--shape", "14"], ["lambda i: [i % 8]", "--shape", "n"],
]  # fmt: skip
SPLIT = {"block": "A_red", "buffer": "A", "index_map": "lambda i, j: [i, j//4, j%4]", "pad_value": "T.float32(0)"}
IMAGE = {
    "block": "A_red",
    "buffer": "A_red",
    "index_map": "lambda i: [i//3, AXIS_SEPARATOR, i%3]",
    "pad_value": "T.undef()",
}
TRACES = [
    [],
    [["transform_layout", SPLIT]],
    [["transform_layout", IMAGE]],
    [["set_axis_separators", {"buffer": "A", "separators": [0]}], ["simplify", {}]],
    [["set_axis_separators", {"buffer": "A", "separators": [7, -1]}]],
    [["lower_blocks", {}], ["flatten_buffer", {}], ["remove_assume", {}]],
    [["flatten_buffer", {}], ["lower_blocks", {}]],
    {"not": "a trace"},
]
WORDS = [
    "-h", "--help", "--version", "--", "-", "-o", "--format", "json", "text", "xml", "--shape", "--where", "--box",
    "tight", "--trace", "--size", "--target", "c", "opencl", "--function", "main", "--seed", "-1", "7", "--cells", "16",
    "--physical-shape", "", "\x00", "\udcff", "\N{SNOWMAN}",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with traces, programs and things that are neither."""
    place = tmp_path_factory.mktemp("fuzz")
    for number, trace in enumerate(TRACES):
        (place / f"{number}.json").write_text(json.dumps(trace))
    (place / "empty.py").write_bytes(b"")
    (place / "binary.py").write_bytes(bytes(range(256)))
    return place


Words = st.SearchStrategy[list[str]]


def option(name: str, good: list[str], bad: list[str], *, needed: bool = False) -> Words:
    """An option with one of its values, most often a good one; now and then none, or, where it is needed, mostly
    one.
    """
    found = st.sampled_from([*good * (1 + 3 * len(bad) // len(good)), *bad]).map(lambda value: [name, value])
    return st.one_of(found, found, found, st.just([])) if needed else st.one_of(found, st.just([]), st.just([]))


def call(command: str, *parts: Words) -> Words:
    """A command with its parts in order."""
    return st.tuples(*parts).map(lambda found: [command, *(word for part in found for word in part)])


def arguments(folder: Path) -> Words:
    """Mostly sensible calls with some parts wrong, and some that are a heap of words."""
    programs = [str(OPERATORS / f"{name}.py") for name in ("row_sum", "sym_relu", "sym_row_sum", "reshape", "exp1d")]
    files = [str(folder), *(str(path) for path in sorted(folder.iterdir())), str(folder / "missing")]
    traces = [str(folder / f"{number}.json") for number in range(len(TRACES))]
    out = folder / "out"
    output = option(
        "-o",
        [str(out / "a.svg"), str(out / "b.png")],
        [str(out / name) for name in ("a", "missing/a.svg", ".", "\udcff.svg")],
        needed=True,
    )
    form = option("--format", ["json", "text"], ["yaml"])
    where, box = option("--where", CONDITIONS[:2], CONDITIONS[2:]), option("--physical-shape", ["8", "4,4"], SHAPES)
    shape = option("--shape", SHAPES[:5], SHAPES[5:], needed=True)
    fitting = st.sampled_from(FITTING)
    layout = st.one_of(
        fitting, fitting, fitting, st.tuples(st.sampled_from(MAPS), shape).map(lambda found: [found[0], *found[1]])
    )
    cells = st.just(["--cells", "8"])
    sizes = st.lists(st.sampled_from(SIZES[:3] * 4 + SIZES), max_size=2, unique=True).map(
        lambda found: [w for s in found for w in ("--size", s)]
    )
    heap = st.lists(st.sampled_from(WORDS + MAPS + SHAPES + files + programs), max_size=4)
    return st.one_of(
        call("map", layout, where, box, form, output),
        call("map", layout, form, output),
        call("draw", layout, output, cells),
        call("draw", layout, sizes, output, cells),
        call(
            "run",
            st.sampled_from(programs * 3 + files).map(lambda path: [path]),
            option("--trace", traces, files),
            sizes,
            form,
            output,
        ),
        st.tuples(st.sampled_from(["map", "draw", "run", "demo -h", ""]), heap).map(
            lambda found: [*found[0].split(), *found[1]]
        ),
    )


def comparisons(folder: Path) -> Words:
    """Calls of `compare`, with some parts wrong."""
    programs = [str(OPERATORS / f"{name}.py") for name in ("row_sum", "sym_relu", "reshape", "exp1d")]
    program = st.sampled_from(programs * 3 + [str(path) for path in sorted(folder.iterdir())]).map(lambda path: [path])
    wrong = ["A", "=", "Q=lambda i: [i]", "A=lambda i: [i", "A=AB->BA", "A=lambda i: [i << 40]"]
    layout = option("--layout", ["A=lambda i, j: [i, j//4, j%4]", "A=lambda i: [i]"], wrong)
    pad = option("--pad", ["A=T.float32(0)", "A=0.0"], ["A=", "A=1+", "Q=0", "A=lambda i: i"])
    match = option("--match", ["A=A"], ["A", "x=A"])
    where, form = (
        option("--where", CONDITIONS[:2], CONDITIONS[2:]),
        option("--format", ["json", "text", "sarif"], ["yaml"]),
    )
    output = option("-o", [str(folder / "out" / "a.txt")], [".", "missing/a"])
    return call("compare", program, program, layout, pad, match, where, form, output, st.just(["--no-cache"]))


@one_in(9)
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_arguments(data: st.DataObject, folder: Path) -> None:
    """Whatever the arguments, the exit code is 0, 1, 2 or 3, errors are told as messages, and no unfinished file stays
    behind.
    """
    (folder / "out").mkdir(exist_ok=True)
    code, said = ended(data.draw(arguments(folder)), folder)
    assert (code == 2) <= bool(said), "wrong input without a word"


@one_in(4)
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_comparison(data: st.DataObject, folder: Path) -> None:
    """The same for two programs and the options on them."""
    (folder / "out").mkdir(exist_ok=True)
    (folder / "out" / "a.txt").unlink(missing_ok=True)
    code, said = ended(data.draw(comparisons(folder)), folder)
    # A report of what is wrong is an answer too.
    assert (code == 2) <= bool(said or (folder / "out" / "a.txt").exists()), "wrong input without a word"


def ended(vector: list[str], folder: Path) -> tuple[int, str]:
    """The exit code of a call, and what it said, or what it printed; fails unless it ended as every call does."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(vector)
    assert code in (0, 1, 2, 3)
    assert "Traceback" not in err.getvalue()
    assert not list(folder.rglob("*.part"))
    return code, err.getvalue() if vector[:1] != ["compare"] else err.getvalue() + out.getvalue()
