"""Programs that notice, while they run, where fast-math assumptions would let a value come out otherwise.

`watched` is the old program: it faults where it computes what the fast-math assumptions exclude, and where regrouping
or real arithmetic might give another value, the value becomes undefined. The interpreter follows undefined values
through memory, so that in the end each cell says whether its value is firm: the same in every execution that the
fast-math assumptions allow. An undefined value that decides control is a fault. `exposed` is the new program, watched
for rounding alone, with one constant in place of everything undefined.

A sum, product or quotient is firm where nothing is rounded, so that exact real numbers give the same; where an operand
is NaN or infinite, and where something is divided by 0: what follows is forced. An infinity that comes from two numbers
by overflow is rounding. Math functions are functions: of firm arguments they have firm values. So are conversions to a
type with fewer numbers: they are written where something is to be rounded, and no fast-math assumption regroups across
them, or leaves them out. And so are quotients that end in a result, where rounded ones of firm operands tell apart
nothing that exact ones do not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from layoutproof.ir.dtype import FLOAT32, INT32, DType
from layoutproof.ir.expr import (
    FALSE,
    TRUE,
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    Logical,
    Not,
    Select,
    const,
    logical_and,
    logical_or,
)
from layoutproof.ir.interp.analysis import find_memories
from layoutproof.ir.intrinsics import Assume, Call, OpaqueCall, Reinterpret, Undef, assumed_undef, undef_loads
from layoutproof.ir.layout_record import Cell, Contract, LayoutRecord, layout_records
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.primfunc import LAYOUT, PrimFunc
from layoutproof.ir.semantics import float_format
from layoutproof.ir.stmt import (
    NOTHING,
    Attributes,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    Let,
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.visit import children, loads_in, map_children, rewrite_bottom_up, walk
from layoutproof.verify.values.fast_math import FastMath, FastMathSet

# Functions that give the same for a zero of either sign, or zeros.
_SIGN_IS_LOST = frozenset(
    "exp exp2 cos abs sigmoid tanh erf floor ceil round trunc sin tan sinh cosh atan fmax fmin maximum minimum fma "
    "sqrt log log2 log10".split()
)
_ROUNDED = frozenset({BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.DIV})
_MOST_OPERATIONS = 200  # float operations of one expression that are watched: each check repeats its operands

Path = tuple[Expr, ...]


class NotWatched(Exception):
    """A program whose values cannot be watched; the text says why."""


def watched(func: PrimFunc, fast_math: FastMathSet) -> PrimFunc:
    """The old program, watched. Raises NotWatched."""
    if FastMath.NSZ in fast_math and _reinterprets(func):
        raise NotWatched("memory is seen as another type")
    parameters = frozenset(buffer.data.name for buffer in func.buffers)
    zeros = FastMath.NSZ in fast_math and sign_matters(func, fast_math)
    return func.with_body(_Old(fast_math, zeros, parameters, _results(func)).statement(func.body))


def exposed(func: PrimFunc, constant: int | float) -> PrimFunc:
    """The new program, watched for rounding, `constant` in place of undefined values. Raises NotWatched."""
    attrs = func.attrs
    records = layout_records(func)
    if records:
        attrs = attrs.with_value(LAYOUT, Attributes({name: _filled(record) for name, record in records.items()}))
    return replace(func, body=_New(constant, _results(func)).statement(func.body), attrs=attrs)


def _filled(record: LayoutRecord) -> LayoutRecord:
    """The record with a value for a contract where it had `undef`: those cells hold what they are given."""
    steps = (
        replace(step, contract=Contract((), const(0))) if step.padding is Cell.PAD_UNDEF else step
        for step in record.steps
    )
    return LayoutRecord(record.logical_shape, tuple(steps))


def _results(func: PrimFunc) -> frozenset[str]:
    """The data variables of parameters that are never loaded, under any name."""
    root = find_memories(func).root
    loaded = {root.get(load.buffer.data.name, load.buffer.data.name) for load in loads_in(func.body)}
    return frozenset(buffer.data.name for buffer in func.buffers) - loaded


def _last(value: Expr) -> frozenset[int]:
    """The quotients that a value is, by identity: itself, or what a choice may pick."""
    match value:
        case IfThenElseExpr(then=then, otherwise=otherwise) | Select(then=then, otherwise=otherwise):
            return _last(then) | _last(otherwise)
        case Binary(op=BinaryOp.DIV):
            return frozenset({id(value)})
        case _:
            return frozenset()


def number_of(value: int | float, dtype: DType) -> int | float:
    """A number as one of a scalar type: integers have their largest for what is no number, truth values have parity."""
    if dtype.is_float:
        return float(value)
    whole = int(value) if value - value == 0 else dtype.max_int
    return whole % 2 if dtype.is_bool else max(whole, dtype.min_int)


def may_regroup(expr: Expr) -> bool:
    """Whether the outermost operation of an expression is one that regrouping may touch. A conversion is no sum or
    product of anything.
    """
    return expr.dtype.is_float and not isinstance(expr, Cast) and any(True for _ in _firm(expr))


def sign_matters(func: PrimFunc, fast_math: FastMathSet) -> bool:
    """Whether the sign of a zero may become more than that, other than by an infinity that is excluded."""
    if FastMath.NINF in fast_math:
        return False
    for node in walk(func.body):
        if isinstance(node, Binary) and node.op is BinaryOp.DIV:
            return True
        if isinstance(node, Call) and node.function not in _SIGN_IS_LOST:
            return True
    return False


def _reinterprets(func: PrimFunc) -> bool:
    types = {buffer.data: buffer.dtype.element for buffer in func.buffers}
    views = (node.buffer for node in walk(func.body) if isinstance(node, DeclBuffer))
    return any(
        types.setdefault(view.data, view.dtype.element) != view.dtype.element and view.dtype.is_float for view in views
    )


def evaluated(expr: Expr, path: Path = ()) -> Iterator[tuple[Expr, Path]]:
    """An expression's float parts, inner ones first, each with the conditions under which it is evaluated."""
    match expr:
        case Assume(condition=condition):
            yield from evaluated(condition, path)
            return
        case IfThenElseExpr(condition=condition, then=then, otherwise=otherwise):
            yield from evaluated(condition, path)
            yield from evaluated(then, (*path, condition))
            yield from evaluated(otherwise, (*path, Not(condition)))
        case Logical(op=op, lhs=lhs, rhs=rhs):
            yield from evaluated(lhs, path)
            yield from evaluated(rhs, (*path, lhs if op is LogicalOp.AND else Not(lhs)))
        case OpaqueCall() | Undef():
            return
        case _:
            for child in children(expr):
                if isinstance(child, Expr):
                    yield from evaluated(child, path)
    if expr.dtype.is_float:
        yield expr, path


