"""What a schedule's proofs took for granted is checked at every call, in Python and in C, or listed with whose word it
is.
"""

import ctypes

import numpy as np
import pytest
from tests.lowering.programs import program
from tests.lowering.runtime.kernels import blocked_copy
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.runtime.build_c import CKernel, build_c
from layoutproof.lowering.runtime.call_arguments import Duty
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.lowering.schedule.schedule import Schedule


def copy_of(assumed: str = "n >= 1", attributes: str = "", scalars: str = "", value: str = "A[vi, vj]") -> PrimFunc:
    """`B[i, j] = A[i, j]` for symbols of which something is assumed."""
    return program(f"""def main(A: T.Buffer(("n", "m"), "float32"), {scalars}B: T.Buffer(("n", "m"), "float32")):
    n = T.int32()
    m = T.int32()
    {attributes if attributes else 'T.func_attr({"tir.noalias": True})'}
    T.evaluate(T.assume({assumed}))
    for i, j in T.grid(n, m):
        with T.sblock("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = {value}
""")


def re_laid(func: PrimFunc) -> CKernel:
    """The kernel with A in rows of four whose padding is zero."""
    schedule = Schedule(func)
    schedule.transform_layout("copy", "A", lambda i, j: [i, j // 4, j % 4], pad_value=0.0)
    return schedule.build()


def zeros(*shape: int) -> np.ndarray:
    """Floats."""
    return np.zeros(shape, dtype=np.float32)


def refused(kernel: Kernel, *arrays: np.ndarray, raw: bool = False, **scalars: int) -> str:
    """The message of a call that is refused for what it assumes."""
    with pytest.raises(LayoutproofError) as caught:
        (kernel.raw if raw else kernel)(*arrays, **scalars)
    assert caught.value.diagnostics[0].code == codes.ASSUMPTION
    return caught.value.diagnostics[0].message


def c_answer(kernel: CKernel, *symbols: int) -> int:
    """What the C function itself says to symbols, with one small buffer for every array; refusals come before any
    access.
    """
    function = getattr(ctypes.CDLL(kernel.report.library_path), kernel.source.entry)
    cells = [np.zeros(64, dtype=np.float32) for p in kernel.source.parameters if p.buffer is not None]
    return int(function(*(ctypes.c_void_p(c.ctypes.data) for c in cells), *(ctypes.c_int32(s) for s in symbols)))


def test_the_program_s_own_assumptions_are_checked() -> None:
    """A call that does not meet an assumption is refused with its line, the number and the argument; in C by a return
    value.
    """
    kernel = re_laid(copy_of("n % 4 == 0 and m >= 1"))
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert np.array_equal(kernel(x), x)
    message = refused(kernel, zeros(3, 3))
    assert "n%4 == 0 (line 6)" in message and "n = 3 (axis 0 of A)" in message
    assert "m >= 1" in refused(kernel, zeros(4, 0)) and "m = 0 (axis 1 of A)" in refused(kernel, zeros(4, 0))
    assert "n%4 == 0" in refused(kernel, zeros(3, 1, 4), zeros(3, 3), raw=True)
    kernel.raw(zeros(4, 1, 4), zeros(4, 3))
    assert [c_answer(kernel, n, m) for n, m in ((4, 3), (3, 3), (4, 0), (-4, 3))] == [0, 3, 3, 3]


def test_arithmetic_of_symbols_that_does_not_fit_is_refused() -> None:
    """`m + 3` was assumed to fit 32 bits: an array without elements can have an extent for which it does not."""
    kernel = re_laid(copy_of("n >= 0"))
    largest = (1 << 31) - 1
    message = refused(kernel, zeros(0, largest))
    assert "m + 3 fits int32, and it is 2147483650 for m = 2147483647 (axis 1 of A)" in message
    assert np.shape(kernel(zeros(0, 5))) == (0, 5)
    assert c_answer(kernel, 0, largest) == 3 and c_answer(kernel, 0, 5) == 0


def test_products_are_checked_in_c_before_anything_is_touched() -> None:
    """A product of extents past the index type returns the code instead of running off the memory."""
    func = program("""def main(A: T.Buffer(("n", "m", "k"), "float32"), B: T.Buffer(("k", "n", "m"), "float32")):
    n = T.int32()
    m = T.int32()
    k = T.int32()
    for i, j, l in T.grid(n, m, k):
        with T.sblock("transpose"):
            vi, vj, vl = T.axis.remap("SSS", [i, j, l])
            B[vl, vi, vj] = A[vi, vj, vl]
""")
    kernel = Schedule(func).build()
    fits = [a.text for a in kernel.assumptions if a.requirement is not None and a.requirement.fits]
    assert fits and all("fits int64" in text for text in fits)
    assert c_answer(kernel, 1 << 21, 1 << 21, 1 << 21) == 3 and c_answer(kernel, 1 << 30, 1 << 30, 1 << 30) == 3
    assert c_answer(kernel, 4, 4, 4) == 0 and c_answer(kernel, 1 << 30, 0, 4) == 0


def test_scalars_count_as_symbols() -> None:
    """An assumption on an integer parameter names the argument that broke it."""
    kernel = re_laid(copy_of("k * 2 <= n", scalars="k: T.int32, ", value='A[vi, vj] + T.Cast("float32", k)'))
    assert np.array_equal(kernel(zeros(4, 2), 2), np.full((4, 2), 2))
    message = refused(kernel, zeros(4, 2), k=3)
    assert "k = 3 (the argument k)" in message and "n = 4 (axis 0 of A)" in message


def test_what_buffers_hold_is_listed() -> None:
    """Padding that a call fills and raw() promises, the program's assumption on data, and noalias: each with whose duty
    it is.
    """
    func = program("""def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tir.noalias": True})
    for i in range(14):
        with T.sblock("sure"):
            vi = T.axis.spatial(14, i)
            T.evaluate(T.assume(A[vi] >= T.float32(0)))
    for i in range(14):
        with T.sblock("copy"):
            vi = T.axis.spatial(14, i)
            B[vi] = A[vi]
""")
    schedule = Schedule(func)
    schedule.transform_layout("copy", "A", lambda i: [i // 4, i % 4], pad_value=0.0)
    kernel = schedule.build()
    duties = {a.duty: a.text for a in kernel.assumptions}
    assert duties[Duty.CHECKED] == "parameters do not overlap where one of them is written"
    assert duties[Duty.PACKED] == "padding of A holds T.float32(0.0)"
    assert "A[vi] >= " in duties[Duty.PROMISED] and "line 7" in duties[Duty.PROMISED]
    assert all(text in kernel.source.header for duty, text in duties.items() if duty is not Duty.CHECKED)
    x = np.arange(14, dtype=np.float32)
    assert np.array_equal(kernel(x), x)
    kernel.raw(np.full((4, 4), 7, dtype=np.float32), zeros(14))  # the padding is wrong: that is the caller's word


def test_without_assumptions_nothing_is_refused() -> None:
    """A function of constant shapes has no conditions on symbols, and one without noalias takes arrays that overlap."""
    plain = Schedule(
        program("""def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("copy"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
""")
    ).build()
    assert plain.assumptions == ()
    memory = np.arange(8, dtype=np.float32)
    plain.raw(memory, memory)
    assert build_c(blocked_copy(14)).assumptions == ()


@one_in(4)
def test_the_self_check_looks_for_extents_that_are_allowed() -> None:
    """Small extents that meet the assumptions are found, and where there are none the report says so."""
    assert "n = 4" in re_laid(copy_of("n % 4 == 0 and m >= 1")).report.self_check
    assert "no small extents" in re_laid(copy_of("n >= 100000")).report.self_check
