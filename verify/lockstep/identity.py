"""Whether two functions are one program: the same tree, up to the names of what it binds.

Nothing is interpreted, so that it holds whatever the programs contain: opaque calls, hardware threads, strides, faults.
Part of the trust base. Names of variables, buffers, blocks and of the function are free to differ; everything else has
to be equal, in the same order. Each bound variable is known by the place of its binder; a variable that nothing binds
has to have the same name on both sides.

`is_same_unrolled` lets them differ in two things more. An `unroll` loop with constant bounds is its body, once for each
iteration, with the number of the iteration for its variable. And a let or an allocation may end earlier or later: what
is compared is the order of what happens, and which let and which memory each name stands for where it is used. Then
integers that differ are compared as `e + c` or `c + e`, the constant computed: sums and products of constants that fit
their type at each step, so that `2*3 + 1` is `7`, and `e` itself is `e + 0`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import count

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Binary, Expr, FloatImm, IntImm, Var
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import AXIS_SEPARATORS, LAYOUT, LAYOUT_TRANSFORMATIONS, PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import NO_ATTRIBUTES, Allocate, Attributes, Block, DeclBuffer, For, ForKind, Let, Seq, Stmt
from layoutproof.ir.visit import children, holds_any
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
    those of variables of `unroll` loops that are written out. No number is given twice: names of one number were bound
    together, wherever their scopes end.
    """

    left: dict[str, int]
    right: dict[str, int]
    values: tuple[Values, Values] = ({}, {})
    unrolling: _Iterations | None = None
    numbers: Iterator[int] = field(default_factory=count)

    def binding(self, *pairs: tuple[Var, Var]) -> _Scope:
        """The scope inside binders of these variables, the first outermost."""
        left, right = dict(self.left), dict(self.right)
        for a, b in pairs:
            left[a.name] = right[b.name] = next(self.numbers)
        values = self.values
        if values[0] or values[1]:
            bound = {a.name for a, _ in pairs}, {b.name for _, b in pairs}
            values = _without(values[0], bound[0]), _without(values[1], bound[1])
        return replace(self, left=left, right=right, values=values)

    def is_one(self, a: Var, b: Var) -> bool:
        """Whether two variables are bound at the same place, or are free and have the same name."""
        if a.name in self.values[0] or b.name in self.values[1]:
            return False  # the number of an iteration is compared as a number
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
_Place = tuple[Stmt, dict[str, int], Values, int | None]
"""A statement, what its names stand for, and where it is an `unroll` loop that has begun, its next iteration."""


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
    memories: set[tuple[str, str]] = set()
    pairs: list[Pair] = [(a.params, b.params, scope), (a.buffer_map, b.buffer_map, scope), (a.body, b.body, scope)]
    return _are_same(pairs, memories) and _same_attributes(a.attrs, b.attrs, memories)


def _are_same(pairs: Iterable[Pair], memories: set[tuple[str, str]]) -> bool:
    """Whether two things of each pair are the same; `memories` gets the pairs of names of data variables in them."""
    stack = [iter(pairs)]
    while stack:
        # What comes first is looked at first: programs that differ mostly do so early.
        pair = next(stack[-1], None)
        if pair is None:
            stack.pop()
            continue
        parts = _parts(*pair)
        if parts is None:
            return False
        if isinstance(pair[0], Buffer) and isinstance(pair[1], Buffer):
            memories.add((pair[0].data.name, pair[1].data.name))
        stack.append(iter(parts))
    return True


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


def _parts(x: object, y: object, scope: _Scope) -> Iterable[Pair] | None:
    """What has to be the same of two things for them to be; None where they differ."""
    left = scope.unrolling
    if left is not None and isinstance(x, Stmt) and isinstance(y, Stmt) and (_is_several(x) or _is_several(y)):
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


def _is_several(stmt: Stmt) -> bool:
    return isinstance(stmt, Seq) or ends_anywhere(stmt) or (isinstance(stmt, For) and is_written_out(stmt))


