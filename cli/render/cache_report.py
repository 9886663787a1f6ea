"""The output of `cache info`, `cache clear` and `cache verify`, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutproof.ir.diagnostic import counted

if TYPE_CHECKING:
    from layoutproof.cli.gate.judging.judge import ReportsChecked
    from layoutproof.lowering.proof_cache.store import Info
    from layoutproof.lowering.proof_cache.verifying import Checked, Verification

_SHOWN = 20
_KEY = 12
_WORDS = {"proof": ("proof", "proofs"), "report": ("report", "reports")}


@dataclass(frozen=True, slots=True)
class Cleared:
    """The result of `clear`; sizes in bytes."""

    path: Path
    stale: bool
    reports: bool
    removed: int
    before: int
    after: int


@dataclass(slots=True)
class Named:
    """A checked entry and its contents; `aside` is where it was moved."""

    checked: Checked
    entry: Mapping[str, Any]
    aside: str | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of `verify`. `current`: the number of proofs of this version of the tool; `stale`: the others, which
    are not checked; `reports`: the result for stored reports; `installed`: the solvers; `forgotten`: the entries
    removed.
    """

    path: Path
    current: int
    stale: int
    reports: ReportsChecked
    verification: Verification
    installed: Sequence[str]
    wrong: Sequence[Named]
    unconfirmed: Sequence[Named]
    damaged: int
    forgotten: int

    @property
    def checked(self) -> int:
        """The number of checked proofs."""
        return len(self.verification.entries)

    @property
    def right(self) -> int:
        """The number of confirmed proofs."""
        return self.checked - len(self.wrong) - len(self.unconfirmed)


def info_to_dict(path: Path, info: Info | None, tool: str) -> dict[str, Any]:
    """As JSON has it; `there`: whether the cache exists."""
    tables = {} if info is None else info.tables
    return {
        "place": str(path),
        "there": info is not None,
        "kind": None if info is None else info.kind,
        "bytes": 0 if info is None else info.size,
        "tool": tool,
        "tables": {
            name: {"entries": count.entries, "current": count.current, "stale": count.entries - count.current}
            for name, count in tables.items()
        },
        "damaged": 0 if info is None else info.damaged,
    }


def render_info(path: Path, info: Info | None) -> str:
    """Place and size, then a line for each table."""
    if info is None:
        return f"proof cache {path}: nothing is kept there yet\n"
    lines = [f"proof cache {path} ({info.kind}), {_size(info.size)}"]
    for name, count in info.tables.items():
        stale = count.entries - count.current
        lines.append(
            f"  {_counted(count.entries, name)}: {count.current:,} of this version of the tool, {stale:,} of others"
        )
    if info.damaged:
        lines.append(f"  {info.damaged:,} set aside, because they were damaged or wrong")
    return "\n".join(lines) + "\n"


def cleared_to_dict(cleared: Cleared) -> dict[str, Any]:
    """As JSON has it."""
    sizes = {"bytes_before": cleared.before, "bytes_after": cleared.after}
    return {
        "place": str(cleared.path),
        "only_stale": cleared.stale,
        "only_reports": cleared.reports,
        "removed": cleared.removed,
        **sizes,
    }


def render_cleared(cleared: Cleared) -> str:
    """One line."""
    which = "of other versions of the tool " if cleared.stale else ""
    what = _counted(cleared.removed, "report") if cleared.reports else counted(cleared.removed, "entry", "entries")
    sizes = f"it was {_size(cleared.before)}, and is {_size(cleared.after)}"
    return f"removed {what} {which}from the proof cache {cleared.path}; {sizes}\n"


