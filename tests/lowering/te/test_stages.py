"""Schedules by tensors and axes: transformed axes, splits and orders, each a proved step of the schedule inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.conftest import Golden
from tests.lowering.small_operators import assert_same_results
from tests.shares import one_in

from layoutproof import te
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import IntImm
from layoutproof.ir.script.printer import print_func
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.verdict.verdict import Status

SEP = te.AXIS_SEPARATOR


def copy(*shape: int) -> te.Tensor:
    """`B = A`, whatever the number of axes."""
    a = te.placeholder(shape, name="A")
    return te.compute(shape, lambda *i: a(*i), name="B")


def row_sum() -> te.Tensor:
    """The sums of the rows of a 14 by 30 matrix."""
    a, k = te.placeholder((14, 30), name="A"), te.reduce_axis((0, 30), "k")
    return te.compute(14, lambda i: te.sum(a[i, k], axis=k), name="B")


def extents(axes: tuple[te.Axis, ...]) -> list[int]:
    """The numbers of iterations."""
    return [axis.extent.value for axis in axes if isinstance(axis.extent, IntImm)]


def checked(schedule: te.ComputeSchedule) -> Schedule:
    """The schedule inside, after its program was read: all proved, the same results, and a trace that reproduces it."""
    inner = schedule.schedule
    assert all(step.status is Status.PROVED for step in inner.steps)
    assert_same_results(inner.original, inner.func)
    assert Schedule.replay(inner.original, inner.trace).func == inner.func
    return inner


FACT_76: dict[str, tuple[Callable[..., Any], list[int]]] = {
    "reversed": (lambda i, j, k: [k, j, i], [40, 6, 4]),
    "flattened": (lambda i, j, k: [(i * 6 + j) * 40 + k], [960]),
    "last axis split": (lambda *i: [*i[:-1], i[-1] // 4, i[-1] % 4], [4, 6, 10, 4]),
}


@pytest.mark.parametrize("name", FACT_76)
def test_loops_follow_the_layout(name: str) -> None:
    """Fact 76: after a transform the loops of the stage have the extents of the new shape, in its order."""
    index_map, shape = FACT_76[name]
    b = copy(4, 6, 40)
    schedule = te.create_schedule(b.op)
    stored = schedule[b].transform_layout(index_map)
    assert (
        extents(stored.op.axis)
        == extents(schedule[stored].axes)
        == [e.value for e in stored.shape if isinstance(e, IntImm)]
        == shape
    )
    checked(schedule)


def test_padding_needs_a_word() -> None:
    """Fact 76: three channels by fours leave padding, and that is refused without a pad value."""
    b = copy(1, 3, 8, 8)
    schedule = te.create_schedule(b)
    before = schedule.func

    def blocked(n: te.Axis, c: te.Axis, y: te.Axis, x: te.Axis) -> list[te.Expr]:
        return [n, c // 4, y, x, c % 4]

    with pytest.raises(IllegalTransform, match="leaves padding in B, where p4 == 3"):
        schedule[b].transform_layout(blocked)
    assert schedule.func == before and not schedule.schedule.steps
    stored = schedule[b].transform_layout(blocked, pad_value=0.0)
    assert extents(stored.op.axis) == [1, 1, 8, 8, 4]
    checked(schedule)


@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 4, 1)])
def test_axes_of_one_cell(shape: tuple[int, ...]) -> None:
    """Fact 76: axes of extent 1 keep their loops, with separators between them too."""
    b = copy(*shape)
    schedule = te.create_schedule(b.op)
    stored = schedule[b].transform_layout(lambda *i: [i[0], *(x for axis in i[1:] for x in (SEP, axis))])
    assert extents(stored.op.axis) == list(shape)
    assert checked(schedule).lower().buffers[1].rank == len(shape)


FACT_75: dict[str, Callable[..., Any]] = {
    "one_axis": lambda i, j, k: [i, j, k],
    "two_axes": lambda i, j, k: [i, j, SEP, k],
    "two_axes_reversed": lambda i, j, k: [k, j, SEP, i],
    "three_axes": lambda i, j, k: [i, SEP, j, SEP, k],
}


@pytest.mark.parametrize("name", FACT_75)
def test_separators_group_axes(name: str, golden: Golden) -> None:
    """Fact 75: after lowering a 2 by 3 by 4 tensor has an axis for each group, indexed in row-major order within it."""
    b = copy(2, 3, 4)
    schedule = te.create_schedule(b.op)
    schedule[b].transform_layout(FACT_75[name])
    golden(f"te/separators_{name}.txt", print_func(checked(schedule).lower()))


def test_the_documents_example(golden: Golden) -> None:
    """The RFC's NHWC stored as NCHW4c: the transformed axes are split and put into another order."""
    a = te.placeholder((2, 3, 5, 8), name="A")
    b = te.compute(a.shape, lambda n, h, w, c: a[n, h, w, c], name="B")
    schedule = te.create_schedule(b.op)
    stored = schedule[b].transform_layout(lambda n, h, w, c: [n, c // 4, h, w, c % 4])
    n, outer, h, w, inner = stored.op.axis
    w_outer, w_inner = schedule[stored].split(w, factor=2)
    schedule[stored].reorder(n, outer, w_outer, h, w_inner, inner)
    assert schedule[stored].axes == (n, outer, w_outer, h, w_inner, inner)
    golden("te/nchw4c.txt", checked(schedule).script())


def test_the_equivalent_definition() -> None:
    """The RFC's other way to the same memory: a definition in the physical layout gives the same bytes."""
    a = te.placeholder((2, 3, 5, 8), name="A")
    b = te.compute(a.shape, lambda n, h, w, c: a[n, h, w, c], name="B")
    equivalent = te.compute((2, 2, 3, 5, 4), lambda n, co, h, w, ci: a[n, h, w, 4 * co + ci], name="B")
    schedule = te.create_schedule(b.op)
    schedule[b].transform_layout(lambda n, h, w, c: [n, c // 4, h, w, c % 4])
    data = np.random.default_rng(1).standard_normal((2, 3, 5, 8), dtype=np.float32)
    kernels = [schedule.schedule.build("c"), te.create_schedule(equivalent).schedule.build("c")]
    results = [np.empty((2, 2, 3, 5, 4), np.float32) for _ in kernels]
    for kernel, result in zip(kernels, results, strict=True):
        kernel.raw(data, result)
    np.testing.assert_array_equal(results[0], results[1])


def test_reductions_keep_their_axes() -> None:
    """The reduction stays inside the transformed axes, and may be split as well."""
    b = row_sum()
    schedule = te.create_schedule(b.op)
    stored = schedule[b].transform_layout(lambda i: [i // 4, i % 4], pad_value=te.undef("float32"))
    assert extents(stored.op.axis) == [4, 4] and stored.op.reduce_axis == b.op.reduce_axis
    outer, inner = schedule[stored].split(stored.op.reduce_axis[0], nparts=5)
    assert extents((outer, inner)) == [5, 6]
    assert schedule[b].axes == (*stored.op.axis, outer, inner)
    assert schedule.schedule.steps[-1].status is Status.PROVED


def test_given_tensors_change_their_layout_only() -> None:
    """A placeholder is expected in the new layout; it has no loops, and those of others stay."""
    b = row_sum()
    schedule = te.create_schedule(b)
    (a,) = [t for t in schedule.tensors if t.name == "A"]
    stored = schedule[a].transform_layout(lambda i, k: [k, i])
    assert extents(stored.op.axis) == [] and [e.value for e in stored.shape if isinstance(e, IntImm)] == [30, 14]
    assert schedule[b].axes == (*b.op.axis, *b.op.reduce_axis)
    checked(schedule)


def test_transforms_follow_one_another() -> None:
    """A second transform starts from the first one's axes."""
    b = copy(8, 12)
    schedule = te.create_schedule(b)
    once = schedule[b].transform_layout(lambda i, j: [j, i])
    twice = schedule[once].transform_layout(lambda j, i: [j // 3, i, j % 3])
    assert extents(once.op.axis) == [12, 8] and extents(twice.op.axis) == [4, 8, 3]
    with pytest.raises(LayoutproofError, match="is no axis of the stage B as it is now"):
        schedule[twice].split(once.op.axis[0], factor=2)
    checked(schedule)


def test_constant_axes_have_no_loop() -> None:
    """An axis that every element has one place on is there, but there is nothing to schedule along it."""
    b = copy(6)
    schedule = te.create_schedule(b)
    stored = schedule[b].transform_layout(lambda i: [0, i])
    assert extents(stored.op.axis) == [1, 6] and len(schedule[stored].axes) == 1
    with pytest.raises(LayoutproofError, match="its axes are i"):
        schedule[stored].split(stored.op.axis[0], factor=2)
    checked(schedule)


def test_symbolic_sizes() -> None:
    """What is proved of a definition with sizes is proved for all of them."""
    n = te.var("n")
    a = te.placeholder((n, 8), name="A")
    b = te.compute((n, 8), lambda i, j: a[i, j] * 2.0, name="B")
    schedule = te.create_schedule(b)
    stored = schedule[b].transform_layout(lambda i, j: [j, i])
    assert [axis.name for axis in stored.op.axis] == ["j", "i"]
    assert all(step.status is Status.PROVED for step in schedule.schedule.steps)


def test_tiles() -> None:
    """Two axes tiled: the parts stand as they are returned."""
    b = copy(8, 12)
    schedule = te.create_schedule(b)
    i, j = b.op.axis
    tiles = schedule[b].tile(i, j, x_factor=4, y_factor=3)
    assert schedule[b].axes == tiles and extents(tiles) == [2, 4, 4, 3]
    checked(schedule)


def test_fused_axes() -> None:
    """Axes fused are one axis, as long as both; it is split again by its own name."""
    b = copy(8, 12)
    schedule = te.create_schedule(b)
    i, j = b.op.axis
    fused = schedule[b].fuse(i, j)
    assert schedule[b].axes == (fused,) and extents((fused,)) == [96]
    outer, inner = schedule[b].split(fused, factor=16)
    assert schedule[b].axes == (outer, inner)
    with pytest.raises(LayoutproofError, match="i0 is no axis of the stage B"):
        schedule[b].fuse(i, j)
    checked(schedule)


def test_kinds_of_axes(golden: Golden) -> None:
    """Transformed axes run at the same time, as lanes and written out; an axis that is reduced over may not."""
    b = row_sum()
    schedule = te.create_schedule(b)
    stored = schedule[b].transform_layout(lambda i: [i // 7, i % 7])
    outer, inner = stored.op.axis
    k_outer, k_inner = schedule[b].split(stored.op.reduce_axis[0], factor=5)
    schedule[b].reorder(outer, k_outer, k_inner, inner)
    schedule[b].parallel(outer)
    schedule[b].unroll(k_inner)
    schedule[b].vectorize(inner)
    before = schedule.func
    with pytest.raises(IllegalTransform, match="touch one cell"):
        schedule[b].parallel(k_outer)
    assert schedule.func == before
    golden("te/kinds.txt", checked(schedule).script())


def test_a_copy_of_what_is_read(golden: Golden) -> None:
    """A cached input is stored in another layout than the caller's, and its own loops follow that."""
    b = row_sum()
    schedule = te.create_schedule(b)
    a = schedule.tensors[0]
    cached = schedule.cache_read(a, b)
    assert extents(cached.op.axis) == [14, 30]
    stored = schedule[cached].transform_layout(lambda i, k: [k, i])
    assert extents(stored.op.axis) == extents(schedule[stored].axes) == [30, 14]
    schedule[stored].split(stored.op.axis[1], factor=7)
    golden("te/cache_read.txt", checked(schedule).script())
    with pytest.raises(LayoutproofError, match="A is given: it has no loops, and reads nothing"):
        schedule.cache_read(b, a)


def test_a_copy_of_what_is_written() -> None:
    """a cached result of 33 rows in blocks of 32 with a separator has padding from the second row of the
    second block on.
    """
    b = copy(33, 8)
    schedule = te.create_schedule(b)
    cached = schedule.cache_write(b)
    assert extents(cached.op.axis) == [33, 8] and schedule[b].axes == b.op.axis
    stored = schedule[cached].transform_layout(lambda x, y: [x // 32, y, SEP, x % 32], pad_value=0.0)
    assert extents(stored.op.axis) == [2, 8, 32]
    schedule[b].reorder(*reversed(b.op.axis))
    text = checked(schedule).script()
    assert "v_p0 == 1 and v_p2 >= 1" in text or "p0 == 1 and p2 >= 1" in text
    assert schedule.schedule.func.buffers[1].rank == 2
    with pytest.raises(LayoutproofError, match="A is given: nothing here writes it"):
        schedule.cache_write(schedule.tensors[0])


def test_a_copy_of_a_reduction() -> None:
    """The reduction moves to the cache with all its axes; what is left is a copy."""
    b = row_sum()
    schedule = te.create_schedule(b)
    cached = schedule.cache_write(b)
    assert extents(cached.op.axis) == [14] and extents(cached.op.reduce_axis) == [30]
    schedule[cached].split(cached.op.reduce_axis[0], factor=5)
    schedule[b].vectorize(b.op.axis[0])
    assert len(schedule[cached].axes) == 3
    checked(schedule)


@one_in(4)
def test_a_refused_order_takes_the_layout_back() -> None:
    """Where it is not known that the loops may follow the new layout, the schedule is as it was."""
    b = copy(4, 4)
    schedule = te.create_schedule(b)
    before = schedule.func
    with pytest.raises(IllegalTransform, match="is not decided"):
        schedule[b].transform_layout("lambda i, j: [i*4 + (j*j)%7 + 0*j, j]", pad_value=0.0)
    assert schedule.func == before and schedule[b].axes == b.op.axis


def test_kernels_of_definitions() -> None:
    """A definition, scheduled and built, is called on arrays in logical layout."""
    b = row_sum()
    schedule = te.create_schedule(b.op)
    schedule[b].transform_layout(lambda i: [i // 4, i % 4], pad_value=0.0)
    data = np.arange(14 * 30, dtype=np.float32).reshape(14, 30)
    result = schedule.schedule.build("c")(data)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, data.sum(axis=1))


def test_steps_are_taken_back() -> None:
    """The schedule inside can take its last step back, as often as there are steps."""
    inner = te.create_schedule(copy(8, 4)).schedule
    before = inner.func
    inner.split("B", "i0", [None, 2])
    inner.undo()
    assert inner.func == before and inner.trace == []
    with pytest.raises(LayoutproofError, match="no step to take back"):
        inner.undo()
