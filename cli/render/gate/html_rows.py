"""The rows and bodies of the HTML report as data, in pieces that a browser parses on demand; shared parts are written
once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from tempfile import TemporaryFile
from typing import IO, Any

from layoutproof.cli.gate.outcomes import REPORTED, Fate, Outcome

# In a script element only these can end it or begin a comment; the line separators are for old parsers.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
_SURROGATES = range(0xD800, 0xE000)
_CONTROLS = [code for code in (*range(0x20), 0x7F, *range(0x80, 0xA0)) if chr(code) not in "\t\n\r"]
_UNWRITABLE = str.maketrans(dict.fromkeys((*_SURROGATES, *_CONTROLS), "\N{REPLACEMENT CHARACTER}"))
_PIECE = 1 << 17


def writable(text: str) -> str:
    """A text with replacements for control characters and lone surrogates, which no page can hold."""
    return text.translate(_UNWRITABLE)


def embedded(data: object) -> str:
    """JSON that is safe in a script element."""
    return writable(json.dumps(data, ensure_ascii=False, separators=(",", ":"))).translate(_ESCAPES)


@dataclass(slots=True)
class Series:
    """A list written in pieces: `starts` has the number of the first entry of each."""

    name: str
    file: IO[str]
    starts: list[int] = field(default_factory=list)
    count: int = 0
    size: int = 0
    _held: list[str] = field(default_factory=list)
    _held_size: int = 0

    def add(self, data: object) -> int:
        """Write an entry and return its number."""
        text = embedded(data)
        if not self._held:
            self.starts.append(self.count)
        self._held.append(text)
        self._held_size += len(text)
        self.size += len(text)
        self.count += 1
        if self._held_size >= _PIECE:
            self.flush()
        return self.count - 1

    def flush(self) -> None:
        """Write the buffered entries as a piece."""
        if self._held:
            number = len(self.starts) - 1
            self.file.write(
                f'<script type="application/json" id="{self.name}{number}">[{",".join(self._held)}]</script>\n'
            )
            self._held, self._held_size = [], 0


class Pieces:
    """The bodies of items, their shared parts, and the lines of their programs. A context: the temporary file is
    removed afterwards.
    """

    def __init__(self) -> None:
        self._file = TemporaryFile("w+", encoding="utf-8", newline="\n")
        self._bodies, self._shared, self._lines = (Series(name, self._file) for name in ("body", "shared", "lines"))
        self._known: dict[bytes, int] = {}
        self._line_numbers: dict[str, int] = {}

    def __enter__(self) -> Pieces:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()

    @property
    def size(self) -> int:
        """Characters written so far."""
        return self._bodies.size + self._shared.size + self._lines.size

    def body(self, data: Mapping[str, Any]) -> int:
        """Write the own part of an item and return its number."""
        return self._bodies.add(data)

    def shared(self, data: object) -> int:
        """The number of something that items may share; written on first use."""
        key = sha256(json.dumps(data, ensure_ascii=True, separators=(",", ":")).encode()).digest()
        if key not in self._known:
            self._known[key] = self._shared.add(data)
        return self._known[key]

    def line(self, text: str) -> int:
        """The number of a line of a program."""
        if text not in self._line_numbers:
            self._line_numbers[text] = self._lines.add(text)
        return self._line_numbers[text]

    def finish(self) -> dict[str, list[int]]:
        """Write what is buffered; returns, by series, the number of the first entry of each piece."""
        for series in (self._bodies, self._shared, self._lines):
            series.flush()
        return {"bodies": self._bodies.starts, "shared": self._shared.starts, "lines": self._lines.starts}

    def written(self) -> Iterator[str]:
        """All that was written, in blocks."""
        self._file.seek(0)
        while block := self._file.read(1 << 16):
            yield block


_LONGEST_SUB = 240


def codes_of(outcome: Outcome) -> list[str]:
    """The codes of an outcome's findings, failing ones first, each once."""
    ordered = sorted(outcome.findings, key=lambda finding: finding.fate is not Fate.FAILS)
    return list(dict.fromkeys(finding.code for finding in ordered))


def row_of(outcome: Outcome, codes: dict[str, int], body: int) -> list[Any]:
    """The fields that `data.js` names, in its order; `codes` numbers the codes so far."""
    numbers = [codes.setdefault(code, len(codes)) for code in codes_of(outcome)]
    place = f"{outcome.place.path}:{outcome.place.line}" if outcome.place is not None else ""
    seconds = round(outcome.seconds, 6)
    steps = len(outcome.steps)
    return [
        outcome.name,
        outcome.kind.value,
        outcome.word,
        int(not outcome.passes),
        numbers,
        steps,
        seconds,
        int(outcome.cached),
        _sub(outcome),
        place,
        body,
    ]


def _sub(outcome: Outcome) -> str:
    """The second line of the row: what is wrong, else what was done."""
    ordered = sorted(outcome.findings, key=lambda finding: finding.fate is not Fate.FAILS)
    if ordered:
        first = ordered[0]
        message = first.message.splitlines()[0] if first.message else ""
        return _short(f"{first.code} {message}")
    return _short(", ".join(str(step["primitive"]) for step in outcome.steps))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SUB else f"{text[:_LONGEST_SUB]}…"


def body_of(outcome: Outcome, pieces: Pieces, *, detail: bool) -> dict[str, Any]:
    """The body; without `detail`, programs and layouts are left out, and the page says so."""
    parts = [part for found in outcome.detail.values() for part in found] if outcome.detail is not None else None
    return {
        "name": outcome.name,
        "kind": outcome.kind.value,
        "program": outcome.program,
        "place": outcome.place.to_dict() if outcome.place is not None else None,
        "certificate": outcome.certificate,
        "seconds": round(outcome.seconds, 6),
        "cached": outcome.cached,
        "notes": list(outcome.remarks),
        "findings": [finding.to_dict() for finding in outcome.findings],
        "steps": [_step(step, pieces) for step in outcome.steps],
        "parts": [_part(part, pieces) for part in parts] if parts is not None and detail else None,
        "left_out": parts is not None and not detail,
    }


def _step(step: Mapping[str, Any], pieces: Pieces) -> list[Any]:
    """A step that others may share, and its own seconds."""
    shown = [name for name in REPORTED if name not in ("seconds", "counterexample")]
    obligations = [{name: one[name] for name in shown if name in one} for one in step["obligations"]]
    seconds = sum(float(one.get("seconds") or 0.0) for one in step["obligations"])
    return [pieces.shared({**step, "obligations": obligations}), round(seconds, 6)]


def _part(part: Mapping[str, Any], pieces: Pieces) -> dict[str, Any]:
    numbers = [pieces.line(line) for line in part["lines"]]
    return {
        "title": part["title"],
        "primitives": part["primitives"],
        "refused": part["refused"],
        "stages": [pieces.shared([numbers[line] for line in stage]) for stage in part["stages"]],
        "changes": [pieces.shared(change) for change in part["changes"]],
        "whole": pieces.shared(part["whole"]),
        "layouts": [pieces.shared(layout) for layout in part["layouts"]],
        "contracts": pieces.shared(part["contracts"]),
        "assumptions": pieces.shared(part["assumptions"]),
    }
