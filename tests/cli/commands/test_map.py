"""`layoutproof map`: what it says, as text and as JSON, and its exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.cli.calling import DATA, Caller, steady
from tests.cli.schema import MAP
from tests.conftest import Golden

from layoutproof.cli.plot.map_picture import picture_of
from layoutproof.cli.render.map_report import render_map
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import const
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.map_report import MapReport, Padding
from layoutproof.verify.verdict.verdict import Status, Verdict

SPLIT = "lambda i: [i//4, i%4]"

# Name: arguments, exit code.
CASES: dict[str, tuple[tuple[str, ...], int]] = {
    "padded": ((SPLIT, "--shape", "14"), 0),
    "exact": ((SPLIT, "--shape", "16"), 0),
    "symbolic": ((SPLIT, "--shape", "n", "--where", "n >= 1"), 0),
    "product_of_symbols": (("lambda i, j: [i*m + j]", "--shape", "n,m", "--where", "n >= 1 and m >= 1"), 0),
    "quotient_by_a_symbol": (("lambda i: [i//n, i%n]", "--shape", "4*n", "--where", "n >= 1"), 0),
    "skewed": (("lambda i, j: [i, i + j]", "--shape", "n,m", "--where", "n >= 1 and m >= 1"), 0),
    "layout_strings": (("NHWC->NCHW4c", "--shape", "1,56,56,70"), 0),
    "separators": (("lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]", "--shape", "2,3,5,7"), 0),
    "colliding": (("lambda i: [i//4]", "--shape", "14"), 1),
    "colliding_symbolic": (("lambda i: [i//4]", "--shape", "n", "--where", "n >= 2"), 1),
    "swizzle": (("lambda i, j: [i, j ^ (i % 8)]", "--shape", "16,8"), 0),
    "tight": (("lambda i: [i % 8]", "--shape", "5", "--box", "tight"), 0),
    "physical_shape": (("lambda i: [i]", "--shape", "5", "--physical-shape", "8"), 0),
    "vacuous": ((SPLIT, "--shape", "n", "--where", "n >= 1 and n < 1"), 3),
    "no_inputs": (("lambda: [0]", "--shape", "()"), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_text(call: Caller, golden: Golden, name: str) -> None:
    """The text of a report is its golden file, without colour, and the exit code is that of injectivity."""
    arguments, code = CASES[name]
    outcome = call("map", *arguments)
    assert (outcome.code, outcome.err) == (code, "")
    assert "\x1b" not in outcome.out
    golden(f"cli_map/{name}.txt", steady(outcome.out))


@pytest.mark.parametrize("name", CASES)
def test_json(call: Caller, name: str) -> None:
    """The JSON of a report follows the schema, and the exit code agrees with the verdict in it."""
    arguments, code = CASES[name]
    outcome = call("map", *arguments, "--format", "json")
    assert outcome.code == code
    jsonschema.validate(outcome.json(), MAP)
    assert {"proved": 0, "refuted": 1, "unknown": 3, "vacuous": 3}[outcome.json()["injective"]["status"]] == code


def test_json_of_the_padded_split(call: Caller) -> None:
    """Every key has the value that one finds by hand, and the predicate and the inverse can be evaluated as Python."""
    found = call("map", SPLIT, "--shape", "14", "--format", "json").json()
    assert (found["shape"], found["physical_shape"], found["flattened_shape"], found["axis_separators"]) == (
        [14],
        [4, 4],
        [16],
        [],
    )
    assert found["padding"]["cells"] == 2 and found["padding"]["fraction"] == 2 / 16
    assert found["bijective"]["counterexample"] in ({"unreached": [3, 2]}, {"unreached": [3, 3]})
    inverse = eval(found["inverse"])
    cells = [(a, b) for a in range(4) for b in range(4)]
    padding = [cell for cell in cells if eval(found["padding"]["predicate"], {"p0": cell[0], "p1": cell[1]})]
    assert padding == [(3, 2), (3, 3)]
    assert [inverse(*cell) for cell in cells if cell not in padding] == [[i] for i in range(14)]


def test_the_counterexample_collides(call: Caller) -> None:
    """The two logical indices of a refutation differ and have the image that is stated."""
    index_map = "lambda i, j: [(i + j) % 5]"
    found = call("map", index_map, "--shape", "4,4", "--format", "json").json()["injective"]["counterexample"]
    image = eval(index_map)
    assert found["first"] != found["second"]
    assert image(*found["first"]) == image(*found["second"]) == found["image"]


def symbolic_cases() -> list[Any]:
    found: list[Any] = json.loads((DATA / "symbolic_maps.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("case", symbolic_cases(), ids=lambda case: case["index_map"])
def test_symbolic_case(call: Caller, case: dict[str, Any]) -> None:
    """Every symbolic case of the test data is proved, with its physical shape and its padding for several sizes of the
    names.
    """
    shape = ",".join(case["shape"])
    outcome = call("map", case["index_map"], "--shape", shape, "--where", case["where"], "--format", "json")
    assert outcome.code == 0
    found = outcome.json()
    for size in (1, 2, 5, 32, 33, 70):
        sizes = {name: size + k for k, name in enumerate(("n", "m", "N", "H", "W", "C"))}
        if eval(case["where"], dict(sizes)):
            extents = [eval(str(e), dict(sizes)) for e in found["physical_shape"]]
            assert extents == [eval(e, dict(sizes)) for e in case["physical_shape"]]
            corner = {f"p{axis}": extent - 1 for axis, extent in enumerate(extents)}
            for cell in (corner, dict.fromkeys(corner, 0)):
                names = {**sizes, **cell}
                assert bool(eval(found["padding"]["predicate"], dict(names))) == bool(
                    eval(case["padding"], dict(names))
                )


def test_output_file(call: Caller, tmp_path: Path) -> None:
    """With -o the same text goes to the file, plain, and nothing is printed."""
    for form in ("text", "json"):
        path = tmp_path / form
        printed = call("map", SPLIT, "--shape", "14", "--format", form)
        written = call("map", SPLIT, "--shape", "14", "--format", form, "-o", str(path))
        assert (written.code, written.out, written.err) == (0, "", "")
        assert without_seconds(path.read_text()) == without_seconds(printed.out)


def without_seconds(text: str) -> str:
    """A report without its times."""
    return steady("\n".join(line for line in text.splitlines() if '"seconds"' not in line))


def test_a_long_report_is_not_broken(call: Caller) -> None:
    """Lines are as long as they are where output is no terminal: an inverse can be copied whole."""
    names = [f"index_{k}" for k in range(14)]
    outcome = call(
        "map",
        f"lambda {', '.join(names)}: [{', '.join(f'{n}//2, {n}%2' for n in names)}]",
        "--shape",
        ",".join(["6"] * 14),
    )
    assert outcome.code == 0
    labels = [line[:16].strip() for line in outcome.out.splitlines()]
    assert len(labels) == 9 and all(labels)


def with_unknowns() -> MapReport:
    """A report in which nothing could be found."""
    report = check_map("lambda i: [i//4, i%4]", "n")
    unknown = Verdict(Status.UNKNOWN, report.injective.claim, "isl", reason="the budget was used up")
    padding = Padding(None, None, None, "the box is not known")
    return replace(
        report,
        injective=unknown,
        bijective=unknown,
        physical_shape=(None, const(4)),
        flattened_shape=(None,),
        inverse=None,
        inverse_reason="the budget was used up",
        padding=padding,
    )


def test_what_is_not_known(call: Caller, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """An extent without closed form is a question mark and, in JSON, null; what is unknown has its reason; the exit
    code is 3.
    """
    report = with_unknowns()
    monkeypatch.setattr("layoutproof.verify.maps.check_map.check_map", lambda *_, **__: report)
    outcome = call("map", "lambda i: [i]", "--shape", "n")
    assert outcome.code == 3
    golden("cli_map/unknown.txt", steady(outcome.out))
    found = call("map", "lambda i: [i]", "--shape", "n", "--format", "json")
    assert found.code == 3
    jsonschema.validate(found.json(), MAP)
    assert found.json()["physical_shape"] == [None, 4] and found.json()["padding"]["predicate"] is None


def test_an_unknown_box_is_not_drawn() -> None:
    """Without numbers for the box there is no picture but an error."""
    with pytest.raises(LayoutproofError, match="not known"):
        picture_of(replace(check_map("lambda i: [i]", (4,)), physical_shape=(None,)), "svg")


def test_a_predicate_says_which_sizes_it_is_for() -> None:
    """Where an extent is 0, padding that divides by it is not asked: the report says so, and says nothing where nothing
    is divided.
    """
    text = render_map(check_map("lambda i: [m*i]", ("m",)))
    assert "padding where   p0%m != 0   (for m >= 1)\n" in text
    for other in ("lambda i: [i // 4, i % 4]", "lambda i: [i, 8 // (i + 1)]"):
        assert "(for" not in render_map(check_map(other, ("m",))).split("padding where")[1]


def test_a_condition_over_indices(call: Caller) -> None:
    """The condition may name indices, and names that are in no extent."""
    done = call("map", "lambda x, y: [x*10 + y]", "--shape", "13,16", "--where", "x*10 + y < 128")
    assert done.code == 1 and "both go to" in done.out and "where           x*10 + y < 128" in done.out
    done = call("map", "lambda x, y: [x*10 + y + m]", "--shape", "13,n", "--where", "y < 10 and m < 5")
    assert done.code == 0 and "parameters      m" in done.out
    done = call("map", "lambda x: [x]", "--shape", "8", "--where", "x < 4", "--physical-shape", "8")
    assert done.code == 2 and "--where names indices" in done.err
