"""Functions that a user may call in a graph and that no library has: lookups, results that are read again, elements
that are left open.

Each is made for an image, of any shape and type, and has arrays of that shape besides what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import numpy as np

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Shape, Value
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads

Odd = Callable[[GraphBuilder, Random, Value, Value], tuple[Value, ...]]
"""A call in a graph, on one or both of two values of one shape and type: what it makes."""


def nest(shape: Shape, *lines: str) -> str:
    """A loop over all elements, `i0, i1, i2, i3`, around some lines."""
    names = ", ".join(f"i{axis}" for axis in range(len(shape)))
    loop = (
        f"    for {names} in T.grid({', '.join(map(str, shape))}):\n"
        if len(shape) > 1
        else f"    for {names} in range({shape[0]}):\n"
    )
    return loop + "".join(f"        {line}\n" for line in lines)


def function(name: str, arrays: Mapping[str, tuple[Shape, str]], body: str) -> PrimFunc:
    """The function of a body over arrays."""
    params = ", ".join(f'{array}: T.Buffer({shape}, "{dtype}")' for array, (shape, dtype) in arrays.items())
    return loads(f"@T.prim_func\ndef {name}({params}):\n{body}", f"{name}.py")


def _called(name: str, *nests: tuple[str, ...], two: bool = False, results: int = 1, before: str = "") -> Odd:
    """A function of nests from `A`, and `B`, to `Y`, and `Z`; `E` stands for the index of an element, `C` for the
    channels.
    """

    def call(g: GraphBuilder, chance: Random, first: Value, second: Value) -> tuple[Value, ...]:
        shape, dtype = first.shape, str(first.dtype)
        names = ["A", *["B"] * two, "Y", *["Z"] * (results - 1)]
        index = ", ".join(f"i{axis}" for axis in range(len(shape)))
        words = {
            "[E]": f"[{index}]",
            "[BACK]": f"[i0, {shape[1] - 1} - i1, i2, i3]",
            "[LEFT]": "[i0, i1, i2, i3 - 1]",
            "CHANNELS": str(shape[1]),
            "WIDTH": str(shape[3]),
            "ONE": f"T.{dtype}(1)",
            "TYPE": f'"{dtype}"',
            "SHAPE": str(list(shape)),
        }
        body = before + "".join(nest(shape, *lines) for lines in nests)
        for word, text in words.items():
            body = body.replace(word, text)
        made = function(name, dict.fromkeys(names, (shape, dtype)), body)
        return g.call(made, first, *[second] * two)

    return call


def _lookup(g: GraphBuilder, chance: Random, first: Value, second: Value) -> tuple[Value, ...]:
    """Channels by numbers that come as data."""
    shape, dtype = first.shape, str(first.dtype)
    lines = nest(shape, f"Y[i0, i1, i2, i3] = A[i0, T.max(T.min(I[i1], {shape[1] - 1}), 0), i2, i3]")
    made = function("lookup", {"A": (shape, dtype), "I": ((shape[1],), "int32"), "Y": (shape, dtype)}, lines)
    if chance.random() < 0.5:
        return g.call(
            made,
            first,
            g.constant(np.array([chance.randint(-1, shape[1]) for _ in range(shape[1])], np.int32), "numbers"),
        )
    return g.call(made, first, g.input(f"numbers_{chance.randrange(10**9)}", (shape[1],), "int32"))


def _made_of_nothing(g: GraphBuilder, chance: Random, first: Value, second: Value) -> tuple[Value, ...]:
    """A result without operands."""
    shape, dtype = first.shape, str(first.dtype)
    return g.call(
        function("ones", {"Y": (shape, dtype)}, nest(shape, f"Y[i0, i1, i2, i3] = T.{dtype}({chance.choice((0, 1))})"))
    )


ODD: Mapping[str, Odd] = {
    "lookup": _lookup,
    "ones": _made_of_nothing,
    "read again": _called("again", ("Y[E] = A[E] + ONE",), ("Y[E] = Y[E] * Y[E]",)),
    "by way of a temporary": _called(
        "by_way", ("T0[E] = A[E] + A[E]",), ("Y[E] = T0[BACK] + A[E]",), before="    T0 = T.alloc_buffer(SHAPE, TYPE)\n"
    ),
    "two results": _called("two", ("Y[E] = A[E] + B[E]", "Z[E] = A[E] - B[E]"), two=True, results=2),
    "one result from the other": _called("from_other", ("Y[E] = A[E] + ONE",), ("Z[E] = Y[BACK]",), results=2),
    "back to front": _called("back", ("Y[E] = A[BACK]",)),
    "sums of a row": _called("sums", ("if i3 == 0:", "    Y[E] = A[E]", "else:", "    Y[E] = Y[LEFT] + A[E]")),
    "some left open": _called("some", ("if i1 < CHANNELS - 1:", "    Y[E] = A[E]")),
    "undefined": _called("undefined", ("Y[E] = T.if_then_else(i3 == 0, T.undef(TYPE), A[E])",)),
    "chosen by place": _called(
        "by_place", ("if i1 % 2 == 0:", "    Y[E] = A[E]", "else:", "    Y[E] = B[E]"), two=True
    ),
    "chosen by value": _called("by_value", ("Y[E] = T.if_then_else(A[E] < B[E], A[E], B[E])",), two=True),
    "last one wins": _called("last", ("Y[E] = A[E]",), ("Y[E] = B[E]",), two=True),
    "half of it over": _called("half", ("Y[E] = A[E]",), ("if i2 > 0:", "    Y[E] = B[E]"), two=True),
}
