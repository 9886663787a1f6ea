"""Cutting a loop in two that run one after the other, and merging two adjacent loops into one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, IntImm, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import Allocate, Attributes, Block, DeclBuffer, For, ForKind, IfThenElse, Let, Seq, Stmt, seq
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import bound_variables, loops_of_stores, mapped, stores_in, substitute, take_fresh, walk
from layoutproof.lowering import codes
from layoutproof.lowering.arith.affine import affine_of, expression_of
from layoutproof.lowering.loops.nest import (
    LoopName,
    check_kind,
    find_loop,
    fresh_variable,
    names_of,
    path_to,
    put,
    scope_around,
    tidied,
)
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option


@dataclass(frozen=True)
class Partition(Pass):
    """Cut a loop in two, before iteration number `at`; blocks in the second part are called `<block>_rest`.

    33 iterations cut at 32 are 32 and then one. The second part counts from 0 again.
    """

    primitive: ClassVar[str] = "partition"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))
    at: int = field(metadata=option(ArgumentKind.INTEGER))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with two loops.

        Raises LayoutproofError for an unknown loop, one that is bound to a thread or has no constant extent, a place
        that is not inside it, and a body that allocates memory or has an init.
        """
        loop = find_loop(func, self.block, self.loop)
        check_kind(loop)
        extent = loop.extent
        if not isinstance(extent, IntImm) or not 0 < self.at < extent.value:
            message = (
                f"loop {loop.var.name} cannot be cut at {self.at}: the place is a number above 0 and below its extent, "
                "a constant"
            )
            raise error(codes.PARTITION, message, loop.span)
        if any(isinstance(n, Allocate | DeclBuffer) or _holds_memory(n) for n in walk(loop.body)):
            message = f"loop {loop.var.name} cannot be cut: a block in it has an init, or memory of its own"
            raise error(codes.PARTITION, message, loop.span, help="lower the init first, or cut another loop")
        dtype = loop.var.dtype
        names = _block_names(func, loop)
        first = replace(loop, extent=const(self.at, dtype))
        later = _copied(substitute(loop.body, {loop.var: loop.var + const(self.at, dtype)}), names)
        rest = replace(loop, extent=const(extent.value - self.at, dtype), body=later)
        new = put(func, loop, seq(first, rest))
        return Rewrite(func, new, Witness(_instances(func, new, loop, self.at)))


def _holds_memory(node: Node) -> bool:
    return isinstance(node, Block) and (node.init is not None or bool(node.alloc_buffers) or bool(node.match_buffers))


def _block_names(func: PrimFunc, loop: For) -> Mapping[str, str]:
    taken = names_of(func)
    names: dict[str, str] = {}
    for block in (n for n in walk(loop.body) if isinstance(n, Block)):
        names[block.name] = take_fresh(f"{block.name}_rest", taken)
    return names


def _copied(stmt: Stmt, names: Mapping[str, str]) -> Stmt:
    """A deep copy of the statement: statements have identity."""

    def visit(node: Node) -> Node | Steps[Node, Node]:
        return copied(node) if isinstance(node, Stmt) else node

    def copied(node: Stmt) -> Steps[Node, Node]:
        result = yield from mapped(node)
        if result is node:
            result = replace(node)
        return replace(result, name=names[result.name]) if isinstance(result, Block) else result

    found = trampoline(visit, stmt)
    assert isinstance(found, Stmt)
    return found


def _instances(old: PrimFunc, new: PrimFunc, loop: For, at: int) -> tuple[InstanceMap, ...]:
    """Both copies of a store compute the old one, the second one in the iterations from `at` on."""
    inside = {id(store) for store in stores_in(loop.body)}
    numbers = [n for n, store in enumerate(stores_in(old.body)) if id(store) in inside]
    count = len(loops_of_stores(old.body))
    first = numbers[0] if numbers else count
    origins = [*range(first), *numbers, *numbers, *range(first + len(numbers), count)]
    maps: list[InstanceMap] = []
    for number, (origin, loops) in enumerate(zip(origins, loops_of_stores(new.body), strict=True)):
        variables = tuple(each.var for each in loops)
        shifted = len(numbers) <= number - first < 2 * len(numbers)
        outputs = tuple(v + const(at, v.dtype) if shifted and v == loop.var else v for v in variables)
        maps.append(InstanceMap(number, origin, IndexMap(variables, outputs)))
    return tuple(maps)


_WORDS: dict[type[Stmt], str] = {
    Allocate: "an allocation",
    Block: "a block",
    DeclBuffer: "the declaration of a view",
    IfThenElse: "a branch",
    Let: "a let",
}


