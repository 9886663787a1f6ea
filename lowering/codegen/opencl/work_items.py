"""The loops that become work items: which dimension each is, and what a kernel asks for its place in it.

The innermost loop is dimension 0, along which devices put neighbours together. Of more than three loops the outer ones share
dimension 2, which is taken apart by quotients. Loops bound to threads take the dimensions that their axes name.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import BinaryOp, Expr, IntImm, binary
from layoutproof.ir.stmt import For, ForKind
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.c_expr import Expressions
from layoutproof.lowering.codegen.fragments import Binding, Fragment

DIMENSIONS = 3
_AXES = "xyz"


@dataclass(frozen=True, slots=True)
class WorkItems:
    """The work items of one kernel. `grid` are the loops, outermost first; `hosts` the names that the host knows the values of."""

    grid: tuple[For, ...] = ()
    hosts: frozenset[str] = frozenset()

    def counts(self, stmt: For) -> bool:
        """Whether the loop is one of those that became work items."""
        return any(loop is stmt for loop in self.grid)

    @property
    def is_bound(self) -> bool:
        """Whether the loops name hardware axes."""
        return any(loop.kind is ForKind.THREAD_BINDING for loop in self.grid)

    @property
    def global_size(self) -> tuple[Expr, ...]:
        """How many work items there are in each dimension; one where there are no loops."""
        if self.is_bound:
            blocks, threads = self._axes("blockIdx"), self._axes("threadIdx")
            rank = 1 + max(_AXES.index(axis) for axis in {*blocks, *threads})
            return tuple(_product([sizes[a].extent for sizes in (blocks, threads) if a in sizes]) for a in _AXES[:rank])
        inner = self.grid[::-1]
        sizes = [loop.extent for loop in inner[: DIMENSIONS - 1]]
        outer = self.grid[: -(DIMENSIONS - 1)]
        if outer:
            sizes.append(_product([loop.extent for loop in outer]))
        return tuple(sizes) if sizes else (IntImm(1),)

    @property
    def local_size(self) -> tuple[int, ...] | None:
        """The size of a group where threads are named. Raises LayoutproofError (LP403) where that is no constant."""
        if not self.is_bound:
            return None
        threads = self._axes("threadIdx")
        return tuple(_constant(threads.get(axis)) for axis in _AXES[: len(self.global_size)])

    def _axes(self, role: str) -> dict[str, For]:
        found: dict[str, For] = {}
        for loop in self.grid:
            name, _, axis = (loop.thread if loop.thread is not None else "").partition(".")
            if name not in ("blockIdx", "threadIdx") or axis not in tuple(_AXES):
                raise error(
                    codes.UNSUPPORTED, f"the OpenCL target has no axis {loop.thread}, which loop {loop.var.name} is bound to", loop.span
                )
            if name == role:
                if axis in found:
                    message = (
                        f"the OpenCL target takes one loop for each axis; {loop.thread} has {found[axis].var.name} and {loop.var.name}"
                    )
                    raise error(codes.UNSUPPORTED, message, loop.span)
                found[axis] = loop
        return found

    def position(self, stmt: For, expressions: Expressions) -> str:
        """A work item's place in a loop, from 0, as an expression that binds as a product or tighter."""
        integer = expressions.integers.index_type.value
        if self.is_bound:
            assert stmt.thread is not None
            role, _, axis = stmt.thread.partition(".")
            name = "get_group_id" if role == "blockIdx" else "get_local_id"
            return f"({integer}){name}({_AXES.index(axis)})"
        number = next(k for k, loop in enumerate(self.grid) if loop is stmt)
        inner = len(self.grid) - 1 - number
        outer = self.grid[: -(DIMENSIONS - 1)]
        if inner < DIMENSIONS - 1 or len(outer) == 1:
            return f"({integer})get_global_id({inner})"
        sizes = [expressions.emit_index(loop.extent) for loop in outer]
        whole = sizes[0]
        for size in sizes[1:]:
            whole = expressions.integers.index_product(whole, size)  # notes it where the number of work items may not fit
        text = f"({integer})get_global_id({DIMENSIONS - 1})"
        rest: Fragment | None = None
        for size in sizes[number + 1 :]:
            rest = size if rest is None else expressions.integers.index_product(rest, size)
        if rest is not None:
            text = f"{text} / {rest.at(Binding.UNARY)}"
        return text if number == 0 else f"{text} % {sizes[number].at(Binding.UNARY)}"


def _constant(loop: For | None) -> int:
    if loop is None:
        return 1
    if not isinstance(loop.extent, IntImm):
        message = f"the OpenCL target takes groups of constant size; loop {loop.var.name}, bound to {loop.thread}, has another"
        raise error(codes.UNSUPPORTED, message, loop.span)
    return loop.extent.value


def _product(factors: list[Expr]) -> Expr:
    found = factors[0]
    for factor in factors[1:]:
        found = binary(BinaryOp.MUL, found, factor)
    return found
