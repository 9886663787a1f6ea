"""isl functions, sets and relations as short expressions: floor divisions by constants, `%`, comparisons. What decides
encodes each again and compares, so nothing rests on the decoder.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.ir.expr import FALSE, TRUE, Expr, Var, compare, const, logical_and, logical_or
from layoutproof.ir.operators import CompareOp
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.isl.space import NamedSpace, integer, isl

# A linear form: a coefficient for each expression that is not a sum, and a constant.
Terms = dict[Expr, int]


class Decoder:
    """Objects over one space as expressions over `Var(name)`, or over `variables` by name."""

    def __init__(self, space: NamedSpace, variables: dict[str, Expr] | None = None) -> None:
        self.space = space
        self._variables = variables if variables is not None else {}

    def _variable(self, kind: isl.dim_type, position: int) -> Expr:
        name = self.space.name_at(kind, position)
        return self._variables.get(name, Var(name))

    def _linear(self, aff: isl.Aff) -> tuple[Terms, int, int]:
        """`aff` as terms, constant and common denominator."""
        denominator = integer(aff.get_denominator_val())
        terms: Terms = {}
        for kind in (isl.dim_type.in_, isl.dim_type.param):
            for position in range(aff.dim(kind)):
                factor = integer(aff.get_coefficient_val(kind, position).mul(aff.get_denominator_val()))
                if factor:
                    expr = self._variable(kind, position)
                    terms[expr] = terms.get(expr, 0) + factor
        constant = integer(aff.get_constant_val().mul(aff.get_denominator_val()))
        for position in range(aff.dim(isl.dim_type.div)):
            factor = integer(aff.get_coefficient_val(isl.dim_type.div, position).mul(aff.get_denominator_val()))
            if factor:
                constant += self._add_division(terms, factor, aff.get_div(position))
        return terms, constant, denominator

    def _add_division(self, terms: Terms, factor: int, inner: isl.Aff) -> int:
        """Add `factor * floor(inner)` to the terms, as a remainder where possible; returns the constant this adds."""
        numerator, constant, divisor = self._linear(inner)
        if divisor == 1:
            for expr, coefficient in numerator.items():
                terms[expr] = terms.get(expr, 0) + factor * coefficient
            return factor * constant
        times, rest = divmod(-factor, divisor)
        if (
            rest == 0
            and numerator
            and all(terms.get(expr) == times * coefficient for expr, coefficient in numerator.items())
        ):
            for expr in numerator:
                del terms[expr]
            remainder = sum_of(numerator, constant) % divisor
            terms[remainder] = terms.get(remainder, 0) + times
            return -times * constant
        quotient = sum_of(numerator, constant) // divisor
        terms[quotient] = terms.get(quotient, 0) + factor
        return 0

    def affine(self, aff: isl.Aff) -> Expr:
        """An affine function with floor divisions; a fraction that is whole on its domain is an exact division."""
        terms, constant, denominator = self._linear(aff)
        total = sum_of(terms, constant)
        return total if denominator == 1 else total // denominator

    def condition(self, where: isl.Set) -> Expr:
        """A set as a condition: or of and of comparisons."""
        if where.is_empty():
            return FALSE
        return logical_or(*(self._basic(piece) for piece in where.compute_divs().get_basic_sets()))

    def _basic(self, piece: isl.BasicSet) -> Expr:
        facts = []
        for constraint in piece.get_constraints():
            if constraint.is_div_constraint():
                continue
            terms, constant, _ = self._linear(constraint.get_aff())
            facts.append(comparison(CompareOp.EQ if constraint.is_equality() else CompareOp.GE, terms, constant))
        return logical_and(*facts) if facts else TRUE


def sum_of(terms: Terms, constant: int) -> Expr:
    """The sum as an expression: positive terms first, no term `0`, no factor `1`."""
    result: Expr | None = None
    for expr, factor in sorted(terms.items(), key=lambda item: item[1] < 0):
        if factor == 0:
            continue
        size = abs(factor)
        term = expr if size == 1 else size * expr
        if result is None:
            result = term if factor > 0 else term * -1 if size == 1 else factor * expr
        else:
            result = result + term if factor > 0 else result - term
    if result is None:
        return const(constant)
    return result if constant == 0 else result + constant if constant > 0 else result - -constant


def comparison(op: CompareOp, terms: Terms, constant: int) -> Expr:
    """`sum(terms) + constant op 0` with every term on the side where it is positive. `op` is `==` or `>=`."""
    left = {expr: factor for expr, factor in terms.items() if factor > 0}
    right = {expr: -factor for expr, factor in terms.items() if factor < 0}
    if not left and right and op is CompareOp.GE:
        return compare(CompareOp.LE, sum_of(right, 0), const(constant))
    if not left:
        left, right, constant = right, left, -constant
    if constant > 0 and right:
        return compare(op, sum_of(left, constant), sum_of(right, 0))
    return compare(op, sum_of(left, 0), sum_of(right, -constant))


def pieces_of(function: isl.PwMultiAff) -> Sequence[tuple[isl.Set, isl.MultiAff]]:
    """The pieces of a piecewise function, domains disjoint, those with one expression joined."""
    found: list[tuple[isl.Set, isl.MultiAff]] = []

    def join(domain: isl.Set, piece: isl.MultiAff) -> None:
        for k, (known, other) in enumerate(found):
            if other.plain_is_equal(piece):
                found[k] = known.union(domain), other
                return
        found.append((domain, piece))

    function.foreach_piece(join)
    return [(coalesced(domain), piece) for domain, piece in found]
