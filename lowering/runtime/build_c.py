"""From a lowered function to a C kernel: emit, compile, load, call, and compare with the reference interpreter.

Built libraries are kept between runs, found again by what they were built from. A library's folder is a hash of its
source, the compiler, the flags and the machine; its file name is the hash of its content, checked before each load.
Files appear by atomic renaming, so an interrupted build leaves at worst an unfinished file. Concurrent builders of one
kernel wait for each other. If the folder cannot be written, kernels are built for one process.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import shlex
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.expr import Cast
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import round_float
from layoutproof.ir.visit import walk
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.c import ERRORS, CSource, emit_c
from layoutproof.lowering.codegen.calling_convention import Bounds, Parameter
from layoutproof.lowering.lock import Hold, locked
from layoutproof.lowering.owners import REMEDY, make_private, others_may_write, written_by_others
from layoutproof.lowering.runtime.array_layouts import Layout, layout_notes
from layoutproof.lowering.runtime.arrays import Array
from layoutproof.lowering.runtime.call_arguments import Assumption, Symbols, contract_of
from layoutproof.lowering.runtime.compiler import Compiler, compile_library, find_compiler, machine
from layoutproof.lowering.runtime.inexact import EXACT, FAST_C, function_notes
from layoutproof.lowering.runtime.kernel import BuildReport, Kernel, LoweredFunc, Scalars
from layoutproof.lowering.runtime.selfcheck import self_check
from layoutproof.verify.certificate.sealed_files import replacing

_VERSION = "2"  # of this folder's layout
_STALE_SECONDS = 3600.0  # an unfinished file older than this is of a process that died


@dataclass(frozen=True, slots=True)
class Build:
    """A loaded library and how it was built. `source_path` is None where the folder could not be written."""

    library: ctypes.CDLL
    key: str
    command: str
    source_path: Path | None
    library_path: Path | None
    reused: bool
    note: str | None


def cache_folder() -> Path:
    """`$LAYOUTPROOF_CACHE`, else a folder of the user's cache."""
    named = os.environ.get("LAYOUTPROOF_CACHE", "").strip()
    return Path(named).expanduser() if named else Path(platformdirs.user_cache_dir("layoutproof")) / "kernels"


def build(text: str, name: str, compiler: Compiler, flags: tuple[str, ...]) -> Build:
    """The library built from the C in `text`, or the cached one. `name` names the source file.

    Raises LayoutproofError: LP411 where the compiler fails, LP412 where the library cannot be loaded, LP413 where there
    is no place to build.
    """
    command, processor = " ".join(compiler.command), machine() if compiler.native else ""
    parts = (_VERSION, text, command, compiler.identity, " ".join(flags), processor)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    order = _Order(text, name, compiler, flags, key, cache_folder() / key[:2] / key)
    refused = _refused(order.folder)
    if refused is not None:
        warnings.warn(f"{refused}; {REMEDY}", RuntimeWarning, stacklevel=2)
        return _make(order, f"{refused}; this build is not kept")
    found = _find(order.folder)
    reused = _reuse(order, found) if found is not None else None
    if reused is not None:
        return reused
    with locked(order.folder / "lock") as hold:
        found = _find(order.folder, mend=True)
        reused = _reuse(order, found) if found is not None else None
        if reused is not None:
            return reused
        built = _make(order)
    if hold is Hold.GIVEN_UP and built.note is None:
        note = "another process has begun to build this kernel and did not go on; it was not waited for"
        return replace(built, note=note)
    return built


@dataclass(frozen=True, slots=True)
class _Order:
    """What is to be built, from what, and where it is kept."""

    text: str
    name: str
    compiler: Compiler
    flags: tuple[str, ...]
    key: str
    folder: Path

    @property
    def source(self) -> Path:
        return self.folder / f"{self.name}.c"

    def command(self, library: Path) -> str:
        """The command as typed to build `library` from the source that is kept."""
        return shlex.join(self.compiler.invocation(self.source, library, self.flags))


def _reuse(order: _Order, library: Path) -> Build | None:
    """A finished library, loaded; None where this system cannot load it (a folder shared with another system)."""
    try:
        loaded = _load(library)
    except LayoutproofError:
        return None
    with contextlib.suppress(OSError):  # the library does not need its source
        if not order.source.is_file() or order.source.read_bytes() != order.text.encode():
            _publish(order.text.encode(), order.folder, order.source.name)
    return Build(loaded, order.key, order.command(library), order.source, library, True, None)


