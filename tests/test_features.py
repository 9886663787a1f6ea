"""The table of features is true: every command, option, file and name that it gives is there."""

from __future__ import annotations

import re

import click
import pytest

import layoutproof
from layoutproof.cli.catalogue import has_code
from layoutproof.cli.main import cli
from tests.tree import ROOT

PAGE = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
THERE, MISSING = PAGE.split("## What is not there")
_CODE = re.compile(r"`([^`]+)`")


def rows(text: str) -> list[list[str]]:
    """The cells of the rows of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


NAMED = [(row[0], name) for row in rows(THERE) for name in _CODE.findall(row[-1])]


def is_command(words: list[str]) -> bool:
    """Whether there is a command, with these options."""
    group: click.Command = cli
    context = click.Context(cli)
    while words and not words[0].startswith("-"):
        assert isinstance(group, click.Group)
        found = group.get_command(context, words.pop(0))
        if found is None:
            return False
        group = found
    known = {option for parameter in group.params for option in parameter.opts}
    return set(words) <= known


def is_there(name: str) -> bool:
    """Whether what a code span names exists."""
    kind, _, rest = name.partition(" ")
    if kind == "layoutproof":
        return is_command(rest.split())
    if kind == "make":
        return f"\n{rest}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
    if kind == "pytest":
        return f'"{rest}"' in (ROOT / "cli" / "pytest_plugin.py").read_text(encoding="utf-8")
    if name.startswith("lp."):
        found: object = layoutproof
        for part in name.removeprefix("lp.").split("."):
            found = getattr(found, part, None)
        return found is not None
    return has_code(name) or (ROOT / name).exists()


@pytest.mark.parametrize(("expected", "name"), NAMED, ids=[name for _, name in NAMED])
def test_what_the_table_names_is_there(expected: str, name: str) -> None:
    """A row's command, option, file or name exists."""
    assert is_there(name), expected


def test_rows_are_complete() -> None:
    """Every row says where its feature is, or why it is not there; and the look-up finds nothing that is not there."""
    assert all(len(row) == 3 and _CODE.search(row[-1]) for row in rows(THERE))
    assert all(len(row) == 3 and len(row[-1]) > 20 for row in rows(MISSING))
    wrong = ("layoutproof chek", "layoutproof check --selekt", "make nothing", "lp.nothing", "LP999", "docs/nothing.md")
    assert not any(map(is_there, (*wrong, "pytest --layoutproof-nothing")))


def test_every_tool_has_rows() -> None:
    """The four tools that the page names are compared."""
    known = " ".join(row[1] for row in rows(THERE))
    assert all(tool in known for tool in ("ruff", "Alive2", "mlir-opt", "pytest"))
