"""Layout changes as kernels that users call: `layoutproof.relayout`.

Their schedule is proved step by step: edges apart, tiles, threads. Steps that cannot be proved or applied are left out,
and the copy is slower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.ir.expr import Expr, IntImm, Var, const
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, For
from layoutproof.ir.visit import loops_of_stores, walk
from layoutproof.lowering.kernels.relayout_program import Relayout, plain_program, read_relayout
from layoutproof.lowering.kernels.relayout_tiles import Digit, choose_tile, cuts, digits_of, lies_straight, radices
from layoutproof.lowering.loops.nest import loops_of_block
from layoutproof.lowering.passes.find import find_block
from layoutproof.lowering.runtime.build_c import CKernel
from layoutproof.lowering.runtime.kernel import LoweredFunc
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.maps.check_map import MapLike, ShapeLike
from layoutproof.verify.maps.map_report import MapReport

if TYPE_CHECKING:
    from layoutproof.verify.certificate.certificate import Certificate


MOST_PARTS = 6
"""The largest number of nests that padded edges make of one."""
SMALLEST_PART = 8
"""A nest is cut further while it has at least one in so many of all cells."""
THREADED = 1 << 18
"""Bytes from which threads are worth starting."""


def schedule_copy(func: PrimFunc, width: int, *, threads: bool = True) -> Schedule:
    """The schedule of a plain copy program; `width` is that of an element in bytes, `threads` whether more than one may
    run.

    Raises IllegalTransform where it cannot be lowered.
    """
    plan = _Plan(Schedule(func), width, threads)
    plan.cut_into_digits()
    plan.set_edges_apart()
    for block in plan.blocks():
        plan.arrange_if_lowered(block)
    return plan.schedule


@dataclass(slots=True)
class _Plan:
    """A schedule in progress."""

    schedule: Schedule
    width: int
    threads: bool

    def blocks(self) -> list[str]:
        """The names of the blocks, in the order of the text."""
        return [n.name for n in walk(self.schedule.func.body) if isinstance(n, Block) and not n.is_root]

    def loops(self, block: str) -> tuple[For, ...]:
        """The loops around a block, outermost first."""
        return loops_of_block(self.schedule.func, block)

    def attempt(self, step: Callable[[], object]) -> bool:
        """Apply a step; whether it was proved and kept."""
        try:
            step()
        except IllegalTransform:
            return False
        return True

    def split(self, block: str, loop: str, factors: Sequence[int | None]) -> list[str]:
        """Split a loop; the names of the loops that it became, itself where it stayed."""
        position = [each.var.name for each in self.loops(block)].index(loop)
        if not self.attempt(lambda: self.schedule.split(block, loop, factors)):
            return [loop]
        return [each.var.name for each in self.loops(block)[position : position + len(factors)]]

    def cut_into_digits(self) -> None:
        """One loop for each digit of the indices."""
        for name in self.blocks():
            block = find_block(self.schedule.func, name)
            bindings = {i.var: i.binding for i in block.iter_vars}
            for variable, weights in radices(block).items():
                loop = bindings[variable]
                if isinstance(loop, Var):
                    inner = [b // a for a, b in zip((1, *weights), weights, strict=False)]
                    self.split(name, loop.name, [None, *reversed(inner)])

    def set_edges_apart(self) -> None:
        """Separate nests for padded edges of long runs, so that the runs are copied without guards. Shorter pieces keep
        their guards.
        """
        work = self.blocks()
        total = max((self.cells(name) for name in work), default=0)
        while work and len(self.blocks()) < MOST_PARTS:
            name = work.pop(0)
            if self.cells(name) * SMALLEST_PART < total:
                continue
            digits = self.digits(name) or ()
            if not lies_straight(digits, self.width):
                continue
            asked = {d.name for d in digits if d.guarded and d.write_step != 1}
            loops = self.loops(name)
            places = [cut for cut in set(cuts(find_block(self.schedule.func, name), loops)) if cut[0] in asked]
            for loop, at in sorted(places, key=lambda cut: (-_kept(cut, loops), *cut)):
                if self.cut(name, loop, at):
                    work += [name, f"{name}_rest"]
                    break

    def cells(self, block: str) -> int:
        """How often a block runs; 0 if unknown."""
        sizes = [loop.extent.value for loop in self.loops(block) if isinstance(loop.extent, IntImm)]
        return prod(sizes) if len(sizes) == len(self.loops(block)) else 0

    def cut(self, block: str, loop: str, at: int) -> bool:
        """Cut a nest at a position of one of its loops, which is moved outermost first."""
        names = [each.var.name for each in self.loops(block)]
        outermost = [loop, *names[: names.index(loop)]]
        if names[0] != loop and not self.attempt(lambda: self.schedule.reorder(block, outermost)):
            return False
        return self.attempt(lambda: self.schedule.partition(block, loop, at))

    # --- one nest

    def digits(self, block: str) -> tuple[Digit, ...] | None:
        """The loops of a block as digits, those that step most in what is written first."""
        lowered = self.schedule.lower()
        store = self.store_of(block, lowered)
        found = None if store is None else digits_of(lowered, store)
        if found is None or {d.name for d in found} != {loop.var.name for loop in self.loops(block)}:
            return None
        if all(d.write_step is not None for d in found):
            return tuple(sorted(found, key=lambda d: (d.size != 1, -(d.write_step or 0))))
        return found

    def store_of(self, block: str, lowered: PrimFunc) -> int | None:
        """The number of a block's store in the lowered program, which does not have nests that their guards exclude as
        a whole; None for one of these.
        """
        names, nests = self.blocks(), loops_of_stores(lowered.body)
        if len(names) == len(nests):
            return names.index(block)
        left = [[(loop.var.name, loop.extent) for loop in loops] for loops in nests]
        found: int | None = None
        for name in names[: names.index(block) + 1]:
            is_next = left[:1] == [[(loop.var.name, loop.extent) for loop in self.loops(name)]]
            found = len(nests) - len(left) if is_next else None
            left = left[1:] if is_next else left
        return found

    def arrange_if_lowered(self, block: str) -> None:
        """`arrange`, undone where the resulting program is not proved all the way down, as over products of symbols."""
        count = len(self.schedule.steps)
        self.arrange(block)
        if self.attempt(self.schedule.lower):
            return
        while len(self.schedule.steps) > count:
            self.schedule.undo()
        self.thread(block, [loop.var.name for loop in self.loops(block)][:1])

    def arrange(self, block: str) -> None:
        """Put the loops of one nest into the order of what is written, tiled, in threads."""
        digits = self.digits(block)
        if digits is None:
            self.thread(block, [loop.var.name for loop in self.loops(block)][:1])
            return
        self.reorder(block, [d.name for d in digits])
        digits = self.fused(block, digits)
        tile = choose_tile(digits, self.width)
        outer, last, inner = list[str](), list[str](), list[str]()
        for digit in digits:
            count = tile.get(digit.name)
            if count is None:
                outer.append(digit.name)
            elif count == digit.size:
                inner.append(digit.name)
            else:
                parts = self.split(block, digit.name, [None, count])
                # Tiles that are adjacent in the source share cache lines: one runs right after the other.
                read, write = digit.read_step, digit.write_step
                near = read is not None and write is not None and read < write
                (last if near else outer).extend(parts[:-1])
                inner.append(parts[-1])
        outer += last
        self.reorder(block, [*outer, *inner])
        self.thread(block, outer)
        if inner:
            self.attempt(lambda: self.schedule.stream(block, inner[0]))
        self.attempt(lambda: self.schedule.reduce_loop_extents(block))

    def reorder(self, block: str, order: Sequence[str]) -> bool:
        """Put loops into an order."""
        names = [loop.var.name for loop in self.loops(block)]
        return names == list(order) or self.attempt(lambda: self.schedule.reorder(block, list(order)))

    def fused(self, block: str, digits: tuple[Digit, ...]) -> tuple[Digit, ...]:
        """Adjacent digits that are contiguous in both streams, fused."""
        position = len(digits) - 1
        while position > 0 and all(digit.size is not None for digit in digits):
            if digits[position - 1].follows(digits[position]):
                digits = self.fused_at(block, digits, position)
            position = min(position, len(digits)) - 1
        return digits

    def fused_at(self, block: str, digits: tuple[Digit, ...], position: int) -> tuple[Digit, ...]:
        """The digits with one and the one before it fused; unchanged where that is not proved, or hides their steps."""
        pair = [digit.name for digit in digits[position - 1 : position + 1]]
        if not self.attempt(lambda: self.schedule.fuse(block, pair)):
            return digits
        again = self.digits(block)
        if again is not None and all(digit.read is not None for digit in again):
            return again
        self.schedule.undo()
        return digits

    def thread(self, block: str, outer: Sequence[str]) -> None:
        """Fuse the outer loops, where that is proved, and make them parallel."""
        loops = {loop.var.name: loop for loop in self.loops(block)}
        sizes = [loop.extent.value for loop in loops.values() if isinstance(loop.extent, IntImm)]
        if not self.threads or (len(sizes) == len(loops) and prod(sizes) * self.width < THREADED):
            return
        wide = [name for name in outer if loops[name].extent != const(1, loops[name].var.dtype)]
        if not wide:
            return
        chosen = wide[0]
        constant = len(sizes) == len(loops)
        if len(wide) > 1 and constant and self.attempt(lambda: self.schedule.fuse(block, wide)):
            chosen = next(loop.var.name for loop in self.loops(block) if loop.var.name not in loops)
        self.attempt(lambda: self.schedule.parallel(block, chosen))


def _kept(cut: tuple[str, int], loops: Sequence[For]) -> float:
    """The larger part that a cut leaves, as a share."""
    size = next(loop.extent.value for loop in loops if loop.var.name == cut[0] and isinstance(loop.extent, IntImm))
    return max(cut[1], size - cut[1]) / size


class RelayoutKernel(CKernel):
    """A kernel of one layout change. `schedule` has its proved steps, `map_report` the proof of the map.

    Called with the source array, it gives the destination; `raw(A=..., B=...)` takes both: A is logical, B physical.
    """

    def __init__(self, plain: CKernel, schedule: Schedule, map_report: MapReport) -> None:
        super().__init__(LoweredFunc(plain.lowered, {}, plain.assumptions), plain.source, plain.library, plain.report)
        self.schedule = schedule
        self.map_report = map_report

    @property
    def certificate(self) -> Certificate:
        """The certificate of the schedule and of its lowering."""
        return self.schedule.certificate


def relayout(
    index_map: MapLike,
    shape: ShapeLike,
    dtype: str = "float32",
    *,
    inverse: bool = False,
    pad_value: Any = 0,
    where: Expr | str | None = None,
    check: bool = True,
) -> RelayoutKernel:
    """The kernel of a pure layout change, by the best schedule that is proved.

    `index_map` is an IndexMap, a function, the text of a lambda, or two layout strings: `"NHWC->NCHW4c"`. `shape` is
    the logical shape, integers or names, of which `where` may say more: with names the kernel is for all of them. From
    the logical array to the physical one padding gets `pad_value`: a value, `undef` (anything), text or a function of
    the physical indices as pad values are, or None, which leaves it as it is; `inverse=True` is from the physical array
    to the logical one, without the padding. Large arrays are written past the cache, by as many threads as OpenMP has.
    `check` compares the kernel with the reference interpreter. Raises LayoutproofError for a map that is not proved to
    be injective, a shape that does not fit it, and an unknown type.
    """
    change = read_relayout(index_map, shape, dtype, inverse, pad_value, where)
    schedule = _scheduled(change)
    return RelayoutKernel(schedule.build("c", check=check), schedule, change.report)


def _scheduled(change: Relayout) -> Schedule:
    """The schedule of the plain program, or of the one by the map's inverse if only that is proved."""
    width = change.dtype.element.bytes
    try:
        return schedule_copy(plain_program(change), width)
    except IllegalTransform:
        if not change.inverse or change.report.inverse is None:
            raise
        return schedule_copy(plain_program(change, by_inverse=True), width)
