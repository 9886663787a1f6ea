"""Statements as generated source, blocks excepted (`write_block`)."""

from __future__ import annotations

from layoutproof.ir.assumed import assumed_undef, is_identity
from layoutproof.ir.dtype import HANDLE, INT64
from layoutproof.ir.expr import BinaryOp, Compare, Expr, Logical, LogicalOp
from layoutproof.ir.interp.facts import pointee, reads_memory
from layoutproof.ir.interp.fault import cannot_interpret
from layoutproof.ir.interp.generator import Generator, Level, Operand, Site
from layoutproof.ir.interp.write_access import allocate, python_name, write_store
from layoutproof.ir.interp.write_expr import refuse_taint
from layoutproof.ir.interp.write_number import integer_binary, truth
from layoutproof.ir.intrinsics import Assume, OpaqueCall
from layoutproof.ir.stmt import (
    Allocate,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Let,
    Seq,
    Stmt,
)
from layoutproof.ir.visit import stores_in

# Iterations of these run in any order or at once.
CONCURRENT = frozenset((ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.THREAD_BINDING))


def write_seq(g: Generator, s: Seq) -> None:
    """One after the other."""
    for child in s.body:
        g.stmt(child)


def write_let(g: Generator, s: Let) -> None:
    """The value once, then the body. What loads nothing is index arithmetic."""
    with g.scope():
        if s.var.dtype == HANDLE:
            target = pointee(s.value)
            if target is None:
                raise cannot_interpret(f"the pointer {s.var.name}", s.span)
        else:
            exact = s.value.dtype.is_integer and not reads_memory(s.value)
            g.env[s.var.name] = tuple(_fixed(g, o) for o in g.expr(s.value, exact))
        g.stmt(s.body)


def _fixed(g: Generator, operand: Operand) -> Operand:
    named = g.atom(operand)
    return named if named.taint is None else Operand(named.code, named.low, named.high, g.temp(named.taint))


def write_assignment(g: Generator, s: BufferStore) -> None:
    """Every lane's value first, then the stores."""
    write_store(g, s.buffer, s.indices, g.expr(s.value))


def write_branch(g: Generator, s: IfThenElse) -> None:
    """A branch; nothing undefined may decide it."""
    condition = g.scalar(s.condition)
    refuse_taint(g, condition, "the condition of a branch")
    if condition.constant is not None:
        chosen = s.then if condition.constant else s.otherwise
        if chosen is not None:
            with g.scope():
                g.stmt(chosen)
        return
    g.emit(f"if {condition.code}:")
    with g.nested():
        g.stmt(s.then)
    if s.otherwise is not None:
        g.emit("else:")
        with g.nested():
            g.stmt(s.otherwise)


def write_allocate(g: Generator, s: Allocate) -> None:
    """Fresh memory while the body runs."""
    with g.scope():
        allocate(g, s.buffer)
        g.stmt(s.body)


def write_declaration(g: Generator, s: DeclBuffer) -> None:
    """Another view of memory that exists: nothing to run."""
    if g.root(s.buffer) not in g.owners:
        raise cannot_interpret(f"buffer {s.buffer.name}, whose data {s.buffer.data.name} is not allocated here,", s.span)
    with g.scope():
        g.stmt(s.body)


def write_attribute(g: Generator, s: AttrStmt) -> None:
    """A remark."""
    g.stmt(s.body)


def write_evaluate(g: Generator, s: Evaluate) -> None:
    """An assumption is checked; a plain value is evaluated for its faults; a call nobody knows cannot be run."""
    if isinstance(s.value, OpaqueCall):
        raise cannot_interpret(f"the call of {s.value.function}", s.value.span if s.value.span is not None else s.span)
    if not isinstance(s.value, Assume):
        g.expr(s.value)
        return
    with g.scope():
        condition = _assumed(g, s.value.condition)
        refuse_taint(g, condition, "an assumption")
        if condition.constant != 1:
            g.emit(f"if not {condition.code}: violated()")


