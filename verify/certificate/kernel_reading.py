"""Files that the kernel alone judges. Loads no solver and no other part of the checker."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.certificate.sealed_files import REFUTATIONS, Document, from_bytes, read_whole
from layoutproof.verify.kernel.evidence import JudgedStep, judge_certificate, not_understood
from layoutproof.verify.kernel.judge import Judged
from layoutproof.verify.kernel.rejected import FAILURES

_GRAPH = Judged("graph", 0, "the graph around the functions is rewritten as it says", "the kernel knows no graphs")
_NO_STEPS = Judged("certificate", 0, "there are steps to judge", "it is no certificate, or one without steps")


class Trust(StrEnum):
    """What a step rests on, best first."""

    KERNEL = "kernel"  # the kernel accepts every claim
    SOLVERS = "two solvers"  # the checker derives it, and two solvers confirm each of its questions
    ENGINE = "one engine"  # the checker derives it, and a claim of it is confirmed by nothing else
    NONE = "not confirmed"


@dataclass(frozen=True, slots=True)
class StepReport:
    """A step: what it rests on, and the claims that the kernel judged, none if it was not asked, and under what."""

    name: str
    trust: Trust
    judged: tuple[Judged, ...]
    assumptions: tuple[str, ...] = ()

    @staticmethod
    def of(name: str, trust: Trust, step: JudgedStep) -> StepReport:
        """The report of a step that the kernel judged."""
        return StepReport(name, trust, step.claims, step.assumptions)


@dataclass(frozen=True, slots=True)
class KernelReport:
    """A file, and its steps. `programs` are the texts before the first and after the last one, `problem` says why the
    file was refused.
    """

    path: str
    steps: tuple[StepReport, ...] = ()
    programs: tuple[str, ...] = ()
    problem: str | None = None


def judge_file(path: Path) -> KernelReport:
    """What the kernel accepts of a file. Of what is no certificate, nothing."""
    try:
        data = read_whole(path)
        document = from_bytes(data, str(path)) if data.lstrip()[:1] == b"{" else {}
    except LayoutproofError as problem:
        return KernelReport(str(path), problem="\n".join(each.render() for each in problem.diagnostics))
    steps = [StepReport.of(name, trust_of(judged), judged) for name, judged in _steps(document)]
    texts = [text for k in (0, -1) for text in _programs(document, k)]
    return KernelReport(str(path), tuple(steps), (texts[0], texts[-1]) if len(texts) == 4 else ())


def _programs(document: Document, number: int) -> list[str]:
    """The two functions of a step as the file has them, the precondition above them."""
    steps = document.get("steps")
    lines = (
        steps[number].get("rewrite") if isinstance(steps, list) and steps and isinstance(steps[number], dict) else []
    )
    text = "\n".join(line for line in lines if isinstance(line, str)) if isinstance(lines, list) else ""
    try:
        # Where functions begin is asked of Python's parser, as the kernel does: a text in a program may look like one.
        found = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    parts = {
        node.name: (min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.end_lineno) for node in found
    }
    if len(found) != 2 or set(parts) != {"before", "after"}:
        return []
    every = text.split("\n")
    where = [line for line in every[: min(start for start, _ in parts.values())] if line.startswith("# where:")]
    return ["\n".join([*where, *every[parts[k][0] - 1 : parts[k][1]]]) for k in ("before", "after")]


def trust_of(judged: JudgedStep) -> Trust:
    """What a step rests on by the kernel's judgement alone."""
    claims = judged.claims
    return Trust.KERNEL if claims and all(claim.is_accepted for claim in claims) else Trust.NONE


def judge_document(document: Document) -> Sequence[JudgedStep]:
    """The kernel's judgement on each step of a certificate; none of one that has no evidence."""
    try:
        return judge_certificate(document) if REFUTATIONS in document else ()
    except FAILURES as problem:
        return [not_understood(problem)] * len(_names(document))


def _steps(part: object) -> list[tuple[str, JudgedStep]]:
    document: Document = part if isinstance(part, dict) else {}
    parts = document.get("functions")
    if isinstance(parts, dict):
        of_parts = [(f"{name}, {step}", judged) for name, part in parts.items() for step, judged in _steps(part)]
        return [*of_parts, ("graph", JudgedStep((_GRAPH,)))]
    names = _names(document)
    judged = judge_document(document) or [JudgedStep(())] * len(names)
    return list(zip(names, judged, strict=True)) if names else [("file", JudgedStep((_NO_STEPS,)))]


def _names(document: Document) -> list[str]:
    steps = document.get("steps")
    found = steps if isinstance(steps, list) else []
    return [
        f"step {number}, {step.get('primitive') if isinstance(step, dict) else step}"
        for number, step in enumerate(found, start=1)
    ]
