"""Maps that split their inputs into digits: every small one by brute force, and as the general engine has them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from math import prod
from random import Random
from time import perf_counter

import pytest
from tests.judging import judge
from tests.oracle.maps import truth
from tests.shares import one_in

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import IntImm
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.problem import read_problem
from layoutproof.verify.maps.split_report import report_on_splits

CHAINS = [(), (1,), (2,), (3,), (4,), (2, 2), (2, 3), (4, 1), (1, 3), (2, 2, 2)]


def digits(name: str, offset: int, moduli: tuple[int, ...]) -> list[str]:
    """The texts of all digits of a moved input, the lowest first; the last one takes the rest."""
    moved = f"({name} + {offset})" if offset else name
    weights = [prod(moduli[:k]) for k in range(len(moduli) + 1)]
    texts = [f"{moved}//{weight}" if weight > 1 else moved for weight in weights]
    return [f"({text})%{modulus}" for text, modulus in zip(texts, moduli, strict=False)] + texts[-1:]


def is_split(text: str, shape: tuple[int, ...]) -> bool:
    """Whether the map is reported without the general engine."""
    return report_on_splits(read_problem(parse_index_map(text), shape), perf_counter()) is not None


def small_splits() -> Iterator[tuple[str, tuple[int, ...]]]:
    """One input of each small extent, moved and split in each way, the digits in every order."""
    for moduli, offset, extent in product(CHAINS, range(6), (1, 2, 3, 5, 8)):
        for order in permutations(digits("i", offset, moduli)):
            yield f"lambda i: [{', '.join(order)}]", (extent,)


@one_in(7)
@pytest.mark.parametrize("part", range(4))
def test_every_small_split_is_what_brute_force_finds(part: int) -> None:
    """Verdicts, shape, padding, count, inverse and counterexample."""
    reported = 0
    for number, (text, shape) in enumerate(small_splits()):
        if number % 4 == part:
            reported += is_split(text, shape)
            complaints = judge(check_map(text, shape).to_dict(), truth(text, shape))
            assert not complaints, (text, shape, complaints)
    assert reported > 150


@pytest.mark.parametrize("seed", range(60))
def test_splits_of_several_inputs(seed: int) -> None:
    """The same of up to three inputs, some of extent 1, with their digits mixed; and the general engine, which is asked
    where the box is given, says so too.
    """
    draw = Random(seed)
    names = "ijk"[: draw.randint(1, 3)]
    shape = tuple(draw.choice([1, 2, 3, 4, 7, 9]) for _ in names)
    outputs = [text for name in names for text in digits(name, draw.choice([0, 0, 1, 5]), draw.choice(CHAINS))]
    draw.shuffle(outputs)
    text = f"lambda {', '.join(names)}: [{', '.join(outputs)}]"
    report = check_map(text, shape)
    assert not judge(report.to_dict(), truth(text, shape)), (text, shape)
    box = [size.value for size in report.physical_shape if isinstance(size, IntImm)]
    assert len(box) == len(report.physical_shape)
    general = check_map(text, shape, physical_shape=box)
    assert general.padding.cells == report.padding.cells and general.bijective.status is report.bijective.status
    for cell in product(*map(range, box)):
        env = {f"p{axis}": value for axis, value in enumerate(cell)}
        ours, theirs = report.padding.predicate, general.padding.predicate
        assert ours is not None and theirs is not None
        assert bool(evaluate(ours, env)) == bool(evaluate(theirs, env)), (text, shape, cell)


@pytest.mark.parametrize(
    ("text", "extent"),
    [
        ("lambda i: [i//8, i%4]", 16),  # no digit for 4
        ("lambda i: [i//4, i%8]", 16),  # one digit in two
        ("lambda i: [i//4, i%4, i%4]", 16),  # one twice
        ("lambda i: [i//4, i//4, i%4]", 16),
        ("lambda i: [i//4%2, i%4]", 8),  # no highest digit
        ("lambda i: [(i + 4)//4, i%4]", 8),  # moved by two numbers
        ("lambda i: [(i - 1)//4 + 1, (i - 1)%4]", 8),
        ("lambda i: [i//6, i//2%2, i%2]", 12),
        ("lambda i: [2*i//4, 2*i%4]", 8),
        ("lambda i: [i//4, i//2%2, i%2, 0]", 8),
    ],
)
def test_what_is_no_split_is_left_to_the_general_engine(text: str, extent: int) -> None:
    """And is right there."""
    assert not is_split(text, (extent,))
    assert not judge(check_map(text, (extent,)).to_dict(), truth(text, (extent,)))


def test_symbols_and_conditions_are_no_splits() -> None:
    """They are decided as before."""
    assert check_map("lambda i: [i//4, i%4]", "n").injective.reason is not None
    question = read_problem(parse_index_map("lambda i, j: [i//4, i%4]"), (8, 2))
    assert report_on_splits(question, perf_counter()) is None  # j is used nowhere
    assert not check_map("lambda i, j: [i//4, i%4]", (8, 2)).ok


def test_numbers_that_need_more_than_32_bits() -> None:
    """The inverse has them in 64 bits, by the general engine."""
    text = "lambda i: [i//1073741824, i//32768%32768, i%32768]"
    report = check_map(text, ((1 << 31) - 1,))
    assert report.ok and report.padding.cells == 1
    assert report.inverse is not None and report.inverse.evaluate((1, 2, 3)) == ((1 << 30) + (1 << 16) + 3,)
