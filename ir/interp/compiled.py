"""The fast evaluator: a program as a generated Python function with every check on.

The writers of statements and blocks are here; those of expressions and accesses in `write_expr` and `write_access`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType, TracebackType
from typing import Any

import numpy as np

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import HANDLE, INT64, DType
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
)
from layoutproof.ir.interp import runtime, write_expr
from layoutproof.ir.interp.analysis import pointee, reads_memory
from layoutproof.ir.interp.generator import Facts, Generator, Level, Operand, Site, Writing
from layoutproof.ir.interp.memory import Fault, FaultKind, Storage, cannot_interpret
from layoutproof.ir.interp.write_access import allocate, bind_memory, python_name, write_load, write_store
from layoutproof.ir.interp.write_expr import integer_binary, refuse_taint, truth
from layoutproof.ir.intrinsics import (
    Assume,
    Call,
    Limit,
    OpaqueCall,
    PointerCast,
    Reducer,
    Reinterpret,
    StringImm,
    Undef,
    assumed_undef,
    is_identity,
)
from layoutproof.ir.operators import BinaryOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    IterVar,
    Let,
    Seq,
    Stmt,
    body_of,
)
from layoutproof.ir.visit import stores_in

# Iterations of these run in any order or at once.
CONCURRENT = frozenset((ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.THREAD_BINDING))


def write_seq(g: Generator, s: Seq) -> Writing:
    """One after the other."""
    yield from s.body


def write_let(g: Generator, s: Let) -> Writing:
    """The value once, then the body. What loads nothing is index arithmetic."""
    with g.scope():
        if s.var.dtype == HANDLE:
            target = pointee(s.value)
            if target is None:
                raise cannot_interpret(f"the pointer {s.var.name}", s.span)
        else:
            exact = s.value.dtype.is_integer and not reads_memory(s.value)
            g.bind(s.var.name, tuple(_fixed(g, o) for o in g.expr(s.value, exact)))
        yield s.body


def _fixed(g: Generator, operand: Operand) -> Operand:
    named = g.atom(operand)
    return named if named.taint is None else Operand(named.code, named.low, named.high, g.temp(named.taint))


def write_assignment(g: Generator, s: BufferStore) -> None:
    """Every lane's value first, then the stores."""
    write_store(g, s.buffer, s.indices, g.expr(s.value))


def write_branch(g: Generator, s: IfThenElse) -> Writing:
    """A branch; nothing undefined may decide it."""
    condition = g.scalar(s.condition)
    refuse_taint(g, condition, "the condition of a branch")
    if condition.constant is not None:
        chosen = s.then if condition.constant else s.otherwise
        if chosen is not None:
            with g.scope():
                yield chosen
        return
    g.emit(f"if {condition.code}:")
    with g.nested():
        yield s.then
    if s.otherwise is not None:
        g.emit("else:")
        with g.nested():
            yield s.otherwise


def write_allocate(g: Generator, s: Allocate) -> Writing:
    """Fresh memory while the body runs."""
    with g.scope():
        allocate(g, s.buffer)
        yield s.body


def write_declaration(g: Generator, s: DeclBuffer) -> Writing:
    """Another view of memory that exists: nothing to run."""
    if g.root(s.buffer) not in g.owners:
        raise cannot_interpret(
            f"buffer {s.buffer.name}, whose data {s.buffer.data.name} is not allocated here,", s.span
        )
    with g.scope():
        yield s.body


def write_attribute(g: Generator, s: AttrStmt) -> Writing:
    """A remark."""
    yield s.body


def write_evaluate(g: Generator, s: Evaluate) -> None:
    """An assumption is checked; a plain value is evaluated for its faults; an opaque call cannot be run."""
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
    """An assumption: value identity in its top-level connectives; `A[...] == undef` makes the cell arbitrary."""
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


