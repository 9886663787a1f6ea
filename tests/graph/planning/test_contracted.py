"""Which numbers in the padding of operands make one in that of a result: found among many, and told where not all were
tried.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.graph.nets import NCHW4C
from tests.shares import one_in

from layoutproof.graph.operators.elementwise import binary, unary
from layoutproof.graph.planning import contracted as module
from layoutproof.graph.planning.array_layouts import PadNumber, pad_of
from layoutproof.graph.planning.contracted import contracted, possible
from layoutproof.graph.planning.variants import variant_of
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads

SHAPE = (1, 6, 2, 2)


def three(*lines: str, before: str = "") -> PrimFunc:
    """A function of three images, element by element."""
    arrays = ", ".join(f'{name}: T.Buffer({SHAPE}, "float32")' for name in "ABCY")
    nests = "".join(
        f"    for i, j, k, l in T.grid(1, 6, 2, 2):\n        with T.block('b{number}'):\n"
        f"            n, c, h, w = T.axis.remap('SSSS', [i, j, k, l])\n            {line}\n"
        for number, line in enumerate(lines)
    )
    return loads(f"@T.prim_func\ndef three({arrays}):\n{before}{nests}", "three.py")


PRODUCT_AND_SUM = three("Y[n, c, h, w] = A[n, c, h, w] * B[n, c, h, w] + C[n, c, h, w]")
BY_WAY = three(
    "D[n, c, h, w] = A[n, c, h, w] * B[n, c, h, w]",
    "Y[n, c, h, w] = D[n, c, h, w] + C[n, c, h, w]",
    before='    D = T.alloc_buffer([1, 6, 2, 2], "float32")\n',
)


def computed(
    func: PrimFunc, wanted: PadNumber, pads: Sequence[PadNumber]
) -> tuple[list[tuple[PadNumber | None, ...]], list[str]]:
    """The numbers in the padding of operands from which a result's is computed, and what is told of others."""
    told: list[str] = []
    variant = variant_of(func, {"Y": parse_index_map(NCHW4C)})
    found = list(contracted(func, variant, ("Y", wanted), pads, told.append))
    return [tuple(pad_of(layout) for layout in each.operands) for each in found if each.through], told


@one_in(4)
def test_one_assignment_of_many() -> None:
    """Of sixty-four assignments the four that make the number are proved, and only those are tried."""
    found, told = computed(PRODUCT_AND_SUM, 13.0, (7.0, 1.0, 2.0, 3.0))
    assert sorted(found, key=str) == [(2.0, 3.0, 7.0), (3.0, 2.0, 7.0)] and told == []


@one_in(4)
def test_zeros_of_either_sign_are_told_apart() -> None:
    """A product of zeros has a sign, and so has the padding that it makes."""
    func = binary("multiply", SHAPE, SHAPE)
    assert set(map(str, computed(func, -0.0, (0.0, -0.0))[0])) == {"(0.0, -0.0)", "(-0.0, 0.0)"}


def test_what_elements_may_hold_rules_out() -> None:
    """A zero times an element is no zero where the element is NaN: an operand without padding stays what it is."""
    row = (1, 1, 2, 2)
    assert computed(binary("multiply", SHAPE, row), 0.0, (0.0,)) == (
        [],
        ["where the padding of A holds 0.0, that of Y does not come out as 0.0"],
    )
    assert list(possible(binary("maximum", SHAPE, row), "Y", 0.0, [[0.0, 1.0], [None]])) == []


def test_nothing_that_makes_the_number() -> None:
    """Where no assignment makes the number nothing is proved in vain, and the reason is that of the first."""
    assert computed(unary("exp", SHAPE), 3.0, (1.0, 2.0)) == (
        [],
        ["where the padding of X holds 1.0, that of Y does not come out as 3.0"],
    )


@one_in(9)
def test_padding_of_temporaries_is_computed_along() -> None:
    """What is computed in the padding of a temporary is what the result's padding is computed from."""
    assert computed(BY_WAY, 0.0, (0.0,)) == ([(0.0, 0.0, 0.0)], [])


@one_in(4)
def test_assignments_that_were_not_tried_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function of which a run tells nothing is tried some times, those of one number first; how many others there are
    is told.
    """
    monkeypatch.setattr(module, "MOST_TRIES", 1)
    found, (told,) = computed(BY_WAY, 0.0, (0.0, 1.0, -1.0))
    assert (found, told) == (
        [(0.0, 0.0, 0.0)],
        "26 assignments of numbers to the padding of its operands were not tried",
    )
    monkeypatch.setattr(module, "MOST_COUNTED", 20)
    assert computed(BY_WAY, 0.0, (0.0, 1.0, -1.0))[1][0].startswith("20 or more assignments")
