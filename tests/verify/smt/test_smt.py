"""z3 sessions: three answers, models, budgets that repeat; the integer encoding means what the evaluator means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest
from tests.shares import one_in
from tests.verify.isl.test_isl_encode import condition, number

from layoutproof.ir.dtype import FLOAT32
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, FloatImm, IntImm, Var, binary, const
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.semantics import Trap
from layoutproof.ir.visit import substitute, walk
from layoutproof.verify.maps.check_map import read_question
from layoutproof.verify.maps.problem import make_problem
from layoutproof.verify.maps.symbolic_shapes import prove_injective_by_z3
from layoutproof.verify.smt.index_arithmetic import IntEncoder, NotInteger
from layoutproof.verify.smt.solver import DEFAULT_RLIMIT, Answer, Outcome, Query


def asked(build: Callable[[Query], Sequence[object]], rlimit: int = DEFAULT_RLIMIT) -> Outcome:
    """Whether the assertions of a fresh query can all hold."""
    query = Query()
    query.add(*build(query))
    return query.solve(rlimit=rlimit)


def test_three_answers() -> None:
    """Satisfiable with a model, unsatisfiable, and unknown with the budget as the reason."""

    def factors(query: Query) -> list[object]:
        x, y = query.integer("x"), query.integer("y")
        return [x * y == 35, x > 1, y > x]

    outcome = asked(factors)
    assert outcome.answer is Answer.SAT and (outcome.model["x"], outcome.model["y"]) == (5, 7)
    assert asked(lambda q: [q.integer("x") * 2 == 7]).answer is Answer.UNSAT

    def cubes(query: Query) -> list[object]:
        x, y, z = (query.integer(name) for name in "xyz")
        return [x * x * x + y * y * y + z * z * z == 114, x > 1]

    outcomes = [asked(cubes, rlimit=100_000) for _ in range(2)]
    assert [o.answer for o in outcomes] == [Answer.UNKNOWN] * 2
    assert outcomes[0].reason == outcomes[1].reason and "100000" in str(outcomes[0].reason)


@one_in(4)
@pytest.mark.parametrize("seed", range(60))
def test_integer_encoding_agrees_with_the_evaluator(seed: int) -> None:
    """At a random point, negative ones included, the term has the evaluator's value and no other; conditions too."""
    rng = Random(seed)
    expr, where = number(rng, 2), condition(rng, 1)
    env = {"i": rng.randint(-9, 9), "j": rng.randint(-9, 9)}
    query = Query()
    encoder = IntEncoder(query, width=12)
    term, holds = encoder.integer(expr), encoder.condition(where)
    query.add(*(encoder.variable(name) == at for name, at in env.items()))
    query.add(query.z3.Or(term != evaluate(expr, env), holds != bool(evaluate(where, env))))
    assert query.solve().answer is Answer.UNSAT


@one_in(4)
@pytest.mark.parametrize("op", [BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD])
def test_division_by_a_variable_of_either_sign(op: BinaryOp) -> None:
    """The four divisions by a variable, on every pair of small numbers; zero divisors are listed, not decided."""
    x, y = Var("x"), Var("y")
    expr = binary(op, x, y)
    for a in range(-5, 6):
        for b in (-3, -2, -1, 1, 2, 3):
            query = Query()
            encoder = IntEncoder(query)
            term = encoder.integer(expr)
            assert len(encoder.divisors) == 1
            query.add(encoder.variable("x") == a, encoder.variable("y") == b, term != evaluate(expr, {"x": a, "y": b}))
            assert query.solve().answer is Answer.UNSAT


def test_what_is_not_index_arithmetic_is_named() -> None:
    """Floats, and bits of operands without a bound, are refused with the part."""
    query = Query()
    with pytest.raises(NotInteger) as caught:
        IntEncoder(query).integer(Var("x") ^ Var("y"))
    assert caught.value.expr == Var("x") ^ Var("y")
    with pytest.raises(NotInteger):
        IntEncoder(query).integer(FloatImm(1.0, FLOAT32))


def test_products_of_symbols_are_proved_injective() -> None:
    """The non-linear engine alone proves the mixed-radix map, and not one whose stride is too small."""
    good = make_problem(*read_question("lambda i, j: [i*m + j]", ("n", "m")))
    assert prove_injective_by_z3(good, (0,), (0, 1), 4_000_000)[0]
    bad = make_problem(*read_question("lambda i, j: [i*n + j]", ("n", "m")))
    assert not prove_injective_by_z3(bad, (0,), (0, 1), 4_000_000)[0]


def test_solver_is_loaded_only_when_asked() -> None:
    """Importing the session does not import z3."""
    import subprocess
    import sys

    text = "import sys, layoutproof.verify.smt.solver, layoutproof.verify.maps.check_map; sys.exit('z3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0


def test_constants_of_random_expressions_are_small() -> None:
    """The width of 12 bits that the encoding test uses holds what it computes, so that the test is about meaning, not
    overflow.
    """
    for seed in range(60):
        rng = Random(seed)
        expr: Expr = number(rng, 2)
        env = {Var("i"): const(9), Var("j"): const(-9)}
        for node in walk(substitute(expr, env)):
            if isinstance(node, Expr) and node.dtype.is_integer and not isinstance(node, IntImm):
                try:
                    assert abs(int(evaluate(node, {}))) < 4096
                except Trap:
                    continue
