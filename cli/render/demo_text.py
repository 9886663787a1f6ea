"""The short demo as lines of text, with rich's markup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from layoutproof.cli.output import styled
from layoutproof.ir.diagnostic import counted
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.program_texts import program_diff
from layoutproof.ir.text import expr_text
from layoutproof.lowering.passes.steps import Step
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.replay.counterexample import number_text, read_number

if TYPE_CHECKING:
    from layoutproof.cli.short_demo import Timing
    from layoutproof.lowering.passes.illegal import IllegalTransform

_WIDTH = 100


def map_lines(report: MapReport) -> Iterator[str]:
    """The verdict on the layout."""
    predicate = report.padding.predicate
    where = "" if predicate is None else f"; padding where {expr_text(predicate, 'plain')}"
    yield _verdict(report.injective.status, f"the layout is injective for all n and m{where}")


def step_line(step: Step) -> str:
    """A kept step with the number of its obligations."""
    options = {name: value for name, value in step.transform.arguments().items() if value is not None}
    positional = ("block", "buffer", "index_map")
    parts = [repr(value) if name in positional else f"{name}={value!r}" for name, value in options.items()]
    given = ", ".join(part for part in parts if part != "wrap=False")
    count = counted(len(step.verdicts), "obligation", "obligations")
    return _verdict(step.status, f"{step.transform.primitive}({given}): {count}")


def strictness_line(steps: Sequence[Step]) -> str:
    """How far the proofs of kept steps go."""
    fast_math = sorted({flag for step in steps for verdict in step.verdicts for flag in verdict.strictness})
    return f"         for every n and m, {'with ' + ' '.join(fast_math) if fast_math else 'bit for bit'}"


def difference_lines(step: Step) -> Iterator[str]:
    """The lines of the program that a step changed."""
    changed = program_diff(print_func(step.rewrite.old), print_func(step.rewrite.new), context=0)
    for line in changed.splitlines():
        if line[0] in "+-":
            yield f"         [{'green' if line[0] == '+' else 'red'}]{escape(line[0] + ' ' + line[1:].strip())}[/]"


def refusal_lines(problem: IllegalTransform) -> Iterator[str]:
    """A refused step with its counterexample in numbers."""
    verdict = problem.verdict
    status = "unknown" if verdict is None else verdict.status.value
    name = "the step" if problem.step is None else problem.step.primitive
    yield _verdict(status, f"{name}: not applied")
    found: Mapping[str, Any] = {} if verdict is None or verdict.counterexample is None else verdict.counterexample
    if "element" not in found:
        yield f"         {escape(str(problem).splitlines()[0])}"
        return
    inputs = [f"{symbol} = {value}" for symbol, value in found["symbols"].items()]
    inputs += [f"{array} = {_values(data)}" for array, data in found["inputs"].items() if array in _read(found)]
    index = found["element"]["logical"] or found["element"]["after_index"]
    place = f"{found['element']['buffer']}{index}"
    yield f"         with {', '.join(inputs)}:"
    old, new = (number_text(read_number(found[key])) for key in ("before", "after"))
    yield f"         {place}: expected {old}, got {new}"
    cells = [f"{cell['access']} = {number_text(read_number(cell['value']))}" for cell in found.get("padding_read", ())]
    if cells:
        yield f"         it read padding: {', '.join(cells)}"


def _read(found: Mapping[str, Any]) -> set[str]:
    """The arrays whose padding was read."""
    return {cell["access"].partition("[")[0] for cell in found.get("padding_read", ())}


def _values(data: Mapping[str, Any]) -> str:
    if "values" not in data:
        return f"{data['fill']} nearly everywhere"
    return f"[{', '.join(str(read_number(value)) for value in data['values'])}]"


def timing_lines(timings: Sequence[Timing], names: Sequence[str]) -> Iterator[str]:
    """The kernels' times, and how much faster the last one is."""
    wide = max(map(len, names))
    slowest = max(timing.seconds for timing in timings)
    for timing, name in zip(timings, names, strict=True):
        bar = "#" * max(1, round(30 * timing.seconds / slowest))
        ratio = timings[0].seconds / timing.seconds
        faster = f"  {ratio:.1f} times as fast" if timing is not timings[0] else ""
        wrong = "" if timing.equal else "  [bold red]differs from numpy[/]"
        yield f"  {name:<{wide}}  {timing.seconds * 1e3:6.2f} ms  {bar}{faster}{wrong}"


def _verdict(status: str, text: str) -> str:
    shown = text if len(text) <= _WIDTH - 10 else f"{text[: _WIDTH - 11]}…"
    return f"{styled(f'{status:<8}', status, True)} {escape(shown)}"
