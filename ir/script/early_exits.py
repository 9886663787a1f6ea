"""`break`, `continue` and `while`, read as loops whose statements are guarded by a flag; and `return` of a value, which
is kept as the opaque call that TVM makes of it.

A `for` with a `break` has a flag, a cell of its own, which the `break` sets: the statements after it run while the flag
is false, and so does each later iteration. That is the same program, and nothing else has to know these statements. A
`while` becomes a `for` if its text shows how often it runs at most.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import BOOL, HANDLE, INT32, Kind
from layoutproof.ir.expr import FALSE, TRUE, Binary, Compare, Expr, IntImm, Not, Var, logical_and
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.script.declarations import Environment
from layoutproof.ir.script.expressions import ExpressionReader
from layoutproof.ir.script.parsing import Text
from layoutproof.ir.stmt import Allocate, BufferStore, Evaluate, For, ForKind, IfThenElse, Stmt, seq
from layoutproof.ir.visit import fresh, walk

_ZERO = (IntImm(0),)


@dataclass(frozen=True, slots=True)
class Exits:
    """The flags of one loop: whether it was left, and whether this iteration was; None for what it does not do."""

    left: Buffer | None
    skipped: Buffer | None

    def flag(self, node: ast.stmt) -> Buffer | None:
        """The flag that a `break` or a `continue` sets."""
        return self.left if isinstance(node, ast.Break) else self.skipped

    def iteration(self, body: Stmt) -> Stmt:
        """One iteration: nothing once the loop was left."""
        body = body if self.left is None else IfThenElse(_unset(self.left), body)
        return body if self.skipped is None else Allocate(self.skipped, seq(_set(self.skipped, FALSE), body))

    def whole(self, loop: Stmt) -> Stmt:
        """The loop, with its flag before it."""
        return loop if self.left is None else Allocate(self.left, seq(_set(self.left, FALSE), loop))

    def go_on(self, node: ast.stmt) -> Expr | None:
        """The condition under which what follows a statement runs; None if it always does."""
        kinds = {type(found) for found in exits_of([node])}
        flags = [f for kind, f in ((ast.Break, self.left), (ast.Continue, self.skipped)) if kind in kinds]
        conditions = [_unset(flag) for flag in flags if flag is not None]
        return logical_and(*conditions) if conditions else None


def _set(flag: Buffer, value: Expr) -> Stmt:
    return BufferStore(flag, _ZERO, value)


def _unset(flag: Buffer) -> Expr:
    return Not(BufferLoad(flag, _ZERO))


def exits_of(nodes: Sequence[ast.stmt]) -> Iterator[ast.Break | ast.Continue]:
    """The `break` and `continue` among statements that belong to the loop around these."""
    for node in nodes:
        if isinstance(node, ast.Break | ast.Continue):
            yield node
        elif isinstance(node, ast.If):
            yield from exits_of([*node.body, *node.orelse])
        elif isinstance(node, ast.With):
            yield from exits_of(node.body)


def without_continue(nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a loop's body without the `continue` that end a branch: what follows the branch stands in the
    other one instead.
    """
    done: list[ast.stmt] = []
    for position, node in enumerate(nodes):
        rest = list(nodes[position + 1 :])
        if isinstance(node, ast.Continue):
            return done
        if isinstance(node, ast.If):
            for ending, other, is_then in ((node.body, node.orelse, True), (node.orelse, node.body, False)):
                if ending and isinstance(ending[-1], ast.Continue):
                    kept, more = without_continue(ending), without_continue([*other, *rest])
                    branches = (kept, more) if is_then else (more, kept)
                    return [*done, _branch(node, *branches)]
        done.append(node)
    return done


def _branch(node: ast.If, then: list[ast.stmt], otherwise: list[ast.stmt]) -> ast.If:
    nothing = ast.copy_location(ast.Pass(), node)
    return ast.copy_location(ast.If(node.test, then or [nothing], otherwise), node)


