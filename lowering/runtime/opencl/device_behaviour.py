"""How a device actually treats float arithmetic and images, and which fast-math liberties it takes by default.

A device does not report whether its compiler keeps the order of a sum (Intel's for processors does so only without
optimisation), and may read a listed image format wrongly (pocl 3.0 and single-channel HALF_FLOAT). So both are probed
by a kernel whose every bit is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
import pyopencl as cl

from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Binary, Cast
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import walk
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.runtime.arrays import Array
from layoutproof.lowering.runtime.opencl.devices import Device
from layoutproof.lowering.runtime.opencl.launcher import (
    build_text,
    fill_buffer,
    fill_image,
    image_format,
    new_buffer,
    new_image,
    place_of,
    read_buffer,
    read_image,
)
from layoutproof.lowering.runtime.opencl.limits import Texture

_ROWS, _TERMS, _EACH = 67, 33, 16

# One kernel, not five: some compilers take a second for each.
_TEXT = f"""#pragma OPENCL FP_CONTRACT OFF
__kernel void lp_observe(__global const float *restrict a, __global float *restrict o, int terms, int count) {{
    int i = (int)get_global_id(0);
    o[i] = 0.0f;
    for (int k = 0; k < terms; ++k) {{
        o[i] = o[i] + a[i * terms + k];
    }}
    float sum = 0.0f;
    for (int k = 0; k < terms; ++k) {{
        sum = sum + a[i * terms + k] * a[{_ROWS * _TERMS - 1} - i * terms - k];
    }}
    o[count + i] = sum;
    o[2 * count + i] = a[{_ROWS * _TERMS} + i] * 0.5f;
    for (int k = 0; k < {_EACH}; ++k) {{
        float x = a[i * {_EACH} + k];
        o[(3 + k) * count + i] = x / a[{_ROWS * _TERMS - 1} - i * {_EACH} - k];
        o[({3 + _EACH} + k) * count + i] = sqrt(fabs(x));
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What was observed: sums regrouped or fused with products, subnormals flushed, `/` or `sqrt` not correctly
    rounded.
    """

    regroups: bool
    flushes: bool
    divides_inexactly: bool


@lru_cache(maxsize=32)
def observe(handle: cl.Device, options: tuple[str, ...]) -> Behaviour:
    """Run the probe, compiled with these options; once per process for each of them."""
    program = build_text(place_of(handle).context, _TEXT, options)
    numbers = np.random.default_rng(33).standard_normal(_ROWS * _TERMS).astype(np.float32)
    tiny = (np.arange(1, _ROWS + 1, dtype=np.uint32) * 125_003).view(np.float32)
    expected = _expected(numbers, tiny)
    # One work item and many: compilers choose between versions of a kernel by their number.
    equal = np.ones(len(expected), dtype=np.bool_)
    for count in (1, _ROWS):
        equal &= (_run(handle, program, np.concatenate([numbers, tiny]), count) == expected[:, :count]).all(axis=1)
    sums, products, halves, *divisions = (bool(each) for each in equal)
    return Behaviour(not (sums and products), not halves, not all(divisions))


def _expected(numbers: Array, tiny: Array) -> Array:
    """The IEEE 754 results of sums, sums of products, halves of subnormals, quotients and roots, a row each."""
    rows, other = numbers.reshape(_ROWS, _TERMS), numbers[::-1].reshape(_ROWS, _TERMS)
    sums, products = np.zeros(_ROWS, np.float32), np.zeros(_ROWS, np.float32)
    for k in range(_TERMS):
        sums = sums + rows[:, k]
        products = products + rows[:, k] * other[:, k]
    first, last = (part[: _ROWS * _EACH].reshape(_ROWS, _EACH).T for part in (numbers, numbers[::-1]))
    return np.vstack([sums, products, tiny * np.float32(0.5), first / last, np.sqrt(np.abs(first))])


def _run(handle: cl.Device, program: cl.Program, data: Array, count: int) -> Array:
    place = place_of(handle)
    result = np.zeros((3 + 2 * _EACH, count), dtype=np.float32)
    source, target = new_buffer(place, data.nbytes), new_buffer(place, result.nbytes)
    fill_buffer(place, source, data)
    kernel = cl.Kernel(program, "lp_observe")
    kernel.set_args(source, target, np.int32(_TERMS), np.int32(count))
    cl.enqueue_nd_range_kernel(place.queue, kernel, (count,), None)
    read_buffer(place, result, target)
    place.queue.finish()
    return result


DIVISION_ULPS = 3
"""Units in the last place by which a device without correct rounding may be off: 2.5 for `/`, 3 for `sqrt`."""

_ROOTS = ("sqrt", "rsqrt")


@dataclass(frozen=True, slots=True)
class Taken:
    """A liberty of a device: its fast-math assumption's name, and what it means for the results of this kernel."""

    name: str
    words: str


def fast_math_taken(func: PrimFunc, device: Device, seen: Behaviour) -> tuple[Taken, ...]:
    """The liberties that concern some operation of the function, as reported by the device and as observed."""
    return tuple(_taken(func, device, seen))


def _taken(func: PrimFunc, device: Device, seen: Behaviour) -> Iterator[Taken]:
    computed = list(computed_in_single(func))
    if computed and (seen.flushes or not device.subnormals):
        words = f"{device.title} has no float32 subnormals: operands and results below 2**-126 may count as zero"
        yield Taken("flush-subnormals", words)
    if any(_divides(node) for node in computed) and (seen.divides_inexactly or not device.correct_division):
        words = (
            f"{device.title} does not round float32 division and square root correctly: they are up to {DIVISION_ULPS} "
            "ulp off"
        )
        yield Taken("approximate-division", words)
    if seen.regroups and any(isinstance(node, Binary) for node in computed):
        words = (
            f"the compiler of {device.title} regroups float32 sums, or fuses them with products, whatever it is told"
        )
        yield Taken("reassoc", words)


def computed_in_single(func: PrimFunc) -> Iterator[Binary | Call | Cast]:
    """Everything that a function computes in float32, half-precision numbers included."""
    for node in walk(func.body):
        if isinstance(node, Binary | Call | Cast) and node.dtype.is_float and node.dtype.bits <= 32:
            yield node


def _divides(node: Binary | Call | Cast) -> bool:
    match node:
        case Binary(op=BinaryOp.DIV):
            return True
        case Call(function=function):
            return function in _ROOTS
        case _:
            return False


# The channel types that there are: the type of an element, and the suffix and vector of the functions that read and
# write it.
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
    """Raise LayoutproofError (LP445) if the device has no images of this format, or reads or writes them wrongly."""
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
    """Whether a kernel that copies an image by texels copies every finite number of it; once per process."""
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
