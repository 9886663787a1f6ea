"""Schedules in JSON, read with the places of their parts: a file of one, or a line of a file of many."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from layoutproof.cli.gate.items import Item
from layoutproof.ir.diagnostic import Source, Span, error
from layoutproof.lowering import codes

if TYPE_CHECKING:
    from layoutproof.lowering.passes.base import Pass


def read_trace(item: Item) -> tuple[list[Any], Sequence[Pass]]:
    """The steps of an item's schedule as JSON has them, and as passes.

    Raises LayoutproofError, with line and column, for text that is not JSON, and, naming the step, for what is no schedule.
    """
    from layoutproof.lowering.schedule.trace import json_of, passes_of

    _check_decoded(item)
    try:
        trace = json_of(item.text)
    except json.JSONDecodeError as problem:
        raise error(codes.TRACE_JSON, f"not JSON: {problem.msg}", _span(item, problem.lineno, problem.colno)) from problem
    except RecursionError as problem:
        raise error(codes.TRACE_JSON, "it is nested too deep", _span(item, 1, 1)) from problem
    except ValueError as problem:
        # Python's own words for a number of thousands of digits name a function of Python.
        what = "a number has too many digits" if "set_int_max_str_digits" in str(problem) else str(problem)
        raise error(codes.TRACE_JSON, f"not JSON: {what}", _span(item, 1, 1)) from problem
    passes = passes_of(trace)
    return list(trace), passes


def _check_decoded(item: Item) -> None:
    """Raise LayoutproofError where a byte of the file is no UTF-8: it was read as a lone surrogate, which no UTF-8 has."""
    if item.text.isascii():
        return
    for row, line in enumerate(item.text.split("\n"), start=1):
        wrong = next((column for column, char in enumerate(line, start=1) if "\udc80" <= char <= "\udcff"), None)
        if wrong is not None:
            message = f"not JSON: the byte 0x{ord(line[wrong - 1]) - 0xDC00:02x} is not UTF-8"
            raise error(codes.TRACE_JSON, message, _span(item, row, wrong))


def _span(item: Item, line: int, column: int) -> Span:
    """A place in the item's text, which begins at the item's line of its file."""
    # The file's other lines are not at hand, and not needed: a source of blank lines up to this one counts as the file does.
    source = Source(item.path, "\n" * (item.line - 1) + item.text)
    return Span(source, item.line + line - 1, column - 1, item.line + line - 1, column)
