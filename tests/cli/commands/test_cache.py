"""`layoutproof cache`: what it says of a cache, what it removes, and what it finds wrong."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.cli.calling import Caller
from tests.cli.schema import COUNT, TEXT, VERSION, closed, listed, nullable
from tests.lowering.proof_cache.caches import PLACES, filled, key, opened, value
from tests.lowering.proof_cache.test_verifying import entries
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.lowering.proof_cache.store import VARIABLE
from layoutproof.lowering.proof_cache.versions import tool_digest
from layoutproof.verify.smt import engines

FLAG = {"type": "boolean"}
TABLES = {"type": "object", "additionalProperties": closed(entries=COUNT, current=COUNT, stale=COUNT)}
NAMED = closed(
    key={"type": "string", "pattern": "^[0-9a-f]{64}$"},
    function=nullable(TEXT),
    primitive=nullable(TEXT),
    arguments=nullable({"type": "object"}),
    problems=listed(TEXT),
    moved_to=nullable(TEXT),
)
CACHE_INFO = closed(
    version=VERSION,
    place=TEXT,
    there=FLAG,
    kind=nullable({"enum": ["SQLite", "folder"]}),
    bytes=COUNT,
    tool=TEXT,
    tables=TABLES,
    damaged=COUNT,
)
CACHE_CLEARED = closed(
    version=VERSION,
    place=TEXT,
    only_stale=FLAG,
    only_reports=FLAG,
    removed=COUNT,
    bytes_before=COUNT,
    bytes_after=COUNT,
)
CACHE_VERIFIED = closed(
    version=VERSION,
    place=TEXT,
    entries=COUNT,
    stale=COUNT,
    reports=COUNT,
    reports_checked=COUNT,
    reports_wrong=listed(closed(key=TEXT, problem=TEXT)),
    reports_unconfirmed=listed(closed(key=TEXT, problem=TEXT)),
    checked=COUNT,
    right=COUNT,
    wrong=listed(NAMED),
    unconfirmed=listed(NAMED),
    damaged=COUNT,
    reports_forgotten=COUNT,
    questions=COUNT,
    confirmed=COUNT,
    on_one_engine=COUNT,
    engines=listed(closed(engine=TEXT, version=TEXT, asked=COUNT)),
)


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A place of each kind, with nothing there yet."""
    return tmp_path / str(request.param)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A place for a SQLite cache, with nothing there yet."""
    return tmp_path / "proofs.sqlite"


FEW = ("transform_layout", "lower_blocks", "remove_assume")


def few() -> dict[str, dict[str, Any]]:
    """Proofs of three kinds: each takes a fifth of a second in the checker, and as much in the solvers."""
    found = {name: each for name, each in entries().items() if each["primitive"] in FEW}
    assert len(found) == len(FEW)
    return found


def proved(place: Path, *changed: str, stale: int = 0, reports: int = 0) -> Path:
    """A cache with real proofs; of those whose primitives are named, an obligation is missing."""
    store, heard = opened(place)
    for name, each in few().items():
        forged = copy.deepcopy(each)
        if each["primitive"] in changed:
            del forged["obligations"][0]
        store.put("proof", name, forged)
    store.put_many("proof", [(key(n), value(n)) for n in range(stale)])
    store.put_many("report", [(key(n), {"tool": tool_digest(), "n": n}) for n in range(reports)])
    store.close()
    assert heard.said == []
    return place


def test_nothing_is_there(call: Caller, place: Path) -> None:
    """Where there is no cache yet, `info` and `clear` say so and make none; `verify` has nothing to check, which is an
    error.
    """
    outcome = call("cache", "info", "--cache", str(place))
    assert (outcome.code, outcome.err) == (0, "") and outcome.out == f"proof cache {place}: nothing is kept there yet\n"
    outcome = call("cache", "clear", "--cache", str(place))
    assert outcome.code == 0 and outcome.out.startswith("removed 0 entries")
    outcome = call("cache", "verify", "--cache", str(place))
    assert (outcome.code, outcome.out) == (2, "") and "LP520" in outcome.err and str(place) in outcome.err
    assert not place.exists() and list(place.parent.iterdir()) == []


def test_info(call: Caller, place: Path) -> None:
    """Place, kind, size, and entries by table: of this version of the tool, and of others."""
    proved(place, stale=3, reports=2)
    outcome = call("cache", "info", "--cache", str(place))
    first, *lines = outcome.out.splitlines()
    assert outcome.code == 0 and first.startswith(f"proof cache {place} ({'SQLite' if place.suffix else 'folder'}), ")
    count = len(few())
    assert lines == [
        f"  {count + 3} proofs: {count} of this version of the tool, 3 of others",
        "  2 reports: 2 of this version of the tool, 0 of others",
    ]
    found = call("cache", "info", "--cache", str(place), "--format", "json").json()
    jsonschema.validate(found, CACHE_INFO)
    assert found["tables"]["proof"] == {"entries": count + 3, "current": count, "stale": 3}
    assert (found["there"], found["tool"], found["damaged"]) == (True, tool_digest(), 0) and found["bytes"] > 1000
    nothing = call("cache", "info", "--cache", f"{place}x", "--format", "json").json()
    jsonschema.validate(nothing, CACHE_INFO)
    assert (nothing["there"], nothing["tables"]) == (False, {})


def test_the_place_in_the_environment(call: Caller, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --cache it is the place that the environment names."""
    filled(place)
    monkeypatch.setenv(VARIABLE, str(place))
    assert str(place) in call("cache", "info").out


