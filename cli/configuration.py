"""Defaults of `layoutproof check`, from the table `[tool.layoutproof]` of a `pyproject.toml`.

The file is the nearest one that has the table, from the working directory up to the repository's root. Options on the
command line come first; relative paths are relative to the file. A key or value that is wrong is an error with file and
key, also for options that are not used in the call: a gate must not run with less than what the file says.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from layoutproof.cli import codes
from layoutproof.ir.diagnostic import LayoutproofError, error

FILE = "pyproject.toml"
_TOOL, _TABLE = "layoutproof", "[tool.layoutproof]"
_LISTS = ("paths", "select", "ignore")
_CODES = ("select", "ignore")
_PATHS = ("paths", "baseline", "cache")
# Each key with the parameter of `check` that it is the default of.
KEYS: Mapping[str, str] = {
    "paths": "paths",
    "expect": "expect",
    "strictness": "allowed",
    "budget": "budget",
    "select": "select",
    "ignore": "ignore",
    "allow-unknown": "allow_unknown",
    "trust": "trust",
    "baseline": "baseline",
    "timeout": "timeout",
    "memory": "memory",
    "workers": "workers",
    "cache": "cache",
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """The values of a file by parameter, checked, as the command line would give them; none without a file."""

    file: Path | None
    values: Mapping[str, Any]


def find_configuration(folder: Path) -> Path | None:
    """The nearest file with the table, from a folder upwards. Raises LayoutproofError for one that cannot be read."""
    for place in (folder, *folder.parents):
        file = place / FILE
        if file.is_file() and _TOOL in _tools(file):
            return file
        if (place / ".git").exists():
            return None
    return None


def read_configuration(folder: Path, command: click.Command, context: click.Context) -> Configuration:
    """The configuration that holds in a folder, for a command. Raises LayoutproofError, with file and key."""
    file = find_configuration(folder)
    if file is None:
        return Configuration(None, {})
    shown = Path(os.path.relpath(file, folder))
    table = _tools(file)[_TOOL]
    if not isinstance(table, dict):
        raise error(codes.CONFIGURATION, f"{shown}: {_TABLE} is a table, not {table!r}")
    parameters = {parameter.name: parameter for parameter in command.params}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in KEYS:
            import difflib  # for a message only

            near = difflib.get_close_matches(key, KEYS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"available: {', '.join(KEYS)}"
            raise error(codes.CONFIGURATION, f"{shown}: {_TABLE} has no key {key}", help=hint)
        _check(shown, key, value, parameters[KEYS[key]], context)
        values[KEYS[key]] = _placed(shown, value) if key in _PATHS else value
    return Configuration(shown, values)


def _placed(file: Path, value: str | list[str]) -> str | list[str]:
    """A path of the file, or several, as seen from the working directory."""
    if isinstance(value, list):
        return [each if os.path.isabs(each) else os.path.relpath(file.parent / each) for each in value]
    return value if os.path.isabs(value) else os.path.relpath(file.parent / value)


def _check(file: Path, key: str, value: Any, parameter: click.Parameter, context: click.Context) -> None:
    """Raise LayoutproofError for a value that the option would refuse, which has its own range and words."""
    form = _form(key, value, parameter)
    if form is not None:
        raise _wrong(file, key, f"expected {form}, not {value!r}")
    try:
        read = parameter.type_cast_value(context, value)
        if parameter.callback is not None:
            parameter.callback(context, parameter, read)
        if key in _CODES:
            _check_codes(key, value)
    except click.BadParameter as problem:
        raise _wrong(file, key, problem.message) from problem
    except LayoutproofError as problem:
        raise _wrong(file, key, problem.diagnostics[0].message.removeprefix(f"--{key} ")) from problem


def _check_codes(key: str, value: list[str]) -> None:
    from layoutproof.cli.gate.policy import Policy, read_codes

    found = read_codes(value)
    Policy(found, ()) if key == "select" else Policy((), found)


def _form(key: str, value: Any, parameter: click.Parameter) -> str | None:
    """What a value should be, if it is of another type. click would read texts as numbers, and the other way round."""
    if key in _LISTS:
        texts = isinstance(value, list) and bool(value) and all(isinstance(each, str) and each for each in value)
        return None if texts else "a list of texts"
    if isinstance(parameter.type, click.types.BoolParamType):
        return None if isinstance(value, bool) else "true or false"
    if isinstance(parameter.type, click.types.FloatRange | click.types.IntRange):
        kind = int if isinstance(parameter.type, click.types.IntRange) else int | float
        return None if isinstance(value, kind) and not isinstance(value, bool) else "a number"
    return None if isinstance(value, str) and value else "a text"


def _wrong(file: Path, key: str, what: str) -> LayoutproofError:
    return error(codes.CONFIGURATION, f"{file}: {_TABLE} {key}: {what}")


def _tools(file: Path) -> Mapping[str, Any]:
    """The table `tool` of a file."""
    shown = os.path.relpath(file)
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except OSError as problem:
        raise error(codes.CONFIGURATION, f"{shown} cannot be read: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise error(codes.CONFIGURATION, f"{shown} is not UTF-8: byte {problem.start}") from problem
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise error(codes.CONFIGURATION, f"{shown} is not TOML: {problem}") from problem
    return found if isinstance(found, dict) else {}


class ConfiguredCommand(click.Command):
    """A command whose options have the configuration's values where the command line has none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read both. Raises LayoutproofError for a wrong configuration."""
        if not ctx.resilient_parsing and not {"-h", "--help"} & set(args):
            configuration = _here(self, ctx)
            ctx.meta[_META] = configuration
            left_out = {"cache"} if "--no-cache" in args else set()
            ctx.default_map = {name: value for name, value in configuration.values.items() if name not in left_out}
        return super().parse_args(ctx, args)


_META = "layoutproof.configuration"


def _here(command: click.Command, context: click.Context) -> Configuration:
    try:
        folder = Path.cwd()
    except FileNotFoundError:
        return Configuration(None, {})  # the run says that the working directory is gone
    return read_configuration(folder, command, context)


def configuration_of(context: click.Context) -> Configuration:
    """The configuration that a command's options were read with."""
    found = context.meta.get(_META)
    return found if isinstance(found, Configuration) else Configuration(None, {})
