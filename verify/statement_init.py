"""When the initial value of a block's reduction is stored: what `ir/interp` does, said of instances. Part of the trust base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.ir.stmt import Block, IterKind
from layoutproof.ir.visit import free_variables, stores_in
from layoutproof.verify.instances import Scene
from layoutproof.verify.integers import at_least, below
from layoutproof.verify.statement import NotModelled, Reduction, Statement
from layoutproof.verify.statement_cells import Memories
from layoutproof.verify.statement_values import Condition, Values, Where

OWN, SCOPED = 1, 3


@dataclass(frozen=True, slots=True)
class Initial:
    """Finds where the `init` of a block is to be read."""

    values: Values
    memories: Memories
    roots: Mapping[Var, Var]

    def where(self, block: Block, around: Where, guarded: Where, order: int) -> Where:
        """What is around the statements of `init`. `around` has the block's variables bound, `guarded` its condition too; `order` is
        the block's number among those with an init. Raises NotModelled where data decides when it happens.
        """
        if around.in_init:
            raise NotModelled(f"block {block.name} starts a reduction within the start of another", block)
        bound = {v: self._bound(block, v.var, around) for v in block.iter_vars}
        reducing = {var for v, value in bound.items() if v.kind is IterKind.REDUCE for var in free_variables(value)}
        spatial = {var for v, value in bound.items() if v.kind is not IterKind.REDUCE for var in free_variables(value)}
        domain = self._domain(block, around)
        first = next((k for k, dim in enumerate(around.dims) if dim.var in reducing), None)
        if first is None:
            # Each visit is a reduction of its own, and starts one whatever the block's condition says.
            return replace(around.under(domain).at(OWN), in_init=True)
        loop = around.dims[first]
        within = [c for c in guarded.conditions if c.depth > first]
        if any(c.data for c in within) or around.truths > first:
            raise NotModelled(f"data decides when the reduction of block {block.name} starts", block)
        gone = frozenset(dim.var for dim in around.dims[first:] if dim.var not in spatial)
        kept = tuple(dim for dim in around.dims if dim.var not in gone)
        if any(gone & set(free_variables(e)) for dim in kept for e in (dim.start, dim.extent)):
            raise NotModelled(f"a spatial loop of block {block.name} depends on its reduction loops", block)
        outer = tuple(c for c in around.conditions if c.depth <= first)
        told = tuple(c for c in around.conditions if c.depth > first and not gone & c.variables)
        here = Where(kept, (*outer, *told, domain), (*guarded.time, SCOPED), guarded.env)
        start = around.time.index(loop)
        # The loop's own moment is `..., 1, loop`: what comes after it, before its next neighbour, is `..., 2`.
        after = (*around.time[: start - 1], 2, order, *kept[first:])
        late = None if self._is_gone(block, around, first) else Scene(kept, here.guards, after)
        key = tuple(value for v, value in bound.items() if v.kind is not IterKind.REDUCE)
        updates = Scene(guarded.dims, guarded.guards, here.time)
        return replace(here, in_init=True, reduction=Reduction(updates, kept, late, key, first))

    def _bound(self, block: Block, var: Var, around: Where) -> Expr:
        value = around.env[var]
        if not isinstance(value, Expr) or not self.values.is_index(value):
            raise NotModelled(f"block variable {var.name} of block {block.name}, which starts a reduction, depends on data", block)
        return value

    def _domain(self, block: Block, around: Where) -> Condition:
        """That the block's variables which are not its reduction's lie in their domains: else there is nothing to start."""
        found = Condition(len(around.dims), (), ())
        for v in block.iter_vars:
            if v.kind is IterKind.REDUCE:
                continue
            start, extent = (self.values.say(e, around) for e in (v.domain.start, v.domain.extent))
            value = around.env[v.var]
            assert isinstance(value, Expr)
            end = extent if start == IntImm(0, start.dtype) else start + extent
            if any(dim.var == value and dim.start == start and dim.extent == extent for dim in around.dims):
                continue
            for said in (at_least(value, start), below(value, end)):
                part = self.values.condition(said, True, len(around.dims))
                if part.data:
                    raise NotModelled(f"the domain of {v.var.name} in block {block.name}, which starts a reduction, is not affine", block)
                found = replace(found, guards=(*found.guards, *part.guards))
        return found

    def _is_gone(self, block: Block, around: Where, first: int) -> bool:
        """Whether `init` writes memory that is allocated inside the reduction, and so is no more when that is over."""
        assert block.init is not None
        written = {self.roots.get(s.buffer.data, s.buffer.data) for s in stores_in(block.init)}
        return any(len(self.memories.of(data, block).leading) > first for data in written)

    @staticmethod
    def check(statement: Statement) -> None:
        """Raises NotModelled where the initial value, or its cell, speaks of loops that are no more when it is stored late."""
        assert statement.reduction is not None
        known = {dim.var for dim in statement.dims}
        outside = {dim.var for dim in statement.reduction.updates.dims} - known
        inside = statement.reduction.updates.time[: _start(statement.reduction)]
        said = [statement.value, *statement.coordinates, *(g.condition for g in statement.scene.guards)]
        said += [e for dim in statement.dims for e in (dim.start, dim.extent)]
        for read in statement.reads:
            scene = read.access.scene
            said += [*read.coordinates, *(g.condition for g in scene.guards), *(e for d in scene.dims for e in (d.start, d.extent))]
            here = scene.time[: len(statement.reduction.updates.time)] == statement.reduction.updates.time
            if scene.time[: len(inside)] == inside and not here:
                raise NotModelled("the initial value of a reduction uses what was loaded on the way to it", statement.access.node)
        if any(outside & set(free_variables(expr)) for expr in said):
            raise NotModelled("the initial value of a reduction depends on its loops", statement.access.node)


def _start(reduction: Reduction) -> int:
    """How many moments of an update's time are around the reduction."""
    loop = reduction.updates.dims[reduction.outer]
    return reduction.updates.time.index(loop)