def test_clear(call: Caller, place: Path) -> None:
    """Stale entries go alone, or everything does; both say how many went, and the place stays a cache."""
    proved(place, stale=3, reports=2)
    outcome = call("cache", "clear", "--stale", "--cache", str(place))
    assert outcome.code == 0 and outcome.out.startswith(
        f"removed 3 entries of other versions of the tool from the proof cache {place}; it was "
    )
    outcome = call("cache", "clear", "--cache", str(place), "--format", "json")
    jsonschema.validate(outcome.json(), CACHE_CLEARED)
    assert outcome.json()["removed"] == len(few()) + 2
    assert outcome.json()["bytes_after"] < outcome.json()["bytes_before"]
    info = call("cache", "info", "--cache", str(place), "--format", "json").json()
    assert info["there"] and all(count["entries"] == 0 for count in info["tables"].values())


@one_in(4)
def test_clear_of_reports(call: Caller, file: Path) -> None:
    """Reports go alone; what is left are the proofs of steps."""
    proved(file, reports=2)
    outcome = call("cache", "clear", "--reports", "--cache", str(file))
    assert outcome.code == 0 and outcome.out.startswith("removed 2 reports from the proof cache")
    found = call("cache", "verify", "--cache", str(file), "--sample", "1", "--jobs", "1", "--format", "json").json()
    assert (found["entries"], found["reports"]) == (len(few()), 0)


def test_clear_refuses_what_is_no_cache(call: Caller, tmp_path: Path) -> None:
    """A folder without the cache's own mark, a file of another kind and a damaged database are left as they are."""
    (tmp_path / "folder" / "proof" / "ab").mkdir(parents=True)
    mine = tmp_path / "folder" / "proof" / "ab" / ("ab" * 32)
    mine.write_text("mine")
    (tmp_path / "text.sqlite").write_text("mine" * 1000)
    (tmp_path / "file").write_text("mine")
    for name, code in (("folder", "LP368"), ("text.sqlite", "LP521"), ("file", "LP368")):
        for command in ("clear", "info", "verify"):
            outcome = call("cache", command, "--cache", str(tmp_path / name))
            assert (outcome.code, outcome.out) == (2, "") and code in outcome.err and name in outcome.err, outcome.err
    assert mine.read_text() == "mine" and (tmp_path / "text.sqlite").read_text() == "mine" * 1000
    assert sorted(path.name for path in tmp_path.iterdir() if "lock" not in path.name) == [
        "file",
        "folder",
        "text.sqlite",
    ]


@one_in(10)
def test_verify(call: Caller, file: Path) -> None:
    """All proofs of this version are derived again and confirmed by two solvers; others are counted and not checked."""
    proved(file, stale=2)
    outcome = call("cache", "verify", "--cache", str(file), "--jobs", "2")
    count = len(few())
    first, second, third = outcome.out.splitlines()
    assert (outcome.code, outcome.err) == (0, "")
    assert first.startswith(f"checked {count} of {count} proofs in {file} with z3 ") and first.endswith(
        f": {count} right"
    )
    confirmed, _, questions = second.split()[:3]
    assert confirmed == questions and int(confirmed) > 10 and "questions confirmed by two solvers" in second
    assert third == "2 proofs of other versions of the tool: never used, and not checked"


@one_in(10)
def test_a_sample(call: Caller, file: Path) -> None:
    """A sample is of the size that was asked for, and the same one each time."""
    proved(file)
    first, again = (
        call("cache", "verify", "--cache", str(file), "--sample", "2", "--jobs", "1", "--format", "json")
        for _ in range(2)
    )
    jsonschema.validate(first.json(), CACHE_VERIFIED)
    assert first.json() == again.json() and (first.json()["checked"], first.json()["right"]) == (2, 2)
    assert first.json()["entries"] == len(few())
    store, _ = opened(file)
    for name in list(few())[1:]:
        store.set_aside("proof", name, few()[name])
    whole = call("cache", "verify", "--cache", str(file), "--sample", "1000", "--jobs", "1", "--format", "json").json()
    assert (whole["checked"], whole["entries"]) == (1, 1)


