"""`arith` and `math`: each operation as an expression of its operands, also of each lane and element."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from layoutproof.importers.mlir.builder import Builder, Overflow
from layoutproof.importers.mlir.flags import OVERFLOW, Meaning, check_attributes, check_overflow, flags_of, may_deviate
from layoutproof.importers.mlir.model import Op, Scalar, Shaped, Type, add, mul, sub, unsigned_order
from layoutproof.importers.mlir.placement import is_evaluated, needs_memory
from layoutproof.importers.mlir.values import Indices, Vector, View, divides, may_trap, number, value_of
from layoutproof.ir.dtype import BOOL, DType, Kind
from layoutproof.ir.expr import (
    FALSE,
    TRUE,
    Binary,
    Cast,
    Compare,
    Expr,
    IfThenElseExpr,
    IntImm,
    Select,
    const,
    logical_and,
    logical_or,
    negated,
)
from layoutproof.ir.interp.analysis import is_index_like
from layoutproof.ir.interval import interval_of
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.semantics import round_float
from layoutproof.ir.visit import loads_in, map_children, substitute


def _binary(op: BinaryOp) -> Meaning:
    return lambda _, args, __: Binary(op, args[0], args[1])


def _bitwise(op: BinaryOp, connective: Callable[..., Expr]) -> Meaning:
    """Of truth values the connective, which integer sets decide, where leaving the right side out is the same."""

    def meaning(_: Op, args: Sequence[Expr], dtype: DType) -> Expr:
        a, b = args
        if dtype.is_bool and not may_trap(b) and not any(True for _ in loads_in(b)):
            return connective(a, b)
        return Binary(op, a, b)

    return meaning


def _index(fold: Callable[[Expr, Expr], Expr], op: BinaryOp) -> Meaning:
    """Constants are folded where nothing wraps: in index arithmetic."""

    def meaning(found: Op, args: Sequence[Expr], dtype: DType) -> Expr:
        if dtype.is_bool:
            return _bool_arithmetic(op, args)
        return fold(args[0], args[1]) if _is_index(found) else Binary(op, args[0], args[1])

    return meaning


def _bool_arithmetic(op: BinaryOp, args: Sequence[Expr]) -> Expr:
    """Integers of one bit: a sum is the exclusive or, a product the conjunction."""
    return Binary(BinaryOp.BITAND if op is BinaryOp.MUL else BinaryOp.BITXOR, args[0], args[1])


def _is_index(op: Op) -> bool:
    kind = op.results[0].type if op.results else op.operands[0].type
    return isinstance(kind, Scalar) and kind.index


def _unsigned(dtype: DType) -> DType:
    return DType(Kind.UINT, dtype.bits)


def _of_unsigned(op: BinaryOp) -> Meaning:
    def meaning(found: Op, args: Sequence[Expr], dtype: DType) -> Expr:
        if dtype.is_bool:
            raise found.fail("of integers of one bit is not translated")
        wide = _unsigned(dtype)
        return Cast(dtype, Binary(op, Cast(wide, args[0]), Cast(wide, args[1])))

    return meaning


def _ceildiv(signed: bool) -> Meaning:
    def meaning(found: Op, args: Sequence[Expr], dtype: DType) -> Expr:
        kind = dtype if signed else _unsigned(dtype)
        a, b = (args[0], args[1]) if signed else (Cast(kind, args[0]), Cast(kind, args[1]))
        more = Select(Compare(CompareOp.NE, a % b, const(0, kind)), const(1, kind), const(0, kind))
        result = a // b + more
        return result if signed else Cast(dtype, result)

    return meaning


def _call(name: str) -> Meaning:
    return lambda _, args, __: Call(name, tuple(args))


def _negf(_: Op, args: Sequence[Expr], dtype: DType) -> Expr:
    return args[0] * const(-1.0, dtype)


def _settled(b: Builder, op: Op, arms: Sequence[Expr], keep: Callable[[Expr], Expr]) -> list[Expr]:
    """The arms of a choice. Where one is evaluated only if it is chosen, what they read from memory is read here."""
    if not any(may_trap(arm) for arm in arms):
        return list(arms)
    return [_read_here(b, op, arm, keep) for arm in arms]


def _read_here(b: Builder, op: Op, expr: Expr, keep: Callable[[Expr], Expr]) -> Expr:
    if all(load.buffer in b.cells for load in loads_in(expr)):
        return expr
    if not may_trap(expr):
        return keep(expr)
    if isinstance(expr, IfThenElseExpr):
        raise op.fail("of what may be undefined, or read, or neither is not translated")
    return map_children(expr, lambda part: _read_here(b, op, part, keep) if isinstance(part, Expr) else part)


def _settled_lanes(b: Builder, op: Op, arms: Sequence[Vector]) -> list[Vector]:
    """The same of vectors: of what they read, every lane is read here."""
    shape, lanes = arms[0].shape, b.lanes(arms[0])

    def vector(expr: Expr) -> Vector:
        return Vector(shape, lambda at: substitute(expr, dict(zip(lanes, at, strict=True))))

    found = _settled(b, op, [arm.at(lanes) for arm in arms], lambda expr: b.kept(vector(expr), op.span).at(lanes))
    return [vector(expr) for expr in found]


def _select(_: Op, args: Sequence[Expr], __: DType) -> Expr:
    condition, then, otherwise = args
    if not any(may_trap(each) for each in (then, otherwise)):
        return Select(condition, then, otherwise)
    # Poison that is not chosen is none. What is read was read before (`_settled`), so nothing is left out.
    return IfThenElseExpr(condition, then, otherwise)


_INTEGER = {
    0: CompareOp.EQ, 1: CompareOp.NE, 2: CompareOp.LT, 3: CompareOp.LE, 4: CompareOp.GT, 5: CompareOp.GE,
    6: CompareOp.LT, 7: CompareOp.LE, 8: CompareOp.GT, 9: CompareOp.GE,
}  # fmt: skip


def _cmpi(op: Op, args: Sequence[Expr], _: DType) -> Expr:
    predicate = op.attribute("predicate")
    if predicate not in _INTEGER:
        raise op.fail(f"the predicate {predicate} is unknown")
    a, b = args
    if predicate >= 6:
        if a.dtype.is_bool:
            raise op.fail("an unsigned comparison of integers of one bit is not translated")
        if is_index_like(a) and is_index_like(b):
            return unsigned_order(predicate, a, b)
        a, b = Cast(_unsigned(a.dtype), a), Cast(_unsigned(b.dtype), b)
    elif a.dtype.is_bool and predicate > 1:
        raise op.fail("a signed comparison of integers of one bit is not translated")
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        from layoutproof.ir.operators import COMPARISONS

        return TRUE if COMPARISONS[_INTEGER[predicate]](a.value, b.value) else FALSE
    return Compare(_INTEGER[predicate], a, b)


_FLOAT = {"eq": CompareOp.EQ, "gt": CompareOp.GT, "ge": CompareOp.GE, "lt": CompareOp.LT, "le": CompareOp.LE,
          "ne": CompareOp.NE}  # fmt: skip
_PREDICATES = ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
               "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true")  # fmt: skip


def _cmpf(op: Op, args: Sequence[Expr], _: DType) -> Expr:
    """IEEE's comparisons are ordered but for `!=`; an unordered one is the negation of the opposite."""
    number = op.attribute("predicate")
    if not 0 <= number < len(_PREDICATES):
        raise op.fail(f"the predicate {number} is unknown")
    name = _PREDICATES[number]
    a, b = args
    nan = logical_or(Compare(CompareOp.NE, a, a), Compare(CompareOp.NE, b, b))
    known = {
        "false": FALSE,
        "true": TRUE,
        "ord": negated(nan),
        "uno": nan,
        "one": logical_and(negated(nan), Compare(CompareOp.NE, a, b)),
        "une": Compare(CompareOp.NE, a, b),
        "ueq": logical_or(nan, Compare(CompareOp.EQ, a, b)),
    }
    if name in known:
        return known[name]
    relation = _FLOAT[name[1:]]
    return Compare(relation, a, b) if name[0] == "o" else negated(Compare(relation.negated, a, b))


