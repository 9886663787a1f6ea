"""Which findings fail a run: by code, by permission, and by the baseline, a file of known findings. Wrong input always
fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from layoutproof.cli import codes
from layoutproof.cli.catalogue import LAYERS, all_codes, sentences
from layoutproof.cli.gate.outcomes import Fate, Finding, Outcome, steady_path
from layoutproof.ir.diagnostic import LayoutproofError, error

VERSION = 2
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
    """A known finding. Hash and status identify it; place, code and claim are for readers."""

    file: str
    name: str
    code: str
    status: str
    obligation: str
    claim: str


@dataclass(frozen=True)
class Baseline:
    """Known findings, sorted, each once; `path` is the file they were read from."""

    entries: tuple[Entry, ...] = ()
    path: str = field(default="", compare=False)

    @staticmethod
    def of(outcomes: Iterable[Outcome]) -> Baseline:
        """The findings that would fail a run without a baseline, except those of wrong input."""
        found: dict[tuple[str, str], Entry] = {}
        for outcome in outcomes:
            for finding in outcome.findings:
                if (
                    finding.obligation is not None
                    and finding.status is not None
                    and finding.fate in (Fate.FAILS, Fate.KNOWN)
                ):
                    # The same obligation in two items is one entry: that of the first of them by name, whatever the
                    # order of the run.
                    key = (finding.obligation, finding.status)
                    claim = finding.message.strip().partition("\n")[0].strip()
                    entry = Entry(
                        file_of(outcome), outcome.name, finding.code, finding.status, finding.obligation, claim
                    )
                    found[key] = min(entry, found.get(key, entry))
        return Baseline(tuple(sorted(found.values())))

    @staticmethod
    def load(path: Path) -> Baseline:
        """Read a baseline. Raises LayoutproofError, with the place, for a file that is unreadable or damaged."""
        if path.is_char_device():
            raise error(codes.BASELINE, f"the baseline {path} cannot be read: it is a device")
        try:
            text = path.read_text(encoding="utf-8-sig")
        except OSError as problem:
            raise error(
                codes.BASELINE, f"the baseline {path} cannot be read: {problem.strerror or problem}"
            ) from problem
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
        """Write the file, whole or not at all. Raises LayoutproofError if that is impossible."""
        from layoutproof.cli.output import write_file

        write_file(path, self.text().encode("utf-8"))

    def text(self) -> str:
        """The file's text: one finding per line, in a fixed order."""
        lines = ",\n".join(f"    {json.dumps(asdict(entry), ensure_ascii=True)}" for entry in self.entries)
        inner = f"\n{lines}\n  " if lines else ""
        return f'{{\n  "{_VERSION_KEY}": {VERSION},\n  "{_ENTRIES_KEY}": [{inner}]\n}}\n'

    def knows(self, finding: Finding) -> bool:
        """Whether a finding is known, and no worse than it was."""
        if finding.obligation is None or finding.status is None:
            return False
        return any((finding.obligation, status) in self._keys for status in _COVERED_BY.get(finding.status, ()))

    def stale(self, outcomes: Iterable[Outcome]) -> tuple[Entry, ...]:
        """The entries that a whole run did not need.

        Entries of files that the run did not look at, or that were wrong input, stay unless the file is gone. Not
        meaningful for a shard.
        """
        needed: set[tuple[str, str]] = set()
        files: set[str] = set()
        unread: set[str] = set()
        for outcome in outcomes:
            (files if outcome.verdict is not None else unread).add(file_of(outcome))
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
    """A repeated key in one object: probably two versions of the file were merged by hand."""

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


def file_of(outcome: Outcome) -> str:
    """The path of the file that an outcome is about, as baselines and reports have it."""
    return steady_path(outcome.place.path if outcome.place is not None else outcome.program)


def _read_entries(path: Path, data: Any) -> Iterable[Entry]:
    if not isinstance(data, dict) or _VERSION_KEY not in data:
        raise _damaged(path, f"an object with the keys {_VERSION_KEY} and {_ENTRIES_KEY} is expected")
    if type(data[_VERSION_KEY]) is int and data[_VERSION_KEY] == 1:
        what = f"the baseline {path} is of form 1, which knows findings by their sentences"
        anew = "write it anew with --write-baseline, after a look at what the run finds without it"
        raise error(codes.BASELINE, f"{what}; this version of layoutproof reads {VERSION}", help=anew)
    if type(data[_VERSION_KEY]) is not int or data[_VERSION_KEY] != VERSION:
        raise _damaged(
            path, f"its form is {json.dumps(data[_VERSION_KEY])}; this version of layoutproof reads {VERSION}"
        )
    entries = data.get(_ENTRIES_KEY)
    if not isinstance(entries, list) or len(data) != 2:
        raise _damaged(path, f"{_ENTRIES_KEY} is a list, and there is no key besides")
    names = {item.name for item in fields(Entry)}
    for number, entry in enumerate(entries, start=1):
        if (
            not isinstance(entry, dict)
            or set(entry) != names
            or not all(isinstance(value, str) for value in entry.values())
        ):
            raise _damaged(
                path, f"entry {number} of {_ENTRIES_KEY} is no object with the texts {', '.join(sorted(names))}"
            )
        if entry["status"] not in _COVERED_BY:
            words = ", ".join(_COVERED_BY)
            raise _damaged(
                path,
                f"entry {number} of {_ENTRIES_KEY} has the status {json.dumps(entry['status'])}; expected one of "
                f"{words}",
            )
        if entry["obligation"] == "":
            raise _damaged(path, f"entry {number} of {_ENTRIES_KEY} has no obligation")
        yield Entry(**entry)


