"""Calling kernels: logical and physical arrays, padding by contract, outputs, symbols, scalars, and what a kernel knows
of itself.
"""

import ml_dtypes
import numpy as np
import pytest
from tests.lowering.codegen.programs import TYPES, Array, function, loop, numpy_type
from tests.lowering.runtime import kernels
from tests.lowering.runtime.kernels import blocked_copy, rows_of_four, shape
from tests.shares import one_in

from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import FLOAT32, DType
from layoutproof.ir.expr import IntImm, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.interp.run import run
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import NOTHING, Allocate, BufferStore, seq
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.runtime.array_layouts import Layout, Packer, Step, runtime_layouts
from layoutproof.lowering.runtime.arrays import poison
from layoutproof.lowering.runtime.build_c import build_c
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.lowering.schedule.schedule import Schedule


def one(result: Array | tuple[Array, ...]) -> Array:
    """The only output."""
    assert isinstance(result, np.ndarray)
    return result


def test_logical_call_packs_and_unpacks() -> None:
    """14 numbers through rows of four and back, and the physical array has them where the map says."""
    kernel = build_c(blocked_copy(14), {"A": rows_of_four(14, const(0.0, FLOAT32)), "B": rows_of_four(14)})
    x = np.arange(14, dtype=np.float32) + 1
    assert np.array_equal(one(kernel(x)), x)
    physical = np.full((4, 4), 9, dtype=np.float32)
    packed = np.concatenate([x, [0, 0]]).reshape(4, 4).astype(np.float32)
    kernel.raw(packed, physical)
    assert np.array_equal(physical, packed)


@pytest.mark.parametrize(
    ("pad", "wanted"),
    [
        (const(0.0, FLOAT32), [0.0, 0.0]),
        (const(-0.0, FLOAT32), [-0.0, -0.0]),
        (None, None),
        (kernels.anything(), None),
        (kernels.lazy(3), [4.0, 5.0]),
    ],
)
def test_padding_holds_what_its_contract_says(pad: object, wanted: list[float] | None) -> None:
    """A value, its sign included; a function of the place; otherwise a NaN, which shows where it is read."""
    layout = rows_of_four(14, pad, ("p0", "p1"))  # type: ignore[arg-type]  # cases of several types
    kernel = build_c(blocked_copy(14), {"A": layout})
    result = one(kernel(np.arange(14, dtype=np.float32)))
    assert result.shape == (4, 4) and result.reshape(-1)[:14].tolist() == list(range(14))
    padding = result.reshape(-1)[14:]
    if wanted is None:
        assert np.isnan(padding).all()
    else:
        assert padding.tolist() == wanted and np.signbit(padding).tolist() == np.signbit(wanted).tolist()


def test_padding_that_repeats_the_border() -> None:
    """A pad value may load the buffer itself."""
    func = kernels.difference_with_halo()
    p, a = Var("p0"), func.buffers[0]
    wrap = BufferLoad(a, ((p + 5) % 6 + 1,))
    kernel = build_c(func, {"A": Layout(shape(6), (Step(kernels.HALO, shape(8), wrap, ("p0",)),))})
    x = np.array([1, 4, 9, 16, 25, 36], dtype=np.float32)
    assert np.array_equal(one(kernel(x)), np.roll(x, -1) - np.roll(x, 1))


