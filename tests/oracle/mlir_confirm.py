"""`python -m tests.oracle.mlir_confirm FOLDER NAME...`: refuted pairs of a folder, run by LLVM on the counterexample.

Accesses are checked as they run. What LLVM's code of the function after does differently, or does out of bounds where
that of the one before does not, is no fault of the verdict.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from layoutproof.importers.mlir.validation import compare_files
from layoutproof.verify.settings import Settings, within
from tests.oracle.hunt.mlir_hunt import run_opt
from tests.oracle.mlir import DTYPES, LOWERING, Arrays, Rewritten, differences, run_by_llvm
from tests.random.mlir_programs import Argument

# Maps are lowered before anything is folded: what folds them is among what is looked into.
CHECKED = ("-lower-affine", "-inline", LOWERING[0], LOWERING[1], "-generate-runtime-verification", *LOWERING[2:])
_HEAD = re.compile(r"func\.func @(\w+)\((.*?)\)(?: -> (\S+))? (?:attributes \{.*\} )?\{$", re.MULTILINE)


class NotRun(Exception):
    """Functions that have no run here, and why."""


def confirmed(before: str, after: str, example: Mapping[str, Any]) -> list[str]:
    """What LLVM's runs of both do differently; nothing where they agree. Raises NotRun."""
    found: list[Arrays | str] = []
    for text, suffix in ((before, "_before"), (after, "_after")):
        program, call = wrapped(text, suffix, example)
        try:
            found += run_by_llvm([program], [(0, 0, call)], CHECKED)
        except AssertionError as problem:
            # A check that fails ends with abort().
            if not str(problem).startswith(f"{-signal.SIGABRT}:"):
                raise NotRun(str(problem)[:300]) from problem
            found.append("out of bounds")
    old, new = found
    if isinstance(old, str):
        return []
    return [f"after: {new}"] if isinstance(new, str) else differences(old, new)


def wrapped(text: str, suffix: str, example: Mapping[str, Any]) -> tuple[Rewritten, Arrays]:
    """A function of memories that calls the one of a text with the values of a counterexample, and the memories."""
    if "tensor.pack" in text or "tensor.unpack" in text:
        text = run_opt(text, ("transform:lower_packs",))
    head = _HEAD.search(text)
    if head is None:
        raise NotRun("the function has an unusual head")
    symbols = {**example.get("symbols", {}), **example.get("values", {})}
    arguments: list[Argument] = []
    arrays: Arrays = []
    lines, given = [], []

    def memory(name: str, kind: str) -> str:
        element, shape = _shape(kind, name, symbols, example)
        argument = Argument(name, element, shape)
        arguments.append(argument)
        arrays.append(_contents(name, argument, symbols, example))
        return argument.type

    for name, kind in re.findall(r"%(\w+): ((?:\w+<.*?>|\w+))(?=,|$)", head[2]):
        own = memory(name, kind)
        lines += _received(name, kind, own)
        given.append((f"%{name}_v", kind))
    result = head[3]
    called = f"func.call @{head[1]}{suffix}({', '.join(n for n, _ in given)}) : ({', '.join(k for _, k in given)}) -> "
    lines.append(f"%r = {called}{result}" if result is not None else f"{called}()")
    if result is not None:
        lines += _returned(result, memory("result0", result))
    inner = re.sub(r"^module \{$|^\}$", "", text, flags=re.MULTILINE)
    inner = inner.replace("func.func @", "func.func private @").replace(f"@{head[1]}(", f"@{head[1]}{suffix}(")
    return Rewritten(f"run{suffix}", arguments, lines, module=inner), arrays


