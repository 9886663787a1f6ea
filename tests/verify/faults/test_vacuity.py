"""That a program runs at all is shown by an input, or it is proved that there is none, or nobody knows: each is what
brute force says.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import numpy as np
import pytest
from tests.shares import one_in

import layoutproof as lp
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.interp import Fault, run
from layoutproof.ir.notations.map_text import parse_condition
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.arith.known_facts import constants_of
from layoutproof.verify.faults import example_run
from layoutproof.verify.faults.example_run import SearchState, find_run
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.vacuity import note_no_new_fault, possible_faults, prove_runs
from layoutproof.verify.verdict.verdict import Status, Verdict

S = 'A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), n: T.int32, m: T.int32'
COPY, MORE = "for i in range(4):\n    B[i] = A[i]", "for i in range(4):\n    B[i] = A[i] + 1"
BACK = "for i in range(4):\n    B[3 - i] = A[3 - i]"


def func(body: str, signature: str = S) -> PrimFunc:
    """A function of a body, whose parameters do not overlap."""
    lines = "".join(f"    {line}\n" for line in f'T.func_attr({{"tirx.noalias": True}})\n{body}'.split("\n"))
    return lp.loads(f"@T.prim_func(s_tir=True)\ndef main({signature}):\n{lines}")


def assumed(*conditions: str) -> str:
    """Assumptions on symbols as statements."""
    return "".join(f"T.evaluate(T.assume({condition}))\n" for condition in conditions)


def of_elements(*conditions: str) -> str:
    """Assumptions about each element, in a loop each."""
    return "".join(f"for i in range(4):\n    T.evaluate(T.assume({condition}))\n" for condition in conditions)


def status_of(verdict: Verdict) -> str:
    """The verdict's word."""
    return verdict.status.value


NEVER = {
    "square": (assumed("n * n == 2"), None, "n*n == 2"),
    "product": ("", "n*m == 1024 and n == 3", "n*m == 1024, n == 3"),
    "below and above": (of_elements("A[i] < 0", "A[i] > 0"), None, "A[i] < 0 (line 5), A[i] > 0 (line 7)"),
    "in one loop": (
        "for i in range(4):\n    T.evaluate(T.assume(A[i] < 0))\n    T.evaluate(T.assume(A[i] > 0))\n",
        None,
        "cannot all hold",
    ),
    "two numbers": (of_elements("A[i] == 1", "A[i] == 2"), None, "cannot all hold"),
    "a symbol and data": (assumed("n > 5") + of_elements("A[i] == n", "A[i] < 3"), None, "cannot all hold"),
    "below the type": (assumed("n < -2147483648"), None, "cannot all hold"),
    "one element": (assumed("A[0] == 1", "A[0] == 2"), None, "cannot all hold"),
}


@one_in(4)
@pytest.mark.parametrize("case", NEVER.values(), ids=NEVER)
def test_what_never_holds_proves_nothing(case: tuple[str, str | None, str]) -> None:
    """Under assumptions that contradict each other, a copy is not proved to be a copy plus one; they are named."""
    pre, where, named = case
    found = lp.compare(func(pre + COPY), func(pre + MORE), where=where)
    assert found.status is Status.VACUOUS
    assert named in str(found.verdicts[0].reason)
    assert lp.compare(func(pre + COPY), func(pre + COPY), where=where).status is Status.PROVED


HOLDS = {
    "square": (assumed("n * n == 1369"), None),
    "product": ("", "n*m == 1021 and n > 1"),
    "far away": ("", "n > 1000000 and m == n + 7"),
    "between": (of_elements("A[i] > 40", "A[i] < 42"), None),
    "a root": (of_elements("A[i] * A[i] == 1369"), None),
    "growing": ("for i in range(3):\n    T.evaluate(T.assume(A[i] < A[i + 1]))\n", None),
    "its own place": (of_elements("A[i] == 3 - i"), None),
    "a symbol": (of_elements("A[i] == n"), "n > 77"),
}


