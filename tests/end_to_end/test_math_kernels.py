"""Normalisations, softmax and attention: kernels have the interpreter's bits, and fast ones lie within the enclosure of
the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.cli.kernel_trial import compare_kernel
from layoutproof.ir.dtype import FLOAT32
from layoutproof.ir.expr import Binary, Expr, IfThenElseExpr, Select, const
from layoutproof.ir.interp.run import run
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import BufferStore, For
from layoutproof.lowering.codegen.opencl import cl_helpers as helpers
from layoutproof.lowering.codegen.writer import Helper
from layoutproof.lowering.runtime.enclosure import NoEnclosureError, enclose, outside
from layoutproof.lowering.runtime.inexact import EXACT, FAST_C, Bound, Inexact, of_device
from layoutproof.lowering.runtime.opencl import load_opencl as load
from layoutproof.lowering.runtime.opencl.load_opencl import OpenCLKernel
from layoutproof.lowering.schedule.schedule import Schedule

DATA = ROOT / "tests" / "data" / "math"
NAMES = ("layer_norm", "softmax", "log_sum_exp", "gelu", "rms_norm", "group_norm", "attention")
TYPES = ("float32", "float16")
BARE_DEVICE = of_device(doubles=False, fast=False, division=3.0, regroups=False, flushes=True)


def program(name: str, dtype: str) -> PrimFunc:
    """One of the programs, its floats of one type."""
    return loads((DATA / f"{name}.py").read_text(encoding="utf-8").replace("float32", dtype))


def test_no_program_is_left_out() -> None:
    """Every file of the folder is run."""
    assert {path.stem for path in DATA.iterdir()} == set(NAMES)


@one_in(56)
@pytest.mark.parametrize("target", ["c", "opencl"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_bits(name: str, dtype: str, target: str) -> None:
    """Kernel and interpreter agree in every bit of every cell, and the self-check says so."""
    schedule = Schedule(program(name, dtype))
    kernel = schedule.build(target)
    assert kernel.report.self_check == "equal to the interpreter, bit for bit"
    trial = compare_kernel(schedule.original, schedule.func, kernel, {})
    assert trial.equal and not trial.enclosed and [output.differing for output in trial.outputs] == [0]


@one_in(56)
@pytest.mark.parametrize("target", ["c", "opencl"])
@pytest.mark.parametrize("name", NAMES)
def test_fast_kernels_are_enclosed(name: str, target: str) -> None:
    """Fast arithmetic gives other bits; every cell is where its function's bounds let it be."""
    schedule = Schedule(program(name, "float32"))
    kernel = schedule.build(target, fast=True)
    assert kernel.report.self_check == "equal to the interpreter, within the enclosure of the program"
    trial = compare_kernel(schedule.original, schedule.func, kernel, {})
    assert trial.equal and trial.enclosed and all(output.differing > 0 == output.outside for output in trial.outputs)


@one_in(4)
def test_a_wrong_fast_kernel_lies_outside() -> None:
    """The kernel of a layer norm with another constant under the root is told from that of the program."""
    text = (DATA / "layer_norm.py").read_text(encoding="utf-8")
    wrong = Schedule(loads(text.replace("0.001)", "0.0011)"))).build("c", fast=True)
    schedule = Schedule(loads(text))
    wrong.lowered = schedule.lower()
    trial = compare_kernel(schedule.original, schedule.func, wrong, {})
    assert trial.enclosed and not trial.equal and trial.outputs[0].outside > 100


def pointwise(value: Callable[[Expr], Expr]) -> PrimFunc:
    """`B[i] = value(A[i])` on 64 numbers, lowered."""
    func = loads(
        "from tvm.script import tir as T\n\n@T.prim_func\n"
        'def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):\n'
        "    for i in range(64):\n        B[i] = A[i]\n"
    )
    body = func.body
    assert isinstance(body, For) and isinstance(body.body, BufferStore)
    store = body.body
    return func.with_body(replace(body, body=replace(store, value=value(store.value))))


def numbers() -> dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    """Arguments of both signs, the result's place empty."""
    values = np.random.default_rng(5).uniform(-4, 4, 64).astype(np.float32)
    return {"A": values, "B": np.zeros(64, np.float32)}


def test_without_liberties_an_enclosure_is_the_result() -> None:
    """Where nothing may be off, both ends are the program's value."""
    func = pointwise(lambda a: Call("exp", (a,)) * a + Call("sin", (a,)) / a)
    found = enclose(func, numbers(), EXACT, limit=10_000)["B"]
    assert (found.low == found.high).all() and not np.isnan(found.low).any()


