"""What a run needs to know of a function beforehand: which pointers share a block of memory, what may hold arbitrary
values, and which iterations and units a partial run executes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import gcd

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import HANDLE, DType
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.interp.memory import cannot_interpret
from layoutproof.ir.intrinsics import Assume, PointerCast, Undef, undef_loads
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, Let, Stmt
from layoutproof.ir.visit import walk


@dataclass(frozen=True, slots=True)
class Memories:
    """`root` names the block of memory behind each data variable; by root, `units` gives the bytes a state stands for,
    `types` the element types it is seen as. `arbitrary` are the roots whose cells may come to hold an arbitrary value,
    `written` those that some store goes to.
    """

    root: Mapping[str, str]
    units: Mapping[str, int]
    types: Mapping[str, frozenset[DType]]
    arbitrary: frozenset[str]
    written: frozenset[str]

    def of(self, buffer: Buffer) -> str:
        """The block of memory behind a buffer."""
        return _root_of(self.root, buffer)


def pointee(value: Expr) -> Var | None:
    """The data variable behind a pointer expression, or None where it is no plain one."""
    while isinstance(value, PointerCast):
        value = value.pointer
    return value if isinstance(value, Var) else None


def find_memories(func: PrimFunc, arbitrary: frozenset[str] = frozenset()) -> Memories:
    """The memories of a function; `arbitrary` are roots known to hold arbitrary values from the start."""
    root: dict[str, str] = {}
    for node in walk(func.body):
        if isinstance(node, Let) and node.var.dtype == HANDLE:
            target = pointee(node.value)
            if target is None:
                raise cannot_interpret(f"the pointer {node.var.name}", node.span)
            root[node.var.name] = root.get(target.name, target.name)
    units: dict[str, int] = {}
    types: dict[str, frozenset[DType]] = {}
    for buffer in [*func.buffers, *(n for n in walk(func.body) if isinstance(n, Buffer))]:
        name = _root_of(root, buffer)
        units[name] = gcd(units.get(name, 0), buffer.dtype.bits // 8)
        types[name] = types.get(name, frozenset()) | {buffer.dtype.element}
    written = frozenset(_root_of(root, n.buffer) for n in walk(func.body) if isinstance(n, BufferStore))
    return Memories(root, units, types, _arbitrary(func.body, root, arbitrary), written)


def _arbitrary(body: Stmt, root: Mapping[str, str], start: frozenset[str]) -> frozenset[str]:
    """The roots that an arbitrary value may be stored to, by a fixpoint over all stores, whatever their order."""
    if not start and not any(isinstance(node, Undef) for node in walk(body)):
        return frozenset()
    found, variables = set(start), set[str]()

    def is_tainted(node: Node) -> bool:
        if isinstance(node, BufferLoad):
            return _root_of(root, node.buffer) in found
        return isinstance(node, Undef) or (isinstance(node, Var) and node.name in variables)

    while True:
        before = len(found) + len(variables)
        for node in walk(body):
            if isinstance(node, BufferStore) and any(map(is_tainted, walk(node.value))):
                found.add(_root_of(root, node.buffer))
            elif isinstance(node, Let) and any(map(is_tainted, walk(node.value))):
                variables.add(node.var.name)
            elif isinstance(node, Assume):
                found |= {_root_of(root, load.buffer) for load in undef_loads(node.condition)}
        if len(found) + len(variables) == before:
            return frozenset(found)


def _root_of(root: Mapping[str, str], buffer: Buffer) -> str:
    return root.get(buffer.data.name, buffer.data.name)


def reads_memory(expr: Expr) -> bool:
    """Whether an expression depends on more than its variables: loads, or asks for an arbitrary value."""
    return any(isinstance(n, BufferLoad | Undef) for n in walk(expr))


def is_index_like(expr: Expr) -> bool:
    """Whether an expression is index arithmetic: integers over variables and constants, no loads, no floats."""
    if not expr.dtype.is_integer:
        return False
    return not any(isinstance(n, BufferLoad | Undef) or (isinstance(n, Expr) and n.dtype.is_float) for n in walk(expr))


# The identities of the statements from the root to a statement: equal statements, even shared ones, may stand at
# several places.
Place = tuple[int, ...]


def place_of(path: Iterable[Stmt]) -> Place:
    """The place of the last statement of a path from the root."""
    return tuple(id(stmt) for stmt in path)


@dataclass(frozen=True, slots=True)
class LoopChoice:
    """The values that a loop takes, sorted, by the values of the loops named in `keys` (outer loops, in order)."""

    keys: tuple[str, ...]
    values: Mapping[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class UnitChoice:
    """The values of the loops named in `keys` for which a unit is executed."""

    keys: tuple[str, ...]
    points: frozenset[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Selection:
    """What runs. A loop that is not named runs in full; so does a unit that is not named.

    `controls` are statements whose condition, bounds or value reads memory: they run where any of their choices has
    them.
    """

    loops: Mapping[Place, LoopChoice] = field(default_factory=dict)
    units: Mapping[Place, UnitChoice] = field(default_factory=dict)
    controls: Mapping[Place, tuple[UnitChoice, ...]] = field(default_factory=dict)

    def choices(self, place: Place) -> tuple[UnitChoice, ...] | None:
        """The choices of which one must have the statement at a place; None where it runs always."""
        unit = self.units.get(place)
        return (unit,) if unit is not None else self.controls.get(place)
