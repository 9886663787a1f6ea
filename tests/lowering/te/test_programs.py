"""Definitions become the programs that upstream prints for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from tests.conftest import Golden
from tests.tree import ROOT

from layoutproof import te
from layoutproof.ir.interp import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import load, loads

OPERATORS = ROOT / "tests" / "data" / "operators"


def row_reduction(reduce: Callable[..., te.Expr], *shape: object) -> PrimFunc:
    """A reduction of the rows of a matrix."""
    a = te.placeholder(shape, name="A")
    k = te.reduce_axis((0, shape[1]), "k1")
    return te.create_prim_func([a, te.compute(shape[0], lambda ax0: reduce(a[ax0, k], axis=k), name="A_red")])


def matmul() -> PrimFunc:
    """Rows times columns."""
    a, b, k = te.placeholder((100, 70), name="A"), te.placeholder((70, 50), name="B"), te.reduce_axis(70, "k")
    c = te.compute((100, 50), lambda ax0, ax1: te.sum(a[ax0, k] * b[k, ax1], axis=k), name="T_matmul")
    return te.create_prim_func([a, b, c])


def global_sum() -> PrimFunc:
    """A reduction over two axes, which stand inside the others."""
    a = te.placeholder((1, 8, 8, 10), name="A")
    k1, k2 = te.reduce_axis((0, 8), "k1"), te.reduce_axis((0, 8), "k2")
    return te.create_prim_func(
        [a, te.compute((1, 10), lambda ax0, ax1: te.sum(a[ax0, k1, k2, ax1], axis=[k1, k2]), name="A_red")]
    )


def bias_add() -> PrimFunc:
    """A broadcast operand."""
    a, b = te.placeholder((32, 30, 7, 7), name="A"), te.placeholder((30, 1, 1), name="b")
    t = te.compute(a.shape, lambda ax0, ax1, ax2, ax3: a[ax0, ax1, ax2, ax3] + b[ax1, 0, 0], name="T_add")
    return te.create_prim_func([a, b, t])


def elementwise(
    value: Callable[[te.Expr], te.Expr], shape: tuple[object, ...], name: str, dtype: str = "float32"
) -> PrimFunc:
    """A function of each element, whatever the number of axes."""
    a = te.placeholder(shape, dtype, "A")
    return te.create_prim_func([a, te.compute(shape, lambda *i: value(a(*i)), name)])


def double() -> PrimFunc:
    """Integers, and an axis with a name of its own."""
    a = te.placeholder((14,), "int32", "A")
    return te.create_prim_func([a, te.compute((14,), lambda i: a[i] * 2, "B")])


def transpose() -> PrimFunc:
    """Axes in another order."""
    a = te.placeholder((16, 64, 30), name="A")
    return te.create_prim_func([a, te.compute((16, 30, 64), lambda ax0, ax1, ax2: a[ax0, ax2, ax1], "T_transpose")])


def reshape() -> PrimFunc:
    """Quotients and remainders of an axis."""
    a = te.placeholder((8, 30), name="A")
    return te.create_prim_func([a, te.compute(240, lambda ax0: a[ax0 % 240 // 30, ax0 % 30], "T_reshape")])


def sized(function: Callable[..., PrimFunc], *names: str) -> PrimFunc:
    """A function of sizes."""
    return function(*(te.var(name) for name in names))


def rectified(x: te.Expr) -> te.Expr:
    """The element, or 0 below it."""
    return te.max(x, 0.0)


SAME: Mapping[str, Callable[[], PrimFunc]] = {
    "row_sum": lambda: row_reduction(te.sum, 16, 14),
    "max_axis1": lambda: row_reduction(te.max, 16, 14),
    "min_axis1": lambda: row_reduction(te.min, 16, 14),
    "sym_row_sum": lambda: sized(lambda n, m: row_reduction(te.sum, n, m), "n", "m"),
    "sym_relu": lambda: sized(lambda n: elementwise(rectified, (n,), "compute"), "n"),
    "relu_nhwc": lambda: elementwise(rectified, (32, 56, 56, 30), "compute"),
    "exp1d": lambda: elementwise(te.exp, (14,), "compute"),
    "double_int": double,
    "matmul": matmul,
    "global_sum": global_sum,
    "bias_add": bias_add,
    "transpose": transpose,
    "reshape": reshape,
}


@pytest.mark.parametrize("name", SAME)
def test_programs_are_upstreams(name: str) -> None:
    """The function of a definition equals the one that upstream makes of its definition, names and regions included."""
    made, wanted = SAME[name](), load(OPERATORS / f"{name}.py")
    assert print_func(made) == print_func(wanted)
    assert made == wanted


def convolution() -> list[te.Tensor]:
    """A convolution with a halo, and a function of its result: two tensors in between."""
    a, w = te.placeholder((1, 3, 6, 6), name="A"), te.placeholder((4, 3, 3, 3), name="W")

    def haloed(n: te.Axis, c: te.Axis, y: te.Axis, x: te.Axis) -> te.Expr:
        inside = te.all(y >= 1, y < 7, x >= 1, x < 7)
        return te.if_then_else(inside, a[n, c, y - 1, x - 1], 0.0)

    padded = te.compute((1, 3, 8, 8), haloed, name="padded")
    c, ky, kx = (te.reduce_axis((0, 3), name) for name in ("c", "ky", "kx"))
    conv = te.compute(
        (1, 4, 6, 6),
        lambda n, f, y, x: te.sum(padded[n, c, y + ky, x + kx] * w[f, c, ky, kx], axis=[c, ky, kx]),
        name="conv",
    )
    return [a, w, te.compute(conv.shape, lambda *i: te.max(conv(*i), 0.0) + conv(*i), name="out")]


def scaled() -> list[te.Tensor | te.Var]:
    """A parameter that is a number, a name that is taken, and a range that does not begin at 0."""
    n, alpha = te.var("n", "int64"), te.var("alpha", "float32")
    a = te.placeholder((n, 9), name="A")
    k = te.reduce_axis((2, 9), "n")
    return [alpha, a, te.compute((n,), lambda A: te.prod(a[A, k] * alpha, axis=k), name="B")]


def several() -> list[te.Tensor]:
    """Two results, of which one is read by the other; constants; nothing to loop over."""
    total = te.compute((), lambda: 2.5, name="total")
    ones = te.compute((3,), lambda i: 1, name="ones")
    return [
        total,
        te.compute(
            (3,),
            lambda i: te.cast(ones[i], "float32") * total[()] + te.select(i < 2, total[()], te.infinity("float32")),
        ),
    ]


BUILT: Mapping[str, Callable[[], list[te.Tensor] | list[te.Tensor | te.Var]]] = {
    "convolution": convolution,
    "scaled": scaled,
    "several": several,
}


@pytest.mark.parametrize("name", BUILT)
def test_programs_as_text(name: str, golden: Golden) -> None:
    """Programs of several stages, as they are printed; the text reads back equal."""
    func = te.create_prim_func(BUILT[name](), name)
    golden(f"te/{name}.txt", print_func(func))
    assert loads(print_func(func)) == func


def test_programs_compute_what_was_defined() -> None:
    """The convolution, run by the reference interpreter, gives what numpy gives."""
    rng = np.random.default_rng(0)
    a, w = rng.integers(-3, 4, (1, 3, 6, 6)).astype(np.float32), rng.integers(-3, 4, (4, 3, 3, 3)).astype(np.float32)
    func = te.create_prim_func(convolution())
    found = run(func, {"A": a, "W": w, "out": np.zeros((1, 4, 6, 6), np.float32)}).arrays["out"]
    padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    conv = np.einsum("ncyxij,fcij->nfyx", windows, w)
    np.testing.assert_array_equal(found, np.maximum(conv, 0) + conv)


@pytest.mark.parametrize(
    ("dtype", "least", "greatest"), [("int8", -128, 127), ("uint16", 0, 65535), ("float16", -65504.0, 65504.0)]
)
def test_identities(dtype: str, least: float, greatest: float) -> None:
    """A reduction starts from what loses against every value of its type."""
    for reduce, start in ((te.max, least), (te.min, greatest), (te.sum, 0), (te.prod, 1)):
        a, k = te.placeholder((2, 1), dtype, "A"), te.reduce_axis(1, "k")
        func = te.create_prim_func(
            [a, te.compute(2, lambda i, reduce=reduce, a=a, k=k: reduce(a[i, k], axis=k), name="B")]
        )
        arrays = {"A": np.full((2, 1), start, dtype), "B": np.full(2, 7, dtype)}
        assert run(func, arrays).arrays["B"].tolist() == [start, start]
