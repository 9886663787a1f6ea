"""The simplifier: equal values, known results, an end to every rewriting, and hands off what floats do."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from tests.lowering.lower.test_blocks import statement_types
from tests.lowering.programs import program
from tests.lowering.small_operators import NAMES, assert_same_results, small
from tests.random.nests import random_reduction
from tests.shares import one_in

from layoutproof.ir.dtype import FLOAT32, INT8, INT64
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, Cast, Expr, IfThenElseExpr, Var, const, logical_and
from layoutproof.ir.interval import Interval
from layoutproof.ir.notations.map_text import parse_condition, parse_integer
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import loads_in
from layoutproof.lowering.arith.affine import affine_of, expression_of
from layoutproof.lowering.arith.index_simplify import IndexSimplifier
from layoutproof.lowering.arith.known_facts import Known, Scope
from layoutproof.lowering.lower.flatten import LowerBlocks
from layoutproof.lowering.lower.simplify import SIMPLIFIED_TYPES, Simplify, simplify_value

RANGES = {"i": (0, 14), "j": (0, 4), "k": (0, 3), "x": (-5, 11)}
VARIABLES = {name: Var(name) for name in (*RANGES, "n", "m")}


def scope_of() -> Scope:
    """The loops `i < 14`, `j < 4`, `k < 3`, `-5 <= x < 6`, and `m < n` for a symbol `n`."""
    scope = Scope({VARIABLES["n"]: Known(Interval(0, 2**31 - 1))})
    for name, (start, extent) in RANGES.items():
        scope = scope.with_range(VARIABLES[name], const(start), const(extent))
    return scope.with_range(VARIABLES["m"], const(0), VARIABLES["n"])


def simplified(text: str) -> str:
    """An integer expression, simplified, as plain text."""
    return expr_text(IndexSimplifier(scope_of()).simplify(parse_integer(text, VARIABLES)), "plain")


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("(4*i + j)//4", "i"),
        ("(4*i + j)%4", "j"),
        ("i//8*8 + i%8", "i"),
        ("(i + 10)//8*8 + (i + 10)%8", "i + 10"),
        ("i//8*4 + i//2%4", "i//2"),
        ("i%8//2*2 + i%2", "i%8"),
        ("(i*16 + j*4 + k)//8", "i*2 + j//2"),
        ("(i*16 + j*4 + k)%8", "j%2*4 + k"),
        ("i//2//3", "i//6"),
        ("(i*8 + j)%8//2", "j//2"),
        ("i//14", "0"),
        ("i%14", "i"),
        ("(i + 20)//7*0", "0"),
        ("m//n", "0"),
        ("(i*n + m)//n", "i"),
        ("(i*n + m)%n", "m"),
        ("x//11", "x//11"),
        ("(x + 5)//11", "0"),
        ("truncdiv(i, 4)", "i//4"),
        ("truncmod(x, 4)", "truncmod(x, 4)"),
        ("min(i, 20)", "i"),
        ("max(j, i + 4)", "i + 4"),
        ("2*i + 3*j - i - 3*j", "i"),
        ("(i + j)*4 + k*4 - 8", "(i + j + k)*4 - 8"),
        ("if_then_else(i < 14, i//14, 5)", "0"),
        ("if_then_else(i < 3, i//3, i)", "if_then_else(i < 3, 0, i)"),
        ("7 - 12", "-5"),
        ("-7//2", "-4"),
        ("5 % (0 - 3)", "-1"),
        ("i//0", "i//0"),
    ],
)
def test_known_results(text: str, wanted: str) -> None:
    """The identities that flattened and tiled indices need, and operations that must stay."""
    assert simplified(text) == wanted


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("i < 14", "True"),
        ("i >= 14", "False"),
        ("i < 13", "i < 13"),
        ("m < n", "True"),
        ("0 <= x + 5 and x < 7", "True"),
        ("i < 7 and i < 9", "i < 7"),
        ("not (i < 20) or j == 1", "j == 1"),
        ("i == j + 20", "False"),
        ("i//4 != 4", "True"),
    ],
)
def test_conditions(text: str, wanted: str) -> None:
    """Comparisons that the ranges decide become truth values, and connectives go with them."""
    condition = parse_condition(text, VARIABLES)
    assert expr_text(IndexSimplifier(scope_of()).simplify(condition), "plain") == wanted


def random_index(rng: Random, depth: int) -> Expr:
    """A random expression over i, j, k and x without a division by zero."""
    if depth == 0 or rng.random() < 0.15:
        return VARIABLES[rng.choice(list(RANGES))] if rng.random() < 0.7 else const(rng.randint(-9, 20))
    left, right = random_index(rng, depth - 1), random_index(rng, depth - 1)
    number = const(rng.choice([1, 2, 3, 4, 6, 8, 12]))
    kind = rng.choice(["+", "+", "-", "*", "*c", "//", "%", "//", "%", "min", "max", "trunc", "if", "wide"])
    if kind == "if":
        return IfThenElseExpr(left < right, left, number)
    if kind == "wide":
        return left
    table: dict[str, Expr] = {
        "+": left + right,
        "-": left - right,
        "*": left * right,
        "*c": left * number,
        "//": left // number,
        "%": left % number,
        "min": Binary(BinaryOp.MIN, left, right),
        "max": Binary(BinaryOp.MAX, left, number),
        "trunc": Binary(rng.choice([BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD]), left, number),
    }
    return table[kind]


@one_in(18)
@pytest.mark.parametrize("seed", range(300))
def test_random_index_arithmetic_keeps_its_value(seed: int) -> None:
    """At every point of the ranges the simplified expression has the old value; simplifying is idempotent."""
    rng = Random(seed)
    expr = random_index(rng, 4)
    if rng.random() < 0.2:
        expr = Cast(INT64, expr)
    simple = IndexSimplifier(scope_of()).simplify(expr)
    assert simple.dtype == expr.dtype
    points = list(product(*(range(start, start + extent) for start, extent in RANGES.values())))
    for point in rng.sample(points, 150):
        env = dict(zip(RANGES, point, strict=True))
        assert evaluate(simple, env) == evaluate(expr, env), (expr_text(expr, "plain"), expr_text(simple, "plain"), env)
    assert IndexSimplifier(scope_of()).simplify(simple) == simple, expr_text(expr, "plain")


@one_in(14)
@pytest.mark.parametrize("seed", range(100))
def test_bounds_hold_every_value(seed: int) -> None:
    """The interval of a random expression has all values that it takes, also under a condition."""
    rng = Random(1000 + seed)
    expr, condition = random_index(rng, 3), random_index(rng, 2) < random_index(rng, 1)
    scope = scope_of()
    inside = scope.with_condition(condition)
    outside = scope.with_condition(condition, False)
    points = list(product(*(range(start, start + extent) for start, extent in RANGES.values())))
    for point in rng.sample(points, 150):
        env = dict(zip(RANGES, point, strict=True))
        value = evaluate(expr, env)
        for interval in (scope.bounds(expr), (inside if evaluate(condition, env) else outside).bounds(expr)):
            assert value in interval


def test_every_statement_type_is_simplified() -> None:
    """No kind of statement is forgotten by the table."""
    assert statement_types() == SIMPLIFIED_TYPES


@pytest.mark.parametrize("name", NAMES)
def test_simplified_operators_compute_the_same(name: str) -> None:
    """The simplifier keeps what operators compute and is idempotent on them."""
    func = small(name)
    new = Simplify().propose(func).new
    assert Simplify().propose(new).new == new
    assert_same_results(func, new, symbols={"n": 3, "m": 4})


@pytest.mark.parametrize("text", ["x + T.float32(0)", "x * T.float32(0)", "x - x", "x / x", "T.max(x, x) + y - y"])
def test_floats_are_left_alone(text: str) -> None:
    """What is true of numbers and not of -0.0, NaN and infinities is not used."""
    func = program(f"""def main(A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "float32")):
    x: T.float32 = A[0]
    y: T.float32 = A[0]
    B[0] = {text}
