"""A layout as text in any notation, and as methods of `IndexMap` find it; each text is proved to be the layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.notation import Notation
from layoutproof.verify.isl.layout_relation import to_isl
from layoutproof.verify.layouts.affine import to_affine_map
from layoutproof.verify.layouts.conversions import refused, to_cute, to_linear, to_strides
from layoutproof.verify.layouts.digits import to_einops, to_onednn, to_xla
from layoutproof.verify.maps.problem import Shape, coerce_shape


@dataclass(frozen=True, slots=True)
class Written:
    """The text in one notation, or why there is none."""

    notation: Notation
    text: str | None
    reason: str | None = None


def write_layout(index_map: IndexMap, shape: Shape, notation: Notation | str) -> str:
    """The text of a map on a shape in a notation. Raises LayoutproofError, if possible with an index, where none is."""
    writer = _WRITERS.get(Notation(notation))
    if writer is None:
        raise refused(index_map, "not written as a matrix instruction", "their operands are read only")
    return writer(index_map, shape)


def all_notations(index_map: IndexMap, shape: Shape) -> tuple[Written, ...]:
    """The map in every notation that it has a text in."""
    found: list[Written] = []
    for notation in _WRITERS:
        try:
            found.append(Written(notation, write_layout(index_map, shape, notation)))
        except LayoutproofError as problem:
            found.append(Written(notation, None, problem.diagnostics[0].message))
    return tuple(found)


def _einops(index_map: IndexMap, shape: Shape) -> str:
    text, lengths = to_einops(index_map, shape)
    return f"{text}, {', '.join(f'{name}={length}' for name, length in lengths.items())}" if lengths else text


def _string(index_map: IndexMap, shape: Shape) -> str:
    """oneDNN's tag in upper case, which is a layout string of TVM."""
    tag = to_onednn(index_map, shape)
    letters = "".join(chr(65 + axis) for axis in range(len(index_map.inputs)))
    if not letters:
        raise refused(index_map, "no layout string", "it has no axes")
    outer = tag[: len(letters)].upper()
    return f"{letters}->{outer}{tag[len(letters) :]}"


_WRITERS: Mapping[Notation, Callable[[IndexMap, Shape], str]] = {
    Notation.LAMBDA: lambda m, s: index_map_text(m),
    Notation.STRING: _string,
    Notation.CUTE: lambda m, s: str(to_cute(m, s)),
    Notation.TRITON: lambda m, s: str(to_linear(m, s)),
    Notation.MLIR: to_affine_map,
    Notation.ONEDNN: to_onednn,
    Notation.EINOPS: _einops,
    Notation.ISL: lambda m, s: str(to_isl(m, coerce_shape(s))),
    Notation.STRIDES: lambda m, s: str(to_strides(m, s)),
    Notation.XLA: to_xla,
}