def _assumed(g: Generator, condition: Expr) -> Operand:
    """The condition of an assumption: value identity in its top-level connectives; `A[...] == undef` makes the cell arbitrary."""
    if isinstance(condition, Logical) and condition.dtype.lanes == 1:
        left = g.atom(_assumed(g, condition.lhs))
        refuse_taint(g, left, "an assumption")
        if left.constant is not None:
            decided = bool(left.constant) == (condition.op is LogicalOp.OR)
            return truth(bool(left.constant)) if decided else _assumed(g, condition.rhs)
        (right,), lines, sites = g.write_aside(lambda: [_assumed(g, condition.rhs)])
        result = g.temp(left.code)
        g.emit(f"if {'' if condition.op is LogicalOp.AND else 'not '}{result}:")
        g.paste(lines, sites)
        g.depth += 1
        refuse_taint(g, right, "an assumption")
        g.emit(f"{result} = {right.code}")
        g.depth -= 1
        return Operand(result, 0, 1)
    load = assumed_undef(condition)
    if load is not None:
        element = g.constant(load.buffer.dtype.element)
        arbitrary = [Operand(g.temp(f"undef({element})"), taint="True") for _ in range(load.dtype.lanes)]
        write_store(g, load.buffer, load.indices, arbitrary, assumed=True)
        return truth(True)
    if is_identity(condition) and isinstance(condition, Compare) and condition.lhs.dtype.lanes == 1:
        left, right = g.scalar(condition.lhs), g.scalar(condition.rhs)
        taint = left.taint if left.taint is not None else right.taint
        return Operand(g.temp(f"same_value({left.code}, {right.code})"), 0, 1, taint)
    return g.scalar(condition)


def write_for(g: Generator, s: For) -> None:
    """A loop. Perfectly nested concurrent loops are one set of iterations."""
    chain = [s]
    while s.kind in CONCURRENT and isinstance(chain[-1].body, For) and chain[-1].body.kind in CONCURRENT:
        chain.append(chain[-1].body)
    tables: dict[str, str] = {}
    if s.kind in CONCURRENT:
        for root in sorted({g.root(store.buffer) for store in stores_in(s)} & set(g.owners)):
            tables[root] = g.name("race")
            g.emit(f"{tables[root]} = RaceTable()")
    _write_loops(g, chain, 0, [], tables)


def _write_loops(g: Generator, chain: list[For], position: int, names: list[str], tables: dict[str, str]) -> None:
    s = chain[position]
    if position > 0:
        g.path.append(s)
    start, extent = g.atom(g.scalar(s.start, True)), g.atom(g.scalar(s.extent, True))
    refuse_taint(g, start, f"the start of loop {s.var.name}")
    refuse_taint(g, extent, f"the extent of loop {s.var.name}")
    end = integer_binary(g, BinaryOp.ADD, start, extent, INT64, True)
    last = s.var.dtype.max_int
    if end.high - 1 > last:
        g.emit(f"if {end.code} - 1 > {last}: overflow({end.code} - 1, {str(s.var.dtype)!r})")
    variable = python_name(g.name("v"), s.var.name)
    _write_header(g, variable, start, end, extent)
    with g.nested(loop=True):
        high = max(start.low, min(end.high - 1, last))
        g.env[s.var.name] = (Operand(variable, start.low, high),)
        if position + 1 < len(chain):
            g.site = Site(chain[position + 1].span, g.site.block, dict(g.env))
            _write_loops(g, chain, position + 1, [*names, variable], tables)
        else:
            _write_body(g, s.body, [*names, variable], tables, s.kind in CONCURRENT)
    if position > 0:
        g.path.pop()


def _write_header(g: Generator, variable: str, start: Operand, end: Operand, extent: Operand) -> None:
    choice = g.facts.selection.loops.get(g.place) if g.facts.selection is not None else None
    if choice is not None:
        chosen = g.temp(f"{g.constant(choice.values)}.get({g.key(choice.keys)}, ())")
        g.emit(f"count += len({chosen})")
        g.emit("if count > limit: over(limit)")
        g.emit(f"for {variable} in {chosen}:")
        return
    g.emit(f"count += {extent.code if extent.low >= 0 else f'max({extent.code}, 0)'}")
    g.emit("if count > limit: over(limit)")
    g.emit(f"for {variable} in range({start.code}, {end.code}):")


def _write_body(g: Generator, body: Stmt, names: list[str], tables: dict[str, str], concurrent: bool) -> None:
    if concurrent:
        g.levels.append(Level(names[0] if len(names) == 1 else f"({', '.join(names)})", tables))
    g.stmt(body)
    if concurrent:
        g.levels.pop()