""")
    assert Simplify().propose(func).new == func


def test_float_rules_that_hold_bit_for_bit_are_used() -> None:
    """`x * 1.0` and `x - 0.0` are x, whatever x is; constants are folded in their own type."""
    x = Var("x", FLOAT32)
    assert simplify_value(x * 1.0 - 0.0, Scope()) == x
    assert simplify_value(const(0.1, FLOAT32) + const(0.2, FLOAT32), Scope()) == const(0.30000001192092896, FLOAT32)


def test_stored_integers_wrap() -> None:
    """Fixed-width values are no index arithmetic: `x*2//2` of an int8 stays unless bounds exclude wrapping."""
    x = Var("x", INT8)
    assert simplify_value((x * 2) // 2, Scope()) == (x * 2) // 2
    assert simplify_value((x * 2) // 2, Scope().with_range(x, const(0, INT8), const(60, INT8))) == x
    assert simplify_value(const(100, INT8) + const(100, INT8), Scope()) == const(-56, INT8)


def test_a_guard_helps_what_is_under_it() -> None:
    """Inside `if i < 3` the index `i//3` is 0; a decided branch disappears, with its stores, and the witness knows
    which are left.
    """
    func = program("""def main(B: T.Buffer((16,), "int32")):
    for i in range(16):
        if i < 20:
            if i < 3:
                B[i // 3 + i] = 1
            else:
                B[i] = 2
        else:
            B[0] = 3
""")
    rewrite = Simplify().propose(func)
    assert "B[i] = 1" in print_func(rewrite.new) and "= 3" not in print_func(rewrite.new)
    assert [m.old_store for m in rewrite.witness.instances] == [0, 1]
    assert_same_results(func, rewrite.new)


def test_an_empty_reduction_keeps_its_init() -> None:
    """A loop without iterations is dropped, but not where a block in it initialises."""
    func = program("""def main(B: T.Buffer((3,), "int32")):
    for i in range(0):
        B[i] = 5
    for i, k in T.grid(3, 0):
        with T.sblock("sum"):
            vi = T.axis.spatial(3, i)
            vk = T.axis.reduce(0, k)
            with T.init():
                B[vi] = 4
            B[vi] = B[vi] + vk
""")
    new = Simplify().propose(func).new
    assert "= 5" not in print_func(new)
    assert_same_results(func, new)


def test_an_init_is_simplified_by_the_guards_around_it() -> None:
    """What branches and the block's guard say holds where the init runs, as it does for the updates."""
    func = program("""def main(A: T.Buffer((4, 5), "int32"), B: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 5):
        if i + k == 7:
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.where(i == 3)
                with T.init():
                    B[vi] = i // 3
                B[vi] = B[vi] + A[vi, vk] * (i // 3)
""")
    new = Simplify().propose(func).new
    assert "B[vi] = 1" in print_func(new)
    assert_same_results(func, new)


@one_in(14)
@pytest.mark.parametrize("seed", range(40))
def test_random_reductions_are_simplified(seed: int) -> None:
    """Before and after lowering its blocks, a random reduction is simplified to one that computes the same, once and
    for all.
    """
    func = random_reduction(Random(seed))
    for step in (Simplify(), LowerBlocks(), Simplify()):
        new = step.propose(func).new
        assert_same_results(func, new)
        assert step.propose(new).new == new
        func = new


def test_a_loaded_range_says_nothing_of_later_loads() -> None:
    """The extent of a loop is read once; a store inside the loop may change the cell it came from."""
    func = program("""def main(A: T.Buffer((1,), "int32"), B: T.Buffer((8,), "int32")):
    for k in range(A[0]):
        A[0] = 0
        B[T.min(k, A[0])] = k
""")
    assert "B[T.min(k, A[0])] = k" in print_func(Simplify().propose(func).new)


def test_conditions_that_load_say_nothing() -> None:
    """What is loaded is a value of a fixed width: `x + A[0] // 2**28 < 5` may hold because it wrapped."""
    func = program("""def main(A: T.Buffer((1,), "int32"), B: T.Buffer((64,), "int32")):
    for i in range(64):
        if i + A[0] // 268435456 < 5:
            B[i] = i // 32
""")
    assert "B[i] = i // 32" in print_func(Simplify().propose(func).new)


def test_normal_forms_read_back() -> None:
    """A normal form written out and read again is the same one."""
    rng = Random(5)
    for _ in range(200):
        affine = affine_of(random_index(rng, 4))
        assert affine_of(expression_of(affine, const(0).dtype)) == affine


def test_assumptions_keep_their_identity() -> None:
    """`A[i] == v` in an assumption is value identity; the simplifier touches indices in it, nothing else."""
    func = program("""def main(A: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        T.assume(not (i == 3 and (4 * i + j) % 4 >= 2) or A[(4 * i + j) // 4, j] == T.float32(0))
""")
    assert "T.assume(not (i == 3 and j >= 2) or A[3, j] == T.float32(0.0))" in print_func(Simplify().propose(func).new)


def test_conjunctions_are_simplified_under_their_left_side() -> None:
    """The right side of `and` may use the left."""
    i = VARIABLES["i"]
    assert IndexSimplifier(scope_of()).simplify(logical_and(i < 4, i // 4 < 1)) == (i < 4)


def test_a_select_loads_on_both_sides() -> None:
    """What the condition says may not shorten the index of a load in an arm: a select evaluates both arms,
    `if_then_else` does not.
    """
    for choice, index in (("T.Select", "(i + 1)%4"), ("T.if_then_else", "i + 1")):
        func = program(f"""def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = {choice}(i < 3, A[(i + 1) % 4], T.float32(0))
""")
        (load,) = loads_in(Simplify().propose(func).new.body)
        assert expr_text(load.indices[0], "plain") == index


def wide(text: str) -> Expr:
    """An integer expression, widened to 64 bits as a whole."""
    return Cast(INT64, parse_integer(text, VARIABLES))


@pytest.mark.parametrize(
    "expr, wanted",
    [
        # Digits that are widened one by one are those of one number; other quotients stay the terms that shapes of
        # buffers have.
        (wide("i//4") * 4 + wide("i%4"), "int64(i)"),
        (wide("i//8") * 4 + wide("i//2%4"), "int64(i//2)"),
        (wide("(n + 3)//4") * wide("m"), "int64((n + 3)//4)*int64(m)"),
        # Products of symbols keep their order; what stands in them is simplified where that makes it smaller.
        (wide("m") * (wide("(n + 3)//4") * wide("n")) + wide("j"), "int64(m)*(int64((n + 3)//4)*int64(n)) + int64(j)"),
        (
            wide("(4*i + j)//4") * (wide("n") * wide("m")) + wide("(4*i + j)%4"),
            "int64(i)*(int64(n)*int64(m)) + int64(j)",
        ),
        (wide("i - 1") * (wide("n") * 4) + wide("j - 1") * 4, "int64(i - 1)*(int64(n)*4) + int64(j - 1)*4"),
        (wide("n") * wide("m") - wide("n") * wide("m"), "0"),
        # Without them a sum is put into its one order.
        (wide("i - 1") * 4 + wide("j"), "int64(i)*4 + int64(j) - 4"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_flat_indices_of_symbolic_shapes(expr: Expr, wanted: str) -> None:
    """Indices in 64 bits keep their values and the terms that shapes are made of, and are simplified once."""
    result = IndexSimplifier(scope_of()).simplify(expr)
    assert expr_text(result, "plain") == wanted
    assert IndexSimplifier(scope_of()).simplify(result) == result
    for values in (
        {"i": 13, "j": 3, "k": 2, "x": -5, "n": 9, "m": 4},
        {"i": 0, "j": 0, "k": 0, "x": 0, "n": 1, "m": 0},
    ):
        assert evaluate(result, values) == evaluate(expr, values)
