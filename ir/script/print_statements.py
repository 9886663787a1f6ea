"""IR statements to lines, by one table of statement types, on a page that knows indentation and the names that are in
use.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from layoutproof.ir.buffer import Buffer, Range
from layoutproof.ir.dtype import FLOAT32, INT32
from layoutproof.ir.expr import TRUE, Expr, IntImm, Var
from layoutproof.ir.intrinsics import Assume, OpaqueCall
from layoutproof.ir.node import Steps, trampoline
from layoutproof.ir.script.operands import stop_of
from layoutproof.ir.stmt import (
    Allocate,
    Attributes,
    AttrStmt,
    AttrValue,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    IterKind,
    IterVar,
    Let,
    MeantValue,
    Seq,
    Stmt,
)
from layoutproof.ir.text import CURRENT, Dialect, expr_text, string_text
from layoutproof.ir.visit import free_variables

_Printing = Steps[tuple[Stmt, bool], None]


class Page:
    """Lines of one function. `handles` are the texts of data variables, `loops` the ranges of the open loops."""

    def __init__(self, dialect: Dialect, depth: int = 0) -> None:
        self.dialect = dialect
        self.lines: list[str] = []
        self.handles: dict[str, str] = {}
        self.loops: dict[str, Range] = {}
        self._depth = depth

    def line(self, text: str) -> None:
        """One line at the present indentation."""
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def indented(self) -> Generator[None, None, None]:
        """Lines inside are one level deeper; `pass` where there are none."""
        self._depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self._depth -= 1

    def expr(self, expr: Expr) -> str:
        """An expression's text."""
        return expr_text(expr, dialect=self.dialect, handles=self.handles)

    def exprs(self, *exprs: Expr) -> str:
        """Several expressions' texts, separated by commas."""
        return ", ".join(self.expr(e) for e in exprs)

    def listing(self, exprs: tuple[Expr, ...], quoted: tuple[Var, ...] = ()) -> str:
        """A tuple of expressions; variables in `quoted` stand in quotes, where a signature uses them first."""
        texts = [string_text(e.name) if isinstance(e, Var) and e in quoted else self.expr(e) for e in exprs]
        return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"

    def range(self, domain: Range) -> str:
        """`start, stop`."""
        return self.exprs(domain.start, stop_of(domain.start, domain.extent))

    def region(self, buffer: Buffer, ranges: tuple[Range, ...]) -> str:
        """`A[i, 0:4]`."""
        return f"{buffer.name}[{', '.join(self._slice(r) for r in ranges) or '()'}]"

    def _slice(self, r: Range) -> str:
        if r.extent == IntImm(1, r.start.dtype):
            return self.expr(r.start)
        return f"{self.expr(r.start)}:{self.expr(stop_of(r.start, r.extent))}"

    def attributes(self, attributes: Attributes) -> str:
        """A dictionary's text, in the order given."""
        return "{" + ", ".join(f"{string_text(k)}: {self.attribute(v)}" for k, v in attributes.items()) + "}"

    def attribute(self, value: AttrValue) -> str:
        """One attribute's value."""
        match value:
            case str():
                return string_text(value)
            case tuple():
                return "[" + ", ".join(self.attribute(v) for v in value) + "]"
            case Attributes():
                return self.attributes(value)
            case MeantValue():
                return self.attributes(value.plain())
            case float() if value != value or value in (float("inf"), float("-inf")):
                return f'T.float64("{value}")'
            case IntImm() if value.dtype == INT32:
                return f"T.int32({value.value})"  # a bare number would be read as a plain one
            case Expr():
                return self.expr(value)
            case _:
                return repr(value)

    def names_data(self, buffer: Buffer) -> None:
        """From here on the buffer's data variable is written through the buffer, unless it has another name already."""
        self.handles.setdefault(buffer.data.name, f"{buffer.name}.data")

    def buffer_arguments(
        self, buffer: Buffer, *, quoted: tuple[Var, ...] = (), short: bool = False, data: bool = False
    ) -> str:
        """The arguments that make a buffer: shape and type, then what differs from the defaults, by keyword.

        `short` leaves float32 out; `data` writes the data variable even where it has the default name.
        """
        parts = [self.listing(buffer.shape, quoted)]
        if not (short and buffer.dtype == FLOAT32):
            parts.append(string_text(str(buffer.dtype)))
        if data or buffer.data.name != default_data(buffer):
            parts.append(f"data={self.expr(buffer.data)}")
        if buffer.strides:
            parts.append(f"strides={self.listing(buffer.strides, quoted)}")
        if buffer.elem_offset != IntImm(0):
            parts.append(f"elem_offset={self.expr(buffer.elem_offset)}")
        if buffer.scope != "global":
            parts.append(f"scope={string_text(buffer.scope)}")
        if buffer.align:
            parts.append(f"align={buffer.align}")
        if buffer.offset_factor:
            parts.append(f"offset_factor={buffer.offset_factor}")
        if buffer.axis_separators:
            # The text counts the axes before each separator, the IR has the index of the last of them.
            parts.append(f"axis_separators={[s + 1 for s in buffer.axis_separators]}")
        return ", ".join(parts)


