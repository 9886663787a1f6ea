"""Random programs over textures and buffers: what they read is anywhere, what they store is whole texels, and nothing
races.
"""

from __future__ import annotations

from random import Random

TYPES = ("float32", "float32", "float32", "float16", "int8", "int16", "int32", "uint8", "uint16", "uint32")
ROWS = 6


class TextureProgram:
    """One program as text: `D` is computed from `A`, `B` and perhaps itself, each an image of four channels, of one, or
    a buffer.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.dtype = self.random.choice(TYPES)
        self.texels = self.random.choice((2, 3))
        self.parameters = ", ".join(self._parameter(name) for name in "ABD")
        self.text = f"@T.prim_func\ndef f({self.parameters}, E: {self._plain(4 * self.texels)}):\n{self._body()}"

    def _plain(self, row: int) -> str:
        return f'T.Buffer(({ROWS}, {row}), "{self.dtype}")'

    def _parameter(self, name: str) -> str:
        # pocl 3.0 reads single-channel images of halves from the wrong place.
        kind = self.random.choice(("texels", "texels", "plain", "plain" if self.dtype == "float16" else "channels"))
        row = 4 * self.texels + (kind == "channels")
        if kind == "plain":
            return f"{name}: {self._plain(row)}"
        return f'{name}: T.Buffer(({ROWS}, {row}), "{self.dtype}", scope="global.texture", axis_separators=[1])'

    def _body(self) -> str:
        parallel, kind = (
            self.random.choice(("T.parallel", "T.serial")),
            self.random.choice(("vectorized", "serial", "unroll")),
        )
        lines = [
            'T.func_attr({"tir.noalias": True})',
            f"for y in {parallel}({ROWS}):",
            f"    for x in {parallel}({self.texels}):",
        ]
        depth = self.random.randrange(3)
        match self.random.choice(("loop", "loop", "ramp", "several", "guard")):
            case "ramp":
                lines.append(f"        D[y, T.ramp(x * 4, 1, 4)] = {self._vector(depth)}")
            case "several":
                other = self._value(depth).replace(
                    "D[", "A["
                )  # a texel is gathered where nothing but its own value reads it
                lines += [f"        for c in T.{kind}(4):", f"            E[y, x * 4 + c] = {other}"]
                lines.append(f"            D[y, x * 4 + c] = {self._value(depth)} + E[y, x * 4 + c]")
            case "guard":
                guard = self.random.choice(("y < 4", "x < 1", "x * 4 < 5 and y > 0"))
                lines += [f"        for c in T.{kind}(4):", f"            if {guard}:"]
                lines.append(f"                D[y, x * 4 + c] = {self._value(depth)}")
            case _:
                lines += [f"        for c in T.{kind}(4):", f"            D[y, x * 4 + c] = {self._value(depth)}"]
        return "".join(f"    {line}\n" for line in lines)

    def _place(self) -> str:
        last = 4 * self.texels - 1
        row = self.random.choice(("y", "y", "5 - y", "y // 2", "(y + 3) % 6", "y % 3 * 2"))
        ordinary = ("x * 4 + c", f"{last} - x * 4 - c", "x * 4 + 3 - c", "c", "c + 4")
        odd = (f"(x * 4 + c + 1) % {last + 1}", "x * 2 + c", "x", "3", "(x * 4 + c) // 2", "c * 2")
        return f"{row}, {self.random.choice(self.random.choice((ordinary, odd)))}"

    def _load(self) -> str:
        return f"{self.random.choice('AB')}[{self._place()}]"

    def _value(self, depth: int) -> str:
        if depth == 0:
            leaf = self.random.random()
            if leaf < 0.1:
                return "D[y, x * 4 + c]"
            return self._load() if leaf < 0.8 else f"T.{self.dtype}({self.random.randrange(1, 4)})"
        a, b = self._value(depth - 1), self._value(depth - 1)
        condition = self.random.choice(
            ("x < 1", "y < 3", "c < 2", "x * 4 + c < 5", f"{self._load()} > T.{self.dtype}(1)")
        )
        match self.random.choice(("arithmetic", "arithmetic", "max", "lazy", "select")):
            case "max":
                return f"T.max({a}, {b})"
            case "lazy":
                return f"T.if_then_else({condition}, {a}, {b})"
            case "select":
                return f"T.Select({condition}, {a}, {b})"
            case _:
                return f"({a} {self.random.choice('+-*')} {b})"

    def _vector(self, depth: int) -> str:
        if depth == 0:
            if self.random.random() < 0.3:
                return f"T.broadcast(T.{self.dtype}(3), 4)"
            first = self.random.choice(("x * 4", "x * 4", "x", "3", "2", "4"))
            buffer, row = self.random.choice("AB"), self.random.choice(("y", "5 - y"))
            return f"{buffer}[{row}, T.ramp({first}, {self.random.choice((1, 1, 0))}, 4)]"
        return f"({self._vector(depth - 1)} {self.random.choice('+-*')} {self._vector(depth - 1)})"