@pytest.mark.parametrize("inexact", [FAST_C, BARE_DEVICE], ids=["fast", "device"])
@pytest.mark.parametrize(
    "name", ["exp", "exp2", "tanh", "sigmoid", "erf", "sinh", "cosh", "atan", "sin", "cos", "rsqrt", "log"]
)
def test_an_enclosure_is_as_wide_as_the_bound(name: str, inexact: Inexact) -> None:
    """A result that is as far off as its bound allows is inside, one that is ten times as far is not."""
    func = pointwise(lambda a: Call(name, (Call("abs", (a,)),)))
    found = enclose(func, numbers(), inexact, limit=10_000)["B"]
    exact = enclose(func, numbers(), EXACT, limit=10_000)["B"].low
    ulps = inexact.functions[name].ulps
    unit = np.spacing(np.abs(exact))
    for sign in (-1.0, 1.0):
        assert not outside(exact + np.float32(sign * ulps) * unit, found).any()
        assert outside(exact + np.float32(sign * (10 * ulps + 40)) * unit, found).all()


def test_what_follows_a_call_is_carried_out_on_both_ends() -> None:
    """After a cancellation the enclosure is as wide as the error that was magnified, which no number of units at the
    end is.
    """
    func = pointwise(lambda a: Call("exp", (a * const(2.0**-10, FLOAT32),)) - const(1.0, FLOAT32))
    found = enclose(func, numbers(), Inexact({"exp": Bound(3.0)}), limit=10_000)["B"]
    width = found.high - found.low
    assert (
        width.min() >= 3 * 2.0**-23
        and width.max() <= 12 * 2.0**-23
        and (width > 500 * np.spacing(np.abs(found.high))).mean() > 0.9
    )


def test_a_choice_that_is_not_certain_is_enclosed_by_both() -> None:
    """Where a comparison may come out either way, both values are inside; a loop or an address that hangs on it has no
    enclosure.
    """
    step = pointwise(lambda a: Select(Call("exp", (a,)) > Call("exp", (a,)), const(1.0, FLOAT32), const(0.0, FLOAT32)))
    found = enclose(step, numbers(), Inexact({"exp": Bound(3.0)}), limit=10_000)["B"]
    assert (found.low == 0).all() and (found.high == 1).all()
    lazy = pointwise(lambda a: IfThenElseExpr(a > const(0.0, FLOAT32), a, Call("exp", (a,))))
    with pytest.raises(NoEnclosureError, match="hangs on a float"):
        enclose(lazy, numbers(), FAST_C, limit=10_000)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(lambda x: Call("tan", (x,)), id="a function of an unknown argument"),
        pytest.param(lambda x: (x - x) / (x - x), id="a quotient of zeros"),
        pytest.param(
            lambda x: Binary(BinaryOp.MAX, Call("tan", (x,)), const(1.0, FLOAT32)), id="the larger of anything and 1"
        ),
        pytest.param(
            lambda x: Select(Call("tan", (x,)) < const(1.0, FLOAT32), const(2.0, FLOAT32), const(1.0, FLOAT32)),
            id="a choice",
        ),
    ],
)
def test_what_may_be_anything_may_be_nan(value: Callable[[Expr], Expr]) -> None:
    """Where a value may be NaN as well as a number, neither is outside, nor what a comparison makes of either."""
    func = pointwise(lambda a: value(Call("exp", (a,))))
    found = enclose(func, numbers(), Inexact({"exp": Bound(3.0)}), limit=10_000)["B"]
    possible = (1.0, 2.0) if isinstance(value(const(1.0, FLOAT32)), Select) else (1.0, 2.0, float("nan"))
    for result in possible:
        assert not outside(np.full(64, result, np.float32), found).any()


@one_in(9)
def test_chosen_cells_of_a_large_program_are_enclosed() -> None:
    """Past two million instances chosen cells of a re-laid output are compared, with the enclosure of what they depend
    on.
    """
    text = (DATA / "softmax.py").read_text(encoding="utf-8").replace("16", "24000")
    schedule = Schedule(loads(text))
    schedule.transform_layout("norm", "O", "lambda i, j: [j // 4, i, j % 4]")
    kernel = schedule.build("c", fast=True)
    assert re.fullmatch(
        r"equal to the interpreter in \d+ chosen cells, within the enclosure of the program", kernel.report.self_check
    )
    trial = compare_kernel(schedule.original, schedule.func, kernel, {})
    assert trial.sliced and trial.enclosed and trial.equal and trial.outputs[0].differing > 100


