"""Several views of one memory: transforms move all of them or none, flattening honours strides and offsets and leaves
parameters alone.

Sources: TVM's RFCs `clarifying-buffer-declaration-and-access` (when it is safe to transform a buffer) and
`buffer-physical-layout`.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.layout.transform_layout import ApplyBufferTransforms, TransformLayout
from layoutproof.lowering.lower.flatten import FlattenBuffer
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import Status

QUARTERS = "lambda i: [i//4, i%4]"


def named_twice(attrs: str = "") -> PrimFunc:
    """A temporary that is written under one name and read under both."""
    return program(f"""def main(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({{"tirx.noalias": True{attrs}}})
    C = T.alloc_buffer((14,), "int32")
    again = T.decl_buffer((14,), "int32", data=C.data)
    for i in range(14):
        with T.sblock("copy"):
            v = T.axis.spatial(14, i)
            again[v] = A[v]
    for i in range(14):
        with T.sblock("out"):
            v = T.axis.spatial(14, i)
            T.reads(C[v], again[v])
            T.writes(B[v])
            B[v] = C[v] + again[v]
""")


@pytest.mark.parametrize("pad", [None, 7])
@pytest.mark.parametrize("name", ["C", "again"])
def test_names_of_the_same_elements_move_together(name: str, pad: int | None) -> None:
    """An alias of the same shape and type is re-laid with the buffer, whichever of the two is named; proved down to the
    kernel.
    """
    func = named_twice()
    schedule = Schedule(func)
    schedule.transform_layout("out", name, QUARTERS, pad)
    text = schedule.script()
    assert (
        'C = T.alloc_buffer((4, 4), "int32")' in text and 'again = T.decl_buffer((4, 4), "int32", data=C.data)' in text
    )
    assert (
        "B[v] = C[v // 4, v % 4] + again[v // 4, v % 4]" in text
        and "T.reads(C[v // 4, v % 4], again[v // 4, v % 4])" in text
    )
    assert_same_results(func, schedule.func)
    assert_same_results(func, schedule.lower())
    assert all(s.status is Status.PROVED for s in (*schedule.steps, *schedule.lowering_steps))


def test_another_name_of_a_parameter_changes_the_interface() -> None:
    """Re-laying an alias of a parameter re-lays the parameter: it is declared as such, and refused where the interface
    is fixed.
    """
    func = program("""def main(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    again = T.decl_buffer((14,), "int32", data=A.data)
    for i in range(14):
        with T.sblock("out"):
            v = T.axis.spatial(14, i)
            B[v] = A[v] + again[v]
""")
    schedule = Schedule(func)
    step = schedule.transform_layout("out", "again", QUARTERS, 7)
    assert step.rewrite.witness.changes_interface == ("A",) and str(schedule.func.buffers[0].shape) != str(
        func.buffers[0].shape
    )
    assert_same_results(func, schedule.func, {"A": [7]})
    with pytest.raises(IllegalTransform, match="the schedule's interface is fixed"):
        Schedule(func, interface="fixed").transform_layout("out", "again", QUARTERS)


def test_an_alias_left_behind_is_refused() -> None:
    """A pass that forgot an alias would be caught: the view still counts 14 elements in a row, or reads them where they
    were.
    """
    rewrite = TransformLayout("out", "C", QUARTERS).propose(named_twice())
    text = print_func(rewrite.new)
    for before, after in (
        ("C[v // 4, v % 4] + again[v // 4, v % 4]", "C[v // 4, v % 4] + again[v % 4, v // 4]"),
        ("again[v // 4, v % 4] = A[v]", "again[v % 4, v // 4] = A[v]"),
    ):
        assert text.count(before) == 1
        verdicts = check_rewrite(replace(rewrite, new=loads(text.replace(before, after))))
        assert any(v.status in (Status.REFUTED, Status.UNKNOWN) for v in verdicts)


def test_attribute_transforms_move_aliases_once() -> None:
    """`apply_buffer_transforms` does the same for the attribute, in order, and a second time nothing."""
    func = named_twice(
        ', "buffer_layout_transformations": {"C_data": ["lambda i: [i//4, i%4]", "lambda i, j: [j, i]"]}'
    )
    schedule = Schedule(func)
    schedule.apply_buffer_transforms()
    assert "B[v] = C[v % 4, v // 4] + again[v % 4, v // 4]" in schedule.script()
    assert_same_results(func, schedule.func)
    once = schedule.func
    assert ApplyBufferTransforms().propose(once).new == once
    schedule.apply_buffer_transforms()
    assert schedule.func == once


def test_views_of_several_physical_axes_have_the_same() -> None:
    """Memory of two physical axes cannot be seen as one: flattening lists the views; those of the same axis groups are
    fine.
    """

    def seen_as(*views: str) -> PrimFunc:
        declared = "\n".join(f"    {view}" for view in views)
        return program(f"""def main(A: T.Buffer((8, 8), "int32"), B: T.Buffer((8, 8), "int32")):
    T.func_attr({{"tirx.noalias": True, "buffer_axis_separators": {{"C_data": [0]}}}})
    with T.decl_buffer((8, 8), "int32", axis_separators=[1]) as C:
{declared.replace("    ", "        ")}
        for i, j in T.grid(8, 8):
            C[i, j] = A[i, j]
        for i, j in T.grid(8, 8):
            B[i, j] = E[i, j // 4, j % 4]
""")

    fine = 'E = T.decl_buffer((8, 2, 4), "int32", data=C.data, axis_separators=[1])'
    new = FlattenBuffer().propose(seen_as(fine)).new
    assert 'E = T.decl_buffer((8, 8), "int32", data=C.data, axis_separators=[1])' in print_func(new)
    assert FlattenBuffer().propose(new).new == new
    for views in (
        ('D = T.decl_buffer((64,), "int32", data=C.data)', fine),
        ('E = T.decl_buffer((4, 2, 4), "int32", data=C.data, axis_separators=[1])',),
    ):
        with pytest.raises(IllegalTransform) as caught:
            Schedule(seen_as(*views)).flatten_buffer()
        assert caught.value.diagnostics[0].code == "LP315"


VIEWS = {
    "strides": ("(4, 17)", 'V = T.decl_buffer((4, 16), "int32", data=C.data, strides=[17, 1])', "4, 16"),
    "columns_first": ("(4, 17)", 'V = T.decl_buffer((17, 4), "int32", data=C.data, strides=[1, 17])', "17, 4"),
    "offset": ("(4, 17)", 'V = T.decl_buffer((3, 4), "int32", data=C.data, elem_offset=5)', "3, 4"),
    "strides_and_offset": (
        "(4, 17)",
        'V = T.decl_buffer((3, 8), "int32", data=C.data, strides=[17, 2], elem_offset=18)',
        "3, 8",
    ),
    "reshape": ("(4, 17)", 'V = T.decl_buffer((2, 34), "int32", data=C.data)', "2, 34"),
}


@pytest.mark.parametrize("name", VIEWS)
def test_strides_and_offsets_go_into_the_index(name: str) -> None:
    """Fact 78: the flat view of a strided one counts in the memory's elements; proved, the same, and flat once and for
    all.
    """
    shape, view, loops = VIEWS[name]
    func = program(f"""def main(A: T.Buffer((68,), "int32"), B: T.Buffer((68,), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    with T.decl_buffer({shape}, "int32") as C:
        {view}
        for i, j in T.grid(4, 17):
            C[i, j] = A[i * 17 + j]
        for i, j in T.grid({loops}):
            V[i, j] = V[i, j] * 3 - j
        for i, j in T.grid(4, 17):
            B[i * 17 + j] = C[i, j]
""")
    assert_flat(func)


@pytest.mark.parametrize("seed", range(20))
def test_random_views_are_flattened(seed: int) -> None:
    """Views of any strides and offset inside the buffer: the flattened program is proved, with equal bits."""
    rng = Random(seed)
    rows, columns = rng.randint(1, 4), rng.randint(1, 5)
    steps = [rng.choice([0, 1, columns, columns + 2]), rng.choice([1, 2, rows])]
    offset = rng.choice([0, 0, 1, 7])
    need = offset + (rows - 1) * steps[0] + (columns - 1) * steps[1] + 1
    strides = f", strides=[{steps[0]}, {steps[1]}]" if rng.random() < 0.7 else ""
    if not strides:
        need = offset + rows * columns
    func = program(f"""def main(A: T.Buffer(({need + 3},), "int32"), B: T.Buffer(({rows}, {columns}), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    V = T.decl_buffer(({rows}, {columns}), "int32", data=A.data{strides}, elem_offset={offset})
    for i, j in T.grid({rows}, {columns}):
        B[i, j] = V[i, j] + j
""")
    assert_flat(func)


@pytest.mark.parametrize(
    "buffer",
    [
        'T.match_buffer(a, (4, 6), "float32", strides=[8, 1])',
        'T.match_buffer(a, (4, 6), "float32", strides=[1, 4])',
    ],
)
def test_strided_parameters_keep_their_convention(buffer: str) -> None:
    """A parameter's strides stay in `buffer_map`, where callers find them; its flat view counts by them."""
    func = program(f"""def main(a: T.handle, b: T.handle):
    T.func_attr({{"tirx.noalias": True}})
    A = {buffer}
    B = T.match_buffer(b, (4, 6), "float32")
    for i, j in T.grid(4, 6):
        B[i, j] = A[i, j] + T.float32(1)
""")
    new = FlattenBuffer().propose(func).new
    assert new.buffer_map == func.buffer_map and FlattenBuffer().propose(new).new == new
    step = "i * 8 + j" if "8, 1" in buffer else "i + j * 4"
    assert f"B_flat[i * 6 + j] = A_flat[{step}] + T.float32(1.0)" in print_func(new)


def named(strides: str, assumed: str) -> PrimFunc:
    """A copy from a parameter whose strides and offset are names."""
    return program(f"""def main(a: T.handle, b: T.handle):
    T.func_attr({{"tirx.noalias": True}})
    A = T.match_buffer(a, (4, 6), "float32", {strides})
    B = T.match_buffer(b, (4, 6), "float32")
    T.assume({assumed})
    for i, j in T.grid(4, 6):
        B[i, j] = A[i, j] + T.float32(1)
""")


@pytest.mark.parametrize(
    "strides, assumed, extent",
    [
        (
            'strides=["s", "t"]',
            "s >= 0 and t >= 0",
            'T.Cast("int64", s) * T.int64(3) + T.Cast("int64", t) * T.int64(5) + T.int64(1)',
        ),
        ('elem_offset="s"', "s >= 0", 'T.Cast("int64", s) + T.int64(24)'),
        (
            'strides=["s", 1], elem_offset="t"',
            "s >= 0 and t >= 0",
            'T.Cast("int64", t) + T.Cast("int64", s) * T.int64(3) + T.int64(6)',
        ),
    ],
)
def test_strides_that_are_names(strides: str, assumed: str, extent: str) -> None:
    """The flat view of a parameter whose strides only a caller knows: computed in 64 bits, proved for all that are not
    negative.
    """
    rewrite = FlattenBuffer().propose(named(strides, assumed))
    assert f'A_flat = T.decl_buffer(({extent},), "float32", data=A.data)' in print_func(rewrite.new)
    assert all(v.status is Status.PROVED for v in prove_rewrite(rewrite).verdicts)
    assert FlattenBuffer().propose(rewrite.new).new == rewrite.new
    negative = check_rewrite(FlattenBuffer().propose(named(strides, "s > -8")))
    assert any(v.status is Status.REFUTED for v in negative)


def test_a_view_that_moves_with_a_loop() -> None:
    """An alias declared in a loop starts where the loop is; its extent is computed in the type of its flat index."""
    func = program("""def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((4, 6), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        row = T.decl_buffer((6,), "float32", data=A.data, elem_offset=i*6)
        out = T.decl_buffer((3, 2), "float32", data=B.data, elem_offset=i*6)
        for j in range(6):
            out[j // 2, j % 2] = row[j] + T.float32(1)
""")
    assert_flat(func)
    assert 'row = T.decl_buffer((T.Cast("int64", i * 6) + T.int64(6),)' in print_func(FlattenBuffer().propose(func).new)


def assert_flat(func: PrimFunc) -> None:
    """Flattening is proved, keeps the calling convention and the results, prints and reads back, and changes nothing a
    second time.
    """
    rewrite = FlattenBuffer().propose(func)
    bad = [v for v in prove_rewrite(rewrite).verdicts if v.status is not Status.PROVED]
    assert not bad, f"{print_func(rewrite.new)}\n{bad}"
    assert rewrite.new.buffer_map == func.buffer_map
    assert FlattenBuffer().propose(rewrite.new).new == rewrite.new
    assert loads(print_func(rewrite.new)) == rewrite.new
    assert_same_results(func, rewrite.new)
