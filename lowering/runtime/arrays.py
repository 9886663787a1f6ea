"""Arguments of a kernel as numpy arrays without a copy, and what must hold of them before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType
from layoutproof.ir.numpy_types import numpy_dtype
from layoutproof.lowering.codegen import codes

Array = npt.NDArray[Any]


# What other people's code raises when it is asked for its memory.
_FOREIGN = (ArithmeticError, AssertionError, AttributeError, BufferError, LookupError, OSError, RuntimeError, TypeError, ValueError)

_PROTOCOLS: tuple[tuple[str, str, Callable[[Any], Array]], ...] = (
    ("the array interface", "__array_interface__", np.asarray),
    ("DLPack", "__dlpack__", np.from_dlpack),
)


def as_array(name: str, value: object, *, written: bool = False) -> Array:
    """`value` as an array on the same memory: numpy's own, the array interface, or DLPack.

    Raises LayoutproofError (LP429) for anything else; a list is not taken, nor a number where something is `written`, since what is
    written to a copy would be lost.
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
            if hasattr(value, attribute):
                return take(value)
        except _FOREIGN as problem:
            raise error(codes.NOT_AN_ARRAY, f"{name} cannot be taken through {how}: {problem}") from problem
    raise error(codes.NOT_AN_ARRAY, f"{name} is a {type(value).__name__}; an array is expected", help="numpy.asarray makes one of a list")


def check_array(name: str, array: Array, dtype: DType, *, written: bool) -> None:
    """Raise LayoutproofError unless an array can be handed to C: LP422 type and byte order, LP423 contiguity and alignment,
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
    for position, (name, array, written) in enumerate(arrays):
        for other, second, also in arrays[position + 1 :]:
            if (written or also) and _ranges_meet(array, second):
                raise error(
                    codes.OVERLAP,
                    f"{name} and {other} overlap in memory, and {name if written else other} is written",
                    help="the function assumes that its parameters do not overlap (noalias): pass a copy",
                )


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
