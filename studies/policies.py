"""Policies: what a program may expect of padding that it reads, and what it has to leave in padding that it writes.

Each is a way to state a contract on an operator, so that the same operator is proved or refuted under each. The seven
ways of the roadmap come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from layoutproof.ir.diagnostic import error
from layoutproof.studies import codes


class Holds(StrEnum):
    """What padding holds: nothing that may be touched, anything, or a value."""

    NOTHING = "nothing"
    ANYTHING = "anything"
    VALUE = "value"


class Loads(StrEnum):
    """How an operator loads elements: from the buffer as they are; under a mask, with another value where it is false;
    each use of padding another value; each value with a mark whether padding went into it; from a copy of its own.
    """

    DIRECT = "direct"
    MASKED = "masked"
    FRESH = "fresh"
    MARKED = "marked"
    COPIED = "copied"


@dataclass(frozen=True, slots=True)
class Policy:
    """A contract on padding. `value` is fixed for policies that have one of their own; `takes_value` for those that a
    study combines with its pad values. `filled`: padding of outputs may be filled by stores of its own, which are
    counted; without, the operator's stores must leave it right. `rows`: what padding along a second axis holds.
    """

    name: str
    about: str
    reads: Holds
    writes: Holds
    loads: Loads = Loads.DIRECT
    takes_value: bool = False
    value: str | None = None
    filled: bool = True
    rows: Holds | None = None
    number: int | None = None


_ALL = (
    Policy("never-write", "padding is neither written nor read", Holds.NOTHING, Holds.NOTHING, number=1),
    Policy(
        "never-read", "padding is never read; producers may write anything", Holds.NOTHING, Holds.ANYTHING, number=2
    ),
    Policy(
        "internal-copy",
        "the operator copies its inputs into padded memory of its own",
        Holds.VALUE,
        Holds.NOTHING,
        Loads.COPIED,
        takes_value=True,
        number=3,
    ),
    Policy(
        "producer-writes",
        "the producer writes the value into the padding at its end",
        Holds.VALUE,
        Holds.VALUE,
        takes_value=True,
        number=4,
    ),
    Policy(
        "default-arises",
        "the operator's own stores leave the value in the padding",
        Holds.VALUE,
        Holds.VALUE,
        takes_value=True,
        filled=False,
        number=5,
    ),
    Policy("element-wise", "anything is read from padding and written to it", Holds.ANYTHING, Holds.ANYTHING, number=6),
    Policy(
        "several-contracts",
        "the padding of columns holds the value, the padding of rows anything",
        Holds.VALUE,
        Holds.ANYTHING,
        takes_value=True,
        rows=Holds.ANYTHING,
        number=7,
    ),
    Policy(
        "poison",
        "a value computed from padding may not reach an output, whatever it is",
        Holds.ANYTHING,
        Holds.ANYTHING,
        Loads.MARKED,
    ),
    Policy("undef-each-use", "each load of padding yields another value", Holds.ANYTHING, Holds.ANYTHING, Loads.FRESH),
    Policy("undef-once", "a cell of padding holds one value, which is not known", Holds.ANYTHING, Holds.ANYTHING),
    Policy("zero", "padding is zero before and after each operator", Holds.VALUE, Holds.VALUE, value="0", filled=False),
    Policy("canary", "padding holds NaN, to be seen in results", Holds.VALUE, Holds.ANYTHING, value="nan"),
    Policy(
        "masked",
        "loads are masked: the value passes through where the mask is false, and padding is not touched",
        Holds.NOTHING,
        Holds.ANYTHING,
        Loads.MASKED,
        takes_value=True,
    ),
)
POLICIES: Mapping[str, Policy] = {policy.name: policy for policy in _ALL}
ROADMAP: tuple[str, ...] = tuple(policy.name for policy in _ALL if policy.number is not None)
"""The seven ways of the roadmap, in its order."""


def policy_named(name: str) -> Policy:
    """The policy of a name. Raises LayoutproofError for another name."""
    if name not in POLICIES:
        raise error(codes.STUDY_FILE, f"there is no policy {name!r}", help=f"policies are {', '.join(POLICIES)}")
    return POLICIES[name]
