"""Random functions of MLIR whose meaning is defined: in bounds, initialised, without overflow of an index.

Loops with maps, minima and maxima as bounds, branches on sets, values that loops carry, views, vectors at the edge of
memory, structured operations, and every operation of `arith` that has no rounding of its own choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

FLOATS, INTEGERS = ("f32", "f64"), ("i8", "i16", "i32", "i64")
_DIVISORS = (-7, -3, -2, 2, 3, 5, 8)


@dataclass
class Argument:
    """A memref argument: its element type and its extents, None for the size of the call."""

    name: str
    element: str
    shape: tuple[int | None, ...]

    @property
    def type(self) -> str:
        """As MLIR writes it."""
        extents = "".join(f"{'?' if extent is None else extent}x" for extent in self.shape)
        return f"memref<{extents}{self.element}>"


@dataclass
class Program:
    """The text of a function `@name`, its memrefs, and whether it takes an index last."""

    name: str
    arguments: list[Argument]
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The function."""
        arguments = ", ".join(f"%{a.name}: {a.type}" for a in self.arguments)
        body = "\n".join(self.lines)
        return f"func.func @{self.name}({arguments}, %k: index) {{\n{body}\n  return\n}}\n"


def random_program(random: Random, name: str) -> Program:
    """A function of two to four memrefs of one element type, and an index from 0 to the size of the call."""
    element = random.choice(FLOATS + INTEGERS)
    shapes: list[tuple[int | None, ...]] = [
        (None,),
        (random.randint(1, 9),),
        (random.randint(1, 4), random.randint(1, 5)),
    ]
    arguments = [Argument("a", element, (None,)), Argument("b", element, (random.randint(2, 9),))]
    arguments += [Argument(f"c{n}", element, random.choice(shapes)) for n in range(random.randint(0, 2))]
    program = Program(name, arguments)
    _Writer(random, program, element).write()
    return program


def _is_plain(index: str) -> bool:
    """Whether an index is that of an `scf` loop, which maps may not use."""
    return index.startswith("%s")


def _affine(indices: list[str]) -> list[str]:
    return [index for index in indices if not _is_plain(index)]


