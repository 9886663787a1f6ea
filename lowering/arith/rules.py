"""The simplifier's rewrite rules, as data, and how their patterns are matched.

Each rule is a lemma that the tests prove. Index rules are about mathematical integers and are used where index
arithmetic is known to fit its type. Value rules hold for values as stored: integers that wrap, floats bit for bit (all
NaNs are equal). `x + 0.0` is not a rule: it turns -0.0 into +0.0.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields

from layoutproof.ir.dtype import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
)
from layoutproof.ir.expr import (
    FALSE,
    TRUE,
    Binary,
    Compare,
    Expr,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Select,
    Var,
    const,
    equal,
    logical_and,
    logical_or,
    widen,
)
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.rewrite import Domain, Rule
from layoutproof.ir.visit import free_variables

_a, _b, _c, _r, _t = (Var(name) for name in "abcrt")
_p, _q = Var("p", BOOL), Var("q", BOOL)


def _truncdiv(a: Expr, b: Expr) -> Expr:
    return Binary(BinaryOp.TRUNCDIV, a, b)


def _truncmod(a: Expr, b: Expr) -> Expr:
    return Binary(BinaryOp.TRUNCMOD, a, b)


def _both(*terms: Expr) -> Expr:
    return logical_and(*terms)


def _line(depth: int) -> int:
    """The line from which the caller was called, `depth` frames up."""
    frame = inspect.currentframe()
    for _ in range(depth + 1):
        frame = frame.f_back if frame is not None else None
    return frame.f_lineno if frame is not None else 0


def _rule(
    name: str, lhs: Expr, rhs: Expr, condition: Expr = TRUE, domain: Domain = Domain.INDEX, depth: int = 1
) -> Rule:
    found: dict[Var, None] = {}
    for part in (lhs, rhs, condition):
        found.update(dict.fromkeys(free_variables(part)))
    return Rule(name, tuple(found), lhs, rhs, condition, domain, f"lowering/arith/rules.py:{_line(depth)}")


# The dividend is written `c*a + r` with what the divisor divides in `a`: the simplifier splits its normal form that
# way.
FLOORDIV_RULES: tuple[Rule, ...] = (
    _rule("floordiv-by-one", _a // 1, _a),
    _rule("floordiv-of-multiple", (_a * _c + _r) // _c, _a, _both(const(0) <= _r, _r < _c)),
    _rule("floordiv-split", (_a * _c + _r) // _c, _a + _r // _c, _c > 0),
)
FLOORMOD_RULES: tuple[Rule, ...] = (
    _rule("floormod-by-one", _a % 1, const(0)),
    _rule("floormod-of-multiple", (_a * _c + _r) % _c, _r, _both(const(0) <= _r, _r < _c)),
    _rule("floormod-split", (_a * _c + _r) % _c, _r % _c, _c > 0),
)
KNOWN_RULES: tuple[Rule, ...] = (_rule("known-value", _a, _c, equal(_a, _c)),)
# The divisor is a multiple `b*c`; the dividend's other terms are multiples of `c` up to a rest below `c`.
FLOORDIV_FACTOR_RULES: tuple[Rule, ...] = (
    _rule("floordiv-by-factor", (_a * _c + _r) // (_b * _c), _a // _b, _both(const(0) <= _r, _r < _c, _b > 0)),
)
FLOORMOD_FACTOR_RULES: tuple[Rule, ...] = (
    _rule(
        "floormod-by-factor", (_a * _c + _r) % (_b * _c), (_a % _b) * _c + _r, _both(const(0) <= _r, _r < _c, _b > 0)
    ),
)
NESTED_RULES: tuple[Rule, ...] = (
    _rule("floordiv-of-floordiv", (_a // _b) // _c, _a // (_b * _c), _both(_b > 0, _c > 0)),
    _rule("floordiv-of-floormod", (_a % (_b * _c)) // _c, (_a // _c) % _b, _both(_b > 0, _c > 0)),
    _rule("floormod-of-floormod", (_a % (_b * _c)) % _c, _a % _c, _both(_b > 0, _c > 0)),
)
# Two terms of one sum. The last two join the digits of a mixed-radix number.
SUM_RULES: tuple[Rule, ...] = (
    _rule("quotient-and-remainder", (_a // _c) * _c + _a % _c, _a, _c > 0),
    _rule("join-digits", (_a // (_b * _c)) * _b + (_a // _c) % _b, _a // _c, _both(_b > 0, _c > 0)),
    _rule("join-remainders", ((_a // _c) % _b) * _c + _a % _c, _a % (_b * _c), _both(_b > 0, _c > 0)),
)
TRUNCATING_RULES: tuple[Rule, ...] = (
    _rule("truncdiv-of-nonnegative", _truncdiv(_a, _c), _a // _c, _both(const(0) <= _a, _c > 0)),
    _rule("truncmod-of-nonnegative", _truncmod(_a, _c), _a % _c, _both(const(0) <= _a, _c > 0)),
)
EXTREME_RULES: tuple[Rule, ...] = (
    _rule("min-left", Binary(BinaryOp.MIN, _a, _b), _a, _a <= _b),
    _rule("min-right", Binary(BinaryOp.MIN, _a, _b), _b, _b <= _a),
    _rule("max-left", Binary(BinaryOp.MAX, _a, _b), _a, _b <= _a),
    _rule("max-right", Binary(BinaryOp.MAX, _a, _b), _b, _a <= _b),
)


def _decided(op: CompareOp, truth: Expr, condition: Expr) -> Rule:
    word = "true" if truth == TRUE else "false"
    return _rule(f"compare-{op.name.lower()}-{word}", Compare(op, _a, _b), truth, condition, depth=2)


COMPARE_RULES: tuple[Rule, ...] = (
    _decided(CompareOp.LT, TRUE, _a < _b),
    _decided(CompareOp.LT, FALSE, _a >= _b),
    _decided(CompareOp.LE, TRUE, _a <= _b),
    _decided(CompareOp.LE, FALSE, _a > _b),
    _decided(CompareOp.GT, TRUE, _a > _b),
    _decided(CompareOp.GT, FALSE, _a <= _b),
    _decided(CompareOp.GE, TRUE, _a >= _b),
    _decided(CompareOp.GE, FALSE, _a < _b),
    _decided(CompareOp.EQ, TRUE, equal(_a, _b)),
    _decided(CompareOp.EQ, FALSE, logical_or(_a < _b, _a > _b)),
    _decided(CompareOp.NE, TRUE, logical_or(_a < _b, _a > _b)),
    _decided(CompareOp.NE, FALSE, equal(_a, _b)),
)

TRUTH_RULES: tuple[Rule, ...] = (
    _rule("and-true-left", logical_and(TRUE, _p), _p, domain=Domain.VALUE),
    _rule("and-true-right", logical_and(_p, TRUE), _p, domain=Domain.VALUE),
    _rule("and-false-left", logical_and(FALSE, _p), FALSE, domain=Domain.VALUE),
    _rule("and-false-right", logical_and(_p, FALSE), FALSE, domain=Domain.VALUE),
    _rule("and-same", logical_and(_p, _p), _p, domain=Domain.VALUE),
    _rule("or-true-left", logical_or(TRUE, _p), TRUE, domain=Domain.VALUE),
    _rule("or-true-right", logical_or(_p, TRUE), TRUE, domain=Domain.VALUE),
    _rule("or-false-left", logical_or(FALSE, _p), _p, domain=Domain.VALUE),
    _rule("or-false-right", logical_or(_p, FALSE), _p, domain=Domain.VALUE),
    _rule("or-same", logical_or(_p, _p), _p, domain=Domain.VALUE),
    _rule("not-true", Not(TRUE), FALSE, domain=Domain.VALUE),
    _rule("not-false", Not(FALSE), TRUE, domain=Domain.VALUE),
    _rule("not-not", Not(Not(_p)), _p, domain=Domain.VALUE),
    _rule("not-and-of-nots", Not(logical_and(Not(_p), Not(_q))), logical_or(_p, _q), domain=Domain.VALUE),
    _rule("not-or-of-nots", Not(logical_or(Not(_p), Not(_q))), logical_and(_p, _q), domain=Domain.VALUE),
)

INTEGER_TYPES = (INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64)
FLOAT_TYPES = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64)


def _choices(dtype: DType) -> tuple[Rule, ...]:
    x, y = Var("x", dtype), Var("y", dtype)
    return (
        _rule(f"select-true-{dtype}", Select(TRUE, x, y), x, domain=Domain.VALUE),
        _rule(f"select-false-{dtype}", Select(FALSE, x, y), y, domain=Domain.VALUE),
        _rule(f"select-same-{dtype}", Select(_p, x, x), x, domain=Domain.VALUE),
        _rule(f"if-true-{dtype}", IfThenElseExpr(TRUE, x, y), x, domain=Domain.VALUE),
        _rule(f"if-false-{dtype}", IfThenElseExpr(FALSE, x, y), y, domain=Domain.VALUE),
        _rule(f"if-same-{dtype}", IfThenElseExpr(_p, x, x), x, domain=Domain.VALUE),
    )


def _integer_values(dtype: DType) -> tuple[Rule, ...]:
    x = Var("x", dtype)
    return (
        _rule(f"add-zero-{dtype}", x + 0, x, domain=Domain.VALUE),
        _rule(f"zero-add-{dtype}", 0 + x, x, domain=Domain.VALUE),
        _rule(f"sub-zero-{dtype}", x - 0, x, domain=Domain.VALUE),
        _rule(f"mul-one-{dtype}", x * 1, x, domain=Domain.VALUE),
        _rule(f"one-mul-{dtype}", 1 * x, x, domain=Domain.VALUE),
    )


def _float_values(dtype: DType) -> tuple[Rule, ...]:
    x = Var("x", dtype)
    return (
        _rule(f"mul-one-{dtype}", x * 1.0, x, domain=Domain.VALUE),
        _rule(f"one-mul-{dtype}", 1.0 * x, x, domain=Domain.VALUE),
        _rule(f"div-one-{dtype}", x / 1.0, x, domain=Domain.VALUE),
        _rule(f"sub-zero-{dtype}", x - 0.0, x, domain=Domain.VALUE),
        _rule(f"add-minus-zero-{dtype}", x + const(-0.0, dtype), x, domain=Domain.VALUE),
    )


VALUE_RULES: Mapping[DType, tuple[Rule, ...]] = {
    BOOL: (*TRUTH_RULES, *_choices(BOOL)),
    **{dtype: (*_choices(dtype), *_integer_values(dtype)) for dtype in INTEGER_TYPES},
    **{dtype: (*_choices(dtype), *_float_values(dtype)) for dtype in FLOAT_TYPES},
}

INDEX_RULES: tuple[Rule, ...] = (
    *KNOWN_RULES,
    *FLOORDIV_RULES,
    *FLOORMOD_RULES,
    *FLOORDIV_FACTOR_RULES,
    *FLOORMOD_FACTOR_RULES,
    *NESTED_RULES,
    *SUM_RULES,
    *TRUNCATING_RULES,
    *EXTREME_RULES,
    *COMPARE_RULES,
)

ALL_RULES: tuple[Rule, ...] = (*INDEX_RULES, *(rule for rules in VALUE_RULES.values() for rule in rules))


Binding = Mapping[str, Expr]


def try_match(rule: Rule, expr: Expr) -> dict[str, Expr] | None:
    """The values of the rule's variables in `expr`, types included; None if the left side has another form."""
    binding: dict[str, Expr] = {}
    return binding if _matches(rule.lhs, expr, {v.name for v in rule.variables}, binding) else None


