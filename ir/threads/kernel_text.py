"""What every thread of a kernel runs: the kernel's text with one index for each thread axis in place of thread loops,
and with blocks written out.

Two loops that are bound to one thread axis have one index: they are not a product. Where the second has fewer
iterations than the axis has threads, the others do nothing there. A reduction over a thread axis is left as one
statement that all threads along it run together, in any order (`Across`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import TRUE, Binary, Expr, FloatImm, IntImm, Var, equal, widen
from layoutproof.ir.intrinsics import Assume, OpaqueCall, Reducer, StringImm
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.semantics import max_finite
from layoutproof.ir.stmt import (
    NOTHING,
    Allocate,
    AttrStmt,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    IterKind,
    Let,
    Seq,
    Stmt,
    body_of,
    seq,
)
from layoutproof.ir.threads.async_calls import ASYNC_CALLS, ASYNC_KEYS, NotACopy, as_attributes
from layoutproof.ir.threads.axes import Axis, thread_loops
from layoutproof.ir.threads.dot_products import with_dot_products
from layoutproof.ir.threads.tiles import NotATile, Tiles, View, joined_in, written_out
from layoutproof.ir.visit import (
    bound_variables,
    free_variables,
    loads_in,
    map_children,
    replace_buffers,
    stores_in,
    substitute,
    take_fresh,
)

SYNC = "tvm_storage_sync"
_BLOCK_WIDE = ((StringImm("shared"),), (StringImm("shared.dyn"),))  # a barrier of a warp joins its threads only
_ALLREDUCE = "tvm_thread_allreduce"
_REDUCE_SCOPE = "reduce_scope"


def is_sync(node: object) -> bool:
    """Whether a statement is a barrier."""
    return isinstance(node, Evaluate) and isinstance(node.value, OpaqueCall) and node.value.function == SYNC


class NotSequential(Exception):
    """A kernel that is not written as a program with parallel loops, and why."""

    def __init__(self, reason: str, stmt: Stmt) -> None:
        super().__init__(reason)
        self.reason = reason
        self.stmt = stmt


@dataclass(frozen=True, slots=True, eq=False)
class Across(Stmt):
    """`body` once for each thread along `axes` (tags), one after the other, in an order that is not fixed."""

    body: Stmt
    axes: tuple[str, ...]


@dataclass(slots=True)
class Kernel:
    """A kernel as its threads run it: axes by tag, outer ones first, what it allocates, its statements."""

    axes: dict[str, Axis]
    body: Stmt = NOTHING
    memories: list[Buffer] = field(default_factory=list[Buffer])
    syncs: bool = False
    asynchronous: bool = False
    # The tiles of each memory of fragments, and how tensor instructions join floats, in an order that is not fixed.
    tiles: dict[Var, int] = field(default_factory=dict[Var, int])
    joins: set[BinaryOp] = field(default_factory=set[BinaryOp])
    # The axes of virtual threads along which each has a copy of a memory, whatever its scope: all of them if a block
    # allocates it, since TVM's UnifyThreadBinding makes one loop around the kernel of all that are bound to an axis,
    # before InjectVirtualThread copies what is inside. Of a statement, those around it: it comes between the two.
    homes: dict[Var, frozenset[str]] = field(default_factory=dict[Var, frozenset[str]])

    # The innermost loop in each iteration of which a memory is allocated anew, by its variable.
    within: dict[Var, Var] = field(default_factory=dict[Var, Var])

    @property
    def virtual(self) -> frozenset[str]:
        """The tags of its virtual threads."""
        return frozenset(axis.tag for axis in self.axes.values() if axis.is_virtual)


def read_kernel(root: Stmt, names: set[str], buffers: Mapping[Var, Buffer], earlier: Sequence[Buffer] = ()) -> Kernel:
    """The kernel whose outermost thread loop is `root`. `names` are taken, and grow. `buffers` are those outside of it,
    by data variable; `earlier` kernels of the function have allocated memory that this one has none of.

    Raises NotSequential.
    """
    kernel = Kernel(_axes(root, names))
    kernel.body = with_dot_products(_Reader(kernel, names, buffers, earlier).read(root, {}), names)
    return kernel


def _axes(root: Stmt, names: set[str]) -> dict[str, Axis]:
    inside = set(bound_variables(root))
    loops: dict[str, list[For]] = {}
    for loop in thread_loops(root):
        assert loop.thread is not None
        loops.setdefault(loop.thread, []).append(loop)
    axes = {}
    for tag, found in loops.items():
        extent = _extent(tag, found)
        if set(free_variables(extent)) & inside:
            raise NotSequential(f"the number of threads on {tag} changes inside the kernel", found[0])
        name = take_fresh(tag.replace(".", "_"), names)
        axes[tag] = Axis(tag, Var(name, extent.dtype), extent)
    return axes


def _extent(tag: str, loops: Sequence[For]) -> Expr:
    """The number of threads on an axis: what its loops agree on, or the largest of several constants."""
    widest = max((loop.extent for loop in loops), key=lambda extent: extent.dtype.bits)
    extents = [widen(loop.extent, widest.dtype) for loop in loops]
    constants = [extent.value for extent in extents if isinstance(extent, IntImm)]
    if len(constants) == len(extents):
        return IntImm(max(constants), widest.dtype)
    if any(extent != extents[0] for extent in extents):
        raise NotSequential(f"loops that are bound to {tag} differ in length, and are not constant", loops[0])
    return extents[0]


class _Reader:
    """Writes a kernel out. `values` gives, for variables of thread loops and blocks, what they are."""

    def __init__(
        self, kernel: Kernel, names: set[str], parameters: Mapping[Var, Buffer], earlier: Sequence[Buffer]
    ) -> None:
        self.kernel = kernel
        self.parameters = parameters
        self.names = names
        self.earlier = earlier
        self.reducer: Reducer | None = None
        self.virtual: frozenset[str] = frozenset()
        self.loops: list[Var] = []

    def read(self, stmt: Stmt, values: Mapping[Var, Expr]) -> Stmt:
        """A statement, and those in it, written out."""
        match stmt:
            case For(kind=ForKind.THREAD_BINDING):
                return self._thread_loop(stmt, values)
            case BufferStore():
                return substitute(stmt, values)
            case Allocate(buffer=buffer, body=body):
                return self.read(self._owned(buffer, body, values, self.virtual), values)
            case Block():
                return self._block(stmt, values)
            case AttrStmt():
                return self._attribute(stmt, values)
            case Evaluate(value=value):
                return self._evaluate(stmt, value, values)
            case DeclBuffer(buffer=buffer, body=body):
                return self.read(replace_buffers(body, {buffer: self._whole(buffer, stmt)}), values)
            case _:
                return self._structure(stmt, values)

    def _structure(self, stmt: Stmt, values: Mapping[Var, Expr]) -> Stmt:
        match stmt:
            case Seq(body=body):
                return seq(*(self.read(s, values) for s in body))
            case For(start=start, extent=extent, body=body):
                bounds = substitute(start, values), substitute(extent, values)
                self.loops.append(stmt.var)
                inner = self.read(body, values)
                self.loops.pop()
                return replace(stmt, start=bounds[0], extent=bounds[1], body=inner)
            case IfThenElse(condition=condition, then=then, otherwise=otherwise):
                other = self.read(otherwise, values) if otherwise is not None else None
                return replace(
                    stmt, condition=substitute(condition, values), then=self.read(then, values), otherwise=other
                )
            case Let(value=value, body=body):
                return replace(stmt, value=substitute(value, values), body=self.read(body, values))
            case _:
                raise NotSequential(f"a {type(stmt).__name__} in a kernel", stmt)

    def _thread_loop(self, loop: For, values: Mapping[Var, Expr]) -> Stmt:
        axis = self.kernel.axes[str(loop.thread)]
        index = widen(axis.index, loop.var.dtype)
        start, extent = substitute(loop.start, values), substitute(loop.extent, values)
        value = index if start == IntImm(0, start.dtype) else index + start
        around = self.virtual
        self.virtual |= {axis.tag} if axis.is_virtual else frozenset()
        body = self.read(loop.body, {**values, loop.var: value})
        self.virtual = around
        if widen(extent, axis.extent.dtype) == axis.extent:
            return body
        return IfThenElse(index < extent, body, span=loop.span)

    def _block(self, block: Block, values: Mapping[Var, Expr]) -> Stmt:
        bound = {v.var: substitute(v.binding, values) for v in block.iter_vars}
        inside = {**values, **bound}
        body = self._through_views(block) if block.match_buffers else body_of(block)
        for buffer in block.alloc_buffers:
            body = self._owned(buffer, body, inside, self.kernel.virtual)
        body = self.read(body, inside)
        if block.where != TRUE:
            body = IfThenElse(substitute(block.where, inside), body, span=block.span)
        along = [self._tags(bound[v.var]) for v in block.iter_vars if v.kind is IterKind.REDUCE]
        tags = [tag for tag in self.kernel.axes if any(tag in found for found in along)]
        tags = [tag for tag in tags if not self._apart(body, tag)]
        if block.init is None or not tags:
            return body  # without a start there is nothing to join to: each thread adds to what is its own
        if any(
            tag in self._tags(bound[v.var]) for v in block.iter_vars if v.kind is not IterKind.REDUCE for tag in tags
        ):
            raise NotSequential(f"block {block.name} reduces along a thread axis that its other variables use", block)
        return Across(body, tuple(tags), span=block.span)

    def _through_views(self, block: Block) -> Stmt:
        """The body of a block whose views are written out, and with them the tensor instructions on them."""
        try:
            views = [View.of(match) for match in block.match_buffers]
            tiles = Tiles({view.buffer.data: view for view in views}, self.kernel.tiles, self.names)
            by_buffer = {view.buffer: view for view in views}
            body = written_out(body_of(block), tiles, by_buffer)
        except NotATile as problem:
            raise NotSequential(f"block {block.name}: {problem}", block) from problem
        left = {name for view in views for name in view.names} & set(free_variables(body))
        if left:
            raise NotSequential(f"block {block.name} uses {min(v.name for v in left)} of a view", block)
        self.kernel.joins |= joined_in(body_of(block))
        return body

    def _apart(self, body: Stmt, tag: str) -> bool:
        """Whether each thread along an axis stores to cells of its own, so that nothing is joined along it."""
        return all(any(tag in self._tags(index) for index in store.indices) for store in stores_in(body))

    def _tags(self, value: Expr) -> set[str]:
        used = set(free_variables(value))
        return {tag for tag, axis in self.kernel.axes.items() if axis.var in used}

    def _owned(self, buffer: Buffer, body: Stmt, values: Mapping[Var, Expr], home: frozenset[str]) -> Stmt:
        """`body`, in which the kernel owns a buffer that is allocated around it; `home`: see `Kernel.homes`."""
        mine = without_gaps(replace(buffer, shape=tuple(substitute(extent, values) for extent in buffer.shape)))
        others = (*self.earlier, *self.kernel.memories)
        if any(known.name == mine.name or known.data == mine.data for known in others):
            data = Var(take_fresh(buffer.data.name, self.names), buffer.data.dtype)
            mine = replace(mine, name=take_fresh(buffer.name, self.names), data=data)
            body = substitute(replace_buffers(body, {buffer: mine}), {buffer.data: data})  # calls name it by its data
        self.kernel.memories.append(mine)
        self.kernel.homes[mine.data] = home
        if self.loops:
            self.kernel.within[mine.data] = self.loops[-1]
        return body if mine == buffer else replace_buffers(body, {buffer: mine})

    def _whole(self, view: Buffer, stmt: Stmt) -> Buffer:
        """The kernel's own memory of which a view is another name."""
        for known in self.kernel.memories:
            if replace(known, name=view.name) == replace(view, scope=known.scope):
                return known
        raise NotSequential(f"{view.name} is another view of memory in a kernel", stmt)

    def _attribute(self, stmt: AttrStmt, values: Mapping[Var, Expr]) -> Stmt:
        if stmt.key == _REDUCE_SCOPE and isinstance(stmt.target, Reducer):
            around, self.reducer = self.reducer, stmt.target
            body = self.read(stmt.body, values)
            self.reducer = around
            return body
        if stmt.key in ASYNC_KEYS:
            self.kernel.asynchronous = True
            return replace(stmt, value=substitute(stmt.value, values), body=self.read(stmt.body, values))
        if stmt.key.startswith("async"):
            raise NotSequential(f"asynchronous copies ({stmt.key}) in a kernel", stmt)
        return self.read(stmt.body, values)  # remarks for code generation

    def _evaluate(self, stmt: Evaluate, value: Expr, values: Mapping[Var, Expr]) -> Stmt:
        if isinstance(value, Assume):
            return substitute(stmt, values)
        if isinstance(value, OpaqueCall) and is_sync(stmt):
            if value.arguments[:1] not in _BLOCK_WIDE:
                raise NotSequential("a barrier that is not one of the whole block", stmt)
            self.kernel.syncs = True
            return stmt
        if isinstance(value, OpaqueCall) and value.function == _ALLREDUCE and self.reducer is not None:
            return self._all_reduce(stmt, substitute(value, values), self.reducer)
        if isinstance(value, OpaqueCall) and value.function in ASYNC_CALLS:
            return self._asynchronous(stmt, substitute(value, values))
        if isinstance(value, OpaqueCall):
            raise NotSequential(f"{value.function} in a kernel, which is opaque", stmt)
        # What is evaluated for nothing may still fault, or read what another thread writes.
        return NOTHING if isinstance(value, IntImm | StringImm) else substitute(stmt, values)

    def _asynchronous(self, stmt: Evaluate, call: OpaqueCall) -> Stmt:
        self.kernel.asynchronous = True
        try:
            return as_attributes(stmt, call, {**self.parameters, **{b.data: b for b in self.kernel.memories}})
        except NotACopy as problem:
            raise NotSequential(str(problem), stmt) from problem

    def _all_reduce(self, stmt: Evaluate, call: OpaqueCall, reducer: Reducer) -> Stmt:
        """`tvm_thread_allreduce(n, values..., condition, results..., axes...)`: the results, of all threads along the
        axes whose condition holds.
        """
        number = len(reducer.identities)
        values, condition = call.arguments[1 : 1 + number], call.arguments[1 + number]
        results, indices = call.arguments[2 + number : 2 + 2 * number], call.arguments[2 + 2 * number :]
        loads = [result for result in results if isinstance(result, BufferLoad)]
        tags = [tag for tag, axis in self.kernel.axes.items() if any(_is_index(axis, index) for index in indices)]
        known = len(tags) + sum(isinstance(index, IntImm) for index in indices)
        if len(loads) != number or known != len(indices) or len({place.buffer.data for place in loads}) != number:
            raise NotSequential("a reduction over threads of another form", stmt)
        if number > 1 and not all(map(self._is_owned, values)):
            raise NotSequential("a reduction over threads of tuples without what they start from in each", stmt)
        names = dict(zip((*reducer.left, *reducer.right), (*loads, *values), strict=True))
        update = self._joined(loads, [substitute(result, names) for result in reducer.results], stmt)
        joined = reducer.results[0]
        if number == 1 and isinstance(joined, Binary) and not _is_neutral(joined.op, reducer.identities[0]):
            raise NotSequential("a reduction over threads from what is not neutral, which they may leave out", stmt)
        first = [equal(axis.index, IntImm(0, axis.var.dtype)) for axis in map(self.kernel.axes.__getitem__, tags)]
        pairs = zip(loads, reducer.identities, strict=True)
        start = seq(*(BufferStore(place.buffer, place.indices, value, span=stmt.span) for place, value in pairs))
        for condition_ in reversed(first):
            start = IfThenElse(condition_, start, span=stmt.span)
        guarded = update if condition == TRUE else IfThenElse(condition, update, span=stmt.span)
        return Across(seq(start, guarded), tuple(tags), span=stmt.span)

    def _is_owned(self, value: Expr) -> bool:
        """Whether a value is loaded from memory of the kernel. A tuple there is started before anything is joined to
        it, or it is not understood; then starting it once more changes nothing, and nor does it if threads do not.
        """
        own = {buffer.data for buffer in self.kernel.memories}
        return isinstance(value, BufferLoad) and (value.buffer.data in own or value.buffer.scope != "global")

    def _joined(self, places: Sequence[BufferLoad], results: Sequence[Expr], stmt: Stmt) -> Stmt:
        """The stores of results, each of which is of what all places hold before."""
        data = {place.buffer.data for place in places}
        others = (
            {load.buffer.data for load in loads_in(result)} & data - {place.buffer.data}
            for place, result in zip(places, results, strict=True)
        )
        if not any(others):
            pairs = zip(places, results, strict=True)
            return seq(*(BufferStore(place.buffer, place.indices, e, span=stmt.span) for place, e in pairs))
        joined = [
            Var(take_fresh(f"joined_{place.buffer.name}", self.names), e.dtype)
            for place, e in zip(places, results, strict=True)
        ]
        body = seq(*(BufferStore(p.buffer, p.indices, v, span=stmt.span) for p, v in zip(places, joined, strict=True)))
        for var, result in reversed(list(zip(joined, results, strict=True))):
            body = Let(var, result, body, span=stmt.span)
        return body