class _Writer:
    def __init__(self, random: Random, program: Program, element: str) -> None:
        self.random = random
        self.program = program
        self.element = element
        self.is_float = element in FLOATS
        self.count = 0
        self.indent = "  "

    # ---- lines and names

    def line(self, text: str) -> None:
        self.program.lines.append(self.indent + text)

    def define(self, text: str) -> str:
        self.count += 1
        name = f"%v{self.count}"
        self.line(f"{name} = {text}")
        return name

    def inside(self, build: Callable[[], None]) -> None:
        outside = self.indent
        self.indent += "  "
        build()
        self.indent = outside
        self.line("}")

    def write(self) -> None:
        zero = self.define("arith.constant 0 : index")
        self.size = self.define(f"memref.dim %a, {zero} : memref<?x{self.element}>")
        self.constants = [self.constant() for _ in range(2)]
        for _ in range(self.random.randint(1, 3)):
            self.statement([], 2)

    # ---- statements

    def statement(self, indices: list[str], depth: int) -> None:
        kinds: list[Callable[[list[str], int], None]] = [self.store]
        if depth > 0:
            kinds += [self.loop, self.loop, self.scf_loop, self.branch, self.reduction, self.temporary, self.vector]
        elif indices:
            kinds += [self.branch_value]
        self.random.choice(kinds)(indices, depth)

    def body(self, indices: list[str], depth: int) -> Callable[[], None]:
        def build() -> None:
            for _ in range(self.random.randint(1, 2)):
                self.statement(indices, depth - 1)

        return build

    def store(self, indices: list[str], depth: int) -> None:
        value = self.value(indices)
        self.access("affine.store", indices, value)

    def loop(self, indices: list[str], depth: int) -> None:
        self.count += 1
        name = f"%i{self.count}"
        step = self.random.choice((1, 1, 1, 2, 3, 4))
        self.line(f"affine.for {name} = {self.bound(indices, 'max')} to {self.bound(indices, 'min')} step {step} {{")
        self.inside(self.body([*indices, name], depth))

    def bound(self, indices: list[str], word: str) -> str:
        """A bound of small numbers; an upper one may be below the lower one."""
        number = self.random.randint(-2, 3) if word == "max" else self.random.randint(0, 7)
        others = [*_affine(indices), "%k", self.size]
        match self.random.randint(0, 3):
            case 0:
                return str(number)
            case 1:
                return f"affine_map<(d0) -> (d0 + {number})>({self.random.choice(others)})"
            case 2:
                one, two = self.random.choice(others), self.random.choice(others)
                return f"{word} affine_map<(d0, d1) -> (d0 floordiv 2, d1 - {number}, {number})>({one}, {two})"
            case _:
                return f"affine_map<(d0) -> ((d0 * 3 - 1) ceildiv 2)>({self.random.choice(others)})"

    def scf_loop(self, indices: list[str], depth: int) -> None:
        lower, step = (
            self.define(f"arith.constant {n} : index") for n in (self.random.randint(-1, 2), self.random.randint(1, 3))
        )
        self.count += 1
        name = f"%s{self.count}"
        self.line(f"scf.for {name} = {lower} to {self.random.choice(['%k', self.size])} step {step} {{")
        self.inside(self.body([*indices, name], depth))

    def branch(self, indices: list[str], depth: int) -> None:
        a, b = (self.random.choice([*_affine(indices), "%k", self.size]) for _ in range(2))
        conditions = [
            "d0 - 2 >= 0", "-d0 + d1 + 1 >= 0", "d0 mod 3 == 0", "d0 + d1 floordiv 2 - 4 >= 0", "d1 - d0 == 0",
        ]  # fmt: skip
        chosen = ", ".join(self.random.sample(conditions, self.random.randint(1, 2)))
        self.line(f"affine.if affine_set<(d0, d1) : ({chosen})>({a}, {b}) {{")
        self.inside(self.body(indices, depth))
        if self.random.random() < 0.5:
            self.program.lines[-1] = f"{self.indent}}} else {{"
            self.inside(self.body(indices, depth))

    def branch_value(self, indices: list[str], depth: int) -> None:
        condition = self.condition(indices)
        self.count += 1
        name = f"%v{self.count}"
        self.line(f"{name} = scf.if {condition} -> ({self.element}) {{")
        for word in ("} else {", "}"):
            outside = self.indent
            self.indent += "  "
            value = self.value(indices)
            self.line(f"scf.yield {value} : {self.element}")
            self.indent = outside
            self.line(word)
        self.access("affine.store", indices, name)

    def reduction(self, indices: list[str], depth: int) -> None:
        self.count += 1
        result, name, carried, other = (f"%{c}{self.count}" for c in "rict")
        start, second = self.value(indices), self.value(indices)
        to = self.bound(indices, "min")
        types = f"({self.element}, {self.element})"
        self.line(
            f"{result}:2 = affine.for {name} = 0 to {to} "
            f"iter_args({carried} = {start}, {other} = {second}) -> {types} {{"
        )
        outside = self.indent
        self.indent += "  "
        loaded = self.value([*indices, name])
        total = self.operation(carried, loaded)
        given = [other, total] if self.random.random() < 0.3 else [total, self.operation(other, carried)]
        self.line(f"affine.yield {given[0]}, {given[1]} : {self.element}, {self.element}")
        self.indent = outside
        self.line("}")
        self.access("affine.store", indices, f"{result}#{self.random.randint(0, 1)}")

    def temporary(self, indices: list[str], depth: int) -> None:
        """Memory that is filled, viewed in part, and read."""
        size = self.random.randint(3, 6)
        kind = f"memref<{size}x{self.element}>"
        memory = self.define(f"memref.alloc() : {kind}")
        self.count += 1
        name = f"%i{self.count}"
        self.line(f"affine.for {name} = 0 to {size} {{")

        def fill() -> None:
            self.line(f"affine.store {self.value([*indices, name])}, {memory}[{name}] : {kind}")

        self.inside(fill)
        offset = self.random.randint(0, 1)
        extent = (size - offset + 1) // 2
        view = f"memref<{extent}x{self.element}, strided<[2], offset: {offset}>>"
        part = self.define(f"memref.subview {memory}[{offset}] [{extent}] [2] : {kind} to {view}")
        at = self.define(f"arith.constant {self.random.randrange(extent)} : index")
        value = self.define(f"memref.load {part}[{at}] : {view}")
        self.line(f"memref.store {self.operation(value, self.value(indices))}, {part}[{at}] : {view}")
        again = self.define(f"affine.load {memory}[{self.random.randrange(size)}] : {kind}")
        self.access("affine.store", indices, self.operation(again, value))
        self.line(f"memref.dealloc {memory} : {kind}")

    def vector(self, indices: list[str], depth: int) -> None:
        """Lanes past the end of memory read the padding, and are not written."""
        source, target = (self.random.choice(self.one_axis()) for _ in range(2))
        lanes = self.random.choice((2, 4))
        kind = f"vector<{lanes}x{self.element}>"
        first, second = (self.define(f"arith.constant {self.random.randint(0, 3)} : index") for _ in range(2))
        pad = self.random.choice(self.constants)
        read = self.define(f"vector.transfer_read %{source.name}[{first}], {pad} : {source.type}, {kind}")
        scalar = self.value(indices)
        other = self.define(f"vector.broadcast {scalar} : {self.element} to {kind}")
        result = self.operation(read, other, kind)
        self.line(f"vector.transfer_write {result}, %{target.name}[{second}] : {kind}, {target.type}")

    def one_axis(self) -> list[Argument]:
        return [a for a in self.program.arguments if len(a.shape) == 1]

    # ---- values

    def access(self, op: str, indices: list[str], value: str = "") -> str:
        """A load or a store inside the memory: an index is taken modulo the extent, or guarded by the loop."""
        static = [a for a in self.program.arguments if None not in a.shape]
        chosen = self.random.choice(static)
        if any(map(_is_plain, indices)) and self.random.random() < 0.7:
            return self.plain_access(op.replace("affine", "memref"), indices, value, chosen)
        places = ", ".join(f"({self.index(indices)}) mod {extent}" for extent in chosen.shape)
        at = f"%{chosen.name}[{places}] : {chosen.type}"
        if value:
            self.line(f"{op} {value}, {at}")
            return ""
        return self.define(f"{op} {at}")

    def plain_access(self, op: str, indices: list[str], value: str, chosen: Argument) -> str:
        """At indices that are computed, and kept inside the memory."""
        zero, places = self.define("arith.constant 0 : index"), []
        for extent in chosen.shape:
            last = self.define(f"arith.constant {(extent or 1) - 1} : index")
            scale = self.define(f"arith.constant {self.random.randint(-1, 2)} : index")
            scaled = self.define(f"arith.muli {self.random.choice(indices)}, {scale} : index")
            moved = self.define(f"arith.addi {scaled}, %k : index")
            low = self.define(f"arith.maxsi {moved}, {zero} : index")
            places.append(self.define(f"arith.minsi {low}, {last} : index"))
        at = f"%{chosen.name}[{', '.join(places)}] : {chosen.type}"
        if value:
            self.line(f"{op} {value}, {at}")
            return ""
        return self.define(f"{op} {at}")

    def index(self, indices: list[str]) -> str:
        terms = [*_affine(indices), "%k"]
        a, b = self.random.choice(terms), self.random.choice(terms)
        mark = "symbol(%k)" if a == "%k" else a
        return self.random.choice([
            a if a != "%k" else mark, f"{a} + {self.random.randint(0, 9)}", f"{a} * 3 - {b}", f"{a} floordiv 2 + {b}",
            f"-{a} + 5", f"{a} ceildiv 3", f"({a} + {b}) mod 4",
        ])  # fmt: skip

    def constant(self) -> str:
        text = (
            self.random.choice(("0.0", "-0.0", "1.5", "-3.25", "1.0e30"))
            if self.is_float
            else str(self.random.choice((0, 1, -1, 7, -5, 127, -128)))
        )
        return self.define(f"arith.constant {text} : {self.element}")

    def value(self, indices: list[str]) -> str:
        found = self.access("affine.load", indices)
        for _ in range(self.random.randint(0, 2)):
            other = self.random.choice([self.access("affine.load", indices), self.random.choice(self.constants)])
            found = self.operation(found, other)
        return found

    def operation(self, a: str, b: str, kind: str | None = None) -> str:
        """A value of two."""
        kind = self.element if kind is None else kind
        if self.is_float:
            name = self.random.choice(
                (
                    "addf",
                    "subf",
                    "mulf",
                    "divf",
                    "maximumf",
                    "minimumf",
                    "negf",
                    "select",
                    "absf",
                    "sqrt",
                    "floor",
                    "cast",
                )
            )
        else:
            name = self.random.choice(
                ("addi", "subi", "muli", "andi", "ori", "xori", "minsi", "maxsi", "minui", "maxui", "select", "divide",
                 "shift", "cast")
            )  # fmt: skip
        if kind != self.element and name in ("select", "cast", "divide", "shift"):
            name = "addf" if self.is_float else "addi"
        match name:
            case "select":
                return self.define(f"arith.select {self.compare(a, b)}, {a}, {b} : {kind}")
            case "negf":
                return self.define(f"arith.negf {a} : {kind}")
            case "absf" | "sqrt" | "floor":
                return self.define(f"math.{name} {a} : {kind}")
            case "cast":
                return self.cast(a)
            case "divide":
                return self.divide(a)
            case "shift":
                by = self.define(f"arith.constant {self.random.randint(0, 7)} : {kind}")
                return self.define(f"arith.{self.random.choice(('shli', 'shrsi', 'shrui'))} {a}, {by} : {kind}")
            case _:
                return self.define(f"arith.{name} {a}, {b} : {kind}")

    def divide(self, a: str) -> str:
        name = self.random.choice(("divsi", "remsi", "floordivsi", "ceildivsi", "divui", "remui", "ceildivui"))
        by = self.define(f"arith.constant {self.random.choice(_DIVISORS)} : {self.element}")
        if name == "ceildivsi":
            # arith-expand lowers that of the least number to a wrong one.
            least = self.define(f"arith.constant -127 : {self.element}")
            a = self.define(f"arith.maxsi {a}, {least} : {self.element}")
        return self.define(f"arith.{name} {a}, {by} : {self.element}")

    def cast(self, a: str) -> str:
        """To another type and back."""
        if self.is_float:
            if self.element == "f32":
                wide = self.define(f"arith.extf {a} : f32 to f64")
                return self.define(f"arith.truncf {wide} : f64 to f32")
            narrow = self.define(f"arith.truncf {a} : f64 to f32")
            return self.define(f"arith.extf {narrow} : f32 to f64")
        if self.element == "i64":
            narrow = self.define(f"arith.trunci {a} : i64 to i8")
            return self.define(f"arith.{self.random.choice(('extsi', 'extui'))} {narrow} : i8 to i64")
        way = self.random.choice(("si", "ui"))
        if self.random.random() < 0.5:
            found = self.define(f"arith.{way}tofp {a} : {self.element} to f64")
            positive = self.define(f"arith.fptosi {found} : f64 to i64")
            return self.define(f"arith.trunci {positive} : i64 to {self.element}")
        wide = self.define(f"arith.ext{way} {a} : {self.element} to i64")
        return self.define(f"arith.trunci {wide} : i64 to {self.element}")

    def compare(self, a: str, b: str) -> str:
        if self.is_float:
            ordered = (
                "oeq",
                "ogt",
                "oge",
                "olt",
                "ole",
                "one",
                "ord",
                "ueq",
                "ugt",
                "uge",
                "ult",
                "ule",
                "une",
                "uno",
            )
            return self.define(f"arith.cmpf {self.random.choice(ordered)}, {a}, {b} : {self.element}")
        predicates = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
        return self.define(f"arith.cmpi {self.random.choice(predicates)}, {a}, {b} : {self.element}")

    def condition(self, indices: list[str]) -> str:
        return self.compare(self.access("affine.load", indices), self.access("affine.load", indices))
