"""The operators as people write them: one block over the logical index, in text, for given extents."""

from __future__ import annotations

from layoutproof.ir.diagnostic import error
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.lowering import codes

ACCUMULATED = {False: "{sum} + {a} * {b}", True: "T.fma({a}, {b}, {sum})"}
"""What a multiplication adds to a sum: rounded twice, or, as `fused`, once."""


def check_extents(operator: str, **extents: int) -> None:
    """Raise LayoutproofError for an extent that is not a whole number of at least 1."""
    for name, extent in extents.items():
        if type(extent) is not int or extent < 1:
            message = f"{operator}: {name} is a whole number of at least 1, not {extent!r}"
            raise error(codes.ARGUMENT_TYPE, message, help="the schedule is made for these extents")


def check_vectors(operator: str, elements: int, lanes: int) -> None:
    """Raise LayoutproofError unless a tile of so many elements is whole vectors of at least two lanes."""
    if type(lanes) is not int or lanes < 2 or elements % lanes:
        message = f"{operator}: {elements} elements of a tile are no whole number of vectors of {lanes} lanes"
        raise error(codes.ARGUMENT_TYPE, message, help="lanes are at least 2 and divide the tile")


def check_registers(operator: str, registers: int) -> int:
    """The number of vector registers. Raises LayoutproofError for one that no tile is known for."""
    if registers not in (16, 32):
        raise error(codes.ARGUMENT_TYPE, f"{operator}: there are 16 or 32 vector registers, not {registers!r}")
    return registers


def row_sum_program(rows: int, columns: int) -> PrimFunc:
    """`B[i]` is the sum of `A[i, j]` over `j`, from the first to the last."""
    return _rows("row_sum", rows, columns, "T.float32(0)", "B[vi] + A[vi, vj]")


def row_max_program(rows: int, columns: int) -> PrimFunc:
    """`B[i]` is the largest `A[i, j]`, or the lowest finite number where none is larger. Its first operand is a row's element, so that
    an element which is less than anything changes nothing, not even NaN.
    """
    return _rows("row_max", rows, columns, 'T.min_value("float32")', "T.max(A[vi, vj], B[vi])")


def _rows(name: str, rows: int, columns: int, start: str, value: str) -> PrimFunc:
    return loads(
        f"""
@T.prim_func
def {name}(A: T.Buffer(({rows}, {columns}), "float32"), B: T.Buffer(({rows},), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for i, j in T.grid({rows}, {columns}):
        with T.block("{name}"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = {start}
            B[vi] = {value}
""",
        f"{name}.py",
    )


def matmul_program(m: int, n: int, k: int, *, fused: bool = False) -> PrimFunc:
    """`C[i, j]` is the sum of `A[i, p] * B[p, j]` over `p`."""
    value = ACCUMULATED[fused].format(sum="C[vi, vj]", a="A[vi, vp]", b="B[vp, vj]")
    return loads(
        f"""
@T.prim_func
def matmul(A: T.Buffer(({m}, {k}), "float32"), B: T.Buffer(({k}, {n}), "float32"), C: T.Buffer(({m}, {n}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for i, j, p in T.grid({m}, {n}, {k}):
        with T.block("matmul"):
            vi, vj, vp = T.axis.remap("SSR", [i, j, p])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = {value}
""",
        "matmul.py",
    )


def conv2d_program(n: int, c: int, h: int, w: int, k: int, r: int, s: int, *, halo: int = 0, fused: bool = False) -> PrimFunc:
    """`Y[n, k, y, x]` is the sum of `X[n, c, y + r - halo, x + s - halo] * F[k, c, r, s]` over `c`, `r` and `s`; outside, `X` is zero.

    With a halo, `P` holds the images with zeros around them, and the block `halo` fills it.
    """
    high, wide = h + 2 * halo, w + 2 * halo
    image = "P" if halo else "X"
    value = ACCUMULATED[fused].format(sum="Y[vn, vk, vy, vx]", a=f"{image}[vn, vc, vy + vr, vx + vs]", b="F[vk, vc, vr, vs]")
    shapes = f"""X: T.Buffer(({n}, {c}, {h}, {w}), "float32"), F: T.Buffer(({k}, {c}, {r}, {s}), "float32")"""
    inside = f"{halo} <= vy and vy < {h + halo} and {halo} <= vx and vx < {w + halo}"
    filled = f"""
    P = T.alloc_buffer(({n}, {c}, {high}, {wide}), "float32")
    for hn, hc, hy, hx in T.grid({n}, {c}, {high}, {wide}):
        with T.block("halo"):
            vn, vc, vy, vx = T.axis.remap("SSSS", [hn, hc, hy, hx])
            P[vn, vc, vy, vx] = T.if_then_else({inside}, X[vn, vc, vy - {halo}, vx - {halo}], T.float32(0))"""
    return loads(
        f"""
@T.prim_func
def conv2d({shapes}, Y: T.Buffer(({n}, {k}, {high - r + 1}, {wide - s + 1}), "float32")):
    T.func_attr({{"tir.noalias": True}}){filled if halo else ""}
    for n, k, y, x, c, r, s in T.grid({n}, {k}, {high - r + 1}, {wide - s + 1}, {c}, {r}, {s}):
        with T.block("conv2d"):
            vn, vk, vy, vx, vc, vr, vs = T.axis.remap("SSSSRRR", [n, k, y, x, c, r, s])
            with T.init():
                Y[vn, vk, vy, vx] = T.float32(0)
            Y[vn, vk, vy, vx] = {value}
""",
        "conv2d.py",
    )
