"""The record of a cell: its verdict, its costs, and on request what becomes of its certificate."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from layoutproof.lowering.arith.known_facts import assumed_of_constants
from layoutproof.studies.cells import Cell
from layoutproof.studies.counting import cost_record
from layoutproof.studies.judge import Judged, judge, record_of
from layoutproof.studies.operators import Operator
from layoutproof.verify.certificate.certificate import certify
from layoutproof.verify.certificate.finder.kernel_evidence import find_evidence
from layoutproof.verify.certificate.sealed_files import to_bytes
from layoutproof.verify.kernel.evidence import judge_certificate
from layoutproof.verify.step_record import StepRecord
from layoutproof.verify.values.fast_math import IEEE
from layoutproof.verify.verdict.verdict import Status


def measured(operator: Operator, cell: Cell, certified: bool = False) -> dict[str, Any]:
    """A cell as plain data; where it is proved, on request with its certificate's size and the kernel's judgement."""
    judged = judge(operator, cell)
    certificate = certificate_record(judged) if certified and judged.status == Status.PROVED.value else None
    return {**record_of(judged), "costs": cost_record(judged), "certificate": certificate}


def certificate_record(judged: Judged) -> dict[str, Any]:
    """The claims in the certificate of a proved cell's steps, how many of them the kernel alone accepts, and the bytes
    of its file, without the versions of the tools, which are the machine's.
    """
    assert judged.question is not None
    where = assumed_of_constants(judged.question.logical)
    steps = [
        StepRecord(d.claim.name, {}, d.rewrite, where, judged.least if d.claim.block is not None else IEEE)
        for d in judged.decisions
    ]
    document = certify(steps, judged.cell.operator, find_evidence).document
    claims = [claim for step in judge_certificate(document) for claim in step.claims]
    size = len(to_bytes({**document, "tools": {}}))
    return {"claims": len(claims), "accepted": sum(claim.is_accepted for claim in claims), "bytes": size}


def undecided(cell: Cell, reason: str) -> dict[str, Any]:
    """The record of a cell whose run was ended by a limit."""
    empty: dict[str, Any] = {
        "licences": [],
        "breaks": {},
        "claims": [],
        "guards": 0,
        "guards_left": 0,
        "counterexample": None,
        "costs": {},
        "certificate": None,
    }
    return {**asdict(cell), "verdict": Status.UNKNOWN.value, "reason": reason, **empty}
