"""Refutations as they are found, with facts as objects, and their text: the proofs that the kernel reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from math import lcm

from layoutproof.verify.certificate.finder.linear_solving import Lattice
from layoutproof.verify.kernel.polynomials import Monomial, Poly

ONE = Poly.const(1)

_order = count()
_decisions = count()


def decision() -> frozenset[int]:
    """A new decision, as what a fact uses that holds only after it."""
    return frozenset((next(_decisions),))


@dataclass(eq=False, slots=True)
class Fact:
    """`poly >= 0`. `uses` has the decisions (sides of branches, cases of splits) without which it may not hold.

    A product has factors. A lemma has a closing, in which its negation is refuted. Others are given or decided.
    """

    poly: Poly
    uses: frozenset[int] = frozenset()
    factors: tuple[Fact, ...] = ()
    negation: Fact | None = None
    closing: Sum | None = None
    order: int = field(default_factory=lambda: next(_order))


@dataclass(eq=False, slots=True)
class Zero:
    """`poly == 0`: given or decided, or `times` another zero, or two facts `poly >= 0` and `-poly >= 0`."""

    poly: Poly
    uses: frozenset[int] = frozenset()
    of: Zero | None = None
    times: Poly = ONE
    pair: tuple[Fact, Fact] | None = None


@dataclass(eq=False, slots=True)
class Sum:
    """A leaf: factors of facts and of zeros, which are in sum a negative constant."""

    terms: list[tuple[int, Fact]]
    zeros: list[tuple[int, Zero]]
    uses: frozenset[int]


@dataclass(eq=False, slots=True)
class Branch:
    """Both sides of a decision, with the facts that they add."""

    left_fact: Fact
    right_fact: Fact
    left: Tree
    right: Tree
    uses: frozenset[int]


@dataclass(eq=False, slots=True)
class Split:
    """The cases of a choice, with the facts and zeros that they add."""

    choice: int
    cases: list[tuple[Sequence[Fact], Sequence[Zero], Tree]]
    uses: frozenset[int]


Tree = Sum | Branch | Split


def combine(parts: Iterable[tuple[Fraction | int, Fact]], lattice: Lattice, zeros: Sequence[Zero]) -> Sum:
    """The sum of facts with rational factors, which is a constant where the zeros of the lattice are 0."""
    merged: dict[int, tuple[Fraction | int, Fact]] = {}
    for factor, fact in parts:
        merged[id(fact)] = merged.get(id(fact), (0, fact))[0] + factor, fact
    scale = lcm(*(factor.denominator for factor, _ in merged.values()))
    terms = [(int(factor * scale), fact) for factor, fact in merged.values()]
    total: dict[Monomial, int] = {}
    for factor, fact in terms:
        for monomial, coefficient in fact.poly.terms:
            total[monomial] = total.get(monomial, 0) + factor * coefficient
    factors = lattice.multipliers(Poly.of(total))
    return _scaled(terms, [(factor, zeros[number]) for number, factor in factors.items()])


def _scaled(terms: list[tuple[int, Fact]], zeros: list[tuple[Fraction, Zero]]) -> Sum:
    scale = lcm(*(factor.denominator for factor, _ in zeros))
    result = Sum([(factor * scale, fact) for factor, fact in terms], [], frozenset())
    for rational, zero in zeros:
        factor = int(rational * scale)
        if zero.pair is not None:
            result.terms.append((abs(factor), zero.pair[0 if factor > 0 else 1]))
        else:
            result.zeros.append((factor, zero))
    result.uses = frozenset().union(*(f.uses for _, f in result.terms), *(z.uses for _, z in result.zeros))
    return result


def zeros_alone(factors: Iterable[tuple[Fraction, Zero]], sign: int) -> Sum:
    """A sum of zeros whose constant has the given sign: the factors are turned so that it is negative."""
    return _scaled([], [(-sign * factor, zero) for factor, zero in factors if factor])


def proof_of(tree: Tree, facts: Sequence[Fact], zeros: Sequence[Zero]) -> list[object]:
    """The tree as a proof over the numbered facts and zeros of the question."""
    return _Writer().write(tree, _Path(facts, zeros))


class _Path:
    """The numbers of facts and zeros at one place of the proof, and the decisions above it."""

    def __init__(self, facts: Sequence[Fact], zeros: Sequence[Zero], decisions: frozenset[int] = frozenset()) -> None:
        self.facts = {id(fact): i for i, fact in enumerate(facts)}
        self.zeros = {id(zero): i for i, zero in enumerate(zeros)}
        self.count = len(facts)
        self.zero_count = len(zeros)
        self.decisions = decisions

    def with_parts(self, facts: Sequence[Fact], zeros: Sequence[Zero] = ()) -> _Path:
        """The path with further facts and zeros behind it."""
        new = _Path((), ())
        new.facts = self.facts | {id(fact): self.count + i for i, fact in enumerate(facts)}
        new.zeros = self.zeros | {id(zero): self.zero_count + i for i, zero in enumerate(zeros)}
        new.count = self.count + len(facts)
        new.zero_count = self.zero_count + len(zeros)
        new.decisions = self.decisions.union(*(f.uses for f in facts), *(z.uses for z in zeros))
        return new


class _Writer:
    def __init__(self) -> None:
        self._needs: dict[int, frozenset[Fact]] = {}

    def write(self, tree: Tree, path: _Path) -> list[object]:
        """A lemma is stated where all decisions that it uses are made, and only above a sum that needs it."""
        lemmas: list[tuple[Fact, list[object]]] = []
        for lemma in sorted(self._needed(tree), key=lambda fact: fact.order):
            if id(lemma) not in path.facts and lemma.uses <= path.decisions:
                assert lemma.closing is not None and lemma.negation is not None
                lemmas.append((lemma, self.write(lemma.closing, path.with_parts([lemma.negation]))))
                path = path.with_parts([lemma])
        proof = self._write(tree, path)
        for lemma, closing in reversed(lemmas):
            proof = ["branch", lemma.poly.to_json(), proof, closing]
        return proof

    def _write(self, tree: Tree, path: _Path) -> list[object]:
        match tree:
            case Sum():
                return _sum(tree, path)
            case Branch():
                left = self.write(tree.left, path.with_parts([tree.left_fact]))
                right = self.write(tree.right, path.with_parts([tree.right_fact]))
                return ["branch", tree.left_fact.poly.to_json(), left, right]
            case Split():
                cases = [self.write(case, path.with_parts(facts, zeros)) for facts, zeros, case in tree.cases]
                return ["split", tree.choice, cases]

    def _needed(self, tree: Tree) -> frozenset[Fact]:
        """The lemmas that a tree rests on."""
        known = self._needs.get(id(tree))
        if known is None:
            match tree:
                case Sum():
                    known = frozenset().union(*(self._lemmas(fact) for _, fact in tree.terms))
                case Branch():
                    known = self._needed(tree.left) | self._needed(tree.right)
                case Split():
                    known = frozenset().union(*(self._needed(case) for _, _, case in tree.cases))
            self._needs[id(tree)] = known
        return known

    def _lemmas(self, fact: Fact) -> frozenset[Fact]:
        if fact.factors:
            return frozenset().union(*(self._lemmas(factor) for factor in fact.factors))
        if fact.closing is None:
            return frozenset()
        return self._needed(fact.closing) | {fact}


def _sum(leaf: Sum, path: _Path) -> list[object]:
    terms = [
        [factor, [path.facts[id(part)] for part in fact.factors or (fact,)]] for factor, fact in leaf.terms if factor
    ]
    zeros: list[object] = []
    for factor, zero in leaf.zeros:
        poly = Poly.const(factor)
        while zero.of is not None:
            poly *= zero.times
            zero = zero.of
        zeros.append([poly.to_json(), path.zeros[id(zero)]])
    return ["sum", terms, zeros]
