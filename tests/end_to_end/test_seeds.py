"""The old dialect's examples, as their authors wrote them: read, printed, lowered, run, compared with numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.end_to_end.operators import DATA, Reference, assert_equals_interpreter, assert_equals_numpy
from tests.shares import one_in

from layoutproof.ir.interp import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import load_module, loads, loads_module, read_text
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.verdict.verdict import Status

MODULES = {
    name: load_module(DATA / "seeds" / f"{name}.py") for name in ("buffer_access", "relax_layouts", "row_summation")
}
FUNCTIONS = {(name, f.name): f for name, module in MODULES.items() for f in module.functions}


def no_reference(*_: Any) -> Any:
    """For a function that is not one of its inputs alone."""
    raise AssertionError("not called")


REFERENCES: dict[tuple[str, str], Reference] = {
    ("relax_layouts", "sum"): lambda a: a.sum(axis=(2, 3)),
    ("relax_layouts", "sum_nhwc"): lambda a: a.sum(axis=(1, 2)),
    ("relax_layouts", "layout_transform"): lambda a: a.reshape(32, 16, 4, *a.shape[2:]).transpose(0, 1, 3, 4, 2),
    ("relax_layouts", "relu"): lambda a: np.maximum(a, 0),
    ("relax_layouts", "matmul"): lambda a, b: a @ b,
    ("row_summation", "row_summation"): lambda a: a.sum(axis=1),
    ("row_summation", "row_summation_guarded"): lambda a: a.reshape(16, 16)[:, :14].sum(axis=1),
    ("row_summation", "row_summation_overcomputed"): lambda a: a.sum(axis=(1, 2)),
    ("buffer_access", "fn"): no_reference,
    ("buffer_access", "buffer_alloc"): no_reference,
}
LOADING_ONLY = sorted(set(FUNCTIONS) - set(REFERENCES))


def function(name: tuple[str, str]) -> PrimFunc:
    """A function of a seed; `layout_transform` with images of 14 by 14, since its own take a gigabyte."""
    if name != ("relax_layouts", "layout_transform"):
        return FUNCTIONS[name]
    text = read_text(DATA / "seeds" / "relax_layouts.py").replace("224", "14")
    return loads_module(text)[name[1]]


@pytest.mark.parametrize("name", FUNCTIONS, ids=".".join)
def test_reads_back_equal(name: tuple[str, str]) -> None:
    """Each function is printed in the present dialect and read back equal."""
    func = FUNCTIONS[name]
    assert loads(print_func(func)) == func


@one_in(21)
@pytest.mark.parametrize(
    "name", [name for name, reference in REFERENCES.items() if reference is not no_reference], ids=".".join
)
def test_kernel(name: tuple[str, str]) -> None:
    """Each function that computes something gives what the interpreter gives, bit for bit, and what numpy gives within
    tolerance.
    """
    func = function(name)
    schedule = Schedule(func)
    kernel = schedule.build("c")
    assert_equals_interpreter(schedule, kernel, {})
    assert_equals_numpy(func, kernel, REFERENCES[name], {})


def test_through_an_alias() -> None:
    """A buffer that is doubled through a flat view of it is doubled."""
    kernel = Schedule(FUNCTIONS["buffer_access", "fn"]).build("c")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    doubled = kernel(x.copy())
    assert isinstance(doubled, np.ndarray)
    np.testing.assert_array_equal(doubled, 2 * x)


def test_memory_of_its_own() -> None:
    """A function without parameters, which fills an allocation through a view, builds and runs to its end."""
    func = FUNCTIONS["buffer_access", "buffer_alloc"]
    kernel = Schedule(func).build("c")
    assert kernel() == ()
    assert run(func, {}).arrays == {}


@pytest.mark.parametrize("name", LOADING_ONLY, ids=".".join)
def test_functions_without_a_store_are_vacuous(name: tuple[str, str]) -> None:
    """The examples that only state the types of accesses are read and lowered, and the verdicts on them are vacuous:
    they store nothing.
    """
    schedule = Schedule(FUNCTIONS[name])
    schedule.lower()
    assert {step.status for step in schedule.lowering_steps} == {Status.VACUOUS}


@pytest.mark.parametrize("pad_value", [0.0, None], ids=["zero", "none"])
def test_row_summation_in_rows_of_four(pad_value: float | None) -> None:
    """The RFC's own transform, a row of 14 as 4 rows of 4, on a program with blocks, gives the sums that the original
    gives.
    """
    text = print_func(FUNCTIONS["row_summation", "row_summation"])
    assert "for j in range(14)" in text or "T.serial(14)" in text
    with_blocks = """
@T.prim_func
def row_summation(A: T.Buffer[(16, 14), "float32"], B: T.Buffer[(16,), "float32"]):
    for i, j in T.grid(16, 14):
        with T.block("B"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vj]
"""
    func = loads(with_blocks)
    schedule = Schedule(func)
    schedule.transform_layout("B", "A", lambda i, j: [i, j // 4, j % 4], pad_value)
    kernel = schedule.build("c")
    assert kernel.buffers["A"].physical_shape == (16, 4, 4)
    assert_equals_interpreter(schedule, kernel, {})
    assert_equals_numpy(func, kernel, REFERENCES["row_summation", "row_summation"], {})
