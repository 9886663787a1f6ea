"""Arrays to a device and back, bit for bit: buffers as they are, images row by row.

Transfers see bytes, not numbers, so that every type goes, NaNs keep their payload and nothing is rounded. An image's rows lie in the
array one after the other without gaps, which is said with row and slice pitches: what the device does for itself is its own affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import pyopencl as cl

from layoutproof.lowering.runtime.arrays import Array

Memory = cl.Buffer | cl.Image


@dataclass(frozen=True, slots=True)
class Place:
    """A device's context and its queue, in which commands run in order."""

    context: cl.Context
    queue: cl.CommandQueue


@lru_cache(maxsize=8)
def place_of(handle: cl.Device) -> Place:
    """The context and the queue of a device, made once in a process."""
    context = cl.Context([handle])
    return Place(context, cl.CommandQueue(context))


def image_format(order: str, channel_type: str) -> cl.ImageFormat:
    """The format of images whose texels are called so in OpenCL: `RGBA` of `HALF_FLOAT`."""
    return cl.ImageFormat(getattr(cl.channel_order, order), getattr(cl.channel_type, channel_type))


def new_buffer(place: Place, size: int) -> cl.Buffer:
    """Memory of at least one byte: OpenCL has no empty buffers."""
    return cl.Buffer(place.context, cl.mem_flags.READ_WRITE, max(size, 1))


def new_image(place: Place, texels: cl.ImageFormat, sizes: Sequence[int]) -> cl.Image:
    """An image of these sizes, width and height, and layers of an array of images; of one texel where one of them is 0."""
    shape = tuple(sizes) if prod(sizes) > 0 else (1,) * len(sizes)
    return cl.create_image(place.context, cl.mem_flags.READ_WRITE, texels, shape=shape, is_array=len(sizes) == 3)


def fill_buffer(place: Place, buffer: cl.Buffer, array: Array) -> None:
    """Copy an array to the device."""
    if array.nbytes:
        cl.enqueue_copy(place.queue, buffer, _bytes(array))


def read_buffer(place: Place, array: Array, buffer: cl.Buffer) -> None:
    """Copy from the device into an array."""
    if array.nbytes:
        cl.enqueue_copy(place.queue, _bytes(array), buffer)


def fill_image(place: Place, memory: cl.Image, sizes: Sequence[int], array: Array) -> None:
    """Copy an array to the device. The array has as many bytes as the image."""
    if array.nbytes:
        cl.enqueue_copy(place.queue, memory, _bytes(array), **_region(sizes, array.nbytes))


def read_image(place: Place, array: Array, memory: cl.Image, sizes: Sequence[int]) -> None:
    """Copy an image into an array of as many bytes."""
    if array.nbytes:
        cl.enqueue_copy(place.queue, _bytes(array), memory, **_region(sizes, array.nbytes))


def _region(sizes: Sequence[int], size: int) -> dict[str, Any]:
    """The whole image, with the bytes from row to row and, of an array, from layer to layer of the array on this side."""
    width, height, *layers = sizes
    row = size // (prod(sizes) // width)
    pitches = (row, row * height) if layers else (row,)
    return {"origin": (0, 0, 0), "region": (width, height, layers[0] if layers else 1), "pitches": pitches}


def _bytes(array: Array) -> Array:
    """A contiguous array's memory as bytes, without a copy."""
    return array.reshape(-1).view(np.uint8)
