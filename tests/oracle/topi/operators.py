"""Operators of TVM's library (`tvm.topi`) at small random sizes, some of them symbolic, by family.

Each is a function of a `Draw`, and returns the tensors that are the parameters of the function: inputs, then outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tvm import te, tirx, topi

Extent = Any
"""A number, or a variable of TVM's."""
Tensors = list[Any]


@dataclass
class Draw:
    """Random sizes and placeholders. `symbolic`: the first extents that may be are variables."""

    rng: Random
    symbolic: bool = False
    names: int = 0
    sizes: list[Any] = field(default_factory=list)

    def extent(self, low: int = 2, high: int = 9) -> Extent:
        """An extent that may be symbolic."""
        if self.symbolic and len(self.sizes) < 2 and self.rng.random() < 0.7:
            self.sizes.append(te.var("nm"[len(self.sizes)], "int32"))
            return self.sizes[-1]
        return self.number(low, high)

    def number(self, low: int = 2, high: int = 9) -> int:
        """A number."""
        return self.rng.randint(low, high)

    def pick(self, *choices: Any) -> Any:
        """One of some."""
        return self.rng.choice(choices)

    def tensor(self, *shape: Extent, dtype: str = "float32") -> Any:
        """An input."""
        self.names += 1
        return te.placeholder(shape, dtype, name="ABCDEFGH"[self.names - 1])

    def any_tensor(self, rank: int | None = None, dtype: str = "float32") -> Any:
        """An input of some rank."""
        return self.tensor(*(self.extent() for _ in range(rank or self.number(1, 3))), dtype=dtype)


Operator = Callable[[Draw], Tensors]


# ---- convolutions


def conv1d(d: Draw) -> Tensors:
    c, o, k = d.number(1, 4), d.number(1, 4), d.number(1, 3)
    a, w = d.tensor(1, c, d.extent(5, 11)), d.tensor(o, c, k)
    return [a, w, topi.nn.conv1d_ncw(a, w, d.number(1, 2), d.number(0, 1), d.number(1, 2))]


def conv2d_nchw(d: Draw) -> Tensors:
    c, o, k = d.number(1, 3), d.number(1, 4), d.number(1, 3)
    a, w = d.tensor(d.extent(1, 2), c, d.number(5, 8), d.extent(5, 8)), d.tensor(o, c, k, k)
    return [a, w, topi.nn.conv2d_nchw(a, w, d.number(1, 2), d.number(0, 1), d.number(1, 2))]


def conv2d_nhwc(d: Draw) -> Tensors:
    c, o, k = d.number(1, 3), d.number(1, 4), d.number(1, 3)
    a, w = d.tensor(d.extent(1, 2), d.number(5, 8), d.number(5, 8), c), d.tensor(k, k, c, o)
    return [a, w, topi.nn.conv2d_nhwc(a, w, d.number(1, 2), d.number(0, 1), 1)]


def conv2d_packed(d: Draw) -> Tensors:
    a, w = d.tensor(1, 2, 6, 6, 4), d.tensor(3, 2, 3, 3, 4, 4)
    return [a, w, topi.nn.conv2d_NCHWc(a, w, d.number(1, 2), 1, 1, "NCHW4c", "NCHW4c")]


def conv2d_int8(d: Draw) -> Tensors:
    c, o, k = d.number(1, 3), d.number(1, 4), d.number(1, 3)
    a, w = d.tensor(1, c, 6, 7, dtype="int8"), d.tensor(o, c, k, k, dtype="int8")
    return [a, w, topi.nn.conv2d_nchw(a, w, 1, 1, 1, out_dtype="int32")]


def conv3d(d: Draw) -> Tensors:
    c, o, k = d.number(1, 2), d.number(1, 3), d.number(1, 2)
    a, w = d.tensor(1, c, 4, 4, d.extent(3, 5)), d.tensor(o, c, k, k, k)
    return [a, w, topi.nn.conv3d_ncdhw(a, w, d.number(1, 2), d.number(0, 1), 1, 1)]


