"""The calling convention of a generated function: its parameters, its shape symbols, and the memory of its buffers.

Shape symbols that are not parameters follow the parameters, in order of first appearance. Where all buffers of one data
variable have one element type, their memory is a plain C array; where they differ, every access goes through bytes,
which C's aliasing rules allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from layoutproof.ir import interval
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.ir.interval import Interval
from layoutproof.ir.intrinsics import PointerCast
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, BufferStore, DeclBuffer, For, Let
from layoutproof.ir.visit import free_variables, loads_in, walk
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.c_types import storage_type
from layoutproof.verify.faults.facts import Facts, check_transparent
from layoutproof.verify.faults.reads import prove_readable
from layoutproof.verify.verdict.verdict import Open, Status

_MOST_PAIRS = 1 << 12
"""The most pairs of a load and a store of a parameter of which is asked whether the one is covered by the other."""

Bounds = Mapping[str, tuple[int | None, int | None]]


@dataclass(frozen=True, slots=True)
class Memory:
    """One piece of memory: the buffer that declares it, and how the function uses it."""

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

    def at(self, buffer: Buffer) -> Memory:
        """The memory that `buffer` views. Raises KeyError for a data variable that nothing declares."""
        return self.by_data[buffer.data.name]


def pointer_source(value: Expr) -> Var | None:
    """The data variable of a pointer expression, through casts; None for anything else."""
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
        name: Memory(buffer, name in parameters, len(types[name]) > 1, name in written, name in read)
        for name, buffer in declared.items()
    }
    return MemoryMap({**found, **{name: found[root] for name, root in roots.items() if root in found}})


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of the C function.

    `buffer` is None for a scalar; `is_symbol` marks a scalar in a buffer's shape; `needs_content` a written buffer that
    is read first; `implied` a shape symbol that only the C function lists.
    """

    name: str
    c_name: str
    dtype: DType
    buffer: Buffer | None
    reads: bool
    writes: bool
    is_symbol: bool = False
    bounds: Interval | None = None
    needs_content: bool = False
    implied: bool = False


def shape_symbols(func: PrimFunc) -> tuple[Var, ...]:
    """Variables in the shapes and offsets of the parameters' buffers, in order of first appearance."""
    found: dict[Var, None] = {}
    for buffer in func.buffers:
        for extent in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            found.update(dict.fromkeys(free_variables(extent)))
    return tuple(found)


def _unbound(func: PrimFunc) -> Iterator[Var]:
    """Variables that the body uses and nothing binds."""
    bound = {node.var.name for node in walk(func.body) if isinstance(node, For | Let)}
    bound |= {buffer.data.name for buffer in func.buffers}
    bound |= {node.buffer.data.name for node in walk(func.body) if isinstance(node, Allocate | DeclBuffer)}
    bound |= {p.name for p in func.params} | {s.name for s in shape_symbols(func)}
    yield from (node for node in walk(func.body) if isinstance(node, Var) and node.name not in bound)


def parameters_of(func: PrimFunc, memory: MemoryMap, bounds: Bounds) -> tuple[Parameter, ...]:
    """The C function's parameters, without C names yet.

    `bounds` limits scalars; a shape symbol is at least 0 by default. Raises LayoutproofError (LP402) for a free
    variable.
    """
    for var in _unbound(func):
        raise error(codes.NOT_LOWERED, f"the variable {var.name} is bound by nothing in {func.name}", var.span)
    mapped = dict(func.buffer_map)
    symbols = {v.name for v in shape_symbols(func)}
    found: list[Parameter] = []
    early = _read_first(func, memory)
    for param in func.params:
        buffer = mapped.get(param)
        if buffer is None:
            found.append(_scalar(param, param.name in symbols, bounds))
        else:
            piece = memory.of(buffer)
            assert piece is not None
            first = piece.written and buffer.data.name in early
            found.append(
                Parameter(
                    buffer.name, buffer.name, buffer.dtype, buffer, piece.read, piece.written, needs_content=first
                )
            )
    names = {p.name for p in found if p.buffer is None}
    return (
        *found,
        *(replace(_scalar(v, True, bounds), implied=True) for v in shape_symbols(func) if v.name not in names),
    )


def _read_first(func: PrimFunc, memory: MemoryMap) -> set[str]:
    """Data variables of memory that the text loads before it stores to it, or of which a store leaves out what is
    loaded.
    """
    early, stored = set[str](), set[str]()
    for node in walk(func.body):
        loads = loads_in(node) if isinstance(node, BufferStore) else [node] if isinstance(node, BufferLoad) else []
        for load in loads:
            name = _declared(load.buffer, memory)
            if name not in stored:
                early.add(name)
        if isinstance(node, BufferStore):
            stored.add(_declared(node.buffer, memory))
    later = [b for b in func.buffers if b.data.name in stored - early and memory.at(b).read]
    return early | {buffer.data.name for buffer in later if _is_read_unwritten(func, buffer)}


def _is_read_unwritten(func: PrimFunc, buffer: Buffer) -> bool:
    """Whether some call is proved to load an element of a parameter that it did not store before, without a choice that
    depends on data: that of memory of its own would be uninitialised. Long unrolled programs are not asked about.
    """
    accesses = [n for n in walk(func.body) if isinstance(n, BufferLoad | BufferStore) and n.buffer.data == buffer.data]
    loads = sum(isinstance(access, BufferLoad) for access in accesses)
    if loads * (len(accesses) - loads) > _MOST_PAIRS:
        return False
    if buffer.strides or buffer.elem_offset != IntImm(0, buffer.elem_offset.dtype):
        return False
    given = replace(buffer, name=f"{buffer.name}_given", data=Var(f"{buffer.name}_given", buffer.data.dtype))
    mapped = tuple((param, given if own == buffer else own) for param, own in func.buffer_map)
    facts = Facts.of(replace(func, buffer_map=mapped, body=Allocate(buffer, func.body)))
    if isinstance(check_transparent(facts.program), Open):
        return False
    return any(v.status is Status.REFUTED and v.claim.buffers[1:] == (buffer.data.name,) for v in prove_readable(facts))


def _declared(buffer: Buffer, memory: MemoryMap) -> str:
    piece = memory.of(buffer)
    assert piece is not None
    return piece.buffer.data.name


def _scalar(var: Var, is_symbol: bool, bounds: Bounds) -> Parameter:
    limits: Interval | None = None
    if not var.dtype.is_float:
        limits = interval.of_type(var.dtype)
        low, high = bounds.get(var.name, (None, None))
        low = 0 if low is None and is_symbol else low
        limits = limits.clamp(Interval(limits.low if low is None else low, limits.high if high is None else high))
    return Parameter(var.name, var.name, var.dtype, None, True, False, is_symbol, limits)
