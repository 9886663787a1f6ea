"""Integer sets: the encoding means what the evaluator means, decoding leads back, budgets stop and repeat."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random

import islpy as isl
import pytest
from tests.shares import one_in

from layoutproof.ir.dtype import INT32
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import TRUE, Cast, Expr, Logical, Not, Select, Var, binary, compare, const, logical_and
from layoutproof.ir.interval import Interval
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.stmt import ForKind
from layoutproof.verify.isl.decode import Decoder
from layoutproof.verify.isl.encode import Encoder, NotQuasiAffine
from layoutproof.verify.isl.instance_search import Model
from layoutproof.verify.isl.instance_sets import Workspace, pieces_said
from layoutproof.verify.isl.relation import make_relation
from layoutproof.verify.isl.relation_exprs import inverse_of, padding_of
from layoutproof.verify.isl.space import BudgetExceeded, NamedSpace, NoAnswer, limited, value
from layoutproof.verify.program.instances import Dim, IterationDomain

X, Y, N = Var("i"), Var("j"), Var("n")


def number(rng: Random, depth: int) -> Expr:
    """Random quasi-affine arithmetic on i and j, negative constants and divisors included."""
    if depth == 0:
        return rng.choice([X, Y, const(rng.randint(-9, 9))])
    a = number(rng, depth - 1)
    c = const(rng.choice([-5, -3, -2, 2, 3, 4, 7, 8]))
    forms: list[Callable[[], Expr]] = [
        lambda: a + number(rng, depth - 1), lambda: a - number(rng, depth - 1),
        lambda: a * c, lambda: a // c, lambda: a % c,
        lambda: binary(BinaryOp.TRUNCDIV, a, c), lambda: binary(BinaryOp.TRUNCMOD, a, c),
        lambda: a & c, lambda: a | c, lambda: a ^ c,
        lambda: binary(BinaryOp.MIN, a, number(rng, depth - 1)),
        lambda: binary(BinaryOp.MAX, a, number(rng, depth - 1)),
        lambda: Select(condition(rng, depth - 1), a, number(rng, depth - 1)), lambda: Call("abs", (a,)),
        lambda: a >> 2, lambda: a << 1,
    ]  # fmt: skip
    if depth == 1:
        forms += [lambda: a & number(rng, 0), lambda: a | number(rng, 0), lambda: a ^ number(rng, 0)]
    return rng.choice(forms)()


def condition(rng: Random, depth: int) -> Expr:
    """Random conditions on i and j."""
    if depth > 0 and rng.random() < 0.3:
        return Not(condition(rng, depth - 1))
    if depth > 0 and rng.random() < 0.4:
        return Logical(rng.choice(list(LogicalOp)), condition(rng, depth - 1), condition(rng, depth - 1))
    return compare(rng.choice(list(CompareOp)), number(rng, max(depth - 1, 0)), number(rng, max(depth - 1, 0)))


def point_of(space: NamedSpace, i: int, j: int) -> isl.Point:
    """The isl point (i, j)."""
    point = isl.Point.zero(space.space).set_coordinate_val(isl.dim_type.set, 0, value(space.ctx, i))
    return point.set_coordinate_val(isl.dim_type.set, 1, value(space.ctx, j))


@one_in(9)
@pytest.mark.parametrize("seed", range(200))
def test_encoding_and_decoding_agree_with_the_evaluator(seed: int) -> None:
    """Function, condition, its negation, and what is decoded from them have the evaluator's value at every point."""
    rng = Random(seed)
    expr, where = number(rng, rng.randint(1, 3)), condition(rng, 2)
    with limited(2_000_000) as ctx:
        space = NamedSpace(ctx, ["i", "j"])
        domain = isl.Set.from_basic_set(space.box({"i": 5, "j": 6}))
        encoder = Encoder(space, domain)
        function, holds, fails = encoder.function(expr), encoder.set_of(where), encoder.set_of(where, False)
        decoder = Decoder(space)
        pieces = [(decoder.condition(d), decoder.affine(a)) for d, a in function.intersect_domain(domain).get_pieces()]
        decoded = decoder.condition(holds.intersect(domain))
        for i, j in product(range(5), range(6)):
            point, env = point_of(space, i, j), {"i": i, "j": j}
            assert function.eval(point).to_python() == evaluate(expr, env)
            truth = bool(evaluate(where, env))
            assert (not isl.Set.from_point(point).intersect(holds).is_empty()) == truth
            assert (not isl.Set.from_point(point).intersect(fails).is_empty()) != truth
            assert bool(evaluate(decoded, env)) == truth
            assert [evaluate(a, env) for d, a in pieces if evaluate(d, env)] == [evaluate(expr, env)]


