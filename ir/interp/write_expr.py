"""Expressions and arithmetic as generated source: a list of operands, one a lane.

Whatever may fault becomes a line of its own, in evaluation order; integers fit or wrap, floats are rounded once.
"""

from __future__ import annotations

import math

from layoutproof.ir import semantics
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
)
from layoutproof.ir.interp.analysis import is_index_like
from layoutproof.ir.interp.generator import Generator, Operand, Site, join_taints, limits_of, literal
from layoutproof.ir.interp.memory import cannot_interpret
from layoutproof.ir.interp.runtime import EXACT
from layoutproof.ir.intrinsics import Call, Limit, LimitKind, Reinterpret, Undef
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp


def fit(g: Generator, operand: Operand, dtype: DType, index: bool) -> Operand:
    """An exact integer result as its type: checked for index arithmetic, wrapped for values; free if its range fits."""
    low, high = limits_of(dtype)
    if low <= operand.low and operand.high <= high:
        return g.short(operand)
    if index:
        result = g.atom(operand)
        g.emit(f"if not {low} <= {result.code} <= {high}: overflow({result.code}, {str(dtype)!r})")
        return Operand(result.code, max(low, operand.low), min(high, operand.high), operand.taint)
    mask = (1 << dtype.bits) - 1
    code = f"(({operand.code} + {-low} & {mask}) - {-low})" if low < 0 else f"({operand.code} & {mask})"
    return g.short(Operand(code, low, high, operand.taint))


def integer_constant(value: int) -> Operand:
    """A known integer."""
    return Operand(literal(value), value, value)


def integer_binary(g: Generator, op: BinaryOp, a: Operand, b: Operand, dtype: DType, index: bool) -> Operand:
    """`a op b` on integers of one type."""
    taint = join_taints(a, b)
    match op:
        case BinaryOp.ADD:
            exact = _simple(f"({a.code} + {b.code})", a.low + b.low, a.high + b.high, taint)
        case BinaryOp.SUB:
            exact = _simple(f"({a.code} - {b.code})", a.low - b.high, a.high - b.low, taint)
        case BinaryOp.MUL:
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            exact = _simple(f"({a.code} * {b.code})", min(corners), max(corners), taint)
        case BinaryOp.MIN | BinaryOp.MAX:
            a, b = g.atom(a), g.atom(b)
            sign, pick = ("<", min) if op is BinaryOp.MIN else (">", max)
            exact = Operand(
                f"({a.code} if {a.code} {sign} {b.code} else {b.code})", pick(a.low, b.low), pick(a.high, b.high), taint
            )
        case BinaryOp.BITAND | BinaryOp.BITOR | BinaryOp.BITXOR:
            exact = Operand(f"({a.code} {op} {b.code})", *_bitwise_range(op, a, b, dtype), taint)
        case BinaryOp.SHL | BinaryOp.SHR:
            return _shift(g, op, a, b, dtype, index)
        case _:
            return _divide(g, op, a, b, dtype, taint)
    return fit(g, exact, dtype, index)


def _simple(code: str, low: int, high: int, taint: str | None) -> Operand:
    return integer_constant(low) if low == high and taint is None else Operand(code, low, high, taint)


def _bitwise_range(op: BinaryOp, a: Operand, b: Operand, dtype: DType) -> tuple[int, int]:
    if dtype.is_bool:
        return 0, 1
    if a.low < 0 or b.low < 0:
        return limits_of(dtype)
    if op is BinaryOp.BITAND:
        return 0, min(a.high, b.high)
    return 0, (1 << max(a.high.bit_length(), b.high.bit_length())) - 1


