"""Outcomes for tests, written out by hand."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from io import StringIO
from typing import Any

from layoutproof.cli.gate.outcomes import Fate, Finding, Kind, Outcome, Place, Spool, Summary

HASH = "5b1f0c0e9d0a4d2c8a7b6e5f4d3c2b1a00112233445566778899aabbccddeeff"
GATE = Place("gates.py", 12, 5, 12, 18, "    def wrong_pad():")


def finding(code: str = "LP221", status: str | None = "refuted", **given: Any) -> Finding:
    """A finding at a gate's place, with a hash where it has a verdict."""
    made = Finding(
        code, "a store computes another value", status, place=GATE, obligation=HASH if status is not None else None
    )
    return replace(made, **given)


def outcome(
    *findings: Finding, name: str = "gates.py::wrong_pad", path: str = "gates.py", verdict: str | None = "proved"
) -> Outcome:
    """An outcome whose verdict is that of its first finding."""
    status = findings[0].status if findings else verdict
    return Outcome(Kind.GATE, name, path, Place(path, 12, 5), status, findings=findings, seconds=0.25)


def summary_of(outcomes: Iterable[Outcome]) -> Summary:
    """The count of a run."""
    summary = Summary()
    for one in outcomes:
        summary.add(one)
    return summary


class Sink(StringIO):
    """Counts what it is given, and keeps nothing."""

    size = 0

    def write(self, text: str) -> int:
        self.size += len(text)
        return len(text)


def many(number: int) -> Iterator[Outcome]:
    """Outcomes with a finding each, of every status and fate, in files of a hundred."""
    statuses = ("unknown", "refuted", None, "vacuous")
    codes = {"unknown": "LP230", "refuted": "LP221", None: "LP110", "vacuous": "LP231"}
    for index in range(number):
        status = statuses[index % 4]
        fate = Fate.FAILS if status is None or index % 3 else Fate.KNOWN
        path = f"gates_{index // 100}.py"
        place = Place(path, index % 100 + 1, 1, index % 100 + 1, 4, "def")
        one = Finding(
            codes[status],
            f"finding {index}",
            status,
            place=place,
            obligation=f"{index:064x}" if status else None,
            fate=fate,
        )
        yield Outcome(Kind.GATE, f"{path}::gate_{index}", path, place, status, findings=(one,))


# One outcome with all that formats trip over, and plain ones around it.
NASTY = 'stores "a" & <b> ]]> \x1b[31m\x00\ud800\ufffe 100%::, A[i](3)\r\nsecond line\rthird 😀é'
EVERYTHING = (
    Outcome(
        Kind.GATE,
        "gates.py::fine",
        "gates.py",
        Place("gates.py", 1),
        "proved",
        certificate="fine.lpcert.json",
        seconds=1.5,
    ),
    Outcome(
        Kind.GATE,
        "a b/gätes 100%.py::wrong[8, 'x']",
        "a b/gätes 100%.py",
        Place("a b/gätes 100%.py", 4, 1, 9, 2, "def wrong():"),
        "refuted",
        findings=(
            finding("LP230", "unknown", message="budget ran out", fate=Fate.ALLOWED),
            finding(
                message=NASTY,
                help="choose 0.0\r\nor another",
                drawing=("(0, 1) ──┐", "         ├──> cell 3", "(1, 0) ──┘"),
                place=Place("a b/gätes 100%.py", 7, 6, 7, 11, "😀x = 😀😀.y"),
                related=(
                    (Place("a b/gätes 100%.py", 2, 1, 3, 4, "x"), "the pad value"),
                    (Place("/elsewhere/conv.py", 30, 9, 30, 12, "        out"), "the store"),
                    (Place("./deep/../gates.py", 5), "zero"),
                ),
                counterexample={"inputs": {"A": ["nan"]}},
            ),
        ),
        notes=("the caller owes: n >= 1",),
    ),
    Outcome(
        Kind.TRACE, "conv.py:conv tuned.jsonl:17", "conv.py", None, None, findings=(finding("LP328", None, place=None),)
    ),
    Outcome(
        Kind.TRACE, "conv.py:conv tuned.jsonl:18", "conv.py", None, "vacuous", findings=(finding("LP231", "vacuous"),)
    ),
    Outcome(
        Kind.REWRITE,
        "old.py",
        "old.py",
        Place("old.py", 1),
        "refuted",
        findings=(finding(fate=Fate.KNOWN, message="x" * 50_000),),
    ),
    Outcome(Kind.REWRITE, "old2.py", "old2.py", Place("old2.py", 1), "refuted", findings=(finding(fate=Fate.IGNORED),)),
    Outcome(
        Kind.GATE,
        "allowed.py::a",
        "allowed.py",
        None,
        "unknown",
        findings=(finding("LP230", "unknown", fate=Fate.ALLOWED),),
    ),
)


def spooled(render: Callable[[Spool, Summary, Sink], None]) -> tuple[int, int]:
    """The characters of a report of ten thousand outcomes in a spool, and the bytes that its writer held at most."""
    with Spool() as spool:
        for one in many(10_000):
            spool.add(one)
        summary, sink = summary_of(spool), Sink()
        tracemalloc.start()
        try:
            render(spool, summary, sink)
            return sink.size, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
