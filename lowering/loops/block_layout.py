"""Running a block over another iteration space: loops and iteration variables are replaced by an index map of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from layoutproof.ir.buffer import Range
from layoutproof.ir.diagnostic import Diagnostic, counted, error
from layoutproof.ir.expr import FALSE, TRUE, Expr, Var, const, equal, is_zero, widen
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite
from layoutproof.ir.stmt import Attributes, Block, For, ForKind, IterKind, IterVar
from layoutproof.ir.visit import free_variables, loops_of_stores, stores_in, substitute
from layoutproof.lowering import codes
from layoutproof.lowering.arith.index_simplify import not_plain
from layoutproof.lowering.arith.known_facts import Scope, assumed_of_constants, constants_of
from layoutproof.lowering.loops.access import renamed
from layoutproof.lowering.loops.nest import (
    Chain,
    chain_around,
    check_kind,
    fresh_variable,
    guarded_block,
    names_of,
    nest,
    own_path,
    put,
    scope_around,
    under,
)
from layoutproof.lowering.passes.base import ArgumentKind, Pass, map_text, option
from layoutproof.lowering.passes.find import find_block
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.passes.witness_maps import rewrite_by_values
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.verdict.report import counterexample_text
from layoutproof.verify.verdict.verdict import Status


@dataclass(frozen=True)
class TransformBlockLayout(Pass):
    """Run a block over the image of an index map of its variables: an `IndexMap`, a function, or text.

    Each output of the map becomes a loop `ax0`, `ax1`, ... with a variable `v0`, `v1`, ... bound to it. The old
    variables become functions of the new ones. If the map is not surjective, a guard excludes the additional
    iterations. The block's variables must be bound to its loops, one each, over their whole domains.
    """

    primitive: ClassVar[str] = "transform_block_layout"
    moves_iterations: ClassVar[bool] = True
    block: str = field(metadata=option(ArgumentKind.NAME))
    index_map: str = field(metadata=option(ArgumentKind.INDEX_MAP))

    @classmethod
    def tries(cls, func: PrimFunc, arguments: dict[str, Any]) -> Sequence[Pass]:
        """The pass, with its map as text: a function is called with as many indices as the block has variables."""
        text = map_text(arguments["index_map"], lambda: len(find_block(func, arguments["block"]).iter_vars))
        return (cls.from_arguments(arguments | {"index_map": text}),)

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the block over the new iteration space.

        Raises LayoutproofError for a block whose variables are not its loops', for a map of another arity, one that
        mixes spatial and reduction variables in one output, one whose inverse or extents are not found, and
        IllegalTransform for one that is not injective.
        """
        block = find_block(func, self.block)
        index_map = parse_index_map(self.index_map, symbols=constants_of(func))
        if len(index_map.inputs) != len(block.iter_vars):
            takes = counted(len(index_map.inputs), "index", "indices")
            has = counted(len(block.iter_vars), "iteration variable", "iteration variables")
            raise error(
                codes.MAP_ARITY,
                f"`{index_map_text(index_map)}` takes {takes}, block {block.name} has {has}",
                block.span,
            )
        chain = _chain_of(func, block)
        kinds = _kinds(block, index_map)
        report = check_map(index_map, [i.domain.extent for i in block.iter_vars], assumed_of_constants(func))
        _check(block, index_map, report)
        return _Mapped(func, block, chain, index_map, report, kinds).rewrite()


def _chain_of(func: PrimFunc, block: Block) -> Chain:
    """The loops that the block's variables are bound to, and the branches among them."""
    chain = chain_around(own_path(func, block), block)
    bound: list[For] = []
    for iter_var in block.iter_vars:
        loop = next((loop for loop in chain.loops if loop.var == iter_var.binding), None)
        if loop is None:
            message = (
                f"{iter_var.var.name} of block {block.name} is not bound to a loop that holds nothing but the block"
            )
            raise error(codes.BLOCK_MAP, message, block.span)
        if any(loop is other for other in bound):
            raise error(
                codes.BLOCK_MAP, f"two variables of block {block.name} are bound to loop {loop.var.name}", block.span
            )
        check_kind(loop)
        domain = iter_var.domain
        if not is_zero(loop.start) or (domain.start, domain.extent) != (loop.start, loop.extent):
            message = (
                f"loop {loop.var.name} does not run over the whole domain of {iter_var.var.name} of block "
                f"{block.name}, or not from 0"
            )
            raise error(codes.BLOCK_MAP, message, block.span)
        bound.append(loop)
    if not bound:
        raise error(codes.BLOCK_MAP, f"block {block.name} has no iteration variables", block.span)
    start = min(n for n, link in enumerate(chain.links) if any(link is loop for loop in bound))
    found = Chain(chain.links[start:], block)
    other = next((loop for loop in found.loops if not any(loop is each for each in bound)), None)
    if other is not None:
        message = (
            f"loop {other.var.name} stands among the loops of block {block.name}, which has no variable bound to it"
        )
        raise error(codes.BLOCK_MAP, message, other.span)
    return found


def _kinds(block: Block, index_map: IndexMap) -> list[IterKind]:
    """The kinds of the new variables. Raises LayoutproofError for an output that mixes two."""
    kinds = {v: i.kind for v, i in zip(index_map.inputs, block.iter_vars, strict=True)}
    result: list[IterKind] = []
    for number, output in enumerate(index_map.outputs):
        used = [v for v in index_map.inputs if v in free_variables(output)]
        found = list(dict.fromkeys(kinds[v] for v in used))
        if len(found) > 1:
            words = " and ".join(f"{v.name} ({_KIND_WORDS[kinds[v]]})" for v in used)
            message = f"output {number} of `{index_map_text(index_map)}` mixes {words}; a variable is of one kind"
            raise error(codes.BLOCK_MAP, message, block.span)
        result.append(found[0] if found else IterKind.SPATIAL)
    return result


