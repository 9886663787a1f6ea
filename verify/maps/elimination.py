"""Inverts index equations `output(x) = p` by elimination: a proposal, which its user checks.

Unknowns are the inputs and the divisions that occur in the outputs. Linear elimination undoes splits, skews and
permutations; a sum whose small part fits below the factor of its large part comes apart by `//` and `%` (fusions, mixed
radix); an equation modulo a number gives a congruence, and congruences combine (rotations, multiplications, residues).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd

from layoutproof.verify.algebra.polynomials import (
    ONE,
    AtomKind,
    GiveUp,
    Monomial,
    Poly,
    add,
    constant,
    constant_of,
    multiply,
    plus,
    scale,
)
from layoutproof.verify.algebra.ring import Ring

MAX_ROUNDS = 24


@dataclass(slots=True)
class Equation:
    """`left(unknowns) = right(cells)`."""

    left: Poly
    right: Poly


@dataclass(slots=True)
class Congruence:
    """`x % modulus == value % modulus`."""

    modulus: int
    value: Poly


@dataclass(slots=True)
class Solver:
    """One elimination. `known` maps unknown atoms (names, divisions) to forms over cells and other unknowns."""

    ring: Ring
    equations: list[Equation]
    known: dict[int, Poly] = field(default_factory=dict)
    congruences: dict[int, Congruence] = field(default_factory=dict)

    def solve(self, unknowns: list[int]) -> dict[int, Poly] | None:
        """A form over cells for every unknown name, if elimination finds them."""
        for _ in range(MAX_ROUNDS):
            self._substitute_known()
            if all(atom in self.known for atom in unknowns):
                return self._resolved(unknowns)
            if not any(self._use(equation) for equation in self.equations) and not self._pivot():
                break
        self._substitute_known()
        return self._resolved(unknowns)

    def _substitute_known(self) -> None:
        ring = self.ring
        done: dict[int, Poly] = {}
        remaining: list[Equation] = []
        for equation in self.equations:
            left = ring.substitute(equation.left, self.known, done) if self.known else equation.left
            right = equation.right
            settled = {m: c for m, c in left.items() if not ring.support({m: c})}
            if settled:
                left = add(left, settled, -1)
                right = add(right, settled, -1)
            if left:
                remaining.append(Equation(left, right))
        self.equations = remaining

    def _resolved(self, unknowns: list[int]) -> dict[int, Poly] | None:
        result: dict[int, Poly] = {}
        for atom in unknowns:
            value = self.known.get(atom)
            if value is None:
                return None
            for _ in range(len(self.known) + 1):
                if not self.ring.support(value):
                    break
                value = self.ring.substitute(value, self.known)
            if self.ring.support(value):
                return None
            result[atom] = value
        return result

    # One equation

    def _use(self, equation: Equation) -> bool:
        if self._single(equation):
            return True
        if len(equation.left) == 1:
            return False
        return self._unfuse(equation) or self._unfuse_symbolic(equation) or self._congruence(equation)

    def _learn(self, atom: int, value: Poly) -> bool:
        if atom in self.known:
            return False
        self.known[atom] = value
        return True

    def _single(self, equation: Equation) -> bool:
        """`factor * u = p`, the factor a number or a form over symbols."""
        factors = self._factors(equation.left)
        if len(factors) != 1:
            return False
        ((unknown, factor),) = factors.items()
        if len(unknown) != 1:
            return False
        number = constant_of(factor)
        if number in (1, -1):
            value = scale(equation.right, number)
        elif number is not None or self.ring.is_nonnegative(plus(factor, -1)):
            value = self.ring.floor(equation.right, factor)
        else:
            return False
        atom = self.ring.atoms[unknown[0]]
        if atom.kind is not AtomKind.XOR:
            return self._learn(unknown[0], value)
        open_parts = [part for part in atom.parts if self.ring.support(part)]
        if len(open_parts) != 1:
            # The whole is useful only where another equation has the same XOR; otherwise its parts come first.
            shared = any(unknown in other.left for other in self.equations if other is not equation)
            return shared and self._learn(unknown[0], value)
        closed = [part for part in atom.parts if not self.ring.support(part)]
        equation.left, equation.right = open_parts[0], self.ring.xor([value, *closed])
        return True

    def _unfuse(self, equation: Equation) -> bool:
        """Take `g*H + L = p` apart where L has fewer than g values: `L = (p - low) % g + low`, `H = (p - low) // g`."""
        left = equation.left
        if any(len(m) != 1 for m in left):
            return False
        order = sorted(left, key=lambda m: -abs(left[m]))
        g = 0
        for position in range(1, len(order)):
            g = gcd(g, left[order[position - 1]])
            if g == 1:
                return False
            lower = {m: left[m] for m in order[position:]}
            low, high = self.ring.range_of(lower)
            if low is None or high is None or high - low >= g:
                continue
            shifted = plus(equation.right, -low)
            quotient = self.ring.floor_by(shifted, g)
            equation.left, equation.right = lower, plus(add(shifted, quotient, -g), low)
            self.equations.append(Equation({m: left[m] // g for m in order[:position]}, quotient))
            return True
        return False

    def _unfuse_symbolic(self, equation: Equation) -> bool:
        """The same with symbols in the large factor: `i*m + j` for `0 <= j < m`, `i*(m + 1) + j` for `0 <= j <= m`."""
        ring = self.ring
        factors = self._factors(equation.left)
        for unit in sorted(factors.values(), key=lambda f: (max(map(len, f)), len(f))):
            if constant_of(unit) is not None:
                continue
            if not ring.is_nonnegative(plus(unit, -1)):
                unit = scale(unit, -1)
                if not ring.is_nonnegative(plus(unit, -1)):
                    continue
            upper: Poly = {}
            lower: Poly = {}
            for rest, factor in factors.items():
                over = ring.exact_quotient(factor, unit)
                if over is not None:
                    upper = add(upper, multiply(over, {rest: 1}))
                else:
                    lower = add(lower, multiply(factor, {rest: 1}))
            if not lower or not ring.is_nonnegative(lower) or not ring.is_nonnegative(plus(add(unit, lower, -1), -1)):
                continue
            quotient = ring.floor(equation.right, unit)
            equation.left, equation.right = lower, add(equation.right, multiply(unit, quotient), -1)
            self.equations.append(Equation(upper, quotient))
            return True
        return False

    def _factors(self, left: Poly) -> dict[Monomial, Poly]:
        """The form as the factor of each product of unknowns."""
        result: dict[Monomial, Poly] = {}
        for monomial, c in left.items():
            unknown = tuple(a for a in monomial if self.ring.atoms[a].support)
            symbols = tuple(a for a in monomial if not self.ring.atoms[a].support)
            result[unknown] = add(result.get(unknown, {}), {symbols: c})
        return result

    def _congruence(self, equation: Equation) -> bool:
        """`c*x + m*(...) = p` gives `x` modulo `m`; enough of them give `x`."""
        left = equation.left
        if any(len(m) != 1 for m in left):
            return False
        for monomial, c in left.items():
            atom = monomial[0]
            if self.ring.atoms[atom].kind is not AtomKind.NAME or atom in self.known:
                continue
            modulus = gcd(*(k for m, k in left.items() if m != monomial))
            shared = gcd(c, modulus)
            if modulus // shared < 2:
                continue
            value = self.ring.floor_by(equation.right, shared) if shared > 1 else equation.right
            modulus //= shared
            inverse = pow(c // shared, -1, modulus)
            if self._combine(atom, Congruence(modulus, scale(value, inverse))):
                return True
        return False

    def _combine(self, atom: int, new: Congruence) -> bool:
        """Add a congruence of `atom`; true when the atom became known."""
        old = self.congruences.get(atom)
        if old is not None:
            if old.modulus % new.modulus == 0:
                return False
            shared = gcd(old.modulus, new.modulus)
            # Only coprime moduli are combined: the shared factor is dropped where that leaves coprime ones.
            reduced = new.modulus // shared
            if gcd(reduced, old.modulus) != 1:
                if new.modulus % old.modulus:
                    return False
            else:
                modulus = old.modulus * reduced
                lift_old = reduced * pow(reduced, -1, old.modulus)
                lift_new = old.modulus * pow(old.modulus, -1, reduced) if reduced > 1 else 0
                new = Congruence(modulus, _reduce(add(scale(old.value, lift_old), new.value, lift_new), modulus))
        low, high = self.ring.atoms[atom].low, self.ring.atoms[atom].high
        self.congruences[atom] = new
        if low is not None and high is not None and high - low < new.modulus:
            shifted = plus(_reduce(new.value, new.modulus), -low)
            return self._learn(atom, plus(self.ring.remainder(shifted, constant(new.modulus)), low))
        return False

    # Several equations

    def _pivot(self) -> bool:
        """Express one unknown by the others of its equation and forget the equation."""
        counts: dict[int, int] = {}
        for equation in self.equations:
            for monomial in equation.left:
                if len(monomial) == 1:
                    counts[monomial[0]] = counts.get(monomial[0], 0) + 1
        best: tuple[int, int, int] | None = None
        for position, equation in enumerate(self.equations):
            for monomial, c in equation.left.items():
                if abs(c) == 1 and len(monomial) == 1 and counts[monomial[0]] > 1 and monomial[0] not in self.known:
                    candidate = (counts[monomial[0]], -position, monomial[0])
                    best = candidate if best is None or candidate > best else best
        if best is None:
            return False
        equation = self.equations.pop(-best[1])
        atom = best[2]
        c = equation.left[(atom,)]
        rest = {m: k for m, k in equation.left.items() if m != (atom,)}
        if atom in self.ring.atoms_below([rest]):
            return False
        return self._learn(atom, scale(add(equation.right, rest, -1), c))


def _reduce(poly: Poly, modulus: int) -> Poly:
    """A form equal to `poly` modulo `modulus`, coefficients in `[0, modulus)`."""
    return {m: c % modulus for m, c in poly.items() if c % modulus}


# Digits


@dataclass(frozen=True, slots=True)
class Digits:
    """A name written as a sum of digits: `factors[k] * atoms[k]`, lowest first."""

    atom: int
    factors: tuple[Poly, ...]
    atoms: tuple[int, ...]

    @property
    def total(self) -> Poly:
        """The name's value in digits."""
        result: Poly = {}
        for factor, atom in zip(self.factors, self.atoms, strict=True):
            result = add(result, multiply(factor, {(atom,): 1}))
        return result


