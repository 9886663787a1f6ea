"""The core language: what a program is once its text has been read and blocks are written out.

An expression is a nested tuple `(operator, dtype, *operands)`, equal to another one iff both are written alike:

    ("const", dtype, value)             an int, a bool (dtype "bool"), or a float as `float.hex` text, so that -0.0 is
                                        not 0.0 and every NaN is "nan"
    ("var", dtype, name)  ("undef", dtype)  ("cast", dtype, e)  ("not", "bool", e)
    ("load", dtype, buffer, (index, ...))
    (op, dtype, a, b)                   + - * / // % truncdiv truncmod min max & | ^ << >> and or < <= > >= == !=
    ("select", dtype, c, a, b)          both sides are evaluated;  ("if", dtype, c, a, b): only the one that is taken
    ("call", dtype, function, *args)    a named function of numbers
    ("ramp", dtype, base, stride, lanes)  ("broadcast", dtype, value, lanes)

`-x` is read as `x * -1`, as its meaning is defined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Expr = tuple[Any, ...]
Access = tuple[str, tuple[Expr, ...]]  # a buffer and an index
TRUE: Expr = ("const", "bool", True)
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_TYPE = re.compile(r"(bool|u?int(?:8|16|32|64)?|float(?:16|32|64)?|bfloat16)(?:x([1-9][0-9]{0,3}))?")


def parse_dtype(text: str) -> str | None:
    """A data type in its one spelling (`int` is `int32`, `float32x1` is `float32`); None for anything else."""
    found = _TYPE.fullmatch(text)
    if found is None:
        return None
    return with_lanes(found[1] + ("32" if found[1] in ("int", "uint", "float") else ""), int(found[2] or 1))


def element_of(dtype: str) -> str:
    """The type of one lane."""
    return dtype.partition("x")[0]


def lanes_of(dtype: str) -> int:
    """The number of lanes."""
    return int(dtype.partition("x")[2] or 1)


def with_lanes(dtype: str, lanes: int) -> str:
    """The type with that many lanes instead of its own."""
    return element_of(dtype) if lanes == 1 else f"{element_of(dtype)}x{lanes}"


def is_integer(dtype: str) -> bool:
    """A signed or unsigned integer, of any number of lanes."""
    return dtype.startswith(("int", "uint"))


def is_index(dtype: str) -> bool:
    """A signed or unsigned integer of one lane."""
    return is_integer(dtype) and "x" not in dtype


def is_float(dtype: str) -> bool:
    """A float, bfloat16 too, of any number of lanes."""
    return dtype.startswith(("float", "bfloat"))


def integer_bounds(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer type, of one lane."""
    bits = int(dtype.lstrip("uint"))
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)


def fits(value: int, dtype: str) -> bool:
    """Whether an integer is one of an integer type, of one lane."""
    low, high = integer_bounds(dtype)
    return low <= value <= high


def computed(operator: str, x: Any, y: Any) -> Any:
    """An operation on numbers of Python."""
    if operator in ("max", "min"):
        return max(x, y) if operator == "max" else min(x, y)
    return x + y if operator == "+" else x - y if operator == "-" else x * y


def walk(e: Expr) -> Iterator[Expr]:
    """The expression and all that it is made of."""
    stack = [e]
    while stack:
        found = stack.pop()
        yield found
        stack += parts(found)


def parts(e: Expr) -> list[Expr]:
    """The operands of an expression, the indices of a load among them."""
    return list(e[3]) if e[0] == "load" else [x for x in e[2:] if isinstance(x, tuple)]


def terms(e: Expr, operator: str) -> list[Expr]:
    """What `and` or `or` joins."""
    return [*terms(e[2], operator), *terms(e[3], operator)] if e[0] == operator else [e]


def has(e: Expr, *operators: str) -> bool:
    """Whether some part of the expression has one of these operators."""
    return any(part[0] in operators for part in walk(e))


def loads_of(*texts: Expr) -> list[Expr]:
    """The loads in expressions."""
    return [part for e in texts for part in walk(e) if part[0] == "load"]


