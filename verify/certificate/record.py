"""A proved step as whoever made it has it. Apart from certificates, which are written of such steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from layoutproof.ir.expr import Expr
from layoutproof.ir.rewrite import Rewrite
from layoutproof.verify.values.licences import ALL, Licences


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A proved step as whoever made it has it: the primitive's name, its arguments as JSON has them, and what it did.

    `where` is the condition on symbols and `allowed` the licences under which it was proved, as `check_rewrite` takes them.
    """

    primitive: str
    arguments: Mapping[str, Any]
    rewrite: Rewrite
    where: Expr | None = None
    allowed: Licences = ALL
