"""Operators of TVM's library (`tvm.topi`) that sum, or reduce otherwise, at small random sizes.

Each is a function of a `Draw`, and returns the tensors that are the parameters of the function: inputs, then outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import topi

from tests.oracle.topi.draw import Draw, Operator, Tensors

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
    "product": (dense, matmul, int_matmul, batch_matmul, einsum, tensordot, attention, dense_relu),
}
