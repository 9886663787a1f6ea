"""Which argument of a call belongs to which parameter, and what numbers scalar parameters take."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence

import numpy as np

from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType, Kind
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.signature import Parameter


class Signature:
    """The parameters of one kernel, as a caller sees them."""

    def __init__(self, name: str, parameters: Sequence[Parameter]) -> None:
        self.name = name
        self.parameters = tuple(parameters)
        self.by_name = {p.name: p for p in parameters}
        self.own = tuple(p for p in parameters if not p.implied)
        self.inputs = tuple(p for p in parameters if not p.writes or p.needs_content)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(p.name for p in self.parameters)})"

    def assign(self, arguments: Sequence[object], named: Mapping[str, object], *, every_array: bool = False) -> dict[str, object]:
        """Arguments by parameter. As many as there are parameters, shape symbols that the program does not list counted or not: all in
        order; fewer: the inputs in order.

        Raises LayoutproofError (LP420) for too many, an unknown name, a parameter given twice or an input that is missing.
        """
        everything = every_array or len(arguments) in (len(self.parameters), len(self.own))
        order = self.parameters if everything else self.inputs
        if len(arguments) > len(order):
            raise self._misuse(f"{len(arguments)} arguments", every_array)
        given: dict[str, object] = {p.name: value for p, value in zip(order, arguments, strict=False)}
        for name, value in named.items():
            if name not in self.by_name:
                raise self._misuse(f"the unknown argument {name!r}", every_array)
            if name in given:
                raise self._misuse(f"{name} twice", every_array)
            given[name] = value
        for parameter in self.parameters if every_array else self.inputs:
            if parameter.name not in given and not parameter.is_symbol:
                raise self._misuse(f"no {parameter.name}", every_array)
        return given

    def _misuse(self, what: str, every_array: bool) -> LayoutproofError:
        everything = _listed([p.name for p in self.parameters])
        if every_array:
            return error(codes.ARGUMENTS, f"{self.name} was given {what}", help=f"raw takes all parameters: {everything}")
        inputs = _listed([p.name for p in self.inputs])
        return error(
            codes.ARGUMENTS, f"{self.name} was given {what}", help=f"it takes its inputs ({inputs}) or all parameters ({everything})"
        )


def _listed(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(names if len(names) <= most else [*names[:most], f"and {len(names) - most} more"])


def scalar_value(parameter: Parameter, value: object) -> int | float:
    """A number for a scalar parameter. Raises LayoutproofError (LP422) for another type or a number that does not fit."""
    name, dtype = parameter.name, parameter.dtype
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if dtype.is_float:
        if isinstance(value, numbers.Real | np.floating | np.integer) or _is_narrow_float(value):
            return float(value)  # type: ignore[arg-type]  # ml_dtypes' scalars are floats that numbers does not know
        raise error(codes.ARGUMENT_TYPE, f"{name} is {value!r}; a number of type {dtype} is expected")
    if dtype.is_bool and isinstance(value, bool | np.bool_):
        return int(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return _fitting(name, int(value), dtype)
    raise error(
        codes.ARGUMENT_TYPE, f"{name} is {value!r}; {'a truth value' if dtype.is_bool else f'an integer of type {dtype}'} is expected"
    )


def _is_narrow_float(value: object) -> bool:
    return isinstance(value, np.generic) and value.dtype.kind in "fV"


def _fitting(name: str, value: int, dtype: DType) -> int:
    low, high = (0, 1) if dtype.kind is Kind.BOOL else (dtype.min_int, dtype.max_int)
    if not low <= value <= high:
        raise error(codes.ARGUMENT_TYPE, f"{name} is {value}, which does not fit {dtype}")
    return value
