"""From definitions to a function: one nest of loops and one block for each computed tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from layoutproof.ir.buffer import Buffer, BufferLoad, BufferRegion, Range, make_buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import HANDLE, DType
from layoutproof.ir.expr import Binary, Expr, FloatImm, Var, const
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import max_finite
from layoutproof.ir.stmt import Attributes, Block, BufferStore, For, ForKind, IterVar, Stmt, seq
from layoutproof.ir.visit import free_variables, map_children, take_fresh, walk
from layoutproof.ir.wellformed import require_wellformed
from layoutproof.lowering import codes
from layoutproof.lowering.te.tensor import (
    Axis,
    Combiner,
    Computed,
    Reduction,
    Scheduled,
    Tensor,
    TensorRead,
    checked_name,
)

_STEPS: Mapping[Combiner, BinaryOp] = {
    Combiner.SUM: BinaryOp.ADD,
    Combiner.PROD: BinaryOp.MUL,
    Combiner.MIN: BinaryOp.MIN,
    Combiner.MAX: BinaryOp.MAX,
}


@dataclass(frozen=True, slots=True)
class Program:
    """A function, its tensors, and the loop variable of each axis."""

    func: PrimFunc
    tensors: tuple[Tensor, ...]
    loops: Mapping[Axis, str]


def create_prim_func(args: Sequence[Tensor | Var], name: str = "main") -> PrimFunc:
    """The function that computes some tensors from others.

    `args` are its parameters in order: tensors, given or computed, and variables. Intermediate tensors are allocated.
    Raises LayoutproofError where an input is no parameter, a size has no value, or two tensors share a name.
    """
    return program_of(args, name).func


def program_of(args: Sequence[Tensor | Var], name: str = "main") -> Program:
    """`create_prim_func`, with the loops that the axes became."""
    function = checked_name(name, "the function")
    given_args: Sequence[object] = args
    for arg in given_args:
        if (
            not isinstance(arg, Tensor | Var)
            or isinstance(arg, Axis)
            or (isinstance(arg, Tensor) and isinstance(arg.op, Scheduled))
        ):
            raise error(
                codes.TE_PARAMETERS, f"{arg!r} is no parameter: a tensor that was defined, or a variable, is expected"
            )
    twice = next((arg for n, arg in enumerate(args) if arg in args[:n]), None)
    if twice is not None:
        raise error(codes.TE_PARAMETERS, f"{twice.name} is a parameter twice")
    tensors = computed_order([arg for arg in args if isinstance(arg, Tensor)])
    given = [t for t in tensors if not isinstance(t.op, Computed) and t not in args]
    if given:
        names = ", ".join(t.name for t in given)
        raise error(codes.TE_PARAMETERS, f"{names}: read, but neither computed nor a parameter of {function}")
    if not any(isinstance(t.op, Computed) for t in tensors):
        raise error(codes.TE_PARAMETERS, f"no parameter of {function} is computed")
    _check_names(args, tensors)
    return _Building(function, args, tensors).program()


def computed_order(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors and everything that they are computed from, in dependence order."""
    done: dict[Tensor, None] = {}
    stack = [(tensor, False) for tensor in reversed(tensors)]
    while stack:
        tensor, visited = stack.pop()
        if visited:
            done[tensor] = None
        elif tensor not in done:
            stack.append((tensor, True))
            stack += [(read, False) for read in reversed(reads_of(tensor))]
    return tuple(done)


def reads_of(tensor: Tensor) -> tuple[Tensor, ...]:
    """The tensors that one reads, in order of the text."""
    if not isinstance(tensor.op, Computed):
        return ()
    return tuple(dict.fromkeys(n.tensor for n in walk(tensor.op.value) if isinstance(n, TensorRead)))


def _check_names(args: Sequence[Tensor | Var], tensors: Sequence[Tensor]) -> None:
    """Raise LayoutproofError where two things share a name, and for variables that no parameter gives."""
    named: dict[str, str] = {}
    variables = [*(arg for arg in args if isinstance(arg, Var)), *(v for t in tensors for v in _symbols(t))]
    scalars = {arg for arg in args if isinstance(arg, Var)}
    sizes = {v.name: v for v in variables}
    for what, names in (("tensor", [t.name for t in tensors]), ("variable", list(sizes))):
        for name in names:
            if name in named:
                one = "two tensors" if named[name] == what else "a tensor and a variable"
                raise error(
                    codes.TE_NAME,
                    f"{one} are called {name}; give each a name of its own",
                    help="names are given as name=...",
                )
            named[name] = what
    for each in variables:
        if sizes[each.name] != each:
            raise error(
                codes.TE_NAME, f"the variable {each.name} is a {each.dtype} here and a {sizes[each.name].dtype} there"
            )
    bound = {e for arg in args if isinstance(arg, Tensor) for e in arg.shape if isinstance(e, Var)} | scalars
    for size in sizes.values():
        if size not in bound:
            message = f"the variable {size.name} has no value: no parameter is called so, and none has it for an extent"
            raise error(codes.TE_PARAMETERS, message)


