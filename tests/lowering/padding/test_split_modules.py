"""A producer and a consumer of a padded buffer, in one function and in two: which rewrites of either are valid under
which contract.

The roadmap's table ("Points of Communication"). `B` holds 14 elements in 4 rows of 4. The producer's rewrite stores a
zero in the two cells that are left over; the consumer's drops the guard that keeps it away from them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.shares import one_in

from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status, Verdict

RECORD = (
    '"layoutproof.layout": {"B_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", '
    '"shape": [4, 4], '
    '"contract": CONTRACT}]}}'
)
CONTRACTS = {"none": "None", "undef": '"undef"', "value": '"0"'}
HELD = {"undef": 'T.undef(dtype="int32")', "value": "0"}

GUARDED_COPY = """    for io, ii in T.grid(4, 4):
        if 4 * io + ii < 14:
            B[io, ii] = A[4 * io + ii]
"""
FILLING_COPY = f"""{GUARDED_COPY}        else:
            B[io, ii] = 0
"""
OTHER_FILLING_COPY = FILLING_COPY.replace("= 0", "= 7")
GUARDED_SUM = """    C[0] = 0
    for jo, ji in T.grid(4, 4):
        if 4 * jo + ji < 14:
            C[0] = C[0] + B[jo, ji]
"""
PLAIN_SUM = """    C[0] = 0
    for jo, ji in T.grid(4, 4):
        C[0] = C[0] + B[jo, ji]
