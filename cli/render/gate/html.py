"""The HTML report: one self-contained page, filled from templates in `page/`, with the explanation of each code that
occurs. The essentials are plain text and need no JavaScript. At the top are figures: shares of verdicts, files, the
slowest items, and preconditions.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from heapq import nlargest
from importlib import resources
from typing import Any, TextIO

from layoutproof import __version__
from layoutproof.cli.catalogue import meaning_of
from layoutproof.cli.gate.outcomes import Outcome, Summary
from layoutproof.cli.render.gate.html_rows import Pieces, body_of, codes_of, embedded, row_of, writable

WORDS = ("refuted", "error", "unknown", "vacuous", "proved")
_SLOWEST, _FILES, _NOTES = 5, 8, 6
_WIDTH = 1000  # of the bar, in its own units


@dataclass(slots=True)
class Glance:
    """What is counted while outcomes go by."""

    files: dict[str, Counter[str]] = field(default_factory=dict)
    slowest: list[tuple[float, str, bool]] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        file = outcome.program.partition("::")[0] if outcome.place is None else outcome.place.path
        self.files.setdefault(file, Counter())[outcome.word] += 1
        self.slowest = nlargest(_SLOWEST, [*self.slowest, (outcome.seconds, outcome.name, outcome.cached)])
        self.notes.update(set(outcome.notes))

    def values(self, summary: Summary) -> dict[str, Any]:
        """What the template shows; nothing of a run of one item, whose own page has it all."""
        if summary.items < 2:
            return {"bar": [], "files": [], "slowest": [], "notes": [], "files_left": 0, "notes_left": 0}
        ranked = sorted(self.files.items(), key=lambda each: (-_not_proved(each[1]), -each[1].total(), each[0]))
        notes = sorted(self.notes.items(), key=lambda each: (-each[1], each[0]))
        return {
            "bar": list(_bar(summary.verdicts)),
            "files": [
                (name, [(word, counts[word]) for word in WORDS if counts[word]]) for name, counts in ranked[:_FILES]
            ],
            "files_left": max(0, len(ranked) - _FILES),
            "slowest": [(_duration(seconds), name, cached) for seconds, name, cached in self.slowest if seconds > 0],
            "notes": [(count, text) for text, count in notes[:_NOTES]],
            "notes_left": max(0, len(notes) - _NOTES),
        }


def _not_proved(counts: Counter[str]) -> int:
    return counts.total() - counts["proved"]


def _bar(verdicts: Counter[str]) -> list[tuple[str, int, int, int]]:
    """Each verdict's part of the bar: word, count, start and width; at least a sliver."""
    found, start, total = [], 0, sum(verdicts[word] for word in WORDS)
    for word in WORDS:
        if verdicts[word]:
            width = max(4, round(_WIDTH * verdicts[word] / total))
            found.append((word, verdicts[word], start, width))
            start += width
    return found


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1e3:.0f} ms"


Words = list[tuple[bool, str]]
Block = tuple[str, Any]
"""("text", words), ("list", a list of words) or ("code", text)."""

