"""SARIF reports: valid by the published schema and by what the standard says in words, and within what an upload may
have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from jsonschema import Draft4Validator
from tests.cli.gate.strategies import RUNS
from tests.cli.render.gate.made import EVERYTHING, HASH, finding, many, outcome, spooled, summary_of
from tests.conftest import Golden
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.cli.catalogue import meaning_of
from layoutproof.cli.gate.outcomes import Fate, Finding, Outcome, Place
from layoutproof.cli.render.gate.finding_texts import findings_of, rank
from layoutproof.cli.render.gate.sarif import MOST_RESULTS, render_sarif

SCHEMA = json.loads((ROOT / "tests" / "data" / "schemas" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
VALIDATOR = Draft4Validator(SCHEMA)
# RFC 3986: what a path may hold unescaped, and escapes; a relative reference has no colon in its first part.
RELATIVE = re.compile(r"(?![^/]*:)(?!/)([A-Za-z0-9._~!$&'()*+,;=@:/-]|%[0-9A-F]{2})+")
ABSOLUTE = re.compile(r"file:///([A-Za-z0-9._~!$&'()*+,;=@:/-]|%[0-9A-F]{2})*")


def run_of(outcomes: Sequence[Outcome], **given: Any) -> dict[str, Any]:
    """The one run of the report."""
    out = StringIO()
    render_sarif(outcomes, summary_of(outcomes), out, **given)
    log: dict[str, Any] = json.loads(out.getvalue())
    [run] = log["runs"]
    assert isinstance(run, dict)
    return run


def only(*findings: Finding) -> dict[str, Any]:
    """The one result of an outcome."""
    [result] = run_of([outcome(*findings)])["results"]
    assert isinstance(result, dict)
    return result


def check_words(run: dict[str, Any]) -> None:
    """What the standard asks for in words: indices that fit, identifiers that are stable, URIs, regions that do not run
    backwards.
    """
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == sorted(set(rules))
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["message"]["text"] != "" and "](" not in result["message"]["text"]
        assert len(result["locations"]) == 1
        places = [
            location["physicalLocation"] for location in (*result["locations"], *result.get("relatedLocations", ()))
        ]
        for place in places:
            artifact, region = place["artifactLocation"], place.get("region", {"startLine": 1, "startColumn": 1})
            assert (RELATIVE if "uriBaseId" in artifact else ABSOLUTE).fullmatch(artifact["uri"]), artifact
            assert region.get("endLine", region["startLine"]) >= region["startLine"]
            if region.get("endLine") == region["startLine"]:
                assert region["endColumn"] >= region["startColumn"]


@one_in(9)
@given(RUNS)
def test_any_run_is_valid(run: list[Outcome]) -> None:
    """Whatever texts outcomes hold, the report is UTF-8, valid by the schema and by the standard's words, with a result
    a finding.
    """
    out = StringIO()
    render_sarif(run, summary_of(run), out)
    log = json.loads(out.getvalue())
    json.dumps(log, ensure_ascii=False).encode("utf-8")
    VALIDATOR.validate(log)
    check_words(log["runs"][0])
    assert len(log["runs"][0]["results"]) == sum(len(findings_of(one)) for one in run)


def test_everything(golden: Golden) -> None:
    """The report of a run with everything in it is the one that was looked at."""
    run = run_of(EVERYTHING)
    check_words(run)
    run["tool"]["driver"] |= {
        "version": "VERSION",
        "semanticVersion": "VERSION",
        "rules": [r["id"] for r in run["tool"]["driver"]["rules"]],
    }
    golden("gate/everything.sarif.json", json.dumps(run, indent=2) + "\n")


def test_rules_are_the_codes_that_occur() -> None:
    """Each code that occurs is a rule once, with its meaning and its page."""
    rules = run_of(EVERYTHING)["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["LP221", "LP230", "LP231", "LP328"]
    assert (
        rules[1]["shortDescription"]["text"]
        == "A claim was neither proved nor refuted: a budget was spent, or it cannot be expressed."
    )
    assert rules[1]["fullDescription"]["text"] == meaning_of("LP230").what
    for rule in rules:
        meaning = meaning_of(rule["id"])
        assert meaning.why in rule["help"]["text"] and all(
            part in rule["help"]["markdown"] for part in (meaning.what, meaning.why, meaning.example, meaning.remedy)
        )


def test_no_outcome() -> None:
    """A run without findings is a valid report with an empty list of results, which tells a service that all alerts are
    closed.
    """
    run = run_of([outcome()])
    VALIDATOR.validate({"version": "2.1.0", "runs": [run]})
    assert run["results"] == [] and run["invocations"][0]["exitCode"] == 0


@pytest.mark.parametrize(
    ("place", "region"),
    [
        (Place("a.py", 3), {"startLine": 3, "startColumn": 1}),
        (Place("a.py", 3, 5, 3, 9, "    pass"), {"startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 9}),
        (Place("a.py", 3, 3, 3, 4, "😀éx"), {"startLine": 3, "startColumn": 4, "endLine": 3, "endColumn": 5}),
        (Place("a.py", 3, 1, 3, 3, "😀😀"), {"startLine": 3, "startColumn": 1, "endLine": 3, "endColumn": 5}),
        (Place("a.py", 3, 2, 5, 7, "😀("), {"startLine": 3, "startColumn": 3, "endLine": 5}),
        (Place("a.py", 3, 4, 3, 4, "abc"), {"startLine": 3, "startColumn": 4, "endLine": 3, "endColumn": 4}),
    ],
)
def test_columns_are_utf16_code_units(place: Place, region: dict[str, int]) -> None:
    """A character past U+FFFF counts as two columns, as the report says; of a last line without its text only the
    number is told.
    """
    assert only(finding(place=place))["locations"][0]["physicalLocation"]["region"] == region
    assert run_of([])["columnKind"] == "utf16CodeUnits"


@pytest.mark.parametrize(
    ("path", "uri", "base"),
    [
        ("gates.py", "gates.py", True),
        ("./x/../gates.py", "gates.py", True),
        ("a b/ü#?%.py", "a%20b/%C3%BC%23%3F%25.py", True),
        ("c:/x.py", "c%3A/x.py", True),
        ("/elsewhere/a b.py", "file:///elsewhere/a%20b.py", False),
        ("../up.py", "file:///ABOVE/up.py", False),
        ("bytes\udcff.py", "bytes%FF.py", True),
    ],
)
def test_paths_are_uris(path: str, uri: str, base: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths below the folder of the run are relative to it, others absolute; both are escaped, and come back when
    unescaped.
    """
    monkeypatch.chdir(tmp_path)
    uri = uri.replace("file:///ABOVE", f"file://{tmp_path.parent}")
    artifact = only(finding(place=Place(path, 1)))["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": uri, **({"uriBaseId": "%SRCROOT%"} if base else {})}
    assert unquote(uri, errors="surrogateescape").endswith(path.split("/")[-1])


