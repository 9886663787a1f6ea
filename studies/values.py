"""Pad values of studies by name, for each type, as schedules take them."""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType
from layoutproof.studies import codes

PadText = str | int | float | None

NAMES: tuple[str, ...] = ("0", "-0", "1", "lowest", "highest", "-inf", "inf", "nan", "7", "ones")
"""`lowest` and `highest` are the ends of the finite values; `ones` has all bits set; 7 is the zero point of studies."""


def pad_value(name: str, dtype: str) -> PadText:
    """A value by its name for a type; None where the type has none. Raises LayoutproofError for an unknown name."""
    if name not in NAMES:
        raise error(codes.STUDY_FILE, f"there is no pad value {name!r}", help=f"pad values are {', '.join(NAMES)}")
    kind = DType.parse(dtype)
    return _float(name, kind) if kind.is_float else _integer(name, kind)


def _float(name: str, dtype: DType) -> PadText:
    found: Mapping[str, PadText] = {
        "0": 0.0,
        "-0": -0.0,
        "1": 1.0,
        "7": 7.0,
        "lowest": f'T.min_value("{dtype}")',
        "highest": f'T.max_value("{dtype}")',
        "-inf": f'T.{dtype}("-inf")',
        "inf": f'T.{dtype}("inf")',
        "nan": f'T.{dtype}("nan")',
    }
    return found.get(name)


def _integer(name: str, dtype: DType) -> PadText:
    found = {"0": 0, "1": 1, "7": 7, "lowest": dtype.min_int, "highest": dtype.max_int}
    return {**found, "ones": -1}.get(name) if dtype.min_int < 0 else found.get(name)
