"""Random sizes, some of them symbolic, and inputs, of which operators of TVM's library are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tvm import te

Extent = Any
"""A number, or a variable of TVM's."""
Tensors = list[Any]


@dataclass
class Draw:
    """Random sizes and placeholders. `symbolic`: the first extents that may be are variables."""

    rng: Random
    symbolic: bool = False
    names: int = 0
    sizes: list[Any] = field(default_factory=list)

    def extent(self, low: int = 2, high: int = 9) -> Extent:
        """An extent that may be symbolic."""
        if self.symbolic and len(self.sizes) < 2 and self.rng.random() < 0.7:
            self.sizes.append(te.var("nm"[len(self.sizes)], "int32"))
            return self.sizes[-1]
        return self.number(low, high)

    def number(self, low: int = 2, high: int = 9) -> int:
        """A number."""
        return self.rng.randint(low, high)

    def pick(self, *choices: Any) -> Any:
        """One of some."""
        return self.rng.choice(choices)

    def tensor(self, *shape: Extent, dtype: str = "float32") -> Any:
        """An input."""
        self.names += 1
        return te.placeholder(shape, dtype, name="ABCDEFGH"[self.names - 1])

    def any_tensor(self, rank: int | None = None, dtype: str = "float32") -> Any:
        """An input of some rank."""
        return self.tensor(*(self.extent() for _ in range(rank or self.number(1, 3))), dtype=dtype)


Operator = Callable[[Draw], Tensors]
