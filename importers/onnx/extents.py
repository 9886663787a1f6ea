"""The shapes of a model's inputs: numbers, and open extents with the sizes that are given for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model import Shape
from layoutproof.importers.onnx.library import library, text_of
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType


class Extents:
    """Sizes by the names of dimensions, and by `input.axis`, which wins; it is kept which of them there are and which are used."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        for name, size in sizes.items():
            if size < 1:
                raise error(codes.MODEL_SHAPE, f"the size of {name} is {size!r}; expected is a whole number, 1 or more")
        self._sizes = sizes
        self._open: list[str] = []
        self._used: set[str] = set()

    def type_of(self, item: Any) -> tuple[Shape, str]:
        """The shape and the numpy type of an input (`onnx.ValueInfoProto`).

        Raises LayoutproofError for an open extent without a size, and for what is no array of numbers.
        """
        onnx, tensor, name = library(), item.type.tensor_type, text_of(item.name)
        try:
            dtype = str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)).name)
            DType.parse(dtype)
        except (KeyError, ValueError) as problem:
            raise error(codes.MODEL_FILE, f"the input {name} is no array of numbers of a known type") from problem
        if not tensor.HasField("shape"):
            raise error(codes.MODEL_SHAPE, f"the input {name} has no shape; expected is one, with names for what is open")
        return tuple(self._extent(name, axis, extent) for axis, extent in enumerate(tensor.shape.dim)), dtype

    def _extent(self, name: str, axis: int, extent: Any) -> int:
        if extent.dim_value > 0:
            return int(extent.dim_value)
        place, called = f"{name}.{axis}", text_of(extent.dim_param)
        keys = [place, called] if called else [place]
        self._open += keys
        found = next((key for key in keys if key in self._sizes), None)
        if found is None:
            known = called or place
            what = f"the dimension {called!r}" if called else "a dimension without a name"
            message = f"the input {name} has an extent that is open: axis {axis} is {what}"
            raise error(codes.MODEL_SHAPE, message, help=f"give its size: sizes={{{known!r}: 1}}, on the command line --size {known}=1")
        self._used.update(key for key in keys if key in self._sizes)
        return self._sizes[found]

    def check_all_used(self) -> None:
        """Raise LayoutproofError for a size that belongs to no open extent."""
        unknown = [name for name in self._sizes if name not in self._used]
        if unknown:
            there = ", ".join(dict.fromkeys(self._open))
            message = f"no extent of an input is open under the name {unknown[0]!r}"
            raise error(codes.MODEL_SHAPE, message, help=f"open are {there}" if there else "all extents of the model are numbers")
