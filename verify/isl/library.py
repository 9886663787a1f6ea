"""islpy, loaded when something is first asked of it: a look into a cache, or a question that intervals answer, needs no integer sets.

`isl` stands for the module: what it gives are the module's own classes and functions. Type checkers see the module itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["Late", "isl"]


class Late:
    """Stands for an object that is had when an attribute of it is first asked for; each attribute is kept from then on."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._load(), name)
        setattr(self, name, value)
        return value


if not TYPE_CHECKING:

    def _load_islpy() -> object:
        import islpy

        return islpy

    isl = Late(_load_islpy)
else:
    import islpy as isl
