"""Transfers to a device and back: every type, every bit, buffers and images of every form."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.lowering.codegen.programs import TYPES, Array, numpy_type
from tests.lowering.runtime.opencl.sources import CHANNEL_TYPES, default_device
from tests.shares import one_in

from layoutproof.ir.dtype import DType
from layoutproof.lowering.runtime.opencl.device_behaviour import works
from layoutproof.lowering.runtime.opencl.launcher import (
    Place,
    fill_buffer,
    fill_image,
    image_format,
    new_buffer,
    new_image,
    place_of,
    read_buffer,
    read_image,
)

FORMS = [
    (order, name, sizes)
    for order in ("RGBA", "R")
    for name in CHANNEL_TYPES
    for sizes in ((7, 5), (1, 1), (5, 1), (1, 6), (7, 5, 3), (3, 2, 1))
]


@pytest.fixture(scope="module")
def place() -> Place:
    """The context and the queue of pocl."""
    return place_of(default_device().handle)


def every_bit(dtype: np.dtype[Any], count: int, seed: int = 3) -> Array:
    """Random bytes as numbers, and in front of them, as far as there is room, what is special of floats."""
    bits = np.random.default_rng(seed).integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype)
    if dtype.kind == "f":
        info = np.finfo(dtype)
        tiny = info.smallest_subnormal
        special = np.array(
            [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, info.tiny, info.max, info.min], dtype=dtype
        )
        signalling = bits[:1].copy()
        word = signalling.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.itemsize])
        word[:] = special[2:3].view(word.dtype)[0] | 1
        front = np.concatenate([special, signalling])[:count]
        bits[: front.size] = front
    return bits


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_buffers(place: Place, dtype: DType) -> None:
    """Values of every type make the round trip, NaN payloads, infinities and subnormals included; so do no values."""
    for shape in ((3, 5), (1,), (), (0, 4)):
        count = int(np.prod(shape))
        kind = numpy_type(dtype)
        sent = (
            every_bit(np.dtype(f"u{kind.itemsize}"), count).view(kind) if kind.kind in "Vf" else every_bit(kind, count)
        )
        sent = (sent % 2).astype(kind) if kind == np.bool_ else sent
        sent = sent.reshape(shape)
        buffer = new_buffer(place, sent.nbytes)
        fill_buffer(place, buffer, sent)
        found = np.zeros_like(sent)
        read_buffer(place, found, buffer)
        assert found.tobytes() == sent.tobytes()


def test_bfloat16_is_a_type(place: Place) -> None:
    """numpy has no buffer protocol for it, which transfers do not need."""
    sent = np.array([1.5, -0.0, float("nan")], dtype=ml_dtypes.bfloat16)
    buffer = new_buffer(place, sent.nbytes)
    fill_buffer(place, buffer, sent)
    found = np.zeros_like(sent)
    read_buffer(place, found, buffer)
    assert found.tobytes() == sent.tobytes()


@one_in(7)
@pytest.mark.parametrize(("order", "name", "sizes"), FORMS)
def test_images(place: Place, order: str, name: str, sizes: tuple[int, ...]) -> None:
    """Every channel type, order and form of image, bit for bit, at sizes whose rows are no power of two."""
    channels = 4 if order == "RGBA" else 1
    sent = every_bit(np.dtype(name), int(np.prod(sizes)) * channels).reshape(*sizes[::-1], channels)
    image = new_image(place, image_format(order, CHANNEL_TYPES[name]), sizes)
    fill_image(place, image, sizes, sent)
    found = np.zeros_like(sent)
    read_image(place, found, image, sizes)
    assert found.tobytes() == sent.tobytes()


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (2, 2, 0)])
def test_images_without_texels(place: Place, sizes: tuple[int, ...]) -> None:
    """OpenCL has no empty images: there is one of a texel, and nothing is copied."""
    image = new_image(place, image_format("RGBA", "FLOAT"), sizes)
    nothing = np.zeros((*sizes[::-1], 4), dtype=np.float32)
    fill_image(place, image, sizes, nothing)
    read_image(place, nothing, image, sizes)
    assert image.width == 1 and image.height == 1


@one_in(42)
@pytest.mark.parametrize("is_array", [False, True])
@pytest.mark.parametrize("order", ["RGBA", "R"])
@pytest.mark.parametrize("name", [name for name in CHANNEL_TYPES if name != "float16"])
def test_kernels_read_what_was_written(order: str, name: str, is_array: bool) -> None:
    """pocl's images give a kernel what was put there, in every format but single-channel halves."""
    assert works(default_device().handle, order, CHANNEL_TYPES[name], is_array)


@pytest.mark.parametrize("is_array", [False, True])
def test_texels_of_halves(is_array: bool) -> None:
    """RGBA texels of float16 are sound."""
    assert works(default_device().handle, "RGBA", "HALF_FLOAT", is_array)
