"""Which numbers in the padding of operands can make a number in that of a result: one run of the operator on all of them tells.

Padding is computed like everything else, from cells that hold numbers of padding and from elements, which may hold anything, those numbers
too. So where an operator, run on nothing but these, does not make what is wanted, no proof will be found. That is asked of operators with
one store that does not look at places; for others every assignment of numbers is possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import nan, prod

import numpy as np
from numpy.typing import NDArray

from layoutproof.graph.model import Array
from layoutproof.graph.planning.layouts import PadNumber
from layoutproof.graph.signature import Signature, signature_of
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.expr import TRUE, Expr, Var, const
from layoutproof.ir.interp.fault import Fault
from layoutproof.ir.interp.run import run, same_values
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, ForKind, IfThenElse, Let
from layoutproof.ir.visit import children, free_variables, map_children, stores_in, walk

Mask = NDArray[np.bool_]
Numbers = tuple[PadNumber | None, ...]
"""For each operand what its padding holds; None where it has none."""

MOST_ROWS = 4096
"""The most assignments that are run."""
_ZEROS = {(True, False): 0.0, (False, False): 0, (False, True): False}


def possible(func: PrimFunc, result: str, wanted: PadNumber, choices: Sequence[Sequence[PadNumber | None]]) -> Iterator[Numbers]:
    """The assignments of numbers to the operands' padding from which a result, by name, may get a number, likely ones first."""
    signature = signature_of(func)
    value = _stored(func, signature, result)
    if value is None or prod(map(len, choices)) > MOST_ROWS:
        yield from _likely_first(choices)
        return
    every = list(_likely_first(choices))
    fits = np.ones(len(every), np.bool_)
    for probe in (2, nan):
        # An element is any number; two of them rule most out.
        fits &= _made(signature, result, value, wanted, [[probe if each is None else each for each in row] for row in every])
    yield from (row for row, fit in zip(every, fits, strict=True) if fit)


def _likely_first(choices: Sequence[Sequence[PadNumber | None]]) -> Iterator[Numbers]:
    """Every assignment: those of one number first."""
    alike = list(_alike(choices))
    yield from alike
    known = set(map(repr, alike))  # zeros of either sign are two numbers
    yield from (row for row in product(*choices) if repr(row) not in known)


def _alike(choices: Sequence[Sequence[PadNumber | None]]) -> Iterator[Numbers]:
    for number in dict.fromkeys(repr(each) for each in max(choices, key=len, default=())):
        found = [next((each for each in some if each is None or repr(each) == number), some[0]) for some in choices]
        if all(each is None or repr(each) == number for each in found):
            yield tuple(found)


def _stored(func: PrimFunc, signature: Signature, result: str) -> Expr | None:
    """What the one store of a function makes of elements of operands alone; None where it is not as simple as that."""
    stores = list(stores_in(func.body))
    if len(stores) != 1 or stores[0].buffer.name != result or stores[0].buffer not in signature.results:
        return None
    for node in walk(func.body):
        if isinstance(node, IfThenElse | Let) or (isinstance(node, Block) and (node.init is not None or node.where != TRUE)):
            return None
    value = stores[0].value
    loads = list(_outermost(value))
    inside = _without_loads(value)
    return value if all(load.buffer in signature.operands for load in loads) and not free_variables(inside) else None


def _outermost(node: Expr) -> Iterator[BufferLoad]:
    if isinstance(node, BufferLoad):
        yield node
        return
    for child in children(node):
        if isinstance(child, Expr):
            yield from _outermost(child)


def _without_loads(node: Expr) -> Expr:
    """The expression with a number for each load."""
    if isinstance(node, BufferLoad):
        return const(_ZEROS[node.dtype.is_float, node.dtype.is_bool], node.dtype)
    return map_children(node, lambda child: _without_loads(child) if isinstance(child, Expr) else child)


def _made(signature: Signature, result: str, value: Expr, wanted: PadNumber, rows: Sequence[Sequence[PadNumber]]) -> Mask:
    """For each row of numbers, one for each operand, whether the stored value comes out as wanted."""
    row = Var("row")
    size = const(len(rows))
    flat = {buffer: replace(buffer, shape=(size,)) for buffer in (*signature.operands, *signature.results)}
    target = next(buffer for buffer in signature.results if buffer.name == result)

    def at_row(node: Expr) -> Expr:
        if isinstance(node, BufferLoad):
            return BufferLoad(flat[node.buffer], (row,))
        return map_children(node, lambda child: at_row(child) if isinstance(child, Expr) else child)

    used = tuple(dict.fromkeys([*(load.buffer for load in _outermost(value)), target]))
    handles = tuple(Var(f"{buffer.name}_handle", buffer.data.dtype) for buffer in used)
    store = BufferStore(flat[target], (row,), at_row(value))
    func = PrimFunc(
        "padding", handles, tuple(zip(handles, (flat[b] for b in used), strict=True)), For(row, const(0), size, ForKind.SERIAL, store)
    )
    given = {b.name: _column(b, [r[k] for r in rows]) for k, b in enumerate(signature.operands) if b in used}
    try:
        made = run(func, given)[result]
    except Fault:
        return np.ones(len(rows), np.bool_)
    return same_values(made, np.full(made.shape, wanted, made.dtype))


def _column(buffer: Buffer, numbers: Sequence[PadNumber]) -> Array:
    """The numbers of one operand; integers have no NaN."""
    held = [number if buffer.dtype.is_float or number == number else 3 for number in numbers]
    return np.array(held).astype(numpy_dtype(buffer.dtype))
