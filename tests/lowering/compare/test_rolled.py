"""Unrolled programs: loops are found again, and what is not the loop is not proved."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from tests.shares import one_in
from tests.verify.lockstep.test_unrolled import CHANGES, Maker, does

import layoutproof as lp
from layoutproof.ir.expr import Binary, IntImm, Var
from layoutproof.ir.interp.run import run
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, BufferStore, For, ForKind, Let, Seq, Stmt, seq
from layoutproof.ir.visit import rewrite_bottom_up, walk
from layoutproof.lowering.compare.compare_programs import compare_bit_for_bit
from layoutproof.lowering.compare.rolled import rolled, unrolled
from layoutproof.verify.certificate.certificate import text_of
from layoutproof.verify.certificate.finder.kernel_evidence import judge_text
from layoutproof.verify.lockstep.identity import is_same_program, is_same_unrolled
from layoutproof.verify.verdict.verdict import Status

Lines = Sequence[str]
SIZE = 4


def function(lines: Lines, kind: str = "float32", size: int = SIZE) -> PrimFunc:
    """A function over three squares."""
    square = f'T.Buffer(({size}, {size}), "{kind}")'
    head = ["@T.prim_func", f"def f(A: {square}, B: {square}, C: {square}):", '    T.func_attr({"tirx.noalias": True})']
    return lp.loads("\n".join([*head, *(f"    {line}" for line in lines)]) + "\n")


def product_loops(size: int = SIZE) -> Lines:
    """A product of matrices as a loop."""
    return [f"for i, j, k in T.grid({size}, {size}, {size}):", "    C[i, j] = C[i, j] + A[i, k] * B[k, j]"]


def product(size: int = SIZE) -> Lines:
    """The same, all written out."""
    every = range(size)
    return [f"C[{i}, {j}] = C[{i}, {j}] + A[{i}, {k}] * B[{k}, {j}]" for i in every for j in every for k in every]


def with_start() -> Lines:
    """A product whose cells are set to zero first, each beside its sum: iterations of several statements."""
    lines: list[str] = []
    for i in range(SIZE):
        for j in range(SIZE):
            lines.append(f"C[{i}, {j}] = T.float32(0)")
            lines += [f"C[{i}, {j}] = C[{i}, {j}] + A[{i}, {k}] * B[{k}, {j}]" for k in range(SIZE)]
    return lines


def backwards() -> Lines:
    """Cells from the last to the first, in steps of several."""
    return [
        f"C[{i}, {j}] = A[{j}, {i}] + B[{i}, {3 - j}]" for i in (3, 2, 1, 0) for j in (3, 2, 1, 0) for _ in range(3)
    ]


def inside_a_loop() -> Lines:
    """Copies of a body in a loop, of which the first has nothing added."""
    at = [("j" if k == 0 else f"j + {k}") for k in range(60)]
    return [
        "for j in range(2):",
        *(f"    C[{k % 4}, {a}] = A[{k // 15}, {a}] + B[{k % 4}, {a}]" for k, a in enumerate(at)),
    ]


UNROLLED = {"product": product(), "with start": with_start(), "backwards": backwards()}


def mutants(lines: Lines, count: int, seed: int) -> Iterator[tuple[str, Lines]]:
    """The lines with one defect: an index or a constant, two lines in another order, one dropped or doubled."""
    random = Random(seed)
    found = 0
    while found < count:
        kind = random.choice(("number", "operand", "order", "dropped", "doubled"))
        place, other = random.randrange(len(lines)), random.randrange(len(lines))
        damaged = list(lines)
        if kind == "number":
            number = random.choice(list(re.finditer(r"\b\d\b", lines[place])))
            value = random.choice([v for v in range(SIZE) if v != int(number.group())])
            damaged[place] = lines[place][: number.start()] + str(value) + lines[place][number.end() :]
        elif kind == "operand":
            damaged[place] = lines[place].replace("A[", "B[", 1)
        elif kind == "order":
            damaged[place], damaged[other] = lines[other], lines[place]
        elif kind == "dropped":
            del damaged[place]
        else:
            damaged.insert(other, lines[place])
        if damaged != list(lines):
            found += 1
            yield kind, damaged


def meaning(lines: Lines) -> dict[str, list[str]]:
    """What is stored to each cell, in order, from the last store on that does not read it."""
    stored: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        cell, _, value = line.partition(" = ")
        stored[cell] = [*(stored[cell] if "C[" in value else []), value]
    return stored


@pytest.mark.parametrize("lines", UNROLLED.values(), ids=UNROLLED)
def test_loops_are_found_again(lines: Lines) -> None:
    """What was unrolled is a few statements in loops, which written out are the same statements."""
    given = function(lines)
    found = rolled(given)
    assert sum(isinstance(node, BufferStore) for node in walk(found.body)) <= 2
    assert not is_same_program(given, found) and is_same_unrolled(given, found) and is_same_unrolled(found, given)
    assert is_same_program(unrolled(found), given)


@pytest.mark.parametrize("lines", UNROLLED.values(), ids=UNROLLED)
def test_the_loops_compute_the_same(lines: Lines) -> None:
    """The interpreter finds the same bits."""
    given = function(lines)
    data = np.random.default_rng(1).standard_normal((3, SIZE, SIZE)).astype(np.float32)
    arguments = {name: data[k] for k, name in enumerate("ABC")}
    ends = [run(each, arguments)["C"].tobytes() for each in (given, rolled(given))]
    assert ends[0] == ends[1] != data[2].tobytes()


@one_in(7)
def test_a_product_is_its_loop() -> None:
    """Both ways, bit for bit; the certificate ends with the statements that were given."""
    loops, given = function(product_loops()), function(product())
    for before, after in ((loops, given), (given, loops)):
        found = compare_bit_for_bit(before, after)
        assert found.status is Status.PROVED and found.rolled
        ends = found.certificate.steps[0]["rewrite"], found.certificate.steps[-1]["rewrite"]
        assert ("\n".join(ends[0]).count("C[3, 3] ="), "\n".join(ends[1]).count("C[3, 3] =")) in ((0, 4), (4, 0))
        assert found.certificate.status is Status.PROVED
        for record in found.records:  # the loops as statements, too
            assert all(c.is_accepted for c in judge_text(text_of(record.rewrite, record.where)).claims)


@one_in(4)
@pytest.mark.parametrize("size", [8, 12])
def test_many_statements(size: int) -> None:
    """Some hundred or thousand statements are proved too, as their loops."""
    assert compare_bit_for_bit(function(product_loops(size), size=size), function(product(size), size=size)).ok


def test_copies_of_a_body_in_a_loop() -> None:
    """The first copy has `j`, the others `j + 1`, ...: the loop has all of them."""
    given = function(inside_a_loop(), size=64)
    loops = [
        "for j in range(2):",
        "    for u in range(60):",
        "        C[u % 4, j + u] = A[u // 15, j + u] + B[u % 4, j + u]",
    ]
    assert is_same_unrolled(given, rolled(given))
    assert compare_bit_for_bit(function(loops, size=64), given).ok


@one_in(47)
@pytest.mark.parametrize("part", range(9))
@pytest.mark.parametrize("lines", UNROLLED.values(), ids=UNROLLED)
def test_no_mutant_is_the_loop(lines: Lines, part: int) -> None:
    """A program with a defect is not its loops, and its own loops are it."""
    given = function(lines)
    loops = rolled(given)
    seen: Counter[str] = Counter()
    for kind, damaged in mutants(lines, 20, seed=part):
        mutant = function(damaged)
        assert not is_same_unrolled(loops, mutant) and not is_same_unrolled(mutant, loops), damaged
        assert is_same_unrolled(rolled(mutant), mutant)
        seen[kind] += 1
    assert len(seen) > 2


@one_in(84)
@pytest.mark.parametrize("part", range(24))
@pytest.mark.parametrize("name", ["product", "with start"])
def test_no_mutant_is_proved(name: str, part: int) -> None:
    """A program with a defect is not proved, unless each cell gets the same values in the same order."""
    lines = UNROLLED[name]
    loops = rolled(function(lines))
    for kind, damaged in mutants(lines, 7, seed=part):
        found = compare_bit_for_bit(loops, function(damaged))
        assert found.status is not Status.PROVED or meaning(damaged) == meaning(lines), (kind, damaged)


def test_few_statements_stay() -> None:
    """Short programs, and those without runs, are looked at as they are."""
    short = function(product()[:12])
    assert rolled(short) is short
    odd = function(
        [f"C[{k * k % 4}, {k**3 % 4}] = A[{k * k * k % 3}, {k % 4}] * T.float32({k * k})" for k in range(60)]
    )
    assert rolled(odd) is odd


def copies(make: Maker) -> PrimFunc:
    """The copies of a loop's body, or of a nest's, as a reader has them: constants are computed, and what follows a let
    stands inside it.
    """
    part: Node = make.several(2)
    for name in make.around:
        assert isinstance(part, Stmt)
        loop = For(Var(name), IntImm(make.random.randrange(2)), IntImm(3), ForKind.UNROLLED, part)
        part = CHANGES["unrolled"](loop, make) or loop
    body = rewrite_bottom_up(part, lambda node: _open(_folded(node)))
    assert isinstance(body, Stmt)
    return replace(make.program(), body=body)


def _folded(node: Node) -> Node:
    if isinstance(node, Binary) and isinstance(node.rhs, IntImm):
        if isinstance(node.lhs, IntImm):
            a, b = node.lhs.value, node.rhs.value
            return IntImm({BinaryOp.ADD: a + b, BinaryOp.SUB: a - b, BinaryOp.MUL: a * b}[node.op])
        return node.lhs if node.rhs.value == (node.op is BinaryOp.MUL) else node
    return node


def _open(node: Node) -> Node:
    if isinstance(node, Seq):
        for k, part in reversed(list(enumerate(node.body[:-1]))):
            if isinstance(part, Let | Allocate):
                inside = seq(part.body, *node.body[k + 1 :])
                return _open(seq(*node.body[:k], replace(part, body=inside)))
    return node


@one_in(35)
@pytest.mark.parametrize("part", range(20))
def test_random_copies(part: int) -> None:
    """The loops of random copies, with lets and memory, and names that hide others, do what the copies do; those of
    programs with a change do what these do, and are only taken for the copies where that is the same.
    """
    found = 0
    for seed in range(40):
        make = Maker(Random(part * 100 + seed), "ij")
        given = copies(make)
        loops = rolled(given, 1)
        found += loops is not given
        assert does(loops) == does(given), given
        for name in make.random.sample(sorted(CHANGES), 3):
            mutant = make.changed(given, name)
            assert does(rolled(mutant, 1)) == does(mutant), mutant
            assert not is_same_unrolled(loops, mutant) or does(mutant) == does(given), mutant
    assert found > 2, found