def test_each_transform_fills_its_own_padding() -> None:
    """Of two transforms, the first one's padding keeps its value where the second one puts it."""
    first = Step(IndexMap.from_func(lambda i: [i + 1]), shape(7), const(5.0, FLOAT32))
    second = Step(IndexMap.from_func(lambda i: [i // 4, i % 4]), shape(2, 4), const(7.0, FLOAT32))
    kernel = build_c(blocked_copy(8), {"A": Layout(shape(5), (first, second)), "B": Layout(shape(5), (first, second))})
    x = np.arange(10, 15, dtype=np.float32)
    raw = np.zeros((2, 4), dtype=np.float32)
    assert np.array_equal(one(kernel(x)), x)
    plain = build_c(blocked_copy(8), {"A": Layout(shape(5), (first, second))})
    plain(x, raw)
    assert raw.reshape(-1).tolist() == [5, 10, 11, 12, 13, 14, 5, 7]


@one_in(7)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_type_goes_through(dtype: object) -> None:
    """Arrays of every type are taken as they are, and cells that may hold anything hold poison."""
    name = str(dtype)
    kernel = build_c(blocked_copy(6, name), {"A": rows_of_four(6)})
    x = np.array([0, 1, 0, 1, 1, 0]).astype(numpy_type(dtype))  # type: ignore[arg-type]  # parametrized
    result = one(kernel(x)).reshape(-1)
    assert result.dtype == x.dtype and result[:6].tolist() == x.tolist()
    bad = np.array([poison(dtype)] * 2).astype(x.dtype)  # type: ignore[arg-type]  # parametrized
    assert result[6:].tobytes() == bad.tobytes()


def test_outputs_and_inputs() -> None:
    """Outputs are returned; what is read before it is written must be given; scalars by position or name."""
    kernel = build_c(kernels.scaled_sum())
    x = np.array([1, 2, 3], dtype=np.float32)
    b, total, count = kernel(x, np.array([41], dtype=np.int32), 2.0)
    assert (b.tolist(), total.tolist(), count.tolist()) == ([2, 4, 6], [6], [42])
    own = np.zeros(3, dtype=np.float32)
    b, _, _ = kernel(A=x, count=np.array([0], dtype=np.int32), factor=np.float32(3), B=own)
    assert b is own and own.tolist() == [3, 6, 9]
    with pytest.raises(LayoutproofError, match="no count"):
        kernel(x, factor=1.0)


@pytest.mark.parametrize(
    "stored, needed",
    [
        ("B[0] = T.float32(1)", True),
        ("for i in range(4):\n        B[i * 2] = T.float32(1)", True),
        ("for i in range(4):\n        B[i] = T.float32(1)", True),
        ("for i in range(4):\n        if i > 4:\n            B[i] = T.float32(1)", True),
        ("for i in range(8):\n        B[i] = T.float32(1)", False),
        ("for i in range(8):\n        B[i] = 0.0\n        for k in range(3):\n            B[i] = B[i] + 1.0", False),
    ],
)
def test_an_output_of_which_not_all_is_stored_before_it_is_read_must_be_given(stored: str, needed: bool) -> None:
    """What a store leaves out and a later load reads is the caller's, also where the text stores first."""
    arrays = 'B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")'
    func = loads(f"@T.prim_func\ndef f({arrays}):\n    {stored}\n    for i in range(8):\n        C[i] = B[i]")
    kernel = build_c(func)
    given = np.arange(8, dtype=np.float32)
    if not needed:
        _, found = kernel()
        assert np.isfinite(found).all()
        return
    with pytest.raises(LayoutproofError, match="no B"):
        kernel()
    _, found = kernel(given)
    assert np.array_equal(found, run(func, {"B": np.arange(8, dtype=np.float32)})["C"])


def test_given_outputs_in_logical_layout_are_written_back() -> None:
    """All parameters in order: the last one is the user's own array."""
    layout = rows_of_four(14)
    kernel = build_c(blocked_copy(14), {"A": layout, "B": layout})
    x, y = np.arange(14, dtype=np.float32), np.zeros(14, dtype=np.float32)
    assert kernel(x, y) is y and np.array_equal(x, y)


def test_symbols_come_from_the_arrays() -> None:
    """One kernel for every length, the physical shape computed from the logical one."""
    n = Var("n")
    layout = rows_of_four(n, const(1.0, FLOAT32))
    kernel = build_c(blocked_copy(n), {"A": layout, "B": layout})
    for length in (1, 2, 7, 8, 100, 0):
        x = np.arange(length, dtype=np.float32)
        assert np.array_equal(one(kernel(x)), x)
    assert kernel.buffers["A"].physical_shape == ("(n + 3)//4", 4)
    assert "n = 5" in kernel.report.self_check


def test_symbols_that_only_a_name_can_give() -> None:
    """raw() cannot know how many elements are padding: n is given by name, and checked against the shape."""
    n = Var("n")
    kernel = build_c(blocked_copy(n))
    x, y = (np.zeros((2, 4), dtype=np.float32) for _ in range(2))
    kernel.raw(x, y, n=7)
    for arguments, words in (
        (({}), "cannot be found"),
        ({"n": 9}, r"physical shape is \[3, 4\]"),
        ({"n": -1}, "0 <= n"),
    ):
        with pytest.raises(LayoutproofError, match=words):
            kernel.raw(x, y, **arguments)


def test_symbols_that_disagree() -> None:
    """Two arrays that say different things of one symbol are told apart by axis and name."""
    kernel = build_c(kernels.scaled_sum())
    x = np.zeros(3, dtype=np.float32)
    with pytest.raises(LayoutproofError, match="n is 3 by axis 0 of A and 4 by axis 0 of B") as caught:
        kernel(A=x, B=np.zeros(4, dtype=np.float32), count=np.zeros(1, dtype=np.int32), factor=1.0)
    assert caught.value.diagnostics[0].code == codes.SYMBOLS


def test_bounds_are_kept() -> None:
    """A kernel built for some extents refuses others, from Python and from C."""
    n = Var("n")
    a = make_buffer("A", (n,), "int32")
    func = function("fill", [a], loop("i", n, lambda i: BufferStore(a, (i,), i)))
    kernel = build_c(func, bounds={"n": (2, 8)})
    kernel.raw(np.zeros(8, dtype=np.int32))
    with pytest.raises(LayoutproofError, match="2 <= n <= 8"):
        kernel.raw(np.zeros(9, dtype=np.int32))
    assert kernel.library.fill(None, 9) == 3


def test_vector_elements_have_a_lane_axis() -> None:
    """float32x4 elements are numpy arrays with a last axis of 4."""
    kernel = build_c(kernels.vector_scale())
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert np.array_equal(one(kernel(x)), 2 * x)
    with pytest.raises(LayoutproofError, match="last axis must have length 4"):
        kernel(np.zeros((3, 2), dtype=np.float32))


def test_half_precision_scalars() -> None:
    """A float16 or bfloat16 scalar arrives rounded to its type."""
    for name, wanted in (("float16", np.float16(0.1)), ("bfloat16", ml_dtypes.bfloat16(0.1))):
        a, factor = make_buffer("A", (2,), name), Var("factor", make_buffer("x", (1,), name).dtype)
        kernel = build_c(function("fill", [a], loop("i", 2, lambda i: BufferStore(a, (i,), factor)), scalars=[factor]))  # noqa: B023  # called at once
        assert one(kernel(factor=0.1)).tolist() == [float(wanted)] * 2


def test_what_a_kernel_knows_of_its_buffers() -> None:
    """Shapes, type, map, contract, direction; one map for several transforms; none where nothing was re-laid."""
    steps = (Step(kernels.HALO, shape(8), const(0.0, FLOAT32)), Step(kernels.ROWS_OF_FOUR, shape(2, 4)))
    info = build_c(blocked_copy(8), {"A": Layout(shape(6), steps)}).buffers
    assert info["A"].logical_shape == (6,) and info["A"].physical_shape == (2, 4) and str(info["A"].dtype) == "float32"
    assert info["A"].index_map is not None and info["A"].index_map.evaluate((5,)) == (1, 2)
    assert [s.pad for s in info["A"].steps] == [const(0.0, FLOAT32), None]
    assert info["A"].contracts == ("T.float32(0.0)", None)
    assert repr(info["A"]) == (
        "<input A: float32, logical [6], physical [2, 4], lambda i: [i + 1] with padding T.float32(0.0), "
        "lambda i: [i//4, i%4] with padding untouched>"
    )
    assert (info["A"].is_output, info["B"].is_output) == (False, True)
    assert info["B"].index_map is None and info["B"].logical_shape == (2, 4)


def test_report_and_text_of_a_kernel() -> None:
    """The report says how it was built and checked; the kernel shows its signature."""
    kernel = build_c(blocked_copy(14))
    assert kernel.report.self_check == "equal to the interpreter, bit for bit" and kernel.report.target == "c"
    assert repr(kernel) == "<kernel blocked_copy(A, B)>"
    assert build_c(blocked_copy(14), check=False).report.self_check == "off"


def test_memory_that_runs_out() -> None:
    """An allocation that cannot be had is an error of the call."""
    n = Var("n", make_buffer("x", (1,), "int64").dtype)
    a, work = make_buffer("A", (1,), "float32"), make_buffer("work", (n,), "float32")
    zero = IntImm(0)
    body = Allocate(
        work, seq(BufferStore(work, (zero,), const(1.0, FLOAT32)), BufferStore(a, (zero,), BufferLoad(work, (zero,))))
    )
    kernel: Kernel = build_c(function("hungry", [a], body, scalars=[n]), check=False)
    assert one(kernel(n=2000)).tolist() == [1.0]
    with pytest.raises(LayoutproofError, match="out of memory") as caught:
        kernel(n=2**60)
    assert caught.value.diagnostics[0].code == codes.DID_NOT_RUN


def test_buffers_without_axes() -> None:
    """A single number is an array without axes."""
    a, b = make_buffer("A", (), "float32"), make_buffer("B", (), "float32")
    kernel = build_c(function("single", [a, b], BufferStore(b, (), BufferLoad(a, ()) * 2.0)))
    assert one(kernel(np.array(3.0, dtype=np.float32))).tolist() == 6.0


def test_nothing_written_gives_nothing() -> None:
    """A function without outputs gives the empty tuple."""
    a = make_buffer("A", (2,), "float32")
    assert build_c(function("idle", [a], NOTHING))(np.zeros(2, dtype=np.float32)) == ()


def test_a_temporary_with_an_extent_below_zero_is_empty() -> None:
    """A loop over it runs never, as in the interpreter; there is memory for what the others do."""
    kernel = Schedule(
        loads(
            '@T.prim_func\ndef f(A: T.Buffer((n,), "int32"), n: T.int32):\n'
            '    t = T.alloc_buffer((n - 5,), "int32")\n    for i in range(n - 5):\n        t[i] = 0\n'
            "    for i in range(n):\n        A[i] = 7\n"
        )
    ).build()
    assert [one(kernel(np.zeros(n, np.int32), n)).tolist() for n in (0, 3, 9)] == [[7] * n for n in (0, 3, 9)]


@pytest.mark.parametrize(
    ("dtype", "pad"),
    [
        ("int8", '(T.Cast("int8", p*4 + q) * T.int8(50)) // T.int8(3)'),
        ("int8", 'T.Cast("int8", p*100 + q) % T.int8(7)'),
        ("uint8", '(T.Cast("uint8", p*4 + q) - T.uint8(20)) // T.uint8(3)'),
        ("int32", "p * 2147483647 // 3"),
        ("int64", 'T.Cast("int64", p) * T.int64(9223372036854775807) // T.int64(3)'),
        ("uint64", '(T.Cast("uint64", p) - T.uint64(20)) // T.uint64(3)'),
        ("int32", "T.if_then_else(q != 2, p // (q - 2), 7)"),
        ("float32", 'T.Select(T.Cast("float32", q) < T.float32(2.5), T.float32(1), T.float32(2))'),
        ("bool", "p > 1 and (q == 3 or not p == 2)"),
    ],
)
def test_padding_holds_what_the_program_computes_of_its_contract(dtype: str, pad: str) -> None:
    """Each operation of a pad value wraps in its own type, also before a quotient or a comparison; what is not chosen
    is not computed.
    """
    head = "from tvm.script import tir as T\n\n@T.prim_func\n"
    copy = loads(
        f'{head}def f(A: T.Buffer((10,), "{dtype}"), B: T.Buffer((10,), "{dtype}")):\n'
        '    T.func_attr({"tir.noalias": True})\n'
        '    for i in range(10):\n        with T.block("b"):\n            v = T.axis.spatial(10, i)\n'
        "            B[v] = A[v]\n"
    )
    schedule = Schedule(copy)
    schedule.transform_layout("b", "A", "lambda i: [i//4, i%4]", f"lambda p, q: {pad}")
    packer = Packer(runtime_layouts(schedule.func)["A"], DType.parse(dtype))
    packed = packer.pack(np.ones(10, numpy_type(packer.dtype)), {})
    text = f'{head}def g(P: T.Buffer((3, 4), "{dtype}")):\n    for p, q in T.grid(3, 4):\n        P[p, q] = {pad}\n'
    wanted = run(loads(text), {"P": np.zeros((3, 4), packed.dtype)}).arrays["P"]
    assert packed.reshape(-1)[10:].tolist() == wanted.reshape(-1)[10:].tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_scalars_are_rounded_once(dtype: str) -> None:
    """A number that a type does not have is passed as the interpreter takes it."""
    text = "from tvm.script import tir as T\n\n@T.prim_func\n"
    func = loads(f'{text}def f(x: T.{dtype}, A: T.Buffer((1,), "{dtype}")):\n    A[0] = x\n')
    kernel, cell = build_c(func, check=False), np.zeros(1, numpy_type(DType.parse(dtype)))
    for value in (1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-11 + 2.0**-40, 65520.0, -0.0, 1e39, 2.0**-25):
        assert one(kernel(value)).tobytes() == run(func, {"x": value, "A": cell}).arrays["A"].tobytes()
