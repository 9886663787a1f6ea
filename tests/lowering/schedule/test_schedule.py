"""The schedule: what it keeps, what it refuses, and that traces replay."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.lowering.loops.cases import CASES
from tests.lowering.programs import copy, program, running_sum, two_stages
from tests.lowering.small_operators import CONCRETE, NAMES, OPERATORS, assert_same_results, inputs_of, random_map, small
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import IntImm
from layoutproof.ir.index_map import AXIS_SEPARATOR, IndexMap
from layoutproof.ir.interp import run
from layoutproof.ir.intrinsics import undef
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import load
from layoutproof.ir.stmt import Block
from layoutproof.ir.visit import walk
from layoutproof.lowering.loops.decompose_reduction import DecomposeReduction
from layoutproof.lowering.schedule.schedule import LOWERING, IllegalTransform, Schedule
from layoutproof.lowering.schedule.trace import load_trace
from layoutproof.verify.verdict.verdict import Status


@one_in(4)
@pytest.mark.parametrize("name", NAMES)
def test_every_operator_lowers_with_every_step_proved(name: str) -> None:
    """Each operator, at its real size or for every size, goes through the whole lowering."""
    schedule = Schedule(load(OPERATORS / f"{name}.py"))
    schedule.lower()
    transforms = [step.transform for step in schedule.lowering_steps]
    assert [t for t in transforms if not isinstance(t, DecomposeReduction)] == list(LOWERING)
    reductions = [node for node in walk(schedule.func.body) if isinstance(node, Block) and node.init is not None]
    assert len(transforms) == len(LOWERING) + len(reductions)
    assert all(step.status is Status.PROVED and step.verdicts for step in schedule.lowering_steps)


@one_in(4)
def test_the_real_convolution_becomes_nchw4c() -> None:
    """The 70-channel convolution with all four buffers blocked by 4: every step proved, one flat kernel."""
    schedule = Schedule(load(OPERATORS / "conv2d_nhwc.py"))
    blocked = "lambda n, h, w, c: [n, c//4, h, w, c%4]"
    schedule.transform_layout("pad_temp", "A", blocked, 0.0)
    schedule.transform_layout("conv2d_nhwc", "W", "lambda r, s, i, o: [o//4, i//4, r, s, i%4, o%4]", 0.0)
    schedule.transform_layout("conv2d_nhwc", "pad_temp", blocked, 0.0)
    schedule.transform_layout("conv2d_nhwc", "conv2d_nhwc", blocked, 0.0)
    assert all(step.status is Status.PROVED for step in schedule.steps)
    assert schedule.lowered is schedule.lower()
    assert Schedule.replay(schedule.original, schedule.trace).func == schedule.func


@one_in(28)
@pytest.mark.parametrize("name", CONCRETE)
def test_random_schedules_replay(name: str, tmp_path: Path) -> None:
    """A trace, through JSON and back, gives the identical program; the kernel-ready form computes what the operator
    does.
    """
    rng = Random(f"{name} replay")
    schedule = Schedule(small(name))
    for buffer in small(name).buffers[:2]:
        schedule.transform_layout("root", buffer.name, random_map(rng, buffer.rank), rng.choice([None, 0]))
    schedule.save_trace(tmp_path / "trace.json")
    again = Schedule.load(small(name), tmp_path / "trace.json")
    assert again.func == schedule.func and again.trace == schedule.trace and again.script() == schedule.script()
    assert_same_results(small(name), schedule.lower())


@pytest.mark.parametrize(
    "index_map",
    [
        "lambda i: [i//4, AXIS_SEPARATOR, i%4]",
        lambda i: [i // 4, AXIS_SEPARATOR, i % 4],
        lambda *indices: [indices[0] // 4, AXIS_SEPARATOR, indices[0] % 4],
        IndexMap.from_func(lambda i: [i // 4, AXIS_SEPARATOR, i % 4]),
    ],
)
def test_index_maps_come_in_three_forms(index_map: Any) -> None:
    """Text, a Python function and an IndexMap mean the same and leave the same trace."""
    schedule = Schedule(copy())
    schedule.transform_layout("copy", "B", index_map)
    assert parse_index_map(schedule.trace[0][1]["index_map"]).rename(["i"]) == parse_index_map(
        "lambda i: [i//4, AXIS_SEPARATOR, i%4]"
    )


@pytest.mark.parametrize(
    "pad, text",
    [
        (None, None),
        (0.0, 0.0),
        (np.float32(1.5), 1.5),
        (float("-inf"), 'T.float32("-inf")'),
        ("T.undef()", "T.undef()"),
        (undef, "T.undef()"),
        (undef("float32"), 'T.undef(dtype="float32")'),
        (lambda i, j: 0.5, "lambda i, j: 0.5"),
        (lambda i, j: None, "lambda i, j: None"),
        (lambda *p: undef("float32"), 'lambda p_0, p_1: T.undef(dtype="float32")'),
    ],
)
def test_pad_values_come_in_many_forms(pad: Any, text: Any) -> None:
    """Whatever a Python user gives, the trace holds null, a number or text, and replays."""
    schedule = Schedule(copy())
    schedule.transform_layout("copy", "B", "lambda i: [i//4, i%4]", pad_value=pad)
    assert schedule.trace[0][1]["pad_value"] == text
    assert json.loads(json.dumps(schedule.trace)) == schedule.trace
    assert Schedule.replay(copy(), schedule.trace).func == schedule.func


def test_pad_functions_may_load_from_the_buffer() -> None:
    """`schedule.buffer(name)[...]` stands for the transformed buffer in a Python pad value."""
    schedule = Schedule(copy())
    own = schedule.buffer("B")
    schedule.transform_layout(
        "copy", "B", "lambda i: [i//4, i%4]", lambda i, j: own[(4 * i + j) % 14 // 4, (4 * i + j) % 14 % 4]
    )
    left = run(schedule.func, {"A": np.arange(14, dtype=np.float32), "B": np.zeros((4, 4), np.float32)})["B"]
    assert left[3].tolist() == [12.0, 13.0, 0.0, 1.0]


BAD_CALLS: list[tuple[tuple[Any, ...], str]] = [
    ((3, "B", "lambda i: [i]"), "argument 'block' is 3, a name is expected"),
    (("copy", None, "lambda i: [i]"), "argument 'buffer' is None, a name is expected"),
    (("copy", "Z", lambda i: [i]), "main has no buffer called 'Z'"),
    (("copy", "B", lambda i, j: [i, j]), "the index map takes 2 indices, the buffer has 1 axis"),
    (("copy", "B", lambda i: i), "an index map returns a list of expressions"),
    (
        ("copy", "B", "lambda i: [i//4, i%4]", lambda i: 0.0),
        "the pad value takes 1 index, the buffer has 2 physical axes",
    ),
    (
        ("copy", "B", "lambda i: [i//4, i%4]", lambda i, j: 1.0 if i < j else 0.0),
        "the pad value cannot be evaluated",
    ),
    (
        ("copy", "B", "lambda i: [i//4, i%4]", object()),
        "a pad value is None, a number, an expression, text or a function, not object",
    ),
    (
        ("copy", "B", "lambda i: [i//4, i%4]", lambda i, j: [0.0, 1.0]),
        "a pad value is one value, the function returned 2",
    ),
]


@pytest.mark.parametrize("arguments, words", BAD_CALLS)
def test_bad_calls_are_refusals(arguments: tuple[Any, ...], words: str) -> None:
    """Whatever a Python user passes, the schedule answers with a refusal that says what was expected."""
    with pytest.raises(IllegalTransform) as caught:
        Schedule(copy()).transform_layout(*arguments)
    assert words in caught.value.diagnostics[0].message


def test_a_refused_step_leaves_the_schedule_as_it_was() -> None:
    """After a refusal program, trace and steps are the old ones."""
    schedule = Schedule(copy())
    schedule.transform_layout("copy", "A", "lambda i: [i//4, i%4]")
    before = schedule.func, schedule.trace, schedule.steps
    with pytest.raises(IllegalTransform):
        schedule.transform_layout("copy", "B", "lambda i: [i//4]")
    assert (schedule.func, schedule.trace, schedule.steps) == before


def test_a_map_that_is_not_injective_carries_its_verdict() -> None:
    """The exception has the refuted verdict with two elements and the place they share."""
    with pytest.raises(IllegalTransform) as caught:
        Schedule(copy()).transform_layout("copy", "B", "lambda i: [i//4]")
    verdict = caught.value.verdict
    assert verdict is not None and verdict.status is Status.REFUTED and caught.value.status is Status.REFUTED
    assert verdict.counterexample == {"first": [0], "second": [1], "image": [0]}


def test_reading_past_a_buffer_is_refuted_with_the_line() -> None:
    """A program that faults is found out at the first step, and the message points at its line."""
    func = program("""def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    for i in range(14):
        with T.sblock("shift"):
            v = T.axis.spatial(14, i)
            B[v] = A[v + 1]
