"""The base of every IR node: frozen, slotted, compared by structure, with its hash computed once.

Children cache their own hashes, so hashing a node does not depend on its depth. Spans are the place where a node was
read, and take no part in comparison.

What follows an allocation or a let stands inside it, so that a program is nested as deeply as it is long, and Python's
stack is not that deep: walks recurse on a `trampoline`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from opcode import opname
from operator import attrgetter
from threading import get_ident
from types import GeneratorType
from typing import Any, Self, TypeGuard, TypeVar, overload

from layoutproof.ir.diagnostic import Span

_KEYS: dict[type, Callable[[Any], Any]] = {}


def _key_of(node_type: type) -> Callable[[Any], Any]:
    """A function from a node to what its equality compares."""
    key = _KEYS.get(node_type)
    if key is None:
        names = [f.name for f in fields(node_type) if f.compare]
        key = attrgetter(*names) if names else _no_fields
        _KEYS[node_type] = key
    return key


# Types of fields, as they are written, that never hold a node: a leaf then has nothing to look at.
_PLAIN = frozenset(
    {
        "int",
        "float",
        "str",
        "str | None",
        "tuple[int, ...]",
        "DType",
        "BinaryOp",
        "CompareOp",
        "LogicalOp",
        "ForKind",
        "IterKind",
        "Attributes",
    }
)
_FIELDS: dict[type, tuple[str, ...]] = {}


def field_names(node_type: type) -> tuple[str, ...]:
    """The fields that may hold nodes."""
    names = _FIELDS.get(node_type)
    if names is None:
        names = tuple(f.name for f in fields(node_type) if f.compare and f.type not in _PLAIN)
        _FIELDS[node_type] = names
    return names


def _is_tuple(value: object) -> TypeGuard[tuple[object, ...]]:
    return isinstance(value, tuple)


def _no_fields(_: object) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Any part of a program. `_check` of a subclass raises TypeError or ValueError for a malformed node."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
    _hash: int = field(default=0, init=False, compare=False, repr=False)
    # What `visit.children` found, once it was asked: most nodes are walked over many times.
    _below: tuple[Node, ...] | None = field(default=None, init=False, compare=False, repr=False)
    # What `visit.free_variables` found.
    _free: tuple[Any, ...] | None = field(default=None, init=False, compare=False, repr=False)
    # What `visit.kinds_in` found.
    _kinds: frozenset[type] | None = field(default=None, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._check()
        object.__setattr__(self, "_hash", hash((type(self).__name__, self._key())))

    def _check(self) -> None:
        """Refuse a node that is put together wrongly."""

    def _marks(self) -> tuple[type, ...]:
        """What `visit.kinds_in` tells of the node beside its type."""
        return ()

    def _key(self) -> Any:
        return _key_of(type(self))(self)

    def __hash__(self) -> int:
        return self._hash

    def __deepcopy__(self, memo: object) -> Self:
        return self  # frozen, and nested as deeply as a program is long

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Node) or type(self) is not type(other) or self._hash != other._hash:
            for watch in _WATCHES:
                watch(other)
            return False
        if not field_names(type(self)):
            return bool(self._key() == other._key())
        return _are_equal(self, other)


def _are_equal(first: object, second: object) -> bool:
    """Whether nodes, tuples of them, or other values are equal."""
    # With a stack of its own: programs may be nested deeper than Python likes to recurse.
    stack: list[tuple[object, object]] = [(first, second)]
    while stack:
        a, b = stack.pop()
        if isinstance(a, Node) and isinstance(b, Node):
            if type(a) is not type(b) or a._hash != b._hash:
                return False
            a, b = a._key(), b._key()
        if _is_tuple(a) and _is_tuple(b):
            if len(a) != len(b):
                return False
            stack += [pair for pair in zip(a, b, strict=True) if pair[0] is not pair[1]]
        elif isinstance(a, Node):
            # The only field of a node.
            stack.append((a, b))
        elif a != b:
            return False
    return True


# Told of each comparison that finds two things unequal.
_WATCHES: list[Callable[[object], None]] = []


@contextmanager
def comparisons_refused() -> Iterator[None]:
    """While a caller's function makes an expression of its arguments, `i == 0` in it is a TypeError.

    It would be False, since nodes are compared by structure, and the function would go on with one branch for all `i`.
    What this package compares by itself, and nodes that are looked for among others (`i in axes`), are no conditions.
    """
    thread = get_ident()

    def watch(other: object) -> None:
        caller = sys._getframe(2)
        if get_ident() != thread or str(caller.f_globals.get("__name__")).startswith("layoutproof."):
            return
        written = opname[caller.f_code.co_code[caller.f_lasti]] == "COMPARE_OP"
        if written or not isinstance(other, Node):
            raise TypeError(
                "`==` and `!=` compare expressions, not values, and Python takes one branch for all; use equal"
            )

    _WATCHES.append(watch)
    try:
        yield
    finally:
        _WATCHES.remove(watch)


class FloatToInteger:
    """Marks casts of one float to an integer."""


T = TypeVar("T")
R = TypeVar("R")

Steps = Generator[T, R, R]
"""A recursive function that yields the arguments of its recursive calls, and is sent their results."""


@overload
def trampoline(step: Callable[[T], Steps[T, R]], first: T) -> R: ...
@overload
def trampoline(step: Callable[[T], R | Steps[T, R]], first: T) -> R: ...
def trampoline(step: Callable[[Any], Any], first: Any) -> Any:
    """`step(first)`, where a step is a result, or a generator that yields what it needs the result of. A step's
    exception is raised where it was yielded.
    """
    found = step(first)
    if not isinstance(found, GeneratorType):
        return found
    stack = [found]
    value: Any = None
    problem: BaseException | None = None
    while stack:
        try:
            asked = stack[-1].send(value) if problem is None else stack[-1].throw(problem)
        except StopIteration as end:
            stack.pop()
            value, problem = end.value, None
            continue
        except BaseException as raised:
            stack.pop()
            if not stack:
                raise
            problem = raised
            continue
        value, problem = None, None
        try:
            found = step(asked)
        except BaseException as raised:  # noqa: BLE001  # it is raised again, where the generator asked
            problem = raised
            continue
        if isinstance(found, GeneratorType):
            stack.append(found)
        else:
            value = found
    return value