_KIND_WORDS: Mapping[IterKind, str] = {
    IterKind.SPATIAL: "spatial",
    IterKind.REDUCE: "reduction",
    IterKind.OPAQUE: "opaque",
}


def _check(block: Block, index_map: IndexMap, report: MapReport) -> None:
    """Raise unless the map is proved to be injective and can be inverted."""
    shown = f"`{index_map_text(index_map)}`"
    verdict = report.injective
    if verdict.status is not Status.PROVED:
        word = "is not" if verdict.status is Status.REFUTED else "is not known to be"
        message = f"{shown} {word} injective on the iterations of block {block.name}: {counterexample_text(verdict)}"
        raise IllegalTransform(Diagnostic(codes.NOT_INJECTIVE, message, block.span), (verdict,))
    if report.inverse is None:
        raise error(codes.BLOCK_MAP, f"{shown} cannot be turned around: {report.inverse_reason}", block.span)
    for number, extent in enumerate(report.physical_shape):
        if extent is None:
            raise error(
                codes.BLOCK_MAP, f"no formula was found for the extent of output {number} of {shown}", block.span
            )


@dataclass(slots=True)
class _Mapped:
    """The rewrite of one block."""

    func: PrimFunc
    block: Block
    chain: Chain
    index_map: IndexMap
    report: MapReport
    kinds: Sequence[IterKind]

    def rewrite(self) -> Rewrite:
        loops = self.loops()
        taken = names_of(self.func) | {loop.var.name for loop in loops}
        variables = [fresh_variable(f"v{k}", loop.var, taken) for k, loop in enumerate(loops)]
        scope = scope_around(self.func, self.chain.links[0])
        for loop in loops:
            scope = scope.with_range(loop.var, loop.start, loop.extent)
        over_loops = {
            i.binding: e for i, e in zip(self.block.iter_vars, self.inverse([loop.var for loop in loops]), strict=True)
        }
        values = {v: e for v, e in over_loops.items() if isinstance(v, Var)}
        inside = {i.var: e for i, e in zip(self.block.iter_vars, self.inverse(variables), strict=True)}
        iter_vars = tuple(
            IterVar(v, kind, Range(const(0, v.dtype), loop.extent), loop.var)
            for v, kind, loop in zip(variables, self.kinds, loops, strict=True)
        )
        bare = replace(self.block, iter_vars=())
        moved = replace(substitute(bare, {**inside, **values}), iter_vars=iter_vars)
        guard = self.guard([loop.var for loop in loops], scope)
        body = guarded_block(moved, guard) if guard != TRUE else moved
        conditions = [substitute(c, values) for c in self.chain.conditions]
        new = put(self.func, self.chain.links[0], nest(loops, under(conditions, body)))
        return self.with_inits_at_start(rewrite_by_values(self.func, new, values))

    def with_inits_at_start(self, rewrite: Rewrite) -> Rewrite:
        """The witness with the init at the start of the reduction in both programs, if the map preserves that
        instance.
        """
        if self.block.init is None:
            return rewrite
        ours = {id(store) for store in stores_in(self.block.init)}
        inits = {number for number, store in enumerate(stores_in(self.func.body)) if id(store) in ours}
        reduced = {i.binding for i in self.block.iter_vars if i.kind is IterKind.REDUCE}
        around = loops_of_stores(self.func.body)

        def at_start(claim: InstanceMap) -> InstanceMap:
            if claim.old_store is None or claim.old_store not in inits or claim.instances is None:
                return claim
            pairs = zip(around[claim.old_store], claim.instances.outputs, strict=True)
            outputs = tuple(loop.start if loop.var in reduced else output for loop, output in pairs)
            return replace(claim, instances=IndexMap(claim.instances.inputs, outputs))

        return replace(
            rewrite, witness=replace(rewrite.witness, instances=tuple(at_start(c) for c in rewrite.witness.instances))
        )

    def loops(self) -> list[For]:
        """A loop for each output of the map."""
        taken = names_of(self.func)
        parallel = all(loop.kind is ForKind.PARALLEL for loop in self.chain.loops)
        kind = ForKind.PARALLEL if parallel else ForKind.SERIAL
        # Extents of maps have the type of their text, loops that of the block's variables.
        dtype = max((i.var.dtype for i in self.block.iter_vars), key=lambda d: d.bits)
        result = []
        for number, extent in enumerate(self.report.physical_shape):
            assert extent is not None
            variable = fresh_variable(f"ax{number}", Var("", dtype), taken)
            result.append(
                For(variable, const(0, dtype), widen(extent, dtype), kind, self.block, annotations=Attributes())
            )
        return result

    def inverse(self, variables: Sequence[Var]) -> list[Expr]:
        """The old variables over new ones."""
        assert self.report.inverse is not None
        names = {f"p{k}": variable for k, variable in enumerate(variables)}
        return [renamed(output, names) for output in self.report.inverse.outputs]

    def guard(self, variables: Sequence[Var], scope: Scope) -> Expr:
        """What is not plain about a place of the new space having an iteration."""
        if self.report.padding.predicate == FALSE:
            return TRUE
        old = self.inverse(variables)
        conditions = []
        for iter_var, value in zip(self.block.iter_vars, old, strict=True):
            conditions += [value >= const(0, value.dtype), value < iter_var.domain.extent]
        forward = self.index_map.map_indices(old)
        conditions += [equal(output, variable) for output, variable in zip(forward, variables, strict=True)]
        return not_plain(conditions, scope)
