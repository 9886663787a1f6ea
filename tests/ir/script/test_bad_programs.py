"""Texts that are no programs at all, and how a message about one is drawn; the others stand under tests/programs."""

from pathlib import Path

import pytest
from tests.cases import PROGRAMS, cases_of
from tests.conftest import Golden

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.script.reader import load, loads

# Their messages as a whole: nothing to show, characters of two widths, tabs, a place of several lines, a character that
# cannot be printed.
DRAWN = {
    "blank": "   \n\t\n",
    "comments_only": "# nothing here\n\n",
    "wide_characters": "@T.prim_func\ndef main(B: T.Buffer((16,), 'float32')):\n    é = T.float32(1)\n"
    "    B[0] = é + über\n",
    "tabs": "@T.prim_func\ndef main(A: T.Buffer((4,), 'float32')):\n\tfor i in range(4):\n\t\tA[i] = A[k]\n",
    "several_lines": "@T.prim_func\ndef main(n: T.int32):\n    while n > 0:\n        pass\n",
    "null_byte": "@T.prim_func\ndef main(B: T.Buffer((16,), 'float32')):\n    B[0] = T.float32(0) \0\n",
}
OF_TEXTS = {code for code in codes.MEANINGS if codes.SYNTAX <= code < codes.SIDE_CONDITION} | {codes.UPSTREAM_DIFFERS}


@pytest.mark.parametrize("name", DRAWN)
def test_a_message_is_drawn(name: str, golden: Golden) -> None:
    """The place, the code, the text, the line with carets, and what helps."""
    with pytest.raises(LayoutproofError) as caught:
        loads(DRAWN[name], "bad.py")
    assert all(d.span is not None and d.code in OF_TEXTS for d in caught.value.diagnostics)
    golden(f"bad_programs/{name}.txt", f"{caught.value}\n")


def test_the_reader_itself_refuses_bad_texts() -> None:
    """Each text of the files for the reader is refused by it, with its own codes, before anything is checked."""
    cases = [case for path in sorted((PROGRAMS / "ir").glob("reading_*.py")) for case in cases_of(path)]
    assert len(cases) > 10
    for case in cases:
        with pytest.raises(LayoutproofError) as caught:
            loads(case.source.text, "bad.py")
        assert {d.code for d in caught.value.diagnostics} <= OF_TEXTS, case.name


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A path that does not exist is an input error that names it."""
    with pytest.raises(LayoutproofError, match=r"nowhere\.py: there is no such file"):
        load(tmp_path / "nowhere.py")


def test_a_directory_is_not_a_program(tmp_path: Path) -> None:
    """A directory is refused as such."""
    with pytest.raises(LayoutproofError, match="is a directory; a file is expected"):
        load(tmp_path)


def test_a_path_with_a_null_byte_is_refused() -> None:
    """A path that no file can have is an input error."""
    with pytest.raises(LayoutproofError, match="cannot be read"):
        load("a\0b")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the text is empty"),
        (b"\n# only a comment\n", "the text is empty"),
        (b"\x7fELF\x02\x01\x00\x00\xff\xfe", "byte 8 \\(line 1\\) is not UTF-8"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "byte 0 \\(line 1\\) is not UTF-8"),
        (b"ab\x00cd", "a null byte in the text"),
        (b"import os\n\xe9t\xe9 = 1\n", "byte 10 \\(line 2\\) is not UTF-8"),
        ("x".encode("utf-16"), "is not UTF-8"),
        (b"this is not a program\n", "not Python syntax"),
        (b'{"json": true}\n', "only imports, functions"),
    ],
    ids=["empty", "comment", "elf", "png", "null", "latin1", "utf16", "prose", "json"],
)
def test_a_file_that_is_no_program_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    """Empty, binary, undecodable and foreign files each have their own message."""
    path = tmp_path / "program.py"
    path.write_bytes(data)
    with pytest.raises(LayoutproofError, match=message):
        load(path)


def test_every_code_has_a_meaning() -> None:
    """Every code of the reader is explained."""
    values = {value for name, value in vars(codes).items() if name.isupper() and isinstance(value, str)}
    assert values == set(codes.MEANINGS)
