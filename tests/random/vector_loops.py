"""Random programs around vectorized loops: stores that no two lanes share, values of every kind, lets, branches,
reductions outside.
"""

from __future__ import annotations

from random import Random

from layoutproof.ir.primfunc import PrimFunc
from tests.lowering.programs import program

LANES = (1, 2, 3, 4, 8)
ROWS = 3


class RandomLoops:
    """The text of one program over A and B (float32), D (int32) and a temporary C, all of `ROWS` by `2 * lanes`."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lanes = self.random.choice(LANES)
        self.width = 2 * self.lanes
        self.lets = list[str]()
        self.loops = list[str]()
        self.stored = list[str]()
        self.count = 0

    def function(self) -> PrimFunc:
        """The program as a function without blocks."""
        shape = f"({ROWS}, {self.width})"
        lines = [
            f"def main(A: T.Buffer({shape}, 'float32'), B: T.Buffer({shape}, 'float32'), "
            f"D: T.Buffer({shape}, 'int32')):"
        ]
        lines += [
            "    T.func_attr({'tirx.noalias': True})",
            f"    with T.decl_buffer({shape}, 'float32') as C:",
            *self.zeroed("C", 8),
        ]
        for _ in range(self.random.randint(1, 2)):
            lines.append(f"        for i in range({ROWS}):")
            lines += self.around(12)
        return program("\n".join(lines) + "\n")

    def zeroed(self, buffer: str, indent: int) -> list[str]:
        """Loops that give a temporary its first values."""
        pad = " " * indent
        return [f"{pad}for i, j in T.grid({ROWS}, {self.width}):", f"{pad}    {buffer}[i, j] = A[i, j]"]

    def around(self, indent: int) -> list[str]:
        """A vectorized loop, in a serial one or not."""
        pad = " " * indent
        start = self.random.choice([0, 0, self.lanes, 1])
        head = (
            f"for j in T.vectorized({start}, {start + self.lanes}):"
            if start
            else f"for j in T.vectorized({self.lanes}):"
        )
        if self.random.random() < 0.3:
            self.loops.append("k")
            inner = [f"{pad}for k in range(2):", f"{pad}    {head}", *self.statements(indent + 8)]
            self.loops.pop()
            return inner
        return [f"{pad}{head}", *self.statements(indent + 4)]

    def statements(self, indent: int) -> list[str]:
        """What one iteration does: stores to different buffers, since lanes of two statements may not meet."""
        self.stored = self.random.sample(["B", "C", "D"], self.random.randint(1, 2))
        return [line for target in self.stored for line in self.statement(target, indent)]

    def statement(self, target: str, indent: int) -> list[str]:
        """A store, in a let, a branch or a loop, or as it is."""
        pad, kind = " " * indent, self.random.random()
        if kind < 0.2:
            name = self.fresh("x")
            line = f"{pad}{name}: T.float32 = {self.floats(2, target)}"
            self.lets.append(name)
            lines = [line, *self.statement(target, indent)]
            self.lets.remove(name)
            return lines
        if kind < 0.4:
            conditions = ["i < 2", "j < 2", "i + j > 1", *([] if "D" in self.stored else ["D[i, 0] > 0"])]
            condition = self.random.choice(conditions)
            return [f"{pad}if {condition}:", *self.statement(target, indent + 4)]
        value = self.integers(2) if target == "D" else self.floats(3, target)
        return [f"{pad}{target}[i, j] = {value}"]

    def fresh(self, prefix: str) -> str:
        """A name that nothing has yet."""
        self.count += 1
        return f"{prefix}{self.count}"

    def floats(self, depth: int, target: str) -> str:
        """A value; of the stored buffer only the element itself is read."""
        choices = ["A[i, j]", "T.float32(1.5)", "A[i, 0]", "A[i, j % 2]", f"A[i, {self.width - 1} - j]", *self.lets]
        choices.append("T.Cast('float32', j * 3 - i)")
        if target in ("B", "C"):
            choices.append(f"{target}[i, j]")
        if depth == 0 or self.random.random() < 0.25:
            return self.random.choice(choices)
        a, b = self.floats(depth - 1, target), self.floats(depth - 1, target)
        return self.random.choice(
            [
                f"({a} + {b})",
                f"({a} * {b})",
                f"T.max({a}, {b})",
                f"T.Select(j < 2, {a}, {b})",
                f"T.Select({a} < {b} and i != 1, {a}, {b})",
                f"T.if_then_else(i < 2, {a}, {b})",
                f"T.if_then_else(i + j < 3, {a}, T.float32(2))",
                f"T.sqrt({a})",
            ]
        )

    def integers(self, depth: int) -> str:
        """An integer value."""
        if depth == 0 or self.random.random() < 0.25:
            return self.random.choice(["D[i, j]", "j", "i", "7", "2 - j", "j * i"])
        a, b = self.integers(depth - 1), self.integers(depth - 1)
        return self.random.choice(
            [f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"T.min({a}, {b})", f"({a} // 3)", f"(j - ({a}))"]
        )
