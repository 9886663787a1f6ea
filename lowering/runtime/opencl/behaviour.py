"""What a device's compiler does to float arithmetic in fact, seen from a kernel of which every bit is known.

What a device says of itself leaves out what matters most: whether its compiler keeps the order of a sum. OpenCL asks it to, unless
fast arithmetic is allowed, but Intel's for processors (2026) regroups reductions all the same unless it is told not to optimise. Such a
kernel would pass a self check on numbers that happen to add up alike, and be wrong on others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyopencl as cl

from layoutproof.lowering.runtime.arrays import Array
from layoutproof.lowering.runtime.opencl.memory import fill_buffer, new_buffer, place_of, read_buffer
from layoutproof.lowering.runtime.opencl.program import build_text

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
    """What was seen: sums that were regrouped or fused with products, subnormals that were flushed, `/` or `sqrt` that were off."""

    regroups: bool
    flushes: bool
    divides_inexactly: bool


@lru_cache(maxsize=32)
def observe(handle: cl.Device, options: tuple[str, ...]) -> Behaviour:
    """Run the probe, compiled with these options. Asked once in a process for each of them."""
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
    """What IEEE 754 has for sums, sums of products, halves of subnormals, quotients and roots, in the order of the text: a row each."""
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
