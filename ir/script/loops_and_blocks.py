"""Loops and blocks in a text: the ranges that a `for` may run over, and a block's axes, guard, regions, initialisation
and allocations.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer, BufferRegion, Range
from layoutproof.ir.diagnostic import counted
from layoutproof.ir.dtype import INT32, INT64, DType, Kind
from layoutproof.ir.expr import TRUE, Binary, Expr, IntImm, Var
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.script.declarations import BUFFER_PARAMETERS, BufferArguments, Environment, read_attributes
from layoutproof.ir.script.expressions import ExpressionReader, syntax_name
from layoutproof.ir.script.operands import extent_between
from layoutproof.ir.script.parsing import bind, did_you_mean, is_text, read_integer, read_list, read_string
from layoutproof.ir.stmt import Attributes, Block, ForKind, IterKind, IterVar, MatchBuffer, Stmt
from layoutproof.ir.visit import fresh


@dataclass(frozen=True, slots=True)
class LoopHead:
    """What one loop runs over; `T.grid` gives several. With a step, the domain's extent counts iterations."""

    domain: Range
    kind: ForKind
    thread: str | None = None
    annotations: Attributes = Attributes()
    step: int = 1


LOOP_KINDS: Mapping[str, ForKind] = {
    "range": ForKind.SERIAL,
    "serial": ForKind.SERIAL,
    "parallel": ForKind.PARALLEL,
    "vectorized": ForKind.VECTORIZED,
    "unroll": ForKind.UNROLLED,
    "thread_binding": ForKind.THREAD_BINDING,
}

LOOP_NAMES = frozenset({*LOOP_KINDS, "grid"})


def read_grid(reader: ExpressionReader, call: ast.Call) -> list[LoopHead]:
    """`T.grid(16, n)`: serial loops from zero, one for each extent."""
    if call.keywords:
        raise reader.text.fail(codes.WRONG_ARGUMENTS, "T.grid takes extents only", call.keywords[0])
    if not call.args:
        raise reader.text.fail(codes.WRONG_ARGUMENTS, "T.grid needs an extent", call)
    extents = [(node, reader.integer(node, "an extent of a loop")) for node in call.args]
    for node, extent in extents:
        _check_extent(reader, node, extent)
    return [LoopHead(Range(IntImm(0, e.dtype), e, span=reader.text.span(node)), ForKind.SERIAL) for node, e in extents]


def read_loop(reader: ExpressionReader, call: ast.Call, name: str, shown: str) -> LoopHead:
    """`range(n)`, `T.serial(start, stop)`, `T.thread_binding(n, thread="threadIdx.x")`."""
    kind = LOOP_KINDS[name]
    options = ("thread", "annotations") if kind is ForKind.THREAD_BINDING else ("annotations", "step")
    positional = ast.Call(call.func, call.args[:2], [])
    keywords = ast.Call(call.func, [], list(call.keywords))
    for node in (positional, keywords):
        ast.copy_location(node, call)
    if name == "range" and (len(call.args) > 3 or call.keywords):
        raise reader.text.fail(codes.WRONG_ARGUMENTS, "range takes an extent, or a start and a stop, and a step", call)
    if name == "range" and len(call.args) == 3:
        keywords.keywords.append(ast.keyword("step", call.args[2]))
    elif len(call.args) > 2:
        if kind is not ForKind.THREAD_BINDING or len(call.args) > 3:
            raise reader.text.fail(
                codes.WRONG_ARGUMENTS, f"{shown} takes an extent, or a start and a stop", call.args[2]
            )
        keywords.keywords.append(ast.keyword("thread", call.args[2]))
    bound = bind(reader.text, keywords, shown, ("start", "stop", *options), 0)
    limits = [*positional.args, *(bound[key] for key in ("start", "stop") if key in bound)]
    if (
        kind is ForKind.THREAD_BINDING
        and len(positional.args) == 2
        and "thread" not in bound
        and is_text(positional.args[1])
    ):
        bound["thread"] = limits.pop(1)  # T.thread_binding(16, "threadIdx.x")
    if len(limits) not in (1, 2):
        raise reader.text.fail(codes.WRONG_ARGUMENTS, f"{shown} takes an extent, or a start and a stop", call)
    if kind is ForKind.THREAD_BINDING and "thread" not in bound:
        raise reader.text.fail(codes.WRONG_ARGUMENTS, f'{shown} lacks its thread, such as thread="threadIdx.x"', call)
    thread = read_string(reader.text, bound["thread"], "a thread") if "thread" in bound else None
    annotations = (
        read_attributes(reader, bound["annotations"], "annotations") if "annotations" in bound else Attributes()
    )
    step = read_integer(reader.text, bound["step"], "the step of a loop") if "step" in bound else 1
    if step < 1:
        raise reader.text.fail(codes.WRONG_ARGUMENTS, f"a loop in steps of {step}", bound["step"])
    domain = _domain(reader, limits, call, name == "range")
    return LoopHead(_in_steps(reader, domain, step, call), kind, thread, annotations, step)


