"""`lower_blocks`: where an init may move to, and where its order would show."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results
from tests.random_programs import RandomProgram

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import run
from layoutproof.ir.interp.fault import Fault
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script import print_func
from layoutproof.ir.stmt import Block
from layoutproof.ir.visit import walk
from layoutproof.lowering.blocks import LowerBlocks
from layoutproof.lowering.schedule import Schedule


def lowered(func: PrimFunc) -> PrimFunc:
    """The function without blocks, which it must not have any more."""
    new = LowerBlocks().propose(func).new
    assert not any(isinstance(node, Block) for node in walk(new.body))
    return new


def body_text(func: PrimFunc) -> str:
    """The statements of a printed function, without what stands before them."""
    lines = print_func(func).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(line[4:] for line in lines[start + 1 :] if line.strip())


def test_an_init_moved_past_other_results_asks_for_parameters_apart() -> None:
    """Without noalias the kernel refuses a call whose arrays overlap, where the init stands elsewhere than in the program."""
    func = program("""def main(A: T.Buffer((3, 3), "int32"), B: T.Buffer((3,), "int32")):
    for k, i in T.grid(3, 3):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
""")
    kernel = Schedule(func).build("c")
    array = np.arange(9, dtype=np.int32).reshape(3, 3)
    with pytest.raises(LayoutproofError, match="overlap"):
        kernel.raw(array, array[0])
    result = np.zeros(3, dtype=np.int32)
    kernel.raw(array, result)
    assert result.tolist() == [3, 12, 21]
    assert any("overlap" in assumption.text for assumption in kernel.assumptions)


def test_init_is_guarded_where_another_statement_meddles() -> None:
    """A neighbour inside the reduction that reads the results keeps the init at the block, under `k == 0`."""
    func = program("""def main(A: T.Buffer((3, 4), "int32"), B: T.Buffer((3,), "int32"), P: T.Buffer((3, 4), "int32")):
    for k in range(4):
        for i in range(3):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + A[vi, vk]
        for j in range(3):
            P[j, k] = B[j]
""")
    new = lowered(func)
    assert "if k == 0:" in body_text(new)
    assert_same_results(func, new)


def compare_shared(seed: int) -> str | None:
    """A random program whose reductions share cells, lowered and compared; the reason where it is refused, None where it is the same."""
    random = RandomProgram(seed, faults=False, undef=False, shared=True)
    func, arguments = random.function(), random.arguments()
    try:
        expected = run(func, arguments)
    except Fault:
        return "the program itself faults"
    try:
        new = lowered(func)
    except LayoutproofError as problem:
        assert problem.diagnostics[0].code == "LP332", (seed, problem)
        return problem.diagnostics[0].message
    found = run(new, arguments)
    for name in arguments:
        assert found[name].tobytes() == expected[name].tobytes(), (seed, name)
    return None


def test_reductions_that_share_cells() -> None:
    """Results that write or read each other's cells, meddling neighbours, guards: the same values, or a refusal; most are lowered."""
    reasons = [compare_shared(seed) for seed in range(120)]
    assert reasons.count(None) > 70 and any(reason is not None and "may share a cell" in reason for reason in reasons)


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
    """An index that two results share keeps the init at its block; one that is injective lets it move before the reduction."""
    func = program(f"""def main(A: T.Buffer((6, 4), "int32"), B: T.Buffer((6,), "int32")):
    for k, i in T.grid(4, 6):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where({where})
            with T.init():
                B[{index}] = 7
            B[{index}] = B[{index}] + A[vi, vk]
""")
    new = lowered(func)
    assert ("if k == 0" in body_text(new)) is not hoisted
    assert_same_results(func, new)


@pytest.mark.parametrize(
    ("update", "value", "where", "reason"),
    [
        ("B[vi // 2] + A[vi, vk]", "0", "A[vi, vk] > 0", "two results of block sum may share a cell of B"),
        ("B[vi] + B[(vi + 1) % 6]", "0", "vk >= 1", "two results of block sum may share a cell of B"),
        ("B[vi] + A[vi, vk]", "i * 10 + k", "vi + vk > 2", "the init uses k, of which a result may see several values"),
        ("B[vi] + A[vi, vk]", "0", "B[vi] < 3", "a loop, a branch, a let or a binding of the reduction reads what the init writes"),
    ],
)
def test_inits_whose_order_would_show_are_refused(update: str, value: str, where: str, reason: str) -> None:
    """Shared cells, reads of other results, values that differ from visit to visit, guards on results: no place is right."""
    target = update[: update.index("]") + 1]
    func = program(f"""def main(A: T.Buffer((6, 4), "int32"), B: T.Buffer((6,), "int32")):
    for k, i in T.grid(4, 6):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where({where})
            with T.init():
                {target} = {value}
            {target} = {update}
""")
    with pytest.raises(LayoutproofError, match=reason) as caught:
        LowerBlocks().propose(func)
    assert caught.value.diagnostics[0].code == "LP332"


def test_views_of_one_memory_do_not_keep_apart() -> None:
    """A reduction that reads its results through another view keeps its init at the block."""
    func = program("""def main(A: T.Buffer((6, 4), "int32"), B: T.Buffer((6,), "int32")):
    V = T.decl_buffer((3, 2), "int32", data=B.data)
    for k, i in T.grid(4, 6):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 7
            B[vi] = B[vi] + V[vi // 2, 0] * A[vi, vk]
""")
    new = lowered(func)
    assert "if k == 0" in body_text(new)
    assert_same_results(func, new)


def test_a_binding_to_memory_that_the_block_changes_is_refused() -> None:
    """The variable has the value from the block's entry; written out, the load would see what the block stores."""
    func = program("""def main(D: T.Buffer((6,), "int32"), B: T.Buffer((6,), "int32")):
    for i in range(6):
        with T.sblock("step"):
            v = T.axis.spatial(6, D[i])
            D[i] = 0
            B[v] = 1
""")
    with pytest.raises(LayoutproofError, match=r"LP333.*v of block step is bound to a value of D"):
        LowerBlocks().propose(func)


def test_an_init_without_a_place_is_refused() -> None:
    """Where neither hoisting nor a guard is known to be right, the error says why, and where the block stands."""
    func = program("""def main(A: T.Buffer((3, "m"), "int32"), B: T.Buffer((3,), "int32"), P: T.Buffer((3,), "int32")):
    m = T.int32()
    for k in range(m):
        for i in range(3):
            with T.sblock("sum"):
                vi = T.axis.spatial(3, i)
                vk = T.axis.reduce(m, k)
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + A[vi, vk]
        P[0] = B[0]
""")
    with pytest.raises(LayoutproofError) as caught:
        LowerBlocks().propose(func)
    message = caught.value.diagnostics[0]
    assert message.code == "LP332" and message.span is not None and message.span.line == 6
    assert "another statement in the reduction touches" in message.message and "loop k may run no iteration" in message.message
