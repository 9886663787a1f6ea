"""Every rewrite that the passes make of the operators is proved by the walk; no wrong neighbour of one is."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import numpy as np
import pytest
from tests.lowering.small_operators import (
    CONCRETE,
    NAMES,
    Arrays,
    inputs_of,
    logical_outputs,
    physical_inputs,
    random_map,
    small,
)
from tests.shares import one_in
from tests.verify.lockstep.mutants import mutants
from tests.verify.lockstep.rewrites import PROVER

from layoutproof.ir.interp import Fault, run
from layoutproof.ir.interp.run import same_values
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering.layout.transform_layout import TransformLayout
from layoutproof.lowering.schedule.schedule import LOWERING
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.no_faults import check_facts
from layoutproof.verify.lockstep.prove import Lockstep, prove_lockstep
from layoutproof.verify.verdict.verdict import Open, Status


def walked(rewrite: Rewrite) -> Lockstep | Open:
    """What the walk says."""
    return prove_lockstep(rewrite, Facts.of(rewrite.old), Facts.of(rewrite.new), PROVER)


def steps(name: str, rng: Random, pads: Mapping[str, float | None]) -> list[Rewrite]:
    """Buffers re-laid at random, padded with `pads`, then everything that lowering does."""
    func = small(name)
    found: list[Rewrite] = []
    for buffer, pad in pads.items():
        rank = next(b for b in func.buffers if b.name == buffer).rank
        found.append(TransformLayout("root", buffer, random_map(rng, rank), pad).propose(func))
        func = found[-1].new
    for transform in LOWERING:
        found.append(transform.propose(func))
        func = found[-1].new
    return [rewrite for rewrite in found if rewrite.new != rewrite.old]


def padded(name: str, rng: Random) -> dict[str, float | None]:
    """Two of an operator's parameters with pad values: no contract, 0 or 1."""
    buffers = small(name).buffers
    return {b.name: rng.choice([None, 0, 1]) for b in rng.sample(buffers, min(2, len(buffers)))}


@one_in(7)
@pytest.mark.parametrize("name", NAMES)
def test_every_step_of_an_operator_is_proved(name: str) -> None:
    """Layouts with and without padding, then lowering, flattening and simplification; symbolic extents are lowered
    only.
    """
    rng = Random(name)
    for rewrite in steps(name, rng, padded(name, rng) if name in CONCRETE else {}):
        found = walked(rewrite)
        assert isinstance(found, Lockstep), found.reason


def results(func: PrimFunc, given: Arrays, pads: Mapping[str, float | None]) -> Arrays:
    """What a function makes of logical arrays, in logical layout; padding holds what its contract says."""
    fills = {name: [0 if pad is None else pad] for name, pad in pads.items()}
    shapes = {name: array.shape for name, array in given.items()}
    return logical_outputs(func, dict(run(func, physical_inputs(func, given, fills)).arrays), shapes)


def differs(rewrite: Rewrite, wrong: PrimFunc, given: Arrays, pads: Mapping[str, float | None]) -> bool:
    """Whether the two give different results for some inputs, or the second faults."""
    expected = results(rewrite.old, given, pads)
    try:
        found = results(wrong, given, pads)
    except Fault:
        return True
    return not all(bool(same_values(expected[name], found[name]).all()) for name in expected)


def inputs(base: PrimFunc) -> list[Arrays]:
    """Random arrays, some with numbers that are not like others."""
    plain, special = inputs_of(base, 0), inputs_of(base, 1)
    for array in special.values():
        if array.dtype.kind == "f" and array.size:
            array.reshape(-1)[::3] = np.resize(
                np.array([np.nan, -0.0, np.inf], array.dtype), array.reshape(-1)[::3].shape
            )
    return [plain, special]


@one_in(18)
@pytest.mark.parametrize("name", ["row_sum", "softmax", "max_axis1", "dense", "relu_nhwc"])
def test_no_wrong_neighbour_of_a_rewrite_is_accepted(name: str) -> None:
    """Whatever the walk accepts computes the same in the interpreter, or is refused because it may fault."""
    rng, tried = Random(name), 0
    pads = padded(name, rng)
    arrays = inputs(small(name))
    for rewrite in steps(name, rng, pads):
        for wrong in mutants(rewrite.new, rng, 5):
            if check_wellformed(wrong):
                continue
            tried += 1
            if isinstance(walked(Rewrite(rewrite.old, wrong, rewrite.witness)), Open):
                continue
            if any(differs(rewrite, wrong, given, pads) for given in arrays):
                assert any(v.status is not Status.PROVED for v in check_facts(Facts.of(wrong))), wrong
    assert tried > 5
