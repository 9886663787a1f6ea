"""What a call of `study` asks for. Apart from the run, so that help loads nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class StudyRequest:
    """A study, where its results go, and how it is run."""

    study: str
    results: Path | None
    output: Path | None
    jobs: int | None
    shard: str | None
    dask: str | None
    timeout: float | None
    cache: Path | None
    no_cache: bool