def _shape(kind: str, name: str, symbols: Mapping[str, Any], example: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    """The element type and the extents of the memory that has a value."""
    inside = re.fullmatch(r"(?:memref|tensor)<((?:[?\d]+x)*)(\w+)>", kind)
    if inside is None:
        if "<" in kind:
            raise NotRun(f"a value of type {kind}")
        return ("i64" if kind == "index" else kind), (1,)
    if inside[2] not in DTYPES:
        raise NotRun(f"elements of type {inside[2]}")
    known = example.get("inputs", {}).get(name)
    if known is not None:
        return inside[2], tuple(known["shape"])
    extents = [each for each in inside[1].split("x") if each]
    return inside[2], tuple(int(symbols.get(f"{name}_{k}", 0) if e == "?" else e) for k, e in enumerate(extents))


def _contents(name: str, argument: Argument, symbols: Mapping[str, Any], example: Mapping[str, Any]) -> Any:
    dtype = np.dtype(DTYPES[argument.element])
    shape = tuple(extent or 0 for extent in argument.shape)
    known = example.get("inputs", {}).get(name)
    if known is None:
        return np.full(shape, symbols.get(name, 0), dtype)
    found = np.full(shape, _number(known.get("fill", 0)), dtype).reshape(-1)
    for position, each in known["others"] if "others" in known else enumerate(known["values"]):
        found[position] = _number(each)
    return found.reshape(shape)


def _number(said: Any) -> Any:
    return float.fromhex(said) if isinstance(said, str) else said


def _received(name: str, kind: str, own: str) -> list[str]:
    """Lines that make a value of a memory."""
    if kind.startswith("memref"):
        return [f"%{name}_v = memref.cast %{name} : {own} to {kind}"]
    if kind.startswith("tensor"):
        tensor = own.replace("memref", "tensor")
        return [
            f"%{name}_t = bufferization.to_tensor %{name} restrict : {own}",
            f"%{name}_v = tensor.cast %{name}_t : {tensor} to {kind}",
        ]
    lines = [f"%{name}_0 = arith.constant 0 : index", f"%{name}_n = memref.load %{name}[%{name}_0] : {own}"]
    cast = f"index_cast %{name}_n : i64 to index" if kind == "index" else f"bitcast %{name}_n : {kind} to {kind}"
    return [*lines, f"%{name}_v = arith.{cast}"]


def _returned(kind: str, own: str) -> list[str]:
    """Lines that store a result to its memory."""
    if kind.startswith("tensor"):
        tensor = own.replace("memref", "tensor")
        return [
            f"%r_t = tensor.cast %r : {kind} to {tensor}",
            f"bufferization.materialize_in_destination %r_t in writable %result0 : ({tensor}, {own}) -> ()",
        ]
    if "<" in kind:
        raise NotRun(f"a result of type {kind}")
    lines = ["%r_0 = arith.constant 0 : index"]
    if kind == "index":
        lines.append("%r_n = arith.index_cast %r : index to i64")
    return [*lines, f"memref.store {'%r_n' if kind == 'index' else '%r'}, %result0[%r_0] : {own}"]


def confirm(before: Path) -> tuple[str, list[str]]:
    """The verdict on a pair of files, and what LLVM's runs of the counterexample do differently. Raises NotRun."""
    after = before.with_name(before.name.replace(".before.", ".after."))
    with within(Settings(allowed=frozenset())):
        ((_, found),) = compare_files(before, after)
    example = found.verdicts[0].counterexample
    if example is None:
        return found.status.value, []
    return found.status.value, confirmed(before.read_text("utf-8"), after.read_text("utf-8"), example)


def main() -> int:
    """Run from the command line; exit code 1 where a refutation is not confirmed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    given = parser.parse_args()
    open_ones = 0
    for name in given.names:
        (before,) = given.folder.glob(f"{name}*.before.mlir")
        try:
            status, seen = confirm(before)
            why = "; ".join(seen) if seen else "LLVM's runs agree"
        except NotRun as problem:
            status, seen, why = "refuted", [], f"not run: {problem}"
        open_ones += not seen
        said = "confirmed" if seen else "open"
        print(f"{status}, {said}: {before.name.partition('.')[0]}: {why}", flush=True)
    return 1 if open_ones else 0


if __name__ == "__main__":
    sys.exit(main())
