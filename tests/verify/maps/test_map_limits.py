"""Index maps at the limits: numbers past 64 bits, large irregular tables, refusals that name a witness, arguments of a
wrong type.
"""

from __future__ import annotations

from functools import reduce
from itertools import islice, product
from math import prod
from time import process_time
from typing import Any

import numpy as np
import pytest
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Select, Var, const
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.verify.algebra.enumeration import TooLarge, over_box
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.problem import written_size


def refusal(index_map: Any, shape: Any, where: Any = None, **options: Any) -> tuple[str, str]:
    """The diagnostic's code and text of a question that is refused."""
    with pytest.raises(LayoutproofError) as caught:
        check_map(index_map, shape, where, **options)
    return caught.value.diagnostics[0].code, str(caught.value)


# Numbers past 64 bits


FUNCTIONS = {
    "select": lambda condition, then, otherwise: then if condition else otherwise,
    "if_then_else": lambda condition, then, otherwise: then if condition else otherwise,
}


@one_in(4)
@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("lambda i: [i*i*i*i*i*i*i % 1000003]", [1000]),
        ("lambda i: [i*i*i*i*i*i*i*i*i*i*i*i*i*i % 7, i % 300]", [1000]),
        ("lambda i: [(i << 62) >> 60, i]", [4]),
        ("lambda i: [((i * i % 7) << 62) % 5, i % 20]", [30]),
        ("lambda i: [select(i * 2147483647 * 2147483647 * 8 > 3, i, 20 - i)]", [20]),
        ("lambda i: [select(i < 5, 3, 4) * 2147483647 * 2147483647 * 8 % 11, i]", [20]),
        ("lambda i: [if_then_else(i > 3, (i * i << 60) // (i + 1) % 97, i), i // 2]", [40]),
        ("lambda i, j: [max(i << 61, j << 62) % 1021, min(i, j)]", [9, 12]),
        ("lambda i: [abs(4 - i * 2147483647 * 2147483647 * 4) % 53]", [30]),
    ],
)
def test_values_past_64_bits_are_exact(text: str, shape: list[int]) -> None:
    """Verdicts, count, predicate and inverse agree with brute force by Python's integers, which the array oracle does
    not use.
    """
    report = check_map(text, shape).to_dict()
    found = {index: tuple(eval(text, dict(FUNCTIONS))(*index)) for index in product(*map(range, shape))}
    box = report["physical_shape"]
    assert all(0 <= c < extent for cell in found.values() for c, extent in zip(cell, box, strict=True))
    reached = {cell: index for index, cell in found.items()}
    assert report["injective"]["status"] == ("proved" if len(reached) == len(found) else "refuted")
    assert report["bijective"]["status"] == ("proved" if len(found) == len(reached) == prod(box) else "refuted")
    assert report["padding"]["cells"] == prod(box) - len(reached)
    predicate = compile(report["padding"]["predicate"], "predicate", "eval")
    some = [*reached, *islice(product(*map(range, box)), 20_000)]
    assert all(
        bool(eval(predicate, {f"p{k}": c for k, c in enumerate(cell)})) == (cell not in reached) for cell in some
    )
    if len(reached) == len(found):
        inverse = eval(report["inverse"])
        assert all(tuple(inverse(*cell)) == index for cell, index in reached.items())


def test_tables_of_python_integers_equal_single_values() -> None:
    """Array evaluation with `select` between constants does not fall back into 64 bits."""
    i = Var("i")
    expr = (Select(i < 2, const(3), const(5)) * (2**31 - 1) * (2**31 - 1) * 9) % 1_000_003 + i
    values = over_box(expr, ["i"], [6])
    assert values.tolist() == [evaluate(expr, {"i": k}) for k in range(6)]
    (output,) = parse_index_map("lambda i: [i * 2147483647 * 2147483647 * 2147483647]").outputs
    assert over_box(output, ["i"], [9]).tolist() == [k * (2**31 - 1) ** 3 for k in range(9)]


def test_many_points_of_large_values_are_given_up() -> None:
    """Past 65,536 points only int64 arrays are used: a value that does not fit them makes the table too large, never
    wrong.
    """
    (output,) = parse_index_map("lambda i: [i*i*i*i*i*i*i % 1000003]").outputs
    with pytest.raises(TooLarge):
        over_box(output, ["i"], [70_000])


