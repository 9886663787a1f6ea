"""Where a block's initialisation means something else here than in TVM's lowering.

Here `init` runs once per spatial instance, whatever the updates do. TVM puts it under the guard of the first reduction step:
where that step is guarded off, or there is none, it does not run.
"""

from __future__ import annotations

from collections.abc import Iterator

from layoutproof.ir.diagnostic import Diagnostic, Severity
from layoutproof.ir.expr import Expr, IntImm, Logical, LogicalOp, Var
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script import codes
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import Block, For, IterKind
from layoutproof.ir.subst import substitute
from layoutproof.ir.visit import free_variables, loads_in, walk

_HELP = "the program is read so that it does run; give the first step no guard to make both readings agree"


def check_init(f: PrimFunc) -> tuple[Diagnostic, ...]:
    """One diagnostic for each block whose initialisation TVM might leave out: a warning for guards (at the first condition that may
    fail) and empty reductions, a note for reductions of symbolic extent, which may be empty."""
    loops = {node.var: node for node in walk(f.body) if isinstance(node, For)}
    blocks = (node for node in walk(f.body) if isinstance(node, Block))
    return tuple(d for block in blocks if block.init is not None for d in _check(block, loops))


def _check(block: Block, loops: dict[Var, For]) -> Iterator[Diagnostic]:
    reduced = [v for v in block.iter_vars if v.kind is IterKind.REDUCE]
    for v in reduced:
        extent = v.domain.extent
        if not isinstance(extent, IntImm):
            message = f"where the reduction over {v.var.name} is empty, block {block.name} initialises its result; TVM would not"
            yield Diagnostic(codes.INIT_GUARDED, message, v.span, Severity.NOTE)
        elif extent.value <= 0:
            message = f"the reduction over {v.var.name} is empty: block {block.name} initialises its result all the same"
            yield Diagnostic(codes.INIT_GUARDED, message, v.span, Severity.WARNING)
    first: dict[Var, Expr] = {v.var: v.binding for v in block.iter_vars}
    over = {u for v in reduced for u in free_variables(v.binding)}
    starts: dict[Var, Expr] = {u: loops[u].start for u in over if u in loops}
    for term in _terms(block.where):
        bound = substitute(term, first)
        if set(free_variables(bound)) & over and not _holds(substitute(bound, starts)):
            message = f"block {block.name} is guarded at its first reduction step, where TVM would not initialise its result"
            yield Diagnostic(codes.INIT_GUARDED, message, term.span if term.span is not None else block.span, Severity.WARNING, help=_HELP)
            return


def _terms(condition: Expr) -> Iterator[Expr]:
    if isinstance(condition, Logical) and condition.op is LogicalOp.AND:
        yield from _terms(condition.lhs)
        yield from _terms(condition.rhs)
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
