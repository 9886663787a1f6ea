"""Kernels written by hand, in the form that the generator gives them, so that running is tried without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.lowering.codegen.programs import function, loop

from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.expr import Expr, IntImm, Var, const
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, Stmt
from layoutproof.lowering.codegen.calling_convention import Parameter, find_memory, parameters_of
from layoutproof.lowering.codegen.opencl.cl_helpers import Image, KernelArgument, Launch, OpenCLSource
from layoutproof.lowering.runtime.opencl.devices import Device, find_device

CHANNEL_TYPES = {
    "float32": "FLOAT", "float16": "HALF_FLOAT", "int8": "SIGNED_INT8", "int16": "SIGNED_INT16",
    "int32": "SIGNED_INT32", "uint8": "UNSIGNED_INT8", "uint16": "UNSIGNED_INT16", "uint32": "UNSIGNED_INT32",
}  # fmt: skip


def default_device() -> Device:
    """pocl, which the tests install."""
    return find_device("pocl")


def parameters(func: PrimFunc) -> tuple[Parameter, ...]:
    """The parameters as a generator numbers them."""
    return parameters_of(func, find_memory(func), {})


def texture(buffer: Buffer, channels: int = 4) -> Image:
    """A buffer of two or three axes as an image."""
    *layers, height, row = buffer.shape
    kind = "image2d_array" if layers else "image2d"
    width = row // const(channels)
    order = "RGBA" if channels == 4 else "R"
    name = CHANNEL_TYPES[str(buffer.dtype.element)]
    return Image(buffer, channels, kind, width, height, layers[0] if layers else None, order, name)


def argument(buffer: Buffer, access: str, image: Image | None = None) -> KernelArgument:
    """A buffer as an argument."""
    return KernelArgument(buffer.name, image, access)


def pointwise(extent: int | Expr, value: Callable[[Expr], Expr], noalias: bool = True) -> PrimFunc:
    """`B[i]` from `A[i]`, both of one axis of float32."""
    a, b = make_buffer("A", (extent,), "float32"), make_buffer("B", (extent,), "float32")
    return function(
        "pointwise",
        [a, b],
        loop("i", extent, lambda i: BufferStore(b, (i,), value(BufferLoad(a, (i,))))),
        noalias=noalias,
    )


def copied(rows: int | Expr, row: int | Expr, dtype: str = "float32") -> PrimFunc:
    """`B[y, x] = A[y, x]`: two textures, as the program stores them."""
    a, b = (make_buffer(name, (rows, row), dtype, scope="global.texture") for name in "AB")

    def body(y: Var) -> Stmt:
        return loop("x", row, lambda x: BufferStore(b, (y, x), BufferLoad(a, (y, x))))

    return function("copied", [a, b], loop("y", rows, body))


COPY_FLOATS = """
__kernel void copied(__read_only image2d_t A, __write_only image2d_t B) {
    int2 place = (int2)((int)get_global_id(0), (int)get_global_id(1));
    write_imagef(B, place, read_imagef(A, place));
}
"""


def copy_source(
    func: PrimFunc, text: str = COPY_FLOATS, extensions: Sequence[str] = (), local: tuple[int, ...] | None = None
) -> OpenCLSource:
    """The two textures of `copied`, one work item a texel."""
    a, b = (texture(buffer) for buffer in func.buffers)
    arguments = (argument(a.buffer, "read_only", a), argument(b.buffer, "write_only", b))
    sizes = None if local is None else tuple(IntImm(size) for size in local)
    launch = Launch("copied", arguments, (a.width, a.height), sizes)
    return OpenCLSource(text, (launch,), parameters(func), (), 32, tuple(extensions))


def pointer_source(func: PrimFunc, expression: str) -> OpenCLSource:
    """`B[i] = expression` of `a`, which is `A[i]`."""
    a, b = func.buffers
    text = (
        "#pragma OPENCL FP_CONTRACT OFF\n"
        "__kernel void pointwise(__global const float *A, __global float *B) {\n"
        f"    int i = (int)get_global_id(0); float a = A[i]; B[i] = {expression};\n}}\n"
    )
    launch = Launch("pointwise", (argument(a, "read_only"), argument(b, "write_only")), (a.shape[0],), None)
    return OpenCLSource(text, (launch,), parameters(func), (), 32, ())
