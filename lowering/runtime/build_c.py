"""From a lowered function to a C kernel: emit, compile, load, call, and compare with the reference interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.expr import Cast
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import walk
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.c import ERRORS, CSource, emit_c
from layoutproof.lowering.codegen.calling_convention import Bounds, Parameter
from layoutproof.lowering.runtime.array_layouts import Layout, layout_notes
from layoutproof.lowering.runtime.arrays import Array
from layoutproof.lowering.runtime.call_arguments import Symbols
from layoutproof.lowering.runtime.call_assumptions import Assumption, contract_of
from layoutproof.lowering.runtime.compiler import find_compiler
from layoutproof.lowering.runtime.inexact import EXACT, FAST_C, function_notes
from layoutproof.lowering.runtime.kernel import BuildReport, Kernel, LoweredFunc, Scalars
from layoutproof.lowering.runtime.library_cache import build
from layoutproof.lowering.runtime.selfcheck import self_check

_CTYPES: Mapping[str, Any] = {
    "bool": ctypes.c_int8, "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32,
    "int64": ctypes.c_int64, "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16, "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64, "float32": ctypes.c_float, "float64": ctypes.c_double, "float16": ctypes.c_uint16,
    "bfloat16": ctypes.c_uint16,
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
        """The compiler's name for messages."""
        return "the C compiler"

    def check(self, symbols: Symbols) -> None:
        """C accepts any memory."""

    def launch(self, arrays: Mapping[str, Array], scalars: Scalars) -> None:
        """Run in place. Raises LayoutproofError (LP427) for an error code."""
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


class CKernel(Kernel):
    """A kernel of the C target: its source has a header, and its function can be called from C."""

    def __init__(self, lowered: LoweredFunc, source: CSource, library: ctypes.CDLL, report: BuildReport) -> None:
        launcher = CLauncher(lowered.func.name, source, library)
        super().__init__(lowered, source, launcher, report, FAST_C if report.fast else EXACT)
        self.library = library

    @property
    def source(self) -> CSource:
        """The generated C."""
        assert isinstance(self._source, CSource)
        return self._source


def build_c(
    func: PrimFunc,
    layouts: Mapping[str, Layout] | None = None,
    *,
    check: bool = True,
    fast: bool = False,
    bounds: Bounds | None = None,
    index_bits: int | None = None,
    assumptions: tuple[Assumption, ...] = (),
) -> CKernel:
    """The kernel of a lowered, flattened function.

    `layouts` are the layouts of arrays by buffer name, by default the logical ones. `check` compares the kernel with
    the reference interpreter on a small instance; `fast` allows the compiler to change float results (regrouping, no
    NaN, no infinity, no sign of zero), which the report says. `assumptions` are the preconditions of the proofs: the
    kernel refuses calls that do not meet those on symbols. `bounds` and `index_bits` are those of `emit_c`. Raises
    LayoutproofError: LP401 to LP404 for what C cannot express, LP410 to LP413 for the compiler and its files, LP428
    where kernel and interpreter disagree.
    """
    known = layouts if layouts is not None else {}
    source = emit_c(
        func, index_bits=index_bits, bounds=bounds, notes=layout_notes(known), contract=contract_of(assumptions)
    )
    compiler = find_compiler()
    flags = compiler.flags(openmp=source.uses_openmp, fast=fast, truncates=_truncates(func))
    built = build(source.text, source.entry, compiler, flags)
    notes = [note for note in (built.note,) if note is not None]
    if source.uses_openmp and not compiler.openmp:
        notes.append("the compiler has no OpenMP: parallel loops run one iteration after the other")
    notes += function_notes(func, FAST_C if fast else EXACT, "the C library, as the interpreter's is")
    if fast:
        notes.append(
            "built with fast math: the compiler may regroup float operations and take NaN, infinity and the sign of "
            "zero for absent"
        )
    report = BuildReport(
        target="c",
        command=built.command,
        source_path=str(built.source_path) if built.source_path is not None else None,
        library_path=str(built.library_path) if built.library_path is not None else None,
        reused=built.reused,
        index_bits=source.index_bits,
        openmp="-fopenmp" in flags,
        fast=fast,
        self_check="off",
        notes=tuple(notes),
    )
    kernel = CKernel(LoweredFunc(func, known, assumptions), source, built.library, report)
    if check:
        kernel.report = replace(report, self_check=self_check(func, kernel))
    return kernel


def _truncates(func: PrimFunc) -> bool:
    """Whether a float becomes an integer somewhere."""
    return any(isinstance(n, Cast) and n.dtype.is_integer and n.value.dtype.is_float for n in walk(func.body))
