"""The graph: values that flow along edges, and the steps that make them, in an order in which they can run.

A graph is a directed acyclic graph of calls to `PrimFunc`s, inputs, constants, outputs, and the three layout operators
`layout_transform`, `pad` and `crop`. All extents are numbers. Source: the seed `relax-layout-transformation`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.diagnostic import Span
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.primfunc import PrimFunc

Array = NDArray[Any]
Shape = tuple[int, ...]

FROZEN = "layoutproof.frozen"
"""The attribute of a function whose operands and results keep their layouts, whatever is planned."""


@dataclass(frozen=True, slots=True)
class Value:
    """What flows along edges: a name of its own, a shape in elements, a data type."""

    name: str
    shape: Shape
    dtype: DType

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A value known at compile time. `data` has the value's shape and type, and must not be changed. Compared by its bits.

    Where only the digest of the elements is known, that is `sha256`, and `data` holds zeros: nothing can be run with it.
    """

    value: Value
    data: Array
    span: Span | None = None
    sha256: str | None = None

    @property
    def digest(self) -> str:
        """The SHA-256 of the elements in row-major order, in hexadecimal."""
        if self.sha256 is not None:
            return self.sha256
        return hashlib.sha256(np.ascontiguousarray(self.data).tobytes()).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return self.value == other.value and (self.data is other.data or self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """`function` on `operands` (names, for the parameters that it only reads, in order) makes `results` (for those that it writes)."""

    results: tuple[Value, ...]
    function: PrimFunc
    operands: tuple[str, ...]
    span: Span | None = field(default=None, compare=False)


class _Moving:
    """What moves the elements of one value."""

    __slots__ = ()
    result: Value
    operand: str

    @property
    def results(self) -> tuple[Value, ...]:
        """The one result."""
        return (self.result,)

    @property
    def operands(self) -> tuple[str, ...]:
        """The one operand."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class LayoutTransform(_Moving):
    """The element at `x` of the operand becomes the one at `index_map(x)`: a bijection between the two boxes."""

    result: Value
    operand: str
    index_map: IndexMap
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Pad(_Moving):
    """The operand with `widths[axis] = (before, after)` more cells on each axis, which hold `value`: a constant, or undef."""

    result: Value
    operand: str
    widths: tuple[tuple[int, int], ...]
    value: Expr
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Crop(_Moving):
    """The box of `sizes` cells from `starts`. `cropped_value`, where given, is a claim of what the cells held that are cut off."""

    result: Value
    operand: str
    starts: Shape
    sizes: Shape
    cropped_value: Expr | None = None
    span: Span | None = field(default=None, compare=False)


Rewriting = LayoutTransform | Pad | Crop
Step = Call | LayoutTransform | Pad | Crop


@dataclass(frozen=True)
class Graph:
    """Inputs and constants, steps in an order in which they can run, and the names of the outputs.

    `outputs` may name a value more than once, and inputs and constants too. A graph may be malformed until `require_graph` says otherwise.
    """

    name: str
    inputs: tuple[Value, ...]
    constants: tuple[Constant, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    span: Span | None = field(default=None, compare=False)

    def values(self) -> Iterator[Value]:
        """Every value: inputs, constants, results in the order of the steps."""
        yield from self.inputs
        yield from (constant.value for constant in self.constants)
        for step in self.steps:
            yield from step.results

    def by_name(self) -> Mapping[str, Value]:
        """The values by their names."""
        return self._by_name

    @cached_property
    def _by_name(self) -> Mapping[str, Value]:
        return {value.name: value for value in self.values()}

    def producers(self) -> Mapping[str, Step]:
        """The step that makes each value; inputs and constants have none."""
        return self._producers

    @cached_property
    def _producers(self) -> Mapping[str, Step]:
        return {value.name: step for step in self.steps for value in step.results}

    def consumers(self) -> Mapping[str, tuple[Step, ...]]:
        """The steps that use each value, in order, each once."""
        found: dict[str, list[Step]] = {value.name: [] for value in self.values()}
        for step in self.steps:
            for name in dict.fromkeys(step.operands):
                found[name].append(step)
        return {name: tuple(steps) for name, steps in found.items()}

    def functions(self) -> tuple[PrimFunc, ...]:
        """The distinct functions that are called, in the order of their first calls."""
        return tuple(dict.fromkeys(step.function for step in self.steps if isinstance(step, Call)))

    @property
    def rewrites(self) -> tuple[Rewriting, ...]:
        """The layout operators."""
        return tuple(step for step in self.steps if not isinstance(step, Call))
