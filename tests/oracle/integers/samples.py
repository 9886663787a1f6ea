"""A few hundred recorded proofs, for every run; the campaign has all."""

from __future__ import annotations

from functools import cache

from tests.oracle.integers.items import Item
from tests.oracle.integers.recorded import ACCEPTED, of_random_questions, of_rewrites

# Guards, reductions, padding, choices and zeros, symbolic sizes, products.
_REWRITES = ("init_hoisted_under_a_guard", "inlined_softmax", "inlined_symbolic_extents", "swizzle_is_onto")


@cache
def samples() -> tuple[Item, ...]:
    """Proofs that the kernel checks of some rewrites, and of random questions."""
    return (*of_rewrites(ACCEPTED / f"{name}.py" for name in _REWRITES), *of_random_questions("samples", 40))
