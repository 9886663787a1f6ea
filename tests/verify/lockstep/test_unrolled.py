"""Programs whose `unroll` loops are written out and whose lets and memory end elsewhere, against what they do: all
stores, reads, calls and allocations of a run, in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from zlib import crc32

import pytest
from tests.shares import one_in
from tests.verify.lockstep.test_identity import func

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import FLOAT32, HANDLE, INT32
from layoutproof.ir.expr import Binary, Compare, Expr, IntImm, Var
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, BufferStore, Evaluate, For, ForKind, IfThenElse, Let, Seq, Stmt, seq
from layoutproof.ir.visit import mapped, rewrite_bottom_up, substitute, walk
from layoutproof.verify.lockstep.identity import is_same_program, is_same_unrolled

NAMES = "xyz"  # few, so that names are bound again inside and after one another


@dataclass
class Run:
    """What a program does: each store, let, call and allocation. Memories are known by when they were made, and what
    nothing was stored to holds numbers that depend on that. `given` are those whose address a call has seen.
    """

    events: list[tuple[object, ...]] = field(default_factory=list)
    cells: dict[tuple[object, ...], int] = field(default_factory=dict)
    given: set[object] = field(default_factory=set)
    live: set[object] = field(default_factory=set)
    made: int = 0

    def do(self, stmt: Stmt, names: Mapping[str, object]) -> None:
        """Run a statement."""
        match stmt:
            case Seq():
                for part in stmt.body:
                    self.do(part, names)
            case For():
                start, extent = self.value(stmt.start, names), self.value(stmt.extent, names)
                for k in range(start, start + extent):
                    self.do(stmt.body, {**names, stmt.var.name: k})
            case Let():
                value = self.value(stmt.value, names)
                self.events.append(("let", value))
                self.do(stmt.body, {**names, stmt.var.name: value})
            case Allocate():
                self.made += 1
                self.events.append(("memory", *(self.value(e, names) for e in stmt.buffer.shape), stmt.buffer.dtype))
                self.live.add(self.made)
                self.do(stmt.body, {**names, stmt.buffer.data.name: (key := self.made)})
                self.live.remove(key)
            case IfThenElse():
                if self.value(stmt.condition, names):
                    self.do(stmt.then, names)
                elif stmt.otherwise is not None:
                    self.do(stmt.otherwise, names)
            case BufferStore():
                cell = self.cell(stmt.buffer, stmt.indices, names)
                self.cells[cell] = self.value(stmt.value, names)
                self.events.append(("store", cell, self.cells[cell]))
            case Evaluate(value=OpaqueCall() as call):
                data = [names.get(v.name, v.name) for v in call.arguments if isinstance(v, Var) and v.dtype == HANDLE]
                self.given.update(data)
                self.events.append((call.function, *data, tuple(sorted(map(str, self.given & self.live)))))
            case _:
                raise AssertionError(stmt)

    def cell(self, buffer: Buffer, indices: tuple[Expr, ...], names: Mapping[str, object]) -> tuple[object, ...]:
        """A cell of memory."""
        return (names.get(buffer.data.name, buffer.data.name), *(self.value(e, names) for e in indices))

    def value(self, expr: Expr, names: Mapping[str, object]) -> int:
        """A number."""
        match expr:
            case IntImm():
                return expr.value
            case Var():
                found = names.get(expr.name)
                return found if isinstance(found, int) else crc32(expr.name.encode())
            case BufferLoad():
                cell = self.cell(expr.buffer, expr.indices, names)
                self.events.append(("read", cell))
                return self.cells.get(cell, crc32(repr(cell).encode()))
            case Binary():
                a, b = self.value(expr.lhs, names), self.value(expr.rhs, names)
                return {BinaryOp.ADD: a + b, BinaryOp.SUB: a - b, BinaryOp.MUL: a * b}[expr.op]
            case Compare():
                return self.value(expr.lhs, names) < self.value(expr.rhs, names)
            case _:
                raise AssertionError(expr)


def does(function: PrimFunc) -> list[tuple[object, ...]]:
    """All that a program does."""
    run = Run()
    run.do(function.body, {})
    return run.events


def memory(name: str, extent: Expr) -> Buffer:
    """A buffer of integers."""
    return Buffer(name, INT32, (extent,), Var(name, HANDLE))


OUT, IN = memory("B", IntImm(64)), memory("A", IntImm(64))


@dataclass
class Maker:
    """Random programs over the memories `A` and `B`, and changes of them; numbers may have what is bound `around`."""

    random: Random
    around: str = ""

    def variable(self) -> Var:
        """A variable, which may stand for nothing where it is used."""
        return Var(self.random.choice(NAMES))

    def buffer(self) -> Buffer:
        """A parameter, or memory that may not be there."""
        return self.random.choice((IN, OUT, memory("C", IntImm(4)), memory("D", IntImm(4))))

    def number(self, depth: int = 2) -> Expr:
        """An integer."""
        kind = self.random.randrange(8 if depth else 4)
        if kind < 2:
            return IntImm(self.random.randrange(4))
        if kind < 4:
            return Var(self.random.choice(NAMES + self.around))
        if kind == 4:
            return BufferLoad(self.buffer(), (self.number(depth - 1),))
        op = self.random.choice((BinaryOp.ADD, BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL))
        return Binary(op, self.number(depth - 1), self.number(depth - 1))

    def statement(self, depth: int = 4) -> Stmt:
        """A statement."""
        kind = self.random.choice(("store", "store", "call") if depth == 0 else (*"sssllllaauuurci",))
        inner = depth - 1
        match kind[0]:
            case "u" | "r":
                start, extent = IntImm(self.random.randrange(2)), IntImm(self.random.randrange(4))
                how = ForKind.UNROLLED if kind == "u" else ForKind.SERIAL
                return For(self.variable(), start, extent, how, self.several(inner))
            case "l":
                return Let(self.variable(), self.number(), self.several(inner))
            case "a":
                return Allocate(memory(self.random.choice("CD"), IntImm(4)), self.several(inner))
            case "i":
                return IfThenElse(Compare(CompareOp.LT, self.number(1), self.number(1)), self.several(inner))
            case "c" if self.random.random() < 0.3:
                return Evaluate(OpaqueCall("f", (self.buffer().data,), FLOAT32))
        return BufferStore(self.buffer(), (self.number(),), self.number())

    def several(self, depth: int) -> Stmt:
        """A few statements."""
        return seq(*(self.statement(max(depth, 0)) for _ in range(self.random.randrange(1, 5))))

    def program(self) -> PrimFunc:
        """A program."""
        a, b = Var("a", HANDLE), Var("b", HANDLE)
        return PrimFunc("f", (a, b), ((a, IN), (b, OUT)), self.several(4))

    def changed(self, function: PrimFunc, name: str) -> PrimFunc:
        """The program with one change of a kind, at a random place; itself where there is none for it."""
        found = [(node, made) for node in walk(function.body) if (made := CHANGES[name](node, self)) is not None]
        if not found:
            return function
        target, instead = self.random.choice(found)

        def visit(node: Node) -> Node | Steps[Node, Node]:
            return instead if node is target else mapped(node) if isinstance(node, Stmt | Expr) else node

        root: Node = function.body
        body = trampoline(visit, root)
        assert isinstance(body, Stmt)
        return replace(function, body=body)


def unrolled(node: Node, _: Maker) -> Node | None:
    """Copies of the body of a loop; wrong for a loop that is none to be written out."""
    if not (isinstance(node, For) and isinstance(node.start, IntImm) and isinstance(node.extent, IntImm)):
        return None
    try:
        first = node.start.value
        return seq(*(substitute(node.body, {node.var: IntImm(k)}) for k in range(first, first + node.extent.value)))
    except ValueError:
        return None  # the name is bound again inside


def longer(node: Node, make: Maker) -> Node | None:
    """A let or memory that ends later; wrong where that hides another one of the name."""
    if not isinstance(node, Seq):
        return None
    k = make.random.randrange(max(len(node.body) - 1, 1))
    opener = node.body[k] if node.body else node
    if not isinstance(opener, Let | Allocate):
        return None
    end = make.random.randrange(k + 1, len(node.body)) + 1
    inside = seq(opener.body, *node.body[k + 1 : end])
    return seq(*node.body[:k], replace(opener, body=inside), *node.body[end:])


def shorter(node: Node, make: Maker) -> Node | None:
    """A let or memory that ends earlier; wrong where the rest uses it, or gave its address away."""
    if not (isinstance(node, Let | Allocate) and isinstance(node.body, Seq) and node.body.body):
        return None
    k = make.random.randrange(1, len(node.body.body) + 1)
    return seq(replace(node, body=seq(*node.body.body[:k])), *node.body.body[k:])


def renamed(node: Node, make: Maker) -> Node | None:
    """Another name for what a statement binds; wrong where that stands for something else inside."""
    if isinstance(node, Allocate):
        other = memory(make.random.choice("CD"), IntImm(4))
        names: dict[Node, Node] = {node.buffer: other, node.buffer.data: other.data}
    elif isinstance(node, For | Let):
        names = {node.var: make.variable()}
    else:
        return None
    value = node.value if isinstance(node, Let) else None
    made = rewrite_bottom_up(node, lambda each: names.get(each, each))
    return replace(made, value=value) if isinstance(made, Let) and value is not None else made


def another_order(node: Node, make: Maker) -> Node | None:
    """A statement dropped, doubled, or before another one."""
    if not (isinstance(node, Seq) and node.body):
        return None
    parts, k = list(node.body), make.random.randrange(len(node.body))
    part = parts.pop(k)
    for _ in range(make.random.choice((0, 1, 1, 2))):
        parts.insert(make.random.randrange(len(parts) + 1), part)
    return seq(*parts)


def another_number(node: Node, make: Maker) -> Node | None:
    """Another constant, variable or size."""
    if isinstance(node, Allocate):
        other = memory(node.buffer.name, IntImm(make.random.randrange(3, 5)))
        return rewrite_bottom_up(node, lambda each: other if each == node.buffer else each)
    if isinstance(node, IntImm):
        return IntImm(node.value + make.random.choice((-1, 1)))
    return Binary(BinaryOp.ADD, node, IntImm(make.random.randrange(2))) if isinstance(node, BufferLoad) else None


def commuted(node: Node, _: Maker) -> Node | None:
    """The operands the other way round; wrong for a difference."""
    return Binary(node.op, node.rhs, node.lhs) if isinstance(node, Binary) else None


def another_kind(node: Node, _: Maker) -> Node | None:
    """A loop that is to be written out, or is not any longer."""
    kinds = {ForKind.SERIAL: ForKind.UNROLLED, ForKind.UNROLLED: ForKind.SERIAL}
    return replace(node, kind=kinds[node.kind]) if isinstance(node, For) else None


CHANGES: Mapping[str, Callable[[Node, Maker], Node | None]] = {
    each.__name__: each
    for each in (unrolled, longer, shorter, renamed, another_order, another_number, commuted, another_kind)
}


@one_in(28)
@pytest.mark.parametrize("part", range(16))
def test_what_is_one_does_the_same(part: int) -> None:
    """Programs that are taken to be one do the same, whatever was changed; each kind of change is accepted somewhere
    where it is none, and refused where it is one.
    """
    accepted: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for seed in range(50):
        make = Maker(Random(part * 100 + seed))
        given = make.program()
        for _ in range(12):
            name = make.random.choice(tuple(CHANGES))
            other = make.changed(given, name)
            for _ in range(make.random.randrange(3)):
                other = make.changed(other, make.random.choice(("unrolled", "longer", "shorter", "renamed")))
            if other == given:
                continue
            same = is_same_unrolled(given, other)
            assert same == is_same_unrolled(other, given)
            assert same or not is_same_program(given, other)
            if same:
                assert does(given) == does(other), f"{given}\n{other}"
            (accepted if same else refused)[name] += 1
    assert accepted.keys() >= {"unrolled", "longer", "shorter", "renamed", "commuted"}, accepted
    assert refused.keys() == CHANGES.keys(), refused


OWN = "for t in T.unroll(2):\n    C = T.alloc_buffer((2,), 'float32')\n    C[0] = A[t, 0]\n    B[t, 0] = C[0]"
COPIES = (
    "C = T.alloc_buffer(({},), 'float32')\nC[0] = A[0, 0]\nB[0, 0] = C[0]\n"
    "D = T.alloc_buffer(({},), 'float32')\n{}[0] = A[1, 0]\nB[1, 0] = {}[0]"
)
HELD = "for t in T.unroll(2):\n    x: T.float32 = A[t, 0]\n    B[t, 0] = x\n    B[t, 1] = x"
LETS = "x: T.float32 = A[0, 0]\nB[0, 0] = x\nB[0, 1] = {}\ny: T.float32 = A[1, 0]\nB[1, 0] = y\nB[1, 1] = {}"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (OWN, COPIES.format(2, 2, "D", "D"), True),
        (OWN, COPIES.format(2, 3, "D", "D"), False),
        (OWN, COPIES.format(3, 2, "D", "D"), False),
        (OWN, COPIES.format(2, 2, "C", "C"), False),
        (OWN, COPIES.format(2, 2, "D", "C"), False),
        (HELD, LETS.format("x", "y"), True),
        (HELD, LETS.format("x", "x"), False),
        (HELD, LETS.format("A[0, 0]", "y"), False),
        (OWN, OWN.replace("T.unroll(2)", "range(2)"), False),
        ("for t in T.unroll(2):\n    B[t, 0] = A[t + n, 0]", "B[0, 0] = A[n, 0]\nB[1, 0] = A[1 + n, 0]", True),
        ("for t in T.unroll(2):\n    B[t, 0] = A[t + n, 0]", "B[0, 0] = A[n, 0]\nB[1, 0] = A[1 - n, 0]", False),
    ],
)
def test_each_copy_has_its_own(one: str, other: str, same: bool) -> None:
    """Lets and memory of copies end where the copy does, or later; none stands for another one."""
    a, b = func(one), func(other)
    assert is_same_unrolled(a, b) is is_same_unrolled(b, a) is same
    assert (does(a) == does(b)) is (same or "range" in other)


@pytest.mark.parametrize("call", [True, False])
def test_memory_whose_address_is_known_does_not_end_earlier(call: bool) -> None:
    """A call may keep an address that it was given, and use it later."""
    data, after = memory("C", IntImm(4)), BufferStore(OUT, (IntImm(0),), IntImm(1))
    inside: Stmt = (
        Evaluate(OpaqueCall("f", (data.data,), FLOAT32)) if call else BufferStore(data, (IntImm(0),), IntImm(1))
    )
    longer, shorter = (
        replace(Maker(Random(0)).program(), body=body)
        for body in (Allocate(data, seq(inside, after, after)), seq(Allocate(data, seq(inside, after)), after))
    )
    assert is_same_unrolled(longer, longer)
    assert is_same_unrolled(longer, shorter) is is_same_unrolled(shorter, longer) is not call
