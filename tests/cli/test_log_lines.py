"""Nothing in a name becomes a line of a log that a runner obeys, or a sequence that a terminal does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.calling import Caller
from tests.shares import one_in

from layoutproof.cli.output import harmless, on_one_line, readable

NAMES = ("a\n::error file=x::p", "b\r::error::p", "c\x1b[31mred\x1b[2J", "d\n  ##[error]p", "e\x85::error::x")
GATE = "import layoutproof as lp\n@lp.gate\ndef g():\n    return lp.check_map(lambda i: [i // {}], (14,))\n"
# As a runner reads it: each line, without blanks before it.
_OBEYED = re.compile(r"^\s*(::|##\[)|[\x00-\x08\x0b-\x1f\x7f-\x9f]", re.MULTILINE)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@one_in(4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text",
    [
        GATE.format(1),
        GATE.format(4),
        "import layoutproof\n",
        "def broken(: gate\n",
        f"{GATE.format(1)}raise ValueError(__file__)\n",
    ],
)
def test_names_of_files(name: str, text: str, here: Path, call: Caller) -> None:
    """A file of gates that is proved, refuted, without a gate, no Python, or raises, in a folder and by its name."""
    (here / f"{name.replace('/', '')}.py").write_text(text)
    (here / "zz.py").write_text(GATE.format(1))
    for arguments in (
        ["."],
        [f"{name}.py"],
        [f"{name}.none"],
        [".", "--ignore", name],
        [".", "--shard", name],
        [name, "--x"],
    ):
        done = call("check", *arguments, "--workers", "1", "--no-cache")
        assert _OBEYED.search(done.out + done.err) is None, (done.out, done.err)


@pytest.mark.parametrize("name", NAMES)
def test_names_in_other_commands(name: str, call: Caller) -> None:
    """Commands, options and files that do not exist."""
    for arguments in (
        [name],
        ["map", name],
        ["run", name],
        ["recheck", name],
        ["explain", name],
        ["map", "lambda i: [i]", "--shape", name],
    ):
        done = call(*arguments)
        assert done.code in (0, 2) and _OBEYED.search(done.out + done.err) is None, (done.out, done.err)


def test_other_texts_are_left_alone() -> None:
    """Lines and marks in the middle of a line stay."""
    text = "a::b\n  x ::y\nhttps://z\n"
    assert harmless(text) == readable(text) == text
    assert on_one_line("a\nb") == "a\N{REPLACEMENT CHARACTER}b"
