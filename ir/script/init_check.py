"""Where a block's init does not run, or runs after other steps: what the text means, and seldom what is wanted.

A block runs its init in the instances whose guard holds and whose reduce variables are all at the start of their domains
(`ir/desugar.py`). So it stays away where the guard keeps that step off or the reduction is empty, and comes late where the loops begin
somewhere else.
"""

from __future__ import annotations

from collections.abc import Iterator

from layoutproof.ir.diagnostic import Diagnostic, Severity
from layoutproof.ir.expr import Expr, IntImm, Logical, LogicalOp, Var, equal
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script import codes
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import Block, For, IterKind
from layoutproof.ir.subst import substitute
from layoutproof.ir.visit import free_variables, loads_in, walk

_GUARD_HELP = "put the condition around the update in the block's body, and the init runs all the same"
_LATE_HELP = "let the binding begin at the start of its domain, or initialise in loops of their own"


def check_init(f: PrimFunc) -> tuple[Diagnostic, ...]:
    """One diagnostic for each block whose init may not run, or not first: a warning for guards (at the first condition that may fail),
    empty reductions and bindings that begin elsewhere; a note for reductions of symbolic extent, which may be empty."""
    loops = {node.var: node for node in walk(f.body) if isinstance(node, For)}
    blocks = (node for node in walk(f.body) if isinstance(node, Block))
    return tuple(d for block in blocks if block.init is not None for d in _check(block, loops))


def _check(block: Block, loops: dict[Var, For]) -> Iterator[Diagnostic]:
    reduced = [v for v in block.iter_vars if v.kind is IterKind.REDUCE]
    over = {u for v in reduced for u in free_variables(v.binding)}
    kept = {u for v in block.iter_vars if v.kind is not IterKind.REDUCE for u in free_variables(v.binding)}
    starts: dict[Var, Expr] = {u: loops[u].start for u in over - kept if u in loops}
    for v in reduced:
        name, extent = v.var.name, v.domain.extent
        if isinstance(extent, IntImm) and extent.value <= 0:
            message = f"the reduction over {name} is empty: block {block.name} never initialises its result"
            yield Diagnostic(codes.INIT_GUARDED, message, v.span, Severity.WARNING)
            continue
        if not isinstance(extent, IntImm):
            message = f"where the reduction over {name} is empty, block {block.name} does not initialise its result"
            yield Diagnostic(codes.INIT_GUARDED, message, v.span, Severity.NOTE)
        first = substitute(v.binding, starts)
        if first != v.domain.start and not _holds(equal(first, v.domain.start)):
            message = f"{name} may not begin at the start of its domain: the init of block {block.name} may come after other steps"
            yield Diagnostic(codes.INIT_GUARDED, message, v.span, Severity.WARNING, help=_LATE_HELP)
    bindings: dict[Var, Expr] = {v.var: v.binding for v in block.iter_vars}
    for term in _conjuncts(block.where):
        bound = substitute(term, bindings)
        if set(free_variables(bound)) & over and not _holds(substitute(bound, starts)):
            message = f"the guard of block {block.name} may exclude its first reduction step, and then its result is not initialised"
            yield Diagnostic(
                codes.INIT_GUARDED, message, term.span if term.span is not None else block.span, Severity.WARNING, help=_GUARD_HELP
            )
            return


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    if isinstance(condition, Logical) and condition.op is LogicalOp.AND:
        yield from _conjuncts(condition.lhs)
        yield from _conjuncts(condition.rhs)
    else:
        yield condition


def _holds(condition: Expr) -> bool:
    """Whether a condition without variables is true; one with variables or loads may be false."""
    if free_variables(condition) or any(True for _ in loads_in(condition)):
        return False
    from layoutproof.ir.evaluate import evaluate  # it loads numpy, which reading a program seldom needs

    try:
        return bool(evaluate(condition, {}))
    except Trap:
        return False
