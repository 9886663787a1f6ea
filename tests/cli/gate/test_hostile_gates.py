"""Files of gates that would pass without having proved anything, or that disturb the run: each fails, and all others
are judged.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.cli.calling import Caller, Outcome
from tests.shares import chosen, one_in

from layoutproof.cli import codes as cli
from layoutproof.ir import codes as script
from layoutproof.lowering import codes as lowering

HEAD = "import os, sys\nimport layoutproof as lp\n\n\n"
GOOD = "lp.check_map(lambda i: [i // 4, i % 4], (14,))"
BAD = "lp.check_map(lambda i: [i // 4], (14,))"
GATE = f"@lp.gate\ndef g():\n    return {GOOD}\n"

# Each file, and the code of what is told of it.
PASSING_FOR_NOTHING: Mapping[str, tuple[str, str]] = {
    "exits_when_loaded": (f"{GATE}sys.exit(0)\n", cli.GATE_RAISED),
    "exits": ("@lp.gate\ndef g():\n    sys.exit(0)\n", cli.GATE_RAISED),
    "leaves_when_loaded": (f"{GATE}os._exit(0)\n", cli.GATE_RAISED),
    "leaves": ("@lp.gate\ndef g():\n    os._exit(0)\n", cli.GATE_RAISED),
    "returns_true": ("@lp.gate\ndef g():\n    return True\n", lowering.GATE_RESULT),
    "returns_nothing": (f"@lp.gate\ndef g():\n    {GOOD}\n", lowering.GATE_RESULT),
    "returns_an_empty_list": ("@lp.gate\ndef g():\n    return []\n", lowering.GATE_RESULT),
    "returns_more_than_reports": (f"@lp.gate\ndef g():\n    return [{GOOD}, True]\n", lowering.GATE_RESULT),
    "yields": (f"@lp.gate\ndef g():\n    yield {GOOD}\n", lowering.GATE_RESULT),
    "is_async": (f"@lp.gate\nasync def g():\n    return {GOOD}\n", lowering.GATE_RESULT),
    "has_no_case": (f"@lp.gate(cases=[])\ndef g(n):\n    return {GOOD}\n", lowering.GATE_FORM),
    "allows_by_a_text": (f"@lp.gate(allow_unknown='no')\ndef g():\n    return {GOOD}\n", lowering.GATE_FORM),
    "is_defined_again": (f"@lp.gate\ndef g():\n    return {BAD}\n\n\n{GATE}", cli.GATE_FILE),
    "is_decorated_further": (
        f"import functools\n\n\n@functools.cache\n@lp.gate\ndef bad():\n    return {BAD}\n\n\n{GATE}",
        cli.GATE_FILE,
    ),
    "stands_under_a_condition": (
        f"if not sys:\n    @lp.gate\n    def bad():\n        return {BAD}\n\n\n{GATE}",
        cli.GATE_FILE,
    ),
    "stands_in_a_function": (
        f"def f():\n    @lp.gate\n    def bad():\n        return {BAD}\n\n\n{GATE}",
        cli.GATE_FILE,
    ),
    "is_made_twice": (
        f"def make():\n    @lp.gate\n    def g():\n        return {GOOD}\n    return g\n\n\na = make()\na = make()\n",
        cli.GATE_FILE,
    ),
    "is_nested_too_deep": (f"x = {'(' * 5000}{')' * 5000}\n{GATE}", cli.GATE_FILE),
    "calls_itself": ("@lp.gate\ndef g():\n    return g()\n", cli.GATE_RAISED),
    "has_a_null_byte": (f"\0{GATE}", cli.GATE_FILE),
    "is_no_utf8": (f"# \udce9\n{GATE}", script.UNDECODABLE),
}

Check = Callable[..., Outcome]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Caller) -> Check:
    """A function that writes files, and runs `check` on paths with so many workers; one is the process that runs it,
    `alone` a new one.
    """
    monkeypatch.chdir(tmp_path)

    def run(files: Mapping[str, str], *arguments: str, workers: int = 1, alone: bool = False) -> Outcome:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8", errors="surrogateescape")
        whole = ["check", *arguments, "--workers", str(workers), "--no-cache"]
        if not alone:
            return call(*whole)
        done = subprocess.run(
            [sys.executable, "-m", "layoutproof", *whole], capture_output=True, text=True, timeout=120, check=False
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


# Those that might end, fill or warn the process that judges them have one of their own, some of them in every run.
DANGEROUS = {
    "exits_when_loaded",
    "exits",
    "leaves_when_loaded",
    "leaves",
    "is_nested_too_deep",
    "calls_itself",
    "is_async",
}
WAYS = [(name, workers) for workers in (1, 2) for name in PASSING_FOR_NOTHING if workers == 2 or name not in DANGEROUS]
TAKEN = [way for way in WAYS if way[1] == 1 or way[0] in {"leaves_when_loaded", "exits", "calls_itself"}]


@one_in(14)
@pytest.mark.parametrize("way", chosen(WAYS, lambda number: WAYS[number] in TAKEN, lambda way: f"{way[0]}-{way[1]}"))
def test_nothing_passes_for_nothing(way: tuple[str, int], check: Check) -> None:
    """A file that seems to pass is wrong input, with its code; in a folder the file after it is judged all the same."""
    name, workers = way
    text, code = PASSING_FOR_NOTHING[name]
    done = check({"all/a_gates.py": HEAD + text, "all/b_gates.py": HEAD + GATE}, "all", workers=workers)
    assert done.code == 2, done.out + done.err
    assert f"error[{code}]" in done.out, done.out
    assert "proved   all/b_gates.py::g\n" in done.out and "Traceback" not in done.err


@one_in(4)
@pytest.mark.parametrize("workers", [1, 2])
def test_files_have_modules_of_their_own(workers: int, check: Check) -> None:
    """Two folders with a module of the same name: the gates of each see their own, when they are loaded and when they
    are called.
    """
    late = "from layouts import MAP\n    from more.maps import OTHER"
    gate = f"@lp.gate\ndef g():\n    {late}\n    return [lp.check_map(m, (14,)) for m in (EARLY, MAP, OTHER)]\n"
    head = f"{HEAD}from layouts import MAP as EARLY\n\n\n{gate}"
    files: dict[str, str] = {}
    for folder, text in (
        ("good", "lambda i: [i // 4, i % 4]"),
        ("bad", "lambda i: [i // 4]"),
        ("well", "lambda i: [i]"),
    ):
        files |= {
            f"{folder}/gates.py": head,
            f"{folder}/layouts.py": f"MAP = {text!r}\n",
            f"{folder}/more/maps.py": f"OTHER = {text!r}\n",
        }
    done = check(files, "good", "bad", "well", workers=workers)
    assert done.code == 1
    assert re.findall(r"^proved +(\S+)|^(\S+): refuted", done.out, re.MULTILINE) == [
        ("good/gates.py::g", ""),
        ("", "bad/gates.py::g"),
        ("well/gates.py::g", ""),
    ]


@one_in(7)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_may_go_elsewhere(workers: int, check: Check) -> None:
    """A file that changes the working directory, when it is loaded or called, changes nothing for the run."""
    text = f"{HEAD}os.chdir('/')\n\n\n@lp.gate\ndef g():\n    os.chdir('/tmp')\n    return {GOOD}\n"
    done = check(
        {"a_gates.py": text, "b_gates.py": HEAD + GATE}, "a_gates.py", "b_gates.py", workers=workers, alone=True
    )
    assert (done.code, done.out.splitlines()[-1]) == (0, "2 items: 2 proved")


@one_in(7)
@pytest.mark.parametrize("workers", [1, 2])
def test_fast_math_hold_for_what_was_scheduled_elsewhere(workers: int, check: Check) -> None:
    """A schedule that was made when the file was loaded, or in another thread, does not pass with fast-math assumptions
    that the run does not allow.
    """
    program = (
        '@T.prim_func(s_tir=True)\ndef total(A: T.Buffer((16,), "float32"), B: T.Buffer((1,), "float32")):\n'
        '    T.func_attr({"tirx.noalias": True})\n    for i in range(16):\n        with T.sblock("sum"):\n'
        '            vi = T.axis.remap("R", [i])\n            with T.init():\n                B[0] = T.float32(0)\n'
        "            B[0] = B[0] + A[vi]\n"
    )
    gates = (
        f"{HEAD}from concurrent.futures import ThreadPoolExecutor\n\n\ndef build():\n"
        "    schedule = lp.Schedule(lp.load('total.py'))\n    schedule.split('sum', 'i', [4, 4])\n"
        "    schedule.reorder('sum', ['i_1', 'i_0'])\n    return schedule\n\n\nEARLY = build()\n\n\n"
        "@lp.gate\ndef early():\n    return EARLY\n\n\n"
        "@lp.gate\ndef threaded():\n    with ThreadPoolExecutor(1) as pool:\n"
        "        return [pool.submit(build).result()]\n"
    )
    files = {"total.py": program, "gates.py": gates}
    assert check(files, "gates.py", workers=workers).code == 0
    done = check(files, "gates.py", "--strictness", "ieee", workers=workers)
    assert done.code == 2
    assert done.out.count(f"error[{lowering.GATE_RESULT}]") == 2 and "reassoc only, which is not allowed" in done.out


def test_other_names_and_inner_decorators_are_gates(check: Check) -> None:
    """A gate may be imported under another name, and may decorate what was decorated before."""
    text = (
        f"{HEAD}import functools\nfrom layoutproof import gate as proved\n\n\n@proved\ndef bad():\n"
        f"    return {BAD}\n\n\n"
        f"@lp.gate\n@functools.cache\ndef cached():\n    return {GOOD}\n"
    )
    done = check({"gates.py": text}, ".")
    assert done.code == 1 and "gates.py::bad: refuted" in done.out and "proved   gates.py::cached\n" in done.out


def test_folders_are_searched_once_and_with_care(tmp_path: Path, check: Check) -> None:
    """Links that lead back end the search; files of another encoding are passed over, unless they may hold gates."""
    (tmp_path / "all" / "deep").mkdir(parents=True)
    for name in ("one", "two"):
        (tmp_path / "all" / "deep" / name).symlink_to(tmp_path / "all", target_is_directory=True)
    files = {"all/gates.py": HEAD + GATE, "all/old.py": "# -*- coding: latin-1 -*-\nx = '\udce9'\n"}
    done = check(files, "all")
    assert done.code == 0 and done.out.startswith("all/gates.py::g: proved")


def test_a_program_that_cannot_be_read_is_not_passed_over(check: Check) -> None:
    """In a folder, a program that has a schedule beside it and is no Python is told of."""
    files = {"all/gates.py": HEAD + GATE, "all/conv.py": "def conv(\n", "all/conv.json": "[]"}
    done = check(files, "all")
    assert done.code == 2 and f"all/conv.py:1:9: error[{script.SYNTAX}]" in done.out
