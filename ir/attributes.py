"""Attributes of functions, blocks and loops: names with plain values, frozen, printed in the order given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Union

from layoutproof.ir.expr import Expr

AttrValue = Union[None, bool, int, float, str, Expr, tuple["AttrValue", ...], "Attributes", "MeantValue"]


class MeantValue(ABC):
    """A value with a meaning of its own, frozen and with a hash; a text of the program has plain values for it."""

    __slots__ = ()

    @abstractmethod
    def plain(self) -> Attributes:
        """The value as it is printed."""


class Attributes(Mapping[str, AttrValue]):
    """A frozen mapping with a hash. Lists given become tuples, mappings become Attributes."""

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[str, object] | None = None) -> None:
        self._items: dict[str, AttrValue] = {k: _freeze(v) for k, v in items.items()} if items is not None else {}
        self._hash = hash(frozenset((k, type(v).__name__, v) for k, v in self._items.items()))

    def __getitem__(self, key: str) -> AttrValue:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attributes) and self._hash == other._hash and self._items == other._items

    def __repr__(self) -> str:
        return f"Attributes({self._items!r})"

    def with_value(self, key: str, value: object) -> Attributes:
        """A copy with `key` set."""
        return Attributes({**self._items, key: value})

    def without(self, key: str) -> Attributes:
        """A copy that lacks `key`."""
        return Attributes({k: v for k, v in self._items.items() if k != key})


def _freeze(value: object) -> AttrValue:
    if value is None or isinstance(value, (bool, int, float, str, Expr, Attributes, MeantValue)):
        return value
    if isinstance(value, Mapping):
        return Attributes(value)
    if isinstance(value, (list, tuple)):
        return tuple(_freeze(v) for v in value)
    raise TypeError(f"{value!r} cannot be an attribute: plain values, lists and dictionaries can")


NO_ATTRIBUTES = Attributes()
