"""The codes of diagnostics: each has one meaning, in one table, of the layer that its hundreds digit says."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from layoutproof.ir.diagnostic import __doc__ as layers
from tests.tree import code_files, name_of

CODE = re.compile(r"\bLP\d{3}\b")
# A room's own layer, as `ir/diagnostic.py` counts them; code generation and running are a layer within lowering.
DIGITS: Mapping[str, str] = {
    "ir": "1",
    "verify": "2",
    "lowering/codegen": "4",
    "lowering/runtime": "4",
    "lowering": "3",
    "cli": "5",
    "graph": "6",
    "importers": "6",
}


def room_of(path: Path) -> str:
    """The longest entry of `DIGITS` that the file lies below."""
    return next(room for room in sorted(DIGITS, key=len, reverse=True) if name_of(path).startswith(f"{room}/"))


def assigns_meanings(path: Path) -> bool:
    """Whether the file has a table of meanings."""
    text = path.read_text(encoding="utf-8")
    body = ast.parse(text).body if "MEANINGS" in text else ()
    return any(isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name) and n.target.id == "MEANINGS" for n in body)


FILES = code_files()
TABLES: Mapping[Path, Mapping[str, str]] = {
    path: importlib.import_module(f"layoutproof.{name_of(path).removesuffix('.py').replace('/', '.')}").MEANINGS
    for path in FILES
    if assigns_meanings(path)
}


def used_codes() -> Iterator[tuple[str, Path]]:
    """Every code that shipped code speaks of, docstrings included."""
    for path in FILES:
        for code in CODE.findall(path.read_text(encoding="utf-8")):
            yield code, path


def literal_codes(path: Path) -> Iterator[str]:
    """The codes that stand as strings of their own in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
            yield node.value


def named_codes(path: Path) -> Iterator[str]:
    """The names that a file gives to codes."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and CODE.fullmatch(str(node.value.value)):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def test_every_code_has_exactly_one_meaning() -> None:
    """A code that is used has a meaning, and no code is explained in two tables."""
    used = {code for code, _ in used_codes()}
    meanings = [code for table in TABLES.values() for code in table]
    assert sorted(used - set(meanings)) == []
    assert sorted({code for code in meanings if meanings.count(code) > 1}) == []
    assert all(CODE.fullmatch(code) for code in meanings)


@pytest.mark.parametrize("path", list(TABLES), ids=name_of)
def test_a_table_has_the_codes_of_its_layer(path: Path) -> None:
    """The hundreds digit is that of the layer, and every meaning is a sentence or more."""
    for code, meaning in TABLES[path].items():
        assert code[2] == DIGITS[room_of(path)], f"{name_of(path)}: {code}"
        assert len(meaning.split()) >= 4 and meaning.endswith("."), f"{code}: {meaning}"


def test_no_two_names_stand_for_one_code() -> None:
    """A code is written out once: where it gets its name, or beside its rule."""
    places: dict[str, list[str]] = {}
    for path in FILES:
        for code in literal_codes(path):
            places.setdefault(code, []).append(name_of(path))
    assert {code: where for code, where in places.items() if len(where) > 1} == {}


@cache
def words() -> Counter[str]:
    """How often each word stands in shipped code."""
    return Counter(word for path in FILES for word in re.findall(r"\w+", path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", list(TABLES), ids=name_of)
def test_each_named_code_is_used(path: Path) -> None:
    """A table has no code that nobody raises: its name stands elsewhere than where it is defined and explained."""
    for name in named_codes(path):
        assert words()[name] > 2, name


def test_the_layers_are_written_down() -> None:
    """The docstring of `ir/diagnostic.py` tells what each digit means."""
    assert layers is not None
    assert all(f"{digit} " in layers for digit in DIGITS.values())
