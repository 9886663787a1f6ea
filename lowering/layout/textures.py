"""Texture layouts as ready maps: what mobile inference systems do with activations, weights and biases.

`schedule.transform_layout("conv", "A", textures.NHC4W4)` stores a buffer so; for a tensor with another axis order,
`textures.NHC4W4.taking("nhwc")`. Axis separators mark where the layers, rows and columns of the image begin. The last
physical axis counts the four channels of a texel. Each layout is proved for all shapes in `proofs/layouts`; published
formulas that are wrong are in `tests/lowering/layout/test_texture_formulas.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import INT64
from layoutproof.ir.expr import Expr, ExprLike, IntImm, const, widen
from layoutproof.ir.index_map import AXIS_SEPARATOR, AxisSeparator, IndexMap, index_map_text
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.lowering import codes
from layoutproof.verify.maps.check_map import ShapeLike, check_map, read_shape

RGBA = 4


@dataclass(frozen=True, slots=True)
class Texels:
    """The size of an image in texels; `layers` is None for a single image."""

    width: Expr
    height: Expr
    layers: Expr | None


@dataclass(frozen=True, slots=True)
class TextureLayout:
    """A layout in a texture by name. `index_map` takes the logical axes in the order of their letters, `axes`.

    `about` names the systems that use it. Called with indices it acts as an index map's function.
    """

    name: str
    about: str
    index_map: IndexMap
    lanes: int = RGBA

    def __post_init__(self) -> None:
        if len(self.index_map.groups) not in (2, 3):
            raise ValueError(
                f"{self.name} has {len(self.index_map.groups)} axis groups; an image has 2, an array of images 3"
            )

    @property
    def axes(self) -> str:
        """The letters of the logical axes, in order."""
        return "".join(variable.name for variable in self.index_map.inputs)

    @property
    def sizes(self) -> str:
        """A name for the extent of each logical axis, as text for a shape: its letter, capital."""
        return ", ".join(letter.upper() for letter in self.axes)

    @property
    def separators(self) -> tuple[int, ...]:
        """The index of the last physical axis of each group but the last."""
        return self.index_map.separators

    @property
    def kind(self) -> str:
        """What OpenCL calls such an image: `image2d` or `image2d_array`."""
        return "image2d_array" if len(self.index_map.groups) == 3 else "image2d"

    @property
    def text(self) -> str:
        """The index map as a lambda in text."""
        return index_map_text(self.index_map)

    def taking(self, axes: str) -> TextureLayout:
        """The same layout for a tensor with logical axes in the order `axes`. Raises LayoutproofError for other
        letters.
        """
        if sorted(axes) != sorted(self.axes):
            raise error(
                codes.ARGUMENT_TYPE,
                f"{self.name} stores a tensor with the axes {self.axes}, in any order, not {axes!r}",
            )
        inputs = {variable.name: variable for variable in self.index_map.inputs}
        return replace(self, index_map=replace(self.index_map, inputs=tuple(inputs[letter] for letter in axes)))

    def physical_shape(self, shape: ShapeLike) -> tuple[Expr, ...]:
        """The extents before flattening, of a tensor of `shape`: numbers, names, expressions, or text such as "n, 64,
        h, w".

        Raises LayoutproofError for a malformed shape, and for another number of axes.
        """
        extents = read_shape(shape)
        if len(extents) != len(self.axes):
            raise error(
                codes.ARGUMENT_TYPE,
                f"{self.name} stores a tensor with the axes {self.axes}; the shape has {len(extents)} extents",
            )
        found = check_map(self.index_map, extents).physical_shape
        known = tuple(extent for extent in found if extent is not None)
        assert len(known) == len(found), f"the box of {self.name} is not known"
        return known

    def texels(self, shape: ShapeLike) -> Texels:
        """The size in texels of the image that holds a tensor of `shape`; the errors are those of `physical_shape`."""
        extents = self.physical_shape(shape)
        groups = [[extents[axis] for axis in group] for group in self.index_map.groups]
        # The last axis is the channels of one texel.
        columns, *outer = groups[-1][:-1], *reversed(groups[:-1])
        return Texels(_product(columns), _product(outer[0]), _product(outer[1]) if len(outer) > 1 else None)

    def __call__(self, *indices: ExprLike) -> list[Expr | AxisSeparator]:
        """The physical index of a logical one, with AXIS_SEPARATOR between the groups."""
        found: list[Expr | AxisSeparator] = []
        for axis, index in enumerate(self.index_map.map_indices(indices)):
            found.append(index)
            if axis in self.separators:
                found.append(AXIS_SEPARATOR)
        return found

    @property
    def __signature__(self) -> inspect.Signature:
        """The logical axes by their letters."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(variable.name, kind) for variable in self.index_map.inputs])


