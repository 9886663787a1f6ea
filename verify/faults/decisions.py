"""No undefined value decides a branch, a range or an index: neither what `T.undef()` stored, nor padding of which an
assumption or a layout record says that it may hold anything. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Expr, IfThenElseExpr, Var
from layoutproof.ir.intrinsics import Assume, PointerCast, Undef, undef_loads
from layoutproof.ir.layout_record import Cell, LayoutRecord, layout_records
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse, Let, Stmt
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import children, holds_any, walk
from layoutproof.verify.faults.bounds import in_box
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.reads import padding_covers, record_shape
from layoutproof.verify.program.instances import Access


def undefined_decisions(facts: Facts) -> set[str]:
    """The conditions, ranges and indices, as text, that may depend on an undefined value. Cells are told apart only
    from padding: an undefined value that was stored may be in every cell of its memory, from that statement on.
    """
    function = facts.program.function
    if not may_make_undefined(function):
        return set()
    undefined = _Undefined(facts)
    return {
        expr_text(part, Style.PLAIN)
        for moment, node in _in_order(function.body)
        for part in _deciding(node)
        if undefined.may_be(part, moment)
    }


def may_make_undefined(function: PrimFunc) -> bool:
    """Whether some value may be undefined at all."""
    return holds_any(function.body, Undef) or any(map(_has_undefined, layout_records(function).values()))


def _has_undefined(record: LayoutRecord) -> bool:
    return any(step.padding is Cell.PAD_UNDEF for step in record.steps)


def _deciding(node: Node) -> Iterator[Expr]:
    """The parts of a node that decide what is done, or where."""
    match node:
        case IfThenElse() | IfThenElseExpr():
            yield node.condition
        case For():
            yield from (node.start, node.extent)
        case Block():
            yield from (node.where, *(v.binding for v in node.iter_vars))
        case BufferLoad() | BufferStore():
            yield from node.indices
        case _:
            pass


def _in_order(body: Stmt) -> Iterator[tuple[int, Node]]:
    """Every node with a number that is no less than that of anything that may be done before it: what is in a loop has
    one number.
    """
    numbers, stack = count(), list[Node]([body])
    while stack:
        node = stack.pop()
        number = next(numbers)
        if isinstance(node, For):
            yield from ((number, inner) for inner in walk(node))
        else:
            yield number, node
            stack += reversed(list(children(node)))


class _Undefined:
    """Where undefined values may be: in memories, from some moment on, and in what lets bind."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        function = facts.program.function
        self._roots = roots_of(function)
        self._stored: dict[str, int] = {}
        self._lets: set[Var] = set()
        self._off_padding: dict[int, bool] = {}
        nodes = list(_in_order(function.body))
        assumes = [node for _, node in nodes if isinstance(node, Assume)]
        self._padded = {self._root(load) for node in assumes for load in undef_loads(node.condition)}
        self._padded |= {self._roots.get(n, n) for n, r in layout_records(function).items() if _has_undefined(r)}
        while True:
            size = sum(self._stored.values()), len(self._stored), len(self._lets)
            for moment, node in nodes:
                self._follow(node, moment)
            if size == (sum(self._stored.values()), len(self._stored), len(self._lets)):
                break

    def may_be(self, expr: Expr, moment: int) -> bool:
        """Whether an expression may depend on an undefined value."""
        return any(
            isinstance(node, Undef)
            or (isinstance(node, Var) and node in self._lets)
            or (isinstance(node, BufferLoad) and self._is_undefined(node, moment))
            for node in walk(expr)
        )

    def _follow(self, node: Node, moment: int) -> None:
        if isinstance(node, BufferStore) and self.may_be(node.value, moment):
            root = self._root(node)
            self._stored[root] = min(moment, self._stored.get(root, moment))
        elif isinstance(node, Let) and node.var.dtype != HANDLE and self.may_be(node.value, moment):
            self._lets.add(node.var)

    def _is_undefined(self, load: BufferLoad, moment: int) -> bool:
        root = self._root(load)
        since = self._stored.get(root)
        if since is not None and since <= moment:
            return True
        return root in self._padded and not self._is_off_padding(load)

    def _root(self, node: BufferLoad | BufferStore) -> str:
        name = node.buffer.data.name
        return self._roots.get(name, name)

    def _is_off_padding(self, load: BufferLoad) -> bool:
        if id(load) not in self._off_padding:
            accesses = [access for access in self.facts.program.accesses if access.node is load]
            self._off_padding[id(load)] = bool(accesses) and all(map(self._is_apart, accesses))
        return self._off_padding[id(load)]

    def _is_apart(self, access: Access) -> bool:
        """Whether no cell of an access is padding that may hold anything."""
        record = layout_records(self.facts.program.function).get(access.data.name)
        if record is None or not _has_undefined(record):
            return False
        boxed = in_box(self.facts, access, record_shape(record, self.facts.program.symbols))
        if boxed is None:
            return False
        covers = padding_covers(self.facts, boxed.access.domain, boxed.coordinates, record, Cell.PAD_UNDEF)
        return all(
            self.facts.model.uncovered(cover.domain, cover.without, *cover.conditions).is_empty for cover in covers
        )


def roots_of(function: PrimFunc) -> Mapping[str, str]:
    """The memory behind a pointer, by name; parameters that may overlap are one."""
    roots: dict[str, str] = {}
    if not function.noalias:
        roots |= {buffer.data.name: function.buffers[0].data.name for buffer in function.buffers}
    for node in walk(function.body):
        if isinstance(node, Let) and node.var.dtype == HANDLE:
            pointer: Expr = node.value
            while isinstance(pointer, PointerCast):
                pointer = pointer.pointer
            if isinstance(pointer, Var):
                roots[node.var.name] = roots.get(pointer.name, pointer.name)
    return roots
