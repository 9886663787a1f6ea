"""A function of MLIR as a program of this tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from layoutproof.importers.mlir import (
    affine_ops,
    arith_ops,
    codes,
    linalg_ops,
    memref_ops,
    scf_ops,
    tensor_ops,
    vector_ops,
)
from layoutproof.importers.mlir.arith_ops import of_buffer
from layoutproof.importers.mlir.builder import MOST, Builder, Overflow, fold
from layoutproof.importers.mlir.flags import Deviations
from layoutproof.importers.mlir.model import AffineMap, Op, Scalar, Shaped, Value
from layoutproof.importers.mlir.placement import VIEWS, dead_operations, root
from layoutproof.importers.mlir.values import Vector, View, number
from layoutproof.ir.buffer import Buffer, make_buffer
from layoutproof.ir.diagnostic import Span, error
from layoutproof.ir.dtype import HANDLE, INT64
from layoutproof.ir.expr import Expr, Var, logical_and
from layoutproof.ir.interval import Interval
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.primfunc import MAY_OVERLAP, PrimFunc
from layoutproof.ir.stmt import Attributes, Evaluate
from layoutproof.ir.visit import free_variables

TABLE: dict[str, Callable[[Builder, Op], None]] = {
    **affine_ops.TABLE,
    **arith_ops.TABLE,
    **linalg_ops.TABLE,
    **memref_ops.TABLE,
    **scf_ops.TABLE,
    **tensor_ops.TABLE,
    **vector_ops.TABLE,
}

# Part of the expressions that use their results: they leave no statement.
EXPRESSIONS = frozenset((
    *arith_ops.EXPRESSIONS, *VIEWS, "affine.apply", "affine.min", "affine.max", "affine.delinearize_index",
    "vector.broadcast", "vector.splat", "vector.extract", "vector.transpose", "vector.shape_cast",
))  # fmt: skip


@dataclass(frozen=True)
class Function:
    """A translated function, and the layout maps of its arguments by name, which a program has no place for. `fresh`:
    the names of results that are new memory, which holds nothing in particular where nothing is stored.
    """

    program: PrimFunc
    layouts: Mapping[str, AffineMap]
    fresh: frozenset[str]


@dataclass(frozen=True)
class Options:
    """How a function is read. `may_alias`: memref arguments may overlap; `private`: the numbers of memref arguments
    whose contents callers do not see afterwards; `observe_return`: that the function returns is seen, as one more
    parameter that is stored to; `fill`: new memory holds arbitrary values, so that reading it is no fault;
    `no_overflow`: what `nsw` and `nuw` mean; `deviations`: operations that may give other floats than is usual, each
    with a type, or those of them with flags, if `only_flagged`.
    """

    may_alias: bool = False
    private: frozenset[int] = frozenset()
    observe_return: bool = False
    fill: bool = False
    no_overflow: Overflow = Overflow.WRAPS
    deviations: Deviations = ()
    only_flagged: bool = False


def functions_of(module: Op) -> list[Op]:
    """The functions of a module. Raises LayoutproofError for anything else in it, and where it says how wide
    indices are or how memory is laid out.
    """
    stated = next((name for name in module.attributes if name.startswith("dlti.")), None)
    if stated is not None:
        raise module.fail(f"the attribute {stated} is not translated")
    found = []
    for op in module.block().ops:
        if op.name == "func.func":
            found.append(op)
        elif op.name == "builtin.module":
            found += functions_of(op)
        else:
            raise op.fail("this operation has no translation in a module")
    return found


def is_declaration(op: Op) -> bool:
    """Whether a function has no body."""
    return not op.regions or not op.regions[0]


def translate(op: Op, options: Options) -> Function:
    """A function. Raises LayoutproofError, with the place, for what has no translation."""
    try:
        return _Translation(op, options).function()
    except ValueError as problem:
        # Outside of a single operation: a part that is missing, or that does not fit.
        raise op.fail(str(problem)) from problem


class _Translation:
    def __init__(self, op: Op, options: Options) -> None:
        self.op = op
        self.options = options
        self.builder = Builder(TABLE, EXPRESSIONS, options.may_alias, options.fill)
        self.builder.no_overflow = options.no_overflow
        self.builder.dead = frozenset(each for each in dead_operations(op) if each.name in TABLE)
        self.params: list[Var] = []
        self.buffer_map: list[tuple[Var, Buffer]] = []
        self.layouts: dict[str, AffineMap] = {}

    def function(self) -> Function:
        b = self.builder
        block = self.op.block()
        for position, argument in enumerate(block.arguments):
            self._argument(position, argument)
        self._assume_sizes()
        for name, dtype in self.options.deviations:
            b.deviations[name, dtype] = Var(b.name(f"{name}_{dtype}", "deviation"), dtype)
        self.params += b.deviations.values()
        b.only_flagged = self.options.only_flagged
        end = b.block(block)
        if end.name != "func.return":
            raise end.fail("a function ends with func.return")
        for position, value in enumerate(end.operands):
            self._result(end, position, value)
        if self.options.observe_return:
            buffer = make_buffer(b.name("returned", "returned"), (number(1),), INT64)
            self._add(buffer)
            b.store(buffer, (number(0),), number(1), end.span)
        program = PrimFunc(
            str(self.op.attribute("sym_name")),
            tuple(self.params),
            tuple(self.buffer_map),
            fold(b.items),
            Attributes({MAY_OVERLAP if self.options.may_alias else "tirx.noalias": True}),
            span=_first_line(self.op),
        )
        return Function(program, self.layouts, frozenset(buffer.name for buffer in b.results))

    def _assume_sizes(self) -> None:
        """That sizes and indices of callers are numbers that a memory of 64-bit addresses can have."""
        b, span = self.builder, _first_line(self.op)
        most = number(MOST)
        for symbol in sorted(b.symbols, key=lambda v: v.name):
            condition = symbol <= most
            if symbol in self.params:
                condition = logical_and(symbol >= number(-MOST), condition)
            b.emit(Evaluate(Assume(condition, span=span), span=span))

    def _argument(self, position: int, argument: Value) -> None:
        b, kind = self.builder, argument.type
        name = b.name(argument.name, f"arg{position}")
        if isinstance(kind, Scalar):
            var = Var(name, kind.dtype)
            self.params.append(var)
            if kind.index:
                b.symbols.add(var)
            b.bind(argument, b.data(self.op, var) if kind.dtype.is_integer and not kind.index else var)
            return
        shape: list[Expr] = []
        for axis, extent in enumerate(kind.shape):
            symbol = Var(b.name(f"{name}_{axis}", "n"), INT64) if extent is None else None
            if symbol is not None:
                b.symbols.add(symbol)
                b.ranges[symbol] = Interval(0, MOST)
            shape.append(symbol if symbol is not None else number(extent or 0))
        buffer = self._parameter(name, [*shape, *(number(extent) for extent in kind.inner)], kind)
        memref_ops.check_layout(self.op, kind)
        if isinstance(kind.layout, AffineMap):
            self.layouts[name] = kind.layout
        view = memref_ops.view_of_argument(buffer, kind)
        if position in self.options.private:
            own = View.of(b.allocate(f"{name}_copy", buffer.shape, kind.element.dtype, self.op.span), view.inner)
            b.copy(view, own, _first_line(self.op))
            view = own
        b.bind(argument, of_buffer(b, self.op, view) if kind.kind == "vector" else view)

    def _parameter(self, name: str, shape: list[Expr], kind: Shaped) -> Buffer:
        buffer = make_buffer(name, tuple(shape), kind.element.dtype)
        self._add(buffer)
        return buffer

    def _add(self, buffer: Buffer) -> None:
        handle = Var(self.builder.name(f"{buffer.name}_handle", "p"), HANDLE)
        self.params.append(handle)
        self.buffer_map.append((handle, buffer))

    # ---- results

    def _result(self, end: Op, position: int, value: Value) -> None:
        """A result becomes one more parameter, which is written."""
        b = self.builder
        name = b.name(f"result{position}", "result")
        meaning = b.meanings.get(value)
        if isinstance(value.type, Scalar):
            buffer = make_buffer(name, (number(1),), value.type.dtype)
            self._add(buffer)
            b.store(buffer, (number(0),), b.expr(end, value), end.span)
            return
        if isinstance(meaning, Vector):
            buffer = make_buffer(name, tuple(number(extent) for extent in meaning.shape), value.type.element.dtype)
            self._add(buffer)
            b.fill(View.of(buffer), meaning.at, end.span)
            return
        if not isinstance(meaning, View):
            raise end.fail("a result has no translation")
        if value.type.kind == "memref":
            memref_ops.check_returned(b, end, value)
        if value.type.kind == "memref" and root(value) in self.op.block().arguments:
            self._described(end, name, root(value), meaning)
            return
        if value.type.kind == "memref" and (root(value) is not value or meaning.buffer not in b.own):
            raise end.fail("a view of memory that is allocated here is not translated")
        if not {v for extent in meaning.shape for v in free_variables(extent)} <= b.symbols:
            raise end.fail("a result whose extents are computed is not translated")
        if meaning.whole and meaning.buffer in b.own and meaning.buffer not in b.results and b.at_top(meaning.buffer):
            # The memory is the caller's from the start: it holds what is stored, and elsewhere anything.
            b.results.append(meaning.buffer)
            self._add(meaning.buffer)
            return
        if value.type.kind == "memref":
            raise end.fail("this memref as a result is not translated")
        buffer = make_buffer(name, meaning.shape, value.type.element.dtype)
        self._add(buffer)
        b.copy(meaning, View.of(buffer), end.span)

    def _described(self, end: Op, name: str, argument: Value, view: View) -> None:
        """A view of an argument's memory: what is seen of it is which one, the offset, the sizes and the strides."""
        found = view.metadata()
        if found is None:
            raise end.fail("this view as a result is not translated")
        offset, strides = found
        told = [number(self.op.block().arguments.index(argument)), offset, *view.shape, *strides]
        buffer = make_buffer(name, (number(len(told)),), INT64)
        self._add(buffer)
        for position, value in enumerate(told):
            self.builder.store(buffer, (number(position),), value, end.span)


