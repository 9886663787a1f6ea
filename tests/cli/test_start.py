"""What the command line loads before it works: for help, wrong calls and what is known already, nothing heavy. So it
answers at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import click
import pytest
from tests.lowering.small_operators import small_text
from tests.shares import one_in

from layoutproof.cli import output
from layoutproof.cli.commands import recheck
from layoutproof.cli.main import cli
from layoutproof.cli.plot.layout_cells import MAX_CELLS
from layoutproof.verify.certificate.recheck import SECONDS
from layoutproof.verify.smt.engines import ENGINES
from layoutproof.verify.verdict.verdict import Status

SOLVERS = ("bitwuzla", "cvc5", "islpy", "z3")
HEAVY = (
    *SOLVERS,
    "matplotlib",
    "ml_dtypes",
    "numpy",
    "pyopencl",
    "rich",
    "layoutproof.verify.checker",
    "layoutproof.lowering.schedule.schedule",
)
COMMANDS = cli.list_commands(click.Context(cli))
# Ends after it has said on standard error which of the modules named by its first argument it has loaded.
PROGRAM = """
import sys
from layoutproof.cli.main import main
code = main(sys.argv[2:])
print("loaded:", *(name for name in sys.argv[1].split(",") if name in sys.modules), file=sys.stderr)
sys.exit(code)
"""


def start(arguments: Sequence[str], code: int = 0) -> str:
    """Call the command line in a process of its own, see that it loads nothing heavy, and return what it printed on
    either stream.
    """
    done = subprocess.run([sys.executable, "-c", PROGRAM, ",".join(HEAVY), *arguments], capture_output=True, text=True)
    *said, loaded = done.stderr.splitlines()
    assert (done.returncode, loaded) == (code, "loaded:")
    return done.stdout + "\n".join(said)


def command_of(name: str) -> Any:
    """A command by its name."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def test_help_of_the_group() -> None:
    """The list of commands is shown without one of them being loaded, every command on one line."""
    lines = start(["--help"]).partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == COMMANDS
    assert all(len(line) <= 80 and line.endswith(".") for line in lines)


@one_in(9)
@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(name: str) -> None:
    """A command's help loads no solver, no numpy, no drawing and none of the work."""
    assert start([name, "--help"]).startswith(f"Usage: layoutproof {name} ")


@pytest.mark.parametrize("arguments", [("--version",), ("-V",)])
def test_version(arguments: Sequence[str]) -> None:
    """Neither does the version."""
    assert start(arguments).startswith("layoutproof, version ")


@one_in(4)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("chek",), "No such command 'chek'. Did you mean 'check'?"),
        (("re-check", "proofs"), "No such command 're-check'. Did you mean 'recheck'?"),
        (("prove",), "Error: No such command 'prove'."),
        (("--colour",), "No such option"),
        (("map", "lambda i: [i]"), "does not say its shape: give it with --shape"),
        (("run",), "Missing argument 'PROGRAM'"),
        (("recheck", "proofs", "--engine", "yices"), "'yices' is not one of"),
    ],
)
def test_wrong_calls(arguments: Sequence[str], said: str) -> None:
    """Nor does a call that is wrong by itself."""
    assert said in start(arguments, 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("explain", "LP213"), "LP213 (what is proved)"),
        (("map", "lambda n, h, w, c: [n, c//4, h, w, c%4]", "--shape", "16,64,64,126"), "p1 == 31 and p4 >= 2"),
        (("map", "lambda i: [i//4, i%4]", "--shape", "n", "--format", "json"), '"status": "proved"'),
        (("draw", "lambda i, j: [i, j ^ i]", "--shape", "8,8"), "7,7"),
    ],
)
def test_small_questions(arguments: Sequence[str], said: str) -> None:
    """Nor do an explanation, a map that its symbols decide, and a picture of a layout."""
    assert said in start(arguments)


def test_a_picture_in_a_file(tmp_path: Path) -> None:
    """An SVG is written without matplotlib."""
    path = tmp_path / "a.svg"
    assert str(path) in start(["draw", "lambda i: [i//4, i%4]", "--shape", "14", "-o", str(path)])
    assert path.read_text().startswith("<svg")


@pytest.mark.parametrize("name", COMMANDS)
def test_names(name: str) -> None:
    """A command's own name is the one in the list."""
    assert command_of(name).name == name


def commands_below(command: click.Command) -> Iterator[click.Command]:
    """A command, and those of a group."""
    yield command
    if isinstance(command, click.Group):
        for other in command.commands.values():
            yield from commands_below(other)


@pytest.mark.parametrize("name", COMMANDS)
def test_requests(name: str) -> None:
    """A command that takes its options as one object has a field for each of them, and no other."""
    for command in commands_below(command_of(name)):
        taking = getattr(command.callback, "__wrapped__", None)
        if taking is not None:
            (request,) = (hint for what, hint in get_type_hints(taking).items() if what != "return")
            handed = {option.name for option in command.params if option.expose_value}
            assert {field.name for field in fields(request)} == handed


@one_in(7)
@pytest.mark.parametrize(
    "module",
    [
        "layoutproof.lowering.schedule.schedule",
        "layoutproof.lowering.schedule.primitives",
        "layoutproof.verify.checker",
    ],
)
def test_solvers_are_loaded_late(module: str) -> None:
    """Loading everything that proves loads no solver: only a question that needs one does."""
    text = f"import sys, {module}; print([name for name in {SOLVERS!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@one_in(9)
def test_what_is_known_already(tmp_path: Path) -> None:
    """Nor does a check of schedules that the proof cache knows: programs are read, keys are looked up, and nothing is
    proved.
    """
    (tmp_path / "row_sum.py").write_text(small_text("row_sum"))
    traces = (
        [["split", {"block": "A_red", "loop": "ax0", "factors": [None, 4]}]],
        [["parallel", {"block": "A_red", "loop": "k1"}]],
    )
    (tmp_path / "row_sum.jsonl").write_text("".join(f"{json.dumps(trace)}\n" for trace in traces))
    arguments = ["check", str(tmp_path), "--workers", "1", "--cache", str(tmp_path / "proofs.sqlite")]
    proved = subprocess.run([sys.executable, "-m", "layoutproof", *arguments], capture_output=True, text=True)
    assert proved.returncode == 1 and "from the cache" not in proved.stdout
    assert "2 from the cache" in start(arguments, 1)


@one_in(9)
def test_a_comparison_that_is_known_already(tmp_path: Path) -> None:
    """Nor does a comparison of two programs that was made before."""
    (tmp_path / "row_sum.py").write_text(small_text("row_sum"))
    arguments = [
        "compare",
        *[str(tmp_path / "row_sum.py")] * 2,
        "--format",
        "json",
        "--cache",
        str(tmp_path / "proofs.sqlite"),
    ]
    proved = subprocess.run([sys.executable, "-m", "layoutproof", *arguments], capture_output=True, text=True)
    assert proved.returncode == 0 and '"cached": false' in proved.stdout
    assert '"cached": true' in start(arguments)


def test_what_is_said_twice() -> None:
    """What options repeat from files that load slowly is what stands there."""
    assert (recheck.ENGINES, recheck.SECONDS) == (ENGINES, SECONDS)
    assert next(option.default for option in command_of("draw").params if option.name == "cells") == MAX_CELLS
    assert all(output.exit_code(status) in (0, 1, 3) and output.STYLES[status] for status in Status)
