"""einops' rearrangements, `b (h p) (w q) c -> b h w (p q c)`: axes split and joined in row-major order. The map goes
from the index of the array on the left to that of the array on the right.

Lengths that the shape does not determine are given beside the text (`p=2`). Patterns that reduce or repeat are no maps
of indices and are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.expr import Expr, IntImm, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.notation import (
    Context,
    Notation,
    Scanner,
    WrittenLayout,
    index_variables,
    scaled,
    whole,
)

Group = tuple[str, ...]
_ELLIPSIS = "..."
_JOINED = "(...)"  # an ellipsis in parentheses: one axis of all that it stands for
_AXIS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|1(?![0-9A-Za-z_])")
_ANONYMOUS = re.compile(r"[0-9]+")
_DOTS = re.compile(r"\.\.\.|…")


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """A pattern as read: groups of axis names on both sides; a group of none has length 1."""

    left: tuple[Group, ...]
    right: tuple[Group, ...]


def parse_rearrangement(text: str, name: str = "<layout>") -> Rearrangement:
    """Read a pattern. Raises LayoutproofError at what is none, and at axes that stand on one side only."""
    scanner = Scanner(text, "einops pattern", name)
    left, places = _side(scanner, "->")
    scanner.expect("->", "between the two sides")
    right, others = _side(scanner, None)
    for axis in places:
        if axis not in others:
            start = places[axis]
            message = f"the axis {axis} is not on the right: a pattern that reduces is no map of indices"
            raise scanner.fail(message, start, start + len(axis))
    for axis in others:
        if axis not in places:
            start = others[axis]
            message = f"the axis {axis} is not on the left: a pattern that repeats is no map of indices"
            raise scanner.fail(message, start, start + len(axis))
    if any(_JOINED in group for group in left):
        raise scanner.fail("an ellipsis in parentheses on the left is not supported", 0, len(text))
    return Rearrangement(tuple(left), tuple(right))


def _side(scanner: Scanner, stop: str | None) -> tuple[list[Group], dict[str, int]]:
    groups: list[Group] = []
    places: dict[str, int] = {}
    while scanner.position < len(scanner.text) and not (stop is not None and scanner.sees(stop)):
        if scanner.optional("("):
            group: list[str] = []
            while not scanner.optional(")"):
                group += _axis(scanner, places, "an axis or ')'")
            groups.append(tuple(_JOINED if axis == _ELLIPSIS else axis for axis in group))
        else:
            groups.append(tuple(_axis(scanner, places, "an axis")))
    return groups, places


def _axis(scanner: Scanner, places: dict[str, int], what: str) -> list[str]:
    """One axis; none for `1`."""
    start = scanner.position
    match = scanner.matched(_DOTS)
    if match is None:
        match = scanner.matched(_AXIS)
        if match is None:
            number = scanner.matched(_ANONYMOUS)
            if number is not None:
                raise scanner.fail(f"the axis {number[0]} has no name: only 1 may stand alone", start, number.end())
            raise scanner.fail(f"{what} is expected, not {scanner.next}")
    axis = _ELLIPSIS if match.re is _DOTS else match[0]
    if axis == "1":
        return []
    if axis in places:
        raise scanner.fail(f"the axis {axis} stands twice on one side", start, match.end())
    places[axis] = start
    return [axis]


def read_einops(text: str, context: Context, name: str = "<layout>") -> WrittenLayout:
    """The map of a pattern on the context's shape. Raises LayoutproofError where a length is not determined."""
    pattern = parse_rearrangement(text, name)
    scanner = Scanner(text, "einops pattern", name)
    unknown = next((axis for axis in context.axes if not any(axis in group for group in pattern.left)), None)
    if unknown is not None:
        raise error(codes.NOTATION_INCOMPLETE, f"the pattern has no axis {unknown}", whole(scanner.source))
    shape = context.shape
    if shape is None:
        shape = _own_shape(scanner, pattern, context.axes)
    pattern = _expanded(scanner, pattern, len(shape))
    lengths = _Lengths(scanner, context.axes).of(pattern.left, shape)
    return WrittenLayout(Notation.EINOPS, text, _rearranged(pattern, shape, lengths), shape)


def _own_shape(scanner: Scanner, pattern: Rearrangement, axes: Mapping[str, int]) -> tuple[Expr, ...]:
    """The shape that the lengths alone determine."""
    missing = [axis for group in pattern.left for axis in group if axis not in axes]
    if missing:
        why = f"the length of {missing[0]} is not known"
        raise error(codes.NOTATION_INCOMPLETE, f"{why}: give the logical shape", whole(scanner.source), help=_HELP)
    return tuple(const(prod(axes[axis] for axis in group)) for group in pattern.left)


