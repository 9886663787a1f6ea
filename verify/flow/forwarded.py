"""Loads of temporaries that one stage filled, as what that stage stored: tables of indices, and copies. Part of the
trusted computing base.

This is sound because every cell is stored once, by the one statement that stores there, before anything loads it, and
what it stored has the same value wherever it is loaded. Faults are not looked for in the result: a load out of bounds
is none any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import (
    TRUE,
    Binary,
    Cast,
    Compare,
    Expr,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Select,
    Var,
    widen,
)
from layoutproof.ir.interval import Interval, interval_of
from layoutproof.ir.intrinsics import Call, OpaqueCall, Undef
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Allocate, Block, BufferStore, DeclBuffer, For, ForKind, Let, Seq, Stmt
from layoutproof.ir.visit import (
    children,
    free_variables,
    holds_any,
    loads_in,
    map_children,
    mapped,
    nodes_of,
    rewrite_bottom_up,
    stores_in,
    substitute,
    walk,
)
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.no_faults import Content, check_facts, contents_of
from layoutproof.verify.program.instances import Program
from layoutproof.verify.values.float_indices import is_certain
from layoutproof.verify.verdict.verdict import Status, Verdict


def forwarded_rewrite(rewrite: Rewrite) -> Rewrite | None:
    """The rewrite between both programs with such loads replaced; None if neither has any."""
    old, new = forwarded(rewrite.old, chooses=True), forwarded(rewrite.new, chooses=False)
    return None if old is rewrite.old and new is rewrite.new else replace(rewrite, old=old, new=new)


def forwarded(func: PrimFunc, *, chooses: bool) -> PrimFunc:
    """The function with such loads replaced; the same object if there are none.

    `chooses` says whether fast-math assumptions let its operations choose among results: then a result that is stored
    once and loaded in several places is one choice, and an operation in each of them would be several.
    """
    top = _top_of(func.body)
    if top is None or any(isinstance(node, Let) and node.var.dtype == HANDLE for node in walk(func.body)):
        return func
    body: Stmt = func.body
    for number, stage in enumerate(top.stages):
        fill = _fill_of(stage)
        if fill is not None and fill.buffer in top.born and _is_forwarded(func, top.stages, number, fill, chooses):
            found = _replaced(body, fill)
            assert isinstance(found, Stmt)
            body = found
    return func if body is func.body else replace(func, body=body)


def known_contents(rewrite: Rewrite, old: Facts, new: Facts, where: Expr | None) -> tuple[Content, ...]:
    """What fault-free runs of the old program tell of inputs (`verify.faults.no_faults`), also through such loads."""
    found = contents_of(rewrite, old)
    if not any(access.data_dependent for access in new.program.accesses):
        return found
    again = forwarded(old.program.function, chooses=True)
    return found if again is old.program.function else (*found, *contents_of(rewrite, Facts.of(again, where)))


def prove_no_faults(
    facts: Facts, where: Expr | None, contents: Sequence[Content], before: Facts
) -> tuple[Verdict, ...]:
    """The obligations of a program (`verify.faults.no_faults`); if some are open, with such loads replaced by what they
    find.
    """
    faults = check_facts(facts, calls=False, contents=contents, before=before.program)
    if any(v.status is Status.REFUTED for v in faults) or all(v.status is Status.PROVED for v in faults):
        return faults
    found = _no_faults_forwarded(facts, where, contents, before)
    return faults if found is None else found


def _no_faults_forwarded(
    facts: Facts, where: Expr | None, contents: Sequence[Content], before: Facts
) -> tuple[Verdict, ...] | None:
    """That a program has no fault: if it has none with such loads replaced, and these have none either, nor what their
    indices evaluate. Both run alike then, step by step. None if that is not proved.
    """
    func = facts.program.function
    again = forwarded(func, chooses=False)
    if again is func:
        return None
    gone = {load.buffer.data for load in loads_in(func.body)} - {load.buffer.data for load in loads_in(again.body)}
    there = facts.of_program(_evaluated_in(facts.program, [x for x in loads_in(func.body) if x.buffer.data in gone]))
    found = check_facts(there, calls=False, contents=contents, before=before.program)
    if all(v.status is Status.PROVED for v in found):
        said = Facts.of(again, where, before.program.function, gathered=facts.gathered)
        found += check_facts(said, calls=False, contents=contents, before=before.program)
    return found if all(v.status is Status.PROVED for v in found) else None


def _evaluated_in(program: Program, gone: Sequence[BufferLoad]) -> Program:
    """The program with no other obligations than those of some loads and of what their indices evaluate: none of that
    may be left where the loads are replaced.
    """
    loads = set[Node](gone)
    loads.update(inner for load in gone for index in load.indices for inner in loads_in(index))
    memories = {load.buffer.data for load in loads if isinstance(load, BufferLoad)}
    return replace(
        program,
        accesses=tuple(access for access in program.accesses if access.data in memories),
        arithmetic=tuple(each for each in program.arithmetic if each.node in loads),
        eager=tuple(each for each in program.eager if each.node in loads),
        bindings=(),
    )


@dataclass(frozen=True, slots=True)
class _Top:
    """The statements that run once, in order, and the memory that exists while they do."""

    stages: tuple[Stmt, ...]
    born: tuple[Buffer, ...]


def _top_of(body: Stmt) -> _Top | None:
    born: list[Buffer] = []
    while True:
        match body:
            case Block(is_root=True, iter_vars=(), where=where, init=None, match_buffers=()) if where == TRUE:
                born += body.alloc_buffers
                body = body.body
            case Allocate():
                born.append(body.buffer)
                body = body.body
            case DeclBuffer():  # memory that has another name by it is left as it is
                body = body.body
            case Seq():
                return _Top(body.body, tuple(born))
            case _:
                return None


@dataclass(frozen=True, slots=True)
class _Fill:
    """`buffer[cell] = value` for every cell, in the loops `ranges`."""

    buffer: Buffer
    cell: tuple[Expr, ...]
    value: Expr
    ranges: dict[Var, Interval]


_EACH_ONCE = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.UNROLLED, ForKind.VECTORIZED)


def _fill_of(stage: Stmt) -> _Fill | None:
    """What a stage fills a buffer with; None for any other stage."""
    extents: dict[Var, Expr] = {}
    env: dict[Var, Expr] = {}
    while not isinstance(stage, BufferStore):
        match stage:
            case For(kind=kind, start=IntImm(value=0)) if kind in _EACH_ONCE:
                extents[stage.var] = stage.extent
            case Block(where=where, init=None, alloc_buffers=(), match_buffers=()) if where == TRUE:
                env |= {each.var: substitute(each.binding, env) for each in stage.iter_vars}
            case _:
                return None
        stage = stage.body
    cell = tuple(substitute(index, env) for index in stage.indices)
    if stage.value.dtype != stage.buffer.dtype or not _is_every_cell(stage.buffer, cell, extents):
        return None
    ranges = {v: Interval(0, max(e.value - 1, 0)) for v, e in extents.items() if isinstance(e, IntImm)}
    return _Fill(stage.buffer, cell, substitute(stage.value, env), ranges)


def _is_every_cell(buffer: Buffer, cell: Sequence[Expr], extents: dict[Var, Expr]) -> bool:
    """Whether each cell is stored, and once: each axis has a loop of its own over its extent, and no loop is left."""
    plain = buffer.dtype.lanes == 1 and not buffer.dtype.is_bool and buffer.elem_offset == IntImm(0)
    if not plain or (buffer.strides and [s.value if isinstance(s, IntImm) else 0 for s in buffer.strides] != [1]):
        return False
    left = dict(extents)
    for index, extent in zip(cell, buffer.shape, strict=True):
        if isinstance(index, Var) and index in left:
            if left.pop(index) != extent:
                return False
        elif not (_is_number(index, 0) and _is_number(extent, 1)):
            return False
    return all(_is_number(extent, 1) for extent in left.values())


def _is_number(expr: Expr, value: int) -> bool:
    return isinstance(expr, IntImm) and expr.value == value


def _is_forwarded(func: PrimFunc, stages: Sequence[Stmt], number: int, fill: _Fill, chooses: bool) -> bool:
    """Whether every load of the buffer comes later, and finds what the value is there."""
    data = fill.buffer.data
    if data in set(_named(func.body)) or sum(store.buffer.data == data for store in stores_in(func.body)) != 1:
        return False
    loads = [(at, load) for at, stage in enumerate(stages) for load in loads_in(stage) if load.buffer.data == data]
    if not loads or any(at <= number or not _is_plain(load, fill.buffer) for at, load in loads):
        return False
    if any(load.buffer.data == data for stage in stages for load in _in_annotations(stage)):
        return False
    between = stages[number + 1 : max(at for at, _ in loads) + 1]
    if not _stays_in_types(func, between, fill):
        return False
    if any(isinstance(node, OpaqueCall) for stage in between for node in walk(stage)):
        return False
    if isinstance(fill.value, BufferLoad):
        return _is_kept(func, fill, fill.value, between)
    return _is_closed(fill.value, fill, chooses)


def _stays_in_types(func: PrimFunc, stages: Sequence[Stmt], fill: _Fill) -> bool:
    """Whether what is computed of the buffer's integers, to be compared or named, never leaves its type: on loaded data
    it wraps there, and with values in the place of loads it is index arithmetic. What loads from a parameter, too,
    stays data.
    """
    if not fill.value.dtype.is_integer or isinstance(fill.value, BufferLoad):
        return True
    held = Var("held'", fill.value.dtype)
    ranges = {held: interval_of(fill.value, fill.ranges)}
    for stage in stages:
        for loop in nodes_of(stage, For):
            found = interval_of(loop.start + loop.extent - 1, {}).hull(interval_of(loop.start, {}))
            ranges[loop.var] = found.hull(ranges.get(loop.var, found))

    def said(node: Node) -> Node:
        return held if isinstance(node, BufferLoad) and node.buffer == fill.buffer else map_children(node, said)

    parameters = {buffer.data for buffer in func.buffers}
    computed = (said(part) for stage in stages for node in walk(stage) for part in _read_as_indices(node))
    read = (each for each in computed if not any(load.buffer.data in parameters for load in loads_in(each)))
    parts = (part for each in read if held in free_variables(each) for part in walk(each))
    return all(
        interval_of(part, ranges).fits(part.dtype) for part in parts if isinstance(part, Expr) and part.dtype.is_integer
    )


def _read_as_indices(node: Node) -> tuple[Expr, ...]:
    """What is index arithmetic if nothing in it is loaded, and else wraps."""
    match node:
        case Compare(lhs=lhs, rhs=rhs):
            return lhs, rhs
        case Let(value=value):
            return (value,)
        case _:
            return ()


def _named(node: Node) -> Iterator[Var]:
    """The variables that stand in expressions and declarations, not as the data of a buffer that is accessed."""
    stack = [node]
    while stack:
        match current := stack.pop():
            case Buffer():
                continue
            case DeclBuffer(buffer=buffer):
                yield buffer.data
            case Var():
                yield current
            case _:
                pass
        stack += children(current)[::-1]


def _in_annotations(stage: Stmt) -> Iterator[BufferLoad]:
    """Loads in bounds of loops and in shapes, which are no values."""
    for node in walk(stage):
        if isinstance(node, Buffer):
            yield from (load for extent in node.shape for load in loads_in(extent))


def _is_plain(load: BufferLoad, buffer: Buffer) -> bool:
    scalar = all(index.dtype.lanes == 1 for index in load.indices)
    return load.buffer == buffer and scalar and not holds_any(load, Undef, OpaqueCall)


def _is_kept(func: PrimFunc, fill: _Fill, load: BufferLoad, between: Sequence[Stmt]) -> bool:
    """Whether a cell that was copied stays as it was for as long as the copy is looked at."""
    source = load.buffer
    if source.data == fill.buffer.data or source.dtype != fill.buffer.dtype:
        return False
    if not all(is_certain(index, fill.ranges) for index in load.indices):
        return False
    parameters = {buffer.data for buffer in func.buffers}
    changed = {store.buffer.data for stage in between for store in stores_in(stage)}
    overlaps = source.data in parameters and not func.noalias and bool(changed & parameters)
    return source.data not in changed and not overlaps


def _is_closed(value: Expr, fill: _Fill, chooses: bool) -> bool:
    """Whether a value is one of the cell alone, wherever it stands."""
    for node in walk(value):
        if not isinstance(node, Expr) or node.dtype.lanes != 1 or isinstance(node, BufferLoad | Undef | OpaqueCall):
            return False
        if node.dtype.is_integer and not _is_steady(node, fill):
            return False
        if chooses and node.dtype.is_float and isinstance(node, Binary | Call | Cast):
            return False
    return True


def _is_steady(node: Expr, fill: _Fill) -> bool:
    """Whether an integer has one value where arithmetic wraps and where it does not; a float that becomes one has, and
    a choice of such, whose parts are looked at by themselves.
    """
    chosen = isinstance(node, Select | IfThenElseExpr)
    return chosen or is_certain(node, fill.ranges) or (isinstance(node, Cast) and node.value.dtype.is_float)


def _replaced(node: Node, fill: _Fill) -> Node:
    def visit(current: Node) -> Node | Steps[Node, Node]:
        return mapped(current) if isinstance(current, Stmt) else inside(current)

    def inside(current: Node) -> Node:
        if isinstance(current, Buffer):
            return current
        made = map_children(current, inside)
        if not (isinstance(made, BufferLoad) and made.buffer == fill.buffer):
            return made
        pairs = zip(fill.cell, made.indices, strict=True)
        found = substitute(fill.value, {v: widen(index, v.dtype) for v, index in pairs if isinstance(v, Var)})
        return rewrite_bottom_up(found, _chosen)

    return trampoline(visit, node)


def _chosen(node: Node) -> Node:
    """The side that a choice takes where numbers alone decide it: an element of a table of sizes, by its place."""
    if not isinstance(node, Select | IfThenElseExpr) or node.dtype.lanes != 1:
        return node
    numbers = (IntImm, Compare, Logical, Not)
    if not all(isinstance(part, numbers) for part in walk(node.condition)):
        return node
    return node.then if evaluate(node.condition, {}) else node.otherwise
