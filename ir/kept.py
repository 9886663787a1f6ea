"""Results that belong to a function object, the latest ones kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from layoutproof.ir.primfunc import PrimFunc

V = TypeVar("V")


class Kept(Generic[V]):
    """Results by function object and a further key, at most `most`. (An equal function elsewhere has other places and spans.)"""

    def __init__(self, most: int) -> None:
        self.most = most
        self._found: OrderedDict[tuple[object, ...], tuple[PrimFunc, V]] = OrderedDict()

    def get(self, func: PrimFunc, key: tuple[object, ...], make: Callable[[], V]) -> V:
        """The result for a function and a key, made when it is not there."""
        whole = (id(func), *key)
        if whole in self._found:
            self._found.move_to_end(whole)
            return self._found[whole][1]
        value = make()
        self._found[whole] = (func, value)  # the function stays alive with it, so that its id stays its own
        if len(self._found) > self.most:
            self._found.popitem(last=False)
        return value
