"""The data of a study: JSON lines and CSV in the order of the study, with a versioned schema; and what made them."""

from __future__ import annotations

import csv
import io
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from layoutproof.ir.diagnostic import error
from layoutproof.lowering.proof_cache.versions import ENGINES, version_of
from layoutproof.studies import codes
from layoutproof.studies.cells import Cell
from layoutproof.studies.study_file import Study

FORMAT = "layoutproof study"
SCHEMA = 2
"""The version of the data. Version 1 has no `certificate`."""
READ = (1, 2)
"""The versions that are read."""
COLUMNS: tuple[str, ...] = (
    *Cell.__slots__,
    "verdict",
    "licences",
    "guards",
    "guards_left",
    "extra_stores",
    "extra_loads",
    "extra_operations",
    "padding_bytes",
    "counterexample_size",
    "kernel_claims",
    "kernel_accepted",
    "certificate_bytes",
    "reason",
)
"""The columns of the CSV file, in order."""


def json_lines(study: Study, records: Sequence[Mapping[str, Any]]) -> str:
    """One line for the study, then one for each cell. Nothing depends on the clock or the machine."""
    head = {"format": FORMAT, "schema": SCHEMA, "study": study.name, "title": study.title, "cells": len(records)}
    lines = (json.dumps(each, ensure_ascii=False, sort_keys=True, separators=(",", ":")) for each in (head, *records))
    return "".join(f"{line}\n" for line in lines)


def row_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """A cell as one row of plain values: formulas as text, fast-math assumptions in one word, the first line of a
    reason.
    """
    costs = record["costs"]
    reason = record["reason"] or next((c["reason"] for c in record["claims"] if c["verdict"] != "proved"), None)
    row = {name: record[name] for name in (*Cell.__slots__, "verdict", "guards", "guards_left")}
    row["licences"] = " ".join(record["licences"])
    row |= {name: costs.get(name, "") for name in COLUMNS if name.startswith("extra_") or name == "padding_bytes"}
    row["counterexample_size"] = size_of(record["counterexample"])
    certificate = record.get("certificate") or {}
    row["kernel_claims"], row["kernel_accepted"] = certificate.get("claims", ""), certificate.get("accepted", "")
    row["certificate_bytes"] = certificate.get("bytes", "")
    row["reason"] = reason.splitlines()[0] if reason else ""
    return {name: row[name] for name in COLUMNS}


def size_of(counterexample: Mapping[str, Any] | None) -> int:
    """How many elements a counterexample's inputs have; 0 for none, and for one without inputs."""
    inputs = (counterexample or {}).get("inputs", {})
    return sum(_elements(array.get("shape", [])) for array in inputs.values() if isinstance(array, dict))


def _elements(shape: Sequence[int]) -> int:
    found = 1
    for extent in shape:
        found *= extent
    return found


def csv_text(records: Sequence[Mapping[str, Any]]) -> str:
    """The rows of all cells as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(row_of(record) for record in records)
    return text.getvalue()


def machine() -> dict[str, Any]:
    """What a run was made with: for a file of its own, since it differs from machine to machine."""
    import layoutproof

    return {
        "layoutproof": layoutproof.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        "engines": {name: version_of(name) for name in ENGINES},
    }


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The records of a finished study's folder. Raises LayoutproofError where there are none, or of another schema."""
    path = folder / "cells.jsonl"
    try:
        head, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError as problem:
        raise error(codes.STUDY_FOLDER, f"{path} cannot be read: {problem.strerror}") from problem
    except ValueError as problem:
        raise error(codes.STUDY_FOLDER, f"{path} has no results of a study: {problem}") from problem
    if not isinstance(head, dict) or head.get("format") != FORMAT or head.get("schema") not in READ:
        raise error(codes.STUDY_FOLDER, f"{path} has no results of a study of schema 1 or {SCHEMA}")
    return lines