@one_in(12)
@pytest.mark.parametrize("case", HOLDS.values(), ids=HOLDS)
def test_what_can_hold_is_shown(case: tuple[str, str | None]) -> None:
    """A program whose assumptions some input satisfies is proved to be itself backwards, and refuted to be itself plus
    one.
    """
    pre, where = case
    assert lp.compare(func(pre + COPY), func(pre + BACK), where=where).status is Status.PROVED
    assert lp.compare(func(pre + COPY), func(pre + MORE), where=where).status in (Status.REFUTED, Status.UNKNOWN)


def test_what_is_assumed_of_a_sum_is_shown() -> None:
    """An assumption about something that the program computes first is satisfied by a run, too."""
    total = "C = T.alloc_buffer((1,), 'int32')\nC[0] = 0\nfor i in range(4):\n    C[0] = C[0] + A[i]\n"
    assert status_of(prove_runs(func(total + assumed("C[0] == 19") + COPY))) == "proved"


FAULTY = {
    "division": "for i in range(4):\n    B[i] = A[i] // 0",
    "remainder": "for i in range(4):\n    B[i] = A[i] % 0",
    "shift": "for i in range(4):\n    B[i] = A[i] << 32",
    "outside": "for i in range(4):\n    B[i] = A[i + 4]",
    "store outside": "for i in range(4):\n    B[i - 4] = A[i]",
    "once": "for i in range(4):\n    B[i] = A[i + 1]",
    "once in a temporary": "C = T.alloc_buffer((4,), 'int32')\nfor i, j in T.grid(4, 4):\n    C[i + j // 3] = A[i]\n"
    "for i in range(4):\n    B[i] = A[i]",
    "before": "C = T.alloc_buffer((4,), 'int32')\nfor i in range(4):\n    C[i] = A[i] // 0\n"
    "for i in range(4):\n    B[i] = A[i]",
}


@pytest.mark.parametrize("body", FAULTY.values(), ids=FAULTY)
def test_what_always_faults_is_equal_to_nothing(body: str) -> None:
    """An old program that faults on every input is not proved equal to anything, itself aside; one that faults on some
    may be.
    """
    assert lp.compare(func(body), func(COPY)).status is Status.VACUOUS
    assert lp.compare(func(body), func(body)).status is Status.PROVED
    assert status_of(prove_runs(func(body))) == "vacuous"


@one_in(4)
@pytest.mark.parametrize(
    "body",
    [
        "for i in range(4):\n    B[i] = A[i] // A[3 - i]",
        "for i in range(4):\n    B[i] = A[i] // (i + n)",
        "for i in range(4):\n    if A[i] == 0:\n        B[i + 1] = A[i]\n    B[i] = A[i]",
        "for i in range(4):\n    B[i] = T.if_then_else(i < 3, A[i + 1], 0)",
        "for i in range(n):\n    B[i + 3] = A[i]\nB[0] = 1",
        "for i in range(4):\n    B[i + n] = A[i]",
        "for i in range(0):\n    B[i + 4] = A[0]\nfor i in range(4):\n    B[i] = A[i]",
    ],
)
def test_what_faults_on_some_inputs_runs_on_others(body: str) -> None:
    """A fault that some inputs have is no reason to prove nothing."""
    assert status_of(prove_runs(func(body))) == "proved"


@pytest.mark.parametrize(
    "body",
    [
        "C = T.alloc_buffer((4,), 'int32')\nfor i in range(4):\n    C[i] = A[i]",
        "T.evaluate(0)",
        "for i in range(0):\n    B[i] = A[i]",
    ],
)
def test_what_nobody_sees_is_vacuous(body: str) -> None:
    """A program that stores nothing to a parameter says nothing, unless the other one does: then that is wrong."""
    assert lp.compare(func(body), func("T.evaluate(1)")).status is Status.VACUOUS
    assert lp.compare(func(body), func(COPY)).status is Status.REFUTED
    assert lp.compare(func("for i in range(4):\n    B[i] = B[i]"), func(body)).status is Status.VACUOUS


