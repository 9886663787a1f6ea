"""A whole schedule for one layout: all buffers that a block touches, pad values, loops to match, and the branches that
go. Every step is proved; what is not proved is left out, and said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from itertools import islice

from layoutproof.ir import codes as ir_codes
from layoutproof.ir.diagnostic import wrong_type
from layoutproof.ir.expr import FALSE
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import IterKind
from layoutproof.ir.visit import free_variables
from layoutproof.lowering.arith.known_facts import assumed_of_constants
from layoutproof.lowering.layout.block_layouts import Layouts, Touched, layouts_of_block, touched_by
from layoutproof.lowering.layout.pad_value import PadText
from layoutproof.lowering.layout.transform_layout import TransformLayout
from layoutproof.lowering.loops.nest import GuardKind, guard_sites
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute
from layoutproof.lowering.loops.tiling import Reorder, Split
from layoutproof.lowering.padding.value_search import candidate_values
from layoutproof.lowering.passes.base import MapLike, Pass, map_text
from layoutproof.lowering.passes.find import find_buffer
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.lowering.suggest.loops_to_match import LoopPlan, loop_plan
from layoutproof.lowering.suggest.suggestion import Obstacle, Suggestion
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.values.fast_math import ALL, FastMathSet

UNDEF = "T.undef()"
MOST_TRIES = 16
"""How many combinations of pad values are tried."""

Pads = Mapping[str, PadText]


def suggest(
    program: PrimFunc | Schedule,
    block: str,
    layout: MapLike,
    *,
    layouts: Mapping[str, MapLike] | None = None,
    allowed: FastMathSet = ALL,
    tell: Callable[[str], None] | None = None,
) -> Suggestion:
    """A schedule that stores everything that a block touches in one layout, each step proved.

    `layout` is `NHWC8c`, `NHWC->NCHW8c`, or a map in any notation, as an `IndexMap`, a function or text; `layouts` has
    those of single buffers by name. After
    the steps of a schedule that is given, buffers are stored so, the loops of the block are split and ordered to match,
    and its branches against padding are removed, with the pad values that this needs: the first found, bit for bit
    before under fast-math assumptions (`allowed`; a schedule has its own). What could not be proved is left out and is
    among the obstacles. `tell` is called with what is tried next.

    Raises LayoutproofError for an unknown block, and for a layout that is for no buffer of it; IllegalTransform where a
    buffer cannot be stored so.
    """
    start = program.fork() if isinstance(program, Schedule) else Schedule(program, allowed=allowed)
    touched = touched_by(start.func, block)
    if not (layouts is None or isinstance(layouts, Mapping)):
        raise wrong_type(ir_codes.ARGUMENT, "suggest, argument 'layouts'", layouts, "a dictionary by buffer")
    given = {name: _text(each) for name, each in (layouts or {}).items()}
    maps = layouts_of_block(start.func, block, _text(layout), given)
    search = _Search(start, touched, maps, loop_plan(start.func, touched, maps), tell if tell is not None else _silent)
    return search.suggestion(_text(layout))


def _text(layout: MapLike) -> str:
    """A layout as text."""
    return map_text(layout, lambda: len(signature(layout).parameters) if callable(layout) else 0)


@dataclass(frozen=True, slots=True)
class _Padded:
    """The buffers with padding: those that the block writes, and operands; of the latter, those along a sum."""

    written: tuple[str, ...]
    operands: tuple[str, ...]
    summed: tuple[str, ...]


@dataclass(slots=True)
class _Search:
    """One block with its layouts and its loops, on a schedule that stays as it is."""

    start: Schedule
    touched: Touched
    layouts: Layouts
    plan: LoopPlan
    tell: Callable[[str], None]

    def suggestion(self, layout: str) -> Suggestion:
        """The best schedule that was found."""
        padded = self.padded()
        self.tell("layouts and loops")
        plain = self.with_loops({})
        obstacles = list(plain.obstacles)
        if not _guards(plain.schedule.func, self.touched.block.name, self.before()):
            return self.told(layout, plain.schedule, {}, obstacles)
        best: tuple[Schedule, Pads] | None = None
        for pads in islice(self.pads(padded), MOST_TRIES):
            found = self.without_branches(pads)
            if found is not None and (best is None or len(_words(found)) < len(_words(best[0]))):
                best = found, pads
            if best is not None and not _words(best[0]):
                break
        if best is not None:
            return self.told(layout, *best, obstacles)
        obstacles.append(self.stopped(list(islice(self.pads(padded), MOST_TRIES))))
        return self.told(layout, plain.schedule, {}, obstacles)

    def told(self, layout: str, schedule: Schedule, pads: Pads, obstacles: Sequence[Obstacle]) -> Suggestion:
        new = len(self.start.steps)
        return Suggestion(
            schedule, new, self.touched.block.name, layout, self.layouts, dict(pads), (*self.whole_loops(), *obstacles)
        )

    def before(self) -> frozenset[str]:
        """The guards that the block has already."""
        return frozenset(str(site) for site in guard_sites(self.start.func, self.touched.block.name))

    def whole_loops(self) -> Iterator[Obstacle]:
        """The loops that could not be split."""
        for name, why in self.plan.kept.items():
            yield Obstacle(f"the loop of {name} is not split: {why}")

    def padded(self) -> _Padded:
        """Which buffers get padding."""
        names = [name for name in self.layouts if self.has_padding(name)]
        kinds = {i.var: i.kind for i in self.touched.block.iter_vars}
        index = {access.buffer.name: access.index for access in self.touched.all}
        written = {access.buffer.name for access in self.touched.written}
        summed = [
            name
            for name in names
            if name not in written
            and any(kinds.get(v) is IterKind.REDUCE for each in index.get(name, ()) for v in free_variables(each))
        ]
        operands = tuple(name for name in names if name not in written)
        return _Padded(tuple(name for name in names if name in written), operands, tuple(summed))

    def has_padding(self, name: str) -> bool:
        """Whether a buffer's map leaves cells unused."""
        func = self.start.func
        report = check_map(self.layouts[name], find_buffer(func, name).shape, assumed_of_constants(func))
        return report.padding.predicate is None or report.padding.predicate != FALSE

    def pads(self, padded: _Padded) -> Iterator[Pads]:
        """Combinations of pad values, those that ask least of callers first.

        The padding of results may hold anything. So may that of operands which no sum reads; the others hold one value
        all together: the identity of a reduction first.
        """
        anything: dict[str, PadText] = dict.fromkeys(padded.written, UNDEF)
        if not padded.operands:
            yield anything
            return
        if not padded.summed:
            yield anything | dict.fromkeys(padded.operands, UNDEF)
        values = self.values(padded.summed or padded.operands)
        free = [name for name in padded.operands if name not in padded.summed]
        if padded.summed and free:
            yield from (anything | dict.fromkeys(free, UNDEF) | dict.fromkeys(padded.summed, v) for v in values)
        yield from (anything | dict.fromkeys(padded.operands, value) for value in values)
        if padded.summed:
            yield anything | dict.fromkeys(padded.operands, UNDEF)

    def values(self, names: Sequence[str]) -> list[PadText]:
        """The values to try, in the order of `pad-values`; those that each of the buffers can hold."""
        scope = self.touched.block
        tried = [
            [c.pad for c in candidate_values(scope, find_buffer(self.start.func, name)) if c.pad not in (None, UNDEF)]
            for name in names
        ]
        first, *rest = tried
        # 0.0 and -0.0 are equal and are two values; 0 and 0.0 are of two types.
        return [v for v in first if all(repr(v) in map(repr, others) for others in rest)]

    def without_branches(self, pads: Pads) -> Schedule | None:
        """The whole schedule with these pad values, where its branches go; else None."""
        operands = [(name, pad) for name, pad in pads.items() if pad != UNDEF]
        self.tell(", ".join(f"{name} padded with {pad}" for name, pad in operands) or "padding may hold anything")
        try:
            schedule = self.with_loops(pads).schedule
            self.remove_branches(schedule.attempt, schedule.func)
        except IllegalTransform:
            return None
        return schedule

    def stopped(self, tried: Sequence[Pads]) -> Obstacle:
        """Why the branches stay: what is not proved with the first pad values, and what would lift it."""
        what, pads = f"the branches of block {self.touched.block.name} stay", tried[0]
        try:
            schedule = self.with_loops(pads).schedule
            self.remove_branches(schedule.apply, schedule.func)
        except IllegalTransform as problem:
            return Obstacle(what, problem, dict(pads), self.lift(tried))
        return Obstacle(what, None, dict(pads), self.lift(tried))

    def lift(self, tried: Sequence[Pads]) -> str:
        """What would let the branches go: fast-math assumptions that were not allowed, else another computation."""
        free = self.start.fork()
        free.allowed = ALL
        if self.start.allowed != ALL:
            search = replace(self, start=free)
            for found in filter(None, map(search.without_branches, tried)):
                words = " ".join(sorted(_words(found)))
                return f"the branches go under the fast-math assumptions {words}: --strictness '{words}' allows them"
        operands = [name for name in tried[0] if name not in {a.buffer.name for a in self.touched.written}]
        if not operands:
            return "the branches can go where additional iterations leave what callers see as it is"
        values = ", ".join(dict.fromkeys(_shown(pads[name]) for pads in tried for name in operands))
        return (
            f"tried as padding of {', '.join(operands)}: {values}. With none of them is the result of block "
            f"{self.touched.block.name} proved to be unchanged by padding; transform_layout takes other values"
        )

    def remove_branches(self, take: Callable[[Pass], object], func: PrimFunc) -> None:
        """Remove the guards that are new, in one step."""
        block = self.touched.block.name
        take(RemoveBranchingThroughOvercompute(block, _guards(func, block, self.before())))

    def with_loops(self, pads: Pads) -> _Attempt:
        """The schedule with layouts and loops. Raises IllegalTransform where a buffer cannot be stored so."""
        schedule, obstacles = self.start.fork(), list[Obstacle]()
        block = self.touched.block.name
        touched = {access.buffer.name for access in self.touched.all}
        for name, index_map in self.layouts.items():
            where = block if name in touched else "root"
            schedule.apply(TransformLayout(where, name, index_map_text(index_map), pads.get(name)))
        for loop, factors in self.plan.splits.items():
            _try(schedule, Split(block, loop, factors), f"the loop {loop} is not split", obstacles)
        loops = [name for name in self.plan.order if name in schedule.get_loops(block)]
        if self.plan.splits and [name for name in schedule.get_loops(block) if name in loops] != loops:
            _try(schedule, Reorder(block, tuple(loops)), f"the loops of block {block} keep their order", obstacles)
        return _Attempt(schedule, tuple(obstacles))


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A schedule, and what is missing in it."""

    schedule: Schedule
    obstacles: tuple[Obstacle, ...]


def _silent(what: str) -> None:
    """Nothing is told."""


def _try(schedule: Schedule, transform: Pass, otherwise: str, obstacles: list[Obstacle]) -> None:
    """Apply a step that may be left out."""
    try:
        schedule.attempt(transform)
    except IllegalTransform:
        try:
            schedule.apply(transform)
        except IllegalTransform as problem:
            obstacles.append(Obstacle(otherwise, problem))


def _guards(func: PrimFunc, block: str, before: frozenset[str]) -> tuple[int, ...]:
    """The numbers of a block's guards that it did not have before: those against padding."""
    return tuple(
        number
        for number, site in enumerate(guard_sites(func, block))
        if site.kind in (GuardKind.AROUND, GuardKind.BLOCK) and not site.has_alternative and str(site) not in before
    )


def _words(schedule: Schedule) -> frozenset[str]:
    """The fast-math assumptions that the proofs of a schedule need."""
    return frozenset(word for step in schedule.steps for verdict in step.verdicts for word in verdict.strictness)


def _shown(pad: PadText) -> str:
    """A pad value in a sentence."""
    return "anything" if pad == UNDEF else str(pad)
