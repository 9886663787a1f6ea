"""Study files: what is wrong is named by its key, with what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.studies.cells import NO_VALUE
from layoutproof.studies.study_file import BUILT_IN, load_study, parse_study

GRID = '[[grid]]\noperators = ["sum"]\npolicies = ["poison"]\n'
WRONG: Mapping[str, str] = {
    "schema = 2\n" + GRID: "schema: expected 1, not 2",
    GRID: "schema: it is missing",
    "schema = 1\n": "no \\[\\[grid\\]\\]",
    "schema = 1\ncolour = 1\n" + GRID: "colour: there is no such key",
    "schema = 1\ngrid = 3\n": "grid: expected tables",
    "schema = 1\ncertificates = 1\n" + GRID: "certificates: expected true or false, not 1",
    "schema = 1\n" + GRID + 'typos = ["float32"]\n': "grid\\[0\\].typos: there is no such key",
    "schema = 1\n" + GRID + 'types = ["float8"]\n': "grid\\[0\\].types: 'float8' is not known",
    "schema = 1\n" + GRID + "types = []\n": "grid\\[0\\].types: expected a list of names",
    "schema = 1\n" + GRID + 'types = ["int8", "int8"]\n': "'int8' is there twice",
    "schema = 1\n" + GRID + 'layouts = ["block1"]\n': "grid\\[0\\].layouts: there is no layout 'block1'",
    "schema = 1\n" + GRID + 'strictness = ["fast"]\n': "grid\\[0\\].strictness: 'fast'",
    "schema = 1\n" + GRID + 'shapes = ["3x"]\n': "grid\\[0\\].shapes: '3x'",
    'schema = 1\n[[grid]]\noperators = ["sum"]\n': "grid\\[0\\].policies: it is missing",
    'schema = 1\n[[grid]]\noperators = ["sun"]\npolicies = ["poison"]\n': "'sun' is not known",
    'schema = 1\n[[operator]]\nname = "own"\nfile = "none.py"\n' + GRID: "operator\\[0\\].file: none.py cannot be read",
    "schema = ": "not TOML",
    f"schema = {'9' * 5000}": "not TOML",
    f"schema = {'[' * 5000}": "not TOML",
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_named(text: str) -> None:
    """The message has the file, the key and what was expected."""
    with pytest.raises(LayoutproofError, match=WRONG[text]) as caught:
        parse_study(text, "study.toml", Path())
    assert str(caught.value).startswith("error[LP701]: study.toml: ")


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_study_that_comes_along_has_cells(name: str) -> None:
    """It is read, each of its cells has a key of its own, and every cell's operator has the type."""
    study = load_study(name)
    keys = [cell.key for cell in study.cells()]
    assert len(keys) == len(set(keys))
    assert all(cell.dtype in study.operators[cell.operator].types for cell in study.cells())
    assert study.cells() or study.extra


def test_values_are_tried_once() -> None:
    """A policy without a value is one cell, and names of one number are one cell, too."""
    text = 'schema = 1\n[[grid]]\noperators = ["any"]\ntypes = ["uint8"]\npolicies = ["poison", "masked", "canary"]\n'
    cells = parse_study(text + 'values = ["0", "lowest", "-inf", "1"]\n', "study.toml", Path()).cells()
    assert [(cell.policy, cell.value) for cell in cells] == [("poison", NO_VALUE), ("masked", "0"), ("masked", "1")]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The message says what may be given instead."""
    with pytest.raises(LayoutproofError, match="cannot be read") as caught:
        load_study(str(tmp_path / "none.toml"))
    assert "rfc77" in str(caught.value.diagnostics[0].help)
