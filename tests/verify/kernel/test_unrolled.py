"""Loops that are written out: the step is accepted where both programs are one by it, and nowhere else."""

from __future__ import annotations

import re
from itertools import product
from random import Random

import numpy as np
import pytest
from tests.shares import one_in
from tests.verify.kernel.test_holes import AB, COPY, ONES, OWN, SYMBOLS, function

from layoutproof.ir.interp.run import run
from layoutproof.ir.script.reader import loads
from layoutproof.verify.certificate.finder.kernel_evidence import judge_text
from layoutproof.verify.kernel.evidence import read_evidence
from layoutproof.verify.kernel.reader import read_rewrite
from layoutproof.verify.kernel.step import Step
from layoutproof.verify.kernel.unrolled import is_one

U2 = "for u in T.unroll(2):\n    "
EARLY = "if 7 // m > 1:\n    for i in range(n):\n        B[0] = A[0, 0]"
LINES = "B[0] = A[3]\nB[2] = A[4]"


def texts(old: str, new: str, parameters: str = AB, head: str = "# theta: none\n") -> str:
    """A rewrite that says nothing of instances."""
    return f"# functions: f, f\n{head}" + function("before", parameters, old) + function("after", parameters, new)


def are_one(old: str, new: str, parameters: str = AB) -> bool:
    """Whether the kernel takes both for one, which way round does not matter."""
    kinds = ("inverses", "sources", "fills", "backs", "memories", "followed", "origins", "covers")
    ways = []
    for first, second in ((old, new), (new, old)):
        rewrite = read_rewrite(texts(first, second, parameters))
        ways.append(is_one(Step(rewrite, read_evidence({kind: [] for kind in kinds}, {}, rewrite), frozenset())))
    assert ways[0] is ways[1]
    return ways[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LINES, f"{U2}B[2 * u] = A[u + 3]"),
        (LINES, f"{U2}B[u + u] = A[3 - (0 - u)]"),
        (LINES, "for u in T.unroll(3, 5):\n    B[u * 2 - 6] = A[u]"),
        (
            "for j in range(4):\n    B[j] = A[j]\n    B[j + 4] = A[j]",
            f"for i in range(4):\n    {U2}    B[i + u * 4] = A[i]",
        ),
        (
            "for j in range(3):\n    B[j] = A[j]\nfor j in range(3):\n    B[j + 2] = A[j]",
            f"{U2}for k in range(3):\n        B[k + 2 * u] = A[k]",
        ),
        (
            "if A[0] > A[1]:\n    B[0] = A[0]\n    B[1] = A[1]",
            "if A[0] > A[1]:\n    for u in T.unroll(2):\n        B[u] = A[u]",
        ),
        (ONES, f"for u in T.unroll(0):\n    B[100] = A[u]\n{ONES}"),
    ],
)
def test_one(old: str, new: str) -> None:
    """A loop is its iterations, one after the other."""
    assert are_one(old, new)
    assert all(claim.is_accepted for claim in judge_text(texts(old, new)).claims)


INNER = "    for k in range(2):\n        B[{}] = A[{}]"


@pytest.mark.parametrize(
    ("old", "new", "parameters"),
    [
        (LINES, f"{U2}B[2 * u] = A[u + 4]", AB),
        (LINES, f"{U2}B[2 - 2 * u] = A[4 - u]", AB),
        (LINES, "for u in T.unroll(1):\n    B[2 * u] = A[u + 3]", AB),
        (LINES, "for u in T.unroll(3):\n    B[2 * u] = A[u + 3]", AB),
        (LINES, f"{U2}B[2 * u] = A[u + 3]".replace("unroll", "serial"), AB),
        (LINES, f"{U2}B[2 * u] = A[u + 3]".replace("unroll", "parallel"), AB),
        (LINES, f"{OWN}{U2}B[2 * u] = A[u + 3]", AB),
        (LINES, f"{U2}B[2 * u] = A[(u + 3) * 1073741824 - (u + 3) * 1073741823]", AB),
        (f"{COPY}\n{COPY}", f"for j in range(8):\n    {U2}    B[j] = A[j]", AB),
        ("for j in range(4):\n" + INNER.format("j", "k"), "for j in range(4):\n" + INNER.format("k", "j"), AB),
        ("B[0] = T.float32(0)", "B[0] = T.float32(-0.0)", AB),
        ("if n > 1:\n    B[0] = A[0, 0]", "if n > 2:\n    B[0] = A[0, 0]", SYMBOLS),
        # A condition around a loop that may be empty is evaluated, one in it is not.
        ("for i in range(n):\n    if 7 // m > 1:\n        B[0] = A[0, 0]", EARLY, SYMBOLS),
    ],
)
def test_another(old: str, new: str, parameters: str) -> None:
    """Iterations in another order, too many or too few, other numbers, kinds of loops, memories; arithmetic that does
    not fit.
    """
    assert not are_one(old, new, parameters)


