"""Text in rich's markup, for reports that have a plain and a styled form."""

from __future__ import annotations

from layoutproof.cli.output import STYLES


def escaped(text: str, markup: bool) -> str:
    """The text; with `markup`, safe to stand in rich's markup."""
    if not markup:
        return text
    from rich.markup import escape  # rich takes long to load, and plain text needs none of it

    return escape(text)


def styled(text: str, status: str, markup: bool) -> str:
    """The text; with `markup`, in the style of a verdict's word."""
    return f"[{STYLES[status]}]{text}[/]" if markup else text