def _damaged(path: Path, what: str) -> LayoutproofError:
    return error(codes.BASELINE, f"the baseline {path} is damaged: {what}", help=_HELP)


_UNKNOWN = "unknown"
_ERROR = "error"
# Nothing was asked where a worker died or judging failed: that is no question that proved too hard.
_FAULTS = frozenset({codes.WORKER_DIED, codes.JUDGE_FAILED})


@dataclass(frozen=True, slots=True)
class Policy:
    """Which findings fail a run.

    `select` and `ignore` are codes or prefixes of codes (`LP216`, `LP21`, `LP2`); an empty `select` means all. The
    longest matching prefix decides; `ignore` wins ties. `allow_unknown` allows claims that are neither proved nor
    refuted, but no items whose worker died. `baseline` has the known findings.

    Raises LayoutproofError for texts of `select` or `ignore` that begin no code.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    allow_unknown: bool = False
    baseline: Baseline | None = None

    def __post_init__(self) -> None:
        for option, beginnings in (("--select", self.select), ("--ignore", self.ignore)):
            for beginning in beginnings:
                _check_begins_codes(option, beginning)

    def apply(self, outcome: Outcome) -> Outcome:
        """The outcome with the fate of each of its findings."""
        if not outcome.findings:
            return outcome
        return outcome.with_findings(
            tuple(replace(finding, fate=self.fate_of(finding)) for finding in outcome.findings)
        )

    def fate_of(self, finding: Finding) -> Fate:
        """The fate of a finding. Unknowns that the gate allows stay allowed."""
        if (finding.status is None and finding.severity == _ERROR) or finding.code in _FAULTS:
            return Fate.FAILS
        if not self.selects(finding.code):
            return Fate.IGNORED
        if self.baseline is not None and self.baseline.knows(finding):
            return Fate.KNOWN
        if finding.status == _UNKNOWN and (self.allow_unknown or finding.fate is Fate.ALLOWED):
            return Fate.ALLOWED
        return Fate.FAILS

    def selects(self, code: str) -> bool:
        """Whether findings of a code count."""
        selected = _longest(code, self.select) if self.select else 0
        return selected > _longest(code, self.ignore)


def read_codes(texts: Iterable[str]) -> tuple[str, ...]:
    """The codes in the texts of a repeatable option, separated by commas or blanks: `LP221,LP31`."""
    return tuple(dict.fromkeys(code for text in texts for code in text.replace(",", " ").split()))


def _longest(code: str, beginnings: Iterable[str]) -> int:
    """The length of the longest prefix of the code; -1 if there is none."""
    return max((len(beginning) for beginning in beginnings if code.startswith(beginning)), default=-1)


def _check_begins_codes(option: str, beginning: str) -> None:
    known = _codes_like(beginning)
    if beginning == "" or not any(code.startswith(beginning) for code in known):
        raise error(codes.SELECTION, f"{option} {beginning!r}: no code begins so", help=_suggestion(beginning))


def _codes_like(text: str) -> tuple[str, ...]:
    """The codes of the layer of a text; all codes if it names none. Loads no other layer's table."""
    layer = text.removeprefix("LP")[:1]
    return tuple(sentences(layer)) if layer in LAYERS else all_codes()


def _suggestion(text: str) -> str:
    guess = f"LP{''.join(c for c in text if c.isdecimal())}"
    # Of the same layer, if there is such a one: the first digit is rarely the wrong one.
    known = _codes_like(guess)
    if guess != "LP" and any(code.startswith(guess) for code in known):
        return f"did you mean {guess}?"
    import difflib  # for a message only

    close = difflib.get_close_matches(guess, known, n=3) if len(guess) >= 5 else []
    return (
        f"did you mean {' or '.join(close)}?"
        if close
        else "codes are written LP216; LP21 and LP2 mean all that begin so"
    )
