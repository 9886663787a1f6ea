"""The options of `plan` and its limits on remaining rewrites.

Loaded for `--help`, so it imports nothing heavy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_LIMIT = re.compile(rf"\s*(\d{{1,18}}(?:\.\d{{1,9}})?)\s*({'|'.join(_UNITS)})?\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that may be left: rewrites, or bytes that they move. `text` is the option's text."""

    text: str
    most: int
    of_bytes: bool


@dataclass(frozen=True, slots=True)
class Left:
    """The number of remaining rewrites, and the bytes that they move, filled padding included."""

    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Broken:
    """An exceeded limit, and what is left."""

    limit: Limit
    found: int


def broken_of(limits: Sequence[Limit], left: Left) -> tuple[Broken, ...]:
    """The exceeded limits."""
    found = ((limit, left.bytes if limit.of_bytes else left.count) for limit in limits)
    return tuple(Broken(limit, number) for limit, number in found if number > limit.most)


def read_limits(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> tuple[Limit, ...]:
    """`3`, or a number of bytes such as `2.5MB`, each. Raises click.BadParameter for anything else."""
    return tuple(_limit(value) for value in values)


def _limit(text: str) -> Limit:
    found = _LIMIT.fullmatch(text)
    if found is None or (found[2] is None and "." in found[1]):
        raise click.BadParameter(
            f"{text!r}: expected a number of rewrites, such as 3, or of bytes, such as 2.5MB ({', '.join(_UNITS)})."
        )
    if found[2] is None:
        return Limit(text.strip(), int(found[1]), False)
    whole, _, part = found[1].partition(".")
    return Limit(text.strip(), int(whole + part) * _UNITS[found[2]] // 10 ** len(part), True)


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """A graph's file, the requested layouts, and what to do with the plan."""

    graph: Path
    layouts: tuple[str, ...]
    frozen: tuple[str, ...]
    free: tuple[str, ...]
    layout_file: Path | None
    sizes: tuple[str, ...]
    absorb: tuple[str, ...]
    costs: Path | None
    measure: Path | None
    greedy: bool
    limits: tuple[Limit, ...]
    planned: Path | None
    run: bool
    onnxruntime: bool
    seed: int
    output: Path | None
    picture: Path | None
    certificate: Path | None
    cache: Path | None
    no_cache: bool
    output_format: str
