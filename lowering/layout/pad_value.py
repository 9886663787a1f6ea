"""Pad values: the contents of padding, as people write them and as layout records keep them; and the program text of a
padding contract, a stage for a postcondition or for an assumption.

None (the padding must not be touched), `undef`, a constant, or a function of the physical index, which may load
elements of the buffer itself, never padding.

Source: TVM's RFC `layout-transformation-padding-roadmap`, "Defining Padded Values".
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from layoutproof.ir.buffer import Buffer, BufferLoad, BufferRegion, Range
from layoutproof.ir.diagnostic import LayoutproofError, Source, counted, error
from layoutproof.ir.dtype import FLOAT32, DType
from layoutproof.ir.evaluate import Overflow, evaluate
from layoutproof.ir.expr import FALSE, TRUE, Expr, IfThenElseExpr, IntImm, Not, Select, Var, compare, const, logical_or
from layoutproof.ir.intrinsics import Assume, OpaqueCall, Undef, undef
from layoutproof.ir.layout_record import Contract
from layoutproof.ir.node import Node, Steps, comparisons_refused, trampoline
from layoutproof.ir.operators import CompareOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.expressions import ExpressionReader, Names
from layoutproof.ir.script.functions import FUNCTIONS, PLAIN_FUNCTIONS, PLAIN_NAMESPACES
from layoutproof.ir.script.parsing import Text, parse_expression
from layoutproof.ir.semantics import Trap, int_to_float, round_float
from layoutproof.ir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IterKind,
    IterVar,
    Let,
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables, fresh, mapped, names_in, substitute, take_fresh, walk
from layoutproof.lowering import codes
from layoutproof.lowering.passes.effects import data_written

PadText = None | int | float | str


def read_pad_value(
    pad: PadText, physical: Buffer, buffers: Iterable[Buffer], symbols: Iterable[Var]
) -> Contract | None:
    """The pad value that a number or text states for the transformed buffer `physical`; None for no contract.

    `buffers` are all of the function, so that a message can name a load from another one; `symbols` may be used as
    constants. Raises LayoutproofError for a wrong type or arity, a load from another buffer, and `undef` inside a
    larger value.
    """
    if pad is None:
        return None
    inputs = tuple(Var(f"p{axis}", extent.dtype) for axis, extent in enumerate(physical.shape))
    if isinstance(pad, bool | int | float):
        return Contract(inputs, constant_of(pad, physical.dtype))
    tree, text = parse_expression(Source("<pad value>", pad), "a pad value")
    if isinstance(tree, ast.Lambda):
        inputs, tree = _lambda_inputs(tree, text, physical), tree.body
    if isinstance(tree, ast.Constant) and tree.value is None:
        return None
    if isinstance(tree, ast.List | ast.Tuple):
        raise text.fail(codes.PAD_TYPE, f"a pad value is one value, this is a list of {len(tree.elts)}", tree)
    names: dict[str, Expr | Buffer] = {b.name: b for b in buffers}
    names |= {s.name: s for s in symbols} | {physical.name: physical} | {v.name: v for v in inputs}
    value = _read(tree, text, names, physical.dtype)
    return checked(Contract(inputs, value), physical)


def _read(tree: ast.expr, text: Text, names: Mapping[str, Expr | Buffer], dtype: DType) -> Expr:
    number = _plain_number(tree)
    if number is not None:
        try:
            return constant_of(number, dtype)
        except LayoutproofError as problem:
            raise text.fail(codes.PAD_TYPE, problem.diagnostics[0].message, tree) from problem
    reader = ExpressionReader(text, Names(names), FUNCTIONS, PLAIN_NAMESPACES, PLAIN_FUNCTIONS)
    return reader.expr(tree, dtype)


def _plain_number(tree: ast.expr) -> int | float | None:
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        inner = _plain_number(tree.operand)
        return None if inner is None else -inner
    if isinstance(tree, ast.Constant) and isinstance(tree.value, bool | int | float):
        return tree.value
    return None


def _lambda_inputs(tree: ast.Lambda, text: Text, physical: Buffer) -> tuple[Var, ...]:
    arguments = tree.args
    if arguments.vararg is not None or arguments.kwarg is not None or arguments.kwonlyargs or arguments.defaults:
        raise text.fail(codes.PAD_TYPE, "a pad value takes the physical indices, one by one", tree)
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    if len(names) != physical.rank:
        raise text.fail(codes.PAD_TYPE, _arity(len(names), physical), tree)
    if len(set(names)) != len(names):
        raise text.fail(codes.PAD_TYPE, "two indices of the pad value have one name", tree)
    return tuple(Var(name, extent.dtype) for name, extent in zip(names, physical.shape, strict=True))


def _arity(count: int, physical: Buffer) -> str:
    takes, axes = counted(count, "index", "indices"), counted(physical.rank, "physical axis", "physical axes")
    return f"the pad value takes {takes}, {physical.name} has {axes}"


def constant_of(value: bool | int | float, dtype: DType) -> Expr:
    """A plain number as a constant of `dtype`. Raises LayoutproofError if it is not one (0.5 of an integer type)."""
    element = dtype.element
    wrong = error(codes.PAD_TYPE, f"the pad value {value!r} is not a constant of type {element}")
    if element.is_bool:
        if not isinstance(value, bool):
            raise wrong
        return const(value, dtype)
    if isinstance(value, bool):
        raise wrong
    if element.is_float:
        overflow = math.isfinite(value) and not math.isfinite(round_float(float(value), element))
        if overflow or (isinstance(value, int) and int_to_float(value, element) != value):
            raise wrong
        return const(float(value), dtype)
    if isinstance(value, float) or not element.min_int <= value <= element.max_int:
        raise wrong
    return const(value, dtype)


def checked(pad: Contract, physical: Buffer) -> Contract:
    """The pad value, once it is one that the buffer can have."""
    place = pad.value.span
    if pad.value.dtype != physical.dtype:
        raise error(
            codes.PAD_TYPE, f"the pad value has type {pad.value.dtype}, {physical.name} holds {physical.dtype}", place
        )
    if len(pad.inputs) not in (0, physical.rank):
        raise error(codes.PAD_TYPE, _arity(len(pad.inputs), physical), place)
    for node in walk(pad.value):
        if isinstance(node, BufferLoad) and node.buffer.name != physical.name:
            message = (
                f"the pad value loads {node.buffer.name}: only constants and {physical.name} itself may stand in it"
            )
            raise error(codes.PAD_LOADS, message, node.span)
        if isinstance(node, OpaqueCall | Assume):
            raise error(codes.PAD_LOADS, "a pad value is a pure expression", node.span)
        if isinstance(node, BufferLoad) and any(isinstance(n, Undef) for i in node.indices for n in walk(i)):
            raise error(codes.PAD_UNDEF, "the pad value has undef in an index", node.span)
        if isinstance(node, Select | IfThenElseExpr) and any(isinstance(n, Undef) for n in walk(node.condition)):
            raise error(codes.PAD_UNDEF, "the pad value has undef in a condition", node.span)
    if not pad.is_undef and any(isinstance(node, Undef) for node in walk(pad.value)):
        raise error(codes.PAD_UNDEF, "undef may only be the whole pad value, not a part of it", place)
    return pad


def pad_text(pad: Any, rank: int, dtype: DType) -> PadText:
    """An argument of the schedule's method as a trace holds it: null, a number, or text.

    Takes None, a number, text, an expression, `undef`, or a function of the `rank` physical indices that returns one of
    these; `dtype` is the buffer's. A load from the buffer itself is written by its name. Raises LayoutproofError for
    anything else.
    """
    if pad is undef:
        return "T.undef()"
    if isinstance(pad, np.generic):
        pad = pad.item()
    if pad is None or isinstance(pad, str | bool | int):
        return pad
    if isinstance(pad, float):
        return pad if math.isfinite(pad) else f'T.{dtype.element if dtype.is_float else FLOAT32}("{pad}")'
    if isinstance(pad, Expr):
        return expr_text(pad)
    if callable(pad):
        return _function_text(pad, rank, dtype)
    raise error(
        codes.PAD_TYPE, f"a pad value is None, a number, an expression, text or a function, not {type(pad).__name__}"
    )


def _function_text(function: Callable[..., Any], rank: int, dtype: DType) -> str:
    names: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names.extend(f"{parameter.name}_{k}" for k in range(rank - len(names)))
        else:
            names.append(parameter.name)
    if len(names) != rank:
        takes, axes = counted(len(names), "index", "indices"), counted(rank, "physical axis", "physical axes")
        raise error(codes.PAD_TYPE, f"the pad value takes {takes}, the buffer has {axes}")
    try:
        with comparisons_refused():
            result = function(*(Var(name) for name in names))
    except TypeError as problem:
        raise error(codes.PAD_TYPE, f"the pad value cannot be evaluated: {problem}") from problem
    if isinstance(result, list | tuple):
        raise error(codes.PAD_TYPE, f"a pad value is one value, the function returned {len(result)}")
    inner = pad_text(result, rank, dtype)
    return f"lambda {', '.join(names)}: {inner if isinstance(inner, str) else repr(inner)}"


_MOST_CELLS = 1 << 22


def check_self_loads(pad: Contract, predicate: Expr, physical: Buffer) -> None:
    """Raise LayoutproofError unless every load of the pad value, at every padding cell, is of a cell that `predicate`
    is false for.

    `predicate` is over `p0, p1, ...`. Loads under a condition count too.
    """
    loads = [node for node in walk(pad.value) if isinstance(node, BufferLoad)]
    if not loads or predicate == FALSE:
        return
    if not pad.value.dtype.is_float and not isinstance(pad.value, BufferLoad):
        raise error(
            codes.PAD_REFERENCE,
            f"a pad value of {physical.dtype} that loads from {physical.name} is one load and nothing else",
        )
    known = {*(v.name for v in pad.inputs), *(f"p{axis}" for axis in range(physical.rank))}
    parts = (predicate, *(index for load in loads for index in load.indices))
    symbols = [v.name for part in parts for v in free_variables(part) if v.name not in known]
    if symbols:
        raise error(
            codes.PAD_REFERENCE,
            f"a pad value that loads from {physical.name} may not depend on the symbol {symbols[0]}",
        )
    shape = tuple(extent.value for extent in physical.shape if isinstance(extent, IntImm))
    if len(shape) != physical.rank or prod(shape) > _MOST_CELLS:
        raise error(
            codes.PAD_REFERENCE,
            f"a pad value that loads from {physical.name} needs constant extents of at most {_MOST_CELLS} cells",
        )
    cells = np.indices(shape, dtype=np.int64).reshape(len(shape), -1)
    padding = cells[:, _holds(predicate, cells)]
    for load in loads:
        if any(isinstance(node, BufferLoad) for index in load.indices for node in walk(index)):
            raise error(
                codes.PAD_REFERENCE, f"a pad value loads from {physical.name} at an index that is itself loaded"
            )
        env = {v.name: axis for v, axis in zip(pad.inputs, padding, strict=True)}
        try:
            at = np.stack(
                [np.broadcast_to(np.asarray(evaluate(i, env), dtype=np.int64), padding.shape[1:]) for i in load.indices]
            )
        except (Trap, Overflow, TypeError) as problem:
            why = str(problem) or "a number past 64 bits"
            raise error(
                codes.PAD_REFERENCE, f"a pad value loads from {physical.name} at an index without a value: {why}"
            ) from problem
        inside = np.all((at >= 0) & (at < np.asarray(shape, dtype=np.int64)[:, None]), axis=0)
        wrong = ~inside
        wrong[inside] = _holds(predicate, at[:, inside])
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            cell, target = ([int(i) for i in column] for column in (padding[:, first], at[:, first]))
            what = "padding too" if inside[first] else "outside the buffer"
            raise error(
                codes.PAD_REFERENCE,
                f"the pad value of {physical.name}{cell} loads {physical.name}{target}, which is {what}",
            )


def _holds(
    predicate: Expr, cells: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """The predicate at each column of `cells`."""
    value = evaluate(predicate, {f"p{axis}": row for axis, row in enumerate(cells)})
    return np.broadcast_to(np.asarray(value, dtype=np.bool_), cells.shape[1:])


@dataclass(frozen=True, slots=True)
class Padding:
    """The padding of one transform: a physical buffer, where its padding is (over `variables`), and what it holds."""

    buffer: Buffer
    variables: tuple[Var, ...]
    predicate: Expr
    value: Contract


def padding_stage(padding: Padding, taken: set[str]) -> Stmt:
    """`for p in grid(box): if is_padding(p): B[p] = v`, as a block. `taken` are names in use."""

    def body(cell: tuple[Expr, ...]) -> Stmt:
        return BufferStore(padding.buffer, cell, padding.value.at(cell))

    return _stage(padding, f"buffer_{padding.buffer.name}_padding", taken, body_guarded=True, writes=True, make=body)


def assume_stage(padding: Padding, taken: set[str]) -> Stmt:
    """`for p in grid(box): assume(not is_padding(p) or A[p] == v)`, as a block."""

    def body(cell: tuple[Expr, ...]) -> Stmt:
        known = compare(CompareOp.EQ, BufferLoad(padding.buffer, cell), padding.value.at(cell))
        predicate = substitute(padding.predicate, dict(zip(padding.variables, cell, strict=True)))
        return Evaluate(Assume(logical_or(Not(predicate), known)))

    return _stage(
        padding, f"buffer_{padding.buffer.name}_assumptions", taken, body_guarded=False, writes=False, make=body
    )


def _stage(
    padding: Padding,
    name: str,
    taken: set[str],
    *,
    body_guarded: bool,
    writes: bool,
    make: Callable[[tuple[Expr, ...]], Stmt],
) -> Stmt:
    loops: list[Var] = []
    iter_vars: list[IterVar] = []
    used = set(taken)
    for variable, extent in zip(padding.variables, padding.buffer.shape, strict=True):
        loop = Var(take_fresh(variable.name, used), extent.dtype)
        axis = Var(take_fresh(f"v_{loop.name}", used), extent.dtype)
        loops.append(loop)
        iter_vars.append(IterVar(axis, IterKind.SPATIAL, Range(const(0, extent.dtype), extent), loop))
    cell = tuple(v.var for v in iter_vars)
    guard = substitute(padding.predicate, dict(zip(padding.variables, loops, strict=True))) if body_guarded else TRUE
    own = BufferRegion.cell(padding.buffer, cell)
    loads = [n for n in walk(padding.value.at(cell)) if isinstance(n, BufferLoad)]
    regions = tuple(BufferRegion.cell(load.buffer, load.indices) for load in loads)
    statement: Stmt = Block(
        fresh(name, used),
        tuple(iter_vars),
        make(cell),
        where=guard,
        reads=regions if writes else (own, *regions),
        writes=(own,) if writes else (),
    )
    for loop, extent in reversed(list(zip(loops, padding.buffer.shape, strict=True))):
        statement = For(loop, const(0, extent.dtype), extent, ForKind.SERIAL, statement)
    return statement


def with_padding_stage(func: PrimFunc, padding: Padding) -> PrimFunc:
    """The function with the padding written right after the last stage that writes the buffer."""
    stage = padding_stage(padding, taken_names(func))
    return func.with_body(
        _in_home(func.body, padding.buffer, func, lambda home: _after_last_write(home, padding.buffer, stage))
    )


def with_assume_stage(func: PrimFunc, padding: Padding) -> PrimFunc:
    """The function with the assumption at its start."""
    stage = assume_stage(padding, taken_names(func))
    return func.with_body(_in_home(func.body, padding.buffer, func, lambda home: seq(stage, home)))


def taken_names(func: PrimFunc) -> set[str]:
    """Every name in use in a function."""
    return (
        names_in(func.body)
        | {p.name for p in func.params}
        | {n for b in func.buffers for n in (b.name, b.data.name)}
        | _symbols(func)
    )


def _symbols(func: PrimFunc) -> set[str]:
    return {node.name for b in func.buffers for node in walk(b) if isinstance(node, Var)}


def _in_home(stmt: Stmt, buffer: Buffer, func: PrimFunc, insert: Callable[[Stmt], Stmt]) -> Stmt:
    """The body with `insert` applied to the buffer's home: the statement that allocates it, or the function's body."""
    if buffer in func.buffers:
        return _in_shell(stmt, insert)

    def visit(node: Node) -> Node | Steps[Node, Node]:
        if isinstance(node, Allocate) and node.buffer == buffer:
            return replace(node, body=_in_shell(node.body, insert))
        if isinstance(node, Block) and buffer in node.alloc_buffers:
            return replace(node, body=_in_shell(node.body, insert))
        return mapped(node) if isinstance(node, Stmt) else node

    result = trampoline(visit, stmt)
    assert isinstance(result, Stmt)
    return result


def _in_shell(stmt: Stmt, insert: Callable[[Stmt], Stmt]) -> Stmt:
    """The body with `insert` applied below declarations: allocations, aliases, a root block."""
    around: list[Allocate | DeclBuffer | AttrStmt | Let | Block] = []
    while isinstance(stmt, Allocate | DeclBuffer | AttrStmt | Let) or (isinstance(stmt, Block) and stmt.is_root):
        around.append(stmt)
        stmt = stmt.body
    stmt = insert(stmt)
    for outer in reversed(around):
        stmt = replace(outer, body=stmt)
    return stmt


def _after_last_write(home: Stmt, buffer: Buffer, stage: Stmt) -> Stmt:
    parts: Sequence[Stmt] = home.body if isinstance(home, Seq) else (home,)
    writers = [n for n, part in enumerate(parts) if buffer.data in data_written(part)]
    last = writers[-1] if writers else len(parts) - 1
    return seq(*parts[: last + 1], stage, *parts[last + 1 :])
