"""Statements. A block's bindings and guard stand in the block itself; allocation holds the buffer it allocates.

Source: the seed `buffer-physical-layout` (impacted nodes); blocks as upstream's tensor programs have them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from layoutproof.ir.attributes import NO_ATTRIBUTES, Attributes
from layoutproof.ir.buffer import Buffer, BufferRegion, Range, access_type, check_indices
from layoutproof.ir.expr import TRUE, Expr, Var, require
from layoutproof.ir.node import Node


@dataclass(frozen=True, slots=True, eq=False)
class Stmt(Node):
    """A step of a program."""


class ForKind(StrEnum):
    """How the iterations of a loop run."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unroll"
    THREAD_BINDING = "thread_binding"


class IterKind(StrEnum):
    """What a block's iteration variable ranges over."""

    SPATIAL = "S"
    REDUCE = "R"
    OPAQUE = "O"


@dataclass(frozen=True, slots=True, eq=False)
class For(Stmt):
    """`for var in start .. start + extent - 1`. `thread` names the hardware axis of a thread binding."""

    var: Var
    start: Expr
    extent: Expr
    kind: ForKind
    body: Stmt
    thread: str | None = None
    annotations: Attributes = NO_ATTRIBUTES

    def _check(self) -> None:
        name, dtype = self.var.name, self.var.dtype
        same = dtype == self.start.dtype == self.extent.dtype
        require(same and dtype.is_integer and dtype.lanes == 1, f"loop {name}: {dtype} from {self.start.dtype}, {self.extent.dtype}")
        require((self.kind is ForKind.THREAD_BINDING) == (self.thread is not None), f"loop {name}: a thread goes with thread_binding")


@dataclass(frozen=True, slots=True, eq=False)
class IfThenElse(Stmt):
    """A branch. `otherwise` may be missing."""

    condition: Expr
    then: Stmt
    otherwise: Stmt | None = None

    def _check(self) -> None:
        require(self.condition.dtype.is_bool and self.condition.dtype.lanes == 1, f"a branch on a {self.condition.dtype}")


@dataclass(frozen=True, slots=True, eq=False)
class Let(Stmt):
    """`var` stands for `value`, evaluated once, in `body`."""

    var: Var
    value: Expr
    body: Stmt

    def _check(self) -> None:
        require(self.var.dtype == self.value.dtype, f"{self.var.name} is a {self.var.dtype}, its value a {self.value.dtype}")


@dataclass(frozen=True, slots=True, eq=False)
class BufferStore(Stmt):
    """`buffer[indices] = value`; the value has the type that a load of the same access has."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr

    def _check(self) -> None:
        check_indices(self.buffer, self.indices)
        wanted = access_type(self.buffer, self.indices)
        require(self.value.dtype == wanted, f"a {self.value.dtype} stored to {self.buffer.name}, which takes {wanted} here")


@dataclass(frozen=True, slots=True, eq=False)
class Seq(Stmt):
    """Statements one after the other; never nested, never of one (use `seq`). The empty one does nothing."""

    body: tuple[Stmt, ...]

    def _check(self) -> None:
        nested = any(isinstance(s, Seq) for s in self.body)
        require(len(self.body) != 1 and not nested, "a sequence of one, or in a sequence; build it with seq()")


@dataclass(frozen=True, slots=True, eq=False)
class Allocate(Stmt):
    """Memory for `buffer` (its shape, its data variable) while `body` runs; its content is undefined."""

    buffer: Buffer
    body: Stmt
    annotations: Attributes = NO_ATTRIBUTES


@dataclass(frozen=True, slots=True, eq=False)
class DeclBuffer(Stmt):
    """`buffer` is another view of a data variable that exists already."""

    buffer: Buffer
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class IterVar(Node):
    """A block's iteration variable: its domain and, where the block runs, the value it is bound to."""

    var: Var
    kind: IterKind
    domain: Range
    binding: Expr


@dataclass(frozen=True, slots=True, eq=False)
class MatchBuffer(Node):
    """`buffer` is a view of a region of another buffer inside one block."""

    buffer: Buffer
    source: BufferRegion


@dataclass(frozen=True, slots=True, eq=False)
class Block(Stmt):
    """A unit of computation over its iteration variables.

    `where` guards the whole instance, `init` included; `init` runs before `body` in the instances whose reduce variables are all at the
    start of their domains (`desugar.body_of`). `reads` and `writes` are None where the text does not give them (to be inferred), else
    what it says.
    """

    name: str
    iter_vars: tuple[IterVar, ...]
    init: Stmt | None = field(default=None, kw_only=True)
    body: Stmt
    where: Expr = TRUE
    reads: tuple[BufferRegion, ...] | None = None
    writes: tuple[BufferRegion, ...] | None = None
    alloc_buffers: tuple[Buffer, ...] = ()
    match_buffers: tuple[MatchBuffer, ...] = ()
    annotations: Attributes = NO_ATTRIBUTES
    # What `desugar.body_of` made, once it was asked.
    _whole: Stmt | None = field(default=None, init=False, compare=False, repr=False)

    def _check(self) -> None:
        require(self.where.dtype.is_bool and self.where.dtype.lanes == 1, f"block {self.name} is guarded by a {self.where.dtype}")

    @property
    def is_root(self) -> bool:
        """A block without iteration variables that only holds the function's allocations."""
        return self.name == "root" and not self.iter_vars


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate(Stmt):
    """An expression for its effect: an assumption or an opaque call."""

    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class AttrStmt(Stmt):
    """A remark `key` about `target` that holds in `body`: kept and printed."""

    target: Expr
    key: str
    value: Expr
    body: Stmt


def seq(*statements: Stmt) -> Stmt:
    """The statements one after the other: flattened, a single one as itself, none as the empty sequence."""
    flat: list[Stmt] = []
    for statement in statements:
        flat.extend(statement.body if isinstance(statement, Seq) else (statement,))
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


NOTHING = Seq(())
