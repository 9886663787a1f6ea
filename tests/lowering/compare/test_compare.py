"""`compare`: what it proves, what it refutes, and what it leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.lowering.compare.copies import (
    COPY,
    COPY_TILED,
    FOURS,
    IN_FOURS,
    SIZED,
    SIZED_TILED,
    SIZED_TWICE,
    THREE,
    TILED,
    TWO,
    func,
    sized,
)
from tests.lowering.programs import copy, two_stages

import layoutproof as lp
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.primfunc import APART, LAYOUT, PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering import codes
from layoutproof.lowering.gates import Gate
from layoutproof.lowering.proof_cache.store import ProofStore
from layoutproof.verify.replay.refute import replays
from layoutproof.verify.settings import Settings, within
from layoutproof.verify.verdict import codes as claims
from layoutproof.verify.verdict.verdict import Status

REPEATED = func(
    'A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")',
    "B[0] = 0\nfor k in range(9):\n    B[0] = B[0] + A[T.max(7 - k, 0)]",
)


# ---- proved


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (COPY, COPY),
        (COPY, func(TWO, "for i in range(14):\n    B[13 - i] = A[13 - i]", name="other")),
        (COPY, func(TWO.replace("A", "X").replace("B:", "Y:"), "for i in range(14):\n    Y[i] = X[i]")),
        (COPY, func(TWO, "for i in range(14):\n    B[i] = A[i]", apart=False)),
        (COPY, copy()),
        (
            func(TWO, "B[0] = T.call_extern('float32', 'f', A[0])"),
            func(TWO, "B[0] = T.call_extern('float32', 'f', A[0])"),
        ),
        (REPEATED, REPEATED),
        (SIZED, sized("m", "    for n in range(m):\n        B[n] = A[n]\n")),
        (
            func('A: T.Buffer((14,), "int32"), n: T.int32', "A[3] = n"),
            func('A: T.Buffer((14,), "int32"), m: T.int32', "A[3] = m"),
        ),
    ],
    ids=[
        "itself",
        "another order",
        "other names",
        "fewer assumptions",
        "blocks",
        "calls",
        "repeated",
        "symbols",
        "scalars",
    ],
)
def test_the_same_program_in_other_words(old: PrimFunc, new: PrimFunc) -> None:
    """Names, loops, blocks and attributes that mean nothing to callers make no difference."""
    found = lp.compare(old, new)
    assert found.status is Status.PROVED
    assert found.layouts == () and found.strictness == ()
    assert found.verdicts[0].claim.text.endswith("output buffers are preserved")
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}


@pytest.mark.parametrize(
    "layout",
    [
        FOURS["B"],
        lambda i: [i // 4, i % 4],
        lambda *i: [i[0] // 4, i[0] % 4],
        lp.IndexMap.from_func(lambda i: [i // 4, i % 4]),
    ],
    ids=["text", "lambda", "starred", "IndexMap"],
)
def test_a_given_layout(layout: Any) -> None:
    """However it is written, it is what the comparison is about."""
    found = lp.compare(COPY, COPY_TILED, layouts={"B": layout})
    assert found.status is Status.PROVED
    (stored,) = found.layouts
    assert (stored.buffer, stored.layout_given, stored.pad_value) == ("B", True, None)
    assert f"with B stored as `{stored.index_map}`" in found.verdicts[0].claim.text


def test_a_layout_in_names_of_axes() -> None:
    """Two layout strings are a layout."""
    old = func(
        'A: T.Buffer((1, 6, 6, 8), "float32")',
        "for n, h, w, c in T.grid(1, 6, 6, 8):\n    A[n, h, w, c] = T.float32(c)",
    )
    new = func(
        'A: T.Buffer((1, 2, 6, 6, 4), "float32")',
        "for n, h, w, c in T.grid(1, 6, 6, 8):\n    A[n, c // 4, h, w, c % 4] = T.float32(c)",
    )
    assert lp.compare(old, new, layouts={"A": "NHWC->NCHW4c"}).status is Status.PROVED


def test_a_layout_that_is_found_is_said_to_be() -> None:
    """Where the shapes differ and nothing is said, the layout is looked for, and the answer says which was found."""
    found = lp.compare(COPY, COPY_TILED)
    assert found.status is Status.PROVED
    (stored,) = found.layouts
    assert (stored.layout_given, stored.pad_given) == (False, False)
    assert found.verdicts[0].reason == "found, not given: the layout of B"


def test_symbols_of_a_re_laid_shape() -> None:
    """A layout of every size, whose box the new program calls by another name."""
    assert lp.compare(SIZED, SIZED_TILED, layouts=FOURS).status is Status.PROVED


def test_where_is_what_callers_vouch_for() -> None:
    """A condition on symbols decides between refuted and proved."""
    assert lp.compare(SIZED, IN_FOURS).status is Status.REFUTED
    found = lp.compare(SIZED, IN_FOURS, where="n % 4 == 0")
    assert found.status is Status.PROVED and found.where is not None


def test_what_the_program_before_assumes_of_sizes_is_known() -> None:
    """An assumption on symbols need not be repeated by the program after; one that it adds is seen."""
    assuming = sized("n", "    T.evaluate(T.assume(n % 4 == 0))\n    for i in range(n):\n        B[i] = A[i]\n")
    rounded = sized("n", "    for i, j in T.grid((n + 3) // 4, 4):\n        B[i * 4 + j] = A[i * 4 + j]\n")
    assert lp.compare(assuming, rounded).status is Status.PROVED
    assert lp.compare(SIZED, rounded).status is Status.REFUTED
    assert lp.compare(SIZED, assuming).status is Status.REFUTED


def test_a_record_of_the_program_after_counts_as_given() -> None:
    """What our own schedule printed is compared by what it says of itself, however many steps that takes, lowered or
    not.
    """
    schedule = lp.Schedule(copy())
    schedule.transform_layout("copy", "B", FOURS["B"], 0.0)
    once = schedule.func
    schedule.transform_layout("copy", "B", "lambda i, j: [j, i]")
    for new, contract in (
        (once, "T.float32(0.0)"),
        (schedule.func, "T.float32(0.0)"),
        (schedule.lower(), "T.float32(0.0)"),
    ):
        found = lp.compare(copy(), loads(print_func(new)))
        assert found.status is Status.PROVED
        (stored,) = found.layouts
        assert (stored.layout_given, stored.pad_given, stored.pad_value) == (True, True, contract)
    assert lp.compare(once, schedule.func).layouts[0].index_map == "lambda i, j: [j, i]"
    found = lp.compare(once, replace(once, attrs=once.attrs.without(LAYOUT)))
    assert found.status is Status.PROVED and found.rewrite is not None
    assert layout_records(found.rewrite.new) == layout_records(once)


@pytest.mark.parametrize("layouts", [FOURS, {}], ids=["given", "found"])
def test_a_lowered_program_is_compared_by_its_parameters(layouts: Mapping[str, str]) -> None:
    """Flat views of parameters, loops without blocks and no record: what callers pass is what counts."""
    schedule = lp.Schedule(copy())
    schedule.transform_layout("copy", "B", FOURS["B"], 0.0)
    lowered = loads(print_func(schedule.lower()))
    found = lp.compare(copy(), replace(lowered, attrs=lowered.attrs.without(LAYOUT)), layouts=layouts)
    assert found.status is Status.PROVED
    assert [layout.pad_value for layout in found.layouts] == ["T.float32(0.0)"]


def test_temporaries_of_one_name_need_not_be_one() -> None:
    """A temporary that an earlier step re-laid, and one of its name that nobody touched, are two: each is found by what
    it holds.
    """
    schedule = lp.Schedule(two_stages())
    schedule.transform_layout("first", "B", "lambda i, j: [i, j//8, j%8]", lp.undef)
    found = lp.compare(loads(print_func(schedule.func)), two_stages())
    assert found.status is Status.PROVED
    assert found.rewrite is not None and loads(print_func(found.rewrite.new)) == found.rewrite.new


def test_parameters_that_may_overlap_do_not_once_one_moves() -> None:
    """What re-laying asks of callers is asked by name, as where a schedule re-lays."""
    found = lp.compare(func(TWO, "for i in range(14):\n    B[i] = A[i]", apart=False), COPY_TILED, layouts=FOURS)
    assert found.status is Status.PROVED and found.rewrite is not None
    assert found.rewrite.new.attrs.get(APART) is True
    assert any("do not overlap" in f"{verdict.claim.text} {verdict.reason}" for verdict in found.verdicts)


def test_that_parameters_do_not_overlap_is_asked_where_it_takes_that() -> None:
    """Programs that say nothing of it are compared without first; an order that overlapping parameters would show is
    asked for.
    """
    indices = {"a": "i", "b": "i", "c": "13 - i"}
    old, same, other = (
        func(TWO, f"for i in range(14):\n    B[{i}] = A[{i}]", apart=False, name=name) for name, i in indices.items()
    )
    assert lp.compare(old, same).verdicts[0].reason is None
    found = lp.compare(old, other)
    assert found.status is Status.PROVED
    assert found.verdicts[0].reason == "precondition: parameters do not overlap"
    assert lp.compare(old, func(TWO, "for i in range(14):\n    B[13 - i] = A[i]", apart=False)).status is Status.REFUTED


def test_the_certificate_of_a_comparison() -> None:
    """What was proved is one step of a certificate, with the layouts as its arguments; of what is not proved there is
    none.
    """
    certificate = lp.compare(COPY, COPY_TILED, layouts=FOURS).certificate
    (step,) = certificate.steps
    assert (step["primitive"], step["arguments"]["layouts"][0]["buffer"]) == ("compare", "B")
    assert {obligation["status"] for obligation in step["obligations"]} == {Status.PROVED}
    with pytest.raises(ValueError, match="refuted"):
        _ = lp.compare(COPY, func(TWO, "for i in range(14):\n    B[i] = T.float32(0)")).certificate


# ---- refuted


FIRST_OF_TWO = func(THREE, "for i in range(14):\n    B[i] = A[i]")
ASSUMING = func(TWO, "T.evaluate(T.assume(A[0] == T.float32(0)))\nfor i in range(14):\n    B[i] = A[i]")


@pytest.mark.parametrize(
    ("old", "new", "layouts", "said"),
    [
        (COPY, func(TWO, "for i in range(14):\n    B[i] = A[i] + T.float32(1)"), {}, "got 1.0"),
        (COPY, func(TWO, "for i in range(13):\n    B[i] = A[i]"), {}, "`B[13]`: expected"),
        (COPY, func(TWO, "T.evaluate(0)"), {}, "expected"),
        (COPY, func(TWO, "for i in range(14):\n    A[i] = A[i]"), {}, "expected"),
        (COPY, COPY_TILED, {"B": "lambda i: [i%4, i//4]"}, "now at"),
        (FIRST_OF_TWO, func(THREE, "for i in range(14):\n    B[i] = A[i]\n    C[i] = A[i]"), {}, "`C[13]`: expected"),
        (COPY, ASSUMING, {}, "only the new program faults"),
    ],
    ids=["value", "store", "nothing", "another output", "layout", "extra output", "assumption"],
)
def test_a_difference_is_seen(old: PrimFunc, new: PrimFunc, layouts: Mapping[str, str], said: str) -> None:
    """What callers would notice is refuted by a run that replays, and says which parameters were taken to keep their
    cells.
    """
    found = lp.compare(old, new, layouts=layouts)
    assert found.status is Status.REFUTED
    first = found.verdicts[0]
    assert first.reason is not None and said in first.reason and "the same shape in both programs" in first.reason
    assert first.code == claims.OTHER_END
    assert found.rewrite is None or (first.counterexample is not None and replays(found.rewrite, first.counterexample))


@pytest.mark.parametrize("body", ["for i in range(15):\n    B[i] = A[i]", "for i in T.parallel(14):\n    B[0] = A[i]"])
def test_a_fault_that_only_the_new_program_has_is_a_difference(body: str) -> None:
    """An access that leaves its buffer, and a race, are faults of the program after."""
    assert lp.compare(COPY, func(TWO, body)).status is Status.REFUTED


def test_a_fault_of_both_programs_refutes_nothing() -> None:
    """A program that reads uninitialised memory is not refuted by comparison with one that does so too."""
    faulty = func(TWO, 'C = T.alloc_buffer((14,), "float32")\nfor i in range(14):\n    B[i] = C[i]')
    again = func(TWO, 'C = T.alloc_buffer((14,), "float32")\nfor i in range(14):\n    B[13 - i] = C[13 - i]')
    found = lp.compare(faulty, again)
    assert found.status is Status.UNKNOWN
    reason = found.verdicts[0].reason
    assert reason is not None and "so may the one before" in reason


# ---- neither


def test_layouts_that_were_not_given_are_all_tried_before_a_refutation() -> None:
    """What differs with each layout that comes into question is refuted, with the number of them; what differs with a
    layout that was stated is refuted by that one.
    """
    new = func(TILED, "for i in range(14):\n    B[i // 4, i % 4] = A[i] + T.float32(1)")
    assert lp.compare(COPY, new, layouts=FOURS).status is Status.REFUTED
    found = lp.compare(COPY, new)
    assert found.status is Status.REFUTED
    reason = found.verdicts[0].reason
    assert reason is not None and reason.startswith("a run refutes each of the ") and "layouts of B" in reason
    assert found.rewrite is None and found.records == ()
    given = lp.compare(COPY, COPY_TILED, pads={"B": 5.0})
    assert given.status is Status.REFUTED


def test_a_layout_of_another_kind_that_agrees_refutes_nothing() -> None:
    """One layout with which no run differs is enough to leave it open, or to prove it."""
    new = func(TILED, "for i in range(14):\n    B[i % 4, i // 4] = A[i]")
    assert lp.compare(COPY, new).status is Status.PROVED
    swapped = func(
        'A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 8), "float32")',
        "for i, j in T.grid(4, 4):\n    B[i, j + 2] = A[i, j]",
    )
    old = func(
        'A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")',
        "for i, j in T.grid(4, 4):\n    B[i, j] = A[i, j]",
    )
    assert lp.compare(old, swapped).status is not Status.REFUTED


def test_a_result_that_lies_transposed_in_its_own_shape_is_refuted() -> None:
    """A buffer whose shape did not change keeps its layout, whatever layouts others have."""
    old = func(
        'A: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")',
        "for i, j in T.grid(4, 4):\n    C[i, j] = A[i, j]",
    )
    new = func(
        'A: T.Buffer((4, 2, 2), "float32"), C: T.Buffer((4, 4), "float32")',
        "for i, j in T.grid(4, 4):\n    C[j, i] = A[i, j // 2, j % 2] + A[0, 0, 0]",
    )
    assert lp.compare(old, new).status is Status.REFUTED


def test_a_program_that_stores_nothing_is_no_answer_to_one_that_does() -> None:
    """That is not vacuous, which it would be only where nothing is asked."""
    found = lp.compare(COPY, func(TILED, "for i in range(0):\n    B[i // 4, i % 4] = A[i]"))
    assert found.status is Status.REFUTED


def test_padding_that_is_assumed_to_hold_two_things_refutes_nothing() -> None:
    """No one pad value says it, so that each of them fails says nothing."""
    old = func('A: T.Buffer((14,), "float32"), B: T.Buffer((2,), "float32")', "for i in range(2):\n    B[i] = A[i]")
    new = func(
        'A: T.Buffer((4, 4), "float32"), B: T.Buffer((2,), "float32")',
        "T.assume(A[3, 2] == T.float32(0))\nT.assume(A[3, 3] == T.float32(1))\nfor i in range(2):\n"
        "    B[i] = A[0, i] * A[3, 3] + A[3, 2]",
    )
    found = lp.compare(old, new, layouts={"A": "lambda i: [i//4, i%4]"})
    assert found.status is Status.UNKNOWN


def test_a_fault_refutes_whatever_the_layout_is() -> None:
    """An access that leaves its buffer is a difference with every layout, where the program before has no fault."""
    new = func(TILED, "for i in range(14):\n    B[i // 4, i % 4] = A[i + 1]")
    found = lp.compare(COPY, new)
    assert found.status is Status.REFUTED and found.layouts == ()
    reason = found.verdicts[0].reason
    assert reason is not None and reason.startswith("whatever the layout of B is, read A[i + 1] stays within [14]")
    old = func(TWO, "for i in range(14):\n    B[i] = A[i + 1]")
    assert lp.compare(old, new).status is not Status.REFUTED


def test_what_no_witness_was_found_for_says_how_far_the_search_came() -> None:
    """A factor that is taken out of a sum is not found, and the furthest point is in the verdict."""
    old = func(
        'A: T.Buffer((4, 8), "int32"), B: T.Buffer((4,), "int32")',
        "for i in range(4):\n    B[i] = 0\n    for k in range(8):\n        B[i] = B[i] + A[i, k] * 2",
    )
    new = func(
        'A: T.Buffer((4, 8), "int32"), B: T.Buffer((4,), "int32")',
        'P = T.alloc_buffer((4,), "int32")\n'
        "for i in range(4):\n    P[i] = 0\n    for k in range(8):\n        P[i] = P[i] + A[i, k]\n"
        "for i in range(4):\n    B[i] = P[i] * 2",
    )
    found = lp.compare(old, new)
    assert found.status is Status.UNKNOWN
    if found.furthest is not None:
        assert found.verdicts[0].reason == found.furthest.text()
        assert found.rewrite is None and found.to_dict()["furthest"] == found.furthest.to_dict()


@pytest.mark.parametrize(
    ("old", "new", "options"),
    [
        (func(TWO, "T.evaluate(0)"), func(TWO, "T.evaluate(1)"), {}),
        (SIZED, SIZED_TWICE, {"where": "n < 0"}),
        (SIZED, SIZED_TILED, {"layouts": FOURS, "where": "n < 0"}),
    ],
    ids=["nothing", "no size", "no size, re-laid"],
)
def test_what_speaks_of_nothing_is_vacuous(old: PrimFunc, new: PrimFunc, options: Mapping[str, Any]) -> None:
    """A comparison of programs that do nothing, or for no size, is not proved."""
    assert lp.compare(old, new, **options).status is Status.VACUOUS


# ---- with others


def test_a_comparison_is_a_result_of_a_gate() -> None:
    """A gate may return comparisons, and what they rest on of floats is bounded by it."""
    reversed_sum = [
        func(
            'A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")',
            f"B[0] = T.float32(0)\nfor k in range(8):\n    B[0] = B[0] + A[{k}]",
        )
        for k in ("k", "7 - k")
    ]
    known = lp.compare(*reversed_sum)
    assert known.strictness == ("reassoc",)

    @lp.gate(strictness="ieee")
    def exact() -> Any:
        """What is returned was made with more fast-math assumptions."""
        return [lp.compare(COPY, COPY_TILED), known]

    @lp.gate(strictness="ieee")
    def here() -> Any:
        """What is made here is bounded."""
        return lp.compare(*reversed_sum)

    assert isinstance(exact, Gate) and isinstance(here, Gate)
    with pytest.raises(lp.LayoutproofError, match="reassoc") as problem:
        exact.results(exact.case(None))
    assert problem.value.diagnostics[0].code == codes.GATE_RESULT
    (bounded,) = here.results(here.case(None))
    assert isinstance(bounded, lp.Comparison) and bounded.status is not Status.PROVED


def test_what_was_proved_before_is_looked_up(tmp_path: Any) -> None:
    """The checker's answers are remembered, so that a second comparison proves nothing anew and says the same."""
    store = ProofStore.open(str(tmp_path / "cache"))
    with within(Settings(memory=store)):
        first, second = (lp.compare(COPY, COPY_TILED, layouts=FOURS) for _ in range(2))
    store.close()
    assert [v.to_dict() for v in first.verdicts[1:]] == [v.to_dict() for v in second.verdicts[1:]]
    assert first.status is Status.PROVED
