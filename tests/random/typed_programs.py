"""Random programs as texts that layoutproof and TVM both read, with arrays to run them on.

Loops of every kind, blocks with all sorts of bindings, predicates and inits, branches, lets, temporaries and vectors,
over expressions of every type (`expressions`). One seed gives one program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random

from tests.oracle.numbers import FLOATS, INTEGERS, TYPES, Array, limits_of, literal, random_array
from tests.random.typed_expressions import WIDE, Cell, Expressions

DOCUMENTED = frozenset({"bfloat16", "overflow", "shifted", "folded", "lazy"})
"""Features by which TVM and we differ by choice: `docs/reference/programs.md` lists them. Programs of the campaign have
none of them.
"""

HEAD = "@T.prim_func(s_tir=True)\n"


@dataclass(frozen=True)
class Program:
    """A function's text, its runs (arrays in the order of its parameters), and its features."""

    seed: int
    text: str
    parameters: tuple[Cell, ...]
    runs: tuple[tuple[Array, ...], ...]
    features: frozenset[str]


def random_program(seed: int, without: frozenset[str] = frozenset()) -> Program:
    """The program of a seed, with none of the features `without` (`expressions.FEATURES`)."""
    return _Writer(seed, without).program()


class _Writer:
    """One program, line by line."""

    def __init__(self, seed: int, without: frozenset[str]) -> None:
        self.seed, self.rng, self.without = seed, Random(seed), without
        self.expressions = Expressions(self.rng, without)
        self.scope = self.expressions.scope
        self.lines: list[str] = []
        self.indent = 1
        self.counter = 0
        self.blocks = 0
        self.types = [self.rng.choice(TYPES) for _ in range(self.rng.choice([1, 2, 2, 3]))]
        shapes = [(6,), (8,), (1,), (4, 5), (2, 3), (1, 4), (3, 2, 2)]
        kinds = [*(self.rng.choice(self.types) for _ in range(self.rng.choice([1, 2, 3]))), *self.types]
        self.parameters = [Cell("ABCDEFGH"[k], dtype, self.rng.choice(shapes)) for k, dtype in enumerate(kinds)]
        self.outputs = self.parameters[-len(self.types) :]
        self.scope.cells = list(self.parameters)

    def program(self) -> Program:
        """The whole function."""
        arguments = ", ".join(f'{c.name}: T.Buffer({_tuple(c.shape)}, "{c.dtype}")' for c in self.parameters)
        if self.rng.random() < 0.7:
            self.put('T.func_attr({"tirx.noalias": True})')
        if self.rng.random() < 0.3:
            self.temporary()
        for _ in range(self.rng.choice([1, 1, 1, 2])):
            self.statement(self.rng.choice([1, 2, 3]))
        text = f"{HEAD}def main({arguments}):\n" + "".join(f"{line}\n" for line in self.lines)
        runs = tuple(
            tuple(random_array(c.dtype, c.shape, self.rng, edges) for c in self.parameters) for edges in (0.0, 0.3, 0.8)
        )
        return Program(self.seed, text, tuple(self.parameters), runs, frozenset(self.expressions.used))

    # ---- the page

    def put(self, line: str) -> None:
        """A line at the present depth."""
        self.lines.append("    " * self.indent + line)

    def name(self, prefix: str) -> str:
        """A fresh name."""
        self.counter += 1
        return f"{prefix}{self.counter}"

    @contextmanager
    def deeper(self, head: str, ranges: dict[str, tuple[int, int]] | None = None) -> Iterator[None]:
        """Statements under a head, with some integers in scope; what they bind goes with them."""
        self.put(head)
        self.indent += 1
        kept, cells, lets = dict(self.scope.ranges), list(self.scope.cells), dict(self.scope.lets)
        self.scope.ranges |= ranges if ranges is not None else {}
        self.blocks += "T.sblock" in head
        yield
        self.blocks -= "T.sblock" in head
        self.scope.ranges, self.scope.cells, self.scope.lets = kept, cells, lets
        self.indent -= 1

    # ---- statements

    def statement(self, depth: int) -> None:
        """One statement with what it needs around it."""
        if depth <= 0:
            return self.store()
        rng = self.rng
        kinds: list[tuple[int, Callable[[int], None]]] = [
            (4, self.loop),
            (3, self.elementwise),
            (4, self.reduction),
            (2, self.branch),
            (2, self.let),
            (1, self.held),
            (1, self.vectors),
            (1, lambda _: self.store()),
        ]
        rng.choices([k for _, k in kinds], [w for w, _ in kinds])[0](depth - 1)
        return None

    def body(self, depth: int) -> None:
        """One or two statements."""
        for _ in range(self.rng.choice([1, 1, 2])):
            self.statement(depth)

    def target(self) -> Cell:
        """A buffer to store to: an output or a temporary."""
        names = {c.name for c in self.parameters} - {c.name for c in self.outputs}
        return self.rng.choice([c for c in self.scope.cells if c.name not in names])

    def store(self, target: Cell | None = None, indices: list[str] | None = None) -> None:
        """A store of a random value, sometimes converted by the store itself."""
        target = self.target() if target is None else target
        at = [self.expressions.index(e) for e in target.shape] if indices is None else indices
        cell, depth = f"{target.name}[{', '.join(at)}]", self.rng.choice([1, 2, 2, 3])
        numbers = target.dtype in (*INTEGERS, *FLOATS)
        if numbers and self.rng.random() < 0.08 and self.expressions.may("bare", 1.0):
            number = self.expressions.bare(target.dtype)  # one that does not fit is refused
            fits = target.dtype in FLOATS or int(number) <= limits_of(target.dtype)[1]
            self.put(f"{cell} = {number if fits else '5'}")
            return
        value = self.expressions.value(target.dtype, depth)
        plain = target.dtype == "bfloat16" and "bfloat16" in self.without
        if plain and target not in self.parameters:  # TVM does not round what it keeps
            self.put(f"{cell} = {value}")
            return
        if plain and self.rng.random() < 0.5:
            value = f'T.Cast("bfloat16", {self.expressions.solid("float32", depth)})'
        if numbers and self.rng.random() < 0.06 and self.expressions.may("mixed", 1.0):
            others = [*INTEGERS, *FLOATS] if target.dtype in FLOATS else list(INTEGERS)
            value = self.expressions.value(self.rng.choice(others), depth)
        elif target.dtype in FLOATS and target.dtype != "bfloat16" and self.rng.random() < 0.1:
            value = self.expressions.apart_from(cell, target.dtype) if "folded" in self.without else value
            self.put(f"{cell} {self.rng.choice('+-*')}= {value}")
            return
        self.put(f"{cell} = {value}")

    def loop_head(self, var: str, low: int, extent: int, kinds: list[str] | None = None) -> str:
        """The head of a loop."""
        kind = self.rng.choice(["serial"] * 5 + ["unroll", "parallel", "vectorized"] if kinds is None else kinds)
        if kind == "serial":
            return f"for {var} in {self.rng.choice(['range', 'T.serial'])}({_bounds(low, extent)}):"
        return f"for {var} in T.{kind}({_bounds(low, extent)}):"

    def loop(self, depth: int) -> None:
        """A loop of some kind; vectorised ones have a constant extent and a plain store."""
        rng, var = self.rng, self.name("i")
        low, extent = rng.choice([0, 0, 0, 0, 1, 3]), rng.choice([0, 1, 2, 3, 4, 4, 5, 6])
        kind = rng.choice(["serial"] * 6 + ["unroll", "parallel", "vectorized"])
        if kind == "vectorized":
            low, extent = 0, rng.choice([1, 2, 4, 5, 8])
        with self.deeper(self.loop_head(var, low, extent, [kind]), {var: (low, low + extent - 1)}):
            if kind in ("parallel", "vectorized"):
                self.apart(var, low + extent)
            else:
                self.body(depth)

    def apart(self, var: str, stop: int) -> None:
        """A store whose cell is the loop's own, so that no two iterations meet."""
        fitting = [c for c in self.outputs if max(c.shape) >= stop]
        if not fitting:
            return self.store()
        target = self.rng.choice(fitting)
        axis = target.shape.index(max(target.shape))
        others = [c for c in self.scope.cells if c.name != target.name]
        kept, self.scope.cells = self.scope.cells, others
        self.store(target, [var if k == axis else str(self.rng.randrange(e)) for k, e in enumerate(target.shape)])
        self.scope.cells = kept
        return None

    def branch(self, depth: int) -> None:
        """If, elif, else, on loop variables or on data."""
        condition = self.expressions.condition() if self.rng.random() < 0.6 else self.expressions.value("bool", 1)
        with self.deeper(f"if {condition}:"):
            self.body(depth)
        if self.rng.random() < 0.2:
            with self.deeper(f"elif {self.expressions.condition()}:"):
                self.body(0)
        if self.rng.random() < 0.4:
            with self.deeper("else:"):
                self.body(0)

    def let(self, depth: int) -> None:
        """A name for a value, and statements with it."""
        # TVM compiles no let with a bfloat16 in it.
        name, dtype = self.name("x"), self.rng.choice([t for t in self.types if t != "bfloat16"] or ["int32"])
        self.expressions.barred = frozenset({"bfloat16"})
        value = self.expressions.value(dtype, 2)
        self.expressions.barred = frozenset()
        # A scalar that is declared in a block counts as a region that the block reads, and TVM finds it undeclared
        # there.
        scalars = [f"{name}: T.{dtype} = {value}", f"{name} = {value}"] if not self.blocks else []
        form = self.rng.choice([*scalars, f"{name}: T.let[T.{dtype}] = {value}"])
        with self.deeper(self.loop_head(self.name("i"), 0, 1, ["serial"])):
            self.put(form)
            self.scope.lets[name] = dtype
            self.body(depth)

    def temporary(self) -> Cell:
        """A buffer of the function, filled."""
        cell = Cell(self.name("t"), self.rng.choice(self.types), self.rng.choice([(6,), (3, 4)]))
        self.put(f'{cell.name} = T.sblock_alloc_buffer({_tuple(cell.shape)}, "{cell.dtype}")')
        loops = [self.name("i") for _ in cell.shape]
        head = f"for {', '.join(loops)} in T.grid({', '.join(map(str, cell.shape))}):"
        with self.deeper(head, {v: (0, e - 1) for v, e in zip(loops, cell.shape, strict=True)}):
            self.put(f"{cell.name}[{', '.join(loops)}] = {self.expressions.value(cell.dtype, 2)}")
        self.scope.cells.append(cell)
        return cell

    def held(self, depth: int) -> None:
        """A block with a temporary of its own."""
        with self.deeper(f'with T.sblock("{self.name("b")}"):'):
            self.temporary()
            self.body(depth)

    def vectors(self, depth: int) -> None:
        """A store of several lanes, by ramps."""
        flat = [c for c in self.outputs if len(c.shape) == 1 and c.shape[0] >= 4 and c.dtype != "bool"]
        if not flat:
            return self.store()
        target, rng = self.rng.choice(flat), self.rng
        sources = [c for c in self.scope.cells if c.dtype == target.dtype and len(c.shape) == 1 and c.shape[0] >= 4]
        lanes = rng.choice([2, 4])
        a, b = (self.ramp(rng.choice(sources), lanes) for _ in range(2))
        scalar = self.expressions.value(target.dtype, 1)
        value = rng.choice([a, f"({a} + {b})", f"({a} * T.Broadcast({scalar}, {lanes}))", f"T.max({a}, {b})"])
        if ("overflow" in self.without and target.dtype in WIDE) or target.dtype == "bfloat16":
            value = f"T.max({a}, {b})"
        self.put(f"{self.ramp(target, lanes)} = {value}")
        return None

    def ramp(self, cell: Cell, lanes: int) -> str:
        """Some cells of a buffer of one axis."""
        spare = cell.shape[0] - lanes
        if self.rng.random() < 0.2:
            return f"{cell.name}[T.Ramp({lanes - 1 + self.rng.randint(0, spare)}, -1, {lanes})]"
        return f"{cell.name}[T.Ramp({self.rng.randint(0, spare)}, 1, {lanes})]"

    # ---- blocks

    def elementwise(self, depth: int) -> None:
        """A block of spatial axes over loops of its own."""
        rng = self.rng
        extents = [
            rng.choice([0, 1, 2, 3, 4, 5]) if rng.random() < 0.3 else rng.randint(2, 5)
            for _ in range(rng.choice([1, 2]))
        ]
        loops = [self.name("i") for _ in extents]
        with self.nest(loops, extents), self.deeper(f'with T.sblock("{self.name("b")}"):'):
            axes = [self.name("v") for _ in extents]
            if rng.random() < 0.5:
                self.put(f'{_names(axes)} = T.axis.remap("{"S" * len(axes)}", [{", ".join(loops)}])')
                domains = list(extents)
            else:
                domains = [self.axis("spatial", v, i, e) for v, i, e in zip(axes, loops, extents, strict=True)]
            if rng.random() < 0.4:
                self.put(f"T.where({self.expressions.condition()})")
            self.scope.ranges = {v: (0, e - 1) for v, e in zip(axes, domains, strict=True)}
            self.body(0)

    @contextmanager
    def nest(self, loops: list[str], extents: list[int]) -> Iterator[None]:
        """Loops, as a grid or one inside the other."""
        ranges = {v: (0, e - 1) for v, e in zip(loops, extents, strict=True)}
        if self.rng.random() < 0.6:
            with self.deeper(f"for {_names(loops)} in T.grid({', '.join(map(str, extents))}):", ranges):
                yield
            return
        depth = self.indent
        kept = dict(self.scope.ranges)
        for var, extent in zip(loops, extents, strict=True):
            self.put(self.loop_head(var, 0, extent, ["serial", "serial", "serial", "unroll"]))
            self.indent += 1
        self.scope.ranges |= ranges
        yield
        self.scope.ranges = kept
        self.indent = depth

    def axis(self, kind: str, axis: str, loop: str, extent: int) -> int:
        """An axis bound to something affine of a loop; its domain."""
        rng, k, size = self.rng, self.rng.randint(1, 3), max(extent, 1)
        binding, domain = rng.choice(
            [
                (loop, extent),
                (f"{size - 1} - {loop}", size),
                (f"({loop} + {k}) % {size}", size),
                (f"{loop} + {k}", size + k),
                (f"{loop} * {k}", (size - 1) * k + 1),
                (f"{loop} // {k + 1}", (size - 1) // (k + 1) + 1),
                (f"{loop} % {k}", k),
                (loop, size + k),
            ]
        )
        if extent == 0:
            binding, domain = loop, 0
        if self.expressions.shifted(binding):
            self.expressions.turned.add(axis)
        self.put(f"{axis} = T.axis.{kind}({domain}, {binding})")
        return domain

    def reduction(self, depth: int) -> None:
        """A block with an init, over spatial and reduce axes whose loops are in some order."""
        rng = self.rng
        target = rng.choice(self.outputs)
        spatial = [rng.randint(1, e) if rng.random() < 0.8 else rng.choice([0, 1]) for e in target.shape]
        reduced = [rng.choice([0, 1, 2, 3, 4, 5]) for _ in range(rng.choice([1, 1, 2]))]
        extents = [*spatial, *reduced]
        axes = [self.name("v") for _ in extents]
        kinds = "S" * len(spatial) + "R" * len(reduced)
        loops = {axis: self.name("k") for axis in axes}
        order = list(axes)
        plain = "init" in self.without
        if rng.random() < 0.3 and not plain:
            rng.shuffle(order)
        sizes = dict(zip(axes, extents, strict=True))
        if plain:
            sizes = {axis: max(extent, 1) for axis, extent in sizes.items()}
        with (
            self.nest([loops[a] for a in order], [sizes[a] for a in order]),
            self.deeper(f'with T.sblock("{self.name("b")}"):'),
        ):
            domains = dict(sizes)
            if rng.random() < 0.5 or plain:
                self.put(f'{_names(axes)} = T.axis.remap("{kinds}", [{", ".join(loops[a] for a in axes)}])')
            else:
                for axis, kind in zip(axes, kinds, strict=True):
                    word = "spatial" if kind == "S" else "reduce"
                    if kind == "S":
                        self.put(f"{axis} = T.axis.{word}({sizes[axis]}, {loops[axis]})")
                    else:
                        domains[axis] = self.axis(word, axis, loops[axis], sizes[axis])
            self.update(target, axes, kinds, domains, plain)

    def update(self, target: Cell, axes: list[str], kinds: str, domains: dict[str, int], plain: bool) -> None:
        """The predicate, the init and the update of a reduction."""
        rng, names = self.rng, [a for a, kind in zip(axes, kinds, strict=True) if kind == "S"]
        if rng.random() < 0.3 and not plain:
            self.put(f"T.where({self.expressions.condition()})")
        outside = self.scope.ranges
        cell = f"{target.name}[{', '.join(names)}]"
        with self.deeper("with T.init():"):
            self.scope.ranges = {a: (0, domains[a] - 1) for a in names}
            value = literal(target.dtype, rng) if rng.random() < 0.7 else self.expressions.value(target.dtype, 1)
            self.put(f"{cell} = {value}")
        self.scope.ranges = {a: (0, domains[a] - 1) for a in axes}
        self.scope.cells = [c for c in self.scope.cells if c.name != target.name or rng.random() < 0.1]
        value = self.expressions.value(target.dtype, 2)
        if "folded" in self.without and value in (f"T.{target.dtype}(0.0)", f"T.{target.dtype}(-0.0)"):
            value = self.expressions.apart_from(cell, target.dtype)  # TVM takes a product with zero for 0
        if target.dtype == "bool":
            self.put(f"{cell} = {cell} {rng.choice(['and', 'or'])} {value}")
        elif (target.dtype in WIDE and "overflow" in self.without) or (
            target.dtype == "bfloat16" and "bfloat16" in self.without
        ):
            self.put(f"{cell} = T.{rng.choice(['max', 'min'])}({cell}, {value})")
        else:
            choices = [
                f"{cell} + {value}",
                f"{cell} * {value}",
                f"T.max({cell}, {value})",
                f"T.min({value}, {cell})",
                f"{value} - {cell}",
            ]
            self.put(f"{cell} = {rng.choice(choices)}")
        self.scope.ranges = outside


def with_runs(program: Program, runs: tuple[tuple[Array, ...], ...]) -> Program:
    """The same program on other arrays."""
    return replace(program, runs=runs)


def _tuple(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))},)"


def _names(names: list[str]) -> str:
    return ", ".join(names)


def _bounds(low: int, extent: int) -> str:
    return str(extent) if low == 0 else f"{low}, {low + extent}"
