"""Merging two loops that stand one after the other: one loop that does in each iteration what both did in theirs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import Allocate, Attributes, Block, DeclBuffer, For, ForKind, IfThenElse, Let, Seq, Stmt, seq
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import bound_variables, loops_of_stores, stores_in, substitute
from layoutproof.lowering import codes
from layoutproof.lowering.affine import affine_of, expression_of
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.loops.guards import tidied
from layoutproof.lowering.loops.nest import LoopName, check_kind, find_loop, fresh_variable, names_of, path_to, put, scope_around
from layoutproof.lowering.passes import Pass, option

_WORDS: dict[type[Stmt], str] = {
    Allocate: "an allocation",
    Block: "a block",
    DeclBuffer: "the declaration of a view",
    IfThenElse: "a branch",
    Let: "a let",
}


@dataclass(frozen=True)
class MergeAdjacentLoops(Pass):
    """Merge a loop with the one that stands right behind it and runs as often (the roadmap's utility of that name).

    An iteration of the second loop then comes before later ones of the first. That is right where none of these writes what that one
    reads, reads what it writes, or writes what it writes, which is for the checker to find out. The new loop has the first one's
    variable and range, and its kind where both have the same; else it is serial.
    """

    primitive: ClassVar[str] = "merge_adjacent_loops"
    moves_iterations: ClassVar[bool] = True
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the loop and the next one merged.

        Raises LayoutproofError for a loop that is not there or is bound to a thread, where something other than a loop stands behind it,
        and for loops that are not known to run equally often.
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
        return Rewrite(func, new, Witness(_instances(func, new, (first, second), values)))


def adjacent(func: PrimFunc, loop: For) -> tuple[Seq, For]:
    """The sequence that a loop stands in, and the loop behind it. Raises LayoutproofError where there is none."""
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
    """Raise LayoutproofError for loops that cannot be one: bound to threads, of different types, not equally long, of other remarks."""
    names = f"loops {first.var.name} and {second.var.name}"
    check_kind(first)
    check_kind(second)
    if first.var.dtype != second.var.dtype:
        message = f"{names} count in different types, {first.var.dtype} and {second.var.dtype}"
        raise error(codes.NOT_ADJACENT, message, second.span)
    difference = affine_of(first.extent) - affine_of(second.extent)
    if not difference.is_constant or difference.constant != 0:
        lengths = f"{expr_text(first.extent)} and {expr_text(second.extent)}"
        raise error(codes.NOT_ADJACENT, f"{names} are not known to run equally often: {lengths} iterations", second.span)
    if second.annotations not in (first.annotations, Attributes()):
        message = f"loop {second.var.name} has annotations, which would be said of {first.var.name} as well"
        raise error(codes.NOT_ADJACENT, message, second.span)


def _shifted(variable: Var, first: For, second: For) -> Expr:
    """The second loop's variable in the iteration where the first one's is `variable`."""
    return expression_of(affine_of(variable) + affine_of(second.start) - affine_of(first.start), variable.dtype, [variable])


def _instances(old: PrimFunc, new: PrimFunc, loops: tuple[For, For], values: tuple[dict[Var, Expr], ...]) -> tuple[InstanceMap, ...]:
    """Stores keep their numbers; those of either loop are told apart, since both may be called the same."""
    result: list[InstanceMap] = []
    inside = [{id(store) for store in stores_in(loop.body)} for loop in loops]
    pairs = zip(stores_in(old.body), loops_of_stores(old.body), loops_of_stores(new.body), strict=True)
    for number, (store, before, after) in enumerate(pairs):
        known = next((value for ids, value in zip(inside, values, strict=True) if id(store) in ids), {})
        outputs = tuple(known.get(loop.var, loop.var) for loop in before)
        result.append(InstanceMap(number, number, IndexMap(tuple(loop.var for loop in after), outputs)))
    return tuple(result)
