"""The proof cache's reports checked again: each whole one is judged anew, each brief one compared with the whole one that it shortens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.cli.gate.comparisons import compared_again
from layoutproof.cli.gate.outcome import Kind, Outcome
from layoutproof.cli.gate.schedules import REPORT, briefly, judged_again
from layoutproof.lowering.proof_cache.store import ProofStore
from layoutproof.verify.workers.pool import all_in_workers
from layoutproof.verify.workers.worker import Ending, Limits

Entry = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class WrongReport:
    """A report that is not confirmed: its key, and what is wrong with it. `certain` is false where only the clock kept it from being."""

    key: str
    problem: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class ReportsChecked:
    """How many reports there were, how many of them were checked, and those that are not confirmed."""

    entries: int = 0
    checked: int = 0
    wrong: tuple[WrongReport, ...] = ()


def check_reports(
    cache: ProofStore, tool: str, choose: Callable[[Sequence[str]], Sequence[str]], jobs: int, told: Callable[[], None]
) -> ReportsChecked:
    """Check those reports of a version of the tool that `choose` takes of the whole ones, and all brief ones against theirs."""
    current = [(key, value) for key, value in cache.entries(REPORT) if value.get("tool") == tool]
    brief = {key: value["whole"] for key, value in current if "whole" in value}
    chosen = set(choose(sorted(key for key, _ in current if key not in brief)))
    whole = [(key, value) for key, value in current if key in chosen]
    answers = all_in_workers(whole, _problem, _died, Limits(jobs), lambda _: told())
    wrong = [WrongReport(key, answer[0], answer[1]) for (key, _), answer in zip(whole, answers, strict=True) if answer is not None]
    bad = {each.key for each in wrong if each.certain}
    for key, name in sorted(brief.items()):
        problem = "the report that it shortens is wrong" if name in bad else _difference(cache, key, name)
        if problem is not None:
            wrong.append(WrongReport(key, problem))
    return ReportsChecked(len(current), len(whole) + len(brief), tuple(wrong))


def set_aside(cache: ProofStore, wrong: Iterable[WrongReport]) -> int:
    """Take out reports that are wrong; how many went."""
    gone = 0
    for each in wrong:
        value = cache.get(REPORT, each.key) if each.certain else None
        gone += value is not None and cache.set_aside(REPORT, each.key, value) is not None
    return gone


def _problem(entry: Entry) -> tuple[str, bool] | None:
    """What is wrong with a report, and whether that is certain."""
    given = entry[1].get("given")
    again = compared_again if isinstance(given, Mapping) and given.get("kind") == Kind.COMPARISON else judged_again
    problem, certain = again(entry[1])
    return None if problem is None else (problem, certain)


def _died(entry: Entry, ending: Ending) -> tuple[str, bool] | None:
    return ("the process that judged it again ended by itself", False)


def _difference(cache: ProofStore, key: str, whole: object) -> str | None:
    value = cache.get(REPORT, key)
    other = cache.get(REPORT, whole) if isinstance(whole, str) and len(whole) == len(key) else None
    if value is None or other is None:
        return "the report that it shortens is not there"
    try:
        same = value["outcome"] == briefly(Outcome.from_dict(other["outcome"])).to_dict()
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        return f"it is of another form: {problem}"
    return None if same else "it says something else than the report that it shortens"