@one_in(7)
def test_a_wrong_entry_is_named_and_set_aside(call: Caller, place: Path) -> None:
    """An entry that the checker does not confirm is named with what is wrong, set aside, and with it all reports; then
    all is right.
    """
    proved(place, "transform_layout", reports=3)
    outcome = call("cache", "verify", "--cache", str(place), "--jobs", "1")
    assert outcome.code == 1
    assert (
        "transform_layout of main" in outcome.out
        and "an obligation is missing" in outcome.out
        and "it was moved to" in outcome.out
    )
    assert f"{len(few()) - 1} right, 1 wrong, 0 unconfirmed" in outcome.out and "3 reports set aside" in outcome.out
    assert "4 set aside" in call("cache", "info", "--cache", str(place)).out
    outcome = call("cache", "verify", "--cache", str(place), "--jobs", "1", "--sample", "1", "--format", "json")
    assert outcome.code == 0 and (outcome.json()["right"], outcome.json()["entries"]) == (1, len(few()) - 1)


@one_in(9)
def test_a_wrong_entry_in_json(call: Caller, file: Path) -> None:
    """JSON names the wrong entry by its key, with its primitive, arguments and function."""
    proved(file, "lower_blocks")
    outcome = call("cache", "verify", "--cache", str(file), "--jobs", "1", "--format", "json")
    jsonschema.validate(outcome.json(), CACHE_VERIFIED)
    (wrong,) = outcome.json()["wrong"]
    assert outcome.code == 1 and few()[wrong["key"]]["primitive"] == wrong["primitive"] == "lower_blocks"
    assert (
        (wrong["function"], wrong["arguments"]) == ("main", {})
        and "missing" in wrong["problems"][0]
        and "damaged" in wrong["moved_to"]
    )


@one_in(4)
def test_a_damaged_entry_counts_as_wrong(call: Caller, tmp_path: Path) -> None:
    """An entry whose bytes were changed is told of, set aside, and makes the exit code that of a wrong one."""
    place = proved(tmp_path / "proofs")
    name = next(iter(few()))
    path = place / "proof" / name[:2] / name
    path.write_bytes(path.read_bytes()[:-5])
    outcome = call("cache", "verify", "--cache", str(place), "--jobs", "1")
    assert outcome.code == 1 and "LP369" in outcome.err and "1 entry was damaged" in outcome.out
    assert not path.exists()


