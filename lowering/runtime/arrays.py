"""Arguments of a kernel as numpy arrays without a copy, DLPack included, and their checks before anything runs.

A capsule is kept by the array and never marked as used, so the exporter's destructor frees the memory after the array.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.lowering.codegen import codes

_MAJOR = 1  # the newest version whose structure is known here
_READ_ONLY, _COPIED = 1, 2  # bits of the flags

HOST_DEVICES = (1, 3, 11)
"""Device types whose memory the processor reads and writes: its own, and what CUDA and ROCm pin there."""

_DEVICES: Mapping[int, str] = {
    1: "CPU", 2: "CUDA", 3: "CUDA-pinned", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 9: "VPI", 10: "ROCm",
    11: "ROCm-pinned", 12: "extension", 13: "CUDA-managed", 14: "oneAPI", 15: "WebGPU", 16: "Hexagon", 17: "MAIA",
    18: "Trainium",
}  # fmt: skip

_KINDS: Mapping[int, str] = {0: "int", 1: "uint", 2: "float", 6: "bool"}
_BFLOAT = 4

Array = npt.NDArray[Any]
# What other people's code raises when it is asked for its memory.
_FOREIGN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


@dataclass(frozen=True, slots=True)
class Exported:
    """An array on an exporter's memory. `writable` is what the exporter reports, True where its version cannot;
    `copied`: writes would not reach the exporter.
    """

    array: npt.NDArray[Any]
    writable: bool
    copied: bool


@dataclass(frozen=True, slots=True)
class _Holder:
    """The object that a numpy array is made of and keeps alive."""

    __array_interface__: dict[str, Any]
    capsule: object


def device_of(value: Any) -> tuple[int, int] | None:
    """The type and number of the device of an exporter's memory; None where it is not given."""
    ask = getattr(value, "__dlpack_device__", None)
    if ask is None:
        return None
    kind, number = ask()
    return int(kind), int(number)


def device_text(device: tuple[int, int]) -> str:
    """`a CUDA device (number 0)`."""
    name = _DEVICES.get(device[0], f"unknown (type {device[0]})")
    return f"{'an' if name[0] in 'Oeu' else 'a'} {name} device (number {device[1]})"


def take(value: Any) -> Exported:
    """The array behind an exporter. Raises BufferError for what numpy cannot represent, and whatever the exporter
    raises.
    """
    capsule = _ask(value)
    tensor, flags = _read(capsule)
    if (tensor.device_type, tensor.device_id) != (device_of(value) or (tensor.device_type, tensor.device_id)):
        raise BufferError("its capsule is of another device than it says")
    if tensor.device_type not in HOST_DEVICES:
        raise BufferError(f"its memory is on {device_text((tensor.device_type, tensor.device_id))}")
    element = _element(tensor)
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    # An array of no elements may have no memory.
    address = (tensor.data or 0) + tensor.byte_offset
    storage = np.dtype(f"u{element.itemsize}")
    interface = {"version": 3, "shape": shape, "typestr": storage.str, "data": (address, bool(flags & _READ_ONLY))}
    if tensor.strides:
        interface["strides"] = tuple(tensor.strides[axis] * element.itemsize for axis in range(tensor.ndim))
    if 0 in shape:
        array = np.empty(shape, dtype=element)
    else:
        array = np.asarray(_Holder(interface, capsule)).view(element)
    return Exported(array, not flags & _READ_ONLY, bool(flags & _COPIED))


def _ask(value: Any) -> object:
    """The exporter's capsule: without a copy, and of a known version, if it supports these arguments."""
    asked: tuple[dict[str, Any], ...] = ({"max_version": (_MAJOR, 0), "copy": False}, {"max_version": (_MAJOR, 0)})
    for options in asked:
        try:
            return value.__dlpack__(**options)
        except TypeError:
            continue  # older exporters take fewer arguments
    return value.__dlpack__()


def _read(capsule: object) -> tuple[_Tensor, int]:
    """The tensor that a capsule holds, and its flags."""
    found = _pointer(capsule, b"dltensor_versioned")
    if found is not None:
        versioned = ctypes.cast(found, ctypes.POINTER(_Versioned)).contents
        if versioned.major != _MAJOR:
            raise BufferError(
                f"it speaks version {versioned.major}.{versioned.minor} of DLPack; version {_MAJOR} is understood"
            )
        return versioned.tensor, versioned.flags
    found = _pointer(capsule, b"dltensor")
    if found is None:
        raise BufferError("it gave no DLPack capsule, or one that was used before")
    return ctypes.cast(found, ctypes.POINTER(_Tensor)).contents, 0