_HELP = (
    "on the command line --shape 8,64,64,3 and --axes p=2,q=2; in Python shape=(8, 64, 64, 3), axes={'p': 2, 'q': 2}"
)


def _expanded(scanner: Scanner, pattern: Rearrangement, rank: int) -> Rearrangement:
    """The pattern with one axis for each that the ellipsis stands for."""
    missing = rank - len(pattern.left)
    if (_ELLIPSIS,) not in pattern.left:
        if missing:
            message = f"the pattern has {len(pattern.left)} axes on the left, the shape {rank}"
            raise error(codes.NOTATION_INCOMPLETE, message, whole(scanner.source))
        return pattern
    if missing < -1:
        message = f"the pattern has {len(pattern.left) - 1} axes beside the ellipsis, the shape {rank}"
        raise error(codes.NOTATION_INCOMPLETE, message, whole(scanner.source))
    names = tuple(f"_{k}" for k in range(missing + 1))
    return Rearrangement(_spread(pattern.left, names), _spread(pattern.right, names))


def _spread(groups: Sequence[Group], names: tuple[str, ...]) -> tuple[Group, ...]:
    found: list[Group] = []
    for group in groups:
        if group == (_ELLIPSIS,):
            found += [(name,) for name in names]
        else:
            found.append(tuple(n for axis in group for n in (names if axis == _JOINED else (axis,))))
    return tuple(found)


class _Lengths:
    """The lengths of axes, given or what is left of an extent."""

    def __init__(self, scanner: Scanner, given: Mapping[str, int]) -> None:
        self.scanner = scanner
        self.given = given

    def of(self, groups: Sequence[Group], shape: Sequence[Expr]) -> dict[str, Expr]:
        """The length of every axis on the left. Raises LayoutproofError."""
        found: dict[str, Expr] = {}
        for group, extent in zip(groups, shape, strict=True):
            open_axes = [axis for axis in group if axis not in self.given]
            if len(open_axes) > 1:
                raise self._fail(f"the lengths of {' and '.join(open_axes)} are not known: give all but one")
            known = prod(self.given[axis] for axis in group if axis in self.given)
            found.update((axis, const(self.given[axis])) for axis in group if axis in self.given)
            if open_axes:
                found[open_axes[0]] = self._rest(group, extent, known)
            elif not (isinstance(extent, IntImm) and extent.value == known):
                shown = f"({' '.join(group)})"
                raise self._fail(f"the axes {shown} multiply to {known}, the extent is {_shown(extent)}")
        return found

    def _rest(self, group: Group, extent: Expr, known: int) -> Expr:
        if known == 1:
            return extent
        if not isinstance(extent, IntImm):
            raise self._fail(f"({' '.join(group)}) splits an extent that is no number: {known} need not divide it")
        if extent.value % known:
            raise self._fail(f"({' '.join(group)}): {known} does not divide the extent {extent.value}")
        return const(extent.value // known)

    def _fail(self, message: str) -> LayoutproofError:
        return error(codes.NOTATION_INCOMPLETE, message, whole(self.scanner.source), help=_HELP)


def _shown(extent: Expr) -> str:
    return str(extent.value) if isinstance(extent, IntImm) else "a symbol"


def _rearranged(pattern: Rearrangement, shape: Sequence[Expr], lengths: Mapping[str, Expr]) -> IndexMap:
    inputs = index_variables(_names(pattern.left), shape)
    values: dict[str, Expr] = {}
    for index, group in zip(inputs, pattern.left, strict=True):
        values.update(_digits(index, group, lengths))
    return IndexMap(inputs, tuple(_joined(group, values, lengths) for group in pattern.right))


def _names(groups: Sequence[Group]) -> list[str]:
    """A name for each index: its axes, joined; unlike all others."""
    found: list[str] = []
    for position, group in enumerate(groups):
        name = "_".join(group) if group else f"one{position}"
        name = f"x{name}" if name.startswith("_") or re.fullmatch(r"p\d+", name) else name
        while name in found:
            name += "_"
        found.append(name)
    return found


def _digits(index: Var, group: Group, lengths: Mapping[str, Expr]) -> dict[str, Expr]:
    found: dict[str, Expr] = {}
    step = 1
    for position in reversed(range(len(group))):
        digit: Expr = index if step == 1 else index // step
        length = lengths[group[position]]
        if position > 0:
            digit = digit % length
            # Where several axes share an extent it is a number, and so are they all.
            assert isinstance(length, IntImm)
            step *= length.value
        found[group[position]] = digit
    return found


def _joined(group: Group, values: Mapping[str, Expr], lengths: Mapping[str, Expr]) -> Expr:
    result: Expr = const(0)
    for position, axis in enumerate(group):
        result = values[axis] if position == 0 else scaled(result, lengths[axis]) + values[axis]
    return result