def _under(path: Path, condition: Expr) -> Expr:
    """The condition where the path is taken; true elsewhere."""
    if not path or condition == TRUE:
        return condition
    taken = logical_and(*path)
    lanes = condition.dtype.lanes
    return logical_or(Not(Broadcast(taken, lanes) if lanes > 1 else taken), condition)


def own_expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that a statement itself evaluates."""
    match stmt:
        case BufferStore(value=value, indices=indices):
            return (*indices, value)
        case Let(value=value):
            return (value,)
        case IfThenElse(condition=condition):
            return (condition,)
        case For(start=start, extent=extent):
            return (start, extent)
        case Evaluate(value=value):
            return (value,)
        case _:
            return ()


class _Watcher(ABC):
    """Rebuilds statements; what is not firm becomes undefined where `rounding` is watched.

    `results` are the data variables of what is stored and never loaded. A quotient that ends there may be rounded: from
    operands that are firm, rounded quotients differ only where the quotients do, and no fast-math assumption regroups
    one.
    """

    rounding: bool
    results: frozenset[str]

    def statement(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Seq):
            return seq(*(self.statement(part) for part in stmt.body))
        if isinstance(stmt, Evaluate) and isinstance(stmt.value, Assume):
            return self.assumption(stmt.value.condition)
        if isinstance(stmt, Block):
            control = (stmt.where, *(v.binding for v in stmt.iter_vars))
            if any(n.dtype.is_float for expr in control for n in walk(expr) if isinstance(n, Expr)):
                raise NotWatched(f"block {stmt.name} is guarded by floats")
        own = {id(e) for e in own_expressions(stmt)}
        last = (
            _last(stmt.value)
            if isinstance(stmt, BufferStore) and stmt.buffer.data.name in self.results
            else frozenset[int]()
        )

        def visit(node: Node) -> Node:
            if isinstance(node, Stmt):
                return self.statement(node)
            return self.expression(node, last) if isinstance(node, Expr) and id(node) in own else node

        rebuilt = map_children(stmt, visit)
        checks = [_demand(c) for e in own_expressions(stmt) for c in self.excluded(e)]
        return seq(*checks, rebuilt) if checks else rebuilt

    @abstractmethod
    def assumption(self, condition: Expr) -> Stmt:
        """What stands where a program assumes something."""

    def excluded(self, expr: Expr) -> Iterator[Expr]:
        """What must hold of what an expression computes for the execution to be considered."""
        return iter(())

    def expression(self, expr: Expr, last: frozenset[int] = frozenset()) -> Expr:
        """The expression, undefined where its value is not firm; the parts in `last` (by identity) may be rounded."""
        if not self.rounding:
            return expr
        parts = [(part, path) for part, path in evaluated(expr) if id(part) not in last]
        checks = [_under(path, condition) for part, path in parts for condition in _firm(part) if condition != TRUE]
        if not checks:
            return expr
        if len(checks) > _MOST_OPERATIONS:
            raise NotWatched("an expression with too many operations")
        lanes = max(c.dtype.lanes for c in checks)
        alike = [c if c.dtype.lanes == lanes else Broadcast(c, lanes) for c in checks]
        return Select(logical_and(*dict.fromkeys(alike)), expr, Undef(expr.dtype))


@dataclass(slots=True)
class _Old(_Watcher):
    """`no_zeros`: no operation yields a zero, whose sign would matter."""

    fast_math: FastMathSet
    no_zeros: bool
    parameters: frozenset[str]
    results: frozenset[str]
    rounding: bool = field(init=False)

    def __post_init__(self) -> None:
        self.rounding = FastMath.REASSOC in self.fast_math

    def assumption(self, condition: Expr) -> Stmt:
        """Kept where it makes cells undefined or known; those about parameters were seen to hold in the plain run."""
        known = all(load.buffer.data.name in self.parameters for load in loads_in(condition))
        return NOTHING if known and not undef_loads(condition) else Evaluate(Assume(condition))

    def excluded(self, expr: Expr) -> Iterator[Expr]:
        for part, path in evaluated(expr):
            # Literals are not computed, nor what a load finds or a choice takes; inputs are looked at where they are
            # given.
            if isinstance(part, Binary | Call | Cast | Reinterpret):
                allowed = logical_and(*self.allowed(part))
                if allowed != TRUE:
                    yield _under(path, allowed)

    def allowed(self, expr: Expr) -> Iterator[Expr]:
        """What must be true of a float that is computed."""
        dtype = expr.dtype
        if FastMath.NNAN in self.fast_math:
            yield Not(Compare(CompareOp.NE, expr, expr))
        if FastMath.NINF in self.fast_math:
            infinity = const(float("inf"), dtype), const(float("-inf"), dtype)
            yield from (Not(Compare(CompareOp.EQ, expr, bound)) for bound in infinity)
        if self.no_zeros and not isinstance(expr, Cast | Reinterpret):
            yield Not(Compare(CompareOp.EQ, expr, const(0.0, dtype)))


@dataclass(slots=True)
class _New(_Watcher):
    constant: int | float
    results: frozenset[str]
    rounding: bool = True

    def expression(self, expr: Expr, last: frozenset[int] = frozenset()) -> Expr:
        chosen = self.chosen(expr)
        return _Watcher.expression(self, chosen, last if chosen is expr else frozenset())

    def standing_for(self, dtype: DType) -> Expr:
        """The constant, as one of a type."""
        value = number_of(self.constant, dtype.element)
        return const(bool(value) if dtype.is_bool else value, dtype)

    def chosen(self, expr: Expr) -> Expr:
        """The expression with the constant for what is undefined."""

        def visit(node: Node) -> Node:
            return self.standing_for(node.dtype) if isinstance(node, Undef) else node

        return rewrite_bottom_up(expr, visit)

    def assumption(self, condition: Expr) -> Stmt:
        """Cells that are assumed undefined get the constant; other assumptions stay, where they can be separated."""
        match condition:
            case Logical(op=LogicalOp.AND, lhs=lhs, rhs=rhs):
                return seq(self.assumption(lhs), self.assumption(rhs))
            case Logical(op=LogicalOp.OR, lhs=lhs, rhs=rhs) if undef_loads(rhs) and not undef_loads(lhs):
                inner = self.assumption(rhs)
                return IfThenElse(Not(self.expression(lhs)), inner) if inner != NOTHING else NOTHING
            case Logical(op=LogicalOp.OR, lhs=lhs) if undef_loads(condition):
                return self.assumption(lhs)
        load = assumed_undef(condition)
        if load is not None:
            return BufferStore(load.buffer, load.indices, self.standing_for(load.dtype))
        return Evaluate(Assume(condition)) if self.expression(condition) == condition else NOTHING


def _demand(condition: Expr) -> Stmt:
    """A statement that faults unless the condition holds, in every lane: no integer is NaN."""
    lanes = condition.dtype.lanes
    if lanes == 1:
        return Evaluate(Assume(condition))
    zero, none = (const(value, FLOAT32.with_lanes(lanes)) for value in (0.0, float("nan")))
    return Evaluate(Cast(INT32.with_lanes(lanes), Select(condition, zero, none)))


def _firm(expr: Expr) -> Iterator[Expr]:
    """When the outermost operation of a float expression gives what exact real numbers give."""
    match expr:
        case Binary(op=op, lhs=lhs, rhs=rhs) if op in _ROUNDED:
            yield _or(_plain(op, lhs, rhs), _exact(expr, (lhs, rhs), _is(rhs, 0.0) if op is BinaryOp.DIV else FALSE))
        case Call(function="fma", arguments=arguments):
            yield _exact(expr, arguments, FALSE)
        case Cast(value=value) if not value.dtype.is_float:
            yield _small(expr)


def _plain(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
    """Operations that never round: with a zero added, with 1 or -1 or 0 as a factor."""
    if op is BinaryOp.DIV:
        return _or(_is(lhs, 0.0), _is(rhs, 1.0), _is(rhs, -1.0))
    values = (0.0, 1.0, -1.0) if op is BinaryOp.MUL else (0.0,)
    return _or(*(_is(side, value) for side in (lhs, rhs) for value in values))


def _exact(expr: Expr, operands: Sequence[Expr], otherwise: Expr) -> Expr:
    """An operation whose operands are small or no numbers: its result is small too, or follows from them."""
    known = (_or(_small(e), _no_number(e)) for e in operands)
    return _and(*known, _or(_small(expr), *(_no_number(e) for e in operands), otherwise))


def _small(expr: Expr) -> Expr:
    """A multiple of 2^-g, at most 2^(p - 2 - 2 g) in size, where p is the type's precision.

    Of two such numbers the sum and the product are numbers of the type where they are that small, and the quotient is
    such a number only if it is exact: as a fraction of whole numbers it is further from every other than half a unit in
    the last place.
    """
    dtype, precision = expr.dtype, float_format(expr.dtype.element)[0]
    steps = (precision - 8) // 4
    largest = float(1 << (precision - 2 - 2 * steps))
    value = _literal(expr)
    if value is not None:
        scaled = value * 2.0**steps
        return TRUE if abs(value) <= largest and scaled == int(scaled) else FALSE
    low, high = (
        Compare(op, expr, const(value, dtype)) for op, value in ((CompareOp.GE, -largest), (CompareOp.LE, largest))
    )
    scale = Binary(BinaryOp.MUL, expr, const(2.0**steps, dtype)) if steps else expr
    return _and(low, high, Compare(CompareOp.EQ, scale, Call("floor", (scale,))))


def _no_number(expr: Expr) -> Expr:
    """NaN or an infinity."""
    value = _literal(expr)
    if value is not None:
        return FALSE if value - value == 0 else TRUE
    return Compare(CompareOp.NE, Binary(BinaryOp.SUB, expr, expr), const(0.0, expr.dtype))


def _is(expr: Expr, number: float) -> Expr:
    value = _literal(expr)
    if value is not None:
        return TRUE if value == number else FALSE
    return Compare(CompareOp.EQ, expr, const(number, expr.dtype))


def _literal(expr: Expr) -> float | None:
    if isinstance(expr, Broadcast):
        return _literal(expr.value)
    return expr.value if isinstance(expr, FloatImm) else None


def _and(*terms: Expr) -> Expr:
    if FALSE in terms:
        return FALSE
    return logical_and(*dict.fromkeys(term for term in terms if term != TRUE))


def _or(*terms: Expr) -> Expr:
    if TRUE in terms:
        return TRUE
    return logical_or(*dict.fromkeys(term for term in terms if term != FALSE))