def test_a_finding_without_a_place_stands_at_its_item() -> None:
    """Each result has a location: the finding's, its item's, or the program's file without a line."""
    one = EVERYTHING[2]
    [result] = run_of([one])["results"]
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "conv.py", "uriBaseId": "%SRCROOT%"}
    }
    placed = only(finding(place=None))["locations"][0]
    assert placed["physicalLocation"]["region"]["startLine"] == 12
    assert placed["logicalLocations"] == [{"fullyQualifiedName": "gates.py::wrong_pad", "kind": "function"}]


@pytest.mark.parametrize(
    ("fate", "level", "suppressed"),
    [
        (Fate.FAILS, "error", False),
        (Fate.ALLOWED, "warning", False),
        (Fate.KNOWN, "note", True),
        (Fate.IGNORED, "note", True),
    ],
)
def test_levels_and_suppressions(fate: Fate, level: str, suppressed: bool) -> None:
    """What fails is an error, an allowed unknown a warning; what is known or ignored is suppressed, with the reason."""
    result = only(finding(fate=fate))
    assert result["level"] == level and ("suppressions" in result) is suppressed
    assert result["properties"] == {"status": "refuted", "fate": fate.value}
    assert result["partialFingerprints"] == {"obligation/v1": HASH}


def test_texts_that_look_like_links_are_none() -> None:
    """An index followed by a parenthesis is no link; control characters and half surrogates are replaced; long texts
    are cut.
    """
    text = only(finding(message="A[i](3) \x00\ud800" + "x" * 100_000))["message"]["text"]
    assert text.startswith("A[i] (3) \ufffd\ufffdxx") and len(text) < 8_100 and "characters in all" in text


@one_in(10)
def test_results_past_the_cap_are_counted() -> None:
    """Thirty thousand findings make 25,000 results, the worst first, and a notification of how many were left out."""
    outcomes = list(many(30_000))
    run = run_of(outcomes)
    results = run["results"]
    assert len(results) == MOST_RESULTS == 25_000
    order = {"refuted": 0, "error": 1, "unknown": 2, "vacuous": 3}
    ranks = [order[r["properties"]["status"]] if r["properties"]["fate"] == "fails" else 4 for r in results]
    assert ranks == sorted(ranks)
    expected = sorted(rank(one.findings[0]) for one in outcomes)[:MOST_RESULTS]
    assert [min(number, 4) for number in expected] == ranks
    texts = [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]]
    assert "5000 of 30000 results were left out" in texts[0] and "shows 5000 results" in texts[1]
    VALIDATOR.validate({"version": "2.1.0", "runs": [{**run, "results": [*results[:50], *results[-50:]]}]})


@pytest.mark.campaign
def test_a_spool_is_read_in_flat_memory() -> None:
    """Ten thousand outcomes are written one by one."""
    run_of([])
    size, peak = spooled(render_sarif)
    assert size > 4_000_000 and peak < 4 << 20


def test_two_runs_are_equal() -> None:
    """The report of the same outcomes is the same, byte for byte."""
    first, second = StringIO(), StringIO()
    for out in (first, second):
        render_sarif(EVERYTHING, summary_of(EVERYTHING), out)
    assert first.getvalue() == second.getvalue()
