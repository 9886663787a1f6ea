"""What a pass proposes: the new program, and a witness of why it is the old one.

A witness says which instance of which old statement each instance of a new statement computes (theta), and which new cell each
old buffer cell became (f), both as index maps. It is a claim: the checker in `layoutproof.verify` accepts or refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.primfunc import PrimFunc


@dataclass(frozen=True, slots=True)
class InstanceMap:
    """Instances of the new store number `new_store` (in program order) compute instances of the old store `old_store`.

    `instances` takes the loop variables around the new store, outermost first, to those around the old one. Of a store of several
    lanes a last input (or output) may speak of its lane; where none does, lanes stay in their places. `old_store` is None
    for a store without a counterpart: padding that is filled, or overcompute; `instances` is None with it, and only with it. Raises
    ValueError otherwise: what a store computes is never left open.
    """

    new_store: int
    old_store: int | None
    instances: IndexMap | None
    where: Expr | None = None

    def __post_init__(self) -> None:
        if (self.old_store is None) is not (self.instances is None):
            said = "has no map of instances" if self.instances is None else "has a map of instances, and computes no old store"
            raise ValueError(f"new store {self.new_store} {said}")


@dataclass(frozen=True, slots=True)
class CellMap:
    """Cell `x` of the old buffer with data variable `old_data` became cell `cells(x)` of the one with `new_data`."""

    old_data: str
    new_data: str
    cells: IndexMap


@dataclass(frozen=True, slots=True)
class Witness:
    """Theta and f. Buffers that are not mentioned keep their cells.

    `changes_interface` names parameters whose layout changes on purpose.
    """

    instances: tuple[InstanceMap, ...]
    cells: tuple[CellMap, ...] = ()
    changes_interface: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One step: `old` becomes `new`, because of `witness`."""

    old: PrimFunc
    new: PrimFunc
    witness: Witness
