"""Index maps, shapes and conditions as text."""

import json

import pytest
from tests.conftest import Golden
from tests.tree import ROOT

from layoutproof.ir import codes
from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Expr, IntImm, Select, Var
from layoutproof.ir.index_map import AXIS_SEPARATOR, AxisSeparator, IndexMap, index_map_text
from layoutproof.ir.intrinsics import undef
from layoutproof.ir.notations.map_text import parse_condition, parse_index_map, parse_integer, parse_shape
from layoutproof.ir.text import expr_text

CASES = json.loads((ROOT / "tests" / "data" / "maps.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_maps_of_the_case_file_round_trip(case: dict[str, str]) -> None:
    """The canonical text of a map reads back equal and is its own canonical text."""
    index_map = parse_index_map(case["index_map"])
    text = index_map_text(index_map)
    assert parse_index_map(text) == index_map
    assert index_map_text(parse_index_map(text)) == text


def nchw4c(n: Var, h: Var, w: Var, c: Var) -> list[Expr | AxisSeparator]:
    """An index map as a Python function."""
    return [n, c // 4, h, AXIS_SEPARATOR, w, c % 4]


def test_a_text_is_what_the_function_says() -> None:
    """Reading the text of a lambda gives what calling the lambda gives."""
    function = IndexMap.from_func(nchw4c)
    assert parse_index_map("lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]") == function
    assert index_map_text(function) == "lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("lambda i: (i // 8, i % 8)", "lambda i: [i//8, i%8]"),
        ("  lambda i:\n    [i // 8,\n     i % 8]  # tiles", "lambda i: [i//8, i%8]"),
        ("lambda i: [T.floordiv(i, 8), tir.floormod(i, 8)]", "lambda i: [i//8, i%8]"),
        ("lambda i, j: [i, te.AXIS_SEPARATOR, j]", "lambda i, j: [i, AXIS_SEPARATOR, j]"),
        ("lambda i: [0, i]", "lambda i: [0, i]"),
        ("lambda i: [i & (2**3 - 1)]", "lambda i: [i & 7]"),
        ("lambda i: [i if i < 4 else 7 - i]", "lambda i: [if_then_else(i < 4, i, 7 - i)]"),
        (
            "lambda i: [min(i, 3) + max(0, i - 3, 2) - truncmod(i, 2)]",
            "lambda i: [min(i, 3) + max(max(0, i - 3), 2) - truncmod(i, 2)]",
        ),
        ("lambda: []", "lambda: []"),
        ("lambda i: [i//(8*4 >> 1), i%(-7//2 + 20), 5%3%2]", "lambda i: [i//16, i%16, 5%3%2]"),
        ("lambda é: [é]", "lambda é: [é]"),
    ],
)
def test_forms_of_a_map(text: str, canonical: str) -> None:
    """Lists and tuples, prefixes, line breaks, powers and choices are read; one canonical text is written."""
    assert index_map_text(parse_index_map(text)) == canonical


def test_symbols_are_allowed_when_named() -> None:
    """A map may use the names of a symbolic shape that the caller lists, and no others."""
    assert parse_index_map("lambda i, j: [i*m + j]", symbols=["m"]).outputs[0] == Var("i") * Var("m") + Var("j")
    with pytest.raises(LayoutproofError, match="`k` is not defined here"):
        parse_index_map("lambda i, j: [i*k + j]", symbols=["m"])


BAD_MAPS = {
    "empty": "",
    "blank": "  \n ",
    "not_a_lambda": "[i//4, i%4]",
    "not_python": "lambda i: [i//4, i%4",
    "two_lambdas": "lambda i: [i], lambda j: [j]",
    "not_a_list": "lambda i: i//4",
    "comprehension": "lambda i: [k for k in i]",
    "starred_index": "lambda *indices: [indices[0]]",
    "default": "lambda i=3: [i]",
    "keyword": "lambda *, i: [i]",
    "index_twice": "lambda i, j, i: [i]",
    "float": "lambda i: [i * 0.5]",
    "float_cast": "lambda i: [T.int32(T.float32(i))]",
    "slash": "lambda i: [i / 4]",
    "truth_value": "lambda i: [i < 4]",
    "undefined": "lambda row, column: [row, colum]",
    "unknown_function": "lambda i: [floor_div(i, 4)]",
    "executes_nothing": "lambda i: [__import__('os').system('true')]",
    "f_string": "lambda i: [f'{i}']",
    "walrus": "lambda i: [(k := i)]",
    "nested_list": "lambda i: [[i], i]",
    "starred_entry": "lambda i: [*i]",
    "separator_first": "lambda i: [AXIS_SEPARATOR, i]",
    "separator_last": "lambda i: [i, AXIS_SEPARATOR]",
    "separator_twice": "lambda i, j: [i, AXIS_SEPARATOR, AXIS_SEPARATOR, j]",
    "separator_in_arithmetic": "lambda i: [i + AXIS_SEPARATOR]",
    "undef": "lambda i: [T.undef('int32')]",
    "vector": "lambda i: [T.ramp(i, 1, 4)]",
    "indexed": "lambda i: [i[0]]",
    "beyond_int64": "lambda i: [i, 2**63]",
    "beyond_int32": "lambda i: [i + 2**31]",
    "division_by_zero": "lambda i: [i + 4//0]",
    "long_shift": "lambda i: [i + (1 << 1000000000)]",
    "power": "lambda i: [i ** 2]",
    "null_byte": "lambda i: [i\0]",
    "deep": "lambda i: [" + "(" * 1000 + "i" + ")" * 1000 + "]",
    "deep_minus": "lambda i: [" + "-" * 300 + "i]",
    "long_sum": "lambda i: [i" + " + i" * 1000 + "]",
    "wide_characters": "lambda é, ü: [é, ü, ö]",
    "second_line": "lambda i: [\n  i,\n  kk]",
}


@pytest.mark.parametrize("name", BAD_MAPS)
def test_bad_map_has_its_own_message(name: str, golden: Golden) -> None:
    """Each bad map is refused with the message of its entry, at a place of the text."""
    with pytest.raises(LayoutproofError) as caught:
        parse_index_map(BAD_MAPS[name])
    assert caught.value.diagnostics[0].span is not None
    golden.entry("bad_maps.txt", name, f"{caught.value}\n", ascii(BAD_MAPS[name]))


@pytest.mark.parametrize(
    ("text", "extents"),
    [
        ("16,64,n", ["16", "64", "n"]),
        ("4*n", ["4*n"]),
        ("(n, m)", ["n", "m"]),
        ("[16]", ["16"]),
        ("16,", ["16"]),
        (" 2**40 ", ["1099511627776"]),
        ("()", []),
    ],
)
def test_shapes(text: str, extents: list[str]) -> None:
    """A shape is a list of extents, with or without brackets; names are variables."""
    assert [expr_text(e, "plain") for e in parse_shape(text)] == extents


def test_names_of_a_shape_are_one_variable_each() -> None:
    """The same name is the same variable."""
    assert parse_shape("n, 4*n") == (Var("n"), 4 * Var("n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a shape such as 16,64,n is expected"),
        ("16,0", "at least 1, this is 0"),
        ("-3", "at least 1, this is -3"),
        ("1.5", "1.5 is a float"),
        ("16 64", "not Python syntax"),
        ("n < 3", "an extent has type bool"),
        ("[*n]", "a starred extent"),
        ("'n'", "a string stands where a value is expected"),
        ("9" * 30, "does not fit 64 bits"),
        ("foo(3)", "`foo` is not known"),
        ("n.m", "`n.m` is not a value"),
    ],
)
def test_bad_shapes(text: str, message: str) -> None:
    """Each bad shape has its own message."""
    with pytest.raises(LayoutproofError, match=message):
        parse_shape(text)


def test_conditions() -> None:
    """Conditions are over the variables given, comparisons may be chained."""
    n, c = Var("n"), Var("c")
    assert expr_text(parse_condition("n >= 1 and 0 <= c < n", [n, c]), "plain") == "n >= 1 and (0 <= c and c < n)"
    assert parse_condition("n >= 1", {"n": n}) == (n >= 1)
    for text, message in (
        ("n + 1", "a truth value is expected"),
        ("k > 1", "`k` is not defined"),
        ("n > 0.5", "0.5 is a float"),
        ("", "is empty"),
    ):
        with pytest.raises(LayoutproofError, match=message):
            parse_condition(text, [n, c])


def test_integers() -> None:
    """One integer expression over the variables given."""
    assert parse_integer("(n + 3)//4", [Var("n")]) == (Var("n") + 3) // 4
    assert parse_integer("7", []) == IntImm(7)
    with pytest.raises(LayoutproofError, match="has type bool, an integer is expected"):
        parse_integer("n < 3", [Var("n")])


@pytest.mark.parametrize("part", [undef("int32"), BufferLoad(make_buffer("A", (4,), "int32"), (IntImm(0),))])
def test_only_index_arithmetic_makes_a_map(part: Expr) -> None:
    """A map with an undefined or loaded value in it is refused where it is made, as the text of one is."""
    for entry in (part, Var("i") + part, Var("i") % part, Select(Var("i") < part, Var("i"), IntImm(0))):
        with pytest.raises(LayoutproofError, match="entry 1 of an index map holds") as caught:
            IndexMap.from_outputs((Var("i"),), [Var("i"), entry])
        assert caught.value.diagnostics[0].code == codes.MAP_FORM
