"""What proofs assume of symbols, checked by generated C: the same verdicts as over the integers, and no overflow on the
way.
"""

import subprocess
from itertools import product
from pathlib import Path
from random import Random

from tests.lowering.codegen.plain_c import SANITIZERS, WARNINGS, compile_c, write_source
from tests.lowering.codegen.programs import function, loop
from tests.shares import one_in

from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.dtype import FLOAT32, INT64, DType
from layoutproof.ir.expr import Binary, Cast, Expr, IfThenElseExpr, Not, Var, const, equal, logical_and, logical_or
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.stmt import BufferStore
from layoutproof.lowering.codegen.c import CSource, emit_c
from layoutproof.lowering.codegen.requirements import Contract, Requirement

EXTREMES = (
    -(1 << 63),
    -(1 << 63) + 1,
    -(1 << 32),
    -(1 << 31),
    -7,
    -4,
    -1,
    0,
    1,
    3,
    4,
    46_341,
    1 << 31,
    1 << 32,
    (1 << 62) + 1,
    (1 << 63) - 1,
)
N, M = Var("n", INT64), Var("m", INT64)
OPERATIONS = [op for op in BinaryOp if op not in (BinaryOp.DIV, BinaryOp.SHL, BinaryOp.SHR)]


def source_with(
    requirements: list[Requirement], promises: tuple[str, ...] = (), scalars: tuple[Var, ...] = (N, M)
) -> CSource:
    """A function that does nothing much, and refuses scalars that do not meet the requirements."""
    a = make_buffer("A", (1,), "float32")
    body = BufferStore(a, (const(0),), const(1.0, FLOAT32))
    return emit_c(function("guarded", [a], body, scalars=scalars), contract=Contract(tuple(requirements), promises))


def random_expr(rng: Random, depth: int) -> Expr:
    """Index arithmetic over two symbols of 64 bits."""
    if depth == 0:
        return rng.choice([N, M, const(rng.choice([0, 1, 3, 4, -2]), INT64)])
    if rng.random() < 0.15:
        return IfThenElseExpr(
            random_expr(rng, depth - 1) < random_expr(rng, 0), random_expr(rng, depth - 1), random_expr(rng, depth - 1)
        )
    return Binary(rng.choice(OPERATIONS), random_expr(rng, depth - 1), random_expr(rng, depth - 1))


