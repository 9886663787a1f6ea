"""Sets in fewer pieces: the same set, and the same pieces wherever isl's memory lies."""

from __future__ import annotations

from random import Random

import islpy as isl
import pytest
from tests.shares import one_in, some

from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.isl.space import new_context

# What is left to be explained of a guarded matmul whose loops were fused and split again: isl alone joins these pieces
# in three ways.
WHOLE = (
    "{ [a, b, c, d, e, f] : 0 <= a <= 2 and 0 <= b <= 4 and 0 <= c <= 99 - 35a - 7b and c <= 6"
    " and 0 <= d <= 62 and 0 <= e <= 6 and 0 <= f <= 3499 - 56d - 8e and f <= 7 }"
)
EXPLAINED = (
    "{ [a, b, c, d, e, 7 - e] : (1 + e) mod 2 = 0 and 0 <= a <= 2 and 0 <= b <= 4 and 0 <= c <= 99 - 35a - 7b"
    " and c <= 6 and 0 <= d <= 62 and 0 < e <= 498 - 8d and e <= 5 and 8*floor((-6 + 8d - 5e)/40) <= 89 - e"
    " and 40*floor((-6 + 8d - 5e)/40) <= -39 + 8d - 5e;"
    " [a, b, c, d, 0, 0] : d mod 5 = 0 and 0 <= a <= 2 and 0 <= b <= 4 and 0 <= c <= 99 - 35a - 7b and c <= 6"
    " and 0 <= d <= 60 }"
)


def elsewhere(rng: Random) -> list[bytearray]:
    """Memory in use, so that what isl allocates next lies at other distances."""
    return [bytearray(rng.randint(1, 5_000)) for _ in range(rng.randint(0, 40)) if rng.random() < 0.7]


def random_pieces(rng: Random) -> str:
    """A union of boxes of three dims, each with remainders of several of them."""
    moduli = [rng.choice((2, 3, 4, 5)) for _ in range(3)]
    pieces: list[str] = []
    for _ in range(rng.randint(2, 6)):
        low = [rng.randint(-3, 3) for _ in range(3)]
        box = [f"{start} <= {name} <= {start + rng.randint(0, 5)}" for name, start in zip("xyz", low, strict=True)]
        remainders = [
            f"({name} + {rng.randint(0, 4)}) mod {m} = 0"
            for name, m in zip("xyz", moduli, strict=True)
            if rng.random() < 0.7
        ]
        across = [f"(x + {rng.randint(1, 3)}y + {rng.randint(0, 3)}) mod {moduli[0]} = 0"] if rng.random() < 0.3 else []
        floors = [f"{m}*floor((z + {rng.randint(0, 3)})/{m}) < z" for m in moduli[2:] if rng.random() < 0.3]
        pieces.append(f"[x, y, z] : {' and '.join([*box, *remainders, *across, *floors])}")
    return f"{{ {'; '.join(pieces)} }}"


@one_in(4)
def test_the_same_pieces_wherever_memory_lies() -> None:
    """A set that isl joins in several ways comes out in one."""
    rng = Random(0)
    found: set[str] = set()
    for _ in range(60):
        used = elsewhere(rng)
        ctx = new_context()
        left = isl.Set.read_from_str(ctx, WHOLE).subtract(isl.Set.read_from_str(ctx, EXPLAINED))
        joined = coalesced(left)
        assert joined.is_equal(left)
        found.add(str(joined))
        del used
    assert len(found) == 1


@one_in(7)
@pytest.mark.parametrize("seed", some(range(60), 8))
def test_joined_pieces_are_the_same_set(seed: int) -> None:
    """Unions of boxes with remainders, and their differences, are joined into equal sets, the same ones each time."""
    rng = Random(seed)
    first, second = random_pieces(rng), random_pieces(rng)
    found: set[str] = set()
    for _ in range(6):
        used = elsewhere(rng)
        ctx = new_context()
        one, other = isl.Set.read_from_str(ctx, first), isl.Set.read_from_str(ctx, second)
        for whole in (one, one.subtract(other), one.intersect(other), one.union(other)):
            joined = coalesced(whole)
            assert joined.is_equal(whole) and joined.n_basic_set() <= whole.n_basic_set()
        relation = isl.Map.from_domain_and_range(one, other).subtract(
            isl.Map.identity(isl.Space.map_from_set(one.get_space()))
        )
        both = isl.UnionMap.from_map(relation)
        assert coalesced(relation).is_equal(relation) and coalesced(both).is_equal(both)
        assert coalesced(isl.UnionSet.from_set(one)).is_equal(isl.UnionSet.from_set(one))
        found.add(f"{coalesced(one.subtract(other))} {coalesced(one.union(other))}")
        del used
    assert len(found) == 1
