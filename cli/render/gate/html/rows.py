"""An outcome as the page has it: a row of the list, and the body that is read when the item is opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from layoutproof.cli.gate.outcome import REPORTED, Fate, Outcome
from layoutproof.cli.render.gate.html.pieces import Pieces

_LONGEST_SUB = 240


def codes_of(outcome: Outcome) -> list[str]:
    """The codes of its findings, those that fail the run first, each once."""
    ordered = sorted(outcome.findings, key=lambda finding: finding.fate is not Fate.FAILS)
    return list(dict.fromkeys(finding.code for finding in ordered))


def row_of(outcome: Outcome, codes: dict[str, int], body: int) -> list[Any]:
    """The fields that `data.js` names, in its order; `codes` numbers the codes met so far."""
    numbers = [codes.setdefault(code, len(codes)) for code in codes_of(outcome)]
    place = f"{outcome.place.path}:{outcome.place.line}" if outcome.place is not None else ""
    seconds = round(outcome.seconds, 6)
    steps = len(outcome.steps)
    return [
        outcome.name,
        outcome.kind.value,
        outcome.word,
        int(not outcome.passes),
        numbers,
        steps,
        seconds,
        int(outcome.cached),
        _sub(outcome),
        place,
        body,
    ]


def _sub(outcome: Outcome) -> str:
    """The second line of the row: what is wrong, else what was done."""
    ordered = sorted(outcome.findings, key=lambda finding: finding.fate is not Fate.FAILS)
    if ordered:
        first = ordered[0]
        message = first.message.splitlines()[0] if first.message else ""
        return _short(f"{first.code} {message}")
    return _short(", ".join(str(step["primitive"]) for step in outcome.steps))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SUB else f"{text[:_LONGEST_SUB]}…"


def body_of(outcome: Outcome, pieces: Pieces, *, detail: bool) -> dict[str, Any]:
    """The body; without `detail`, programs and layouts are left out and that is said."""
    parts = [part for found in outcome.detail.values() for part in found] if outcome.detail is not None else None
    return {
        "name": outcome.name,
        "kind": outcome.kind.value,
        "program": outcome.program,
        "place": outcome.place.to_dict() if outcome.place is not None else None,
        "certificate": outcome.certificate,
        "seconds": round(outcome.seconds, 6),
        "cached": outcome.cached,
        "notes": list(outcome.notes),
        "findings": [finding.to_dict() for finding in outcome.findings],
        "steps": [_step(step, pieces) for step in outcome.steps],
        "parts": [_part(part, pieces) for part in parts] if parts is not None and detail else None,
        "left_out": parts is not None and not detail,
    }


def _step(step: Mapping[str, Any], pieces: Pieces) -> list[Any]:
    """A step that others share, and the seconds, which are its own."""
    shown = [name for name in REPORTED if name not in ("seconds", "counterexample")]
    obligations = [{name: one[name] for name in shown if name in one} for one in step["obligations"]]
    seconds = sum(float(one.get("seconds") or 0.0) for one in step["obligations"])
    return [pieces.shared({**step, "obligations": obligations}), round(seconds, 6)]


def _part(part: Mapping[str, Any], pieces: Pieces) -> dict[str, Any]:
    numbers = [pieces.line(line) for line in part["lines"]]
    return {
        "title": part["title"],
        "primitives": part["primitives"],
        "refused": part["refused"],
        "stages": [pieces.shared([numbers[line] for line in stage]) for stage in part["stages"]],
        "changes": [pieces.shared(change) for change in part["changes"]],
        "whole": pieces.shared(part["whole"]),
        "layouts": [pieces.shared(layout) for layout in part["layouts"]],
        "contracts": pieces.shared(part["contracts"]),
        "assumptions": pieces.shared(part["assumptions"]),
    }
