"""DLPack read from its capsule: any element type that programs have, on the exporter's own memory, with what it says of device and writing.

The capsule is kept by the array and never marked as used, so the exporter's destructor gives the memory back when the array is gone.
Layout of the structures: the DLPack specification, versions before 1.0 (`dltensor`) and from 1.0 on (`dltensor_versioned`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

_MAJOR = 1  # the newest version whose structure is known here
_READ_ONLY, _COPIED = 1, 2  # bits of the flags

HOST_DEVICES = (1, 3, 11)
"""Device types whose memory the processor reads and writes: its own, and what CUDA and ROCm pin there."""

_DEVICES: Mapping[int, str] = {
    1: "CPU", 2: "CUDA", 3: "CUDA-pinned", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 9: "VPI", 10: "ROCm", 11: "ROCm-pinned", 12: "extension",
    13: "CUDA-managed", 14: "oneAPI", 15: "WebGPU", 16: "Hexagon", 17: "MAIA", 18: "Trainium",
}  # fmt: skip

_KINDS: Mapping[int, str] = {0: "int", 1: "uint", 2: "float", 6: "bool"}
_BFLOAT = 4


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
    """An array on an exporter's memory. `writable` is what the exporter says, True where its version cannot say; `copied` that what is
    written would not reach it."""

    array: npt.NDArray[Any]
    writable: bool
    copied: bool


@dataclass(frozen=True, slots=True)
class _Holder:
    """What numpy makes an array of, and keeps for as long as that array lives."""

    __array_interface__: dict[str, Any]
    capsule: object


def device_of(value: Any) -> tuple[int, int] | None:
    """The type and number of the device that an exporter's memory is on; None where it does not say."""
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
    """The array behind an exporter. Raises BufferError for what DLPack can say and numpy cannot, and whatever the exporter raises."""
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
    """The exporter's capsule, without a copy where it understands that, of a version that it understands."""
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
            raise BufferError(f"it speaks version {versioned.major}.{versioned.minor} of DLPack; version {_MAJOR} is understood")
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
        f"its elements (DLPack code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes) are of no type that programs have"
    )
