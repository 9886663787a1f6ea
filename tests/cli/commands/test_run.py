"""`layoutproof run`: verdicts, comparison, padding, and what becomes of programs and steps that are wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from tests.cli.calling import OPERATORS, Caller, files_below, steady
from tests.cli.schema import RUN
from tests.conftest import Golden
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.cli import kernel_trial as padding_trial
from layoutproof.cli import kernel_trial as trial
from layoutproof.ir.script.reader import load
from layoutproof.lowering.schedule.schedule import Schedule

ROW_SUM = str(OPERATORS / "row_sum.py")
PADDED = [
    [
        "transform_layout",
        {"block": "A_red", "buffer": "A_red", "index_map": "lambda i: [i//3, i%3]", "pad_value": "T.float32(7)"},
    ]
]
UNPADDED = [
    ["transform_layout", {"block": "A_red", "buffer": "A_red", "index_map": "lambda i: [i//3, i%3]", "pad_value": None}]
]
LOSSY = [
    ["transform_layout", {"block": "A_red", "buffer": "A", "index_map": "lambda i, j: [i, j//2]", "pad_value": None}]
]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The file that a trace is written to."""
    return tmp_path / "trace.json"


def built_line(text: str) -> str:
    """A report without the compiler's name, whether the kernel was built before, and how many obligations each step
    has.
    """
    lines = (
        f"  built ...; {line.split('; ', 1)[1]}" if line.startswith("  built with") else line
        for line in text.splitlines()
    )
    return re.sub(r"\d+ obligations", "N obligations", "\n".join(lines) + "\n")


@pytest.mark.parametrize(("name", "steps"), [("plain", []), ("padded", PADDED), ("unpadded", UNPADDED)])
def test_text(call: Caller, golden: Golden, trace: Path, name: str, steps: list[object]) -> None:
    """A successful run reports what was proved, built and compared, required and untouchable padding included."""
    trace.write_text(json.dumps(steps))
    outcome = call("run", ROW_SUM, "--trace", str(trace))
    assert (outcome.code, outcome.err) == (0, "")
    golden(f"cli_run/{name}.txt", built_line(steady(outcome.out, OPERATORS)))


@one_in(4)
@pytest.mark.parametrize(("steps", "code"), [([], 0), (PADDED, 0), (UNPADDED, 0)])
def test_json(call: Caller, trace: Path, steps: list[object], code: int) -> None:
    """The JSON of a run follows the schema and tells every obligation."""
    trace.write_text(json.dumps(steps))
    outcome = call("run", ROW_SUM, "--trace", str(trace), "--format", "json")
    assert outcome.code == code
    found = outcome.json()
    jsonschema.validate(found, RUN)
    assert [[step["primitive"], step["arguments"]] for step in found["steps"]] == steps
    assert found["verdict"] == "proved" and found["run"]["equal"]
    assert all(v["status"] == "proved" for step in (*found["steps"], *found["lowering"]) for v in step["obligations"])
    kinds = [(padding["owed"], padding["untouchable"], padding["wrong"]) for padding in found["run"]["padding"]]
    assert kinds == ([(2, 0, 0)] if steps == PADDED else [(0, 2, 0)] if steps == UNPADDED else [])


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_step_that_is_refused(call: Caller, golden: Golden, trace: Path, form: str) -> None:
    """A map that is not injective: exit code 1, the counterexample in the report, the reason on standard error, nothing
    emitted.
    """
    trace.write_text(json.dumps(LOSSY))
    emitted = trace.parent / "out.c"
    outcome = call("run", ROW_SUM, "--trace", str(trace), "--format", form, "--emit", str(emitted))
    assert outcome.code == 1
    assert not emitted.exists()
    assert "not injective on A" in outcome.err
    if form == "text":
        golden("cli_run/refused.txt", steady(outcome.out, OPERATORS))
    else:
        jsonschema.validate(outcome.json(), RUN)
        assert outcome.json()["verdict"] == "refuted" and outcome.json()["run"] is None
        (refused,) = outcome.json()["steps"]
        assert any(v["status"] == "refuted" and v["counterexample"] is not None for v in refused["obligations"])


OUT_OF_BOUNDS = """
@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in T.serial(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi + 1]
"""
ASSUMING = """
@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in T.serial(4):
        T.assume(A[i] == T.float32(0) and A[i] == T.float32(1))
    for i in T.serial(4):
        B[i] = A[i]
"""
NOTHING = """
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    for i in T.serial(0):
        A[i] = T.float32(0)
"""
GUARDED = """
@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 4):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(k >= 1)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
"""


