"""Whether two functions are one program: the same tree, up to the names of what it binds.

Nothing is interpreted, so that it holds whatever the programs contain: opaque calls, hardware threads, strides, faults.
Part of the trust base. Names of variables, buffers, blocks and of the function are free to differ; everything else has
to be equal, in the same order. Each bound variable is known by the place of its binder; a variable that nothing binds
has to have the same name on both sides.

`is_same_unrolled` lets them differ in one thing more: an `unroll` loop with constant bounds is its body, once for each
iteration, with the number of the iteration for its variable. Then integers that differ are compared as `e + c`, the
constant computed: sums and products of constants that fit their type at each step, so that `2*3 + 1` is `7`, and `e`
itself is `e + 0`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import zip_longest

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Binary, Expr, FloatImm, IntImm, Var
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import AXIS_SEPARATORS, LAYOUT, LAYOUT_TRANSFORMATIONS, PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import NO_ATTRIBUTES, Allocate, Attributes, Block, DeclBuffer, For, ForKind, Let, Seq, Stmt
from layoutproof.ir.visit import children
from layoutproof.verify.faults.facts import STRUCTURE
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

CLAIM = Claim(ClaimKind.SAME_VALUE, "both programs are the same, up to names", about=("identical",))
_BY_DATA = (LAYOUT_TRANSFORMATIONS, AXIS_SEPARATORS, LAYOUT)  # attributes whose keys are names of data variables
_NAME = "global_symbol"
MOST_ITERATIONS = 1 << 20
"""How many iterations of `unroll` loops are looked at in one comparison."""
_DEEPEST = 16  # operations inside one another in a constant that is computed
Values = Mapping[str, int]


class _Iterations:
    """How many iterations may still be written out. None at all: loops are compared as loops."""

    def __init__(self, left: int) -> None:
        self.left = left


@dataclass(frozen=True, slots=True)
class _Scope:
    """The binders around a place, on both sides: from a variable's name to the number of its binder; `values` has
    those of variables of `unroll` loops that are written out.
    """

    left: dict[str, int]
    right: dict[str, int]
    values: tuple[Values, Values] = ({}, {})
    unrolling: _Iterations | None = None

    def binding(self, *pairs: tuple[Var, Var]) -> _Scope:
        """The scope inside binders of these variables, the first outermost."""
        left, right = dict(self.left), dict(self.right)
        for a, b in pairs:
            number = 1 + max((*left.values(), *right.values()), default=0)
            left[a.name] = right[b.name] = number
        values = self.values
        if values[0] or values[1]:
            bound = {a.name for a, _ in pairs}, {b.name for _, b in pairs}
            values = _without(values[0], bound[0]), _without(values[1], bound[1])
        return replace(self, left=left, right=right, values=values)

    def is_one(self, a: Var, b: Var) -> bool:
        """Whether two variables are bound at the same place, or are free and have the same name."""
        bound = self.left.get(a.name), self.right.get(b.name)
        return a.dtype == b.dtype and bound[0] == bound[1] and (bound[0] is not None or a.name == b.name)

    def declaring(self, a: Buffer, b: Buffer, *, data: bool) -> _Scope | None:
        """The scope where two buffers are declared: what stands in their shapes, strides and offsets and is not bound
        yet is bound by them, and with `data` their data variables too. None where they bind differently.
        """
        scope: _Scope = self
        mine, theirs = ([v for e in (*x.shape, *x.strides, x.elem_offset) for v in _variables(e)] for x in (a, b))
        if len(mine) != len(theirs):
            return None
        for x, y in zip(mine, theirs, strict=True):
            known = x.name in scope.left or y.name in scope.right
            # The number of an iteration is bound by its loop, and compared as a number.
            known = known or x.name in scope.values[0] or y.name in scope.values[1]
            if not known and x.dtype == y.dtype:
                scope = scope.binding((x, y))
        return scope.binding((a.data, b.data)) if data else scope


Pair = tuple[object, object, _Scope]


def is_same_program(a: PrimFunc, b: PrimFunc) -> bool:
    """Whether two functions are one program, up to names. False decides nothing."""
    return _is_one_program(a, b, None)


def is_same_unrolled(a: PrimFunc, b: PrimFunc) -> bool:
    """Whether two functions are one program, up to names, once `unroll` loops are written out. False decides
    nothing.
    """
    return _is_one_program(a, b, _Iterations(MOST_ITERATIONS))


def _is_one_program(a: PrimFunc, b: PrimFunc, unrolling: _Iterations | None) -> bool:
    scope = _interface(a, b)
    if scope is None:
        return False
    scope = replace(scope, unrolling=unrolling)
    renamed: dict[str, str] = {}
    stack: list[Pair] = [(a.body, b.body, scope), (a.params, b.params, scope), (a.buffer_map, b.buffer_map, scope)]
    while stack:
        x, y, scope = stack.pop()
        if (
            isinstance(x, Buffer)
            and isinstance(y, Buffer)
            and renamed.setdefault(x.data.name, y.data.name) != y.data.name
        ):
            return False
        parts = _parts(x, y, scope)
        if parts is None:
            return False
        stack.extend(parts)
    if len(set(renamed.values())) != len(renamed):
        return False
    return _same_attributes(a.attrs, b.attrs, renamed, scope=_Scope({}, {}))


def prove_identity(rewrite: Rewrite) -> Verdict | None:
    """The verdict that both programs of a rewrite without cell maps are one; None where they are not."""
    moved = rewrite.witness.changes_interface or any(
        c.old_data != c.new_data or c.cells.inputs != c.cells.outputs for c in rewrite.witness.cells
    )
    old, new = rewrite.old, rewrite.new
    same = not moved and (is_same_program(old, new) or is_same_unrolled(old, new))
    return Verdict(Status.PROVED, CLAIM, STRUCTURE) if same else None


def _interface(a: PrimFunc, b: PrimFunc) -> _Scope | None:
    """The scope of the bodies, parameters paired by their places."""
    if len(a.params) != len(b.params) or len(a.buffer_map) != len(b.buffer_map):
        return None
    scope: _Scope | None = _Scope({}, {}).binding(*zip(a.params, b.params, strict=True))
    for (_, mine), (_, theirs) in zip(a.buffer_map, b.buffer_map, strict=True):
        assert scope is not None
        known = mine.data.name in scope.left or theirs.data.name in scope.right
        # One memory behind two parameters has to be one on both sides.
        if known and not scope.is_one(mine.data, theirs.data):
            return None
        scope = scope.declaring(mine, theirs, data=not known)
        if scope is None:
            return None
    return scope


def _parts(x: object, y: object, scope: _Scope) -> list[Pair] | None:
    """What has to be the same of two things for them to be; None where they differ."""
    left = scope.unrolling
    if left is not None and isinstance(x, Stmt) and isinstance(y, Stmt) and (_is_sequence(x) or _is_sequence(y)):
        return _parts_of_sequences(x, y, scope, left)
    if left is not None and isinstance(x, Expr) and isinstance(y, Expr):
        (a, c), (b, d) = (_and_constant(e, values) for e, values in zip((x, y), scope.values, strict=True))
        if a is not x or b is not y:
            same = x.dtype == y.dtype and c == d and (a is None) == (b is None)
            return ([(a, b, scope)] if a is not None else []) if same else None
    return _parts_of_things(x, y, scope)


def _parts_of_things(x: object, y: object, scope: _Scope) -> list[Pair] | None:
    if type(x) is not type(y):
        return None
    if isinstance(x, Var) and isinstance(y, Var):
        return [] if scope.is_one(x, y) else None
    if isinstance(x, tuple) and isinstance(y, tuple):
        return [(p, q, scope) for p, q in zip(x, y, strict=True)] if len(x) == len(y) else None
    if isinstance(x, Attributes) and isinstance(y, Attributes):
        return [(x[key], y[key], scope) for key in x] if set(x) == set(y) else None
    if not isinstance(x, Node):
        return [] if x == y and repr(x) == repr(y) else None
    if isinstance(x, FloatImm):
        return [] if x == y else None  # which tells -0.0 from 0.0, and takes a NaN for itself
    if isinstance(x, Block) and isinstance(y, Block):
        return _parts_of_block(x, y, scope)
    return _parts_of_node(x, y, scope)


def _is_sequence(stmt: Stmt) -> bool:
    if isinstance(stmt, Seq):
        return True
    return isinstance(stmt, For) and is_written_out(stmt)


def is_written_out(stmt: For) -> bool:
    """Whether a loop is taken to be its body, once for each iteration."""
    if stmt.kind is not ForKind.UNROLLED or stmt.annotations != NO_ATTRIBUTES:
        return False
    if not (isinstance(stmt.start, IntImm) and isinstance(stmt.extent, IntImm)):
        return False
    return stmt.start.value + stmt.extent.value - 1 <= stmt.var.dtype.max_int


def _parts_of_sequences(x: Stmt, y: Stmt, scope: _Scope, left: _Iterations) -> list[Pair] | None:
    """The statements of two sequences one by one."""
    found: list[Pair] = []
    sides = (_one_by_one(stmt, values, left) for stmt, values in zip((x, y), scope.values, strict=True))
    for mine, theirs in zip_longest(*sides):
        if mine is None or theirs is None or left.left < 0:
            return None
        found.append((mine[0], theirs[0], replace(scope, values=(mine[1], theirs[1]))))
    return found[::-1]  # The first is looked at first: programs that differ mostly do so early.


def _one_by_one(stmt: Stmt, values: Values, left: _Iterations) -> Iterator[tuple[Stmt, Values]]:
    """The statements of a sequence, each with the values of the variables of `unroll` loops around it."""
    stack = [iter([(stmt, values)])]
    while stack:
        top = next(stack[-1], None)
        if top is None:
            stack.pop()
        elif not _is_sequence(top[0]):
            yield top
        else:
            stack.append(_inside(*top, left))


def _inside(stmt: Stmt, values: Values, left: _Iterations) -> Iterator[tuple[Stmt, Values]]:
    if isinstance(stmt, Seq):
        yield from ((part, values) for part in stmt.body)
        return
    assert isinstance(stmt, For) and isinstance(stmt.start, IntImm) and isinstance(stmt.extent, IntImm)
    for number in range(stmt.start.value, stmt.start.value + stmt.extent.value):
        left.left -= 1
        if left.left < 0:
            return
        yield stmt.body, {**values, stmt.var.name: number}


def _and_constant(expr: Expr, values: Values) -> tuple[Expr | None, int]:
    """An integer as another one and a constant that is added to it; None for the first where it is a constant."""
    if not (expr.dtype.is_integer and expr.dtype.lanes == 1):
        return expr, 0
    value = constant_value(expr, values)
    if value is not None:
        return None, value
    if isinstance(expr, Binary) and expr.op in (BinaryOp.ADD, BinaryOp.SUB):
        value = constant_value(expr.rhs, values)
        if value is not None:
            return expr.lhs, value if expr.op is BinaryOp.ADD else -value
    return expr, 0


_COMPUTED: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
}


def constant_value(expr: Expr, values: Values, depth: int = _DEEPEST) -> int | None:
    """The value of a constant; None for all else, and where it does not fit its type on the way."""
    found: int | None = None
    if isinstance(expr, IntImm):
        return expr.value
    if isinstance(expr, Var):
        found = values.get(expr.name)
    elif isinstance(expr, Binary) and expr.op in _COMPUTED and depth > 0:
        b = constant_value(expr.rhs, values, depth - 1)
        a = constant_value(expr.lhs, values, depth - 1) if b is not None else None
        found = _COMPUTED[expr.op](a, b) if a is not None and b is not None else None
    return found if found is not None and expr.dtype.min_int <= found <= expr.dtype.max_int else None


def _without(values: Values, names: set[str]) -> Values:
    return {name: value for name, value in values.items() if name not in names}


def _parts_of_node(x: Node, y: object, scope: _Scope) -> list[Pair] | None:
    inside: _Scope | None = scope
    if (isinstance(x, For) and isinstance(y, For)) or (isinstance(x, Let) and isinstance(y, Let)):
        inside = scope.binding((x.var, y.var))
    elif isinstance(x, Allocate) and isinstance(y, Allocate):
        inside = scope.declaring(x.buffer, y.buffer, data=True)
    elif isinstance(x, DeclBuffer) and isinstance(y, DeclBuffer):
        inside = scope.declaring(x.buffer, y.buffer, data=False)
    else:
        return [
            (getattr(x, name), getattr(y, name), scope)
            for name in _compared(x)
            if not (isinstance(x, Buffer) and name == "name")
        ]
    if inside is None:
        return None
    within = ("var", "buffer", "body")
    return [(getattr(x, name), getattr(y, name), inside if name in within else scope) for name in _compared(x)]


def _parts_of_block(x: Block, y: Block, scope: _Scope) -> list[Pair] | None:
    """Bindings and domains stand outside of a block, its variables, views and buffers inside."""
    lists = ((x.iter_vars, y.iter_vars), (x.alloc_buffers, y.alloc_buffers), (x.match_buffers, y.match_buffers))
    if x.is_root != y.is_root or any(len(p) != len(q) for p, q in lists):
        return None
    found: list[Pair] = [(p.kind, q.kind, scope) for p, q in zip(x.iter_vars, y.iter_vars, strict=True)]
    found += [
        ((p.domain, p.binding), (q.domain, q.binding), scope) for p, q in zip(x.iter_vars, y.iter_vars, strict=True)
    ]
    inside: _Scope | None = scope.binding(*((p.var, q.var) for p, q in zip(x.iter_vars, y.iter_vars, strict=True)))
    assert inside is not None
    found += [(p.var, q.var, inside) for p, q in zip(x.iter_vars, y.iter_vars, strict=True)]
    # A predicate speaks of the loops around: should a variable of the block hide one of them, it has to be the same
    # either way.
    found += [(x.where, y.where, inside), (x.where, y.where, scope)]
    for p, q in zip(x.alloc_buffers, y.alloc_buffers, strict=True):
        inside = inside.declaring(p, q, data=True)
        if inside is None:
            return None
        found.append((p, q, inside))
    for m, n in zip(x.match_buffers, y.match_buffers, strict=True):
        found.append((m.source, n.source, inside))
        inside = inside.declaring(m.buffer, n.buffer, data=True)
        if inside is None:
            return None
        found.append((m.buffer, n.buffer, inside))
    rest = ("body", "init", "reads", "writes", "annotations")
    return [*found, *((getattr(x, name), getattr(y, name), inside) for name in rest)]


_FIELDS: dict[type, tuple[str, ...]] = {}


def _compared(node: Node) -> tuple[str, ...]:
    """The fields that make two nodes of a type equal."""
    names = _FIELDS.get(type(node))
    if names is None:
        names = _FIELDS[type(node)] = tuple(f.name for f in fields(node) if f.compare)
    return names


def _variables(node: Node) -> Iterator[Var]:
    """Each variable below a node, as often as it stands there, in order."""
    if isinstance(node, Var):
        yield node
    for child in children(node):
        yield from _variables(child)


def _same_attributes(a: Attributes, b: Attributes, renamed: dict[str, str], scope: _Scope) -> bool:
    """Whether two functions have the same attributes, their names aside."""
    if set(a) - {_NAME} != set(b) - {_NAME}:
        return False
    stack: list[Pair] = []
    for key in set(a) - {_NAME}:
        x, y = a[key], b[key]
        if key in _BY_DATA and isinstance(x, Attributes):
            x = Attributes({renamed.get(name, name): value for name, value in x.items()})
        stack.append((x, y, scope))
    while stack:
        parts = _parts(*stack.pop())
        if parts is None:
            return False
        stack.extend(parts)
    return True
