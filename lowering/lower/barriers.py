"""Barriers where threads meet in shared memory.

Source: `ThreadSync` of upstream, which runs when blocks are lowered: a barrier comes before a statement that reads
shared memory which one since the last barrier wrote, or writes what one read, also from iteration to iteration. That
two of them do not write one cell is left to be proved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import INT32
from layoutproof.ir.expr import TRUE, Expr, Var
from layoutproof.ir.intrinsics import OpaqueCall, StringImm
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Let,
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.threads.axes import Sharing, sharing_of
from layoutproof.ir.threads.kernel_text import SYNC, is_sync
from layoutproof.ir.threads.open_phases import Touched
from layoutproof.ir.visit import free_variables, loads_in, map_children, stores_in, walk
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.witness_maps import rewrite_of


@dataclass(frozen=True)
class ThreadSync(Pass):
    """Put barriers (`T.tvm_storage_sync("shared")`) where the threads of a block meet in shared memory.

    Kernels that have barriers stay as they are. While a kernel has blocks and no barrier, it is taken to have these;
    without blocks it has those of its text, so that this comes before `lower_blocks`.
    """

    primitive: ClassVar[str] = "thread_sync"

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with barriers."""

        def visit(stmt: Stmt) -> Stmt:
            if isinstance(stmt, For) and stmt.kind is ForKind.THREAD_BINDING:
                return stmt if any(map(is_sync, walk(stmt))) else _Placing().place(stmt)
            return map_children(stmt, lambda child: visit(child) if isinstance(child, Stmt) else child)

        return rewrite_of(func, func.with_body(visit(func.body)))


def sync() -> Stmt:
    """A barrier of all threads of a block."""
    return Evaluate(OpaqueCall(SYNC, (StringImm("shared"),), INT32))


_NONE = Touched()


class _Placing:
    """Follows a kernel in the order of its text. `varying` are variables whose values differ from thread to thread."""

    def __init__(self) -> None:
        self.varying: set[Var] = set()
        self.open = _NONE

    def place(self, stmt: Stmt) -> Stmt:
        """A statement with a barrier before it, where that is needed, and those in it."""
        if isinstance(stmt, Seq) or not self.open.waits_for(_touched(stmt)):
            return self._inside(stmt)
        self.open = _NONE
        return seq(sync(), self._inside(stmt))

    def _inside(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Seq(body=body):
                return seq(*(self.place(child) for child in body))
            case For(kind=ForKind.THREAD_BINDING, thread=thread):
                if not str(thread).startswith("blockIdx"):
                    self.varying.add(stmt.var)
                return replace(stmt, body=self.place(stmt.body))
            case For() if self._is_common(stmt.start, stmt.extent):
                return self._loop(stmt)
            case IfThenElse(condition=condition) if self._is_common(condition):
                return self._branch(stmt)
            case Block() if stmt.init is None and stmt.where == TRUE and self._is_parted(stmt.body):
                self.varying |= {v.var for v in stmt.iter_vars if not self._is_common(v.binding)}
                return replace(stmt, body=self.place(stmt.body))
            case Let(var=var, value=value):
                self.varying |= set() if self._is_common(value) else {var}
                return replace(stmt, body=self.place(stmt.body))
            case Allocate() | DeclBuffer() | AttrStmt():
                return replace(stmt, body=self.place(stmt.body))
            case _:
                self.open |= _touched(stmt)  # each thread runs it by itself
                return stmt

    def _is_common(self, *expressions: Expr) -> bool:
        """Whether values are the same for all threads, whatever is in memory."""
        return not any(
            set(free_variables(e)) & self.varying or any(isinstance(n, BufferLoad) for n in walk(e))
            for e in expressions
        )

    @staticmethod
    def _is_parted(stmt: Stmt) -> bool:
        return any(isinstance(node, For | Seq) for node in walk(stmt))

    def _loop(self, loop: For) -> Stmt:
        """A loop that all threads go through together: its iterations follow one another."""
        before = self.open
        self.place(loop.body)
        while True:
            entered = self.open = before | self.open
            body = self.place(loop.body)
            if before | self.open == entered or self.open == entered:
                break
        self.open |= before
        return replace(loop, body=body)

    def _branch(self, branch: IfThenElse) -> Stmt:
        before = self.open
        then = self.place(branch.then)
        after, self.open = self.open, before
        otherwise = None if branch.otherwise is None else self.place(branch.otherwise)
        self.open |= after
        return replace(branch, then=then, otherwise=otherwise)


def _touched(stmt: Stmt) -> Touched:
    """The shared memory that a statement touches."""
    reads = frozenset(load.buffer.data for load in _parts(stmt, loads=True))
    writes = frozenset(store.buffer.data for store in _parts(stmt, loads=False))
    return Touched(reads, writes)


def _parts(stmt: Stmt, *, loads: bool) -> Iterable[BufferLoad | BufferStore]:
    found: Iterable[BufferLoad | BufferStore] = loads_in(stmt) if loads else stores_in(stmt)
    return (each for each in found if sharing_of(each.buffer.scope, in_kernel=False) is Sharing.BLOCK)
