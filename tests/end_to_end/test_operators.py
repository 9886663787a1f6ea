"""Every operator from its text to a running kernel: as it is, and with each parameter re-laid with padding."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.operators import (
    CONCRETE,
    DATA,
    NAMES,
    REFERENCES,
    Variant,
    assert_equals_interpreter,
    assert_equals_numpy,
    operator,
    scheduled,
    variants,
)
from tests.shares import chosen, one_in

from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict.verdict import Status

SIZES = {
    "sym_relu": [{"n": n} for n in (0, 1, 3, 4, 13)],
    "sym_row_sum": [{"n": n, "m": m} for n in (0, 1, 6) for m in (1, 2, 9)],
}
# Millions of cells, or a hundred million instances: one layout for each parameter is enough.
LARGE = {"relu_nhwc", "conv2d_nhwc"}
LAID_OUT = [
    (name, variant) for name in NAMES for variant in list(variants(operator(name)))[:: 2 if name in LARGE else 1]
]


def test_every_operator_has_a_reference() -> None:
    """No file of the operators is left out, and each parameter of each is re-laid, twice where it is small."""
    assert set(NAMES) == set(REFERENCES) == {path.stem for path in (DATA / "operators").iterdir()}
    assert {(name, variant.buffer) for name, variant in LAID_OUT} == {
        (n, b.name) for n in NAMES for b in operator(n).buffers
    }
    assert len(LAID_OUT) == sum((1 if name in LARGE else 2) * len(operator(name).buffers) for name in NAMES)


@one_in(4)
@pytest.mark.parametrize("name", NAMES)
def test_reads_back_equal(name: str) -> None:
    """An operator printed and read again is the same program, and so is its lowered form."""
    func = operator(name)
    assert loads(print_func(func)) == func
    lowered = Schedule(func).lower()
    assert loads(print_func(lowered)) == lowered


@one_in(21)
@pytest.mark.parametrize("name", NAMES)
def test_kernel_as_written(name: str) -> None:
    """The kernel of an operator equals the interpreter bit for bit and numpy within tolerance."""
    func = operator(name)
    schedule = Schedule(func)
    kernel = schedule.build("c")
    for sizes in SIZES.get(name, [{}]):
        assert_equals_interpreter(schedule, kernel, sizes)
        assert_equals_numpy(func, kernel, REFERENCES[name], sizes)


# Every run re-lays each parameter once, turn about in the one layout and the other.
PARAMETERS = list(dict.fromkeys((name, variant.buffer) for name, variant in LAID_OUT))
WAYS = {of: [each for each in LAID_OUT if (each[0], each[1].buffer) == of] for of in PARAMETERS}
TURNS = [ways[number % len(ways)] for number, ways in enumerate(WAYS.values())]


@one_in(280)
@pytest.mark.parametrize(
    "way", chosen(LAID_OUT, lambda number: LAID_OUT[number] in TURNS, lambda way: f"{way[0]}-{way[1]}")
)
def test_kernel_of_another_layout(way: tuple[str, Variant]) -> None:
    """With a parameter re-laid and padded the kernel still equals interpreter and numpy, and its padding is as the
    contract says.
    """
    name, variant = way
    func = operator(name)
    schedule = scheduled(func, variant)
    assert all(step.status is Status.PROVED for step in (*schedule.steps, *schedule.lowering_steps))
    assert loads(print_func(schedule.func)) == schedule.func
    kernel = schedule.build("c")
    info = kernel.buffers[variant.buffer]
    assert info.index_map is not None and len(info.steps) == 1
    if name in CONCRETE:
        assert prod_of(info.physical_shape) > prod_of(info.logical_shape), "the layout has no padding"
    for sizes in SIZES.get(name, [{}]):
        assert_equals_interpreter(schedule, kernel, sizes)
        assert_equals_numpy(func, kernel, REFERENCES[name], sizes)


def prod_of(shape: tuple[int | str, ...]) -> int:
    """The number of cells of a concrete shape."""
    total = 1
    for extent in shape:
        assert isinstance(extent, int)
        total *= extent
    return total


@one_in(52)
@pytest.mark.parametrize("name", chosen(NAMES, lambda number: NAMES[number] not in LARGE))
def test_all_parameters_at_once(name: str, tmp_path: Path) -> None:
    """With every parameter re-laid at once the kernel is still right, and the saved trace replays to the identical
    program.
    """
    func = operator(name)
    schedule = Schedule(func)
    for variant in list(variants(func))[::2]:
        step = scheduled(func, variant).steps[0]
        schedule.apply(step.transform)
    kernel = schedule.build("c")
    for sizes in SIZES.get(name, [{}]):
        assert_equals_interpreter(schedule, kernel, sizes)
        assert_equals_numpy(func, kernel, REFERENCES[name], sizes)
    schedule.save_trace(tmp_path / "trace.json")
    again = Schedule.load(operator(name), tmp_path / "trace.json")
    assert again.trace == schedule.trace
    assert again.func == schedule.func
    assert again.script() == schedule.script()
    assert print_func(again.lower()) == print_func(schedule.lower())


def test_a_shift_of_any_extent_rests_on_the_size_of_the_call() -> None:
    """An index that leaves 32 bits for the largest extents is proved from an assumption that the kernel lists, and
    checks.
    """
    schedule = Schedule(operator("sym_relu"))
    step = schedule.transform_layout("compute", "A", "lambda i: [i + 3]", None)
    reasons = [v.reason for v in step.verdicts if v.reason is not None]
    assert any("`n + 3` does not overflow int32" in reason for reason in reasons)
    assert any("n + 3" in assumption.text for assumption in schedule.build("c").assumptions)


def test_a_refused_step_leaves_the_schedule_as_it_was() -> None:
    """A map that is not injective for any extent above 1 is refuted with two indices that meet, and nothing was
    applied.
    """
    func = operator("sym_relu")
    schedule = Schedule(func)
    with pytest.raises(IllegalTransform) as caught:
        schedule.transform_layout("compute", "A", "lambda i: [i // 2]", None)
    assert caught.value.status is Status.REFUTED
    assert schedule.func is func and schedule.steps == ()
