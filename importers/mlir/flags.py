"""Flags that leave an operation more than one result: `fastmath`, and `nsw` and `nuw` of integers.

An operation without its flags does one of the things that it may do with them. So the flags of the program before are
left aside where something is proved; a difference is no refutation then, as the flags may allow it. An operation of the
program after may have no flag that one of the same name before lacks; else a flag of an integer is an obligation, and
one of a float is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from layoutproof.importers.mlir.model import Op, Scalar
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.verify.verdict.verdict import Status, Verdict

FASTMATH, OVERFLOW = "fastmath", "overflowFlags"
_FAST = frozenset(("nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc"))
_WORDS = {"reassoc": 1, "nnan": 2, "ninf": 4, "nsz": 8, "arcp": 16, "contract": 32, "afn": 64}


def flags_of(op: Op, kind: str) -> frozenset[str]:
    """The flags of one kind, by their names."""
    given = op.attributes.get(kind, ())
    if isinstance(given, int):
        names = _WORDS if kind == FASTMATH else {"nsw": 1, "nuw": 2}
        return frozenset(name for name, bit in names.items() if given & bit)
    found = frozenset(str(each) for each in given) - {"none"} if isinstance(given, tuple) else frozenset[str]()
    return _FAST if "fast" in found else found


def _of_indices(op: Op) -> bool:
    """Whether integers are indices, whose arithmetic is proved not to overflow anyway."""
    return bool(op.results) and isinstance(op.results[0].type, Scalar) and op.results[0].type.index


@dataclass(frozen=True)
class Flags:
    """What the operations of a function have: for each name the flags that all operations of that name have, and the
    first operation with each flag.
    """

    common: dict[str, frozenset[str]]
    first: dict[tuple[str, str], Op]

    @staticmethod
    def of(function: Op) -> Flags:
        """Those of a function."""
        common: dict[str, frozenset[str]] = {}
        first: dict[tuple[str, str], Op] = {}
        for op in function.nested():
            found = frozenset(flag for _, flag in _flags(op))
            common[op.name] = common.get(op.name, found) & found
            for flag in found:
                first.setdefault((op.name, flag), op)
        return Flags(common, first)

    def unmatched(self, before: Flags) -> list[tuple[Op, str]]:
        """The first operation of each name with a flag that not every one of this name before has."""
        return [
            (op, flag) for (name, flag), op in self.first.items() if flag not in before.common.get(name, frozenset())
        ]


def _flags(op: Op) -> Iterator[tuple[str, str]]:
    for kind in (FASTMATH, OVERFLOW):
        if kind == OVERFLOW and _of_indices(op):
            continue
        for flag in flags_of(op, kind):
            yield kind, flag


def must_not_overflow(before: Flags, after: Flags) -> bool:
    """Whether the program after has flags of integers that are obligations. Raises LayoutproofError for flags of floats
    that the program before does not have.
    """
    open_ones = after.unmatched(before)
    for op, flag in open_ones:
        if flag in _FAST:
            raise op.fail(
                f"the flag {flag} is not on every {op.name} before; results that it leaves open are not translated"
            )
    return bool(open_ones)


def loosened(found: Comparison, before: Flags) -> Comparison:
    """The comparison, with differences that flags of the program before may allow not called refutations."""
    if not before.first or found.status is not Status.REFUTED:
        return found
    words = ", ".join(sorted({flag for _, flag in before.first}))
    return replace(found, verdicts=tuple(_open(verdict, words) for verdict in found.verdicts))


def _open(verdict: Verdict, words: str) -> Verdict:
    if verdict.status is not Status.REFUTED:
        return verdict
    reason = f"a run differs, but flags of the program before ({words}) may allow that: {verdict.reason}"
    return replace(verdict, status=Status.UNKNOWN, reason=reason, counterexample=None)
