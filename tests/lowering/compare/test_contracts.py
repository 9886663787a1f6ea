"""Pad values that were not given: which are tried, and which of them a comparison ends with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from tests.lowering.programs import program

import layoutproof as lp
from layoutproof.ir.dtype import FLOAT32
from layoutproof.ir.expr import const
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.layout_record import Contract
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import walk
from layoutproof.lowering.compare.padding_contracts import MOST_CHOICES, Choice, Choosing, LastStored, options_of
from layoutproof.verify.settings import Settings, within
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

BLOCKS = {"A": "lambda i, k: [i, k//4, k%4]"}
ROWS = 'A: T.Buffer((3, 14), "float32"), B: T.Buffer((3,), "float32")'
TILED = 'A: T.Buffer((3, 4, 4), "float32"), B: T.Buffer((3,), "float32")'


def reduction(signature: str, loops: str, start: str, update: str) -> PrimFunc:
    """A reduction of each row of A."""
    return program(f"""def main({signature}):
    T.func_attr({{"tirx.noalias": True}})
    for i in range(3):
        B[i] = {start}
        {loops}
            {update}
""")


SUM = reduction(ROWS, "for k in range(14):", "T.float32(0)", "B[i] = B[i] + A[i, k]")
SUM_OF_ALL = reduction(TILED, "for k, l in T.grid(4, 4):", "T.float32(0)", "B[i] = B[i] + A[i, k, l]")
SUM_GUARDED = reduction(
    TILED, "for k, l in T.grid(4, 4):", "T.float32(0)", "if k * 4 + l < 14:\n                B[i] = B[i] + A[i, k, l]"
)
MAX = reduction(ROWS, "for k in range(14):", 'T.min_value("float32")', "B[i] = T.max(B[i], A[i, k])")
MAX_OF_ALL = reduction(TILED, "for k, l in T.grid(4, 4):", 'T.min_value("float32")', "B[i] = T.max(B[i], A[i, k, l])")


def stored(tail: str) -> tuple[PrimFunc, PrimFunc]:
    """A copy of 14 elements, and one that stores them in four rows of four and goes on with `tail`."""
    old = program("""def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        B[i] = A[i]
