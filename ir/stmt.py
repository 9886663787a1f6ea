"""Statements, their attributes, and what a block means.

A block's bindings and guard are in the block itself; allocation holds the buffer it allocates. A block is sugar: at
each point of the loops around it, `if where: { if every reduce variable is at the start of its domain: init; body }`,
so `init` does not run where the guard is false.

Source: TVM's RFC `buffer-physical-layout` (impacted nodes); blocks as upstream's tensor programs have them.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Union

from layoutproof.ir.buffer import Buffer, BufferRegion, Range, access_type, check_indices
from layoutproof.ir.expr import TRUE, Expr, Var, equal, logical_and, require
from layoutproof.ir.node import Node

AttrValue = Union[None, bool, int, float, str, Expr, tuple["AttrValue", ...], "Attributes", "MeantValue"]


class MeantValue(ABC):
    """A value with a meaning of its own, frozen and with a hash; a text of the program has plain values for it."""

    __slots__ = ()

    @abstractmethod
    def plain(self) -> Attributes:
        """The value as it is printed."""


class Attributes(Mapping[str, AttrValue]):
    """A frozen mapping with a hash. Lists given become tuples, mappings become Attributes."""

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[str, object] | None = None) -> None:
        self._items: dict[str, AttrValue] = {k: _freeze(v) for k, v in items.items()} if items is not None else {}
        self._hash = hash(frozenset((k, type(v).__name__, v) for k, v in self._items.items()))

    def __getitem__(self, key: str) -> AttrValue:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attributes) and self._hash == other._hash and self._items == other._items

    def __repr__(self) -> str:
        return f"Attributes({self._items!r})"

    def with_value(self, key: str, value: object) -> Attributes:
        """A copy with `key` set."""
        return Attributes({**self._items, key: value})

    def without(self, key: str) -> Attributes:
        """A copy that lacks `key`."""
        return Attributes({k: v for k, v in self._items.items() if k != key})


def _freeze(value: object) -> AttrValue:
    if value is None or isinstance(value, (bool, int, float, str, Expr, Attributes, MeantValue)):
        return value
    if isinstance(value, Mapping):
        return Attributes(value)
    if isinstance(value, (list, tuple)):
        return tuple(_freeze(v) for v in value)
    raise TypeError(f"{value!r} cannot be an attribute: plain values, lists and dictionaries can")


NO_ATTRIBUTES = Attributes()


@dataclass(frozen=True, slots=True, eq=False)
class Stmt(Node):
    """A step of a program."""

    # What `verify.program.touched` found that it touches, and `visit` in it: its buffers, its depths, its blocks. Once
    # asked.
    _touched: tuple[object] | None = field(default=None, init=False, compare=False, repr=False)
    _buffers: tuple[Buffer, ...] | None = field(default=None, init=False, compare=False, repr=False)
    _depths: tuple[int, int] | None = field(default=None, init=False, compare=False, repr=False)
    _blocks: tuple[Block, ...] | None = field(default=None, init=False, compare=False, repr=False)


class ForKind(StrEnum):
    """How the iterations of a loop run."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unroll"
    THREAD_BINDING = "thread_binding"


class IterKind(StrEnum):
    """What a block's iteration variable ranges over."""

    SPATIAL = "S"
    REDUCE = "R"
    OPAQUE = "O"


class ThreadLoop:
    """Marks loops that are bound to a thread axis."""


@dataclass(frozen=True, slots=True, eq=False)
class For(Stmt):
    """`for var in start .. start + extent - 1`. `thread` names the hardware axis of a thread binding."""

    var: Var
    start: Expr
    extent: Expr
    kind: ForKind
    body: Stmt
    thread: str | None = None
    annotations: Attributes = NO_ATTRIBUTES

    def _check(self) -> None:
        name, dtype = self.var.name, self.var.dtype
        same = dtype == self.start.dtype == self.extent.dtype
        if not (same and dtype.is_integer and dtype.lanes == 1):
            raise TypeError(f"loop {name}: {dtype} from {self.start.dtype}, {self.extent.dtype}")
        require(
            (self.kind is ForKind.THREAD_BINDING) == (self.thread is not None),
            f"loop {name}: a thread goes with thread_binding",
        )

    def _marks(self) -> tuple[type, ...]:
        return (ThreadLoop,) if self.kind is ForKind.THREAD_BINDING else ()


