"""Functions over buffers, modules of them, the attributes that have a meaning here, and a cache of results for a
function object.

Sources: TVM's RFCs `buffer-physical-layout` (attributes), `clarifying-buffer-declaration-and-access` (buffer_map).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Var, require
from layoutproof.ir.node import Node
from layoutproof.ir.shown import Shown
from layoutproof.ir.stmt import Attributes, Stmt, make_room

LAYOUT_TRANSFORMATIONS = "buffer_layout_transformations"
AXIS_SEPARATORS = "buffer_axis_separators"
LAYOUT = "layoutproof.layout"
APART = "layoutproof.apart"
MAY_OVERLAP = "layoutproof.may_overlap"
NOALIAS = ("tirx.noalias", "tir.noalias", "noalias", APART)


@dataclass(frozen=True, slots=True, eq=False)
class PrimFunc(Node, Shown):
    """One function. `params` are handles, with buffers in `buffer_map`, or scalars."""

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

    def __repr__(self) -> str:
        return f"<function {self.name}({', '.join(p.name for p in self.params)})>"

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The parameters' buffers, in order of the parameters."""
        mapped = dict(self.buffer_map)
        return tuple(mapped[p] for p in self.params if p in mapped)

    @property
    def noalias(self) -> bool:
        """Whether the function assumes that its parameters do not overlap."""
        return any(self.attrs.get(key) in (True, 1) for key in NOALIAS)

    def with_parameters_apart(self) -> PrimFunc:
        """The same function, taken to be called with parameters that do not overlap."""
        return self if self.noalias else replace(self, attrs=self.attrs.with_value(APART, True))

    def with_body(self, body: Stmt) -> PrimFunc:
        """The same function with another body."""
        return replace(self, body=body)


@dataclass(frozen=True, slots=True, eq=False)
class IRModule(Node, Shown):
    """Named functions, in order."""

    functions: tuple[PrimFunc, ...]

    def _check(self) -> None:
        names = [f.name for f in self.functions]
        require(len(set(names)) == len(names), "a module has two functions of one name")

    def __repr__(self) -> str:
        return f"<module of {', '.join(f.name for f in self.functions)}>"

    def __getitem__(self, name: str) -> PrimFunc:
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)


V = TypeVar("V")


class Kept(Generic[V]):
    """At most `most` results by function object and a key. (An equal function elsewhere has other spans.)"""

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
