"""Functions that only move elements, recognised from what they access as layout operators.

A function of one operand and one result with one store that copies an element is read as `result[y] = operand[h(y)]`, or a constant where
a guard fails. The box that `h` reaches says what is cropped and what is padded, the inverse of `h` is the transform. Nothing of this is
believed: the function of the operators is compared with the function that was given, by the checker of rewrites. The way back is
`copies.chain_function`. Source: the seed `relax-layout-transformation`, "Layout Representation".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from layoutproof.graph import codes
from layoutproof.graph.compact import filled_shape
from layoutproof.graph.copies import PRIMITIVE, chain_function
from layoutproof.graph.maps import box_of, inverse_of, is_bijective, is_identity
from layoutproof.graph.model import Crop, LayoutTransform, Pad, Rewriting, Shape, Value
from layoutproof.graph.scalars import is_scalar
from layoutproof.graph.signature import shape_of, signature_of
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import BinaryOp, Expr, IfThenElseExpr, IntImm, Var, binary, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import Block
from layoutproof.ir.subst import substitute
from layoutproof.ir.visit import loops_of_stores, replace_buffers, stores_in, walk
from layoutproof.lowering.remembered import verdicts_of
from layoutproof.verify.verdict import Status, Verdict, worst


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
    """The layout operators that a function is, the first on `operand`, the last one making `result`; none where it copies all as it is.

    Raises LayoutproofError, saying why, where the function does more than move elements, or moves them in a way that is not found.
    """
    copy = _read(func)
    chain = _Chain(operand, result, copy.source.dtype)
    shape, wanted = shape_of(copy.source), shape_of(copy.target)
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
        widths = tuple((max(-low, 0), max(low + size - extent, 0)) for low, size, extent in zip(lows, box, shape, strict=True))
        chain.add(Pad(chain.value(box), chain.last, widths, copy.otherwise))
    if not is_identity(back, box):
        chain.add(LayoutTransform(chain.value(whole), chain.last, back))
    if whole != wanted:
        chain.add(Crop(chain.value(wanted), chain.last, (0,) * len(wanted), wanted))
    operators = chain.named()
    return Recognised(operators, _proved(func, copy, Value(operand, shape, copy.source.dtype), operators))


@dataclass(frozen=True, slots=True)
class _Copy:
    """`target[y] = source[origin(y)]`, or `otherwise`; `instances` gives the variables of the loops around the store for each `y`."""

    source: Buffer
    target: Buffer
    origin: IndexMap
    instances: IndexMap
    otherwise: Expr


def _read(func: PrimFunc) -> _Copy:
    """What the function copies from where. Raises LayoutproofError where that is not all that it does."""
    signature = signature_of(func)
    stores = list(stores_in(func.body))
    if len(signature.operands) != 1 or len(signature.results) != 1 or len(stores) != 1:
        raise _refused(func, "it has more than one operand, result or store")
    (store,), (loops,) = stores, loops_of_stores(func.body)
    value, otherwise = _element(store.value)
    source, target = signature.operands[0], signature.results[0]
    if value is None or value.buffer != source:
        raise _refused(func, f"what it stores is not an element of {source.name}")
    if not is_scalar(otherwise, source.dtype):
        raise _refused(func, "what it stores where it copies nothing is not one number")
    extents = [loop.extent.value for loop in loops if isinstance(loop.extent, IntImm)]
    if len(extents) != len(loops) or any(loop.start != const(0, loop.var.dtype) for loop in loops):
        raise _refused(func, "its loops do not run from 0 to a number")
    names = tuple(Var(f"i{k}") for k in range(len(loops)))
    values = _bindings(func, dict(zip((loop.var for loop in loops), names, strict=True)))
    writes = IndexMap(names, tuple(substitute(index, values) for index in store.indices))
    reads = IndexMap(names, tuple(substitute(index, values) for index in value.indices))
    box = tuple(extents)
    instances = inverse_of(writes, box) if is_bijective(writes, box) else None
    if instances is None or box_of(writes, box) != shape_of(target):
        raise _refused(func, f"it does not write each element of {target.name} once, in an order that can be turned around")
    return _Copy(source, target, reads.compose(instances), instances, otherwise)


def _element(value: Expr) -> tuple[BufferLoad | None, Expr]:
    """The element that is copied, and what is stored where none is."""
    if isinstance(value, BufferLoad):
        return value, Undef(value.dtype)
    if isinstance(value, IfThenElseExpr) and isinstance(value.then, BufferLoad):
        return value.then, value.otherwise
    return None, value


def _bindings(func: PrimFunc, loops: dict[Var, Expr]) -> dict[Var, Expr]:
    """The values of all variables over those of the loops."""
    found = dict(loops)
    for node in walk(func.body):
        if isinstance(node, Block):
            found |= {each.var: substitute(each.binding, found) for each in node.iter_vars}
    return found


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


def _proved(func: PrimFunc, copy: _Copy, root: Value, chain: Sequence[Rewriting]) -> tuple[Verdict, ...]:
    """Whether the function of the operators is a rewrite of the function, its arrays under their names there."""
    made = chain_function(root, chain, name=func.name)
    ours = signature_of(made)
    arrays = {copy.source: ours.operands[0], copy.target: ours.results[0]}
    # In a graph arrays never overlap, whatever the function asks of its callers.
    old = replace(made, body=replace_buffers(func.body, arrays))
    after = loops_of_stores(made.body)
    maps = [InstanceMap(number, None, None) for number in range(len(after) - 1)]
    inputs = tuple(loop.var for loop in after[-1])
    maps.append(InstanceMap(len(after) - 1, 0, IndexMap(inputs, copy.instances.map_indices(inputs))))
    return verdicts_of(Rewrite(old, made, Witness(tuple(maps))), None, frozenset(), True, PRIMITIVE, {})


def _refused(func: PrimFunc, why: str) -> LayoutproofError:
    return error(codes.NOT_A_COPY, f"{func.name} is no layout rewrite: {why}", func.span)