def write_for(g: Generator, s: For) -> Writing:
    """A loop. Perfectly nested concurrent loops are one set of iterations."""
    chain = [s]
    while s.kind in CONCURRENT and isinstance(chain[-1].body, For) and chain[-1].body.kind in CONCURRENT:
        chain.append(chain[-1].body)
    tables: dict[str, str] = {}
    if s.kind in CONCURRENT:
        for root in sorted(root for root in {g.root(store.buffer) for store in stores_in(s)} if root in g.owners):
            tables[root] = g.name("race")
            g.emit(f"{tables[root]} = RaceTable()")
    yield from _write_loops(g, chain, 0, [], tables)


def _write_loops(g: Generator, chain: list[For], position: int, names: list[str], tables: dict[str, str]) -> Writing:
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
        g.bind(s.var.name, (Operand(variable, start.low, high),))
        if position + 1 < len(chain):
            g.site = Site(chain[position + 1].span, g.site.block, g.env)
            yield from _write_loops(g, chain, position + 1, [*names, variable], tables)
        else:
            yield from _write_body(g, s.body, [*names, variable], tables, s.kind in CONCURRENT)
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


def _write_body(g: Generator, body: Stmt, names: list[str], tables: dict[str, str], concurrent: bool) -> Writing:
    if concurrent:
        g.levels.append(Level(names[0] if len(names) == 1 else f"({', '.join(names)})", tables))
    yield body
    if concurrent:
        g.levels.pop()


def write_block(g: Generator, b: Block) -> Writing:
    """One instance of a block."""
    if b.match_buffers:
        raise cannot_interpret(f"match_buffer in block {b.name}", b.span)
    with g.scope():
        g.site = Site(g.site.span, b.name, g.site.names)
        for iter_var in b.iter_vars:
            _bind(g, iter_var)
        g.site = Site(g.site.span, b.name, g.env)
        for buffer in b.alloc_buffers:
            allocate(g, buffer)
        where = g.scalar(b.where)
        refuse_taint(g, where, f"the guard of block {b.name}")
        if where.constant == 1:
            yield from _write_instance(g, b)
        elif where.constant is None:
            g.emit(f"if {where.code}:")
            with g.nested():
                yield from _write_instance(g, b)


def _bind(g: Generator, v: IterVar) -> None:
    """The iteration variable's value, not yet known to lie in its domain."""
    binding = g.atom(g.scalar(v.binding, True))
    refuse_taint(g, binding, f"the binding of {v.var.name}")
    g.bind(v.var.name, (binding,))


def _narrow(g: Generator, v: IterVar) -> str | None:
    """The check that the variable is in its domain, None where that is known; after it, its range is the domain's."""
    (operand,) = g.env[v.var.name]
    start, extent = g.scalar(v.domain.start, True), g.scalar(v.domain.extent, True)
    low, high = start.low, start.high + extent.high - 1
    g.bind(v.var.name, (Operand(operand.code, max(operand.low, low), max(low, min(operand.high, high))),))
    if operand.low >= start.high and operand.high < start.low + extent.low:
        return None
    return f"{start.code} <= {operand.code} < {start.code} + {extent.code}"


def _write_instance(g: Generator, b: Block) -> Writing:
    """The executed instance: domains checked, then the body."""
    for v in b.iter_vars:
        code = g.env[v.var.name][0].code
        check = _narrow(g, v)
        if check is not None:
            g.emit(f"if not {check}: outside({b.name!r}, {v.var.name!r}, {code})")
    yield body_of(b)


def _refuse_call(g: Generator, e: OpaqueCall, index: bool) -> list[Operand]:
    raise cannot_interpret(f"the call of {e.function}", e.span)


def _refuse_assume(g: Generator, e: Assume, index: bool) -> list[Operand]:
    raise cannot_interpret("an assumption inside an expression", e.span)


def _refuse_pointer(g: Generator, e: PointerCast | StringImm | Reducer, index: bool) -> list[Operand]:
    raise cannot_interpret("a pointer or text as a value", e.span)