@one_in(4)
def test_a_comparison_of_floats_is_satisfied_by_the_other_zero() -> None:
    """An element that is 0.0 has no negative inverse; of one that compares equal to 0.0, -0.0 has one."""
    floats = S.replace('int32")', 'float32")')
    body = "for i in range(4):\n    T.evaluate(T.assume({} and T.float32(1) / A[i] < T.float32(0)))\n    B[i] = A[i]"
    identity = "A[i] == T.float32(0)"
    assert status_of(prove_runs(func(body.format(identity), floats))) == "vacuous"
    assert status_of(prove_runs(func(body.format(f"not (not ({identity}))"), floats))) == "proved"


def test_what_could_not_be_shown_is_not_proved() -> None:
    """Assumptions that neither a search satisfies nor a solver contradicts leave a right rewrite unknown, and the
    reason says so.
    """
    cyclic = "for i in range(4):\n    T.evaluate(T.assume(A[i] < A[(i + 1) % 4]))\n"
    verdict = prove_runs(func(cyclic + COPY))
    assert verdict.status is Status.UNKNOWN and "no input could be shown" in str(verdict.reason)
    found = lp.compare(func(cyclic + COPY), func(cyclic + BACK))
    assert found.status is Status.UNKNOWN and any("no input could be shown" in str(v.reason) for v in found.verdicts)
    # Refusing is not refuting: what is wrong in it is not seen, either.
    assert lp.compare(func(cyclic + COPY), func(cyclic + MORE)).status is Status.UNKNOWN


def test_a_program_that_is_too_large_to_run_is_shown_by_proof() -> None:
    """Where no run can be made in time, a program that is proved to have no fault, under a contract that constants
    satisfy, runs.
    """
    large = 'A: T.Buffer((4000, 4000), "float32"), B: T.Buffer((4000, 4000), "float32")'
    loops = "for i, j in T.grid(4000, 4000):\n    "
    contract = f"{loops}T.evaluate(T.assume(j < 3990 or A[i, j] == T.float32(7)))\n"
    assert status_of(prove_runs(func(f"{contract}{loops}B[i, j] = A[i, j] + T.float32(1)", large))) == "proved"
    other = f"{loops}T.evaluate(T.assume(j < 3990 or A[i, j] == T.float32(8)))\n"
    found = prove_runs(func(f"{contract}{other}{loops}B[i, j] = A[i, j] + T.float32(1)", large))
    assert status_of(found) == "unknown"


# ---- against brute force

_TERMS = ("n", "m", "n*m", "n*n", "n + m", "n - m", "n//3", "m % 3", "n*n + m")
_RANGE = range(-6, 7)


def conditions(random: Random) -> Iterator[str]:
    """A few conditions on two symbols, all in a small range, so that every pair can be tried."""
    for _ in range(random.randrange(1, 4)):
        term, comparison = random.choice(_TERMS), random.choice(["==", "<", ">", "!="])
        yield f"{term} {comparison} {random.choice([*range(-9, 13), 25, 36])}"
    yield from ("n >= -6", "n <= 6", "m >= -6", "m <= 6")


@one_in(28)
@pytest.mark.parametrize("seed", range(40))
def test_random_conditions_on_symbols_agree_with_brute_force(seed: int) -> None:
    """Satisfiable ones are shown and contradictions are proved, or neither is said; a wrong rewrite is never proved."""
    random = Random(seed)
    stated = list(conditions(random))
    text = " and ".join(stated)
    old, new = func(COPY), func(MORE)
    parsed = parse_condition(text, constants_of(old), "<where>")
    satisfiable = any(bool(evaluate(parsed, {"n": n, "m": m})) for n, m in product(_RANGE, _RANGE))
    found = status_of(prove_runs(old, parsed))
    assert found == ("proved" if satisfiable else "vacuous") or found == "unknown"
    assert status_of(prove_runs(func(assumed(*stated) + COPY))) in (found, "unknown")
    wrong = lp.compare(old, new, where=text).status
    assert wrong is not Status.PROVED and (wrong is not Status.VACUOUS or not satisfiable)
    assert wrong is not Status.REFUTED or satisfiable