@pytest.mark.parametrize(
    ("expr", "part"),
    [
        (X + (X * Y) // 2, X * Y),
        (3 + X // Y, X // Y),
        (X ^ N, N),
        (X << Y, X << Y),
        (Cast(INT32, X // (Y - Y)), X // (Y - Y)),
        (X // 0, X // 0),
    ],
)
def test_what_is_not_quasi_affine_is_named(expr: Expr, part: Expr) -> None:
    """The smallest part that integer sets cannot state is carried by the error."""
    with limited() as ctx:
        space = NamedSpace(ctx, ["i", "j"], ["n"])
        domain = isl.Set.from_basic_set(space.box({"i": 8, "j": 8}))
        with pytest.raises(NotQuasiAffine) as caught:
            Encoder(space, domain).function(expr)
    assert caught.value.expr == part
    assert caught.value.reason


def test_unknown_name_is_named() -> None:
    """A name that the space does not have is no symbol."""
    with limited() as ctx, pytest.raises(NotQuasiAffine, match="q is neither"):
        Encoder(NamedSpace(ctx, ["i"])).function(Var("q") + 1)


def test_budget_stops_the_same_way_every_time() -> None:
    """A hard question raises BudgetExceeded, again and again; its context is spent, since isl may leave what it was at
    half changed.
    """
    hard = X ^ (Y * 5) ^ (X // 3)
    for _ in range(3):
        with limited() as ctx:
            space = NamedSpace(ctx, ["i", "j"])
            domain = isl.Set.from_basic_set(space.box({"i": 4096, "j": 4096}))
        with pytest.raises(BudgetExceeded), limited(2_000, space.ctx):
            isl.Map.from_pw_aff(Encoder(space, domain).function(hard)).intersect_domain(domain).is_injective()
        with pytest.raises(BudgetExceeded), limited(1_000_000, space.ctx):
            domain.is_empty()


def test_a_model_goes_on_after_a_hard_question() -> None:
    """Sets that were at hand when the budget was spent are made anew: later answers are those of a model that was never
    stopped.
    """
    dims = tuple(Dim(v, const(0), const(64), ForKind.SERIAL) for v in (X, Y))
    domain = IterationDomain(dims)
    hard, easy = compare(CompareOp.EQ, X ^ (Y * 5) ^ (X // 3), const(200)), compare(CompareOp.EQ, X * 2 + Y, const(5))
    model, fresh = Model((), (), {}, 3_000), Model((), (), {}, 3_000)
    assert model.search(domain, hard).reason is not None
    assert model.search(domain, easy) == fresh.search(domain, easy)
    assert model.search(domain, easy).point is not None


def test_numbers_of_any_size_fit() -> None:
    """Constants past 64 bits keep their value."""
    with limited() as ctx:
        assert value(ctx, 3**60).to_python() == 3**60
        space = NamedSpace(ctx, ["i"])
        assert space.constant(-(2**70)).get_constant_val().to_python() == -(2**70)


def test_space_refuses_a_name_twice() -> None:
    """One name stands at one position."""
    with limited() as ctx, pytest.raises(ValueError, match="twice"):
        NamedSpace(ctx, ["i"], ["i"])


def test_symbolic_function_is_printed_with_its_remainder() -> None:
    """Decoding finds `%` again and keeps comparisons readable."""
    with limited() as ctx:
        space = NamedSpace(ctx, ["i", "j"], ["n"])
        from layoutproof.ir.text import expr_text

        encoder, decoder = Encoder(space), Decoder(space)
        (piece,) = encoder.function(3 * (X % 4) + (Y + N) // 5 - 7).get_pieces()
        assert expr_text(decoder.affine(piece[1]), "plain") == "3*(i%4) + (j + n)//5 - 7"
        assert expr_text(decoder.condition(encoder.set_of(logical_and(4 * X + Y >= N, X < 3))), "plain") in (
            "4*i + j >= n and i <= 2", "i <= 2 and 4*i + j >= n"
        )  # fmt: skip


@one_in(9)
@pytest.mark.parametrize("seed", range(150))
def test_products_and_quotients_are_told_apart_by_cases(seed: int) -> None:
    """Products with a factor of few values, and quotients by a symbol with few values, are what the evaluator says on
    the whole domain; all else is refused.
    """
    rng = Random(seed)
    space = NamedSpace(isl.Context(), ["i", "j"], ["n"])
    plain = Encoder(space)
    low, high, least = rng.randint(-3, 1), rng.randint(2, 5), rng.choice([0, 1, 2])
    domain = space.universe().intersect(plain.set_of(logical_and(X >= low, X < high, N >= least, N <= 9)))
    domain = domain.intersect(plain.set_of(logical_and(Y >= 0, Y < rng.choice([N, N + 2, N * 2 + 1]))))
    encoder = Encoder(space, domain, ranges={"i": (low, high - 1)})
    a, b = (rng.choice([X, Y, X + 2, Y - X, N - X, X * 3 + 1]) for _ in range(2))
    d = rng.choice([N, N + 1, N + 2 - least, (N + 3) // 2, N - 3])
    forms: list[Callable[[], Expr]] = [
        lambda: X * d + a, lambda: a * X, lambda: (X * d + Y) // d, lambda: (X * d + Y) % d,
        lambda: a // d + b, lambda: b % d,
        lambda: (Y // d) * N + a, lambda: (a // d) * (X + N),
    ]  # fmt: skip
    expr = rng.choice(forms)()
    try:
        function = encoder.function(expr)
    except NotQuasiAffine:
        return
    for i, j, n in product(range(low, high), range(20), range(least, 10)):
        point = point_of(space, i, j).set_coordinate_val(isl.dim_type.param, 0, value(space.ctx, n))
        if not isl.Set.from_point(point).is_subset(domain):
            continue
        assert int(str(function.eval(point))) == evaluate(expr, {"i": i, "j": j, "n": n})


@pytest.mark.parametrize("expr", [X * N, Y // N, (X * N + Y) % N, Y % (N + 1)])
def test_cases_are_found_where_there_are_few(expr: Expr) -> None:
    """With three values of `i`, and `j` below `2 * n`, everything is linear case by case; without bounds nothing is."""
    space = NamedSpace(isl.Context(), ["i", "j"], ["n"])
    bounds = logical_and(X >= 0, X < 3, Y >= 0, Y < N * 2, N >= 1)
    domain = space.universe().intersect(Encoder(space).set_of(bounds))
    assert domain.is_subset(Encoder(space, domain, ranges={"i": (0, 2)}).function(expr).domain())
    for encoder in (Encoder(space), Encoder(space, space.universe())):
        with pytest.raises(NotQuasiAffine):
            encoder.function(expr)


def one_more(decoder: Decoder, aff: isl.Aff) -> Expr:
    """A decoder that is wrong by one."""
    return AFFINE(decoder, aff) + 1


def other_cells(_decoder: Decoder, _where: isl.Set) -> Expr:
    """A decoder that takes each set for another one."""
    return compare(CompareOp.EQ, N, const(-7))


AFFINE = Decoder.affine


def test_nothing_rests_on_the_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a decoder that lies no inverse, extreme, padding or condition on symbols is taken, and no piece of a
    relation; of the right one all are.
    """
    dims = (Dim(X, const(0), N, ForKind.SERIAL),)
    model = Model((N,), (), {N: (0, 99)})
    with limited() as ctx:
        workspace = Workspace((N,), (), {N: Interval(0, 99)})
        link = isl.Map("[n] -> { a[i] -> b[n - 1 - i] : 0 <= i < n }", workspace.ctx)
        found = make_relation(ctx, ["i"], [N], ["n"], TRUE, {"p0": X * 2})
        asks: list[Callable[[], object]] = [
            lambda: inverse_of(found),
            lambda: found.extreme(0, True),
            lambda: padding_of(found, [N * 2]),
            lambda: model.symbols_without(IterationDomain(dims), compare(CompareOp.GE, X, const(5))),
            lambda: next(pieces_said(workspace, link, dims, dims), None),
        ]
        assert [ask() is not None for ask in asks] == [True] * 5
        monkeypatch.setattr(Decoder, "affine", one_more)
        monkeypatch.setattr(Decoder, "condition", other_cells)
        for ask in asks[:3]:
            with pytest.raises(NoAnswer):
                ask()
        assert [ask() for ask in asks[3:]] == [None, None]
