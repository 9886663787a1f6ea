"""What the C back end accepts, checked before any text is generated: a refusal names the place and the remedy.

The whole function is checked, and all problems are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, error
from layoutproof.ir.dtype import Kind
from layoutproof.ir.expr import IntImm, Var
from layoutproof.ir.intrinsics import Assume, OpaqueCall, Reducer, StringImm, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import (
    Allocate,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    Let,
    Stmt,
    make_room_for,
)
from layoutproof.ir.visit import children, walk
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.calling_convention import MemoryMap, find_memory, pointer_source

MAX_EXPRESSION = 1000  # operations inside one another in generated code; compilers have limits of that order

KERNELS_OWN = ("shared", "shared.dyn")
"""Scopes of memory that a kernel allocates; no parameter is in one."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a target accepts. `textures` is the memory scope of its images, if any: their accesses are checked
    elsewhere.
    """

    name: str
    assumptions: bool = False
    textures: str | None = None

    @property
    def scopes(self) -> tuple[str, ...]:
        """Its memory scopes."""
        return ("", "global", "local", *KERNELS_OWN, *((self.textures,) if self.textures is not None else ()))


C = Target("the C target")


def check_c(func: PrimFunc) -> MemoryMap:
    """The memory of a function that can be written as C. Raises LayoutproofError (LP401 to LP404) with everything that
    cannot.
    """
    return check_target(func, C)


def check_target(func: PrimFunc, target: Target) -> MemoryMap:
    """The memory of a function that a target accepts. Raises LayoutproofError: LP401 to LP403 with every problem, LP404
    for an expression nested too deeply.
    """
    depth = expression_depth(func.body)
    if depth > MAX_EXPRESSION:
        message = (
            f"an expression of {func.name} is nested too deeply: {depth} levels, of which generated code has at most "
            f"{MAX_EXPRESSION}"
        )
        raise error(codes.TOO_DEEP, message, func.span)
    make_room_for(depth)
    found = (d for node in walk(func.body) for d in _CHECKS.get(type(node), _nothing)(target, node))
    problems = [*_check_parameters(target, func), *found]
    if problems:
        raise LayoutproofError(dict.fromkeys(problems))
    memory = find_memory(func)
    accesses = (node for node in walk(func.body) if isinstance(node, BufferLoad | BufferStore))
    unknown = [problem for access in accesses for problem in _check_declared(access, memory)]
    if unknown:
        raise LayoutproofError(dict.fromkeys(unknown))
    return memory


def _check_parameters(target: Target, func: PrimFunc) -> Iterator[Diagnostic]:
    mapped = dict(func.buffer_map)
    owners: dict[str, Buffer] = {}
    for param in func.params:
        buffer = mapped.get(param)
        if buffer is None:
            if param.dtype.kind is Kind.HANDLE or param.dtype.lanes > 1:
                message = f"{target.name} cannot take the parameter {param.name} of type {param.dtype}"
                yield Diagnostic(codes.UNSUPPORTED, message, param.span)
            continue
        yield from _check_declaration(target, buffer)
        if buffer.scope in KERNELS_OWN:
            yield _no_scope(target, buffer)
        if isinstance(buffer.elem_offset, IntImm) and buffer.elem_offset.value != 0:
            offset = f"the parameter {buffer.name} starts at element {buffer.elem_offset.value} of its memory"
            yield Diagnostic(
                codes.UNSUPPORTED, f"{target.name} takes parameters from their first element on; {offset}", buffer.span
            )
        other = owners.setdefault(buffer.data.name, buffer)
        if other is not buffer:
            shared = f"the parameters {other.name} and {buffer.name} have one data variable, {buffer.data.name}"
            yield Diagnostic(codes.UNSUPPORTED, shared, buffer.span)


def _check_declaration(target: Target, buffer: Buffer) -> Iterator[Diagnostic]:
    if buffer.dtype.kind is Kind.HANDLE:
        yield Diagnostic(
            codes.UNSUPPORTED, f"{target.name} has no buffers of {buffer.dtype}: {buffer.name}", buffer.span
        )
    if buffer.scope not in target.scopes:
        yield _no_scope(target, buffer)
    if buffer.strides and not _is_compact(buffer):
        message = f"{target.name} takes row-major buffers; {buffer.name} has strides of its own"
        yield Diagnostic(codes.UNSUPPORTED, message, buffer.span)


def _no_scope(target: Target, buffer: Buffer) -> Diagnostic:
    help_text = _texture_help(target) if "texture" in buffer.scope else None
    message = f"{target.name} has no memory of scope {buffer.scope!r}, which {buffer.name} is in"
    return Diagnostic(codes.UNSUPPORTED, message, buffer.span, help=help_text)


def _texture_help(target: Target) -> str:
    if target.textures is None:
        return "the OpenCL target takes textures"
    return f"the scope of textures is {target.textures!r}"


def _is_compact(buffer: Buffer) -> bool:
    """Whether constant strides are those of row-major order."""
    step = 1
    for axis in reversed(range(buffer.rank)):
        stride, extent = buffer.strides[axis], buffer.shape[axis]
        if not isinstance(stride, IntImm) or stride.value != step:
            return False
        if axis > 0:
            if not isinstance(extent, IntImm):
                return False
            step *= extent.value
    return True


def _check_access(target: Target, node: BufferLoad | BufferStore) -> Iterator[Diagnostic]:
    buffer = node.buffer
    yield from _check_declaration(target, buffer)
    if buffer.rank > 1 and buffer.scope != target.textures:
        message = f"{target.name} takes accesses of buffers of rank 1; {buffer.name} has rank {buffer.rank}"
        help_text = "flatten the buffers first (flatten_buffer)"
        if buffer.axis_separators:
            message += f" and axis separators {list(buffer.axis_separators)}"
            help_text += "; without separators a buffer flattens to one axis: remove them with set_axis_separators"
        yield Diagnostic(codes.RANK, message, node.span, help=help_text)


def _check_declared(node: BufferLoad | BufferStore, memory: MemoryMap) -> Iterator[Diagnostic]:
    if memory.of(node.buffer) is None:
        message = f"nothing declares the data variable {node.buffer.data.name} of {node.buffer.name}"
        yield Diagnostic(codes.UNSUPPORTED, message, node.span)


def _check_block(target: Target, node: Block) -> Iterator[Diagnostic]:
    message = f"{target.name} takes loops, not blocks: {node.name}"
    yield Diagnostic(codes.NOT_LOWERED, message, node.span, help="lower the blocks first (lower_blocks)")


def _check_loop(target: Target, node: For) -> Iterator[Diagnostic]:
    if node.kind is ForKind.THREAD_BINDING:
        message = f"{target.name} takes kernels as parallel loops; loop {node.var.name} is bound to {node.thread}"
        help_text = "lower the kernels first (Schedule.lower), which proves that they have no race"
        yield Diagnostic(codes.NOT_LOWERED, message, node.span, help=help_text)


def _check_undef(target: Target, node: Undef) -> Iterator[Diagnostic]:
    help_text = "remove the stores of undef first (remove_store_undef)"
    yield Diagnostic(codes.NOT_LOWERED, f"{target.name} has no undefined values", node.span, help=help_text)


def _check_assume(target: Target, node: Assume) -> Iterator[Diagnostic]:
    if not target.assumptions:
        message = f"{target.name} does not take assumptions"
        yield Diagnostic(codes.NOT_LOWERED, message, node.span, help="remove them first (remove_assume)")


def _check_opaque(target: Target, node: OpaqueCall) -> Iterator[Diagnostic]:
    yield Diagnostic(codes.UNSUPPORTED, f"{target.name} does not know the function {node.function}", node.span)


def _check_let(target: Target, node: Let) -> Iterator[Diagnostic]:
    if node.var.dtype.kind is Kind.HANDLE and pointer_source(node.value) is None:
        yield Diagnostic(
            codes.UNSUPPORTED, f"{target.name} cannot tell which memory the pointer {node.var.name} is of", node.span
        )


def _check_reducer(target: Target, node: Reducer) -> Iterator[Diagnostic]:
    yield Diagnostic(codes.UNSUPPORTED, f"{target.name} has no reductions over threads", node.span)


def _check_string(target: Target, node: StringImm) -> Iterator[Diagnostic]:
    yield Diagnostic(codes.UNSUPPORTED, f"{target.name} has no texts: {node.value!r}", node.span)


def _check_evaluate(target: Target, node: Evaluate) -> Iterator[Diagnostic]:
    if node.value.dtype.kind is Kind.HANDLE and isinstance(node.value, Var):
        yield Diagnostic(codes.UNSUPPORTED, f"{target.name} cannot evaluate the pointer {node.value.name}", node.span)


def _nothing(target: Target, node: Node) -> Iterator[Diagnostic]:
    return iter(())


_CHECKS: Mapping[type[Node], Callable[[Target, Any], Iterator[Diagnostic]]] = {
    BufferLoad: _check_access,
    BufferStore: _check_access,
    Block: _check_block,
    For: _check_loop,
    Undef: _check_undef,
    Assume: _check_assume,
    OpaqueCall: _check_opaque,
    StringImm: _check_string,
    Reducer: _check_reducer,
    Let: _check_let,
    Evaluate: _check_evaluate,
    Allocate: lambda target, node: _check_declaration(target, node.buffer),
    DeclBuffer: lambda target, node: _check_declaration(target, node.buffer),
}


def expression_depth(root: Node) -> int:
    """How many operations stand inside one another in an expression of a tree, at most."""
    deepest = 0
    stack: list[tuple[Node, int]] = [(root, 0)]
    while stack:
        node, around = stack.pop()
        depth = 0 if isinstance(node, Stmt) else around + 1
        deepest = max(deepest, depth)
        stack += [(child, depth) for child in children(node)]
    return deepest
