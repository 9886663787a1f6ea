"""Byte counts and foreign texts, printable on terminals, in reports and in pictures."""

from __future__ import annotations

import re


def bytes_text(number: int) -> str:
    """`5,760 B`, `17.3 kB`, `2.2 MB`, `1.1 GB`: whole ones while they are short, then in units of a thousand."""
    if number < 10_000:
        return f"{number:,} B"
    return next(
        f"{number / unit:,.1f} {name}" for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")) if number >= unit
    )


# A line that begins so is a command to a runner of GitHub Actions, which looks past blanks: a file's name may hold one.
_COMMAND = re.compile(r"^(\s*)(?=::|##\\?\[)", re.MULTILINE)
_STRANGE = "\N{REPLACEMENT CHARACTER}"


def harmless(text: str) -> str:
    """A text in which no line is a command to a runner that reads the log."""
    return _COMMAND.sub(rf"\1{_STRANGE}", text) if "::" in text or "##" in text else text


def readable(text: str) -> str:
    """A text without terminal control characters, except line ends and tabs, in which no line is a command to a runner.

    Lone surrogates stay: they are bytes of a file's name, which streams write as escapes.
    """
    if text.isprintable():
        return harmless(text)
    return harmless(
        "".join(c if c.isprintable() or c in "\n\t" or "\ud800" <= c <= "\udfff" else _STRANGE for c in text)
    )


def on_one_line(text: str) -> str:
    """The same without line ends: of a path, or of what stands between others."""
    return readable(re.sub(r"[\n\t]", _STRANGE, text))
