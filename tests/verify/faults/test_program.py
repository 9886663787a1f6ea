"""Whole programs: operators are proved at every stage, shrunk mutants are refuted, and the interpreter agrees."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.random.faulty import random_program
from tests.shares import one_in, some
from tests.verify.programs import CONVOLUTION, OPERATORS, PAIRS, first, program, statuses

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.interp import Fault, FaultKind, run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.verify.faults.vacuity import check_program
from layoutproof.verify.verdict.verdict import Status


@pytest.mark.parametrize("path", OPERATORS, ids=lambda p: p.stem)
def test_operators_have_no_fault(path: Path) -> None:
    """Every real operator is proved entirely, concrete and symbolic ones."""
    assert statuses(check_program(loads(path.read_text(encoding="utf-8")))) == {Status.PROVED}


@pytest.mark.parametrize("path", PAIRS, ids=lambda p: p.name)
def test_relaid_operators_have_no_fault(path: Path) -> None:
    """Operators that a peer re-laid with padding are proved entirely."""
    assert statuses(check_program(loads(path.read_text(encoding="utf-8")))) == {Status.PROVED}


def test_convolution_for_every_extent() -> None:
    """The convolution with N, H, W, C, K all symbolic is proved entirely."""
    assert statuses(check_program(program(CONVOLUTION))) == {Status.PROVED}


@one_in(9)
@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("A[n, h - 1, w - 1, c]", "A[n, h, w - 1, c]", "read A"),
        ("A[n, h - 1, w - 1, c]", "A[n, h - 1, w, c]", "read A"),
        ("h < H + 1", "h < H + 2", "read A"),
        ("1 <= w and ", "", "read A"),
        ("P = T.alloc_buffer((N, H + 2, W + 2, C))", "P = T.alloc_buffer((N, H + 1, W + 2, C))", "write P"),
        ("T.grid(N, H + 2, W + 2, C)", "T.grid(N, H + 1, W + 2, C)", "read `P["),
        ("T.grid(N, H + 2, W + 2, C)", "T.grid(N, H + 3, W + 2, C)", "write P"),
        ("P[n, h + y, w + x, c]", "P[n, h + y + 1, w + x, c]", "read P"),
        ("T.grid(N, H, W, K, 3, 3, C)", "T.grid(N, H, W, K, 3, 4, C)", "read"),
        ("F[y, x, c, k]", "F[y, x, k, c]", "read F"),
        (
            "            with T.init():\n                B[n, h, w, k] = T.float32(0)\n            B[n, h, w, k] = ",
            "            P[n, h, w, k] = ",
            "write P",
        ),
    ],
)
def test_mutants_of_the_convolution_are_refuted(old: str, new: str, part: str) -> None:
    """One wrong offset, a guard that is dropped, an extent one too large: refuted at the access that is to blame, and
    the interpreter faults.
    """
    assert old in CONVOLUTION
    function = program(CONVOLUTION.replace(old, new))
    verdict = first(check_program(function), Status.REFUTED, part)
    assert verdict.counterexample is not None
    symbols = {name: verdict.counterexample["values"][name] for name in "NHWCK"}
    with pytest.raises(Fault):
        run(function, arguments(function, symbols, seed=0))


OVERCOMPUTE = """
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for io, ii in T.grid(4, 4):
        B[io, ii] = T.float32(0)
        for f in range(3):
            GUARDB[io, ii] = B[io, ii] + A[INDEX] * F[f]
"""


def test_roadmap_convolution_overcompute_reads_out_of_bounds() -> None:
    """Without its branch the roadmap's 1-d convolution reads A[4, 0] of a [4, 4] buffer; wrapped, or with the branch,
    it does not.
    """
    plain, wrapped = "(4*io + ii + f) // 4, (4*io + ii + f) % 4", "(4*io + ii + f) // 4 % 4, (4*io + ii + f) % 4"
    removed = check_program(program(OVERCOMPUTE.replace("GUARD", "").replace("INDEX", plain)))
    verdict = first(removed, Status.REFUTED, "read A")
    assert verdict.counterexample is not None
    assert verdict.counterexample["indices"][0] == 4
    assert verdict.counterexample["extents"] == [4, 4]
    assert statuses(check_program(program(OVERCOMPUTE.replace("GUARD", "").replace("INDEX", wrapped)))) == {
        Status.PROVED
    }
    guarded = OVERCOMPUTE.replace("GUARD", "if 4*io + ii < 12: ").replace("INDEX", plain)
    assert statuses(check_program(program(guarded))) == {Status.PROVED}


def test_block_variable_outside_its_domain() -> None:
    """A block variable bound past its domain is refuted, unless the block's guard keeps it inside."""
    text = """
    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i, j in T.grid(4, 4):
            with T.block("b"):
                WHERE
                v = T.axis.spatial(14, i * 4 + j)
                B[v] = A[v]
    """
    assert (
        first(check_program(program(text.replace("WHERE\n", "\n"))), Status.REFUTED, "block variable v").counterexample
        is not None
    )
    assert statuses(check_program(program(text.replace("WHERE", "T.where(i * 4 + j < 14)")))) == {Status.PROVED}


