"""`pytest --layoutproof`: gates as test items, judged as by `layoutproof check`, in pytest's own process.

pytest loads the plugin wherever layoutproof is installed, so nothing of layoutproof is imported before `--layoutproof`
is given, and without it nothing is done.

Proved is *passed*; a finding that fails a run is *failed*. An allowed unknown is *skipped*, since "passed" would claim
a proof. A finding in the baseline, or with an ignored code, is *xfailed*: the gate is known not to hold.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from layoutproof.cli.gate.check_items import Item, Options
    from layoutproof.cli.gate.outcomes import Finding, Outcome, Place
    from layoutproof.cli.gate.policy import Policy

FILES = ("gates.py", "gate_*.py", "*_gates.py")
_MARKER = "layoutproof"


@dataclass(frozen=True, slots=True)
class Settings:
    """How gates are judged in this run, and what fails it."""

    options: Options
    policy: Policy
    expect: int


Collecting = Generator[None, list[pytest.Collector], list[pytest.Collector]]
_SETTINGS = pytest.StashKey[Settings]()
_COUNTING = pytest.StashKey["Counting"]()
_IS_GATE = "layoutproof_gate"  # an attribute of reports: the marker is a keyword as well, and so is a folder's name


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, which are those of `layoutproof check`."""
    group = parser.getgroup("layoutproof", "layouts and schedules that are proved")
    add = group.addoption
    add(
        "--layoutproof", action="store_true", help="collect gates, functions decorated with @layoutproof.gate, as tests"
    )
    add(
        "--layoutproof-strictness",
        metavar="ASSUMPTIONS",
        help="fast-math assumptions that proofs may use: ieee, finite, reals (all)",
    )
    add("--layoutproof-budget", metavar="FACTOR", type=float, help="a factor on every budget of a proof")
    add(
        "--layoutproof-allow-unknown",
        action="store_true",
        default=None,
        help="skip what is neither proved nor refuted, instead of failing",
    )
    add(
        "--layoutproof-trust",
        metavar="WHAT",
        choices=("checker", "kernel"),
        help="kernel: a step that the kernel does not accept fails its gate",
    )
    add(
        "--layoutproof-select",
        metavar="CODES",
        action="append",
        default=[],
        help="only findings with these codes fail: LP222, or LP2",
    )
    add(
        "--layoutproof-ignore",
        metavar="CODES",
        action="append",
        default=[],
        help="findings with these codes do not fail",
    )
    add("--layoutproof-baseline", metavar="FILE", help="known findings, which do not fail")
    add("--layoutproof-cache", metavar="PLACE", help="the proof cache: an .sqlite file, or a shared folder")
    add("--layoutproof-no-cache", action="store_true", help="prove everything anew")
    add("--layoutproof-expect", metavar="N", type=int, help="fail if fewer gates are judged than N")
    parser.addini("layoutproof_expect", "the run fails if fewer gates are judged", default="0")
    parser.addini(
        "layoutproof_files",
        "names of files that --layoutproof searches for gates, besides tests",
        type="args",
        default=list(FILES),
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read the options once, so that a wrong one ends the run before collection."""
    if not config.getoption("layoutproof"):
        return
    config.addinivalue_line("markers", f"{_MARKER}: set on every gate, for `-m {_MARKER}` and `-m 'not {_MARKER}'`")
    from layoutproof.ir.diagnostic import LayoutproofError

    try:
        config.stash[_SETTINGS] = _settings(config)
    except (LayoutproofError, ValueError) as problem:
        raise pytest.UsageError(str(problem)) from problem
    config.stash[_COUNTING] = Counting(config)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(config.stash[_COUNTING], "layoutproof-counting")


def _settings(config: pytest.Config) -> Settings:
    from layoutproof.cli.gate.check_items import Options
    from layoutproof.cli.gate.policy import Baseline, Policy, read_codes
    from layoutproof.lowering.proof_cache.store import place_of
    from layoutproof.verify.values.fast_math import parse_fast_math

    given = _Given(config, _configured(config))
    place, none = config.getoption("layoutproof_cache"), config.getoption("layoutproof_no_cache")
    if place is not None and none:
        raise ValueError("--layoutproof-cache and --layoutproof-no-cache contradict each other")
    budget = given("budget", 1.0)
    if not 0.001 <= budget <= 1000:
        raise ValueError(f"--layoutproof-budget is a factor from 0.001 to 1000, not {budget:g}")
    fast_math = parse_fast_math(given("strictness", "reals"))
    known = given("baseline", None)
    baseline = Baseline.load(config.invocation_params.dir / known) if known is not None else None
    selected, ignored = (read_codes(given(name, [])) for name in ("select", "ignore"))
    cache = None if none else str(place_of(given("cache", None)))
    options = Options(tuple(sorted(fast_math)), float(budget), cache=cache, trust=given("trust", "checker"))
    policy = Policy(selected, ignored, bool(given("allow-unknown", False)), baseline)
    return Settings(options, policy, _expected(config))


@dataclass(frozen=True, slots=True)
class _Given:
    """The value of an option: of the command line, else of the table `[tool.layoutproof]`, else the usual one."""

    config: pytest.Config
    table: Mapping[str, Any]

    def __call__(self, key: str, usual: Any) -> Any:
        from layoutproof.cli.configuration import KEYS

        given = self.config.getoption(f"layoutproof_{key.replace('-', '_')}")
        return self.table.get(KEYS[key], usual) if given is None or given == [] else given


def _configured(config: pytest.Config) -> Mapping[str, Any]:
    """The table of the nearest pyproject.toml, as `layoutproof check` reads it. Raises LayoutproofError."""
    import click

    from layoutproof.cli.commands.check import check_command
    from layoutproof.cli.configuration import read_configuration

    context = click.Context(check_command, info_name="check")
    return read_configuration(config.invocation_params.dir, check_command, context).values


def _expected(config: pytest.Config) -> int:
    given = config.getoption("layoutproof_expect")
    text = str(config.getini("layoutproof_expect") if given is None else given)
    if not text.isdecimal():
        raise ValueError(f"layoutproof_expect is a number of gates, not {text!r}")
    return int(text)


# --- collecting
# ----------------------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Collecting:
    """The gates of a file, besides what others collect from it.

    A file with gates and no tests, and no test file by its name, is left to this plugin alone: as a test module it
    would be imported again, and its errors reported twice.
    """
    collected = yield
    if not parent.config.getoption("layoutproof") or not _is_searched(file_path, parent):
        return collected
    found = _parsed(file_path, parent)
    if found is None:
        return collected
    gates = GateFile.from_parent(parent, path=file_path)
    if not _matches(file_path, parent.config.getini("python_files")) and not _has_tests(*found, parent.config):
        collected = [one for one in collected if type(one) is not pytest.Module]
    return [*collected, gates]


def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> list[pytest.Item] | None:
    """A gate in a test module is collected as a gate, whatever its name."""
    if not collector.config.getoption("layoutproof"):
        return None
    from layoutproof.lowering.gates import Gate

    return [] if isinstance(obj, Gate) else None


def _is_searched(path: Path, parent: pytest.Collector) -> bool:
    """Whether the file was named, or has the name of a file of gates or tests."""
    patterns = (*parent.config.getini("layoutproof_files"), *parent.config.getini("python_files"))
    return path.suffix == ".py" and (parent.session.isinitpath(path) or _matches(path, patterns))


def _matches(path: Path, patterns: Iterable[str]) -> bool:
    """Whether a pattern matches the file's name or, with a slash in it, the end of its path."""
    return any(
        fnmatch(str(path), f"*/{pattern}") if "/" in pattern else fnmatch(path.name, pattern) for pattern in patterns
    )


def _parsed(path: Path, parent: pytest.Collector) -> tuple[ast.Module, set[ast.AST]] | None:
    """The tree of a file of gates with the functions that are gates; empty if it is not valid Python. None for any
    other file.

    A file with the name of one, which mentions layoutproof, is a file of gates.
    """
    from layoutproof.cli.gate.gate_sites import gate_sites, mentions_layoutproof

    try:
        text = path.read_bytes()
    except OSError:
        return None  # reported by other collectors
    named = parent.session.isinitpath(path) or _matches(path, parent.config.getini("layoutproof_files"))
    meant = named and mentions_layoutproof(text)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return (ast.Module([], []), set()) if meant or b"gate" in text else None
    found = gate_sites(tree, path)
    return (tree, {site.node for site in found.sites}) if found.possible or meant else None


def _has_tests(tree: ast.Module, gates: set[ast.AST], config: pytest.Config) -> bool:
    """Whether the file's top level defines a name of a test, gates aside."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node not in gates:
            names = config.getini("python_classes" if isinstance(node, ast.ClassDef) else "python_functions")
            if any(node.name.startswith(name) or fnmatch(node.name, name) for name in names):
                return True
    return False


class GateFile(pytest.File):
    """A file of gates. Collecting runs it, since only then its gates and cases are known."""

    def collect(self) -> Iterator[GateItem]:
        """An item for each case of each gate. Raises CollectError, without a traceback, for a file that cannot be
        loaded.
        """
        from layoutproof.cli.gate.check_items import gate_items
        from layoutproof.cli.gate.judging.judge import judge

        items = list(gate_items(self.path, self.config.stash[_COUNTING].remarks))
        if not items and not _matches(self.path, self.config.getini("python_files")):
            raise self.CollectError(f"{self.path.name} makes no gate, and is named as a file of gates")
        for item in items:
            if not item.subject:
                outcome = judge(item, self.config.stash[_SETTINGS].options)
                raise self.CollectError(_text(outcome.findings, self.config))
            name = item.subject if item.case is None else f"{item.subject}[{item.case}]"
            yield GateItem.from_parent(self, name=name, item=item)


# --- judging
# ----------------------------------------------------------------------------------------------------------------------


class GateItem(pytest.Item):
    """One case of a gate."""

    def __init__(self, *, item: Item, **given: Any) -> None:
        super().__init__(**given)
        self.item = item
        self.add_marker(_MARKER)

    def runtest(self) -> None:
        """Judge it; raises pytest's failure, skip or expected failure, with the findings, if it does not pass."""
        from layoutproof.cli.gate.judging.judge import judge
        from layoutproof.cli.gate.outcomes import Fate

        settings = self.config.stash[_SETTINGS]
        outcome: Outcome = settings.policy.apply(judge(self.item, settings.options))
        fates = {finding.fate for finding in outcome.findings}
        if not outcome.passes:
            said = _text(outcome.findings, self.config)
            pytest.fail(said if said else f"the gate is {outcome.word}", pytrace=False)
        if fates - {Fate.ALLOWED}:
            pytest.xfail(_reason(outcome.findings, self.config))
        if fates:
            # The place that pytest shows for a skip is then the gate's, not this line.
            raise pytest.skip.Exception(_reason(outcome.findings, self.config), _use_item_location=True)

    def reportinfo(self) -> tuple[Path, int, str]:
        """File, line (from 0) and name, as pytest shows them."""
        return self.path, self.item.line - 1, self.name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Mark the reports of gates; with pytest-xdist, other processes make them."""
    report = yield
    if isinstance(item, GateItem):
        setattr(report, _IS_GATE, True)
    return report


class Counting:
    """Counts the gates that were judged, where the reports of all processes come together."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.judged: set[str] = set()
        self.remarks: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one."""
        if getattr(report, _IS_GATE, False):
            self.judged.add(report.nodeid)

    @property
    def missing(self) -> bool:
        """Whether fewer were judged than expected."""
        return len(self.judged) < self.config.stash[_SETTINGS].expect and not self.config.option.collectonly

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A run with too few gates fails."""
        if self.missing and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say so, and what looked like a gate and is none."""
        for remark in self.remarks:
            terminalreporter.write_line(f"note: {ascii(remark)[1:-1]}")
        if self.missing:
            judged, expected = len(self.judged), self.config.stash[_SETTINGS].expect
            what = f"error: {judged} gates were judged, and at least {expected} are expected (layoutproof_expect)"
            terminalreporter.write_line(what, red=True, bold=True)


def _text(findings: Iterable[Finding], config: pytest.Config) -> str:
    """Findings in full, as `layoutproof check` prints them, with paths as pytest shows them."""
    from layoutproof.cli.render.gate.text_json import finding_lines

    return "\n\n".join("\n".join(finding_lines(_shown(finding, config))) for finding in findings)


def _reason(findings: Iterable[Finding], config: pytest.Config) -> str:
    from layoutproof.cli.render.gate.text_json import finding_lines

    return "; ".join(next(iter(finding_lines(_shown(finding, config)))) for finding in findings)


def _shown(finding: Finding, config: pytest.Config) -> Finding:
    related = tuple((_relative(place, config), word) for place, word in finding.related)
    return replace(
        finding, place=_relative(finding.place, config) if finding.place is not None else None, related=related
    )


def _relative(place: Place, config: pytest.Config) -> Place:
    """The place with its file relative to pytest's invocation folder, if below it."""
    path = Path(place.path)
    below = path.is_absolute() and path.is_relative_to(config.invocation_params.dir)
    return replace(place, path=os.path.relpath(path, config.invocation_params.dir)) if below else place
