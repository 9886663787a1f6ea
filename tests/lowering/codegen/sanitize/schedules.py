"""The operators as they are lowered under a few schedules, every step of which is proved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial

from tests.lowering.small_operators import small

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, IterKind
from layoutproof.ir.visit import walk
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.schedule.schedule import Schedule

# Extents that no tile divides, one, and none at all.
SIZES: Mapping[str, tuple[Mapping[str, int], ...]] = {
    "sym_relu": ({"n": 13}, {"n": 1}, {"n": 0}),
    "sym_row_sum": ({"n": 7, "m": 11}, {"n": 5, "m": 0}, {"n": 1, "m": 1}, {"n": 0, "m": 3}),
}


def blocks_of(func: PrimFunc) -> list[Block]:
    """The blocks that do something, in order."""
    return [node for node in walk(func.body) if isinstance(node, Block) and not node.is_root]


def _tiles(rank: int, tile: int) -> str:
    """A map that stores the last axis in tiles."""
    names = [f"i{axis}" for axis in range(rank)]
    return f"lambda {', '.join(names)}: [{', '.join([*names[:-1], f'{names[-1]}//{tile}', f'{names[-1]}%{tile}'])}]"


def _touched(block: Block, func: PrimFunc) -> Iterator[tuple[Buffer, bool]]:
    """The parameters that a block touches, and whether it writes them."""
    accesses = [
        node for node in walk(block) if isinstance(node, BufferLoad | BufferStore) and node.buffer in func.buffers
    ]
    written = {access.buffer for access in accesses if isinstance(access, BufferStore)}
    yield from ((buffer, buffer in written) for buffer in dict.fromkeys(access.buffer for access in accesses))


def plain(schedule: Schedule) -> None:
    """Nothing."""


def tiled(schedule: Schedule) -> None:
    """Each parameter with its last axis in tiles that its extent is seldom a multiple of; inputs are padded with 0."""
    for block in blocks_of(schedule.func):
        for buffer, written in _touched(block, schedule.func):
            if buffer in schedule.func.buffers:
                schedule.transform_layout(
                    block.name, buffer.name, _tiles(buffer.rank, 4 if written else 3), None if written else 0
                )


def owed(schedule: Schedule) -> None:
    """The outputs in tiles whose padding the function fills, branches dropped where that is proved."""
    for block in blocks_of(schedule.func):
        for buffer, written in _touched(block, schedule.func):
            if written:
                schedule.transform_layout(block.name, buffer.name, _tiles(buffer.rank, 4), 1)
    for block in blocks_of(schedule.func):
        attempt(partial(schedule.remove_branching_through_overcompute, block.name))


def lanes(schedule: Schedule) -> None:
    """The last spatial loop of each block in vectors of four, the first one in parallel, as far as that is proved."""
    for block in blocks_of(schedule.func):
        spatial = [number for number, var in enumerate(block.iter_vars) if var.kind is IterKind.SPATIAL]
        if not spatial:
            continue
        schedule.split(block.name, spatial[-1], [None, 4])
        attempt(partial(schedule.vectorize, block.name, spatial[-1] + 1))
        attempt(partial(schedule.parallel, block.name, 0))


def vectors(schedule: Schedule) -> None:
    """The same with the loops made lanes in the program itself: vector loads, vector arithmetic, vector stores."""
    lanes(schedule)
    schedule.lower_blocks()
    schedule.flatten_buffer()
    schedule.vectorize_loop(scalarize=True)


def attempt(step: Callable[[], object]) -> bool:
    """Whether a step was proved; where not, the schedule is as it was."""
    try:
        step()
    except IllegalTransform:
        return False
    return True


SCHEDULES: Mapping[str, Callable[[Schedule], None]] = {s.__name__: s for s in (plain, tiled, owed, lanes, vectors)}


@cache
def scheduled(operator: str, schedule: str) -> Schedule:
    """An operator at its small size under a schedule of the table, with steps unless the schedule is plain."""
    found = Schedule(small(operator))
    SCHEDULES[schedule](found)
    assert found.steps or schedule == "plain", f"{operator}: no step of {schedule} was kept"
    return found
