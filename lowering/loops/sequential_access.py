"""Sequential access: loops distributed, and those of a block made to follow one of its buffers in memory order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, IntImm, Var, const
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Attributes, Block, For, ForKind, IfThenElse, IterKind, Seq, Stmt, seq
from layoutproof.ir.visit import free_variables, stores_in, substitute
from layoutproof.lowering import codes
from layoutproof.lowering.arith.index_simplify import IndexSimplifier, not_plain
from layoutproof.lowering.arith.known_facts import Scope, assumed_of_constants, symbol_scope
from layoutproof.lowering.loops.access import Component, Touch, Turned, components_of, find_touch, turn_around
from layoutproof.lowering.loops.decompose_reduction import plan_init_split
from layoutproof.lowering.loops.nest import (
    Chain,
    chain_around,
    check_kind,
    depends,
    fresh_variable,
    guarded,
    names_of,
    nest,
    path_to,
    put,
    tidied,
    under,
)
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.effects import is_pure
from layoutproof.lowering.passes.find import find_buffer
from layoutproof.lowering.passes.witness_maps import from_before, rewrite_by_values

Parts = tuple[Stmt | None, Stmt, Stmt | None]


def distribute(func: PrimFunc, top: For, target: Stmt) -> tuple[PrimFunc, tuple[int, ...]]:
    """The function with `target`, which is below `top`, in loops of its own, and the old numbers of the new stores.

    Raises LayoutproofError for anything other than loops, sequences and branches between them. Statements keep their
    identity, except for those between the two.
    """
    path = (*path_to(top, target), target)
    new = put(func, top, seq(*(part for part in _parts(path) if part is not None)))
    old_numbers = {id(store): number for number, store in enumerate(stores_in(func.body))}
    return new, tuple(old_numbers[id(store)] for store in stores_in(new.body))


def _parts(path: Sequence[Stmt]) -> Parts:
    """The parts before the end of a path, with it, and after it, each in its enclosing statements."""
    stmt, rest = path[0], path[1:]
    if not rest:
        return None, stmt, None
    before, target, after = _parts(rest)
    match stmt:
        case For():
            loops = (None if part is None else replace(stmt, body=part) for part in (before, after))
            return next(loops), replace(stmt, body=target), next(loops)
        case IfThenElse(condition=condition, otherwise=None) if is_pure(condition):
            branches = (None if part is None else replace(stmt, then=part) for part in (before, after))
            return next(branches), replace(stmt, then=target), next(branches)
        case Seq(body=body):
            position = next(n for n, part in enumerate(body) if part is rest[0])
            first = [*body[:position], *([before] if before is not None else [])]
            last = [*([after] if after is not None else []), *body[position + 1 :]]
            return seq(*first) if first else None, target, seq(*last) if last else None
        case _:
            message = f"a {type(stmt).__name__} stands among the loops, which cannot be taken apart there"
            raise error(codes.LOOP_NEST, message, stmt.span)


@dataclass(frozen=True)
class SequentialBufferAccess(Pass):
    """Make the loops of a block visit a buffer in the row-major order of its physical layout.

    The loops that determine the cell of the buffer become loops over its physical axes; the others (reductions,
    broadcast axes, and those of sliding windows) go inside, in their order. If an axis has cells that no iteration
    visits, a guard excludes them. A block whose init would no longer run once for each result has it split off, into a
    block of its own before it. If the dataflow forbids that order, the refusal's help names two accesses whose order
    changes.
    """

    primitive: ClassVar[str] = "sequential_buffer_access"
    moves_iterations: ClassVar[bool] = True
    block: str = field(metadata=option(ArgumentKind.NAME))
    buffer: str = field(metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the loops in the buffer's order.

        Raises LayoutproofError if the block does not access the buffer, accesses it at several places or at one that
        cannot be inverted, and if something else is between the loops.
        """
        buffer = find_buffer(func, self.buffer)
        touch = find_touch(func, self.block, buffer)
        chain = _chain_of(self.block, buffer, touch)
        outer = _loop_to_follow(touch, chain)
        if outer is None:
            return _Following(func, self.block, buffer, touch, chain).rewrite()
        apart, origins = distribute(func, outer, chain.links[0])
        touch = replace(touch, path=(*path_to(apart.body, touch.path[-1]), touch.path[-1]))
        rewrite = _Following(apart, self.block, buffer, touch, _chain_of(self.block, buffer, touch)).rewrite()
        return from_before(func, rewrite, origins)