def split_points(ring: Ring, polys: list[Poly], atom: int) -> list[Poly]:
    """Where divisions and XORs cut the name `atom` into digits: ascending points, each dividing the next."""
    numbers: set[int] = set()
    symbolic: list[Poly] = []
    for number in ring.atoms_below(polys):
        this = ring.atoms[number]
        if this.kind is AtomKind.FLOOR:
            numerator, divisor = this.parts
            c = numerator.get((atom,))
            if c is None:
                continue
            d = constant_of(divisor)
            if d is not None:
                numbers.add(d // gcd(c, d))
            elif abs(c) == 1 and not ring.support(divisor):
                symbolic.append(divisor)
        elif this.kind is AtomKind.XOR:
            numbers |= _xor_points(ring, this.parts, atom)
    high = ring.atoms[atom].high
    points = sorted(n for n in numbers if n > 1 and (high is None or n <= high))
    chain: list[int] = []
    for point in reversed(points):
        if not chain or chain[-1] % point == 0:
            chain.append(point)
    result = [constant(n) for n in reversed(chain)]
    if len(symbolic) == 1 and not result:
        return symbolic
    return result


def _xor_points(ring: Ring, parts: tuple[Poly, ...], atom: int) -> set[int]:
    own = [part[(atom,)] for part in parts if (atom,) in part]
    if not own:
        return set()
    cuts: set[int] = set()
    for part in parts:
        cuts |= {c & -c for m, c in part.items() if m != ONE}
        _, high = ring.range_of(part)
        if high is not None and high > 0:
            cuts.add(1 << high.bit_length())
    return {cut // (c & -c) for c in own for cut in cuts if cut > (c & -c)}


def digitise(
    ring: Ring, polys: list[Poly], atoms: list[int], extents: dict[int, Poly]
) -> tuple[list[Poly], list[Digits]] | None:
    """The forms over digits, cut again while that opens new cuts; None if nothing is cut. Adds to `extents`."""
    found: list[Digits] = []
    pending = list(atoms)
    for _ in range(3):
        values: dict[int, Poly] = {}
        fresh: list[int] = []
        for atom in pending:
            points = split_points(ring, polys, atom)
            if not points:
                continue
            digits = _digits(ring, atom, points, extents)
            if digits is not None:
                found.append(digits)
                values[atom] = digits.total
                fresh.extend(digits.atoms)
        if not values:
            break
        done: dict[int, Poly] = {}
        polys = [ring.substitute(poly, values, done) for poly in polys]
        pending = [a for a in pending if a not in values] + fresh
    return (polys, found) if found else None


def _digits(ring: Ring, atom: int, points: list[Poly], extents: dict[int, Poly]) -> Digits | None:
    name = ring.atoms[atom].name
    unknown = bool(ring.atoms[atom].support)
    bounds = [{ONE: 1}, *points]
    atoms: list[int] = []
    for position, point in enumerate(bounds):
        try:
            if position + 1 < len(bounds):
                extent = ring.floor(bounds[position + 1], point)
            else:
                extent = plus(ring.floor(plus(extents[atom], -1), point), 1)
        except GiveUp:
            return None
        ((digit,),) = ring.below(f"{name}.{position}", extent, unknown=unknown)
        atoms.append(digit)
        extents[digit] = extent
    return Digits(atom, tuple(bounds), tuple(atoms))
