"""Dropping guards: which there are, what stays, which domains grow, and what the witness says of the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.lowering.loops.cases import CASES, REFUSED
from tests.lowering.loops.instances import check_theta
from tests.lowering.programs import program

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.stmt import Block
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import walk
from layoutproof.ir.wellformed import require_wellformed
from layoutproof.lowering.loops.nest import guard_sites
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute, candidates
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict.verdict import Status

MANY = """def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32"), C: T.Buffer((16,), "int32")):
    for i in range(4):
        if i < 3:
            for j in range(4):
                with T.sblock("many"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.where(j < 3 and i * 4 + j != 5)
                    if C[vi] > 0:
                        B[vi, vj] = T.if_then_else(vj < 2, A[vi, vj], 7)
                    else:
                        B[vi, vj] = 9
"""
ARMS = """def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        if i < 14:
            A[i] = 1
            B[i] = 2
        else:
            A[i] = 1
            B[i] = 3
"""


def drop(func: PrimFunc, block: str, guards: tuple[int, ...] | None = None, wrap: bool = False) -> PrimFunc:
    """The function without guards, well-formed; its witness is right for all instances that it maps."""
    rewrite = RemoveBranchingThroughOvercompute(block, guards, wrap).propose(func)
    return require_wellformed(rewrite.new)


def test_guards_are_numbered_from_the_outside() -> None:
    """Branches around the block, its own conjuncts, branches inside, choices in values."""
    assert [str(site) for site in guard_sites(program(MANY), "many")] == [
        "`i < 3` (a branch around the block)",
        "`j < 3` (the block's own guard)",
        "`i * 4 + j != 5` (the block's own guard)",
        "`C[vi] > 0` (a branch inside the block)",
        "`vj < 2` (a choice inside a value)",
    ]
    assert len(guard_sites(program(MANY), "root")) == 5


@pytest.mark.parametrize(
    "guards, gone, left",
    [
        (None, ["if i < 3", "T.where"], ["if C[vi] > 0", "T.if_then_else(vj < 2"]),
        ((1,), ["j < 3"], ["if i < 3:", "T.where(i * 4 + j != 5)"]),
        ((2, 0), ["if i < 3", "!= 5"], ["T.where(j < 3)"]),
        ((3,), ["C[vi] > 0", "= 9"], ["if_then_else"]),
        ((-4,), ["C[vi] > 0", "if_then_else"], ["B[vi, vj] = 9"]),
        ((4,), ["if_then_else", "7"], ["B[vi, vj] = A[vi, vj]", "= 9"]),
        ((-5,), ["if_then_else", "A[vi, vj]\n"], ["B[vi, vj] = 7", "= 9"]),
    ],
)
def test_what_is_named_goes(guards: tuple[int, ...] | None, gone: list[str], left: list[str]) -> None:
    """Every other guard stays as it is; of a branch with an alternative either arm may stay."""
    text = print_func(drop(program(MANY), "many", guards)).split("T.Buffer((16,)")[1]
    assert [part for part in gone if part in text] == []
    assert [part for part in left if part not in text] == []


def test_the_witness_speaks_of_iterations_that_were_there() -> None:
    """Theta is the identity where the dropped conditions hold, said over loops."""
    rewrite = RemoveBranchingThroughOvercompute("many", (0, 1)).propose(
        program(MANY.replace("if C[vi] > 0", "if vi > 0"))
    )
    wheres = [expr_text(m.where) for m in rewrite.witness.instances if m.where is not None]
    assert wheres == ["i < 3 and j < 3"] * 2
    check_theta(rewrite)


def test_data_decides_values_not_instances() -> None:
    """A dropped condition that reads memory is not part of the witness."""
    rewrite = RemoveBranchingThroughOvercompute("many", (3,)).propose(program(MANY))
    assert [(m.new_store, m.old_store, m.where) for m in rewrite.witness.instances] == [(0, 0, None)]


@pytest.mark.parametrize("guards, kept", [((0,), "B[i] = 2"), ((-1,), "B[i] = 3")])
def test_an_arm_that_stays_computes_both(guards: tuple[int, ...], kept: str) -> None:
    """Where the condition does not hold, the stores of the arm that stays stand for those of the other."""
    rewrite = RemoveBranchingThroughOvercompute("root", guards).propose(program(ARMS))
    assert kept in print_func(rewrite.new)
    check_theta(rewrite)
    assert sorted(m.new_store for m in rewrite.witness.instances) == [0, 0, 1, 1]


def test_domains_grow_with_what_runs_more() -> None:
    """A block variable ranges over all that its loops give it, for every size."""
    row_sum = CASES["row_sum"]
    assert "vj = T.axis.reduce(16, j_0 * 4 + j_1)" in print_func(row_sum.result(row_sum.sizes))
    assert "vj = T.axis.reduce((m + 3) // 4 * 4, j_0 * 4 + j_1)" in print_func(row_sum.result())
    conv2d = CASES["conv2d"]
    assert "vk = T.axis.spatial(72, k_0 * 4 + k_1)" in print_func(conv2d.result(conv2d.sizes))


def test_domains_may_grow_downwards() -> None:
    """A window that slides over the start of a buffer reaches below zero."""
    func = program("""def main(A: T.Buffer((16,), "int32"), B: T.Buffer((14,), "int32")):
    for p, f in T.grid(16, 3):
        with T.sblock("conv"):
            vi = T.axis.spatial(14, p - f)
            vf = T.axis.reduce(3, f)
            T.where(p - f >= 0 and p - f < 14)
            B[vi] = B[vi] + A[vi + vf]
""")
    assert "vi = T.axis.spatial((-2, 16), p - f)" in print_func(drop(func, "conv"))
    assert "vi = T.axis.spatial((-2, 14), p - f)" in print_func(drop(func, "conv", (0,)))
    assert "vi = T.axis.spatial(16, p - f)" in print_func(drop(func, "conv", (1,)))


def test_domains_that_no_dropped_guard_speaks_of_stay() -> None:
    """What a kept guard keeps inside keeps its domain, and with it its init."""
    text = print_func(CASES["row_sum"].result())
    assert "vi = T.axis.spatial(n, i)" in text
    conv2d = CASES["conv2d"]
    *_, last = conv2d.proposals()
    assert "vk = T.axis.spatial(K, k_0 * 4 + k_1)" in print_func(drop(last.old, "conv2d", (1,)))


def test_inits_go_with_their_updates() -> None:
    """The witness says of an init what it says of the update: it ran where all guards held."""
    conv2d = CASES["conv2d"]
    *_, last = conv2d.proposals()
    wheres = {m.old_store: m.where for m in last.witness.instances if m.where is not None}
    assert [expr_text(w) for w in wheres.values()] == [
        "k_0 * 4 + k_1 < K and c_0 * 4 + c_1 < C",
        "k_0 * 4 + k_1 < K and c_0 * 4 + c_1 < C",
    ]


def test_loads_past_the_end_are_wrapped_on_request() -> None:
    """The roadmap's convolution reads a fifth row of four; with the index modulo 4 it does not."""
    case = CASES["convolution"]
    new = case.result(case.sizes)
    assert "A[(vi + vf) // 4 % 4, (vi + vf) % 4]" in print_func(new)
    given = {
        "A": np.arange(16, dtype=np.float32).reshape(4, 4),
        "F": np.ones(3, np.float32),
        "B": np.zeros((4, 4), np.float32),
    }
    assert run(new, given)["B"].reshape(-1)[:14].tolist() == [3.0 * i + 3 for i in range(14)]


def test_the_most_guards_that_are_proved_go() -> None:
    """With no guards named, the largest set that is proved is dropped, and the trace says which."""
    func = program("""def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 4):
        with T.sblock("copy"):
            v = T.axis.spatial(14, i * 4 + j)
            T.where(i < 9 and i * 4 + j < 14)
            B[v] = A[v // 4, v % 4]
""")
    schedule = Schedule(func)
    step = schedule.remove_branching_through_overcompute("copy")
    assert str(step) == "remove_branching_through_overcompute(block='copy', guards=[0], wrap=False)"
    assert "T.where(i * 4 + j < 14)" in schedule.script()
    assert Schedule.replay(func, schedule.trace).func == schedule.func


def test_candidates_are_much_before_little() -> None:
    """The default comes first, then ever smaller sets; what is guarded stays before its alternative."""
    found = [c.guards for c in candidates(program(ARMS), "root")]
    assert found == [(0,), (-1,)]
    many = [c.guards for c in candidates(program(MANY), "many")]
    sizes = [len(guards) for guards in many[1:] if guards is not None]
    assert many[0] == (0, 1, 2) and sizes == sorted(sizes, reverse=True) and len(many) <= 16


def test_a_wrapped_index_is_offered_where_it_would_do() -> None:
    """Where only the bounds stand in the way, the refusal says what would be proved."""
    case = REFUSED["convolution_out_of_bounds"]
    schedule = Schedule.replay(case.program(case.sizes), case.trace[:-1])
    before = schedule.func
    with pytest.raises(IllegalTransform) as caught:
        schedule.remove_branching_through_overcompute("conv", guards=[0])
    assert caught.value.status is Status.REFUTED
    help_text = caught.value.diagnostics[0].help
    assert help_text is not None and "wrap=True" in help_text
    assert schedule.func == before
    with pytest.raises(IllegalTransform) as replayed:
        Schedule.replay(case.program(case.sizes), case.trace)
    assert replayed.value.diagnostics[0].help == help_text
    schedule.remove_branching_through_overcompute("conv", guards=[0], wrap=True)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"block": "many", "guards": [5]}, "block many has 5 guards, there is no guard 5"),
    ({"block": "many", "guards": [-1]}, "has no alternative that could stay"),
    ({"block": "many", "guards": "all"}, "null, or a list of integers is expected"),
    ({"block": "many", "guards": [0.5]}, "null, or a list of integers is expected"),
    ({"block": "many", "wrap": 1}, "true or false is expected"),
    ({"block": "few"}, "main has no block called 'few'"),
]


