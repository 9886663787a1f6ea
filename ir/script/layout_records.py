"""Layout records in a program's text (plain values with maps, extents and contracts in quotes) -> LayoutRecord.

They are read after their function: a contract may load from its buffer, and use the function's symbols.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError, Source, error
from layoutproof.ir.dtype import FLOAT32, INT32, INT64, DType
from layoutproof.ir.evaluate import foreign_part
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.layout_record import Contract, LayoutRecord, LayoutStep, boxed
from layoutproof.ir.primfunc import LAYOUT, PrimFunc
from layoutproof.ir.script.expressions import ExpressionReader, Names
from layoutproof.ir.script.functions import FUNCTIONS, PLAIN_FUNCTIONS, PLAIN_NAMESPACES
from layoutproof.ir.script.index_maps import parse_index_map, parse_integer
from layoutproof.ir.script.parsing import Text, limited_depth, parse_expression
from layoutproof.ir.stmt import Attributes, AttrValue
from layoutproof.ir.visit import free_variables, walk

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
