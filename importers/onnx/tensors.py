"""Arrays of a model: in the file, beside it in files of the same folder, and sparse ones."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model import Array
from layoutproof.importers.onnx.library import library, text_of
from layoutproof.ir.diagnostic import LayoutproofError, error

MOST_BYTES = 2**30
"""How much memory the arrays take that are not in a model's files, but are made when it is read."""


def arrays_of(graph: Any, folder: Path | None) -> dict[str, Array]:
    """The arrays of a graph (`onnx.GraphProto`) by name; those in files of their own are read from a folder.

    Raises LayoutproofError for two of one name, and for arrays that cannot be read.
    """
    found: dict[str, Array] = {}
    for name, array in (
        *((text_of(item.name), array_of(item, folder)) for item in graph.initializer),
        *((text_of(item.values.name), dense_array(item)) for item in graph.sparse_initializer),
    ):
        if name in found:
            raise error(codes.TWO_VALUES, f"two arrays of the model are called {name}")
        found[name] = array
    return found


def array_of(item: Any, folder: Path | None) -> Array:
    """An array of a model (`onnx.TensorProto`). Raises LayoutproofError where its data do not fit its type and shape."""
    onnx = library()
    if any(extent < 0 for extent in item.dims):
        raise _unreadable(item, f"its shape is {list(item.dims)}")
    try:
        if item.data_location == onnx.TensorProto.EXTERNAL:
            return _from_file(onnx, item, folder)
        return np.asarray(onnx.numpy_helper.to_array(item))
    except (ValueError, KeyError, TypeError, OverflowError, MemoryError) as problem:
        raise _unreadable(item, str(problem)) from problem


def _from_file(onnx: Any, item: Any, folder: Path | None) -> Array:
    """An array that stands in a file of its own, in the model's folder or below it."""
    entries = {entry.key: entry.value for entry in item.external_data}
    location = text_of(entries.get("location", ""))
    if folder is None:
        raise _unreadable(item, f"it stands in the file {location!r}, and the model was given without its folder")
    path = folder / location
    if not location or Path(location).is_absolute() or not path.resolve().is_relative_to(folder.resolve()):
        raise _unreadable(item, f"the file {location!r} does not lie in the model's folder {folder}")
    if not path.is_file():
        raise _unreadable(item, f"there is no file {path}")
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(item.data_type))
    count, start = prod(item.dims), int(entries.get("offset", 0))
    # Types of less than a byte stand packed, two or four in one; the package unpacks them.
    whole = dtype.name in _WHOLE
    length = count * dtype.itemsize if whole else int(entries.get("length", path.stat().st_size - start))
    told = int(entries.get("length", length))
    if start < 0 or length < 0 or start + length > path.stat().st_size or told != length:
        raise _unreadable(item, f"{path} has no {length} bytes for it from byte {start}, or other than the model says ({told})")
    with path.open("rb") as file:
        file.seek(start)
        if whole:
            held: Array = np.fromfile(file, dtype=dtype.newbyteorder("<"), count=count)
            return held.astype(dtype, copy=False).reshape(tuple(item.dims))
        plain = onnx.TensorProto(data_type=item.data_type, dims=list(item.dims), raw_data=file.read(length))
    return np.asarray(onnx.numpy_helper.to_array(plain))


_WHOLE = frozenset(("bool", "bfloat16", *(f"float{k}" for k in (16, 32, 64)), *(f"{s}int{k}" for s in ("", "u") for k in (8, 16, 32, 64))))


def dense_array(item: Any) -> Array:
    """A sparse array of a model (`onnx.SparseTensorProto`) with its zeros.

    Raises LayoutproofError for places outside it, and for one that is too large to be written out.
    """
    values, places = array_of(item.values, None), array_of(item.indices, None)
    shape = tuple(item.dims)
    if any(extent < 0 for extent in shape) or prod(shape) * values.itemsize > MOST_BYTES:
        raise _unreadable(item.values, f"its shape is {list(shape)}, too large to be written out")
    if places.ndim == 2 and places.shape[1] == len(shape):
        bounds = np.array(shape, dtype=np.int64)
        inside = bool(np.all((places >= 0) & (places < bounds)))
        flat = np.ravel_multi_index(tuple(places.T), shape) if inside and places.size else np.zeros(len(places), dtype=np.int64)
    else:
        flat, inside = places.reshape(-1), bool(np.all((places >= 0) & (places < prod(shape))))
    if not inside or places.dtype.kind != "i" or values.ndim != 1 or len(flat) != len(values):
        raise _unreadable(item.values, f"its places do not lie in {list(shape)}, one for each of {values.size} elements")
    made: Array = np.zeros(prod(shape), dtype=values.dtype)
    made[flat] = values
    return made.reshape(shape)


def _unreadable(item: Any, why: str) -> LayoutproofError:
    return error(codes.MODEL_FILE, f"the array {text_of(item.name)!r} of the model cannot be read: {why}")
