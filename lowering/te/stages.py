"""Stages: a schedule in terms of tensors and their axes, each step a proved step of the `Schedule` inside.

Source: TVM's RFC `buffer-physical-layout`: `s[B].transform_layout(f)` gives a tensor whose transformed axes the rest of
the schedule uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, For, IterKind
from layoutproof.ir.visit import free_variables, stores_in, walk
from layoutproof.lowering import codes
from layoutproof.lowering.arith.known_facts import assumed_of_constants, constants_of
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.loops.access import find_touch
from layoutproof.lowering.loops.nest import loops_of_block
from layoutproof.lowering.passes.find import all_buffers, find_block, find_buffer
from layoutproof.lowering.passes.illegal import IllegalTransform, refusing
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.lowering.te.create_prim_func import Program, computed_order, program_of
from layoutproof.lowering.te.tensor import Axis, Computed, Operation, Scheduled, Tensor
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.verdict.verdict import Status

MapLike = IndexMap | Callable[..., Any] | str


def create_schedule(
    outputs: Tensor | Operation | Sequence[Tensor | Operation],
    args: Sequence[Tensor | Var] | None = None,
    name: str = "main",
) -> ComputeSchedule:
    """A schedule of everything that the outputs are computed from.

    `args` are the parameters in order; by default the input tensors, in the order in which they are read, and then the
    outputs. Raises LayoutproofError as `create_prim_func` does.
    """
    given: list[Any] = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    tensors = [Tensor(each) if isinstance(each, Operation) else each for each in given]
    for each in tensors:
        if not isinstance(each, Tensor) or not isinstance(each.op, Computed):
            raise error(codes.TE_PARAMETERS, f"a schedule is made of tensors that are computed, not of {each!r}")
    if args is None:
        args = [*(t for t in computed_order(tensors) if not isinstance(t.op, Computed)), *dict.fromkeys(tensors)]
    return ComputeSchedule(program_of(args, name))


class ComputeSchedule:
    """The stages of a program. `schedule` has the program, its trace, its certificate and its kernels; `tensors` are
    its tensors in dependence order.
    """

    def __init__(self, program: Program) -> None:
        self.schedule = Schedule(program.func)
        self.tensors = program.tensors
        self._stages: dict[Operation, Stage] = {}
        for tensor in program.tensors:
            axes = (*tensor.op.axis, *tensor.op.reduce_axis)
            block = tensor.name if isinstance(tensor.op, Computed) else None
            self._stages[tensor.op] = Stage(self, tensor.name, block, {axis: program.loops[axis] for axis in axes})

    @property
    def func(self) -> PrimFunc:
        """The current program."""
        return self.schedule.func

    def __getitem__(self, tensor: Tensor | Operation) -> Stage:
        """The stage of a tensor, or of one that `transform_layout` made of it. Raises LayoutproofError for another
        program's.
        """
        op = tensor.op if isinstance(tensor, Tensor) else tensor
        stage = self._stages.get(op)
        if stage is None:
            names = ", ".join(dict.fromkeys(each.name for each in self._stages))
            raise error(codes.TE_STAGE, f"{tensor!r} has no stage in this schedule; available: {names}")
        return stage

    def cache_read(self, tensor: Tensor, reader: Tensor, scope: str = "global") -> Tensor:
        """A copy of a tensor that the stage of `reader` reads instead, with a stage of its own."""
        source, block = self[tensor], self[reader].block
        if block is None:
            raise error(codes.TE_STAGE, f"{reader.name} is given: it has no loops, and reads nothing")
        before = _blocks(self.func)
        self.schedule.cache_read(block, source.name, scope)
        return self._copy_stage(_blocks(self.func) - before)

    def cache_write(self, tensor: Tensor, scope: str = "global") -> Tensor:
        """The tensor that the stage writes from now on, with its loops; the tensor's own stage copies it."""
        stage = self[tensor]
        if stage.block is None:
            raise error(codes.TE_STAGE, f"{stage.name} is given: nothing here writes it")
        before, buffers = _blocks(self.func), {b.name for b in all_buffers(self.func)}
        self.schedule.cache_write(stage.block, stage.name, scope)
        (copy,) = _blocks(self.func) - before
        (buffer,) = (b for b in all_buffers(self.func) if b.name not in buffers)
        return stage.moved_to(buffer, copy)

    def _copy_stage(self, blocks: set[str]) -> Tensor:
        (block,) = blocks
        buffer = next(s.buffer for s in stores_in(find_block(self.func, block).body))
        axes = {_axis_of(loop, IterKind.SPATIAL): loop.var.name for loop in loops_of_block(self.func, block)}
        copy = Tensor(Scheduled(buffer.name, buffer.shape, buffer.dtype, tuple(axes), ()))
        self.set_stage(copy, Stage(self, buffer.name, block, axes))
        return copy

    def set_stage(self, made: Tensor, stage: Stage) -> None:
        """Set the stage of a derived tensor."""
        self._stages[made.op] = stage


