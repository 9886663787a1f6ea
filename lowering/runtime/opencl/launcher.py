"""Running a compiled program: memory on the device, kernels in order, results back into the arrays of the caller."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyopencl as cl

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.opencl.source import Image, KernelArgument, OpenCLSource
from layoutproof.lowering.codegen.signature import Parameter
from layoutproof.lowering.runtime import symbols as call
from layoutproof.lowering.runtime.arrays import Array
from layoutproof.lowering.runtime.launcher import Scalars
from layoutproof.lowering.runtime.opencl import memory
from layoutproof.lowering.runtime.opencl.devices import Device
from layoutproof.lowering.runtime.opencl.limits import Profile, bytes_of, check_image, check_memory, textures_of
from layoutproof.lowering.runtime.opencl.memory import Memory, place_of
from layoutproof.lowering.runtime.opencl.program import BuiltProgram


class OpenCLLauncher:
    """The kernels of a program on one device.

    A kernel object of OpenCL holds its arguments, and so do these: calls from several threads take turns.
    """

    def __init__(self, name: str, source: OpenCLSource, built: BuiltProgram, device: Device, profile: Profile | None) -> None:
        self._name, self._source, self._device, self._profile = name, source, device, profile
        self._textures = {texture.name: texture for texture in textures_of(source)}
        self._kernels = [cl.Kernel(built.program, launch.name) for launch in source.launches]
        self._lock = threading.Lock()

    @property
    def copies(self) -> bool:
        """A device works on memory of its own."""
        return True

    @property
    def compiler(self) -> str:
        """Who compiled it, in words."""
        return f"the compiler of {self._device.title}"

    def check(self, symbols: call.Symbols) -> None:
        """Raise LayoutproofError for images (LP444) and memory (LP447) that are too large for the device or for the profile."""
        for texture in self._textures.values():
            if texture.symbols:
                sizes = [symbols.evaluate(size, texture.name) for size in texture.sizes]
                check_image(texture, sizes, self._device, self._profile)
        check_memory(self._sizes(symbols.values), self._device)

    def _sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        buffers = {p.name: p.buffer for p in self._source.parameters if p.buffer is not None}
        buffers |= {_buffer_of(t).name: _buffer_of(t) for t in self._source.temporaries}
        return {name: bytes_of(buffer, known) for name, buffer in buffers.items()}

    def launch(self, arrays: Mapping[str, Array], scalars: Scalars) -> None:
        """Copy what is given to the device, run, copy back what is written. Raises LayoutproofError (LP427) where that fails."""
        with self._lock:
            try:
                self._launch(arrays, scalars)
            except cl.Error as problem:
                raise error(codes.DID_NOT_RUN, f"{self._name} did not run on {self._device.title}: {problem}") from problem

    def _launch(self, arrays: Mapping[str, Array], scalars: Scalars) -> None:
        place = place_of(self._device.handle)
        env = {name: int(value) for name, value in scalars.items() if not isinstance(value, float)}
        held = {name: self._filled(name, array, env) for name, array in arrays.items()}
        held |= {_buffer_of(t).name: self._temporary(t, env) for t in self._source.temporaries}
        for launch, kernel in zip(self._source.launches, self._kernels, strict=True):
            size = tuple(int(evaluate(extent, env)) for extent in launch.global_size)
            if min(size) > 0:
                for number, argument in enumerate(launch.arguments):
                    kernel.set_arg(number, _argument(argument, held, scalars))
                cl.enqueue_nd_range_kernel(place.queue, kernel, size, launch.local_size)
        for parameter in self._source.parameters:
            if parameter.writes:
                self._read(parameter.name, arrays[parameter.name], held[parameter.name], env)
        place.queue.finish()

    def _image_sizes(self, name: str, env: Mapping[str, int]) -> list[int]:
        return [max(int(evaluate(size, env)), 0) for size in self._textures[name].sizes]

    def _filled(self, name: str, array: Array, env: Mapping[str, int]) -> Memory:
        """Memory of the device with an array's content: outputs too, whose cells need not all be written."""
        place = place_of(self._device.handle)
        if name not in self._textures:
            buffer = memory.new_buffer(place, array.nbytes)
            memory.fill_buffer(place, buffer, array)
            return buffer
        sizes = self._image_sizes(name, env)
        image = memory.new_image(place, _format(self._textures[name].image), sizes)
        memory.fill_image(place, image, sizes, array)
        return image

    def _temporary(self, temporary: Buffer | Image, env: Mapping[str, int]) -> Memory:
        place = place_of(self._device.handle)
        if isinstance(temporary, Image):
            return memory.new_image(place, _format(temporary), self._image_sizes(temporary.buffer.name, env))
        return memory.new_buffer(place, bytes_of(temporary, env))

    def _read(self, name: str, array: Array, held: Memory, env: Mapping[str, int]) -> None:
        place = place_of(self._device.handle)
        if isinstance(held, cl.Image):
            memory.read_image(place, array, held, self._image_sizes(name, env))
        else:
            memory.read_buffer(place, array, held)


def _buffer_of(temporary: Buffer | Image) -> Buffer:
    return temporary.buffer if isinstance(temporary, Image) else temporary


def _format(image: Image) -> cl.ImageFormat:
    return memory.image_format(image.channel_order, image.channel_type)


def _argument(argument: KernelArgument | Parameter, held: Mapping[str, Memory], scalars: Scalars) -> Any:
    if isinstance(argument, KernelArgument):
        return held[argument.name]
    return scalar_argument(argument, scalars[argument.name])


def scalar_argument(parameter: Parameter, value: int | float) -> Any:
    """A checked scalar as pyopencl passes it: a truth value as a byte, half-precision floats as their bits."""
    dtype = parameter.dtype
    number = np.array(value, dtype=numpy_dtype(dtype))
    if dtype.is_float and dtype.bits == 16:
        return number.view(np.uint16)[()]
    return number.view(np.int8)[()] if dtype.is_bool else number[()]