def may_trap(e: Expr) -> bool:
    """Whether the operation at the top of an expression may have no result because of data. Floats always have one."""
    if not loads_of(e):
        return False
    is_of_floats = all(is_float(x[1]) for x in (e, *parts(e)))
    return e[0] in ("//", "%", "truncdiv", "truncmod", "<<", ">>", "cast") or (e[0] == "call" and not is_of_floats)


def is_affine_condition(e: Expr) -> bool:
    """Whether a condition speaks of integers alone, without data: its operations are index arithmetic, which does not
    wrap. Beside data they wrap.
    """
    return all(part[0] not in ("load", "undef") and (is_index(part[1]) or part[1] == "bool") for part in walk(e))


@dataclass(frozen=True, slots=True)
class Loop:
    """`for var in start .. start + extent - 1`. No two loops of a program have a variable of one name."""

    var: str
    dtype: str
    start: Expr
    extent: Expr
    kind: str  # "serial", "parallel", "vectorized" or "unroll"


def variable(loop: Loop) -> Expr:
    """The variable of a loop."""
    return ("var", loop.dtype, loop.var)


@dataclass(frozen=True, slots=True)
class Statement:
    """One store (`buffer[indices] = value`) or assumption (`condition`), run where all guards hold.

    `guards` are evaluated outermost first, each only where those before it hold. `time` is the position among its
    siblings of each loop around the statement and, last, of the statement: with the loops' values in between it is
    when an instance runs, in lexicographic order. `number` counts the stores in the order of the text, the init of a
    block before its body; it is -1 for an assumption. What is not of its kind is empty, or true.
    """

    kind: str  # "store", "assume" or "inside"
    loops: tuple[Loop, ...]
    guards: tuple[Expr, ...]
    time: tuple[int, ...]
    buffer: str
    indices: tuple[Expr, ...]
    value: Expr
    condition: Expr
    line: int
    number: int

    @property
    def access(self) -> Access:
        """What a store writes."""
        return self.buffer, self.indices

    @property
    def texts(self) -> tuple[Expr, ...]:
        """All that it evaluates but the bounds of loops."""
        return (*self.guards, self.value, self.condition, *self.indices)

    def way_to(self, number: int) -> Statement:
        """The loops and guards that are known to be around a guard. Of a guard it is not stated which loops are around
        it, but those are whose variables it or one before it has; inner ones may be empty, and it is evaluated.
        """
        named = {part[2] for guard in self.guards[: number + 1] for part in walk(guard) if part[0] == "var"}
        depth = max((k + 1 for k, loop in enumerate(self.loops) if loop.var in named), default=0)
        return replace(self, loops=self.loops[:depth], guards=self.guards[:number])


def evaluated_at(
    loops: tuple[Loop, ...], guards: tuple[Expr, ...], texts: tuple[Expr, ...] = (), line: int = 0
) -> Statement:
    """A statement there that only evaluates index arithmetic."""
    return Statement("inside", loops, guards, (1 << 62,), "", texts, TRUE, TRUE, line, -1)


@dataclass(frozen=True, slots=True)
class Buffer:
    """Elements of `data`, which several buffers (views) may share; row-major where `strides` is empty.

    `is_parameter` is true of buffers in the list of parameters, false of views of them. `loops` are those around the
    allocation of `data`: in each iteration of them its memory is new and undefined. `separators` are the axes before
    the last, each the last one of its group of axes.
    """

    name: str
    data: str
    dtype: str
    shape: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    offset: Expr
    scope: str
    is_parameter: bool
    loops: tuple[Loop, ...]
    separators: tuple[int, ...] = ()
    promises: tuple[int, int] = (0, 0)  # of callers: the alignment in bytes, and of what the offset is a multiple
    lanes: int = 1  # of an element as the text has it: its lanes are the last axis

    @property
    def kind(self) -> tuple[str, int]:
        """Type and lanes of an element."""
        return self.dtype, self.lanes