def test_a_program_at_fault(call: Caller, golden: Golden, tmp_path: Path) -> None:
    """A read past the end is refuted at its line, with the index, before anything is compiled: exit code 1."""
    (tmp_path / "program.py").write_text(OUT_OF_BOUNDS)
    outcome = call("run", str(tmp_path / "program.py"))
    assert outcome.code == 1
    golden("cli_run/out_of_bounds.txt", steady(outcome.out + outcome.err, tmp_path))


GATHER = """@T.prim_func(s_tir=True)
def gather(A: T.Buffer((9,), "float32"), I: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("gather"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[I[vi]]
"""


def test_an_index_from_data(call: Caller, tmp_path: Path) -> None:
    """An index that nothing bounds is unknown, and the program with the help's clamp is proved."""
    path = tmp_path / "gather.py"
    path.write_text(GATHER)
    outcome = call("run", str(path))
    assert outcome.code == 3 and "index 0 depends on data" in outcome.err
    assert "= help: clamp the index in the program, as in T.max(0, T.min(I[i], extent - 1))" in outcome.err
    path.write_text(GATHER.replace("A[I[vi]]", "A[T.max(0, T.min(I[vi], 9 - 1))]"))
    assert call("run", str(path)).code == 0


def test_a_program_that_does_nothing(call: Caller, tmp_path: Path) -> None:
    """A program none of whose stores is ever executed is vacuous: exit code 3."""
    (tmp_path / "program.py").write_text(NOTHING)
    outcome = call("run", str(tmp_path / "program.py"), "--format", "json")
    assert (outcome.code, outcome.json()["verdict"]) == (3, "vacuous")


def test_data_that_break_an_assumption(call: Caller, tmp_path: Path) -> None:
    """If no random inputs satisfy the assumption, it is named, the kernel is not judged, and the exit code is 3."""
    (tmp_path / "program.py").write_text(ASSUMING)
    outcome = call("run", str(tmp_path / "program.py"), "--format", "json")
    assert (outcome.code, outcome.json()["verdict"]) == (3, "unknown")
    jsonschema.validate(outcome.json(), RUN)
    assert outcome.json()["fault"]["kind"] == "violated assumption"
    assert "program.py:6" in outcome.err


def test_an_init_that_the_guard_keeps_off_is_told(call: Caller, golden: Golden, tmp_path: Path) -> None:
    """A block guarded at its first reduction step runs, with a warning on standard error that its result is not
    initialised.
    """
    (tmp_path / "program.py").write_text(GUARDED)
    outcome = call("run", str(tmp_path / "program.py"))
    assert outcome.code == 0
    golden("cli_run/guarded_init.txt", steady(outcome.err, tmp_path))


def test_a_guard_that_depends_on_data(call: Caller, tmp_path: Path) -> None:
    """A reduction guarded by what a buffer holds is read, with the warning, like any other."""
    guard = "T.where(A[i, k] > T.float32(0))"
    (tmp_path / "program.py").write_text(GUARDED.replace("T.where(k >= 1)", guard))
    outcome = call("run", str(tmp_path / "program.py"))
    assert outcome.code in (0, 3)
    assert "warning[LP129]" in outcome.err


FLAT = """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"layoutproof.layout": {
        "A_data": {"logical_shape": [7], "steps": [
            {"index_map": "lambda i: [i//4, i%4]", "shape": [2, 4], "contract": "undef"}]},
        "B_data": {"logical_shape": [7], "steps": [
            {"index_map": "lambda i: [i%4, i//4]", "shape": [4, 2], "contract": "T.float32(3)"}]},
    }})
    for i in T.serial(7):
        B[i%4*2 + i//4] = A[i] + T.float32(1)
    B[7] = T.float32(3)
"""