def in_loops(stmt: Stmt, within: Mapping[Var, Var]) -> Stmt:
    """Memory that is allocated anew in each iteration of a loop, inside that loop: what it held before is lost."""

    def moved(node: Node) -> Node:
        rebuilt = map_children(node, moved)
        loop = within.get(rebuilt.buffer.data) if isinstance(rebuilt, Allocate) else None
        if not isinstance(rebuilt, Allocate) or loop is None:
            return rebuilt
        memory = rebuilt

        def placed(inner: Node) -> Node:
            if isinstance(inner, For) and inner.var == loop:
                return replace(inner, body=replace(memory, body=inner.body))
            return map_children(inner, placed)

        return placed(memory.body)

    result = moved(stmt)
    assert isinstance(result, Stmt)
    return result


def without_gaps(buffer: Buffer) -> Buffer:
    """Memory of a kernel whose elements do not overlap, without the gaps that its strides leave."""
    strides, shape = (
        [e.value if isinstance(e, IntImm) else 0 for e in part] for part in (buffer.strides, buffer.shape)
    )
    apart = all(
        outer >= inner * extent > 0 for outer, inner, extent in zip(strides, strides[1:], shape[1:], strict=False)
    )
    return replace(buffer, strides=()) if strides and apart and strides[-1] > 0 else buffer


def _is_neutral(op: BinaryOp, identity: Expr) -> bool:
    """Whether joining a number changes nothing; of a float that no finite number is beyond, nothing finite."""
    if not isinstance(identity, IntImm | FloatImm) or op not in (BinaryOp.MIN, BinaryOp.MAX):
        numbers = {BinaryOp.ADD: 0, BinaryOp.MUL: 1}
        return op not in numbers or (isinstance(identity, IntImm | FloatImm) and identity.value == numbers[op])
    dtype = identity.dtype
    low, high = (-max_finite(dtype), max_finite(dtype)) if dtype.is_float else (dtype.min_int, dtype.max_int)
    return identity.value <= low if op is BinaryOp.MAX else identity.value >= high


def _is_index(axis: Axis, index: Expr) -> bool:
    return set(free_variables(index)) == {axis.var}