def test_nothing_else_is_said() -> None:
    """A step that says what it computes, or moves cells, is looked at as others are; a block's domain is asked for."""
    rolled = f"{U2}B[2 * u] = A[u + 3]"
    assert {c.kind for c in judge_text(texts(LINES, rolled)).claims} == {"same-value", "runs"}
    head = "# theta: 0 -> 0: lambda u: [] where u == 0\n# theta: 0 -> 1: lambda u: [] where u == 1\n"
    assert len(judge_text(texts(LINES, rolled, head=head)).claims) > 5
    block = (
        'for u in T.unroll(2):\n    with T.sblock("b"):\n        v = T.axis.spatial({}, u)\n        B[2 * v] = A[v + 3]'
    )
    for extent, is_inside in ((2, True), (1, False)):
        claims = judge_text(texts(LINES, block.format(extent))).claims
        assert all(claim.is_accepted for claim in claims) is is_inside
        assert is_inside or [c.kind for c in claims if not c.is_accepted] == ["within-domain"]


def random_lines(rng: Random) -> tuple[str, str]:
    """A nest of loops with some statements, and the same, those that are marked written out line by line."""
    extents = [rng.randint(1, 3) for _ in range(3)]
    body = [
        f"B[({rng.choice('uvw')} * {rng.randint(1, 3)} + {rng.choice('uvw')} + {rng.randint(0, 3)}) % 8] = "
        f"A[{rng.choice('uvw')} + {rng.randint(0, 3)}] + B[{rng.choice('uvw')}] * A[{rng.choice('uvw')} * 2]"
        for _ in range(rng.randint(1, 3))
    ]
    marked = [rng.random() < 0.7 for _ in extents]
    nest: list[str] = []
    out: list[str] = []
    for depth, (name, extent) in enumerate(zip("uvw", extents, strict=True)):
        nest.append("    " * depth + f"for {name} in T.{'unroll' if marked[depth] else 'serial'}({extent}):")
    nest += ["            " + line for line in body]

    def write(depth: int, indent: int, values: dict[str, str]) -> None:
        if depth == 3:
            out.extend(" " * indent + re.sub(r"\b[uvw]\b", lambda m: values[m.group()], line) for line in body)
        elif marked[depth]:
            for k in range(extents[depth]):
                write(depth + 1, indent, {**values, "uvw"[depth]: str(k)})
        else:
            out.append(" " * indent + f"for {'uvw'[depth]} in range({extents[depth]}):")
            write(depth + 1, indent + 4, {**values, "uvw"[depth]: "uvw"[depth]})

    write(0, 0, {})
    return "\n".join(nest), "\n".join(out)


@one_in(7)
@pytest.mark.parametrize("part", range(8))
def test_random_nests(part: int) -> None:
    """Each is the lines that it stands for; with a number changed, or two lines, only where it computes the same."""
    rng = Random(part)
    counts = {True: 0, False: 0}
    for _ in range(20):
        nest, lines = random_lines(rng)
        assert are_one(nest, lines)
        every = lines.split("\n")
        place, other = rng.randrange(len(every)), rng.randrange(len(every))
        if rng.random() < 0.3 and every[place][0] == every[other][0] == "B":
            every[place], every[other] = every[other], every[place]
        else:
            number = rng.choice(list(re.finditer(r"(?<!% )\b\d\b", every[place])))
            every[place] = every[place][: number.start()] + str(rng.randint(0, 3)) + every[place][number.end() :]
        counts[accepted := are_one(nest, "\n".join(every))] += 1
        if accepted:
            data = {name: np.random.default_rng(part).standard_normal(8).astype(np.float32) for name in "AB"}
            ends = [run(loads(function("f", AB, text)), data) for text in (nest, "\n".join(every))]
            assert ends[0]["B"].tobytes() == ends[1]["B"].tobytes()
    assert counts[False] > counts[True]


def test_the_order_of_all_pairs() -> None:
    """Two statements of two loops, as four lines in every order: one order is the loops'."""
    cells = [f"B[{u * 2 + v}] = A[{v}]" for u, v in product(range(2), repeat=2)]
    loops = "for u in T.unroll(2):\n    for v in T.unroll(2):\n        B[u * 2 + v] = A[v]"
    for order in product(range(4), repeat=4):
        assert are_one("\n".join(cells[k] for k in order), loops) is (order == (0, 1, 2, 3))
