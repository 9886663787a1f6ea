"""Small programs that copy, in several layouts and sizes, for tests of `compare`."""

from __future__ import annotations

from tests.lowering.programs import program

from layoutproof.ir.primfunc import PrimFunc

TWO = 'A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")'
TILED = 'A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")'
THREE = f'{TWO}, C: T.Buffer((14,), "float32")'
FOURS = {"B": "lambda i: [i//4, i%4]"}


def func(signature: str, body: str, *, apart: bool = True, name: str = "main") -> PrimFunc:
    """A function with a body of its own lines."""
    lines = (['T.func_attr({"tirx.noalias": True})'] if apart else []) + body.splitlines()
    return program("\n".join([f"def {name}({signature}):", *(f"    {line}" for line in lines), ""]))


COPY = func(TWO, "for i in range(14):\n    B[i] = A[i]")
COPY_TILED = func(TILED, "for i in range(14):\n    B[i // 4, i % 4] = A[i]")


def sized(symbol: str, body: str, shape: str = "(n,)") -> PrimFunc:
    """A function of buffers a and b whose sizes have a symbol; b's shape is written with n for it."""
    return program(f"""def main(a: T.handle, b: T.handle):
    T.func_attr({{"tirx.noalias": True}})
    {symbol} = T.int32()
    A = T.match_buffer(a, ({symbol},), "float32")
    B = T.match_buffer(b, {shape.replace("n", symbol)}, "float32")
{body}""")


SIZED = sized("n", "    for i in range(n):\n        B[i] = A[i]\n")
SIZED_TILED = sized("m", "    for n in range(m):\n        B[n // 4, n % 4] = A[n]\n", "((n + 3) // 4, 4)")
SIZED_TWICE = sized("n", "    for i in range(n):\n        B[i] = A[i] + A[i]\n")
IN_FOURS = sized("n", "    for i, j in T.grid(n // 4, 4):\n        B[i * 4 + j] = A[i * 4 + j]\n")