@one_in(21)
@pytest.mark.parametrize("name", NAMES)
def test_devices_without_doubles_are_enclosed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text for a device that has no doubles asks for none, and its own functions' results lie within the enclosure by
    OpenCL's bounds.
    """
    monkeypatch.setattr(helpers, "OWN_HELPERS", {**helpers.OWN_HELPERS, "LP_EXACT": Helper("#define LP_EXACT 0")})
    bare = of_device(doubles=False, fast=False, division=0.0, regroups=False, flushes=False)
    monkeypatch.setattr(load, "of_device", lambda **liberties: bare)
    schedule = Schedule(program(name, "float32"))
    kernel = schedule.build("opencl")
    assert kernel.report.self_check.startswith("equal to the interpreter, ")
    trial = compare_kernel(schedule.original, schedule.func, kernel, {})
    assert trial.equal and isinstance(kernel, OpenCLKernel) and kernel.source.extensions == ()
    bounds = {
        "softmax": "exp 3",
        "attention": "exp 3",
        "gelu": "erf 16",
        "log_sum_exp": "exp 3, log 3",
        "rms_norm": None,
    }.get(name, "rsqrt 4")
    assert bounds is None or any(f"in units in the last place: {bounds};" in note for note in kernel.report.notes)


@pytest.mark.parametrize(
    "line",
    [
        'N[i] = T.Cast("int32", T.exp(T.Cast("float32", N[i])))',
        "if T.exp(T.Cast('float32', N[i])) > T.float32(1): N[i] = 0",
    ],
)
def test_an_integer_of_an_inexact_function(line: str) -> None:
    """What a function of integers alone decides is as uncertain as what one of floats does."""
    func = loads(f'@T.prim_func\ndef f(N: T.Buffer((4,), "int32")):\n    for i in range(4):\n        {line}\n')
    with pytest.raises(NoEnclosureError):
        enclose(func, {"N": np.zeros(4, np.int32)}, FAST_C, limit=1000)
    assert enclose(func, {"N": np.zeros(4, np.int32)}, EXACT, limit=1000)["N"].low.shape == (4,)


@pytest.mark.parametrize("argument", ["A[i]", "-A[i]", "T.Cast('float32', A[i])"])
def test_reciprocal_roots_of_zeros(argument: str) -> None:
    """Of -0 and 0 they are infinities of both signs; of 4 no kernel may give one."""
    text = (
        '@T.prim_func\ndef f(A: T.Buffer((3,), "float32")):\n    for i in range(3):\n'
        f"        A[i] = T.rsqrt(T.abs({argument}) * A[i])\n"
    )
    found = enclose(loads(text), {"A": np.array([-0.0, 0.0, 2.0], np.float32)}, FAST_C, limit=1000)["A"]
    assert not outside(np.array([-np.inf, np.inf, 0.5], np.float32), found).any()
    assert outside(np.array([-np.inf, np.inf, np.inf], np.float32), found).tolist() == [False, False, True]


@pytest.mark.parametrize(("zero", "wanted"), [("0.0", np.inf), ("-0.0", -np.inf)])
def test_the_reciprocal_root_of_a_zero_that_is_known(zero: str, wanted: float) -> None:
    """A zero that is written out has one sign, and its reciprocal root one infinity."""
    func = loads(f'@T.prim_func\ndef f(A: T.Buffer((1,), "float32")):\n    A[0] = T.rsqrt(T.float32({zero}))\n')
    found = enclose(func, {"A": np.zeros(1, np.float32)}, Inexact({"rsqrt": Bound(4.0)}), limit=1000)["A"]
    assert outside(np.array([-wanted], np.float32), found).tolist() == [True]
    assert outside(np.array([wanted], np.float32), found).tolist() == [False]


@pytest.mark.parametrize(
    "value",
    [
        "T.cosh(A[i]) - T.exp(A[i])",
        "-T.cosh(A[i]) + T.exp(A[i])",
        "T.cosh(A[i]) * (T.exp(A[i] / T.float32(1000)) - T.exp(T.float32(1)))",
        "(T.exp(A[i] / T.float32(1000)) - T.exp(T.float32(1))) * -T.cosh(A[i])",
        "T.fma(T.cosh(A[i]), T.exp(A[i] / T.float32(1000)) - T.exp(T.float32(1)), T.float32(1))",
        "T.fma(T.cosh(A[i]), T.exp(T.float32(1)), -T.cosh(A[i]))",
        "(T.exp(A[i] / T.float32(1000)) - T.exp(T.float32(1))) / (T.exp(A[i] / T.float32(1000)) - T.exp(T.float32(1)) "
        "+ T.float32(0))",
        "T.cosh(A[i]) / T.exp(A[i])",
    ],
)
def test_infinities_and_zeros_that_may_meet(value: str) -> None:
    """A kernel whose functions are a little off may have a NaN where infinities of two signs, or a zero and an
    infinity, may meet.
    """
    func = loads(
        f'@T.prim_func\ndef f(A: T.Buffer((1,), "float32")):\n    for i in range(1):\n        A[i] = {value}\n'
    )
    found = enclose(func, {"A": np.array([1000.0], np.float32)}, FAST_C, limit=1000)["A"]
    assert not outside(np.array([np.nan], np.float32), found).any()


@pytest.mark.parametrize(
    "value", ["T.cosh(A[i]) + T.exp(A[i])", "T.cosh(A[i]) * T.exp(A[i])", "T.exp(T.float32(1)) / T.cosh(A[i])"]
)
def test_infinities_that_cannot_cancel(value: str) -> None:
    """Where no two operands make a NaN, and sums are not regrouped, a NaN lies outside."""
    func = loads(
        f'@T.prim_func\ndef f(A: T.Buffer((1,), "float32")):\n    for i in range(1):\n        A[i] = {value}\n'
    )
    found = enclose(
        func, {"A": np.array([1000.0], np.float32)}, Inexact({"exp": Bound(4.0), "cosh": Bound(4.0)}), limit=1000
    )["A"]
    assert outside(np.array([np.nan], np.float32), found).all()


@pytest.mark.parametrize(
    ("value", "given", "kernel"),
    [
        ("A[0] * A[1] * A[2]", (1e-30, 1e-30, 1e30), 1e-30),
        ("A[0] * A[1] * A[2]", (1e30, 1e30, 1e-30), 1e30),
        ("A[0] + A[1] - A[2]", (3e38, 3e38, 3e38), 3e38),
        ("A[0] * A[1] + A[0] * A[2]", (1e-23, 6e-23, 6e-23), 1.4e-45),
        ("T.exp(A[0]) * A[1]", (100.0, 1e-30, 0.0), np.inf),
        ("T.exp(A[0]) * A[1]", (-120.0, 1e30, 0.0), 0.0),
        ("T.sqrt(A[0] * A[1])", (1e-30, 1e-30, 0.0), 1e-30),
        ("T.fmax(T.pow(T.exp(A[0]), A[1]), A[2])", (1.0, 2.0, 3.0), 7.3890553),
        ("T.fmin(A[0], T.pow(T.exp(A[1]), A[2]))", (30.0, 1.0, 2.0), 7.3890553),
        ("T.sigmoid(A[0])", (-95.0, 0.0, 0.0), 0.0),
    ],
)
@pytest.mark.parametrize("fast", [FAST_C, of_device(doubles=True, fast=True, division=3, regroups=True, flushes=True)])
def test_results_out_of_range_on_the_way(
    value: str, given: tuple[float, float, float], kernel: float, fast: Inexact
) -> None:
    """What overflows or underflows in one order and not in another is between the ends, as the program has it and as a
    kernel may; and a minimum with a value that may be anything may be anything.
    """
    func = loads(f'@T.prim_func\ndef f(A: T.Buffer((3,), "float32")):\n    A[0] = {value}\n')
    arguments = {"A": np.array(given, np.float32)}
    found = enclose(func, arguments, fast, limit=1000)["A"]
    for result in (run(func, arguments).arrays["A"][0], np.float32(kernel)):
        assert not outside(np.array([result, *given[1:]], np.float32), found)[0]


def test_a_device_that_flushes_takes_zero_for_what_it_reads() -> None:
    """A product with a subnormal number may be 0 where the device flushes, and is exact where it does not."""
    func = loads(
        '@T.prim_func\ndef f(A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "float32")):\n    B[0] = A[0] * '
        "T.float32(1e30)\n"
    )
    arguments = {"A": np.array([1e-39], np.float32), "B": np.zeros(1, np.float32)}
    devices = [
        of_device(doubles=True, fast=False, division=0, regroups=False, flushes=flushes) for flushes in (True, False)
    ]
    flushing, exact = (enclose(func, arguments, device, limit=9) for device in devices)
    assert not outside(np.array([0.0], np.float32), flushing["B"]).any()
    assert outside(np.array([0.0], np.float32), exact["B"]).all()
