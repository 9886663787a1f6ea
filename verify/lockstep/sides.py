"""One of the two programs: its memories under whatever names they go, and what its statements touch.

Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from layoutproof.ir.buffer import Buffer, BufferLoad, BufferRegion
from layoutproof.ir.dtype import HANDLE, DType
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.intrinsics import Assume, OpaqueCall, PointerCast
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, Block, BufferStore, For, ForKind, Let, Stmt
from layoutproof.ir.visit import buffers_in, children, stores_in, walk
from layoutproof.verify.facts import Facts
from layoutproof.verify.lockstep.refusal import Mismatch


@dataclass(frozen=True, slots=True)
class Touched:
    """The memories that evaluating or running something loads from and stores to, and the numbers of its stores.

    `writes` are `stored` and those of which something is assumed: that a cell is undefined counts as a store. `calls`: something is called
    that nobody looks into; `assumes`: something is assumed.
    """

    reads: frozenset[Var] = frozenset()
    stored: frozenset[Var] = frozenset()
    writes: frozenset[Var] = frozenset()
    numbers: frozenset[int] = frozenset()
    calls: bool = False
    assumes: bool = False

    def joined(self, other: Touched) -> Touched:
        """What both touch."""
        return Touched(
            self.reads | other.reads,
            self.stored | other.stored,
            self.writes | other.writes,
            self.numbers | other.numbers,
            self.calls or other.calls,
            self.assumes or other.assumes,
        )

    @property
    def all(self) -> frozenset[Var]:
        """Everything touched."""
        return self.reads | self.writes


@dataclass(slots=True)
class Side:
    """A program as the walk needs it.

    `roots` gives the memory behind a pointer's other names. `numbers` are the numbers of a store, by identity, in the order of
    `visit.stores_in`. `apart`: parameters do not overlap. `shows_bits`: some memory is seen as floats and as
    something else, to which one NaN is not like another.
    """

    facts: Facts
    apart: bool
    roots: Mapping[Var, Var]
    numbers: Mapping[int, frozenset[int]]
    parameters: frozenset[Var]
    shows_bits: bool
    _touched: dict[int, tuple[Node, Touched]] = field(default_factory=dict)

    @staticmethod
    def of(facts: Facts, *, apart: bool) -> Side:
        """Raises Mismatch for what the walk does not understand: matched regions, thread axes, pointers from nowhere, memory with two
        births.
        """
        func = facts.program.function
        _check_understood(func)
        numbers: dict[int, frozenset[int]] = {}
        for number, store in enumerate(stores_in(func.body)):
            numbers[id(store)] = numbers.get(id(store), frozenset()) | {number}
        parameters = frozenset(buffer.data for buffer in func.buffers)
        roots = _roots(func.body)
        return Side(facts, apart, roots, numbers, parameters, _shows_bits(func, roots))

    @property
    def func(self) -> PrimFunc:
        """The program itself."""
        return self.facts.program.function

    def root(self, buffer: Buffer) -> Var:
        """The memory of a buffer."""
        return self.roots.get(buffer.data, buffer.data)

    def touched(self, node: Node) -> Touched:
        """What is touched below a node."""
        found = self._touched.get(id(node))
        if found is None:
            # The node stays alive with its entry, so that its identity stays its own.
            found = self._touched[id(node)] = (node, self._touch(node))
        return found[1]

    def _touch(self, node: Node) -> Touched:
        found = Touched()
        match node:
            case BufferLoad(buffer=buffer):
                found = Touched(reads=frozenset((self.root(buffer),)))
            case BufferStore(buffer=buffer):
                memory = frozenset((self.root(buffer),))
                found = Touched(stored=memory, writes=memory, numbers=self.numbers.get(id(node), frozenset()))
            case Assume(condition=condition):
                looked = frozenset(self.root(n.buffer) for n in walk(condition) if isinstance(n, BufferLoad))
                return Touched(reads=looked, writes=looked, calls=self.touched(condition).calls, assumes=True)
            case OpaqueCall():
                found = Touched(calls=True)
            case _:
                pass
        for child in children(node):
            if not isinstance(child, Buffer | Var | BufferRegion):
                below = self.touched(child) if isinstance(child, Stmt) else self._touch(child)
                found = found.joined(below) if below != _NOTHING else found
        return found

    def spread(self, memories: Iterable[Var]) -> frozenset[Var]:
        """The memories, and parameters that may overlap one of them."""
        found = frozenset(memories)
        return found if self.apart or not found & self.parameters else found | self.parameters

    def numbers_in(self, node: Node) -> frozenset[int]:
        """The numbers of the stores below a node."""
        return self.touched(node).numbers


_NOTHING = Touched()


def _shows_bits(func: PrimFunc, roots: Mapping[Var, Var]) -> bool:
    types: dict[Var, set[DType]] = {}
    for each in (*func.buffers, *buffers_in(func.body)):
        types.setdefault(roots.get(each.data, each.data), set()).add(each.dtype.element)
    return any(len(seen) > 1 and any(each.is_float for each in seen) for seen in types.values())


def _check_understood(func: PrimFunc) -> None:
    born: set[Var] = set()
    for node in walk(func.body):
        match node:
            case Block(match_buffers=matched, name=name) if matched:
                raise Mismatch(f"block {name} matches a region of another buffer, which the walk does not look into")
            case For(kind=ForKind.THREAD_BINDING, var=var):
                raise Mismatch(f"loop {var.name} is bound to threads, which the walk does not look into")
            case Allocate(buffer=buffer):
                _bear(born, buffer)
            case Block(alloc_buffers=buffers):
                for buffer in buffers:
                    _bear(born, buffer)
            case _:
                pass
    for buffer in func.buffers:
        _bear(born, buffer)


def _bear(born: set[Var], buffer: Buffer) -> None:
    if buffer.data in born:
        raise Mismatch(f"memory {buffer.data.name} comes into being in two places")
    born.add(buffer.data)


def _roots(body: Stmt) -> dict[Var, Var]:
    found: dict[Var, Var] = {}
    for node in walk(body):
        if isinstance(node, Let) and node.var.dtype == HANDLE:
            pointer: Expr = node.value
            while isinstance(pointer, PointerCast):
                pointer = pointer.pointer
            if not isinstance(pointer, Var):
                raise Mismatch(f"the pointer {node.var.name} is not a name for memory that has one")
            found[node.var] = found.get(pointer, pointer)
    return found
