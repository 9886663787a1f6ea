"""Proposals of passes and simplifiers as data: rewrites (a new program with a witness: theta maps its stores to old
ones, f old cells to new ones) and rules. They are claims, which `layoutproof.verify` proves or refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from layoutproof.ir.expr import TRUE, Expr, Var, require
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import free_variables


@dataclass(frozen=True, slots=True)
class InstanceMap:
    """Instances of the new store number `new_store` (in program order) compute instances of the old store `old_store`.

    `instances` takes the loop variables around the new store, outermost first, to those around the old one. Of a store
    of several lanes a last input (or output) may speak of its lane; where none does, lanes stay in their places.
    `old_store` is None for a store without a counterpart: padding that is filled, or overcompute; `instances` is None
    with it, and only with it. Raises ValueError otherwise: what a store computes is never left open.
    """

    new_store: int
    old_store: int | None
    instances: IndexMap | None
    where: Expr | None = None

    def __post_init__(self) -> None:
        if (self.old_store is None) is not (self.instances is None):
            said = (
                "has no map of instances"
                if self.instances is None
                else "has a map of instances, and computes no old store"
            )
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


class Domain(StrEnum):
    """What the integers of a rule are: mathematical ones (index arithmetic) or values of a fixed width, which wrap."""

    INDEX = "index"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Rule:
    """`lhs` becomes `rhs` where `condition` holds.

    `variables` stand for any expression of their type; in the index domain their integer type is a placeholder: they
    range over all integers. Truth values mean the same in both domains. `source` is the file and line that states the
    rule. Raises TypeError for sides of different types and for a variable of the right side or condition that
    `variables` lacks.
    """

    name: str
    variables: tuple[Var, ...]
    lhs: Expr
    rhs: Expr
    condition: Expr = TRUE
    domain: Domain = Domain.INDEX
    source: str = ""

    def __post_init__(self) -> None:
        require(self.lhs.dtype == self.rhs.dtype, f"rule {self.name} turns a {self.lhs.dtype} into a {self.rhs.dtype}")
        require(self.condition.dtype.is_bool, f"the condition of rule {self.name} is a {self.condition.dtype}")
        known = set(self.variables)
        for part in (self.lhs, self.rhs, self.condition):
            unknown = [v.name for v in free_variables(part) if v not in known]
            require(not unknown, f"rule {self.name} uses {', '.join(unknown)}, which it does not declare")
