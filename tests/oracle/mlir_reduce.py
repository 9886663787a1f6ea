"""`python -m tests.oracle.mlir_reduce FILE.mlir PASSES...`: a smaller function that the passes still get wrong.

Lines, and blocks in braces, are left out as long as LLVM's runs of the function before and after the passes differ.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from random import Random

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import Fault
from tests.oracle.mlir import Rewritten, arguments_for, differences, run_by_llvm, run_by_us
from tests.oracle.mlir_hunt import OptFailed, run_opt
from tests.random.mlir_programs import Argument, Program

_SIZES = (0, 1, 3, 8)


def arguments_of(text: str) -> list[Argument]:
    """The memrefs of the only function of a text."""
    found = []
    for name, extents, element in re.findall(r"%(\w+): memref<((?:[?\d]+x)*)(\w+)>", text.splitlines()[0]):
        shape = tuple(None if each == "?" else int(each) for each in extents.split("x") if each)
        found.append(Argument(name, element, shape))
    return found


def runs_differ(text: str, passes: tuple[str, ...]) -> list[str]:
    """Where the runs differ, for several sizes; nothing if the text is no module any more."""
    try:
        plain, after = run_opt(text, ("-verify-diagnostics",)), run_opt(text, passes)
    except OptFailed:
        return []
    arguments = arguments_of(text)
    match = re.search(r"func.func @(\w+)\(", text)
    assert match is not None
    name = match[1]
    sides = []
    for suffix, module in (("", plain), ("_after", after)):
        inner = re.sub(r"\Amodule \{\n|\}\s*\Z", "", module).replace(f"@{name}(", f"@{name}{suffix}(")
        sides.append(Rewritten(f"{name}{suffix}", arguments, module=inner))
    calls = []
    for size in _SIZES:
        random = Random(size)
        calls.append((size, min(size, 2), arguments_for(random, Program(name, arguments), size)))
    try:
        # What reads memory before it is written, or out of bounds, is no function to look at.
        ours = [run_by_us(sides[0], call) for call in calls]
    except (Fault, LayoutproofError):
        return []
    try:
        results = run_by_llvm([s for s in sides for _ in calls], calls * 2)
    except (AssertionError, subprocess.TimeoutExpired):
        return []
    found = []
    for call, own, one, other in zip(calls, ours, results[: len(calls)], results[len(calls) :], strict=True):
        if differences(own, one):
            return []
        found += [f"size {call[0]}, index {call[1]}: {text}" for text in differences(one, other)]
    return found


def smaller(lines: list[str]) -> list[list[str]]:
    """The lines without a block, without its braces, or without one line; most is left out first."""
    found = []
    for start, line in enumerate(lines[1:-2], 1):
        if line.rstrip().endswith("{"):
            depth = 0
            for end in range(start, len(lines)):
                depth += lines[end].count("{") - lines[end].count("}")
                if depth == 0:
                    break
            found.append(lines[:start] + lines[end + 1 :])
        elif not line.strip().startswith("}"):
            found.append(lines[:start] + lines[start + 1 :])
    return sorted(found, key=len)


def reduced(text: str, passes: tuple[str, ...]) -> str:
    """The smallest text found."""
    lines = text.rstrip().splitlines()
    changed = True
    while changed:
        changed = False
        for candidate in smaller(lines):
            if runs_differ("\n".join(candidate) + "\n", passes):
                lines, changed = candidate, True
                break
    return "\n".join(lines) + "\n"


def fewer(text: str, passes: tuple[str, ...]) -> tuple[str, ...]:
    """The passes without those that are not needed."""
    for position in range(len(passes)):
        rest = passes[:position] + passes[position + 1 :]
        if runs_differ(text, rest):
            return fewer(text, rest)
    return passes


def main() -> int:
    """Run from the command line."""
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    passes = tuple(sys.argv[2:])
    if not runs_differ(text, passes):
        print("the runs do not differ")
        return 1
    passes = fewer(text, passes)
    found = reduced(text, passes)
    print(" ".join(passes))
    print(found)
    print("\n".join(runs_differ(found, passes)[:3]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