def depthwise(d: Draw) -> Tensors:
    c, m, k = d.number(2, 4), d.number(1, 2), d.number(2, 3)
    if d.pick(True, False):
        a, w = d.tensor(1, c, 6, d.extent(5, 7)), d.tensor(c, m, k, k)
        return [a, w, topi.nn.depthwise_conv2d_nchw(a, w, d.number(1, 2), 1, 1)]
    a, w = d.tensor(1, 6, d.extent(5, 7), c), d.tensor(k, k, c, m)
    return [a, w, topi.nn.depthwise_conv2d_nhwc(a, w, d.number(1, 2), 1, 1)]


def group_conv2d(d: Draw) -> Tensors:
    a, w = d.tensor(1, 4, 6, d.extent(5, 7)), d.tensor(6, 2, 3, 3)
    return [a, w, topi.nn.group_conv2d_nchw(a, w, d.number(1, 2), d.number(0, 1), 1, 2)]


def conv2d_transpose(d: Draw) -> Tensors:
    a, w = d.tensor(1, d.number(1, 3), 4, 5), None
    w = d.tensor(a.shape[1], d.number(1, 3), 3, 3)
    stride = d.number(1, 3)
    return [
        a,
        w,
        topi.nn.conv2d_transpose_nchw(a, w, (stride, stride), (1, 1), "float32", (d.number(0, stride - 1), 0)),
    ]


def conv1d_transpose(d: Draw) -> Tensors:
    a, w = d.tensor(1, 2, d.number(4, 7)), d.tensor(2, 3, 3)
    return [a, w, topi.nn.conv1d_transpose_ncw(a, w, d.number(1, 3), d.number(0, 1), "float32", 0)]


def winograd(d: Draw) -> Tensors:
    a, w = d.tensor(1, 2, 6, 6), d.tensor(3, 2, 3, 3)
    out = topi.nn.conv2d_winograd_nchw(a, w, 1, 1, 1, "float32")
    return [a, w, out]


def dilate(d: Draw) -> Tensors:
    a = d.any_tensor()
    return [a, topi.nn.dilate(a, [d.number(1, 3) for _ in a.shape], d.pick(0.0, 1.0))]


def correlation(d: Draw) -> Tensors:
    a, b = d.tensor(1, 2, 6, 6), d.tensor(1, 2, 6, 6)
    return [a, b, topi.nn.correlation_nchw(a, b, 1, d.number(1, 2), 1, d.number(1, 2), 2, d.pick(True, False))]


# ---- pooling


def pool2d(d: Draw) -> Tensors:
    a = d.tensor(1, d.extent(1, 4), d.number(5, 8), d.number(5, 8))
    kind = d.pick("max", "avg")
    pads = [d.number(0, 1) for _ in range(4)]
    return [
        a,
        topi.nn.pool2d(
            a,
            [d.number(2, 3)] * 2,
            [d.number(1, 2)] * 2,
            [1, 1],
            pads,
            kind,
            d.pick(True, False),
            "NCHW",
            count_include_pad=d.pick(True, False),
        ),
    ]


def pool1d(d: Draw) -> Tensors:
    a = d.tensor(d.number(1, 2), d.number(1, 3), d.extent(6, 12))
    return [a, topi.nn.pool1d(a, [3], [d.number(1, 3)], [d.number(1, 2)], [1, 1], d.pick("max", "avg"), False, "NCW")]


def pool3d(d: Draw) -> Tensors:
    a = d.tensor(1, 2, 5, 4, d.extent(4, 6))
    return [a, topi.nn.pool3d(a, [2] * 3, [d.number(1, 2)] * 3, [1] * 3, [0, 0, 1, 0, 1, 1], d.pick("max", "avg"))]


