"""The state of generating Python source from one program: lines, names, scopes, and operands of expressions.

The fast evaluator is a generated function, one assignment or check a line. A line's number leads back to its statement,
so checks cost nothing until they fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import Span
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr
from layoutproof.ir.interp.analysis import Memories, Place, Selection, UnitChoice, place_of
from layoutproof.ir.interp.memory import cannot_interpret
from layoutproof.ir.node import Steps, trampoline
from layoutproof.ir.scopes import Layered
from layoutproof.ir.stmt import Stmt

_ATOM = re.compile(r"[A-Za-z_]\w*|\d+")
_LONGEST = 160
_DEEPEST = 16  # CPython refuses 20 nested loops, and 100 levels of indentation
_DEEPEST_LINE = 80

Writing = Steps[Stmt, None]


class TooDeep(Exception):
    """The program nests deeper than Python's compiler takes; the plain evaluator runs it."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One lane of a value: Python source without side effects, over names that no longer change.

    `low` and `high` bound an integer or truth value; `taint` is source that says whether the value depends on an
    undefined one (None: it does not).
    """

    code: str
    low: int = 0
    high: int = 0
    taint: str | None = None

    @property
    def constant(self) -> int | None:
        """The value, where it is known."""
        return self.low if self.low == self.high else None


@dataclass(frozen=True, slots=True)
class Site:
    """Where a line of the generated source comes from."""

    span: Span | None
    block: str | None
    names: Mapping[str, tuple[Operand, ...]]


@dataclass(frozen=True, slots=True)
class Facts:
    """What the generated source may rely on: `always` are roots whose cells all hold defined values for good, `guarded`
    roots with forbidden cells, `sizes` the bytes of parameters' memory, `floats` the names of float parameters.
    """

    memories: Memories
    symbols: Mapping[str, int]
    always: frozenset[str]
    guarded: frozenset[str]
    sizes: Mapping[str, int]
    floats: frozenset[str]
    selection: Selection | None = None


@dataclass(frozen=True, slots=True)
class Level:
    """One group of perfectly nested parallel loops: the source of the iteration's name, and the tables by root."""

    iteration: str
    tables: Mapping[str, str]


