"""What runs a generated function on arrays that were checked: the seam between calling a kernel and the target that it was built for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from layoutproof.lowering.codegen.signature import Parameter
from layoutproof.lowering.runtime.arrays import Array
from layoutproof.lowering.runtime.symbols import Symbols

Scalars = Mapping[str, int | float]


class Source(Protocol):
    """Generated text of any target: the whole of it, the parameters in order, the width of index arithmetic."""

    @property
    def text(self) -> str:
        """What is compiled."""
        ...

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The function's parameters in order."""
        ...

    @property
    def index_bits(self) -> int:
        """32 or 64."""
        ...


class Launcher(Protocol):
    """A compiled function.

    `copies` says that it works on copies of the arrays, so that two arrays in one memory would not be one to it; `compiler` is what
    is at fault, besides this project, where it computes something else than the program.
    """

    @property
    def copies(self) -> bool:
        """Whether each array is copied to memory of its own."""
        ...

    @property
    def compiler(self) -> str:
        """Who compiled it, in words."""
        ...

    def check(self, symbols: Symbols) -> None:
        """Raise LayoutproofError where the target cannot take a call with these symbols, before anything runs."""
        ...

    def launch(self, arrays: Mapping[str, Array], scalars: Scalars) -> None:
        """Run on physical arrays, in place; `scalars` has the values of all other parameters. Raises LayoutproofError (LP427)."""
        ...
