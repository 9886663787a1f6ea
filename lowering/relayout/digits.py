"""The loops of a copy as digits: how far each one steps in what is read and in what is written.

Found from the program as it is lowered, so that what is planned with is what will run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Binary, BinaryOp, Compare, CompareOp, Expr, IfThenElseExpr, IntImm, Var
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse
from layoutproof.ir.visit import free_variables, loops_of_stores, stores_in, substitute, walk
from layoutproof.lowering.codegen.c_stream_terms import Polynomial, Steps, added, multiplied, number, polynomial, steps_of
from layoutproof.lowering.loops.nest import path_to


@dataclass(frozen=True, slots=True)
class Digit:
    """One loop: its name, its extent, and its steps in elements; `read` is None where what is read is not copied step by step.

    `guarded` says that a condition speaks of the loop.
    """

    name: str
    extent: Expr
    written: Polynomial
    read: Polynomial | None
    guarded: bool

    @property
    def size(self) -> int | None:
        """The number of iterations where it is a constant."""
        return self.extent.value if isinstance(self.extent, IntImm) else None

    @property
    def write_step(self) -> int | None:
        """The step in what is written where it is a constant."""
        return number(self.written)

    @property
    def read_step(self) -> int | None:
        """The step in what is read where it is a constant."""
        return number(self.read) if self.read is not None else None

    def follows(self, inner: Digit) -> bool:
        """Whether this loop around the inner one counts on where that one ends, in both streams."""
        if self.guarded or inner.guarded or self.read is None or inner.read is None:
            return False
        extent = polynomial(inner.extent)
        return multiplied(inner.written, extent) == self.written and multiplied(inner.read, extent) == self.read


def digits_of(lowered: PrimFunc, store: int) -> tuple[Digit, ...] | None:
    """The loops around a store of a lowered program, outermost first; None where what is written is no sum of their steps."""
    loops = loops_of_stores(lowered.body)[store]
    statement = list(stores_in(lowered.body))[store]
    variables = {loop.var for loop in loops}
    written = steps_of(statement.indices[-1], variables)
    if written is None:
        return None
    load, conditions = _value(statement)
    read = steps_of(load.indices[-1], variables) if load is not None else None
    conditions += [s.condition for s in path_to(lowered.body, statement) if isinstance(s, IfThenElse)]
    guards = {v for condition in conditions for v in free_variables(condition)}
    return tuple(_digit(loop, written, read, guards) for loop in loops)


def _digit(loop: For, written: Steps, read: Steps | None, guards: set[Var]) -> Digit:
    step = None if read is None else read.by_loop.get(loop.var, {})
    return Digit(loop.var.name, loop.extent, written.by_loop.get(loop.var, {}), step, loop.var in guards)


def _value(store: BufferStore) -> tuple[BufferLoad | None, list[Expr]]:
    """What a store copies, and the conditions under which it does."""
    value, conditions = store.value, list[Expr]()
    while isinstance(value, IfThenElseExpr):
        conditions.append(value.condition)
        value = value.then if isinstance(value.then, IfThenElseExpr | BufferLoad) else value.otherwise
    return (value if isinstance(value, BufferLoad) else None), conditions


def radices(block: Block) -> dict[Var, tuple[int, ...]]:
    """Where the indices of a block cut its variables into digits: their weights, smallest first, each a multiple of the last."""
    found: dict[Var, set[int]] = {}
    for node in walk(block.body):
        if isinstance(node, Binary) and node.op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD) and isinstance(node.rhs, IntImm):
            known = _weight(node.lhs)
            if known is not None and node.rhs.value > 1:
                found.setdefault(known[0], set()).add(known[1] * node.rhs.value)
    return {variable: _chain(weights) for variable, weights in found.items()}


def _weight(expr: Expr) -> tuple[Var, int] | None:
    """`(v, k)` of `v // k`."""
    if isinstance(expr, Var):
        return expr, 1
    if isinstance(expr, Binary) and expr.op is BinaryOp.FLOORDIV and isinstance(expr.rhs, IntImm):
        inner = _weight(expr.lhs)
        return (inner[0], inner[1] * expr.rhs.value) if inner is not None and expr.rhs.value > 0 else None
    return None


def _chain(weights: set[int]) -> tuple[int, ...]:
    chain: list[int] = []
    for weight in sorted(weights):
        if weight % (chain[-1] if chain else 1) == 0:
            chain.append(weight)
    return tuple(chain)


def cuts(block: Block, loops: Sequence[For]) -> Iterator[tuple[str, int]]:
    """Loops and places in them where what a block's conditions say changes: there a padded edge begins, or ends."""
    values = {i.var: i.binding for i in block.iter_vars}
    ranges = {loop.var: loop for loop in loops}
    for node in walk(block):
        if isinstance(node, Compare):
            form = added(polynomial(substitute(node.lhs, values)), polynomial(substitute(node.rhs, values)), -1)
            yield from _cuts_of(node.op, form, ranges)


_AT_ZERO = (CompareOp.LT, CompareOp.GE)
_ABOVE_ZERO = (CompareOp.GT, CompareOp.LE)


def _cuts_of(op: CompareOp, form: Polynomial, loops: Mapping[Var, For]) -> Iterator[tuple[str, int]]:
    """Where `form op 0` becomes certain, along the loop with the largest step."""
    steps: dict[Var, int] = {}
    for monomial, coefficient in form.items():
        term = monomial[0] if monomial else None
        if term is None:
            continue
        if len(monomial) > 1 or not isinstance(term, Var) or term not in loops or not isinstance(loops[term].extent, IntImm):
            return
        steps[term] = coefficient
    if not steps:
        return
    main = max(steps, key=lambda v: abs(steps[v]))
    sign = 1 if steps[main] > 0 else -1
    reach = [sign * c * (_size(loops[v]) - 1) for v, c in steps.items() if v is not main]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    base = sign * form.get((), 0)
    shifts = {0} if op in _AT_ZERO else {1} if op in _ABOVE_ZERO else {0, 1}
    if sign < 0:
        shifts = {1 - shift for shift in shifts}
    places = {-((base - shift + end) // (sign * steps[main])) for shift in shifts for end in (low, high)}
    yield from ((main.name, place) for place in sorted(places) if 0 < place < _size(loops[main]))


def _size(loop: For) -> int:
    return loop.extent.value if isinstance(loop.extent, IntImm) else 0
