"""Warnings about programs that may not mean what is wanted: an init that does not run or runs late, and forms where TVM
0.27 computes something else (the table in `docs/reference/programs.md`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import Diagnostic, Severity
from layoutproof.ir.dtype import BFLOAT16
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
    Select,
    Var,
    const,
    equal,
)
from layoutproof.ir.intrinsics import Call, Limit
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import Allocate, Block, BufferStore, DeclBuffer, For, ForKind, IterKind, Let
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import children, free_variables, loads_in, nodes_of, substitute, walk

_GUARD_HELP = "put the condition around the update in the block's body, and the init runs all the same"
_LATE_HELP = "let the binding begin at the start of its domain, or initialise in loops of their own"


def check_init(f: PrimFunc) -> tuple[Diagnostic, ...]:
    """One diagnostic for each block whose init may not run, or not first: a warning for guards (at the first condition
    that may fail), empty reductions and bindings that begin elsewhere; a note for reductions of symbolic extent, which
    may be empty.
    """
    loops = {node.var: node for node in nodes_of(f.body, For)}
    blocks = (node for node in nodes_of(f.body, Block))
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
            message = (
                f"{name} may not begin at the start of its domain: the init of block {block.name} may come after "
                "other steps"
            )
            yield Diagnostic(codes.INIT_GUARDED, message, v.span, Severity.WARNING, help=_LATE_HELP)
    bindings: dict[Var, Expr] = {v.var: v.binding for v in block.iter_vars}
    for term in _conjuncts(block.where):
        bound = substitute(term, bindings)
        if set(free_variables(bound)) & over and not _holds(substitute(bound, starts)):
            message = (
                f"the guard of block {block.name} may exclude its first reduction step, and then its result is not "
                "initialised"
            )
            yield Diagnostic(
                codes.INIT_GUARDED,
                message,
                term.span if term.span is not None else block.span,
                Severity.WARNING,
                help=_GUARD_HELP,
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


_SUMS = (BinaryOp.ADD, BinaryOp.SUB)
_EXACT = (BinaryOp.MIN, BinaryOp.MAX)


def check_upstream(f: PrimFunc) -> tuple[Diagnostic, ...]:
    """One diagnostic for each kind of difference from TVM, at its first place; notes where only LLVM code differs."""
    nodes = list(walk(f.body))
    expressions = [node for node in nodes if isinstance(node, Expr)]
    loops = [node for node in nodes if isinstance(node, For)]
    narrow = _narrow_floats(expressions, _unrounded(f, [node for node in nodes if isinstance(node, BufferStore)]))
    found = (
        narrow,
        *(check(expressions) for check in _CHECKS),
        *(check(loops) for check in (_loops, _cells_in_lanes, _loaded_starts)),
        _strided_memory(f),
        _shifted_remainders(nodes),
    )
    return tuple(each for each in found if each is not None)


def _warning(
    e: Expr | For | Let, message: str, help: str | None = None, severity: Severity = Severity.WARNING
) -> Diagnostic:
    return Diagnostic(codes.UPSTREAM_DIFFERS, message, e.span, severity, help=help)


def _narrow_floats(expressions: Sequence[Expr], unrounded: Collection[Var]) -> Diagnostic | None:
    """A value that is rounded to bfloat16 and used as anything but a bfloat16 that is chosen."""
    for e in expressions:
        parts = [part for part in children(e) if isinstance(part, Expr) and part.dtype.element == BFLOAT16]
        if _is_exact(e) or isinstance(e, BufferLoad) or not any(_is_rounded(part, unrounded) for part in parts):
            continue
        message = "every operation on bfloat16 rounds; TVM computes in float32, and rounds what is stored to parameters"
        return _warning(e, message)
    return None


def _is_exact(e: Expr) -> bool:
    """Whether a bfloat16 is one of the operands."""
    return e.dtype.element == BFLOAT16 and (
        isinstance(e, Select | IfThenElseExpr | Broadcast) or (isinstance(e, Binary) and e.op in _EXACT)
    )


def _is_rounded(e: Expr, unrounded: Collection[Var]) -> bool:
    """Whether a bfloat16 may be the result of a rounding, which TVM leaves out."""
    if e.dtype.element != BFLOAT16:
        return False
    if _is_exact(e):
        return any(_is_rounded(part, unrounded) for part in children(e) if isinstance(part, Expr))
    if isinstance(e, BufferLoad):
        return e.buffer.data in unrounded
    return isinstance(e, Call | Cast | Binary)


def _unrounded(f: PrimFunc, stores: Sequence[BufferStore]) -> Collection[Var]:
    """Temporaries of bfloat16 that hold results of roundings: TVM keeps them in float32."""
    own = {buffer.data for buffer in f.buffers}
    stores = [s for s in stores if s.buffer.dtype.element == BFLOAT16 and s.buffer.data not in own]
    found: set[Var] = set()
    while more := {
        s.buffer.data
        for s in stores
        if s.buffer.data not in found and (s.value.dtype.element != BFLOAT16 or _is_rounded(s.value, found))
    }:
        found |= more
    return found


def _folded_floats(expressions: Sequence[Expr]) -> Diagnostic | None:
    """Floats that TVM simplifies as if they were exact."""
    for e in expressions:
        if isinstance(e, Compare) and e.lhs.dtype.is_float and e.lhs == e.rhs:
            return _warning(e, "a float compared with itself differs where it is NaN; TVM assumes that no float is NaN")
        if not isinstance(e, Binary) or not e.dtype.is_float:
            continue
        if e.op in _SUMS:
            terms = list(_terms(e, True))
            if any((term, not positive) in terms for term, positive in terms if not isinstance(term, FloatImm)):
                return _warning(
                    e, "a term with both signs is added and taken away, with roundings between; TVM leaves both out"
                )
            if _cancels(e):
                return _warning(e, "a constant is added and taken away, with roundings between; TVM leaves both out")
        if e.op is BinaryOp.MUL and any(_is_zero(side) for side in (e.lhs, e.rhs)):
            return _warning(e, "a product with zero may be NaN or a zero of either sign; TVM takes it for 0")
        if e.op is BinaryOp.DIV and _is_zero(e.lhs):
            return _warning(e, "a quotient of zero may be NaN or a zero of either sign; TVM takes it for 0")
    return None


def _is_zero(e: Expr, sign: float = 0.0) -> bool:
    """Whether a constant is a zero; with `sign`, one of that sign."""
    return isinstance(e, FloatImm) and e.value == 0 and sign in (0.0, math.copysign(1.0, e.value))


def _cancels(e: Binary) -> bool:
    """Whether a difference is of a sum with a constant and this constant, either way round."""
    pairs = ((e.lhs, e.rhs), (e.rhs, e.lhs)) if e.op is BinaryOp.SUB else ()
    for whole, part in pairs:
        if isinstance(part, FloatImm) and isinstance(whole, Binary) and whole.op is BinaryOp.ADD:
            return part in (whole.lhs, whole.rhs)
    return False


def _signs_of_zero(expressions: Sequence[Expr]) -> Diagnostic | None:
    """A sum with zero, which is 0 where the other side is -0."""
    for e in expressions:
        if not isinstance(e, Binary) or not e.dtype.is_float:
            continue
        sum_ = e.op is BinaryOp.ADD and (_is_zero(e.lhs, 1.0) or _is_zero(e.rhs, 1.0))
        if sum_ or (e.op is BinaryOp.SUB and _is_zero(e.rhs, -1.0)):
            return _warning(e, "a sum with zero is 0 where the other side is -0; TVM leaves the zero out")
    return None


def _cells_in_lanes(loops: Sequence[For]) -> Diagnostic | None:
    """A name in a vectorized loop whose value differs from lane to lane, and which is a cell in TVM."""
    for loop in (loop for loop in loops if loop.kind is ForKind.VECTORIZED):
        varying = {loop.var}
        for let in nodes_of(loop.body, Let):
            if varying.isdisjoint(free_variables(let.value)):
                continue
            varying.add(let.var)
            if _is_cell(let):
                message = f"{let.var.name} has a value in each lane; in TVM it is one cell, which the last lane stores"
                return _warning(let, message, f"write {let.var.name} = T.bind(...)")
    return None


def _is_cell(let: Let) -> bool:
    """Whether the text of a let is `x = e` or `x: T.int32 = e`."""
    if let.span is None:
        return False
    name, _, rest = let.span.text.partition("=")
    plain = name.partition(":")[0].strip() == let.var.name and ".let" not in name
    return plain and not re.match(r"\s*\w+(\.\w+)*\.bind\(", rest)


def _loaded_starts(loops: Sequence[For]) -> Diagnostic | None:
    """A loop that begins at a value which its body may store."""
    for loop in loops:
        stored = {store.buffer.data for store in nodes_of(loop.body, BufferStore)}
        if any(load.buffer.data in stored for load in loads_in(loop.start)):
            message = f"{loop.var.name} begins at what is loaded once, before the loop; TVM loads it in each iteration"
            return _warning(loop, message, "bind the start to a name before the loop")
    return None


def _strided_memory(f: PrimFunc) -> Diagnostic | None:
    """Allocated memory with strides that another buffer sees, or by which elements share cells."""
    nodes = list(walk(f.body))
    own = [node.buffer for node in nodes if isinstance(node, Allocate)]
    own += [buffer for node in nodes if isinstance(node, Block) for buffer in node.alloc_buffers]
    seen = {node.buffer.data for node in nodes if isinstance(node, DeclBuffer)}
    for buffer in own:
        if buffer.strides and (buffer.data in seen or _overlaps(buffer)):
            what = "its memory is seen by another buffer" if buffer.data in seen else "its elements may share cells"
            message = f"{buffer.name} has strides, and {what}; TVM leaves the strides of allocated memory out"
            return Diagnostic(codes.UPSTREAM_DIFFERS, message, buffer.span or f.span, Severity.WARNING)
    return None


def _overlaps(buffer: Buffer) -> bool:
    """Whether two elements may have one cell: unless each stride goes past all that the smaller ones reach."""
    reached = 0
    axes = list(zip(buffer.shape, buffer.strides, strict=True))
    known = [(k.value, n.value) for n, k in axes if isinstance(n, IntImm) and isinstance(k, IntImm)]
    for stride, extent in sorted(known):
        if stride <= reached and extent > 1:
            return True
        reached += stride * max(0, extent - 1)
    return len(known) < len(axes)


def _ordered(expressions: Sequence[Expr]) -> Diagnostic | None:
    """A comparison of floats that is True where one of them is NaN."""
    for e in expressions:
        if isinstance(e, Compare) and e.op is CompareOp.NE and e.lhs.dtype.is_float and e.lhs != e.rhs:
            return _warning(
                e, "`!=` is True where a side is NaN; TVM's code for LLVM has False there", severity=Severity.NOTE
            )
        if isinstance(e, Not) and any(
            part.lhs.dtype.is_float and part.op is not CompareOp.NE for part in _compared(e.operand)
        ):
            return _warning(
                e,
                "True where a side is NaN; TVM turns the comparison around, and has False there",
                severity=Severity.NOTE,
            )
    return None


def _compared(e: Expr) -> Iterator[Compare]:
    """The comparisons that a condition is made of."""
    match e:
        case Compare():
            yield e
        case Logical():
            yield from _compared(e.lhs)
            yield from _compared(e.rhs)
        case Not():
            yield from _compared(e.operand)
        case _:
            pass


def _terms(e: Expr, positive: bool) -> Iterator[tuple[Expr, bool]]:
    """The terms of a sum, with their signs."""
    if isinstance(e, Binary) and e.op in _SUMS:
        yield from _terms(e.lhs, positive)
        yield from _terms(e.rhs, positive == (e.op is BinaryOp.ADD))
    else:
        yield e, positive


def _loops(loops: Sequence[For]) -> Diagnostic | None:
    """A loop that begins elsewhere than at 0, with an end or a start over a loop around it that does so too."""
    for outer in loops:
        if outer.start == const(0, outer.start.dtype):
            continue
        for inner in walk(outer.body):
            if not isinstance(inner, For) or inner.start == const(0, inner.start.dtype):
                continue
            if outer.var in free_variables(inner.start) or outer.var in free_variables(inner.extent):
                names = f"{inner.var.name} is over {outer.var.name}"
                message = f"the range of {names}, and neither begins at 0; TVM takes it to begin at 0 there"
                return _warning(inner, message, "begin one of the loops at 0")
    return None


def _shifted_remainders(nodes: Sequence[Node]) -> Diagnostic | None:
    """Remainders of `x` and of `x` plus a constant by one number, in one sum or in the indices of one access."""
    for node in nodes:
        if isinstance(node, BufferLoad | BufferStore):
            sums: Sequence[Expr] = node.indices
        elif isinstance(node, Binary) and node.op in _SUMS and node.dtype.is_integer:
            sums = (node,)
        else:
            continue
        seen: dict[tuple[Expr, Expr], Expr] = {}
        for term in (_as_remainder(_unscaled(term)) for each in sums for term, _ in _terms(each, True)):
            if isinstance(term, Binary) and term.op is BinaryOp.FLOORMOD and isinstance(term.rhs, IntImm):
                other = seen.setdefault((_unshifted(term.lhs, term.rhs.value), term.rhs), term)
                if other != term:
                    message = f"TVM's simplifier takes {expr_text(other)} and {expr_text(term)} for one number"
                    return Diagnostic(codes.UPSTREAM_DIFFERS, message, term.span or node.span, Severity.WARNING)
    return None


def _unscaled(e: Expr) -> Expr:
    """A term without its constant factors."""
    while isinstance(e, Binary) and e.op is BinaryOp.MUL and isinstance(e.rhs, IntImm):
        e = e.lhs
    return e


def _as_remainder(e: Expr) -> Expr:
    """`(x % 2 + 1) // 2` is `x % 2`, and TVM finds that."""
    two = const(2, e.dtype)
    if isinstance(e, Binary) and e.op is BinaryOp.FLOORDIV and e.rhs == two and isinstance(e.lhs, Binary):
        inner = e.lhs.lhs
        shifted = e.lhs.op is BinaryOp.ADD and e.lhs.rhs == const(1, e.dtype)
        if shifted and isinstance(inner, Binary) and inner.op is BinaryOp.FLOORMOD and inner.rhs == two:
            return inner
    return e


def _unshifted(e: Expr, divisor: int) -> Expr:
    """What is divided, without constants that are added to it, and without remainders by multiples of the divisor."""
    while isinstance(e, Binary) and isinstance(e.rhs, IntImm):
        if e.op not in _SUMS and not (e.op is BinaryOp.FLOORMOD and e.rhs.value % divisor == 0):
            break
        e = e.lhs
    return e


def _truth_of_constant(expressions: Sequence[Expr]) -> Diagnostic | None:
    """A constant between -1 and 1 that becomes a truth value."""
    for e in expressions:
        if isinstance(e, Cast) and e.dtype.is_bool and isinstance(e.value, FloatImm) and 0 < abs(e.value.value) < 1:
            return _warning(
                e, f"{e.value.value} is not zero, so this is True; TVM makes it an integer first, and has False"
            )
    return None


def _limit_of_bfloat16(expressions: Sequence[Expr]) -> Diagnostic | None:
    """The largest finite bfloat16, which TVM has not."""
    for e in expressions:
        if isinstance(e, Limit) and e.dtype.element == BFLOAT16 and e.kind.value != "infinity":
            return _warning(
                e, f"T.{e.kind.value} of bfloat16 is finite; in TVM it becomes an infinity where it is stored"
            )
    return None


def _behind_a_guard(expressions: Sequence[Expr]) -> Diagnostic | None:
    """A load on the right of `and` or `or` at an index that is not constant: TVM always reads it."""
    for e in expressions:
        if not isinstance(e, Logical):
            continue
        for load in loads_in(e.rhs):
            if not all(isinstance(index, IntImm) for index in load.indices) and not _is_loaded(load, e.lhs):
                message = (
                    f"{load.buffer.name} is read where the left side leaves the answer open; TVM's code for LLVM "
                    "reads it always"
                )
                help = "a branch inside a branch, or T.if_then_else, is lazy everywhere"
                return _warning(load, message, help, Severity.NOTE)
    return None


def _is_loaded(load: BufferLoad, left: Node) -> bool:
    """Whether the left side has the same load, which is then read in any case."""
    return load in loads_in(left)


_CHECKS: Sequence[Callable[[Sequence[Expr]], Diagnostic | None]] = (
    _folded_floats,
    _signs_of_zero,
    _ordered,
    _truth_of_constant,
    _limit_of_bfloat16,
    _behind_a_guard,
)
