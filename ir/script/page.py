"""The page that a program is printed on: lines with their indentation, and what names are written as."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from layoutproof.ir.attributes import Attributes, AttrValue, MeantValue
from layoutproof.ir.buffer import Buffer, Range
from layoutproof.ir.dialect import Dialect
from layoutproof.ir.dtype import FLOAT32, INT32
from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.ir.script.ranges import stop_of
from layoutproof.ir.text import expr_text, string_text


class Page:
    """Lines of one function. `handles` says how data variables are written, `loops` the ranges of the loops that are open."""

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

    def buffer_arguments(self, buffer: Buffer, *, quoted: tuple[Var, ...] = (), short: bool = False, data: bool = False) -> str:
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
