"""Certificates of cells: what the kernel accepts of a proved cell, and how large its certificate is."""

from __future__ import annotations

import json
from pathlib import Path

from tests.shares import one_in

from layoutproof.lowering.arith.known_facts import assumed_of_constants
from layoutproof.studies.judge import judge
from layoutproof.studies.measured import measured
from layoutproof.studies.report.data_files import COLUMNS, FORMAT, read_records, row_of
from layoutproof.studies.study_file import Study, parse_study
from layoutproof.verify.certificate.certificate import text_of
from layoutproof.verify.certificate.finder.kernel_evidence import judge_text

STUDY = """schema = 1
certificates = true

[[grid]]
operators = ["sum"]
types = ["float32"]
policies = ["producer-writes"]
values = ["0", "1"]
"""


def study(text: str = STUDY) -> Study:
    """A study of a cell that is proved, and one that is refuted."""
    return parse_study(text, "study.toml", Path())


@one_in(4)
def test_the_kernel_judges_what_is_proved() -> None:
    """The claims are those that the kernel has of the texts of the steps; a refuted cell has no certificate."""
    good, bad = study().cells()
    operator = study().operators["sum"]
    judged = judge(operator, good)
    assert judged.question is not None and study().certificates
    where = assumed_of_constants(judged.question.logical)
    claims = [claim for d in judged.decisions for claim in judge_text(text_of(d.rewrite, where)).claims]
    found = measured(operator, good, certified=True)["certificate"]
    assert (found["claims"], found["accepted"]) == (len(claims), sum(claim.is_accepted for claim in claims))
    assert 0 < found["accepted"] <= found["claims"] and 1_000 < found["bytes"] < 1_000_000
    assert measured(operator, bad, certified=True)["certificate"] is None


def test_data_without_certificates_is_read(tmp_path: Path) -> None:
    """Records of version 1 have no certificate, those of version 2 none where it was not asked for, and their rows have
    empty columns.
    """
    record = measured(study().operators["sum"], study().cells()[1])
    rows = []
    for version in (1, 2):
        kept = {name: value for name, value in record.items() if version == 2 or name != "certificate"}
        head = {"format": FORMAT, "schema": version}
        (tmp_path / "cells.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in (head, kept)))
        rows.append(row_of(read_records(tmp_path)[0]))
    assert rows[0] == rows[1] and tuple(rows[0]) == COLUMNS
    assert {rows[0][name] for name in ("kernel_claims", "kernel_accepted", "certificate_bytes")} == {""}