def test_a_box_past_64_bits_is_enumerated() -> None:
    """30 and 63 powers of two on one axis: predicate, hole and count are exact in boxes that no array holds."""
    for extent in (30, 63):
        report = check_map("lambda i: [1 << i]", [extent]).to_dict()
        assert report["injective"]["status"] == "proved" and report["bijective"]["counterexample"] == {"unreached": [0]}
        assert report["padding"]["cells"] == 2 ** (extent - 1) + 1 - extent
        predicate = report["padding"]["predicate"]
        for cell in [0, *(2**k + d for k in range(extent) for d in (-1, 0, 1)), 12345]:
            if 0 <= cell <= 2 ** (extent - 1):
                assert eval(predicate, {}, {"p0": cell}) == (bin(cell).count("1") != 1)


# Refusals name a witness


@pytest.mark.parametrize(
    ("text", "shape", "where"),
    [
        ("lambda i: [i % n, i // n]", "n + 5", None),
        ("lambda i: [i // (n - 1000), i]", "n", None),
        ("lambda i: [i // (n - 100000), i]", "n", None),
        ("lambda i, j: [i, j // (n*m - 30)]", "n, m", None),
        ("lambda i, j: [i, j // (n*n*n - 64)]", "n, m", "n >= m + 3"),
    ],
)
def test_divisions_by_zero_are_named(text: str, shape: str, where: str | None) -> None:
    """The refusal gives the logical index and the symbols' values, and there the map does divide by zero."""
    code, message = refusal(text, shape, where)
    assert code == "LP108"
    index, known = named_point(message)
    with pytest.raises(ZeroDivisionError):
        images(text, index, known)


@pytest.mark.parametrize(
    ("text", "shape", "where"),
    [
        ("lambda i, j, k: [((n + k) // 3) % 2, (k - j) + 19]", "n, m, 2", "n*m <= 40"),
        ("lambda i: [50000 - i]", "n", None),
        ("lambda i, j: [i, n*m - 70*j + 900]", "n, m", None),
        ("lambda i, j: [i, 2000 - i*j]", "n, m", None),
    ],
)
def test_images_below_zero_are_named(text: str, shape: str, where: str | None) -> None:
    """The refusal gives the logical index and the symbols' values, inside the domain and the side condition; there the
    map is negative.
    """
    code, message = refusal(text, shape, where)
    assert code == "LP103"
    index, known = named_point(message)
    assert where is None or eval(where, {}, dict(known))
    assert all(0 <= i < eval(extent, {}, dict(known)) for i, extent in zip(index, shape.split(","), strict=True))
    assert min(images(text, index, known)) < 0


def named_point(message: str) -> tuple[tuple[int, ...], dict[str, int]]:
    """The logical index and the symbols of a refusal."""
    shown = message.split("logical index (")[1]
    index, rest = shown.split(")", 1)
    pairs = rest.split(" with ")[1].split(":")[0].split("\n")[0].split(", ")
    return tuple(map(int, index.split(","))), {
        name: int(value) for name, value in (pair.split(" = ") for pair in pairs)
    }


def images(text: str, index: tuple[int, ...], known: dict[str, int]) -> list[int]:
    """The map as Python runs it."""
    result: list[int] = eval(text, dict(known))(*index)
    return result


# Reasons


def test_a_proof_for_all_symbols_says_what_was_assumed() -> None:
    """The reason of a symbolic proof has the side condition and the lower bound of every symbol."""
    stated = check_map("lambda i, j: [i, j]", "n,m", "n >= 1 and m >= 1").injective.reason
    assert stated is not None and stated.startswith("for all n, m of at least 0 with n >= 1 and m >= 1;")
    plain = check_map("lambda i, j: [i, j]", "n,m").injective.reason
    assert plain is not None and plain.startswith("for all n, m of at least 0;")


def test_what_is_not_known_says_why() -> None:
    """A box without a closed form is named by its axis; a missing predicate and inverse have a reason."""
    report = check_map("lambda i: [select(i < 5, i, i + 3)]", "n")
    assert report.bijective.reason == report.padding.reason == "the extent of axis 0 takes more than one formula"
    assert report.inverse is None and report.inverse_reason


def test_predicates_have_no_idle_comparisons() -> None:
    """The bits of a Gray code are 0 or 1, without conditions for that; chains of `or` have no parentheses."""
    predicate = check_map("lambda i: [i ^ (i >> 1)]", [36]).to_dict()["padding"]["predicate"]
    assert "< 0" not in predicate and ">= 2" not in predicate
    window = check_map("lambda i, j: [max(i, j), min(i, j), select(i < j, 0, 1)]", [4, 8]).to_dict()["padding"][
        "predicate"
    ]
    assert window == "p2 == 1 and (p0 < p1 or p0 >= 4) or p2 == 0 and p1 >= p0"


# Large irregular maps


