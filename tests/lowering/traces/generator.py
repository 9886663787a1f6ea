"""Random steps of any primitive that there is, made from its options: a new primitive is drawn as soon as it is
registered.

`KINDS` says how an option of a kind gets a value, `OPTIONS` how one of a name does that is drawn better, or although it
has a default (of one primitive, where its name has one as well), `WEIGHTS` how often a primitive is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from random import Random
from typing import Any

from tests.lowering.small_operators import random_map

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import IntImm
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, Seq
from layoutproof.ir.visit import walk
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.loops.nest import find_loop, loops_of_block
from layoutproof.lowering.passes.base import ArgumentKind, Pass, kind_of
from layoutproof.lowering.passes.find import all_buffers
from layoutproof.lowering.schedule.primitives import PASSES

LOWEST = -340282346638528859811704183484516925440.0


class NothingToDraw(Exception):
    """The program has nothing that an option could name."""


@dataclass
class Drawing:
    """One step on its way: the program, and what was drawn of the options before."""

    func: PrimFunc
    rng: Random
    chosen: dict[str, Any] = field(default_factory=dict)

    def pick(self, choices: Sequence[Any]) -> Any:
        """One of them. Raises NothingToDraw where there is none."""
        if not choices:
            raise NothingToDraw
        return self.rng.choice(choices)

    @property
    def blocks(self) -> list[Block]:
        """The blocks that do something."""
        return [n for n in walk(self.func.body) if isinstance(n, Block) and not n.is_root]

    @property
    def block(self) -> Block | None:
        """The block that was drawn, if it is one."""
        return next((b for b in self.blocks if b.name == self.chosen.get("block")), None)

    @property
    def buffers(self) -> list[Buffer]:
        """What the block touches; everything, without a block."""
        if self.block is None:
            return list(all_buffers(self.func))
        return list(dict.fromkeys(n.buffer for n in walk(self.block) if isinstance(n, BufferLoad | BufferStore)))

    @property
    def buffer(self) -> Buffer:
        """The buffer that was drawn."""
        return next(b for b in all_buffers(self.func) if b.name == self.chosen["buffer"])

    @property
    def loops(self) -> list[For]:
        """The loops of the block, outermost first."""
        return list(loops_of_block(self.func, self.chosen["block"]))


# ---- how options get their values


def a_block(drawing: Drawing) -> str:
    """A block, seldom all of the function."""
    names = [b.name for b in drawing.blocks]
    return ROOT if drawing.rng.random() < 0.05 or not names else str(drawing.rng.choice(names))


def a_buffer(drawing: Drawing) -> str:
    """A buffer that the block touches."""
    return str(drawing.pick([b.name for b in drawing.buffers]))


def a_name(drawing: Drawing) -> str:
    """The name of a block, or of a buffer that it touches."""
    return drawing.rng.choice([a_block, a_buffer])(drawing)


def a_map(drawing: Drawing) -> str:
    """An injective map of the buffer's rank; of a block's variables, where there is no buffer."""
    if "buffer" in drawing.chosen:
        return _map_of(drawing.rng, drawing.buffer.rank)
    if drawing.block is None or not drawing.block.iter_vars:
        raise NothingToDraw
    return _map_of(drawing.rng, len(drawing.block.iter_vars)).replace("AXIS_SEPARATOR, ", "")


def a_layout(drawing: Drawing) -> str:
    """An injective map for the rank of one buffer that the block touches."""
    return _map_of(drawing.rng, drawing.pick([b.rank for b in drawing.buffers if b.rank > 0]))


def pads_by_name(drawing: Drawing) -> dict[str, Any]:
    """Pad values of some buffers that the block touches."""
    some = [b.name for b in drawing.buffers if drawing.rng.random() < 0.7]
    return {name: drawing.rng.choice([None, "T.undef()", "T.undef()", 0]) for name in some}


def _map_of(rng: Random, rank: int) -> str:
    """A random map, seldom a swizzle: every step of a program that has one takes long."""
    text = random_map(rng, rank)
    while "^" in text and rng.random() < 0.9:
        text = random_map(rng, rank)
    return text


def a_pad_value(drawing: Drawing) -> Any:
    """No contract, anything, or a value: zero, one, the end of the type."""
    numbers: list[Any] = [0.0, 0.0, 0.0, 1.0, LOWEST, -LOWEST] if drawing.buffer.dtype.is_float else [0, 0, 1, -7]
    return drawing.rng.choice([None, None, "T.undef()", "T.undef()", *numbers])


def separators(drawing: Drawing) -> list[int]:
    """Axes to separate at."""
    rank = drawing.buffer.rank
    return sorted(drawing.rng.sample(range(rank - 1), drawing.rng.randint(0, rank - 1))) if rank > 0 else []


def a_loop(drawing: Drawing) -> str | int:
    """A loop by its name or its position."""
    return _called(drawing, drawing.pick(range(len(drawing.loops))))


def a_loop_of_another(drawing: Drawing) -> str | int:
    """A loop of the block that reads or writes what the block does."""
    other = drawing.chosen.get("reader", drawing.chosen.get("writer"))
    return a_loop(Drawing(drawing.func, drawing.rng, {"block": other}))


def some_loops(drawing: Drawing) -> list[str | int]:
    """Some loops in any order."""
    count = len(drawing.loops)
    if count == 0:
        raise NothingToDraw
    positions = drawing.rng.sample(range(count), drawing.rng.randint(min(2, count), count))
    return [_called(drawing, position) for position in positions]


def neighbours(drawing: Drawing) -> list[str | int]:
    """Some loops, each in the one before."""
    count = len(drawing.loops)
    if count < 2:
        raise NothingToDraw
    start = drawing.rng.randrange(count - 1)
    return [_called(drawing, n) for n in range(start, min(count, start + drawing.rng.choice([2, 2, 3])))]


def _called(drawing: Drawing, position: int) -> str | int:
    """A loop by its name, where that says which it is, or by its position."""
    names = [loop.var.name for loop in drawing.loops]
    return position if drawing.rng.random() < 0.3 or names.count(names[position]) > 1 else names[position]


def factors(drawing: Drawing) -> list[int | None]:
    """Two or three factors, one of them open."""
    known: list[int | None] = [drawing.rng.choice([2, 3, 4, 5, 7, 8]) for _ in range(drawing.rng.choice([1, 1, 1, 2]))]
    known.insert(drawing.rng.randint(0, len(known)), None)
    return known


def a_loop_before_another(drawing: Drawing) -> str | int:
    """A loop that another follows in one sequence."""
    pairs = [
        (node.body[n], n)
        for node in walk(drawing.func.body)
        if isinstance(node, Seq)
        for n in range(len(node.body) - 1)
        if isinstance(node.body[n], For) and isinstance(node.body[n + 1], For)
    ]
    first = drawing.pick([loop for loop, _ in pairs])
    drawing.chosen["block"] = drawing.pick([b.name for b in _blocks_below(first)])
    position = next((n for n, loop in enumerate(drawing.loops) if loop is first), None)
    if position is None:
        raise NothingToDraw
    return position


def _blocks_below(loop: For) -> list[Block]:
    return [n for n in walk(loop) if isinstance(n, Block)]


def some_guards(drawing: Drawing) -> list[int] | None:
    """The guards that are taken by themselves, or the first."""
    return None if drawing.rng.random() < 0.8 else [0]


def paddings(drawing: Drawing) -> list[int]:
    """A multiple for each variable of the block."""
    count = len(drawing.block.iter_vars) if drawing.block is not None else 0
    return [drawing.rng.choice([1, 2, 4, 5]) for _ in range(count)]


def if_short(drawing: Drawing) -> bool:
    """Whether a loop is short enough to be written out, and then not always."""
    loop = find_loop(drawing.func, drawing.chosen["block"], drawing.chosen["loop"])
    return isinstance(loop.extent, IntImm) and loop.extent.value <= 4 and drawing.rng.random() < 0.5


def a_place(drawing: Drawing) -> int:
    """A number of iterations that a loop has, seldom one that it has not."""
    loop = find_loop(drawing.func, drawing.chosen["block"], drawing.chosen["loop"])
    return drawing.rng.randint(1, max(1, loop.extent.value - 1 if isinstance(loop.extent, IntImm) else 3))


def seldom(drawing: Drawing) -> bool:
    """A switch that mostly is off."""
    return drawing.rng.random() < 0.15


KINDS: Mapping[ArgumentKind, Callable[[Drawing], Any]] = {
    ArgumentKind.NAME: a_name,
    ArgumentKind.INDEX_MAP: a_map,
    ArgumentKind.PAD_VALUE: a_pad_value,
    ArgumentKind.PAD_VALUES: pads_by_name,
    ArgumentKind.LAYOUT: a_layout,
    ArgumentKind.INTEGER: lambda drawing: drawing.rng.randint(0, 4),
    ArgumentKind.INTEGERS: paddings,
    ArgumentKind.LOOP: a_loop,
    ArgumentKind.LOOPS: some_loops,
    ArgumentKind.FACTORS: factors,
    ArgumentKind.CHOICES: some_guards,
    ArgumentKind.FLAG: seldom,
    ArgumentKind.NAMES: lambda drawing: [a_name(drawing)],
}

OPTIONS: Mapping[str, Callable[[Drawing], Any]] = {
    "block": a_block,
    "buffer": a_buffer,
    "pad_value": a_pad_value,
    "pad_values": pads_by_name,
    "separators": separators,
    "fuse.loops": neighbours,
    "merge_adjacent_loops.loop": a_loop_before_another,
    "compute_at.loop": a_loop_of_another,
    "reverse_compute_at.loop": a_loop_of_another,
    "reader": a_block,
    "writer": a_block,
    "thread": lambda drawing: drawing.pick(["blockIdx.x", "threadIdx.x", "threadIdx.y", "vthread"]),
    "set_scope.scope": lambda drawing: drawing.pick(["global", "shared", "local"]),
    "guards": some_guards,
    "places": some_guards,
    "wrap": seldom,
    "expand": if_short,
    "at": a_place,
}

WEIGHTS: Mapping[str, float] = {
    "transform_layout": 4,
    "split": 3,
    "reorder": 3,
    "fuse": 2,
    "sequential_buffer_access": 3,
    "remove_branching_through_overcompute": 3,
    "set_axis_separators": 0.5,
    "apply_buffer_transforms": 0.1,
    # What has no blocks or is flat ends most schedules.
    "lower_blocks": 0.15,
    "flatten_buffer": 0.05,
    "remove_assume": 0.1,
    "remove_store_undef": 0.1,
    "vectorize_loop": 0.1,
    "rewrite_ramp_as_pointer_cast": 0.05,
    "vector_type_rewrite": 0.05,
    "stream": 0.3,
    "bind": 0.3,
    "set_scope": 0.3,
    "partition": 0.5,
}


def options_of(kind: type[Pass]) -> list[tuple[str, Callable[[Drawing], Any]]]:
    """The options of a primitive that are drawn, in order: those in a table of names, and those without a default."""
    found = []
    for option in kind.options():
        how = OPTIONS.get(f"{kind.primitive}.{option.name}", OPTIONS.get(option.name))
        if how is None and option.default is MISSING:
            how = KINDS[kind_of(option)]
        if how is not None:
            found.append((option.name, how))
    return found


def random_pass(func: PrimFunc, rng: Random, primitives: Sequence[str] = tuple(PASSES)) -> Pass | None:
    """A step of one of the primitives that might apply to the function; None where it has nothing for the one drawn."""
    kind = PASSES[rng.choices(primitives, [WEIGHTS.get(name, 1) for name in primitives])[0]]
    drawing = Drawing(func, rng)
    try:
        for name, how in options_of(kind):
            drawing.chosen[name] = how(drawing)
    except NothingToDraw:
        return None
    return kind.from_arguments(drawing.chosen)


def size_of(func: PrimFunc) -> int:
    """The number of nodes in the body: programs that were written out at length are not transformed further."""
    return sum(1 for _ in walk(func.body))