def _shift(g: Generator, op: BinaryOp, a: Operand, b: Operand, dtype: DType, index: bool) -> Operand:
    taint = join_taints(a, b)
    a, b = g.atom(a), g.atom(b)
    if not (b.low >= 0 and b.high < dtype.bits):
        g.emit(f"if not 0 <= {b.code} < {dtype.bits}: bad_shift({b.code}, {str(dtype)!r})")
    amounts = [min(max(s, 0), dtype.bits - 1) for s in (b.low, b.high)]
    corners = [x << s if op is BinaryOp.SHL else x >> s for x in (a.low, a.high) for s in amounts]
    return fit(g, Operand(f"({a.code} {op} {b.code})", min(corners), max(corners), taint), dtype, index)


def _divide(g: Generator, op: BinaryOp, a: Operand, b: Operand, dtype: DType, taint: str | None) -> Operand:
    """The four divisions, inline where the divisor is positive and floor and trunc agree."""
    truncated = op in (BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD)
    division = op in (BinaryOp.FLOORDIV, BinaryOp.TRUNCDIV)
    if b.low < 1 or (truncated and a.low < 0):
        name = {"//": "floordiv", "%": "floormod"}.get(op.value, op.value)
        return Operand(g.temp(f"divide({name!r}, {a.code}, {b.code}, {g.constant(dtype)})"), *limits_of(dtype), taint)
    if division:
        corners = [x // y for x in (a.low, a.high) for y in (b.low, b.high)]
        return g.short(_simple(f"({a.code} // {b.code})", min(corners), max(corners), taint))
    if 0 <= a.low and a.high < b.low:
        return Operand(a.code, a.low, a.high, taint)
    high = min(b.high - 1, a.high) if a.low >= 0 else b.high - 1
    return g.short(_simple(f"({a.code} % {b.code})", 0, high, taint))


def rounded(g: Generator, code: str, dtype: DType, taint: str | None) -> Operand:
    """A float64 result rounded to `dtype`."""
    match str(dtype.element):
        case "float64":
            return g.short(Operand(code, taint=taint))
        case "float32":
            g.emit(f"r32[0] = {code}")
            return Operand(g.temp("r32[0]"), taint=taint)
        case "float16":
            g.emit(f"r16[0] = {code}")
            return Operand(g.temp("r16.item()"), taint=taint)
        case _:
            return Operand(g.temp(f"round_float({code}, {g.constant(dtype.element)})"), taint=taint)


def float_binary(g: Generator, op: BinaryOp, a: Operand, b: Operand, dtype: DType) -> Operand:
    """`a op b` on floats of one type."""
    taint = join_taints(a, b)
    match op:
        case BinaryOp.ADD | BinaryOp.SUB | BinaryOp.MUL:
            return rounded(g, f"({a.code} {op} {b.code})", dtype, taint)
        case BinaryOp.DIV:
            return rounded(g, f"float_div({a.code}, {b.code})", dtype, taint)
        case BinaryOp.MIN | BinaryOp.MAX:
            a, b = g.atom(a), g.atom(b)
            sign = "<" if op is BinaryOp.MIN else ">"
            return g.short(Operand(f"({a.code} if {a.code} {sign} {b.code} else {b.code})", taint=taint))
        case _:
            raise TypeError(f"{op} on {dtype}")


def comparison(g: Generator, op: CompareOp, a: Operand, b: Operand, ordered: bool) -> Operand:
    """`a op b` as a truth value; decided here where the ranges of integers (`ordered`) decide it."""
    known = _decide(op, a, b) if ordered else None
    if known is not None:
        return Operand(str(known), int(known), int(known), join_taints(a, b))
    return g.short(Operand(f"({a.code} {op} {b.code})", 0, 1, join_taints(a, b)))


def _decide(op: CompareOp, a: Operand, b: Operand) -> bool | None:
    below, above = a.high < b.low, a.low > b.high
    same = a.constant is not None and a.constant == b.constant
    match op:
        case CompareOp.EQ:
            return True if same else False if below or above else None
        case CompareOp.NE:
            return False if same else True if below or above else None
        case CompareOp.LT:
            return True if below else False if a.low >= b.high else None
        case CompareOp.LE:
            return True if a.high <= b.low else False if above else None
        case CompareOp.GT:
            return True if above else False if a.high <= b.low else None
        case CompareOp.GE:
            return True if a.low >= b.high else False if below else None


def truth(value: bool) -> Operand:
    """A known truth value."""
    return Operand(str(value), int(value), int(value))


def float_constant(value: float) -> Operand:
    """A known float."""
    if math.isfinite(value):
        return Operand(f"({value!r})" if math.copysign(1.0, value) < 0 else repr(value))
    return Operand("nan" if value != value else "inf" if value > 0 else "(-inf)")


def cast(g: Generator, value: Operand, source: DType, target: DType, index: bool) -> Operand:
    """One lane converted (`semantics.cast_value`); an index that changes its value is an overflow."""
    if target.is_float:
        if source.is_float:
            wider = semantics.float_format(source)[0] <= semantics.float_format(target)[0] and source.bits < target.bits
            return value if source == target or wider else rounded(g, value.code, target, value.taint)
        if source.bits <= 32:
            return rounded(g, f"float({value.code})", target, value.taint)
        return Operand(g.temp(f"int_to_float({value.code}, {g.constant(target)})"), taint=value.taint)
    if target.is_bool:
        return value if source.is_bool else Operand(f"({value.code} != 0)", 0, 1, value.taint)
    if source.is_float:
        return Operand(g.temp(f"float_to_int({value.code}, {g.constant(target)})"), *limits_of(target), value.taint)
    if source.is_bool:
        return Operand(f"int({value.code})", 0, 1, value.taint)
    return fit(g, value, target, index)


Lanes = list[Operand]


def write_int(g: Generator, e: IntImm, index: bool) -> Lanes:
    """A constant."""
    return [truth(bool(e.value)) if e.dtype.is_bool else integer_constant(e.value)]


def write_float(g: Generator, e: FloatImm, index: bool) -> Lanes:
    """A constant."""
    return [float_constant(e.value)]


def write_limit(g: Generator, e: Limit, index: bool) -> Lanes:
    """The special values of a type."""
    if e.dtype.is_float:
        largest = math.inf if e.kind is LimitKind.INFINITY else semantics.max_finite(e.dtype)
        return [float_constant(-largest if e.kind is LimitKind.MIN else largest)]
    return [integer_constant(e.dtype.min_int if e.kind is LimitKind.MIN else e.dtype.max_int)]


def write_var(g: Generator, e: Var, index: bool) -> Lanes:
    """A variable in scope, a symbol (whose value is known), or a float parameter."""
    bound = g.env.get(e.name)
    if bound is not None:
        return list(bound)
    if e.name in g.facts.symbols:
        value = g.facts.symbols[e.name]
        return [truth(bool(value)) if e.dtype.is_bool else integer_constant(value)]
    if e.name in g.facts.floats:
        return [Operand(f"floats[{e.name!r}]")]
    raise cannot_interpret(f"the variable {e.name}, which is bound nowhere,", e.span)


def write_binary(g: Generator, e: Binary, index: bool) -> Lanes:
    """Lane by lane, both operands evaluated first."""
    left, right = g.expr(e.lhs, index), g.expr(e.rhs, index)
    dtype = e.dtype.element
    if dtype.is_float:
        return [float_binary(g, e.op, a, b, dtype) for a, b in zip(left, right, strict=True)]
    return [integer_binary(g, e.op, a, b, dtype, index) for a, b in zip(left, right, strict=True)]


def write_compare(g: Generator, e: Compare, index: bool) -> Lanes:
    """Integers over variables alone are index arithmetic here too; loaded ones wrap."""
    exact = index or (is_index_like(e.lhs) and is_index_like(e.rhs))
    left, right = g.expr(e.lhs, exact), g.expr(e.rhs, exact)
    ordered = e.lhs.dtype.is_integer or e.lhs.dtype.is_bool
    return [comparison(g, e.op, a, b, ordered) for a, b in zip(left, right, strict=True)]


def write_logical(g: Generator, e: Logical, index: bool) -> Lanes:
    """The right side is evaluated only when it matters; vectors evaluate both."""
    left = g.expr(e.lhs, index)
    word = "and" if e.op is LogicalOp.AND else "or"
    if len(left) > 1:
        right = g.expr(e.rhs, index)
        return [
            Operand(f"({a.code} {word} {b.code})", 0, 1, join_taints(a, b)) for a, b in zip(left, right, strict=True)
        ]
    (a,) = left
    if a.constant is not None and a.taint is None:
        decided = bool(a.constant) == (e.op is LogicalOp.OR)
        return [truth(bool(a.constant))] if decided else g.expr(e.rhs, index)
    right, lines, sites = g.write_aside(lambda: g.expr(e.rhs, index))
    (b,) = right
    if not lines:
        return [g.short(Operand(f"({a.code} {word} {b.code})", 0, 1, join_taints(a, b)))]
    result = g.temp(a.code)
    taint = None if a.taint is None and b.taint is None else g.temp(a.taint if a.taint is not None else "False")
    g.emit(f"if {'' if e.op is LogicalOp.AND else 'not '}{result}:")
    g.paste(lines, sites)
    _assign(g, result, b, taint)
    return [Operand(result, 0, 1, taint)]


def _assign(g: Generator, name: str, value: Operand, taint: str | None) -> None:
    g.depth += 1
    g.emit(f"{name} = {value.code}")
    if taint is not None and value.taint is not None:
        g.emit(f"{taint} = {taint} or {value.taint}")
    g.depth -= 1


def write_not(g: Generator, e: Not, index: bool) -> Lanes:
    """Lane by lane."""
    lanes = g.expr(e.operand, index)
    return [Operand(f"(not {o.code})", 1 - o.high, 1 - o.low, o.taint) for o in lanes]


def write_select(g: Generator, e: Select, index: bool) -> Lanes:
    """Both sides are evaluated, then one is taken lane by lane; an undefined choice taints the result."""
    conditions = g.expr(e.condition, index)
    then, otherwise = g.expr(e.then, index), g.expr(e.otherwise, index)
    if len(conditions) == 1:
        conditions = [g.atom(conditions[0])] * len(then)
    return [_pick(g, c, a, b) for c, a, b in zip(conditions, then, otherwise, strict=True)]


def _pick(g: Generator, c: Operand, a: Operand, b: Operand) -> Operand:
    if c.constant is not None and c.taint is None:
        return a if c.constant else b
    code = f"({a.code} if {c.code} else {b.code})"
    taint = c.taint
    if a.taint is not None or b.taint is not None:
        chosen = f"({a.taint} if {c.code} else {b.taint})"
        taint = chosen if taint is None else f"({taint} or {chosen})"
    return g.short(Operand(code, min(a.low, b.low), max(a.high, b.high), taint))


def write_choice(g: Generator, e: IfThenElseExpr, index: bool) -> Lanes:
    """Only the side taken is evaluated; the condition is control, which nothing undefined may reach."""
    condition = g.scalar(e.condition, index)
    refuse_taint(g, condition, "the condition of if_then_else")
    if condition.constant is not None:
        return g.expr(e.then if condition.constant else e.otherwise, index)
    condition = g.atom(condition)
    then, then_lines, then_sites = g.write_aside(lambda: g.expr(e.then, index))
    otherwise, else_lines, else_sites = g.write_aside(lambda: g.expr(e.otherwise, index))
    if not then_lines and not else_lines:
        return [_pick(g, condition, a, b) for a, b in zip(then, otherwise, strict=True)]
    names = [g.name("t") for _ in then]
    taints = [
        g.name("t") if a.taint is not None or b.taint is not None else None
        for a, b in zip(then, otherwise, strict=True)
    ]
    for head, lines, sites, side in (
        (f"if {condition.code}:", then_lines, then_sites, then),
        ("else:", else_lines, else_sites, otherwise),
    ):
        g.emit(head)
        g.paste(lines, sites)
        g.depth += 1
        for name, taint, operand in zip(names, taints, side, strict=True):
            g.emit(f"{name} = {operand.code}")
            if taint is not None:
                g.emit(f"{taint} = {operand.taint}")
        g.depth -= 1
    joined = zip(names, taints, then, otherwise, strict=True)
    return [Operand(name, min(a.low, b.low), max(a.high, b.high), taint) for name, taint, a, b in joined]


def refuse_taint(g: Generator, operand: Operand, what: str) -> None:
    """A check that control or an index does not depend on an undefined value."""
    if operand.taint is not None:
        g.emit(f"if {operand.taint}: undefined({what!r})")


def write_cast(g: Generator, e: Cast, index: bool) -> Lanes:
    """Lane by lane."""
    exact = index and e.value.dtype.is_integer
    return [cast(g, o, e.value.dtype.element, e.dtype.element, index) for o in g.expr(e.value, exact)]


def write_reinterpret(g: Generator, e: Reinterpret, index: bool) -> Lanes:
    """Lane by lane."""
    target = g.constant(e.dtype.element)
    return [Operand(g.temp(f"float_of_bits({o.code}, {target})"), taint=o.taint) for o in g.expr(e.value, False)]


def write_ramp(g: Generator, e: Ramp, index: bool) -> Lanes:
    """`base + k * stride`, each in the base's type."""
    base, stride = g.atom(g.scalar(e.base, index)), g.atom(g.scalar(e.stride, index))
    taint, lanes = join_taints(base, stride), []
    for k in range(e.lanes):
        low, high = sorted((k * stride.low, k * stride.high))
        step = str(k * stride.low) if stride.constant is not None else f"{stride.code} * {k}"
        code = base.code if k == 0 else f"({base.code} + {step})"
        lanes.append(fit(g, Operand(code, base.low + low, base.high + high, taint), e.dtype.element, index))
    return lanes


def write_broadcast(g: Generator, e: Broadcast, index: bool) -> Lanes:
    """One value in every lane."""
    return [g.atom(g.scalar(e.value, index))] * e.lanes


def write_call(g: Generator, e: Call, index: bool) -> Lanes:
    """A math function, lane by lane."""
    arguments = [g.expr(a, index) for a in e.arguments]
    return [_call_lane(g, e, list(lane), index) for lane in zip(*arguments, strict=True)]


def _call_lane(g: Generator, e: Call, lane: Lanes, index: bool) -> Operand:
    dtype, taint = e.dtype.element, join_taints(*lane)
    if dtype.is_integer:
        (x,) = lane
        high = max(abs(x.low), abs(x.high))
        return fit(g, Operand(f"abs({x.code})", 0, high, taint), dtype, index)
    listed = ", ".join(o.code for o in lane)
    if e.function == "fma":
        return Operand(g.temp(f"fused_multiply_add({listed}, {g.constant(dtype)})"), taint=taint)
    if e.function in EXACT:
        return Operand(g.temp(f"exact_{e.function}({listed})"), taint=taint)
    return rounded(g, f"{'library' if dtype.bits == 64 else 'rounded'}_{e.function}({listed})", dtype, taint)


def write_undef(g: Generator, e: Undef, index: bool) -> Lanes:
    """A fresh arbitrary value a lane."""
    low, high = limits_of(e.dtype)
    element = g.constant(e.dtype.element)
    return [Operand(g.temp(f"undef({element})"), low, high, "True") for _ in range(e.dtype.lanes)]


def at_span(g: Generator, e: Expr) -> Site:
    """The site of an expression: its own place, where it has one."""
    return Site(e.span, g.site.block, g.site.names) if e.span is not None else g.site
