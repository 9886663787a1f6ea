"""What LLVM's own code for a function of MLIR does: lowered by mlir-opt, run by mlir-cpu-runner on given bytes."""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt

from layoutproof.importers.mlir import read_functions
from layoutproof.importers.mlir.mlir_opt import find_mlir_opt
from layoutproof.ir.interp.run import run, same_values
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.codegen.mlir import emit_mlir
from layoutproof.lowering.lower.undef import RemoveAssume
from tests.random.mlir_programs import Program

Arrays = list[npt.NDArray[np.generic]]

# What arith-expand makes of maximumf, minimumf and ceildivsi is wrong for some operands (docs/wild-mlir.md): it gets
# only what has no other lowering.
LOWERING = (
    "-one-shot-bufferize", "-convert-linalg-to-loops", "-convert-vector-to-scf", "-lower-affine",
    "-expand-strided-metadata", "-lower-affine", "-convert-scf-to-cf", "-convert-arith-to-llvm", "-arith-expand",
    "-convert-math-to-llvm", "-convert-vector-to-llvm", "-convert-arith-to-llvm", "-finalize-memref-to-llvm",
    "-convert-func-to-llvm", "-convert-cf-to-llvm", "-reconcile-unrealized-casts",
)  # fmt: skip
_SECONDS = 120
DTYPES = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
_EDGES = {
    "f": (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, 0.1, 1e300),
    "i": (0, 1, -1, 2, -2, 7, -128, 127, -(1 << 31), (1 << 31) - 1, -(1 << 63), (1 << 63) - 1),
}


def arguments_for(random: Random, program: Program, size: int) -> Arrays:
    """Memories for a call with this size: edge values and small numbers."""
    found: Arrays = []
    for argument in program.arguments:
        shape = tuple(size if extent is None else extent for extent in argument.shape)
        dtype = np.dtype(DTYPES[argument.element])
        count = int(np.prod(shape))
        kind = dtype.kind
        values = [random.choice(_EDGES[kind]) if random.random() < 0.4 else random.randint(-9, 9) for _ in range(count)]
        with np.errstate(over="ignore"):
            if kind == "i":
                bits = 8 * dtype.itemsize
                values = [(int(v) + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1)) for v in values]
            found.append(np.array(values, dtype=dtype).reshape(shape))
    return found


def run_by_llvm(
    programs: Sequence[Program], calls: Sequence[tuple[int, int, Arrays]], lowering: Sequence[str] = LOWERING
) -> list[Arrays]:
    """The memories after a call of each program, with its size, its index and its memories, in one process."""
    text = "".join(dict.fromkeys(program.text for program in programs)) + _main(programs, calls)
    opt = find_mlir_opt()
    lowered = subprocess.run([opt, *lowering], input=text.encode(), capture_output=True, check=False)
    if lowered.returncode != 0:
        raise AssertionError(f"{lowered.stderr.decode()}\n{text}")
    runner = str(Path(opt).resolve().with_name("mlir-cpu-runner"))
    data = b"".join(array.tobytes() for _, _, arrays in calls for array in arrays)
    path = _kept(lowered.stdout)
    try:
        command = [runner, str(path), "-e", "main", "-entry-point-result=void", "-O0", f"-shared-libs={_library()}"]
        done = subprocess.run(command, input=data, capture_output=True, timeout=_SECONDS, check=False)
    finally:
        path.unlink()
    if done.returncode != 0 or len(done.stdout) != len(data):
        raise AssertionError(f"{done.returncode}: {done.stderr.decode()[:2000]}\n{text[:20000]}")
    return _taken_apart(done.stdout, calls)


