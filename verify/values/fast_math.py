"""Fast-math assumptions, called licences in the code: what each excludes, and the order in which sets are tried.

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


class Licence(StrEnum):
    """One licence; the value is its name in reports."""

    NNAN = "nnan"
    NINF = "ninf"
    NSZ = "nsz"
    REASSOC = "reassoc"


Licences = frozenset[Licence]

IEEE: Licences = frozenset()
"""No licence: bit for bit, all NaNs alike."""
ALL: Licences = frozenset(Licence)
"""Every licence: exact reals."""


PRESETS: Mapping[str, Licences] = {
    "ieee": IEEE,
    "finite": frozenset({Licence.NNAN, Licence.NINF, Licence.NSZ}),
    "reals": ALL,
}
"""Sets of licences that have a name."""


def parse_licences(text: str) -> Licences:
    """A preset, or licences by name, separated by blanks or commas. Raises ValueError for other words."""
    if text in PRESETS:
        return PRESETS[text]
    words = text.replace(",", " ").split()
    unknown = next((word for word in words if word not in set(Licence)), None)
    if not words or unknown is not None:
        wrong = "it is empty" if unknown is None else f"{unknown!r} is none"
        raise ValueError(f"{wrong} of {', '.join(PRESETS)}, or fast-math assumptions ({', '.join(Licence)})")
    return frozenset(Licence(word) for word in words)


def smallest_first(allowed: Licences) -> Iterator[Licences]:
    """Every set of allowed licences, smaller ones first, in a fixed order."""
    ordered = in_order(allowed)
    for size in range(len(ordered) + 1):
        yield from map(frozenset, combinations(ordered, size))


def in_order(licences: Iterable[Licence]) -> tuple[Licence, ...]:
    """Licences in the order of their definition."""
    chosen = set(licences)
    return tuple(licence for licence in Licence if licence in chosen)


def names_of(licences: Iterable[Licence]) -> tuple[str, ...]:
    """Their names, in order, as a verdict's `strictness` has them."""
    return tuple(licence.value for licence in in_order(licences))
