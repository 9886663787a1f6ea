"""Loops of relaid functions: they follow what is stored, convolutions keep results in registers, and nothing changes by
it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.graph.nets import NCHW4C, arrays_for, filled, running_example
from tests.shares import one_in

from layoutproof.graph.flow.layout_flow import flow, relaid
from layoutproof.graph.model.graph import shape_of, signature_of
from layoutproof.graph.model.graph_run import interpret, run_graph, transformed
from layoutproof.graph.operators.convolution import Halo, Sliding, conv2d
from layoutproof.graph.operators.elementwise import unary
from layoutproof.graph.operators.moving import concat
from layoutproof.graph.operators.reduction import reduce
from layoutproof.graph.operators.spatial import avg_pool2d, max_pool2d
from layoutproof.graph.planning.planner import plan
from layoutproof.graph.tuning.kernels import Kernels, arranged, tiling_of
from layoutproof.graph.tuning.loop_schedules import Together, apply_together, blocks_of, drafted, follow, order_of
from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import const
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import For
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import walk
from layoutproof.lowering.kernels.relayout import THREADED
from layoutproof.lowering.layout.transform_layout import TransformLayout
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.verdict.verdict import Status


def blocked(func: PrimFunc, *arrays: str) -> Schedule:
    """A function with some arrays in blocks of four channels, and what follows from that."""
    return relaid(func, flow(func, {name: parse_index_map(NCHW4C) for name in arrays}))


def same(schedule: Schedule, other: Schedule) -> None:
    """Fail unless the kernels of two schedules give the same arrays, bit for bit, as the interpreter gives them."""
    signature = signature_of(schedule.func)
    operands = {buffer.name: filled(*shape_of(buffer), seed=k) for k, buffer in enumerate(signature.operands)}
    wanted = interpret(schedule.func, list(operands.values()))
    found = {buffer.name: np.zeros(shape_of(buffer), dtype=np.float32) for buffer in signature.results}
    other.build("c", check=False).raw(**operands, **found)
    for buffer, expected in zip(signature.results, wanted, strict=True):
        np.testing.assert_array_equal(found[buffer.name].view(np.int32), expected.view(np.int32))


@one_in(7)
@pytest.mark.parametrize(
    ("func", "array"),
    [
        (unary("relu", (1, 8, 3, 3)), "Y"),
        (max_pool2d((1, 8, 7, 7), (3, 3), (2, 2), (1, 1, 1, 1)), "Y"),
        (avg_pool2d((1, 8, 4, 4), (2, 2), (2, 2)), "X"),
        (concat(((1, 8, 3, 3), (1, 4, 3, 3)), 1), "Y"),
    ],
    ids=lambda value: value.name if isinstance(value, PrimFunc) else value,
)
def test_loops_follow_what_is_stored(func: PrimFunc, array: str) -> None:
    """Each block gets the loops of its result's layout, each step proved, and computes the same."""
    before = blocked(func, array)
    after = follow(before.fork())
    assert len(after.steps) > len(before.steps)
    innermost = [node for node in walk(after.func.body) if isinstance(node, For)][-1]
    lanes = [node.dtype.lanes for node in walk(after.func.body) if isinstance(node, BufferLoad)]
    assert innermost.extent == const(4) or set(lanes) == {4}
    same(before, after)


@one_in(9)
@pytest.mark.parametrize(
    ("data", "weight", "strides", "halo"),
    [
        ((1, 8, 6, 6), (16, 8, 3, 3), (1, 1), (1, 1, 1, 1)),
        ((1, 3, 9, 9), (8, 3, 3, 3), (2, 2), (1, 1, 1, 1)),
        ((2, 8, 4, 4), (4, 8, 1, 1), (1, 1), (0, 0, 0, 0)),
    ],
)
def test_convolutions_keep_their_results_in_registers(
    data: tuple[int, ...], weight: tuple[int, ...], strides: tuple[int, int], halo: Halo
) -> None:
    """A convolution in blocks of channels gets the schedule for it, and computes the same, bit for bit."""
    before = blocked(conv2d(data, weight, Sliding(strides, halo)), "X", "Y")
    after = arranged(before.fork())
    assert "vectorize_loop" in [step.transform.primitive for step in after.steps]
    same(before, after)


@pytest.mark.parametrize(
    "func", [conv2d((1, 8, 4, 4), (8, 8, 1, 1)), unary("relu", (1, 8, 3, 3))], ids=lambda func: func.name
)
def test_other_functions_have_no_tiling(func: PrimFunc) -> None:
    """A convolution of plain images, and an operator that is none, are no case for that schedule."""
    assert tiling_of(func) is None


