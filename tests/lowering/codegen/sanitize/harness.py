"""Generated C under the address and undefined-behaviour sanitizers: several calls in one program, on heap blocks of
exactly their size.

The program is compiled without the flags that make overflow and type punning defined, so that text which leans on them
is seen too. What the calls leave is compared with the reference interpreter, cell by cell.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.lowering.codegen.programs import Array, bits_of, numpy_type

from layoutproof.ir.dtype import DType
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.interp import run
from layoutproof.ir.interp.memory import DEFINED, FORBIDDEN
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.codegen.c import CSource, emit_c
from layoutproof.lowering.codegen.c_types import storage_type

WARNINGS = ("-std=c11", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror")
SANITIZERS = ("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all")
QUIET = {
    "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1:detect_stack_use_after_return=1",
    "OMP_NUM_THREADS": "2",
}


@dataclass(frozen=True)
class Call:
    """One call of a lowered function: what it is called, the symbols' values, the width of indices, and how its arrays
    lie.

    With `shifted`, arrays begin one element behind what the allocator gave: aligned to their elements and to nothing
    more.
    """

    name: str
    func: PrimFunc
    symbols: Mapping[str, int]
    index_bits: int | None = None
    shifted: bool = False

    @property
    def source(self) -> CSource:
        """The C, with a function name of its own."""
        return emit_c(replace(self.func, name=self.name), index_bits=self.index_bits)


def sanitize(calls: Sequence[Call], folder: Path, *flags: str) -> None:
    """Compile the calls into one program, run it, compare. Fails for a warning, for anything that a sanitizer says, for
    a difference.
    """
    sources = [call.source for call in calls]
    arguments = [made_up(call, source, seed) for seed, (call, source) in enumerate(zip(calls, sources, strict=True))]
    _write(calls, sources, arguments, folder)
    names = [f"k{number}.c" for number in range(len(calls))]
    _run(
        ["cc", *WARNINGS, *SANITIZERS, *(flags if flags else ("-O1",)), "main.c", *names, "-o", "program", "-lm"],
        folder,
    )
    said = _run(["./program"], folder)
    assert said == "", said
    left = np.fromfile(folder / "after.bin", dtype=np.uint8)
    for call, source, given in zip(calls, sources, arguments, strict=True):
        left = _compare(call, source, given, left)
    assert left.size == 0


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **QUIET}, timeout=300
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}\n{said[:4000]}"
    return said


def made_up(call: Call, source: CSource, seed: int) -> dict[str, Any]:
    """Arrays and scalars: numbers of both signs, with zeros of both signs, infinities, NaNs and subnormals among the
    floats.
    """
    generator = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for parameter in source.parameters:
        if parameter.buffer is not None:
            shape = tuple(int(evaluate(extent, call.symbols)) for extent in parameter.buffer.shape)
            lanes = (parameter.dtype.lanes,) if parameter.dtype.lanes > 1 else ()
            found[parameter.name] = _values(generator, (*shape, *lanes), parameter.dtype)
        else:
            found[parameter.name] = call.symbols[parameter.name]
    return found


def _values(generator: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    if dtype.is_float:
        values = generator.standard_normal(shape)
        kind = generator.random(shape)
        for number, special in enumerate((0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40)):
            values = np.where((kind >= number * 0.004) & (kind < (number + 1) * 0.004), special, values)
        return values.astype(numpy_type(dtype))
    low, high = (0, 2) if dtype.is_bool else (dtype.min_int, dtype.max_int + 1)
    # The whole range: what wraps has to wrap in C as it does in the program, without overflowing.
    return generator.integers(low, high, shape, dtype=np.int64 if low < 0 or dtype.bits < 64 else np.uint64).astype(
        numpy_type(dtype)
    )


# --- the program


def _write(
    calls: Sequence[Call], sources: Sequence[CSource], arguments: Sequence[Mapping[str, Any]], folder: Path
) -> None:
    for number, source in enumerate(sources):
        (folder / f"k{number}.h").write_text(source.header, encoding="utf-8")
        (folder / f"k{number}.c").write_text(f'#include "k{number}.h"\n{source.text}', encoding="utf-8")
    with (folder / "before.bin").open("wb") as file:
        for source, given in zip(sources, arguments, strict=True):
            for parameter in source.parameters:
                if parameter.buffer is not None:
                    file.write(given[parameter.name].tobytes())
    lines = ["#include <stdio.h>", "#include <stdlib.h>", *(f'#include "k{number}.h"' for number in range(len(calls)))]
    for number, (call, source, given) in enumerate(zip(calls, sources, arguments, strict=True)):
        lines += ["", f"static int call_{number}(FILE *in, FILE *out) {{", *_call(call, source, given), "}"]
    lines += ["", "int main(void) {", '    FILE *in = fopen("before.bin", "rb"), *out = fopen("after.bin", "wb");']
    lines += ["    if (in == NULL || out == NULL) return 90;"]
    lines += [f"    if (call_{number}(in, out) != 0) return {number + 1};" for number in range(len(calls))]
    lines += ["    fclose(in);", "    return fclose(out);", "}"]
    (folder / "main.c").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _call(call: Call, source: CSource, given: Mapping[str, Any]) -> Iterator[str]:
    """The body of a C function that reads the arrays, calls the kernel, and writes the arrays."""
    after: list[str] = []
    passed: list[str] = []
    for position, parameter in enumerate(source.parameters):
        if parameter.buffer is None:
            passed.append(str(given[parameter.name]))
            continue
        kind, size = storage_type(parameter.dtype), given[parameter.name].nbytes
        shift = f"sizeof({kind})" if call.shifted else "0"
        yield f"    char *m{position} = malloc({size} + {shift});"
        yield f"    {kind} *p{position} = ({kind} *)(void *)(m{position} + {shift});"
        yield f"    if (m{position} == NULL || fread(p{position}, 1, {size}, in) != {size}) return 91;"
        after += [f"    fwrite(p{position}, 1, {size}, out);", f"    free(m{position});"]
        passed.append(f"p{position}")
    yield f"    const int code = {source.entry}({', '.join(passed)});"
    yield from after
    yield "    return code;"


# --- the comparison


def _compare(call: Call, source: CSource, given: Mapping[str, Any], left: Array) -> Array:
    """Compare one call's arrays, which `left` begins with; what follows them."""
    expected = run(call.func, {**given, **call.symbols})
    for parameter in source.parameters:
        if parameter.buffer is None:
            continue
        before = given[parameter.name]
        found = left[: before.nbytes].view(before.dtype) if before.nbytes else before.reshape(-1)
        left = left[before.nbytes :]
        states = expected.states[parameter.name].reshape(-1)
        defined, untouchable = states == DEFINED, states == FORBIDDEN
        wanted = expected.arrays[parameter.name].reshape(-1)
        _assert_equal(f"{call.name}: {parameter.name}", found[defined], wanted[defined])
        _assert_equal(
            f"{call.name}: untouchable padding of {parameter.name}", found[untouchable], before.reshape(-1)[untouchable]
        )
    return left


def _assert_equal(what: str, found: Array, wanted: Array) -> None:
    places = np.flatnonzero(bits_of(found) != bits_of(wanted))
    assert places.size == 0, (
        f"{what}: element {places[0]} is {found[places[0]]!r}, not {wanted[places[0]]!r} ({places.size} differ)"
    )
