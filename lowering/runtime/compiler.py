"""Finding and running a C compiler: its command, its features, and the errors where there is none or it fails."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.c import FLAGS

_CANDIDATES = ("cc", "gcc", "clang")
_SECONDS = 600  # time limit of a compiler
_SHOWN_LINES = 40  # of what it says

# None of these changes a result. Generated code does not read errno and trap flags.
_OPTIMISE = ("-O3", "-fno-math-errno")
# Vectorizes loops with math functions. With it GCC makes a truncation of a cast to an integer and back, whose zero may
# be negative: it is not for programs in which a float becomes an integer.
_LANES = ("-fno-trapping-math",)
# Compilers fold these at constants, rounded better than by the library, which the interpreter calls too.
_CALLED = tuple(
    f"-fno-builtin-{name}" for name in "exp exp2 log log2 log10 tanh sinh cosh sin cos tan atan erf pow".split()
)
_SHARED = ("-shared", "-fPIC")

# What -ffast-math stands for, one by one: under that name some compilers also link code that turns subnormals off for
# the whole process that loads the library.
_FAST = (
    "-DLP_FAST",
    "-fassociative-math",
    "-freciprocal-math",
    "-fno-signed-zeros",
    "-ffinite-math-only",
    "-ffp-contract=fast",
)
_ZIG = ("-fno-sanitize=undefined",)

# Messages of compilers, assemblers and linkers on a full disk.
_NO_ROOM = ("No space left on device", "Disk quota exceeded", "File too large", "File size limit exceeded")
_ASKING = threading.Lock()


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler's command, its version text, and the optional flags that work with it."""

    command: tuple[str, ...]
    identity: str
    native: bool
    openmp: bool

    def flags(self, *, openmp: bool, fast: bool = False, truncates: bool = True) -> tuple[str, ...]:
        """The flags for a kernel: safe ones, unless `fast`; OpenMP if the text uses it and it works. `truncates`: some
        float becomes an integer.
        """
        chosen = [*FLAGS, *_OPTIMISE, *(() if truncates else _LANES), *_CALLED, *_SHARED]
        chosen += ["-march=native"] if self.native else []
        chosen += ["-fopenmp"] if openmp and self.openmp else []
        chosen += _FAST if fast else ()
        return (*chosen, *(_ZIG if "ziglang" in self.command else ()))

    def invocation(self, source: Path, library: Path, flags: Sequence[str]) -> list[str]:
        """The command line."""
        return [*self.command, *flags, "-o", str(library), str(source), "-lm"]


def find_compiler() -> Compiler:
    """The compiler `$CC` names, else `cc`, `gcc` or `clang` on the path, else the `ziglang` package.

    A `$CC` that cannot be run is refused, not replaced. Raises LayoutproofError (LP410) where there is none.
    """
    named = os.environ.get("CC", "").strip()
    if named:
        command = _split(named)
        if shutil.which(command[0]) is None:
            raise error(
                codes.NO_COMPILER,
                f"the C compiler that the environment variable CC names cannot be run: {named}",
                help="set CC to a C compiler, or unset it to have cc, gcc, clang or the ziglang package found",
            )
        return _examine(command, os.environ.get("PATH", ""))
    for name in _CANDIDATES:
        path = shutil.which(name)
        if path is not None:
            return _examine((path,), os.environ.get("PATH", ""))
    if importlib.util.find_spec("ziglang") is not None:
        return _examine((sys.executable, "-P", "-m", "ziglang", "cc"), os.environ.get("PATH", ""))
    raise error(
        codes.NO_COMPILER,
        f"no C compiler was found: neither {', '.join(_CANDIDATES)} on the path nor the ziglang package",
        help="install one (Debian and Ubuntu: apt install gcc; macOS: xcode-select --install; anywhere: pip install "
        "ziglang), or set CC",
    )


def _split(named: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(named))
    except ValueError as problem:
        raise error(
            codes.NO_COMPILER, f"the environment variable CC cannot be read as a command: {named} ({problem})"
        ) from problem


