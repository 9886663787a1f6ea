"""JUnit reports: valid by the schema that Jenkins uses, read by strict readers, and saying what happened."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from xml.etree import ElementTree

import pytest
from hypothesis import given
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from tests.cli.gate.strategies import RUNS
from tests.cli.render.gate.made import EVERYTHING, finding, outcome, spooled, summary_of
from tests.conftest import Golden
from tests.shares import one_in
from tests.tree import ROOT
from xmlschema import XMLSchema

from layoutproof.cli.gate.outcomes import Fate, Finding, Outcome
from layoutproof.cli.render.gate.junit import render_junit

SCHEMA = XMLSchema(str(ROOT / "tests" / "data" / "schemas" / "junit-10.xsd"))
RESULTS = {Failure: "failures", Error: "errors", Skipped: "skipped"}


def rendered(outcomes: Sequence[Outcome]) -> str:
    """The report's text."""
    out = StringIO()
    render_junit(outcomes, summary_of(outcomes), out)
    return out.getvalue()


def cases(outcomes: Sequence[Outcome]) -> list[TestCase]:
    """The cases of the report, as junitparser reads them."""
    return [case for suite in JUnitXml.fromstring(rendered(outcomes).encode()) for case in suite]


def only(*findings: Finding) -> TestCase:
    """The case of one outcome with these findings."""
    [case] = cases([outcome(*findings)])
    return case


@one_in(9)
@given(RUNS)
def test_any_run_is_valid(run: list[Outcome]) -> None:
    """Whatever texts outcomes hold, the report is well-formed, valid by the schema, and its counts are those of its
    elements.
    """
    text = rendered(run)
    tree = ElementTree.fromstring(text.encode())
    SCHEMA.validate(tree)
    suites = list(JUnitXml.fromstring(text.encode()))
    assert sum(suite.tests for suite in suites) == len(run) == int(tree.attrib["tests"])
    for suite in suites:
        assert isinstance(suite, TestSuite)
        read = list(suite)
        assert suite.tests == len(read)
        for kind, attribute in RESULTS.items():
            assert getattr(suite, attribute) == sum(isinstance(r, kind) for case in read for r in case.result)


@one_in(9)
@given(RUNS)
def test_a_case_fails_where_an_item_does(run: list[Outcome]) -> None:
    """The cases stand in the run's order, and those with a failure or an error are the items that do not pass."""
    found = cases(run)
    assert [any(isinstance(r, Failure | Error) for r in case.result) for case in found] == [
        not one.passes for one in run
    ]


def test_everything(golden: Golden) -> None:
    """The report of a run with everything in it is the one that was looked at."""
    golden("gate/everything.junit.xml", rendered(EVERYTHING))


def test_no_outcome() -> None:
    """A run without items is a valid report with no suite."""
    tree = ElementTree.fromstring(rendered([]))
    SCHEMA.validate(tree)
    assert len(tree) == 0 and tree.attrib["tests"] == "0"


@pytest.mark.parametrize(
    ("status", "element", "kind"),
    [
        ("refuted", Failure, "refuted"),
        ("unknown", Failure, "unknown"),
        ("vacuous", Failure, "vacuous"),
        (None, Error, "error"),
    ],
)
def test_statuses(status: str | None, element: type, kind: str) -> None:
    """A refutation, an unknown and a vacuous proof are failures of that type; wrong input is an error."""
    [result] = only(finding(status=status)).result
    assert type(result) is element and result.type == kind
    assert result.message == "LP221: a store computes another value"


@pytest.mark.parametrize("fate", [Fate.ALLOWED, Fate.KNOWN, Fate.IGNORED])
def test_fates(fate: Fate) -> None:
    """What does not fail the run is skipped, with the reason."""
    [result] = only(finding(fate=fate)).result
    assert type(result) is Skipped and result.type == fate.value
    assert f"refuted[LP221] ({fate.value}" in (result.text or "")


def test_the_worst_finding_speaks_for_all() -> None:
    """One element says how a case ended; it names the worst finding and holds the text of each."""
    unknown, wrong, refuted = finding("LP230", "unknown"), finding("LP110", None), finding(message="worst")
    [result] = only(unknown, finding(fate=Fate.KNOWN), wrong, refuted).result
    assert type(result) is Failure and result.message == "LP221: worst (and 3 more findings)"
    assert result.text is not None
    assert [line.split("[")[1][:5] for line in result.text.splitlines()] == ["LP221", "LP110", "LP230", "LP221"]


def test_a_suite_is_a_file() -> None:
    """Outcomes of one file make one suite, whose name is the file's path; names of gates in it do not repeat the
    path.
    """
    run = [
        outcome(path="a.py", name="a.py::x"),
        outcome(path="./a.py", name="a.py::y"),
        outcome(path="d/b.py", name="d/b.py::x[8]"),
    ]
    suites = list(JUnitXml.fromstring(rendered(run).encode()))
    assert [(suite.name, suite.tests) for suite in suites] == [("a.py", 2), ("d/b.py", 1)]
    assert [(case.classname, case.name) for case in cases(run)] == [("a", "x"), ("a", "y"), ("d.b", "x[8]")]


def test_what_xml_cannot_hold_is_written_out() -> None:
    """Control characters, half surrogates and noncharacters become escapes that can be read; line ends of all systems
    become one.
    """
    [result] = only(finding(message="a\x00\x1b\ud800\uffff\x85é😀<&]]>\r\nb\rc")).result
    assert result.text is not None
    assert result.text.endswith("a\\x00\\x1b\\ud800\\uffff\x85é😀<&]]>\n  b\n  c")


def test_long_texts_are_cut() -> None:
    """A message of megabytes makes a report of kilobytes, which says how long it was."""
    text = rendered([outcome(finding(message="x" * 3_000_000))])
    assert len(text) < 30_000 and "characters in all" in text


@pytest.mark.campaign
def test_a_spool_is_read_in_flat_memory() -> None:
    """Ten thousand outcomes are written one by one: the writer holds the files' counts, not the outcomes."""
    size, peak = spooled(render_junit)
    assert size > 1_500_000 and peak < 4 << 20


def test_outcomes_that_can_be_read_once_are_refused() -> None:
    """A generator would make an empty report, so it is a mistake of the caller."""
    with pytest.raises(TypeError, match="more than once"):
        render_junit(iter([]), summary_of([]), StringIO())
