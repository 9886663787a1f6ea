"""What an autotuner tries next on a program: layouts with channels in blocks, tiles, orders of loops, lanes, threads,
guards dropped.

A move is a step as a trace has it. Most are chosen so that they are right: lanes and threads go to loops that no
reduction runs over, maps are injective. Those of `wrong_moves` are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import IntImm, Var
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, ForKind, IterKind
from layoutproof.ir.visit import free_variables, walk
from layoutproof.lowering.loops.nest import loops_of_block

Move = tuple[str, dict[str, Any]]
FACTORS = (2, 4, 8, 16)
GUARDLESS = "remove_branching_through_overcompute"
LOWEST = -340282346638528859811704183484516925440.0
_MOST_LANES = 16


@dataclass(frozen=True, slots=True)
class Position:
    """A program in the middle of a search, and one of its blocks: `loops` are its own, outermost first; `reductions`
    are the variables of those that a reduction runs over.
    """

    func: PrimFunc
    block: Block
    loops: tuple[For, ...]
    reductions: frozenset[Var]

    @staticmethod
    def of(func: PrimFunc, rng: Random) -> Position:
        """The program at one of the blocks that store, the last more often: there the work is done."""
        blocks = [node for node in walk(func.body) if isinstance(node, Block) and not node.is_root and _stored(node)]
        block = rng.choice([blocks[-1], *blocks])
        reduced = [
            v
            for iteration in block.iter_vars
            if iteration.kind is IterKind.REDUCE
            for v in free_variables(iteration.binding)
        ]
        return Position(func, block, loops_of_block(func, block.name), frozenset(reduced))

    @property
    def read(self) -> list[Buffer]:
        """What the block loads, in order, without what it also stores."""
        stored = self.stored
        return [
            b
            for b in dict.fromkeys(n.buffer for n in walk(self.block.body) if isinstance(n, BufferLoad))
            if b not in stored
        ]

    @property
    def stored(self) -> list[Buffer]:
        """What the block stores."""
        return _stored(self.block)

    def name_of(self, loop: For) -> str | int:
        """A loop as a trace names it: by its variable, or by its position where that says too little."""
        names = [each.var.name for each in self.loops]
        return loop.var.name if names.count(loop.var.name) == 1 else self.loops.index(loop)

    def free_loops(self) -> list[For]:
        """Serial loops that no reduction runs over."""
        return [loop for loop in self.loops if loop.kind is ForKind.SERIAL and loop.var not in self.reductions]


def _stored(block: Block) -> list[Buffer]:
    return list(dict.fromkeys(n.buffer for n in walk(block.body) if isinstance(n, BufferStore)))


def _is_short(loop: For, least: int, most: int) -> bool:
    """Whether a loop is known to have from `least` to `most` iterations."""
    return isinstance(loop.extent, IntImm) and least <= loop.extent.value <= most


def any_move(func: PrimFunc, rng: Random) -> Move | None:
    """One that a search may try on the program next; None where what was drawn has nothing to act on."""
    name = rng.choices(tuple(_MOVES), [weight for weight, _ in _MOVES.values()])[0]
    position = Position.of(func, rng)
    arguments = _MOVES[name][1](position, rng)
    return None if arguments is None else (name, {"block": position.block.name, **arguments})


def _layout(position: Position, rng: Random) -> dict[str, Any] | None:
    buffer = rng.choice([*position.read, *position.stored])
    return (
        {"buffer": buffer.name, "index_map": blocked_map(buffer, rng), "pad_value": _pad_value(buffer, rng)}
        if buffer.rank > 0
        else None
    )


def blocked_map(buffer: Buffer, rng: Random) -> str:
    """A layout as tuners name them: an axis in blocks whose lanes lie innermost, now and then two such, or axes in
    another order.
    """
    names = [f"i{axis}" for axis in range(buffer.rank)]
    outer, lanes = list(names), list[str]()
    count = rng.choice([0, 1, 1, 1, 1, 2]) if buffer.rank > 1 else 1
    for axis in sorted(rng.sample(range(buffer.rank), count)):
        factor = rng.choice(FACTORS)
        outer[axis] = f"{names[axis]}//{factor}"
        lanes.append(f"{names[axis]}%{factor}")
    while outer == names or rng.random() < 0.3:
        rng.shuffle(outer)
    return f"lambda {', '.join(names)}: [{', '.join([*outer, *lanes])}]"


def _pad_value(buffer: Buffer, rng: Random) -> Any:
    if not buffer.dtype.is_float:
        return rng.choice([None, "T.undef()", 0, 0, 1])
    return rng.choice([None, "T.undef()", 0.0, 0.0, 0.0, 1.0, LOWEST])


def _split(position: Position, rng: Random) -> dict[str, Any] | None:
    loops = [loop for loop in position.loops if loop.kind is ForKind.SERIAL and not _is_short(loop, 0, 1)]
    if not loops or len(position.loops) > 9:
        return None
    loop, factor = rng.choice(loops), rng.choice(FACTORS)
    # Of a loop of unknown length the inner part is given: that is what has a use.
    inner = not isinstance(loop.extent, IntImm) or rng.random() < 0.7
    return {"loop": position.name_of(loop), "factors": [None, factor] if inner else [factor, None]}


def _reorder(position: Position, rng: Random) -> dict[str, Any] | None:
    if len(position.loops) < 2:
        return None
    chosen = rng.sample(position.loops, rng.randint(2, min(4, len(position.loops))))
    # The loops of a reduction stay in their order: its sums are not regrouped.
    kept = iter(sorted((loop for loop in chosen if loop.var in position.reductions), key=position.loops.index))
    return {"loops": [position.name_of(next(kept) if loop.var in position.reductions else loop) for loop in chosen]}


def _fuse(position: Position, rng: Random) -> dict[str, Any] | None:
    free = position.free_loops()
    pairs = [(a, b) for a, b in zip(position.loops, position.loops[1:], strict=False) if a in free and b in free]
    return {"loops": [position.name_of(loop) for loop in rng.choice(pairs)]} if pairs else None


def _vectorize(position: Position, rng: Random) -> dict[str, Any] | None:
    short = [loop for loop in position.free_loops() if _is_short(loop, 2, _MOST_LANES)]
    return {"loop": position.name_of(short[-1])} if short else None


def _parallel(position: Position, rng: Random) -> dict[str, Any] | None:
    free = position.free_loops()
    return {"loop": position.name_of(rng.choice(free[:2]))} if free else None


def _unroll(position: Position, rng: Random) -> dict[str, Any] | None:
    short = [loop for loop in position.loops if loop.kind is ForKind.SERIAL and _is_short(loop, 1, 8)]
    return {"loop": position.name_of(rng.choice(short)), "expand": False} if short else None


def _sequential(position: Position, rng: Random) -> dict[str, Any] | None:
    return {"buffer": rng.choice(position.stored).name}


def _without_guards(position: Position, rng: Random) -> dict[str, Any] | None:
    return {}


def _cached(position: Position, rng: Random) -> dict[str, Any] | None:
    return {"buffer": rng.choice(position.read).name} if position.read else None


_MOVES: Mapping[str, tuple[float, Callable[[Position, Random], dict[str, Any] | None]]] = {
    "transform_layout": (5, _layout),
    "split": (4, _split),
    "reorder": (2.5, _reorder),
    "fuse": (1, _fuse),
    "vectorize": (1.5, _vectorize),
    "parallel": (1, _parallel),
    "unroll": (0.5, _unroll),
    "sequential_buffer_access": (1.5, _sequential),
    GUARDLESS: (1, _without_guards),
    "cache_read": (0.5, _cached),
}


def wrong_moves(func: PrimFunc, rng: Random) -> Sequence[Move]:
    """Steps of which the last is wrong: two elements in one cell, a race, a guard dropped over wrong padding, what is
    not there.
    """
    position = Position.of(func, rng)
    return rng.choice(_WRONG)(position, rng) or _no_block(position, rng)


def _forgetful(position: Position, rng: Random) -> list[Move] | None:
    """A layout that keeps the block of an index, and not the lane."""
    buffer = rng.choice([*position.read, *position.stored])
    long = [axis for axis, extent in enumerate(buffer.shape) if not (isinstance(extent, IntImm) and extent.value < 2)]
    if not long:
        return None
    names = [f"i{axis}" for axis in range(buffer.rank)]
    outer = list(names)
    axis = rng.choice(long)
    outer[axis] = f"{names[axis]}//{rng.choice(FACTORS)}"
    index_map = f"lambda {', '.join(names)}: [{', '.join(outer)}]"
    return [("transform_layout", {**_at(position), "buffer": buffer.name, "index_map": index_map, "pad_value": None})]


def _race(position: Position, rng: Random) -> list[Move] | None:
    """The iterations of a reduction all at once."""
    reduced = [loop for loop in position.loops if loop.var in position.reductions and not _is_short(loop, 0, 1)]
    if not reduced:
        return None
    return [("parallel", {**_at(position), "loop": position.name_of(rng.choice(reduced))})]


def _wrong_padding(position: Position, rng: Random) -> list[Move] | None:
    """The guards of a reduction dropped, where what is read past them is no identity of it."""
    inner = [buffer for buffer in position.read if buffer.rank > 1]
    if not inner or not position.reductions:
        return None
    buffer = rng.choice(inner)
    names = [f"i{axis}" for axis in range(buffer.rank)]
    factor = rng.choice([4, 8])
    blocked = (
        f"lambda {', '.join(names)}: [{', '.join([*names[:-1], f'{names[-1]}//{factor}', f'{names[-1]}%{factor}'])}]"
    )
    return [
        ("transform_layout", {**_at(position), "buffer": buffer.name, "index_map": blocked, "pad_value": 1.0}),
        ("sequential_buffer_access", {**_at(position), "buffer": buffer.name}),
        (GUARDLESS, {**_at(position)}),
    ]


def _no_loop(position: Position, rng: Random) -> list[Move] | None:
    """A loop that the block has not."""
    return [("split", {**_at(position), "loop": f"{rng.choice('ijk')}_9", "factors": [None, rng.choice(FACTORS)]})]


def _no_block(position: Position, rng: Random) -> list[Move]:
    """A block that the program has not."""
    return [("vectorize", {"block": f"{position.block.name}_{rng.randint(1, 99)}", "loop": 0})]


def _wrong_rank(position: Position, rng: Random) -> list[Move] | None:
    """A layout with an axis too many."""
    buffer = rng.choice([*position.read, *position.stored])
    names = ", ".join(f"i{axis}" for axis in range(buffer.rank + 1))
    arguments = {"buffer": buffer.name, "index_map": f"lambda {names}: [{names}]", "pad_value": None}
    return [("transform_layout", {**_at(position), **arguments})]


def _at(position: Position) -> dict[str, Any]:
    return {"block": position.block.name}


_WRONG: Sequence[Callable[[Position, Random], list[Move] | None]] = (
    _forgetful,
    _forgetful,
    _race,
    _wrong_padding,
    _no_loop,
    _wrong_rank,
)
