"""The kinds of options that passes have, and how each stands in a trace: plain JSON, checked when it is read back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.lowering import codes


class ArgumentKind(StrEnum):
    """What an option is; the value says it in messages."""

    NAME = "a name"
    INDEX_MAP = "the text of an index map, `lambda i, j: [...]`"
    PAD_VALUE = "null, a number, or text in the script syntax such as `T.float32(0)`, `T.undef()` or `lambda io, ii: ...`"
    INTEGER = "an integer"
    INTEGERS = "a list of integers"
    LOOP = "the name of a loop's variable, or the loop's position from 0"
    LOOPS = "a list of names of loops' variables, or of their positions from 0, none twice"
    FACTORS = "a list of positive integers, of which one may be null"
    CHOICES = "null, or a list of integers"
    FLAG = "true or false"
    NAMES = "a list of names, none twice"


def to_json(kind: ArgumentKind, value: Any) -> Any:
    """An option's value as JSON data."""
    return list(value) if isinstance(value, tuple) else value


def from_json(kind: ArgumentKind, value: Any, place: str) -> Any:
    """The option that JSON data states. Raises LayoutproofError, with `place` and what was expected, for data of another kind."""
    if not _ACCEPTS[kind](value):
        raise wrong_argument(kind, value, place)
    return tuple(value) if isinstance(value, list | tuple) else value


def wrong_argument(kind: ArgumentKind, value: Any, place: str) -> LayoutproofError:
    """The error for an option of the wrong type."""
    return error(codes.ARGUMENT_TYPE, f"{place} is {_shown(value)}, {kind.value} is expected")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_integers(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(v, int) and not isinstance(v, bool) for v in value)


def _is_loop(value: Any) -> bool:
    return (isinstance(value, str) and value != "") or (isinstance(value, int) and not isinstance(value, bool))


def _is_loops(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(map(_is_loop, value)) and len(set(value)) == len(value)


def _is_factors(value: Any) -> bool:
    if not isinstance(value, list | tuple) or not value or sum(v is None for v in value) > 1:
        return False
    return all(v is None or (isinstance(v, int) and not isinstance(v, bool) and v > 0) for v in value)


def _is_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(v, str) and v != "" for v in value) and len(set(value)) == len(value)


_ACCEPTS: Mapping[ArgumentKind, Callable[[Any], bool]] = {
    ArgumentKind.NAME: lambda value: isinstance(value, str) and value != "",
    ArgumentKind.INDEX_MAP: lambda value: isinstance(value, str) and value.strip() != "",
    ArgumentKind.PAD_VALUE: lambda value: value is None or isinstance(value, str) or isinstance(value, bool) or _is_number(value),
    ArgumentKind.INTEGER: lambda value: isinstance(value, int) and not isinstance(value, bool),
    ArgumentKind.INTEGERS: _is_integers,
    ArgumentKind.LOOP: _is_loop,
    ArgumentKind.LOOPS: _is_loops,
    ArgumentKind.FACTORS: _is_factors,
    ArgumentKind.CHOICES: lambda value: value is None or _is_integers(value),
    ArgumentKind.FLAG: lambda value: isinstance(value, bool),
    ArgumentKind.NAMES: _is_names,
}
