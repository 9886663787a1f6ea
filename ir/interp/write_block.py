"""Blocks as generated source: bindings, guard, and `init`.

`init` runs once per spatial instance of one reduction (`facts.InitScope`), before its first executed update; and, for a spatial
instance without one, when the reduction ends. A spatial instance whose iteration variables lie outside their domains is none.
"""

from __future__ import annotations

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Expr, IntImm
from layoutproof.ir.interp.facts import InitScope, Place, pending_init_needed, reads_memory
from layoutproof.ir.interp.fault import cannot_interpret
from layoutproof.ir.interp.generator import Generator, Operand, Site
from layoutproof.ir.interp.write_access import allocate, python_name
from layoutproof.ir.interp.write_expr import refuse_taint
from layoutproof.ir.stmt import Allocate, Block, For, IfThenElse, IterKind, IterVar, Let, Stmt
from layoutproof.ir.visit import free_variables, stores_in


def write_block(g: Generator, b: Block) -> None:
    """One instance of a block."""
    if b.match_buffers:
        raise cannot_interpret(f"match_buffer in block {b.name}", b.span)
    with g.scope():
        g.site = Site(g.site.span, b.name, g.site.names)
        for iter_var in b.iter_vars:
            _bind(g, iter_var)
        g.site = Site(g.site.span, b.name, dict(g.env))
        for buffer in b.alloc_buffers:
            allocate(g, buffer)
        scope = g.facts.scopes.get(g.place)
        if b.init is not None and (scope is None or scope.loop is None):
            _write_if_inside(g, b, b.init)
        where = g.scalar(b.where)
        refuse_taint(g, where, f"the guard of block {b.name}")
        if where.constant == 1:
            _write_instance(g, b, scope)
        elif where.constant is None:
            g.emit(f"if {where.code}:")
            with g.nested():
                _write_instance(g, b, scope)


def _bind(g: Generator, v: IterVar) -> None:
    """The iteration variable's value, not yet known to lie in its domain."""
    binding = g.atom(g.scalar(v.binding, True))
    refuse_taint(g, binding, f"the binding of {v.var.name}")
    g.env[v.var.name] = (binding,)


def _narrow(g: Generator, v: IterVar) -> str | None:
    """The check that the variable lies in its domain, None where that is plain; from here on its range is the domain's."""
    (operand,) = g.env[v.var.name]
    start, extent = g.scalar(v.domain.start, True), g.scalar(v.domain.extent, True)
    low, high = start.low, start.high + extent.high - 1
    g.env[v.var.name] = (Operand(operand.code, max(operand.low, low), max(low, min(operand.high, high))),)
    if operand.low >= start.high and operand.high < start.low + extent.low:
        return None
    return f"{start.code} <= {operand.code} < {start.code} + {extent.code}"


def _write_instance(g: Generator, b: Block, scope: InitScope | None) -> None:
    """The executed instance: domains checked, init if it is due, the body."""
    for v in b.iter_vars:
        code = g.env[v.var.name][0].code
        check = _narrow(g, v)
        if check is not None:
            g.emit(f"if not {check}: outside({b.name!r}, {v.var.name!r}, {code})")
    if b.init is not None and scope is not None and scope.loop is not None:
        _write_init_once(g, b, b.init, scope, g.init_names[g.place])
    g.stmt(b.body)


def _write_init_once(g: Generator, b: Block, init: Stmt, scope: InitScope, name: str) -> None:
    """Init, unless this reduction has run it for the spatial instance."""
    key = g.key(tuple(v.var.name for v in b.iter_vars if v.kind is not IterKind.REDUCE))
    g.emit(f"if {key} not in {name}:" if scope.spatial else f"if not {name}:")
    with g.nested():
        g.emit(f"{name}.add({key})" if scope.spatial else f"{name} = True")
        g.stmt(init)


def _write_if_inside(g: Generator, b: Block, init: Stmt, once: tuple[InitScope, str] | None = None) -> None:
    """Init for a spatial instance that lies in its domain, whatever the guard says."""
    with g.scope():
        checks = [check for v in b.iter_vars if v.kind is not IterKind.REDUCE if (check := _narrow(g, v)) is not None]
        if not checks:
            _write_one(g, b, init, once)
            return
        g.emit(f"if {' and '.join(checks)}:")
        with g.nested():
            _write_one(g, b, init, once)


