"""What an engine found out about one component of an index map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from layoutproof.ir.expr import Expr
from layoutproof.verify.polynomial import Poly
from layoutproof.verify.search import Because
from layoutproof.verify.verdict import Status


@dataclass(frozen=True, slots=True)
class Collision:
    """Two logical indices with one image: the component's inputs in each, by position, and the symbols' values."""

    first: Mapping[int, int]
    second: Mapping[int, int]
    symbols: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """`padding` is a list of conditions, any of which makes a cell padding; None where it is not known, with `padding_reason`.

    `inverse` has an expression over cells for every input of the component. `image` is the number of cells reached; None when not known.
    `hole` is a cell of the component's axes that nothing reaches, by axis, where one is known without searching.
    """

    status: Status
    engine: str
    reason: str | None = None
    because: frozenset[Because] = frozenset()
    collision: Collision | None = None
    inverse: Mapping[int, Expr] | None = None
    inverse_reason: str | None = None
    padding: tuple[Expr, ...] | None = None
    padding_reason: str | None = None
    image: Poly | None = None
    hole: Mapping[int, int] | None = None
