"""Fast-math assumptions: what each excludes, and the order in which sets are tried.

What each one means (source: TVM's RFC `layout-transformation-padding-roadmap`, and LLVM's fast-math flags, whose names
they bear):

* `nnan`, `ninf`: executions in which a value that the old program computes is NaN, or infinite, are not considered.
  Literals are not computed, nor is what a choice picks, a literal perhaps, nor are variables of which the very value is
  given, nor anything that only the new program has.
* `nsz`: each float operation of the old program (`+ - * / min max` and the math functions, `abs` apart) may choose the
  sign of a zero that it yields, and results are compared up to the sign of zero.
* `reassoc`: a chain of one operator, sums or products, of the old program may be grouped and ordered otherwise.
* all four together: values are compared as exact real numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import combinations


class FastMath(StrEnum):
    """One fast-math assumption; the value is its name in reports."""

    NNAN = "nnan"
    NINF = "ninf"
    NSZ = "nsz"
    REASSOC = "reassoc"


FastMathSet = frozenset[FastMath]

IEEE: FastMathSet = frozenset()
"""No fast-math assumption: bit for bit, all NaNs alike."""
ALL: FastMathSet = frozenset(FastMath)
"""Every fast-math assumption: exact reals."""


PRESETS: Mapping[str, FastMathSet] = {
    "ieee": IEEE,
    "finite": frozenset({FastMath.NNAN, FastMath.NINF, FastMath.NSZ}),
    "reals": ALL,
}
"""Sets of fast-math assumptions that have a name."""


def parse_fast_math(text: str) -> FastMathSet:
    """A preset, or fast-math assumptions by name, separated by blanks or commas. Raises ValueError for other words."""
    if text in PRESETS:
        return PRESETS[text]
    words = text.replace(",", " ").split()
    unknown = next((word for word in words if word not in set(FastMath)), None)
    if not words or unknown is not None:
        wrong = "it is empty" if unknown is None else f"{unknown!r} is none"
        raise ValueError(f"{wrong} of {', '.join(PRESETS)}, or fast-math assumptions ({', '.join(FastMath)})")
    return frozenset(FastMath(word) for word in words)


def smallest_first(allowed: FastMathSet) -> Iterator[FastMathSet]:
    """Every set of allowed fast-math assumptions, smaller ones first, in a fixed order."""
    ordered = in_order(allowed)
    for size in range(len(ordered) + 1):
        yield from map(frozenset, combinations(ordered, size))


def in_order(fast_math: Iterable[FastMath]) -> tuple[FastMath, ...]:
    """Fast-math assumptions in the order of their definition."""
    chosen = set(fast_math)
    return tuple(flag for flag in FastMath if flag in chosen)


def names_of(fast_math: Iterable[FastMath]) -> tuple[str, ...]:
    """Their names, in order, as a verdict's `strictness` has them."""
    return tuple(flag.value for flag in in_order(fast_math))
