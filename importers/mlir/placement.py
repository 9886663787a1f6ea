"""Where a value that is read from memory may be written into the expressions that use it.

An operation of MLIR reads memory where it stands. An expression of a program reads where it is evaluated. The two are
the same if the value is used in its own block only, and nothing in between may write there. Else it is kept in a
variable. So a read is neither dropped nor delayed past a branch: a fault of the one is a fault of the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from layoutproof.importers.mlir.model import Op, Scalar, Shaped, Value
from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.ir.interp.analysis import is_index_like
from layoutproof.ir.interval import Interval, interval_of
from layoutproof.ir.visit import walk

# The memory of the result is that of the first operand.
VIEWS = frozenset((
    "memref.subview", "memref.cast", "memref.memory_space_cast", "memref.reinterpret_cast", "memref.expand_shape",
    "memref.collapse_shape", "memref.transpose", "memref.assume_alignment", "memref.extract_strided_metadata",
    "tensor.cast", "tensor.extract_slice", "tensor.expand_shape", "tensor.collapse_shape",
    "bufferization.to_tensor", "bufferization.to_memref", "bufferization.to_buffer",
))  # fmt: skip

# Of these a copy.
COPIES = ("bufferization.to_tensor",)

_EMPTY = ("tensor.empty", "bufferization.alloc_tensor")

# The operands that an operation writes; all others of memref type are only read.
WRITES = {
    "affine.store": 1,
    "memref.store": 1,
    "affine.vector_store": 1,
    "vector.store": 1,
    "vector.transfer_write": 1,
    "memref.copy": 1,
    "memref.dealloc": 0,
    "bufferization.materialize_in_destination": 1,
}


def root(value: Value) -> Value:
    """The value that a memref or tensor is a view of, or that a region yields as it."""
    while (owner := value.owner) is not None:
        if owner.name == "scf.execute_region" and len(owner.regions[0]) == 1:
            value = owner.block().ops[-1].operands[owner.results.index(value)]
        elif owner.name in VIEWS:
            value = owner.operands[0]
        else:
            break
    return value


def is_empty(value: Value) -> bool:
    """Whether a tensor has no contents: it is new, and no copy of another one."""
    owner = value.owner
    if owner is None or owner.name not in _EMPTY:
        return False
    return "operandSegmentSizes" not in owner.attributes or not any(owner.segments()[1:2])


def written(op: Op) -> Iterator[Value]:
    """The roots of the memories that an operation writes, nested ones included; a tensor is none."""
    for each in (op, *op.nested()):
        outs: Sequence[Value] = ()
        if each.name in WRITES:
            outs = [each.operands[WRITES[each.name]]]
        elif each.name.startswith("linalg.") and each.operands and each.is_grouped:
            outs = each.segments()[1]
        for out in outs:
            if isinstance(out.type, Shaped) and out.type.kind == "memref":
                yield root(out)


def last_use(value: Value, op: Op) -> bool:
    """Whether a tensor is used by `op`, once, and before that only in its block; not of a view, of whose memory there
    are others.
    """
    if op.operands.count(value) != 1 or op.parent is None:
        return False
    if value.owner is not None and value.owner.name in VIEWS and value.owner.name not in COPIES:
        return False
    if value.owner.parent is not op.parent if value.owner is not None else value not in op.parent.arguments:
        return False
    return all(use is op or _used_before(use, op) for use in value.uses)


def _used_before(use: Op, op: Op) -> bool:
    if use.parent is not op.parent or use.position >= op.position:
        return False
    return use.name not in VIEWS or all(_used_before(u, op) for result in use.results for u in result.uses)


def used_after_write(op: Op, may_alias: bool) -> bool:
    """Whether the result of an operation, or a view of it, is used after a write of the memory that it is made of."""
    assert op.parent is not None
    memory = root(op.operands[0])
    used = set(_uses(op.results[0]))
    is_written = False
    for later in op.parent.ops[op.position + 1 :]:
        nested = any(each in used for each in later.nested())
        if is_written and (nested or later in used):
            return True
        is_written |= any(may_be_same(memory, other, may_alias) for other in written(later))
        if is_written and nested:
            return True
    return False


def _uses(value: Value) -> Iterator[Op]:
    for use in value.uses:
        yield use
        if use.name in VIEWS:
            for result in use.results:
                yield from _uses(result)


def dead_operations(function: Op) -> frozenset[Op]:
    """Operations on numbers whose results nothing uses, and which no operand makes undefined."""
    dead: set[Op] = set()
    for op in reversed(list(function.nested())):
        pure = op.name.startswith(("arith.", "math.")) and not op.name.startswith(_MAY_BE_UNDEFINED)
        if pure and not op.regions and all(use in dead for result in op.results for use in result.uses):
            dead.add(op)
    return frozenset(dead)


_MAY_BE_UNDEFINED = ("arith.div", "arith.rem", "arith.ceildiv", "arith.floordiv", "math.ctlz", "math.ipowi")


def is_movable(op: Op, expressions: Collection[str], may_alias: bool) -> bool:
    """Whether what a read gives may be read again where it is used. `expressions` are operations that are part of the
    expressions that use them.
    """
    end = _end(op, op.results[0], expressions)
    if end is None or op.parent is None:
        return False
    if not isinstance(op.operands[0].type, Shaped):
        return True  # a division
    memory = root(read_memory(op))
    for between in op.parent.ops[op.position + 1 : end]:
        if any(may_be_same(memory, other, may_alias) for other in written(between)):
            return False
    return True


def is_evaluated(value: Value, expressions: Collection[str]) -> bool:
    """Whether all that use a number evaluate it: no operation with a choice, and none on vectors or tensors."""
    return all(
        use.name in _EVALUATE
        or (
            use.name in expressions
            and use.name != "arith.select"
            and all(is_evaluated(result, expressions) for result in use.results)
        )
        for use in value.uses
    )


_EVALUATE = frozenset(("memref.load", "memref.store", "affine.load", "affine.store", "func.return"))


# Reads, which may themselves be written where they are used, with their indices and padding.
_READS = frozenset(("memref.load", "affine.load", "vector.load", "affine.vector_load", "vector.transfer_read"))


def read_memory(op: Op) -> Value:
    """What a reading operation reads."""
    return op.operands[0]


def may_be_same(one: Value, other: Value, may_alias: bool) -> bool:
    """Whether two roots may be of one memory: the same value, or two arguments that may overlap, or unknown ones."""
    if one is other:
        return True
    if one.owner is None and other.owner is None:
        return may_alias
    return not (_is_told_apart(one) and _is_told_apart(other))


def _is_told_apart(value: Value) -> bool:
    """Whether memory is an argument's, or new: one of which no other value can be, unless it is a view."""
    return value.owner is None or value.owner.name in ("memref.alloc", "memref.alloca")