def _matches(pattern: Node, node: Node, variables: set[str], binding: dict[str, Expr]) -> bool:
    if isinstance(pattern, Var) and pattern.name in variables:
        if not isinstance(node, Expr) or node.dtype != pattern.dtype:
            return False
        return binding.setdefault(pattern.name, node) == node
    if type(pattern) is not type(node):
        return False
    for field in fields(pattern):
        if not field.compare:
            continue
        wanted, found = getattr(pattern, field.name), getattr(node, field.name)
        if isinstance(wanted, Node):
            if not isinstance(found, Node) or not _matches(wanted, found, variables, binding):
                return False
        elif wanted != found:
            return False
    # A float constant's fields compare as numbers, under which 0.0 is -0.0; its own equality does not.
    return bool(pattern == node) if not _has_children(pattern) else True


def _has_children(node: Node) -> bool:
    return any(isinstance(getattr(node, f.name), Node) for f in fields(node) if f.compare)


def instantiate(expr: Expr, binding: Binding, dtype: DType) -> Expr:
    """A side of an index rule with variables and placeholders replaced. Raises ValueError for a constant outside
    `dtype`.
    """
    if isinstance(expr, Var):
        return widen(binding[expr.name], dtype) if expr.dtype == INT32 else binding[expr.name]
    if isinstance(expr, IntImm):
        return const(expr.value, dtype) if expr.dtype == INT32 else expr
    if isinstance(expr, Binary):
        return Binary(expr.op, instantiate(expr.lhs, binding, dtype), instantiate(expr.rhs, binding, dtype))
    if isinstance(expr, Compare):
        return Compare(expr.op, instantiate(expr.lhs, binding, dtype), instantiate(expr.rhs, binding, dtype))
    if isinstance(expr, Logical):
        return Logical(expr.op, instantiate(expr.lhs, binding, dtype), instantiate(expr.rhs, binding, dtype))
    if isinstance(expr, Not):
        return Not(instantiate(expr.operand, binding, dtype))
    raise TypeError(f"{type(expr).__name__} in an index rule")


def replaced(rule: Rule, binding: Binding) -> Expr:
    """The right side of a value rule for a binding of `try_match`."""
    return _substituted(rule.rhs, binding, {v.name for v in rule.variables})


def _substituted(expr: Expr, binding: Binding, variables: set[str]) -> Expr:
    if isinstance(expr, Var) and expr.name in variables:
        return binding[expr.name]
    if isinstance(expr, Logical):
        return Logical(expr.op, _substituted(expr.lhs, binding, variables), _substituted(expr.rhs, binding, variables))
    return expr
