"""Reductions of parallel loops, where their order makes no difference.

Each iteration leaves its value in memory of its own, so that the iterations stay independent; then the values are
combined one after the other. Sums and products of floats depend on the order: those are refused where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutproof.importers.mlir.arith_ops import EXPRESSIONS
from layoutproof.importers.mlir.builder import Builder, Overflow, load_cell
from layoutproof.importers.mlir.flags import OVERFLOW, flags_of, may_deviate
from layoutproof.importers.mlir.loops import Bounds, trip_count
from layoutproof.importers.mlir.model import INDEX, Block, Items, Op, Scalar, Value, add, greatest, mul
from layoutproof.importers.mlir.values import ZERO, number
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr, const

# By the words of affine.parallel, and by their numbers in its generic form.
_WORDS: Mapping[str, str] = {
    "addf": "arith.addf", "addi": "arith.addi", "maximumf": "arith.maximumf", "maxs": "arith.maxsi",
    "maxu": "arith.maxui", "minimumf": "arith.minimumf", "mins": "arith.minsi", "minu": "arith.minui",
    "mulf": "arith.mulf", "muli": "arith.muli", "ori": "arith.ori", "andi": "arith.andi",
}  # fmt: skip
_NUMBERS = (
    "addf", "addi", "assign", "maximumf", "maxs", "maxu", "minimumf", "mins", "minu", "mulf", "muli", "ori", "andi",
    "maxnumf", "minnumf",
)  # fmt: skip

# Associative and commutative, bit for bit.
_ORDERLESS = frozenset((
    "arith.addi", "arith.muli", "arith.andi", "arith.ori", "arith.xori", "arith.minsi", "arith.maxsi", "arith.minui",
    "arith.maxui", "arith.maximumf", "arith.minimumf",
))  # fmt: skip


@dataclass(frozen=True)
class Reduction:
    """A result of a parallel loop: the operation of two values, what it starts with, and what an iteration gives."""

    result: Value
    operation: str
    start: Expr | None
    given: Value


def of_affine(op: Op, end: Op) -> list[Reduction]:
    """Those of an affine.parallel; each starts with the identity of its operation."""
    words = op.attribute("reductions")
    if len(words) != len(op.results) or len(end.operands) != len(op.results):
        raise op.fail("as many reductions as results are expected")
    found = []
    for word, result, given in zip(words, op.results, end.operands, strict=True):
        name = _NUMBERS[word] if isinstance(word, int) and 0 <= word < len(_NUMBERS) else str(word)
        if name not in _WORDS:
            raise op.fail(f"the reduction {name} is not translated")
        kind = result.type
        if not isinstance(kind, Scalar) or kind.dtype.is_bool:
            raise op.fail("a reduction of other than numbers is not translated")
        found.append(Reduction(result, _WORDS[name], _identity(_WORDS[name], kind.dtype), given))
    return found


def _identity(name: str, dtype: DType) -> Expr | None:
    match name:
        case "arith.addi" | "arith.ori":
            return const(0, dtype)
        case "arith.maxui":
            return const(0, dtype)
        case "arith.muli":
            return const(1, dtype)
        case "arith.andi" | "arith.minui":
            return const(-1, dtype)
        case "arith.maxsi":
            return const(dtype.min_int, dtype)
        case "arith.minsi":
            return const(dtype.max_int, dtype)
        case "arith.maximumf":
            return const(float("-inf"), dtype)
        case "arith.minimumf":
            return const(float("inf"), dtype)
        case _:
            return None  # of floats whose order counts


def of_scf(b: Builder, op: Op, end: Op, inits: Sequence[Value]) -> list[Reduction]:
    """Those of an scf.parallel: each region of its scf.reduce is one operation of its two arguments."""
    if len(end.operands) != len(op.results) or len(end.regions) != len(op.results) or len(inits) != len(op.results):
        raise op.fail("as many reductions and initial values as results are expected")
    found = []
    for k, (result, init, given) in enumerate(zip(op.results, inits, end.operands, strict=True)):
        if not isinstance(result.type, Scalar):
            raise op.fail("a reduction of other than numbers is not translated")
        name = _combiner(b, end, end.block(k))
        found.append(Reduction(result, name, b.expr(op, init), given))
    return found


def _combiner(b: Builder, end: Op, block: Block) -> str:
    if len(block.ops) == 2 and len(block.arguments) == 2:
        combine, last = block.ops
        both = set(combine.operands) == set(block.arguments) and len(combine.operands) == 2
        if both and last.operands == combine.results and combine.name in EXPRESSIONS:
            if b.no_overflow is Overflow.FAULT and flags_of(combine, OVERFLOW):
                raise combine.fail("flags of a sum in any order are not translated in the program after")
            return combine.name
    raise end.fail("a reduction by other than one operation of both values is not translated")


def reduce_in_parallel(b: Builder, op: Op, bounds: Sequence[Bounds], found: Sequence[Reduction], end: Op) -> None:
    """The loops, with the values of all iterations kept, and after them the reductions.

    Raises LayoutproofError where a result is used that depends on the order.
    """
    used = [each for each in found if each.operation in _ORDERLESS]
    for each in found:
        if each not in used and any(use not in b.dead for use in each.result.uses):
            raise op.fail(
                f"a reduction by {each.operation} depends on the order of iterations, which parallel loops leave open"
            )
    counts = [greatest([trip_count(op, each), ZERO]) for each in bounds]
    kept = [b.allocate("kept", counts or [number(1)], _dtype(each), op.span) for each in used]

    def body(at: Sequence[Expr]) -> None:
        block = op.block()
        for argument, position, (lower, _, step) in zip(block.arguments, at, bounds, strict=True):
            b.bind(argument, add(lower, mul(position, step)))
        for inner in block.ops[:-1]:
            b.op(inner)
        for each, buffer in zip(used, kept, strict=True):
            b.store(buffer, at, b.expr(end, each.given), op.span)

    b.nest(counts, body, op.span, [True] * len(counts))
    for each, buffer in zip(used, kept, strict=True):
        _combine(b, op, each, buffer, counts)


def _dtype(found: Reduction) -> DType:
    assert isinstance(found.result.type, Scalar)
    return found.result.type.dtype


def _combine(b: Builder, op: Op, found: Reduction, kept: Buffer, counts: Sequence[Expr]) -> None:
    kind = found.result.type
    assert isinstance(kind, Scalar) and found.start is not None
    if kind == INDEX:
        raise op.fail("a reduction of indices is not translated")
    cell = b.cell(found.result.name, kind, op.span)
    b.store(cell, (ZERO,), found.start, op.span)
    shape = Op(found.operation, Items(), Items([found.result]), {}, (), op.span)

    def one(at: Sequence[Expr]) -> None:
        value = may_deviate(b, EXPRESSIONS[found.operation])(
            shape, [load_cell(cell, op.span), BufferLoad(kept, tuple(at), span=op.span)], kind.dtype
        )
        b.store(cell, (ZERO,), value, op.span)

    b.nest(counts, one, op.span)
    b.bind(found.result, load_cell(cell, op.span))