def adaptive_pool(d: Draw) -> Tensors:
    a = d.tensor(1, d.extent(1, 3), d.number(5, 9), d.number(5, 9))
    return [a, topi.nn.adaptive_pool(a, (d.number(1, 4), d.number(1, 4)), d.pick("max", "avg"))]


def global_pool(d: Draw) -> Tensors:
    a = d.tensor(1, d.extent(1, 4), d.number(3, 6), d.number(3, 6))
    return [a, topi.nn.global_pool(a, d.pick("max", "avg"))]


# ---- norms and softmax


def softmax(d: Draw) -> Tensors:
    a = d.any_tensor(d.number(1, 3))
    return [a, d.pick(topi.nn.softmax, topi.nn.fast_softmax)(a, axis=d.pick(0, -1))]


def log_softmax(d: Draw) -> Tensors:
    a = d.any_tensor(2)
    return [a, topi.nn.log_softmax(a)]


def layer_norm(d: Draw) -> Tensors:
    m, n = d.extent(), d.extent()
    a, g, b = d.tensor(m, n), d.tensor(n), d.tensor(n)
    return [a, g, b, topi.nn.layer_norm(a, g, b, [1])]


def rms_norm(d: Draw) -> Tensors:
    m, n = d.extent(), d.extent()
    a, g = d.tensor(m, n), d.tensor(n)
    return [a, g, topi.nn.rms_norm(a, g, [1])]


def group_norm(d: Draw) -> Tensors:
    a, g, b = d.tensor(d.extent(1, 3), 6, d.number(2, 5)), d.tensor(6), d.tensor(6)
    return [a, g, b, topi.nn.group_norm(a, g, b, d.pick(2, 3), 1, [2])]


def instance_norm(d: Draw) -> Tensors:
    c = d.number(2, 4)
    a, g, b = d.tensor(d.extent(1, 3), c, d.number(2, 6)), d.tensor(c), d.tensor(c)
    return [a, g, b, topi.nn.instance_norm(a, g, b, 1, [2])]


def batch_norm(d: Draw) -> Tensors:
    c = d.number(2, 5)
    a = d.tensor(d.extent(1, 3), c, d.number(2, 5))
    rest = [d.tensor(c) for _ in range(4)]
    out = topi.nn.batch_norm(a, *rest, axis=1, training=d.pick(True, False))
    return [a, *rest, *out]


def lrn(d: Draw) -> Tensors:
    a = d.tensor(1, d.number(3, 7), d.extent(2, 4), 3)
    return [a, topi.nn.lrn(a, 3, 1, 0.0001, 0.75, 2.0)]


def nll_loss(d: Draw) -> Tensors:
    n, c = d.number(2, 5), d.number(2, 5)
    a, t, w = d.tensor(n, c), d.tensor(n, dtype="int32"), d.tensor(c)
    return [a, t, w, topi.nn.nll_loss(a, t, w, d.pick("mean", "sum", "none"), -100)]


# ---- reductions


def reduction(d: Draw) -> Tensors:
    a = d.any_tensor(d.number(2, 3))
    return [
        a,
        d.pick(topi.sum, topi.max, topi.min, topi.prod)(a, axis=d.pick(0, -1, None), keepdims=d.pick(True, False)),
    ]


def int_reduction(d: Draw) -> Tensors:
    a = d.any_tensor(2, dtype=d.pick("int32", "int8"))
    return [a, d.pick(topi.sum, topi.max, topi.min)(a, axis=d.pick(0, 1))]


def bool_reduction(d: Draw) -> Tensors:
    a = d.any_tensor(2, dtype="bool")
    return [a, d.pick(topi.all, topi.any)(a, axis=d.pick(0, 1))]


def arg_reduction(d: Draw) -> Tensors:
    a = d.any_tensor(2)
    return [a, d.pick(topi.argmax, topi.argmin)(a, axis=d.pick(0, 1), select_last_index=d.pick(True, False))]


# ---- scans and orders


