"""Cutting a loop in two that run one after the other: the iterations before a place, and the rest.

So that a condition that only the last iterations need is asked in these alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import IntImm, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import Allocate, Block, DeclBuffer, For, Stmt, seq
from layoutproof.ir.visit import loops_of_stores, map_children, stores_in, substitute, take_fresh, walk
from layoutproof.lowering import codes
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.loops.nest import LoopName, check_kind, find_loop, names_of, put
from layoutproof.lowering.passes import Pass, option


@dataclass(frozen=True)
class Partition(Pass):
    """Cut a loop at one place between its first iteration and its last: 33 of them at 32 are 32 and then one.

    The second part counts from 0 again; the blocks in it are called `<block>_rest`.
    """

    primitive: ClassVar[str] = "partition"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))
    at: int = field(metadata=option(ArgumentKind.INTEGER))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with two loops.

        Raises LayoutproofError for a loop that is not there or is bound to a thread, for one without a constant extent, a place that is
        not inside it, and a body that allocates memory or has an init.
        """
        loop = find_loop(func, self.block, self.loop)
        check_kind(loop)
        extent = loop.extent
        if not isinstance(extent, IntImm) or not 0 < self.at < extent.value:
            message = f"loop {loop.var.name} cannot be cut at {self.at}: the place is a number above 0 and below its extent, a constant"
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
    """The statement again, no part of it the same object: statements are told apart by identity."""

    def visit(node: Node) -> Node:
        return _copied(node, names) if isinstance(node, Stmt) else node

    result = map_children(stmt, visit)
    assert isinstance(result, Stmt)
    if result is stmt:
        result = replace(stmt)
    return replace(result, name=names[result.name]) if isinstance(result, Block) else result


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
