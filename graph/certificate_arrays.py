"""The elements of a graph's constants in its certificate: kept once, and known by their SHA-256 wherever they can be found or made again.

A constant that was stored anew is made again from the old one, or the old one from it: the digests of both stand in the certificate, so
whichever array is at hand, what is made of it is the other one or is found not to be. What is large stands in a file beside it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model import Array, Constant, Graph, Value
from layoutproof.graph.scalars import number_of
from layoutproof.graph.text.files import ARRAYS, UNREADABLE
from layoutproof.graph.text.printer import is_inline
from layoutproof.graph.witness import Place
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.verify.certificate.sealed_files import Document

_MOST_PADDING = 64
"""How many times as large as an array one may be that is made of it: a certificate may claim anything."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The arrays of two graphs that cannot be made of others, by their keys; `keys` are those of each graph's constants, by their names."""

    arrays: Mapping[str, Array]
    keys: Mapping[str, Mapping[str, str]]

    @property
    def size(self) -> int:
        """The bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())


def kept_arrays(old: Graph, new: Graph, places: Mapping[str, Place]) -> Kept:
    """What has to be kept of the constants of a graph and of what it became: all old ones, and new ones that are not made of those."""
    arrays = {_key_of(constant): constant.data for constant in beside(old)}
    before = {constant.value.name: constant for constant in old.constants}
    for constant in beside(new):
        key, place = _key_of(constant), places[constant.value.name]
        if key not in arrays and _digest(_made(before.get(place.value), place, constant.value)) != constant.digest:
            arrays[key] = constant.data
    keys = {which: {c.value.name: _key_of(c) for c in beside(graph)} for which, graph in (("old", old), ("new", new))}
    return Kept(arrays, keys)


def beside(graph: Graph) -> list[Constant]:
    """The constants whose elements do not stand in the graph's text."""
    return [constant for constant in graph.constants if not is_inline(constant)]


def path_beside(path: Path) -> Path:
    """Where the arrays of a certificate stand that are not in it."""
    return Path(f"{path}{ARRAYS}")


def entry_of(array: Array, dtype: DType) -> dict[str, Any]:
    """An array as a certificate has it."""
    raw = np.ascontiguousarray(array).tobytes()
    return {"dtype": str(dtype), "shape": list(array.shape), "data": base64.b64encode(raw).decode("ascii")}


def array_of(entry: Document) -> tuple[Array, str]:
    """An array of a certificate, with its key. Raises KeyError, TypeError or ValueError for an entry that is none."""
    raw, dtype, shape = base64.b64decode(entry["data"], validate=True), DType.parse(entry["dtype"]), tuple(map(int, entry["shape"]))
    array = np.frombuffer(raw, dtype=numpy_dtype(dtype)).reshape(shape)
    return array, key_of(hashlib.sha256(raw).hexdigest(), Value("", shape, dtype))


def found_arrays(wanted: Iterable[str], files: Iterable[Path]) -> dict[str, Array]:
    """The arrays of files that have these digests, by these. Raises LayoutproofError for a file that cannot be read as arrays."""
    digests = set(wanted)
    found: dict[str, Array] = {}
    for file in files:
        try:
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                if not isinstance(archive, np.lib.npyio.NpzFile):
                    raise ValueError("it holds one array, not arrays by their names")
                for name in archive.files:
                    array = archive[name]
                    digest = _digest(array)
                    if digest in digests:
                        found[digest] = array
        except UNREADABLE as problem:
            raise error(codes.CONSTANT_DATA, f"the arrays in {file} cannot be read: {problem}") from problem
    return found


def with_arrays(old: Graph, new: Graph, places: Mapping[str, Place], found: Mapping[str, Array]) -> tuple[Graph, Graph]:
    """Both graphs with the elements of those constants that were found, by their digests, or that are made of others."""
    before = {constant.value.name: _filled(constant, found) for constant in old.constants}
    after = {constant.value.name: _filled(constant, found) for constant in new.constants}
    # Backwards first: an old constant of which nothing was found may be taken out of where it went.
    for name, constant in after.items():
        place = places[name]
        source = before.get(place.value)
        if source is not None and source.sha256 is not None and constant.sha256 is None:
            before[place.value] = _known(source, _taken(constant, place, source.value))
    for name, constant in after.items():
        if constant.sha256 is not None:
            after[name] = _known(constant, _made(before.get(places[name].value), places[name], constant.value))
    return replace(old, constants=tuple(before.values())), replace(new, constants=tuple(after.values()))


def _filled(constant: Constant, found: Mapping[str, Array]) -> Constant:
    array = found.get(constant.digest) if constant.sha256 is not None else None
    if array is None or array.nbytes != prod(constant.value.shape) * numpy_dtype(constant.value.dtype).itemsize:
        return constant
    return _known(constant, np.ascontiguousarray(array).reshape(-1).view(numpy_dtype(constant.value.dtype)).reshape(constant.value.shape))


def _known(constant: Constant, array: Array | None) -> Constant:
    """The constant with its elements, where they are those that it has the digest of."""
    return replace(constant, data=array, sha256=None) if array is not None and _digest(array) == constant.sha256 else constant


def _made(source: Constant | None, place: Place, value: Value) -> Array | None:
    """What a new constant holds if it holds an old one where its place says; None where that cannot be made."""
    if source is None or source.sha256 is not None or source.value.dtype != value.dtype:
        return None
    if prod(value.shape) > _MOST_PADDING * prod(source.value.shape):
        return None
    pad = None if place.pad is None else number_of(place.pad)
    try:
        return np.asarray(place.index_map.map_array(source.data, value.shape, pad if pad is not None else 0), order="C")
    except (LayoutproofError, ValueError, IndexError, OverflowError, ZeroDivisionError):
        return None


def _taken(constant: Constant, place: Place, value: Value) -> Array | None:
    """What an old constant holds if a new one holds it where its place says; None where that cannot be told."""
    if constant.value.dtype != value.dtype or prod(value.shape) > prod(constant.value.shape):
        return None
    try:
        return np.asarray(place.index_map.unmap_array(constant.data, value.shape), order="C")
    except (LayoutproofError, ValueError, IndexError, OverflowError, ZeroDivisionError):
        return None


def _digest(array: Array | None) -> str | None:
    return None if array is None else hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _key_of(constant: Constant) -> str:
    """By what an array is known: its digest, and type and shape besides, since equal bytes may be of several."""
    return key_of(constant.digest, constant.value)


def key_of(digest: str, value: Value) -> str:
    """By what the array of a value is known."""
    return f"{digest} {value.dtype} {list(value.shape)}"