def _cast(op: Op, args: Sequence[Expr], dtype: DType) -> Expr:
    value = args[0]
    if isinstance(value, IntImm) and not dtype.is_float and not dtype.is_bool and not value.dtype.is_bool:
        return const((value.value - dtype.min_int) % (1 << dtype.bits) + dtype.min_int, dtype)
    if dtype.is_bool and not value.dtype.is_bool:
        # The lowest bit is what is left.
        return Compare(CompareOp.NE, Binary(BinaryOp.BITAND, value, const(1, value.dtype)), const(0, value.dtype))
    return value if value.dtype == dtype else Cast(dtype, value)


def _signed_cast(op: Op, args: Sequence[Expr], dtype: DType) -> Expr:
    if args[0].dtype.is_bool:
        return Select(args[0], const(-1, dtype), const(0, dtype))
    return _cast(op, args, dtype)


def _unsigned_cast(op: Op, args: Sequence[Expr], dtype: DType) -> Expr:
    value = args[0]
    if value.dtype.is_bool:
        return Select(value, const(1, dtype), const(0, dtype))
    if isinstance(value, IntImm) and value.value >= 0:
        return _cast(op, args, dtype)
    if dtype.is_integer and dtype.bits <= value.dtype.bits:
        return _cast(op, args, dtype)
    return Cast(dtype, Cast(_unsigned(value.dtype), value))