def exits_for(
    reader: LoopReader, node: ast.For | ast.While, name: str, kinds: Sequence[ForKind], taken: set[str]
) -> Exits:
    """The flags that a loop needs. Raises LayoutproofError where a loop of its kind cannot be left."""
    found = list(exits_of(without_continue(node.body)))
    if not found:
        return Exits(None, None)
    if list(kinds) != [ForKind.SERIAL]:
        where = f"a {kinds[0].value} loop" if len(kinds) == 1 else "a loop over several extents"
        help = "write it as one serial loop, `for i in range(...)`"
        raise reader.text.fail(codes.UNSUPPORTED, f"{_word(found[0])} in {where} is not supported", found[0], help=help)
    taken |= {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}

    def flag(word: str, kind: type[ast.stmt]) -> Buffer | None:
        if not any(isinstance(each, kind) for each in found):
            return None
        its_name = fresh(f"{name}_{word}", taken)
        data = Var(f"{its_name}_data", HANDLE)
        reader.env.allocated.add(data)
        return Buffer(its_name, BOOL, (IntImm(1),), data, scope="local")

    return Exits(flag("left", ast.Break), flag("skipped", ast.Continue))


def _word(node: ast.stmt) -> str:
    return "`break`" if isinstance(node, ast.Break) else "`continue`"


class LoopReader(Protocol):
    """What this needs of the reader of statements."""

    text: Text
    exprs: ExpressionReader
    env: Environment
    exits: list[Exits | None]

    def left_by(self, exits: Exits, node: ast.For | ast.While) -> Stmt:
        """The body of a loop that these flags leave."""
        ...


def read_exit(reader: LoopReader, node: ast.Break | ast.Continue) -> Stmt:
    """A `break` or `continue` as the store to its flag. Raises LayoutproofError outside of a loop."""
    around = reader.exits[-1] if reader.exits else None
    flag = around.flag(node) if around is not None else None
    if flag is None:
        message = f"{_word(node)} stands in a loop, and in no block inside it"
        raise reader.text.fail(codes.MISPLACED, message, node)
    return reader.exprs.make(node, BufferStore, flag, _ZERO, TRUE)


def read_return(reader: LoopReader, node: ast.Return, following: ast.stmt | None) -> Stmt:
    """`return x` as `T.ret(x)`. Raises LayoutproofError without a value."""
    if node.value is None:
        help = "a program's results are the buffers that it writes"
        raise reader.text.fail(codes.UNSUPPORTED, "`return` without a value is not supported", node, help=help)
    call = reader.exprs.make(node, OpaqueCall, "ret", (reader.exprs.expr(node.value),), INT32)
    return reader.exprs.make(node, Evaluate, call)


# A `while` loop that counts


@dataclass(frozen=True, slots=True)
class Counting:
    """What bounds the iterations of a `while`: a cell, its first value, and the limit that it has to be below."""

    node: ast.While
    cell: BufferLoad
    first: int
    limit: int


_HELP = (
    "a `while` is read if it counts: `i[0] = 0`, then `while i[0] < 10:` with one `i[0] = i[0] + 1` directly in its "
    "body, of a buffer that the function allocates"
)
_MOST = 1 << 20


def read_while(reader: LoopReader, node: ast.While, done: Sequence[Stmt]) -> Stmt:
    """A `while` as a `for`; `done` are the statements before it. Raises LayoutproofError if it is not seen to count."""
    condition = reader.exprs.condition(node.test)
    found = counting(reader, node, condition, done)
    names = {*reader.env.names(), *(n.id for n in ast.walk(node) if isinstance(n, ast.Name))}
    name = fresh("step", names)
    exits = exits_for(reader, node, name, [ForKind.SERIAL], {*names, name})
    with reader.env.frame(node):
        body = reader.left_by(exits, node)
    return exits.whole(counted_loop(reader, found, condition, exits.iteration(body), name))