@dataclass(frozen=True)
class MergeAdjacentLoops(Pass):
    """Merge a loop with the next one, which runs equally often.

    Refused if that reverses a dependence; the help names its two accesses. The new loop has the first one's variable
    and range, and its kind if both have the same; else it is serial.
    """

    primitive: ClassVar[str] = "merge_adjacent_loops"
    moves_iterations: ClassVar[bool] = True
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the loop and the next one merged.

        Raises LayoutproofError for an unknown loop or one bound to a thread, if something else follows it, and for
        loops that are not known to run equally often.
        """
        first = find_loop(func, self.block, self.loop)
        around, second = adjacent(func, first)
        _check_alike(first, second)
        variable = first.var
        if any(v.name == variable.name for v in bound_variables(second.body)):
            variable = fresh_variable(variable.name, variable, names_of(func))
        values: tuple[dict[Var, Expr], ...] = ({first.var: variable}, {second.var: _shifted(variable, first, second)})
        scope = scope_around(func, first).with_range(variable, first.start, first.extent)
        bodies = (
            tidied(substitute(loop.body, {v: e for v, e in value.items() if v != e}), scope)
            for loop, value in zip((first, second), values, strict=True)
        )
        kind = first.kind if first.kind is second.kind else ForKind.SERIAL
        merged = replace(first, var=variable, kind=kind, body=seq(*bodies))
        parts = [part for part in around.body if part is not second]
        new = put(func, around, seq(*(merged if part is first else part for part in parts)))
        return Rewrite(func, new, Witness(_merged_instances(func, new, (first, second), values)))


def adjacent(func: PrimFunc, loop: For) -> tuple[Seq, For]:
    """The sequence that contains a loop, and the next loop. Raises LayoutproofError if there is none."""
    path = path_to(func.body, loop)
    around = path[-1] if path else None
    if not isinstance(around, Seq) or around.body[-1] is loop:
        message = f"nothing stands behind loop {loop.var.name} that it could be merged with"
        raise error(codes.NOT_ADJACENT, message, loop.span)
    following = around.body[next(n for n, part in enumerate(around.body) if part is loop) + 1]
    if not isinstance(following, For):
        what = _WORDS.get(type(following), "another statement")
        message = f"behind loop {loop.var.name} stands {what}, not a loop that it could be merged with"
        raise error(codes.NOT_ADJACENT, message, following.span)
    return around, following


def _check_alike(first: For, second: For) -> None:
    """Raise LayoutproofError for loops that cannot be one: bound to threads, of different types, lengths or
    annotations.
    """
    names = f"loops {first.var.name} and {second.var.name}"
    check_kind(first)
    check_kind(second)
    if first.var.dtype != second.var.dtype:
        message = f"{names} count in different types, {first.var.dtype} and {second.var.dtype}"
        raise error(codes.NOT_ADJACENT, message, second.span)
    difference = affine_of(first.extent) - affine_of(second.extent)
    if not difference.is_constant or difference.constant != 0:
        lengths = f"{expr_text(first.extent)} and {expr_text(second.extent)}"
        raise error(
            codes.NOT_ADJACENT, f"{names} are not known to run equally often: {lengths} iterations", second.span
        )
    if second.annotations not in (first.annotations, Attributes()):
        message = f"loop {second.var.name} has annotations, which would apply to {first.var.name} as well"
        raise error(codes.NOT_ADJACENT, message, second.span)


def _shifted(variable: Var, first: For, second: For) -> Expr:
    """The second loop's variable in the iteration where the first one's is `variable`."""
    return expression_of(
        affine_of(variable) + affine_of(second.start) - affine_of(first.start), variable.dtype, [variable]
    )


def _merged_instances(
    old: PrimFunc, new: PrimFunc, loops: tuple[For, For], values: tuple[dict[Var, Expr], ...]
) -> tuple[InstanceMap, ...]:
    """Stores keep their numbers; the variables of either loop are distinct, since both may have one name."""
    result: list[InstanceMap] = []
    inside = [{id(store) for store in stores_in(loop.body)} for loop in loops]
    pairs = zip(stores_in(old.body), loops_of_stores(old.body), loops_of_stores(new.body), strict=True)
    for number, (store, before, after) in enumerate(pairs):
        known = next((value for ids, value in zip(inside, values, strict=True) if id(store) in ids), {})
        outputs = tuple(known.get(loop.var, loop.var) for loop in before)
        result.append(InstanceMap(number, number, IndexMap(tuple(loop.var for loop in after), outputs)))
    return tuple(result)
