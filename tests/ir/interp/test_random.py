"""Random programs: the two evaluators agree, and slices agree with full runs."""

from __future__ import annotations

import sys

import pytest
from tests.random.objects import RandomProgram
from tests.running import both
from tests.shares import one_in, some

from layoutproof.ir.expr import Expr
from layoutproof.ir.interp import Fault, Filling, Result, run, run_slice
from layoutproof.ir.interp.compiled import EXPRESSIONS, STATEMENTS
from layoutproof.ir.interp.walk_expr import EVALUATED
from layoutproof.ir.interp.walker import RUN
from layoutproof.ir.stmt import Stmt

BATCHES, BATCH, SLICES = 8, 50, 12


def leaves(kind: type) -> set[type]:
    """Every node type of programs below one (classes made over with slots leave a double behind, which its module does
    not know).
    """
    every: list[type] = kind.__subclasses__()
    # Nodes of kernels that are being written as loops stand in no program.
    every = [k for k in every if k.__module__.startswith("layoutproof.ir") and ".threads." not in k.__module__]
    below = [k for k in every if getattr(sys.modules[k.__module__], k.__name__) is k]
    return {kind} if not below else set[type]().union(*(leaves(k) for k in below))


def test_both_evaluators_know_every_node() -> None:
    """Each node type has an entry in the tables of both evaluators."""
    assert leaves(Expr) == set(EXPRESSIONS) == EVALUATED
    assert leaves(Stmt) == set(STATEMENTS) == RUN


def compare(seed: int) -> str:
    """Run one random program both ways; how it ended."""
    random = RandomProgram(seed)
    func = random.function()
    found = both(func, random.arguments(), filling=Filling(seed=seed), limit=20_000)
    return found.kind.value if isinstance(found, Fault) else "result"


@one_in(7)
@pytest.mark.parametrize("batch", some(range(BATCHES), 3))
def test_the_two_evaluators_agree(batch: int) -> None:
    """Same arrays and states, or same kind and place of fault."""
    ends = [compare(batch * BATCH + k) for k in range(BATCH)]
    assert len(set(ends)) > 2
    assert ends.count("result") > BATCH // 4


@pytest.mark.campaign
@pytest.mark.parametrize("batch", range(20))
def test_the_two_evaluators_agree_at_length(batch: int) -> None:
    """The same on many more programs."""
    for k in range(5_000):
        compare(1_000_000 + batch * 5_000 + k)


def compare_slice(seed: int) -> bool:
    """One cell of each parameter by slice and by a full run; whether there was a full run without fault."""
    random = RandomProgram(seed, faults=False, undef=False)
    func, arguments = random.function(), random.arguments()
    try:
        full = run(func, arguments, limit=20_000)
    except Fault:
        return False
    assert isinstance(full, Result)
    for buffer in func.buffers:
        shape = full[buffer.name].shape
        cells = [tuple(random.random.randrange(e) for e in shape) for _ in range(2)]
        part = run_slice(func, arguments, {buffer.name: cells})
        assert [full[buffer.name][c].tobytes() for c in cells] == [v.tobytes() for v in part[buffer.name]], (
            seed,
            buffer.name,
            cells,
        )
        assert part.iterations <= full.iterations
    return True


@one_in(7)
@pytest.mark.parametrize("batch", some(range(BATCHES), 3))
def test_slices_agree_with_full_runs(batch: int) -> None:
    """Chosen cells of any parameter have the same bits in a slice as in a full run, which is never shorter."""
    done = [compare_slice(10_000 + batch * SLICES + k) for k in range(SLICES)]
    assert done.count(True) > SLICES // 2


@pytest.mark.campaign
@pytest.mark.parametrize("batch", range(20))
def test_slices_agree_with_full_runs_at_length(batch: int) -> None:
    """The same on many more programs."""
    for k in range(1_000):
        compare_slice(2_000_000 + batch * 1_000 + k)
