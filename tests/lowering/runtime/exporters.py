"""Arrays of other libraries, made by hand: DLPack capsules of either form, and objects that offer several protocols at
once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_MAKE = ctypes.pythonapi.PyCapsule_New
_MAKE.restype = ctypes.py_object
_MAKE.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_KEPT: list[Any] = []
"""All that capsules point to, for good: a capsule may live longer than its exporter."""


class Tensor(ctypes.Structure):
    """`DLTensor`, written out from the specification once more."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class Managed(ctypes.Structure):
    """`DLManagedTensor`, of the versions before 1.0."""

    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    """`DLManagedTensorVersioned`, from version 1.0 on."""

    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor),
    )  # fmt: skip


class Exporter:
    """An exporter of one array's memory. `version` None speaks the old form; `changes` overwrite fields of the tensor.

    `asked` keeps the arguments of each call.
    """

    def __init__(
        self,
        array: Array,
        *,
        version: tuple[int, int] | None = (1, 0),
        flags: int = 0,
        device: tuple[int, int] = (1, 0),
        **changes: int,
    ) -> None:
        self.array, self.version, self.flags, self.device, self.changes = array, version, flags, device, changes
        self.asked: list[dict[str, Any]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> object:
        self.asked.append(options)
        if options and self.version is None:
            raise TypeError("__dlpack__() takes no arguments")
        tensor = self._tensor()
        whole: Managed | Versioned
        if self.version is None:
            name, whole = b"dltensor", Managed(tensor, None, None)
        else:
            name, whole = b"dltensor_versioned", Versioned(*self.version, None, None, self.flags, tensor)

        _KEPT.extend([self, whole, name])
        capsule: object = _MAKE(ctypes.addressof(whole), name, None)
        return capsule

    def _tensor(self) -> Tensor:
        array = self.array
        axes = ctypes.c_int64 * max(array.ndim, 1)
        shape, strides = axes(*array.shape), axes(*(s // array.itemsize for s in array.strides))
        _KEPT.extend([shape, strides])
        code = 4 if array.dtype.name == "bfloat16" else _CODES[array.dtype.kind]
        tensor = Tensor(
            array.ctypes.data,
            *self.device,
            array.ndim,
            code,
            8 * array.itemsize,
            1,
            ctypes.addressof(shape),
            ctypes.addressof(strides),
            0,
        )
        for field, value in self.changes.items():
            setattr(tensor, field, value)
        return tensor


class Old(Exporter):
    """An exporter of before version 1.0."""

    def __init__(self, array: Array, **changes: Any) -> None:
        super().__init__(array, version=None, **changes)


class Both:
    """DLPack and the array interface, of one array."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.asked: list[str] = []

    @property
    def __array_interface__(self) -> dict[str, Any]:
        self.asked.append("interface")
        return self.array.__array_interface__

    def __dlpack__(self, **options: Any) -> object:
        self.asked.append("dlpack")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class OnCuda:
    """Memory that CUDA sees, by its array interface."""

    def __init__(self, array: Array) -> None:
        interface = dict(array.__array_interface__)
        self.__cuda_array_interface__ = {**interface, "version": 3, "data": (0xDEAD0000, False)}


class OnCudaBoth(OnCuda):
    """The same, by DLPack too, as CuPy and torch have it."""

    def __dlpack__(self, **options: Any) -> object:
        raise AssertionError("the device is asked for first")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 1)


class SharedWithCuda(OnCuda):
    """Memory that both see: pinned or managed, with both interfaces."""

    def __init__(self, array: Array) -> None:
        super().__init__(array)
        self.array = array
        self.__array_interface__ = array.__array_interface__


class Copying:
    """An array interface that names other memory at every look."""

    def __init__(self, array: Array) -> None:
        self._array, self._copies = array, list[Array]()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        self._copies.append(np.array(self._array))
        return self._copies[-1].__array_interface__


class Lazy:
    """Something that can make an array of itself, but has none."""

    def __array__(self, dtype: object = None, copy: object = None) -> Array:
        raise AssertionError("no copy is asked for")


MAKERS: dict[str, Callable[[Array], Any]] = {
    "versioned": Exporter,
    "old": Old,
    "both": Both,
    "shared with CUDA": SharedWithCuda,
}
