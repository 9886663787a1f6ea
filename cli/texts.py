"""Byte counts and foreign texts, printable on terminals, in reports and in pictures."""

from __future__ import annotations


def bytes_text(number: int) -> str:
    """`5,760 B`, `17.3 kB`, `2.2 MB`, `1.1 GB`: whole ones while they are short, then in units of a thousand."""
    if number < 10_000:
        return f"{number:,} B"
    return next(
        f"{number / unit:,.1f} {name}" for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")) if number >= unit
    )


def readable(text: str) -> str:
    """A text without terminal control characters, except line ends and tabs.

    Lone surrogates stay: they are bytes of a file's name, which streams write as escapes.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" or "\ud800" <= c <= "\udfff" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
