"""Which cell of a memory an access means, whatever view it goes through: coordinates in one canonical box per memory.
Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import prod

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import HANDLE, DType
from layoutproof.ir.expr import Expr, IntImm, Var, const, is_zero, widen
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, Let
from layoutproof.ir.visit import free_variables, nodes_of
from layoutproof.verify.algebra.radix import factors_of
from layoutproof.verify.faults.bounds import counted_bytes, element_number, is_row_major, scalar_of, structured
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.reads import record_shape
from layoutproof.verify.program.evidence import Gathered
from layoutproof.verify.program.instances import Access, Dim, Program
from layoutproof.verify.program.questions import same
from layoutproof.verify.program.statement import NotModelled


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory: its first buffer, the dims around its allocation, and the shape that names its cells."""

    root: Buffer
    leading: tuple[Dim, ...]
    shape: tuple[Expr, ...]

    @property
    def box(self) -> tuple[Expr, ...]:
        """The extents of the coordinates."""
        lanes = self.root.dtype.lanes
        return (*(d.extent for d in self.leading), *self.shape, *((const(lanes),) if lanes > 1 else ()))

    @property
    def dtype(self) -> DType:
        """The type of a cell."""
        return self.root.dtype.element


class Memories:
    """The memories of a program as they come into being, and the coordinates of accesses to them."""

    def __init__(self, program: Program, structures: Mapping[str, tuple[Expr, ...]], gathered: Gathered) -> None:
        self._program, self._gathered = program, gathered
        self._structures = structures
        self._records = layout_records(program.function)
        self._seen = _seen_otherwise(program.function)
        self.found: dict[Var, Memory] = {}

    @cached_property
    def _facts(self) -> Facts:
        return Facts(self._program, gathered=self._gathered)

    def add(self, root: Buffer, leading: tuple[Dim, ...], node: Node) -> None:
        """A memory comes into being. Raises NotModelled where one of the same name did already."""
        if root.data in self.found:
            raise NotModelled(f"the memory {root.data.name} comes into being in two places", node)
        root = self._as_seen(root)
        if root.strides and not is_row_major(root):
            raise NotModelled(f"{root.name} has strides of its own, so two of its elements may be one cell", node)
        self.found[root.data] = Memory(root, leading, self._shape(root))

    def _as_seen(self, root: Buffer) -> Buffer:
        """The memory as a buffer of the type that all accesses see there, where that is another one of the same size:
        what it holds is then bits to both. What a record says of padding is said in the declared type, so a memory with
        a record stays what it is; and so does a parameter that is seen as floats or truth values, since callers see the
        bits of a NaN, and bytes that are neither 0 nor 1.
        """
        element = self._seen.get(root.data.name)
        if element is None or element.bytes != root.dtype.element.bytes or root.data.name in self._records:
            return root
        if (element.is_float or element.is_bool) and self._is_observed(root):
            return root
        return replace(root, dtype=element.with_lanes(root.dtype.lanes))

    def _is_observed(self, root: Buffer) -> bool:
        """Whether callers see the memory, in its declared type."""
        return root.data not in self._program.temporaries

    def _shape(self, root: Buffer) -> tuple[Expr, ...]:
        given = self._structures.get(root.data.name)
        if given is not None:
            return tuple(given)
        record = self._records.get(root.data.name)
        if record is not None and len(root.shape) < len(record.shape):
            box = record_shape(record, self._program.symbols)
            if counted_bytes(root, box) == root.dtype.bytes:
                return box
        if len(root.shape) == 1 and not isinstance(root.shape[0], IntImm):
            factors = factors_of(root.shape[0])
            if len([f for f in factors if free_variables(f)]) > 1:
                return tuple(factors)
        return root.shape

    def of(self, data: Var, node: Node) -> Memory:
        """The memory behind a data variable. Raises NotModelled where there is none."""
        memory = self.found.get(data)
        if memory is None:
            raise NotModelled(f"the memory {data.name} is neither a parameter nor allocated around here", node)
        return memory

    def check_view(self, data: Var, buffer: Buffer, node: Node) -> None:
        """Raises NotModelled unless a buffer sees the memory's cells as they are, or as vectors of them."""
        root = self.of(data, node).root
        if buffer.dtype.element != root.dtype.element:
            raise NotModelled(f"{buffer.name} sees {root.dtype} memory as {buffer.dtype}", node)

    def same_shape(self, data: Var, buffer: Buffer, node: Node) -> bool:
        """Whether a buffer's indices are coordinates as they stand."""
        memory = self.of(data, node)
        if buffer.shape != memory.shape or buffer.dtype != memory.root.dtype:
            return False
        same = buffer.strides == memory.root.strides or is_row_major(buffer)
        return same and buffer.elem_offset == memory.root.elem_offset

    def coordinates(self, access: Access, sub_lane: Expr | None) -> tuple[Expr, ...]:
        """The cell of an access whose indices do not depend on data; `sub_lane` is the lane in an element."""
        memory = self.of(access.data, access.node)
        leading = tuple(d.var for d in memory.leading)
        if access.buffer.dtype != memory.root.dtype:
            return (*leading, *self._scalar(access, memory, sub_lane))
        cell = (
            access.indices if self.same_shape(access.data, access.buffer, access.node) else self._digits(access, memory)
        )
        return (*leading, *cell, *((sub_lane,) if sub_lane is not None else ()))

    def cell_condition(self, access: Access, cell: tuple[Expr, ...]) -> Expr:
        """That an access whose indices may depend on data means this cell (of the memory's shape)."""
        memory = self.of(access.data, access.node)
        plain = is_zero(memory.root.elem_offset) and is_row_major(memory.root)
        if not plain or access.buffer.dtype != memory.root.dtype:
            raise NotModelled(f"the cell of {access.text} depends on data", access.node)
        whole = replace(memory.root, shape=memory.shape, strides=(), axis_separators=())
        return same(element_number(access.buffer, access.indices), element_number(whole, cell))

    def _digits(self, access: Access, memory: Memory) -> tuple[Expr, ...]:
        buffer = access.buffer
        plain = not buffer.strides or is_row_major(buffer)
        if plain and is_zero(buffer.elem_offset) and is_zero(memory.root.elem_offset):
            found = structured(self._facts, access, memory.shape)
            if found is not None:
                return found
        return self._counted(access, memory, element_number(buffer, access.indices))

    def _scalar(self, access: Access, memory: Memory, sub_lane: Expr | None) -> tuple[Expr, ...]:
        """The cell and lane of an access in vectors of another length, counted in scalars."""
        number, lanes, root_lanes = (
            element_number(access.buffer, access.indices),
            access.buffer.dtype.lanes,
            memory.root.dtype.lanes,
        )
        if (
            root_lanes == 1
            and sub_lane is not None
            and access.indices
            and not all(isinstance(e, IntImm) for e in memory.shape[1:])
        ):
            plain = not access.buffer.strides and is_zero(memory.root.elem_offset)
            found = structured(self._facts, scalar_of(access, sub_lane), memory.shape) if plain else None
            if found is not None:
                return found
        if lanes > 1:
            assert sub_lane is not None
            number = number * const(lanes, number.dtype) + widen(sub_lane, number.dtype)
        if root_lanes == 1:
            return self._counted(access, memory, number)
        size = const(root_lanes, number.dtype)
        return (*self._counted(access, memory, number // size), number % size)

    def _counted(self, access: Access, memory: Memory, number: Expr) -> tuple[Expr, ...]:
        """The cell of the element with a number, counted from the memory's start."""
        if is_zero(memory.root.elem_offset):
            if len(memory.shape) == 1:
                return (number,)
            sizes = [extent.value for extent in memory.shape[1:] if isinstance(extent, IntImm)]
            if len(sizes) == len(memory.shape) - 1:
                return _unflattened(number, sizes)
        raise NotModelled(f"the cell of {access.text} is not known among those of {memory.root.name}", access.node)


def _seen_otherwise(function: PrimFunc) -> Mapping[str, DType]:
    """For each memory that no pointer leads to, the one scalar type that all accesses see there."""
    seen: dict[str, set[DType]] = {}
    loaded = (load.buffer for load in nodes_of(function.body, BufferLoad))
    stored = (store.buffer for store in nodes_of(function.body, BufferStore))
    for buffer in chain(loaded, stored):
        seen.setdefault(buffer.data.name, set()).add(buffer.dtype.element)
    pointers = (let for let in nodes_of(function.body, Let) if let.var.dtype == HANDLE)
    cast = {v.name for let in pointers for v in free_variables(let.value)}
    return {name: next(iter(types)) for name, types in seen.items() if len(types) == 1 and name not in cast}


def _unflattened(number: Expr, sizes: Sequence[int]) -> tuple[Expr, ...]:
    """The digits of an element's number for these sizes of all axes but the first; right inside the box."""
    digits: list[Expr] = []
    for position in range(len(sizes) + 1):
        weight = prod(sizes[position:])
        quotient = number // const(weight, number.dtype) if weight > 1 else number
        digits.append(quotient % const(sizes[position - 1], number.dtype) if position > 0 else quotient)
    return tuple(digits)
