"""What the tests of caches share: operators with their blocks, and rewrites made wrong on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from tests.lowering.small_operators import CONCRETE, small

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import Block
from layoutproof.ir.visit import walk
from layoutproof.lowering.passes.effects import data_read, data_written
from layoutproof.lowering.passes.find import find_buffer
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.verdict.verdict import Status

Named = tuple[str, str, str]
"""An operator, a block of it, a buffer."""


def blocks_of(func: PrimFunc) -> list[Block]:
    """The blocks that compute something."""
    return [n for n in walk(func.body) if isinstance(n, Block) and not n.is_root]


def buffers_read() -> Iterator[Named]:
    """Every buffer that a block of an operator reads and does not write."""
    for name in CONCRETE:
        for block in blocks_of(small(name)):
            for data in sorted(data_read(block) - data_written(block), key=lambda v: v.name):
                yield name, block.name, data.name.removesuffix("_data")


def buffers_written() -> Iterator[Named]:
    """Every buffer that a block of an operator writes."""
    for name in CONCRETE:
        for block in blocks_of(small(name)):
            for data in sorted(data_written(block), key=lambda v: v.name):
                yield name, block.name, data.name.removesuffix("_data")


def tiled(func: PrimFunc, buffer: str) -> str:
    """A map that splits the last axis of a buffer by 4, and puts the rest of it first."""
    names = [f"i{axis}" for axis in range(find_buffer(func, buffer).rank)]
    last = names[-1]
    return f"lambda {', '.join(names)}: [{', '.join([f'{last}//4', *names[:-1], f'{last}%4'])}]"


def tampered(rewrite: Rewrite, *changes: tuple[str, str]) -> Rewrite:
    """The rewrite with its new program's text changed; each change must find its place."""
    text = print_func(rewrite.new)
    for old, new in changes:
        assert old in text, f"{old!r} is not in\n{text}"
        text = text.replace(old, new)
    return replace(rewrite, new=loads(text, "tampered.py"))


def is_proved(rewrite: Rewrite) -> bool:
    """Whether the checker accepts a rewrite; no counterexample is looked for."""
    return all(v.status is Status.PROVED for v in prove_rewrite(rewrite).verdicts)


def random_tiles(rng: Random, rank: int) -> str:
    """A map of axes in another order, some of them split."""
    names = [f"i{axis}" for axis in range(rank)]
    outputs: list[str] = []
    for name in names:
        tile = rng.choice([1, 2, 3, 4])
        outputs += [name] if tile == 1 else [f"{name}//{tile}", f"{name}%{tile}"]
    rng.shuffle(outputs)
    return f"lambda {', '.join(names)}: [{', '.join(outputs)}]"