@one_in(4)
@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("lambda i, j, k, x: [k - min(k, 2), j, max(min(k, 11), 2), (i + 2*j) % 10]", [1024, 32768, 262145, 512]),
        ("lambda i, j, k: [i, select(i < 6, min(i, j), max(i, j)), j % 4, (27*k) % 15]", [512, 32, 1048577]),
        (
            "lambda i, j, k, x: [max(k, x), select(k < x, 0, 1), ((2*i + j) % 3) * 3 + (2*i + j) // 3, min(k, x)]",
            [114685211, 2, 210, 2288],
        ),
        ("lambda i: [(((i // 4) + i) * 7) % 11, (i - i) % 4, ((i + i) - (i // 4)) + 18]", [4000]),
        ("lambda i, j: [min(i, 1), max(i - 1, 0)]", [262145, 1024]),
        ("lambda i: [i*i*i % 1048573]", [1000000]),
        ("lambda i, j, k: [max(i, j), min(i, j) ^ k, (i*j*k) % 7]", [64, 64, 64]),
        ("lambda i: [i*i*i*i*i*i*i*i*i % 1000003]", [65536]),
    ],
)
def test_large_irregular_maps_are_answered_soon(text: str, shape: list[int]) -> None:
    """The work on tables is bounded: a verdict within seconds, and a reason where no predicate or inverse is given.

    The bound of five seconds of processor time leaves room for a slow machine; none takes one here.
    """
    start = process_time()
    report = check_map(text, shape)
    assert process_time() - start < 5
    assert report.injective.status.value in ("proved", "refuted")
    assert report.padding.predicate is not None or report.padding.reason
    assert report.inverse is not None or report.inverse_reason


# Arguments of a wrong type


@pytest.mark.parametrize(
    "index_map",
    [None, 5, b"lambda i: [i]", [1], {"i": "i"}, int, lambda i: 5, lambda i: [i.extent], lambda i: [5 // 0]],
)
def test_something_that_is_no_map_is_refused(index_map: Any) -> None:
    """The refusal says that the index map is wrong, and how."""
    code, message = refusal(index_map, [4])
    assert code == "LP101" and "index map" in message


@pytest.mark.parametrize("shape", [None, 5, 4.0, b"4", {4}, {"n": 4}, np.zeros((2, 2), dtype=int), np.int64(4)])
def test_something_that_is_no_shape_is_refused(shape: Any) -> None:
    """The refusal says what a shape is; a physical shape likewise."""
    assert refusal("lambda i: [i]", shape)[0] == "LP102"
    if shape is not None:
        code, message = refusal("lambda i: [i]", [4], physical_shape=shape)
        assert code == "LP102" and "sequence of extents" in message


@pytest.mark.parametrize("extent", [None, 2.5, True, [4], np.zeros(3, dtype=int)])
def test_something_that_is_no_extent_is_refused(extent: Any) -> None:
    """Every entry of a shape is an integer, a name or an expression."""
    assert refusal("lambda i: [i]", [extent])[0] == "LP102"


def test_shapes_of_numpy_integers_are_taken() -> None:
    """A tuple or an array of numpy integers is a shape."""
    shapes: tuple[Any, ...] = ((np.int64(4), np.int32(6)), np.array([4, 6]))
    for shape in shapes:
        assert check_map("lambda i, j: [j, i]", shape).to_dict()["physical_shape"] == [6, 4]


def test_a_map_that_is_enormous_written_out_is_refused() -> None:
    """Squaring thirty times takes thirty nodes in memory and 2**30 operands as text: refused by name, not worked on."""
    code, message = refusal(lambda i: [reduce(lambda a, _: a * a, range(30), i) % 97, i], [10])
    assert code == "LP113" and "axis 0" in message


@pytest.mark.parametrize("where", [5, True, False, ["n >= 1"], lambda n: n >= 1])
def test_something_that_is_no_condition_is_refused(where: Any) -> None:
    """The refusal says what a side condition is."""
    code, message = refusal("lambda i: [i]", ["n"], where)
    assert code == "LP130" and "side condition" in message


@pytest.mark.parametrize(("shape", "extent"), [("14", "14293651161089"), ("n", "no number of its type")])
def test_an_image_too_wide_for_the_shape_that_is_given(shape: str, extent: str) -> None:
    """How large the physical shape had to be is said, also where that is no number of the indices' type."""
    with pytest.raises(LayoutproofError, match=f"does not hold the image: its extent is {extent}"):
        check_map("lambda i: [i << 40]", shape, physical_shape="8")


def test_the_size_of_an_expression_counts_shared_parts_each_time() -> None:
    """Few operands are counted one by one, many by parts, to the same numbers."""
    expr: Expr = Var("i")
    for doubled in range(1, 12):
        expr = expr + expr
        assert written_size(expr) == 2 ** (doubled + 1) - 1
