"""Findings: what is not proved, with code, place, a hash that survives edits, and the counterexample as a few lines of
text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutproof.cli import codes
from layoutproof.cli.gate.outcomes import Fate, Finding, Place
from layoutproof.ir.diagnostic import Diagnostic
from layoutproof.lowering.passes.illegal import hint_of
from layoutproof.verify.verdict.report import PHRASES, counterexample_text
from layoutproof.verify.verdict.verdict import Claim, Status, Verdict

if TYPE_CHECKING:
    from layoutproof.ir.primfunc import PrimFunc
    from layoutproof.lowering.passes.illegal import IllegalTransform, RefusedStep
    from layoutproof.lowering.schedule.schedule import Schedule


_WIDTH = 64  # columns of one cell of a table; longer texts are cut


def drawn(verdict: Verdict) -> tuple[str, ...]:
    """The lines that show a verdict's counterexample; none if there is none, or if its reason suffices."""
    example = verdict.counterexample
    if example is None:
        return ()
    if {"first", "second", "image"} <= example.keys():
        return _meeting(
            _index(example["first"]), _index(example["second"]), f"cell {_index(example['image'])}", example
        )
    if {"first", "second", "cell", "buffer"} <= example.keys():
        first, second = (_values(example[key]) for key in ("first", "second"))
        return _meeting(first, second, f"{example['buffer']}{_index(example['cell'])}, in no order", example)
    if "element" in example:
        return _two_runs(example)
    return (f"cell {_index(example['unreached'])} <- no logical index",) if "unreached" in example else ()


def _meeting(first: str, second: str, where: str, example: Mapping[str, Any]) -> tuple[str, ...]:
    """Two indices with one cell."""
    width = max(len(first), len(second))
    given = _values(example.get("symbols", {}))
    return (
        f"{first:<{width}} ──┐",
        f"{'':<{width}}   ├──> {where}{f'   (with {given})' if given else ''}",
        f"{second:<{width}} ──┘",
    )


