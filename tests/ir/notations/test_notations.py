"""Each notation: what its texts mean, how its form is told, and the messages for texts that are wrong."""

from __future__ import annotations

import pytest
from tests.conftest import Golden

from layoutproof.cli.options import NOTATIONS
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import IntImm
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.notations.cute import Swizzle, parse_cute
from layoutproof.ir.notations.detect import notation_of
from layoutproof.ir.notations.map_text import parse_shape
from layoutproof.ir.notations.notation import Notation
from layoutproof.ir.notations.onednn import parse_tag, tag_text
from layoutproof.ir.notations.xla import parse_xla
from layoutproof.verify.maps.layout_text import read_layout

BLOCKED = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"
MMA = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>"
DOT = f"#ttg.dot_op<{{opIdx = 0, parent = {MMA}, kWidth = 2}}>"
SHARED = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"
PACK = "outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [8, 2]"

# Text, shape and axes, notation, map, shape of the map.
MEANINGS: list[tuple[str, str | None, dict[str, int], str, str, list[int] | None]] = [
    ("(4,(2,4)):(2,(1,8))", None, {}, "cute", "lambda i0, i1, i2: [i0*2 + i1 + i2*8]", [4, 2, 4]),
    ("(4,(2,4)):(2,(1,8))", "4,8", {}, "cute", "lambda i0, i1: [i0*2 + i1%2 + i1//2*8]", [4, 8]),
    ("(4,(2,4)):(2,(1,8))", "32", {}, "cute", "lambda i0: [i0%4*2 + i0//4%2 + i0//8*8]", [32]),
    ("(4,(2,8)):(1@1,(4@0,1@0))", None, {}, "cute", "lambda i0, i1, i2: [i1*4 + i2, i0]", [4, 2, 8]),
    ("(4,8):(2@1,0)", "32", {}, "cute", "lambda i0: [0, i0%4*2]", [32]),
    ("_8:_1", None, {}, "cute", "lambda i0: [i0]", [8]),
    ("Sw<3,0,3> o 0 o (8,8):(8,1)", None, {}, "cute", "lambda i0, i1: [i0*8 + i1 ^ i0*8 + i1 >> 3 & 7]", [8, 8]),
    ("Sw<1,2,-1> o 4 o 8:1", None, {}, "cute", "lambda i0: [i0 + 4 ^ (i0 + 4 & 4) << 1]", [8]),
    ("Swizzle<0,4,3> o smem_ptr[16b](unset) o (2,2):(2,1)", None, {}, "cute", "lambda i0, i1: [i0*2 + i1]", [2, 2]),
    (
        "Sw<2,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)", None, {}, "cute",
        "lambda i0, i1: [i0*64 + i1 ^ i0*64 + i1 >> 3 & 24]", [8, 64],
    ),
    ("Sw<1,0,1> o smem_ptr[4b](0x0) o 8:1", None, {}, "cute", "lambda i0: [i0 ^ i0 >> 1 & 2]", [8]),
    ("shape=(3,4), strides=(4,1), offset=2", None, {}, "strides", "lambda i0, i1: [i0*4 + i1 + 2]", [3, 4]),
    ("shape=(3,4), order=F", None, {}, "strides", "lambda i0, i1: [i0 + i1*3]", [3, 4]),
    ("strides=(16,4) itemsize=4", "3,4", {}, "strides", "lambda i0, i1: [i0*4 + i1]", [3, 4]),
    (
        "size=torch.Size([2, 3, 4, 5]), memory_format=torch.channels_last",
        None, {}, "strides", "lambda i0, i1, i2, i3: [i0*60 + i1 + i2*15 + i3*3]", [2, 3, 4, 5],
    ),
    (
        "b (h p) (w q) c -> b h w (p q c)", "2,4,6,3", {"p": 2, "q": 3}, "einops",
        "lambda b, h_p, w_q, c: [b, h_p//2, w_q//3, (h_p%2*3 + w_q%3)*3 + c]", [2, 4, 6, 3],
    ),
    ("(a b) -> b a", None, {"a": 2, "b": 3}, "einops", "lambda a_b: [a_b%3, a_b//3]", [6]),
    ("... a b -> b ... a", "2,3,4", {}, "einops", "lambda x_0, a, b: [b, x_0, a]", [2, 3, 4]),
    ("a ... -> a (...)", "2,3,4", {}, "einops", "lambda a, x_0, x_1: [a, x_0*4 + x_1]", [2, 3, 4]),
    ("a ... -> a (...)", "2", {}, "einops", "lambda a: [a, 0]", [2]),
    ("a 1 -> 1 (a)", "5,1", {}, "einops", "lambda a, one1: [0, a]", [5, 1]),
    ("aBcd8b", "1,9,3,3", {}, "onednn", "lambda a, b, c, d: [a, b//8, c, d, b%8]", [1, 9, 3, 3]),
    (
        "OIhw4i16o4i", None, {}, "onednn",
        "lambda o, i, h, w: [o//16, i//16, h, w, i//4%4, o%16, i%4]", None,
    ),
    ("nhwc", None, {}, "onednn", "lambda n, c, h, w: [n, h, w, c]", None),
    ("nchw->nChw8c", None, {}, "onednn", "lambda n, c, h, w: [n, c//8, h, w, c%8]", None),
    ("NHWC->NCHW4c", None, {}, "string", "lambda n, h, w, c: [n, c//4, h, w, c%4]", None),
    (
        "affine_map<(d0, d1)[s0] -> (d0 floordiv 4, d1 mod s0 - d0 ceildiv 2 * -3)>", None, {}, "mlir",
        "lambda d0, d1: [d0//4, d1%s0 - -(-d0//2)*-3]", None,
    ),
    ("memref<4x8xf32, strided<[8, 1], offset: 3>, 1>", None, {}, "mlir", "lambda i0, i1: [i0*8 + i1 + 3]", [4, 8]),
    ("memref<2x3x4xbf16>", None, {}, "mlir", "lambda i0, i1, i2: [i0*12 + i1*4 + i2]", [2, 3, 4]),
    ("memref<4x4xf32, affine_map<(i, j) -> (j, i)>>", None, {}, "mlir", "lambda i, j: [j, i]", [4, 4]),
    (PACK, "17,5", {}, "mlir", "lambda d0, d1: [d1//2, d0//8, d0%8, d1%2]", [17, 5]),
    (
        "%0 = linalg.unpack %a inner_dims_pos = [0, 1] inner_tiles = [8, 2] into %b : "
        "tensor<2x3x8x2xf32> -> tensor<16x5xf32>",
        None, {}, "mlir", "lambda d0, d1: [d0//8, d1//2, d0%8, d1%2]", [16, 5],
    ),
    (
        "f32[3,5]{1,0:T(2,2)}", None, {}, "xla", "lambda i0, i1: [i0//2, i1//2, i0%2, i1%2]", [3, 5],
    ),
    (
        "{0,1:T(4,8)(2,1)S(1)}", "4,8", {}, "xla",
        "lambda i0, i1: [i1//4, i0//8, i1%4//2, i0%8, i1%4%2, i0%8%1]", [4, 8],
    ),
    (
        "#linear<{register = [[0,1],[0,2]], lane = [[0,4],[1,0],[2,0],[4,0],[8,1]], warp = [[16,0]], block = []}>",
        None, {}, "triton",
        "lambda register, lane, warp, block: [lane//2 + warp*16, register + lane%2*4 ^ lane//16]", [4, 32, 2, 1],
    ),
    (
        BLOCKED, "64,64", {}, "triton",
        "lambda register, lane, warp, block: [register//8*16 + lane//8 + warp*4, "
        "register%4 + register//4%2*32 + lane%8*4]", [32, 32, 4, 1],
    ),
    (
        MMA, "32,16", {}, "triton",
        "lambda register, lane, warp, block: [register//2*8 + lane//4 + warp//2*16, register%2 + lane%4*2 + warp%2*8]",
        [4, 32, 4, 1],
    ),
    (
        f"#slice<{{dim = 1, parent = {DOT}}}>", "64", {}, "triton",
        "lambda register, lane, warp, block: [register%2*8 + register//2*32 + lane//4 + warp//2*16]",
        [4, 32, 4, 1],
    ),
    (SHARED, "8,64", {}, "triton", "lambda offset, block: [offset//64, offset%64 ^ offset//64*8]", [512, 1]),
    ("{ [i, j] -> [4i + j] : 0 <= i < 8 and 0 <= j < 4 }", None, {}, "isl", "lambda i, j: [4*i + j]", [8, 4]),
    ("{ A[i] -> B[7 - i] : 0 <= i < 8 }", None, {}, "isl", "lambda i: [-i + 7]", [8]),
    ("lambda i: [i//4, i%4]", None, {}, "lambda", "lambda i: [i//4, i%4]", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shape", "axes", "notation", "expected", "extents"), MEANINGS, ids=str)
def test_a_text_is_read_as_its_map(
    text: str, shape: str | None, axes: dict[str, int], notation: str, expected: str, extents: list[int] | None
) -> None:
    """The notation is told from the form, and the map and its shape are what the notation's documentation says."""
    assert notation_of(text) is Notation(notation)
    found = read_layout(text, None if shape is None else parse_shape(shape), axes=axes)
    assert index_map_text(found.index_map) == expected
    assert (None if found.shape is None else [e.value for e in found.shape if isinstance(e, IntImm)]) == extents


BAD: dict[str, tuple[str, str | None, dict[str, int]]] = {
    "cute_open": ("(4,(2,4):(2,(1,8))", None, {}),
    "cute_forms": ("(4,(2,4)):(2,1)", None, {}),
    "cute_zero": ("(4,0):(1,4)", None, {}),
    "cute_end": ("(4):(1) x", None, {}),
    "cute_swizzle": ("Sw<3,0,2> o 0 o (8,8):(8,1)", None, {}),
    "cute_no_o": ("Sw<3,0,3> (8,8):(8,1)", None, {}),
    "cute_shape": ("(4,8):(8,1)", "8,4", {}),
    "cute_symbols": ("(4,8):(8,1)", "n,8", {}),
    "cute_wide": ("(4,99999999999999999999):(1,4)", None, {}),
    "cute_unit": ("(4,8):(1@0,3)", None, {}),
    "cute_deep_unit": ("(4,8):(1@0@1,1@0)", None, {}),
    "cute_unit_forms": ("(4,(2,4)):(1@0,1@1)", None, {}),
    "cute_unit_zero": ("(4,0):(1@0,1@1)", None, {}),
    "strides_rank": ("shape=(3,4), strides=(4,1,1)", None, {}),
    "strides_key": ("shape=(3,4), stridez=(4,1)", None, {}),
    "strides_of_torch": ("size=(2,2), stride=(8,4), storage_offset=4, itemsize=4", None, {}),
    "strides_bytes": ("shape=(3,4), strides=(16,3), itemsize=4", None, {}),
    "strides_shape": ("strides=(4,1)", None, {}),
    "strides_other_shape": ("shape=(3,4)", "3,5", {}),
    "strides_order": ("shape=(3,4), memory_format=channels_last", None, {}),
    "einops_reduces": ("a b -> a", "2,3", {}),
    "einops_repeats": ("a -> a b", "2", {}),
    "einops_lengths": ("(a b) -> a b", "6", {}),
    "einops_divides": ("(a b) -> a b", "7", {"b": 2}),
    "einops_multiplies": ("(a b) -> a b", "7", {"a": 2, "b": 2}),
    "einops_unknown_axis": ("a b -> b a", "2,3", {"c": 2}),
    "einops_number": ("a 2 -> a", "2,2", {}),
    "einops_twice": ("a a -> a", "2,2", {}),
    "onednn_capital": ("aBcd", None, {}),
    "onednn_small": ("abcd8b", None, {}),
    "onednn_order": ("xYzw8y", None, {}),
    "mlir_name": ("affine_map<(d0) -> (d1)>", None, {}),
    "mlir_product": ("affine_map<(d0, d1) -> (d0 * d1)>", None, {}),
    "mlir_divisor": ("affine_map<(d0) -> (d0 mod 0)>", None, {}),
    "mlir_pack": ("inner_dims_pos = [0, 0] inner_tiles = [8, 2]", "8,8", {}),
    "mlir_strided": ("memref<4x8xf32, strided<[8], offset: 3>>", None, {}),
    "mlir_alias": ("memref<4x4xf32, #map>", None, {}),
    "mlir_two_layouts": ("memref<4x4xf32, strided<[1, 4]>, strided<[4, 1]>>", None, {}),
    "mlir_pack_of_any_size": ("inner_tiles = [8, 2] : tensor<?x5xf32> -> tensor<3x3x8x2xf32>", None, {}),
    "xla_joined_tile": ("{1,0:T(*,8)(2,4)}", "4,8", {}),
    "cute_bytes": ("Sw<3,4,3> o smem_ptr o (8,64):(64,1)", None, {}),
    "cute_inside_an_element": ("Sw<3,1,3> o smem_ptr[64b](unset) o 8:1", None, {}),
    "cute_address": ("Sw<3,4,3> o smem_ptr[32b](0x7f0410) o 8:1", None, {}),
    "xla_order": ("{0,0}", None, {}),
    "xla_tile": ("{1,0:T(8,128}", None, {}),
    "xla_rank": ("{1,0:T(2,2,2)}", "4,4", {}),
    "triton_name": ("#linear<{lanes = [[1]]}>", None, {}),
    "triton_lengths": ("#linear<{lane = [[1, 0], [2]]}>", None, {}),
    "triton_shape": (BLOCKED, None, {}),
    "triton_order": (BLOCKED.replace("[1, 0]}", "[1, 1]}"), "64,64", {}),
    "triton_kind": ("#ttg.padded_shared<{}>", "8,8", {}),
    "triton_version": (MMA.replace("versionMajor = 2", "versionMajor = 5"), "64,64", {}),
    "triton_instruction": (MMA.replace("[16, 8]", "[16, 16]"), "64,64", {}),
    "triton_warps": (MMA.replace("[2, 2]", "[2, 3]"), "64,64", {}),
    "triton_tensor": (MMA, "64,48", {}),
    "triton_no_number": (MMA.replace("versionMajor = 2, ", ""), "64,64", {}),
    "triton_parent": (f"#ttg.dot_op<{{opIdx = 0, parent = {BLOCKED}, kWidth = 2}}>", "64,64", {}),
    "triton_no_parent": ("#ttg.slice<{dim = 0}>", "64", {}),
    "triton_parent_number": ("#ttg.slice<{dim = 0, parent = 3}>", "64", {}),
    "triton_dim": (f"#ttg.slice<{{dim = 2, parent = {MMA}}}>", "64", {}),
    "triton_inner": (f"#ttg.slice<{{dim = 0, parent = {MMA.replace('16, 8', '16, 9')}}}>", "64", {}),
    "triton_operand": (DOT.replace("opIdx = 0", "opIdx = 2"), "64,64", {}),
    "triton_width": (DOT.replace("kWidth = 2", "kWidth = 3"), "64,64", {}),
    "triton_shared": (SHARED.replace("vec = 8", "vec = 6"), "64,64", {}),
    "triton_shared_order": (SHARED.replace("[1, 0]", "[1, 1]"), "64,64", {}),
    "triton_twice": (SHARED.replace("vec = 8", "vec = 8, vec = 8"), "64,64", {}),
    "triton_other": (SHARED.replace("vec", "vector"), "64,64", {}),
    "triton_cluster": (SHARED.replace("vec = 8", "vec = 8, CTAsPerCGA = [2, 1]"), "64,64", {}),
    "isl_syntax": ("{ [i,j -> [i] }", None, {}),
    "isl_two_images": ("{ [i] -> [j] : 0 <= i < 4 and 0 <= j < 2 }", None, {}),
    "isl_unbounded": ("{ [i] -> [i] : i >= 0 }", None, {}),
    "isl_negative": ("{ [i] -> [i] : -1 <= i < 4 }", None, {}),
    "isl_empty": ("{ [i] -> [i] : i < 4 and i > 5 }", None, {}),
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_text_is_refused(golden: Golden, name: str) -> None:
    """The message says which notation was read, what is wrong, and where."""
    text, shape, axes = BAD[name]
    with pytest.raises(LayoutproofError) as caught:
        read_layout(text, None if shape is None else parse_shape(shape), axes=axes)
    golden.entry("bad_layouts.txt", name, f"{caught.value}\n", text)


def test_axes_belong_to_einops() -> None:
    """Lengths of axes beside a text in another notation are refused."""
    with pytest.raises(LayoutproofError, match="axes are lengths of an einops pattern"):
        read_layout("(4,8):(8,1)", axes={"p": 2})


def test_the_options_name_every_notation() -> None:
    """The command line, which loads no notation for its help, lists them all."""
    assert NOTATIONS == tuple(Notation)


@pytest.mark.parametrize("text", ["(4,(2,4)):(2,(1,8))", "8:1", "Sw<3,3,3> o 0 o (8,8):(8,1)", "Sw<0,4,3> o 5 o 4:2"])
def test_cute_is_printed_as_it_is_read(text: str) -> None:
    """CuTe's own form of printing is the text that was read."""
    assert str(parse_cute(text)) == text


@pytest.mark.parametrize("text", ["aBcd8b", "ABcd4b16a4b", "ba", "acdb"])
def test_tags_are_printed_as_they_are_read(text: str) -> None:
    """A tag's text is found again from its axes."""
    assert tag_text(parse_tag(text)) == text


@pytest.mark.parametrize("text", ["{1,0}", "{3,2,1,0:T(8,128)(2,1)}", "{2,1,0:T(*,4)}"])
def test_xla_is_printed_as_it_is_read(text: str) -> None:
    """An XLA layout's text is found again."""
    assert str(parse_xla(text)) == text


def test_a_swizzle_undoes_itself() -> None:
    """XORing bits by others that stay is its own inverse, for either direction of the distance."""
    for swizzle in (Swizzle(3, 3, 3), Swizzle(2, 0, 4), Swizzle(1, 2, -1)):
        assert all(swizzle(swizzle(offset)) == offset for offset in range(1024))


@pytest.mark.parametrize("parts", [(-1, 0, 1), (3, 0, 2), (2, 60, 3)])
def test_swizzles_that_are_none_are_refused(parts: tuple[int, int, int]) -> None:
    """A negative number of bits, overlapping bits, and bits past 64 are no swizzle."""
    with pytest.raises(ValueError, match="Sw<"):
        Swizzle(*parts)
