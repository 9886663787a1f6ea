"""Extents in closed form: by corners, by digits, by XOR; each against the maximum over the box."""

from __future__ import annotations

from itertools import product

import pytest
from tests.shares import one_in

from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.verdict.verdict import Status


def extents_at(report: MapReport, known: dict[str, int]) -> list[int]:
    """The physical shape with the symbols put in."""
    shape = report.to_dict()["physical_shape"]
    assert None not in shape
    return [int(eval(str(extent), {}, dict(known))) for extent in shape]


@one_in(4)
@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("(i // 4) * 8 + i % 4", None),
        ("(i // 4) * 8 + 3 - i % 4", None),
        ("(i // 4) * 4 + i % 4 + 5", None),
        ("n - 1 - i", None),
        ("((i // 8) % 8) ^ (i % 8)", "n >= 57"),
        ("8 * (((i // 8) % 8) ^ (i % 8)) + i // 64", "n >= 64 and n % 64 == 0"),
        ("(i + 3) // 5 + 2 * i", None),
        ("i // 6 * 7 + i % 6 // 2 * 3 + i % 2", None),
    ],
)
def test_symbolic_extent_is_the_least_that_holds_the_image(text: str, where: str | None) -> None:
    """For every extent up to 130 that the condition admits, the closed form is the largest value and one."""
    report = check_map(f"lambda i: [{text}, i]", ("n",), where)
    tried = 0
    for n in range(1, 131):
        if where is None or eval(where, {}, {"n": n}):
            tried += 1
            largest = max(eval(text, {}, {"i": i, "n": n}) for i in range(n))
            assert extents_at(report, {"n": n})[0] == largest + 1, n
    assert tried >= 2


@pytest.mark.parametrize("rows", [1, 3, 8, 12, 17])
def test_xor_of_two_inputs_has_its_exact_maximum(rows: int) -> None:
    """Two inputs of any extents, powers of two or not."""
    for columns in range(1, 20):
        report = check_map("lambda i, j: [i ^ j, i]", (rows, columns))
        largest = max(x ^ y for x, y in product(range(rows), range(columns)))
        assert report.to_dict()["physical_shape"][0] == largest + 1


def test_large_shapes_need_no_enumeration() -> None:
    """Boxes that nobody walks through still get their exact extents."""
    report = check_map("lambda i, j: [i ^ j, i]", (3000, 4000)).to_dict()
    assert report["physical_shape"] == [4096, 3000]
    assert report["bijective"]["status"] == "refuted"
    report = check_map("lambda i: [i//32*32 + i//4%8*4 + i%4]", (1 << 30,)).to_dict()
    assert report["physical_shape"] == [1 << 30]


def test_extent_without_closed_form_is_not_invented() -> None:
    """An extent that takes a case distinction is None, with the reason; what does not depend on it is still decided."""
    report = check_map("lambda i: [min(i, 9), i]", ("n",))
    assert report.physical_shape[0] is None
    assert report.flattened_shape == (None,)
    assert report.injective.status is Status.PROVED
    assert report.bijective.status is Status.UNKNOWN and report.bijective.reason
    assert report.padding.cells is None and report.padding.reason