def _two_runs(example: Mapping[str, Any]) -> tuple[str, ...]:
    """One cell of the final states of both programs, side by side, with the stores that made it and their reads."""
    element = example["element"]
    rows: list[tuple[str, str, str]] = [("", "before", "after")]
    # Padding is no element: it has the places of its cells only.
    places = (element[key] for key in ("logical", "after_index", "before_index"))
    index = next((place for place in places if place is not None), ())
    rows.append((f"final {element['buffer']}{_index(index)}", number(example["before"]), number(example["after"])))
    before, after = example.get("before_store"), example.get("after_store")
    if before is not None or after is not None:
        rows.append(("stored by", _store(before), _store(after)))
        left, right = (_values(store["variables"]) if store is not None else "" for store in (before, after))
        rows.append(("at", left, right))
        loads = [store["loads"] if store is not None else [] for store in (before, after)]
        for place, (old, new) in enumerate(_side_by_side(*loads)):
            rows.append(("from" if place == 0 else "", _load(old), _load(new)))
    given = _values(example.get("symbols", {}))
    if given:
        rows.append(("with", given, ""))
    cut = [[text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..." for text in row] for row in rows]
    widths = [max(len(row[column]) for row in cut) for column in range(3)]
    return tuple("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in cut)


def _side_by_side(left: Sequence[Any], right: Sequence[Any]) -> list[tuple[Any, Any]]:
    count = max(len(left), len(right))
    return [(left[k] if k < len(left) else None, right[k] if k < len(right) else None) for k in range(count)]


def _store(store: Mapping[str, Any] | None) -> str:
    return f"line {store['line']}: {store['text']}" if store is not None else "no such store"


def _load(load: Mapping[str, Any] | None) -> str:
    return f"{load['access']} = {number(load['value'])}" if load is not None else ""


def _values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _index(values: Sequence[Any]) -> str:
    return f"[{', '.join(map(str, values))}]"


def number(value: Any) -> str:
    """A number of a counterexample; floats, which are hexadecimal there, in decimal."""
    if not isinstance(value, str):
        return str(value)
    try:
        return repr(float.fromhex(value))
    except ValueError:
        return value


def of_refusal(
    problem: IllegalTransform, call: Place | None = None, allow_unknown: bool = False
) -> tuple[Finding, ...]:
    """The findings of a refused step: one for each claim that is not proved.

    `call` is the line in a gate file that asked for the step; the place in the program is then a related one.
    """
    found: list[Finding] = []
    for diagnostic, verdict in _paired(problem):
        bare = Finding.of(diagnostic)
        related = bare.related
        if call is not None and bare.place is not None:
            related = ((bare.place, "in the program"), *related)
        found.append(
            replace(
                bare,
                status=verdict.status.value,
                place=call if call is not None else bare.place,
                related=related,
                obligation=_hash_of(verdict.claim, problem.step),
                counterexample=_example(verdict),
                drawing=drawn(verdict),
                fate=fate_of(verdict.status, allow_unknown),
            )
        )
    return tuple(found)


def _hash_of(claim: Claim, step: RefusedStep | None) -> str | None:
    return obligation_of(claim, step.primitive, step.arguments, step.func) if step is not None else None


def _paired(problem: IllegalTransform) -> Sequence[tuple[Diagnostic, Verdict]]:
    """Each verdict with its diagnostic; a pass that refuses by itself has one of its own."""
    diagnostics, verdicts = problem.diagnostics, problem.verdicts
    if len(diagnostics) == len(verdicts):
        return list(zip(diagnostics, verdicts, strict=True))
    return [(diagnostics[min(number, len(diagnostics) - 1)], verdict) for number, verdict in enumerate(verdicts)]


def of_verdicts(schedule: Schedule, place: Place | None = None, allow_unknown: bool = False) -> tuple[Finding, ...]:
    """The findings of a schedule with all steps applied: steps that hold vacuously."""
    found: list[Finding] = []
    for step in schedule.steps:
        for verdict in step.verdicts:
            if verdict.status is not Status.PROVED:
                obligation = obligation_of(
                    verdict.claim, step.transform.primitive, step.transform.arguments(), step.rewrite.old
                )
                found.append(of_verdict(verdict, str(step), place, obligation, allow_unknown))
    return tuple(found)


def of_verdict(
    verdict: Verdict, subject: str, place: Place | None, obligation: str | None, allow_unknown: bool = False
) -> Finding:
    """The finding of a verdict that is not proved, about `subject`."""
    reason = counterexample_text(verdict)
    return Finding(
        verdict.code,
        f"{subject}: {verdict.claim} {PHRASES[verdict.status]}: {reason}",
        verdict.status.value,
        place=place,
        help=hint_of(verdict),
        obligation=obligation,
        counterexample=_example(verdict),
        drawing=drawn(verdict),
        fate=fate_of(verdict.status, allow_unknown),
    )


def nothing_proved(func: PrimFunc, place: Place | None = None, gate: str = "") -> Finding:
    """The finding of a schedule without a step, made by a gate of that name, if by one."""
    from layoutproof.ir.script.printer import print_func

    return Finding(
        codes.NOTHING_PROVED,
        "there is no step, so nothing was proved",
        Status.VACUOUS.value,
        place=place,
        obligation=digest("no step", print_func(func), gate),
    )


def obligation_of(claim: Claim, primitive: str, arguments: Mapping[str, Any], before: PrimFunc) -> str:
    """The hash of a claim about a step: of the program's printed text, the step and the claim, without lines.

    It is stable under edits elsewhere in the file, and changes with the program.
    """
    from layoutproof.ir.script.printer import print_func

    return digest(print_func(before), primitive, json.dumps(arguments, sort_keys=True), *claim.steady)


def digest(*parts: str) -> str:
    """The SHA-256 of texts, in hexadecimal."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def fate_of(status: Status, allow_unknown: bool) -> Fate:
    """Unknown verdicts do not fail a gate that allows them."""
    return Fate.ALLOWED if allow_unknown and status is Status.UNKNOWN else Fate.FAILS


def _example(verdict: Verdict) -> dict[str, Any] | None:
    example: dict[str, Any] | None = (
        json.loads(json.dumps(verdict.counterexample)) if verdict.counterexample is not None else None
    )
    return example