EXPRESSIONS: Mapping[type, Callable[..., list[Operand]]] = {
    IntImm: write_expr.write_int,
    FloatImm: write_expr.write_float,
    Limit: write_expr.write_limit,
    Var: write_expr.write_var,
    Binary: write_expr.write_binary,
    Compare: write_expr.write_compare,
    Logical: write_expr.write_logical,
    Not: write_expr.write_not,
    Select: write_expr.write_select,
    IfThenElseExpr: write_expr.write_choice,
    Cast: write_expr.write_cast,
    Reinterpret: write_expr.write_reinterpret,
    Ramp: write_expr.write_ramp,
    Broadcast: write_expr.write_broadcast,
    Call: write_expr.write_call,
    Undef: write_expr.write_undef,
    BufferLoad: write_load,
    OpaqueCall: _refuse_call,
    Assume: _refuse_assume,
    PointerCast: _refuse_pointer,
    StringImm: _refuse_pointer,
    Reducer: _refuse_pointer,
}

STATEMENTS: Mapping[type, Callable[..., Writing | None]] = {
    Seq: write_seq,
    For: write_for,
    IfThenElse: write_branch,
    Let: write_let,
    BufferStore: write_assignment,
    Allocate: write_allocate,
    DeclBuffer: write_declaration,
    Evaluate: write_evaluate,
    AttrStmt: write_attribute,
    Block: write_block,
}


@dataclass(frozen=True, slots=True)
class Compiled:
    """A generated program: its source (for reading), code, the objects it mentions, and the origin of each line."""

    source: str
    code: CodeType
    objects: Mapping[str, object]
    sites: tuple[Site, ...]

    def run(
        self,
        storages: Mapping[str, Storage],
        floats: Mapping[str, float],
        limit: int,
        new_memory: Callable[[str, int, int, int], Storage],
        undef: Callable[[DType], int | float],
    ) -> int:
        """Run to the end; returns the iterations. Raises a located Fault; LayoutproofError past `limit` iterations."""
        names = {
            **runtime.namespace(),
            **self.objects,
            "floats": floats,
            "new_memory": new_memory,
            "undef": undef,
            "r32": array("f", [0.0]),
            "r16": np.zeros(1, dtype=np.float16),
        }
        exec(self.code, names)
        program: Any = names["program"]
        try:
            with np.errstate(all="ignore"):
                return int(program(storages, limit))
        except Fault as fault:
            site, values = self._where(fault.__traceback__, program.__code__)
            raise fault.located(site.span, site.block, values) from None
        except Trap as trap:
            site, values = self._where(trap.__traceback__, program.__code__)
            raise Fault(FaultKind.TRAP, str(trap), span=site.span, block=site.block, values=values) from None

    def _where(self, trace: TracebackType | None, code: CodeType) -> tuple[Site, dict[str, object]]:
        """The site of the line that was running, and the variables in its scope."""
        while trace is not None and trace.tb_frame.f_code is not code:
            trace = trace.tb_next
        assert trace is not None
        site = self.sites[trace.tb_lineno - 2]
        values: dict[str, object] = {}
        for name, operands in site.names.items():
            found = [_value(o, trace.tb_frame.f_locals) for o in operands]
            values[name] = found[0] if len(found) == 1 else tuple(found)
        return site, values


def _value(operand: Operand, names: Mapping[str, object]) -> object:
    return names[operand.code] if operand.code in names else operand.constant


def compile_program(func: PrimFunc, facts: Facts) -> Compiled:
    """The generated program for one binding of symbols. Raises TooDeep where Python's compiler refuses the nesting."""
    g = Generator(facts, EXPRESSIONS, STATEMENTS)
    for root in facts.sizes:
        bind_memory(g, root, f"storages[{root!r}]")
    g.owners = g.owners.plus({**dict.fromkeys(facts.sizes), **{g.root(b): b for b in func.buffers}})
    g.emit("count = 0")
    g.stmt(func.body)
    g.emit("return count")
    source = "def program(storages, limit):\n" + "\n".join(g.lines) + "\n"
    return Compiled(source, compile(source, f"<{func.name}>", "exec"), g.objects, tuple(g.sites))