def answers(source: CSource, folder: Path, points: list[tuple[int, int]]) -> list[int]:
    """What the function returns for each point, called from C under the sanitizers."""
    write_source(source, folder)
    texts = [", ".join("INT64_MIN" if v == -(1 << 63) else f"INT64_C({v})" for v in point) for point in points]
    calls = "\n".join(f'    printf("%d\\n", {source.entry}(&a, {text}));' for text in texts)
    main = f'#include <stdio.h>\n#include "kernel.h"\nint main(void) {{\n    float a = 0;\n{calls}\n    return 0;\n}}\n'
    (folder / "main.c").write_text(main, encoding="utf-8")
    compile_c(folder, *WARNINGS, *SANITIZERS, "main.c", "kernel.c", "-o", "program", "-lm")
    done = subprocess.run(["./program"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


@one_in(10)
def test_exact_operations_agree_with_integers(tmp_path: Path) -> None:
    """Operations on extreme numbers are refused in C exactly if the result has no value or does not fit 64 bits."""
    points = list(product(EXTREMES, EXTREMES))
    for number, op in enumerate(OPERATIONS):
        folder = tmp_path / str(number)
        folder.mkdir()
        requirement = Requirement(Binary(op, N, M), fits=True)
        found = answers(source_with([requirement]), folder, points)
        wanted = [0 if requirement.failure({"n": n, "m": m}) is None else 3 for n, m in points]
        assert found == wanted, (op, [p for p, a, b in zip(points, found, wanted, strict=True) if a != b][:3])


@one_in(10)
def test_random_requirements_never_pass_in_c_alone(tmp_path: Path) -> None:
    """Random conditions and ranges at extreme and at small numbers: what C lets through holds over the integers; small
    numbers agree.
    """
    rng = Random(3)
    small = [(n, m) for n in range(-3, 6) for m in range(-3, 6)]
    points = small + rng.sample(list(product(EXTREMES, EXTREMES)), 60)
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        a, b = random_expr(rng, 2), random_expr(rng, 2)
        condition = rng.choice([logical_and, logical_or])(a <= b, Not(equal(N, M)))
        requirements = [Requirement(condition), Requirement(Cast(DType.parse("int32"), a), fits=True)]
        found = answers(source_with(requirements[: 1 + number % 2]), folder, points)
        for (n, m), code in zip(points, found, strict=True):
            holds = all(r.failure({"n": n, "m": m}) is None for r in requirements[: 1 + number % 2])
            assert code == 3 or holds, (str(a), n, m)
            assert (n, m) not in small or (code == 0) == holds, (requirements[0].text, n, m)


def test_narrow_and_unsigned_types_have_their_own_limits(tmp_path: Path) -> None:
    """A sum of 32-bit symbols is refused one past their type; the bounds of a symbol are not checked twice."""
    n = Var("n")
    source = source_with([Requirement(n + 1, fits=True), Requirement(n >= 0)], scalars=(n, M))
    assert answers(source, tmp_path, [(0, 0), ((1 << 31) - 2, 0), ((1 << 31) - 1, 0), (-1, 0)]) == [0, 0, 3, 3]
    wide = Var("u", DType.parse("uint64"))
    text = source_with([Requirement(wide + wide, fits=True)], scalars=(wide,)).text
    assert "lp_exact_u64(u, &lp_inexact)" in text


def test_the_header_says_what_is_checked_and_what_is_not() -> None:
    """Requirements stand in the comment; what C cannot check, and what is promised of data, is named as the caller's
    word.
    """
    shifted = Requirement((N >> 1) > 0)
    source = source_with([Requirement(equal(N % 4, const(0, INT64))), shifted], ("padding of A holds 0",))
    comment = source.header
    checked, _, trusted = comment.partition("Preconditions that are not checked:")
    assert "Checked at every call:\n *   n%4 == 0\n" in checked
    assert shifted.text in trusted and "padding of A holds 0" in trusted and shifted.text not in checked
    plain = emit_c(function("plain", [make_buffer("B", (3,), "float32")], loop("i", 3, lambda i: store_zero(i))))
    assert "Checked" not in plain.header and "not checked" not in plain.header


def store_zero(i: Var) -> BufferStore:
    """`B[i] = 0`."""
    return BufferStore(make_buffer("B", (3,), "float32"), (i,), const(0.0, FLOAT32))


def test_names_of_the_check_do_not_meet_the_program_s(tmp_path: Path) -> None:
    """Scalars that are called like a check's own variables."""
    scalars = (Var("lp_value", INT64), Var("value", INT64))
    requirement = Requirement(scalars[0] + scalars[1], fits=True)
    assert answers(source_with([requirement], scalars=scalars), tmp_path, [(1, 2), ((1 << 63) - 1, 1)]) == [0, 3]


def test_what_has_no_value_does_not_hold() -> None:
    """A division by zero in a condition is a failure with its reason; `abs` is index arithmetic that C leaves to the
    caller.
    """
    assert "zero" in str(Requirement(equal(M % N, const(0, INT64))).failure({"n": 0, "m": 3}))
    size = Requirement(Call("abs", (N,)) < 3)
    assert size.failure({"n": -2}) is None and size.failure({"n": 5}) == "it does not hold"
    load = BufferLoad(make_buffer("A", (1,), "float32"), (const(0),))
    assert (
        load.dtype == FLOAT32 and "Preconditions that are not checked:\n *   abs(n) < 3" in source_with([size]).header
    )