def _pointer(capsule: object, name: bytes) -> int | None:
    """The pointer in a capsule of that name; None for anything else."""
    holds, pointer = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
    holds.argtypes = pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    holds.restype, pointer.restype = ctypes.c_int, ctypes.c_void_p
    return int(pointer(capsule, name)) if holds(capsule, name) else None


def _element(tensor: _Tensor) -> np.dtype[Any]:
    """The numpy type of the elements."""
    if tensor.lanes == 1:
        if tensor.code == _BFLOAT and tensor.bits == 16:
            bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
            return bfloat16
        kind = _KINDS.get(tensor.code)
        if kind == "bool" and tensor.bits == 8:
            return np.dtype(np.bool_)
        if kind in ("int", "uint", "float") and tensor.bits in (16, 32, 64, *((8,) if kind != "float" else ())):
            return np.dtype(f"{kind}{tensor.bits}")
    raise BufferError(
        f"its elements (DLPack code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes) are of no type that "
        "programs have"
    )


def as_array(name: str, value: object, *, written: bool = False) -> Array:
    """`value` as an array on the same memory: numpy's own, the array interface, or DLPack.

    Raises LayoutproofError (LP429) for anything else, LP432 for memory of another device, LP424 for an exporter that
    copies what is `written`. Lists are refused, and so are numbers where something is written, since writes would be
    lost.
    """
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise error(
            codes.NOT_AN_ARRAY,
            f"{name} is a masked array, and some of its elements are masked",
            help=f"{name}.filled(...) is not",
        )
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
    help_text = (
        "numpy.asarray makes one of it" if hasattr(type(value), "__array__") else "numpy.asarray makes one of a list"
    )
    raise error(codes.NOT_AN_ARRAY, f"{name} is a {type(value).__name__}; an array is expected", help=help_text)


def _by_array_interface(name: str, value: Any, written: bool) -> Array | None:
    """On the memory of the array interface; None if it names none."""
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
    exported = take(value)
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
        codes.READ_ONLY,
        f"{name} is written by the kernel, and what it gives is a copy of its memory: what is written would be lost",
    )


# In this order: who offers several has memory that the processor sees, or else says so.
_PROTOCOLS: tuple[tuple[str, str, Callable[[str, Any, bool], Array | None]], ...] = (
    ("the array interface", "__array_interface__", _by_array_interface),
    ("DLPack", "__dlpack__", _by_dlpack),
    ("the CUDA array interface", "__cuda_array_interface__", _by_cuda_array_interface),
)


def check_array(name: str, array: Array, dtype: DType, *, written: bool) -> None:
    """Raise LayoutproofError unless an array fits a kernel: LP422 type and byte order, LP423 contiguity and alignment,
    LP424 an output that is read-only.
    """
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
    """The numpy shape of elements with lanes: one more axis at the end."""
    return (*shape, dtype.lanes) if dtype.lanes > 1 else tuple(shape)


def split_lanes(name: str, array: Array, dtype: DType) -> tuple[int, ...]:
    """The shape in elements. Raises LayoutproofError (LP421) where the last axis is not the lanes."""
    if dtype.lanes == 1:
        return array.shape
    if array.ndim == 0 or array.shape[-1] != dtype.lanes:
        raise error(
            codes.ARGUMENT_SHAPE,
            f"{name} has shape {list(array.shape)}; its elements are {dtype}: the last axis must have length "
            f"{dtype.lanes}",
        )
    return array.shape[:-1]


def check_overlap(arrays: Sequence[tuple[str, Array, bool]]) -> None:
    """Raise LayoutproofError (LP425) where two arrays share memory and one of them is written: (name, array, written)
    each.
    """
    _check_overlap(arrays, "the function assumes that its parameters do not overlap (noalias): pass a copy")


def check_apart(arrays: Sequence[tuple[str, Array, bool]]) -> None:
    """The same for a target that copies every array, whether or not the function assumes it."""
    _check_overlap(
        arrays,
        "this target copies every array to memory of its own, where they would not be one: the C target takes them",
    )


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
    """A recognisable value for cells that may hold anything."""
    if dtype.is_float:
        return numpy_dtype(dtype).type(float("nan"))
    if dtype.is_bool:
        return True
    return int(dtype.max_int) - 0x25