def _shift(op: BinaryOp, unsigned: bool) -> Meaning:
    def meaning(found: Op, args: Sequence[Expr], dtype: DType) -> Expr:
        if dtype.is_bool:
            raise found.fail("of integers of one bit is not translated")
        if not unsigned:
            return Binary(op, args[0], args[1])
        wide = _unsigned(dtype)
        return Cast(dtype, Binary(op, Cast(wide, args[0]), Cast(wide, args[1])))

    return meaning


EXPRESSIONS: Mapping[str, Meaning] = {
    "arith.addi": _index(add, BinaryOp.ADD),
    "arith.subi": _index(sub, BinaryOp.SUB),
    "arith.muli": _index(mul, BinaryOp.MUL),
    "arith.andi": _bitwise(BinaryOp.BITAND, logical_and),
    "arith.ori": _bitwise(BinaryOp.BITOR, logical_or),
    "arith.xori": _binary(BinaryOp.BITXOR),
    "arith.minsi": _binary(BinaryOp.MIN),
    "arith.maxsi": _binary(BinaryOp.MAX),
    "arith.minui": _of_unsigned(BinaryOp.MIN),
    "arith.maxui": _of_unsigned(BinaryOp.MAX),
    "arith.shli": _shift(BinaryOp.SHL, unsigned=False),
    "arith.shrsi": _shift(BinaryOp.SHR, unsigned=False),
    "arith.shrui": _shift(BinaryOp.SHR, unsigned=True),
    "arith.divsi": _binary(BinaryOp.TRUNCDIV),
    "arith.remsi": _binary(BinaryOp.TRUNCMOD),
    "arith.floordivsi": _binary(BinaryOp.FLOORDIV),
    "arith.ceildivsi": _ceildiv(signed=True),
    "arith.divui": _of_unsigned(BinaryOp.FLOORDIV),
    "arith.remui": _of_unsigned(BinaryOp.FLOORMOD),
    "arith.ceildivui": _ceildiv(signed=False),
    "arith.addf": _binary(BinaryOp.ADD),
    "arith.subf": _binary(BinaryOp.SUB),
    "arith.mulf": _binary(BinaryOp.MUL),
    "arith.divf": _binary(BinaryOp.DIV),
    "arith.negf": _negf,
    "arith.maximumf": _call("maximum"),
    "arith.minimumf": _call("minimum"),
    "arith.maxnumf": _call("fmax"),
    "arith.minnumf": _call("fmin"),
    "arith.select": _select,
    "arith.cmpi": _cmpi,
    "arith.cmpf": _cmpf,
    "arith.index_cast": _signed_cast,
    "arith.index_castui": _unsigned_cast,
    "arith.extsi": _signed_cast,
    "arith.extui": _unsigned_cast,
    "arith.trunci": _cast,
    "arith.sitofp": _signed_cast,
    "arith.uitofp": _unsigned_cast,
    "arith.fptosi": _cast,
    "arith.extf": _cast,
    "arith.truncf": _cast,
    "math.absf": _call("abs"),
    "math.absi": _call("abs"),
    "math.exp": _call("exp"),
    "math.exp2": _call("exp2"),
    "math.log": _call("log"),
    "math.log2": _call("log2"),
    "math.log10": _call("log10"),
    "math.sqrt": _call("sqrt"),
    "math.rsqrt": _call("rsqrt"),
    "math.tanh": _call("tanh"),
    "math.sin": _call("sin"),
    "math.cos": _call("cos"),
    "math.tan": _call("tan"),
    "math.sinh": _call("sinh"),
    "math.cosh": _call("cosh"),
    "math.atan": _call("atan"),
    "math.erf": _call("erf"),
    "math.floor": _call("floor"),
    "math.ceil": _call("ceil"),
    "math.trunc": _call("trunc"),
    "math.roundeven": _call("round"),
    "math.powf": _call("pow"),
    "math.fma": _call("fma"),
    "vector.fma": _call("fma"),
}

