"""`flatten_buffer` and axis separators: the RFCs' examples, aliases, strides, truth values, 64-bit indices."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import Allocate
from layoutproof.ir.visit import walk
from layoutproof.lowering.layout.separators import SetAxisSeparators, groups_of, stated_separators
from layoutproof.lowering.layout.transform_layout import ApplyBufferTransforms, TransformLayout
from layoutproof.lowering.lower.flatten import FlattenBuffer, LowerBlocks
from layoutproof.lowering.lower.simplify import Simplify


def flat(func: PrimFunc) -> PrimFunc:
    """The flattened function; a second flattening must not change it, and it prints and reads back equal."""
    new = FlattenBuffer().propose(func).new
    assert FlattenBuffer().propose(new).new == new
    assert loads(print_func(new)) == new
    return new


def lines_of(func: PrimFunc) -> list[str]:
    """The printed lines, without indentation."""
    return [line.strip() for line in print_func(func).splitlines()]


def copying(shape: str, indices: str, loops: str, extents: str, attrs: str = "") -> PrimFunc:
    """`B[...] = A[...]` over a box."""
    return program(f"""def main(A: T.Buffer(({shape}), "float32"), B: T.Buffer(({shape}), "float32")):
    {attrs}
    for {loops} in T.grid({extents}):
        B[{indices}] = A[{indices}]
""")


def test_the_seeds_two_by_three_example() -> None:
    """[2, 3] becomes 6 with index `i*3 + j`; the parameter keeps its shape, the flat view is an alias."""
    func = copying("2, 3", "i, j", "i, j", "2, 3")
    new = flat(func)
    assert 'A_flat = T.decl_buffer((6,), "float32", data=A.data)' in lines_of(new)
    assert "B_flat[i * 3 + j] = A_flat[i * 3 + j]" in lines_of(new)
    assert new.buffer_map == func.buffer_map
    assert_same_results(func, new)


def test_the_seeds_reordered_example() -> None:
    """[2, 3] stored as `[j, i]` becomes `j*2 + i` in 6 elements."""
    func = program("""def main(B: T.Buffer((2, 3), "float32")):
    T.func_attr({"buffer_layout_transformations": {"x_data": ["lambda i, j: [j, i]"]}})
    x = T.alloc_buffer((2, 3), "float32")
    for i, j in T.grid(2, 3):
        x[i, j] = T.float32(1)
    for i, j in T.grid(2, 3):
        B[i, j] = x[i, j]
""")
    applied = ApplyBufferTransforms().propose(func).new
    new = flat(applied)
    assert "x[j * 2 + i] = T.float32(1.0)" in lines_of(new)
    assert_same_results(func, new)


def test_the_seeds_nhwc_example() -> None:
    """[16, 64, 64, 128] as NCHW4c is 8388608 elements, at `c//4*64*64*4 + ...`."""
    func = copying("16, 64, 64, 128", "n, h, w, c", "n, h, w, c", "16, 64, 64, 128")
    relaid = TransformLayout("root", "B", "lambda n, h, w, c: [n, c//4, h, w, c%4]").propose(func).new
    new = flat(relaid)
    assert 'B_flat = T.decl_buffer((8388608,), "float32", data=B.data)' in lines_of(new)
    assert any(
        line.startswith("B_flat[n * 524288 + c // 4 * 16384 + h * 256 + w * 4 + c % 4] = ") for line in lines_of(new)
    )


def test_the_seeds_texture_example() -> None:
    """The same with a separator behind h is 32768 by 256; the attribute becomes [0]."""
    func = copying("16, 64, 64, 128", "n, h, w, c", "n, h, w, c", "16, 64, 64, 128")
    relaid = TransformLayout("root", "B", "lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]").propose(func).new
    assert stated_separators(relaid) == {"B_data": (2,)}
    new = flat(relaid)
    assert stated_separators(new) == {"B_data": (0,)}
    assert any("B_flat = T.decl_buffer((32768, 256)" in line for line in lines_of(new))
    assert any(line.startswith("B_flat[n * 2048 + c // 4 * 64 + h, w * 4 + c % 4] = ") for line in lines_of(new))


@pytest.mark.parametrize(
    "shape, separators, extents, index",
    [
        ((2, 3, 5, 7, 11, 13), (2,), "(30, 1001)", "i0 * 15 + i1 * 5 + i2, i3 * 143 + i4 * 13 + i5"),
        ((32, 32), (0,), "(32, 32)", "i0, i1"),
        ((2, 3, 4), (1,), "(6, 4)", "i0 * 3 + i1, i2"),
        ((4, 3, 2, 5), (0, 2), "(4, 6, 5)", "i0, i1 * 2 + i2, i3"),
        ((4, 6, 40), (), "(960,)", "i0 * 240 + i1 * 40 + i2"),
    ],
)
def test_separators_group_axes(shape: tuple[int, ...], separators: tuple[int, ...], extents: str, index: str) -> None:
    """Facts 75, 76 and 79: one physical axis for each group, row-major within it, in the index and in the extents."""
    names = ", ".join(f"i{axis}" for axis in range(len(shape)))
    func = program(f"""def main(A: T.Buffer({shape}, "float32")):
    x = T.alloc_buffer({shape}, "float32")
    for {names} in T.grid{shape}:
        x[{names}] = A[{names}]