def default_data(buffer: Buffer) -> str:
    """The name that a buffer's data variable has when its text does not give one."""
    return f"{buffer.name}_data"


def print_statement(page: Page, statement: Stmt, last: bool = True) -> None:
    """Write a statement. `last` says that nothing follows it in its body, so that what it holds may follow it flat."""
    trampoline(lambda given: _PRINTERS[type(given[0])](page, *given), (statement, last))


def _seq(page: Page, s: Seq, last: bool) -> _Printing:
    for position, statement in enumerate(s.body):
        yield statement, last and position == len(s.body) - 1


def _body(page: Page, statement: Stmt) -> _Printing:
    with page.indented():
        yield statement, True


def _store(page: Page, s: BufferStore, last: bool) -> None:
    page.line(f"{s.buffer.name}[{page.exprs(*s.indices) or '()'}] = {page.expr(s.value)}")


def _evaluate(page: Page, s: Evaluate, last: bool) -> None:
    match s.value:
        case OpaqueCall(function="ret", arguments=(result,), dtype=dtype) if dtype == INT32 and page.dialect is CURRENT:
            # It is a statement to TVM, which has no such function any more.
            page.line(f"return {page.expr(result)}")
            return
    text = page.expr(s.value)
    page.line(text if isinstance(s.value, Assume | OpaqueCall) else f"T.evaluate({text})")


def _if(page: Page, s: IfThenElse, last: bool) -> _Printing:
    word = "if"
    while True:
        page.line(f"{word} {page.expr(s.condition)}:")
        yield from _body(page, s.then)
        if not isinstance(s.otherwise, IfThenElse):
            break
        s, word = s.otherwise, "elif"
    if s.otherwise is not None:
        page.line("else:")
        yield from _body(page, s.otherwise)


# ---- what holds for the rest of a body


def _held(page: Page, flat: str, nested: str, body: Stmt, last: bool) -> _Printing:
    """A statement with a body: flat at the end of its own body, else by `with`, so that what follows stays outside."""
    if last:
        page.line(flat)
        yield body, True
    else:
        page.line(f"with {nested}:")
        yield from _body(page, body)


def _let(page: Page, s: Let, last: bool) -> _Printing:
    value = page.expr(s.value)
    annotation = page.dialect.let_annotation.format(f"T.{s.var.dtype}")
    return _held(page, f"{s.var.name}: {annotation} = {value}", f"T.LetStmt({value}) as {s.var.name}", s.body, last)


def _attr(page: Page, s: AttrStmt, last: bool) -> _Printing:
    text = f"T.attr({page.expr(s.target)}, {string_text(s.key)}, {page.expr(s.value)})"
    return _held(page, text, text, s.body, last)


def _decl(page: Page, s: DeclBuffer, last: bool) -> _Printing:
    text = f"T.decl_buffer({page.buffer_arguments(s.buffer, data=True)})"
    return _held(page, f"{s.buffer.name} = {text}", f"{text} as {s.buffer.name}", s.body, last)


def _allocate(page: Page, s: Allocate, last: bool) -> _Printing:
    b = s.buffer
    plain = b.data.name == default_data(b)
    if page.dialect.old_buffers and (s.annotations or not plain):
        return _allocate_by_handle(page, s, last)
    notes = f", annotations={page.attributes(s.annotations)}" if s.annotations else ""
    text = f"{page.dialect.allocate}({page.buffer_arguments(b)}{notes})"
    page.names_data(b)
    return _held(page, f"{b.name} = {text}", f"{text} as {b.name}", s.body, last)


def _allocate_by_handle(page: Page, s: Allocate, last: bool) -> _Printing:
    """The old dialect's pair: the memory, then the buffer that views it."""
    b = s.buffer
    notes = f", annotations={page.attributes(s.annotations)}" if s.annotations else ""
    extents = f"[{page.exprs(*b.shape)}]"
    memory = f"T.allocate({extents}, {string_text(str(b.dtype))}, {string_text(b.scope)}{notes})"
    page.handles[b.data.name] = b.data.name
    view = f"{b.name} = T.decl_buffer({page.buffer_arguments(b, data=True)})"
    if last:
        page.line(f"{b.data.name} = {memory}")
        page.line(view)
        yield s.body, True
    else:
        page.line(f"with {memory} as {b.data.name}:")
        with page.indented():
            page.line(view)
            yield s.body, True


# ---- loops


def _for(page: Page, s: For, last: bool) -> _Printing:
    chain = _grid(s)
    inner = chain[-1]
    if len(chain) > 1:
        names = ", ".join(loop.var.name for loop in chain)
        page.line(f"for {names} in T.grid({page.exprs(*(loop.extent for loop in chain))}):")
    else:
        page.line(f"for {s.var.name} in {_loop_range(page, s)}:")
    with _open_loops(page, chain):
        yield from _body(page, inner.body)