""")
    new = program(f"""def main(A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for i in range(14):
        B[i // 4, i % 4] = A[i]
{tail}""")
    return old, new


ROWS_OF_FOUR = {"B": "lambda i: [i//4, i%4]"}


@pytest.mark.parametrize(
    ("old", "new", "contract", "strictness"),
    [
        (SUM, SUM_GUARDED, None, ()),
        (SUM, SUM_OF_ALL, "T.float32(0.0)", ()),
        (MAX, MAX_OF_ALL, 'T.min_value("float32")', ("nnan",)),
    ],
    ids=["guarded", "sum", "max"],
)
def test_the_weakest_contract_that_suffices_is_asked_of_callers(
    old: PrimFunc, new: PrimFunc, contract: str | None, strictness: tuple[str, ...]
) -> None:
    """Padding that is not read has no contract; padding that is summed or compared holds a neutral element."""
    found = lp.compare(old, new, layouts=BLOCKS)
    assert found.status is Status.PROVED
    (layout,) = found.layouts
    assert (layout.pad_value, layout.layout_given, layout.pad_given) == (contract, True, False)
    assert found.strictness == strictness


@pytest.mark.parametrize(
    ("tail", "contract"),
    [
        ("", None),
        ("    for j in range(2):\n        B[3, 2 + j] = T.float32(5)\n", "T.float32(5.0)"),
        ("    for j in range(2):\n        B[3, 2 + j] = T.float32(2) * T.float32(2)\n", "T.float32(4.0)"),
        ('    for j in range(2):\n        B[3, 2 + j] = T.Cast("float32", j)\n', "undef"),
        ("    B[3, 3] = T.float32(5)\n", "undef"),
        ("    for j in range(2):\n        B[3, 2 + j] = A[j]\n", "undef"),
    ],
    ids=["untouched", "value", "computed", "several", "a part", "data"],
)
def test_the_strongest_contract_that_holds_is_told_of_outputs(tail: str, contract: str | None) -> None:
    """Padding that ends with one value is said to hold it; that nobody writes is said not to be touched; else it holds
    anything.
    """
    old, new = stored(tail)
    found = lp.compare(old, new, layouts=ROWS_OF_FOUR)
    assert found.status is Status.PROVED
    assert [layout.pad_value for layout in found.layouts] == [contract]


@pytest.mark.parametrize(
    ("pad", "status", "contract"),
    [
        (5, Status.PROVED, "T.float32(5.0)"),
        ("T.float32(5)", Status.PROVED, "T.float32(5.0)"),
        (lp.undef, Status.PROVED, "undef"),
        (4.0, Status.REFUTED, "T.float32(4.0)"),
        (None, Status.REFUTED, None),
    ],
)
def test_a_given_contract_is_the_one_that_is_asked(pad: Any, status: Status, contract: str | None) -> None:
    """No other one is tried: what was said is proved or refuted."""
    old, new = stored("    for j in range(2):\n        B[3, 2 + j] = T.float32(5)\n")
    found = lp.compare(old, new, layouts=ROWS_OF_FOUR, pads={"B": pad})
    assert found.status is status
    assert [(layout.pad_value, layout.pad_given) for layout in found.layouts] == [(contract, True)]


def test_another_contract_that_would_do_is_told() -> None:
    """Where only the pad value fails that was given, the answer says with which one all is proved."""
    old, new = stored("    for j in range(2):\n        B[3, 2 + j] = T.float32(5)\n")
    found = lp.compare(old, new, layouts=ROWS_OF_FOUR, pads={"B": 4.0})
    reason = found.verdicts[0].reason
    assert found.status is Status.REFUTED
    assert reason is not None and reason.endswith("where B's padding holds T.float32(5.0), all is proved")
    wrong = stored("    B[0, 0] = T.float32(1)\n")[1]
    reason = lp.compare(old, wrong, layouts=ROWS_OF_FOUR, pads={"B": 4.0}).verdicts[0].reason
    assert reason is not None and "all is proved" not in reason


def test_a_contract_of_an_input_is_assumed_in_the_rewrite_only() -> None:
    """The rewrite that was proved says what callers have to keep; the program that was given stays as it was."""
    found = lp.compare(SUM, SUM_OF_ALL, layouts=BLOCKS, pads={"A": 0.0})
    assert found.rewrite is not None and found.after == SUM_OF_ALL
    assumed = [expr_text(node.condition) for node in walk(found.rewrite.new.body) if isinstance(node, Assume)]
    assert len(assumed) == 1 and "0.0" in assumed[0]
    assert not any(isinstance(node, Assume) for node in walk(found.after.body))


def test_what_differs_under_every_contract_is_refuted_and_they_are_named() -> None:
    """With pad values that were not given, a difference counts if it is seen under each of them."""
    wrong = reduction(TILED, "for k, l in T.grid(4, 4):", "T.float32(1)", "B[i] = B[i] + A[i, k, l]")
    found = lp.compare(SUM, wrong, layouts=BLOCKS)
    assert found.status is Status.REFUTED
    reason = found.verdicts[0].reason
    assert reason is not None
    assert (
        "A's padding holds T.float32(1.0), and where A's padding holds anything, and where A's padding may not be "
        "touched"
    ) in reason


def test_a_contract_that_needs_a_fast_math_is_not_proved_without_it() -> None:
    """What may be used of floats bounds the search for contracts too."""
    with within(Settings(allowed=frozenset())):
        found = lp.compare(MAX, MAX_OF_ALL, layouts=BLOCKS)
    assert found.status is not Status.PROVED
    assert found.strictness == ()


def test_options_begin_with_what_the_program_assumes() -> None:
    """An assumption about the padding of an input is its contract."""
    new = program("""def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(2):
        T.evaluate(T.assume(A[3, 2 + i] == T.float32(7)))
    for i in range(4):
        B[i] = A[i, 0] + T.float32(3)
""")
    a, b = new.buffers
    one = Contract((), const(1.0, FLOAT32))
    assert texts(options_of(new, a, None)) == ["T.float32(7.0)", None, "undef", "T.float32(3.0)"]
    assert texts(options_of(new, b, LastStored(one))) == ["T.float32(1.0)", "undef"]
    assert texts(options_of(new, b, LastStored(None, untouched=True))) == [None, "undef"]
    assert texts(options_of(new, b, LastStored())) == ["undef"]


UNDEF, ZERO = Contract.undef(FLOAT32), Contract((), const(0.0, FLOAT32))


def texts(contracts: Iterable[Choice]) -> list[str | None]:
    """Contracts as they are printed."""
    return [None if contract is None else contract.text for contract in contracts]


def unproved(kind: ClaimKind, *buffers: str) -> tuple[Verdict, ...]:
    """A claim that is open."""
    return (Verdict(Status.UNKNOWN, Claim(kind, "a claim", buffers=buffers), "test", reason="not known"),)


def test_a_failure_moves_the_contract_that_it_names() -> None:
    """A claim about the padding of a buffer, or its memory, is a reason to state something else of that buffer."""
    options: Mapping[str, tuple[Choice, ...]] = {"A": (None, UNDEF), "B": (ZERO, UNDEF)}
    choosing = Choosing(options, {"A": "A_data", "B": "B_data"})
    assert choosing.first() == {"A": None, "B": ZERO}
    assert choosing.next(unproved(ClaimKind.PADDING_POSTCONDITION, "B_data")) == {"A": None, "B": UNDEF}
    assert choosing.next(unproved(ClaimKind.OFF_PADDING, "A", "A_data")) == {"A": UNDEF, "B": UNDEF}
    assert choosing.next(unproved(ClaimKind.SAME_VALUE, "A")) == {"A": UNDEF, "B": ZERO}
    assert choosing.next(unproved(ClaimKind.SAME_VALUE, "A")) is None


def test_choices_are_bounded() -> None:
    """With many buffers not all combinations are tried."""
    options = {f"A{k}": (None, UNDEF, ZERO) for k in range(6)}
    choosing = Choosing(options, {name: name for name in options})
    tried = [choosing.first()]
    while (found := choosing.next(unproved(ClaimKind.SAME_VALUE))) is not None:
        tried.append(found)
    assert len(tried) == MOST_CHOICES
    assert len({tuple(choice.items()) for choice in tried}) == MOST_CHOICES
