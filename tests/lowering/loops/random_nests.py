"""Random nests over blocks and over plain loops, of whole numbers: what two orders of a sum make the same."""

from __future__ import annotations

from random import Random

import numpy as np
from tests.lowering.programs import random_reduction
from tests.lowering.small_operators import inputs_of

from layoutproof.ir.interp import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.blocks import LowerBlocks
from layoutproof.lowering.loops.nest import loops_of_block
from layoutproof.lowering.loops.reorder import Reorder
from layoutproof.lowering.loops.sequential import SequentialBufferAccess
from layoutproof.lowering.loops.split import Split
from layoutproof.lowering.passes import Pass


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
