"""Loads and stores as generated source: bounds on every axis, the end of the memory, the cells' states, races."""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import INT64, DType, Kind
from layoutproof.ir.expr import Expr, IntImm, Ramp
from layoutproof.ir.interp.analysis import reads_memory
from layoutproof.ir.interp.generator import Generator, Operand, limits_of
from layoutproof.ir.interp.memory import cannot_interpret, memory_format
from layoutproof.ir.interp.write_expr import at_span, integer_binary, integer_constant, refuse_taint
from layoutproof.ir.operators import BinaryOp

MEMORY, STATE, SIZE = "m", "s", "z"


@dataclass(frozen=True, slots=True)
class Cells:
    """The scalars of an access: names of their numbers, sources of the element's indices; `units` states a scalar."""

    numbers: tuple[str, ...]
    indices: tuple[str, ...]
    units: int


def python_name(prefix: str, root: str) -> str:
    """The local name of a part of a block of memory."""
    safe = "".join(c if c.isalnum() and c.isascii() else f"_{ord(c):x}_" for c in root)
    return f"{prefix}_{safe}"


def view_name(root: str, dtype: DType) -> str:
    """The local name of a memory seen as numbers of a type."""
    return python_name(MEMORY + memory_format(dtype), root)


def locate(g: Generator, buffer: Buffer, indices: tuple[Expr, ...]) -> Cells:
    """The scalars of an access, with every check on them written, once for the same access in the same scope."""
    root = g.root(buffer)
    if root not in g.owners:
        raise cannot_interpret(
            f"buffer {buffer.name}, whose data {buffer.data.name} is not allocated here,", buffer.span
        )
    key = (buffer, indices)
    found = g.known.get(key)
    if isinstance(found, Cells):
        return found
    cells = _locate(g, buffer, indices, root)
    if not any(reads_memory(i) for i in indices):
        g.known = g.known.plus({key: cells})
    return cells


