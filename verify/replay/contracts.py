"""What padding holds, computed for a run: the contract's value, evaluated by the reference interpreter cell by cell.

A contract is a value, or a function of the physical index that may load elements of the buffer itself (a border that is repeated).
It is evaluated by a small program, so that it means here what it means in a function's text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import HANDLE, INT8, DType
from layoutproof.ir.expr import CompareOp, Expr, Var, compare, const
from layoutproof.ir.interp import run
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.layout_record import Contract
from layoutproof.ir.node import Node
from layoutproof.ir.numpy_types import numpy_dtype
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, For, ForKind, IfThenElse, Stmt
from layoutproof.ir.subst import substitute
from layoutproof.ir.visit import free_variables, rewrite_bottom_up, walk

Mask = NDArray[np.bool_]


@dataclass(slots=True)
class Contracts:
    """Evaluates the contracts of one function's layout records; `symbols` are the values of its symbols. Programs are kept."""

    symbols: Mapping[str, int]
    _programs: dict[tuple[str, Contract, DType, tuple[int, ...]], _Filler] = field(default_factory=dict)

    def fill(self, name: str, contract: Contract, dtype: DType, box: Array, padding: Mask) -> None:
        """Write the contract's value to the cells of `box` (elements in their shape, lanes last) where `padding` is true.

        `name` is the buffer's, as the contract's own loads call it. Raises LayoutproofError for what is no contract of it, Fault where
        the value has none.
        """
        if not padding.any():
            return
        program = self._program(name, contract, dtype, padding.shape)
        if program.is_constant:
            box[padding] = program.value(name, dtype)
            return
        values = run(program.func, {name: box, "mask'": padding.astype(np.int8), "value'": np.zeros_like(box)})["value'"]
        chosen = padding if dtype.lanes == 1 else np.broadcast_to(padding[..., np.newaxis], box.shape)
        box[chosen] = values[chosen]

    def constant(self, name: str, contract: Contract, dtype: DType, shape: tuple[int, ...]) -> Array | None:
        """The contract's value, a row of lanes, where it is the same in every cell of a box of that shape. Raises as `fill` does."""
        program = self._program(name, contract, dtype, shape)
        return program.value(name, dtype) if program.is_constant else None

    def _program(self, name: str, contract: Contract, dtype: DType, shape: tuple[int, ...]) -> _Filler:
        key = (name, contract, dtype, shape)
        if key not in self._programs:
            self._programs[key] = _program(name, contract, dtype, shape, self.symbols)
        return self._programs[key]


@dataclass(frozen=True, slots=True)
class _Filler:
    """`for p in grid(shape): if mask[p] != 0: value[p] = contract(p)`; of one cell only where the contract is the same in all."""

    func: PrimFunc
    is_constant: bool

    def value(self, name: str, dtype: DType) -> Array:
        """What one cell gets, a row of lanes."""
        box = (1,) * self.func.buffers[0].rank
        blank = np.zeros(box if dtype.lanes == 1 else (*box, dtype.lanes), dtype=numpy_dtype(dtype.element))
        mask = np.ones(box, dtype=np.int8)
        return run(self.func, {name: blank, "mask'": mask, "value'": blank})["value'"].reshape(-1)


def _program(name: str, contract: Contract, dtype: DType, shape: tuple[int, ...], symbols: Mapping[str, int]) -> _Filler:
    box = make_buffer(name, shape, dtype)
    value = _on(contract.value, box)
    numbers = {v: const(symbols[v.name], v.dtype) for v in free_variables(value) if v not in contract.inputs and v.name in symbols}
    value = substitute(value, numbers)
    unknown = [v.name for v in free_variables(value) if v not in contract.inputs]
    cell = contract.inputs if len(contract.inputs) == len(shape) else tuple(Var(f"p{axis}") for axis in range(len(shape)))
    if unknown or value.dtype != dtype or not set(free_variables(value)) <= set(cell):
        raise error(codes.LAYOUT_RECORD, f"`{contract}` is no pad value of {name}, whose elements are {dtype} on {len(shape)} axes")
    is_constant = not any(isinstance(node, Var | BufferLoad) for node in walk(value))
    if is_constant:
        shape = (1,) * len(shape)
        box = make_buffer(name, shape, dtype)
    mask, result = make_buffer("mask'", shape, INT8), make_buffer("value'", shape, dtype)
    body: Stmt = IfThenElse(compare(CompareOp.NE, BufferLoad(mask, cell), const(0, INT8)), BufferStore(result, cell, value))
    for v, extent in zip(reversed(cell), reversed(shape), strict=True):
        body = For(v, const(0, v.dtype), const(extent, v.dtype), ForKind.SERIAL, body)
    buffers = (box, mask, result)
    handles = tuple(Var(f"{buffer.name}_handle", HANDLE) for buffer in buffers)
    return _Filler(PrimFunc("contract", handles, tuple(zip(handles, buffers, strict=True)), body), is_constant)


def _on(value: Expr, box: Buffer) -> Expr:
    """A contract's value with its loads from `box`. Raises LayoutproofError where it loads from a buffer of another name."""

    def visit(node: Node) -> Node:
        if not isinstance(node, Buffer):
            return node
        if node.name != box.name:
            raise error(codes.LAYOUT_RECORD, f"a contract of the padding of {box.name} loads {node.name}")
        return box

    return rewrite_bottom_up(value, visit)


def other_values(dtype: DType, held: Array) -> Array:
    """An array of ordinary values, each another one than `held` has there."""
    element = numpy_dtype(dtype.element)
    if dtype.is_bool:
        return np.logical_not(held)
    first, second = np.array(77, dtype=element), np.array(78, dtype=element)
    return np.where(held == first, second, first).astype(element)
