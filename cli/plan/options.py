"""The options of `plan`, as click reads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from layoutproof.cli.plan.limits import Limit


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """A graph's file, the layouts that are asked for, and what is to be done with the plan."""

    graph: Path
    layouts: tuple[str, ...]
    frozen: tuple[str, ...]
    free: tuple[str, ...]
    layout_file: Path | None
    sizes: tuple[str, ...]
    absorb: tuple[str, ...]
    costs: Path | None
    measure: Path | None
    greedy: bool
    limits: tuple[Limit, ...]
    planned: Path | None
    run: bool
    onnxruntime: bool
    seed: int
    output: Path | None
    picture: Path | None
    certificate: Path | None
    cache: Path | None
    no_cache: bool
    output_format: str
