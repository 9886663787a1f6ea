"""Running generated OpenCL: compilation by the device's compiler, transfers of arrays, kernels in order.

Results are those of IEEE 754, where the device can. Transfers copy bytes: all types are supported, NaNs keep their
payload and nothing is rounded.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import pyopencl as cl

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.semantics import round_float
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.calling_convention import Parameter
from layoutproof.lowering.codegen.opencl.cl_helpers import (
    READ_WRITE_IMAGES,
    Image,
    KernelArgument,
    LocalArgument,
    OpenCLSource,
)
from layoutproof.lowering.runtime import call_arguments as call
from layoutproof.lowering.runtime.arrays import Array
from layoutproof.lowering.runtime.kernel import Scalars
from layoutproof.lowering.runtime.opencl.devices import (
    Device,
    Profile,
)
from layoutproof.lowering.runtime.opencl.limits import bytes_of, check_groups, check_image, check_memory, textures_of

Memory = cl.Buffer | cl.Image

CORRECT_DIVISION = "-cl-fp32-correctly-rounded-divide-sqrt"
FAST = "-cl-fast-relaxed-math"
UNOPTIMISED = "-cl-opt-disable"
_FORCED = "PYOPENCL_BUILD_OPTIONS"


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
    """The format of images of a channel order and type, such as `RGBA` and `HALF_FLOAT`."""
    return cl.ImageFormat(getattr(cl.channel_order, order), getattr(cl.channel_type, channel_type))


def new_buffer(place: Place, size: int) -> cl.Buffer:
    """Memory of at least one byte: OpenCL has no empty buffers."""
    return cl.Buffer(place.context, cl.mem_flags.READ_WRITE, max(size, 1))


def new_image(place: Place, texels: cl.ImageFormat, sizes: Sequence[int]) -> cl.Image:
    """An image of these sizes: width, height, and layers of an image array; of one texel where one of them is 0."""
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
    """The whole image, with the bytes from row to row and from layer to layer of the host's array."""
    width, height, *layers = sizes
    row = size // (prod(sizes) // width)
    pitches = (row, row * height) if layers else (row,)
    return {"origin": (0, 0, 0), "region": (width, height, layers[0] if layers else 1), "pitches": pitches}


def _bytes(array: Array) -> Array:
    """A contiguous array's memory as bytes, without a copy."""
    return array.reshape(-1).view(np.uint8)


@dataclass(frozen=True, slots=True)
class BuiltProgram:
    """A compiled program, the options it was compiled with, and the notes for the report."""

    program: cl.Program
    options: tuple[str, ...]
    notes: tuple[str, ...]


def version_for(source: OpenCLSource, device: Device) -> str:
    """The option for the version of OpenCL C that the text needs."""
    version = (
        ("CL3.0" if device.version.startswith("OpenCL 3") else "CL2.0")
        if READ_WRITE_IMAGES in source.extensions
        else "CL1.2"
    )
    return f"-cl-std={version}"


def arithmetic_options(device: Device, *, fast: bool) -> tuple[str, ...]:
    """Correct division where the device has it; with `fast`, fast arithmetic. No other option changes a result.
    Contraction is off in the text itself.
    """
    return (FAST,) if fast else (CORRECT_DIVISION,) if device.correct_division else ()


def build_text(context: cl.Context, text: str, options: Sequence[str]) -> cl.Program:
    """A program of this text. Raises pyopencl's errors."""
    program = cl.Program(context, text)
    with warnings.catch_warnings():
        # A compiler that says something and goes on is not worth a word to who calls a kernel.
        warnings.simplefilter("ignore")
        # Asking for anything keeps pyopencl from looking for the program in a cache on disk, which would be one more
        # thing to go wrong: drivers that compile slowly have caches of their own. It warns of that.
        program.get_info(cl.program_info.REFERENCE_COUNT)
        program.build(list(options))
    return program


def compile_program(name: str, source: OpenCLSource, device: Device, options: tuple[str, ...]) -> BuiltProgram:
    """Compile for one device. Raises LayoutproofError (LP446) with what its compiler says."""
    context = place_of(device.handle).context
    try:
        program = build_text(context, source.text, options)
    except cl.Error as problem:
        said = "\n    ".join(str(problem).strip().splitlines()[:40])
        raise error(
            codes.NOT_COMPILED,
            f"the compiler of {device.title} failed on {name}\n  options: {' '.join(options)}\n  it said: {said}",
            help="`layoutproof run --target opencl --emit FILE.cl` writes the text where another device compiles it",
        ) from problem
    forced = os.environ.get(_FORCED, "").strip()
    notes = (f"the environment variable {_FORCED} adds the options {forced}",) if forced else ()
    return BuiltProgram(program, options, notes)


