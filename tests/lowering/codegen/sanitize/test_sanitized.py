"""Every operator, plain and scheduled, as generated C under the sanitizers: silence, and the interpreter's values bit
for bit.
"""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from tests.lowering.codegen.sanitize import harness
from tests.lowering.codegen.sanitize.harness import Call, sanitize
from tests.lowering.codegen.sanitize.schedules import SCHEDULES, SIZES, scheduled
from tests.lowering.small_operators import NAMES, small
from tests.lowering.traces.traces import random_schedule
from tests.shares import chosen, one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering import codes as lowering
from layoutproof.lowering.codegen import codes as codegen
from layoutproof.lowering.codegen.c import emit_c

RANDOM, BATCH = 200, 10
BUILDS = {
    "no optimisation": ("-O0",),
    "threads": ("-O2", "-fopenmp"),
    "all optimisation": ("-O3", "-march=native", "-fopenmp"),
}


def calls(operator: str, schedule: str, *, every: bool) -> list[Call]:
    """An operator under a schedule, at each of its sizes; with `every`, also with indices of 64 bits and with arrays
    out of step.
    """
    func = scheduled(operator, schedule).lower()
    found = []
    for number, symbols in enumerate(SIZES.get(operator, ({},))):
        name = f"{operator}_{schedule}_{number}"
        found.append(Call(name, func, symbols, shifted=number % 2 == 1 or schedule == "vectors"))
        if every:
            found += [
                Call(f"{name}_wide", func, symbols, 64, True),
                Call(f"{name}_other", func, symbols, shifted=not found[-1].shifted),
            ]
    return found


@one_in(28)
@pytest.mark.parametrize("operator", chosen(NAMES, lambda number: number % 2 == 0))
def test_operators_are_clean(operator: str, tmp_path: Path) -> None:
    """An operator as it is, tiled and in vectors, at odd sizes: the sanitizers are silent and the values are the
    interpreter's.
    """
    sanitize(
        [call for schedule in ("plain", "tiled", "vectors") for call in calls(operator, schedule, every=False)],
        tmp_path,
    )


@one_in(10)
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("A_red[ax0] = 0.0f", "A_red[ax0 + 1] = 0.0f", "heap-buffer-overflow"),
        ("A_red[ax0] = 0.0f", "((double *)A_red)[ax0 / 2] = 0.0", "misaligned address|heap-buffer-overflow"),
        ("A_red[ax0] = 0.0f", "A_red[ax0] = (float)malloc", "cc ended with 1"),
        (
            "A_red[ax0] = 0.0f",
            "char *volatile kept = malloc(10); A_red[ax0] = kept != NULL ? 0.0f : 1.0f; kept = NULL",
            "LeakSanitizer",
        ),
        ("A_red[ax0] = 0.0f", "A_red[ax0] = (float)(INT32_MAX - 3 + ax0)", "signed integer overflow"),
        ("A_red[ax0] = 0.0f", "A_red[ax0] = (float)(int)1e20f", "overflow in conversion|outside the range"),
        ("A_red[ax0] = 0.0f", "A_red[ax0] = -0.0f; if (ax0 == 3) break", "A_red: element 3"),
    ],
    ids=["outside", "misaligned", "no C", "leak", "overflow", "conversion", "value"],
)
def test_the_harness_sees_it(old: str, new: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text that is spoiled in one place fails, each slip with the words for it."""
    func = scheduled("row_sum", "plain").lower()
    good = emit_c(func)
    assert good.text.count(old) == 1
    monkeypatch.setattr(harness, "emit_c", lambda *_, **__: replace(good, text=good.text.replace(old, new)))
    with pytest.raises(AssertionError, match=said):
        sanitize([Call("main", func, {}, shifted=True)], tmp_path)


def test_the_harness_sees_padding_that_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store to a padding cell that must stay unchanged fails, though it is in bounds and no result depends on it."""
    func = scheduled("pad", "tiled").lower()
    good = emit_c(func)
    assert good.text.count("i3 < 6") == 1
    monkeypatch.setattr(harness, "emit_c", lambda *_, **__: replace(good, text=good.text.replace("i3 < 6", "i3 <= 6")))
    with pytest.raises(AssertionError, match="untouchable padding of PadInput"):
        sanitize([Call("main", func, {})], tmp_path)


@pytest.mark.campaign
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("operator", NAMES)
def test_every_build_is_clean(operator: str, build: str, tmp_path: Path) -> None:
    """Every schedule of the table, both widths of indices, arrays in and out of step, at every level of optimisation
    and in parallel.
    """
    sanitize(
        [call for schedule in SCHEDULES for call in calls(operator, schedule, every=True)], tmp_path, *BUILDS[build]
    )


@pytest.mark.campaign
@pytest.mark.parametrize("batch", range(RANDOM // BATCH))
def test_random_schedules_are_clean(batch: int, tmp_path: Path) -> None:
    """Whatever a random schedule of proved steps makes of an operator, where C has it: not memory of several axes, not
    every init.
    """
    found = []
    for seed in range(BATCH * batch, BATCH * (batch + 1)):
        operator = Random(seed).choice(NAMES)
        schedule = random_schedule(seed, longest=6, program=small(operator)).schedule
        sizes = SIZES.get(operator, ({},))
        try:
            call = Call(f"{operator}_{seed}", schedule.lower(), sizes[seed % len(sizes)], shifted=seed % 2 == 0)
            assert call.source.text
        except LayoutproofError as problem:
            assert problem.diagnostics[0].code in (codegen.RANK, lowering.INIT_PLACE), problem
        else:
            found.append(call)
    assert len(found) >= BATCH // 3
    sanitize(found, tmp_path)
