"""A suggested schedule as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from layoutproof.cli.output import escaped, on_one_line, styled
from layoutproof.cli.render.gate.text_json import remarks
from layoutproof.ir.diagnostic import counted
from layoutproof.ir.index_map import index_map_text
from layoutproof.lowering.suggest.suggestion import Obstacle, Suggestion
from layoutproof.verify.verdict.report import to_entry


@dataclass(frozen=True, slots=True)
class NamedSuggestion:
    """A suggestion, what its program is called, and the file that its trace was written to."""

    program: str
    found: Suggestion
    saved: Path | None


def suggestion_to_dict(named: NamedSuggestion) -> dict[str, Any]:
    """The suggestion as JSON has it."""
    return {"program": named.program, **named.found.to_dict()}


def render_suggestion(named: NamedSuggestion, *, markup: bool = False) -> str:
    """The suggestion: layouts, steps with their proofs, what callers have to see to, what was left out and why."""
    return "".join(f"{line}\n" for line in _lines(named, markup))


def _lines(named: NamedSuggestion, markup: bool) -> Iterator[str]:
    found = named.found
    steps = counted(len(found.steps), "step", "steps")
    head = f"block {found.block} in {found.layout}: {steps}, each proved"
    if found.obstacles:
        head += f"; {len(found.obstacles)} left out"
    yield escaped(f"{on_one_line(named.program)}: {head}", markup)
    width = max(map(len, found.layouts), default=0)
    for name, index_map in found.layouts.items():
        pad = found.pads.get(name)
        holds = "" if pad is None else f"   padding: {'anything' if pad == 'T.undef()' else pad}"
        yield escaped(f"  {name:<{width}}  {index_map_text(index_map)}{holds}", markup)
    for step in found.steps:
        word = styled(f"{step.status.value:<8}", step.status.value, markup)
        yield f"  {word} " + escaped(f"{step}: {counted(len(step.verdicts), 'obligation', 'obligations')}", markup)
        yield from (escaped(line, markup) for line in remarks([to_entry(verdict) for verdict in step.verdicts]))
    for text in found.preconditions:
        yield escaped(f"  precondition: {text}", markup)
    for obstacle in found.obstacles:
        yield from _obstacle(obstacle, markup)
    if named.saved is not None:
        yield escaped(f"  schedule: {on_one_line(str(named.saved))}", markup)


def _obstacle(obstacle: Obstacle, markup: bool) -> Iterator[str]:
    word = styled(f"{obstacle.status.value:<8}", obstacle.status.value, markup)
    code = "" if obstacle.code is None else f" [{obstacle.code}]"
    yield f"  {word} " + escaped(f"{obstacle.what}{code}", markup)
    operands = {name: pad for name, pad in (obstacle.pads or {}).items() if pad is not None}
    if operands:
        values = (f"{'anything' if pad == 'T.undef()' else pad} in {name}" for name, pad in operands.items())
        yield escaped(f"      with padding {', '.join(values)}:", markup)
    for line in (obstacle.reason or "").splitlines():
        yield escaped(f"      {line}", markup)
    if obstacle.remedy is not None:
        yield escaped(f"      = help: {obstacle.remedy}", markup)
