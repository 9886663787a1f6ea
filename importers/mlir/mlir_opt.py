"""An installed mlir-opt: run with the passes of a user, and the module after each of them."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from layoutproof.importers.mlir import codes
from layoutproof.ir.diagnostic import error

# The newest first; distributions add the version to the name.
_NAMES = ("mlir-opt", *(f"mlir-opt-{version}" for version in range(25, 16, -1)))
_FOLDERS = tuple(f"/usr/lib/llvm-{version}/bin" for version in range(25, 16, -1))
_DUMP = re.compile(
    r"^// -----// IR Dump After (?P<failed>Failed )?(?P<pass>\S+)(?: \((?P<argument>[^)]*)\))?.*//----- //$"
)
_SECONDS = 600


@dataclass(frozen=True)
class Dump:
    """A module as text, after a pass."""

    name: str
    text: str


def find_mlir_opt(given: str | None = None) -> str:
    """The program's path. Raises LayoutproofError where it is not installed."""
    if given is not None:
        found = shutil.which(given)
        if found is None:
            raise error(codes.MLIR_TOOL, f"{given} is no program that can be run")
        return found
    for name in _NAMES:
        if (found := shutil.which(name)) is not None:
            return found
    for folder in _FOLDERS:
        if (found := shutil.which("mlir-opt", path=folder)) is not None:
            return found
    raise error(
        codes.MLIR_TOOL,
        "mlir-opt is not installed",
        help="Debian and Ubuntu: apt install mlir-19-tools; --mlir-opt-path names another one",
    )


def run_passes(program: str, path: Path, arguments: str) -> list[Dump]:
    """The module as mlir-opt reads it, and after each pass that it ran, in order.

    Raises LayoutproofError with mlir-opt's message where it fails.
    """
    try:
        given = shlex.split(arguments)
    except ValueError as problem:
        raise error(codes.MLIR_TOOL, f"--mlir-opt {arguments!r}: {problem}") from problem
    first = _run([program, str(path)])
    printing = ["--mlir-print-ir-after-all", "--mlir-print-ir-module-scope", "--mlir-disable-threading"]
    done = _run([program, str(path), *given, *printing])
    return [Dump("as read", first.stdout), *_dumps(done.stderr)]


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, UnicodeDecodeError) as problem:
        raise error(codes.MLIR_TOOL, f"{command[0]} cannot be run: {problem}") from problem
    except subprocess.TimeoutExpired as problem:
        raise error(codes.MLIR_TOOL, f"{command[0]} did not end in {_SECONDS} s") from problem
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if "error:" in line]
        words = said[0] if said else done.stderr.strip() or f"it ended with {done.returncode}"
        raise error(codes.MLIR_TOOL, f"{shlex.join(command)}: {words}")
    return done


def _dumps(text: str) -> Iterator[Dump]:
    name, lines = "", list[str]()
    for line in text.splitlines():
        found = _DUMP.match(line)
        if found is None:
            lines.append(line)
            continue
        if name:
            yield Dump(name, "\n".join(lines) + "\n")
        name = found["argument"] if found["argument"] is not None else found["pass"]
        lines = []
    if name:
        yield Dump(name, "\n".join(lines) + "\n")
