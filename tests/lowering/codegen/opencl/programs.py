"""Programs with textures, in script syntax, flattened; and the compiler that their kernels are shown to."""

from __future__ import annotations

import pyopencl as cl
from tests.lowering.runtime.opencl.sources import default_device

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.codegen.opencl.cl_emit import emit_opencl
from layoutproof.lowering.codegen.opencl.cl_helpers import READ_WRITE_IMAGES, KernelArgument, Launch, OpenCLSource
from layoutproof.lowering.lower.flatten import FlattenBuffer, LowerBlocks


def texture(shape: str, dtype: str = "float32") -> str:
    """A parameter's type: a texture of two or three axes, each an axis group of its own."""
    separators = list(range(1, shape.count(",") + 1))
    return f'T.Buffer({shape}, "{dtype}", scope="global.texture", axis_separators={separators})'


def program(parameters: str, body: str, name: str = "f", noalias: bool = True, symbols: str = "") -> PrimFunc:
    """A function in script syntax, with its buffers flattened."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    attributes = '    T.func_attr({"tir.noalias": True})\n' if noalias else ""
    declared = "".join(f"    {symbol} = T.int32()\n" for symbol in symbols.split())
    func = loads(f"@T.prim_func\ndef {name}({parameters}):\n{declared}{attributes}{lines}\n", f"{name}.py")
    return FlattenBuffer().propose(LowerBlocks().propose(func).new).new


def copied(source: str, target: str, value: str = "A[y, x * 4 + c]", kind: str = "vectorized") -> PrimFunc:
    """A value for each of the four lanes of the texels of 6 rows of 2, to buffer or texture B."""
    return program(
        f"A: {source}, B: {target}",
        f"""
for y in T.parallel(6):
    for x in T.parallel(2):
        for c in T.{kind}(4):
            B[y, x * 4 + c] = {value}
""",
    )


PLAIN = 'T.Buffer((6, 8), "float32")'
TEXTURE = texture("(6, 8)")


def compile_source(source: OpenCLSource) -> None:
    """Fail unless the device's compiler takes the text without a warning, in the version of OpenCL C that it says it
    needs.
    """
    version = "CL3.0" if READ_WRITE_IMAGES in source.extensions else "CL1.2"
    context = cl.Context([default_device().handle])
    program = cl.Program(context, source.text).build([f"-cl-std={version}", "-Werror"])
    names = program.kernel_names.split(";") if program.kernel_names else []
    assert sorted(names) == sorted(launch.name for launch in source.launches)
    for launch in source.launches:
        assert cl.Kernel(program, launch.name).num_args == len(launch.arguments)


def kernel_text(func: PrimFunc) -> str:
    """The text from the first kernel on: what the program says, without comments and helpers before it. It compiles."""
    source = emit_opencl(func)
    compile_source(source)
    return source.text[source.text.index("__kernel") :]


def access(launch: Launch) -> dict[str, str]:
    """What a kernel does with each piece of memory, by name."""
    return {a.name: a.access for a in launch.arguments if isinstance(a, KernelArgument)}
