"""Loop nests: finding loops by name or position, the chain of loops around a statement, replacing statements;
and guards, the conditions that exclude additional iterations, by their place and their number.

Everything is by identity: the same text may occur in a function twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from layoutproof.ir.diagnostic import error, meant
from layoutproof.ir.expr import TRUE, Expr, IfThenElseExpr, Logical, Var, logical_and
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, ForKind, IfThenElse, Seq, Stmt, seq
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import children, free_variables, holds_any, mapped, names_in, nodes_of, take_fresh, walk
from layoutproof.lowering import codes
from layoutproof.lowering.arith.affine import Affine
from layoutproof.lowering.arith.index_simplify import IndexSimplifier
from layoutproof.lowering.arith.known_facts import Scope, symbol_scope
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.passes.effects import is_pure
from layoutproof.lowering.passes.find import find_block, parts_with

LoopName = str | int


def path_to(body: Stmt, target: Stmt) -> tuple[Stmt, ...]:
    """The statements around `target`, outermost first, without it. Raises ValueError if it is not in `body`."""

    path: list[Stmt] = []
    rest: list[Iterator[Node]] = [iter((body,))]
    while rest:
        node = next((child for child in rest[-1] if isinstance(child, Stmt)), None)
        if node is target:
            return tuple(path)
        if node is not None:
            path.append(node)
            rest.append(_towards(node, target))
            continue
        rest.pop()
        if path:
            path.pop()
    raise ValueError("the statement is not in the body")


def _towards(node: Stmt, target: Stmt) -> Iterator[Node]:
    """The nodes below a statement in which another may be; of a long sequence few, if that is a block."""
    if isinstance(node, Seq) and isinstance(target, Block):
        return iter(parts_with(node, target))
    return iter(children(node))


def put(func: PrimFunc, old: Stmt, new: Stmt) -> PrimFunc:
    """The function with the statement `old` replaced."""

    def visit(node: Node) -> Node | Steps[Node, Node]:
        if node is old:
            return new
        return mapped(node) if isinstance(node, Stmt) else node

    body = trampoline(visit, func.body)
    assert isinstance(body, Stmt)
    return func.with_body(body)


def loops_of_block(func: PrimFunc, name: str) -> tuple[For, ...]:
    """The loops between a block and the enclosing one, outermost first; for `root`, all loops in textual order.

    Raises LayoutproofError if there is no such block, or two.
    """
    if name == ROOT:
        return tuple(n for n in nodes_of(func.body, For))
    return tuple(s for s in own_path(func, find_block(func, name)) if isinstance(s, For))


def scope_around(func: PrimFunc, stmt: Stmt) -> Scope:
    """What symbols and the loops around a statement say."""
    scope = symbol_scope(func)
    for outer in path_to(func.body, stmt):
        if isinstance(outer, For):
            scope = scope.with_range(outer.var, outer.start, outer.extent)
    return scope


def own_path(func: PrimFunc, target: Stmt) -> tuple[Stmt, ...]:
    """The part of the path to a statement that lies inside the innermost block around it."""
    path = path_to(func.body, target)
    start = max((n + 1 for n, s in enumerate(path) if isinstance(s, Block)), default=0)
    return path[start:]


def find_loop(func: PrimFunc, block: str, name: LoopName) -> For:
    """The loop of a block by its variable or its position. Raises LayoutproofError if there is none, or two."""
    loops = loops_of_block(func, block)
    there = f"its loops are {', '.join(loop.var.name for loop in loops)}" if loops else "it has no loop"
    if isinstance(name, int):
        if not 0 <= name < len(loops):
            raise error(codes.NO_LOOP, f"block {block} has no loop at position {name}", help=there)
        return loops[name]
    found = [loop for loop in loops if loop.var.name == name]
    if not found:
        hint = meant(name, [loop.var.name for loop in loops], there)
        raise error(codes.NO_LOOP, f"block {block} has no loop {name!r}", help=hint)
    if len(found) > 1:
        places = ", ".join(str(n) for n, loop in enumerate(loops) if loop.var.name == name)
        message = f"block {block} has {len(found)} loops with the variable {name!r}"
        raise error(codes.TWO_LOOPS, message, found[1].span, help=f"name one by its position: {places}")
    return found[0]


def check_kind(loop: For) -> None:
    """Raise LayoutproofError for a loop that is bound to a thread axis."""
    if loop.kind is ForKind.THREAD_BINDING:
        raise error(
            codes.LOOP_KIND,
            f"loop {loop.var.name} is bound to {loop.thread}; only loops without a thread can change",
            loop.span,
        )


@dataclass(frozen=True, slots=True)
class Chain:
    """Perfectly nested loops and branches, outermost first; `body` is in the last of them."""

    links: tuple[For | IfThenElse, ...]
    body: Stmt

    @property
    def loops(self) -> tuple[For, ...]:
        """The loops among the links."""
        return tuple(link for link in self.links if isinstance(link, For))

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """The conditions of the branches among the links."""
        return tuple(link.condition for link in self.links if isinstance(link, IfThenElse))


def chain_around(path: Sequence[Stmt], body: Stmt) -> Chain:
    """The longest chain that ends at `body`, along `path`. It includes branches whose condition reads no memory."""
    links: list[For | IfThenElse] = []
    for stmt in reversed(path):
        if not isinstance(stmt, For | IfThenElse) or (isinstance(stmt, IfThenElse) and not _is_plain(stmt)):
            break
        links.append(stmt)
    return Chain(tuple(reversed(links)), body)


def _is_plain(branch: IfThenElse) -> bool:
    return branch.otherwise is None and is_pure(branch.condition)


def nest(loops: Iterable[For], body: Stmt) -> Stmt:
    """`body` in copies of the loops, outermost first."""
    for loop in reversed(tuple(loops)):
        body = replace(loop, body=body)
    return body


def under(conditions: Sequence[Expr], body: Stmt) -> Stmt:
    """`body` in a branch on the conjunction; `body` itself if there is no condition."""
    return IfThenElse(logical_and(*conditions), body) if conditions else body


def names_of(func: PrimFunc) -> set[str]:
    """Every name that a function mentions, parameters and symbols included."""
    taken = names_in(func.body) | {p.name for p in func.params}
    for buffer in func.buffers:
        taken |= {buffer.name, buffer.data.name} | {v.name for extent in buffer.shape for v in free_variables(extent)}
    return taken


def fresh_variable(name: str, like: Expr, taken: set[str]) -> Var:
    """A variable of the type of `like` under a name that is not taken, which then is."""
    return Var(take_fresh(name, taken), like.dtype)


def depends(expr: Expr, variables: Iterable[Var] | Mapping[Var, object]) -> bool:
    """Whether one of the variables occurs in an expression."""
    return bool(set(free_variables(expr)) & set(variables))


def parts_of(condition: Expr) -> tuple[Expr, ...]:
    """The conjuncts of a condition from left to right; none for a condition that is always true."""
    if isinstance(condition, Logical) and condition.op is LogicalOp.AND:
        return (*parts_of(condition.lhs), *parts_of(condition.rhs))
    return () if condition == TRUE else (condition,)


def guarded(stmt: Stmt, guard: Expr) -> Stmt:
    """`stmt` under `guard`: blocks take it into their own guard, anything else gets a branch around it."""
    if guard == TRUE:
        return stmt
    if not holds_any(stmt, Block):
        return IfThenElse(guard, stmt)
    match stmt:
        case Block():
            return guarded_block(stmt, guard)
        case For(start=start, extent=extent) if is_pure(start, extent):
            return replace(stmt, body=guarded(stmt.body, guard))
        case Seq(body=body):
            return seq(*(guarded(part, guard) for part in body))
        case IfThenElse(condition=condition) if is_pure(condition):
            otherwise = guarded(stmt.otherwise, guard) if stmt.otherwise is not None else None
            return replace(stmt, then=guarded(stmt.then, guard), otherwise=otherwise)
        case _:
            return IfThenElse(guard, stmt)


def guarded_block(block: Block, guard: Expr) -> Block:
    """A block under a guard, its init included."""
    return replace(block, where=logical_and(*parts_of(block.where), *parts_of(guard)))


def tidied(stmt: Stmt, scope: Scope) -> Stmt:
    """The outermost blocks below with their bindings simplified; `scope` is what loops around `stmt` say."""
    match stmt:
        case Block():
            simplifier = IndexSimplifier(scope)
            plain = (
                i.binding if isinstance(i.binding, Var) else simplifier.simplify(i.binding) for i in stmt.iter_vars
            )
            return replace(
                stmt, iter_vars=tuple(replace(i, binding=b) for i, b in zip(stmt.iter_vars, plain, strict=True))
            )
        case For(var=var, start=start, extent=extent):
            return replace(stmt, body=tidied(stmt.body, scope.with_range(var, start, extent)))
        case IfThenElse(otherwise=None):
            return replace(stmt, then=tidied(stmt.then, scope))
        case Seq(body=body):
            return seq(*(tidied(part, scope) for part in body))
        case _:
            return stmt


class GuardKind(StrEnum):
    """The place of a guard."""

    AROUND = "a branch around the block"
    BLOCK = "the block's own guard"
    INSIDE = "a branch inside the block"
    VALUE = "a choice inside a value"


@dataclass(frozen=True, slots=True)
class GuardSite:
    """One condition that can be dropped: conjunct `part` of the guard of `node`; the whole condition if there is an
    alternative.
    """

    node: IfThenElse | Block | IfThenElseExpr
    part: int
    condition: Expr
    kind: GuardKind
    has_alternative: bool

    def __str__(self) -> str:
        return f"`{expr_text(self.condition)}` ({self.kind.value})"


def guard_sites(func: PrimFunc, block: str) -> tuple[GuardSite, ...]:
    """The guards of a block from the outside to the inside; for `root`, all of the function in textual order.

    Raises LayoutproofError if there is no such block, or two.
    """
    if block == ROOT:
        return tuple(_inside(func.body, GuardKind.BLOCK))
    target = find_block(func, block)
    around = [
        s for stmt in own_path(func, target) if isinstance(stmt, IfThenElse) for s in _of_branch(stmt, GuardKind.AROUND)
    ]
    own = [GuardSite(target, n, c, GuardKind.BLOCK, False) for n, c in enumerate(parts_of(target.where))]
    inits = [] if target.init is None else list(_inside(target.init, GuardKind.INSIDE))
    return (*around, *own, *inits, *_inside(target.body, GuardKind.INSIDE))


def _inside(stmt: Stmt, blocks: GuardKind) -> Iterator[GuardSite]:
    for node in walk(stmt):
        if isinstance(node, IfThenElse):
            yield from _of_branch(node, GuardKind.INSIDE)
        elif isinstance(node, Block):
            yield from (GuardSite(node, n, c, blocks, False) for n, c in enumerate(parts_of(node.where)))
        elif isinstance(node, BufferStore):
            yield from (GuardSite(e, 0, e.condition, GuardKind.VALUE, True) for e in _choices(node.value))


def _of_branch(branch: IfThenElse, kind: GuardKind) -> Iterator[GuardSite]:
    if branch.otherwise is not None:
        yield GuardSite(branch, 0, branch.condition, kind, True)
        return
    yield from (GuardSite(branch, n, c, kind, False) for n, c in enumerate(parts_of(branch.condition)))


def _choices(node: Node) -> Iterator[IfThenElseExpr]:
    if isinstance(node, IfThenElseExpr):
        yield node
    for child in children(node):
        if isinstance(child, Expr):
            yield from _choices(child)


_ROUNDS = 8  # ranges that depend on one another are followed this deep


def end_over_loops(value: Affine, scope: Scope, *, highest: bool) -> Affine | None:
    """The largest or the least value over the loops, in terms of invariants; None if that is not plain."""
    for _ in range(_ROUNDS):
        step = _one_out(value, scope, highest)
        if step is None or step == value:
            return step
        value = step
    return None


def _one_out(value: Affine, scope: Scope, highest: bool) -> Affine | None:
    """The value with one variant term replaced by its end; the value itself if nothing varies."""
    for term, coefficient in value.terms.items():
        upwards = (coefficient > 0) is highest
        rest = Affine({t: c for t, c in value.terms.items() if t != term}, value.constant)
        known = scope.known.get(term) if isinstance(term, Var) else None
        if known is None and isinstance(term, Var):
            continue
        if known is not None and known.low is None and known.high is None:
            continue  # a symbol
        if known is None and not any(_varies(v, scope) for v in free_variables(term)) and is_pure(term):
            continue
        symbolic = None if known is None else known.high if upwards else known.low
        bounds = scope.bounds(term)
        number = bounds.high if upwards else bounds.low
        if symbolic is not None and (symbolic.terms or not term.dtype.min_int < number < term.dtype.max_int):
            return rest + symbolic.scaled(coefficient)
        if not term.dtype.min_int < number < term.dtype.max_int:
            return None
        return rest + Affine({}, coefficient * number)
    return value


def _varies(variable: Var, scope: Scope) -> bool:
    known = scope.known.get(variable)
    return known is None or known.low is not None or known.high is not None