def _write_one(g: Generator, b: Block, init: Stmt, once: tuple[InitScope, str] | None) -> None:
    if once is None:
        g.stmt(init)
    else:
        _write_init_once(g, b, init, *once)


def write_pending(g: Generator, scope: InitScope, place: Place) -> None:
    """After a reduction's outermost loop: init for every spatial instance of it that had no executed update."""
    block = scope.path[-1]
    assert isinstance(block, Block) and block.init is not None
    if not pending_init_needed(scope):
        return
    inner = {g.root(b) for s in scope.path for b in _allocated(s)}
    if inner & {g.root(store.buffer) for store in stores_in(block.init)}:
        return  # it would initialise memory that is gone by now
    with g.scope():
        _write_path(g, scope, 0, g.init_names[place])


def _allocated(stmt: Stmt) -> tuple[Buffer, ...]:
    match stmt:
        case Block():
            return stmt.alloc_buffers
        case Allocate():
            return (stmt.buffer,)
        case _:
            return ()


def _available(g: Generator, expr: Expr) -> bool:
    """Whether an expression can be evaluated without the loops that were left out."""
    return not reads_memory(expr) and all(v.name in g.env or v.name in g.facts.symbols for v in free_variables(expr))


def _write_path(g: Generator, scope: InitScope, position: int, name: str) -> None:
    """Down the path from the reduction's loop to the block: loops of spatial variables run, those of the reduction are left out.

    A branch on the way is respected where its condition can be told without the loops left out; otherwise it guards updates only.
    """
    stmt = scope.path[position]
    match stmt:
        case For() if stmt.var.name in scope.spatial:
            _write_spatial_loop(g, scope, position, stmt, name)
            return
        case IfThenElse() if _available(g, stmt.condition):
            condition = g.scalar(stmt.condition)
            taken = scope.path[position + 1] is stmt.then
            g.emit(f"if {'' if taken else 'not '}{condition.code}:")
            with g.nested():
                _write_path(g, scope, position + 1, name)
            return
        case Let() if stmt.var.dtype.is_integer and _available(g, stmt.value):
            g.env[stmt.var.name] = tuple(g.atom(o) for o in g.expr(stmt.value, True))
        case Block():
            if position + 1 == len(scope.path):
                _write_pending_block(g, scope, stmt, name)
                return
            for v in stmt.iter_vars:
                if _available(g, v.binding):
                    _bind(g, v)
            if _available(g, stmt.where) and stmt.where != IntImm(1, stmt.where.dtype):
                g.emit(f"if {g.scalar(stmt.where).code}:")
                with g.nested():
                    _write_path(g, scope, position + 1, name)
                return
        case _:
            pass
    _write_path(g, scope, position + 1, name)


def _write_spatial_loop(g: Generator, scope: InitScope, position: int, s: For, name: str) -> None:
    if not (_available(g, s.start) and _available(g, s.extent)):
        raise cannot_interpret(f"a reduction whose spatial loop {s.var.name} depends on its reduction loops", s.span)
    start, extent = g.atom(g.scalar(s.start, True)), g.atom(g.scalar(s.extent, True))
    variable = python_name(g.name("v"), s.var.name)
    place = scope.place + tuple(id(x) for x in scope.path[1 : position + 1])
    choice = g.facts.selection.loops.get(place) if g.facts.selection is not None else None
    if choice is not None and all(k in g.env for k in choice.keys):
        g.emit(f"for {variable} in {g.constant(choice.values)}.get({g.key(choice.keys)}, ()):")
    else:
        g.emit(f"for {variable} in range({start.code}, {start.code} + {extent.code}):")
    with g.nested(loop=True):
        g.env[s.var.name] = (Operand(variable, start.low, max(start.low, start.high + extent.high - 1)),)
        _write_path(g, scope, position + 1, name)


def _write_pending_block(g: Generator, scope: InitScope, block: Block, name: str) -> None:
    assert block.init is not None
    g.site = Site(block.span, block.name, dict(g.env))
    for v in block.iter_vars:
        if v.kind is IterKind.REDUCE:
            continue
        if not _available(g, v.binding):
            raise cannot_interpret(f"a reduction whose spatial variable {v.var.name} depends on its reduction loops", block.span)
        _bind(g, v)
    _write_if_inside(g, block, block.init, (scope, name))
