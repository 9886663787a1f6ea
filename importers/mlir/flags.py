"""What leaves an operation more than one result: `fastmath`, `nsw` and `nuw` of integers, and two zeros in `maxnumf`.

An operation without its flags does one of the things that it may do with them. So the flags of the program before are
left aside where something is proved; a difference is no refutation then, as the flags may allow it. An operation of the
program after may have no flag of floats that one of the same name before lacks, and has to do what one of these did:
the proof has to hold, too, where all operations of that name, or those with flags, deviate by an unknown number in
their operands and results (`may_deviate`). Its flags of integers are obligations; for these what certainly overflows
before, and is stored, is a fault there. `maxnumf` and `minnumf` of zeros with different signs give either, and so does
a `vector.reduction` that adds floats and is given no accumulator, if all are -0.0 (LLVM starts with 0.0 there, but an
addition of one lane is that lane): that is a flag that these operations always have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from layoutproof.importers.mlir.builder import MOST, Builder, Overflow
from layoutproof.importers.mlir.model import Op, Scalar, Shaped, Value
from layoutproof.ir.dtype import INT64, DType, Kind
from layoutproof.ir.expr import Binary, Cast, Expr, IfThenElseExpr, const, logical_and
from layoutproof.ir.interval import Interval, interval_of
from layoutproof.ir.operators import BinaryOp
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.verify.verdict.verdict import Status, Verdict

Meaning = Callable[[Op, Sequence[Expr], DType], Expr]
Deviations = tuple[tuple[str, DType], ...]
FASTMATH, OVERFLOW, EITHER_ZERO = "fastmath", "overflowFlags", "either of two zeros"
_EITHER = frozenset(("maxnumf", "minnumf"))
_FAST = frozenset(("nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc"))
_WORDS = {"reassoc": 1, "nnan": 2, "ninf": 4, "nsz": 8, "arcp": 16, "contract": 32, "afn": 64}


def flags_of(op: Op, kind: str) -> frozenset[str]:
    """The flags of one kind, by their names."""
    given = op.attributes.get(kind, ())
    if isinstance(given, int):
        names = _WORDS if kind == FASTMATH else {"nsw": 1, "nuw": 2}
        return frozenset(name for name, bit in names.items() if given & bit)
    found = frozenset(str(each) for each in given) - {"none"} if isinstance(given, tuple) else frozenset[str]()
    return _FAST if "fast" in found else found


def check_attributes(op: Op) -> None:
    """Refuse an attribute that says more of an operation on numbers, such as how a cast rounds."""
    unknown = sorted(name for name in op.attributes if name not in _ATTRIBUTES and "." not in name)
    if unknown:
        raise op.fail(f"the attribute {unknown[0]} is not translated")


_ATTRIBUTES = frozenset((FASTMATH, OVERFLOW, "predicate"))


def _of_indices(op: Op) -> bool:
    """Whether integers are indices, whose flags are judged by the ranges of indices."""
    return bool(op.results) and isinstance(op.results[0].type, Scalar) and op.results[0].type.index


@dataclass(frozen=True)
class Flags:
    """What the operations of a function have: for each name the flags that all operations of that name have, the
    first operation with each flag, and whether operations on indices have flags, which are not among these.
    """

    common: dict[str, frozenset[str]]
    first: dict[tuple[str, str], Op]
    of_indices: bool

    @staticmethod
    def of(function: Op) -> Flags:
        """Those of a function."""
        common: dict[str, frozenset[str]] = {}
        first: dict[tuple[str, str], Op] = {}
        for op in function.nested():
            found = frozenset(flag for _, flag in _flags(op))
            common[op.name] = common.get(op.name, found) & found
            for flag in found:
                first.setdefault((op.name, flag), op)
        return Flags(common, first, any(_of_indices(op) and flags_of(op, OVERFLOW) for op in function.nested()))

    def unmatched(self, before: Flags) -> list[tuple[Op, str]]:
        """The first operation of each name with a flag that not every one of this name before has."""
        return [
            (op, flag) for (name, flag), op in self.first.items() if flag not in before.common.get(name, frozenset())
        ]

    def deviating(self, assumed: Collection[str]) -> frozenset[str]:
        """The names of operations with flags of floats that the assumptions of a proof do not allow anyway."""
        needed = ((name, "nsz" if flag == EITHER_ZERO else flag) for name, flag in self.first)
        return frozenset(name for name, flag in needed if flag in _FAST and flag not in assumed)


def deviations(functions: Sequence[Op], names: Collection[str]) -> Deviations:
    """The operations of these names in several functions, with the types of floats that they take and give."""
    found = set()
    for op in (op for function in functions for op in function.nested() if op.name in names):
        for value in (*op.operands, *op.results):
            kind = value.type.element if isinstance(value.type, Shaped) else value.type
            found |= {(op.name, kind.dtype)} if kind.dtype.is_float else set()
    return tuple(sorted(found, key=str))


def may_deviate(b: Builder, meaning: Meaning) -> Meaning:
    """The meaning of an operation, with what it deviates by added to its operands and to its result."""

    def moved(op: Op, expr: Expr) -> Expr:
        deviation = b.deviations.get((op.name, expr.dtype))
        usual = deviation is None or (b.only_flagged and not any(_flags(op)))
        return expr if deviation is None or usual else expr + deviation

    return lambda op, args, dtype: moved(op, meaning(op, [moved(op, arg) for arg in args], dtype))


def _flags(op: Op) -> Iterator[tuple[str, str]]:
    if op.name == "vector.reduction" and len(op.operands) == 1 and str(op.attributes.get("kind")) == "add":
        if isinstance(op.results[0].type, Scalar) and op.results[0].type.dtype.is_float:
            yield EITHER_ZERO, EITHER_ZERO
    # As an operation, as the kind of a reduction, and as the name in the short form of `linalg.map`.
    if any(
        name.removeprefix("arith.") in _EITHER for name in (op.name, str(op.attributes.get("kind")), *op.attributes)
    ):
        yield EITHER_ZERO, EITHER_ZERO
    for kind in (FASTMATH, OVERFLOW):
        if kind == OVERFLOW and _of_indices(op):
            continue
        for flag in flags_of(op, kind):
            yield kind, flag


def must_not_overflow(before: Flags, after: Flags) -> bool:
    """Whether the program after has flags of integers, which are obligations. Raises LayoutproofError for flags of
    floats that the program before does not have.
    """
    for op, flag in after.unmatched(before):
        if flag in _FAST:
            raise op.fail(
                f"the flag {flag} is not on every {op.name} before; results that it leaves open are not translated"
            )
    return after.of_indices or any(flag in ("nsw", "nuw") for _, flag in after.first)


def loosened(found: Comparison, before: Flags, after: Flags) -> Comparison:
    """The comparison, with differences that flags of the program before may allow not called refutations, and no proof
    about zeros of which only the program after may choose one.
    """
    if found.status is Status.PROVED and "nsz" not in found.strictness:
        chosen = next((op for op, flag in after.unmatched(before) if flag == EITHER_ZERO), None)
        return found if chosen is None else replace(found, verdicts=(_unclear(found, chosen), *found.verdicts[1:]))
    if not before.first or found.status is not Status.REFUTED:
        return found
    words = sorted({flag for _, flag in before.first})
    return replace(found, verdicts=tuple(_open(verdict, words) for verdict in found.verdicts))


def left_open(found: Comparison, names: Collection[str]) -> Comparison:
    """A proof that does not hold where operations with flags deviate is none."""
    words = ", ".join(sorted(names))
    reason = (
        f"equal only if {words} after give what is usual: before, other operations have the flags that leave it open"
    )
    return replace(
        found, verdicts=(replace(found.verdicts[0], status=Status.UNKNOWN, reason=reason), *found.verdicts[1:])
    )


def _unclear(found: Comparison, chosen: Op) -> Verdict:
    reason = f"{chosen.name} of zeros with different signs (line {chosen.span.line}) gives either, unlike before"
    return replace(found.verdicts[0], status=Status.UNKNOWN, reason=reason)


def _is_zero(value: object) -> bool:
    return isinstance(value, str) and float.fromhex(value) == 0.0


def _open(verdict: Verdict, flags: Sequence[str]) -> Verdict:
    example = verdict.counterexample or {}
    if flags == [EITHER_ZERO] and not all(_is_zero(example.get(key)) for key in ("before", "after")):
        return verdict
    if verdict.status is not Status.REFUTED:
        return verdict
    words = ", ".join(flags)
    reason = f"a run differs, but flags of the program before ({words}) may allow that: {verdict.reason}"
    return replace(verdict, status=Status.UNKNOWN, reason=reason, counterexample=None)


def check_overflow(b: Builder, op: Op, args: Sequence[Expr], scalar: Scalar) -> None:
    """That a result with `nsw` or `nuw` fits is checked where it is computed: else the program has a fault there.

    Of the program before only what is stored counts: a result that does not fit is no fault of its own.
    """
    flags, dtype = flags_of(op, OVERFLOW), scalar.dtype
    wide_op = _WIDE.get(op.name)
    if scalar.index:
        if b.no_overflow is Overflow.FAULT and not (wide_op and _index_fits(b, Binary(wide_op, *args), flags)):
            raise op.fail(f"the flags {', '.join(sorted(flags))} of an index that may not fit are not translated")
        return
    if b.no_overflow is Overflow.OF_STORED and not (_is_stored(op.results[0]) and wide_op and dtype.bits <= 32):
        return
    if wide_op is None or dtype.bits > 32:
        raise op.fail(f"the flags {', '.join(sorted(flags))} of {dtype} are not translated")
    for flag in sorted(flags):
        kind = dtype if flag == "nsw" else DType(Kind.UINT, dtype.bits)
        wide = [Cast(INT64, Cast(kind, arg)) for arg in args]
        if flag == "nsw" and interval_of(Binary(wide_op, *wide), b.ranges).fits(dtype):
            continue
        result = Binary(wide_op, *(b.data(op, each) for each in wide))
        fits = logical_and(result >= const(kind.min_int, INT64), result <= const(kind.max_int, INT64))
        # A division by zero where it does not fit.
        b.data(op, const(1, INT64) // IfThenElseExpr(fits, const(1, INT64), const(0, INT64)))


def _index_fits(b: Builder, result: Binary, flags: frozenset[str]) -> bool:
    """Whether a result of indices fits, by what is assumed of those that callers pass."""
    ranges = {**dict.fromkeys(b.symbols, Interval(-MOST, MOST)), **b.ranges}
    found = interval_of(result, ranges)
    lowest = min(interval_of(each, ranges).low for each in (result, result.lhs, result.rhs))
    return found.fits(INT64) and ("nuw" not in flags or lowest >= 0)


def _is_stored(value: Value) -> bool:
    """Whether a value goes into memory, or into an index, whenever it is computed, and undefined if it is so itself."""
    assert value.owner is not None
    for use in value.uses:
        if use.parent is not value.owner.parent or use.name == "arith.select":
            continue
        if use.name in _STORING or (use.name.startswith("arith.") and any(map(_is_stored, use.results))):
            return True
    return False


_STORING = frozenset(("memref.load", "memref.store", "affine.load", "affine.store", "func.return"))
_WIDE = {"arith.addi": BinaryOp.ADD, "arith.subi": BinaryOp.SUB, "arith.muli": BinaryOp.MUL}