@one_in(4)
def test_without_two_solvers(call: Caller, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one solver installed, the checker and the interpreter are asked, and it is said what is missing."""
    proved(file)
    monkeypatch.setattr(engines, "installed", lambda: {"z3": "1"})
    outcome = call("cache", "verify", "--cache", str(file), "--jobs", "1")
    assert outcome.code == 0 and "no solver was asked: that takes two, there is z3" in outcome.out
    assert "layoutproof[recheck]" in outcome.out


@one_in(9)
def test_what_is_not_confirmed(call: Caller, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that only one solver decides is not called wrong: the exit code is that of an unknown, and the entry
    stays.
    """
    proved(file)
    monkeypatch.setattr(engines, "installed", lambda: {"z3": "1", "bitwuzla": "1"})
    outcome = call("cache", "verify", "--cache", str(file), "--jobs", "1")
    assert outcome.code == 3 and "unconfirmed: " in outcome.out and "one engine only" in outcome.out
    assert f"{len(few())} proofs" in call("cache", "info", "--cache", str(file)).out


def test_output_goes_to_a_file(call: Caller, place: Path) -> None:
    """With -o nothing is printed, and the file is whole."""
    filled(place)
    report = place.parent / "report.json"
    outcome = call("cache", "info", "--cache", str(place), "--format", "json", "-o", str(report))
    assert (outcome.code, outcome.out) == (0, "") and json.loads(report.read_text())["there"]


@pytest.mark.parametrize(
    "arguments", [["verify", "--sample", "0"], ["verify", "--jobs", "0"], ["info", "--cache", "a\0b"], ["remove"]]
)
def test_wrong_usage(call: Caller, arguments: list[str]) -> None:
    """Numbers that are none, names that no file has and commands that there are not are errors of the call."""
    assert call("cache", *arguments).code == 2


def told(*arguments: str) -> Any:
    """What a process of its own has loaded after a call of the command line."""
    heavy = ("islpy", "z3", "bitwuzla", "cvc5", "numpy", "ml_dtypes", "matplotlib", "rich")
    code = (
        f"import sys; from layoutproof.cli.main import main; code = main({list(arguments)!r}); "
        f"print([code, *(m for m in {heavy!r} if m in sys.modules)], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return done.stderr.strip()


@one_in(4)
def test_looking_and_clearing_load_no_solver(place: Path) -> None:
    """`info`, `clear` and help load no solver, no numpy and no drawing."""
    filled(place)
    assert told("cache", "info", "--cache", str(place)) == "[0]"
    assert told("cache", "clear", "--cache", str(place)) == "[0]"
    assert told("cache", "--help") == "[0]" and told("cache", "verify", "--help") == "[0]"


ROW_SUM = ROOT / "examples" / "programs" / "row_sum.py"
BLOCKED = {"block": "sum", "buffer": "A", "index_map": "lambda i, j: [i, j//4, j%4]", "pad_value": 0.0}
LINES = (
    [["transform_layout", BLOCKED]],
    [["transform_layout", {**BLOCKED, "index_map": "lambda i, j: [i, j//4]"}]],
    [["simplify", {}]],
)


@pytest.fixture
def judged(call: Caller, file: Path, tmp_path: Path) -> Path:
    """A cache that a run has filled: reports on three schedules, one of them refuted, and the proofs of their steps."""
    (tmp_path / "row_sum.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    assert (
        call(
            "check", str(ROW_SUM), "--trace", str(tmp_path / "row_sum.jsonl"), "--cache", str(file), "--workers", "1"
        ).code
        == 1
    )
    return file


@one_in(9)
def test_reports_are_judged_again(call: Caller, judged: Path) -> None:
    """What a run has kept of whole schedules is right, whole and brief, without anything being taken from the cache."""
    outcome = call("cache", "verify", "--cache", str(judged), "--jobs", "1")
    assert outcome.code == 0 and "judged again 6 of 6 reports on schedules and comparisons" in outcome.out
    found = call("cache", "verify", "--cache", str(judged), "--jobs", "1", "--sample", "1", "--format", "json")
    jsonschema.validate(found.json(), CACHE_VERIFIED)
    assert (found.code, found.json()["reports"], found.json()["reports_checked"]) == (0, 6, 4)


@one_in(7)
@pytest.mark.parametrize("kind", ["whole", "brief"])
def test_a_forged_report_is_found(call: Caller, judged: Path, kind: str) -> None:
    """A report that says `proved` of a schedule that is refuted is named, set aside with what shortens it, and no run
    sees it again.
    """
    store, _ = opened(judged)
    for name, report in list(store.entries("report")):
        if report["outcome"]["verdict"] == "refuted" and ("whole" in report) is (kind == "brief"):
            store.put("report", name, {**report, "outcome": {**report["outcome"], "verdict": "proved", "findings": []}})
    store.close()
    outcome = call("cache", "verify", "--cache", str(judged), "--jobs", "1")
    assert outcome.code == 1 and "report wrong: " in outcome.out
    assert ("it says proved, and judged again it is refuted" in outcome.out) is (kind == "whole")
    assert ("it says something else than the report that it shortens" in outcome.out) is (kind == "brief")
    again = call("cache", "verify", "--cache", str(judged), "--jobs", "1", "--format", "json")
    assert (again.code, again.json()["reports"]) == (0, 4 if kind == "whole" else 5)


@pytest.fixture
def compared(call: Caller, file: Path) -> Path:
    """A cache with reports on two comparisons, one of them refuted."""
    relu = str(ROOT / "examples" / "programs" / "relu.py")
    for name, code in (("relu_packed", 0), ("relu_wrong", 1)):
        options = ("--layout", "B=NHWC->NCHW4c", "--cache", str(file))
        assert call("compare", relu, str(ROOT / "examples" / "programs" / f"{name}.py"), *options).code == code
    return file


@one_in(9)
def test_comparisons_are_made_again(call: Caller, compared: Path) -> None:
    """What a run has kept of two programs is right: they are compared again, with nothing taken from the cache."""
    outcome = call("cache", "verify", "--cache", str(compared), "--jobs", "1")
    assert outcome.code == 0 and "judged again 2 of 2 reports" in outcome.out


@one_in(10)
def test_a_forged_comparison_is_found(call: Caller, compared: Path) -> None:
    """A report that says `proved` of programs that differ is named and set aside, and one of another form too."""
    store, _ = opened(compared)
    for name, report in list(store.entries("report")):
        if report["outcome"]["verdict"] == "refuted":
            store.put("report", name, {**report, "outcome": {**report["outcome"], "verdict": "proved", "findings": []}})
        else:
            store.put("report", name, {**report, "given": {**report["given"], "texts": ["no program", ""]}})
    store.close()
    outcome = call("cache", "verify", "--cache", str(compared), "--jobs", "1")
    assert outcome.code == 1 and outcome.out.count("report wrong: ") == 2
    assert "it says proved, and compared again it is refuted" in outcome.out and "it is of another form" in outcome.out
    assert call("cache", "verify", "--cache", str(compared), "--jobs", "1", "--format", "json").json()["reports"] == 0
