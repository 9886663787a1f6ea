"""Random affine loop nests as transformations want them: several nests that produce and consume memories of one size,
regular accesses, reductions, triangles, and sets.

Every extent is one size, a number or `?`, so that an access is in bounds by its loop: a loop leaves out as many
indices at each end as its body's shifts reach.
"""

from __future__ import annotations

from random import Random

from tests.random.mlir_programs import FLOATS, Argument, Program

_FLOAT_OPS = ("addf", "subf", "mulf", "maximumf", "minimumf")
_INTEGER_OPS = ("addi", "subi", "muli", "minsi", "maxsi", "andi", "xori")


def random_nests(random: Random, name: str) -> tuple[Program, int | None]:
    """A function of some nests, and the size that its memories have, None where it is the call's."""
    element = random.choice(("f32", "f32", "i32", "f64"))
    size = random.choice((None, None, 4, 6, 8, 9, 12))
    ranks = [random.choice((1, 2, 2)) for _ in range(random.randint(2, 3))]
    arguments = [Argument(f"m{n}", element, (size,) * rank) for n, rank in enumerate(ranks)]
    program = Program(name, arguments)
    _Nests(random, program, element, size).write()
    return program, size


class _Nests:
    def __init__(self, random: Random, program: Program, element: str, size: int | None) -> None:
        self.random = random
        self.program = program
        self.element = element
        self.size = size
        self.count = 0
        self.indent = "  "
        self.memories = list(program.arguments)
        self.written: list[Argument] = []

    def line(self, text: str) -> None:
        self.program.lines.append(self.indent + text)

    def fresh(self, letter: str = "v") -> str:
        self.count += 1
        return f"%{letter}{self.count}"

    def define(self, text: str) -> str:
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def write(self) -> None:
        value = "1.5" if self.element in FLOATS else "3"
        self.constant = self.define(f"arith.constant {value} : {self.element}")
        if self.size is None:
            zero = self.define("arith.constant 0 : index")
            self.extent = self.define(f"memref.dim %m0, {zero} : {self.memories[0].type}")
        for _ in range(self.random.randint(1, 3)):
            if self.random.random() < 0.35:
                self.temporary()
            else:
                self.nest(self.random.choice(self.memories))

    def temporary(self) -> None:
        """Memory that one nest fills."""
        rank = self.random.choice((1, 2))
        made = Argument(f"t{len(self.memories)}", self.element, (self.size,) * rank)
        sizes = ", ".join([self.extent] * rank) if self.size is None else ""
        self.line(f"%{made.name} = memref.alloc({sizes}) : {made.type}")
        self.nest(made, whole=True)
        self.memories.append(made)

    # ---- a nest

    def nest(self, target: Argument, whole: bool = False) -> None:
        """Loops over the axes of the target, perhaps one more inside, which reduces."""
        self.margins: dict[str, tuple[int, int]] = {}
        indices: list[str] = []
        for _ in target.shape:
            self.open_loop(indices, whole)
        if not whole and self.random.random() < 0.2:
            self.line(f"affine.if {self.set_of(indices)} {{")
            self.indent += "  "
            self.body(target, indices, whole)
            self.close()
        else:
            self.body(target, indices, whole)
        for _ in indices:
            self.close()

    def open_loop(self, indices: list[str], whole: bool) -> None:
        name = self.fresh("i")
        low, high = (0, 0) if whole else (self.random.choice((0, 0, 1, 2)), self.random.choice((0, 0, 1)))
        lower, upper = str(low), self.upper(high)
        triangle = indices and not whole and self.random.random() < 0.15
        if triangle and low <= self.margins[indices[-1]][0]:
            outer = indices[-1]
            if self.random.random() < 0.5 and high <= self.margins[outer][1]:
                upper = f"affine_map<(d0) -> (d0 + 1)>({outer})"
            else:
                lower = f"affine_map<(d0) -> (d0)>({outer})"
        step = "" if whole or self.random.random() < 0.8 else f" step {self.random.choice((2, 3))}"
        self.line(f"affine.for {name} = {lower} to {upper}{step} {{")
        self.indent += "  "
        self.margins[name] = (low, high)
        indices.append(name)

    def upper(self, high: int) -> str:
        if self.size is not None:
            return str(self.size - high)
        return self.extent if high == 0 else f"affine_map<(d0) -> (d0 - {high})>({self.extent})"

    def close(self) -> None:
        self.indent = self.indent[2:]
        self.line("}")

    def set_of(self, indices: list[str]) -> str:
        a, b = self.random.choice(indices), self.random.choice(indices)
        text = self.random.choice(("d0 - 2 >= 0", "d0 - d1 >= 0", "d0 mod 2 == 0", "-d0 + 3 >= 0", "d0 + d1 - 3 >= 0"))
        return f"affine_set<(d0, d1) : ({text})>({a}, {b})"

    def body(self, target: Argument, indices: list[str], whole: bool) -> None:
        at = ", ".join(indices)
        kind = self.random.random()
        if kind < 0.25:
            self.reduction(target, indices)
            return
        if kind < 0.4:
            self.accumulate(target, indices, whole)
            return
        for k in range(self.random.choice((1, 1, 2))):
            value = self.value(indices, target if whole else None)
            where = at if whole or k == 0 else self.access(target, indices)
            self.line(f"affine.store {value}, %{target.name}[{where}] : {target.type}")

    def accumulate(self, target: Argument, indices: list[str], whole: bool) -> None:
        """A loop in memory: it begins with a store, or adds to what is there."""
        at = f"%{target.name}[{', '.join(indices)}] : {target.type}"
        if whole or self.random.random() < 0.5:
            self.line(f"affine.store {self.constant}, {at}")
        inner = [*indices]
        self.open_loop(inner, whole)
        value = self.value(inner, target if whole else None)
        before = self.define(f"affine.load {at}")
        self.line(f"affine.store {self.operation(before, value)}, {at}")
        self.close()

    def reduction(self, target: Argument, indices: list[str]) -> None:
        """A loop that carries a value."""
        result, name, carried = self.fresh("r"), self.fresh("i"), self.fresh("c")
        start = self.constant
        self.line(
            f"{result} = affine.for {name} = 0 to {self.upper(0)} iter_args({carried} = {start}) -> ({self.element}) {{"
        )
        self.indent += "  "
        self.margins[name] = (0, 0)
        value = self.operation(carried, self.value([*indices, name], target))
        self.line(f"affine.yield {value} : {self.element}")
        self.close()
        self.line(f"affine.store {result}, %{target.name}[{', '.join(indices)}] : {target.type}")

    def value(self, indices: list[str], without: Argument | None) -> str:
        """Of one to three loads; not of memory `without`, which may not be filled yet."""
        found = self.load(indices, without)
        for _ in range(self.random.randint(0, 2)):
            found = self.operation(found, self.load(indices, without) if self.random.random() < 0.7 else self.constant)
        return found

    def load(self, indices: list[str], without: Argument | None) -> str:
        source = self.random.choice([m for m in self.memories if m is not without])
        return self.define(f"affine.load %{source.name}[{self.access(source, indices)}] : {source.type}")

    def access(self, memory: Argument, indices: list[str]) -> str:
        return ", ".join(self.place(self.random.choice(indices)) for _ in memory.shape)

    def place(self, index: str) -> str:
        low, high = self.margins[index]
        shift = self.random.randint(-low, high)
        kind = self.random.random()
        if kind < 0.06:
            return f"{index} floordiv 2"
        if kind < 0.1:
            return f"{index} mod 3"
        if kind < 0.13 and self.size is not None:
            return f"{self.size - 1} - {index}"
        return index if shift == 0 else f"{index} {'+' if shift > 0 else '-'} {abs(shift)}"

    def operation(self, a: str, b: str) -> str:
        name = self.random.choice(_FLOAT_OPS if self.element in FLOATS else _INTEGER_OPS)
        return self.define(f"arith.{name} {a}, {b} : {self.element}")
