"""The findings that a repository has had since before it was gated: they are shown, and fail no run.

A baseline is a file that is looked after like code: one finding a line, sorted, with words for those who read it in a review. A finding is
recognised by the hash of what was to be proved, so that moving or editing other lines changes nothing; one that got worse is not known.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from layoutproof.cli import codes
from layoutproof.cli.gate.outcome import Fate, Finding, Outcome
from layoutproof.cli.gate.paths import steady_path
from layoutproof.ir.diagnostic import LayoutproofError, error

VERSION = 1
_VERSION_KEY, _ENTRIES_KEY = "layoutproof_baseline", "entries"
# A finding of a status is known where the entry has one of these: the same, or a worse one that was mended in part.
_COVERED_BY: Mapping[str, tuple[str, ...]] = {
    "refuted": ("refuted",),
    "unknown": ("unknown", "refuted"),
    "vacuous": ("vacuous",),
}
_HELP = "mend it, or write it anew with --write-baseline"


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A known finding: where it was found, its code, status, hash and claim. Hash and status decide, the rest is for people."""

    file: str
    name: str
    code: str
    status: str
    obligation: str
    claim: str


@dataclass(frozen=True)
class Baseline:
    """Known findings, sorted, each once; `path` is the file that they were read from."""

    entries: tuple[Entry, ...] = ()
    path: str = field(default="", compare=False)

    @staticmethod
    def of(outcomes: Iterable[Outcome]) -> Baseline:
        """The findings that would fail a run without a baseline. Those of wrong input are left out: nothing hides them."""
        found: dict[tuple[str, str], Entry] = {}
        for outcome in outcomes:
            for finding in outcome.findings:
                if finding.obligation is not None and finding.status is not None and finding.fate in (Fate.FAILS, Fate.KNOWN):
                    # The same obligation in two items is one entry: that of the first of them by name, whatever the order of the run.
                    key = (finding.obligation, finding.status)
                    claim = finding.message.strip().partition("\n")[0].strip()
                    entry = Entry(_file_of(outcome), outcome.name, finding.code, finding.status, finding.obligation, claim)
                    found[key] = min(entry, found.get(key, entry))
        return Baseline(tuple(sorted(found.values())))

    @staticmethod
    def load(path: Path) -> Baseline:
        """The baseline in a file. Raises LayoutproofError, saying what is wrong and where, for a file that cannot be read or is damaged."""
        if path.is_char_device():
            raise error(codes.BASELINE, f"the baseline {path} cannot be read: it is a device")
        try:
            text = path.read_text(encoding="utf-8-sig")
        except OSError as problem:
            raise error(codes.BASELINE, f"the baseline {path} cannot be read: {problem.strerror or problem}") from problem
        except UnicodeDecodeError as problem:
            raise _damaged(path, f"byte {problem.start} is not UTF-8") from problem
        try:
            data = json.loads(text, object_pairs_hook=_without_repeats)
        except _Repeated as problem:
            raise _damaged(path, f"the key {json.dumps(problem.key)} stands twice in one object") from problem
        except json.JSONDecodeError as problem:
            what = f"{problem.msg[0].lower()}{problem.msg[1:]}"
            raise _damaged(path, f"line {problem.lineno}, column {problem.colno}: not JSON: {what}") from problem
        except RecursionError as problem:
            raise _damaged(path, "it is nested too deep") from problem
        except ValueError as problem:  # of a number with thousands of digits
            raise _damaged(path, "not JSON: a number has too many digits") from problem
        return Baseline(tuple(sorted(set(_read_entries(path, data)))), str(path))

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all. Raises LayoutproofError where that cannot be done."""
        from layoutproof.cli.output import write_file

        write_file(path, self.text().encode("utf-8"))

    def text(self) -> str:
        """The file's text: the same for the same findings, one a line, so that a change of one is a change of one line."""
        lines = ",\n".join(f"    {json.dumps(asdict(entry), ensure_ascii=True)}" for entry in self.entries)
        inner = f"\n{lines}\n  " if lines else ""
        return f'{{\n  "{_VERSION_KEY}": {VERSION},\n  "{_ENTRIES_KEY}": [{inner}]\n}}\n'

    def knows(self, finding: Finding) -> bool:
        """Whether a finding is known, and is not worse than it was."""
        if finding.obligation is None or finding.status is None:
            return False
        return any((finding.obligation, status) in self._keys for status in _COVERED_BY.get(finding.status, ()))

    def stale(self, outcomes: Iterable[Outcome]) -> tuple[Entry, ...]:
        """The entries that nothing in a whole run needs any more, so that the file can shrink.

        Entries of files that the run did not look at, or that were wrong input, are left alone, unless the file is gone. Of a shard of a
        run this tells nothing.
        """
        needed: set[tuple[str, str]] = set()
        files: set[str] = set()
        unread: set[str] = set()
        for outcome in outcomes:
            (files if outcome.verdict is not None else unread).add(_file_of(outcome))
            for finding in outcome.findings:
                if finding.obligation is not None and self.knows(finding):
                    covering = ((finding.obligation, status) for status in _COVERED_BY.get(finding.status or "", ()))
                    needed.add(next(key for key in covering if key in self._keys))
        unneeded = (entry for entry in self.entries if (entry.obligation, entry.status) not in needed)
        return tuple(entry for entry in unneeded if entry.file in files - unread or not Path(entry.file).exists())

    @cached_property
    def _keys(self) -> frozenset[tuple[str, str]]:
        return frozenset((entry.obligation, entry.status) for entry in self.entries)


class _Repeated(Exception):
    """A key twice in one object: most likely two versions of the file were merged by hand."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _without_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Repeated(key)
        found[key] = value
    return found


def _file_of(outcome: Outcome) -> str:
    return steady_path(outcome.place.path if outcome.place is not None else outcome.program)


def _read_entries(path: Path, data: Any) -> Iterable[Entry]:
    if not isinstance(data, dict) or _VERSION_KEY not in data:
        raise _damaged(path, f"an object with the keys {_VERSION_KEY} and {_ENTRIES_KEY} is expected")
    if type(data[_VERSION_KEY]) is not int or data[_VERSION_KEY] != VERSION:
        raise _damaged(path, f"its form is {json.dumps(data[_VERSION_KEY])}; this version of layoutproof reads {VERSION}")
    entries = data.get(_ENTRIES_KEY)
    if not isinstance(entries, list) or len(data) != 2:
        raise _damaged(path, f"{_ENTRIES_KEY} is a list, and there is no key besides")
    names = {item.name for item in fields(Entry)}
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict) or set(entry) != names or not all(isinstance(value, str) for value in entry.values()):
            raise _damaged(path, f"entry {number} of {_ENTRIES_KEY} is no object with the texts {', '.join(sorted(names))}")
        if entry["status"] not in _COVERED_BY:
            words = ", ".join(_COVERED_BY)
            raise _damaged(path, f"entry {number} of {_ENTRIES_KEY} has the status {json.dumps(entry['status'])}; expected one of {words}")
        if entry["obligation"] == "":
            raise _damaged(path, f"entry {number} of {_ENTRIES_KEY} has no obligation")
        yield Entry(**entry)


def _damaged(path: Path, what: str) -> LayoutproofError:
    return error(codes.BASELINE, f"the baseline {path} is damaged: {what}", help=_HELP)