def ends_anywhere(stmt: Stmt) -> bool:
    """Whether a statement is something that happens, and then what its body does, wherever that ends. Of a let or of
    memory nothing knows after its end, but a call that was given its address before.
    """
    return isinstance(stmt, Let) or (isinstance(stmt, Allocate) and not holds_any(stmt.body, OpaqueCall))


def is_written_out(stmt: For) -> bool:
    """Whether a loop is taken to be its body, once for each iteration."""
    if stmt.kind is not ForKind.UNROLLED or stmt.annotations != NO_ATTRIBUTES:
        return False
    if not (isinstance(stmt.start, IntImm) and isinstance(stmt.extent, IntImm)):
        return False
    return stmt.start.value + stmt.extent.value - 1 <= stmt.var.dtype.max_int


def _parts_of_sequences(x: Stmt, y: Stmt, scope: _Scope, left: _Iterations) -> Iterator[Pair]:
    """The statements of two sequences one by one, each in the scope that it has on its side. A let or allocation is a
    statement here, and those of its body come next.
    """
    mine: list[_Place] = [(x, scope.left, scope.values[0], None)]
    theirs: list[_Place] = [(y, scope.right, scope.values[1], None)]
    while True:
        a, b = _next(mine, left), _next(theirs, left)
        if a is None or b is None:
            if a is not b or left.left < 0:
                yield None, y, scope  # which differ
            return
        at = replace(scope, left=a[1], right=b[1], values=(a[2], b[2]))
        opened = ends_anywhere(a[0]), ends_anywhere(b[0])
        if not any(opened):
            yield a[0], b[0], at
            continue
        parts = _parts_of_node(a[0], b[0], at) if all(opened) and type(a[0]) is type(b[0]) else None
        for part in [(None, y, scope)] if parts is None else parts:
            if isinstance(part[0], Stmt) and isinstance(part[1], Stmt):
                mine.append((part[0], part[2].left, part[2].values[0], None))
                theirs.append((part[1], part[2].right, part[2].values[1], None))
            else:
                yield part


def _next(rest: list[_Place], left: _Iterations) -> _Place | None:
    """The next statement that is not several ones, with what its names mean; the last of `rest` comes first. None where
    there is none, and where no iterations are left.
    """
    while rest:
        stmt, names, values, number = place = rest.pop()
        if isinstance(stmt, Seq):
            rest += [(part, names, values, None) for part in reversed(stmt.body)]
        elif not (isinstance(stmt, For) and is_written_out(stmt)):
            return place
        else:
            assert isinstance(stmt.start, IntImm) and isinstance(stmt.extent, IntImm)
            number = stmt.start.value if number is None else number
            if number >= stmt.start.value + stmt.extent.value:
                continue
            left.left -= 1
            if left.left < 0:
                return None
            rest += [(stmt, names, values, number + 1), (stmt.body, names, {**values, stmt.var.name: number}, None)]
    return None


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
    if isinstance(expr, Binary) and expr.op is BinaryOp.ADD:
        value = constant_value(expr.lhs, values)
        if value is not None:
            return expr.rhs, value
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


def _same_attributes(a: Attributes, b: Attributes, memories: set[tuple[str, str]]) -> bool:
    """Whether two functions have the same attributes, their names aside. What an attribute says of data variables by
    their names needs one partner for each of these.
    """
    if set(a) - {_NAME} != set(b) - {_NAME}:
        return False
    named = [{name for key in _BY_DATA if isinstance(said := x.get(key), Attributes) for name in said} for x in (a, b)]
    spoken_of = [(p, q) for p, q in memories if p in named[0] or q in named[1]]
    renamed = dict(spoken_of)
    if not len(spoken_of) == len(renamed) == len(set(renamed.values())):
        return False
    pairs: list[Pair] = []
    for key in set(a) - {_NAME}:
        x, y = a[key], b[key]
        if key in _BY_DATA and isinstance(x, Attributes):
            x = Attributes({renamed.get(name, name): value for name, value in x.items()})
        pairs.append((x, y, _Scope({}, {})))
    return _are_same(pairs, set())
