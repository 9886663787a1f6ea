"""A program as statements with exact instances: for each store its iteration domain, the cell, and the value over
reads.

Where `accesses.py` may add instances, this model is exact: a program without one is refused with NotModelled. What
depends on data is part of values: a store under a condition on data always writes, sometimes the old content; a scatter
writes every cell of its buffer so. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.node import Node
from layoutproof.ir.visit import free_variables
from layoutproof.verify.program.instances import Access, Dim, IterationDomain, Program
from layoutproof.verify.program.questions import Because


class NotModelled(Exception):
    """A program, or a part of it, without an exact model: why, and the node that is the cause, if there is one."""

    def __init__(self, reason: str, node: Node | None = None, *because: Because) -> None:
        super().__init__(reason)
        self.reason, self.because = reason, because
        self.node = node


class ReadRole(StrEnum):
    """What a value is read for. CURRENT: the old content that a conditional store or a scatter may leave there."""

    VALUE = "value"
    CONDITION = "condition"
    INDEX = "index"
    CURRENT = "current"


@dataclass(frozen=True, slots=True)
class Read:
    """One load of a statement; `var` stands for what it loads in the statement's value.

    `access.domain` has the statement's dims (then, with `anywhere`, one for each coordinate that data decides), its
    guards, those of lazy operators around the load, and the load's own timestamp (a let or a branch may be earlier).
    `access.indices` are over dims, symbols and variables of the statement's other reads; `coordinates`, the cell among
    all cells of the memory, over dims and symbols only. A load that happens only for some data counts as happening,
    inside its buffer.
    """

    var: Var
    access: Access
    coordinates: tuple[Expr, ...]
    role: ReadRole
    anywhere: bool = False
    sure: bool = True

    @property
    def data(self) -> Var:
        """The memory that is read."""
        return self.access.data


@dataclass(frozen=True, slots=True)
class Statement:
    """One store in all its instances: at `domain`, cell `coordinates` of memory `data` becomes `value`.

    `number` is the store's in `ir.visit.stores_in` order. `dims` are the loops around it, then its lanes (`Dim.lane`),
    then, for a scatter, the last `scatter` ones, which run over the cells that it may write. `value` speaks of dims,
    symbols and `reads`; its integer arithmetic wraps. Under a condition on data it is `if_then_else(condition, stored,
    current)` with `current` the CURRENT read. `access` is the store as the text has it.
    """

    number: int
    dims: tuple[Dim, ...]
    domain: IterationDomain
    data: Var
    coordinates: tuple[Expr, ...]
    value: Expr
    reads: tuple[Read, ...]
    access: Access
    scatter: int = 0

    def needed(self, variables: Sequence[Var]) -> list[Read]:
        """The loads that variables stand for and those that their indices depend on, these first."""
        by_variable = {read.var: read for read in self.reads}
        found: dict[Var, Read] = {}

        def add(variable: Var) -> None:
            read = by_variable[variable]
            if read.anywhere:
                for index in read.access.indices:
                    for inner in free_variables(index):
                        if inner in by_variable and inner not in found:
                            add(inner)
            found[variable] = read

        for variable in variables:
            add(variable)
        return list(found.values())


@dataclass(frozen=True, slots=True)
class AssumedFact:
    """At every instance of `domain`, `condition` holds, over dims, symbols and `reads` (without reads: of loops)."""

    domain: IterationDomain
    condition: Expr
    reads: tuple[Read, ...]
    node: Node

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The loops around the assumption."""
        return self.domain.dims


@dataclass(frozen=True, slots=True)
class Statements:
    """All statements of a program in the order of the text, and the cells of its memories.

    `cells` has the extents of each memory's coordinates: for a temporary those of the loops around its allocation
    (`leading`, whose variables are the coordinates), then its shape (or the structure given for it), then the lanes of
    its elements where they have any. `dtypes` are of one lane.
    """

    statements: tuple[Statement, ...]
    assumptions: tuple[AssumedFact, ...]
    program: Program
    cells: Mapping[Var, tuple[Expr, ...]]
    dtypes: Mapping[Var, DType]
    leading: Mapping[Var, tuple[Dim, ...]]
    _writers: Mapping[Var, tuple[Statement, ...]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        writers: dict[Var, list[Statement]] = {}
        for statement in self.statements:
            writers.setdefault(statement.data, []).append(statement)
        object.__setattr__(self, "_writers", {data: tuple(found) for data, found in writers.items()})

    def writers(self, data: Var) -> tuple[Statement, ...]:
        """The statements that write a memory, in the order of the text."""
        return self._writers.get(data, ())