# Undefined for some operands, also where the result is not used.
_DIVISIONS = frozenset(name for name in EXPRESSIONS if "div" in name or "rem" in name) - {"arith.divf"}

_UNSIGNED = ("arith.minui", "arith.maxui", "arith.shrui", "arith.divui", "arith.remui", "arith.ceildivui")


def translate(b: Builder, op: Op) -> None:
    """An operation of the table, on numbers, vectors or tensors."""
    check_attributes(op)
    meaning = may_deviate(b, EXPRESSIONS[op.name])
    result = op.results[0]
    kind = result.type
    if isinstance(kind, Scalar):
        args = [b.expr(op, value) for value in op.operands]
        if op.name == "arith.select":
            args = [args[0], *_settled(b, op, args[1:], lambda part: b.data(op, part))]
        expr = meaning(op, args, kind.dtype)
        if b.no_overflow is not Overflow.WRAPS and flags_of(op, OVERFLOW):
            check_overflow(b, op, args, kind)
        wraps = _wraps(b, op, kind, args)
        if wraps or needs_memory(op, kind, args, expr, b.ranges):
            args = [b.data(op, arg) for arg in args]
            expr = meaning(op, args, kind.dtype)
        if wraps:
            # The result is no index arithmetic, which casts of negative numbers would overflow.
            expr = b.data(op, expr)
        if op.name in _DIVISIONS and not divides(BinaryOp.FLOORDIV, b.expr(op, op.operands[1])):
            if is_evaluated(result, EXPRESSIONS):
                b.bind_read(op, expr)
            else:
                b.bind(result, b.named(result, expr, op.span))
        else:
            b.bind_expression(op, result, expr)
        return
    _by_element(b, op, kind, meaning)


def _wraps(b: Builder, op: Op, kind: Scalar, args: Sequence[Expr]) -> bool:
    """Whether an operation on unsigned numbers may take a negative index for a large one."""
    return kind.index and op.name in _UNSIGNED and any(interval_of(arg, b.ranges).low < 0 for arg in args)


