"""Mixed-radix digits of index arithmetic: `(n*H + h)*W + w` against an extent `N*H*W` is `n`, `h`, `w`.

If `index = q*f + r` with `0 <= r < f` and `0 <= q < F`, then `0 <= index < F*f`, and (q, r) is determined by the index.
So a flat access with symbolic extents, which integer sets cannot state, becomes one that they can. The digits are
proposals: each split is an identity of polynomials by construction, and the caller proves that the digits are in range.

Atoms are expressions here, compared by structure; `ring.py` numbers them and needs their ranges, which accesses in many
iteration domains do not have. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from layoutproof.ir.expr import Binary, Cast, Expr, IntImm, Var, const
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.verify.algebra.polynomials import add, quotient_of

_MAX_STEPS = 100
_MAX_TERMS = 1_000

# A product of atoms, each as often as it occurs, in a fixed order; the empty one is the constant's.
Monomial = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of monomials with nonzero integer coefficients. Atoms are expressions that are no sums or products."""

    terms: dict[Monomial, int]

    @staticmethod
    def of(expr: Expr) -> Polynomial:
        """The polynomial that `expr` is over the integers."""
        match expr:
            case IntImm(value=value):
                return Polynomial({(): value} if value else {})
            case Cast(value=value) if value.dtype.is_integer:
                return Polynomial.of(value)
            case Binary(op=BinaryOp.ADD, lhs=a, rhs=b):
                return Polynomial.of(a).plus(Polynomial.of(b))
            case Binary(op=BinaryOp.SUB, lhs=a, rhs=b):
                return Polynomial.of(a).plus(Polynomial.of(b), -1)
            case Binary(op=BinaryOp.MUL, lhs=a, rhs=b):
                left, right = Polynomial.of(a), Polynomial.of(b)
                too_many = len(left.terms) * len(right.terms) > _MAX_TERMS
                return Polynomial({(expr,): 1}) if too_many else left.times(right)
            case Binary(op=BinaryOp.SHL, lhs=a, rhs=IntImm(value=amount)) if 0 <= amount < 64:
                return Polynomial.of(a).times(Polynomial({(): 1 << amount}))
            case _:
                return Polynomial({(expr,): 1})

    def plus(self, other: Polynomial, factor: int = 1) -> Polynomial:
        """`self + factor * other`."""
        return Polynomial(add(self.terms, other.terms, factor))

    def times(self, other: Polynomial) -> Polynomial:
        """The product."""
        terms: dict[Monomial, int] = {}
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                monomial = _ordered((*a, *b))
                terms[monomial] = terms.get(monomial, 0) + x * y
        return Polynomial({m: c for m, c in terms.items() if c})

    @property
    def constant(self) -> int | None:
        """The value of a polynomial without atoms."""
        return None if any(self.terms) else self.terms.get((), 0)

    def to_expr(self) -> Expr:
        """An expression of this value, 64 bits wide so that no constant is too large; for provers, not for programs."""
        total: Expr | None = None
        for monomial, coefficient in self.terms.items():
            factors: list[Expr] = [*monomial] if monomial else [const(1)]
            term = factors[0]
            for factor in factors[1:]:
                term = term * factor
            term = term if coefficient == 1 else term * const(coefficient)
            total = term if total is None else total + term
        return total if total is not None else const(0)

    def divided(self, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Some `(q, r)` with `self = q * divisor + r`, r as simple as it gets."""
        number = divisor.constant
        if number is not None:
            return self._divided_by_number(number)
        leading = max(divisor.terms, key=lambda m: (len(m), [_key(a) for a in m]))
        scale = divisor.terms[leading]
        quotient, rest = Polynomial({}), self
        for _ in range(_MAX_STEPS):
            divisible = ((quotient_of(m, leading), c) for m, c in rest.terms.items() if c % scale == 0)
            step = next((Polynomial({m: c // scale}) for m, c in divisible if m is not None), None)
            if step is None:
                break
            quotient, rest = quotient.plus(step), rest.plus(step.times(divisor), -1)
        return quotient, rest

    def _divided_by_number(self, number: int) -> tuple[Polynomial, Polynomial]:
        quotient, rest = {}, {}
        for monomial, coefficient in self.terms.items():
            if not monomial:
                whole, left = divmod(coefficient, number) if number else (0, coefficient)
            elif number and coefficient % number == 0:
                whole, left = coefficient // number, 0
            else:
                whole, left = 0, coefficient
            if whole:
                quotient[monomial] = whole
            if left:
                rest[monomial] = left
        return Polynomial(quotient), Polynomial(rest)


def _ordered(atoms: Iterable[Expr]) -> Monomial:
    return tuple(sorted(atoms, key=_key))


def _key(atom: Expr) -> str:
    return atom.name if isinstance(atom, Var) else expr_text(atom, Style.PLAIN)


def factors_of(extent: Expr) -> list[Expr]:
    """The factors of a product, outermost first, constants next to each other as written."""
    if isinstance(extent, Cast) and extent.value.dtype.is_integer:
        return factors_of(extent.value)
    if isinstance(extent, Binary) and extent.op is BinaryOp.MUL:
        return [*factors_of(extent.lhs), *factors_of(extent.rhs)]
    return [extent]


def split_digits(index: Expr, radices: Sequence[Expr]) -> list[Expr]:
    """`index` as one digit per radix, as expressions; the first takes the rest."""
    rest = Polynomial.of(index)
    digits: list[Expr] = []
    for radix in reversed(radices[1:]):
        rest, digit = rest.divided(Polynomial.of(radix))
        digits.append(digit.to_expr())
    digits.append(rest.to_expr())
    return digits[::-1]


def stride_radices(indices: Iterable[Expr], extent: Expr, symbols: frozenset[Var]) -> list[Expr]:
    """Radices that strides of flat indices suggest: strides 3*C*K, C*K, K, 1 in C*K*9 are radices 3, 3, C, K.

    Empty if there are none. The stride of a variable is its coefficient, a polynomial over `symbols`.
    """
    strides: dict[frozenset[tuple[Monomial, int]], Polynomial] = {}
    for index in indices:
        for stride in _strides(Polynomial.of(index), symbols):
            strides.setdefault(frozenset(stride.terms.items()), stride)
    chain = [Polynomial({(): 1})]
    for stride in sorted(strides.values(), key=_weight):
        quotient, rest = stride.divided(chain[-1])
        if not rest.terms and quotient.constant != 1:
            chain.append(stride)
    first, rest = Polynomial.of(extent).divided(chain[-1])
    if len(chain) == 1 or rest.terms:
        return []
    radices = [first, *(b.divided(a)[0] for a, b in zip(chain[-2::-1], chain[:0:-1], strict=True))]
    return [radix.to_expr() for radix in radices]


def _strides(index: Polynomial, symbols: frozenset[Var]) -> Iterable[Polynomial]:
    """The coefficient of each product of atoms that are no symbols, without signs."""
    found: dict[Monomial, dict[Monomial, int]] = {}
    for monomial, coefficient in index.terms.items():
        constant = tuple(a for a in monomial if set(free_variables(a)) <= symbols)
        variable = tuple(a for a in monomial if not set(free_variables(a)) <= symbols)
        if variable:
            found.setdefault(variable, {})[constant] = coefficient
    for terms in found.values():
        sign = -1 if all(c < 0 for c in terms.values()) else 1
        yield Polynomial({m: sign * c for m, c in terms.items()})


def _weight(stride: Polynomial) -> tuple[int, int]:
    return max(len(m) for m in stride.terms), max(abs(c) for c in stride.terms.values())