@cache
def _library() -> str:
    """The shared library with what the lowered code calls, built once."""
    folder = tempfile.mkdtemp(prefix="mlir-oracle-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = f"{folder}/libcopy.so"
    source = str(Path(__file__).with_name("memref_copy.c"))
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def _kept(text: bytes) -> Path:
    with tempfile.NamedTemporaryFile(suffix=".mlir", delete=False) as file:
        file.write(text)
    return Path(file.name)


def _taken_apart(data: bytes, calls: Sequence[tuple[int, int, Arrays]]) -> list[Arrays]:
    found, start = [], 0
    for _, _, arrays in calls:
        results: Arrays = []
        for array in arrays:
            part = data[start : start + array.nbytes]
            results.append(np.frombuffer(part, dtype=array.dtype).reshape(array.shape))
            start += array.nbytes
        found.append(results)
    return found


def _main(programs: Sequence[Program], calls: Sequence[tuple[int, int, Arrays]]) -> str:
    """Reads each memory from the standard input, calls, and writes each memory."""
    lines = [
        "func.func private @read(i32, i64, i64) -> i64",
        "func.func private @write(i32, i64, i64) -> i64",
        "func.func @main() {",
        "  %in = arith.constant 0 : i32",
        "  %out = arith.constant 1 : i32",
    ]
    for number, (program, (size, index, arrays)) in enumerate(zip(programs, calls, strict=True)):
        lines.append(f"  %n{number} = arith.constant {size} : index")
        lines.append(f"  %k{number} = arith.constant {index} : index")
        names = []
        for argument, array in zip(program.arguments, arrays, strict=True):
            name = f"%{argument.name}_{number}"
            names.append(name)
            dynamic = ", ".join(f"%n{number}" for extent in argument.shape if extent is None)
            lines += [
                f"  {name} = memref.alloc({dynamic}) : {argument.type}",
                f"  {name}_p = memref.extract_aligned_pointer_as_index {name} : {argument.type} -> index",
                f"  {name}_i = arith.index_cast {name}_p : index to i64",
                f"  {name}_s = arith.constant {array.nbytes} : i64",
                f"  {name}_r = func.call @read(%in, {name}_i, {name}_s) : (i32, i64, i64) -> i64",
            ]
        types = ", ".join([*(argument.type for argument in program.arguments), "index"])
        given = ", ".join([*names, f"%k{number}"])
        lines.append(f"  func.call @{program.name}({given}) : ({types}) -> ()")
        lines += [f"  {name}_w = func.call @write(%out, {name}_i, {name}_s) : (i32, i64, i64) -> i64" for name in names]
    return "\n".join([*lines, "  return", "}"])


def read(program: Program) -> PrimFunc:
    """The function as it is translated. Raises LayoutproofError."""
    return read_functions(program.text, f"{program.name}.mlir")[program.name].program


def run_by_us(program: Program, call: tuple[int, int, Arrays], function: PrimFunc | None = None) -> Arrays:
    """The memories after a call, by the interpreter; `function` where the program was read before."""
    function = function if function is not None else read(program)
    _, index, arrays = call
    result = run(function, [*arrays, index])
    return [result[buffer.name] for buffer in function.buffers]


def printed(program: Program, function: PrimFunc | None = None) -> Program:
    """The function as it is printed again by `build --target mlir`, under another name."""
    found = RemoveAssume().propose(function if function is not None else read(program)).new
    inner = re.sub(r"\Amodule \{\n|\}\s*\Z", "", emit_mlir(found)).replace(f"@{program.name}(", f"@{program.name}_p(")
    names = ", ".join(f"%{argument.name}" for argument in program.arguments)
    types = ", ".join([*(argument.type for argument in program.arguments), "i64"])
    lines = [
        "%k_p = arith.index_cast %k : index to i64",
        f"func.call @{program.name}_p({names}, %k_p) : ({types}) -> ()",
    ]
    return Rewritten(f"{program.name}_again", program.arguments, lines, module=inner)


@dataclass
class Rewritten(Program):
    """A function with others that it calls, or that stand in its place."""

    module: str = ""

    @property
    def text(self) -> str:
        """All of them."""
        return self.module + (super().text if self.lines else "")


def differences(ours: Arrays, theirs: Arrays) -> list[str]:
    """Where two results are not the same; all NaN are one value."""
    found = []
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        same = same_values(a, b)
        if not same.all():
            place = tuple(int(i) for i in np.argwhere(~same)[0])
            found.append(f"memory {number} at {place}: {a[place]!r} here, {b[place]!r} by LLVM")
    return found
