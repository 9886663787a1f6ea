"""Memory: aliases, offsets, strides, other element types, vector elements."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.running import fault, program, result
from tests.shares import one_in

from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import FLOAT32, HANDLE, INT32, UINT8, DType, numpy_dtype
from layoutproof.ir.expr import Expr, IntImm, Ramp, Var
from layoutproof.ir.interp import FaultKind
from layoutproof.ir.interp.memory import Storage
from layoutproof.ir.intrinsics import PointerCast
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, BufferStore, DeclBuffer, For, ForKind, Let, Stmt, seq

ROW, COL = Var("i"), Var("j")


def function(body: Stmt, *buffers: Buffer) -> PrimFunc:
    """A function whose parameters are the buffers."""
    handles = tuple(Var(f"{b.name}_handle", HANDLE) for b in buffers)
    return PrimFunc("main", handles, tuple(zip(handles, buffers, strict=True)), body)


def loop(var: Var, extent: int, body: Stmt) -> Stmt:
    """A serial loop from 0."""
    return For(var, IntImm(0), IntImm(extent), ForKind.SERIAL, body)


def view(
    name: str, dtype: DType, shape: tuple[int, ...], data: Var, offset: int = 0, strides: tuple[int, ...] = ()
) -> Buffer:
    """Another view of a data variable."""
    return Buffer(name, dtype, tuple(map(IntImm, shape)), data, tuple(map(IntImm, strides)), IntImm(offset))


def copy(target: Buffer, source: Buffer, *indices: Expr) -> Stmt:
    """`target[indices] = source[indices]`."""
    return BufferStore(target, indices, BufferLoad(source, indices))


def test_flat_view_of_a_parameter() -> None:
    """A flat alias of a two-dimensional parameter reads and writes the same cells, row-major."""
    a = make_buffer("A", (2, 3), "float32")
    flat = view("A_flat", FLOAT32, (6,), a.data)
    func = function(DeclBuffer(flat, loop(ROW, 6, BufferStore(flat, (ROW,), BufferLoad(flat, (IntImm(5) - ROW,))))), a)
    assert result(func, [np.arange(6, dtype=np.float32).reshape(2, 3)])["A"].tolist() == [[5, 4, 3], [3, 4, 5]]


def test_offset_counts_elements_of_the_view() -> None:
    """A view's offset counts its own elements; past the end of the data is a fault even inside the view's shape."""
    a, b = make_buffer("A", (8,), "float32"), make_buffer("B", (4,), "float32")
    for offset, good in ((4, True), (5, False)):
        tail = view("tail", FLOAT32, (4,), a.data, offset)
        func = function(DeclBuffer(tail, loop(ROW, 4, copy(b, tail, ROW))), a, b)
        if good:
            assert result(func, [np.arange(8, dtype=np.float32), None])["B"].tolist() == [4, 5, 6, 7]
        else:
            assert "element 8" in str(fault(func, [np.arange(8, dtype=np.float32), None], FaultKind.OUT_OF_BOUNDS))


def test_strided_view() -> None:
    """Strides are in elements; a view of the columns of wider rows skips what lies between."""
    a, b = make_buffer("A", (4, 17), "float32"), make_buffer("B", (4, 16), "float32")
    wide = view("wide", FLOAT32, (4, 16), a.data, strides=(17, 1))
    func = function(DeclBuffer(wide, loop(ROW, 4, loop(COL, 16, copy(b, wide, ROW, COL)))), a, b)
    rows = np.arange(68, dtype=np.float32).reshape(4, 17)
    assert np.array_equal(result(func, [rows, None])["B"], rows[:, :16])


def test_strided_parameter() -> None:
    """A parameter with strides takes its array by index; the cells between its elements are not its own."""
    data = Var("A_data", HANDLE)
    a = view("A", FLOAT32, (2, 3), data, strides=(4, 1))
    whole = view("whole", FLOAT32, (7,), data)
    double = loop(ROW, 2, loop(COL, 3, BufferStore(a, (ROW, COL), BufferLoad(a, (ROW, COL)) * 2.0)))
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(result(function(double, a), [values])["A"], values * 2)
    between = DeclBuffer(whole, BufferStore(whole, (IntImm(0),), BufferLoad(whole, (IntImm(3),))))
    fault(function(between, a), [values], FaultKind.FORBIDDEN)


def test_a_parameter_begins_with_its_memory() -> None:
    """Strides that are negative, with which elements lie before the start of the memory, are no argument."""
    func = program("""
        def f(a: T.handle, B: T.Buffer((1,), "float32"), s: T.int32):
            A = T.match_buffer(a, (2, 3), "float32", strides=(s, 1))
            B[0] = A[1, 0]
    """)
    arrays = {"A": np.arange(6, dtype=np.float32).reshape(2, 3), "B": np.zeros(1, np.float32)}
    assert result(func, {**arrays, "s": 4})["B"].tolist() == [3]
    with pytest.raises(LayoutproofError, match="an element of A lies before its memory, at"):
        result(func, {**arrays, "s": -1})


@pytest.mark.parametrize("name", ["int32", "uint16", "float16", "bfloat16", "uint8", "bool"])
def test_reinterpretation_reads_the_same_bytes(name: str) -> None:
    """A view of another element type reads the bytes of the float32 that was stored (little endian)."""
    other = DType.parse(name)
    a = make_buffer("A", (6,), "float32")
    b = make_buffer("B", (24 // other.bytes,), other)
    seen = view("seen", other, (24 // other.bytes,), a.data)
    func = function(DeclBuffer(seen, loop(ROW, 24 // other.bytes, copy(b, seen, ROW))), a, b)
    values = np.array([1.5, -2.0, 3.25, 0.0, -0.0, 65504.0], np.float32)
    raw = np.frombuffer(values.tobytes(), dtype=np.uint8 if name == "bool" else numpy_dtype(other))
    expected = raw != 0 if name == "bool" else raw
    found = result(func, [values, None])["B"]
    assert found.dtype == numpy_dtype(other)
    assert found.tobytes() == expected.tobytes() or np.array_equal(found, expected, equal_nan=True)


def test_partly_written_wide_cells_are_unreadable() -> None:
    """A wide element is readable once all its bytes are written, through whatever view."""
    c, b = make_buffer("C", (4,), "uint8"), make_buffer("B", (1,), "int32")
    wide = view("wide", INT32, (1,), c.data)
    for count in (3, 4):
        body = seq(loop(ROW, count, BufferStore(c, (ROW,), IntImm(1, UINT8))), copy(b, wide, IntImm(0)))
        func = function(Allocate(c, DeclBuffer(wide, body)), b)
        if count == 4:
            assert result(func, [None])["B"].tolist() == [0x01010101]
        else:
            fault(func, [None], FaultKind.UNINITIALISED)


def test_pointer_cast_names_the_same_memory() -> None:
    """A pointer bound by a let is another name of the data it was cast from."""
    a = make_buffer("A", (2,), "float32")
    pointer = Var("p", HANDLE)
    bits = view("bits", INT32, (2,), pointer)
    func = function(
        Let(pointer, PointerCast(INT32, a.data), DeclBuffer(bits, BufferStore(bits, (IntImm(1),), IntImm(0x3F800000)))),
        a,
    )
    assert result(func, [np.array([5, 6], np.float32)])["A"].tolist() == [5, 1]


def test_vector_elements() -> None:
    """An element of M lanes with an index of N lanes gives N*M lanes, element after element."""
    a, b = make_buffer("A", (4,), "float32x2"), make_buffer("B", (2,), "float32x4")
    ramp = Ramp(IntImm(2), IntImm(-1), 2)
    func = function(
        seq(
            BufferStore(b, (IntImm(1),), BufferLoad(a, (ramp,))),
            BufferStore(b, (IntImm(0),), BufferLoad(a, (Ramp(IntImm(2), IntImm(1), 2),))),
        ),
        a,
        b,
    )
    values = np.arange(8, dtype=np.float32).reshape(4, 2)
    assert result(func, [values, None])["B"].tolist() == [[4, 5, 6, 7], [4, 5, 2, 3]]


def test_vector_view_of_scalars() -> None:
    """A vector element type over scalar data moves whole groups of lanes, indices counting groups."""
    a, b = make_buffer("A", (8,), "float32"), make_buffer("B", (8,), "float32")
    quads = [view(f"{x.name}4", FLOAT32.with_lanes(4), (2,), x.data) for x in (a, b)]
    func = function(
        DeclBuffer(
            quads[0],
            DeclBuffer(quads[1], loop(ROW, 2, BufferStore(quads[1], (IntImm(1) - ROW,), BufferLoad(quads[0], (ROW,))))),
        ),
        a,
        b,
    )
    assert result(func, [np.arange(8, dtype=np.float32), None])["B"].tolist() == [4, 5, 6, 7, 0, 1, 2, 3]


def test_memory_made_in_a_loop_starts_anew() -> None:
    """An allocation inside a loop holds nothing of the iteration before."""
    c, b = make_buffer("C", (1,), "float32"), make_buffer("B", (2,), "float32")
    first = BufferStore(c, (IntImm(0),), BufferLoad(b, (ROW,)))
    read = BufferStore(b, (ROW,), BufferLoad(c, (IntImm(0),)))
    assert result(function(loop(ROW, 2, Allocate(c, seq(first, read))), b), [np.ones(2, np.float32)])["B"].tolist() == [
        1,
        1,
    ]
    fault(function(loop(ROW, 2, Allocate(c, seq(read, first))), b), [np.ones(2, np.float32)], FaultKind.UNINITIALISED)


@pytest.mark.parametrize("name", ["bool", "int8", "uint64", "int64", "float16", "bfloat16", "float64"])
def test_every_type_goes_in_and_out(name: str) -> None:
    """An array of every element type comes out as it went in."""
    dtype = DType.parse(name)
    a, b = make_buffer("A", (5,), dtype), make_buffer("B", (5,), dtype)
    values: Any = np.array([0, 1, 1, 0, 1]) if name == "bool" else np.array([0, 1, 2, 100, 127])
    array = values.astype(numpy_dtype(dtype))
    assert result(function(loop(ROW, 5, copy(b, a, ROW)), a, b), [array, None])["B"].tobytes() == array.tobytes()


@one_in(4)
def test_halves_keep_every_value() -> None:
    """Every bit pattern of both 16-bit floats that is no NaN survives a load and a store."""
    for name, dtype in (("float16", np.dtype(np.float16)), ("bfloat16", np.dtype(ml_dtypes.bfloat16))):
        storage = Storage("x", 2, 2)
        element = DType.parse(name)
        for bits in range(1 << 16):
            storage.data[:2] = np.frombuffer(np.uint16(bits).tobytes(), np.uint8)
            value = storage.read(element, 0)
            assert value != value or value == float(np.uint16(bits).reshape(1).view(dtype)[0])
            storage.write(element, 0, value)
            assert value != value or storage.data[:2].tobytes() == np.uint16(bits).tobytes()
