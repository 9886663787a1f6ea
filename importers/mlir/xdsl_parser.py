"""The parser of xDSL, with places of operations, semi-affine maps, and the custom syntax of operations that it lacks.

Imported when a file is read: xDSL is optional. Affine expressions are kept as written; nothing is simplified.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineConstraintExpr,
    AffineConstraintKind,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSet,
    AffineSymExpr,
)
from xdsl.parser import Parser

_SUMS = {"+": AffineBinaryOpKind.Add, "-": AffineBinaryOpKind.Add}
_PRODUCTS = {
    "*": AffineBinaryOpKind.Mul,
    "mod": AffineBinaryOpKind.Mod,
    "floordiv": AffineBinaryOpKind.FloorDiv,
    "ceildiv": AffineBinaryOpKind.CeilDiv,
}
_MINUS_ONE = AffineConstantExpr(-1)


class MlirParser(Parser):  # type: ignore[misc]  # xDSL is not followed
    """The parser of a module. `places` has the first and last character of each operation, by the operation."""

    def __init__(self, text: str, name: str) -> None:
        context = Context(allow_unregistered=True)
        for dialect, factory in get_all_dialects().items():
            context.register_dialect(dialect, factory)
        super().__init__(context, text, name)
        self.places: dict[Any, tuple[int, int]] = {}
        self.last_name = ""

    class _TensorLiteralElement(Parser._TensorLiteralElement):  # type: ignore[misc]  # xDSL is not followed
        """An element of a dense constant. Of a float, a hexadecimal number gives the bits."""

        def to_type(self, parser: Any, type: Any) -> Any:
            """The value as an element of this type."""
            if isinstance(type, AnyFloat) and self.span.text[:2] in ("0x", "0X"):
                size = type.compile_time_size
                if not isinstance(self.value, int) or self.value >= 1 << (8 * size):
                    parser.raise_error("more digits than the type has", self.span)
                (found,) = type.iter_unpack(self.value.to_bytes(size, "little"))
                return found
            return super().to_type(parser, type)

    def parse_operation(self) -> Any:
        """One operation; its place is recorded."""
        start = self.pos
        op = super().parse_operation()
        self.places[op] = (start, self.pos)
        return op

    def _parse_builtin_dense_attr(self) -> Any:
        """A dense constant. Of one given as bytes, MLIR packs truth values, eight to a byte: those are refused."""
        start = self.pos
        found = super()._parse_builtin_dense_attr()
        bits = isinstance(found.type.element_type, IntegerType) and found.type.element_type.width.data == 1
        if bits and '"' in self.lexer.input.content[start : self.pos]:
            self.raise_error("truth values as bytes are not read")
        return found

    def parse_optional_integer(self, allow_boolean: bool = True, allow_negative: bool = True) -> Any:
        """An integer, if there is one. `true` as the bound of a loop is -1 for MLIR and 1 for xDSL: it is refused."""
        return super().parse_optional_integer(allow_boolean and self.last_name != "affine.for", allow_negative)

    def _get_op_by_name(self, name: str) -> Any:
        from layoutproof.importers.mlir.custom_syntax import syntax_of

        self.last_name = name
        known = super()._get_op_by_name(name)
        parse = syntax_of(name)
        return known if parse is None else Custom(name, known, parse)

    def _parse_generic_operation(self, op_type: Any) -> Any:
        return super()._parse_generic_operation(op_type.registered if isinstance(op_type, Custom) else op_type)

    # ---- affine maps and sets

    def parse_affine_map(self) -> AffineMap:
        """`(d0, ...)[s0, ...] -> (results)`."""
        names, dims, symbols = self._space()
        self.parse_punctuation("->")
        results = self.parse_comma_separated_list(self.Delimiter.PAREN, lambda: self._affine(names))
        return AffineMap(dims, symbols, tuple(results))

    def parse_affine_set(self) -> AffineSet:
        """`(d0, ...)[s0, ...] : (constraints)`."""
        names, dims, symbols = self._space()
        self.parse_punctuation(":")
        constraints = self.parse_comma_separated_list(self.Delimiter.PAREN, lambda: self._constraint(names))
        return AffineSet(dims, symbols, tuple(constraints))

    def parse_affine_map_of_ssa_ids(self) -> tuple[AffineMap, Sequence[Any]]:
        """`[%i + 1, %j]`: a map whose symbols are the values, in the order of their first use."""
        values: list[Any] = []
        results = self.parse_comma_separated_list(self.Delimiter.SQUARE, lambda: self.affine_of_values(values))
        return AffineMap(0, len(values), tuple(results)), values

    def affine_of_values(self, values: list[Any]) -> AffineExpr:
        """An expression over values, which are added to the list; they are symbols with their numbers in it."""
        return self._sum(lambda: self._value(values))

    def _space(self) -> tuple[dict[str, AffineExpr], int, int]:
        dims = self.parse_comma_separated_list(self.Delimiter.PAREN, self.parse_identifier)
        symbols = (
            self.parse_comma_separated_list(self.Delimiter.SQUARE, self.parse_identifier)
            if self._current_token.text == "["
            else []
        )
        names: dict[str, AffineExpr] = {name: AffineDimExpr(n) for n, name in enumerate(dims)}
        names |= {name: AffineSymExpr(n) for n, name in enumerate(symbols)}
        if len(names) != len(dims) + len(symbols):
            self.raise_error("a name stands twice in an affine space")
        return names, len(dims), len(symbols)

    def _affine(self, names: dict[str, AffineExpr]) -> AffineExpr:
        def name() -> AffineExpr | None:
            found = self.parse_optional_keyword_in(names)
            return None if found is None else names[found]

        return self._sum(name)

    def _value(self, values: list[Any]) -> AffineExpr | None:
        # `symbol(%n)` says that a value is a symbol; it is one value either way.
        marked = self.parse_optional_keyword("symbol") is not None
        if marked:
            self.parse_punctuation("(")
        operand = self.parse_optional_operand(IndexType())
        if marked:
            self.parse_punctuation(")")
        if operand is None:
            return None
        if operand not in values:
            values.append(operand)
        return AffineSymExpr(values.index(operand))

    def _constraint(self, names: dict[str, AffineExpr]) -> AffineConstraintExpr:
        left = self._affine(names)
        for text, kind in ((">=", AffineConstraintKind.ge), ("<=", AffineConstraintKind.le)):
            if self.parse_optional_punctuation(text[0]) is not None:
                self.parse_punctuation("=")
                return AffineConstraintExpr(kind, left, self._affine(names))
        self.parse_punctuation("=")
        self.parse_punctuation("=")
        return AffineConstraintExpr(AffineConstraintKind.eq, left, self._affine(names))

    def _sum(self, name: Callable[[], AffineExpr | None]) -> AffineExpr:
        left = self._product(name)
        while self._current_token.text in _SUMS:
            op = self._consume_token().text
            right = self._product(name)
            left = AffineBinaryOpExpr(AffineBinaryOpKind.Add, left, _negated(right) if op == "-" else right)
        return left

    def _product(self, name: Callable[[], AffineExpr | None]) -> AffineExpr:
        left = self._primary(name)
        while self._current_token.text in _PRODUCTS:
            kind = _PRODUCTS[self._consume_token().text]
            left = AffineBinaryOpExpr(kind, left, self._primary(name))
        return left

    def _primary(self, name: Callable[[], AffineExpr | None]) -> AffineExpr:
        if self.parse_optional_punctuation("(") is not None:
            inside = self._sum(name)
            self.parse_punctuation(")")
            return inside
        if self.parse_optional_punctuation("-") is not None:
            return _negated(self._primary(name))
        number = self.parse_optional_integer(allow_boolean=False, allow_negative=False)
        if number is not None:
            return AffineConstantExpr(number)
        found = name()
        if found is None:
            self.raise_error("expected an affine expression")
        return found


def _negated(expr: AffineExpr) -> AffineExpr:
    if isinstance(expr, AffineConstantExpr):
        return AffineConstantExpr(-expr.value)
    return AffineBinaryOpExpr(AffineBinaryOpKind.Mul, expr, _MINUS_ONE)


class Custom:
    """Takes the place of an operation's class while its custom syntax is read."""

    def __init__(self, name: str, registered: Any, parse: Callable[[MlirParser, Any], Any]) -> None:
        self.name = name
        self.registered = registered
        self._parse = parse

    def dialect_name(self) -> str:
        """The dialect, as classes of operations have it."""
        return self.name.partition(".")[0]

    def parse(self, parser: MlirParser) -> Any:
        """The operation; its name has been read."""
        return self._parse(parser, _maker(self.name))


def _maker(name: str) -> Callable[..., Any]:
    """A function that makes the operation of a name, without a check of what xDSL may know of it."""
    from xdsl.dialects.builtin import UnregisteredOp

    make: Callable[..., Any] = UnregisteredOp.with_name(name).create
    return make