def _end(op: Op, value: Value, expressions: Collection[str]) -> int | None:
    """The position of the last statement of the block that uses a value; None if it has none or is elsewhere."""
    last: int | None = None
    for use in value.uses:
        if use.parent is not op.parent or use.regions:
            return None
        end: int | None = use.position
        if use.name in expressions or use.name in _READS:
            ends = [_end(op, result, expressions) for result in use.results]
            end = None if None in ends else max((e for e in ends if e is not None), default=None)
            if end is None and use.name in _READS:
                end = use.position  # a read that is not written where it is used has its operands where it stands
        if end is None:
            return None
        last = end if last is None else max(last, end)
    return last


def needs_memory(op: Op, kind: Scalar, args: Sequence[Expr], expr: Expr, ranges: Mapping[Var, Interval]) -> bool:
    """Whether operands have to be stored before an operation on numbers, or on each lane, so that integers wrap.

    An integer expression over variables alone is taken for index arithmetic, which must fit its type; and so is all of
    an index, also what it has of data.
    """
    if kind.index:
        own = [arg for arg, value in zip(args, op.operands, strict=True) if not _is_of_indices(value)]
        return any(not isinstance(arg, BufferLoad | IntImm) for arg in own)
    whole = [*args, *([expr] if kind.dtype.is_integer else [])]
    parts = [part for each in whole if is_index_like(each) for part in walk(each)]
    return any(
        isinstance(part, Expr) and not interval_of(part, ranges).fits(part.dtype) and not isinstance(part, Var)
        for part in parts
    )


def _is_of_indices(value: Value) -> bool:
    kind = value.type.element if isinstance(value.type, Shaped) else value.type
    return kind.index
