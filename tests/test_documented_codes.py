"""The documentation of codes: each has all of its parts, and each example is run and does what is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from docs.code_pages import pages, write_pages

from layoutproof.cli.catalogue import all_codes, meaning_of
from tests.console import Console, blocks
from tests.shares import one_in
from tests.tree import ROOMS, ROOT

WITHOUT_EXAMPLE: Mapping[str, str] = {
    "LP226": "a claim of no kind, of which there is none",
    "LP413": "a full disk",
    "LP440": "an installation without pyopencl",
    "LP441": "a machine without a driver of OpenCL",
    "LP445": "a device without something",
    "LP446": "a driver that refuses what is generated",
    "LP447": "a device with little memory",
    "LP501": "a full disk",
    "LP508": "a program that is proved to have no fault, and has one",
    "LP509": "no memory",
    "LP527": "a crash",
    "LP528": "a fault of layoutproof",
    "LP530": "an installation without distributed",
    "LP540": "an installation without pygls",
    "LP531": "a network",
    "LP532": "two machines",
    "LP535": "a full disk",
    "LP644": "an installation without onnxruntime",
}
"""Codes that no test can raise at will, with what it would take."""

CODES = all_codes()


def prose(markdown: str) -> list[str]:
    """The paragraphs of a text, blocks left out."""
    return [
        part.strip()
        for part in re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL).split("\n\n")
        if part.strip()
    ]


@pytest.fixture
def console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Console:
    """A console in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYOUTPROOF_PROOF_CACHE", str(tmp_path / "proof-cache"))
    return Console(monkeypatch)


@one_in(4)
@pytest.mark.parametrize("code", CODES)
def test_a_code_is_documented(code: str) -> None:
    """It says what it means, why it matters, what raises it and what to do, and has an example unless it is known to
    have none.
    """
    meaning = meaning_of(code)
    for part in (meaning.what, meaning.why, meaning.example, meaning.remedy):
        assert len(part.split()) >= 4, f"{code}: {part}"
        assert all(paragraph.endswith((".", ":")) for paragraph in prose(part)), f"{code}: end the sentence"
    assert bool(blocks(meaning.example)) == bool(meaning.shows) == (code not in WITHOUT_EXAMPLE), code


def test_no_page_is_without_its_code() -> None:
    """A page stands in a folder `meanings` beside the table that has its code, and no other file does."""
    found = [path for room in ROOMS for path in (ROOT / room).rglob("meanings/*")]
    assert sorted(path.name for path in found) == sorted(f"{code}.md" for code in CODES)


@one_in(56)
@pytest.mark.parametrize("code", [code for code in CODES if code not in WITHOUT_EXAMPLE])
def test_an_example_shows_its_code(code: str, console: Console) -> None:
    """The example prints the message as shown, with its code; what is to be done instead prints what is shown, without
    it.
    """
    meaning = meaning_of(code)
    assert code in "".join(console.run(block) for block in blocks(meaning.example))
    assert code not in "".join(console.run(block) for block in blocks(meaning.remedy))


def test_pages_are_what_they_are_made_from(tmp_path: Path) -> None:
    """The site has a page for each layer and one that lists all codes, each code under its own heading, and none of an
    old layer.
    """
    (tmp_path / "of_an_old_layer.md").write_text("gone\n", encoding="utf-8")
    write_pages(tmp_path)
    written = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert written == dict(pages())
    assert [
        code
        for code in CODES
        if f"\n## {code}\n" not in written[f"lp{code[2]}.md"] or f"[{code}](" not in written["index.md"]
    ] == []