class OpenCLLauncher:
    """The kernels of a program on one device.

    A kernel object of OpenCL holds its arguments, so calls from several threads take turns.
    """

    def __init__(
        self, name: str, source: OpenCLSource, built: BuiltProgram, device: Device, profile: Profile | None
    ) -> None:
        self._name, self._source, self._device, self._profile = name, source, device, profile
        self._textures = {texture.name: texture for texture in textures_of(source)}
        self._kernels = [cl.Kernel(built.program, launch.name) for launch in source.launches]
        self._lock = threading.Lock()

    @property
    def copies(self) -> bool:
        """A device has its own memory."""
        return True

    @property
    def compiler(self) -> str:
        """The compiler's name for messages."""
        return f"the compiler of {self._device.title}"

    def check(self, symbols: call.Symbols) -> None:
        """Raise LayoutproofError for images (LP444), work groups (LP445) or memory (LP447) that exceed the device or
        the profile.
        """
        for texture in self._textures.values():
            if texture.symbols:
                sizes = [symbols.evaluate(size, texture.name) for size in texture.sizes]
                check_image(texture, sizes, self._device, self._profile)
        check_memory(self._sizes(symbols.values), self._device)
        check_groups(self._source, self._device, symbols.values)

    def _sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        buffers = {p.name: p.buffer for p in self._source.parameters if p.buffer is not None}
        buffers |= {_buffer_of(t).name: _buffer_of(t) for t in self._source.temporaries}
        return {name: bytes_of(buffer, known) for name, buffer in buffers.items()}

    def launch(self, arrays: Mapping[str, Array], scalars: Scalars) -> None:
        """Copy arrays to the device, run, copy back the outputs. Raises LayoutproofError (LP427) where that fails."""
        with self._lock:
            try:
                self._launch(arrays, scalars)
            except cl.Error as problem:
                raise error(
                    codes.DID_NOT_RUN, f"{self._name} did not run on {self._device.title}: {problem}"
                ) from problem

    def _launch(self, arrays: Mapping[str, Array], scalars: Scalars) -> None:
        place = place_of(self._device.handle)
        env = {name: int(value) for name, value in scalars.items() if not isinstance(value, float)}
        held = {name: self._filled(name, array, env) for name, array in arrays.items()}
        held |= {_buffer_of(t).name: self._temporary(t, env) for t in self._source.temporaries}
        for launch, kernel in zip(self._source.launches, self._kernels, strict=True):
            size = tuple(int(evaluate(extent, env)) for extent in launch.global_size)
            if min(size) > 0:
                for number, argument in enumerate(launch.arguments):
                    kernel.set_arg(number, _argument(argument, held, scalars, env))
                local = launch.local_size
                group = None if local is None else tuple(int(evaluate(extent, env)) for extent in local)
                cl.enqueue_nd_range_kernel(place.queue, kernel, size, group)
        for parameter in self._source.parameters:
            if parameter.writes:
                self._read(parameter.name, arrays[parameter.name], held[parameter.name], env)
        place.queue.finish()

    def _image_sizes(self, name: str, env: Mapping[str, int]) -> list[int]:
        return [max(int(evaluate(size, env)), 0) for size in self._textures[name].sizes]

    def _filled(self, name: str, array: Array, env: Mapping[str, int]) -> Memory:
        """Device memory with an array's content, for outputs too, since not all of their cells need be written."""
        place = place_of(self._device.handle)
        if name not in self._textures:
            buffer = new_buffer(place, array.nbytes)
            fill_buffer(place, buffer, array)
            return buffer
        sizes = self._image_sizes(name, env)
        image = new_image(place, _format(self._textures[name].image), sizes)
        fill_image(place, image, sizes, array)
        return image

    def _temporary(self, temporary: Buffer | Image, env: Mapping[str, int]) -> Memory:
        place = place_of(self._device.handle)
        if isinstance(temporary, Image):
            return new_image(place, _format(temporary), self._image_sizes(temporary.buffer.name, env))
        return new_buffer(place, bytes_of(temporary, env))

    def _read(self, name: str, array: Array, held: Memory, env: Mapping[str, int]) -> None:
        place = place_of(self._device.handle)
        if isinstance(held, cl.Image):
            read_image(place, array, held, self._image_sizes(name, env))
        else:
            read_buffer(place, array, held)


def _buffer_of(temporary: Buffer | Image) -> Buffer:
    return temporary.buffer if isinstance(temporary, Image) else temporary


def _format(image: Image) -> cl.ImageFormat:
    return image_format(image.channel_order, image.channel_type)


def _argument(
    argument: KernelArgument | LocalArgument | Parameter,
    held: Mapping[str, Memory],
    scalars: Scalars,
    env: Mapping[str, int],
) -> Any:
    if isinstance(argument, KernelArgument):
        return held[argument.name]
    if isinstance(argument, LocalArgument):
        return cl.LocalMemory(max(bytes_of(argument.buffer, env), argument.buffer.dtype.bytes))  # none may be empty
    return scalar_argument(argument, scalars[argument.name])


def scalar_argument(parameter: Parameter, value: int | float) -> Any:
    """A checked scalar as pyopencl passes it: a truth value as a byte, half-precision floats as their bits."""
    dtype = parameter.dtype
    # Rounded once: ml_dtypes goes through a float32 to bfloat16.
    number = np.array(round_float(value, dtype) if dtype.is_float else value, dtype=numpy_dtype(dtype))
    if dtype.is_float and dtype.bits == 16:
        return number.view(np.uint16)[()]
    return number.view(np.int8)[()] if dtype.is_bool else number[()]
