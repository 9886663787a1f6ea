"""Integers that are computed through floats, as index arithmetic: against the interpreter, at every point."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.shares import one_in

from layoutproof.ir.expr import Cast
from layoutproof.ir.interp.run import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.visit import walk
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.verify.values.float_indices import in_integers
from layoutproof.verify.verdict.verdict import Status


def table(expr: str, extent: int, start: int = 0) -> PrimFunc:
    """`B[i - start] = expr` over `i`."""
    return loads(
        f"""@T.prim_func(s_tir=True)
def main(B: T.Buffer(({extent},), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    for i in T.serial({start}, {extent}):
        B[i - {start}] = {expr}
""",
        "table.py",
    )


def converts(func: PrimFunc) -> bool:
    """Whether a float still becomes an integer somewhere."""
    return any(isinstance(n, Cast) and n.dtype.is_integer and n.value.dtype.is_float for n in walk(func.body))


def values(func: PrimFunc, extent: int, start: int = 0) -> list[int]:
    """What the interpreter stores, which reads the conversion as it stands."""
    found: list[int] = run(func, {"B": np.zeros(extent, np.int32)})["B"].tolist()[: extent - start]
    return found


FORMULAS = [
    ('T.Cast("int32", T.floor(T.Cast("float32", i) * T.float32(0.5)))', "i // 2"),
    ('T.Cast("int32", T.floor(T.Cast("float32", i * 2) + T.float32(0.5)))', "i*2"),
    (
        'T.Cast("int32", T.floor((T.Cast("float32", i) + T.float32(0.5)) * T.float32(0.5) - T.float32(0.5)))',
        "(i + -1) // 2",
    ),
    ('T.Cast("int32", T.Cast("float32", i) / T.float32(3))', "i // 3"),
    (
        'T.Cast("int32", T.min(T.max(T.Cast("float32", i) - T.float32(3), T.float32(0)), T.float32(7)))',
        "T.max(T.min(i + -3, 7), 0)",
    ),
    ('T.Cast("int32", T.sqrt(T.Cast("float32", i) + T.float32(100)) * T.float32(0))', "0"),
    ('T.Cast("int32", T.ceil(T.log2(T.Cast("float64", i + 1025))))', "11"),
    ('T.Cast("int32", T.log2(T.Cast("float64", i + 1025)))', "10"),
    ('T.Cast("int32", T.ceil(T.exp(T.Cast("float32", i) * T.float32(-0.01) - T.float32(0.1))))', "1"),
]


@pytest.mark.parametrize(("computed", "formula"), FORMULAS)
def test_a_formula_is_found(computed: str, formula: str) -> None:
    """Both the text, and every value as the interpreter has it."""
    func = table(computed, 40)
    found = in_integers(func)
    assert not converts(found)
    assert print_func(found) == print_func(table(formula, 40))
    assert values(found, 40) == values(func, 40)
    assert in_integers(func) is found and in_integers(found) is found


KEPT = {
    "a library function where its error matters": 'T.Cast("int32", T.ceil(T.log2(T.Cast("float64", i + 1024))))',
    "more than a library function": 'T.Cast("int32", T.ceil(T.log2(T.Cast("float64", i + 1025)) * T.float64(2)))',
    "a library function of another": 'T.Cast("int32", T.ceil(T.log2(T.exp(T.Cast("float64", i + 1)))))',
    "a library function near an integer": 'T.Cast("int32", T.floor(T.log2(T.Cast("float32", i + 16777177))))',
    "a library function without a result": 'T.Cast("int32", T.ceil(T.log2(T.Cast("float64", i - 39))))',
    "no result at the end": 'T.Cast("int32", T.float32(1) / T.Cast("float32", 39 - i))',
    "no such formula": 'T.Cast("int32", T.Cast("float32", i) * T.Cast("float32", i))',
    "an operand that may wrap": 'T.Cast("int32", T.Cast("float32", i * 100000000 * 100) * T.float32(0))',
    "two operands": 'T.Cast("int32", T.Cast("float32", i) + T.Cast("float32", i // 3))',
    "data": 'T.Cast("int32", T.Cast("float32", B[i]) * T.float32(0))',
    "a divisor that may be zero": 'T.Cast("int32", T.Cast("float32", 7 // i) * T.float32(0))',
}


@pytest.mark.parametrize("computed", KEPT.values(), ids=KEPT.keys())
def test_what_stays(computed: str) -> None:
    """Without a formula, or where a formula would hide a fault, nothing changes."""
    func = table(computed, 40)
    assert in_integers(func) is func


@one_in(7)
@pytest.mark.parametrize("seed", range(20))
def test_logarithms(seed: int) -> None:
    """What is found of a rounded logarithm is what integers say of it, and nothing where it is an integer itself."""
    rng = Random(seed)
    function, dtype = rng.choice(("ceil", "floor")), rng.choice(("float32", "float64"))
    extent, first = rng.randint(2, 12), rng.randint(1, 1 << rng.randint(1, 12))
    func = table(f'T.Cast("int32", T.{function}(T.log2(T.Cast("{dtype}", i + {first}))))', extent)
    exactly = [(n - (function == "ceil")).bit_length() - (function == "floor") for n in range(first, first + extent)]
    powers = [n for n in range(first, first + extent) if n & (n - 1) == 0]
    assert not powers or in_integers(func) is func
    assert values(in_integers(func), extent) == exactly
    assert bool(powers) or len(set(exactly)) > 1 or not converts(in_integers(func))


def test_of_an_undefined_value() -> None:
    """A constant in the place of an undefined index would hide that it is none."""
    func = loads(
        """@T.prim_func(s_tir=True)
def main(B: T.Buffer((8,), "int32")):
    u: T.let[T.int32] = T.undef(dtype="int32")
    B[T.Cast("int32", T.Cast("float32", u % 8) * T.float32(0))] = 1
""",
        "undefined.py",
    )
    assert in_integers(func) is func


def test_blocks_and_lets_have_ranges() -> None:
    """What they bind is no wider than what it is bound to."""
    func = loads(
        """@T.prim_func(s_tir=True)
def main(B: T.Buffer((40,), "int32")):
    for i, j in T.grid(4, 10):
        with T.sblock("b"):
            v = T.axis.spatial(40, i * 10 + j)
            w: T.let[T.int32] = v + 2
            B[v] = T.Cast("int32", T.floor(T.Cast("float32", w) * T.float32(0.25)))
""",
        "blocks.py",
    )
    found = in_integers(func)
    assert not converts(found) and values(found, 40) == values(func, 40) == [(v + 2) // 4 for v in range(40)]


def _drawn(random: Random) -> str:
    """A scaled and rounded index, as resizing operators have it, or much odder."""
    dtype = random.choice(["float16", "float32", "float32", "float64"])
    scale, offset = (random.choice([0.5, 0.25, 2.0, 1.5, 0.3, 39 / 79, -1.0, 0.1]) for _ in range(2))
    inner = f'T.Cast("{dtype}", i + {random.randrange(-3, 4)}) * T.{dtype}({scale})'
    inner = random.choice([inner, f"({inner} + T.{dtype}({offset}))", f"({inner} - T.{dtype}(0.5))"])
    if random.random() < 0.3:
        inner = f"T.min(T.max({inner}, T.{dtype}(0)), T.{dtype}({random.randrange(3, 30)}))"
    rounded = random.choice(["T.floor({})", "T.ceil({})", "T.round({})", "T.trunc({})", "{}"]).format(inner)
    return f'T.Cast("int32", {rounded})'


@one_in(12)
@pytest.mark.parametrize("seed", range(8))
def test_drawn(seed: int) -> None:
    """Every value stays, whatever is drawn; most get a formula."""
    random, found = Random(seed), 0
    for _ in range(60):
        extent = random.choice([1, 2, 3, 17, 80, 200])
        start = random.randrange(extent)
        func = table(_drawn(random), extent, start)
        changed = in_integers(func)
        found += not converts(changed)
        assert values(changed, extent, start) == values(func, extent, start)
    assert found > 30


RESIZED = """@T.prim_func(s_tir=True)
def main(A: T.Buffer((50,), "float32"), B: T.Buffer((40,), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for i in range(40):
        B[i] = A[{index}]
"""


@one_in(14)
@pytest.mark.parametrize("seed", range(4))
def test_attack(seed: int) -> None:
    """A gather by floats against one by integers: proved is only what agrees everywhere, and what agrees is proved."""
    random = Random(1000 + seed)
    for _ in range(25):
        scale, offset = random.choice([0.5, 0.25, 1.0, 0.75]), random.choice([0.0, 0.5, 0.25])
        factor, divisor, shift = random.randrange(1, 4), random.choice([1, 2, 4]), random.randrange(0, 3)
        before = f'T.Cast("int32", T.floor(T.Cast("float32", i) * T.float32({scale}) + T.float32({offset})))'
        after = f"(i * {factor} + {shift}) // {divisor}"
        wanted = [int(i * scale + offset) for i in range(40)]
        if max(wanted) >= 50 or max((i * factor + shift) // divisor for i in range(40)) >= 50:
            continue
        same = wanted == [(i * factor + shift) // divisor for i in range(40)]
        answer = compare(*(loads(RESIZED.format(index=index), "resized.py") for index in (before, after))).status
        assert answer is (Status.PROVED if same else Status.REFUTED)