def _locate(g: Generator, buffer: Buffer, indices: tuple[Expr, ...], root: str) -> Cells:
    lanes = [[g.atom(o) for o in g.expr(i, True)] for i in indices]
    extents = [g.atom(g.scalar(e, True)) for e in buffer.shape]
    numbers: list[str] = []
    described: list[str] = []
    for lane in range(max((len(x) for x in lanes), default=1)):
        index = [x[lane] if len(x) > 1 else x[0] for x in lanes]
        text = f"({''.join(f'{o.code}, ' for o in index)})"
        for axis, (operand, extent) in enumerate(zip(index, extents, strict=True)):
            refuse_taint(g, operand, f"index {axis} of {buffer.name}")
            if not (operand.low >= 0 and operand.high < extent.low):
                g.emit(
                    f"if not 0 <= {operand.code} < {extent.code}: out_of_bounds({buffer.name!r}, {text}, {axis}, "
                    f"{extent.code})"
                )
        element = _element(g, buffer, index, extents, root, text)
        for k in range(buffer.dtype.lanes):
            scalar = element.code if buffer.dtype.lanes == 1 else g.temp(f"{element.code} * {buffer.dtype.lanes} + {k}")
            numbers.append(scalar)
            described.append(text)
    return Cells(tuple(numbers), tuple(described), buffer.dtype.bits // 8 // g.facts.memories.units[root])


def _element(
    g: Generator, buffer: Buffer, index: list[Operand], extents: list[Operand], root: str, text: str
) -> Operand:
    """The element's number from the start of the memory, with the check that the memory reaches that far."""
    total = g.scalar(buffer.elem_offset, True)
    if buffer.strides:
        steps = [g.scalar(s, True) for s in buffer.strides]
    else:
        steps = []
        step = integer_constant(1)
        for extent in reversed(extents):
            steps.insert(0, step)
            step = integer_binary(g, BinaryOp.MUL, step, extent, INT64, True)
    for operand, step in zip(index, steps, strict=True):
        total = _plus(total, operand, step)
    total = g.atom(Operand(total.code, total.low, total.high))
    owner = g.owners[root]
    inside = _same_box(owner, buffer)
    size = g.facts.sizes.get(root)
    if not inside and not (size is not None and total.low >= 0 and total.high < size // buffer.dtype.bytes):
        bound = (
            str(size // buffer.dtype.bytes)
            if size is not None
            else f"{python_name(SIZE, root)} // {buffer.dtype.bytes}"
        )
        g.emit(f"if not 0 <= {total.code} < {bound}: past_end({buffer.name!r}, {text}, {total.code}, {bound})")
    return total


def _same_box(owner: Buffer | None, buffer: Buffer) -> bool:
    return owner is not None and (owner.shape, owner.strides, owner.elem_offset, owner.dtype.bytes) == (
        buffer.shape,
        buffer.strides,
        buffer.elem_offset,
        buffer.dtype.bytes,
    )


def _plus(total: Operand, index: Operand, step: Operand) -> Operand:
    """`total + index * step`, over the integers: an element's number may need more than the index type."""
    corners = [x * y for x in (index.low, index.high) for y in (step.low, step.high)]
    low, high = total.low + min(corners), total.high + max(corners)
    if index.constant == 0 or step.constant == 0:
        return total
    if index.constant is not None and step.constant is not None:
        product = str(index.constant * step.constant)
    else:
        product = index.code if step.constant == 1 else f"{index.code} * {step.code}"
    return Operand(product if total.code == "0" else f"{total.code} + {product}", low, high)


def write_load(g: Generator, e: BufferLoad, index: bool) -> list[Operand]:
    """A load: each scalar's state is checked, then read."""
    outer, g.site = g.site, at_span(g, e)
    cells = locate(g, e.buffer, e.indices)
    root, dtype = g.root(e.buffer), e.buffer.dtype.element
    result = []
    for number, text in zip(cells.numbers, cells.indices, strict=True):
        taint = _check_state(g, e.buffer, root, number, text, cells.units)
        _track(g, "reads", e.buffer, number, text, cells.units)
        result.append(Operand(g.temp(_read(root, dtype, number)), *limits_of(dtype), taint))
    g.site = outer
    return result


def _check_state(g: Generator, buffer: Buffer, root: str, number: str, text: str, units: int) -> str | None:
    """The check that a cell may be read; the source that says whether it holds an arbitrary value."""
    if root in g.facts.always:
        return None
    states = python_name(STATE, root)
    state = (
        f"{states}[{number}]"
        if units == 1
        else f"worst_state({states}[{number} * {units}:{number} * {units} + {units}])"
    )
    if root not in g.facts.memories.arbitrary:
        g.emit(f"if {state} != 1: unreadable({state}, {buffer.name!r}, {text})")
        return None
    name = g.temp(state)
    g.emit(f"if not {name} & 1: unreadable({name}, {buffer.name!r}, {text})")
    return f"({name} == 3)"


def _read(root: str, dtype: DType, number: str) -> str:
    code = f"{view_name(root, dtype)}[{number}]"
    if dtype.is_bool:
        return f"{code} != 0"
    if dtype.is_float and dtype.bits == 16:
        return f"{'half' if dtype.kind is Kind.FLOAT else 'bfloat'}_values[{code}]"
    return code


def _encode(dtype: DType, code: str) -> str:
    if dtype.is_float and dtype.bits == 16:
        return f"{'half' if dtype.kind is Kind.FLOAT else 'bfloat'}_bits({code})"
    return code


def _track(g: Generator, what: str, buffer: Buffer, number: str, text: str, units: int) -> None:
    """Tell the parallel loops around that this iteration touches a cell."""
    for level in g.levels:
        table = level.tables.get(g.root(buffer))
        if table is not None:
            for k in range(units):
                unit = number if units == 1 else f"{number} * {units} + {k}"
                g.emit(f"{table}.{what}({unit}, {level.iteration}, {buffer.name!r}, {text})")


def write_store(
    g: Generator, buffer: Buffer, indices: tuple[Expr, ...], values: list[Operand], assumed: bool = False
) -> None:
    """Values that are all evaluated, stored lane after lane. `assumed`: only said to be there, which cannot race."""
    cells = locate(g, buffer, indices)
    root, dtype = g.root(buffer), buffer.dtype.element
    if not assumed and _may_collide(buffer, indices):
        listed = ", ".join(cells.numbers)
        g.emit(f"if len({{{listed}}}) != {len(cells.numbers)}: lanes_collide({buffer.name!r}, {cells.indices[0]})")
    states = python_name(STATE, root)
    for number, text, value in zip(cells.numbers, cells.indices, values, strict=True):
        first = number if cells.units == 1 else f"{number} * {cells.units}"
        place = f"[{first}]" if cells.units == 1 else f"[{first}:{first} + {cells.units}]"
        if root in g.facts.guarded:
            test = f"{states}{place} == 4" if cells.units == 1 else f"4 in {states}{place}"
            g.emit(f"if {test}: unwritable({buffer.name!r}, {text})")
        if not assumed:
            _track(g, "writes", buffer, number, text, cells.units)
        g.emit(f"{view_name(root, dtype)}[{number}] = {_encode(dtype, value.code)}")
        if root not in g.facts.always:
            state = "1" if value.taint is None else f"(3 if {value.taint} else 1)"
            g.emit(f"{states}{place} = {state if cells.units == 1 else f'bytes(({state},)) * {cells.units}'}")


def _may_collide(buffer: Buffer, indices: tuple[Expr, ...]) -> bool:
    """Whether two lanes of a store can share a cell: not for a ramp of constant stride in a row-major buffer."""
    if not indices or indices[-1].dtype.lanes == 1:
        return False
    last = indices[-1]
    plain = isinstance(last, Ramp) and isinstance(last.stride, IntImm) and last.stride.value != 0
    return not plain or bool(buffer.strides)


def allocate(g: Generator, buffer: Buffer) -> None:
    """Make memory for a buffer: no cell is initialised; padding without a contract is marked."""
    root = g.root(buffer)
    elements = integer_constant(1)
    extents = [g.atom(g.scalar(e, True)) for e in buffer.shape]
    if buffer.strides:
        for extent, stride in zip(extents, buffer.strides, strict=True):
            last = integer_binary(g, BinaryOp.SUB, extent, integer_constant(1), INT64, True)
            reach = integer_binary(g, BinaryOp.MUL, last, g.scalar(stride, True), INT64, True)
            elements = integer_binary(g, BinaryOp.ADD, elements, reach, INT64, True)
    else:
        for extent in extents:
            elements = integer_binary(g, BinaryOp.MUL, elements, extent, INT64, True)
    elements = integer_binary(g, BinaryOp.ADD, elements, g.scalar(buffer.elem_offset, True), INT64, True)
    g.owners = g.owners.plus({root: buffer})
    unit = g.facts.memories.units[root]
    g.emit(f"{python_name('d', root)} = new_memory({root!r}, {elements.code}, {buffer.dtype.bytes}, {unit})")
    bind_memory(g, root, python_name("d", root))


def bind_memory(g: Generator, root: str, storage: str) -> None:
    """Local names for a memory's views, states and size."""
    for code in sorted({memory_format(d) for d in g.facts.memories.types[root]}):
        g.emit(f"{python_name(MEMORY + code, root)} = {storage}.view({code!r})")
    g.emit(f"{python_name(STATE, root)} = {storage}.state")
    g.emit(f"{python_name(SIZE, root)} = {storage}.size")