def test_reductions_over_blocks_are_taken_apart() -> None:
    """The parts into which an update takes what it sums over become loops of their own: its init, which reads nothing,
    has none.
    """
    schedule = blocked(reduce("max", (1, 8, 3, 3), (1,)), "X")
    (block,) = blocks_of(schedule.func)
    index_map = order_of(schedule.func, block)
    assert index_map is not None and [expr_text(output) for output in index_map.outputs[-2:]] == ["v1 // 4", "v1 % 4"]
    same(schedule, follow(schedule.fork()))


def test_channels_that_fill_no_block_follow() -> None:
    """A convolution with filters that fill no block is run by loops that follow, and computes the same."""
    before = blocked(conv2d((1, 4, 4, 4), (6, 4, 1, 1)), "X", "Y")
    assert tiling_of(before.func) is None
    after = arranged(before.fork())
    operands = [filled(*shape_of(buffer)) for buffer in signature_of(before.func).operands]
    wanted = interpret(before.func, operands)[0][:, :, :, :, :2]
    np.testing.assert_array_equal(interpret(after.func, operands)[0][:, :, :, :, :2], wanted)


@one_in(9)
def test_a_planned_graph_runs_by_kernels() -> None:
    """The planned running example gives the same bits by kernels as the unplanned one by the interpreter."""
    found = plan(running_example(), {"conv2d": {"X": NCHW4C, "Y": NCHW4C}})
    kernels = Kernels(found.rewrite.schedules)
    inputs = arrays_for(found.graph)
    after = run_graph(found.rewrite.new, inputs, runner=kernels, mover=kernels.move)
    for wanted, made in zip(run_graph(found.graph, inputs), after, strict=True):
        np.testing.assert_array_equal(made.view(np.int32), wanted.view(np.int32))


def test_the_steps_of_a_convolution_are_proved_together() -> None:
    """All steps before those that make lanes are one, proved from the first program to the last."""
    made = arranged(blocked(conv2d((1, 8, 4, 4), (8, 8, 1, 1)), "X", "Y"))
    words = [step.transform.primitive for step in made.steps]
    assert words == ["apply_buffer_transforms", "together", "vectorize_loop", "simplify"]
    passes = made.steps[1].transform.arguments()["passes"]
    assert len(passes) > 15 and {verdict.status for step in made.steps for verdict in step.verdicts} == {Status.PROVED}


def test_steps_that_do_not_compose_are_applied_one_by_one() -> None:
    """A step that changes a layout is none of several in one, so each is proved by itself."""
    func = unary("relu", (4, 6))
    relays = [TransformLayout("root", name, "lambda i, j: [j, i]", None) for name in ("X", "Y")]
    schedule = Schedule(func)
    apply_together(schedule, [drafted(func, lambda draft: [draft.apply(each) for each in relays])])
    assert [step.transform for step in schedule.steps] == relays
    with pytest.raises(IllegalTransform):
        drafted(func, lambda draft: draft.split("relu", "i9", [None, 2]))


def test_steps_in_one_are_proved_like_others() -> None:
    """What is drafted is not believed: a step of several that stores something else is refused."""
    func, other = unary("relu", (4, 6)), unary("abs", (4, 6))
    (split, order) = drafted(func, lambda draft: [draft.split("relu", 1, [None, 2]), draft.reorder("relu", [1, 0])])
    lying = replace(order[1], new=replace(other, name=func.name))
    schedule = Schedule(func)
    with pytest.raises(IllegalTransform):
        schedule.attempt(Together((split[0], order[0]), (split[1], lying)))
    assert not schedule.steps and schedule.attempt(Together((split[0], order[0]))).status is Status.PROVED


def test_runners_share_kernels() -> None:
    """A runner made of another one takes that one's kernels, for functions of other names, too."""
    first = Kernels()
    func = unary("relu", (1, 8, 3, 3))
    kernel = first.kernel(func)
    assert first.also({}).kernel(replace(func, name="another")) is kernel


def test_layout_changes_run_in_one_thread() -> None:
    """A large array is moved as the interpreter of maps moves it, by a kernel without threads."""
    array, index_map = filled(1, 64, 40, 40), parse_index_map(NCHW4C)
    kernels = Kernels()
    made = kernels.move(array, index_map)
    np.testing.assert_array_equal(made, transformed(array, index_map))
    assert made.nbytes > THREADED and not any(kernel.report.openmp for kernel, _ in kernels._movers.values())