def _in_steps(reader: ExpressionReader, domain: Range, step: int, call: ast.Call) -> Range:
    """The range with the number of iterations for its extent."""
    dtype, extent = domain.extent.dtype, domain.extent
    if step == 1:
        return domain
    if isinstance(extent, IntImm):
        return Range(domain.start, IntImm(-(-extent.value // step), dtype), span=domain.span)
    most = reader.make(call, Binary, BinaryOp.ADD, extent, reader.constant(call, step - 1, dtype))
    return Range(
        domain.start,
        reader.make(call, Binary, BinaryOp.FLOORDIV, most, reader.constant(call, step, dtype)),
        span=domain.span,
    )


def _domain(reader: ExpressionReader, limits: list[ast.expr], call: ast.Call, from_int32: bool) -> Range:
    """The range between two limits, or from 0, which is an int32 in `range(n)` and has n's type in `T.serial(n)`."""
    if len(limits) == 1:
        extent = reader.integer(limits[0], "the extent of a loop")
        extent = reader.converted(extent, _loop_type(extent.dtype, INT32)) if from_int32 else extent
        _check_extent(reader, limits[0], extent)
        return Range(IntImm(0, extent.dtype), extent, span=reader.text.span(limits[0]))
    values = [reader.read(limit) for limit in limits]
    types = [value.dtype if isinstance(value, Expr) else value.default for value in values]
    for node, known in zip(limits, types, strict=True):
        if known is not None and (not known.is_integer or known.lanes > 1):
            raise reader.text.fail(codes.WRONG_TYPE, f"a loop ranges over integers, this has type {known}", node)
    dtype = _loop_type(*(known if known is not None else INT64 for known in types))
    start, stop = (reader.converted(value, dtype) for value in values)
    extent = extent_between(start, stop)
    _check_extent(reader, limits[1], extent)
    return Range(start, extent, span=reader.text.span(call))


def _loop_type(a: DType, b: DType) -> DType:
    """The type of a variable between limits of two types: as wide as the wider one, unsigned if one of them is.

    In arithmetic, TVM takes the wider type with its sign.
    """
    kind = Kind.UINT if Kind.UINT in (a.kind, b.kind) else Kind.INT
    return DType(kind, max(a.bits, b.bits))


def _check_extent(reader: ExpressionReader, node: ast.expr, extent: Expr) -> None:
    if isinstance(extent, IntImm) and extent.value < 0:
        raise reader.text.fail(codes.EXTENT, f"a loop of {extent.value} iterations", node)


class BodyReader(Protocol):
    """What reading a block needs of the reader of statements."""

    exprs: ExpressionReader
    env: Environment
    block_allocations: frozenset[str]

    def body(self, nodes: Sequence[ast.stmt]) -> Stmt:
        """The statements as one."""
        ...

    def script_call(self, node: ast.expr) -> tuple[str, ast.Call] | None:
        """The name behind `T.` and the call, for a call through the script's namespace."""

    def declare(self, node: ast.stmt) -> bool:
        """Bind the variables of `n = T.int32()`; False where the statement is something else."""
        ...


@dataclass(slots=True)
class _Header:
    """What has been read of a block so far."""

    iter_vars: list[IterVar] = field(default_factory=list[IterVar])
    init: Stmt | None = None
    where: Expr | None = None
    reads: tuple[BufferRegion, ...] | None = None
    writes: tuple[BufferRegion, ...] | None = None
    allocations: list[Buffer] = field(default_factory=list[Buffer])
    matches: list[MatchBuffer] = field(default_factory=list[MatchBuffer])
    annotations: Attributes | None = None


_KINDS = {
    "spatial": IterKind.SPATIAL, "S": IterKind.SPATIAL,
    "reduce": IterKind.REDUCE, "R": IterKind.REDUCE,
    "opaque": IterKind.OPAQUE, "O": IterKind.OPAQUE,
}  # fmt: skip
_LETTERS = {kind.value: kind for kind in IterKind}


class BlockReader:
    """Reads one `with T.block("name"):`."""

    def __init__(self, statements: BodyReader, node: ast.With, call: ast.Call, name: str) -> None:
        self.statements = statements
        self.reader = statements.exprs
        self.text = statements.exprs.text
        self.env = statements.env
        self.node = node
        bound = bind(self.text, call, name, ("name_hint",), 0)
        self.name = read_string(self.text, bound["name_hint"], "the name of a block") if bound else ""
        self.header = _Header()

    def read(self) -> Block:
        """The block."""
        with self.env.frame(self.node):
            taken = 0
            while taken < len(self.node.body) and self._takes(self.node.body[taken]):
                taken += 1
            body = self.statements.body(self.node.body[taken:])
        h = self.header
        return self.reader.make(
            self.node,
            partial(Block, init=h.init),
            self.name,
            tuple(h.iter_vars),
            body,
            h.where if h.where is not None else TRUE,
            h.reads,
            h.writes,
            tuple(h.allocations),
            tuple(h.matches),
            h.annotations if h.annotations is not None else Attributes(),
        )

    def _takes(self, node: ast.stmt) -> bool:
        """Read `node` where it belongs to the header; False at the first statement of the body."""
        if self.statements.declare(node):
            return True
        if isinstance(node, ast.With):
            return self._takes_init(node)
        value = node.value if isinstance(node, ast.Assign | ast.Expr) else None
        found = self.statements.script_call(value) if value is not None else None
        if found is None:
            return False
        name, call = found
        if isinstance(node, ast.Assign):
            return self._takes_assignment(node, name, call)
        handler = _HEADER_CALLS.get(name)
        if handler is None:
            return False
        handler(self, call, name)
        return True

    def _takes_init(self, node: ast.With) -> bool:
        found = self.statements.script_call(node.items[0].context_expr) if len(node.items) == 1 else None
        if found is None or found[0] != "init":
            return False
        bind(self.text, found[1], "T.init", (), 0)
        if self.header.init is not None:
            raise self.text.fail(codes.MISPLACED, "a block has one T.init", node)
        with self.env.frame(node):
            self.header.init = self.statements.body(node.body)
        return True

    def _takes_assignment(self, node: ast.Assign, name: str, call: ast.Call) -> bool:
        if name.startswith("axis."):
            self._axes(node, name, call)
        elif name in self.statements.block_allocations:
            target = self._target(node)
            bound = bind(self.text, call, f"T.{name}", BUFFER_PARAMETERS, 1)
            buffer = BufferArguments(self.reader, self.env).allocated(node, target, bound)
            self.env.bind(target, buffer, node.targets[0])
            self.header.allocations.append(buffer)
        elif name == "match_buffer":
            self._match(node, call)
        else:
            return False
        return True

    def _target(self, node: ast.Assign) -> str:
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            return node.targets[0].id
        raise self.text.fail(codes.UNSUPPORTED, "one name is expected on the left here", node.targets[0])

    def _match(self, node: ast.Assign, call: ast.Call) -> None:
        target = self._target(node)
        bound = bind(self.text, call, "T.match_buffer", ("param", *BUFFER_PARAMETERS), 2)
        source = read_region(self.reader, bound.pop("param"))
        buffer = BufferArguments(self.reader, self.env).buffer(node, target, bound, dtype=source.buffer.dtype)
        if buffer.offset_factor > 0 and "elem_offset" not in bound:
            # Such a buffer begins wherever the region does, and its text may ask where.
            buffer = replace(buffer, elem_offset=Var(fresh(f"{target}_elem_offset", self.env.names())))
        self.env.bind(target, buffer, node.targets[0])
        self.header.matches.append(self.reader.make(node, MatchBuffer, buffer, source))

    # ---- axes

    def _axes(self, node: ast.Assign, name: str, call: ast.Call) -> None:
        word = name.removeprefix("axis.")
        targets = node.targets[0]
        names = targets.elts if isinstance(targets, ast.Tuple | ast.List) else [targets]
        if len(node.targets) != 1 or not all(isinstance(n, ast.Name) for n in names):
            raise self.text.fail(codes.UNSUPPORTED, "names of axes are expected on the left here", targets)
        if word == "remap":
            self._remap([n for n in names if isinstance(n, ast.Name)], call)
        elif word in _KINDS and len(names) == 1 and isinstance(names[0], ast.Name):
            self._axis(names[0], _KINDS[word], call, f"T.{name}")
        elif word in _KINDS:
            raise self.text.fail(
                codes.WRONG_ARGUMENTS, f"T.{name} gives one axis, {len(names)} names stand on the left", targets
            )
        else:
            help = did_you_mean(word, (*_KINDS, "remap"), "T.axis.")
            raise self.text.fail(codes.UNKNOWN_FUNCTION, f"`T.{name}` is not known", call.func, help=help)

    def _axis(self, target: ast.Name, kind: IterKind, call: ast.Call, name: str) -> None:
        bound = bind(self.text, call, name, ("dom", "binding", "dtype"), 2)
        dom = bound["dom"]
        limits = read_list(self.text, dom, "a domain") if isinstance(dom, ast.Tuple | ast.List) else [dom]
        if len(limits) not in (1, 2):
            raise self.text.fail(codes.WRONG_ARGUMENTS, "the domain of an axis is an extent, or (start, stop)", dom)
        values = [self.reader.read(limit) for limit in limits]
        raw_stop, raw_binding = values[-1], self.reader.read(bound["binding"])
        for limit, value in ((bound["binding"], raw_binding), (limits[-1], raw_stop)):
            if isinstance(value, Expr) and value.dtype.lanes > 1:  # Matched, both would have them.
                raise self.text.fail(
                    codes.WRONG_TYPE, f"an axis ranges over integers, this has type {value.dtype}", limit
                )
        stop, binding = self.reader.matched(call, raw_stop, raw_binding)
        first = self.reader.strong(values[0], binding.dtype) if len(values) == 2 else stop
        for limit, value in ((bound["binding"], binding), (limits[0], first), (limits[-1], stop)):
            if not value.dtype.is_integer or value.dtype.lanes > 1:
                raise self.text.fail(
                    codes.WRONG_TYPE, f"an axis ranges over integers, this has type {value.dtype}", limit
                )
        start = first if len(values) == 2 else IntImm(0, binding.dtype)
        start, stop = self.reader.matched(call, start, stop)
        domain = Range(start, extent_between(start, stop) if len(values) == 2 else stop, span=self.text.span(dom))
        self._add(target, kind, domain, binding)

    def _remap(self, targets: list[ast.Name], call: ast.Call) -> None:
        bound = bind(self.text, call, "T.axis.remap", ("kinds", "bindings", "dtype"), 2)
        kinds = read_string(self.text, bound["kinds"], "the kinds of axes")
        bindings = read_list(self.text, bound["bindings"], "the bindings of axes")
        if not len(kinds) == len(bindings) == len(targets):
            counts = f"{len(targets)} names, {len(kinds)} kinds and {len(bindings)} bindings"
            raise self.text.fail(codes.WRONG_ARGUMENTS, f"T.axis.remap has {counts}; they must be as many", call)
        for target, letter, node in zip(targets, kinds, bindings, strict=True):
            if letter not in _LETTERS:
                message = f"{letter!r} is no kind of axis: S is spatial, R is reduce, O is opaque"
                raise self.text.fail(codes.WRONG_ARGUMENTS, message, bound["kinds"])
            domain = self.env.loop_range(node.id) if isinstance(node, ast.Name) else None
            if domain is None:
                help = "write T.axis.spatial(extent, binding)"
                raise self.text.fail(codes.WRONG_ARGUMENTS, "T.axis.remap takes loop variables only", node, help=help)
            self._add(target, _LETTERS[letter], domain, self.reader.expr(node))

    def _add(self, target: ast.Name, kind: IterKind, domain: Range, binding: Expr) -> None:
        var = Var(target.id, binding.dtype, span=self.text.span(target))
        self.env.bind(target.id, var, target)
        self.header.iter_vars.append(self.reader.make(target, IterVar, var, kind, domain, binding))

    # ---- remarks

    def _regions(self, call: ast.Call, name: str) -> tuple[BufferRegion, ...]:
        if call.keywords:
            raise self.text.fail(codes.WRONG_ARGUMENTS, f"T.{name} takes regions of buffers", call.keywords[0])
        entries = list(call.args)
        if len(entries) == 1 and isinstance(entries[0], ast.List | ast.Tuple):
            entries = read_list(self.text, entries[0], f"T.{name}")
        return tuple(read_region(self.reader, entry) for entry in entries)

    def reads(self, call: ast.Call, name: str) -> None:
        """T.reads(...)."""
        self._once(self.header.reads, call, name)
        self.header.reads = self._regions(call, name)

    def writes(self, call: ast.Call, name: str) -> None:
        """T.writes(...)."""
        self._once(self.header.writes, call, name)
        self.header.writes = self._regions(call, name)

    def where(self, call: ast.Call, name: str) -> None:
        """T.where(condition)."""
        self._once(self.header.where, call, name)
        self.header.where = self.reader.condition(bind(self.text, call, f"T.{name}", ("predicate",), 1)["predicate"])

    def attributes(self, call: ast.Call, name: str) -> None:
        """T.block_attr({...})."""
        self._once(self.header.annotations, call, name)
        self.header.annotations = read_attributes(
            self.reader, bind(self.text, call, f"T.{name}", ("attrs",), 1)["attrs"], f"T.{name}"
        )

    def _once(self, earlier: object, call: ast.Call, name: str) -> None:
        if earlier is not None:
            raise self.text.fail(codes.MISPLACED, f"a block has one T.{name}", call)


_HEADER_CALLS: Mapping[str, Callable[[BlockReader, ast.Call, str], None]] = {
    "reads": BlockReader.reads,
    "writes": BlockReader.writes,
    "where": BlockReader.where,
    "block_attr": BlockReader.attributes,
    "sblock_attr": BlockReader.attributes,
}

HEADER_NAMES = frozenset(_HEADER_CALLS)


def read_region(reader: ExpressionReader, node: ast.expr) -> BufferRegion:
    """A box of a buffer: `A[i, 0:4]`, `A[i, :]`, or `A` for all of it."""
    if not isinstance(node, ast.Subscript):
        if not isinstance(node, ast.Name):
            raise reader.text.fail(codes.BUFFER_USE, f"a region of a buffer is expected, not {syntax_name(node)}", node)
        buffer = reader.buffer(node)
        whole = tuple(Range(IntImm(0, extent.dtype), extent) for extent in buffer.shape)
        return reader.make(node, BufferRegion, buffer, whole)
    buffer = reader.buffer(node.value)
    entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(entries) != buffer.rank:
        message = f"{buffer.name} has {counted(buffer.rank, 'axis', 'axes')}, this region has {len(entries)}"
        raise reader.text.fail(codes.BUFFER_USE, message, node)
    ranges = tuple(_range(reader, entry, extent) for entry, extent in zip(entries, buffer.shape, strict=True))
    return reader.make(node, BufferRegion, buffer, ranges)


def _range(reader: ExpressionReader, entry: ast.expr, extent: Expr) -> Range:
    if not isinstance(entry, ast.Slice):
        start = reader.integer(entry, "an index of a region")
        return reader.make(entry, Range, start, IntImm(1, start.dtype))
    if entry.step is not None:
        raise reader.text.fail(codes.UNSUPPORTED, "a region has no steps", entry.step)
    start = reader.integer(entry.lower, "the start of a region") if entry.lower is not None else IntImm(0, extent.dtype)
    stop = reader.integer(entry.upper, "the stop of a region", start.dtype) if entry.upper is not None else extent
    start, stop = reader.matched(entry, start, stop)
    return reader.make(entry, Range, start, extent_between(start, stop))
