"""How numbers of bytes are shown: whole ones while they are short, then in units of a thousand."""

from __future__ import annotations


def bytes_text(number: int) -> str:
    """`5,760 B`, `17.3 kB`, `2.2 MB`, `1.1 GB`."""
    if number < 10_000:
        return f"{number:,} B"
    return next(f"{number / unit:,.1f} {name}" for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")) if number >= unit)
