"""The methods of index maps that write them in other notations. What they call proves what it returns, so it lives with
the solvers, above this folder: it is found by name, when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from layoutproof.ir.expr import Expr, ExprLike


class WrittenForms:
    """An index map in other notations, proved to be the map; LayoutproofError, with an index that shows it, if it has
    no such form. A shape is the logical one, of numbers and expressions, or text such as `n,64`.
    """

    __slots__ = ()

    def to_isl(self, shape: Sequence[ExprLike] | str | None = None) -> Any:
        """The map as an `islpy.Map`, on a shape or on all indices."""
        return _above("isl.layout_relation", "to_isl")(self, None if shape is None else _extents(shape))

    @staticmethod
    def from_isl(relation: Any, shape: Sequence[ExprLike] | str | None = None) -> Any:
        """The index map of an `islpy.Map`, or of its text, which is defined on the whole box of its indices."""
        read = _above("isl.layout_relation", "from_isl")
        return _above("maps.layout_text", "total_map")(
            read(relation, None if shape is None else _extents(shape)), "<isl>"
        )

    def to_cute(self, shape: Sequence[ExprLike] | str) -> Any:
        """The `CuteLayout` of the map's offset."""
        return _above("layouts.conversions", "to_cute")(self, _extents(shape))

    def to_linear(self, shape: Sequence[ExprLike] | str) -> Any:
        """The map as a `LinearLayout`: the images of bits, whose XOR is the image of an index."""
        return _above("layouts.conversions", "to_linear")(self, _extents(shape))

    def to_strides(self, shape: Sequence[ExprLike] | str) -> Any:
        """The `Strides` of the map's offset."""
        return _above("layouts.conversions", "to_strides")(self, _extents(shape))

    def to_affine_map(self, shape: Sequence[ExprLike] | str | None = None) -> str:
        """The text of MLIR's `affine_map`; bitwise operations need a shape."""
        text: str = _above("layouts.affine", "to_affine_map")(self, None if shape is None else _extents(shape))
        return text


def _extents(shape: Sequence[ExprLike] | str) -> tuple[Expr, ...]:
    extents: tuple[Expr, ...] = _above("maps.check_map", "read_shape")(shape)
    return extents


def _above(module: str, name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(f"layoutproof.verify.{module}"), name)
    return found