_DATA = ("A[i]", "A[3 - i]", "A[0]", "A[i] * A[i]", "A[i] + A[3 - i]", "A[i] + i", "A[i] % 3")


@one_in(70)
@pytest.mark.parametrize("seed", range(40))
def test_random_assumptions_about_data_agree_with_brute_force(seed: int) -> None:
    """Assumptions about four elements between -2 and 2: what brute force satisfies is never vacuous, what it cannot is
    never shown.
    """
    random = Random(seed)
    compared = [
        f"{random.choice(_DATA)} {random.choice(['==', '<', '>', '!='])} {random.randrange(-3, 5)}"
        for _ in range(random.randrange(1, 4))
    ]
    body = of_elements(*compared, "A[i] >= -2", "A[i] <= 2") + COPY
    program = func(body)
    satisfiable = any(runs(program, values) for values in product(range(-2, 3), repeat=4))
    found = status_of(prove_runs(program))
    assert found == ("proved" if satisfiable else "vacuous") or found == "unknown"
    wrong = lp.compare(program, func(body.replace("B[i] = A[i]", "B[i] = A[i] + 1"))).status
    assert wrong is not Status.PROVED and (wrong is not Status.VACUOUS or not satisfiable)
    assert wrong is not Status.REFUTED or satisfiable


def runs(program: PrimFunc, values: tuple[int, ...]) -> bool:
    """Whether the interpreter runs the program on these elements."""
    try:
        run(
            program, {"A": np.array(values, dtype="int32"), "B": np.zeros(4, dtype="int32"), "n": 1, "m": 1}, plain=True
        )
    except Fault:
        return False
    return True


@one_in(9)
def test_a_certificate_of_nothing_is_not_confirmed() -> None:
    """What rechecking derives from the text of a rewrite under assumptions that cannot hold is vacuous, or unknown, and
    never proved.
    """
    from layoutproof.ir.index_map import IndexMap
    from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
    from layoutproof.ir.visit import loops_of_stores
    from layoutproof.verify.certificate.certificate import derive, text_of

    for pre in (case[0] for case in NEVER.values() if case[1] is None):
        old, new = func(pre + COPY), func(pre + MORE)
        (loops,) = loops_of_stores(new.body)
        names = tuple(loop.var for loop in loops)
        text = text_of(Rewrite(old, new, Witness((InstanceMap(0, 0, IndexMap(names, names)),))), None)
        assert derive(text, "certificate").status is not Status.PROVED


def test_proposed_inputs_are_evaluated_and_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that break a condition, and data that breaks an assumption or names a size, are no evidence that a program
    runs.
    """
    function = func(of_elements("A[i] == n") + COPY)
    facts = Facts.of(function, parse_condition("n == 37", constants_of(function), "<where>"))
    assert find_run(facts, 10_000, 50, SearchState())
    arrays = {"A": np.full(4, 8, np.int32), "B": np.zeros(4, np.int32)}
    monkeypatch.setattr(example_run, "sizes_to_try", lambda *_: iter([(8, 1), (37, 1)]))
    monkeypatch.setattr(example_run, "data_to_try", lambda *_: iter([arrays, {**arrays, "n": 8}]))
    state = SearchState()
    assert not find_run(facts, 10_000, 50, state) and state.numbers == {"n": 37, "m": 1}


SIZES = """\
@T.prim_func(s_tir=True)
def main(a: T.handle, B: T.Buffer((4,), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    n = T.int32()
    A = T.match_buffer(a, ({extent},), "int32")
    B[0] = 7 // (n // 2 + 1)
"""


@pytest.mark.parametrize(("before", "known"), [("n", False), ("n + 3", True)])
def test_a_program_has_no_fault_with_the_sizes_that_were_told(before: str, known: bool) -> None:
    """That a program has no fault if it is called as the one before says nothing of calls of its own: with n = -1 it
    divides by 0, where n + 3 is an extent.
    """
    old, new = (lp.loads(SIZES.format(extent=extent)) for extent in (before, "n + 3"))
    assert bool(possible_faults(old, None)) is known
    note_no_new_fault(Facts.of(new, None, old), old, None)
    assert possible_faults(new, None)
