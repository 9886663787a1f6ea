"""That a block's init may leave its place: run before the whole reduction, or in the first iteration of the loops that repeat.

Init belongs right before its spatial instance's first executed update, or at the reduction's end where there is none. Run earlier it does
the same if nothing in between touches what it writes or writes what it reads. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import Expr, Var, const, logical_or
from layoutproof.ir.interp.facts import InitScope
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import Allocate, Block, BufferStore, For, ForKind, IfThenElse, IterKind, Let, Seq, Stmt
from layoutproof.ir.visit import children, free_variables, walk
from layoutproof.verify.abstraction import Inexpressible, in_lane
from layoutproof.verify.instances import Dim, Scene
from layoutproof.verify.integers import at_least, differ
from layoutproof.verify.lockstep.asking import Asking
from layoutproof.verify.lockstep.items import Item
from layoutproof.verify.lockstep.memory import Cells, meeting, say_buffer
from layoutproof.verify.lockstep.reductions import Step, block_of, domains, repeating, steps
from layoutproof.verify.lockstep.refusal import Mismatch
from layoutproof.verify.lockstep.scenes import Env, bind, enter, is_speakable, reads_nothing, say, shared_name, where, with_unknown
from layoutproof.verify.lockstep.sides import Side


@dataclass(slots=True)
class Inits:
    """The inits of the old program, and whether they may move."""

    side: Side
    asking: Asking

    def check_hoisted(self, scope: InitScope, item: Item, scene: Scene) -> None:
        """Raises Mismatch unless the init may run for all spatial instances before the reduction."""
        block, init = block_of(scope)
        loop = scope.path[0]
        wrote, read = self.side.touched(init).writes, self.side.touched(init).reads
        written, used = self.side.spread(wrote), self.side.spread(read | wrote)
        self._check_alone(scope, block, loop)
        problem = self._obstacle(scope, block, init, written, used)
        if problem is not None:
            raise Mismatch(f"the init of block {block.name} may not run before the reduction ({item.place}): {problem}")
        self._check_apart(scope, item.env, scene, written)

    def _check_alone(self, scope: InitScope, block: Block, loop: Stmt) -> None:
        if sum(node is block for node in walk(loop)) != 1:
            raise Mismatch(f"block {block.name} stands in its reduction more than once")
        if self.side.touched(loop).calls:
            raise Mismatch(f"the reduction of block {block.name} calls what nobody looks into")

    def _obstacle(self, scope: InitScope, block: Block, init: Stmt, written: frozenset[Var], used: frozenset[Var]) -> str | None:
        touched = self.side.touched
        for stmt in scope.path:
            own = (stmt.buffer,) if isinstance(stmt, Allocate) else stmt.alloc_buffers if isinstance(stmt, Block) else ()
            for buffer in own:
                if buffer.data in used:
                    return f"it uses {buffer.name}, which is allocated inside the reduction"
        if touched(init).reads & written:
            return "it reads what it writes"
        for expr in _steering(scope.path):
            if touched(expr).reads & written:
                return "what the reduction does depends on what the init writes"
        for other in _beside(scope.path):
            if touched(other).all & written:
                return "another statement of the reduction touches what it writes"
        if any(touched(part).writes & self.side.spread(touched(init).reads) for part in (scope.path[0],)):
            return "the reduction writes what it reads"
        plain = {v.binding for v in block.iter_vars if v.kind is not IterKind.REDUCE and isinstance(v.binding, Var)}
        direct = [v for v in free_variables(init) if v in _bound(scope.path[:-1]) and v not in plain]
        return f"it uses {direct[0].name}, of which one result may see several values" if direct else None

    def _check_apart(self, scope: InitScope, env: Env, scene: Scene, written: frozenset[Var]) -> None:
        """That no two spatial instances meet in what the init writes."""
        block, init = block_of(scope)
        inner = _bound(scope.path[:-1])
        spatial = [v for v in block.iter_vars if v.kind is not IterKind.REDUCE]
        varying = [v for v in spatial if any(n in inner for n in free_variables(v.binding))]
        if not varying:
            return
        touches = [*_touches(init, (), {}, True), *_touches(block.body, (), {})]
        here = [t for t in touches if self.side.root(t.buffer) in written]
        mine = self.side.touched(init).writes
        if any(self.side.root(t.buffer) not in mine for t in here):
            raise Mismatch(f"block {block.name} also uses parameters that may overlap what its init writes")
        for data in mine:
            own = [t for t in here if self.side.root(t.buffer) == data]
            if _plainly_apart(own, [v.var for v in varying]):
                continue
            if not self._apart(scope, env, scene, own, [v.var for v in spatial]):
                raise Mismatch(f"two results of block {block.name} may share a cell of {own[0].buffer.name}, so their order counts")

    def _apart(self, scope: InitScope, env: Env, scene: Scene, touches: Sequence[_Touch], keys: Sequence[Var]) -> bool:
        first, left = self._instance(scope, env, scene)
        both, right = self._instance(scope, env, first)
        if left is None or right is None:
            return False
        differs = logical_or(*(differ(say(k, left), say(k, right)) for k in keys))
        initial = [t for t in touches if t.in_init and t.writes]
        for one in initial:
            for other in touches:
                inside, a = one.at(both, left, self.side)
                inside, b = other.at(inside, right, self.side)
                if a is None or b is None or not self.asking.never(inside, differs, *meeting(a, b)):
                    return False
        return True

    def _instance(self, scope: InitScope, env: Env, scene: Scene) -> tuple[Scene, Env | None]:
        """One visit of the block: the loops on the way as coordinates, its variables over them."""
        way, _ = steps(scope)
        for step in way:
            match step.stmt:
                case For(var=var, start=start, extent=extent) as loop:
                    shared, scene = enter(loop, say(start, env), say(extent, env), scene, self.side.facts)
                    env = bind(env, var, shared)
                case Let(var=var, value=value):
                    if not is_speakable(say(value, env)):
                        return scene, None
                    env = bind(env, var, say(value, env))
                case Block(iter_vars=iter_vars):
                    for iter_var in iter_vars:
                        if not is_speakable(say(iter_var.binding, env)):
                            return scene, None
                        env = bind(env, iter_var.var, say(iter_var.binding, env))
                case _:
                    pass
        block, _ = block_of(scope)
        for condition in domains(block):
            scene = where(scene, say(condition, env))
        return scene, env

    # -- in the first iteration -------------------------------------------------------------------------------------------

    def check_guarded(self, scope: InitScope, item: Item, scene: Scene) -> None:
        """Raises Mismatch unless each result's first executed update is the one with all repeating loops at their start."""
        block, _ = block_of(scope)
        self._check_alone(scope, block, scope.path[0])
        for parent, child in pairwise(scope.path):
            if isinstance(parent, Seq) and sum(s is child for s in parent.body) > 1:
                raise Mismatch(f"block {block.name} stands in its reduction more than once")
        plain = {v.binding for v in block.iter_vars if v.kind is not IterKind.REDUCE}
        for loop in (s for s in scope.path if isinstance(s, For)):
            if loop.var.name in scope.spatial and loop.var not in plain:
                raise Mismatch(f"no variable of block {block.name} is bound to loop {loop.var.name} alone")
        way, _ = steps(scope)
        problem = self._skipped(scope, way, item.env, scene)
        if problem is not None:
            raise Mismatch(f"the init of block {block.name} may not wait for the first iteration ({item.place}): {problem}")

    def _skipped(self, scope: InitScope, way: Sequence[Step], env: Env, scene: Scene) -> str | None:
        """Why the visit with all repeating loops at their start may not be an executed update, or None."""
        repeats = repeating(scope)
        for step in way[:-1]:
            match step.stmt:
                case For(var=var, start=start, extent=extent) as loop:
                    first, size = say(start, env), say(extent, env)
                    if not (is_speakable(first) and is_speakable(size)):
                        return f"the range of loop {var.name} depends on data"
                    if any(loop is other for other in repeats):
                        if not self.asking.always(scene, at_least(size, 1)):
                            return f"loop {var.name} may run no iteration"
                        env = bind(env, var, first)
                    elif not step.told:
                        return f"the range of loop {var.name} depends on the loops of its reduction"
                    else:
                        shared, scene = enter(loop, first, size, scene, self.side.facts)
                        env = bind(env, var, shared)
                case IfThenElse(condition=condition):
                    if not step.told:
                        return "a branch around it depends on data or on the reduction"
                    scene = where(scene, say(condition, env), step.then)
                case Let(var=var, value=value):
                    scene, env = self._let(var, value, env, scene)
                case Block(iter_vars=iter_vars, where=guard):
                    for iter_var in iter_vars:
                        scene, env = self._let(iter_var.var, iter_var.binding, env, scene)
                    if not step.told:
                        return "a guard around it depends on data or on the reduction"
                    scene = where(scene, say(guard, env))
                case _:
                    pass
        return self._guard_holds(scope, env, scene)

    def _guard_holds(self, scope: InitScope, env: Env, scene: Scene) -> str | None:
        block, _ = block_of(scope)
        for iter_var in block.iter_vars:
            scene, env = self._let(iter_var.var, iter_var.binding, env, scene)
        for condition in domains(block):
            scene = where(scene, say(condition, env))
        guard = say(block.where, env)
        if not reads_nothing(guard) or not self.asking.always(scene, guard):
            return "the block's own guard may skip a result's first update"
        return None

    def _let(self, var: Var, value: Expr, env: Env, scene: Scene) -> tuple[Scene, Env]:
        said = say(value, env)
        if is_speakable(said):
            return scene, bind(env, var, said)
        unknown = Var(shared_name(var.name, scene, self.side.facts), var.dtype)
        inside = with_unknown(scene, unknown, said) if var.dtype.is_integer and var.dtype.lanes == 1 else scene
        return inside, bind(env, var, unknown)


