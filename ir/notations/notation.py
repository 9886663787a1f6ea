"""What the notations of layouts have in common: a text that was read, and the scanner that the parsers share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import LayoutproofError, Source, Span, error
from layoutproof.ir.dtype import INT32, INT64
from layoutproof.ir.expr import Expr, ExprLike, IntImm, Var, const
from layoutproof.ir.index_map import IndexMap

MAX_NUMBER = INT64.max_int


class Notation(StrEnum):
    """How a layout is written."""

    LAMBDA = "lambda"
    STRING = "string"
    CUTE = "cute"
    TRITON = "triton"
    MLIR = "mlir"
    ONEDNN = "onednn"
    EINOPS = "einops"
    ISL = "isl"
    STRIDES = "strides"
    XLA = "xla"
    MMA = "mma"


@dataclass(frozen=True, slots=True)
class Context:
    """What is given beside the text: a shape, the lengths of einops' axes, and names that a lambda may use besides
    those of the shape.
    """

    shape: tuple[Expr, ...] | None = None
    axes: Mapping[str, int] = field(default_factory=dict)
    symbols: tuple[Var, ...] = ()

    def needed(self, source: Source, why: str) -> tuple[Expr, ...]:
        """The shape. Raises LayoutproofError, saying why it is needed, where none was given."""
        if self.shape is None:
            raise error(codes.NOTATION_INCOMPLETE, f"{why}: give the logical shape", whole(source), help=_SHAPE_HELP)
        return self.shape


_SHAPE_HELP = "on the command line --shape 64,64; in Python shape=(64, 64)"


@dataclass(frozen=True, slots=True)
class WrittenLayout:
    """A layout as read: its map, and the logical shape that the text or the context gave; None where neither did.

    `where` restricts the indices, for a relation that is defined on a part of the box only.
    """

    notation: Notation
    text: str
    index_map: IndexMap
    shape: tuple[Expr, ...] | None
    where: Expr | None = None

    def extents(self) -> tuple[Expr, ...]:
        """The shape. Raises LayoutproofError where there is none."""
        return Context(self.shape).needed(Source("<layout>", self.text), "the layout does not say its shape")


def whole(source: Source) -> Span:
    """The span of a whole text, its first line."""
    return Span(source, 1, 0, 1, max(1, len(source.line(1))))


def index_variables(names: Sequence[str], extents: Sequence[Expr | int]) -> tuple[Var, ...]:
    """Inputs of a map, of 64 bits where an extent does not fit 32."""
    largest = max((e.value if isinstance(e, IntImm) else e if isinstance(e, int) else 0 for e in extents), default=0)
    dtype = INT64 if largest > INT32.max_int else INT32
    return tuple(Var(name, dtype) for name in names)


def scaled(value: Expr, factor: ExprLike) -> Expr:
    """`value * factor`, without a factor of 1."""
    return value if factor == 1 or (isinstance(factor, IntImm) and factor.value == 1) else value * factor


def summed(terms: Sequence[Expr], constant: ExprLike = 0) -> Expr:
    """The sum of terms and a constant, without a 0 that changes nothing."""
    kept = [t for t in terms if not (isinstance(t, IntImm) and t.value == 0)]
    if isinstance(constant, Expr) or constant != 0 or not kept:
        kept.append(constant if isinstance(constant, Expr) else const(constant))
    result = kept[0]
    for term in kept[1:]:
        result = result + term
    return result


def check_agrees(own: Sequence[Expr | int], context: Context, source: Source) -> None:
    """Raise LayoutproofError where the context gives another shape than the text."""
    if context.shape is None:
        return
    pairs = zip(own, context.shape, strict=False)
    if len(own) != len(context.shape) or any(_differ(a, b) for a, b in pairs):
        message = "the text says its shape, and another one is given beside it"
        raise error(codes.NOTATION_INCOMPLETE, message, whole(source))


def _differ(a: Expr | int, b: Expr | int) -> bool:
    """Whether both are numbers, and different ones."""
    x = a.value if isinstance(a, IntImm) else a
    y = b.value if isinstance(b, IntImm) else b
    return isinstance(x, int) and (not isinstance(y, int) or x != y)


class Scanner:
    """A cursor over a text, or over a part of it, with errors at their places. Blanks between tokens do not count."""

    def __init__(self, text: str, what: str, name: str = "<layout>", start: int = 0, end: int | None = None) -> None:
        self.source = Source(name, text)
        self.text = text[:end]
        self.what = what
        self.position = start
        self.skip()

    def skip(self) -> None:
        """Take blanks."""
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1

    def span(self, start: int, end: int) -> Span:
        """The part of the text between two offsets."""
        line = self.text.count("\n", 0, start) + 1
        column = start - (self.text.rfind("\n", 0, start) + 1)
        last = self.text.count("\n", 0, end) + 1
        return Span(self.source, line, column, last, end - (self.text.rfind("\n", 0, end) + 1))

    def fail(self, message: str, start: int | None = None, end: int | None = None) -> LayoutproofError:
        """An error at a part of the text, by default at what comes next."""
        first = self.position if start is None else start
        return error(codes.NOTATION, f"{self.what}: {message}", self.span(first, first + 1 if end is None else end))

    @property
    def next(self) -> str:
        """The next character, or what stands for the end."""
        return repr(self.text[self.position]) if self.position < len(self.text) else "the end of the text"

    def sees(self, text: str) -> bool:
        """Whether `text` comes next."""
        return self.text.startswith(text, self.position)

    def optional(self, text: str) -> bool:
        """Take `text` if it comes next."""
        if not self.sees(text):
            return False
        self.position += len(text)
        self.skip()
        return True

    def expect(self, text: str, where: str = "") -> None:
        """Take `text`. Raises LayoutproofError where something else comes."""
        if not self.optional(text):
            raise self.fail(f"{text!r} is expected{where and ' ' + where}, not {self.next}")

    def matched(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Take what a pattern matches here."""
        match = pattern.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
            self.skip()
        return match

    def integer(self, what: str = "an integer") -> int:
        """Take an integer, which may have a sign. Raises LayoutproofError where none comes, or one past 64 bits."""
        start = self.position
        match = self.matched(_INTEGER)
        if match is None:
            raise self.fail(f"{what} is expected, not {self.next}")
        if len(match[0]) > 20 or abs(int(match[0])) > MAX_NUMBER:
            raise self.fail(f"{match[0][:24]} does not fit 64 bits", start, match.end())
        return int(match[0])

    def name(self, what: str) -> str:
        """Take an identifier. Raises LayoutproofError where none comes."""
        match = self.matched(_NAME)
        if match is None:
            raise self.fail(f"{what} is expected, not {self.next}")
        return match[0]

    def listed(self, opening: str, closing: str, what: str) -> list[int]:
        """Take integers in brackets: `[1, 2]`."""
        self.expect(opening)
        found: list[int] = []
        while not self.optional(closing):
            if found:
                self.expect(",", f"or {closing!r}")
                if self.optional(closing):
                    break
            found.append(self.integer(what))
        return found

    def end(self) -> None:
        """Nothing more may come. Raises LayoutproofError."""
        if self.position < len(self.text):
            raise self.fail(f"the text should end here, {self.next} follows", self.position, len(self.text))


_INTEGER = re.compile(r"-?[0-9]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
