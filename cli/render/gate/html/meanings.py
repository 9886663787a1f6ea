"""The explanation of codes for the page: their Markdown, of which they use little, as blocks that a template writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from layoutproof.cli.catalogue import meaning_of

Words = list[tuple[bool, str]]
Block = tuple[str, Any]
"""("text", words), ("list", a list of words) or ("code", text)."""

_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def explained(codes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """By code, sorted: what it means in parts of a title and blocks. A code that has no explanation is left out."""
    found: dict[str, dict[str, Any]] = {}
    for code in sorted(set(codes)):
        try:
            meaning = meaning_of(code)
        except KeyError:
            continue
        parts = (("", meaning.why), ("Example", meaning.example), ("What to do", meaning.remedy))
        found[code] = {"what": _plain(meaning.what), "parts": [(title, list(blocks(text))) for title, text in parts if text]}
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
    """Stretches of text, each with whether it is code; links are their text, and emphasis is dropped."""
    parts = _LINK.sub(r"\1", text).split("`")
    return [(number % 2 == 1, part if number % 2 else part.replace("**", "")) for number, part in enumerate(parts) if part]


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", text).replace("`", "")
