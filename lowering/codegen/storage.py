"""Which memory each buffer of a function views, and in which types: parameters, allocations, and the aliases of both.

Two buffers of one data variable share memory. Where all of them have one element type the memory is a plain C array of it;
where they differ every access goes through bytes, so that no rule about types in memory is broken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import Kind
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.intrinsics import PointerCast
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, BufferStore, Let
from layoutproof.ir.visit import walk
from layoutproof.lowering.codegen.c_types import storage_type


@dataclass(frozen=True, slots=True)
class Memory:
    """One piece of memory: the buffer that declares it, and what the function does with it."""

    buffer: Buffer
    is_parameter: bool
    mixed: bool
    written: bool
    read: bool

    @property
    def storage(self) -> str:
        """The C type of one lane of the declaring buffer."""
        return storage_type(self.buffer.dtype)


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """Every data variable of a function, by name, and the memory behind it."""

    by_data: Mapping[str, Memory]

    def of(self, buffer: Buffer) -> Memory | None:
        """The memory that `buffer` views; None for a data variable that nothing declares."""
        return self.by_data.get(buffer.data.name)


def pointer_source(value: Expr) -> Var | None:
    """The data variable that a pointer expression stands for, through casts; None for anything else."""
    while isinstance(value, PointerCast):
        value = value.pointer
    return value if isinstance(value, Var) and value.dtype.kind is Kind.HANDLE else None


def find_memory(func: PrimFunc) -> MemoryMap:
    """All memory of `func`. A data variable that is declared twice keeps its first declaration."""
    declared: dict[str, Buffer] = {}
    parameters = {buffer.data.name for buffer in func.buffers}
    for buffer in func.buffers:
        declared.setdefault(buffer.data.name, buffer)
    roots: dict[str, str] = {}
    for node in walk(func.body):
        if isinstance(node, Allocate):
            declared.setdefault(node.buffer.data.name, node.buffer)
        elif isinstance(node, Let) and node.var.dtype.kind is Kind.HANDLE:
            source = pointer_source(node.value)
            if source is not None:
                roots[node.var.name] = roots.get(source.name, source.name)
    types: dict[str, set[str]] = {name: {storage_type(buffer.dtype)} for name, buffer in declared.items()}
    written, read = set[str](), set[str]()
    for node in walk(func.body):
        if isinstance(node, BufferLoad | BufferStore):
            root = roots.get(node.buffer.data.name, node.buffer.data.name)
            (written if isinstance(node, BufferStore) else read).add(root)
            types.setdefault(root, set()).add(storage_type(node.buffer.dtype))
    found = {
        name: Memory(buffer, name in parameters, len(types[name]) > 1, name in written, name in read) for name, buffer in declared.items()
    }
    return MemoryMap({**found, **{name: found[root] for name, root in roots.items() if root in found}})
