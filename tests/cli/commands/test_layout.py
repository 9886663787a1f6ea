"""`layoutproof layout`, `conflicts` and `cute`: what they say, as text and as JSON, and their exit codes."""

from __future__ import annotations

import json

import pytest
from tests.cli.calling import Caller, steady
from tests.conftest import Golden

ROWS = ("(8,64):(64,1)", "--element", "2", "--vector", "8", "--access", "lambda k, t: [t%8, k*8]", "--lanes", "8,8")

# Name: arguments, exit code.
CASES: dict[str, tuple[tuple[str, ...], int]] = {
    "same": (("layout", "aBcd8b", "NCHW->NCHW8c", "--shape", "1,16,4,4"), 0),
    "different": (("layout", "(4,(2,4)):(2,(1,8))", "shape=(4,8), strides=(2,1)"), 1),
    "other_order": (("layout", "(4,8):(1,4)", "memref<8x4xf32>"), 1),
    "other_shape": (("layout", "(8,8):(1,8)", "(8,9):(1,8)"), 1),
    "other_domain": (
        ("layout", "{ [i,j] -> [i+4j] : 0<=i<4 and 0<=j<=i }", "{ [i,j] -> [i+4j] : 0<=i<4 and 0<=j<4 }"),
        1,
    ),
    "moves": (
        (
            "layout",
            "#linear<{register=[[0,1],[0,2]], lane=[[0,4],[1,0],[2,0]], warp=[[4,0]], block=[]}>",
            "#linear<{register=[[0,1],[4,0]], lane=[[0,4],[1,0],[2,0]], warp=[[0,2]], block=[]}>",
        ),
        1,
    ),
    "one": (("layout", "b (h p) c -> b h (p c)", "--shape", "2,4,3", "--axes", "p=2"), 0),
    "to": (("layout", "aBcd8b", "--shape", "1,16,4,4", "--to", "cute"), 0),
    "conflicts": (("conflicts", *ROWS, "--conflict-free"), 1),
    "no_conflicts": (("conflicts", "Sw<3,3,3> o 0 o (8,64):(64,1)", *ROWS[1:]), 0),
    "composition": (("cute", "composition", "(6,2):(8,2)", "(4,3):(3,1)"), 0),
    "no_composition": (("cute", "composition", "(4,6):(1,12)", "(6,2):(1,12)"), 1),
    "complement": (("cute", "complement", "(2,2):(1,6)", "24"), 0),
    "zipped_divide": (("cute", "zipped_divide", "(8,8):(8,1)", "4:1", "2:1"), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_text(call: Caller, golden: Golden, name: str) -> None:
    """The text is its golden file, without colour, and the exit code says whether the layouts are the same."""
    arguments, code = CASES[name]
    outcome = call(*arguments)
    assert (outcome.code, outcome.err) == (code, "")
    golden(f"cli_layout/{name}.txt", steady(outcome.out))


@pytest.mark.parametrize("name", [name for name in CASES if name != "to"])
def test_json(call: Caller, name: str) -> None:
    """The JSON is one object with the keys of its command, and says what the exit code says."""
    arguments, code = CASES[name]
    outcome = call(*arguments, "--format", "json")
    found = json.loads(outcome.out)
    assert outcome.code == code and isinstance(found.pop("version"), int | str)
    if arguments[0] == "cute":
        assert set(found) == {"operation", "layout", "conditions"}
        assert (found["layout"] is None) == (code == 1)
    elif arguments[0] == "conflicts":
        assert set(found) == {"layout", "index_map", "accesses", "conflict_free"}
        assert any(access["conflicts"] for access in found["accesses"]) == (code == 1)
    elif len(arguments) > 2 and not arguments[2].startswith("--"):
        assert (found["same"]["status"] == "refuted") == (code == 1)
        assert len(found["layouts"]) == 2
    else:
        assert set(found) == {"text", "notation", "properties", "notations", "reasons"}


def test_map_takes_any_notation(call: Caller) -> None:
    """`map` prints one object for all notations, with the shape that the text brings."""
    found = call("map", "(4,(2,4)):(2,(1,8))", "--format", "json").json()
    assert found["shape"] == [4, 2, 4] and found["index_map"] == "lambda i0, i1, i2: [i0*2 + i1 + i2*8]"
    same = call("map", "lambda i0, i1, i2: [i0*2 + i1 + i2*8]", "--shape", "4,2,4", "--format", "json").json()
    assert set(found) == set(same)
    forced = call("map", "a -> a", "--notation", "einops", "--shape", "3", "--format", "json").json()
    assert forced["index_map"] == "lambda a: [a]"


BAD: dict[str, tuple[str, ...]] = {
    "no_shape": ("layout", "aBcd8b"),
    "two_and_to": ("layout", "8:1", "8:1", "--to", "cute"),
    "not_written": ("layout", "lambda i: [i % 3]", "--shape", "8", "--to", "triton"),
    "bad_axes": ("map", "(a b) -> b a", "--shape", "6", "--axes", "a:2"),
    "axes_twice": ("map", "(a b) -> b a", "--shape", "6", "--axes", "a=2,a=3"),
    "partial_map": ("map", "{ [i] -> [i] : 0 <= i < 4 and i != 2 }"),
    "banks": ("conflicts", "8:1", "--access", "8:1", "--banks", "12"),
    "outside": ("conflicts", "(8,8):(8,1)", "--access", "lambda t: [t, 0]", "--lanes", "32"),
    "operands": ("cute", "composition", "8:1"),
    "size": ("cute", "complement", "8:1", "x"),
    "divide_none": ("cute", "logical_divide", "8:1", "4:1", "2:1"),
    "operand": ("cute", "composition", "8:1", "8"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(call: Caller, golden: Golden, name: str) -> None:
    """Wrong input is an error with exit code 2 and a message that says what was expected."""
    outcome = call(*BAD[name])
    assert (outcome.code, outcome.out) == (2, "")
    golden.entry("bad_layout_commands.txt", name, outcome.err, " ".join(BAD[name]))
