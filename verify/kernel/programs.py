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

`-x` is read as `x * -1` and `~x` as `x ^ -1` (of unsigned integers, all ones), as their meaning is defined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Expr = tuple[Any, ...]
TRUE: Expr = ("const", "bool", True)

_TYPE = re.compile(r"(bool|u?int(?:8|16|32|64)?|float(?:16|32|64)?|bfloat16)(?:x([1-9][0-9]{0,3}))?")


def parse_dtype(text: str) -> str | None:
    """A data type in its one spelling (`int` is `int32`, `float32x1` is `float32`); None for anything else."""
    found = _TYPE.fullmatch(text)
    if found is None:
        return None
    kind = found[1] + ("32" if found[1] in ("int", "uint", "float") else "")
    return with_lanes(kind, int(found[2] or 1))


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


def walk(e: Expr) -> Iterator[Expr]:
    """The expression and all that it is made of."""
    stack = [e]
    while stack:
        found = stack.pop()
        yield found
        stack += parts(found)


def parts(e: Expr) -> list[Expr]:
    """The operands of an expression, the indices of a load among them."""
    if e[0] == "load":
        return list(e[3])
    return [x for x in e[2:] if isinstance(x, tuple)]


def disjuncts(e: Expr) -> list[Expr]:
    """The conditions of which an `or` says that one holds."""
    return [*disjuncts(e[2]), *disjuncts(e[3])] if e[0] == "or" else [e]


def has(e: Expr, operator: str) -> bool:
    """Whether some part of the expression has that operator."""
    return any(part[0] == operator for part in walk(e))


@dataclass(frozen=True, slots=True)
class Loop:
    """`for var in start .. start + extent - 1`. No two loops of a program have a variable of one name."""

    var: str
    dtype: str
    start: Expr
    extent: Expr
    kind: str  # "serial", "parallel", "vectorized" or "unroll"


@dataclass(frozen=True, slots=True)
class Statement:
    """One store (`buffer[indices] = value`) or assumption (`condition`), run where all guards hold.

    `guards` are evaluated outermost first, each only where those before it hold. `time` is the position among its
    siblings of each loop around the statement and, last, of the statement: with the loops' values in between it is
    when an instance runs, in lexicographic order. `number` counts the stores in the order of the text, the init of a
    block before its body; it is -1 for an assumption. What is not of its kind is empty, or true.
    """

    kind: str  # "store" or "assume"
    loops: tuple[Loop, ...]
    guards: tuple[Expr, ...]
    time: tuple[int, ...]
    buffer: str
    indices: tuple[Expr, ...]
    value: Expr
    condition: Expr
    line: int
    number: int


@dataclass(frozen=True, slots=True)
class Inside:
    """A value that the program evaluates there, and that must lie in `start .. start + extent - 1`.

    It is the value of a block's variable, with its domain. A value that is only evaluated (that of a let, and of a
    block's variable before the guard of its block) has itself for `start` and the extent 1: nothing is asked of where
    it lies, but its arithmetic must have no fault.
    """

    loops: tuple[Loop, ...]
    guards: tuple[Expr, ...]
    value: Expr
    start: Expr
    extent: Expr
    line: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """Elements of `data`, which several buffers (views) may share; row-major where `strides` is empty.

    `is_parameter` is true of buffers in the list of parameters, false of views of them. `depth` and `loops` are those
    around the allocation of `data`: in each iteration of them its memory is new and undefined.
    `separators` are the axes before the last, each the last one of its group of axes.
    """

    name: str
    data: str
    dtype: str
    shape: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    offset: Expr
    scope: str
    is_parameter: bool
    depth: int
    loops: tuple[Loop, ...]
    separators: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """One function. `assumed` repeats the assumptions that hold of its symbols whenever it is called."""

    name: str
    params: tuple[str, ...]
    symbols: tuple[tuple[str, str], ...]
    buffers: Mapping[str, Buffer]
    statements: tuple[Statement, ...]
    insides: tuple[Inside, ...]
    noalias: bool
    layouts: Mapping[str, Any]
    attributes: Mapping[str, Any]
    assumed: tuple[Expr, ...]

    @property
    def stores(self) -> tuple[Statement, ...]:
        """The stores, each at its number."""
        return tuple(s for s in self.statements if s.kind == "store")

    def touched(self) -> set[str]:
        """The buffers by which anything is stored or loaded."""
        bounds = [e for s in self.statements for loop in s.loops for e in (loop.start, loop.extent)]
        texts = [e for s in self.statements for e in (*s.guards, *s.indices, s.value, s.condition)]
        loads = {e[2] for text in (*bounds, *texts) for e in walk(text) if e[0] == "load"}
        return loads | {s.buffer for s in self.stores}


Instances = tuple[int, tuple[str, ...], tuple[Expr, ...], Expr | None]
Cells = tuple[str, tuple[str, ...], tuple[Expr, ...]]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Two programs and what is claimed of them.

    `theta` gives for each new store that a line names the alternatives `(old store, names, expressions, condition)`,
    none for one that computes no old store: the instance at `names` (the loops around the new store, by position; of a
    vector store its lane may follow) computes the old instance at `expressions`, where the condition holds. `cells`
    gives for the data of a new buffer that of the old one, whose cell `names` became the cell `expressions`. The names
    hide symbols of the same name.
    """

    old: Program
    new: Program
    theta: Mapping[int, tuple[Instances, ...]]
    cells: Mapping[str, Cells]
    where: Expr | None
    interface: tuple[str, ...]
    strictness: str
