"""Outcomes made up by hypothesis: with everything in them that a program, a path or a claim may hold, and that a format
may trip over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from layoutproof.cli.catalogue import all_codes
from layoutproof.cli.gate.outcomes import Fate, Finding, Kind, Outcome, Place

CODES = tuple(all_codes())
# What breaks formats: their own marks, line ends of all systems, control characters, astral characters, half of a
# surrogate pair.
MARKS = ("%", "::", ":", ",", "%0A", "]]>", "<&>\"'", "](", "|", "\\", "`")
LINE_ENDS = ("\r\n", "\n", "\r", "\t", "\x0b", "\x85", "\u2028")
NO_TEXT = ("\0", "\x1b[31m", "\ufffe", "\U0001d538\U0001f600", "\ud800")
TROUBLE = st.sampled_from((*MARKS, *LINE_ENDS, *NO_TEXT))
TEXT = st.one_of(st.text(max_size=8), st.tuples(TROUBLE, st.text(max_size=3), TROUBLE).map("".join))
WORD = TEXT.filter(lambda text: text.strip() != "")
# Paths as an operating system has them: no null byte, not empty.
PATH = st.one_of(
    st.sampled_from(("gates.py", "a b/ü#?%.py", "/elsewhere/x.py", "./deep/../gates.py", "weird:na,me\n.py")),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20),
)
COUNT = st.integers(min_value=1, max_value=10**6)


@st.composite
def places(draw: st.DrawFn) -> Place:
    """A place whose end, where it has one, does not lie before its begin."""
    line, column = draw(COUNT), draw(st.integers(min_value=1, max_value=300))
    lines = draw(st.integers(min_value=0, max_value=3))
    end = draw(st.sampled_from(((0, 0), (line, column), (line + lines, column + draw(st.integers(0, 40))))))
    return Place(
        draw(PATH), line, column, *end, draw(TEXT.map(lambda text: text.replace("\n", " ").replace("\r", " ")))
    )


# What JSON has: another test's business is JSON itself, so a few objects with all kinds of values will do.
OBJECTS: tuple[dict[str, Any], ...] = (
    {},
    {"inputs": {"A": [["0x1p+0", "nan"], []]}, "n": -1, "x": 0.1, "none": None, "yes": True},
    {"\r\n": "\ud800", "": [{"deep": [[["\x00"]]]}], "big": 10**30},
)
OBJECT: st.SearchStrategy[Mapping[str, Any]] = st.sampled_from(OBJECTS)
HASH = st.integers(0, 5).map("{:064x}".format)


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    """A finding: of a verdict, with the hash of its obligation, or of wrong input, without one."""
    status = draw(st.sampled_from(("refuted", "unknown", "vacuous", None)))
    return Finding(
        draw(st.sampled_from(CODES)),
        draw(WORD),
        status,
        draw(st.sampled_from(("error", "error", "error", "warning", "note"))) if status is None else "error",
        draw(st.none() | places()),
        tuple(draw(st.lists(st.tuples(places(), TEXT), max_size=2))),
        draw(st.none() | TEXT),
        draw(HASH) if status is not None and draw(st.booleans()) else None,
        draw(OBJECT) if status == "refuted" else None,
        tuple(draw(st.lists(TEXT, max_size=2))),
        draw(st.sampled_from(tuple(Fate))),
    )


@st.composite
def outcomes(draw: st.DrawFn) -> Outcome:
    """An outcome of any verdict; one that is proved may have findings, as one has whose input is warned about."""
    return Outcome(
        draw(st.sampled_from(tuple(Kind))),
        draw(WORD),
        draw(PATH),
        draw(st.none() | places()),
        draw(st.sampled_from(("proved", "refuted", "unknown", "vacuous", None))),
        tuple(draw(st.lists(OBJECT, max_size=2))),
        tuple(draw(st.lists(findings(), max_size=3))),
        tuple(draw(st.lists(TEXT, max_size=2))),
        draw(st.floats(min_value=0, max_value=1e6)),
        draw(st.booleans()),
        draw(st.none() | PATH),
        draw(st.none() | OBJECT),
    )


RUNS = st.lists(outcomes(), max_size=4)
