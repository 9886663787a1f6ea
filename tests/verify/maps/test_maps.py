"""Index maps: every case with a known answer, the shapes and predicates as text, counterexamples, errors, side
conditions.
"""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Any

import pytest
from tests.judging import judge
from tests.oracle import maps as oracle
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import AXIS_SEPARATOR, IndexMap
from layoutproof.ir.text import expr_text
from layoutproof.verify.maps.check_map import check_map, prove_bijective, prove_injective
from layoutproof.verify.verdict.verdict import Status

DATA = ROOT / "tests" / "data"
CASES = json.loads((DATA / "maps.json").read_text(encoding="utf-8"))
SYMBOLIC = json.loads((DATA / "symbolic_maps.json").read_text(encoding="utf-8"))
LARGE = "lambda i, j: [(i*8192+j)//8 % 128, ((i*8192+j)//1024)*8 + (i*8192+j)%8]"


def code_of(index_map: Any, shape: Any, where: Any = None, **options: Any) -> tuple[str, str]:
    """The diagnostic's code and text of a question that is refused."""
    with pytest.raises(LayoutproofError) as caught:
        check_map(index_map, shape, where, **options)
    return caught.value.diagnostics[0].code, str(caught.value)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case_has_its_known_answer(case: dict[str, Any]) -> None:
    """Verdicts, physical shape, number of padding cells and the cells themselves are those of the data file."""
    report = check_map(case["index_map"], case["shape"]).to_dict()
    assert (report["injective"]["status"] == "proved") == case["injective"]
    assert (report["bijective"]["status"] == "proved") == case["bijective"]
    assert report["physical_shape"] == case["physical_shape"]
    assert report["padding"]["cells"] == case["padding_cells"]
    if case.get("padding") is not None:
        flags = oracle.cells_where(report["padding"]["predicate"], case["physical_shape"])
        cells = [list(c) for c, flag in zip(product(*map(range, case["physical_shape"])), flags, strict=True) if flag]
        assert cells == case["padding"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case_stands_up_to_brute_force(case: dict[str, Any]) -> None:
    """Predicate, inverse, counterexamples and counts agree with trying every index and every cell."""
    assert (
        judge(check_map(case["index_map"], case["shape"]).to_dict(), oracle.truth(case["index_map"], case["shape"]))
        == []
    )


def values_of(names: list[str]) -> list[dict[str, int]]:
    """Every extent from 1 to 20 for up to two names; some for four names, since 160,000 boxes are too many."""
    extents = range(1, 21) if len(names) <= 2 else (1, 2, 3, 4, 5, 8, 17, 20)
    found = [dict(zip(names, chosen, strict=True)) for chosen in product(extents, repeat=len(names))]
    # With four names: all small ones, and each name through 1 to 20 with the others fixed.
    if len(names) > 2:
        found = [v for v in found if max(v.values()) <= 3]
        found += [{**dict.fromkeys(names, 2), name: extent} for name in names for extent in range(1, 21)]
    return found


@one_in(4)
@pytest.mark.parametrize("case", SYMBOLIC, ids=lambda case: case["index_map"])
def test_symbolic_case_holds_for_every_extent(case: dict[str, Any]) -> None:
    """Proved injective for all extents; shape, predicate, cells and inverse right at each extent from 1 to 20."""
    report = check_map(case["index_map"], tuple(case["shape"]), case["where"]).to_dict()
    assert report["injective"]["status"] == "proved"
    names = sorted({name for name in ("n", "m", "N", "H", "W", "C") if any(name in extent for extent in case["shape"])})
    tried = 0
    for known in values_of(names):
        shape = [int(eval(extent, {}, dict(known))) for extent in case["shape"]]
        if not eval(case["where"], {}, dict(known)) or math.prod(shape) > 4000:
            continue
        tried += 1
        true = oracle.truth(case["index_map"], shape, known)
        assert judge(report, true, known) == []
        expected = oracle.cells_where(case["padding"], true.shape or (), known)
        assert (oracle.cells_where(report["padding"]["predicate"], true.shape or (), known) == expected).all()
        assert [int(eval(str(e), {}, dict(known))) for e in case["physical_shape"]] == list(true.shape or ())
    if case["where"] == "n >= 32":
        assert tried == 0
        for n in range(32, 101):
            assert judge(report, oracle.truth(case["index_map"], (n,), {"n": n}), {"n": n}) == []
    else:
        assert tried >= 20


@pytest.mark.parametrize(
    ("shape", "text", "physical", "padding"),
    [
        (16, "i//8, i%8", [2, 8], "False"),
        (14, "i//8, i%8", [2, 8], "p0 == 1 and p1 >= 6"),
        (14, "(i+2)//8, (i+2)%8", [2, 8], "p0 == 0 and p1 < 2"),
        (16, "(i+2)//8, (i+2)%8", [3, 8], "p0 == 0 and p1 < 2 or p0 == 2 and p1 >= 2"),
        (18, "(i+2)//8, (i+2)%8", [3, 8], "p0 == 0 and p1 < 2 or p0 == 2 and p1 >= 4"),
        (14, "i//4, i%4", [4, 4], "p0 == 3 and p1 >= 2"),
        (3, "i//4, i%4", [1, 4], "p1 == 3"),
        (64, "i//8, (i//8) ^ (i%8)", [8, 8], "False"),
        (8, "(5*i)%8", [8], "False"),
        (116, "i//32, (i//4)%8, i%4", [4, 8, 4], "p0 == 3 and p1 >= 5"),
        (123, "(i+5)//32, ((i+5)//4)%8, (i+5)%4", [4, 8, 4], "p0 == 0 and 4*p1 + p2 < 5"),
        (14, "2*i", [27], "p0%2 != 0"),
    ],
)
def test_padding_reads_as_people_write_it(shape: int, text: str, physical: list[int], padding: str) -> None:
    """Predicates are short: the leading axes are fixed to the one value they can have."""
    report = check_map(f"lambda i: [{text}]", (shape,)).to_dict()
    assert report["physical_shape"] == physical
    assert report["padding"]["predicate"] == padding


def test_nchw4c_is_a_bijection_with_separators() -> None:
    """The worked case: flattened to one axis or to two, and its inverse as text."""
    report = check_map(
        IndexMap.from_func(lambda n, h, w, c: [n, c // 4, h, AXIS_SEPARATOR, w, c % 4]), (16, 64, 64, 128)
    ).to_dict()
    assert report["bijective"]["status"] == "proved"
    assert report["physical_shape"] == [16, 32, 64, 64, 4]
    assert report["flattened_shape"] == [32768, 256]
    assert report["axis_separators"] == [2]
    assert report["inverse"] == "lambda p0, p1, p2, p3, p4: [p0, p2, p3, 4*p1 + p4]"


@pytest.mark.parametrize("shape", [(64, 8192), ("n", 8192)])
def test_layout_of_half_a_million_points_is_proved_without_enumeration(shape: tuple[Any, ...]) -> None:
    """The swizzled fragment layout is decided by structure, for any number of rows; the inverse leads back."""
    report = check_map(LARGE, shape)
    assert report.injective.status is Status.PROVED
    assert report.injective.engine == "symbolic"
    assert report.bijective.status is Status.PROVED
    index_map = IndexMap.from_func(
        lambda i, j: [(i * 8192 + j) // 8 % 128, ((i * 8192 + j) // 1024) * 8 + (i * 8192 + j) % 8]
    )
    assert report.inverse is not None
    for point in [(0, 0), (63, 8191), (17, 4099), (5, 1023)]:
        assert report.inverse.evaluate(index_map.evaluate(point)) == point


def test_not_injective_names_two_indices_and_their_image() -> None:
    """The first counterexample of `i//4` is 0 and 1, both at 0; there is no inverse."""
    report = check_map("lambda i: [i//4]", (14,))
    assert report.injective.status is Status.REFUTED
    assert report.injective.counterexample == {"first": [0], "second": [1], "image": [0]}
    assert report.bijective.counterexample == report.injective.counterexample
    assert report.inverse is None
    assert report.to_dict()["padding"]["cells"] == 0


def test_padded_map_names_a_cell_that_nothing_reaches() -> None:
    """Bijectivity of a padded split is refuted by a padding cell."""
    report = check_map("lambda i: [i//4, i%4]", (14,))
    assert report.bijective.counterexample == {"unreached": [3, 3]}


def test_symbolic_refutation_names_the_symbols() -> None:
    """A map that is not injective for some extents is refuted by one of them, replayed."""
    report = check_map("lambda i: [i % 8, i % 9]", ("n",), "n >= 60")
    example = report.injective.counterexample
    assert report.injective.status is Status.REFUTED
    assert example is not None
    n = example["symbols"]["n"]
    first, second = example["first"][0], example["second"][0]
    assert n >= 60 and 0 <= first < second < n
    assert [first % 8, first % 9] == [second % 8, second % 9] == example["image"]


def test_side_condition_decides() -> None:
    """`[i % 8, i % 9]` is injective on at most 72 elements, and not on more."""
    assert prove_injective("lambda i: [i % 8, i % 9]", ("n",), "n <= 72").status is Status.PROVED
    assert prove_injective("lambda i: [i % 8, i % 9]", ("n",), "n <= 73").status is Status.REFUTED


def test_multiples_leave_no_padding() -> None:
    """With `n % 4 == 0` the split is a bijection; without, one instance refutes that."""
    assert prove_bijective("lambda i: [i//4, i%4]", "n", "n % 4 == 0").status is Status.PROVED
    assert prove_bijective("lambda i: [i//4, i%4]", "n").status is Status.REFUTED


def test_condition_that_nothing_satisfies_is_vacuous() -> None:
    """A side condition that contradicts itself, or leaves no element, is named as such."""
    for where in ("n >= 5 and n <= 3", "n == 0", "n % 2 == 0 and n % 2 == 1"):
        report = check_map("lambda i: [i]", ("n",), where)
        assert report.injective.status is Status.VACUOUS
        assert report.injective.reason


def test_relation_between_symbols_is_used() -> None:
    """A rotation by as many columns as there are rows at most needs `n <= m`."""
    assert prove_injective("lambda i, j: [(i + j) % m, j]", ("n", "m"), "n <= m").status is Status.PROVED
    assert prove_injective("lambda i, j: [(i + j) % m, j]", ("n", "m")).status is Status.REFUTED


def test_input_may_hide_a_name_of_the_shape() -> None:
    """In `lambda n, h, w, c` on (n, 64, 64, c) the lambda's names are indices, the shape's are extents."""
    report = check_map("lambda n, h, w, c: [n, c//4, h, w, c%4]", "n,64,64,c", "n >= 1 and c >= 1").to_dict()
    assert report["injective"]["status"] == "proved"
    assert report["physical_shape"] == ["n", "(c + 3)//4", 64, 64, 4]
    assert report["padding"]["predicate"] == "4*p1 + p4 >= c"
    assert report["index_map"] == "lambda n, h, w, c: [n, c//4, h, w, c%4]"


def test_map_shape_and_condition_come_in_every_form() -> None:
    """Text, function, IndexMap; numbers, names, expressions; condition as text or expression."""
    n = Var("n")
    forms: list[tuple[Any, Any, Any]] = [
        ("lambda i, j: [i, j//4, j%4]", "n,14", "n >= 1"),
        (lambda i, j: [i, j // 4, j % 4], (n, 14), n >= 1),
        (lambda *indices: [indices[0], indices[1] // 4, indices[1] % 4], ["n", 14], None),
        (IndexMap.from_func(lambda i, j: [i, j // 4, j % 4]), (n, "14"), None),
    ]
    for index_map, shape, where in forms:
        report = check_map(index_map, shape, where).to_dict()
        assert report["physical_shape"] == ["n", 4, 4]
        assert report["padding"]["predicate"] == "p1 == 3 and p2 >= 2"
        assert report["padding"]["cells"] == "2*n"


def test_tight_box_is_the_smallest() -> None:
    """`box="tight"` gives a digit axis only what the image needs; the predicate follows."""
    report = check_map("lambda i: [i//4, i%4]", (3,), box="tight").to_dict()
    assert report["physical_shape"] == [1, 3]
    assert report["bijective"]["status"] == "proved"


def test_given_physical_shape_is_checked_and_used() -> None:
    """A larger box has more padding; one that does not hold the image is refused, with the extent that would."""
    report = check_map("lambda i: [i//4, i%4]", (14,), physical_shape=(5, 4)).to_dict()
    assert report["physical_shape"] == [5, 4]
    assert report["padding"]["cells"] == 6
    expected = oracle.cells_where("4*p0 + p1 >= 14", (5, 4))
    assert (oracle.cells_where(report["padding"]["predicate"], (5, 4)) == expected).all()
    code, message = code_of("lambda i: [i//4, i%4]", (14,), physical_shape=(3, 4))
    assert code == "LP105"
    assert "axis 0" in message and "4" in message
    assert code_of("lambda i: [i//4, i%4]", (14,), physical_shape=(16,))[0] == "LP105"
    symbolic = check_map("lambda i: [i//4, i%4]", ("n",), physical_shape=("n", 4)).to_dict()
    assert symbolic["physical_shape"] == ["n", 4]
    assert symbolic["padding"]["predicate"] == "4*p0 + p1 >= n"


@pytest.mark.parametrize(
    ("index_map", "shape", "code", "words"),
    [
        ("lambda i: [i - 3]", (8,), "LP103", ["-3", "(0)"]),
        ("lambda i, j: [i - j, j]", (2, 4), "LP103", ["(0, 3)"]),
        ("lambda i, j: [i - j, j]", ("n", "m"), "LP103", ["n = 1"]),
        ("lambda i, j: [i // (j - 2), j]", (4, 5), "LP108", ["divides by zero", "(0, 2)"]),
        ("lambda i: [i // n]", ("n",), None, []),
        ("lambda i, j: [i // (j - 2), j]", ("n", "m"), "LP108", ["divides by zero"]),
        ("lambda i: [i]", (0,), "LP102", ["at least 1"]),
        ("lambda i: [i]", (-4,), "LP102", ["-4"]),
        ("lambda i: [i]", (2**40,), "LP107", [str(2**40)]),
        ("lambda i: [i]", (4, 4), "LP104", ["1 index,", "2 extents"]),
        ("lambda i: [i + p0]", ("p0",), "LP106", ["p0"]),
        ("lambda i: [i]", (2.5,), "LP102", ["2.5"]),
        (lambda i: i * 0.5, (4,), "LP101", []),
        (lambda i: [0.5], (4,), "LP101", ["0.5"]),
    ],
)
def test_bad_question_is_refused_with_its_reason(
    index_map: Any, shape: Any, code: str | None, words: list[str]
) -> None:
    """Images below zero, divisions by zero and bad shapes are errors that name the place."""
    if code is None:
        assert check_map(index_map, shape).injective.status is Status.REFUTED
        return
    found, message = code_of(index_map, shape)
    assert found == code
    assert all(word in message for word in words)


def test_division_that_is_guarded_does_not_trap() -> None:
    """The untaken side of `if_then_else` is not evaluated, so its divisor may be zero there."""
    from layoutproof.ir.expr import IfThenElseExpr, const

    def guarded(i: Expr, j: Expr) -> list[Expr]:
        return [IfThenElseExpr(j > 0, i // j, const(0)), j, i]

    assert check_map(guarded, (4, 3)).injective.status is Status.PROVED
    assert code_of(lambda i, j: [i // j, j, i], (4, 3))[0] == "LP108"


def test_deep_nesting_is_refused() -> None:
    """Hundreds of levels are an error, not a crash of the interpreter."""

    def deep(i: Expr) -> list[Expr]:
        result: Expr = i
        for _ in range(400):
            result = result + 1
        return [result]

    assert code_of(deep, (4,))[0] == "LP113"


def test_unused_input_is_a_collision() -> None:
    """An input of more than one value that no axis uses makes the map not injective; one of extent 1 does not."""
    assert check_map("lambda i, j: [i]", (3, 2)).injective.counterexample == {
        "first": [0, 0],
        "second": [0, 1],
        "image": [0],
    }
    report = check_map("lambda i, j: [i]", (3, 1)).to_dict()
    assert report["bijective"]["status"] == "proved"
    assert report["inverse"] == "lambda p0: [p0, 0]"
    assert prove_injective("lambda i, j: [i]", ("n", "m")).status is Status.REFUTED


def test_empty_map_and_empty_shape() -> None:
    """A map without inputs has one element; one without outputs puts everything into one cell."""
    assert check_map("lambda: [3]", ()).to_dict()["physical_shape"] == [4]
    assert check_map("lambda: [3]", ()).to_dict()["padding"] == {
        "predicate": "p0 != 3",
        "cells": 3,
        "fraction": 0.75,
        "reason": None,
    }
    assert prove_injective("lambda i: []", (1,)).status is Status.PROVED
    assert prove_injective("lambda i: []", (2,)).status is Status.REFUTED


def test_negative_and_variable_digits() -> None:
    """`e % k` is a digit only where k is positive and does not depend on the index."""
    assert check_map("lambda i: [i % -4]", (1,)).to_dict()["physical_shape"] == [1]
    assert check_map("lambda i, j: [i % (j + 1), j, i]", (3, 2)).to_dict()["physical_shape"] == [2, 2, 3]
    k = Var("k")
    report = check_map(lambda i: [i // k, i % k], (Var("n"),), k >= 1).to_dict()
    assert report["injective"]["status"] == "proved"
    assert report["physical_shape"] == ["(n + k - 1)//k", "k"]


def test_answers_repeat() -> None:
    """The same question has the same answer, seconds aside, whatever was asked before."""

    def stripped(report: dict[str, Any]) -> dict[str, Any]:
        return {k: {**v, "seconds": 0} if isinstance(v, dict) and "seconds" in v else v for k, v in report.items()}

    texts = [
        ("lambda i, j: [i * m + j]", ("n", "m")),
        ("lambda i: [i ^ (i >> 1)]", (64,)),
        ("lambda i: [(7*i + i//3) % 31]", (20,)),
    ]
    first = [stripped(check_map(text, shape).to_dict()) for text, shape in texts]
    again = [stripped(check_map(text, shape).to_dict()) for text, shape in reversed(texts)]
    assert first == list(reversed(again))


def test_predicate_and_inverse_are_expressions_over_cells() -> None:
    """The report holds expressions as well as text, over p0, p1, ... of one type."""
    report = check_map("lambda i: [i//4, i%4]", (14,))
    assert report.padding.predicate is not None and report.inverse is not None
    assert expr_text(report.padding.predicate, "plain") == "p0 == 3 and p1 >= 2"
    assert [v.name for v in report.inverse.inputs] == ["p0", "p1"]
