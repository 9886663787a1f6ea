"""What the OpenCL generator returns: the text, and all that a host needs to launch its kernels in order.

Sizes are expressions over the function's scalar parameters and shape symbols. A launch with a size of 0 or less is
skipped.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Expr
from layoutproof.lowering.codegen.calling_convention import Parameter

READ_WRITE_IMAGES = "__opencl_c_read_write_images"
"""The feature, of OpenCL C 2.0 and later, that a kernel needs which reads and writes one image; it stands among the
extensions.
"""


@dataclass(frozen=True, slots=True)
class Image:
    """Memory that is a texture: a parameter, or a temporary.

    `buffer` is the view of it by its physical axes, which the kernels access. Its elements, row-major, are the image's
    channels in order: texel `(x, y, layer)` holds elements `[layer, y, x * channels + c]`. `width`, `height` and
    `layers` count texels. `channel_order` ("R", "RGBA") and `channel_type` ("FLOAT", "HALF_FLOAT", "SIGNED_INT8", ...)
    are called as OpenCL calls them.
    """

    buffer: Buffer
    channels: int
    kind: str
    width: Expr
    height: Expr
    layers: Expr | None
    channel_order: str
    channel_type: str


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """Memory as an argument of a kernel: the parameter's or temporary's name, and what this kernel does with it.

    `access` is "read_only", "write_only" or "read_write". `image` is None for a `__global` pointer.
    """

    name: str
    image: Image | None
    access: str


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel of the program. Launches run in order, each after the one before it is done.

    `arguments` are in the order of the kernel's own parameters; a `Parameter` is a scalar. `local_size` is None where
    the device may choose.
    """

    name: str
    arguments: tuple[KernelArgument | Parameter, ...]
    global_size: tuple[Expr, ...]
    local_size: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class OpenCLSource:
    """Generated OpenCL C: its text, its launches in order, the function's parameters, and the memory to allocate around
    them.

    A temporary is a plain buffer, or an image; no two, and no temporary and parameter, have one name.
    """

    text: str
    launches: tuple[Launch, ...]
    parameters: tuple[Parameter, ...]
    temporaries: tuple[Buffer | Image, ...]
    index_bits: int
    extensions: tuple[str, ...]
