"""What may be assumed of padding after several layouts in one step: on each cell what the contract of the step says
that left it, by brute force.
"""

from __future__ import annotations

from random import Random

import pytest
from tests.shares import one_in

from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.verdict.verdict import Status

TEXT = """\
# theta: 0 -> 0
# cells: A_data -> A_data: lambda i: [WHOLE]
# interface: A
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((LENGTH,), "int32"), B: T.Buffer((LENGTH,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(LENGTH):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((SHAPE), "int32"), B: T.Buffer((LENGTH,), "int32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [LENGTH], "steps": [STEPS]}}})
    for a, b, c in T.grid(SHAPE):
        T.evaluate(T.assume(a * HIGH + b * LOW + c < FIRST or a * HIGH + b * LOW + c >= LAST or A[a, b, c] == SAID))
    for i in range(LENGTH):
        B[i] = A[WHOLE]
"""
CONTRACTS = ("T.int32(0)", "T.int32(1)", "undef", None)
SAID = {"T.int32(0)": "0", "T.int32(1)": "1", "undef": 'T.undef(dtype="int32")'}


def case(rng: Random) -> tuple[str, bool]:
    """A text with one assumption about a run of cells, and whether it may be made."""
    length, low, rows = rng.randint(5, 14), rng.choice([2, 3, 4]), rng.choice([2, 3])
    tiles = -(-length // low)
    outer = -(-tiles // rows)
    contracts = [rng.choice(CONTRACTS), rng.choice(CONTRACTS)]
    # Numbered row-major, the last box has the elements first, then the padding of the first step, then that of the
    # second.
    cells = (
        [None] * length + [contracts[0]] * (tiles * low - length) + [contracts[1]] * (outer * rows * low - tiles * low)
    )
    first = rng.randint(length - 1, len(cells) - 1)
    last = rng.randint(first + 1, len(cells))
    said = rng.choice([each for each in (*cells[first:last], "T.int32(0)", "undef") if each is not None])
    wanted = all(contract == said for contract in cells[first:last])
    steps = [
        f'{{"index_map": "lambda i: [i//{low}, i%{low}]", "shape": [{tiles}, {low}], '
        f'"contract": {_text(contracts[0])}}}',
        f'{{"index_map": "lambda a, b: [a//{rows}, a%{rows}, b]", "shape": [{outer}, {rows}, {low}], '
        f'"contract": {_text(contracts[1])}}}',
    ]
    words = {
        "WHOLE": f"i//{low}//{rows}, i//{low}%{rows}, i%{low}",
        "LENGTH": str(length),
        "SHAPE": f"{outer}, {rows}, {low}",
        "STEPS": ", ".join(steps),
        "HIGH": str(rows * low),
        "LOW": str(low),
        "FIRST": str(first),
        "LAST": str(last),
        "SAID": SAID[said],
    }
    text = TEXT
    for word, value in words.items():
        text = text.replace(word, value)
    return text, wanted


def _text(contract: str | None) -> str:
    return "None" if contract is None else f'"{contract}"'


@one_in(10)
@pytest.mark.parametrize("seed", range(4))
def test_contracts_of_several_steps(seed: int) -> None:
    """An assumption about padding is accepted where each cell that it speaks of has a contract that states it, and
    nowhere else.
    """
    rng, seen = Random(seed), set[bool]()
    for _ in range(25):
        text, wanted = case(rng)
        verdicts = prove_rewrite(parse_rewrite(text, "steps")).verdicts
        accepted = all(v.status is Status.PROVED for v in verdicts)
        assert accepted == wanted, text
        seen.add(wanted)
    assert seen == {False, True}
