"""Traces: the steps of a schedule as JSON, `[["transform_layout", {"block": ..., "buffer": ..., ...}], ...]`, read with care.

A trace comes from a file, an autotuner or a person; every way in which it can be wrong names the step and the argument.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from layoutproof.ir.diagnostic import error
from layoutproof.ir.script.reader import read_text
from layoutproof.lowering import codes
from layoutproof.lowering.passes import Pass
from layoutproof.lowering.registry import PASSES

Trace = list[list[Any]]


def trace_of(passes: Sequence[Pass]) -> Trace:
    """The trace that replays `passes`, fresh plain data."""
    return [stated for step in passes for stated in step.stated()]


def passes_of(trace: Any) -> tuple[Pass, ...]:
    """The passes that a trace states. Raises LayoutproofError naming the step (from 1) and the argument."""
    if not isinstance(trace, list | tuple):
        raise error(codes.TRACE_FORM, f"a trace is a list of steps, this is {_kind(trace)}")
    return tuple(_pass_of(step, number) for number, step in enumerate(trace, start=1))


def _pass_of(step: Any, number: int) -> Pass:
    place = f"step {number}: "
    if not isinstance(step, list | tuple) or len(step) != 2:
        raise error(codes.TRACE_FORM, f"{place}a step is a list of a primitive's name and its arguments")
    name, arguments = step
    if not isinstance(name, str):
        raise error(codes.TRACE_FORM, f"{place}the primitive's name is {_kind(name)}, text is expected")
    if name not in PASSES:
        close = get_close_matches(name, PASSES, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(PASSES)}"
        raise error(codes.UNKNOWN_PRIMITIVE, f"{place}there is no primitive {name!r}", help=hint)
    if not isinstance(arguments, dict) or not all(isinstance(key, str) for key in arguments):
        raise error(codes.TRACE_FORM, f"{place}the arguments of {name} are {_kind(arguments)}, an object is expected")
    return PASSES[name].from_arguments(arguments, place)


def _kind(value: Any) -> str:
    kinds: dict[type, str] = {
        dict: "an object",
        list: "a list",
        tuple: "a list",
        str: "text",
        int: "a number",
        float: "a number",
        bool: "a truth value",
    }
    return "null" if value is None else kinds.get(type(value), type(value).__name__)


def load_trace(path: str | Path) -> Trace:
    """The trace in a JSON file, its steps checked. Raises LayoutproofError for a file that cannot be read or is no trace."""
    text = read_text(path)
    try:
        trace = json_of(text)
    except (ValueError, RecursionError) as problem:
        raise error(codes.TRACE_JSON, f"{path} is not JSON: {problem}") from problem
    return trace_of(passes_of(trace))


def json_of(text: str) -> Any:
    """What a text says in JSON. Raises json.JSONDecodeError where it is none, ValueError where the standard leaves open what it says:
    numbers that are none, a key that stands twice in one object; RecursionError where it is nested too deep.
    """
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_without_repeats)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _without_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {repeated!r} stands twice in one object")
    return found


def save_trace(path: str | Path, trace: Trace) -> None:
    """Write a trace as JSON, one step a line. Raises OSError where the file cannot be written."""
    lines = ",\n".join(f"  {json.dumps(step)}" for step in trace)
    Path(path).write_text(f"[\n{lines}\n]\n" if trace else "[]\n", encoding="utf-8")