def verified_to_dict(found: Verified) -> dict[str, Any]:
    """As JSON has it."""
    entries = found.verification.entries
    return {
        "place": str(found.path),
        "entries": found.current,
        "stale": found.stale,
        "reports": found.reports.entries,
        "reports_checked": found.reports.checked,
        "reports_wrong": [{"key": each.key, "problem": each.problem} for each in found.reports.wrong if each.certain],
        "reports_unconfirmed": [
            {"key": each.key, "problem": each.problem} for each in found.reports.wrong if not each.certain
        ],
        "checked": found.checked,
        "right": found.right,
        "wrong": [_named_to_dict(named) for named in found.wrong],
        "unconfirmed": [_named_to_dict(named) for named in found.unconfirmed],
        "damaged": found.damaged,
        "reports_forgotten": found.forgotten,
        "questions": sum(entry.questions for entry in entries),
        "confirmed": sum(entry.confirmed for entry in entries),
        "on_one_engine": sum(len(entry.exceptions) for entry in entries),
        "engines": [{"engine": e.name, "version": e.version, "asked": e.asked} for e in found.verification.engines],
    }


def _named_to_dict(named: Named) -> dict[str, Any]:
    entry = named.entry
    return {
        "key": named.checked.key,
        "function": entry.get("function"),
        "primitive": entry.get("primitive"),
        "arguments": entry.get("arguments"),
        "problems": list(named.checked.problems),
        "moved_to": named.aside,
    }


def render_verified(found: Verified) -> str:
    """What is wrong first, then the counts, then what was not checked."""
    return (
        "\n".join(
            [*_bad("wrong", found.wrong), *_bad("unconfirmed", found.unconfirmed), *_counts(found), *_rest(found)]
        )
        + "\n"
    )


def _bad(word: str, names: Sequence[Named]) -> Iterator[str]:
    for named in names[:_SHOWN]:
        primitive, function = (named.entry.get(part) for part in ("primitive", "function"))
        yield f"{word}: {named.checked.key[:_KEY]}, {primitive} of {function}"
        yield from (f"  {line}" for problem in named.checked.problems for line in problem.splitlines())
        if named.aside is not None:
            yield f"  it was moved to {named.aside}"
    if len(names) > _SHOWN:
        yield f"and {len(names) - _SHOWN} more that are {word}; JSON names all"


def _counts(found: Verified) -> Iterator[str]:
    entries, engines = found.verification.entries, found.verification.engines
    asked = f" with {', '.join(f'{e.name} {e.version}' for e in engines)}" if engines else ""
    bad = (
        f", {len(found.wrong):,} wrong, {len(found.unconfirmed):,} unconfirmed"
        if found.wrong or found.unconfirmed
        else ""
    )
    yield (
        f"checked {found.checked:,} of {_counted(found.current, 'proof')} in {found.path}{asked}: "
        f"{found.right:,} right{bad}"
    )
    questions, confirmed = (sum(getattr(entry, name) for entry in entries) for name in ("questions", "confirmed"))
    if engines:
        single = sum(len(entry.exceptions) for entry in entries)
        rest = f"; {counted(single, 'claim rests', 'claims rest')} on one engine" if single else ""
        yield f"{confirmed:,} of {questions:,} questions confirmed by two solvers{rest}"
    else:
        there = ", ".join(found.installed) if found.installed else "none"
        yield (
            f"no solver was asked: that takes two, there is {there}; the others come with `pip install "
            "'layoutproof[recheck]'`"
        )


def _rest(found: Verified) -> Iterator[str]:
    if found.damaged:
        yield f"{counted(found.damaged, 'entry was', 'entries were')} damaged"
    if found.forgotten:
        yield f"{_counted(found.forgotten, 'report')} set aside, which may rest on what was wrong"
    for each in found.reports.wrong[:_SHOWN]:
        yield f"report {'wrong' if each.certain else 'unconfirmed'}: {each.key[:_KEY]}, {each.problem}"
    if found.reports.entries:
        checked, wrong = found.reports.checked, len(found.reports.wrong)
        rest = f"; {wrong:,} not confirmed" if wrong else ""
        yield (
            f"judged again {checked:,} of {_counted(found.reports.entries, 'report')} on schedules and "
            f"comparisons{rest}"
        )
    if found.stale:
        yield f"{_counted(found.stale, 'proof')} of other versions of the tool: never used, and not checked"


def _counted(number: int, table: str) -> str:
    one, many = _WORDS[table]
    return f"{number:,} {one if number == 1 else many}"


def _size(size: int) -> str:
    value, unit = float(size), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}" if unit != "bytes" else f"{size} bytes"