def _loop_to_follow(touch: Touch, chain: Chain) -> For | None:
    """The outermost loop above a chain that must move as well, for the buffer's order; None if there is none.

    Loops further out are in order if each is one axis of its own, one after the other, before all axes of the chain.
    """
    start = next(n for n, stmt in enumerate(touch.path) if stmt is chain.links[0])
    outer = [s for s in touch.path[:start] if isinstance(s, For) and any(depends(i, (s.var,)) for i in touch.index)]
    walked = [axis for axis, index in enumerate(touch.index) if depends(index, [loop.var for loop in chain.loops])]
    axes = [[axis for axis, index in enumerate(touch.index) if depends(index, (loop.var,))] for loop in outer]
    single = [a[0] for a in axes if len(a) == 1]
    if len(single) == len(outer) and single == sorted(set(single)) and all(a < min(walked) for a in single):
        return None
    return outer[0]


def _chain_of(block: str, buffer: Buffer, touch: Touch) -> Chain:
    """The loops from the outermost that can move to the innermost that the access depends on."""
    loops = [
        n for n, s in enumerate(touch.path) if isinstance(s, For) and any(depends(i, (s.var,)) for i in touch.index)
    ]
    if not loops:
        raise error(codes.NO_ORDER, f"no loop of block {block} moves along {buffer.name}", touch.node.span)
    innermost = touch.path[loops[-1]]
    assert isinstance(innermost, For)
    chain = chain_around(touch.path[: loops[-1] + 1], innermost.body)
    for loop in chain.loops:
        check_kind(loop)
    return chain