"""
SPLIT_SUM = "lambda jo, ji: [jo, ji] where 4 * jo + ji < 14"


def one_function(copy: str, total: str) -> str:
    """Producer and consumer around a temporary."""
    head = (
        'def main(A: T.Buffer((14,), "int32"), C: T.Buffer((1,), "int32")):\n    T.func_attr({"tirx.noalias": True})\n'
    )
    return f'{head}    B = T.alloc_buffer((4, 4), "int32")\n{copy}{total}'


def producer(contract: str, copy: str, owed: bool = True) -> str:
    """The producer alone, with its postcondition."""
    record = RECORD.replace("CONTRACT", CONTRACTS[contract])
    stage = (
        f"    for p, q in T.grid(4, 4):\n        if 4 * p + q >= 14:\n            B[p, q] = {HELD[contract]}\n"
        if contract in HELD
        else ""
    )
    head = (
        'def main(A: T.Buffer((14,), "int32"), B: T.Buffer((4, 4), "int32")):\n'
        f'    T.func_attr({{"tirx.noalias": True, {record}}})\n'
    )
    return f"{head}{copy}{stage if owed else ''}"


def consumer(contract: str, total: str) -> str:
    """The consumer alone, with what it takes for granted."""
    record = RECORD.replace("CONTRACT", CONTRACTS[contract])
    said = f"T.evaluate(T.assume(4 * p + q < 14 or B[p, q] == {HELD[contract]}))" if contract in HELD else ""
    stage = f"    for p, q in T.grid(4, 4):\n        {said}\n" if said else ""
    head = (
        'def main(B: T.Buffer((4, 4), "int32"), C: T.Buffer((1,), "int32")):\n'
        f'    T.func_attr({{"tirx.noalias": True, {record}}})\n'
    )
    return f"{head}{stage}{total}"


@dataclass(frozen=True)
class Row:
    """One entry of the table: two programs, which store computes which, the verdict, and a part of the reason where it
    is refuted.
    """

    before: str
    after: str
    theta: tuple[str, ...]
    status: Status
    reason: str = ""

    def rewrite(self) -> Rewrite:
        """The entry as a rewrite."""
        head = "".join(f"# theta: {line}\n" for line in self.theta)
        functions = [text.replace("def main", f"@T.prim_func(s_tir=True)\ndef {name}") for text, name in self.named()]
        return parse_rewrite(f"{head}# from tvm.script import tirx as T\n\n" + "\n\n".join(functions))

    def named(self) -> tuple[tuple[str, str], ...]:
        """The texts with the names that rewrites have in text."""
        return ((self.before, "before"), (self.after, "after"))


COPY, FILL = "0 -> 0: lambda io, ii: [io, ii]", "1 -> none"
PROVED, REFUTED = Status.PROVED, Status.REFUTED
UNREADABLE = "`B[jo, ji]` is initialised"

TABLE = {
    "one function, producer fills": Row(
        one_function(GUARDED_COPY, GUARDED_SUM),
        one_function(FILLING_COPY, GUARDED_SUM),
        (COPY, FILL, "2 -> 1: lambda: []", "3 -> 2: lambda jo, ji: [jo, ji]"),
        PROVED,
    ),
    "one function, consumer unguarded after the producer fills": Row(
        one_function(FILLING_COPY, GUARDED_SUM),
        one_function(FILLING_COPY, PLAIN_SUM),
        (COPY, "1 -> 1: lambda io, ii: [io, ii]", "2 -> 2: lambda: []", f"3 -> 3: {SPLIT_SUM}"),
        PROVED,
    ),
    "one function, consumer unguarded after another filling": Row(
        one_function(OTHER_FILLING_COPY, GUARDED_SUM),
        one_function(OTHER_FILLING_COPY, PLAIN_SUM),
        (COPY, "1 -> 1: lambda io, ii: [io, ii]", "2 -> 2: lambda: []", f"3 -> 3: {SPLIT_SUM}"),
        REFUTED,
        "output buffer `C` is preserved",
    ),
    "one function, consumer unguarded, nothing filled": Row(
        one_function(GUARDED_COPY, GUARDED_SUM),
        one_function(GUARDED_COPY, PLAIN_SUM),
        (COPY, "1 -> 1: lambda: []", f"2 -> 2: {SPLIT_SUM}"),
        REFUTED,
        UNREADABLE,
    ),
    "no contract, producer fills": Row(
        producer("none", GUARDED_COPY),
        producer("none", FILLING_COPY),
        (COPY, FILL),
        REFUTED,
        "stays off padding that has no contract",
    ),
    "no contract, consumer unguarded": Row(
        consumer("none", GUARDED_SUM),
        consumer("none", PLAIN_SUM),
        ("0 -> 0: lambda: []", f"1 -> 1: {SPLIT_SUM}"),
        REFUTED,
        UNREADABLE,
    ),
    "undef, producer fills": Row(
        producer("undef", GUARDED_COPY),
        producer("undef", FILLING_COPY),
        (COPY, FILL, "2 -> 1: lambda p, q: [p, q]"),
        PROVED,
    ),
    "undef, consumer unguarded": Row(
        consumer("undef", GUARDED_SUM),
        consumer("undef", PLAIN_SUM),
        ("0 -> 0: lambda: []", f"1 -> 1: {SPLIT_SUM}"),
        REFUTED,
        "output buffer `C` is preserved",
    ),
    "value, producer fills at once": Row(
        producer("value", GUARDED_COPY),
        producer("value", FILLING_COPY, owed=False),
        (COPY, "1 -> 1: lambda io, ii: [io, ii]"),
        PROVED,
    ),
    "value, producer fills with another": Row(
        producer("value", GUARDED_COPY),
        producer("value", OTHER_FILLING_COPY, owed=False),
        (COPY, FILL),
        REFUTED,
        "output buffer `B`",
    ),
    "value, producer fills nothing": Row(
        producer("value", GUARDED_COPY),
        producer("value", GUARDED_COPY, owed=False),
        (COPY,),
        REFUTED,
        "output buffer `B`",
    ),
    "value, consumer unguarded": Row(
        consumer("value", GUARDED_SUM),
        consumer("value", PLAIN_SUM),
        ("0 -> 0: lambda: []", f"1 -> 1: {SPLIT_SUM}"),
        PROVED,
    ),
}


def verdicts_of(row: Row) -> tuple[Verdict, ...]:
    """What the checker says."""
    return check_rewrite(row.rewrite())


@one_in(4)
@pytest.mark.parametrize("name", TABLE)
def test_an_entry_of_the_table(name: str) -> None:
    """Valid rewrites are proved bit for bit; the others are refuted by an execution, for the reason that the roadmap
    gives.
    """
    row = TABLE[name]
    verdicts = verdicts_of(row)
    told = [(v.status.value, v.claim.text, v.reason) for v in verdicts if v.status is not PROVED]
    assert worst(v.status for v in verdicts) is row.status, told
    if row.status is PROVED:
        assert not any(v.strictness for v in verdicts)
        return
    refuted = [v for v in verdicts if v.status is REFUTED]
    assert all(v.counterexample for v in refuted)
    assert any(row.reason in v.claim.text for v in refuted), told


@one_in(4)
def test_the_witness_of_an_entry_may_not_be_left_out() -> None:
    """A valid rewrite with an incomplete witness is not proved: nothing in the table rests on names alone."""
    rewrite = TABLE["value, consumer unguarded"].rewrite()
    silent = Witness((rewrite.witness.instances[0], InstanceMap(1, None, None)))
    verdicts = check_rewrite(Rewrite(rewrite.old, rewrite.new, silent))
    assert worst(v.status for v in verdicts) is Status.UNKNOWN
