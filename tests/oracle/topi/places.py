"""Operators of TVM's library (`tvm.topi`) that move elements or compute each by itself, at small random sizes.

Each is a function of a `Draw`, and returns the tensors that are the parameters of the function: inputs, then outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import tirx, topi

from tests.oracle.topi.draw import Draw, Operator, Tensors

# ---- gathers and scatters


def take(d: Draw) -> Tensors:
    a, i = d.any_tensor(2), d.tensor(d.number(2, 5), dtype="int32")
    return [a, i, topi.take(a, i, axis=d.pick(0, 1), mode=d.pick("clip", "wrap", "fast"))]


def gather(d: Draw) -> Tensors:
    n, m = d.extent(), d.number()
    a, i = d.tensor(n, m), d.tensor(n, d.number(), dtype="int32")
    return [a, i, topi.gather(a, 1, i)]


def gather_nd(d: Draw) -> Tensors:
    a, i = d.any_tensor(3), d.tensor(2, d.number(2, 5), dtype="int32")
    return [a, i, topi.gather_nd(a, i)]


def one_hot(d: Draw) -> Tensors:
    i = d.tensor(d.extent(), dtype="int32")
    on, off = tirx.const(1.0, "float32"), tirx.const(0.0, "float32")
    return [i, topi.one_hot(i, on, off, d.number(2, 6), d.pick(0, -1), "float32")]


def scatter_elements(d: Draw) -> Tensors:
    n, m, k = d.number(), d.number(), d.number(1, 3)
    a, i, u = d.tensor(n, m), d.tensor(k, m, dtype="int32"), d.tensor(k, m)
    return [a, i, u, topi.scatter_elements(a, i, u, 0, d.pick("update", "add"))]


def scatter_nd(d: Draw) -> Tensors:
    n, m, k = d.number(), d.number(), d.number(1, 4)
    a, i, u = d.tensor(n, m), d.tensor(1, k, dtype="int32"), d.tensor(k, m)
    return [a, i, u, topi.scatter_nd(a, i, u, d.pick("update", "add"))]


def sequence_mask(d: Draw) -> Tensors:
    n, b = d.extent(), d.number(2, 4)
    a, v = d.tensor(n, b), d.tensor(b, dtype="int32")
    return [a, v, topi.sequence_mask(a, v, mask_value=0, axis=0)]


def reverse_sequence(d: Draw) -> Tensors:
    n, b = d.extent(), d.number(2, 4)
    a, v = d.tensor(n, b), d.tensor(b, dtype="int32")
    return [a, v, topi.reverse_sequence(a, v, 0, 1)]


def adv_index(d: Draw) -> Tensors:
    a, i, j = d.any_tensor(3), d.tensor(4, dtype="int32"), d.tensor(4, dtype="int32")
    return [a, i, j, topi.adv_index(a, [i, j])]


def embedding_bag(d: Draw) -> Tensors:
    n, m, k = d.extent(), d.number(), d.number()
    a, i = d.tensor(n, m), d.tensor(k, 3, dtype="int32")
    return [a, i, topi.sum(topi.take(a, i, axis=0, mode="clip"), axis=1)]


# ---- shapes


def transpose(d: Draw) -> Tensors:
    a = d.any_tensor(d.number(2, 4))
    axes = list(range(len(a.shape)))
    d.rng.shuffle(axes)
    return [a, topi.transpose(a, axes)]


def reshape(d: Draw) -> Tensors:
    n = d.extent()
    a = d.tensor(n, 6, 4)
    return [a, topi.reshape(a, d.pick((n, 24), (n, 3, 8), (n * 6, 4), (n, 2, 3, 4), (n * 24,)))]


def concat(d: Draw) -> Tensors:
    m = d.extent()
    tensors = [d.tensor(d.number(1, 5), m) for _ in range(d.number(2, 3))]
    return [*tensors, topi.concatenate(tensors, 0)]


def stack(d: Draw) -> Tensors:
    n, m = d.extent(), d.extent()
    tensors = [d.tensor(n, m) for _ in range(2)]
    return [*tensors, topi.stack(tensors, d.pick(0, 1, 2))]


def split(d: Draw) -> Tensors:
    a = d.tensor(12, d.extent())
    return [a, *topi.split(a, d.pick(2, 3, [5], [2, 7]), 0)]


def tile(d: Draw) -> Tensors:
    a = d.any_tensor(2)
    return [a, d.pick(lambda: topi.tile(a, [2, 3]), lambda: topi.repeat(a, 3, d.pick(0, 1)))()]


def strided_slice(d: Draw) -> Tensors:
    a = d.tensor(9, d.extent(8, 12))
    if d.pick(True, False):
        return [a, topi.strided_slice(a, [1], [8], [d.number(1, 3)], axes=[0])]
    return [a, topi.strided_slice(a, [8], [0], [-d.number(1, 3)], axes=[0])]


def flip(d: Draw) -> Tensors:
    a = d.any_tensor(2)
    return [a, topi.flip(a, d.pick(0, 1))]


def pad(d: Draw) -> Tensors:
    a = d.any_tensor(2)
    widths = [[d.number(0, 3) for _ in a.shape] for _ in range(2)]
    return [a, topi.nn.pad(a, *widths, pad_value=d.pick(0.0, 1.5))]


def mirror_pad(d: Draw) -> Tensors:
    a = d.tensor(d.extent(4, 7), d.number(4, 7))
    return [a, topi.nn.mirror_pad(a, [2, 1], [1, 2], d.pick("SYMMETRIC", "REFLECT"))]


def other_pads(d: Draw) -> Tensors:
    a = d.tensor(d.extent(4, 7), d.number(4, 7))
    return [a, d.pick(topi.nn.reflect_pad, topi.nn.replicate_pad, topi.nn.circular_pad)(a, [2, 1], [1, 2])]


def space_depth(d: Draw) -> Tensors:
    if d.pick(True, False):
        a = d.tensor(1, d.extent(1, 3), 4, 6)
        return [a, topi.nn.space_to_depth(a, 2)]
    a = d.tensor(1, 8, d.extent(2, 4), 3)
    return [a, topi.nn.depth_to_space(a, 2, mode=d.pick("DCR", "CRD"))]


def space_batch(d: Draw) -> Tensors:
    a = d.tensor(1, 4, 6, d.extent(1, 3))
    return [a, topi.nn.space_to_batch_nd(a, [2, 2], [0, 1], [0, 1])]


def layout_transform(d: Draw) -> Tensors:
    a = d.tensor(d.extent(1, 2), 8, d.extent(3, 5), 3)
    return [a, topi.layout_transform(a, "NCHW", d.pick("NCHW4c", "NHWC", "NHWC8c", "NCHW2c"))]


def broadcast(d: Draw) -> Tensors:
    n, m = d.extent(), d.extent()
    a, b = d.tensor(n, m), d.tensor(m)
    return [a, b, d.pick(topi.add, topi.multiply, topi.maximum, topi.subtract)(a, b)]


def trilu(d: Draw) -> Tensors:
    a = d.any_tensor(2)
    return [a, topi.trilu(a, tirx.const(d.number(-1, 1), "int32"), d.pick(True, False))]


def set_diag(d: Draw) -> Tensors:
    n = d.number(3, 6)
    a, b = d.tensor(n, n), d.tensor(n)
    return [a, b, topi.matrix_set_diag(a, b)]


def sliding_window(d: Draw) -> Tensors:
    a = d.tensor(d.number(5, 8), d.number(5, 8))
    return [a, topi.sliding_window(a, 0, [d.number(2, 3), 2], [d.number(1, 2), 1])]


# ---- elementwise


def elementwise(d: Draw) -> Tensors:
    a = d.any_tensor()
    functions = (topi.nn.relu, topi.tanh, topi.sigmoid, topi.exp, topi.sqrt, topi.rsqrt, topi.erf, topi.abs, topi.floor)
    more = (topi.round, topi.sign, topi.isnan, topi.isinf, topi.isfinite, topi.negative, topi.trunc, topi.log)
    return [a, d.pick(*functions, *more)(a)]


def where(d: Draw) -> Tensors:
    n, m = d.extent(), d.extent()
    c, a, b = d.tensor(n, m, dtype="bool"), d.tensor(n, m), d.tensor(m)
    return [c, a, b, topi.where(c, a, b)]


def clip(d: Draw) -> Tensors:
    a = d.any_tensor(2, dtype=d.pick("float32", "int32", "int8", "float16"))
    return [a, topi.clip(a, -2, 3)]


def prelu(d: Draw) -> Tensors:
    n = d.extent()
    a, s = d.tensor(n, 3, d.extent()), d.tensor(3)
    return [a, s, topi.nn.prelu(a, s, 1)]


def leaky(d: Draw) -> Tensors:
    a = d.any_tensor(2)
    return [a, d.pick(lambda: topi.nn.leaky_relu(a, 0.1), lambda: topi.nn.softplus(a, 1.0, 20.0))()]


def integers(d: Draw) -> Tensors:
    n = d.extent()
    a, b = d.tensor(n, dtype="int32"), d.tensor(n, dtype="int32")
    functions = (topi.bitwise_and, topi.bitwise_xor, topi.left_shift, topi.right_shift, topi.floor_divide)
    return [a, b, d.pick(*functions, topi.floor_mod, topi.minimum, topi.greater)(a, b)]


def casts(d: Draw) -> Tensors:
    a = d.any_tensor(2, dtype=d.pick("float32", "int32", "float16"))
    return [a, topi.cast(a, d.pick("float16", "int8", "float32", "uint8", "int64"))]


# ---- quantised


def quantize(d: Draw) -> Tensors:
    n, c = d.extent(), d.number(2, 4)
    a, s, z = d.tensor(n, c), d.tensor(c), d.tensor(c, dtype="int32")
    code = tirx.const(topi.nn.SQNN_DTYPE_TO_CODE[d.pick("int8", "uint8")], "int32")
    return [a, s, z, d.pick(topi.nn.simulated_quantize, topi.nn.simulated_dequantize)(a, code, s, z, 1)]


def quantized(d: Draw) -> Tensors:
    n, c = d.extent(), d.number(2, 4)
    a, s, z = d.tensor(n, c), d.tensor(c), d.tensor(c)
    whole = topi.add(topi.round(topi.divide(a, s)), z)
    return [a, s, z, topi.cast(topi.clip(whole, -128, 127), "int8")]


def quantized_dense(d: Draw) -> Tensors:
    m, n, k = d.extent(), d.number(), d.extent()
    a, b, z = d.tensor(m, k, dtype="int8"), d.tensor(n, k, dtype="int8"), d.tensor(n, dtype="int32")
    acc = topi.add(topi.nn.dense(a, b, None, "int32"), z)
    return [a, b, z, topi.cast(topi.clip(topi.right_shift(acc, tirx.const(2, "int32")), -128, 127), "int8")]


def fixed_point(d: Draw) -> Tensors:
    a = d.any_tensor(2, dtype="int32")
    return [a, topi.fixed_point_multiply(a, 1073741824, d.number(-2, 1))]


# ---- resizes


def resize2d(d: Draw) -> Tensors:
    a = d.tensor(1, d.extent(1, 3), 4, 5)
    method = d.pick("nearest_neighbor", "linear", "cubic")
    how = d.pick("asymmetric", "half_pixel", "align_corners")
    sizes = (d.number(3, 9), d.number(3, 9))
    rounding = "floor" if method == "nearest_neighbor" else ""
    roi = [0.0] * 4
    return [a, topi.image.resize2d(a, roi, sizes, "NCHW", method, how, rounding)]


def resize1d(d: Draw) -> Tensors:
    a = d.tensor(1, d.extent(1, 3), 5)
    how = d.pick("asymmetric", "half_pixel", "align_corners")
    method = d.pick("nearest_neighbor", "linear")
    return [a, topi.image.resize1d(a, [0.0] * 2, (d.number(3, 9),), "NCW", method, how, "floor")]


def upsampling(d: Draw) -> Tensors:
    a = d.tensor(1, d.extent(1, 3), 4, 3)
    return [a, topi.nn.upsampling(a, 2, 2, method=d.pick("nearest_neighbor", "bilinear"))]


FAMILIES: Mapping[str, Sequence[Operator]] = {
    "gather": (
        take,
        gather,
        gather_nd,
        one_hot,
        scatter_elements,
        scatter_nd,
        sequence_mask,
        reverse_sequence,
        adv_index,
        embedding_bag,
    ),
    "shape": (
        transpose,
        reshape,
        concat,
        stack,
        split,
        tile,
        strided_slice,
        flip,
        pad,
        mirror_pad,
        other_pads,
        space_depth,
        space_batch,
        layout_transform,
        broadcast,
        trilu,
        set_diag,
        sliding_window,
    ),
    "elementwise": (elementwise, where, clip, prelu, leaky, integers, casts),
    "quantised": (quantize, quantized, quantized_dense, fixed_point),
    "resize": (resize2d, resize1d, upsampling),
}
