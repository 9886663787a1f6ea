"""The codes of diagnostics: each has one meaning, in one table, of the layer that its hundreds digit says."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from layoutproof.ir.diagnostic import __doc__ as layers
from tests.tree import CODE, code_files, file, name_of

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
    "studies": "7",
}


def room_of(path: Path) -> str:
    """The longest entry of `DIGITS` that the file lies below."""
    return next(room for room in sorted(DIGITS, key=len, reverse=True) if name_of(path).startswith(f"{room}/"))


FILES = code_files()
TABLES: Mapping[Path, Mapping[str, str]] = {
    path: importlib.import_module(f"layoutproof.{name_of(path).removesuffix('.py').replace('/', '.')}").MEANINGS
    for path in FILES
    if "MEANINGS" in path.read_text(encoding="utf-8") and file(path).has_meanings
}


def used_codes() -> Iterator[tuple[str, Path]]:
    """Every code that shipped code speaks of, docstrings included."""
    for path in FILES:
        for code in CODE.findall(file(path).text):
            yield code, path


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
        for code in file(path).codes:
            places.setdefault(code, []).append(name_of(path))
    assert {code: where for code, where in places.items() if len(where) > 1} == {}


@cache
def words() -> Counter[str]:
    """How often each word stands in shipped code."""
    return Counter(word for path in FILES for word in re.findall(r"\w+", file(path).text))


@pytest.mark.parametrize("path", list(TABLES), ids=name_of)
def test_each_named_code_is_used(path: Path) -> None:
    """A table has no code that is never raised: its name stands elsewhere than where it is defined and explained."""
    for name in file(path).named_codes:
        assert words()[name] > 2, name


def test_the_layers_are_written_down() -> None:
    """The docstring of `ir/diagnostic.py` tells what each digit means."""
    assert layers is not None
    assert all(f"{digit} " in layers for digit in DIGITS.values())
