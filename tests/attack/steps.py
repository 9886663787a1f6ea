"""The texts of programs that hold values in temporaries or have them in place of their loads: steps over the elements,
and the loops, of some form, in which each program does them.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Node:
    """A value: `load` of a name at an index, `const`, `undef`, or an operator over values."""

    kind: str
    name: str = ""
    parts: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Step:
    """What one loop over the elements stores. `times` adds so many terms up, the k-th at elements that are k further.

    `data`: only where an input is positive; what is there stays elsewhere.
    """

    target: str
    value: Node
    dtype: str
    times: int = 0
    data: bool = False


@dataclass(frozen=True)
class Version:
    """One program: steps in order, which stages are held in memory and how, and which steps share a loop with the one
    before.
    """

    steps: tuple[Step, ...]
    held: frozenset[str]
    forms: dict[str, str] = field(hash=False)
    fused: frozenset[int] = frozenset()
    extra: tuple[tuple[int, str], ...] = ()


@dataclass
class Store:
    """A store as the witness has it: its loops, the element in terms of them, and its step."""

    loops: tuple[str, ...]
    element: str
    step: int | None


class Writer:
    """The text of one version, with its stores in order."""

    def __init__(self, version: Version, dtype: str, *, symbolic: bool) -> None:
        self.version, self.dtype, self.symbolic = version, dtype, symbolic
        self.size, self.last = ("n", "(n - 1)") if symbolic else ("8", "7")
        self.stores: list[Store] = []
        self.lines: list[str] = []
        # What a name loads at this moment: the last step that wrote it, as an inlined stage has it.
        self.steps = {step.target: step for step in version.steps}

    def const(self, text: str, dtype: str | None = None) -> str:
        """A constant."""
        kind = self.dtype if dtype is None else dtype
        return f"T.{kind}({text})"

    def value(self, node: Node, i: str, depth: int = 0) -> str:
        """A value at an element."""
        parts = [self.value(p, i, depth) for p in node.parts] if node.kind not in ("load", "index") else []
        match node.kind:
            case "load":
                further = self.further(i, "3")
                return self.load(
                    node.name, f"({node.parts[0].name.format(i=i, last=self.last, further=further)})", depth
                )
            case "const":
                return self.const(node.name)
            case "undef":
                return f'T.undef(dtype="{self.dtype}")'
            case "max" | "min":
                return f"T.{node.kind}({parts[0]}, {parts[1]})"
            case "select":
                return f"T.Select({parts[0]} > {self.const('0')}, {parts[1]}, {parts[2]})"
            case "lazy":
                return f"T.if_then_else({i} < 5, {parts[1]}, {parts[2]})"
            case "call":
                return f"T.{node.name}({parts[0]})"
            case "negative":
                return f"({self.const('0')} - {parts[0]})"
            case "narrow":
                return f'T.Cast("{self.dtype}", T.Cast("int8", {parts[0]}))'
            case "//":
                return f"({parts[0]} // {self.const('2')})"
            case kind:
                return f"({parts[0]} {kind} {parts[1]})"

    def load(self, name: str, i: str, depth: int) -> str:
        """What a name holds at an element: a load, or the value of a stage that is not held."""
        if not name.startswith("T"):
            return f"{name}[{i}]"
        step = self.steps[name]
        if name in self.version.held or step.data or depth > 3:
            index = {"scalar": "0", "rows": f"{i} // 4, {i} % 4"}.get(self.version.forms[name], i)
            return self.cast(f"{name}[{index}]", step.dtype, self.dtype)
        value = self.summed(step, i, depth + 1)
        return self.cast(self.cast(value, self.dtype, step.dtype), step.dtype, self.dtype)

    def further(self, i: str, k: str) -> str:
        """An element some places further, back at the start or at the last one."""
        return f"T.min({i} + {k}, {self.last})" if self.symbolic else f"(({i} + {k}) % 8)"

    def summed(self, step: Step, i: str, depth: int = 0) -> str:
        """The value of a step at an element, all of its terms."""
        if not step.times:
            return self.value(step.value, i, depth)
        terms = [self.value(step.value, self.further(i, str(k)), depth) for k in range(step.times)]
        return "(" + " + ".join([self.const("0"), *terms]) + ")"

    @staticmethod
    def cast(text: str, source: str, target: str) -> str:
        """Text of one type as another."""
        return text if source == target else f'T.Cast("{target}", {text})'

    def cell(self, name: str, i: str) -> str:
        """The cell of an element."""
        return f"{name}[{ {'scalar': '0', 'rows': f'{i} // 4, {i} % 4'}.get(self.version.forms[name], i) }]"

    def body(self, number: int, loops: tuple[str, ...], i: str, indent: str) -> None:
        """The stores of one step for the element `i`."""
        step = self.version.steps[number]
        cell = self.cell(step.target, i)
        if step.times and step.target.startswith("T") and self.version.forms[step.target] not in ("vector", "twice"):
            self.put(f"{indent}{cell} = {self.const('0', step.dtype)}", Store(loops, i, None))
            loop = f"k{number}"
            self.lines.append(f"{indent}for {loop} in range({step.times}):")
            term = self.cast(self.value(step.value, self.further(i, loop)), self.dtype, step.dtype)
            self.put(f"{indent}    {cell} = {cell} + {term}", Store((*loops, loop), i, None))
            return
        value = self.cast(self.summed(step, i), self.dtype, step.dtype)
        stored = f"{cell} = {value}"
        if step.data:
            self.put(f"{indent}{cell} = {self.const('1', step.dtype)}", Store(loops, i, None))
            self.lines.append(f"{indent}if D[{i}] > {self.const('0')}:")
            indent += "    "
        self.put(f"{indent}{stored}", Store(loops, i, number))

    def put(self, line: str, store: Store) -> None:
        """A line that stores."""
        self.lines.append(line)
        self.stores.append(store)

    def step(self, number: int, at: str) -> None:
        """One step in a loop of its form."""
        form = self.version.forms[self.version.steps[number].target]
        v, w = f"i{number}", f"j{number}"
        match form:
            case "reversed":
                self.lines.append(f"{at}for {v} in range({self.size}):")
                self.body(number, (v,), f"({self.last} - {v})", at + "    ")
            case "tiled":
                self.lines.append(f"{at}for {v}, {w} in T.grid({'n // 4 + 1' if self.symbolic else '2'}, 4):")
                if self.symbolic:
                    self.lines.append(f"{at}    if {v} * 4 + {w} < n:")
                    at += "    "
                self.body(number, (v, w), f"({v} * 4 + {w})", at + "    ")
            case "vector":
                self.lines.append(f"{at}for {v} in T.vectorized(8):")
                self.body(number, (v,), v, at + "    ")
            case "parallel":
                self.lines.append(f"{at}for {v} in T.parallel({self.size}):")
                self.body(number, (v,), v, at + "    ")
            case "split":
                for start, extent in (
                    (("0", "n // 2"), ("n // 2", "n - n // 2")) if self.symbolic else (("0", "5"), ("5", "3"))
                ):
                    self.lines.append(f"{at}for {v} in range({extent}):")
                    self.body(number, (v,), f"({v} + {start})", at + "    ")
            case "twice":
                for extent in (self.size, f"{self.size} // 2"):
                    self.lines.append(f"{at}for {v} in range({extent}):")
                    self.body(number, (v,), v, at + "    ")
            case _:
                self.lines.append(f"{at}for {v} in range({self.size}):")
                self.body(number, (v,), v, at + "    ")

    def text(self, name: str) -> str:
        """The function."""
        version, dtype = self.version, self.dtype
        extent = '"n"' if self.symbolic else "8"
        parameters = ", ".join(f'{p}: T.Buffer(({extent},), "{dtype}")' for p in "ADBC")
        head = [
            f"@T.prim_func(s_tir=True)\ndef {name}({parameters}):",
            *(["    n = T.int32()"] if self.symbolic else []),
        ]
        head.append('    T.func_attr({"tirx.noalias": True})')
        shapes = {"scalar": "(1,)", "rows": "(2, 4)"}
        for stage, step in sorted(self.steps.items()):
            if stage.startswith("T") and self.is_held(step):
                head.append(
                    f"    {stage} = T.sblock_alloc_buffer({shapes.get(version.forms[stage], f'({self.size},)')}, "
                    f'"{step.dtype}")'
                )
        groups: list[list[int]] = []
        for number, step in enumerate(version.steps):
            if not self.is_held(step):
                continue
            if groups and number in version.fused:
                groups[-1].append(number)
            else:
                groups.append([number])
        for group in groups:
            if len(group) == 1:
                self.step(group[0], "    ")
            else:
                loop = f"f{group[0]}"
                self.lines.append(f"    for {loop} in range({self.size}):")
                for number in group:
                    self.body(number, (loop,), loop, "        ")
            for after, store in version.extra:
                if after in group:
                    self.put(f"    {store}", Store((), "0", None))
        return "\n".join([*head, *self.lines]) + "\n"

    def is_held(self, step: Step) -> bool:
        """Whether a step stores at all."""
        return not step.target.startswith("T") or step.target in self.version.held or step.data