def test_contradicting_assumptions_are_vacuous() -> None:
    """Where no value of the symbols is allowed, that is said, and does not pass for a proof."""
    function = loads(next(p for p in OPERATORS if p.stem == "sym_relu").read_text(encoding="utf-8"))
    symbol = next(e for e in function.buffers[0].shape if isinstance(e, Var))
    impossible: Expr = symbol < 0
    assert Status.VACUOUS in statuses(check_program(function, where=impossible))


def test_program_that_never_stores_is_vacuous() -> None:
    """A program all of whose loops are empty says nothing."""
    text = """
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(0):
            B[i] = A[i]
    """
    assert Status.VACUOUS in statuses(check_program(program(text)))


def test_opaque_calls_are_not_looked_into() -> None:
    """A call that nobody knows makes the answer unknown, and is named."""
    text = """
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        T.evaluate(T.call_extern("int32", "mystery", B.data))
        for i in range(4):
            B[i] = A[i]
    """
    verdict = first(check_program(program(text)), Status.UNKNOWN)
    assert verdict.reason is not None
    assert "call_extern" in verdict.reason


# -- against the reference interpreter
# ----------------------------------------------------------------------------------------

_KINDS: dict[FaultKind, tuple[str, ...]] = {
    FaultKind.OUT_OF_BOUNDS: ("stays within", "stays inside"),
    FaultKind.UNINITIALISED: ("is initialised",),
    FaultKind.FORBIDDEN: ("is initialised", "stays off"),
    FaultKind.TRAP: ("has a result",),
    FaultKind.RACE: ("touch one cell", "meet"),
    FaultKind.OVERFLOW: ("fits",),
    FaultKind.BINDING: ("domain",),
}


def arguments(function: PrimFunc, symbols: dict[str, int], seed: int) -> dict[str, object]:
    """Random arrays for a function's parameters; integers are small, so that they can serve as indices."""
    rng = np.random.default_rng(seed)
    found: dict[str, object] = {}
    for buffer in function.buffers:
        shape = tuple(int(evaluate(extent, symbols)) for extent in buffer.shape)
        data = (
            rng.integers(0, 6, shape).astype(np.int32)
            if buffer.dtype.is_integer
            else rng.random(shape).astype(np.float32)
        )
        found[buffer.name] = data
    return found


def fault_of(function: PrimFunc, symbols: dict[str, int], seed: int) -> Fault | None:
    """The fault of one run, or None."""
    try:
        run(function, arguments(function, symbols, seed))
    except Fault as fault:
        return fault
    return None


def can_be_run(function: PrimFunc) -> bool:
    """Whether the interpreter takes the program: not where a reduction's spatial loop depends on a reduction loop."""
    try:
        fault_of(function, {"n": 0, "m": 0}, seed=0)
    except LayoutproofError as problem:
        assert [d.code for d in problem.diagnostics] == ["LP180"]
        return False
    return True


def check_seed(seed: int, *, symbolic: bool) -> None:
    """A proved program runs without a fault; each fault has an obligation of its kind that was not proved; what is
    refuted does fault.
    """
    text = random_program(seed, symbolic=symbolic)
    function = loads(text)
    verdicts = check_program(function)
    if not can_be_run(function):
        return
    sizes = [(0, 3), (1, 1), (2, 3), (3, 2), (5, 1)] if symbolic else [(0, 0)]
    for n, m in sizes:
        fault = fault_of(function, {"n": n, "m": m}, seed)
        if fault is not None:
            words = _KINDS[fault.kind]
            to_blame = [
                v for v in verdicts if v.status is not Status.PROVED and any(word in v.claim.text for word in words)
            ]
            assert to_blame, f"seed {seed}: {fault}\n{text}"
    for verdict in verdicts:
        if verdict.status is Status.REFUTED:
            assert verdict.counterexample is not None
            named = {**verdict.counterexample.get("values", {}), **verdict.counterexample.get("symbols", {})}
            symbols = {"n": named.get("n", 0), "m": named.get("m", 0)}
            if max(symbols.values()) <= 40:
                assert fault_of(function, symbols, seed) is not None, f"seed {seed}: {verdict}\n{text}"


@one_in(7)
@pytest.mark.parametrize("start", some(range(0, 400, 50), 1))
def test_random_programs_agree_with_the_interpreter(start: int) -> None:
    """Random small programs, most of them faulty: nothing that faults is proved, nothing that runs is refuted."""
    for seed in range(start, start + 50):
        check_seed(seed, symbolic=False)


@one_in(7)
@pytest.mark.parametrize("start", some(range(0, 100, 25), 1))
def test_random_symbolic_programs_agree_with_the_interpreter(start: int) -> None:
    """The same with two symbolic extents, run at several sizes and at the counterexamples' own."""
    for seed in range(start, start + 25):
        check_seed(seed, symbolic=True)


@pytest.mark.campaign
def test_campaign_of_random_programs() -> None:
    """Many more of both."""
    for seed in range(10_000):
        check_seed(seed, symbolic=seed % 4 == 0)


def test_claims_name_buffer_and_line() -> None:
    """Each obligation about an access says which, and on what line."""
    verdicts = check_program(program(CONVOLUTION))
    assert any(re.search(r"read A\[.*\] stays within \[N, H, W, C\] \(line \d+\)", v.claim.text) for v in verdicts)
