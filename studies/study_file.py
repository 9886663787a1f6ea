"""Study files: TOML with the dimensions of grids. Every error names the file and the key, and what was expected."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from layoutproof.ir.diagnostic import LayoutproofError, error, meant
from layoutproof.studies import codes
from layoutproof.studies.cells import PAD_VALUES, Cell, Grid
from layoutproof.studies.layouts import layout_named
from layoutproof.studies.operators import TYPES, Operator, library, operator_of_text, text_of_call
from layoutproof.studies.policies import policy_named
from layoutproof.verify.values.fast_math import parse_fast_math

SCHEMA = 1
"""The version of study files."""
BUILT_IN: tuple[str, ...] = ("rfc77", "semantics", "operators", "network")
TABLES: tuple[str, ...] = ("values", "decision", "semantics", "ladder", "layouts", "errors", "network", "kernels")
_TOP = ("schema", "name", "title", "about", "tables", "certificates", "grid", "operator", "network", "kernels")
_GRID = ("operators", "types", "shapes", "layouts", "policies", "values", "strictness")
_OPERATOR = ("name", "file", "call", "buffers", "blocks", "outputs")


@dataclass(frozen=True, slots=True)
class Study:
    """A study: its grids, and the tables that are made of their cells. `extra` are the settings of tables that are no
    grids: networks, kernel times. With `certificates` each proved cell is certified, and the kernel judges it.
    """

    name: str
    title: str
    about: str
    text: str
    grids: tuple[Grid, ...]
    tables: tuple[str, ...]
    extra: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    certificates: bool = False

    @property
    def operators(self) -> Mapping[str, Operator]:
        """All operators by name."""
        return {name: operator for grid in self.grids for name, operator in grid.operators.items()}

    def cells(self) -> tuple[Cell, ...]:
        """The cells of all grids, each once, in the order of the file."""
        return tuple(dict.fromkeys(cell for grid in self.grids for cell in grid.cells()))


def load_study(name: str) -> Study:
    """A study that comes with the tool, by name, or the study of a file. Raises LayoutproofError for a file that cannot
    be read, is no TOML, or has a key or a value that is not expected.
    """
    if name in BUILT_IN:
        text = (files("layoutproof.studies") / "built_in" / f"{name}.toml").read_text(encoding="utf-8")
        return parse_study(text, f"{name}.toml", Path())
    path = Path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        known = f"a study file, or one of {', '.join(BUILT_IN)}"
        raise error(
            codes.STUDY_FILE, f"{name} cannot be read: {problem.strerror}", help=f"expected {known}"
        ) from problem
    except UnicodeDecodeError as problem:
        raise error(codes.STUDY_FILE, f"{name} is not text in UTF-8: {problem.reason}") from problem
    return parse_study(text, name, path.parent)


def parse_study(text: str, name: str, folder: Path) -> Study:
    """The study of a text; files that it names lie in `folder`. Raises LayoutproofError as `load_study`."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as problem:  # also of numbers with thousands of digits
        raise error(codes.STUDY_FILE, f"{name}: not TOML: {problem}") from problem
    reader = _Reader(name, folder)
    reader.check_keys("", data, _TOP)
    reader.take("schema", data, "schema", lambda value: value == SCHEMA, f"{SCHEMA}")
    operators = {**library(), **reader.operators(data)}
    grids = tuple(
        reader.grid(f"grid[{number}]", given, operators) for number, given in enumerate(reader.tables(data, "grid"))
    )
    extra: dict[str, Mapping[str, Any]] = {
        key: reader.table(data, key) for key in ("network", "kernels") if key in data
    }
    if not grids and not extra:
        raise error(codes.STUDY_FILE, f"{name}: no [[grid]], so the study has no cells", help=f"a grid has {_GRID}")
    return Study(
        reader.text("name", data, Path(name).stem),
        reader.text("title", data, reader.text("name", data, Path(name).stem)),
        reader.text("about", data, ""),
        text,
        grids,
        reader.names("tables", data, TABLES, ("values",)),
        extra,
        reader.switch("certificates", data),
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Values of a file by key, checked."""

    file: str
    folder: Path

    def fail(self, key: str, message: str, hint: str | None = None) -> LayoutproofError:
        return error(codes.STUDY_FILE, f"{self.file}: {key}: {message}", help=hint)

    def check_keys(self, where: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in given:
            if key not in known:
                hint = meant(key, known, f"known keys are {', '.join(known)}")
                raise self.fail(f"{where}.{key}" if where else key, "there is no such key", hint)

    def take(self, key: str, data: Mapping[str, Any], name: str, fits: Callable[[Any], bool], expected: str) -> Any:
        if name not in data:
            raise self.fail(key, f"it is missing; expected {expected}")
        if not fits(data[name]):
            raise self.fail(key, f"expected {expected}, not {data[name]!r}")
        return data[name]

    def text(self, key: str, data: Mapping[str, Any], default: str) -> str:
        value = data.get(key, default)
        if not isinstance(value, str):
            raise self.fail(key, f"expected text, not {value!r}")
        return value

    def switch(self, key: str, data: Mapping[str, Any]) -> bool:
        value = data.get(key, False)
        if not isinstance(value, bool):
            raise self.fail(key, f"expected true or false, not {value!r}")
        return value

    def table(self, data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        value = data[key]
        if not isinstance(value, dict):
            raise self.fail(key, f"expected a table, [{key}], not {value!r}")
        return value

    def tables(self, data: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
        value = data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.fail(key, f"expected tables, [[{key}]], not {value!r}")
        return value

    def names(
        self, key: str, data: Mapping[str, Any], known: tuple[str, ...], default: tuple[str, ...] | None = None
    ) -> tuple[str, ...]:
        """A list of names, none twice, all known if `known` is not empty."""
        name = key.rpartition(".")[2]
        if name not in data and default is not None:
            return default
        value = self.take(key, data, name, _is_names, "a list of names, at least one")
        for each in value:
            if known and each not in known:
                raise self.fail(key, f"{each!r} is not known", meant(each, known, f"known are {', '.join(known)}"))
            if value.count(each) > 1:
                raise self.fail(key, f"{each!r} is there twice")
        return tuple(value)

    def grid(self, key: str, given: Mapping[str, Any], operators: Mapping[str, Operator]) -> Grid:
        self.check_keys(key, given, _GRID)
        chosen = given.get("operators")
        names = (
            tuple(operators) if chosen in ("all", ["all"]) else self.names(f"{key}.operators", given, tuple(operators))
        )
        return Grid(
            {name: operators[name] for name in names},
            self.names(f"{key}.types", given, TYPES, ("float32",)),
            self.checked(f"{key}.shapes", given, ("fixed",), _check_shape),
            self.checked(f"{key}.layouts", given, ("block4",), layout_named),
            self.checked(f"{key}.policies", given, None, policy_named),
            self.names(f"{key}.values", given, PAD_VALUES, ("0",)),
            self.checked(f"{key}.strictness", given, ("finite",), parse_fast_math),
        )

    def checked(
        self, key: str, given: Mapping[str, Any], default: tuple[str, ...] | None, check: Callable[[str], object]
    ) -> tuple[str, ...]:
        names = self.names(key, given, (), default)
        for each in names:
            try:
                check(each)
            except LayoutproofError as problem:
                first = problem.diagnostics[0]
                raise self.fail(key, first.message, first.help) from problem
            except ValueError as problem:
                raise self.fail(key, f"{each!r}: {problem}") from problem
        return names

    def operators(self, data: Mapping[str, Any]) -> dict[str, Operator]:
        found: dict[str, Operator] = {}
        for number, given in enumerate(self.tables(data, "operator")):
            key = f"operator[{number}]"
            self.check_keys(key, given, _OPERATOR)
            name = self.take(f"{key}.name", given, "name", lambda value: isinstance(value, str), "text")
            path = self.folder / self.take(f"{key}.file", given, "file", lambda value: isinstance(value, str), "a path")
            text = self.program(key, path, given)
            letters = [
                self.take(f"{key}.{each}", given, each, _is_letters, 'letters by name, { A = "rn" }')
                for each in ("buffers", "blocks")
            ]
            outputs = self.names(f"{key}.outputs", given, ())
            found[name] = operator_of_text(name, text, letters[0], letters[1], outputs)
        return found

    def program(self, key: str, path: Path, given: Mapping[str, Any]) -> str:
        """The text of an operator's program: a file's, or that of a call in an ONNX model."""
        named = "call" in given
        call = self.take(f"{key}.call", given, "call", lambda value: isinstance(value, str), "text") if named else None
        if path.suffix == ".onnx":
            return text_of_call(path, call)
        if named:
            raise self.fail(f"{key}.call", "a program has no calls to choose from; expected an ONNX model as the file")
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise self.fail(f"{key}.file", f"{path} cannot be read: {problem}") from problem


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)


def _is_letters(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(each, str) for each in value.values())


def _check_shape(shape: str) -> None:
    rows, _, columns = shape.partition("x")
    if shape in ("fixed", "symbolic") or (rows.isdecimal() and columns.isdecimal() and int(rows) and int(columns)):
        return
    raise ValueError("a shape is `fixed`, `symbolic`, or rows and columns, such as `3x30`")