def _steering(path: Sequence[Stmt]) -> Iterator[Expr]:
    """What decides in the course of a reduction what is run."""
    for stmt in path:
        match stmt:
            case For(start=start, extent=extent):
                yield from (start, extent)
            case IfThenElse(condition=condition):
                yield condition
            case Let(value=value):
                yield value
            case Block(iter_vars=iter_vars, where=guard):
                yield guard
                yield from (e for v in iter_vars for e in (v.binding, v.domain.start, v.domain.extent))
            case _:
                pass


def _beside(path: Sequence[Stmt]) -> Iterator[Stmt]:
    """Statements that run in the same reduction beside the block."""
    for parent, child in pairwise(path):
        yield from (node for node in children(parent) if isinstance(node, Stmt) and node is not child)


def _bound(path: Sequence[Stmt]) -> frozenset[Var]:
    """The variables that statements on the way bind."""
    found: set[Var] = set()
    for stmt in path:
        match stmt:
            case For(var=var) | Let(var=var):
                found.add(var)
            case Block(iter_vars=iter_vars):
                found |= {v.var for v in iter_vars}
            case _:
                pass
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Touch:
    """A load or store of a block: its indices as written, and what is bound around it inside the block."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    loops: tuple[For, ...]
    values: tuple[tuple[Var, Expr], ...]
    writes: bool
    in_init: bool = False

    def at(self, scene: Scene, env: Env, side: Side) -> tuple[Scene, Cells | None]:
        """The access in one instance of the block; None where data decides which cell it is."""
        for loop in self.loops:
            shared, scene = enter(loop, say(loop.start, env), say(loop.extent, env), scene, side.facts)
            env = bind(env, loop.var, shared)
        for var, value in self.values:
            env = bind(env, var, say(value, env))
        indices = tuple(say(i, env) for i in self.indices)
        if indices and indices[-1].dtype.lanes > 1:
            dtype = indices[-1].dtype.element
            lane = Var(shared_name("lane", scene, side.facts), dtype)
            scene = scene.inside(Dim(lane, const(0, dtype), const(indices[-1].dtype.lanes, dtype), ForKind.SERIAL, lane=True))
            try:
                indices = (*indices[:-1], in_lane(indices[-1], lane))
            except Inexpressible:
                return scene, None
        told = all(is_speakable(i) for i in indices)
        buffer = say_buffer(self.buffer, env)
        return scene, Cells(buffer, indices) if told else None


def _touches(node: Node, loops: tuple[For, ...], values: dict[Var, Expr], in_init: bool = False) -> Iterator[_Touch]:
    match node:
        case For():
            loops = (*loops, node)
        case Let(var=var, value=value):
            values = {**values, var: value}
        case Block(iter_vars=iter_vars):
            values = {**values, **{v.var: v.binding for v in iter_vars}}
        case BufferStore(buffer=buffer, indices=indices):
            yield _Touch(buffer, indices, loops, tuple(values.items()), True, in_init)
        case BufferLoad(buffer=buffer, indices=indices):
            yield _Touch(buffer, indices, loops, tuple(values.items()), False, in_init)
        case _:
            pass
    for child in children(node):
        if not isinstance(child, Buffer):
            yield from _touches(child, loops, values, in_init)


def _plainly_apart(touches: Sequence[_Touch], varying: Sequence[Var]) -> bool:
    """Whether each variable that tells results apart is an index by itself, on one axis of every access, through one view."""
    first = touches[0]
    if first.buffer.strides or any(t.buffer != first.buffer for t in touches):
        return False
    shared = [i for axis, i in enumerate(first.indices) if all(t.indices[axis] == i for t in touches)]
    return all(v in shared for v in varying)
