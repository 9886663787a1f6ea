"""Calling a compiled C function: pointers to the arrays' own memory, scalars as ctypes passes them, and what its return value means."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np

from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.c import ERRORS, CSource
from layoutproof.lowering.codegen.signature import Parameter
from layoutproof.lowering.runtime.arrays import Array
from layoutproof.lowering.runtime.launcher import Scalars
from layoutproof.lowering.runtime.symbols import Symbols

_CTYPES: Mapping[str, Any] = {
    "bool": ctypes.c_int8, "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32, "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16, "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float, "float64": ctypes.c_double, "float16": ctypes.c_uint16, "bfloat16": ctypes.c_uint16,
}  # fmt: skip


class CLauncher:
    """The function of a loaded library."""

    def __init__(self, name: str, source: CSource, library: ctypes.CDLL) -> None:
        self.library = library
        self._name = name
        self._parameters = source.parameters
        self._function = getattr(library, source.entry)
        self._function.restype = ctypes.c_int

    @property
    def copies(self) -> bool:
        """C works on the caller's memory."""
        return False

    @property
    def compiler(self) -> str:
        """Who compiled it, in words."""
        return "the C compiler"

    def check(self, symbols: Symbols) -> None:
        """C takes whatever the caller's memory holds."""

    def launch(self, arrays: Mapping[str, Array], scalars: Scalars) -> None:
        """Run in place. Raises LayoutproofError (LP427) where the function says that it did nothing."""
        code = int(self._function(*(_argument(p, arrays, scalars) for p in self._parameters)))
        if code != 0:
            meaning = ERRORS.get(code, ("", "an unknown failure"))[1]
            raise error(codes.DID_NOT_RUN, f"{self._name} did not run: {meaning} (code {code})")


def _argument(parameter: Parameter, arrays: Mapping[str, Array], scalars: Scalars) -> Any:
    if parameter.buffer is not None:
        return ctypes.c_void_p(arrays[parameter.name].ctypes.data)
    return c_scalar(parameter, scalars[parameter.name])


def c_scalar(parameter: Parameter, value: int | float) -> Any:
    """A checked scalar as ctypes passes it; half-precision floats as their bits."""
    dtype = parameter.dtype
    if dtype.is_float and dtype.bits == 16:
        return ctypes.c_uint16(int(np.array(value, dtype=numpy_dtype(dtype)).view(np.uint16)))
    return _CTYPES[str(dtype)](value)
