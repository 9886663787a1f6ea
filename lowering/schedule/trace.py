"""The steps of a schedule as text: a JSON trace, and the program after each step for people.

A trace comes from a file, an autotuner or a person; every error in it is reported with the step and the argument.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from layoutproof.ir.diagnostic import counted, error, meant
from layoutproof.ir.primfunc import LAYOUT, PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import read_text
from layoutproof.ir.stmt import Attributes
from layoutproof.lowering import codes
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.passes.steps import Step
from layoutproof.lowering.schedule.primitives import PASSES
from layoutproof.verify.certificate.sealed_files import behind_links, is_stream, no_constant, replacing
from layoutproof.verify.verdict.verdict import Verdict

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
        got = counted(len(step), "element", "elements") if isinstance(step, list | tuple) else _kind(step)
        form = 'a list of two, such as ["parallel", {"block": "sum", "loop": "i"}]'
        raise error(codes.TRACE_FORM, f"{place}expected {form}, got {got}")
    name, arguments = step
    if not isinstance(name, str):
        raise error(codes.TRACE_FORM, f"{place}the primitive's name is {_kind(name)}, text is expected")
    if name not in PASSES:
        hint = meant(name, PASSES, f"available: {', '.join(PASSES)}")
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
    """The trace in a JSON file, its steps checked. Raises LayoutproofError for a file that cannot be read or is no
    trace.
    """
    text = read_text(path)
    try:
        trace = json_of(text)
    except (ValueError, RecursionError) as problem:
        raise error(codes.TRACE_JSON, f"{path} is not JSON: {problem}") from problem
    return trace_of(passes_of(trace))


def json_of(text: str) -> Any:
    """The value of a JSON text. Raises json.JSONDecodeError for malformed text, ValueError for NaN, Infinity and
    repeated keys, RecursionError if it is nested too deep.
    """
    return json.loads(text, parse_constant=no_constant, object_pairs_hook=_without_repeats)


def _without_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {repeated!r} stands twice in one object")
    return found


def save_trace(path: str | Path, trace: Trace) -> None:
    """Write a trace as JSON, whole or not at all. Raises OSError where the file cannot be written."""
    place = Path(path)
    if is_stream(place):
        place.write_text(trace_text(trace), encoding="utf-8")
        return
    with replacing(behind_links(place)) as part:
        part.write_text(trace_text(trace), encoding="utf-8")


def trace_text(trace: Trace) -> str:
    """A trace as JSON, one step a line."""
    lines = ",\n".join(f"  {json.dumps(step)}" for step in trace)
    return f"[\n{lines}\n]\n" if trace else "[]\n"


def program_text(func: PrimFunc) -> str:
    """The program without its import line and without the record of its layouts, which the last step's proof states
    anyway.
    """
    kept = Attributes({name: value for name, value in func.attrs.items() if name != LAYOUT})
    _, _, text = print_func(replace(func, attrs=kept)).partition("\n\n")
    return text


def step_text(step: Step) -> str:
    """The step, under which fast-math assumptions it is proved, and the program after it."""
    return f"# {step}\n# {_answer(step.verdicts)}\n{program_text(step.rewrite.new)}"


def refusal_text(problem: IllegalTransform) -> str:
    """The first thing that is wrong with a transform that was refused, without the program lines around it."""
    first = problem.diagnostics[0]
    head, *_ = first.message.splitlines()
    return f"# refused: {head}\n" + (f"#   {first.help}\n" if first.help is not None else "")


def proof_text(steps: Sequence[Step], decisive: str) -> str:
    """What was proved: each step with its fast-math assumptions, all together, and every obligation of the last step of
    the primitive `decisive`.

    Raises ValueError if no step is of that primitive.
    """
    chosen = next((step for step in reversed(steps) if step.transform.primitive == decisive), None)
    if chosen is None:
        raise ValueError(f"no step is a {decisive}")
    lines = [
        f"{number}. {step.transform.primitive}: {_answer(step.verdicts)}" for number, step in enumerate(steps, start=1)
    ]
    lines.append(f"all together: {_answer([v for step in steps for v in step.verdicts])}")
    lines.append(f"{decisive}:")
    # One line for each claim, once for many accesses.
    lines += dict.fromkeys(
        f"  {v.status}: {v.claim}{f' ({v.reason})' if v.reason is not None else ''}" for v in chosen.verdicts
    )
    return "\n".join(lines) + "\n"


def _answer(verdicts: Sequence[Verdict]) -> str:
    numbers = Counter(v.status.value for v in verdicts)
    statuses = ", ".join(f"{number} {status}" for status, number in sorted(numbers.items()))
    fast_math = sorted({word for v in verdicts for word in v.strictness})
    return f"{statuses}, {'with ' + ' '.join(fast_math) if fast_math else 'bit for bit'}"