@dataclass(slots=True)
class Generator:
    """Writes the source. `expressions` and `statements` are the tables that say how each node type is written."""

    facts: Facts
    expressions: Mapping[type, Callable[..., list[Operand]]]
    statements: Mapping[type, Callable[..., Writing | None]]
    lines: list[str] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    objects: dict[str, object] = field(default_factory=dict)  # constants handed to the source by name
    env: Layered[str, tuple[Operand, ...]] = field(default_factory=Layered)
    known: Layered[object, object] = field(default_factory=Layered)  # results that hold in the present scope
    owners: Layered[str, Buffer | None] = field(
        default_factory=Layered
    )  # the buffer that each root in scope was made for, if any
    levels: list[Level] = field(default_factory=list)
    path: list[Stmt] = field(default_factory=list)
    site: Site = field(default_factory=lambda: Site(None, None, {}))
    depth: int = 1
    loops: int = 0
    count: int = 0

    @property
    def place(self) -> Place:
        """The place of the statement being written."""
        return place_of(self.path)

    def emit(self, line: str) -> None:
        """One line at the present depth."""
        self.lines.append(" " * self.depth + line)
        self.sites.append(self.site)

    def name(self, prefix: str) -> str:
        """A fresh Python name."""
        self.count += 1
        return f"{prefix}{self.count}"

    def temp(self, code: str) -> str:
        """A fresh name for the value of `code`."""
        name = self.name("t")
        self.emit(f"{name} = {code}")
        return name

    def atom(self, operand: Operand) -> Operand:
        """The operand as a plain name or number, for sources that mention it more than once."""
        if _ATOM.fullmatch(operand.code):
            return operand
        return Operand(self.temp(operand.code), operand.low, operand.high, operand.taint)

    def short(self, operand: Operand) -> Operand:
        """The operand, named if its source grows long (nested parentheses have a limit)."""
        return self.atom(operand) if len(operand.code) > _LONGEST else operand

    def constant(self, value: object) -> str:
        """A name by which the source knows an object."""
        name = self.name("k")
        self.objects[name] = value
        return name

    def expr(self, expr: Expr, index: bool = False) -> list[Operand]:
        """The lanes of an expression; `index`: integers are index arithmetic, which must fit instead of wrapping."""
        write = self.expressions.get(type(expr))
        if write is None:
            raise cannot_interpret(f"the expression {type(expr).__name__}", expr.span)
        return write(self, expr, index)

    def scalar(self, expr: Expr, index: bool = False) -> Operand:
        """The one lane of a scalar expression."""
        (operand,) = self.expr(expr, index)
        return operand

    def bind(self, name: str, lanes: tuple[Operand, ...]) -> None:
        """Give a variable its lanes, in the present scope."""
        self.env = self.env.plus({name: lanes})

    def stmt(self, stmt: Stmt) -> None:
        """Write a statement."""
        trampoline(self._step, stmt)

    def _step(self, stmt: Stmt) -> Writing:
        write = self.statements.get(type(stmt))
        if write is None:
            raise cannot_interpret(f"the statement {type(stmt).__name__}", stmt.span)
        outer = self.site
        self.site = Site(stmt.span if stmt.span is not None else outer.span, outer.block, self.env)
        self.path.append(stmt)
        choices = self.facts.selection.choices(self.place) if self.facts.selection is not None else None
        if choices is None:
            yield from _inside(write(self, stmt))
        elif any(choice.points for choice in choices):
            self.emit(f"if {' or '.join(self.chosen(choice) for choice in choices)}:")
            with self.nested():
                yield from _inside(write(self, stmt))
        self.path.pop()
        self.site = outer

    def chosen(self, choice: UnitChoice) -> str:
        """Source that says whether a choice has the present values of the loops."""
        return f"{self.key(choice.keys)} in {self.constant(choice.points)}"

    def key(self, names: tuple[str, ...]) -> str:
        """The values of variables, as a tuple."""
        return f"({''.join(f'{self.env[name][0].code}, ' for name in names)})"

    @contextmanager
    def nested(self, loop: bool = False) -> Iterator[None]:
        """One level deeper; what is bound or known inside is forgotten at its end."""
        env, known, owners = self.env, self.known, self.owners
        self.depth += 1
        self.loops += loop
        if self.loops > _DEEPEST or self.depth > _DEEPEST_LINE:
            raise TooDeep
        start = len(self.lines)
        yield
        if len(self.lines) == start:
            self.emit("pass")
        self.depth -= 1
        self.loops -= loop
        self.env, self.known, self.owners = env, known, owners

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is bound or known inside is forgotten at its end; no deeper in the source."""
        env, known, owners = self.env, self.known, self.owners
        yield
        self.env, self.known, self.owners = env, known, owners

    def write_aside(self, write: Callable[[], list[Operand]]) -> tuple[list[Operand], list[str], list[Site]]:
        """What an expression becomes one level deeper, and the lines it needs, taken out of the source again."""
        known, start = self.known, len(self.lines)
        self.depth += 1
        if self.depth > _DEEPEST_LINE:
            raise TooDeep
        result = write()
        self.depth -= 1
        lines, sites = self.lines[start:], self.sites[start:]
        del self.lines[start:], self.sites[start:]
        if lines:
            self.known = known
        return result, lines, sites

    def paste(self, lines: list[str], sites: list[Site]) -> None:
        """Lines that were written aside."""
        self.lines += lines
        self.sites += sites

    def root(self, buffer: Buffer) -> str:
        """The block of memory behind a buffer."""
        return self.facts.memories.of(buffer)


def _inside(asked: Writing | None) -> Writing:
    if asked is not None:
        yield from asked


def join_taints(*operands: Operand) -> str | None:
    """Source that says whether any operand is tainted."""
    taints = dict.fromkeys(o.taint for o in operands if o.taint is not None)
    if not taints:
        return None
    return next(iter(taints)) if len(taints) == 1 else f"({' or '.join(taints)})"


def limits_of(dtype: DType) -> tuple[int, int]:
    """The range of an integer or truth type (0, 1 for truth values, 0, 0 for floats)."""
    return (dtype.min_int, dtype.max_int) if dtype.is_integer or dtype.is_bool else (0, 0)


def literal(value: int) -> str:
    """An integer as source."""
    return str(value) if value >= 0 else f"({value})"
