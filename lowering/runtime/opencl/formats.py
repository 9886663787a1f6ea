"""Whether a device's images give back what was written to them: asked of every format before a kernel relies on it.

A device may lack a format, and one that lists it may still get it wrong: pocl 3.0 reads single-channel images of HALF_FLOAT from
the wrong place. A kernel would compute nonsense there, which a self check on a few cells may or may not notice.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np
import pyopencl as cl

from layoutproof.ir.diagnostic import error
from layoutproof.lowering.runtime.arrays import Array
from layoutproof.lowering.runtime.opencl import codes
from layoutproof.lowering.runtime.opencl.devices import Device
from layoutproof.lowering.runtime.opencl.limits import Texture
from layoutproof.lowering.runtime.opencl.memory import fill_image, image_format, new_image, place_of, read_image
from layoutproof.lowering.runtime.opencl.program import build_text

# The channel types that there are: the type of an element, and the suffix and vector of the functions that read and write it.
_TYPES: dict[str, tuple[str, str, str]] = {
    "FLOAT": ("float32", "f", "float4"),
    "HALF_FLOAT": ("float16", "f", "float4"),
    "SIGNED_INT8": ("int8", "i", "int4"),
    "SIGNED_INT16": ("int16", "i", "int4"),
    "SIGNED_INT32": ("int32", "i", "int4"),
    "UNSIGNED_INT8": ("uint8", "ui", "uint4"),
    "UNSIGNED_INT16": ("uint16", "ui", "uint4"),
    "UNSIGNED_INT32": ("uint32", "ui", "uint4"),
}

_WIDTH, _HEIGHT, _LAYERS = 5, 3, 2


def check_format(texture: Texture, device: Device) -> None:
    """Raise LayoutproofError (LP445) where the device has no images of this format, or reads and writes them wrongly."""
    image = texture.image
    form = (image.channel_order, image.channel_type, image.layers is not None)
    if not _is_listed(device.handle, *form):
        _refuse(texture, f"{device.title} has no such images")
    if not works(device.handle, *form):
        _refuse(texture, f"{device.title} has them, but does not read there what was written")


def _refuse(texture: Texture, why: str) -> None:
    help_text = "another type, rows of a multiple of 4 elements (RGBA) or memory of scope global will do"
    raise error(codes.LACKING, f"{texture.name} is {texture.words}; {why}", texture.image.buffer.span, help=help_text)


def _is_listed(handle: cl.Device, order: str, channel_type: str, is_array: bool) -> bool:
    kind = cl.mem_object_type.IMAGE2D_ARRAY if is_array else cl.mem_object_type.IMAGE2D
    listed = cl.get_supported_image_formats(place_of(handle).context, cl.mem_flags.READ_WRITE, kind)
    return image_format(order, channel_type) in listed


@lru_cache(maxsize=64)
def works(handle: cl.Device, order: str, channel_type: str, is_array: bool) -> bool:
    """Whether a kernel that copies an image texel by texel copies every finite number of it. Asked once in a process."""
    place, texels = place_of(handle), image_format(order, channel_type)
    sizes = (_WIDTH, _HEIGHT, _LAYERS) if is_array else (_WIDTH, _HEIGHT)
    values = _numbers(channel_type, prod(sizes) * (4 if order == "RGBA" else 1))
    first, second = new_image(place, texels, sizes), new_image(place, texels, sizes)
    fill_image(place, first, sizes, values)
    fill_image(place, second, sizes, np.zeros_like(values))
    program = build_text(place.context, _copy_text(channel_type, is_array), ())
    kernel = cl.Kernel(program, "lp_copy")
    kernel.set_args(first, second)
    cl.enqueue_nd_range_kernel(place.queue, kernel, (_WIDTH, _HEIGHT, _LAYERS if is_array else 1), None)
    found = np.zeros_like(values)
    read_image(place, found, second, sizes)
    place.queue.finish()
    return found.tobytes() == values.tobytes()


def _numbers(channel_type: str, count: int) -> Array:
    """Different numbers of both signs, fractions among the floats, none of them special."""
    dtype = np.dtype(_TYPES[channel_type][0])
    whole = np.arange(1, count + 1)
    if dtype.kind == "f":
        return np.asarray((whole - count // 2) * 1.25, dtype=dtype)
    return np.asarray(whole if dtype.kind == "u" else whole - count // 2, dtype=dtype)


def _copy_text(channel_type: str, is_array: bool) -> str:
    _, suffix, vector = _TYPES[channel_type]
    kind = "image2d_array_t" if is_array else "image2d_t"
    x, y, z = (f"(int)get_global_id({axis})" for axis in range(3))
    place = f"(int4)({x}, {y}, {z}, 0)" if is_array else f"(int2)({x}, {y})"
    return (
        f"__kernel void lp_copy(__read_only {kind} from, __write_only {kind} to) {{\n"
        f"    {vector} texel = read_image{suffix}(from, {place});\n"
        f"    write_image{suffix}(to, {place}, texel);\n}}\n"
    )
