"""No operation without a result: divisors are not 0, quotients do not overflow, shifts stay below the width, floats fit the integers
they become.

That holds for code that leaves the right side of `and` and `or` out where the left one decides (C), and for code that evaluates both
sides always (TVM's for LLVM).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from layoutproof.ir import semantics
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, BinaryOp, Broadcast, Cast, Expr, FloatImm, IntImm
from layoutproof.ir.semantics import Trap
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import walk
from layoutproof.verify.claim import Claim, ClaimKind
from layoutproof.verify.facts import Facts, left_open, proved, refuted, unknown, values_text, visible
from layoutproof.verify.instances import Arithmetic, Dim, Program, Scene, can_trap
from layoutproof.verify.integers import same
from layoutproof.verify.search import Search, no_answer, nothing
from layoutproof.verify.spot import Place
from layoutproof.verify.verdict import Status, Verdict

_SHIFTS = (BinaryOp.SHL, BinaryOp.SHR)


_Key = tuple[Expr, Place]


def prove_no_trap(facts: Facts, before: Program | None = None) -> tuple[Verdict, ...]:
    """One verdict an operation that could trap, in the order of the text; none where no operation could.

    What the program `before` evaluates at the same instances, both sides of `and` and `or` taken, is no new trap there.
    """
    verdicts = _verdicts(facts, facts.program.arithmetic, None, eager=False)
    if facts.program.eager is facts.program.arithmetic:
        return tuple(verdicts.values())
    known = None if before is None else frozenset(_certain(before.eager))
    for key, verdict in _verdicts(facts, facts.program.eager, known, eager=True).items():
        lazily = verdicts.get(key)
        if lazily is None or lazily.status is Status.PROVED:
            verdicts[key] = verdict
    return tuple(verdicts.values())


def _verdicts(facts: Facts, all_: Iterable[Arithmetic], known: frozenset[_Certain] | None, *, eager: bool) -> dict[_Key, Verdict]:
    verdicts: dict[_Key, Verdict] = {}
    for arithmetic in all_:
        for expr, scene in _operations(arithmetic, eager=eager):
            if known is not None and not scene.depends_on_data(expr) and _as_certain(expr, scene) in known:
                continue
            key = (expr, arithmetic.place)
            verdict = _prove(facts, arithmetic, expr, scene)
            if eager and verdict.status is not Status.PROVED:
                # What is compiled to C does not trap, and the old program may do the same: nobody is proved wrong.
                reason = f"{verdict.reason}; code that evaluates both sides of `and` and `or`, as TVM's does: {_NESTED}"
                verdict = replace(verdict, status=Status.UNKNOWN, reason=reason, counterexample=None)
            if key not in verdicts or verdict.status is not Status.PROVED:
                verdicts[key] = verdict
    return verdicts


_NESTED = "a branch inside a branch, or T.if_then_else, keeps it away"
# An operation, and all that decides which of its instances there are.
_Certain = tuple[Expr, tuple[Dim, ...], frozenset[tuple[Expr, bool]]]


def _as_certain(expr: Expr, scene: Scene) -> _Certain:
    return expr, scene.dims, frozenset((guard.condition, guard.holds) for guard in scene.guards)


def _certain(all_: Iterable[Arithmetic]) -> Iterator[_Certain]:
    """The operations whose instances do not depend on data."""
    for arithmetic in all_:
        for expr, scene in _operations(arithmetic, eager=True):
            if not scene.depends_on_data(expr):
                yield _as_certain(expr, scene)


def _operations(arithmetic: Arithmetic, *, eager: bool) -> Iterator[tuple[Expr, Scene]]:
    """The operations that could trap."""
    parts = arithmetic.parts(eager=eager) if arithmetic.is_index else ((arithmetic.expr, arithmetic.scene),)
    yield from ((expr, scene) for expr, scene in parts if can_trap(expr) and not _plainly_safe(expr))


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
    watch = facts.watch()
    claim = Claim(ClaimKind.HAS_RESULT, f"{expr_text(expr, Style.PLAIN)} has a result", arithmetic.place)
    found = _find_trap(facts, expr, scene, arithmetic.is_index)
    if found.is_empty:
        return proved(claim, found.engine, watch)
    if found.point is None:
        return left_open(claim, found, watch)
    point = found.point
    if not facts.happens(scene, point) or not _traps(expr, point):
        return left_open(claim, found, watch)
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
    else:
        facts.excluded(scene, same(divisor, 0))
    dtype = divisor.dtype
    if dtype.min_int < 0 and -1 in interval:
        if _never_wraps(facts, dividend, scene) and facts.interval(dividend, scene).low > dtype.min_int:
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