""")
    new = flat(SetAxisSeparators("x", separators).propose(func).new)
    allocated = next(n for n in walk(new.body) if isinstance(n, Allocate))
    assert f"alloc_buffer({extents}, " in print_func(new)
    assert any(line.startswith(f"x[{index}] = ") for line in lines_of(new))
    assert groups_of(new, allocated.buffer) == tuple((axis,) for axis in range(len(separators) + 1))


def test_units_keep_their_axes() -> None:
    """Fact 79: a [1, 1] allocation with a separator stays two-dimensional."""
    func = program("""def main(A: T.Buffer((1, 1), "float32")):
    x = T.alloc_buffer((1, 1), "float32")
    x[0, 0] = A[0, 0]
""")
    new = flat(SetAxisSeparators("x", (0,)).propose(func).new)
    assert next(n for n in walk(new.body) if isinstance(n, Allocate)).buffer.rank == 2


def test_separators_of_a_transform_count_physical_axes() -> None:
    """(33, 128) by `[x//32, y, AXIS_SEPARATOR, x%32]` is (2*128, 32), the second row block mostly padding."""
    func = copying("33, 128", "x, y", "x, y", "33, 128")
    relaid = TransformLayout("root", "B", "lambda x, y: [x//32, y, AXIS_SEPARATOR, x%32]", 0.0).propose(func).new
    assert "T.where(p0 == 1 and p2 >= 1)" in print_func(relaid)
    new = flat(LowerBlocks().propose(relaid).new)
    assert any("B_flat = T.decl_buffer((256, 32)" in line for line in lines_of(new))
    assert_same_results(func, new)


def test_strided_aliases() -> None:
    """Fact 78: a [4, 16] view with strides [17, 1] of [4, 17] is indexed by `i*17 + j` in 68 elements."""
    func = program("""def main(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32")):
    rows = T.alloc_buffer((4, 17), "float32")
    view = T.decl_buffer((4, 16), "float32", data=rows.data, strides=[17, 1])
    for i, j in T.grid(4, 16):
        view[i, j] = A[i, j]
    for i, j in T.grid(4, 16):
        B[i, j] = view[i, j] + rows[i, j]
""")
    new = flat(func)
    assert 'rows = T.alloc_buffer((68,), "float32")' in lines_of(new)
    assert "B_flat[i * 16 + j] = view[i * 17 + j] + rows[i * 17 + j]" in lines_of(new)
    assert_same_results(func, new)


def test_offsets_go_into_the_index() -> None:
    """A view that starts at element 5 adds 5; its flat form starts at 0 and ends where the view did."""
    func = program("""def main(A: T.Buffer((20,), "int32")):
    view = T.decl_buffer((3, 4), "int32", data=A.data, elem_offset=5)
    for i, j in T.grid(3, 4):
        view[i, j] = i * 10 + j
""")
    new = flat(func)
    assert 'view = T.decl_buffer((17,), "int32", data=A.data)' in lines_of(new)
    assert "view[5 + i * 4 + j] = i * 10 + j" in lines_of(new)
    assert_same_results(func, new)


def test_truth_values_are_stored_as_bytes() -> None:
    """Fact 78: a bool buffer becomes int8, with casts where it is read and written; the parameter stays bool."""
    func = program("""def main(A: T.Buffer((2, 3), "bool"), B: T.Buffer((2, 3), "bool")):
    for i, j in T.grid(2, 3):
        B[i, j] = not A[i, j]
""")
    new = flat(func)
    assert 'B_flat[i * 3 + j] = T.Cast("int8", not T.Cast("bool", A_flat[i * 3 + j]))' in lines_of(new)
    assert [str(b.dtype) for b in new.buffers] == ["bool", "bool"]
    assert_same_results(func, new)


def test_symbolic_shapes_are_flattened_in_64_bits() -> None:
    """Fact 77: (n, m) is indexed by `i*m + j`, computed where the product fits."""
    func = program("""def main(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer((n, m), "float32")):
    n, m = T.int32(), T.int32()
    for i, j in T.grid(n, m):
        B[i, j] = A[i, j]
""")
    new = flat(func)
    assert any('T.Cast("int64", i) * T.Cast("int64", m) + T.Cast("int64", j)' in line for line in lines_of(new))
    assert_same_results(func, new, symbols={"n": 3, "m": 5})


def test_large_buffers_are_indexed_in_64_bits() -> None:
    """2**32 elements do not fit a 32-bit index; 2**30 do."""
    for rows, bits in ((65536, 64), (16384, 32)):
        func = program(f"""def main(A: T.Buffer(({rows}, 65536), "int8")):
    for i, j in T.grid({rows}, 65536):
        A[i, j] = T.int8(0)
""")
        store = next(line for line in lines_of(flat(func)) if line.startswith("A_flat["))
        assert ('T.Cast("int64", i)' in store) == (bits == 64)


def test_fused_indices_of_symbolic_boxes_stay_right() -> None:
    """Fact 77: (32, n, n) indexed by the digits of one loop is flattened to the same elements."""
    func = program("""def main(A: T.Buffer((32, "n", n), "float32"), B: T.Buffer((32, n, n), "float32")):
    n = T.int32()
    for i in range(32 * n * n):
        B[i // (n * n), i // n % n, i % n] = A[i // (n * n), i // n % n, i % n]
""")
    new = Simplify().propose(flat(func)).new
    given = {"A": np.arange(32 * 9, dtype=np.float32).reshape(32, 3, 3), "B": np.zeros((32, 3, 3), np.float32)}
    assert run(new, given)["B"].tolist() == given["A"].tolist()


def test_rank_0_buffers_get_one_element() -> None:
    """A scalar buffer becomes one of one element."""
    func = program("""def main(A: T.Buffer((), "int32"), B: T.Buffer((3,), "int32")):
    for i in range(3):
        B[i] = A[()]
""")
    new = flat(func)
    assert "B[i] = A_flat[0]" in lines_of(new)
    assert_same_results(func, new)


def test_ramps_stay_ramps() -> None:
    """A vector access along the last axis is one in the flat view."""
    func = program("""def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 2):
        B[i, T.Ramp(j * 4, 1, 4)] = A[i, T.Ramp(j * 4, 1, 4)]
""")
    new = flat(func)
    assert "B_flat[T.Ramp(i * 8 + j * 4, 1, 4)] = A_flat[T.Ramp(i * 8 + j * 4, 1, 4)]" in lines_of(new)
    assert_same_results(func, new)


def test_transforms_in_the_attribute_apply_in_order_once() -> None:
    """`apply_buffer_transforms` applies each map of the list to the result of the one before, and removes the
    attribute.
    """
    func = program("""def main(A: T.Buffer((6, 10), "int32"), B: T.Buffer((6, 10), "int32")):
    T.func_attr({"buffer_layout_transformations": {"A_data": ["lambda i, j: [j, i]", "lambda i, j: [i//4, j, i%4]"]}})
    for i, j in T.grid(6, 10):
        B[i, j] = A[i, j]
""")
    rewrite = ApplyBufferTransforms().propose(func)
    assert "B[i, j] = A[j // 4, i, j % 4]" in lines_of(rewrite.new)
    assert "buffer_layout_transformations" not in rewrite.new.attrs
    assert ApplyBufferTransforms().propose(rewrite.new).new == rewrite.new
    assert rewrite.witness.changes_interface == ("A",)
    assert [c.cells.evaluate((5, 9)) for c in rewrite.witness.cells] == [(2, 5, 1)]
    assert_same_results(func, rewrite.new)


@pytest.mark.parametrize(
    "text, message",
    [
        ('["lambda i: [i]"]', "LP324"),
        ('{"A_data": "lambda i: [i]"}', "LP324"),
        ('{"A_data": [3]}', "LP324"),
        ('{"Z": ["lambda i: [i]"]}', "which is no data variable"),
        ('{"A_data": ["lambda i: [i//2]"]}', "not injective"),
    ],
)
def test_malformed_transform_attributes(text: str, message: str) -> None:
    """An attribute that is not a dictionary of lists of maps, or names nothing, is an error that says so."""
    func = program(f"""def main(A: T.Buffer((6,), "int32")):
    T.func_attr({{"buffer_layout_transformations": {text}}})
    A[0] = 1
""")
    with pytest.raises(LayoutproofError, match=message):
        ApplyBufferTransforms().propose(func)


@pytest.mark.parametrize(
    "separators, message",
    [((1,), "out of range"), ((0, 0), "do not increase"), ((-1,), "out of range"), ((5,), "out of range")],
)
def test_bad_separators(separators: tuple[int, ...], message: str) -> None:
    """Separators out of range or not increasing are refused by name."""
    with pytest.raises(LayoutproofError, match=message) as caught:
        SetAxisSeparators("A", separators).propose(copying("2, 3", "i, j", "i, j", "2, 3"))
    assert caught.value.diagnostics[0].message.startswith("A: ")


def test_malformed_separator_attribute() -> None:
    """Separators in the attribute are lists of integers that fit the buffer."""
    for value, code in (('{"A_data": 1}', "LP323"), ("[0]", "LP323"), ('{"A_data": [7]}', "LP321")):
        func = copying("2, 3", "i, j", "i, j", "2, 3", f'T.func_attr({{"buffer_axis_separators": {value}}})')
        with pytest.raises(LayoutproofError, match=code):
            FlattenBuffer().propose(func)


def test_blocks_are_lowered_first() -> None:
    """Flattening a program with blocks says what to do."""
    func = program("""def main(A: T.Buffer((2, 3), "float32")):
    with T.sblock("b"):
        A[0, 0] = T.float32(0)
""")
    with pytest.raises(LayoutproofError, match=r"LP341.*lower_blocks goes first"):
        FlattenBuffer().propose(func)


def test_strides_with_separators_are_refused() -> None:
    """Memory with two physical axes has no strides of its own."""
    func = program("""def main(A: T.Buffer((80,), "float32")):
    view = T.decl_buffer((4, 16), "float32", data=A.data, strides=[17, 1], axis_separators=[1])
    view[0, 0] = T.float32(0)
""")
    with pytest.raises(LayoutproofError, match="LP342"):
        FlattenBuffer().propose(func)