def _blocks(func: PrimFunc) -> set[str]:
    return {n.name for n in walk(func.body) if isinstance(n, Block) and not n.is_root}


def _axis_of(loop: For, kind: IterKind) -> Axis:
    return Axis(loop.var.name, loop.var.dtype, loop.start, loop.extent, kind)


class Stage:
    """One tensor of a schedule: how it is stored, and the loops that compute it.

    `name` is its name in the program, `block` the block that writes it, None for an input. Every method either makes a
    proved step or raises and changes nothing: IllegalTransform for what is not proved, LayoutproofError for axes that
    the stage does not have.
    """

    def __init__(self, owner: ComputeSchedule, name: str, block: str | None, loops: dict[Axis, str]) -> None:
        self._owner = owner
        self._loops = loops
        self.name = name
        self.block = block

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The current axes of the stage, outermost first."""
        order = [loop.var.name for loop in self._nest()]
        there = [(order.index(name), axis) for axis, name in self._loops.items() if name in order]
        return tuple(axis for _, axis in sorted(there, key=lambda pair: pair[0]))

    def transform_layout(self, index_map: MapLike, pad_value: Any = None) -> Tensor:
        """Store the tensor by an index map, and visit it in that order: the axes of the returned tensor are the stage's
        new loops.

        Where the map leaves padding, the loops access it, and `pad_value` is its content (see
        `Schedule.transform_layout`). An input is expected in the new layout. Raises LayoutproofError for a map with
        padding and no pad value.
        """
        with refusing():
            buffer = find_buffer(self._func, self.name)
            self._check_padding(buffer, index_map, pad_value)
        if self.block is not None:
            axes = self._follow(self.block, index_map, pad_value)
        else:
            self._schedule.transform_layout(ROOT, self.name, index_map, pad_value)
            axes = {}
        names = self._names()
        left = {axis: name for axis, name in self._loops.items() if axis.kind is IterKind.REDUCE and name in names}
        self._loops = {**{axis: name for axis, name in axes.items() if name}, **left}
        stored = find_buffer(self._func, self.name)
        relaid = Tensor(Scheduled(self.name, stored.shape, stored.dtype, tuple(axes), tuple(left)))
        self._owner.set_stage(relaid, self)
        return relaid

    def split(self, axis: Axis, factor: int | None = None, nparts: int | None = None) -> tuple[Axis, Axis]:
        """Split an axis in two: the inner one of `factor`, or the outer one of `nparts` iterations."""
        if (factor is None) == (nparts is None):
            raise error(codes.TE_STAGE, f"splitting {axis.name} takes a factor or a number of parts, one of them")
        loop = self._loop(axis)
        position = self._names().index(loop)
        self._schedule.split(self._own_block(), loop, [nparts, factor])
        outer, inner = self._nest()[position : position + 2]
        return self._became(axis, outer), self._became(axis, inner)

    def fuse(self, *axes: Axis) -> Axis:
        """Fuse directly nested axes, named outermost first; the result is a reduction axis if one of them is."""
        loops = [self._loop(axis) for axis in axes]
        position = min((self._names().index(loop) for loop in loops), default=0)
        self._schedule.fuse(self._own_block(), loops)
        reduced = next((axis for axis in axes if axis.kind is IterKind.REDUCE), axes[0])
        fused = self._became(reduced, self._nest()[position])
        for axis in axes:
            self._loops.pop(axis, None)
        return fused

    def parallel(self, axis: Axis) -> None:
        """Run the iterations of an axis in parallel."""
        self._schedule.parallel(self._own_block(), self._loop(axis))

    def vectorize(self, axis: Axis) -> None:
        """Run the iterations of an axis as lanes of one vector."""
        self._schedule.vectorize(self._own_block(), self._loop(axis))

    def unroll(self, axis: Axis) -> None:
        """Unroll an axis."""
        self._schedule.unroll(self._own_block(), self._loop(axis))

    def reorder(self, *axes: Axis) -> None:
        """Put axes into this order, outermost first; the positions of others are unchanged."""
        self._schedule.reorder(self._own_block(), [self._loop(axis) for axis in axes])

    def tile(self, x: Axis, y: Axis, x_factor: int, y_factor: int) -> tuple[Axis, Axis, Axis, Axis]:
        """Split two axes and put the inner parts inside: `x_outer, y_outer, x_inner, y_inner`."""
        (x_outer, x_inner), (y_outer, y_inner) = self.split(x, x_factor), self.split(y, y_factor)
        self.reorder(x_outer, y_outer, x_inner, y_inner)
        return x_outer, y_outer, x_inner, y_inner

    def moved_to(self, buffer: Buffer, copy: str) -> Tensor:
        """Make the stage's block write another tensor, with its loops; this stage becomes the block `copy`."""
        kinds = {name: axis.kind for axis, name in self._loops.items()}
        axes = {_axis_of(loop, kinds[loop.var.name]): loop.var.name for loop in self._nest()}
        spatial, reduced = ([a for a in axes if (a.kind is IterKind.REDUCE) == wanted] for wanted in (False, True))
        cache = Tensor(Scheduled(buffer.name, buffer.shape, buffer.dtype, tuple(spatial), tuple(reduced)))
        self._owner.set_stage(cache, Stage(self._owner, buffer.name, self.block, axes))
        old = [axis for axis in self.axes if axis.kind is not IterKind.REDUCE]
        self.block = copy
        # A copy of what was computed by one loop for each axis has these axes too.
        loops = self._nest()
        own = old if len(old) == len(loops) else [_axis_of(loop, IterKind.SPATIAL) for loop in loops]
        self._loops = {axis: loop.var.name for axis, loop in zip(own, loops, strict=True)}
        return cache

    # --- helpers

    @property
    def _schedule(self) -> Schedule:
        return self._owner.schedule

    @property
    def _func(self) -> PrimFunc:
        return self._owner.schedule.func

    def _nest(self) -> tuple[For, ...]:
        return loops_of_block(self._func, self.block) if self.block is not None else ()

    def _own_block(self) -> str:
        if self.block is None:
            raise error(codes.TE_STAGE, f"{self.name} is given: it has no loops")
        return self.block

    def _names(self) -> list[str]:
        return [loop.var.name for loop in self._nest()]

    def _loop(self, axis: Axis) -> str:
        """The current loop of an axis."""
        found = self._loops.get(axis)
        if found is None or found not in self._names():
            there = ", ".join(each.name for each in self.axes)
            message = f"{_shown(axis)} is no axis of the stage {self.name} as it is now"
            raise error(codes.TE_STAGE, message, help=f"its axes are {there}" if there else "it has none")
        return found

    def _became(self, axis: Axis, loop: For) -> Axis:
        """The axis of a new loop, which replaces an old axis."""
        self._loops.pop(axis, None)
        new = _axis_of(loop, axis.kind)
        self._loops[new] = loop.var.name
        return new

    def _follow(self, block: str, index_map: MapLike, pad_value: Any) -> dict[Axis, str]:
        """Re-lay the tensor and its loops, both or neither: an axis for each physical axis, with its loop.

        Physical axes with one cell that all elements share have no loop, and an empty name.
        """
        self._schedule.transform_layout(block, self.name, index_map, pad_value)
        try:
            stored = find_buffer(self._func, self.name)
            with refusing():
                indices = find_touch(self._func, block, stored).index
            moving = [axis for axis, index in enumerate(indices) if free_variables(index)]
            self._schedule.sequential_buffer_access(block, self.name)
        except IllegalTransform:
            self._schedule.undo()
            raise
        # Loops over cells are in the order of the axes; those of the reduction are unchanged.
        reduced = {name for axis, name in self._loops.items() if axis.kind is IterKind.REDUCE}
        cells = [loop for loop in self._nest() if loop.var.name not in reduced]
        if len(cells) != len(moving):
            self._schedule.undo()
            self._schedule.undo()
            names = ", ".join(loop.var.name for loop in cells)
            raise error(
                codes.TE_STAGE,
                f"the loops {names} of {self.name} are not one for each of its {len(moving)} axes that they move along",
            )
        by_axis = dict(zip(moving, cells, strict=True))
        return dict(_cell_axis(self.name, axis, extent, by_axis.get(axis)) for axis, extent in enumerate(stored.shape))

    def _check_padding(self, buffer: Buffer, index_map: MapLike, pad_value: Any) -> None:
        """Raise LayoutproofError for padding without a pad value."""
        if pad_value is not None:
            return
        text = index_map if isinstance(index_map, str) else index_map_text(_as_map(index_map, buffer))
        report = check_map(
            parse_index_map(text, symbols=constants_of(self._func)), buffer.shape, assumed_of_constants(self._func)
        )
        # A map that is not injective is refused by the schedule, with two elements that would share a cell.
        if report.injective.status is Status.PROVED and report.bijective.status is not Status.PROVED:
            where = report.to_dict()["padding"]["predicate"]
            message = f"`{text}` leaves padding in {buffer.name}" + (f", where {where}" if where is not None else "")
            raise error(
                codes.TE_PADDING,
                message,
                buffer.span,
                help="say what it holds: pad_value=0, for one, or pad_value=undef(dtype)",
            )


def _as_map(index_map: IndexMap | Callable[..., Any], buffer: Buffer) -> IndexMap:
    return index_map if isinstance(index_map, IndexMap) else IndexMap.from_func(index_map, buffer.rank)


def _shown(given: object) -> str:
    return given.name if isinstance(given, Axis) else repr(given)


def _cell_axis(name: str, axis: int, extent: Expr, loop: For | None) -> tuple[Axis, str]:
    if loop is not None:
        return _axis_of(loop, IterKind.SPATIAL), loop.var.name
    return Axis(f"{name}_axis{axis}", extent.dtype, const(0, extent.dtype), extent, IterKind.SPATIAL), ""
