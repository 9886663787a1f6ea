"""Where an item stands, and what it is about, as reports say it."""

from __future__ import annotations

from layoutproof.cli.gate.items import Item
from layoutproof.cli.gate.loading import text_of
from layoutproof.cli.gate.outcome import Kind, Place
from layoutproof.ir.diagnostic import LayoutproofError, Source

_SHOWN = 400  # characters of a line


def program_of(item: Item) -> str:
    """The program that an item is about, as reports name it."""
    if item.kind is Kind.TRACE:
        return f"{item.program}:{item.subject}" if item.subject else item.program
    if item.kind is Kind.COMPARISON:
        return item.program
    return item.path if item.kind is Kind.REWRITE else item.name


def place_of(item: Item) -> Place:
    """Where an item stands, with the line there: the schedule, or the `def` of the gate."""
    if item.kind is Kind.TRACE:
        text = item.text.split("\n")[0][:_SHOWN]
    else:
        try:
            text = Source(item.path, text_of(item.path)).line(item.line)[:_SHOWN]
        except LayoutproofError:
            text = ""
    return Place(item.path, item.line, 1, item.line, len(text) + 1, text)
