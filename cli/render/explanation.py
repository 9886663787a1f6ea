"""The documentation of codes as text: of one code, and what codes a user may have meant."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from layoutproof.cli import codes
from layoutproof.cli.catalogue import Meaning, all_codes, has_code, sentence_of
from layoutproof.ir.diagnostic import LayoutproofError, error

_CODE = re.compile(r"(?:LP)?(\d{1,3})", re.IGNORECASE)
_MOST_LIKELY = 5
_WIDTH = 100  # of paragraphs


def find(text: str) -> tuple[str, ...]:
    """The code that a text names, or all codes that begin with it. Raises LayoutproofError if there is none."""
    word = text.strip()
    shape = _CODE.fullmatch(word)
    beginning = f"LP{shape[1]}" if shape is not None else word.upper()
    if has_code(beginning):
        return (beginning,)
    known = all_codes()
    found = tuple(code for code in known if code.startswith(beginning)) if beginning.startswith("LP") else ()
    if not found:
        raise _no_such_code(text, beginning, known)
    return found


def _no_such_code(text: str, written: str, known: Sequence[str]) -> LayoutproofError:
    """The error, with suggestions: codes of similar digits, or with the word in their sentence."""
    digits = "".join(re.findall(r"\d", written))
    if digits:
        close = [code for code in known if _almost(digits, code[2:])]
    else:
        close = [code for code in known if len(text.strip()) > 2 and text.strip().lower() in sentence_of(code).lower()]
    lines = [f"      {code}: {sentence_of(code)}" for code in close[:_MOST_LIKELY]]
    hint = "\n".join(["these are close to it", *lines]) if lines else "`layoutproof explain` lists all codes"
    return error(
        codes.NO_SUCH_CODE, f"there is no code {text!r}; codes are LP and three digits, such as LP314", help=hint
    )


def _almost(digits: str, right: str) -> bool:
    """The same digits in another order, one of three wrong, or one too many."""
    if len(digits) == len(right):
        return sorted(digits) == sorted(right) or sum(a != b for a, b in zip(digits, right, strict=True)) == 1
    return right in {digits[:k] + digits[k + 1 :] for k in range(len(digits))}


def explanation(meaning: Meaning) -> str:
    """One code's documentation for a terminal: blocks of code are indented, all else is unchanged."""
    parts = [f"{meaning.code} ({meaning.layer})", _broken(meaning.what)]
    if meaning.why:
        parts += [_plain(meaning.why), "Example", _plain(meaning.example), "What to do", _plain(meaning.remedy)]
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """Markdown without its fences: code is indented and kept, paragraphs are wrapped."""
    lines: list[str] = []
    for number, part in enumerate(re.split(r"^```\w*$\n?", text, flags=re.MULTILINE)):
        if number % 2:
            lines += [f"    {line}".rstrip() for line in part.splitlines()]
        else:
            lines += [_broken(paragraph) for paragraph in part.split("\n\n")]
    return "\n".join(lines).strip("\n")


def _broken(paragraph: str) -> str:
    return textwrap.fill(paragraph, _WIDTH, break_long_words=False, break_on_hyphens=False) if paragraph.strip() else ""
