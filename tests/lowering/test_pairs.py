"""Transforms against what upstream made of them: programs before and after, run side by side in the interpreter."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.lowering.small_operators import assert_same_results, inputs_of, physical_inputs
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.ir.interp import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import load
from layoutproof.ir.stmt import Block
from layoutproof.ir.visit import walk
from layoutproof.lowering.passes.effects import data_read, data_written
from layoutproof.lowering.passes.find import find_block
from layoutproof.lowering.schedule.schedule import Schedule

PAIRS = ROOT / "tests" / "data" / "pairs"
# 138 million updates, and 3 million: both are there at a smaller size among the operators.
TOO_LARGE = {"04_conv2d_nhwc", "02_relu_nhwc"}


@dataclass(frozen=True)
class Pair:
    """A transform of one buffer of one block, and whether upstream accepted it."""

    id: str
    block: str
    buffer: tuple[str, int]
    index_map: str
    pad_value: str | None
    peer: str

    @property
    def before(self) -> PrimFunc:
        """The program that is transformed."""
        return load(PAIRS / f"{self.id}.before.py")

    @property
    def buffer_name(self) -> str:
        """The buffer that the block reads or writes at that position."""
        kind, position = self.buffer
        block = find_block(self.before, self.block)
        regions = block.reads if kind == "read" else block.writes
        assert regions is not None
        return regions[position].buffer.name

    def transformed(self) -> PrimFunc:
        """What the schedule makes of it, every step proved."""
        schedule = Schedule(self.before)
        schedule.transform_layout(self.block, self.buffer_name, self.index_map, self.pad_value)
        return schedule.func


def _pairs() -> list[Pair]:
    keys = ("id", "block", "index_map", "pad_value", "peer")
    entries: list[dict[str, Any]] = json.loads((PAIRS / "manifest.json").read_text())
    return [Pair(buffer=(e["buffer"][0], e["buffer"][1]), **{k: e[k] for k in keys}) for e in entries]


PAIR_LIST = _pairs()


@one_in(4)
@pytest.mark.parametrize("pair", PAIR_LIST, ids=lambda p: p.id)
def test_every_pair_is_accepted_and_proved(pair: Pair) -> None:
    """What upstream accepts is accepted, and what it rejects for padding that is never accessed, too."""
    func = pair.transformed()
    data = next(b.data for b in func.buffers if b.name == pair.buffer_name)
    assert any(isinstance(n, Block) and data in data_read(n) | data_written(n) for n in walk(func.body))


@one_in(4)
@pytest.mark.parametrize(
    "pair", [p for p in PAIR_LIST if p.peer == "accepted" and p.id not in TOO_LARGE], ids=lambda p: p.id
)
def test_both_compute_the_same(pair: Pair) -> None:
    """Upstream's program and ours leave every parameter, padding with a value included, in the same state."""
    ours, theirs = pair.transformed(), load(PAIRS / f"{pair.id}.after.py")
    fill = float(pair.pad_value) if pair.pad_value is not None else 0
    given = physical_inputs(ours, inputs_of(pair.before), {pair.buffer_name: [fill]})
    for name, wanted in run(theirs, given).arrays.items():
        np.testing.assert_array_equal(run(ours, given)[name], wanted, err_msg=name)


@pytest.mark.parametrize("pair", [p for p in PAIR_LIST if p.peer == "rejected"], ids=lambda p: p.id)
def test_what_upstream_rejects_computes_the_same(pair: Pair) -> None:
    """Programs that upstream would not transform keep their results."""
    assert_same_results(pair.before, pair.transformed(), symbols={"n": 11})