@dataclass(slots=True)
class _Following:
    """The rewrite of one chain of loops."""

    func: PrimFunc
    block: str
    buffer: Buffer
    touch: Touch
    chain: Chain

    def rewrite(self) -> Rewrite:
        loops = self.chain.loops
        if any(isinstance(loop.extent, IntImm) and loop.extent.value == 0 for loop in loops):
            return rewrite_by_values(self.func, self.func)
        turned = [self.turned(component) for component in components_of(self.touch.index, loops)]
        gone = {loop.var for t in turned for loop in loops if loop.var in t.values}
        remaining = [loop for loop in loops if loop.var not in gone]
        self.check_ranges(gone)
        cells = self.cell_loops(turned)
        new_loops = [*cells.values(), *remaining]
        if [(n.var, n.start, n.extent) for n in new_loops] == [(o.var, o.start, o.extent) for o in loops]:
            return rewrite_by_values(self.func, self.func)
        values, guards = self.named(turned, cells)
        split = plan_init_split(
            self.func, self.chain, new_loops, {**values, **{loop.var: loop.var for loop in remaining}}
        )
        changed: Mapping[Var, Expr] = {v: e for v, e in values.items() if v != e}
        inner = split.update if split is not None else self.chain.body
        body = tidied(substitute(under(self.chain.conditions, inner), changed), self.scope(new_loops))
        updates = nest(new_loops, guarded(body, self.simplified(guards, new_loops)))
        new = put(self.func, self.chain.links[0], updates if split is None else seq(split.init, updates))
        if split is None:
            return rewrite_by_values(self.func, new, values)
        return rewrite_by_values(self.func, new, split.values, values, origins=split.origins)

    def turned(self, component: Component) -> Turned:
        cells = {axis: Var(f"cell{axis}'", self.buffer.shape[axis].dtype) for axis in component.axes}
        assumed = assumed_of_constants(self.func)
        answer = turn_around(self.touch.index, self.buffer, component, cells, self.reductions(), assumed)
        if isinstance(answer, str):
            axes = ", ".join(str(axis) for axis in component.axes)
            names = ", ".join(loop.var.name for loop in component.loops)
            message = (
                f"the loops {names} of block {self.block} cannot follow {self.buffer.name} along axis {axes}: {answer}"
            )
            raise error(codes.NO_ORDER, message, self.touch.node.span)
        return answer

    def reductions(self) -> frozenset[Var]:
        """The loops that a reduction variable of the block is bound to."""
        kinds = [i for s in self.touch.path if isinstance(s, Block) for i in s.iter_vars if i.kind is IterKind.REDUCE]
        return frozenset(v for i in kinds for v in free_variables(i.binding))

    def check_ranges(self, gone: set[Var]) -> None:
        for loop in self.chain.loops:
            if depends(loop.start, gone) or depends(loop.extent, gone):
                message = (
                    f"the range of loop {loop.var.name} depends on another loop that {self.buffer.name} is accessed "
                    "along"
                )
                raise error(codes.LOOP_NEST, message, loop.span)

    def cell_loops(self, turned: Sequence[Turned]) -> dict[int, For]:
        """A loop for every physical axis that the old loops move along, by axis in order."""
        taken = names_of(self.func)
        by_axis = {axis: t for t in turned for axis in t.component.axes}
        result: dict[int, For] = {}
        for axis in sorted(by_axis):
            result[axis] = self.cell_loop(axis, by_axis[axis], taken, [loop.var for loop in result.values()])
        return result

    def cell_loop(self, axis: int, turned: Turned, taken: set[str], before: Sequence[Var]) -> For:
        index, extent = self.touch.index[axis], self.buffer.shape[axis]
        zero = const(0, extent.dtype)
        gone = [loop for loop in turned.component.loops if loop.var in turned.values]
        used = [loop for loop in gone if depends(index, (loop.var,))]
        same = next((loop for loop in used if loop.var == index and loop.var.dtype == extent.dtype), None)
        # Of the axes of a diagonal, `A[i, i]`, one is walked by the loop itself.
        if same is not None and same.var not in before:
            return replace(same, start=zero, extent=extent)
        parallel = bool(used) and all(loop.kind is ForKind.PARALLEL for loop in turned.component.loops)
        kind = ForKind.PARALLEL if parallel else ForKind.SERIAL
        like = Var("", extent.dtype)
        variable = fresh_variable(_cell_name(self.touch.index, axis, turned, gone), like, taken)
        return For(variable, zero, extent, kind, self.chain.body, annotations=Attributes())

    def named(self, turned: Sequence[Turned], cells: Mapping[int, For]) -> tuple[dict[Var, Expr], list[Expr]]:
        """The old loops over the new ones, and the guards."""
        names: dict[Var, Expr] = {Var(f"cell{axis}'", loop.var.dtype): loop.var for axis, loop in cells.items()}
        scope = self.scope([*cells.values(), *(k for t in turned for k in t.kept)])
        values: dict[Var, Expr] = {}
        guards: list[Expr] = []
        for each in turned:
            for var, value in each.values.items():
                plain = any(loop.var == var for loop in cells.values())
                values[var] = var if plain else IndexSimplifier(scope).simplify(substitute(value, names))
            guards += [substitute(guard, names) for guard in each.guards]
        return values, guards

    def scope(self, loops: Sequence[For]) -> Scope:
        scope = symbol_scope(self.func)
        for stmt in self.touch.path:
            if isinstance(stmt, For) and not any(stmt is loop for loop in self.chain.loops):
                scope = scope.with_range(stmt.var, stmt.start, stmt.extent)
        for loop in loops:
            scope = scope.with_range(loop.var, loop.start, loop.extent)
        return scope

    def simplified(self, guards: Sequence[Expr], loops: Sequence[For]) -> Expr:
        """The conjunction of what is not plain about the guards."""
        return not_plain(guards, self.scope(loops))


def _cell_name(index: Sequence[Expr], axis: int, turned: Turned, gone: Sequence[For]) -> str:
    """`i_0`, `i_1` for the axes that come from one loop, `i_j_fused` for one axis that comes from several."""
    together = "_".join(loop.var.name for loop in gone)
    axes = turned.component.axes
    if len(gone) > 1 and len(axes) == 1:
        return f"{together}_fused"
    alone = [loop for loop in gone if depends(index[axis], (loop.var,))]
    if len(alone) != 1:
        return f"{together}_{axes.index(axis)}"
    own = [a for a in axes if [loop for loop in gone if depends(index[a], (loop.var,))] == alone]
    return f"{alone[0].var.name}_{own.index(axis)}"