def test_flattened_parameters(call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters that are flat already, with layouts of two axes, are compared in logical layout; all cells and chosen
    ones.
    """
    (tmp_path / "program.py").write_text(FLAT)
    for limit in (1_000, 1):
        monkeypatch.setattr(trial, "FULL_RUN_INSTANCES", limit)
        outcome = call("run", str(tmp_path / "program.py"), "--format", "json")
        assert outcome.code == 0, outcome.err
        (output,) = outcome.json()["run"]["outputs"]
        assert (output["cells"], output["compared"], output["differing"]) == (7, 7, 0)
        assert outcome.json()["run"]["padding"][0]["owed"] == 1
    (tmp_path / "program.py").write_text(FLAT.replace('"shape": [2, 4]', '"shape": [2, 5]'))
    outcome = call("run", str(tmp_path / "program.py"))
    assert (outcome.code, outcome.out) == (2, "") and outcome.err


def test_values_that_may_be_anything(call: Caller, tmp_path: Path) -> None:
    """An output that holds an undefined value, as the program has it, is no difference, and the report counts it."""
    (tmp_path / "program.py").write_text(FLAT + "    B[0] = A[7]\n")
    outcome = call("run", str(tmp_path / "program.py"), "--format", "json")
    assert outcome.code == 0, outcome.err
    assert outcome.json()["run"]["outputs"][0]["arbitrary"] == 1


def test_what_a_run_wrote_runs_again(call: Caller, tmp_path: Path) -> None:
    """The transformed program and the lowered one are programs too: read back, they run on logical arrays and agree."""
    schedule = Schedule.replay(load(ROW_SUM), PADDED)
    (tmp_path / "after.py").write_text(schedule.script())
    from layoutproof.ir.script.printer import print_func

    (tmp_path / "lowered.py").write_text(print_func(schedule.lower()))
    for name in ("after.py", "lowered.py"):
        found = call("run", str(tmp_path / name), "--format", "json")
        assert found.code == 0, found.err
        assert found.json()["run"]["outputs"][0]["cells"] == 16
        assert found.json()["run"]["padding"][0]["owed"] == 2


def test_emitted_source_and_output_file(call: Caller, tmp_path: Path) -> None:
    """--emit and -o write whole files; nothing is printed then."""
    outcome = call("run", ROW_SUM, "--emit", str(tmp_path / "sum.c"), "-o", str(tmp_path / "report.txt"))
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    files = files_below(tmp_path)
    assert set(files) == {"sum.c", "report.txt"}
    assert b"int main_kernel(const float" in files["sum.c"]
    assert b"bit for bit" in files["report.txt"]


def test_function_is_chosen_by_name(call: Caller) -> None:
    """Of a module's functions the named one runs."""
    seeds = str(OPERATORS.parent / "seeds" / "row_summation.py")
    assert call("run", seeds, "--function", "row_summation_guarded").code == 0
    outcome = call("run", seeds, "--function", "rows")
    assert outcome.code == 2 and "it has row_summation, row_summation_guarded" in outcome.err


def test_a_kernel_that_differs_is_refuted(
    call: Caller, golden: Golden, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel whose output or padding is wrong is told by cell and value, and the exit code is 1."""
    trace.write_text(json.dumps(PADDED))
    true_build = Schedule.build

    def wrong_build(schedule: Schedule, target: str, **options: Any) -> object:
        kernel = true_build(schedule, target, **options)

        class Wrong:
            """A kernel that adds one to the fourth cell, and forgets the last padding cell."""

            def __getattr__(self, name: str) -> object:
                return getattr(kernel, name)

            def __call__(self, **arrays: np.ndarray) -> None:
                kernel(**arrays)
                arrays["A_red"][3] += 1

            def raw(self, **arrays: np.ndarray) -> None:
                before = arrays["A_red"][5, 2]
                kernel.raw(**arrays)
                arrays["A_red"][5, 2] = before

        return Wrong()

    monkeypatch.setattr(Schedule, "build", wrong_build)
    outcome = call("run", ROW_SUM, "--trace", str(trace))
    assert outcome.code == 1
    text = steady(outcome.out, OPERATORS)
    assert "DIFFERS  A_red: 16 of 16 cells compared, 1 differ" in text and "first at [3]" in text
    assert (
        "DIFFERS  A_red: 1 of 2 padding cells are wrong, first [5, 2]" in text
        and "expected 0x1.c000000000000p+2, got " in text
    )


def test_untouched_padding_is_noticed_when_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that writes to padding without a contract is caught."""
    schedule = Schedule.replay(load(ROW_SUM), UNPADDED)
    kernel = schedule.build("c")
    arrays = {"A": np.ones((16, 14), dtype=np.float32), "A_red": np.zeros(16, dtype=np.float32)}
    (good,) = padding_trial.compare_padding(schedule.func, kernel, arrays, {})
    assert (good.required, good.untouchable, good.wrong) == (0, 2, 0)
    true_raw = kernel.raw

    def raw(**given: np.ndarray) -> None:
        true_raw(**given)
        given["A_red"][5, 1] = 0

    monkeypatch.setattr(kernel, "raw", raw)
    (bad,) = padding_trial.compare_padding(schedule.func, kernel, arrays, {})
    assert (bad.wrong, bad.first[0] if bad.first is not None else None) == (1, (5, 1))


def test_sliced_comparison_is_said(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the limit only chosen cells are compared, those beside padding among them, and the report says so."""
    monkeypatch.setattr(trial, "FULL_RUN_INSTANCES", 100)
    found = call("run", ROW_SUM)
    assert found.code == 0
    assert "the backward slice of chosen cells" in found.out
    assert "equal    A_red: 16 of 16 cells compared" in found.out


REGROUPED = """
@T.prim_func
def main(A: T.Buffer((8, 6, 5), "float32"), B: T.Buffer((8,), "float32")):
    for i, j, k in T.grid(8, 6, 5):
        with T.block("sum"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vj, vk]
"""


def test_a_sum_that_is_regrouped_is_compared_after_that_step(call: Caller, tmp_path: Path, trace: Path) -> None:
    """Under `reassoc` the program as written rounds otherwise; the kernel is held to what the step made of it, and the
    report says so.
    """
    program = tmp_path / "sum.py"
    program.write_text(REGROUPED.replace("    for i", '    T.func_attr({"tirx.noalias": True})\n    for i'))
    trace.write_text(json.dumps([["reorder", {"block": "sum", "loops": ["k", "j"]}], ["simplify", {}]]))
    outcome = call("run", str(program), "--trace", str(trace))
    assert outcome.code == 0, outcome.out
    assert "compared with the program after step 1: up to there it does the same with reassoc" in outcome.out
    found = call("run", str(program), "--trace", str(trace), "--format", "json").json()
    jsonschema.validate(found, RUN)
    assert found["run"]["after_steps"] == 1 and found["run"]["equal"]


HALVES = """
@T.prim_func
def main(A: T.Buffer((SIZE,), "float32"), B: T.Buffer((SIZE,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(SIZE):
        T.evaluate(T.assume(not i % 2 == 1 or A[i] == T.float32(0)))
    for i in range(SIZE):
        with T.block("b"):
            vi = T.axis.spatial(SIZE, i)
            T.where(i % 2 == 0)
            B[vi] = A[vi] * T.float32(3)
    for i in range(SIZE):
        with T.block("rest"):
            vi = T.axis.spatial(SIZE, i)
            T.where(i % 2 == 1)
            B[vi] = A[vi]
"""


@pytest.mark.parametrize("sliced", [False, True])
def test_made_up_data_meets_what_the_program_assumes(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sliced: bool
) -> None:
    """Where every other element is assumed to be 0, it is; whether all cells are compared or a slice of them."""
    program = tmp_path / "assuming.py"
    program.write_text(HALVES.replace("SIZE", "40"))
    if sliced:
        monkeypatch.setattr(trial, "FULL_RUN_INSTANCES", 10)
    outcome = call("run", str(program))
    assert outcome.code == 0, outcome.out
    assert "DIFFERS" not in outcome.out and "equal    B: " in outcome.out


def test_an_assumption_that_data_cannot_meet_leaves_the_run_undecided(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data that breaks an assumption says nothing of the kernel, in a slice either; the program itself runs for a size
    of 1.
    """
    program = tmp_path / "never.py"
    text = (
        HALVES.replace("(SIZE,)", '("n",)')
        .replace("SIZE", "n")
        .replace("    T.func_attr", "    n = T.int32()\n    T.func_attr", 1)
    )
    program.write_text(text.replace("A[i] == T.float32(0)", "A[i] != A[i] and A[i] < T.float32(0)"))
    monkeypatch.setattr(trial, "FULL_RUN_INSTANCES", 10)
    outcome = call("run", str(program), "--size", "n=40")
    assert outcome.code == 3, outcome.out
    assert "the reference interpreter stopped" in outcome.out


def test_sizes_that_are_given_are_not_zero(call: Caller, tmp_path: Path) -> None:
    """That a reduction of symbolic size may be empty is no remark where a size is given or steps are proved, but where
    a kernel for all sizes is built.
    """
    program, trace = ROOT / "examples" / "programs" / "row_sum.py", ROOT / "examples" / "row_sum.json"
    for arguments in (("run", str(program), "--size", "m=5"), ("check", str(program), "--trace", str(trace))):
        outcome = call(*arguments)
        assert outcome.code == 0 and "LP129" not in outcome.out + outcome.err
    built = call("build", str(program), "-o", str(tmp_path / "sum.c"), str(tmp_path / "sum.h"))
    assert built.code == 0 and "note[LP129]" in built.err
