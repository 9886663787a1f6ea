"""Schedules in JSON, read with the places of their parts: a file of one, or a line of a file of many."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from layoutproof.cli.gate.items import Item
from layoutproof.ir.diagnostic import error
from layoutproof.ir.source import Source, Span
from layoutproof.lowering import codes

if TYPE_CHECKING:
    from layoutproof.lowering.passes import Pass


def read_trace(item: Item) -> tuple[list[Any], Sequence[Pass]]:
    """The steps of an item's schedule as JSON has them, and as passes.

    Raises LayoutproofError, with line and column, for text that is not JSON, and, naming the step, for what is no schedule.
    """
    from layoutproof.lowering.trace import passes_of

    try:
        trace = json.loads(item.text, parse_constant=_no_constant)
    except json.JSONDecodeError as problem:
        raise error(codes.TRACE_JSON, f"not JSON: {problem.msg}", _span(item, problem.lineno, problem.colno)) from problem
    except (ValueError, RecursionError) as problem:
        raise error(codes.TRACE_JSON, f"not JSON: {problem}", _span(item, 1, 1)) from problem
    passes = passes_of(trace)
    return list(trace), passes


def _span(item: Item, line: int, column: int) -> Span:
    """A place in the item's text, which begins at the item's line of its file."""
    # The file's other lines are not at hand, and not needed: a source of blank lines up to this one counts as the file does.
    source = Source(item.path, "\n" * (item.line - 1) + item.text)
    return Span(source, item.line + line - 1, column - 1, item.line + line - 1, column)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