def _by_element(b: Builder, op: Op, kind: Shaped, meaning: Meaning) -> None:
    if kind.kind == "memref":
        raise op.fail("of memrefs is not translated")
    if b.no_overflow is Overflow.FAULT and flags_of(op, OVERFLOW):
        raise op.fail("flags of vectors and tensors that the program before does not have are not translated")
    if op.name in _DIVISIONS:
        raise op.fail("of vectors and tensors is not translated")
    dtype = kind.element.dtype
    parts = [b.meanings[value] for value in op.operands]

    def operands(indices: Indices) -> list[Expr]:
        return [
            part.at(indices) if isinstance(part, Vector)
            else part.load(indices, b.is_inside, op.span) if isinstance(part, View)
            else part
            for part in parts
        ]  # fmt: skip

    def at(indices: Indices) -> Expr:
        return meaning(op, operands(indices), dtype)

    if kind.kind == "vector":
        if op.name == "arith.select":
            parts[1:] = _settled_lanes(b, op, [b.vector(op, value) for value in op.operands[1:]])
        vector = Vector(tuple(extent for extent in kind.shape if extent is not None), at)
        lanes = b.lanes(vector)
        args = operands(lanes)
        wraps = _wraps(b, op, kind.element, args)
        if wraps or needs_memory(op, kind.element, args, at(lanes), b.ranges):
            parts[:] = [b.stored(op, part) if isinstance(part, Vector) else part for part in parts]
        b.bind(op.results[0], b.kept(vector, op.span) if wraps else vector)
        return
    first = next(part for part in parts if isinstance(part, View))
    view = View.of(b.allocate(op.results[0].name, first.shape, dtype, op.span))
    b.fill(view, at, op.span)
    b.bind(op.results[0], view)


def constant(b: Builder, op: Op) -> None:
    """`arith.constant`, of a number, or of a vector or tensor."""
    value, kind = op.attribute("value"), op.results[0].type
    if isinstance(kind, Scalar):
        b.bind(op.results[0], literal(op, value, kind))
        return
    if not isinstance(value, tuple):
        raise op.fail("this constant is not translated")
    values = [literal(op, each, kind.element) for each in value[1]]
    if kind.kind == "vector" and len(set(values)) == 1:
        shape = tuple(extent for extent in kind.shape if extent is not None)
        b.bind(op.results[0], Vector(shape, lambda indices: values[0]))
        return
    extents = [number(extent) for extent in kind.shape if extent is not None]
    view = View.of(b.allocate(op.results[0].name, extents, kind.element.dtype, op.span))
    if len(set(values)) == 1:
        b.fill(view, lambda indices: values[0], op.span)
    else:
        _elements(b, op, view, values)
    if kind.kind == "vector":
        b.bind(op.results[0], of_buffer(b, op, view))
    else:
        b.bind(op.results[0], view)


_MOST_ELEMENTS = 4096


def _elements(b: Builder, op: Op, view: View, values: Sequence[Expr]) -> None:
    from itertools import product

    if len(values) > _MOST_ELEMENTS:
        raise op.fail(f"a constant of {len(values)} different elements; {_MOST_ELEMENTS} are the most")
    extents = [value_of(extent) for extent in view.shape]
    places = product(*(range(extent) for extent in extents if extent is not None))
    for place, value in zip(places, values, strict=True):
        b.store(view.buffer, [number(i) for i in place], value, op.span)


def of_buffer(b: Builder, op: Op, view: View) -> Vector:
    """The vector of what a view holds, as long as it is not written again."""
    shape = tuple(extent for extent in map(value_of, view.shape) if extent is not None)
    return Vector(shape, lambda indices: view.load(indices, b.is_inside, op.span))


def literal(op: Op, value: object, kind: Type) -> Expr:
    """A constant of a type. Raises LayoutproofError where it is none."""
    if not isinstance(kind, Scalar) or not isinstance(value, (int, float)):
        raise op.fail(f"the constant {value} is not translated")
    dtype = kind.dtype
    if dtype.is_float:
        return const(round_float(float(value), dtype), dtype)
    if not isinstance(value, int):
        raise op.fail(f"the constant {value} is no {dtype}")
    if dtype == BOOL:
        return TRUE if value else FALSE
    # The text has some types' values without a sign.
    return const((value - dtype.min_int) % (1 << dtype.bits) + dtype.min_int, dtype)


TABLE: Mapping[str, Callable[[Builder, Op], None]] = {
    **dict.fromkeys(EXPRESSIONS, translate),
    "arith.constant": constant,
}