@dataclass(frozen=True, slots=True, eq=False)
class IfThenElse(Stmt):
    """A branch. `otherwise` may be missing."""

    condition: Expr
    then: Stmt
    otherwise: Stmt | None = None

    def _check(self) -> None:
        require(
            self.condition.dtype.is_bool and self.condition.dtype.lanes == 1, f"a branch on a {self.condition.dtype}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Let(Stmt):
    """`var` stands for `value`, evaluated once, in `body`."""

    var: Var
    value: Expr
    body: Stmt

    def _check(self) -> None:
        require(
            self.var.dtype == self.value.dtype, f"{self.var.name} is a {self.var.dtype}, its value a {self.value.dtype}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class BufferStore(Stmt):
    """`buffer[indices] = value`; the value has the type that a load of the same access has."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr

    def _check(self) -> None:
        check_indices(self.buffer, self.indices)
        wanted = access_type(self.buffer, self.indices)
        if self.value.dtype != wanted:
            raise TypeError(f"a {self.value.dtype} stored to {self.buffer.name}, which takes {wanted} here")


@dataclass(frozen=True, slots=True, eq=False)
class Seq(Stmt):
    """Statements one after the other; never nested, never of one (use `seq`). The empty one does nothing."""

    body: tuple[Stmt, ...]

    def _check(self) -> None:
        nested = Seq in set(map(type, self.body))  # programs of many statements are made anew by each step
        require(len(self.body) != 1 and not nested, "a sequence of one, or in a sequence; build it with seq()")


@dataclass(frozen=True, slots=True, eq=False)
class Allocate(Stmt):
    """Memory for `buffer` (its shape, its data variable) while `body` runs; its content is undefined."""

    buffer: Buffer
    body: Stmt
    annotations: Attributes = NO_ATTRIBUTES


@dataclass(frozen=True, slots=True, eq=False)
class DeclBuffer(Stmt):
    """`buffer` is another view of a data variable that exists already."""

    buffer: Buffer
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class IterVar(Node):
    """A block's iteration variable: its domain and, where the block runs, the value it is bound to."""

    var: Var
    kind: IterKind
    domain: Range
    binding: Expr


@dataclass(frozen=True, slots=True, eq=False)
class MatchBuffer(Node):
    """`buffer` is a view of a region of another buffer inside one block."""

    buffer: Buffer
    source: BufferRegion


@dataclass(frozen=True, slots=True, eq=False)
class Block(Stmt):
    """A unit of computation over its iteration variables.

    `where` guards the whole instance, `init` included; `init` runs before `body` in the instances whose reduce
    variables are all at the start of their domains (`desugar.body_of`). `reads` and `writes` are None where the text
    does not give them (to be inferred), else what it says.
    """

    name: str
    iter_vars: tuple[IterVar, ...]
    init: Stmt | None = field(default=None, kw_only=True)
    body: Stmt
    where: Expr = TRUE
    reads: tuple[BufferRegion, ...] | None = None
    writes: tuple[BufferRegion, ...] | None = None
    alloc_buffers: tuple[Buffer, ...] = ()
    match_buffers: tuple[MatchBuffer, ...] = ()
    annotations: Attributes = NO_ATTRIBUTES
    # What `desugar.body_of` made, once it was asked.
    _whole: Stmt | None = field(default=None, init=False, compare=False, repr=False)

    def _check(self) -> None:
        require(
            self.where.dtype.is_bool and self.where.dtype.lanes == 1,
            f"block {self.name} is guarded by a {self.where.dtype}",
        )

    @property
    def is_root(self) -> bool:
        """A block without iteration variables that only holds the function's allocations."""
        return self.name == "root" and not self.iter_vars


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate(Stmt):
    """An expression for its effect: an assumption or an opaque call."""

    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class AttrStmt(Stmt):
    """A remark `key` about `target` that holds in `body`: kept and printed."""

    target: Expr
    key: str
    value: Expr
    body: Stmt


def seq(*statements: Stmt) -> Stmt:
    """The statements one after the other: flattened, a single one as itself, none as the empty sequence."""
    if len(statements) != 1 and Seq not in set(map(type, statements)):
        return Seq(statements)
    flat: list[Stmt] = []
    for statement in statements:
        flat.extend(statement.body if isinstance(statement, Seq) else (statement,))
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


NOTHING = Seq(())


def at_first_update(block: Block) -> Expr:
    """That every reduce variable of the block is at the start of its domain; true where there is none."""
    return logical_and(*(equal(v.var, v.domain.start) for v in block.iter_vars if v.kind is IterKind.REDUCE))


def body_of(block: Block) -> Stmt:
    """What an instance of a block runs once its variables are bound and its guard holds: the same object each time."""
    if block.init is None:
        return block.body
    if block._whole is None:
        first = at_first_update(block)
        reduces = any(v.kind is IterKind.REDUCE for v in block.iter_vars)
        init = IfThenElse(first, block.init, span=block.init.span) if reduces else block.init
        object.__setattr__(block, "_whole", seq(init, block.body))
    assert block._whole is not None
    return block._whole


MAX_SEQUENCE = 2500  # as many as Python's stack is made room for, for walks that are not on a trampoline
_USUAL = 100  # statements inside one another that fit on the stack that Python gives anyone
_FRAMES = 16  # calls that a walk makes for one statement inside another, with room to spare
_NONE: tuple[Stmt, ...] = ()


def opens_scope(node: Node) -> bool:
    """Whether what follows a statement in the text stands inside it as its body."""
    return isinstance(node, Allocate | DeclBuffer | Let | AttrStmt)


def statement_depth(root: Stmt, *, nested: bool = False) -> int:
    """How many statements stand inside one another, at most; with `nested` those only that the text indents."""
    deepest = 0
    stack: list[tuple[Stmt, int]] = [(root, 0)]
    while stack:
        stmt, around = stack.pop()
        depth = around if nested and (isinstance(stmt, Seq) or opens_scope(stmt)) else around + 1
        deepest = max(deepest, depth)
        if isinstance(stmt, Seq):
            # What follows an allocation or a let stands in it: it is gone into here, since it may go on for long.
            stack += [(last, depth) for last in stmt.body[-1:]]
            deepest = max([deepest, *(depth + each[nested] for each in set(map(_depths_of, stmt.body[:-1])))])
        else:
            stack += [(inner, depth) for inner in _inside(stmt)]
    return deepest


def _depths_of(part: Stmt) -> tuple[int, int]:
    """How deep a statement is, all in all and as the text indents it; found once for each object."""
    if part._depths is None:
        depths = statement_depth(part), statement_depth(part, nested=True)
        object.__setattr__(part, "_depths", depths)
        return depths
    return part._depths


def _inside(stmt: Stmt) -> tuple[Stmt, ...]:
    match stmt:
        case Seq(body=body):
            return body
        case For(body=body) | Let(body=body) | Allocate(body=body) | DeclBuffer(body=body) | AttrStmt(body=body):
            return (body,)
        case IfThenElse(then=then, otherwise=otherwise):
            return (then,) if otherwise is None else (then, otherwise)
        case Block(body=body, init=init):
            return (body,) if init is None else (init, body)
        case _:
            return _NONE


def make_room(root: Stmt) -> None:
    """Let Python recurse as deep as walks over a program need: the limit is only raised, up to `MAX_SEQUENCE`."""
    make_room_for(min(statement_depth(root), 2 * MAX_SEQUENCE))


def make_room_for(depth: int) -> None:
    """Let Python recurse into a tree of this depth."""
    if depth > _USUAL:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 1000 + _FRAMES * depth))
