"""Finding and running a C compiler: what is said where there is none, where it fails, and what it is asked for."""

import importlib.util
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest
from tests.lowering.codegen.programs import function, loop

from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, ForKind
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.runtime.build_c import build_c
from layoutproof.lowering.runtime.compiler import find_compiler


def copy(extent: int = 4, kind: ForKind = ForKind.SERIAL) -> PrimFunc:
    """B is A."""
    a, b = make_buffer("A", (extent,), "float32"), make_buffer("B", (extent,), "float32")
    return function("copy", [a, b], loop("i", extent, lambda i: BufferStore(b, (i,), BufferLoad(a, (i,))), kind))


def script(folder: Path, name: str, text: str) -> Path:
    """A program of the shell."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.usefixtures("own_cache")
def test_named_compiler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CC that cannot be run is named, and not replaced by another compiler."""
    monkeypatch.setenv("CC", "/nonexistent/cc -O1")
    with pytest.raises(LayoutproofError, match="/nonexistent/cc -O1") as caught:
        build_c(copy(), check=False)
    assert caught.value.diagnostics[0].code == codes.NO_COMPILER
    assert "set CC to a C compiler" in str(caught.value)


@pytest.mark.usefixtures("own_cache")
def test_unreadable_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CC with a quote that does not end is an error of its own."""
    monkeypatch.setenv("CC", "gcc 'x")
    with pytest.raises(LayoutproofError, match="cannot be read as a command"):
        find_compiler()


def test_no_compiler_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With an empty path and no package, the message says what to install."""
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LayoutproofError, match="no C compiler was found") as caught:
        find_compiler()
    assert caught.value.diagnostics[0].code == codes.NO_COMPILER
    assert all(word in str(caught.value) for word in ("apt install gcc", "pip install ziglang", "CC"))


@pytest.mark.usefixtures("own_cache")
def test_compiler_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its message, the command and the path of the source, which is there."""
    failing = script(tmp_path, "failing", 'echo "kernel.c:1: I do not like this" >&2; exit 3')
    monkeypatch.setenv("CC", str(failing))
    with pytest.raises(LayoutproofError) as caught:
        build_c(copy(), check=False)
    text = str(caught.value)
    assert caught.value.diagnostics[0].code == codes.COMPILER_FAILED
    assert "I do not like this" in text and "exit code 3" in text and f"command: {failing}" in text
    source = Path(text.split(" on ")[1].splitlines()[0])
    assert "copy" in source.read_text(encoding="utf-8")


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("command", ["false", "true"])
def test_something_that_is_no_compiler(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that fails, or succeeds and makes nothing, is reported as a failed compiler."""
    monkeypatch.setenv("CC", command)
    with pytest.raises(LayoutproofError) as caught:
        build_c(copy(), check=False)
    assert caught.value.diagnostics[0].code == codes.COMPILER_FAILED


@pytest.mark.usefixtures("own_cache")
def test_output_that_is_no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file that the system cannot load is an error that says so."""
    monkeypatch.setenv(
        "CC", str(script(tmp_path, "odd", 'while [ "$1" != "-o" ]; do shift; done; echo nonsense > "$2"'))
    )
    with pytest.raises(LayoutproofError, match="cannot be loaded") as caught:
        build_c(copy(), check=False)
    assert caught.value.diagnostics[0].code == codes.NOT_LOADED


@pytest.mark.usefixtures("own_cache")
def test_compiler_with_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """CC may carry flags; they stand in the command that the report gives."""
    monkeypatch.setenv("CC", "cc -DEXTRA=1")
    kernel = build_c(copy())
    assert "-DEXTRA=1" in kernel.report.command


@pytest.mark.usefixtures("own_cache")
def test_compiler_without_openmp(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where OpenMP does not work a parallel loop is a plain one, and the report says so."""
    real = shutil.which("cc")
    check = f'for a in "$@"; do [ "$a" = "-fopenmp" ] && exit 1; done; exec {real} "$@"'
    monkeypatch.setenv("CC", str(script(tmp_path, "plain", check)))
    kernel = build_c(copy(kind=ForKind.PARALLEL))
    assert not kernel.report.openmp
    assert any("OpenMP" in note for note in kernel.report.notes)


def test_flags_take_no_fast_math() -> None:
    """Safe flags always; fast-math only when asked for; OpenMP only where the text uses it."""
    compiler = find_compiler()
    flags = compiler.flags(openmp=False)
    assert {"-std=c11", "-ffp-contract=off", "-fwrapv"} <= set(flags)
    assert not {"-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-fopenmp"} & set(flags)
    assert "-fassociative-math" in compiler.flags(openmp=False, fast=True)


@pytest.mark.usefixtures("own_cache")
def test_fast_is_named_in_the_report() -> None:
    """A fast-math assumption that was taken by the compiler does not go unsaid, and the kernel is compared all the
    same.
    """
    report = build_c(copy(), fast=True).report
    assert (
        report.fast
        and any("fast math" in note for note in report.notes)
        and report.self_check == "equal to the interpreter, bit for bit"
    )


@pytest.mark.usefixtures("own_cache")
def test_fast_kernels_leave_the_process_alone() -> None:
    """Loading a fast kernel does not turn subnormals off for everybody else."""
    build_c(copy(), fast=True)
    tiny = np.array([1e-40], dtype=np.float32)
    assert (tiny * np.float32(0.5))[0] > 0
