"""Random nests over blocks and over plain loops, of whole numbers: what two orders of a sum make the same."""

from __future__ import annotations

from random import Random

import numpy as np

from layoutproof.ir.interp import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.loops.nest import loops_of_block
from layoutproof.lowering.loops.sequential_access import SequentialBufferAccess
from layoutproof.lowering.loops.tiling import Reorder, Split
from layoutproof.lowering.lower.flatten import LowerBlocks
from layoutproof.lowering.passes.base import Pass
from tests.lowering.programs import program
from tests.lowering.small_operators import inputs_of


def split_axis(rng: Random, name: str, extent: int) -> tuple[list[tuple[str, int]], str, str | None]:
    """Loops for an axis: the loops, the binding, and the guard where a factor does not divide."""
    if rng.random() < 0.4:
        return [(name, extent)], name, None
    factor = rng.choice([2, 3, 4])
    outer = -(-extent // factor)
    binding = f"{name}o * {factor} + {name}i"
    return (
        [(f"{name}o", outer), (f"{name}i", factor)],
        binding,
        f"{binding} < {extent}" if outer * factor > extent else None,
    )


def random_reduction(rng: Random) -> PrimFunc:
    """A sum over two axes for each of two others: axes split at random, loops in any order, guards in the block or
    around it.
    """
    extents = {"i": rng.choice([1, 3, 5]), "j": rng.choice([2, 4]), "k": rng.choice([1, 4, 5]), "l": rng.choice([1, 3])}
    parts = {name: split_axis(rng, name, extent) for name, extent in extents.items()}
    loops = [loop for part in parts.values() for loop in part[0]]
    rng.shuffle(loops)
    guards = [part[2] for part in parts.values() if part[2] is not None]
    inside = [g for g in guards if rng.random() < 0.7]
    outside = [g for g in guards if g not in inside]
    update = "B[vi, vj] = B[vi, vj] + A[vi, vj, vk, vl]"
    if rng.random() < 0.3:
        update = f"if {loops[0][0]} + {loops[-1][0]} != 1:\n{'    ' * (len(loops) + bool(outside) + 3)}{update}"
    lines = [f"for {name} in range({extent}):" for name, extent in loops]
    lines += [f"if {' and '.join(outside)}:"] if outside else []
    text = "".join("    " * (depth + 1) + line + "\n" for depth, line in enumerate(lines))
    pad = "    " * (len(lines) + 1)
    kinds = {"i": "spatial", "j": "spatial", "k": "reduce", "l": "reduce"}
    body = ['with T.sblock("sum"):']
    body += [f"    v{name} = T.axis.{kinds[name]}({extents[name]}, {parts[name][1]})" for name in extents]
    body += [f"    T.where({' and '.join(inside)})"] if inside else []
    body += ["    with T.init():", "        B[vi, vj] = T.float32(0.5)", f"    {update}"]
    shape = ", ".join(str(e) for e in extents.values())
    head = f'def main(A: T.Buffer(({shape}), "float32"), B: T.Buffer(({extents["i"]}, {extents["j"]}), "float32")):\n'
    return program(head + text + "".join(f"{pad}{line}\n" for line in body))


def random_nest(rng: Random) -> PrimFunc:
    """A sum of integers, its block or its loops, split and ordered at random."""
    text = print_func(random_reduction(rng)).replace("float32", "int32").replace("0.5", "5")
    return loads(text, "nest.py")


def apart(func: PrimFunc) -> PrimFunc:
    """The same with the promise that its parameters do not overlap."""
    return loads(print_func(func).replace("):\n", '):\n    T.func_attr({"tirx.noalias": True})\n', 1), "nest.py")


def lowered(func: PrimFunc) -> PrimFunc:
    """The same without blocks. Raises LayoutproofError where the init has no place."""
    return LowerBlocks().propose(func).new


def random_pass(rng: Random, func: PrimFunc, block: str) -> Pass:
    """A transform of the loops of one block."""
    count = len(loops_of_block(func, block))
    kind = rng.choice(["split", "reorder", "follow"])
    if kind == "split":
        factors: tuple[int | None, ...] = rng.choice([(None, 2), (None, 3), (2, None), (None, 2, 2), (3, 2, None)])
        return Split(block, rng.randrange(count), factors)
    if kind == "reorder":
        return Reorder(block, tuple(rng.sample(range(count), rng.randint(1, count))))
    return SequentialBufferAccess(block, rng.choice("AB"))


def assert_same_sums(old: PrimFunc, new: PrimFunc) -> None:
    """Both leave the same numbers in `B`."""
    given = inputs_of(old)
    np.testing.assert_array_equal(run(old, given)["B"], run(new, given)["B"])
