"""From a lowered function to a kernel: emit, compile, load, and compare with the reference interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import replace

from layoutproof.ir.expr import Cast
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import walk
from layoutproof.lowering.codegen.c import CSource, emit_c
from layoutproof.lowering.codegen.signature import Bounds
from layoutproof.lowering.runtime.assumptions import Assumption, contract_of
from layoutproof.lowering.runtime.c_launcher import CLauncher
from layoutproof.lowering.runtime.cache import build
from layoutproof.lowering.runtime.inexact import EXACT, FAST_C, function_notes
from layoutproof.lowering.runtime.kernel import BuildReport, Kernel
from layoutproof.lowering.runtime.layouts import Layout, layout_notes
from layoutproof.lowering.runtime.native import find_compiler
from layoutproof.lowering.runtime.selfcheck import self_check


class CKernel(Kernel):
    """A kernel of the C target: its text has a header, and its function can be called from C."""

    def __init__(
        self,
        name: str,
        source: CSource,
        library: ctypes.CDLL,
        layouts: Mapping[str, Layout],
        report: BuildReport,
        func: PrimFunc,
        assumptions: tuple[Assumption, ...] = (),
    ) -> None:
        launcher, inexact = CLauncher(name, source, library), FAST_C if report.fast else EXACT
        super().__init__(name, source, launcher, layouts, report, func, assumptions, inexact)
        self._c_source = source
        self._library = library

    @property
    def library(self) -> ctypes.CDLL:
        """The loaded library."""
        return self._library

    @property
    def source(self) -> CSource:
        """The generated C."""
        return self._c_source


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

    `layouts` says, by buffer name, how logical arrays become physical ones (the physical layout is the logical one where it does
    not). `check` compares the kernel with the reference interpreter on a small instance; `fast` allows the compiler to change
    float results (regrouping, no NaN, no infinity, no sign of zero), which the report says.
    `assumptions` are what its proofs took for granted: the kernel refuses calls that do not meet those on symbols.
    `bounds` and `index_bits` are those of `emit_c`.
    Raises LayoutproofError: LP401 to LP404 for what C cannot express, LP410 to LP413 for the compiler and its files, LP428 where
    kernel and interpreter disagree.
    """
    known = layouts if layouts is not None else {}
    source = emit_c(func, index_bits=index_bits, bounds=bounds, notes=layout_notes(known), contract=contract_of(assumptions))
    compiler = find_compiler()
    flags = compiler.flags(openmp=source.uses_openmp, fast=fast, truncates=_truncates(func))
    built = build(source.text, source.entry, compiler, flags)
    notes = [note for note in (built.note,) if note is not None]
    if source.uses_openmp and not compiler.openmp:
        notes.append("the compiler has no OpenMP: parallel loops run one iteration after the other")
    notes += function_notes(func, FAST_C if fast else EXACT, "the C library, as the interpreter's is")
    if fast:
        notes.append(
            "built with fast math: the compiler may regroup float operations and take NaN, infinity and the sign of zero for absent"
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
    kernel = CKernel(func.name, source, built.library, known, report, func, assumptions)
    if check:
        kernel.report = replace(report, self_check=self_check(func, kernel))
    return kernel


def _truncates(func: PrimFunc) -> bool:
    """Whether a float becomes an integer somewhere."""
    return any(isinstance(n, Cast) and n.dtype.is_integer and n.value.dtype.is_float for n in walk(func.body))
