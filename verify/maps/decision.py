"""What an engine decided about a component of an index map. Part of the trusted computing base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from layoutproof.verify.algebra.enumeration import Table
from layoutproof.verify.algebra.polynomials import Poly
from layoutproof.verify.maps.bits import Linear
from layoutproof.verify.maps.inverse import Inversion
from layoutproof.verify.program.questions import Because
from layoutproof.verify.verdict.verdict import Status

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"


@dataclass(frozen=True, slots=True)
class Collision:
    """Two logical indices with one image: the component's inputs in each, by position, and the symbols' values."""

    first: Mapping[int, int]
    second: Mapping[int, int]
    symbols: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Points:
    """Every point of a component, and the row-major offset of its image in the box."""

    table: Table
    offsets: Ints


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a component is injective. `image` is the number of cells reached; None when not known.

    `found` is what it was decided by, from which an inverse and the padding can be written; what isl said, where z3
    was asked after it.
    """

    status: Status
    engine: str
    reason: str | None = None
    because: frozenset[Because] = frozenset()
    collision: Collision | None = None
    image: Poly | None = None
    found: Inversion | Linear | Points | Decision | None = None