def _product(extents: list[Expr]) -> Expr:
    """The product, in 64 bits if it has several factors that are not constant."""
    numbers = [extent for extent in extents if isinstance(extent, IntImm)]
    others = [extent for extent in extents if not isinstance(extent, IntImm)]
    number = 1
    for extent in numbers:
        number *= extent.value
    if not others:
        return const(number)
    factors = others if len(others) == 1 and number == 1 else [widen(extent, INT64) for extent in others]
    total = factors[0]
    for factor in factors[1:]:
        total = total * factor
    return total if number == 1 else total * const(number)


def _layout(name: str, text: str, about: str) -> TextureLayout:
    return TextureLayout(name, about, parse_index_map(text))


# Activations

NCHW4c = _layout(
    "NCHW4c",
    "lambda n, c, h, w: [n, c // 4, h, AXIS_SEPARATOR, w, c % 4]",
    "activations in TVM's scope global.texture: N*ceil(C/4)*H rows of W texels",
)
NCHW4c_ARRAY = _layout(
    "NCHW4c_ARRAY",
    "lambda n, c, h, w: [n, c // 4, AXIS_SEPARATOR, h, AXIS_SEPARATOR, w, c % 4]",
    "the same as an array of N*ceil(C/4) images of H by W, as later TVM and Vulkan back ends have it",
)
NHWC4c = _layout(
    "NHWC4c",
    "lambda n, h, w, c: [n, h, AXIS_SEPARATOR, w, c // 4, c % 4]",
    "activations in TVM's scope global.texture-nhwc: N*H rows of W*ceil(C/4) texels",
)
NHC4W4 = _layout(
    "NHC4W4",
    "lambda n, c, h, w: [n, h, AXIS_SEPARATOR, c // 4, w, c % 4]",
    "activations as MNN, TNN, MACE and Paddle-Lite pack them in an image2d: N*H rows of ceil(C/4)*W texels",
)
IMAGE2D = replace(
    NHC4W4, name="IMAGE2D", about="the packing in an image2d of ceil(C/4)*W by N*H texels, another name of NHC4W4"
)
HC4_WN4 = _layout(
    "HC4_WN4",
    "lambda n, c, h, w: [h, c // 4, AXIS_SEPARATOR, w, n, c % 4]",
    "activations of TFLite in a 2d texture: H*ceil(C/4) rows of W*N texels",
)
HNW_C4 = _layout(
    "HNW_C4",
    "lambda n, c, h, w: [h, w, n, AXIS_SEPARATOR, c // 4, c % 4]",
    "activations of TFLite in a 2d texture by pixels: H*W*N rows of ceil(C/4) texels",
)
C4_H_WN4 = _layout(
    "C4_H_WN4",
    "lambda n, c, h, w: [c // 4, AXIS_SEPARATOR, h, AXIS_SEPARATOR, w, n, c % 4]",
    "activations of TFLite in a texture array: ceil(C/4) images of H by W*N",
)
NH4_CW4 = _layout(
    "NH4_CW4",
    "lambda n, c, h, w: [n, h // 4, AXIS_SEPARATOR, c, w, h % 4]",
    "MACE's height-major packing, for Winograd transforms: N*ceil(H/4) rows of C*W texels",
)
NH_CW44 = _layout(
    "NH_CW44",
    "lambda n, c, h, w: [n, h, AXIS_SEPARATOR, c, w // 4, w % 4]",
    "MACE's width-major packing: N*H rows of C*ceil(W/4) texels",
)

# Weights and biases

OIHW4o = _layout(
    "OIHW4o",
    "lambda o, i, h, w: [o // 4, AXIS_SEPARATOR, i, h, w, o % 4]",
    "weights in TVM's scope global.texture-weight: ceil(O/4) rows of I*H*W texels",
)
O4HW_I4 = _layout(
    "O4HW_I4",
    "lambda o, i, h, w: [o // 4, h, w, AXIS_SEPARATOR, i, o % 4]",
    "filters of convolutions as MNN, TNN and MACE pack them: ceil(O/4)*H*W rows of I texels",
)
C4_MHW4 = _layout(
    "C4_MHW4",
    "lambda m, c, h, w: [c // 4, AXIS_SEPARATOR, m, h, w, c % 4]",
    "filters of depthwise convolutions: ceil(C/4) rows of M*H*W texels",
)
ROWS4 = _layout(
    "ROWS4",
    "lambda i, j: [i, AXIS_SEPARATOR, j // 4, j % 4]",
    "a matrix, four columns to a texel, as Paddle-Lite folds tensors of two axes",
)
VECTOR4 = _layout(
    "VECTOR4",
    "lambda c: [0, AXIS_SEPARATOR, c // 4, c % 4]",
    "a vector such as a bias, in one row of ceil(C/4) texels",
)

TEXTURE_LAYOUTS: Mapping[str, TextureLayout] = MappingProxyType(
    {
        layout.name: layout
        for layout in (
            NCHW4c,
            NCHW4c_ARRAY,
            NHWC4c,
            NHC4W4,
            IMAGE2D,
            HC4_WN4,
            HNW_C4,
            C4_H_WN4,
            NH4_CW4,
            NH_CW44,
            OIHW4o,
            O4HW_I4,
            C4_MHW4,
            ROWS4,
            VECTOR4,
        )
    }
)
