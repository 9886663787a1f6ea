"""What the kernel says of the steps of files, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from layoutproof.cli.output import escaped, is_verbose, styled
from layoutproof.verify.certificate.kernel_reading import KernelReport, StepReport, Trust
from layoutproof.verify.kernel.judge import Judged

_STYLES = {Trust.KERNEL: "proved", Trust.SOLVERS: "proved", Trust.ENGINE: "proved", Trust.NONE: "refuted"}


def share_to_dict(steps: Sequence[StepReport]) -> dict[str, Any]:
    """How many steps rest on what, and how many claims the kernel accepts of those that it judged."""
    judged = [claim for step in steps for claim in step.judged]
    return {
        "steps": {trust.value: sum(step.trust is trust for step in steps) for trust in Trust},
        "accepted": sum(claim.is_accepted for claim in judged),
        "judged": len(judged),
    }


def step_to_dict(step: StepReport) -> dict[str, Any]:
    """A step, with the claims that the kernel rejects."""
    return {
        "step": step.name,
        "trust": step.trust.value,
        "assumptions": list(step.assumptions),
        "accepted": sum(claim.is_accepted for claim in step.judged),
        "judged": len(step.judged),
        "rejected": [
            {"kind": claim.kind, "line": claim.line, "claim": claim.text, "reason": claim.reason}
            for claim in step.judged
            if not claim.is_accepted
        ],
    }


def share(steps: Sequence[StepReport]) -> str:
    """`4 steps: 3 kernel, 1 two solvers; 120 of 131 claims accepted by the kernel`."""
    if not steps:
        return "no steps"
    counts = share_to_dict(steps)
    words = [f"{number} {trust}" for trust, number in counts["steps"].items() if number]
    claims = f"{counts['accepted']} of {counts['judged']} claims accepted by the kernel"
    return f"{counted(len(steps), 'step')}: {', '.join(words)}; {claims}"


def step_lines(steps: Sequence[StepReport], markup: bool) -> Iterator[str]:
    """A line for each step; with --verbose the rejected claims below it."""
    for step in steps:
        rejected = [claim for claim in step.judged if not claim.is_accepted]
        claims = counted(len(step.judged), "claim") if step.judged else "no evidence for the kernel"
        words = f"{claims}, {len(rejected)} rejected by the kernel" if rejected else claims
        words += f", under {' '.join(step.assumptions)}" if step.assumptions else ""
        shown = styled(step.trust.value, _STYLES[step.trust], markup)
        yield f"  {escaped(step.name, markup)}: {shown} ({words})"
        if is_verbose():
            yield from (f"    {escaped(_line(claim), markup)}" for claim in rejected)


def _line(claim: Judged) -> str:
    place = f", line {claim.line}" if claim.line else ""
    return f"{claim.kind}{place}: {claim.text}: {claim.reason}"


def kernel_to_dict(reports: Sequence[KernelReport]) -> dict[str, Any]:
    """The files as JSON has them."""
    steps = [step for report in reports for step in report.steps]
    return {
        "accepted": is_accepted(reports),
        "trust": share_to_dict(steps),
        "files": [
            {
                "path": report.path,
                "problem": report.problem,
                "programs": list(report.programs),
                "steps": [step_to_dict(step) for step in report.steps],
            }
            for report in reports
        ],
    }


def is_accepted(reports: Sequence[KernelReport]) -> bool:
    """Whether the kernel accepts every step of every file."""
    return all(
        report.problem is None and report.steps and all(step.trust is Trust.KERNEL for step in report.steps)
        for report in reports
    )


def render_kernel(reports: Sequence[KernelReport], markup: bool = False) -> str:
    """Each file with its steps, with --verbose also its first and its last program, and what is accepted of all."""
    lines: list[str] = []
    for report in reports:
        word, style = ("accepted", "proved") if is_accepted([report]) else ("rejected", "refuted")
        word = word if report.problem is None else "refused"
        lines.append(f"{styled(word, style, markup)} {escaped(report.path, markup)}")
        lines += [f"  {escaped(line, markup)}" for line in (report.problem or "").splitlines()]
        lines += step_lines(report.steps, markup)
        if is_verbose():
            for when, text in zip(("before", "after"), report.programs, strict=False):
                lines += [f"  the program {when}:", *(f"    {escaped(line, markup)}" for line in text.splitlines())]
    every = [step for report in reports for step in report.steps]
    return "\n".join([*lines, share(every)]) + "\n"


def counted(number: int, what: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
