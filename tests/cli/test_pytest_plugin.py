"""`pytest --layoutproof`, called as its users call it: in a process of its own, in a folder of theirs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from tests.cli.pytest_runs import Team
from tests.pages import blocks, sessions
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.cli import codes as cli
from layoutproof.lowering import codes as lowering
from layoutproof.verify.verdict import codes as verify

GATES = """\
import layoutproof as lp


@lp.gate(cases={"8": (8,), "16": (16,)})
def blocked_rows(width):
    return lp.check_map(lambda i, j: [i, j // width, j % width], shape=(14, 30))


@lp.gate
def forgetful():
    print("this is said aloud")
    return lp.check_map(lambda i: [i // 4], shape=(14,))
"""
REFUTED = """\
gates.py:10:1: error[LP210]: check_map(index_map='lambda i: [i//4]', shape='[14]'): \
no two logical indices of [14] share a physical cell is refuted: [0] and [1] both go to [0]
  10 | def forgetful():
     | ^^^^^^^^^^^^^^^^
    [0] ──┐
          ├──> cell [0]
    [1] ──┘
"""
UNDECIDED = """\
import layoutproof as lp


@lp.gate(allow_unknown={allowed})
def wavefront():
    return lp.check_map(lambda i, j: [(i + j) * (i + j + 1) // 2 + j], shape="n, m")
"""
TESTS = """\
import layoutproof as lp


def test_plain():
    assert True


@lp.gate
def test_like_a_test():
    return lp.check_map(lambda i: [i], shape=(4,))


@lp.gate(cases=[3, 4])
def another(n):
    return lp.check_map(lambda i: [i // n, i % n], shape=(14,))
"""
PASSED, NOT_ALL_PASSED, INTERRUPTED, USAGE, NOTHING = 0, 1, 2, 4, 5


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """A folder with a strict configuration, in which no warning is let through."""
    text = "[pytest]\naddopts = --strict-markers --strict-config\nfilterwarnings = error\n"
    (tmp_path / "pytest.ini").write_text(text, encoding="utf-8")
    return Team(tmp_path)


def test_it_is_an_entry_point() -> None:
    """Installing layoutproof installs the plugin."""
    assert [point.value for point in entry_points(group="pytest11", name="layoutproof")] == [
        "layoutproof.cli.pytest_plugin"
    ]


@one_in(4)
def test_without_the_option_nothing_is_done(team: Team) -> None:
    """No gate is collected, and nothing of layoutproof is imported but the module of the plugin."""
    loaded = "def test_loaded():\n    assert sorted(name for name in sys.modules if name.startswith('layoutproof')) == "
    expected = ["layoutproof", "layoutproof.cli", "layoutproof.cli.pytest_plugin"]
    team.write(gates="raise SystemExit('@gate was imported')\n", test_imports=f"import sys\n\n\n{loaded}{expected}\n")
    run = team.run()
    assert (run.code, run.outcomes) == (PASSED, {"test_imports::test_loaded": "passed"}), run.text


@one_in(4)
def test_gates_are_items(team: Team) -> None:
    """Each case is an item; what is not proved fails with the finding as text, without a traceback, and with what the
    gate printed.
    """
    team.write(gates=GATES)
    run = team.run("--layoutproof")
    assert run.code == NOT_ALL_PASSED
    expected = {"gates::blocked_rows[8]": "passed", "gates::blocked_rows[16]": "passed", "gates::forgetful": "failure"}
    assert run.outcomes == expected
    assert REFUTED in run.text and "this is said aloud" in run.text
    assert "Traceback" not in run.text and "pytest_plugin.py" not in run.text
    assert REFUTED in f"{run.reasons['gates::forgetful']}\n"
    assert "FAILED gates.py::forgetful - Failed: gates.py:10:1: error[LP210]" in run.text


@one_in(4)
def test_a_refused_step_shows_both_places(team: Team) -> None:
    """The line of the gate that asked for a step, and the line of the program that it is about."""
    program = (
        "@T.prim_func(s_tir=True)\n"
        'def copy(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):\n'
        "    for i in range(14):\n"
        '        with T.sblock("copy"):\n'
        '            vi = T.axis.remap("S", [i])\n'
        "            B[vi] = A[vi]\n"
    )
    gate = (
        "from pathlib import Path\nimport layoutproof as lp\n\n\n@lp.gate\ndef halved():\n"
        "    schedule = lp.Schedule(lp.load(Path(__file__).with_name('copy_of.py')))\n"
        "    schedule.transform_layout('copy', 'A', lambda i: [i // 2])\n"
        "    return schedule\n"
    )
    team.write(copy_of=program, gates=gate)
    run = team.run("--layoutproof")
    assert run.code == NOT_ALL_PASSED
    assert f"gates.py:8:5: error[{lowering.NOT_INJECTIVE}]: `lambda i: [i//2]` is not injective on A" in run.text
    assert "copy_of.py:2:10: note: in the program" in run.text


@one_in(21)
@pytest.mark.parametrize(
    ("allowed", "options", "code", "outcome"),
    [
        (False, (), NOT_ALL_PASSED, "failure"),
        (True, (), PASSED, "pytest.skip"),
        (False, ("--layoutproof-ignore", verify.UNDECIDED), PASSED, "pytest.xfail"),
        (False, ("--layoutproof-allow-unknown",), PASSED, "pytest.skip"),
        (False, ("--layoutproof-select", "LP210"), PASSED, "pytest.xfail"),
        (False, ("--layoutproof-select", "LP23"), NOT_ALL_PASSED, "failure"),
    ],
)
def test_unknown_never_passes(allowed: bool, options: tuple[str, ...], code: int, outcome: str, team: Team) -> None:
    """What is unknown fails; allowed, it is skipped; ignored by its code, it fails as expected; each with the
    reason.
    """
    team.write(gates=UNDECIDED.format(allowed=allowed))
    run = team.run("--layoutproof", "-rsx", "--layoutproof-budget", "0.01", *options)
    assert (run.code, run.outcomes) == (code, {"gates::wavefront": outcome}), run.text
    assert "is not decided: a product of two variables" in run.reasons["gates::wavefront"]
    assert f"[{verify.UNDECIDED}]" in run.text


@one_in(9)
def test_what_the_baseline_knows_is_expected_to_fail(team: Team) -> None:
    """A finding of the baseline is an expected failure, whatever it is; others fail."""
    team.write(gates=GATES)
    command = ["-m", "layoutproof", "check", "gates.py", "--workers", "1", "--write-baseline", "known.json"]
    written = subprocess.run(
        [sys.executable, *command], cwd=team.folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert written.returncode == 1, written.stderr
    run = team.run("--layoutproof", "--layoutproof-baseline", "known.json")
    assert (run.code, run.outcomes["gates::forgetful"]) == (PASSED, "pytest.xfail")
    team.write(gates=GATES.replace("[i // 4]", "[i // 5]"))
    assert team.run("--layoutproof", "--layoutproof-baseline", "known.json").code == NOT_ALL_PASSED


@one_in(4)
def test_a_test_file_may_hold_gates(team: Team) -> None:
    """Tests and gates of one file are each collected once, a gate that is called like a test among them."""
    team.write(test_both=TESTS)
    run = team.run("--layoutproof")
    names = ("test_plain", "test_like_a_test", "another[3]", "another[4]")
    assert (run.code, run.outcomes) == (PASSED, {f"test_both::{name}": "passed" for name in names}), run.text


@one_in(10)
def test_files_are_found_by_name_and_by_option(team: Team) -> None:
    """Files called like files of gates, others where the configuration says so or where they are named; a named one
    keeps its tests.
    """
    gate = "import layoutproof as lp\n\n\n@lp.gate\ndef fine():\n    return lp.check_map(lambda i: [i], shape=(4,))\n"
    files = dict.fromkeys(("gates", "gate_maps", "more_gates", "layouts"), gate) | {"other": TESTS, "plain": "x = 1\n"}
    team.write(**files)
    assert set(team.run("--layoutproof").outcomes) == {f"{name}::fine" for name in ("gates", "gate_maps", "more_gates")}
    named = team.run("--layoutproof", "layouts.py", "other.py").outcomes
    assert {"layouts::fine", "other::test_plain"} < set(named)
    assert team.run("--layoutproof", "plain.py").code == NOTHING
    with (team.folder / "pytest.ini").open("a", encoding="utf-8") as file:
        file.write("layoutproof_files = lay*.py\n")
    assert set(team.run("--layoutproof").outcomes) == {"layouts::fine"}


@one_in(4)
def test_gates_import_what_stands_beside_them(team: Team) -> None:
    """A gate gets the module of its own folder, also where tests have imported one of the same name, and they keep
    theirs.
    """
    gate = (
        "import layoutproof as lp\nfrom layouts import MAP\n\n\n@lp.gate\ndef placed():\n"
        "    return lp.check_map(MAP, shape=(14,))\n"
    )
    test = "def test_{}():\n    import layouts\n    assert layouts.MAP == 'lambda i: [i]'\n"
    for folder, text in (("first", "lambda i: [i]"), ("second", "lambda i: [i // 2]")):
        (team.folder / folder).mkdir()
        (team.folder / folder / "layouts.py").write_text(f"MAP = {text!r}\n", encoding="utf-8")
    (team.folder / "first" / "test_early.py").write_text(
        f"import layouts\n\n\n{test.format('early')}", encoding="utf-8"
    )
    (team.folder / "second" / "gates.py").write_text(gate, encoding="utf-8")
    (team.folder / "second" / "test_late.py").write_text(test.format("late"), encoding="utf-8")
    run = team.run("--layoutproof")
    expected = {
        "first.test_early::test_early": "passed",
        "second.gates::placed": "failure",
        "second.test_late::test_late": "passed",
    }
    assert run.outcomes == expected, run.text


@one_in(12)
@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (
            "import layoutproof as lp\n@lp.gate\ndef x(:\n",
            cli.GATE_FILE,
            "gates.py:3:7: error[LP555]: not Python: invalid syntax",
        ),
        ("import layoutproof as lp\n1 / 0\n@lp.gate\ndef x(): ...\n", cli.GATE_RAISED, "ZeroDivisionError"),
        (
            "import layoutproof as lp\nimport sys\nsys.exit(0)\n@lp.gate\ndef x(): ...\n",
            cli.GATE_RAISED,
            "SystemExit: 0",
        ),
        ("import layoutproof as lp\n@lp.gate(cases=[])\ndef x(): ...\n", lowering.GATE_FORM, "has no case"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_an_error(text: str, code: str, said: str, team: Team) -> None:
    """Collecting it fails, with place and code, without a traceback, and once."""
    team.write(gates=text)
    run = team.run("--layoutproof", "gates.py")
    assert run.code == INTERRUPTED
    assert f"error[{code}]" in run.text and said in run.text
    assert run.text.count("ERROR collecting") == 1 and "Traceback" not in run.text


@one_in(4)
def test_items_are_listed(team: Team) -> None:
    """They can be listed without being judged."""
    team.write(gates=GATES, test_both=TESTS)
    listed = team.run("--layoutproof", "--collect-only", "-q")
    assert "gates.py::blocked_rows[8]\ngates.py::blocked_rows[16]\ngates.py::forgetful\n" in listed.text


@one_in(10)
@pytest.mark.parametrize(
    ("selection", "selected"),
    [
        (("gates.py::blocked_rows[8]",), {"gates::blocked_rows[8]"}),
        (("-m", "not layoutproof"), {"test_both::test_plain"}),
        (("-k", "rows and 16"), {"gates::blocked_rows[16]"}),
    ],
)
def test_items_are_selected_as_any_others(selection: tuple[str, ...], selected: set[str], team: Team) -> None:
    """By id, by keyword, by marker."""
    team.write(gates=GATES, test_both=TESTS)
    assert set(team.run("--layoutproof", *selection).outcomes) == selected


@one_in(9)
def test_those_that_failed_last_are_run_again(team: Team) -> None:
    """With the option of pytest for it, after a run of all gates."""
    team.write(gates=GATES, test_both=TESTS)
    assert len(team.run("--layoutproof", "-m", "layoutproof").outcomes) == 6
    assert set(team.run("--layoutproof", "--lf").outcomes) == {"gates::forgetful"}


@one_in(10)
def test_workers_report_the_same(team: Team) -> None:
    """With pytest-xdist the outcomes and their texts are the same."""
    team.write(gates=GATES, test_both=TESTS, more_gates=UNDECIDED.format(allowed=True))
    options = ("--layoutproof", "--layoutproof-budget", "0.01")
    alone, shared = team.run(*options), team.run(*options, "-n", "2")
    assert (shared.code, shared.outcomes) == (alone.code, alone.outcomes)
    assert REFUTED in shared.text
    assert shared.reasons["more_gates::wavefront"] == alone.reasons["more_gates::wavefront"]


@one_in(9)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--layoutproof-strictness", "strict"), "'strict' is none of ieee, finite, reals"),
        (("--layoutproof-budget", "0"), "--layoutproof-budget is a factor from 0.001 to 1000"),
        (("--layoutproof-baseline", "none.json"), "the baseline"),
        (("--layoutproof-ignore", "LP9"), "no code begins so"),
        (("--layoutproof-cache", "a.sqlite", "--layoutproof-no-cache"), "contradict each other"),
    ],
)
def test_wrong_options_end_the_run(options: tuple[str, ...], said: str, team: Team) -> None:
    """A wrong option is told before anything is collected, without a traceback."""
    team.write(gates=GATES)
    run = team.run("--layoutproof", *options)
    assert run.code == USAGE and said in run.text and "Traceback" not in run.text, run.text


@one_in(10)
def test_strictness_bounds_proofs(team: Team) -> None:
    """A schedule that holds with fast-math assumptions only fails under --layoutproof-strictness ieee."""
    program = (
        "@T.prim_func(s_tir=True)\n"
        'def total(A: T.Buffer((16,), "float32"), B: T.Buffer((1,), "float32")):\n'
        '    T.func_attr({"tirx.noalias": True})\n'
        "    for i in range(16):\n"
        '        with T.sblock("sum"):\n'
        '            vi = T.axis.remap("R", [i])\n'
        "            with T.init():\n"
        "                B[0] = T.float32(0)\n"
        "            B[0] = B[0] + A[vi]\n"
    )
    gate = (
        "from pathlib import Path\nimport layoutproof as lp\n\n\n@lp.gate\ndef regrouped():\n"
        "    schedule = lp.Schedule(lp.load(Path(__file__).with_name('total.py')))\n"
        "    schedule.split('sum', 'i', [4, 4])\n"
        "    schedule.reorder('sum', ['i_1', 'i_0'])\n"
        "    return schedule\n"
    )
    team.write(total=program, gates=gate)
    assert team.run("--layoutproof").outcomes == {"gates::regrouped": "passed"}
    strict = team.run("--layoutproof", "--layoutproof-strictness", "ieee")
    assert strict.outcomes == {"gates::regrouped": "failure"} and re.search(
        r"gates\.py:9:5: error\[LP2\d\d\]", strict.text
    )


@one_in(10)
def test_proofs_are_kept_where_asked(team: Team) -> None:
    """Proofs of schedules go to the cache that is named, and nowhere with --layoutproof-no-cache."""
    gate = (
        "import layoutproof as lp\nfrom layoutproof.lowering.kernels.reference import row_sum_program\n\n\n"
        "@lp.gate\ndef kept():\n"
        "    schedule = lp.Schedule(row_sum_program(16, 14))\n"
        "    schedule.transform_layout('row_sum', 'A', lambda i, j: [i, j // 4, j % 4], pad_value=0.0)\n"
        "    return schedule\n"
    )
    team.write(gates=gate)
    assert team.run("--layoutproof", "--layoutproof-no-cache", "-p", "no:cacheprovider").code == PASSED
    assert not list(team.folder.glob("*.sqlite"))
    assert team.run("--layoutproof", "--layoutproof-cache", "own.sqlite").code == PASSED
    said = subprocess.run(
        [sys.executable, "-m", "layoutproof", "check", "gates.py", "--cache", "own.sqlite", "--format", "json"],
        cwd=team.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert json.loads(said.stdout)["cached"], "what pytest had proved was not known to `check`"


@one_in(4)
def test_its_page_shows_what_is_printed(team: Team) -> None:
    """Who follows the page about the plugin sees what it shows, times aside."""
    for block in blocks((ROOT / "docs" / "pytest.md").read_text(encoding="utf-8")):
        if block.file is not None:
            (team.folder / block.file).write_text(block.text, encoding="utf-8")
        for session in sessions(block) if block.language == "console" else ():
            program, *arguments = session.command.split()
            run = team.run(*arguments)
            assert (program, run.code) == ("pytest", session.code)
            printed, shown = (re.sub(r"in \d+\.\d+s", "in 1.00s", text) for text in (run.text, session.shown))
            assert re.sub("^-* generated xml file: .*\n", "", printed, flags=re.MULTILINE) == shown


@one_in(4)
def test_gates_under_other_names_are_collected(team: Team) -> None:
    """However a gate is made, it is an item: by a call, under another name, by a module that hands it on."""
    body = "    return lp.check_map(lambda i: [i], shape=(4,))\n"
    gates = f"import layoutproof as lp\nexact = lp.gate(strictness='ieee')\n@exact\ndef a():\n{body}def b():\n{body}"
    used = f"import layoutproof as lp\nfrom ours import proved\n@proved\ndef d():\n{body}"
    team.write(gates=f"{gates}c = lp.gate(b)\n", ours="from layoutproof import gate as proved\n", gate_used=used)
    run = team.run("--layoutproof")
    assert run.outcomes == {"gates::a": "passed", "gates::b": "passed", "gate_used::d": "passed"}, run.text


@one_in(4)
@pytest.mark.parametrize(
    "text",
    ["import layoutproof as lp\nMAP = lp.IndexMap\n", "import layoutproof\nif False:\n    layoutproof.gate(print)\n"],
)
def test_a_file_of_gates_without_a_gate_is_an_error(text: str, team: Team) -> None:
    """A file that has the name of a file of gates, and makes none, does not vanish from the run."""
    team.write(gates=text, test_other="def test_a():\n    pass\n")
    run = team.run("--layoutproof")
    assert run.code == INTERRUPTED and "gates.py" in run.text and "Traceback" not in run.text


@one_in(4)
def test_a_failed_assertion_shows_the_counterexample(team: Team) -> None:
    """`assert report.ok` and `report.require()` in a plain test show what is wrong, without an option."""
    report = "lp.check_map(lambda i: [i // 4], shape=(14,))"
    tests = f"import layoutproof as lp\ndef test_a():\n    assert {report}.ok\ndef test_b():\n    {report}.require()\n"
    team.write(test_maps=f"{tests}def test_c():\n    assert {report}\n")
    run = team.run()
    assert run.code == NOT_ALL_PASSED
    for name in ("a", "b"):
        assert "[0] and [1] both go to [0]" in run.reasons[f"test_maps::test_{name}"], run.text
    assert "a report has no truth value" in run.reasons["test_maps::test_c"]


@one_in(7)
def test_too_few_gates_fail(team: Team) -> None:
    """With a number of gates that are expected, a run that judges fewer fails, whatever left them out."""
    team.write(gates=GATES.replace("[i // 4]", "[i]"), test_other="def test_a():\n    pass\n")
    assert team.run("--layoutproof", "--layoutproof-expect=3", "-n", "2").code == PASSED
    run = team.run("--layoutproof", "-o", "layoutproof_expect=3", "-k", "test_a or blocked_rows")
    assert run.code == NOT_ALL_PASSED and "2 gates were judged, and at least 3 are expected" in run.text, run.text
    assert team.run("--layoutproof", "-o", "layoutproof_expect=many").code == USAGE


@one_in(7)
def test_the_table_of_pyproject_holds(team: Team) -> None:
    """What the command line does not give is read from [tool.layoutproof], as `check` reads it; a wrong key is told."""
    table = team.folder / "pyproject.toml"
    team.write(gates=GATES)
    table.write_text('[tool.layoutproof]\nignore = ["LP210"]\n')
    run = team.run("--layoutproof")
    assert run.outcomes["gates::forgetful"] == "pytest.xfail", run.text
    assert team.run("--layoutproof", "--layoutproof-ignore=LP3").outcomes["gates::forgetful"] == "failure"
    team.write(gates=UNDECIDED.format(allowed=False))
    table.write_text("[tool.layoutproof]\nallow-unknown = true\nbudget = 0.01\n")
    assert team.run("--layoutproof").outcomes["gates::wavefront"] == "pytest.skip"
    table.write_text('[tool.layoutproof]\nstrictnes = "ieee"\n')
    run = team.run("--layoutproof")
    assert run.code == 4 and "has no key strictnes" in run.text