def _first_line(op: Op) -> Span:
    span = op.span
    return replace(span, end_line=span.line, end_column=len(span.source.line(span.line)))


def find_functions(module: Op, name: str) -> list[Op]:
    """The functions with a body. Raises LayoutproofError for none."""
    found = [op for op in functions_of(module) if not is_declaration(op)]
    if not found:
        raise error(codes.MLIR_TEXT, f"{name} has no function with a body", module.span)
    return found


def read_functions(text: str, name: str) -> dict[str, Function]:
    """The functions of a module, by name, in order.

    Raises LayoutproofError where the text is no module, where `xdsl` is not installed, or, with the place, for an
    operation that has no translation.
    """
    module = read_module(text, name)
    return {str(op.attribute("sym_name")): translate(op, Options()) for op in find_functions(module, name)}


def read_module(text: str, name: str) -> Op:
    """The module of a text. Raises LayoutproofError where it is none, or where `xdsl` is not installed."""
    try:
        from layoutproof.importers.mlir.xdsl_reader import parse
    except ImportError as problem:
        if (problem.name or "").partition(".")[0] != "xdsl":
            raise
        raise error(
            codes.MLIR_TEXT,
            f"{name}: files of MLIR are read by the package xdsl, which is not installed",
            help="pip install 'layoutproof[mlir]'",
        ) from problem
    return parse(text, name)
