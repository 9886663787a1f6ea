"""What is kept of a step that was proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from layoutproof.ir.expr import Expr
from layoutproof.ir.rewrite import Rewrite
from layoutproof.verify.values.fast_math import ALL, FastMathSet


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A proved step: the primitive's name, its arguments as plain data for JSON, and the rewrite.

    `where` (a condition on symbols) and `allowed` are those under which it was proved, as in `check_rewrite`.
    """

    primitive: str
    arguments: Mapping[str, Any]
    rewrite: Rewrite
    where: Expr | None = None
    allowed: FastMathSet = ALL
