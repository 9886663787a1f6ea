"""Index maps and integers outside of programs: in layout records, on a command line, in a trace; and layout records in
a program's text, plain values with maps, extents and contracts in quotes.

They are read with the grammar of programs, never executed. Names of shapes are 32-bit index variables. Arithmetic on
constants alone is computed, as calling the lambda would (`i & (2**3 - 1)`); nothing else is simplified. Records are
read after their function: a contract may load from its buffer, and use the function's symbols.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError, Source, error
from layoutproof.ir.dtype import FLOAT32, INT32, INT64, DType
from layoutproof.ir.evaluate import foreign_part
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, IfThenElseExpr, IntImm, Logical, Not, Select, Var, const
from layoutproof.ir.index_map import AXIS_SEPARATOR, FOLDED, IndexMap
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.layout_record import Contract, LayoutRecord, LayoutStep, boxed
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import LAYOUT, PrimFunc
from layoutproof.ir.script.expressions import ExpressionReader, Names, dotted_name, syntax_name
from layoutproof.ir.script.functions import FUNCTIONS, PLAIN_FUNCTIONS, PLAIN_NAMESPACES
from layoutproof.ir.script.operands import Value, Weak
from layoutproof.ir.script.parsing import Text, limited_depth, parse_expression
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import Attributes, AttrValue
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables, walk

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


def parse_integer(text: str, variables: Mapping[str, Var] | Iterable[Var]) -> Expr:
    """One integer expression over the given variables, `(n + 3)//4`. Raises LayoutproofError."""
    known = by_name(variables)
    tree, source = parse_expression(Source("<expression>", text), "an integer expression")
    with limited_depth(source):
        return IntegerReader(source, PlainNames(known), "the expression").integer(tree, "the expression")


_UNDEF = "undef"


def with_records(func: PrimFunc, text: Text, place: ast.AST) -> PrimFunc:
    """The function with its layout records as objects. Raises LayoutproofError at `place` for what cannot be read."""
    value = func.attrs[LAYOUT]
    try:
        if not isinstance(value, Attributes):
            raise error(codes.LAYOUT_RECORD, f"{LAYOUT} maps data variables to layout records")
        reader = RecordReader.of(func)
        records = Attributes({name: reader.record(name, record) for name, record in value.items()})
    except LayoutproofError as problem:
        first = problem.diagnostics[0]
        raise text.fail(first.code, first.message, place, help=first.help) from problem
    return replace(func, attrs=func.attrs.with_value(LAYOUT, records))


@dataclass(frozen=True, slots=True)
class RecordReader:
    """The names of texts: the function's `variables` for all, its `buffers` and constants of a call for contracts."""

    variables: Mapping[str, Var]
    constants: Mapping[str, Var]
    buffers: tuple[Buffer, ...] = ()

    @staticmethod
    def of(func: PrimFunc) -> RecordReader:
        """The names of one function, those of its parameters first."""
        sizes = (size for b in func.buffers for size in (*b.shape, *b.strides, b.elem_offset))
        constants = {
            v.name: v
            for v in (*(v for size in sizes for v in free_variables(size)), *func.params)
            if v.dtype.is_integer
        }
        buffers: dict[Buffer, None] = dict.fromkeys(func.buffers)
        variables: dict[str, Var] = {}
        for node in (node for root in (*func.buffers, func.body) for node in walk(root)):
            if isinstance(node, Buffer):
                buffers.setdefault(node)
            elif isinstance(node, Var) and node.dtype.is_integer and node.dtype.lanes == 1:
                variables.setdefault(node.name, node)
        return RecordReader({**variables, **constants}, constants, tuple(buffers))

    def record(self, name: str, value: AttrValue) -> LayoutRecord:
        """The record of a data variable. Raises LayoutproofError."""
        try:
            return self._record(name, value)
        except LayoutproofError as problem:
            first = problem.diagnostics[0]
            raise error(first.code, f"the layout record of {name}: {first.message}", help=first.help) from problem

    def _record(self, name: str, value: AttrValue) -> LayoutRecord:
        if isinstance(value, LayoutRecord):
            return value
        if not isinstance(value, Attributes) or set(value) != {"logical_shape", "steps"}:
            raise _bad("a record has the keys logical_shape and steps")
        steps = value["steps"]
        if not isinstance(steps, tuple):
            raise _bad("steps is a list")
        buffer = next((b for b in self.buffers if b.data.name == name), make_buffer(name, (), FLOAT32))
        return LayoutRecord(self._extents(value["logical_shape"]), tuple(self._step(buffer, step) for step in steps))

    def _step(self, buffer: Buffer, value: AttrValue) -> LayoutStep:
        if not isinstance(value, Attributes) or set(value) != {"index_map", "shape", "contract"}:
            raise _bad("a step has the keys index_map, shape and contract")
        index_map, contract = value["index_map"], value["contract"]
        if not isinstance(index_map, str):
            raise _bad("an index map is the text of a lambda")
        if not (contract is None or isinstance(contract, str)):
            raise _bad("a contract is None or a text")
        shape = self._extents(value["shape"])
        read = None if contract is None else self.contract(contract, boxed(buffer, shape, self.constants.values()))
        return LayoutStep(parse_index_map(index_map, symbols=self.variables), shape, read)

    def _extents(self, value: AttrValue) -> tuple[Expr, ...]:
        if not isinstance(value, tuple):
            raise _bad("a shape is a list")
        return tuple(map(self._extent, value))

    def _extent(self, value: AttrValue) -> Expr:
        if (
            isinstance(value, Expr)
            and value.dtype.is_integer
            and value.dtype.lanes == 1
            and foreign_part(value) is None
        ):
            return value
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise _bad(f"an extent is an integer or a text, not {value!r}")
        return (
            const(value)
            if isinstance(value, int)
            else parse_integer(value, {name: Var(name) for name in self.variables})
        )

    def contract(self, given: str, box: Buffer) -> Contract:
        """The contract of padding in a box that is stored as `box`. Raises LayoutproofError."""
        if given == _UNDEF:
            return Contract.undef(box.dtype)
        problem: LayoutproofError | None = None
        read: list[Contract] = []
        for types in _index_types(box):
            try:
                read.append(self._contract(given, box, types))
            except LayoutproofError as reason:
                problem = problem if problem is not None else reason
            else:
                if read[-1].text == given:
                    return read[-1]
        if not read:
            assert problem is not None
            raise problem
        if read[0].is_undef:
            raise _bad(f"{given!r} is stated of padding, which a record says as {_UNDEF!r}")
        return read[0]

    def _contract(self, given: str, box: Buffer, types: tuple[DType, ...]) -> Contract:
        tree, text = parse_expression(Source("<contract>", given), "a pad value")
        names = [f"p{axis}" for axis in range(len(box.shape))]
        if isinstance(tree, ast.Lambda):
            names = [argument.arg for argument in (*tree.args.posonlyargs, *tree.args.args)]
            tree = tree.body
        if isinstance(tree, ast.Constant) and tree.value is None:
            raise _bad("'None' is stated of padding, which a record says as None, without quotes")
        if len(set(names)) != len(names):
            raise _bad(f"two indices of the contract {given!r} have one name")
        inputs = tuple(map(Var, names, types if len(types) == len(names) else (INT32,) * len(names)))
        scope: dict[str, Expr | Buffer] = {b.name: b for b in reversed(self.buffers)}
        scope.update((name, v) for name, v in self.constants.items() if name not in scope)
        scope.update({box.name: box, **{v.name: v for v in inputs}})
        reader = ExpressionReader(text, Names(scope), FUNCTIONS, PLAIN_NAMESPACES, PLAIN_FUNCTIONS)
        with limited_depth(text):
            return Contract(inputs, reader.expr(tree, box.dtype))


def _index_types(box: Buffer) -> Iterator[tuple[DType, ...]]:
    """The types that the indices of a contract may have had when it was printed: those of its box, or all alike."""
    yield tuple(extent.dtype for extent in box.shape)
    yield from ((dtype,) * len(box.shape) for dtype in (INT32, INT64))


def _bad(message: str) -> LayoutproofError:
    return error(codes.LAYOUT_RECORD, message)
