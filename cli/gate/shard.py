"""A part of a run: `--shard 3/10` checks every tenth item from the third on, so that ten machines together check each item once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from layoutproof.cli import codes
from layoutproof.ir.diagnostic import error

T = TypeVar("T")

MAX_PARTS = 1_000_000
_FORM = re.compile(r"([0-9]{1,9})/([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number` of `parts`, counted from 1."""

    number: int
    parts: int

    def of(self, items: Iterable[T]) -> Iterator[T]:
        """The items of this part, in their order. Neighbours go to different parts: slow items often stand together."""
        return islice(items, self.number - 1, None, self.parts)

    def count(self, total: int) -> int:
        """How many of `total` items there are in this part."""
        return len(range(self.number - 1, total, self.parts))

    def __str__(self) -> str:
        return f"{self.number}/{self.parts}"


def parse_shard(text: str) -> Shard:
    """The part that `I/N` names. Raises LayoutproofError (LP529) for text that names none."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise error(codes.SHARD, f"--shard {text}: expected I/N, such as 3/10 for the third of ten parts")
    number, parts = int(found[1]), int(found[2])
    if not 1 <= parts <= MAX_PARTS:
        raise error(codes.SHARD, f"--shard {text}: there can be 1 to {MAX_PARTS} parts, not {parts}")
    if not 1 <= number <= parts:
        raise error(codes.SHARD, f"--shard {text}: the part is a number from 1 to {parts}, not {number}")
    return Shard(number, parts)
