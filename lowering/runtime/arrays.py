"""Arguments of a kernel as numpy arrays without a copy, and what must hold of them before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.runtime.dlpack import HOST_DEVICES, device_of, device_text
from layoutproof.lowering.runtime.dlpack import take as take_dlpack

Array = npt.NDArray[Any]


# What other people's code raises when it is asked for its memory.
_FOREIGN = (ArithmeticError, AssertionError, AttributeError, BufferError, LookupError, OSError, RuntimeError, TypeError, ValueError)


def as_array(name: str, value: object, *, written: bool = False) -> Array:
    """`value` as an array on the same memory: numpy's own, the array interface, or DLPack.

    Raises LayoutproofError (LP429) for anything else, LP432 for memory that only another device sees, LP424 for an exporter that gives
    a copy of what is `written`. A list is not taken, nor a number where something is written, since that would be lost.
    """
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise error(codes.NOT_AN_ARRAY, f"{name} is a masked array, and some of its elements are masked", help=f"{name}.filled(...) is not")
    if isinstance(value, np.generic) and written:
        message = f"{name} is written by the kernel, and is a single number ({type(value).__name__})"
        raise error(codes.NOT_AN_ARRAY, message, help="numpy.array makes an array of it")
    for how, attribute, take in _PROTOCOLS:
        try:
            found = take(name, value, written) if hasattr(value, attribute) else None
        except _FOREIGN as problem:
            raise error(codes.NOT_AN_ARRAY, f"{name} cannot be taken through {how}: {problem}") from problem
        if found is not None:
            return found
    help_text = "numpy.asarray makes one of it" if hasattr(type(value), "__array__") else "numpy.asarray makes one of a list"
    raise error(codes.NOT_AN_ARRAY, f"{name} is a {type(value).__name__}; an array is expected", help=help_text)


def _by_array_interface(name: str, value: Any, written: bool) -> Array | None:
    """On the memory that the interface names. None where it names none, so that DLPack may."""
    interface = value.__array_interface__
    array: Array = np.asarray(value)
    data = interface.get("data")
    if written and isinstance(data, tuple) and array.size and data[0] != array.ctypes.data:
        raise _a_copy(name)
    return array


def _by_dlpack(name: str, value: Any, written: bool) -> Array | None:
    device = device_of(value)
    if device is not None and device[0] not in HOST_DEVICES:
        raise _elsewhere(name, device_text(device))
    exported = take_dlpack(value)
    if written and exported.copied:
        raise _a_copy(name)
    return exported.array


def _by_cuda_array_interface(name: str, value: Any, written: bool) -> Array | None:
    raise _elsewhere(name, "a CUDA device")


def _elsewhere(name: str, place: str) -> LayoutproofError:
    return error(
        codes.OTHER_MEMORY,
        f"{name} is in the memory of {place}; a kernel is given arrays in the processor's memory",
        help=f"copy it there first, and back what is written: {name}.cpu() in torch, {name}.get() in CuPy",
    )


def _a_copy(name: str) -> LayoutproofError:
    return error(
        codes.READ_ONLY, f"{name} is written by the kernel, and what it gives is a copy of its memory: what is written would be lost"
    )


# In this order: who offers several has memory that the processor sees, or else says so.
_PROTOCOLS: tuple[tuple[str, str, Callable[[str, Any, bool], Array | None]], ...] = (
    ("the array interface", "__array_interface__", _by_array_interface),
    ("DLPack", "__dlpack__", _by_dlpack),
    ("the CUDA array interface", "__cuda_array_interface__", _by_cuda_array_interface),
)


def check_array(name: str, array: Array, dtype: DType, *, written: bool) -> None:
    """Raise LayoutproofError unless an array can be handed to a kernel: LP422 type and byte order, LP423 contiguity and alignment,
    LP424 an output that cannot be written."""
    wanted = numpy_dtype(dtype)
    if array.dtype != wanted or not array.dtype.isnative:
        if array.dtype.newbyteorder("=") == wanted:
            raise error(
                codes.ARGUMENT_TYPE,
                f"{name} has the other byte order ({array.dtype.str})",
                help=f"{name}.astype({str(dtype.element)!r}) converts it",
            )
        raise error(codes.ARGUMENT_TYPE, f"{name} holds {array.dtype}; {dtype.element} is expected")
    if not array.flags.c_contiguous:
        raise error(
            codes.ARGUMENT_MEMORY,
            f"{name} is not contiguous (strides {list(array.strides)})",
            help="numpy.ascontiguousarray makes a copy that is",
        )
    if not array.flags.aligned:
        raise error(codes.ARGUMENT_MEMORY, f"{name} is not aligned to its elements", help=f"{name}.copy() is")
    if written and not array.flags.writeable:
        raise error(codes.READ_ONLY, f"{name} is written by the kernel and is read-only")


def lane_shape(shape: Sequence[int], dtype: DType) -> tuple[int, ...]:
    """The numpy shape of elements with lanes: a last axis more."""
    return (*shape, dtype.lanes) if dtype.lanes > 1 else tuple(shape)


def split_lanes(name: str, array: Array, dtype: DType) -> tuple[int, ...]:
    """The shape in elements. Raises LayoutproofError (LP421) where the last axis is not the lanes."""
    if dtype.lanes == 1:
        return array.shape
    if array.ndim == 0 or array.shape[-1] != dtype.lanes:
        raise error(
            codes.ARGUMENT_SHAPE,
            f"{name} has shape {list(array.shape)}; its elements are {dtype}: the last axis must have length {dtype.lanes}",
        )
    return array.shape[:-1]


def check_overlap(arrays: Sequence[tuple[str, Array, bool]]) -> None:
    """Raise LayoutproofError (LP425) where two arrays share memory and one of them is written: (name, array, written) each."""
    _check_overlap(arrays, "the function assumes that its parameters do not overlap (noalias): pass a copy")


def check_apart(arrays: Sequence[tuple[str, Array, bool]]) -> None:
    """The same for a target that copies every array to memory of its own, whatever the function assumes."""
    _check_overlap(arrays, "this target copies every array to memory of its own, where they would not be one: the C target takes them")


def _check_overlap(arrays: Sequence[tuple[str, Array, bool]], help_text: str) -> None:
    for position, (name, array, written) in enumerate(arrays):
        for other, second, also in arrays[position + 1 :]:
            if (written or also) and _ranges_meet(array, second):
                message = f"{name} and {other} overlap in memory, and {name if written else other} is written"
                raise error(codes.OVERLAP, message, help=help_text)


def _ranges_meet(a: Array, b: Array) -> bool:
    """Whether the addresses of two contiguous arrays meet."""
    if a.nbytes == 0 or b.nbytes == 0:
        return False
    return a.ctypes.data < b.ctypes.data + b.nbytes and b.ctypes.data < a.ctypes.data + a.nbytes


def poison(dtype: DType) -> Any:
    """What cells hold that may hold anything: a value that shows where it was read after all."""
    if dtype.is_float:
        return numpy_dtype(dtype).type(float("nan"))
    if dtype.is_bool:
        return True
    return int(dtype.max_int) - 0x25
