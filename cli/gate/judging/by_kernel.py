"""Where a run or a gate trusts the kernel alone: each step that it does not accept is a finding."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from layoutproof.cli.gate.judging.compared import obligation_of_both
from layoutproof.cli.gate.judging.findings import digest, fate_of
from layoutproof.cli.gate.outcomes import Finding, Outcome
from layoutproof.verify.verdict import codes
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status, Verdict

if TYPE_CHECKING:
    from layoutproof.cli.gate.judging.notes import Result
    from layoutproof.lowering.compare.comparison import Comparison
    from layoutproof.verify.step_record import StepRecord

_HELP = "`layoutproof recheck --verbose` of its certificate names each claim that the kernel rejects"


def results_by_kernel(outcome: Outcome, results: Sequence[Result], allow_unknown: bool) -> Outcome:
    """The outcome of a gate, with a finding for each step that the kernel does not accept and each other answer."""
    from layoutproof.verify.maps.map_report import MapReport

    records = [r for result in results if not isinstance(result, MapReport | Verdict) for r in result.records]
    others = [str(result) for result in results if isinstance(result, MapReport | Verdict)]
    gate = outcome.name.rpartition("::")[2]
    found = [("the kernel judges steps of programs, no other answers", digest("kernel", gate, text)) for text in others]
    return _with(outcome, [*_rejected(outcome, records), *found, *_lacking(results)], allow_unknown)


def by_kernel(outcome: Outcome, records: Sequence[StepRecord]) -> Outcome:
    """The outcome, with a finding for each step that the kernel does not accept."""
    return _with(outcome, list(_rejected(outcome, records)), False)


def comparison_by_kernel(outcome: Outcome, compared: Comparison) -> Outcome:
    """The same of a comparison, with a finding where it is proved by more than steps of programs."""
    lacking = _lacking([compared])
    return _with(outcome, [*_rejected(outcome, compared.records), *lacking], False)


def _lacking(results: Iterable[object]) -> list[tuple[str, str]]:
    from layoutproof.lowering.compare.comparison import NO_STEP, Comparison

    proved = [each for each in results if isinstance(each, Comparison) and each.status is Status.PROVED]
    return [(NO_STEP, digest("kernel", NO_STEP, obligation_of_both(each))) for each in proved if not each.records]


def _with(outcome: Outcome, found: Sequence[tuple[str, str]], allow_unknown: bool) -> Outcome:
    if not found:
        return outcome
    verdict = worst([Status.UNKNOWN, *([Status(outcome.verdict)] if outcome.verdict is not None else [])])
    findings = [_finding(outcome, message, known_by, allow_unknown) for message, known_by in found]
    return replace(outcome, verdict=verdict.value, findings=(*outcome.findings, *findings))


def _rejected(outcome: Outcome, records: Sequence[StepRecord]) -> Iterator[tuple[str, str]]:
    """Why the kernel does not accept steps, and the hash of each. It may use the fast-math assumptions with which the
    outcome says that they hold, and no others that the run allows.
    """
    from layoutproof.verify.certificate.certificate import text_of
    from layoutproof.verify.certificate.finder.kernel_evidence import judge_text

    told = {word for step in outcome.steps for entry in step["obligations"] for word in entry["strictness"]}
    for record in records:
        text = text_of(record.rewrite, record.where)
        allowed = frozenset(flag for flag in record.allowed if flag.value in told)
        rejected = [claim for claim in judge_text(text, allowed).claims if not claim.is_accepted]
        if rejected:
            arguments = ", ".join(f"{name}={value!r}" for name, value in record.arguments.items())
            first = f"the kernel rejects {rejected[0].kind}: {rejected[0].text}: {rejected[0].reason}"
            more = f" (and {len(rejected) - 1} more)" if len(rejected) > 1 else ""
            known_by = digest("kernel", text, json.dumps(dict(record.arguments), sort_keys=True))
            step = f"{record.primitive}({arguments})" if arguments else record.primitive
            yield f"{step}: {first}{more}", known_by


def _finding(outcome: Outcome, message: str, known_by: str, allow_unknown: bool) -> Finding:
    return Finding(
        codes.NOT_BY_KERNEL,
        message,
        Status.UNKNOWN.value,
        place=outcome.place,
        help=_HELP,
        obligation=known_by,
        fate=fate_of(Status.UNKNOWN, allow_unknown),
    )
