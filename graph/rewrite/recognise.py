"""Functions that only move elements, recognised by their accesses as layout operators.

A store that copies an element is read as `target[y] = source[h(y)]`, or a constant where a guard fails. The image of
`h` gives the crop and the pad, the inverse of `h` the transform. Of several stores each continues from the one before;
one that fills an array first is a pad. The checker of rewrites compares the function of the operators with the given
one. The way back is `copies.chain_function`.

Source: Relax's issue `relax-layout-transformation`, "Layout Representation".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.graph import codes
from layoutproof.graph.model.graph import (
    Crop,
    LayoutTransform,
    Pad,
    Rewriting,
    Shape,
    Value,
    is_scalar,
    shape_of,
    signature_of,
)
from layoutproof.graph.model.layout_maps import box_of, inverse_of, is_bijective, is_identity
from layoutproof.graph.operators.copies import PRIMITIVE, chain_function
from layoutproof.graph.planning.array_layouts import filled_shape
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr, IfThenElseExpr, IntImm, Var, binary, const, logical_or
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import Block, BufferStore, For, Stmt
from layoutproof.ir.visit import children, loops_of_stores, replace_buffers, stores_in, substitute
from layoutproof.lowering.proof_cache.remembered import verdicts_of
from layoutproof.verify.program.questions import at_least, below
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status, Verdict


@dataclass(frozen=True, slots=True)
class Recognised:
    """The layout operators that a function is, from its operand on, and what was proved of that."""

    operators: tuple[Rewriting, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def status(self) -> Status:
        """The worst of the verdicts."""
        return worst(verdict.status for verdict in self.verdicts)


def operators_of(func: PrimFunc, operand: str = "x", result: str = "y") -> Recognised:
    """The layout operators that a function is, the first on `operand`, the last one making `result`; none where it
    copies all as it is.

    Raises LayoutproofError, saying why, where the function does more than move elements, or moves them in a way that is
    not found.
    """
    signature = signature_of(func)
    if len(signature.operands) != 1 or len(signature.results) != 1:
        raise _refused(func, "it has more than one operand or result")
    source, filled = signature.operands[0], dict[Buffer, int]()
    chain, copies, stores = _Chain(operand, result, source.dtype), list[_Copy](), _stores(func)
    last = source
    for number, store in enumerate(stores):
        if (
            is_scalar(store.value, store.buffer.dtype)
            and store.buffer not in (source, last)
            and not isinstance(store.value, Undef)
        ):
            filled[store.buffer] = number
            continue
        fill = filled.get(store.buffer)
        copy = _read(func, store, last, None if fill is None else stores[fill])
        _add(func, chain, copy)
        copies.append(replace(copy, made=len(chain.steps) - 1))
        last = store.buffer
    if (
        copies
        and copies[-1].fill is not None
        and any(isinstance(step, Pad) and isinstance(step.value, Undef) for step in chain.steps)
    ):
        raise _refused(func, "it fills an array, and leaves elements of another one open")
    if last != signature.results[0]:
        raise _refused(func, f"it does not write {signature.results[0].name} last, by copying what it takes")
    operators = chain.named()
    return Recognised(operators, _proved(func, copies, Value(operand, shape_of(source), source.dtype), operators))


def _add(func: PrimFunc, chain: _Chain, copy: _Copy) -> None:
    """The operators that a copy is, after those that are there."""
    shape, wanted = shape_of(copy.source), copy.written
    lows = [int(values.min()) for values in copy.origin.output_values(wanted)]
    from_zero = _shifted(copy.origin, lows)
    box = box_of(from_zero, wanted)
    inside = [(max(low, 0), min(low + size, extent)) for low, size, extent in zip(lows, box, shape, strict=True)]
    whole = filled_shape(from_zero, wanted)
    if any(end <= start for start, end in inside) or whole is None:
        raise _refused(func, "its result takes elements twice, or leaves some out in between")
    back = inverse_of(from_zero, whole)
    if back is None:
        raise _refused(func, "its indices cannot be turned around")
    kept = tuple(end - start for start, end in inside)
    if kept != shape:
        chain.add(Crop(chain.value(kept), chain.last, tuple(start for start, _ in inside), kept))
    if kept != box:
        widths = tuple(
            (max(-low, 0), max(low + size - extent, 0)) for low, size, extent in zip(lows, box, shape, strict=True)
        )
        chain.add(Pad(chain.value(box), chain.last, widths, copy.otherwise))
    if not is_identity(back, box):
        chain.add(LayoutTransform(chain.value(whole), chain.last, back))
    if whole != wanted:
        chain.add(Crop(chain.value(wanted), chain.last, (0,) * len(wanted), wanted))
    around = shape_of(copy.target)
    if around != wanted:
        assert copy.fill is not None  # without one all of the target is written
        ends = zip(copy.starts, wanted, around, strict=True)
        widths = tuple((start, extent - start - size) for start, size, extent in ends)
        chain.add(Pad(chain.value(around), chain.last, widths, copy.fill.value))


@dataclass(frozen=True, slots=True)
class _Store:
    """A store over loop variables `names` from 0 to `extents`; `number` is its place in the function."""

    number: int
    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    names: tuple[Var, ...]
    extents: Shape

    @property
    def writes(self) -> IndexMap:
        """Where it stores."""
        return IndexMap(self.names, self.indices)


@dataclass(frozen=True, slots=True)
class _Copy:
    """`target[starts + y] = source[origin(y)]` in a box of extents `written`, or `otherwise`; around it stands what
    `fill` stored.

    `instances` gives the variables of the loops around the store for each `y`; `made` is the number of the operator
    that makes the target.
    """

    source: Buffer
    target: Buffer
    origin: IndexMap
    instances: IndexMap
    otherwise: Expr
    starts: Shape
    written: Shape
    store: _Store
    fill: _Store | None
    made: int = -1


def _stores(func: PrimFunc) -> list[_Store]:
    """The stores of a function, in order. Raises LayoutproofError for loops that are not from 0 to a number."""
    found = list[_Store]()

    def collect(stmt: Stmt, names: tuple[Var, ...], extents: Shape, values: Mapping[Var, Expr]) -> None:
        if isinstance(stmt, BufferStore):
            indices = tuple(substitute(index, values) for index in stmt.indices)
            found.append(_Store(len(found), stmt.buffer, indices, substitute(stmt.value, values), names, extents))
        if isinstance(stmt, For):
            if not isinstance(stmt.extent, IntImm) or stmt.start != const(0, stmt.var.dtype):
                raise _refused(func, "its loops do not run from 0 to a number")
            name = Var(f"i{len(names)}")
            names, extents, values = (*names, name), (*extents, stmt.extent.value), {**values, stmt.var: name}
        if isinstance(stmt, Block):
            values = {**values, **{each.var: substitute(each.binding, values) for each in stmt.iter_vars}}
        for child in children(stmt):
            if isinstance(child, Stmt):
                collect(child, names, extents, values)

    collect(func.body, (), (), {})
    return found


def _read(func: PrimFunc, store: _Store, source: Buffer, fill: _Store | None) -> _Copy:
    """What a store copies from an array. Raises LayoutproofError where that is not all that it does."""
    value, otherwise = _element(store.value)
    target = store.buffer
    if value is None or value.buffer != source:
        raise _refused(func, f"what it stores is not an element of {source.name}")
    if target == source:
        raise _refused(func, f"it reads and writes {target.name}")
    if not is_scalar(otherwise, source.dtype):
        raise _refused(func, "what it stores where it copies nothing is not one number")
    reads = IndexMap(store.names, value.indices)
    lows = (
        [int(values.min()) for values in store.writes.output_values(store.extents)]
        if fill is not None
        else [0] * target.rank
    )
    writes = _shifted(store.writes, lows)
    instances = inverse_of(writes, store.extents) if is_bijective(writes, store.extents) else None
    written = box_of(writes, store.extents)
    whole = fill is None or _covers(fill)
    if instances is None or not whole or (fill is None and written != shape_of(target)):
        raise _refused(
            func, f"it does not write each element of {target.name} once, in an order that can be turned around"
        )
    return _Copy(source, target, reads.compose(instances), instances, otherwise, tuple(lows), written, store, fill)


def _covers(store: _Store) -> bool:
    return is_bijective(store.writes, store.extents) and box_of(store.writes, store.extents) == shape_of(store.buffer)


def _element(value: Expr) -> tuple[BufferLoad | None, Expr]:
    """The element that is copied, and what is stored where none is."""
    if isinstance(value, BufferLoad):
        return value, Undef(value.dtype)
    if isinstance(value, IfThenElseExpr) and isinstance(value.then, BufferLoad):
        return value.then, value.otherwise
    return None, value


def _shifted(index_map: IndexMap, lows: Sequence[int]) -> IndexMap:
    outputs = [
        output if low == 0 else binary(BinaryOp.SUB, output, const(low, output.dtype))
        for output, low in zip(index_map.outputs, lows, strict=True)
    ]
    return IndexMap(index_map.inputs, tuple(outputs))


class _Chain:
    """Operators one after the other."""

    def __init__(self, operand: str, result: str, dtype: DType) -> None:
        self.last = operand
        self.result = result
        self.dtype = dtype
        self.steps: list[Rewriting] = []

    def value(self, shape: Shape) -> Value:
        """What the next operator makes."""
        return Value(f"{self.result}_{len(self.steps)}", shape, self.dtype)

    def add(self, step: Rewriting) -> None:
        """One operator more."""
        self.steps.append(step)
        self.last = step.result.name

    def named(self) -> tuple[Rewriting, ...]:
        """The operators, the last one making the result."""
        if self.steps:
            last = self.steps[-1]
            self.steps[-1] = replace(last, result=replace(last.result, name=self.result))
        return tuple(self.steps)


def _proved(func: PrimFunc, copies: Sequence[_Copy], root: Value, chain: Sequence[Rewriting]) -> tuple[Verdict, ...]:
    """Whether the function of the operators is a rewrite of the function, its arrays under their names there."""
    made = chain_function(root, chain, name=func.name)
    ours = signature_of(made)
    given = signature_of(func)
    arrays = {given.operands[0]: ours.operands[0], given.results[0]: ours.results[0]}
    for number, buffer in enumerate(dict.fromkeys(store.buffer for store in stores_in(func.body))):
        arrays.setdefault(buffer, replace(buffer, name=f"K{number}", data=Var(f"K{number}_data", buffer.data.dtype)))
    # In a graph arrays never overlap, whatever the function asks of its callers.
    old = replace(made, body=replace_buffers(func.body, arrays))
    if copies[-1].fill is not None:
        return _proved_filled(old, made, copies[-1], copies[-1].fill)
    after = loops_of_stores(made.body)
    maps = [InstanceMap(number, None, None) for number in range(len(after))]
    # Of copies that made no operator of their own the last one counts.
    for number, copy in {max(copy.made, 0): copy for copy in copies if copy.fill is None}.items():
        inputs = tuple(loop.var for loop in after[number])
        maps[number] = InstanceMap(number, copy.store.number, IndexMap(inputs, copy.instances.map_indices(inputs)))
    return verdicts_of(Rewrite(old, made, Witness(tuple(maps))), None, frozenset(), True, PRIMITIVE, {})


def _proved_filled(old: PrimFunc, made: PrimFunc, copy: _Copy, fill: _Store) -> tuple[Verdict, ...]:
    """Whether the function, which fills its result first, is a rewrite of the operators' function."""
    last, loops = len(loops_of_stores(made.body)) - 1, loops_of_stores(old.body)
    maps = [InstanceMap(number, None, None) for number in range(len(loops))]
    for store in (fill, copy.store):
        variables = tuple(loop.var for loop in loops[store.number])
        cell = store.writes.map_indices(variables)
        around = logical_or(
            *(
                logical_or(below(index, start), at_least(index, start + size))
                for index, start, size in zip(cell, copy.starts, copy.written, strict=True)
            )
        )
        maps[store.number] = InstanceMap(
            store.number, last, IndexMap(variables, cell), around if store is fill else None
        )
    return verdicts_of(Rewrite(made, old, Witness(tuple(maps))), None, frozenset(), True, PRIMITIVE, {})


def _refused(func: PrimFunc, why: str) -> LayoutproofError:
    return error(codes.NOT_A_COPY, f"{func.name} is no layout rewrite: {why}", func.span)
