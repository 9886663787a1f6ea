"""Inits in lowering: the same values whatever shares cells, and out of the innermost loop where that is proved."""

from __future__ import annotations

import pytest
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results
from tests.random.objects import RandomProgram
from tests.shares import one_in

from layoutproof.ir.interp import run
from layoutproof.ir.interp.memory import Fault
from layoutproof.ir.script.printer import print_func
from layoutproof.lowering.loops.decompose_reduction import DecomposeReduction
from layoutproof.lowering.lower.flatten import LowerBlocks
from layoutproof.lowering.schedule.schedule import Schedule


def compare_shared(seed: int) -> bool:
    """A random program whose reductions share cells, lowered and compared; False where the program itself faults."""
    random = RandomProgram(seed, faults=False, undef=False, shared=True)
    func, arguments = random.function(), random.arguments()
    try:
        expected = run(func, arguments)
    except Fault:
        return False
    found = run(LowerBlocks().propose(func).new, arguments)
    for name in arguments:
        assert found[name].tobytes() == expected[name].tobytes(), (seed, name)
    return True


@one_in(10)
def test_reductions_that_share_cells() -> None:
    """Results that write or read each other's cells, meddling neighbours, guards: the same values."""
    assert sum(compare_shared(seed) for seed in range(120)) > 70


@pytest.mark.campaign
@pytest.mark.parametrize("batch", range(20))
def test_reductions_that_share_cells_campaign(batch: int) -> None:
    """The test above on many more."""
    for k in range(100):
        compare_shared(1_000 + 100 * batch + k)


@pytest.mark.parametrize(
    ("where", "index", "hoisted"),
    [
        ("True", "vi", True),
        ("True", "(vi + 1) % 6", True),
        ("True", "5 - vi", True),
        ("vk >= 2", "vi", True),
        ("True", "vi // 2", False),
        ("vi < 6 and vk < 4", "vi % 3", False),
    ],
)
def test_inits_move_up_only_where_results_keep_apart(where: str, index: str, hoisted: bool) -> None:
    """An index that two results share keeps the init at its block; one that is injective lets it move before the
    reduction.
    """
    func = program(f"""def main(A: T.Buffer((6, 4), "int32"), B: T.Buffer((6,), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    for k, i in T.grid(4, 6):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where({where})
            with T.init():
                B[{index}] = 7
            B[{index}] = B[{index}] + A[vi, vk]
""")
    schedule = Schedule(func)
    lowered = schedule.lower()
    assert any(isinstance(step.transform, DecomposeReduction) for step in schedule.lowering_steps) is hoisted
    assert ("k == 0" in print_func(lowered)) is not hoisted
    assert_same_results(func, lowered)


def test_an_init_stays_where_another_statement_meddles() -> None:
    """A neighbour inside the reduction that reads the results keeps the init at the block, under `k == 0`."""
    func = program("""def main(A: T.Buffer((3, 4), "int32"), B: T.Buffer((3,), "int32"), P: T.Buffer((3, 4), "int32")):
    T.func_attr({"tirx.noalias": True})
    for k in range(4):
        for j in range(3):
            P[j, k] = B[j]
        for i in range(3):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + A[vi, vk]
""")
    lowered = Schedule(func).lower()
    assert "if k == 0:" in print_func(lowered)
    assert_same_results(func, lowered)
