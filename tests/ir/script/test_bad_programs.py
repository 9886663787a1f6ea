"""What is said about a bad program: one message, its place and a caret, and what was expected."""

from pathlib import Path

import pytest
from tests.conftest import Golden
from tests.ir.script.bad_programs import BAD_PROGRAMS

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.script import codes
from layoutproof.ir.script.reader import load, loads


@pytest.mark.parametrize("name", BAD_PROGRAMS)
def test_bad_program_has_its_own_message(name: str, golden: Golden) -> None:
    """Each bad program is refused with the message of its golden file, at a place of the text."""
    with pytest.raises(LayoutproofError) as caught:
        loads(BAD_PROGRAMS[name], "bad.py")
    assert all(d.span is not None and d.code in codes.MEANINGS for d in caught.value.diagnostics)
    golden(f"bad_programs/{name}.txt", f"{caught.value}\n")


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