@dataclass(frozen=True, slots=True)
class Program:
    """One function. `assumed` repeats the assumptions that hold of its symbols whenever it is called.

    Each of `insides` evaluates a value, a start and an extent, between which the value must lie: that of a block's
    variable, with its domain. A value that is only evaluated (that of a let, and of a block's variable before the guard
    of its block) has itself for start and the extent 1.
    """

    name: str
    params: tuple[str, ...]
    symbols: tuple[tuple[str, str], ...]
    buffers: Mapping[str, Buffer]
    statements: tuple[Statement, ...]
    insides: tuple[Statement, ...]
    noalias: bool
    layouts: Mapping[str, Record]
    attributes: Mapping[str, Any]
    assumed: tuple[Expr, ...]

    @property
    def stores(self) -> tuple[Statement, ...]:
        """The stores, each at its number."""
        return tuple(s for s in self.statements if s.kind == "store")

    def data(self, buffer: str) -> str:
        """The memory of a buffer."""
        return self.buffers[buffer].data

    def record(self, data: str) -> Record:
        """What is stated of a memory."""
        return self.layouts.get(data, Record())

    def owner(self, data: str) -> Buffer | None:
        """The parameter or allocation that a memory belongs to."""
        return self.buffers.get(data.removesuffix("_data"))

    def is_temporary(self, buffer: str) -> bool:
        """Whether the memory of a buffer is allocated in the function."""
        owner = self.owner(self.data(buffer))
        return owner is not None and not owner.is_parameter

    def written(self) -> set[str]:
        """The memories to which something is stored."""
        return {self.data(s.buffer) for s in self.stores}

    def may_overlap(self) -> bool:
        """Whether a write to a parameter may change another one. A single one shares its memory with its views alone;
        and of what is only read it does not matter whether it overlaps.
        """
        owned = {b.data for b in self.buffers.values() if b.is_parameter}
        return not self.noalias and len(owned) > 1 and bool(self.written() & owned)

    def touched(self) -> set[str]:
        """The buffers by which anything is stored or loaded."""
        bounds = [e for s in self.statements for loop in s.loops for e in (loop.start, loop.extent)]
        loads = loads_of(*bounds, *(e for s in self.statements for e in s.texts))
        return {load[2] for load in loads} | {s.buffer for s in self.stores}


@dataclass(frozen=True, slots=True)
class Map:
    """`lambda names: outputs where condition`. The names hide symbols of the same name."""

    names: tuple[str, ...]
    outputs: tuple[Expr, ...]
    where: Expr = TRUE


def place(axis: int) -> Expr:
    """A cell's index on an axis, in the value of a contract; no program has such a name."""
    return ("var", "int32", f"#{axis}")


def at_cell(e: Any, index: Sequence[Expr]) -> Any:
    """The value of a contract in the cell at an index, or a part of it."""
    places = {place(axis): part for axis, part in enumerate(index)}
    return places.get(e, e) if e in places or type(e) is not tuple else tuple(at_cell(part, index) for part in e)


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout transform of a record: the map, the box after it, and what the padding that it makes holds: a value over
    the places of the cell, or anything (`undef`); None without a contract.
    """

    map: Map
    shape: tuple[Expr, ...]
    contract: Expr | None


@dataclass(frozen=True, slots=True)
class Record:
    """What a program states of how the cells of a memory came to their places."""

    logical: tuple[Expr, ...] = ()
    steps: tuple[Layout, ...] = ()


Instances = tuple[int, Map]  # an old store, and at which of its instances
Cells = tuple[str, Map]  # the data of an old buffer, and where its cells are


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Two programs and what is claimed of them.

    `theta` gives for each new store that a line names the alternatives, none for one that computes no old store: the
    instance at `names` (the loops around the new store, by position; of a vector store its lane may follow) computes
    the old instance at `outputs`, where the condition holds. `cells` gives for the data of a new buffer that of the
    old one, whose cell `names` became the cell `outputs`.
    """

    old: Program
    new: Program
    theta: Mapping[int, tuple[Instances, ...]]
    cells: Mapping[str, Cells]
    where: Expr
    interface: tuple[str, ...]
    strictness: str
