"""Index arithmetic as isl functions and sets. Part of the trusted computing base.

Everything quasi-affine is exact: `+ - *` by constants, floor and truncated division and remainder by constants of
either sign, min, max, abs, choices, comparisons and logic, shifts by constants, and bitwise operations: with a constant
for any operand, with two operands where both are bounded (bit by bit, negative numbers in two's complement). The
meaning is that of `ir/evaluate.py`. Nothing is negated by set subtraction: `not` is pushed down to comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, IfThenElseExpr, IntImm, Logical, Not, Select, Var
from layoutproof.ir.interval import Interval, interval_of
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.semantics import Trap
from layoutproof.ir.visit import free_variables
from layoutproof.verify.isl.operations import bounds_of
from layoutproof.verify.isl.space import NamedSpace, integer, isl, value
from layoutproof.verify.program.questions import NotEncodable

MAX_BITS = 24
MAX_CASES = 16
"""So many values of one factor of a product are told apart, each of which makes it linear in the other."""
MAX_SQUARES = 128
"""So many where both factors are one: each is then a number."""
MAX_QUOTIENTS = 4
"""So many values of a quotient by something that is no constant are looked for, from 0 up and from -1 down."""


class NotQuasiAffine(NotEncodable):
    """An expression that integer sets cannot state."""


def try_constant(expr: Expr) -> int | None:
    """The value of an expression without variables; None for any other, and where it traps."""
    if isinstance(expr, IntImm):
        return expr.value
    if free_variables(expr):
        return None
    try:
        result = evaluate(expr, {})
    except (Trap, TypeError):
        return None
    return int(result)


_SETS: dict[CompareOp, Callable[[isl.PwAff, isl.PwAff], isl.Set]] = {
    CompareOp.EQ: lambda a, b: a.eq_set(b),
    CompareOp.NE: lambda a, b: a.ne_set(b),
    CompareOp.LT: lambda a, b: a.lt_set(b),
    CompareOp.LE: lambda a, b: a.le_set(b),
    CompareOp.GT: lambda a, b: a.gt_set(b),
    CompareOp.GE: lambda a, b: a.ge_set(b),
}


class Encoder:
    """Expressions over the names of one space.

    Bounds of bitwise operands and quotients are those on `domain` and in the numeric `ranges` of names; functions hold
    only there.
    """

    def __init__(
        self,
        space: NamedSpace,
        domain: isl.Set | None = None,
        ranges: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        self.space = space
        self.domain = domain
        self.ranges: Mapping[str, tuple[int, int]] = ranges if ranges is not None else {}
        self._done: dict[Expr, isl.PwAff] = {}

    def function(self, expr: Expr) -> isl.PwAff:
        """An integer expression as a function on the space. Raises NotQuasiAffine, naming the part."""
        known = self._done.get(expr)
        if known is None:
            encode = _FUNCTIONS.get(type(expr))
            if encode is None or not expr.dtype.is_integer or expr.dtype.lanes != 1:
                raise NotQuasiAffine(
                    expr, f"{type(expr).__name__} of type {expr.dtype} is not integer index arithmetic"
                )
            known = self._done[expr] = encode(self, expr)
        return known

    def set_of(self, expr: Expr, holds: bool = True) -> isl.Set:
        """The points where a truth value holds (or, with `holds` false, does not). Raises NotQuasiAffine."""
        encode = _CONDITIONS.get(type(expr))
        if encode is None or not expr.dtype.is_bool or expr.dtype.lanes != 1:
            raise NotQuasiAffine(expr, f"{type(expr).__name__} of type {expr.dtype} is not a condition on indices")
        return encode(self, expr, holds)

    def constant(self, number: int) -> isl.PwAff:
        """A constant function."""
        return isl.PwAff.from_aff(self.space.constant(number))

    def bounds(self, function: isl.PwAff) -> tuple[int, int] | None:
        """The least and the largest value on the domain, for every parameter, if there are both."""
        inside = function if self.domain is None else function.intersect_domain(self.domain)
        if inside.domain().is_empty():
            return (0, 0)
        return bounds_of(inside)

    # Arithmetic

    def scale(self, function: isl.PwAff, factor: int) -> isl.PwAff:
        """`factor * function`."""
        return function if factor == 1 else function.scale_val(value(self.space.ctx, factor))

    def floor_divide(self, function: isl.PwAff, divisor: int) -> isl.PwAff:
        """`function // divisor`, rounded down; `divisor` is not 0."""
        if divisor < 0:
            function, divisor = function.neg(), -divisor
        return function if divisor == 1 else function.scale_down_val(value(self.space.ctx, divisor)).floor()

    def floor_remainder(self, function: isl.PwAff, divisor: int) -> isl.PwAff:
        """`function % divisor`, with the sign of `divisor`."""
        return function.sub(self.scale(self.floor_divide(function, divisor), divisor))

    def truncate_divide(self, function: isl.PwAff, divisor: int) -> isl.PwAff:
        """`function / divisor` rounded to zero."""
        if divisor < 0:
            return self.truncate_divide(function, -divisor).neg()
        down = self.floor_divide(function, divisor).intersect_domain(function.nonneg_set())
        up = self.floor_divide(function.neg(), divisor).neg().intersect_domain(function.neg().pos_set())
        return down.union_add(up)

    def choose(self, where: isl.Set, then: isl.PwAff, elsewhere: isl.Set, otherwise: isl.PwAff) -> isl.PwAff:
        """`then` on `where`, `otherwise` on `elsewhere`; the two sets are disjoint."""
        return then.intersect_domain(where).union_add(otherwise.intersect_domain(elsewhere))

    def by_cases(self, factor: Expr, other: isl.PwAff, most: int = MAX_CASES) -> isl.PwAff | None:
        """`factor * other` if the factor has at most `most` values in the ranges; defined there only."""
        known = {v: Interval(*self.ranges[v.name]) for v in free_variables(factor) if v.name in self.ranges}
        found = interval_of(factor, known) if known else None
        if found is None or not found.high - found.low < most:
            return None
        function, result = self.function(factor), self.constant(0)
        for position, number in enumerate(range(int(found.low), int(found.high) + 1)):
            piece = self.scale(other, number).intersect_domain(function.eq_set(self.constant(number)))
            result = piece if position == 0 else result.union_add(piece)
        return result

    def by_values(self, expr: Expr, of: Callable[[int], isl.PwAff]) -> isl.PwAff | None:
        """`of` each value that an expression has, where it has at most a few, and none of them is refused by the
        caller beforehand; None where they are many, or not known.
        """
        values = self.values_of(expr)
        if values is None:
            return None
        function = self.function(expr)
        result: isl.PwAff | None = None
        for number in values:
            piece = of(number).intersect_domain(function.eq_set(self.constant(number)))
            result = piece if result is None else result.union_add(piece)
        return result

    def values_of(self, expr: Expr) -> range | None:
        """All values that an expression may have in the ranges of names, if they are few."""
        known = {v: Interval(*self.ranges[v.name]) for v in free_variables(expr) if v.name in self.ranges}
        found = interval_of(expr, known)
        return range(int(found.low), int(found.high) + 1) if found.high - found.low < MAX_CASES else None

    def by_pieces(self, factor: isl.PwAff, other: isl.PwAff) -> isl.PwAff | None:
        """`factor * other` if the factor is a number on each of few pieces, as a quotient with few values is."""
        if factor.n_piece() > MAX_CASES:
            return None
        result: isl.PwAff | None = None
        for domain, aff in factor.get_pieces():
            number = aff.get_constant_val()
            if not aff.is_cst() or not number.is_int():
                return None
            piece = self.scale(other, integer(number)).intersect_domain(domain)
            result = piece if result is None else result.union_add(piece)
        return result

    def quotient_by_cases(self, function: isl.PwAff, divisor: isl.PwAff) -> list[tuple[int, isl.Set]] | None:
        """`function // divisor` by its values, each with its part of the domain, if they are few and the divisor
        positive.
        """
        if self.domain is None or not self.domain.is_subset(divisor.pos_set()):
            return None
        rest, found = self.domain, list[tuple[int, isl.Set]]()
        if rest.is_empty():
            return [(0, rest)]
        for number in (*range(MAX_QUOTIENTS), *range(-1, -MAX_QUOTIENTS, -1)):
            least, beyond = self.scale(divisor, number), self.scale(divisor, number + 1)
            part = rest.intersect(function.ge_set(least)).intersect(function.lt_set(beyond))
            if part.is_empty():
                if number < 0:
                    break
                continue
            found.append((number, part))
            rest = rest.subtract(part)
            if rest.is_empty():
                return found
        return None

    # Bits

    def mask(self, function: isl.PwAff, mask: int) -> isl.PwAff:
        """`function & mask`, one term for each run of ones; right for negative numbers too."""
        if mask < 0:
            return function.sub(self.mask(function, ~mask))
        result = self.constant(0)
        low = 0
        while mask >> low:
            if not mask >> low & 1:
                low += 1
                continue
            length = 1
            while mask >> (low + length) & 1:
                length += 1
            run = self.floor_remainder(self.floor_divide(function, 1 << low), 1 << length)
            result = result.add(self.scale(run, 1 << low))
            low += length
        return result

    def bits(self, function: isl.PwAff, count: int) -> list[isl.PwAff]:
        """The lowest `count` bits, each 0 or 1."""
        return [self.floor_remainder(self.floor_divide(function, 1 << k), 2) for k in range(count)]

    def bitwise(self, expr: Binary, a: isl.PwAff, b: isl.PwAff) -> isl.PwAff:
        """`&`, `|` or `^` of two bounded operands, bit by bit. Raises NotQuasiAffine for a missing or wide bound."""
        both: list[tuple[int, int]] = []
        for operand, function in ((expr.lhs, a), (expr.rhs, b)):
            found = self.bounds(function)
            if found is None:
                raise NotQuasiAffine(
                    operand, f"an operand of `{expr.op}` has no bound, so it has no fixed number of bits"
                )
            both.append(found)
        width = max(max(low.bit_length() if low >= 0 else (~low).bit_length(), high.bit_length()) for low, high in both)
        if width > MAX_BITS:
            raise NotQuasiAffine(expr, f"`{expr.op}` of operands of {width} bits; at most {MAX_BITS} are taken apart")
        signed = any(low < 0 for low, _ in both)
        result = self.constant(0)
        for k, (x, y) in enumerate(zip(self.bits(a, width + signed), self.bits(b, width + signed), strict=True)):
            carry = self.floor_divide(x.add(y), 2)
            # Of two bits, a + b is 2 * (a & b) + (a ^ b).
            if expr.op is BinaryOp.BITAND:
                bit = carry
            else:
                bit = x.add(y).sub(carry if expr.op is BinaryOp.BITOR else self.scale(carry, 2))
            result = result.add(self.scale(bit, -(1 << k) if signed and k == width else 1 << k))
        return result


def _divisor(expr: Binary) -> int:
    divisor = try_constant(expr.rhs)
    if divisor is None:
        raise NotQuasiAffine(expr, f"the divisor of `{expr.op}` is not a constant")
    if divisor == 0:
        raise NotQuasiAffine(expr, f"`{expr.op}` by zero")
    return divisor


def _floordiv(enc: Encoder, expr: Binary) -> isl.PwAff:
    if try_constant(expr.rhs) is not None:
        return enc.floor_divide(enc.function(expr.lhs), _divisor(expr))
    split = _by_divisors(enc, expr, enc.floor_divide)
    return split if split is not None else _by_quotients(enc, expr, lambda number, *_: enc.constant(number))


def _by_divisors(enc: Encoder, expr: Binary, of: Callable[[isl.PwAff, int], isl.PwAff]) -> isl.PwAff | None:
    """A quotient or remainder by a divisor that has few values, none of them 0; else None."""
    values = enc.values_of(expr.rhs)
    if values is None or 0 in values:
        return None
    function = enc.function(expr.lhs)
    return enc.by_values(expr.rhs, lambda number: of(function, number))


def _floormod(enc: Encoder, expr: Binary) -> isl.PwAff:
    if try_constant(expr.rhs) is not None:
        return enc.floor_remainder(enc.function(expr.lhs), _divisor(expr))
    split = _by_divisors(enc, expr, enc.floor_remainder)
    if split is not None:
        return split
    return _by_quotients(enc, expr, lambda number, function, divisor: function.sub(enc.scale(divisor, number)))


def _by_quotients(enc: Encoder, expr: Binary, of: Callable[[int, isl.PwAff, isl.PwAff], isl.PwAff]) -> isl.PwAff:
    """A quotient or remainder by a divisor that is not constant, where the quotient has few values."""
    function, divisor = enc.function(expr.lhs), enc.function(expr.rhs)
    result: isl.PwAff | None = None
    for number, part in enc.quotient_by_cases(function, divisor) or ():
        piece = of(number, function, divisor).intersect_domain(part)
        result = piece if result is None else result.union_add(piece)
    if result is None:
        raise NotQuasiAffine(expr, f"the divisor of `{expr.op}` is not a constant")
    return result


def _multiply(enc: Encoder, expr: Binary) -> isl.PwAff:
    for factor, other in ((expr.rhs, expr.lhs), (expr.lhs, expr.rhs)):
        number = try_constant(factor)
        if number is not None:
            return enc.scale(enc.function(other), number)
    # A factor may be constant without being written so: `(i - i + 2) * j`.
    a, b = enc.function(expr.lhs), enc.function(expr.rhs)
    for factor_function, other_function in ((a, b), (b, a)):
        if factor_function.is_cst() and factor_function.n_piece() == 1:
            return enc.scale(other_function, integer(factor_function.min_val()))
    for factor, function, other_function in ((expr.lhs, a, b), (expr.rhs, b, a)):
        product = enc.by_cases(factor, other_function, MAX_SQUARES if expr.lhs == expr.rhs else MAX_CASES)
        if product is None:
            product = enc.by_pieces(function, other_function)
        if product is not None:
            return product
    raise NotQuasiAffine(expr, "a product of two variables")


def _truncmod(enc: Encoder, expr: Binary) -> isl.PwAff:
    function, divisor = enc.function(expr.lhs), _divisor(expr)
    return function.sub(enc.scale(enc.truncate_divide(function, divisor), divisor))


def _shift(enc: Encoder, expr: Binary) -> isl.PwAff:
    amounts = enc.values_of(expr.rhs)
    if amounts is None or not (amounts and 0 <= amounts[0] and amounts[-1] <= 62):
        raise NotQuasiAffine(expr, "a shift whose amount has not few values, all from 0 to 62")
    function = enc.function(expr.lhs)

    def shifted(amount: int) -> isl.PwAff:
        power = 1 << amount
        return enc.scale(function, power) if expr.op is BinaryOp.SHL else enc.floor_divide(function, power)

    split = shifted(amounts[0]) if len(amounts) == 1 else enc.by_values(expr.rhs, shifted)
    assert split is not None
    return split


def _bitwise(enc: Encoder, expr: Binary) -> isl.PwAff:
    for mask_expr, other in ((expr.rhs, expr.lhs), (expr.lhs, expr.rhs)):
        mask = try_constant(mask_expr)
        if mask is None:
            continue
        function = enc.function(other)
        common = enc.mask(function, mask)
        if expr.op is BinaryOp.BITAND:
            return common
        total = function.add(enc.constant(mask))
        return total.sub(common if expr.op is BinaryOp.BITOR else enc.scale(common, 2))
    return enc.bitwise(expr, enc.function(expr.lhs), enc.function(expr.rhs))


_BINARY: dict[BinaryOp, Callable[[Encoder, Binary], isl.PwAff]] = {
    BinaryOp.ADD: lambda enc, e: enc.function(e.lhs).add(enc.function(e.rhs)),
    BinaryOp.SUB: lambda enc, e: enc.function(e.lhs).sub(enc.function(e.rhs)),
    BinaryOp.MUL: _multiply,
    BinaryOp.FLOORDIV: _floordiv,
    BinaryOp.FLOORMOD: _floormod,
    BinaryOp.TRUNCDIV: lambda enc, e: enc.truncate_divide(enc.function(e.lhs), _divisor(e)),
    BinaryOp.TRUNCMOD: _truncmod,
    BinaryOp.MIN: lambda enc, e: enc.function(e.lhs).min(enc.function(e.rhs)),
    BinaryOp.MAX: lambda enc, e: enc.function(e.lhs).max(enc.function(e.rhs)),
    BinaryOp.BITAND: _bitwise,
    BinaryOp.BITOR: _bitwise,
    BinaryOp.BITXOR: _bitwise,
    BinaryOp.SHL: _shift,
    BinaryOp.SHR: _shift,
}


def _binary(enc: Encoder, expr: Binary) -> isl.PwAff:
    encode = _BINARY.get(expr.op)
    if encode is None:
        raise NotQuasiAffine(expr, f"`{expr.op}` is not integer index arithmetic")
    return encode(enc, expr)


def _variable(enc: Encoder, expr: Var) -> isl.PwAff:
    if expr.name not in enc.space:
        raise NotQuasiAffine(expr, f"{expr.name} is neither an index nor a symbol of the shape")
    return isl.PwAff.from_aff(enc.space.variable(expr.name))


def _choice(enc: Encoder, expr: Select | IfThenElseExpr) -> isl.PwAff:
    condition = expr.condition
    return enc.choose(
        enc.set_of(condition), enc.function(expr.then), enc.set_of(condition, False), enc.function(expr.otherwise)
    )


def _cast(enc: Encoder, expr: Cast) -> isl.PwAff:
    # Between integer widths index arithmetic is over the integers; that values fit is proved where the widths matter.
    if expr.value.dtype.is_bool:
        return enc.choose(enc.set_of(expr.value), enc.constant(1), enc.set_of(expr.value, False), enc.constant(0))
    return enc.function(expr.value)


def _call(enc: Encoder, expr: Call) -> isl.PwAff:
    if expr.function != "abs":
        raise NotQuasiAffine(expr, f"{expr.function} is not integer index arithmetic")
    function = enc.function(expr.arguments[0])
    return function.max(function.neg())


_FUNCTIONS: dict[type[Expr], Callable[[Encoder, Any], isl.PwAff]] = {
    IntImm: lambda enc, e: enc.constant(e.value),
    Var: _variable,
    Binary: _binary,
    Select: _choice,
    IfThenElseExpr: _choice,
    Cast: _cast,
    Call: _call,
}


def _compare(enc: Encoder, expr: Compare, holds: bool) -> isl.Set:
    op = expr.op if holds else expr.op.negated
    if expr.lhs.dtype.is_bool and op in (CompareOp.EQ, CompareOp.NE):
        same = op is CompareOp.EQ
        both = enc.set_of(expr.lhs).intersect(enc.set_of(expr.rhs, same))
        return both.union(enc.set_of(expr.lhs, False).intersect(enc.set_of(expr.rhs, not same)))
    return _SETS[op](enc.function(expr.lhs), enc.function(expr.rhs))


def _logical(enc: Encoder, expr: Logical, holds: bool) -> isl.Set:
    a, b = enc.set_of(expr.lhs, holds), enc.set_of(expr.rhs, holds)
    return a.intersect(b) if (expr.op is LogicalOp.AND) == holds else a.union(b)


def _condition_choice(enc: Encoder, expr: Select | IfThenElseExpr, holds: bool) -> isl.Set:
    then = enc.set_of(expr.condition).intersect(enc.set_of(expr.then, holds))
    return then.union(enc.set_of(expr.condition, False).intersect(enc.set_of(expr.otherwise, holds)))


def _condition_cast(enc: Encoder, expr: Cast, holds: bool) -> isl.Set:
    if expr.value.dtype.is_bool:
        return enc.set_of(expr.value, holds)
    return _SETS[CompareOp.NE if holds else CompareOp.EQ](enc.function(expr.value), enc.constant(0))


_CONDITIONS: dict[type[Expr], Callable[[Encoder, Any, bool], isl.Set]] = {
    IntImm: lambda enc, e, holds: enc.space.universe() if bool(e.value) == holds else enc.space.empty(),
    Compare: _compare,
    Logical: _logical,
    Not: lambda enc, e, holds: enc.set_of(e.operand, not holds),
    Select: _condition_choice,
    IfThenElseExpr: _condition_choice,
    Cast: _condition_cast,
}