def _symbols(tensor: Tensor) -> Iterator[Var]:
    """The variables of a definition that are no axes."""
    nodes: list[Node] = [*tensor.shape]
    if isinstance(tensor.op, Computed):
        nodes += [
            tensor.op.value,
            *(e for axis in (*tensor.op.axis, *tensor.op.reduce_axis) for e in (axis.start, axis.extent)),
        ]
    for node in nodes:
        yield from (v for v in free_variables(node) if not isinstance(v, Axis))


@dataclass(slots=True)
class _Building:
    """One function in progress: the names of its tensors and axes."""

    name: str
    args: Sequence[Tensor | Var]
    tensors: Sequence[Tensor]
    buffers: dict[Tensor, Buffer] = field(default_factory=dict)
    loops: dict[Axis, str] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)

    def program(self) -> Program:
        self.fixed = {t.name for t in self.tensors} | {v.name for t in self.tensors for v in _symbols(t)}
        self.fixed |= {arg.name for arg in self.args if isinstance(arg, Var)} | {f"{t.name}_data" for t in self.tensors}
        for tensor in self.tensors:
            self.buffers[tensor] = make_buffer(tensor.name, tensor.shape, tensor.dtype)
        params = tuple(Var(f"{arg.name}_handle", HANDLE) if isinstance(arg, Tensor) else arg for arg in self.args)
        pairs = zip(params, self.args, strict=True)
        mapped = tuple((param, self.buffers[arg]) for param, arg in pairs if isinstance(arg, Tensor))
        body = seq(*(self.stage(t, t.op) for t in self.tensors if isinstance(t.op, Computed)))
        inner = tuple(self.buffers[t] for t in self.tensors if t not in self.args)
        if inner:
            body = Block("root", (), body, alloc_buffers=inner)
        func = PrimFunc(self.name, params, mapped, body, Attributes({"tirx.noalias": True}))
        return Program(require_wellformed(func), tuple(self.tensors), self.loops)

    def stage(self, tensor: Tensor, op: Computed) -> Stmt:
        """The loops and the block of one tensor."""
        axes = (*op.axis, *op.reduce_axis)
        taken = set(self.fixed)
        loops = [Var(take_fresh(axis.name, taken), axis.dtype) for axis in axes]
        own = [Var(take_fresh(f"v_{axis.name}", taken), axis.dtype) for axis in axes]
        self.loops |= {axis: loop.name for axis, loop in zip(axes, loops, strict=True)}
        values: dict[Axis, Expr] = dict(zip(axes, own, strict=True))
        iters = tuple(
            IterVar(v, axis.kind, Range(axis.start, axis.extent), loop)
            for axis, v, loop in zip(axes, own, loops, strict=True)
        )
        body: Stmt = self.block(tensor, op, iters, values)
        for axis, loop in zip(reversed(axes), reversed(loops), strict=True):
            body = For(loop, axis.start, axis.extent, ForKind.SERIAL, body)
        return body

    def block(self, tensor: Tensor, op: Computed, iters: tuple[IterVar, ...], values: Mapping[Axis, Expr]) -> Block:
        buffer = self.buffers[tensor]
        index = tuple(values[axis] for axis in op.axis)
        init: Stmt | None = None
        reduction = op.value
        if isinstance(reduction, Reduction):
            read = self.formula(reduction.value, values)
            value: Expr = Binary(_STEPS[reduction.combiner], BufferLoad(buffer, index), read)
            init = BufferStore(buffer, index, identity(reduction.combiner, buffer.dtype))
        else:
            value = read = self.formula(op.value, values)
        reads = _regions(read)
        writes = (BufferRegion.cell(buffer, index),) if reads is not None else None
        store = BufferStore(buffer, index, value)
        return Block(tensor.name, iters, store, init=init, reads=reads, writes=writes)

    def formula(self, value: Expr, values: Mapping[Axis, Expr]) -> Expr:
        """A definition's value with the block's variables and buffers in it."""

        def visit(node: Node) -> Node:
            if isinstance(node, Axis):
                return values[node]
            if isinstance(node, TensorRead):
                indices = tuple(i for index in node.indices if isinstance(i := visit(index), Expr))
                return BufferLoad(self.buffers[node.tensor], indices, span=node.span)
            return map_children(node, visit)

        result = visit(value)
        assert isinstance(result, Expr)
        return result


def _regions(value: Expr) -> tuple[BufferRegion, ...] | None:
    """The elements that a value reads, one for each buffer; None where a buffer is read at several places."""
    loads = dict.fromkeys(n for n in walk(value) if isinstance(n, BufferLoad))
    outer = [load for load in loads if not any(load in walk(i) for other in loads for i in other.indices)]
    if len(outer) != len(loads) or len({load.buffer for load in loads}) != len(loads):
        return None
    return tuple(BufferRegion.cell(load.buffer, load.indices) for load in loads)


def identity(combiner: Combiner, dtype: DType) -> Expr:
    """The start of a reduction: 0, 1, or the end of the type that loses against every value (finite for floats, as
    upstream).
    """
    match combiner:
        case Combiner.SUM:
            return const(0, dtype)
        case Combiner.PROD:
            return const(1, dtype)
        case Combiner.MIN:
            return FloatImm(max_finite(dtype), dtype) if dtype.is_float else const(dtype.max_int, dtype)
        case Combiner.MAX:
            return FloatImm(-max_finite(dtype), dtype) if dtype.is_float else const(dtype.min_int, dtype)