def _examine(command: tuple[str, ...], path: str) -> Compiler:
    """A compiler's version and features, once per process. `path` is what the answer depends on besides the command."""
    with _ASKING:
        return _asked(command, path)


@lru_cache(maxsize=32)
def _asked(command: tuple[str, ...], path: str) -> Compiler:
    version = _run([*command, "--version"])
    program = shutil.which(command[0], path=path) or command[0]
    identity = f"{version.stdout}{version.stderr}\n{' '.join(command)}\n{_stamp(program)}"
    return Compiler(command, identity, _works(command, "-march=native"), _works(command, "-fopenmp"))


def _stamp(program: str) -> str:
    try:
        status = os.stat(os.path.realpath(program))
    except OSError:
        return program
    return f"{os.path.realpath(program)} {status.st_size} {status.st_mtime_ns}"


def _works(command: tuple[str, ...], flag: str) -> bool:
    """Whether the compiler builds a library with `flag`. Raises LayoutproofError (LP413) if the disk is full."""
    try:
        with tempfile.TemporaryDirectory(prefix="layoutproof-") as folder:
            source, library = Path(folder, "probe.c"), Path(folder, "probe.so")
            source.write_text("int layoutproof_probe(void) { return 0; }\n", encoding="ascii")
            done = _run([*command, flag, *_SHARED, "-o", str(library), str(source)])
    except OSError as problem:
        raise _no_room(str(problem)) from problem
    if done.returncode != 0:
        _check_room(done)
    return done.returncode == 0


def _check_room(done: subprocess.CompletedProcess[str]) -> None:
    """Raise LayoutproofError (LP413) where a compiler failed because the disk is full."""
    for line in (done.stderr + done.stdout).splitlines():
        if any(words.lower() in line.lower() for words in _NO_ROOM):
            raise _no_room(line.strip())


def _no_room(why: str) -> LayoutproofError:
    return error(
        codes.NOWHERE_TO_BUILD,
        f"the compiler's files cannot be written: {why}",
        help="make room for temporary files, or set TMPDIR to a folder with some",
    )


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a compiler. Raises LayoutproofError (LP410, LP411) where it cannot be started or does not end."""
    environment = {**os.environ, "LC_ALL": "C"}
    nothing = subprocess.DEVNULL
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            stdin=nothing,
            env=environment,
            check=False,
        )
    except OSError as problem:
        raise error(
            codes.NO_COMPILER, f"the C compiler cannot be run: {shlex.join(command)}: {problem.strerror}"
        ) from problem
    except subprocess.TimeoutExpired as problem:
        raise error(
            codes.COMPILER_FAILED, f"the C compiler did not end within {_SECONDS} seconds: {shlex.join(command)}"
        ) from problem


@lru_cache(maxsize=1)
def machine() -> str:
    """What `-march=native` depends on: the processor's kind and features."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    wanted = ("model name", "flags", "Features", "CPU part", "CPU implementer")
    features = sorted({line for line in lines if line.startswith(wanted)})
    about = "\n".join((platform.system(), platform.machine(), platform.processor(), *features))
    return hashlib.sha256(about.encode()).hexdigest()


def compile_library(compiler: Compiler, source: Path, library: Path, flags: Sequence[str]) -> str:
    """Build `library` from `source`; gives the command as typed.

    Raises LayoutproofError (LP411) with the compiler's message, the command and the source's path, LP413 if the disk is
    full.
    """
    command = compiler.invocation(source, library, flags)
    done = _run(command)
    if done.returncode != 0 or not library.is_file():
        _check_room(done)
        output = (done.stderr + done.stdout).strip()
        raise error(
            codes.COMPILER_FAILED,
            f"the C compiler failed (exit code {done.returncode}) on {source}\n  command: {shlex.join(command)}\n"
            f"  it said: {_first_lines(output) if output else 'nothing'}",
            help="set CC to another compiler; the source is kept at the path above",
        )
    return shlex.join(command)


def _first_lines(text: str) -> str:
    lines = text.splitlines()
    more = [f"(and {len(lines) - _SHOWN_LINES} lines more)"] if len(lines) > _SHOWN_LINES else []
    return "\n    ".join([*lines[:_SHOWN_LINES], *more])