def counting(reader: LoopReader, node: ast.While, condition: Expr, done: Sequence[Stmt]) -> Counting:
    """How a `while` counts; `done` are the statements before it. Raises LayoutproofError if it is not seen to."""
    found = _limited(condition)
    if found is not None and found[0].buffer.data in reader.env.allocated:
        first = _value_before(found[0], done)
        if first is not None and not node.orelse and not any(isinstance(e, ast.Continue) for e in exits_of(node.body)):
            return Counting(node, found[0], first, found[1])
    raise _not_counting(reader.text, node)


def _not_counting(text: Text, node: ast.While) -> Exception:
    message = "how often this `while` loop runs is not known from its text"
    return text.fail(codes.UNSUPPORTED, message, node.test, help=_HELP)


def _limited(condition: Expr) -> tuple[BufferLoad, int] | None:
    if not isinstance(condition, Compare) or condition.op not in (CompareOp.LT, CompareOp.LE):
        return None
    cell, limit = condition.lhs, condition.rhs
    if not isinstance(cell, BufferLoad) or not isinstance(limit, IntImm) or cell.dtype.kind is not Kind.INT:
        return None
    known = all(isinstance(index, IntImm) for index in cell.indices)
    return (cell, limit.value + (condition.op is CompareOp.LE)) if known else None


def _value_before(cell: BufferLoad, done: Sequence[Stmt]) -> int | None:
    """The value that the nearest statement before leaves in a cell, if it is a number."""
    for statement in reversed(done):
        if isinstance(statement, BufferStore) and _is_cell(statement, cell):
            return statement.value.value if isinstance(statement.value, IntImm) else None
        if _may_write(statement, cell.buffer.data):
            return None
    return None


def _is_cell(store: BufferStore, cell: BufferLoad) -> bool:
    return store.buffer == cell.buffer and store.indices == cell.indices


def _may_write(node: Node, data: Var) -> bool:
    return any(
        isinstance(part, OpaqueCall) or (isinstance(part, BufferStore) and part.buffer.data == data)
        for part in walk(node)
    )


def counted_loop(reader: LoopReader, found: Counting, condition: Expr, body: Stmt, name: str) -> For:
    """The `for` that a `while` is: as many iterations as it may have, each under its condition.

    Raises LayoutproofError unless the body adds a positive number to the cell, once, in every iteration that goes on.
    """
    text, node, cell = reader.text, found.node, found.cell
    stores = [part for part in walk(body) if isinstance(part, BufferStore) and part.buffer.data == cell.buffer.data]
    step = _step(stores[0], cell) if len(stores) == 1 and _is_cell(stores[0], cell) else None
    directly = sum(_stores_directly(each, cell.buffer.name) for each in node.body) == 1
    known = reader.env.allocated | reader.env.passed
    opaque = any(
        isinstance(part, OpaqueCall) or (isinstance(part, BufferStore) and part.buffer.data not in known)
        for part in walk(body)
    )
    last = max(found.first, found.limit - 1)
    if step is None or not directly or opaque or last + step > cell.dtype.max_int:
        raise _not_counting(text, node)
    times = max(0, -(-(found.limit - found.first) // step))
    if times > _MOST:
        raise text.fail(codes.EXTENT, f"this `while` loop runs up to {times} times, at most {_MOST} are read", node)
    guarded = IfThenElse(condition, body)
    return reader.exprs.make(node, For, Var(name), IntImm(0), IntImm(times), ForKind.SERIAL, guarded)


def _step(store: BufferStore, cell: BufferLoad) -> int | None:
    value = store.value
    if not isinstance(value, Binary) or value.op is not BinaryOp.ADD:
        return None
    for one, other in ((value.lhs, value.rhs), (value.rhs, value.lhs)):
        if one == cell and isinstance(other, IntImm) and other.value > 0:
            return other.value
    return None


def _stores_directly(node: ast.stmt, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    return any(
        isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == name
        for target in targets
    )
