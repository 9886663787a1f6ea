"""Programs that are too large to run, and look where data says: shown to run with zeros there."""

from __future__ import annotations

import numpy as np
import pytest

from layoutproof.ir.interp.run import run
from layoutproof.ir.script.reader import loads
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.vacuity import prove_runs
from layoutproof.verify.faults.zero_indices import with_zero_indices
from layoutproof.verify.verdict.verdict import Status

GATHER = """@T.prim_func
def main(W: T.Buffer(({rows}, {size}), "float32"), I: T.Buffer(({rows},), "int32"), O: T.Buffer(({size},), "float32")):
    for r, i in T.grid({rows}, {size}):
        {body}
"""
LARGE = {"rows": 1 << 12, "size": 1 << 15}


def test_a_large_gather_runs() -> None:
    """It has 2^27 iterations; with zeros as indices all is in bounds."""
    func = loads(GATHER.format(**LARGE, body="O[i] = O[i] + W[I[r], i]"))
    assert prove_runs(func).status is Status.PROVED


OPEN = {
    "an index outside at zero": "O[i] = W[I[r] + {rows}, i]",
    "indices that are written": "I[r] = {rows}\n        O[i] = W[I[r], i]",
    "indices loaded outside": "O[i] = W[I[r + 1], i]",
    "a divisor": "O[i] = W[5 // I[r], i]",
    "indices that are no zeros": (
        "T.evaluate(T.assume(I[r] >= 1 and I[r] * I[r] == I[r] + I[r]))\n        O[i] = W[I[r] * 5000, i]"
    ),
}


@pytest.mark.parametrize("name", OPEN)
def test_a_program_that_faults_with_zeros_is_not_shown_to_run(name: str) -> None:
    """Nothing is said of these."""
    func = loads(GATHER.format(**LARGE, body=OPEN[name].format(**LARGE)))
    assert prove_runs(func).status is not Status.PROVED


def test_with_zeros_it_does_the_same() -> None:
    """Against the interpreter, on a small one."""
    func = loads(GATHER.format(rows=3, size=4, body="O[i] = O[i] + W[I[r], i] * T.float32(2)"))
    zeros = with_zero_indices(Facts.of(func.with_parameters_apart()))
    assert zeros is not None
    w = np.arange(12, dtype=np.float32).reshape(3, 4)
    inputs = {"W": w, "I": np.zeros(3, np.int32), "O": np.ones(4, np.float32)}
    assert run(func, inputs)["O"].tolist() == run(zeros, inputs)["O"].tolist() == (1 + 6 * w[0]).tolist()