@contextmanager
def _open_loops(page: Page, chain: list[For]) -> Generator[None, None, None]:
    before = dict(page.loops)
    page.loops.update({loop.var.name: Range(loop.start, loop.extent) for loop in chain})
    yield
    page.loops = before


def _is_plain(s: Stmt) -> bool:
    return isinstance(s, For) and s.kind is ForKind.SERIAL and not s.annotations and s.start == IntImm(0, s.var.dtype)


def _grid(s: For) -> list[For]:
    """The loops that one T.grid can express: plain, directly nested, no extent with an outer one's variable."""
    chain = [s]
    while _is_plain(chain[-1]) and isinstance(chain[-1].body, For) and _is_plain(chain[-1].body):
        inner = chain[-1].body
        if set(free_variables(inner.extent)) & {loop.var for loop in chain}:
            break
        chain.append(inner)
    return chain


def _loop_range(page: Page, s: For) -> str:
    domain = Range(s.start, s.extent)
    from_zero = s.start == IntImm(0, s.var.dtype)
    limits = page.expr(s.extent) if from_zero else page.range(domain)
    narrow = from_zero and s.var.dtype.bits < 32  # `range(n)` would begin at an int32
    notes = f", annotations={page.attributes(s.annotations)}" if s.annotations else ""
    thread = f", thread={string_text(s.thread)}" if s.thread is not None else ""
    word = page.dialect.serial if s.kind is ForKind.SERIAL and not notes and not narrow else f"T.{s.kind.value}"
    return f"{word}({limits}{thread}{notes})"


# ---- blocks


def _block(page: Page, s: Block, last: bool) -> _Printing:
    page.line(f"with {page.dialect.block}({string_text(s.name)}):")
    with page.indented():
        _axes(page, s.iter_vars)
        if s.where != TRUE:
            page.line(f"T.where({page.expr(s.where)})")
        for word, regions in (("reads", s.reads), ("writes", s.writes)):
            if regions is not None:
                page.line(f"T.{word}({', '.join(page.region(r.buffer, r.ranges) for r in regions)})")
        if s.annotations:
            page.line(f"{page.dialect.block_attr}({page.attributes(s.annotations)})")
        print_allocations(page, s)
        for match in s.match_buffers:
            region = page.region(match.source.buffer, match.source.ranges)
            page.line(f"{match.buffer.name} = T.match_buffer({region}, {page.buffer_arguments(match.buffer)})")
            page.names_data(match.buffer)
        if s.init is not None:
            page.line("with T.init():")
            yield from _body(page, s.init)
        yield s.body, True


def print_allocations(page: Page, s: Block) -> None:
    """The buffers that a block allocates."""
    for buffer in s.alloc_buffers:
        page.line(f"{buffer.name} = {page.dialect.block_alloc}({page.buffer_arguments(buffer, short=True)})")
        page.names_data(buffer)


_AXIS_WORDS: Mapping[IterKind, str] = {
    IterKind.SPATIAL: "T.axis.spatial",
    IterKind.REDUCE: "T.axis.reduce",
    IterKind.OPAQUE: "T.axis.opaque",
}


def _axes(page: Page, iter_vars: tuple[IterVar, ...]) -> None:
    """One line an axis; runs of two and more that are bound to loops of their own domain as one T.axis.remap."""
    position = 0
    while position < len(iter_vars):
        run = position
        while run < len(iter_vars) and _follows_loop(page, iter_vars[run]):
            run += 1
        if run - position >= 2:
            group = iter_vars[position:run]
            names = ", ".join(v.var.name for v in group)
            kinds = "".join(v.kind.value for v in group)
            page.line(f'{names} = T.axis.remap("{kinds}", [{page.exprs(*(v.binding for v in group))}])')
            position = run
        else:
            page.line(_axis(page, iter_vars[position]))
            position += 1


def _follows_loop(page: Page, v: IterVar) -> bool:
    return isinstance(v.binding, Var) and page.loops.get(v.binding.name) == v.domain and v.var.dtype == v.binding.dtype


def _axis(page: Page, v: IterVar) -> str:
    from_zero = v.domain.start == IntImm(0, v.var.dtype)
    domain = page.expr(v.domain.extent) if from_zero else f"({page.range(v.domain)})"
    return f"{v.var.name} = {_AXIS_WORDS[v.kind]}({domain}, {page.expr(v.binding)})"


_PRINTERS: Mapping[type[Stmt], Callable[[Page, Any, bool], _Printing | None]] = {
    For: _for,
    IfThenElse: _if,
    Let: _let,
    BufferStore: _store,
    Seq: _seq,
    Allocate: _allocate,
    DeclBuffer: _decl,
    Block: _block,
    Evaluate: _evaluate,
    AttrStmt: _attr,
}

STATEMENT_TYPES = frozenset(_PRINTERS)
