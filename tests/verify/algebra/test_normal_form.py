"""The normal form: equal to the expressions it was lifted from, everywhere; its ranges and inequalities sound; its
printing exact.
"""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from tests.shares import one_in

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var, binary, const
from layoutproof.ir.operators import BinaryOp as Op
from layoutproof.ir.text import expr_text
from layoutproof.verify.algebra.lift import Lifter
from layoutproof.verify.algebra.polynomials import (
    GiveUp,
    Poly,
    add,
    constant,
    constant_of,
    key_of,
    multiply,
    plus,
    scale,
)
from layoutproof.verify.algebra.rendering import Renderer
from layoutproof.verify.algebra.ring import Ring
from layoutproof.verify.maps.conditions import Condition, Sense, condition_expr

EXTENTS = {"i": 9, "j": 6, "k": 4}
POINTS = [dict(zip(EXTENTS, point, strict=True)) for point in product(*(range(e) for e in EXTENTS.values()))]


def fresh_ring() -> tuple[Ring, dict[str, Poly]]:
    """A ring with i, j, k in small ranges."""
    ring = Ring()
    return ring, {name: ring.name(name, 0, extent - 1, unknown=True) for name, extent in EXTENTS.items()}


def random_expr(rng: Random, depth: int) -> Expr:
    """Index arithmetic on i, j, k with constants of both signs."""
    if depth == 0 or rng.random() < 0.1:
        return Var(rng.choice("ijk")) if rng.random() < 0.8 else const(rng.randint(-5, 12))
    left = random_expr(rng, depth - 1)
    op = rng.choice(
        [Op.ADD, Op.SUB, Op.MUL, Op.FLOORDIV, Op.FLOORMOD, Op.BITXOR, Op.BITAND, Op.TRUNCDIV, Op.MIN, Op.SHR, Op.BITOR]
    )
    if op in (Op.ADD, Op.SUB, Op.BITXOR, Op.MIN) and rng.random() < 0.8:
        return binary(op, left, random_expr(rng, depth - 1))
    value = rng.choice([2, 3, 4, 5, 7, 8, 16, -2, -3, -4, 1, 6]) if op is not Op.SHR else rng.randint(0, 3)
    return binary(op, left, value)


@one_in(10)
@pytest.mark.parametrize("seed", range(300))
def test_lifted_form_and_its_text_have_the_values_of_the_expression(seed: int) -> None:
    """Lifting and rendering change no value, ranges hold every value, a proof of `>= 0` is true."""
    rng = Random(seed)
    ring, names = fresh_ring()
    expr = random_expr(rng, rng.randint(1, 4))
    try:
        form = Lifter(ring, names).lift(expr)
    except GiveUp:
        return
    shown = Renderer(ring).expr(form)
    low, high = ring.range_of(form)
    claims = ring.is_nonnegative(form)
    conditions = [Condition(plus(form, -3), sense) for sense in Sense]
    texts = [condition_expr(Renderer(ring), c) for c in conditions if not c.poly.keys() <= {()}]
    for point in POINTS:
        value = evaluate(expr, point)
        assert evaluate(shown, point) == value, expr_text(shown, "plain")
        assert (low is None or low <= value) and (high is None or value <= high)
        assert not claims or value >= 0
        for condition, text in zip([c for c in conditions if not c.poly.keys() <= {()}], texts, strict=True):
            truth = {Sense.NEGATIVE: value < 3, Sense.NONNEGATIVE: value >= 3, Sense.NONZERO: value != 3}[
                condition.sense
            ]
            assert bool(evaluate(text, point)) == truth, expr_text(text, "plain")
            decided = condition.decided(ring)
            assert decided is None or decided == truth