@pytest.mark.parametrize("arguments, words", BAD)
def test_bad_arguments_are_refused(arguments: dict[str, Any], words: str) -> None:
    """Each wrong argument is named, with what was expected."""
    with pytest.raises(IllegalTransform) as caught:
        Schedule(program(MANY)).remove_branching_through_overcompute(**arguments)
    assert words in caught.value.diagnostics[0].message


FUSED = """def main(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
    n = T.int32()
    for f in range((n + 7) // 8 * 8):
        with T.sblock("fused"):
            vi = T.axis.spatial(n, f % 8 * ((n + 7) // 8) + f // 8)
            T.where(f % 8 * ((n + 7) // 8) + f // 8 < n)
            B[vi] = A[vi]
"""


def test_a_domain_with_ends_past_its_type_stays() -> None:
    """Where the type has no number for the end of a fused symbolic loop, the domain is as it was, and the step is
    refused by its checks.
    """
    func = program(FUSED)
    before, after = (
        next(n for n in walk(f.body) if isinstance(n, Block)).iter_vars for f in (func, drop(func, "fused"))
    )
    assert after == before
    with pytest.raises(IllegalTransform) as caught:
        Schedule(func).remove_branching_through_overcompute("fused")
    assert caught.value.verdicts


def test_a_block_without_guards_is_refused() -> None:
    """There is nothing to drop, and that is said."""
    func = CASES["double"].program()
    with pytest.raises(LayoutproofError, match="has no guard"):
        RemoveBranchingThroughOvercompute("double").propose(func)
