"""Thread axes by name, and memory scopes by who shares the memory.

Source: TVM's `ThreadScope` and `StorageRank` (what a thread tag and a storage scope stand for).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.ir.stmt import For, ForKind, Stmt, ThreadLoop
from layoutproof.ir.visit import kinds_in, nodes_of

KERNEL = "layoutproof.kernel"
"""The key of the statement around a kernel that is written as parallel loops."""

AXIS = "layoutproof.axis"
"""The annotation of a parallel loop that stands for a thread axis: its tag."""

COPIES = "layoutproof.copies"
"""The annotation of memory that each thread has a copy of: the tags of the axes along which the copies lie."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One thread axis of a kernel: its tag, such as `threadIdx.x`, the index of a thread on it, and their number."""

    tag: str
    var: Var
    extent: Expr

    @property
    def index(self) -> Expr:
        """The index of a thread, 0 where there is one only."""
        zero = IntImm(0, self.var.dtype)
        return zero if self.extent == IntImm(1, self.var.dtype) else self.var

    @property
    def is_block(self) -> bool:
        """Whether it counts blocks of a grid, which no barrier joins."""
        return self.tag.startswith("blockIdx")

    @property
    def is_virtual(self) -> bool:
        """Whether its threads are ones that one thread of the device runs in turn."""
        return self.tag.startswith(("vthread", "cthread"))


class Sharing(StrEnum):
    """Who sees one copy of a memory."""

    ALL = "the whole grid"
    BLOCK = "the threads of a block"
    THREAD = "one thread"
    WARP = "the threads of a warp"


def sharing_of(scope: str, *, in_kernel: bool) -> Sharing:
    """Who shares memory of a scope. What a kernel allocates without naming a scope is a thread's own."""
    if scope.startswith("shared"):
        return Sharing.BLOCK
    if scope == "local" or (scope == "global" and in_kernel):
        return Sharing.THREAD
    return Sharing.ALL if scope.startswith(("global", "texture")) else Sharing.WARP


def thread_loops(stmt: Stmt) -> Iterator[For]:
    """The loops below that are bound to thread axes, outer ones first."""
    return filter(_is_bound, nodes_of(stmt, For))


def has_threads(stmt: Stmt) -> bool:
    """Whether a loop is bound to a thread axis."""
    return ThreadLoop in kinds_in(stmt)


def _is_bound(loop: For) -> bool:
    return loop.kind is ForKind.THREAD_BINDING
