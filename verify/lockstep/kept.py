"""Blocks that keep their init: that both programs run it at the same moments, for the same spatial instances.

The init's moments hang on which loops the bindings use and on which conditions can be told without the loops that are left out, so
the two ways from the reduction's outermost loop to the block must be alike. Everything is compared without assuming that the loops that
are left out run at all. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.interp.facts import InitScope
from layoutproof.ir.stmt import Allocate, Block, For, IfThenElse, IterKind, Let
from layoutproof.verify.instances import Scene
from layoutproof.verify.lockstep.items import Flattener, Item
from layoutproof.verify.lockstep.memory import Memories
from layoutproof.verify.lockstep.reductions import Step, block_of, domains, steps
from layoutproof.verify.lockstep.refusal import Mismatch
from layoutproof.verify.lockstep.scenes import Env, bind, enter, say, shared_name, where, with_unknown

Same = Callable[[Expr, Expr, Scene], bool]
Walk = Callable[[list[Item], list[Item], Scene], None]


@dataclass(slots=True)
class Reductions:
    """Compares reductions. `same` compares expressions over the shared names, `walk` statements. `paired` are the blocks, by identity."""

    memories: Memories
    before: Flattener
    after: Flattener
    same: Same
    walk: Walk
    paired: set[tuple[int, int]] = field(default_factory=set)

    def check(self, old: InitScope, new: InitScope, envs: tuple[Env, Env], scene: Scene) -> None:
        """Raises Mismatch unless both inits run at the same moments and do the same."""
        block, init = block_of(old)
        other, second = block_of(new)
        (ways, left), (others, right) = steps(old), steps(new)
        if len(ways) != len(others) or self._init_is_gone(old, self.before) != self._init_is_gone(new, self.after):
            raise self._differs(block)
        mine, theirs = envs
        for a, b in zip(ways, others, strict=True):
            if type(a.stmt) is not type(b.stmt) or a.then != b.then or (a.told != b.told and a is not ways[-1]):
                raise self._differs(block)
            mine, theirs, scene = self._step(a, b, (mine, theirs), scene, (old, new), (left, right))
        self._domains(block, other, (mine, theirs), scene)
        for condition in domains(block):
            scene = where(scene, say(condition, mine))
        olds, news = self.before.items(Item(init, mine, block=block.name)), self.after.items(Item(second, theirs, block=other.name))
        self.walk(olds, news, scene)
        self.paired.add((id(block), id(other)))

    @staticmethod
    def _differs(block: Block) -> Mismatch:
        return Mismatch(f"the init of block {block.name} may run at other moments than it did")

    @staticmethod
    def _init_is_gone(scope: InitScope, flattener: Flattener) -> bool:
        """Whether init writes memory that is allocated inside the reduction, and so does not run after it."""
        _, init = block_of(scope)
        made = {s.buffer.data for s in scope.path if isinstance(s, Allocate)}
        made |= {b.data for s in scope.path if isinstance(s, Block) for b in s.alloc_buffers}
        return bool(made & flattener.side.touched(init).writes)

    def _step(
        self,
        a: Step,
        b: Step,
        envs: tuple[Env, Env],
        scene: Scene,
        scopes: tuple[InitScope, InitScope],
        gone: tuple[frozenset[Var], frozenset[Var]],
    ) -> tuple[Env, Env, Scene]:
        mine, theirs = envs
        match a.stmt, b.stmt:
            case (For() as x, For() as y):
                spatial = x.var.name in scopes[0].spatial
                if spatial != (y.var.name in scopes[1].spatial) or x.var.dtype != y.var.dtype or (spatial and not a.told):
                    raise self._differs(block_of(scopes[0])[0])
                if not spatial:
                    shared = Var(shared_name(x.var.name, scene, self.before.side.facts), x.var.dtype)
                    return bind(mine, x.var, shared), bind(theirs, y.var, shared), with_unknown(scene, shared, shared)
                start, extent = say(x.start, mine), say(x.extent, mine)
                self._agree(start, say(y.start, theirs), scene, scopes[0])
                self._agree(extent, say(y.extent, theirs), scene, scopes[0])
                shared, inside = enter(x, start, extent, scene, self.before.side.facts)
                return bind(mine, x.var, shared), bind(theirs, y.var, shared), inside
            case (IfThenElse() as x, IfThenElse() as y) if a.told:
                said = say(x.condition, mine)
                self._agree(said, say(y.condition, theirs), scene, scopes[0])
                return mine, theirs, where(scene, said, a.then)
            case (Let() as x, Let() as y):
                mine, theirs = self._bound(x.var, x.value, mine, a.told), self._bound(y.var, y.value, theirs, b.told)
                if a.told:
                    self._agree(say(x.var, mine), say(y.var, theirs), scene, scopes[0])
                return mine, theirs, scene
            case (Block() as x, Block() as y):
                return self._blocks(x, y, a, (mine, theirs), scene, scopes[0], gone)
            case _:
                return mine, theirs, scene

    def _blocks(
        self,
        x: Block,
        y: Block,
        step: Step,
        envs: tuple[Env, Env],
        scene: Scene,
        scope: InitScope,
        gone: tuple[frozenset[Var], frozenset[Var]],
    ) -> tuple[Env, Env, Scene]:
        mine, theirs = envs
        if [v.kind for v in x.iter_vars] != [v.kind for v in y.iter_vars]:
            raise self._differs(x)
        for v, w in zip(x.iter_vars, y.iter_vars, strict=True):
            if (v.var in gone[0]) != (w.var in gone[1]):
                raise self._differs(x)
            told = v.var not in gone[0]
            mine, theirs = self._bound(v.var, v.binding, mine, told), self._bound(w.var, w.binding, theirs, told)
            if told:
                self._agree(say(v.var, mine), say(w.var, theirs), scene, scope)
        last = x is scope.path[-1]
        if step.told and not last:
            said = say(x.where, mine)
            self._agree(said, say(y.where, theirs), scene, scope)
            scene = where(scene, said)
        return mine, theirs, scene

    def _bound(self, var: Var, value: Expr, env: Env, told: bool) -> Env:
        """A variable's value; one that is left out is a variable that nothing is known of, another one in each program."""
        return bind(env, var, say(value, env) if told else Var(f"{var.name}@{next(self.memories.fresh)}", var.dtype))

    def _domains(self, block: Block, other: Block, envs: tuple[Env, Env], scene: Scene) -> None:
        for v, w in zip(block.iter_vars, other.iter_vars, strict=True):
            if v.kind is not IterKind.REDUCE:
                for a, b in ((v.domain.start, w.domain.start), (v.domain.extent, w.domain.extent)):
                    if not self.same(say(a, envs[0]), say(b, envs[1]), scene):
                        raise self._differs(block)

    def _agree(self, old: Expr, new: Expr, scene: Scene, scope: InitScope) -> None:
        if not self.same(old, new, scene):
            raise self._differs(block_of(scope)[0])
