"""What names mean while a program is read: frames that open and close with its blocks and loops.

A name is bound once on any path from the root of a function, so that no pass ever has to ask which of two it is. Statements
side by side may use a name each.
"""

from __future__ import annotations

import ast
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass

from layoutproof.ir.buffer import Buffer, Range
from layoutproof.ir.depth import MAX_NESTING, MAX_SEQUENCE
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError
from layoutproof.ir.expr import Expr
from layoutproof.ir.script import codes
from layoutproof.ir.script.parsing import Text
from layoutproof.ir.source import Span


@dataclass(frozen=True, slots=True)
class _Binding:
    value: Expr | Buffer
    span: Span
    loop: Range | None = None


class Environment:
    """The names that are bound at one place of a program."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self._frames: list[dict[str, _Binding]] = [{}]
        self._depth = 0

    @contextmanager
    def frame(self, node: ast.AST, levels: int = 1) -> Generator[None, None, None]:
        """Bindings made inside end with it; it stands for `levels` statements inside one another, none for what holds from here on.

        Raises LayoutproofError where statements are nested too deeply.
        """
        if self._depth + levels > MAX_NESTING:
            raise self.text.fail(codes.TOO_DEEP, f"statements are nested more than {MAX_NESTING} deep here", node)
        if len(self._frames) > MAX_SEQUENCE:
            raise self.text.fail(codes.TOO_DEEP, f"more than {MAX_SEQUENCE} lets and allocations follow one another", node)
        self._frames.append({})
        self._depth += levels
        try:
            yield
        finally:
            self._frames.pop()
            self._depth -= levels

    def bind(self, name: str, value: Expr | Buffer, node: ast.AST, loop: Range | None = None) -> None:
        """Give `name` its meaning; `loop` is the range of a loop variable. Raises LayoutproofError where it has one already."""
        earlier = self._find(name)
        span = self.text.span(node)
        if earlier is not None:
            message = f"`{name}` is bound again, its first meaning still holds here"
            raise LayoutproofError(Diagnostic(codes.BOUND_TWICE, message, span, related=((earlier.span, "first bound here"),)))
        self._frames[-1][name] = _Binding(value, span, loop)

    def forget(self, name: str) -> None:
        """Take back the innermost binding of a name: a declaration that only gave the type of a let."""
        for frame in reversed(self._frames):
            if name in frame:
                del frame[name]
                return

    def _find(self, name: str) -> _Binding | None:
        return next((frame[name] for frame in reversed(self._frames) if name in frame), None)

    def lookup(self, name: str) -> Expr | Buffer | None:
        """What a name stands for here, or None."""
        found = self._find(name)
        return found.value if found is not None else None

    def loop_range(self, name: str) -> Range | None:
        """The range of a loop variable; None for other names."""
        found = self._find(name)
        return found.loop if found is not None else None

    def names(self) -> Iterable[str]:
        """Every name bound here."""
        return [name for frame in self._frames for name in frame]
