"""The reports of one real run, with everything that can be wrong in it: valid, in agreement, and pointing at the right
text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from tests.cli.calling import Caller
from tests.cli.render.gate.test_github import Annotation, read
from tests.cli.render.gate.test_junit import SCHEMA
from tests.cli.render.gate.test_sarif import VALIDATOR, check_words
from tests.shares import one_in
from tests.tree import ROOT

GATES = """import layoutproof as lp


@lp.gate(cases={"1": (1,), "é 😀": (2,)})
def loses_data(width):
    "😀"; return lp.check_map(lambda i, j: [(i + j) // width], (4, 4))


@lp.gate
def wrong_pad():
    sch = lp.Schedule(lp.load("row sum.py"))
    sch.transform_layout("sum", "A", lambda i, j: [i, j // 4, j % 4], pad_value=1.0)
    sch.sequential_buffer_access("sum", "A")
    "😀"; sch.remove_branching_through_overcompute("sum")
    return sch


@lp.gate
def not_decided():
    return lp.check_map(lambda i, j: [(i + j) * (i + j + 1) // 2 + j], shape="n, m")


@lp.gate
def not_a_map():
    return lp.check_map(lambda i: [i], shape=(2, 2))


@lp.gate
def fine():
    return lp.check_map(lambda i, j: [j, i], shape=(2, 2))
"""
STATUSES = {
    "loses_data[1]": "refuted",
    "loses_data[é 😀]": "refuted",
    "wrong_pad": "refuted",
    "not_decided": "unknown",
    "not_a_map": "error",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with gates, a file that is no Python and a schedule without a step, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYOUTPROOF_PROOF_CACHE", str(tmp_path / "cache" / "proofs.sqlite"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    program = (ROOT / "examples" / "programs" / "row_sum.py").read_text(encoding="utf-8")
    (tmp_path / "row sum.py").write_text(program, encoding="utf-8")
    (tmp_path / "row sum.json").write_text("[]\n", encoding="utf-8")
    (tmp_path / "gätes #1.py").write_text(GATES, encoding="utf-8")
    (tmp_path / "torn.py").write_text("import layoutproof as lp\n\n@lp.gate\ndef torn(:\n", encoding="utf-8")
    return tmp_path


def results_of(folder: Path) -> list[dict[str, Any]]:
    """The results of the SARIF report, which is valid."""
    log = json.loads((folder / "out.sarif").read_text(encoding="utf-8"))
    VALIDATOR.validate(log)
    check_words(log["runs"][0])
    results: list[dict[str, Any]] = log["runs"][0]["results"]
    return results


def pointed_at(folder: Path, result: dict[str, Any]) -> str:
    """The text that a result's region covers, its columns counted in UTF-16 code units."""
    place = result["locations"][0]["physicalLocation"]
    lines = (folder / unquote(place["artifactLocation"]["uri"])).read_text(encoding="utf-8").splitlines()
    region = place["region"]
    units = lines[int(region["startLine"]) - 1].encode("utf-16-le")
    start, end = int(region["startColumn"]), int(region["endColumn"])
    return units[2 * (start - 1) : 2 * (end - 1)].decode("utf-16-le")


@one_in(9)
def test_reports_agree(folder: Path, call: Caller) -> None:
    """JUnit, SARIF, annotations and the job's summary are valid and tell of the same findings; the exit code is that of
    the worst.
    """
    outcome = call(
        "check", ".", "--workers", "1", "--report=junit=out.xml", "--report=sarif=out.sarif", "--format=github"
    )
    assert outcome.code == 1
    results = results_of(folder)
    found = {r["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]: r["properties"]["status"] for r in results}
    assert {name.rpartition("::")[2]: status for name, status in found.items() if "::" in name} == STATUSES
    assert sorted(found.values()) == ["error", "error", "refuted", "refuted", "refuted", "unknown", "vacuous"]

    tree = ElementTree.parse(folder / "out.xml").getroot()
    SCHEMA.validate(tree)
    failed = [*tree.iter("failure"), *tree.iter("error")]
    assert sorted(element.attrib["type"] for element in failed) == sorted(found.values())
    assert (tree.attrib["tests"], tree.attrib["failures"], tree.attrib["errors"]) == ("8", "5", "2")

    annotations = read(outcome.out)
    assert [one.kind for one in annotations] == ["error"] * 7 + ["notice"]
    assert [one.properties["file"] for one in annotations[:3]] == ["gätes #1.py"] * 3
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    assert [summary.count(f"| {word} |") for word in ("refuted", "error", "unknown", "vacuous")] == [3, 2, 1, 1]


@one_in(9)
def test_places_are_those_of_the_text(folder: Path, call: Caller) -> None:
    """What SARIF and the annotations point at is the line of the step that was refused, with a character that counts
    twice in it.
    """
    outcome = call("check", "gätes #1.py", "--workers", "1", "--report=sarif=out.sarif", "--format=github")
    [result] = [r for r in results_of(folder) if r["ruleId"] == "LP373"]
    step = '"😀"; sch.remove_branching_through_overcompute("sum")'
    assert pointed_at(folder, result) == step
    [related] = [r["physicalLocation"] for r in result["relatedLocations"]]
    assert unquote(related["artifactLocation"]["uri"]) == "row sum.py"
    [one] = [one for one in read(outcome.out) if "LP373" in one.properties["title"]]
    assert covered(folder, one) == step


def covered(folder: Path, one: Annotation) -> str:
    """The text that an annotation covers, its columns counted in characters."""
    line = (folder / one.properties["file"]).read_text(encoding="utf-8").splitlines()[int(one.properties["line"]) - 1]
    return line[int(one.properties["col"]) - 1 : int(one.properties["endColumn"]) - 1]


@one_in(10)
def test_adopting_the_gate(folder: Path, call: Caller) -> None:
    """With a baseline of all that is known, only wrong input fails; with that out of the way nothing does, until
    something gets worse.
    """
    options = ("--workers", "1", "--report=junit=out.xml")
    assert call("check", ".", *options, "--write-baseline", "known.json").code == 1
    assert call("check", ".", *options, "--baseline", "known.json").code == 2
    assert len(list(ElementTree.parse(folder / "out.xml").iter("error"))) == 2
    (folder / "torn.py").unlink()
    gates = folder / "gätes #1.py"
    gates.write_text(GATES.replace("lambda i: [i], shape=(2, 2)", "lambda i: [i], shape=(2,)"), encoding="utf-8")
    assert call("check", ".", *options, "--baseline", "known.json").code == 0
    tree = ElementTree.parse(folder / "out.xml")
    assert [element.attrib["type"] for element in tree.iter("skipped")] == ["known"] * 5 and not list(
        tree.iter("failure")
    )
    gates.write_text(
        "\n\n" + gates.read_text(encoding="utf-8").replace("(i + j + 1) // 2 + j", "(i + j + 1) // 2"), encoding="utf-8"
    )
    assert call("check", ".", *options, "--baseline", "known.json").code == 1
    [failure] = ElementTree.parse(folder / "out.xml").iter("failure")
    assert failure.attrib["type"] == "refuted" and "not_decided" not in failure.attrib["message"]