def test_enough_random_expressions_are_lifted() -> None:
    """The random test above tests something: most of its expressions have a normal form."""
    lifted = 0
    for seed in range(300):
        rng = Random(seed)
        ring, names = fresh_ring()
        try:
            Lifter(ring, names).lift(random_expr(rng, rng.randint(1, 4)))
            lifted += 1
        except GiveUp:
            continue
    assert lifted > 200


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (lambda i, j: (8 * i + j) // 8, "i"),
        (lambda i, j: 8 * (i // 8) + i % 8, "i"),
        (lambda i, j: (i // 4) // 8 - i // 32, "0"),
        (lambda i, j: (i // 2) % 4, "i//2%4"),
        (lambda i, j: (i ^ j) ^ j, "i"),
        (lambda i, j: ((8 * i + j) ^ (8 * j)) // 8, "i ^ j"),
        (lambda i, j: j ^ 7, "7 - j"),
        (lambda i, j: i ^ -1, "-1*i - 1"),
        (lambda i, j: 3 * i - 3 * j + 1 - i, "2*i - 3*j + 1"),
    ],
)
def test_usual_identities_are_seen(text: object, expected: str) -> None:
    """Splits, nested quotients and XORs simplify by ranges."""
    ring = Ring()
    names = {"i": ring.name("i", 0, 99), "j": ring.name("j", 0, 7)}
    assert callable(text)
    form = Lifter(ring, names).lift(text(Var("i"), Var("j")))
    assert expr_text(Renderer(ring).expr(form), "plain") == expected


def test_products_and_quotients_of_symbols_simplify() -> None:
    """The mixed-radix lemma: (i*m + j)//m is i and (i*m + j)%m is j, for every m; so with m + 1, and with digits of
    products.
    """
    ring = Ring()
    m, k = ring.name("m", 1, None), ring.name("k", 1, None)
    i = ring.name("i", 0, None)
    j = ring.name("j", 0, None, greatest=plus(m, -1))
    fused = add(multiply(i, m), j)
    assert ring.floor(fused, m) == i
    assert ring.remainder(fused, m) == j
    wider = plus(m, 1)
    assert ring.floor(add(multiply(i, wider), j), wider) == i
    assert ring.floor(multiply(fused, k), multiply(m, k)) == i
    assert ring.floor(ring.floor(i, m), k) == ring.floor(i, multiply(m, k))
    assert ring.floor(plus(scale(m, 4), -1), m) == constant(3)


def test_division_of_unknown_sign_gives_up() -> None:
    """A divisor that may be zero or of either sign is not simplified."""
    ring = Ring()
    n = ring.name("n", 0, None)
    with pytest.raises(GiveUp):
        ring.floor(n, n)
    with pytest.raises(GiveUp):
        ring.floor(n, plus(n, -3))
    with pytest.raises(GiveUp):
        ring.floor(n, {})


@one_in(7)
@pytest.mark.parametrize("seed", range(150))
def test_proved_inequalities_between_symbols_are_true(seed: int) -> None:
    """Every inequality proved for all symbols holds at all small values; obvious ones are proved."""
    rng = Random(seed)
    ring = Ring()
    low = {"n": rng.randint(0, 2), "m": rng.randint(1, 3)}
    forms = {name: ring.name(name, least, None) for name, least in low.items()}
    forms["i"] = ring.name("i", 0, None, greatest=plus(forms["n"], -1))
    d = rng.choice([2, 3, 4])
    quotient = ring.floor_by(plus(forms["n"], rng.randint(0, 4)), d)
    terms = [*forms.values(), quotient, multiply(forms["n"], forms["m"]), ring.floor(forms["i"], forms["m"])]
    poly: Poly = constant(rng.randint(-2, 4))
    for _ in range(3):
        poly = add(poly, rng.choice(terms), rng.choice([-2, -1, 1, 1, 2, d]))
    if not ring.is_nonnegative(poly):
        return
    expr = Renderer(ring).expr(poly)
    for n, m in product(range(low["n"], low["n"] + 9), range(low["m"], low["m"] + 6)):
        for i in range(n):
            assert evaluate(expr, {"n": n, "m": m, "i": i}) >= 0, expr_text(expr, "plain")


def test_expected_inequalities_are_proved() -> None:
    """Rounding up covers, indices stay below extents, facts are used."""
    ring = Ring()
    n, m = ring.name("n", 0, None), ring.name("m", 1, None)
    i = ring.name("i", 0, None, greatest=plus(n, -1))
    rounded = scale(ring.floor_by(plus(n, 3), 4), 4)
    assert ring.is_nonnegative(add(rounded, n, -1))
    assert not ring.is_nonnegative(add(n, rounded, -1))
    assert ring.is_nonnegative(plus(add(n, i, -1), -1))
    assert not ring.is_nonnegative(add(m, n, -1))
    facts = Ring()
    a, b = facts.name("a", 0, None), facts.name("b", 0, None)
    facts.facts.append(add(b, a, -1))
    assert facts.is_nonnegative(add(scale(b, 2), scale(a, 2), -1))


def test_polynomials_are_never_changed() -> None:
    """Arithmetic makes new dictionaries without zeros."""
    a: Poly = {(0,): 2, (): 1}
    before = dict(a)
    assert add(a, a, -1) == {}
    assert plus(a, -1) == {(0,): 2}
    assert multiply(a, a) == {(0, 0): 4, (0,): 4, (): 1}
    assert constant_of({}) == 0 and constant_of(a) is None
    assert key_of(a) == key_of(dict(reversed(a.items())))
    assert a == before
