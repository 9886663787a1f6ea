"""Generated C called from a plain C program, under the address and undefined-behaviour sanitizers.

The program allocates every array at its exact size, so that a step outside is seen, and is compiled without the flags
that make overflow and type punning defined, so that generated code which leans on them is seen too.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from tests.lowering.codegen.programs import Array, numpy_type

from layoutproof.lowering.codegen.c import CSource
from layoutproof.lowering.codegen.c_types import storage_type

WARNINGS = ("-Wall", "-Wextra", "-Werror")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1")


def compile_c(folder: Path, *arguments: str) -> None:
    """Run the C compiler; fail with its message."""
    done = subprocess.run(
        ["cc", "-std=c11", "-ffp-contract=off", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def write_source(source: CSource, folder: Path) -> None:
    """`kernel.c`, which includes its own header, and `kernel.h`."""
    (folder / "kernel.c").write_text(f'#include "kernel.h"\n{source.text}', encoding="utf-8")
    (folder / "kernel.h").write_text(source.header, encoding="utf-8")


def compiles_cleanly(source: CSource, folder: Path, *flags: str) -> None:
    """Fail unless the source and its header pass with all warnings as errors."""
    write_source(source, folder)
    compile_c(folder, *WARNINGS, *flags, "-c", "kernel.c", "-o", "kernel.o")


def run_sanitized(
    source: CSource, folder: Path, arrays: Mapping[str, Array], scalars: Mapping[str, int] | None = None
) -> dict[str, Array]:
    """The arrays after one call from a C program that has seen the header alone. Fails where a sanitizer has something
    to say.
    """
    write_source(source, folder)
    lines = ["#include <stdio.h>", "#include <stdlib.h>", '#include "kernel.h"', "int main(void) {", "    FILE *file;"]
    calls: list[str] = []
    after: list[str] = []
    for position, parameter in enumerate(source.parameters):
        if parameter.buffer is None:
            calls.append(str((scalars or {})[parameter.name]))
            continue
        array = np.ascontiguousarray(arrays[parameter.name])
        array.tofile(folder / f"{position}.bin")
        kind, name = storage_type(parameter.dtype), f"p{position}"
        lines.append(f"    {kind} *{name} = malloc({array.nbytes});")
        lines.append(f'    file = fopen("{position}.bin", "rb");')
        lines.append(f"    if (fread({name}, 1, {array.nbytes}, file) != {array.nbytes}) return 90;")
        lines.append("    fclose(file);")
        after += [
            f'    file = fopen("{position}.out", "wb");',
            f"    fwrite({name}, 1, {array.nbytes}, file);",
            "    fclose(file);",
        ]
        after.append(f"    free({name});")
        calls.append(name)
    lines += [f"    int code = {source.entry}({', '.join(calls)});", *after, "    return code;", "}"]
    (folder / "main.c").write_text("\n".join(lines) + "\n", encoding="utf-8")
    compile_c(folder, *WARNINGS, *SANITIZERS, "main.c", "kernel.c", "-o", "program", "-lm")
    done = subprocess.run(
        ["./program"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1"},
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr[:3000]}"
    found = {}
    for position, parameter in enumerate(source.parameters):
        if parameter.buffer is not None:
            shape = arrays[parameter.name].shape
            found[parameter.name] = np.fromfile(folder / f"{position}.out", dtype=numpy_type(parameter.dtype)).reshape(
                shape
            )
    return found
