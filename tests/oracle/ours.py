"""The tool's side of the comparison: the interpreter's results, and one C library of many functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp.memory import Fault
from layoutproof.ir.interp.run import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.codegen.c import CSource
from layoutproof.lowering.runtime.compiler import compile_library, find_compiler
from layoutproof.lowering.schedule.schedule import LOWERING

Array = np.ndarray[Any, Any]
Runs = Sequence[Sequence[Array]]

_LIMIT = 200_000
_OWN = re.compile(r"\b(lp_\w+)\b")
_ENUM = re.compile(r"^enum \{ LP_OK.*$", re.MULTILINE)


@dataclass(frozen=True)
class Interpreted:
    """A function that was read, and for each run its outputs, or None where it faults; or why it was not read."""

    func: PrimFunc | None
    outputs: tuple[tuple[Array, ...] | None, ...] = ()
    reason: str = ""


def interpret(text: str, runs: Runs, *, plain: bool = False) -> Interpreted:
    """The results of the interpreter; `plain` takes the evaluator that walks the tree."""
    try:
        func = loads(text)
    except LayoutproofError as problem:
        return Interpreted(None, (), str(problem))
    outputs: list[tuple[Array, ...] | None] = []
    for arguments in runs:
        try:
            found = run(func, arguments, limit=_LIMIT, plain=plain)
            outputs.append(tuple(found.arrays[b.name] for b in func.buffers))
        except Fault:
            outputs.append(None)
    return Interpreted(func, tuple(outputs))


def lowered(func: PrimFunc) -> PrimFunc:
    """A function after the passes that every build takes; what they propose is compared here, not proved."""
    for step in LOWERING:
        func = step.propose(func).new
    return func


def build_library(sources: Mapping[str, CSource], folder: Path) -> Path:
    """One library with all functions, each under its key."""
    compiler = find_compiler()
    openmp = any(source.uses_openmp for source in sources.values())
    path, library = folder / "batch.c", folder / "batch.so"
    path.write_text(
        "".join(_unit(key, source, number == 0) for number, (key, source) in enumerate(sources.items())),
        encoding="utf-8",
    )
    compile_library(compiler, path, library, compiler.flags(openmp=openmp))
    return library


def _unit(key: str, source: CSource, first: bool) -> str:
    """The text of a function for a file that it shares with others: its own helpers have its name in theirs, its entry
    is the key.
    """
    text = source.text if first else _ENUM.sub("", source.text)
    text = _OWN.sub(rf"{key}_\1", text)
    return re.sub(rf"\b{re.escape(source.entry)}\(", f"{key}(", text)


def renamed(func: PrimFunc, name: str) -> PrimFunc:
    """The function under another name."""
    return replace(func, name=name)
