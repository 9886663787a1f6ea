"""`[tool.layoutproof]` in pyproject.toml: defaults of `check`, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.calling import Caller
from tests.tree import ROOT

from layoutproof.cli import codes
from layoutproof.cli.commands.check import check_command
from layoutproof.cli.configuration import KEYS

GATE = "import layoutproof as lp\n@lp.gate\ndef {}():\n    return lp.check_map({!r}, shape={!r})\n"
GOOD, BAD = ("lambda i: [i]", "14"), ("lambda i: [i // 4]", "14")
UNKNOWN = ("lambda i, j: [(i + j) * (i + j + 1) // 2 + j]", "n, m")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a gate that holds, one that does not, and one that is not decided; the working directory."""
    (tmp_path / ".git").mkdir()
    for name, asked in {"good": GOOD, "bad": BAD, "open": UNKNOWN}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "gates.py").write_text(GATE.format(name, *asked))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYOUTPROOF_PROOF_CACHE", str(tmp_path / "cache.sqlite"))
    return tmp_path


def write(folder: Path, *lines: str) -> None:
    """A configuration."""
    (folder / "pyproject.toml").write_text("\n".join(["[project]", "name = 'x'", "[tool.layoutproof]", *lines]) + "\n")


@pytest.mark.parametrize(
    ("lines", "arguments", "code"),
    [
        (["paths = ['good']"], [], 0),
        (["paths = ['good', 'bad']"], [], 1),
        (["paths = ['good', 'bad']"], ["good"], 0),
        (["paths = ['bad']", "ignore = ['LP210']"], [], 0),
        (["paths = ['bad']", "ignore = ['LP210']"], ["--ignore", "LP211"], 1),
        (["paths = ['open']"], [], 3),
        (["paths = ['open']", "allow-unknown = true"], [], 0),
        (["paths = ['good']", "expect = 1"], [], 0),
        (["paths = ['good']", "expect = 2"], [], 2),
        (["paths = ['good']", "expect = 2"], ["good"], 0),
        (["paths = ['good']", "expect = 2"], ["good", "--expect", "2"], 2),
        (["paths = ['good']", "expect = 2"], ["--expect", "1"], 0),
        (["expect = 2"], ["good"], 0),
        (["paths = ['good']", "trust = 'kernel'"], [], 3),
        (["paths = ['good']", "baseline = 'known.json'"], [], 2),
        (["paths = ['nowhere']"], [], 2),
        ([], [], 2),
    ],
)
def test_what_it_says_holds(lines: list[str], arguments: list[str], code: int, here: Path, call: Caller) -> None:
    """Each key is the default of its option; the number of items is of the paths beside it."""
    write(here, *lines)
    done = call("check", *arguments, "--workers", "1")
    assert done.code == code, done.out + done.err


def test_it_is_found_from_below(here: Path, call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are relative to the file, and shown from the working directory; beyond the repository nothing is read."""
    write(here, "paths = ['good', 'bad']")
    monkeypatch.chdir(here / "good")
    done = call("check", "--workers", "1")
    assert done.code == 1 and "proved   gates.py::good" in done.out and "../bad/gates.py::bad: refuted" in done.out
    (here / "good" / ".git").mkdir()
    assert call("check").code == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("expcet = 3", "[tool.layoutproof] has no key expcet\n  = help: did you mean expect?"),
        ("expect = -1", "[tool.layoutproof] expect: -1 is not in the range x>=0."),
        ("expect = '3'", "[tool.layoutproof] expect: expected a number, not '3'"),
        ("expect = true", "[tool.layoutproof] expect: expected a number, not True"),
        ("paths = 'good'", "[tool.layoutproof] paths: expected a list of texts, not 'good'"),
        ("paths = []", "[tool.layoutproof] paths: expected a list of texts, not []"),
        ("allow-unknown = 'no'", "[tool.layoutproof] allow-unknown: expected true or false, not 'no'"),
        ("allow-unknown = 0", "[tool.layoutproof] allow-unknown: expected true or false, not 0"),
        ("trust = 'me'", "[tool.layoutproof] trust: 'me' is not one of 'checker', 'kernel'."),
        ("strictness = 'fast'", "[tool.layoutproof] strictness: "),
        ("timeout = 'long'", "[tool.layoutproof] timeout: expected a number, not 'long'"),
        ("timeout = nan", "[tool.layoutproof] timeout: "),
        ("workers = 1.5", "[tool.layoutproof] workers: expected a number, not 1.5"),
        ("baseline = 3", "[tool.layoutproof] baseline: expected a text, not 3"),
        ("ignore = ['XX']", "[tool.layoutproof] ignore: 'XX': no code begins so"),
        ("paths = [", "is not TOML: "),
        (f"timeout = {'9' * 5000}", "is not TOML: "),
    ],
)
def test_what_is_wrong_with_it(line: str, words: str, here: Path, call: Caller) -> None:
    """The file and the key are named, whatever the command line says, and nothing is checked."""
    write(here, line)
    done = call("check", "good", "--workers", "1")
    assert done.code == 2 and words in done.err and "proved" not in done.out, done.err
    assert f"error[{codes.CONFIGURATION}]: pyproject.toml" in done.err


def test_a_table_that_is_none(here: Path, call: Caller) -> None:
    """`layoutproof = 3` is no configuration, and is not passed over."""
    (here / "pyproject.toml").write_text("[tool]\nlayoutproof = 3\n")
    done = call("check", "good")
    assert done.code == 2 and "[tool.layoutproof] is a table, not 3" in done.err


def test_every_key_is_documented_and_has_an_option() -> None:
    """The page lists exactly the keys that there are, and each is the default of a parameter."""
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert rows == list(KEYS)
    assert set(KEYS.values()) <= {parameter.name for parameter in check_command.params}
