"""All operators of ONNX that are said in the operator library: one function for each, by kinds in files of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from layoutproof.importers.onnx.convolutions import CONVOLUTIONS
from layoutproof.importers.onnx.elementwise import ELEMENTWISE
from layoutproof.importers.onnx.linear import LINEAR
from layoutproof.importers.onnx.moving import MOVING
from layoutproof.importers.onnx.normalise import NORMALISE
from layoutproof.importers.onnx.pooling import POOLING
from layoutproof.importers.onnx.quantized import QUANTIZED
from layoutproof.importers.onnx.reducing import REDUCING
from layoutproof.importers.onnx.resizing import RESIZING
from layoutproof.importers.onnx.shapes import SHAPES
from layoutproof.importers.onnx.taking import TAKING
from layoutproof.importers.onnx.translate import Translate

OPERATORS: Final[Mapping[str, Translate]] = {
    **CONVOLUTIONS,
    **ELEMENTWISE,
    **LINEAR,
    **MOVING,
    **NORMALISE,
    **POOLING,
    **QUANTIZED,
    **REDUCING,
    **RESIZING,
    **SHAPES,
    **TAKING,
}