def scan(d: Draw) -> Tensors:
    a = d.any_tensor(d.number(1, 2), dtype=d.pick("float32", "int32"))
    return [a, d.pick(topi.cumsum, topi.cumprod)(a, axis=0, exclusive=d.pick(True, False))]


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


# ---- products


def dense(d: Draw) -> Tensors:
    m, n, k = d.extent(), d.extent(), d.extent()
    a, b = d.tensor(m, k), d.tensor(n, k)
    bias = d.tensor(n) if d.pick(True, False) else None
    return [t for t in (a, b, bias, topi.nn.dense(a, b, bias)) if t is not None]


def matmul(d: Draw) -> Tensors:
    m, n, k = d.extent(), d.extent(), d.extent()
    a, b = d.tensor(m, k), d.tensor(k, n)
    return [a, b, topi.matmul(a, b)]


def int_matmul(d: Draw) -> Tensors:
    m, n, k = d.extent(), d.extent(), d.extent()
    a, b = d.tensor(m, k, dtype="int8"), d.tensor(n, k, dtype="int8")
    return [a, b, topi.nn.dense(a, b, None, "int32")]


def batch_matmul(d: Draw) -> Tensors:
    b, m, n, k = d.number(1, 3), d.extent(), d.number(), d.extent()
    x, y = d.tensor(b, m, k), d.tensor(b, n, k)
    return [x, y, topi.nn.batch_matmul(x, y)]


def einsum(d: Draw) -> Tensors:
    i, j, k = d.number(2, 5), d.number(2, 5), d.number(2, 5)
    text, *shapes = d.pick(
        ("ij,jk->ik", (i, j), (j, k)),
        ("ij->j", (i, j)),
        ("ii->i", (i, i)),
        ("ij,ij->i", (i, j), (i, j)),
        ("bij,bjk->bik", (2, i, j), (2, j, k)),
        ("ijk->kij", (i, j, k)),
    )
    tensors = [d.tensor(*shape) for shape in shapes]
    return [*tensors, topi.einsum(text, *tensors)]


def tensordot(d: Draw) -> Tensors:
    i, j, k = d.extent(), d.number(2, 4), d.number(2, 4)
    a, b = d.tensor(i, j, k), d.tensor(j, k, d.number(2, 4))
    return [a, b, topi.tensordot(a, b, 2)]


def attention(d: Draw) -> Tensors:
    n, m, k = d.extent(), d.extent(), d.number(2, 6)
    q, keys, values = d.tensor(1, n, k), d.tensor(1, m, k), d.tensor(1, k, m)
    scores = topi.nn.softmax(topi.nn.batch_matmul(q, keys), axis=2)
    return [q, keys, values, topi.nn.batch_matmul(scores, values)]


def dense_relu(d: Draw) -> Tensors:
    m, n, k = d.extent(), d.extent(), d.extent()
    a, b, c = d.tensor(m, k), d.tensor(n, k), d.tensor(n)
    return [a, b, c, topi.nn.relu(topi.add(topi.nn.dense(a, b), c))]


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
    "convolution": (
        conv1d,
        conv2d_nchw,
        conv2d_nhwc,
        conv2d_packed,
        conv2d_int8,
        conv3d,
        depthwise,
        group_conv2d,
        conv2d_transpose,
        conv1d_transpose,
        winograd,
        dilate,
        correlation,
    ),
    "pooling": (pool2d, pool1d, pool3d, adaptive_pool, global_pool),
    "norm": (
        softmax,
        log_softmax,
        layer_norm,
        rms_norm,
        group_norm,
        instance_norm,
        batch_norm,
        lrn,
        nll_loss,
    ),
    "reduction": (reduction, int_reduction, bool_reduction, arg_reduction, scan),
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
    "product": (dense, matmul, int_matmul, batch_matmul, einsum, tensordot, attention, dense_relu),
    "resize": (resize2d, resize1d, upsampling),
}