""")
    with pytest.raises(IllegalTransform) as caught:
        Schedule(func).transform_layout("shift", "B", "lambda i: [i//2, i%2]")
    assert caught.value.status is Status.REFUTED
    assert any(d.span is not None and d.span.line == 6 for d in caught.value.diagnostics)


def test_touching_padding_without_a_contract_is_refused() -> None:
    """Overcompute over padding without a contract is refused; with `undef` it is accepted."""
    text = """def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({{"layoutproof.layout": {{"A_data": {{"logical_shape": [14], "steps": [
        {{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": {}}}]}}}}}})
    for i, j in T.grid(4, 4):
        B[i, j] = A[i, j]
"""
    with pytest.raises(IllegalTransform):
        Schedule(program(text.format("None"))).simplify()
    assert Schedule(program(text.format('"undef"'))).simplify().status is Status.PROVED


def test_a_fixed_interface_keeps_parameters() -> None:
    """With a fixed interface the layouts of temporaries may change, those of parameters may not."""
    schedule = Schedule(two_stages(), interface="fixed")
    schedule.transform_layout("first", "B", "lambda i, j: [j, i]")
    with pytest.raises(IllegalTransform, match=r"LP319.*parameter C"):
        schedule.transform_layout("second", "C", "lambda i, j: [j, i]")
    with pytest.raises(LayoutproofError, match="LP313"):
        Schedule(two_stages(), interface="open")


def test_a_step_that_changes_nothing_needs_no_fast_math() -> None:
    """What it stands on are the obligations of the program as it is, not what the step before it needed."""
    case = CASES["halo_conv2d"]
    schedule = Schedule.replay(case.program(case.sizes), case.trace[:1])
    assert any(verdict.strictness for verdict in schedule.steps[0].verdicts)
    step = schedule.apply_buffer_transforms()
    assert step.rewrite.new == step.rewrite.old and step.verdicts and step.status is Status.PROVED
    assert not any(verdict.strictness for verdict in step.verdicts)


def test_steps_as_json() -> None:
    """A step's JSON has the primitive, its arguments and an object for each obligation."""
    schedule = Schedule(running_sum())
    step = schedule.transform_layout("sum", "B", "lambda i: [i//4, i%4]", 0)
    found = json.loads(json.dumps(step.to_dict()))
    assert found["primitive"] == "transform_layout"
    assert found["arguments"] == {"block": "sum", "buffer": "B", "index_map": "lambda i: [i//4, i%4]", "pad_value": 0}
    assert {o["status"] for o in found["obligations"]} == {"proved"}
    assert str(step) == "transform_layout(block='sum', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value=0)"


@one_in(7)
@pytest.mark.parametrize(
    "name, first, last",
    [
        ("row_sum", "lambda i, j: [i, j//4, j%4]", "lambda i: [i//3, i%3]"),
        ("relu_nhwc", "lambda n, h, w, c: [n, c//4, h, w, c%4]", "lambda n, h, w, c: [c, w, h, n]"),
        (
            "conv2d_nhwc",
            "lambda n, h, w, c: [n, (c + 1)//4, h, w, (c + 1)%4]",
            "lambda n, h, w, c: [n, c//4, h, w, c%4]",
        ),
        ("sym_relu", "lambda i: [i//4, i%4]", "lambda i: [i//8, i%8]"),
    ],
)
def test_kernels_take_logical_arrays(name: str, first: str, last: str) -> None:
    """A built kernel re-lays its arguments itself and gives what the interpreter gives for the original."""
    func = small(name)
    schedule = Schedule(func)
    schedule.transform_layout("root", func.buffers[0].name, first, 0.0)
    schedule.transform_layout("root", func.buffers[-1].name, last, 0.0)
    arrays = list(inputs_of(func, seed=3, symbols={"n": 7}).values())
    wanted = run(func, arrays)[func.buffers[-1].name]
    np.testing.assert_array_equal(schedule.build("c")(*arrays[:-1]), wanted)


def test_layouts_from_the_attribute_reach_the_kernel() -> None:
    """Transforms in the function's attribute are applied at lowering; the kernel still takes logical arrays."""
    func = program("""def main(A: T.Buffer((6, 10), "int32"), B: T.Buffer((6, 10), "int32")):
    T.func_attr({"buffer_layout_transformations": {"A_data": ["lambda i, j: [j, i]", "lambda i, j: [i//4, j, i%4]"]}})
    for i, j in T.grid(6, 10):
        B[i, j] = A[i, j] + 1
""")
    schedule = Schedule(func)
    assert [tuple(e.value for e in b.shape if isinstance(e, IntImm)) for b in schedule.lower().buffers] == [
        (3, 6, 4),
        (6, 10),
    ]
    given = np.arange(60, dtype=np.int32).reshape(6, 10)
    np.testing.assert_array_equal(schedule.build("c")(given), given + 1)


def test_programs_that_do_nothing_lower_but_pass_no_step() -> None:
    """A function without a store is vacuous: lowering says so and goes on, a step of a schedule is refused."""
    func = program("""def main(A: T.Buffer((16,), "float32")):
    T.evaluate(A[0])
""")
    schedule = Schedule(func)
    schedule.lower()
    assert {step.status for step in schedule.lowering_steps} == {Status.VACUOUS}
    with pytest.raises(IllegalTransform, match="is vacuous"):
        schedule.simplify()


def test_contradictory_assumptions_are_not_lowered() -> None:
    """Where the assumptions on symbols cannot all hold, nothing that was proved means anything."""
    func = program("""def main(A: T.Buffer((16,), "float32"), n: T.int32):
    T.assume(n >= 5)
    T.assume(n < 3)
    A[n + 100] = T.float32(0)
""")
    with pytest.raises(IllegalTransform, match="cannot all hold"):
        Schedule(func).lower()


def test_assumptions_hold_until_the_end() -> None:
    """What a function assumes of its parameters proves steps also after the assumption was removed."""
    func = program("""def main(A: T.Buffer((16,), "float32"), n: T.int32):
    T.assume(n >= 0 and n < 16)
    A[n] = T.float32(0)
""")
    schedule = Schedule(func)
    schedule.remove_assume()
    schedule.simplify()
    assert "assume" not in schedule.script()
    schedule.lower()


def test_malformed_functions_are_no_schedule() -> None:
    """A function that is not well-formed is refused at the door, with the place."""
    func = program("""def main(A: T.Buffer((4, 3), "int32"), B: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 3):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = vk
            B[vi] = B[vi] + A[vi, vk]
""")
    with pytest.raises(LayoutproofError, match="the init of block `sum` uses its reduction variable"):
        Schedule(func)


def test_unknown_targets_are_named() -> None:
    """There are two targets; another is an error, not a guess."""
    with pytest.raises(LayoutproofError, match='there is no target \'cuda\'; available: "c", "opencl"'):
        Schedule(copy()).build("cuda")


ARGUMENTS: dict[str, Any] = {"block": "copy", "buffer": "B", "index_map": "lambda i: [i//4, i%4]", "pad_value": None}
GOOD = ["transform_layout", ARGUMENTS]


def step_with(**changes: Any) -> list[Any]:
    """A step like GOOD with arguments changed; an argument set to `...` is left out."""
    arguments = {**ARGUMENTS, **changes}
    return ["transform_layout", {k: v for k, v in arguments.items() if v is not ...}]


@pytest.mark.parametrize(
    "trace, code, words",
    [
        ({}, "LP326", "a trace is a list of steps, this is an object"),
        ([GOOD, 5], "LP326", "step 2: expected a list of two, such as ["),
        ([["transform_layout"]], "LP326", "got 1 element"),
        ([[3, {}]], "LP326", "step 1: the primitive's name is a number"),
        ([["transform_layuot", {}]], "LP327", "step 1: there is no primitive 'transform_layuot'"),
        ([["simplify", []]], "LP326", "step 1: the arguments of simplify are a list"),
        ([GOOD, step_with(buffer=...)], "LP312", "step 2: transform_layout needs the argument 'buffer'"),
        ([step_with(colour=1)], "LP311", "step 1: transform_layout has no argument 'colour'"),
        ([step_with(buffer=3)], "LP313", "step 1: transform_layout, argument 'buffer' is 3, a name is expected"),
        (
            [step_with(index_map=["i"])],
            "LP313",
            "step 1: transform_layout, argument 'index_map' is ['i'], the text of an index map",
        ),
        (
            [step_with(pad_value=[0])],
            "LP313",
            "step 1: transform_layout, argument 'pad_value' is [0], null, a number, or text",
        ),
        ([step_with(pad_value=float("inf"))], "LP313", "argument 'pad_value' is inf"),
        (
            [["set_axis_separators", {"buffer": "B", "separators": [0.5]}]],
            "LP313",
            "argument 'separators' is [0.5], a list of integers",
        ),
    ],
)
def test_malformed_traces_name_step_and_argument(trace: Any, code: str, words: str) -> None:
    """Every way in which a trace can be wrong is a message of its own, and nothing is applied."""
    with pytest.raises(LayoutproofError) as caught:
        Schedule.replay(copy(), trace)
    assert caught.value.diagnostics[0].code == code
    assert words in caught.value.diagnostics[0].message


def test_a_refused_step_of_a_trace_is_numbered() -> None:
    """Replaying says which step was refused."""
    with pytest.raises(IllegalTransform, match=r"step 2: `lambda i: \[i//4\]` is not injective"):
        Schedule.replay(copy(), [GOOD, step_with(buffer="A", index_map="lambda i: [i//4]")])


@pytest.mark.parametrize(
    "text, words",
    [("{", "is not JSON"), ("[NaN]", "NaN is no JSON number"), ("3", "a trace is a list"), ("", "is not JSON")],
)
def test_files_that_are_no_trace(text: str, words: str, tmp_path: Path) -> None:
    """A file is checked as it is read; a missing one and a directory are errors of their own."""
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(LayoutproofError, match=words):
        load_trace(path)
    with pytest.raises(LayoutproofError, match="LP114"):
        load_trace(tmp_path / "missing.json")
    with pytest.raises(LayoutproofError, match="LP114"):
        load_trace(tmp_path)


def test_original_functions_are_not_changed() -> None:
    """A schedule never touches the function it was given."""
    func: PrimFunc = copy()
    schedule = Schedule(func)
    schedule.transform_layout("copy", "B", "lambda i: [i//4, i%4]", 0.0)
    schedule.lower()
    assert schedule.original == func == copy()


def test_a_trace_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is stopped while it writes a trace leaves the file as it was before."""
    path = tmp_path / "trace.json"
    schedule = Schedule(small(NAMES[0]))
    schedule.save_trace(path)
    before = path.read_bytes()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    schedule.simplify()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            schedule.save_trace(path)
    assert path.read_bytes() == before
    schedule.save_trace(path)
    assert path.read_bytes() != before
    assert list(tmp_path.iterdir()) == [path]
