"""Blocks as generated source: bindings and guard, then what `desugar.body_of` says."""

from __future__ import annotations

from layoutproof.ir.desugar import body_of
from layoutproof.ir.interp.fault import cannot_interpret
from layoutproof.ir.interp.generator import Generator, Operand, Site
from layoutproof.ir.interp.write_access import allocate
from layoutproof.ir.interp.write_expr import refuse_taint
from layoutproof.ir.stmt import Block, IterVar


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
        where = g.scalar(b.where)
        refuse_taint(g, where, f"the guard of block {b.name}")
        if where.constant == 1:
            _write_instance(g, b)
        elif where.constant is None:
            g.emit(f"if {where.code}:")
            with g.nested():
                _write_instance(g, b)


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


def _write_instance(g: Generator, b: Block) -> None:
    """The executed instance: domains checked, then the body."""
    for v in b.iter_vars:
        code = g.env[v.var.name][0].code
        check = _narrow(g, v)
        if check is not None:
            g.emit(f"if not {check}: outside({b.name!r}, {v.var.name!r}, {code})")
    g.stmt(body_of(b))
