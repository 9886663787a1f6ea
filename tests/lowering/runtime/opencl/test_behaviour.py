"""What is seen of a device's arithmetic, and what becomes of kernels where its compiler does not keep to IEEE 754."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.programs import program
from tests.lowering.runtime.opencl.sources import default_device
from tests.lowering.small_operators import small
from tests.shares import one_in

from layoutproof.lowering.runtime.opencl import load_opencl as module
from layoutproof.lowering.runtime.opencl.device_behaviour import Behaviour, observe
from layoutproof.lowering.runtime.opencl.launcher import FAST, UNOPTIMISED
from layoutproof.lowering.schedule.schedule import Schedule

SOUND = Behaviour(regroups=False, flushes=False, divides_inexactly=False)
REGROUPING = Behaviour(regroups=True, flushes=False, divides_inexactly=False)


class Observed:
    """Stands for `observe`: says what it is told to, by whether optimisation was off, and keeps what it was asked."""

    def __init__(self, usual: Behaviour, careful: Behaviour) -> None:
        self.usual, self.careful = usual, careful
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, handle: object, options: tuple[str, ...]) -> Behaviour:
        self.asked.append(options)
        return self.careful if UNOPTIMISED in options else self.usual


@one_in(9)
def test_pocl_is_sound() -> None:
    """pocl keeps the order of sums, fuses nothing, keeps subnormals and divides correctly, with and without
    optimisation.
    """
    handle = default_device().handle
    assert observe(handle, ()) == observe(handle, (UNOPTIMISED,)) == SOUND


@one_in(4)
def test_fast_arithmetic_is_noticed() -> None:
    """The probe is not blind: with fast arithmetic the same compiler regroups sums."""
    assert observe(default_device().handle, (FAST,)).regroups


@one_in(4)
def test_a_compiler_that_regroups_is_told_not_to_optimise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where that helps, the kernel is slower, exact, and says so; it takes no fast-math assumption."""
    observed = Observed(REGROUPING, SOUND)
    monkeypatch.setattr(module, "observe", observed)
    kernel = Schedule(small("row_sum")).build("opencl", device="pocl")
    assert observed.asked[1] == (*observed.asked[0], UNOPTIMISED)
    assert kernel.report.command.endswith(UNOPTIMISED) and kernel.report.fast_math == ()
    title = default_device().title
    assert kernel.report.notes == (
        f"compiled without optimisation (-cl-opt-disable): the compiler of {title} regroups float sums otherwise",
    )
    assert kernel.report.self_check == "equal to the interpreter, bit for bit"


def test_a_compiler_that_regroups_all_the_same_takes_a_fast_math(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing helps, the report names the fast-math assumption, and results are compared as far as it lets them
    differ.
    """
    monkeypatch.setattr(module, "observe", Observed(REGROUPING, REGROUPING))
    func = small("row_sum")
    kernel = Schedule(func).build("opencl", device="pocl")
    assert kernel.report.fast_math == ("reassoc",) and UNOPTIMISED not in kernel.report.command
    title = default_device().title
    assert kernel.report.notes == (
        f"fast-math assumption reassoc: the compiler of {title} regroups float32 sums, or fuses them with products, "
        "whatever it is told",
    )
    assert (
        kernel.inexact.regroups
        and kernel.may_differ
        and kernel.report.self_check == "equal to the interpreter, bit for bit"
    )


def test_what_is_seen_counts_whatever_a_device_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that claims subnormals and correct division, and has neither, takes both fast-math assumptions."""
    lying = Behaviour(regroups=False, flushes=True, divides_inexactly=True)
    monkeypatch.setattr(module, "observe", Observed(lying, lying))
    kernel = Schedule(small("softmax")).build("opencl", device="pocl", check=False)
    assert kernel.report.fast_math == ("flush-subnormals", "approximate-division")


@one_in(4)
def test_nothing_is_asked_where_nothing_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers, copies and float64 are what OpenCL makes of them everywhere; fast arithmetic was asked for."""
    observed = Observed(REGROUPING, REGROUPING)
    monkeypatch.setattr(module, "observe", observed)
    for name in ("double_int", "transpose"):
        assert Schedule(small(name)).build("opencl", device="pocl", check=False).report.fast_math == ()
    assert Schedule(small("row_sum")).build("opencl", device="pocl", fast=True).report.fast_math == ()
    assert observed.asked == []


def test_subnormals_through_a_kernel() -> None:
    """Products below the smallest normal number are what IEEE 754 has."""
    func = program("""def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in T.parallel(64):
        B[i] = A[i] * T.float32(0.3)
""")
    x = (np.arange(64, dtype=np.uint32) * 99_991).view(np.float32)
    found = np.asarray(Schedule(func).build("opencl", device="pocl")(x))
    assert found.tobytes() == (x * np.float32(0.3)).tobytes() and np.count_nonzero(found) > 50
