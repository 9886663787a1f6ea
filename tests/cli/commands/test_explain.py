"""`layoutproof explain`: one code, several, a beginning, all of them, and what is none."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from tests.cli.calling import Caller

from layoutproof.cli.catalogue import LAYERS, Meaning, all_codes, meaning_of

FENCE = re.compile(r"^```\w*\n?", re.MULTILINE)


def test_a_code_is_explained(call: Caller) -> None:
    """Its meaning, why it matters, an example with its message, and what to do, in this order."""
    said = call("explain", "LP103")
    assert said.code == 0 and said.err == ""
    parts = [
        "LP103 (reading programs and maps)\n",
        "The map sends an index below zero.",
        "Physical indices start at 0.",
        "\nExample\n",
        "\n    $ layoutproof map 'lambda i: [i - 1]' --shape 8\n    error[LP103]: axis 0",
        "\nWhat to do\n",
        "\n    $ layoutproof map 'lambda i: [(i - 1) % 8]' --shape 8\n",
    ]
    places = [said.out.index(part) for part in parts]
    assert places == sorted(places) and "```" not in said.out


@pytest.mark.parametrize("text", ["lp103", "103", "Lp103", " LP103 "])
def test_a_code_is_found_as_people_write_it(call: Caller, text: str) -> None:
    """In either case, with or without the letters."""
    assert call("explain", text).out == call("explain", "LP103").out


def test_several_codes_are_explained_in_the_order_asked(call: Caller) -> None:
    """Each once."""
    said = call("explain", "LP104", "LP103", "lp104").out
    assert said == call("explain", "LP104").out + "\n" + call("explain", "LP103").out


def test_a_beginning_lists_its_codes(call: Caller) -> None:
    """One line for each code that begins so, below the layer."""
    lines = call("explain", "LP10").out.splitlines()
    expected = [code for code in all_codes() if code.startswith("LP10")]
    assert lines[0] == "LP1nn: reading programs and maps"
    assert [line.split()[0] for line in lines[1:]] == expected and len(expected) > 5


def test_without_a_code_all_are_listed(call: Caller) -> None:
    """Every code once, by layer."""
    said = call("explain")
    assert said.code == 0
    codes = [line.split()[0] for line in said.out.splitlines() if line.startswith("  LP")]
    assert tuple(codes) == all_codes()
    assert [line for line in said.out.splitlines() if line.endswith(tuple(LAYERS.values()))] == [
        f"LP{k}nn: {v}" for k, v in LAYERS.items()
    ]


def test_json_has_every_part(call: Caller) -> None:
    """A list of objects, one for each code."""
    (said,) = call("explain", "LP103", "--format", "json").json()
    assert list(said) == ["code", "layer", "what", "why", "example", "shows", "remedy"]
    assert (
        said["code"] == "LP103"
        and said["shows"].startswith("error[LP103]: axis 0")
        and said["shows"] in said["example"]
    )
    assert [one["code"] for one in call("explain", "--format", "json").json()] == list(all_codes())


def test_it_can_be_written_to_a_file(call: Caller, tmp_path: Path) -> None:
    """The same text, and nothing is printed."""
    said = call("explain", "LP103", "-o", str(tmp_path / "said.txt"))
    assert said.out == ""
    assert (tmp_path / "said.txt").read_text() == call("explain", "LP103").out


@pytest.mark.parametrize(
    ("text", "close"),
    [("LP199", "LP1"), ("lp013", "LP103"), ("PL103", "LP103"), ("injective", "LP"), ("LP1033", "LP103")],
)
def test_an_unknown_code_is_an_error_with_what_may_be_meant(call: Caller, text: str, close: str) -> None:
    """The message has the word as written, and codes that look alike or speak of it."""
    said = call("explain", text)
    assert said.code == 2 and said.out == ""
    first, _, rest = said.err.partition("\n")
    assert first == f"error[LP550]: there is no code {text!r}; codes are LP and three digits, such as LP314"
    assert f"\n      {close}" in rest


@pytest.mark.parametrize("text", ["", "xyzzy", "LP000", "12345", "of"])
def test_something_else_is_an_error_without_suggestions(call: Caller, text: str) -> None:
    """It says how to list all codes."""
    said = call("explain", text)
    assert said.code == 2 and "error[LP550]" in said.err and "`layoutproof explain` lists all codes" in said.err


@pytest.mark.parametrize("code", all_codes())
def test_every_explanation_fits_a_terminal(call: Caller, code: str) -> None:
    """Lines of prose are at most 100 columns; blocks are shown as they are, with every line of theirs."""
    said = call("explain", code).out
    meaning = meaning_of(code)
    assert all(len(line) <= 100 for line in said.splitlines() if not line.startswith("    "))
    for part in (meaning.why, meaning.example, meaning.remedy):
        prose, blocks = [" ".join(p.split()) for p in re.split(FENCE, part)[::2]], re.split(FENCE, part)[1::2]
        assert all(p in " ".join(said.split()) for p in prose)
        assert all(
            line in said.splitlines() for block in blocks for line in textwrap.indent(block, "    ").splitlines()
        )


def test_a_page_needs_its_headings() -> None:
    """A page without its parts is refused by name."""
    with pytest.raises(ValueError, match="the page of LP999 needs the headings '## Example' and '## What to do'"):
        Meaning.read("LP999", "It means something.", "It matters.\n\n## What to do\n\nThis.\n")
