"""Index maps and integers outside of programs: in layout records, on a command line, in a trace.

They are read with the grammar of programs, never executed. Names of shapes are 32-bit index variables. Arithmetic on
constants alone is computed, as calling the lambda would (`i & (2**3 - 1)`); nothing else is simplified.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import Source, error
from layoutproof.ir.dtype import INT32, DType
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, IfThenElseExpr, IntImm, Logical, Not, Select, Var
from layoutproof.ir.index_map import AXIS_SEPARATOR, FOLDED, IndexMap
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.script.expressions import ExpressionReader, dotted_name, syntax_name
from layoutproof.ir.script.functions import FUNCTIONS, PLAIN_FUNCTIONS, PLAIN_NAMESPACES
from layoutproof.ir.script.operands import Value, Weak
from layoutproof.ir.script.parsing import Text, limited_depth, parse_expression
from layoutproof.ir.semantics import Trap
from layoutproof.ir.text import expr_text

_INTEGER_NODES = (IntImm, Var, Binary, Compare, Logical, Not, Select, IfThenElseExpr, Cast, Call)
_SEPARATOR_NAME = "AXIS_SEPARATOR"


class PlainNames:
    """The names of a plain text; with `open_ended`, a name not seen before is a new 32-bit variable."""

    def __init__(self, variables: Mapping[str, Var], open_ended: bool = False) -> None:
        self.variables = dict(variables)
        self.open_ended = open_ended

    def lookup(self, name: str) -> Expr | Buffer | None:
        if self.open_ended and name not in self.variables and name not in PLAIN_NAMESPACES:
            self.variables[name] = Var(name)
        return self.variables.get(name)

    def names(self) -> Iterable[str]:
        return self.variables


class IntegerReader(ExpressionReader):
    """Reads integer expressions only; a float is refused where it stands."""

    def __init__(self, text: Text, scope: PlainNames, what: str, folded: bool = True) -> None:
        super().__init__(text, scope, FUNCTIONS, PLAIN_NAMESPACES, PLAIN_FUNCTIONS)
        self.what = what
        self.folded = FOLDED if folded else {}

    def read(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            raise self.text.fail(codes.WRONG_TYPE, f"{node.value} is a float: {self.what} is made of integers", node)
        value = super().read(node)
        if isinstance(value, Expr):
            self.check(node, value)
        return value

    def binary(self, node: ast.expr, op: BinaryOp, a: Value, b: Value) -> Value:
        """`a op b`; two constants are computed, as Python does where a lambda is called instead of read."""
        if (
            isinstance(a, Weak)
            and isinstance(b, Weak)
            and type(a.literal) is int
            and type(b.literal) is int
            and op in self.folded
        ):
            try:
                return self.literal(node, self.folded[op](a.literal, b.literal))
            except Trap as problem:
                raise self.text.fail(codes.NUMBER_RANGE, str(problem), node) from problem
        return super().binary(node, op, a, b)

    def matched(self, node: ast.expr, a: Value, b: Value) -> tuple[Expr, Expr]:
        """Numbers in a plain text are written without their type: they have that of what they meet."""
        if isinstance(a, Weak) and isinstance(b, Expr):
            a = a.build(b.dtype)
        elif isinstance(b, Weak) and isinstance(a, Expr):
            b = b.build(a.dtype)
        return super().matched(node, a, b)

    def check(self, node: ast.expr, value: Expr) -> None:
        """Refuse what is not integer arithmetic: floats, lanes, undefined values, opaque calls."""
        if (
            not isinstance(value, _INTEGER_NODES)
            or not (value.dtype.is_integer or value.dtype.is_bool)
            or value.dtype.lanes > 1
        ):
            shown = expr_text(value, "plain")
            raise self.text.fail(
                codes.WRONG_TYPE, f"`{shown}` has type {value.dtype}: {self.what} is made of integers", node
            )


def parse_index_map(
    text: str,
    name: str = "<index map>",
    *,
    symbols: Iterable[str | Var] = (),
    types: Sequence[DType] = (),
    folded: bool = True,
) -> IndexMap:
    """The map that a lambda's text states, as written: `lambda n, c: [n, c//4, AXIS_SEPARATOR, c%4]`.

    `symbols` are names beside the lambda's own that it may use: those of a symbolic shape. `types` are those of the
    lambda's inputs, int32 where there are not as many. `folded=False` keeps arithmetic on constants, so that what a
    program printed reads back equal. Raises LayoutproofError.
    """
    tree, source = parse_expression(Source(name, text), "an index map, `lambda i, j: [...]`,")
    if not isinstance(tree, ast.Lambda):
        raise source.fail(
            codes.NOT_A_MAP, f"an index map is a lambda, this is {syntax_name(tree)}", tree, help=_MAP_HELP
        )
    arguments = _lambda_arguments(tree, source)
    dtypes = types if len(types) == len(arguments) else (INT32,) * len(arguments)
    inputs = tuple(Var(a.arg, dtype, span=source.span(a)) for a, dtype in zip(arguments, dtypes, strict=True))
    for position, repeated in enumerate(inputs):
        if repeated.name in (v.name for v in inputs[:position]):
            raise error(codes.NOT_A_MAP, f"an index map with two inputs called `{repeated.name}`", repeated.span)
    known = {v.name: v for v in (s if isinstance(s, Var) else Var(s) for s in symbols)}
    reader = IntegerReader(source, PlainNames({**known, **{v.name: v for v in inputs}}), "an index map", folded)
    if not isinstance(tree.body, ast.List | ast.Tuple):
        message = f"an index map gives a list of expressions, this is {syntax_name(tree.body)}"
        raise source.fail(codes.NOT_A_MAP, message, tree.body, help=_MAP_HELP)
    with limited_depth(source):
        entries = [_read_entry(entry, reader) for entry in tree.body.elts]
    _check_separators(entries, tree.body.elts, source)
    return IndexMap.from_outputs(inputs, entries)


_MAP_HELP = "for example: lambda n, h, w, c: [n, c//4, h, w, c%4]"


def _lambda_arguments(tree: ast.Lambda, text: Text) -> list[ast.arg]:
    args = tree.args
    for starred in (args.vararg, args.kwarg):
        if starred is not None:
            star = "*" if starred is args.vararg else "**"
            raise text.fail(
                codes.NOT_A_MAP,
                f"the text of an index map names its indices one by one, not {star}{starred.arg}",
                starred,
            )
    for default in (*args.defaults, *(d for d in args.kw_defaults if d is not None)):
        raise text.fail(codes.NOT_A_MAP, "an index of an index map has no default", default)
    for keyword in args.kwonlyargs:
        raise text.fail(
            codes.NOT_A_MAP, f"an index map takes positional indices, `{keyword.arg}` is a keyword", keyword
        )
    return [*args.posonlyargs, *args.args]


def _read_entry(entry: ast.expr, reader: IntegerReader) -> Any:
    path = dotted_name(entry)
    if path is not None and path[-1] == _SEPARATOR_NAME:
        return AXIS_SEPARATOR
    if isinstance(entry, ast.Starred | ast.List | ast.Tuple):
        raise reader.text.fail(codes.NOT_A_MAP, f"{syntax_name(entry)} in the list of an index map", entry)
    return reader.integer(entry, "an entry of an index map")


def _check_separators(entries: list[Any], nodes: list[ast.expr], text: Text) -> None:
    for position, (entry, node) in enumerate(zip(entries, nodes, strict=True)):
        alone = position in (0, len(entries) - 1) or entries[position - 1] is AXIS_SEPARATOR
        if entry is AXIS_SEPARATOR and alone:
            raise text.fail(codes.NOT_A_MAP, "AXIS_SEPARATOR stands between axes: one is needed on both sides", node)


def by_name(variables: Mapping[str, Var] | Iterable[Var]) -> dict[str, Var]:
    """The variables by their names, however they are given."""
    if isinstance(variables, Mapping):
        return dict(cast(Mapping[str, Var], variables))
    return {v.name: v for v in variables}


def parse_integer(
    text: str, variables: Mapping[str, Var] | Iterable[Var], name: str = "<expression>", dtype: DType | None = None
) -> Expr:
    """One integer expression over the given variables, `(n + 3)//4`. Raises LayoutproofError."""
    known = by_name(variables)
    tree, source = parse_expression(Source(name, text), "an integer expression")
    with limited_depth(source):
        return IntegerReader(source, PlainNames(known), "the expression").integer(tree, "the expression", dtype)
