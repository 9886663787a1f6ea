"""No operation without a result: divisors are not 0, quotients do not overflow, shifts stay below the width, floats fit the integers
they become.
"""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.ir import semantics
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, BinaryOp, Broadcast, Cast, Expr, FloatImm, IntImm
from layoutproof.ir.semantics import Trap
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import walk
from layoutproof.verify.evidence import is_recording
from layoutproof.verify.facts import Facts, Stopwatch, proved, refuted, unknown, values_text, visible
from layoutproof.verify.instances import Arithmetic, Scene, can_trap
from layoutproof.verify.integers import same
from layoutproof.verify.search import Search, no_answer, nothing
from layoutproof.verify.verdict import Verdict

_SHIFTS = (BinaryOp.SHL, BinaryOp.SHR)


def prove_no_trap(facts: Facts) -> tuple[Verdict, ...]:
    """One verdict an operation that could trap, in the order of the text; none where no operation could."""
    verdicts: dict[tuple[Expr, str], Verdict] = {}
    for arithmetic in facts.program.arithmetic:
        for expr, scene in arithmetic.parts() if arithmetic.is_index else ((arithmetic.expr, arithmetic.scene),):
            key = (expr, arithmetic.place)
            if can_trap(expr) and not _plainly_safe(expr):
                verdict = _prove(facts, arithmetic, expr, scene)
                if key not in verdicts or verdict.status.value != "proved":
                    verdicts[key] = verdict
    return tuple(verdicts.values())


def _plainly_safe(expr: Expr) -> bool:
    match expr:
        case Binary(op=op, rhs=Broadcast(value=IntImm() as each), lhs=lhs) if lhs.dtype.is_integer:
            return 0 <= each.value < lhs.dtype.bits if op in _SHIFTS else each.value not in (0, -1)
        case Binary(op=op, rhs=IntImm(value=value)) if op in _SHIFTS:
            return 0 <= value < expr.dtype.bits
        case Binary(rhs=IntImm(value=value)):
            return value not in (0, -1)
        case _:
            return False


def _prove(facts: Facts, arithmetic: Arithmetic, expr: Expr, scene: Scene) -> Verdict:
    watch = Stopwatch()
    claim = f"{expr_text(expr, Style.PLAIN)} has a result ({arithmetic.place})"
    found = _find_trap(facts, expr, scene, arithmetic.is_index)
    if found.is_empty:
        return proved(claim, found.engine, watch)
    if found.point is None:
        return unknown(claim, found.engine, found.reason or "no answer", watch)
    point = found.point
    if not facts.happens(scene, point) or not _traps(expr, point):
        return unknown(claim, found.engine, found.reason or "the point that was found does not replay", watch)
    values = visible(scene, point, facts.program)
    text = f"{expr_text(expr, Style.PLAIN)} traps at {values_text(values)}"
    if scene.depends_on_data(*_deciding(expr, point)):
        return unknown(claim, found.engine, f"{text}, depending on data", watch)
    return refuted(claim, found.engine, {"expression": expr_text(expr, Style.PLAIN), "values": values}, text, watch)


def _find_trap(facts: Facts, expr: Expr, scene: Scene, is_index: bool) -> Search:
    match expr:
        case Binary(op=op, rhs=amount) if op in _SHIFTS:
            if not is_index and not _never_wraps(facts, amount, scene):
                return no_answer("intervals", "the amount depends on data")
            return facts.search_outside(scene, amount, 0, expr.dtype.bits - 1)
        case Binary(lhs=dividend, rhs=divisor):
            return _find_bad_division(facts, dividend, divisor, scene, is_index)
        case Cast(dtype=dtype, value=FloatImm(value=value)):
            try:
                semantics.float_to_int(value, dtype)
            except Trap as problem:
                return no_answer("structure", str(problem))
            return nothing("structure")
        case Cast(dtype=dtype, value=Cast(dtype=middle, value=inner)) if inner.dtype.is_integer and _never_wraps(facts, inner, scene):
            interval = facts.interval(inner, scene)
            # Rounding to a float is monotone, so the ends of the interval tell.
            ends = [semantics.int_to_float(x, middle) for x in (interval.low, interval.high)]
            if all(dtype.min_int <= x <= dtype.max_int for x in ends):
                return nothing("intervals")
    return no_answer("structure", "the value depends on data")


def _find_bad_division(facts: Facts, dividend: Expr, divisor: Expr, scene: Scene, is_index: bool) -> Search:
    if not is_index and not _never_wraps(facts, divisor, scene):
        return no_answer("intervals", "the divisor depends on data")
    interval = facts.interval(divisor, scene)
    engine = "intervals"
    if 0 in interval:
        found = facts.search(scene, same(divisor, 0))
        if not found.is_empty:
            return found
        engine = found.engine
    elif is_recording():
        facts.excluded(scene, same(divisor, 0))
    dtype = divisor.dtype
    if dtype.min_int < 0 and -1 in interval:
        if _never_wraps(facts, dividend, scene) and facts.interval(dividend, scene).low > dtype.min_int:
            if is_recording():
                facts.excluded(scene, same(dividend, IntImm(dtype.min_int, dtype)))
            return nothing(engine)
        if not is_index and not _never_wraps(facts, dividend, scene):
            return no_answer("intervals", "the dividend depends on data, the divisor may be -1")
        found = facts.search(scene, same(divisor, -1), same(dividend, IntImm(dtype.min_int, dtype)))
        if not found.is_empty:
            return found
        engine = found.engine
    return nothing(engine)


def _never_wraps(facts: Facts, expr: Expr, scene: Scene) -> bool:
    """Whether no part can leave its type, so that the integer that the expression looks like is the value it has."""
    parts = [node for node in walk(expr) if isinstance(node, Expr)]
    return all(node.dtype.is_integer and facts.interval(node, scene).fits(node.dtype) for node in parts)


def _deciding(expr: Expr, point: Mapping[str, int]) -> tuple[Expr, ...]:
    """The operands that make the operation trap at a point."""
    assert isinstance(expr, Binary)
    overflows = expr.op not in _SHIFTS and int(evaluate(expr.rhs, point)) == -1
    return (expr.lhs, expr.rhs) if overflows else (expr.rhs,)


def _traps(expr: Expr, point: Mapping[str, int]) -> bool:
    try:
        if isinstance(expr, Binary) and expr.op in _SHIFTS:
            return not 0 <= int(evaluate(expr.rhs, point)) < expr.dtype.bits
        if isinstance(expr, Binary):
            divisor = int(evaluate(expr.rhs, point))
            return divisor == 0 or (divisor == -1 and int(evaluate(expr.lhs, point)) == expr.dtype.min_int)
    except (Trap, KeyError, TypeError):
        return False
    return False
