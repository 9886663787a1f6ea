"""Index arithmetic in a normal form: integer polynomials over atoms (names, floor divisions, XORs).

Equal forms are equal functions on the ranges of the atoms, so a proof by rewriting is one comparison of dictionaries.
Divisions are simplified by ranges: `(8*a + b) // 8` is `a` where `0 <= b < 8`. Ranges are numbers where the shape is
concrete; for symbols `is_nonnegative` proves inequalities between polynomials. Everything is exact or gives up. Part of
the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd

from layoutproof.verify.algebra.polynomials import (
    ONE,
    Atom,
    AtomKind,
    Bounded,
    GiveUp,
    Monomial,
    Poly,
    add,
    constant,
    constant_of,
    key_of,
    multiply,
    plus,
    power_of_two,
    quotient_of,
    scale,
    tuple_without,
)


class Ring(Bounded):
    """The atoms of one question, with their ranges. Atoms are made once: the same division twice is the same atom."""

    def __init__(self) -> None:
        super().__init__()
        self._interned: dict[object, int] = {}

    # Atoms

    def name(
        self,
        name: str,
        low: int | None,
        high: int | None,
        *,
        greatest: Poly | None = None,
        unknown: bool = False,
    ) -> Poly:
        """A new named atom within `[low, high]`, and at most `greatest` if there is one."""
        number = len(self.atoms)
        self.atoms.append(Atom(AtomKind.NAME, name, (), low, high, greatest, 1 << number if unknown else 0))
        return {(number,): 1}

    def below(self, name: str, extent: Poly, *, unknown: bool = False) -> Poly:
        """A new named atom within `[0, extent)`."""
        number = constant_of(extent)
        if number is not None:
            return self.name(name, 0, number - 1, unknown=unknown)
        return self.name(name, 0, None, greatest=plus(extent, -1), unknown=unknown)

    def _intern(self, key: object, kind: AtomKind, parts: tuple[Poly, ...], low: int | None, high: int | None) -> Poly:
        number = self._interned.get(key)
        if number is None:
            support = 0
            for part in parts:
                support |= self.support(part)
            number = self._interned[key] = len(self.atoms)
            self.atoms.append(Atom(kind, "", parts, low, high, support=support))
        return {(number,): 1}

    # Division

    def floor(self, numerator: Poly, divisor: Poly) -> Poly:
        """`numerator // divisor`. Raises GiveUp for a divisor whose sign is not known."""
        number = constant_of(divisor)
        if number is not None:
            if number == 0:
                raise GiveUp("a division by zero")
            return self.floor_by(numerator, number) if number > 0 else self.floor_by(scale(numerator, -1), -number)
        if self.is_nonnegative(plus(divisor, -1)):
            return self._floor_symbolic(numerator, divisor)
        if self.is_nonnegative(plus(scale(divisor, -1), -1)):
            return self._floor_symbolic(scale(numerator, -1), scale(divisor, -1))
        raise GiveUp("a division by something whose sign is not known")

    def remainder(self, numerator: Poly, divisor: Poly) -> Poly:
        """`numerator % divisor`, with the sign of the divisor."""
        number = constant_of(divisor)
        if number is not None and power_of_two(number):
            operands = self._xor_operands(numerator)
            if operands is not None:
                return self.xor([self.remainder(operand, divisor) for operand in operands])
        return add(numerator, multiply(divisor, self.floor(numerator, divisor)), -1)

    def floor_by(self, numerator: Poly, d: int) -> Poly:
        """`numerator // d` for a positive number `d`."""
        if d == 1 or not numerator:
            return numerator
        out: Poly = {}
        rest: Poly = {}
        for monomial, c in numerator.items():
            if monomial == ONE:
                q, r = divmod(c, d)
            else:
                q = c // d if c >= 0 else -(-c // d)
                r = c - q * d
            if q:
                out[monomial] = q
            if r:
                rest[monomial] = r
        if not rest or (len(rest) == 1 and ONE in rest):
            return out
        low, high = self.range_of(rest)
        if low is not None and high is not None and low // d == high // d:
            return plus(out, low // d)
        return add(out, self._floor_rest(rest, d))

    def _floor_rest(self, rest: Poly, d: int) -> Poly:
        """`rest // d` where no coefficient reaches `d` and the quotient is not constant."""
        offset = rest.get(ONE, 0)
        shared = [gcd(c, d) for m, c in rest.items() if m != ONE]
        for g in sorted(set(shared)):
            if g == 1:
                continue
            low_part = {m: c for m, c in rest.items() if m != ONE and c % g}
            if low_part:
                low_part = plus(low_part, offset % g)
                low, high = self.range_of(low_part)
                if low is None or high is None or low // g != high // g:
                    continue
                carry = low // g
            else:
                carry = 0
            high_part = {m: c // g for m, c in rest.items() if m != ONE and c % g == 0}
            return self.floor_by(plus(high_part, offset // g + carry), d // g)
        for monomial, c in rest.items():
            if c == 1 and len(monomial) == 1 and self.atoms[monomial[0]].kind is AtomKind.FLOOR:
                inner, inner_divisor = self.atoms[monomial[0]].parts
                a = constant_of(inner_divisor)
                if a is not None:
                    others = {m: k * a for m, k in rest.items() if m != monomial}
                    return self.floor_by(add(inner, others), a * d)
        if power_of_two(d):
            operands = self._xor_operands(rest)
            if operands is not None:
                return self.xor([self.floor_by(operand, d) for operand in operands])
        low, high = self.range_of(rest)
        ends = (None if low is None else low // d, None if high is None else high // d)
        return self._intern((key_of(rest), d), AtomKind.FLOOR, (rest, {ONE: d}), *ends)

    def _floor_symbolic(self, numerator: Poly, divisor: Poly) -> Poly:
        """`numerator // divisor` for a positive polynomial."""
        out: Poly = {}
        rest = dict(numerator)
        lead = max(divisor, key=lambda m: (len(m), m))
        factor = divisor[lead]
        for monomial in sorted(numerator, key=lambda m: (-len(m), m)):
            over = quotient_of(monomial, lead)
            current = rest.get(monomial, 0)
            if over is not None and current and current % factor == 0:
                part = {over: current // factor}
                out = add(out, part)
                rest = add(rest, multiply(part, divisor), -1)
        if not rest:
            return out
        if self.is_nonnegative(rest):
            if self.is_nonnegative(plus(add(divisor, rest, -1), -1)):
                return out
        elif self.is_nonnegative(plus(scale(rest, -1), -1)) and self.is_nonnegative(add(divisor, rest)):
            return plus(out, -1)
        factored = self._cancel(rest, divisor)
        if factored is not None:
            return add(out, factored)
        low, high = self.range_of(rest)
        least = 0 if low is not None and low >= 0 else low
        most = high if high is not None and high >= 0 else None if high is None else -1
        return add(out, self._intern((key_of(rest), key_of(divisor)), AtomKind.FLOOR, (rest, divisor), least, most))

    def exact_quotient(self, poly: Poly, divisor: Poly) -> Poly | None:
        """`poly / divisor` as a polynomial, None where it is not one."""
        lead = max(divisor, key=lambda m: (len(m), m))
        factor = divisor[lead]
        result: Poly = {}
        rest = poly
        while rest:
            monomial = max(rest, key=lambda m: (len(m), m))
            over = quotient_of(monomial, lead)
            if over is None or rest[monomial] % factor:
                return None
            part = {over: rest[monomial] // factor}
            result = add(result, part)
            rest = add(rest, multiply(part, divisor), -1)
        return result

    def _cancel(self, numerator: Poly, divisor: Poly) -> Poly | None:
        """The quotient without a common symbol, if it has one: `(s*H + L) // (s*D)` is `H // D` where `0 <= L < s`."""
        if len(numerator) == 1 and constant_of(numerator) is None:
            ((monomial, c),) = numerator.items()
            if c == 1 and len(monomial) == 1 and self.atoms[monomial[0]].kind is AtomKind.FLOOR:
                inner, inner_divisor = self.atoms[monomial[0]].parts
                return self.floor(inner, multiply(inner_divisor, divisor))
        common = set.intersection(*(set(m) for m in divisor)) if divisor else set()
        for symbol in sorted(common):
            high_part: Poly = {}
            low_part: Poly = {}
            for m, c in numerator.items():
                over = quotient_of(m, (symbol,))
                if over is None:
                    low_part[m] = c
                else:
                    high_part[over] = c
            unit: Poly = {(symbol,): 1}
            if not self.is_nonnegative(plus(unit, -1)) or not self.is_nonnegative(low_part):
                continue
            if self.is_nonnegative(plus(add(unit, low_part, -1), -1)):
                return self.floor(high_part, {tuple_without(m, symbol): c for m, c in divisor.items()})
        return None

    # Bits

    def _xor_operands(self, poly: Poly) -> tuple[Poly, ...] | None:
        """The operands where the polynomial is one XOR and nothing else."""
        if len(poly) != 1:
            return None
        ((monomial, c),) = poly.items()
        if c != 1 or len(monomial) != 1 or self.atoms[monomial[0]].kind is not AtomKind.XOR:
            return None
        return self.atoms[monomial[0]].parts

    def xor(self, operands: Iterable[Poly]) -> Poly:
        """The exclusive or of all operands, two's complement: equal operands cancel, separate bit fields come apart."""
        flat: dict[frozenset[tuple[Monomial, int]], Poly] = {}
        number = 0
        pending = list(operands)
        while pending:
            operand = pending.pop()
            value = constant_of(operand)
            inner = self._xor_operands(operand)
            if value is not None:
                number ^= value
            elif inner is not None:
                pending.extend(inner)
            else:
                key = key_of(operand)
                if key in flat:
                    del flat[key]
                else:
                    flat[key] = operand
        if not flat:
            return constant(number)
        if number < 0:  # x ^ -1 is -1 - x
            return add(constant(-1), self.xor([*flat.values(), constant(~number)]), -1)
        parts = list(flat.values())
        if len(parts) == 1 and number == 0:
            return parts[0]
        return self._xor_fields(parts, number)

    def _xor_fields(self, parts: list[Poly], number: int) -> Poly:
        for s in sorted({(c & -c).bit_length() - 1 for part in parts for m, c in part.items() if m != ONE} - {0}):
            split = [self._split_bits(part, s) for part in parts]
            if any(piece is None for piece in split) or not any(piece is not None and piece[1] for piece in split):
                continue
            pieces = [piece for piece in split if piece is not None]
            high = self.xor([*(h for h, _ in pieces), constant(number >> s)])
            low = self.xor([*(low_bits for _, low_bits in pieces), constant(number & ((1 << s) - 1))])
            return add(scale(high, 1 << s), low)
        common = min((c & -c).bit_length() - 1 for part in parts for c in part.values())
        if common > 0:
            low_bits = number & ((1 << common) - 1)
            inner = self.xor(
                [*({m: c >> common for m, c in part.items()} for part in parts), constant(number >> common)]
            )
            return plus(scale(inner, 1 << common), low_bits)
        ranges = [self.range_of(part) for part in parts]
        low_bound: int | None = 0
        high_bound: int | None = None
        if number < 0 or any(low is None or low < 0 for low, _ in ranges):
            low_bound = None
        elif all(high is not None for _, high in ranges):
            bits = max(number.bit_length(), *(high.bit_length() for _, high in ranges if high is not None))
            high_bound = (1 << bits) - 1
            if len(parts) == 1 and number == high_bound:
                return add(constant(number), parts[0], -1)
        if number:
            parts = [*parts, constant(number)]
        return self._intern(
            ("xor", frozenset(key_of(p) for p in parts)), AtomKind.XOR, tuple(parts), low_bound, high_bound
        )

    def _split_bits(self, part: Poly, s: int) -> tuple[Poly, Poly] | None:
        """`(high, low)` with `part = 2**s * high + low` and `0 <= low < 2**s`, where the terms fall apart that way."""
        size = 1 << s
        offset = part.get(ONE, 0)
        low_part = {m: c for m, c in part.items() if m != ONE and c % size}
        high_part = {m: c // size for m, c in part.items() if m != ONE and c % size == 0}
        low_part, high_part = plus(low_part, offset % size), plus(high_part, offset // size)
        low, high = self.range_of(low_part)
        if low is None or high is None or low < 0 or high >= size:
            return None
        return high_part, low_part

    # Substitution

    def substitute(self, poly: Poly, values: Mapping[int, Poly], done: dict[int, Poly] | None = None) -> Poly:
        """`poly` with named atoms replaced, divisions and XORs simplified again."""
        memo: dict[int, Poly] = {} if done is None else done
        result: Poly = {}
        changed = False
        for monomial, c in poly.items():
            product: Poly = {ONE: c}
            for number in monomial:
                value = self._substitute_atom(number, values, memo)
                changed = changed or value.get((number,)) != 1 or len(value) != 1
                product = multiply(product, value)
            result = add(result, product)
        return result if changed else poly

    def _substitute_atom(self, number: int, values: Mapping[int, Poly], memo: dict[int, Poly]) -> Poly:
        known = values.get(number)
        if known is not None:
            return known
        known = memo.get(number)
        if known is None:
            atom = self.atoms[number]
            parts = [self.substitute(part, values, memo) for part in atom.parts]
            if all(a is b for a, b in zip(parts, atom.parts, strict=True)):
                known = {(number,): 1}
            elif atom.kind is AtomKind.FLOOR:
                known = self.floor(parts[0], parts[1])
            else:
                known = self.xor(parts)
            memo[number] = known
        return known
