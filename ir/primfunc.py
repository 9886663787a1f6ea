"""Functions over buffers, and modules of them.

Attributes with a meaning here (other ones are kept): `tirx.noalias` or `tir.noalias` (parameters do not overlap: an
assumption), `layoutproof.apart` (the same, asked for by a pass), `buffer_layout_transformations` (data variable's name -> list
of index maps as lambda text), `buffer_axis_separators` (data variable's name -> list of integers, seed convention),
`layoutproof.layout` (data variable's name -> what was stored where, see `layout_record.py`).
Sources: the seeds `buffer-physical-layout` (attributes), `clarifying-buffer-declaration-and-access` (buffer_map).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from layoutproof.ir.attributes import Attributes
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.depth import make_room
from layoutproof.ir.expr import Var, require
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import Stmt

LAYOUT_TRANSFORMATIONS = "buffer_layout_transformations"
AXIS_SEPARATORS = "buffer_axis_separators"
LAYOUT = "layoutproof.layout"
APART = "layoutproof.apart"
NOALIAS = ("tirx.noalias", "tir.noalias", "noalias", APART)


@dataclass(frozen=True, slots=True, eq=False)
class PrimFunc(Node):
    """One function. `params` are handles (their buffers stand in `buffer_map`) or scalars; `buffer_map` keeps the calling convention."""

    name: str
    params: tuple[Var, ...]
    buffer_map: tuple[tuple[Var, Buffer], ...]
    body: Stmt
    attrs: Attributes = Attributes()

    def _check(self) -> None:
        names = [p.name for p in self.params]
        require(len(set(names)) == len(names), f"{self.name} has two parameters of one name")
        for param, buffer in self.buffer_map:
            require(param in self.params, f"buffer {buffer.name} belongs to no parameter of {self.name}")
        make_room(self.body)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The parameters' buffers, in order of the parameters."""
        mapped = dict(self.buffer_map)
        return tuple(mapped[p] for p in self.params if p in mapped)

    @property
    def noalias(self) -> bool:
        """Whether the function assumes that its parameters do not overlap."""
        return any(self.attrs.get(key) in (True, 1) for key in NOALIAS)

    def with_body(self, body: Stmt) -> PrimFunc:
        """The same function with another body."""
        return replace(self, body=body)


@dataclass(frozen=True, slots=True, eq=False)
class IRModule(Node):
    """Named functions, in order."""

    functions: tuple[PrimFunc, ...]

    def _check(self) -> None:
        names = [f.name for f in self.functions]
        require(len(set(names)) == len(names), "a module has two functions of one name")

    def __getitem__(self, name: str) -> PrimFunc:
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)