_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def explained(codes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """By code, sorted: its explanation as titled parts of blocks. Codes without one are left out."""
    found: dict[str, dict[str, Any]] = {}
    for code in sorted(set(codes)):
        try:
            meaning = meaning_of(code)
        except KeyError:
            continue
        parts = (("", meaning.why), ("Example", meaning.example), ("What to do", meaning.remedy))
        found[code] = {
            "what": _plain(meaning.what),
            "parts": [(title, list(blocks(text))) for title, text in parts if text],
        }
    return found


def blocks(text: str) -> Iterator[Block]:
    """Paragraphs, lists and fenced code, in order."""
    held: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        fence = line.strip()
        if fence.startswith("```"):
            yield from _paragraph(held)
            held = []
            yield "code", "\n".join(_until_fence(lines))
        elif not fence:
            yield from _paragraph(held)
            held = []
        else:
            held.append(line)
    yield from _paragraph(held)


def _until_fence(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line.strip().startswith("```"):
            return
        yield line


def _paragraph(lines: list[str]) -> Iterator[Block]:
    if not lines:
        return
    if lines[0].lstrip().startswith(("* ", "- ")):
        entries: list[str] = []
        for line in lines:
            if line.lstrip().startswith(("* ", "- ")):
                entries.append(line.lstrip()[2:])
            else:
                entries[-1] += f" {line.strip()}"
        yield "list", [words(entry) for entry in entries]
    else:
        yield "text", words(" ".join(line.strip() for line in lines))


def words(text: str) -> Words:
    """Stretches of text, each with whether it is code; links become text, emphasis is dropped."""
    parts = _LINK.sub(r"\1", text).split("`")
    return [
        (number % 2 == 1, part if number % 2 else part.replace("**", "")) for number, part in enumerate(parts) if part
    ]


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", text).replace("`", "")


_SCRIPTS = ("data.js", "list.js", "diff.js", "layout.js", "item.js", "app.js")
_MOST_FAILURES = 100  # in the part that needs no JavaScript
_MOST_NAMES = 1_000
_MOST_ROWS = 50_000  # of the list, while some of them pass
_MOST_FAILING_ROWS = 200_000
# Characters of data: of items that pass, and of those that fail, programs and layouts are left out beyond that.
_FOR_PASSING, _FOR_FAILING = 64 << 20, 128 << 20


@dataclass(slots=True)
class _Gathered:
    """What one pass over the outcomes keeps in memory."""

    codes: dict[str, int] = field(default_factory=dict)
    rows: list[list[Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    names: list[dict[str, Any]] = field(default_factory=list)
    failing: int = 0
    items: int = 0
    glance: Glance = field(default_factory=Glance)
    left_out: list[int] = field(default_factory=lambda: [0, 0])  # items that pass and that fail, counted and not listed

    def add(self, outcome: Outcome, pieces: Pieces) -> None:
        """Add an outcome."""
        fails = not outcome.passes
        self.items += 1
        self.failing += fails
        self.glance.add(outcome)
        if fails and len(self.failures) < _MOST_FAILURES:
            self.failures.append(
                {"name": outcome.name, "verdict": outcome.word, "findings": [f.to_dict() for f in outcome.findings]}
            )
        if len(self.names) < _MOST_NAMES:
            self.names.append({"name": outcome.name, "verdict": outcome.word, "codes": codes_of(outcome)})
        if len(self.rows) < (_MOST_FAILING_ROWS if fails else _MOST_ROWS):
            detail = pieces.size < (_FOR_FAILING if fails else _FOR_PASSING)
            self.rows.append(row_of(outcome, self.codes, pieces.body(body_of(outcome, pieces, detail=detail))))
        else:
            self.left_out[fails] += 1


def render_html(outcomes: Iterable[Outcome], summary: Summary, out: TextIO) -> None:
    """Write the report of a run, in one pass; large data goes through a temporary file."""
    style, script = _text("style.css"), _script()
    with Pieces() as pieces:
        gathered = _Gathered()
        for outcome in outcomes:
            gathered.add(outcome, pieces)
        starts = pieces.finish()
        codes = explained(gathered.codes)
        head = _head(summary, style, script) | gathered.glance.values(summary)
        out.write(_filled("head.html", head))
        foot = _foot(gathered, codes) | {"index": _index(gathered, codes, starts), "script": script}
        before, after = _filled("foot.html", foot).split(_HERE)
        out.write(before)
        out.writelines(pieces.written())
        out.write(after)


_HERE = "<!-- data -->"
_RAW = ("style", "script", "index")  # ours, or escaped for where it stands; all else is text


def _filled(name: str, values: Mapping[str, Any]) -> str:
    """A template with its values, texts escaped. Jinja is loaded here, on demand."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def finalize(value: object) -> object:
        return writable(value) if type(value) is str else value

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, finalize=finalize, trim_blocks=True, lstrip_blocks=True
    )
    raw = {key: Markup(values[key]) for key in _RAW if key in values}
    return environment.from_string(_text(name)).render({**values, **raw})


def _head(summary: Summary, style: str, script: str) -> dict[str, Any]:
    return {
        "style": style,
        "version": __version__,
        "headline": headline(summary),
        "meta": _meta(summary),
        "summary": summary,
        "words": [word for word in WORDS if summary.verdicts[word]],
        "style_hash": _hash(style),
        "script_hash": _hash(script),
    }


def headline(summary: Summary) -> str:
    """The result of the run in a few words."""
    items = f"{summary.items:,} {'item' if summary.items == 1 else 'items'}"
    if summary.items == 0:
        return "Nothing was checked"
    if summary.failing == 0:
        return f"All {items} pass" if summary.items > 1 else "The item passes"
    return f"{summary.failing:,} of {items} {'fails' if summary.failing == 1 else 'fail'}"


def _meta(summary: Summary) -> str:
    """Further counts that are not zero."""
    words = {"allowed": "allowed", "ignored": "ignored", "known": "in the baseline"}
    findings = [f"{summary.fates[fate]:,} {word}" for fate, word in words.items() if summary.fates[fate]]
    parts = [f"findings: {', '.join(findings)}"] if findings else []
    parts += [f"{summary.cached:,} judged in an earlier run"] if summary.cached else []
    return " · ".join([*parts, f"exit code {summary.exit_code}"])


def _foot(gathered: _Gathered, codes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "failures": gathered.failures,
        "failures_left": gathered.failing - len(gathered.failures),
        "items": gathered.names,
        "items_left": gathered.items - len(gathered.names),
        "codes": codes,
    }


def _index(gathered: _Gathered, codes: Mapping[str, Any], starts: Mapping[str, list[int]]) -> str:
    sentences = {code: meaning["what"] for code, meaning in codes.items()}
    return embedded(
        {
            "rows": gathered.rows,
            "codes": list(gathered.codes),
            "sentences": sentences,
            "left_out": gathered.left_out,
            **starts,
        }
    )


def _text(name: str) -> str:
    return (resources.files("layoutproof.cli.render.gate") / "page" / name).read_text(encoding="utf-8")


def _script() -> str:
    parts = "".join(_text(name) for name in _SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def _hash(text: str) -> str:
    """A content security policy's name of a script or style."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


__all__ = ["render_html"]