def _refused(folder: Path) -> str | None:
    """Why a folder of the cache is not used: others may put libraries there."""
    try:
        make_private(folder)
    except OSError:
        return None  # there is none to load from; writing to it meets and reports the same
    try:
        reason = others_may_write(folder)
    except OSError as problem:
        reason = str(problem)
    return None if reason is None else f"no kernel is loaded from the cache folder {cache_folder()}: {reason}"


def _make(order: _Order, note: str | None = None) -> Build:
    """The library, built: in the cache unless a `note` says why that is not used."""
    with _workplace() as work:
        kept = order.source
        try:
            if note is not None:
                kept = _keep_source(order)
            else:
                _publish(order.text.encode(), order.folder, kept.name)
        except OSError as problem:
            note = _not_kept(problem)
            kept = _keep_source(order)
        library = work / "kernel.so"
        command = compile_library(order.compiler, kept, library, order.flags)
        if note is None:
            content = library.read_bytes()
            try:
                path = _publish(content, order.folder, f"{hashlib.sha256(content).hexdigest()}.so")
            except OSError as problem:
                note = _not_kept(problem)
            else:
                return Build(_load_or_remove(path), order.key, order.command(path), kept, path, False, None)
        # A loaded library outlives its file.
        return Build(_load(library), order.key, command, kept, None, False, note)


def _not_kept(problem: OSError) -> str:
    return f"the cache folder {cache_folder()} cannot be written ({problem.strerror}); this build is not kept"


@contextlib.contextmanager
def _workplace() -> Iterator[Path]:
    """A folder for this build, removed afterwards."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="layoutproof-"))
    except OSError as problem:
        raise error(
            codes.NOWHERE_TO_BUILD,
            f"there is no folder to build in: {problem}",
            help="set TMPDIR to a folder that can be written",
        ) from problem
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep_source(order: _Order) -> Path:
    """The source, kept outside of the cache, which cannot be written. The key in its name keeps kernels apart."""
    name = f"layoutproof-{os.getuid()}-{order.key[:16]}-{order.name}.c"
    try:
        return _write_whole(order.text.encode(), Path(tempfile.gettempdir()), name)
    except OSError as problem:
        raise error(
            codes.NOWHERE_TO_BUILD,
            f"the generated source cannot be written: {problem}",
            help="set TMPDIR to a folder that can be written",
        ) from problem


def _publish(content: bytes, folder: Path, name: str) -> Path:
    """Write a file into a folder of the cache. Raises OSError."""
    make_private(folder)
    _sweep(folder)
    return _write_whole(content, folder, name)


def _write_whole(content: bytes, folder: Path, name: str) -> Path:
    """Write a file atomically. Raises OSError."""
    with replacing(folder / name) as part:
        part.write_bytes(content)
    return folder / name


def _sweep(folder: Path) -> None:
    """Remove unfinished files of processes that died."""
    limit = time.time() - _STALE_SECONDS
    for part in folder.glob(".*.part"):
        with contextlib.suppress(OSError):
            if part.stat().st_mtime < limit:
                part.unlink()


def _find(folder: Path, *, mend: bool = False) -> Path | None:
    """A whole library in `folder`. With `mend`, for the holder of its lock, damaged ones are removed."""
    for path in sorted(folder.glob("*.so")):
        try:
            with path.open("rb") as file:
                own = written_by_others(os.fstat(file.fileno())) is None
                whole = own and hashlib.sha256(file.read()).hexdigest() == path.stem
        except OSError:
            continue
        if whole:
            return path
        if mend:
            with contextlib.suppress(OSError):
                path.unlink()
    return None


def _load_or_remove(path: Path) -> ctypes.CDLL:
    """A library just published, which is removed if it cannot be loaded."""
    try:
        return _load(path)
    except LayoutproofError:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def _load(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as problem:
        raise error(
            codes.NOT_LOADED,
            f"the built library cannot be loaded: {problem}",
            help="a folder mounted noexec cannot hold kernels: set LAYOUTPROOF_CACHE and TMPDIR to others",
        ) from problem


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
        # Rounded once: ml_dtypes goes through a float32.
        return ctypes.c_uint16(int(np.array(round_float(value, dtype), dtype=numpy_dtype(dtype)).view(np.uint16)))
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
