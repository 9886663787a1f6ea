"""A lowered function as MLIR: `func`, `affine`, `scf`, `memref`, `arith` and `math`, for mlir-opt to take further.

Buffers keep their axes: a parameter is a memref of its shape. A loop whose bounds are affine is an `affine.for`, an
access whose indices are is an `affine.load` or `affine.store`; others are those of `scf` and `memref`. What has no
counterpart (vectors, threads, textures, opaque calls, strided parameters) is refused with its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Binary, Compare, Expr, IntImm, Var
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import (
    Allocate,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Let,
    Seq,
    Stmt,
)
from layoutproof.ir.visit import free_variables, take_fresh
from layoutproof.lowering.codegen.mlir_expr import Scope, index_cast, refused, type_of
from layoutproof.verify.algebra.symbols import conjuncts


def emit_mlir(func: PrimFunc) -> str:
    """The text of a module with the function. `func` has no blocks, buffer transforms or assumptions any more.

    Raises LayoutproofError with the place of what cannot be printed.
    """
    scope = Scope()
    mapped = dict(func.buffer_map)
    names = _Names()
    arguments = []
    for param in func.params:
        buffer = mapped.get(param)
        name = names.unique(buffer.name if buffer is not None else param.name)
        if buffer is None:
            arguments.append(f"{name}: {type_of(param.dtype, param)}")
            scope.values[param] = name
            continue
        _check_buffer(buffer)
        if buffer.strides or not _is_zero(buffer.elem_offset):
            raise refused(
                f"{buffer.name} has strides or an offset, which a caller of a memref would have to give", buffer
            )
        scope.memory[buffer], scope.types[buffer] = name, _memref(buffer)
        arguments.append(f"{name}: {scope.types[buffer]}")
    _sizes(scope, func)
    _statement(scope, func.body)
    attributes = ""
    body = "\n".join("  " + line for line in scope.lines)
    name = func.name if re.fullmatch(r"\w+", func.name) else f'"{func.name}"'
    return f"module {{\n  func.func @{name}({', '.join(arguments)}){attributes} {{\n{body}\n    return\n  }}\n}}\n"


def signature(func: PrimFunc) -> list[dict[str, str]]:
    """The parameters in order: their names and their types in MLIR."""
    mapped = dict(func.buffer_map)
    found = []
    for param in func.params:
        buffer = mapped.get(param)
        kind = _memref(buffer) if buffer is not None else type_of(param.dtype, param)
        found.append({"name": buffer.name if buffer is not None else param.name, "type": kind})
    return found


class _Names:
    """Names of arguments, each once; values of operations have numbers."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def unique(self, hint: str) -> str:
        base = re.sub(r"\W", "_", hint)
        base = f"a{base}" if base[:1].isdigit() else base
        return f"%{take_fresh(base, self._taken)}"


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, IntImm) and expr.value == 0


def _check_buffer(buffer: Buffer) -> None:
    if buffer.scope.startswith("global.texture") or "texture" in buffer.scope:
        raise refused(f"{buffer.name} is a texture, for which there is no memref", buffer)


def _memref(buffer: Buffer) -> str:
    extents = "".join(f"{each.value if isinstance(each, IntImm) else '?'}x" for each in buffer.shape)
    return f"memref<{extents}{type_of(buffer.dtype, buffer)}>"


def _sizes(scope: Scope, func: PrimFunc) -> None:
    """Scalar parameters as indices, and sizes as extents of parameters."""
    for param in func.params:
        if param in scope.values and param.dtype.is_integer:
            kind = type_of(param.dtype, param)
            cast = index_cast(param.dtype)
            scope.affine[param] = scope.define(f"{cast} {scope.values[param]} : {kind} to index")
    for buffer in func.buffers:
        for axis, extent in enumerate(buffer.shape):
            if isinstance(extent, Var) and extent not in scope.affine:
                at = scope.define(f"arith.constant {axis} : index")
                scope.affine[extent] = scope.define(f"memref.dim {scope.memory[buffer]}, {at} : {scope.types[buffer]}")
    for buffer in func.buffers:
        for extent in buffer.shape:
            unknown = [v for v in free_variables(extent) if v not in scope.affine]
            if unknown:
                raise refused(f"{unknown[0].name} is a size that is the extent of no parameter", buffer)


def _statement(scope: Scope, stmt: Stmt) -> None:
    emit = _EMIT.get(type(stmt))
    if emit is None:
        raise refused(f"{type(stmt).__name__} has no counterpart", stmt)
    emit(scope, stmt)


def _nested(scope: Scope, body: Stmt) -> None:
    scope.depth += 1
    _statement(scope, body)
    scope.depth -= 1


def _seq(scope: Scope, stmt: Seq) -> None:
    for each in stmt.body:
        _statement(scope, each)


def _store(scope: Scope, stmt: BufferStore) -> None:
    value = scope.value(stmt.value)
    dialect, text = scope.access(stmt.buffer, stmt.indices, stmt)
    scope.line(f"{dialect}.store {value}, {text}")


def _let(scope: Scope, stmt: Let) -> None:
    scope.values[stmt.var] = scope.value(stmt.value)
    _statement(scope, stmt.body)


def _branch(scope: Scope, stmt: IfThenElse) -> None:
    condition = _set(scope, stmt.condition)
    if condition is None:
        condition = f"scf.if {scope.value(stmt.condition)}"
    scope.line(f"{condition} {{")
    _nested(scope, stmt.then)
    if stmt.otherwise is not None:
        scope.line("} else {")
        _nested(scope, stmt.otherwise)
    scope.line("}")


def _set(scope: Scope, condition: Expr) -> str | None:
    """The head of an affine.if, where the condition is a conjunction of affine comparisons."""
    used: list[Var] = []
    constraints = []
    for term in conjuncts(condition):
        text = _constraint(scope, term, used)
        if text is None:
            return None
        constraints.append(text)
    dims = ", ".join(f"d{n}" for n in range(len(used)))
    operands = ", ".join(scope.affine[var] for var in used)
    return f"affine.if affine_set<({dims}) : ({', '.join(constraints)})>({operands})"


def _constraint(scope: Scope, term: Expr, used: list[Var]) -> str | None:
    if not isinstance(term, Compare) or not term.lhs.dtype.is_integer or term.op is CompareOp.NE:
        return None
    left, right = (scope.map_text(side, _dimensions(used)) for side in (term.lhs, term.rhs))
    if left is None or right is None:
        return None
    match term.op:
        case CompareOp.EQ:
            return f"{left} - {right} == 0"
        case CompareOp.GE:
            return f"{left} - {right} >= 0"
        case CompareOp.GT:
            return f"{left} - {right} - 1 >= 0"
        case CompareOp.LE:
            return f"{right} - {left} >= 0"
        case _:
            return f"{right} - {left} - 1 >= 0"


def _dimensions(used: list[Var]) -> Callable[[Var], str]:
    """Names of the dimensions of a map, which are added to the list at their first use."""

    def name(var: Var) -> str:
        if var not in used:
            used.append(var)
        return f"d{used.index(var)}"

    return name


def _allocate(scope: Scope, stmt: Allocate) -> None:
    buffer = stmt.buffer
    _check_buffer(buffer)
    if buffer.strides:
        raise refused(f"{buffer.name} is allocated with strides", stmt)
    sizes = ", ".join(scope.index(each) for each in buffer.shape if not isinstance(each, IntImm))
    kind = _memref(buffer)
    name = scope.define(f"memref.alloc({sizes}) : {kind}")
    scope.memory[buffer], scope.types[buffer] = name, kind
    _statement(scope, stmt.body)
    scope.line(f"memref.dealloc {name} : {kind}")


def _declare(scope: Scope, stmt: DeclBuffer) -> None:
    known = [each for each in scope.memory if each.data == stmt.buffer.data and each.shape == stmt.buffer.shape]
    same = bool(known) and (stmt.buffer.dtype, stmt.buffer.elem_offset) == (known[0].dtype, known[0].elem_offset)
    if not same or stmt.buffer.strides:
        raise refused(f"{stmt.buffer.name} is another view of a memory, which is not printed", stmt)
    scope.memory[stmt.buffer], scope.types[stmt.buffer] = scope.memory[known[0]], scope.types[known[0]]
    _statement(scope, stmt.body)


def _attribute(scope: Scope, stmt: AttrStmt) -> None:
    _statement(scope, stmt.body)


def _evaluate(scope: Scope, stmt: Evaluate) -> None:
    raise refused("a statement for its effect has no counterpart", stmt)


# ---- loops


def _for(scope: Scope, stmt: For) -> None:
    if stmt.kind is ForKind.THREAD_BINDING:
        raise refused(f"{stmt.var.name} is bound to {stmt.thread}: threads of a GPU are not printed", stmt)
    lower = _bound(scope, stmt.start, "max", [stmt.start])
    ends = [_sum(stmt.start, each) for each in _least(stmt.extent)]
    upper = _bound(scope, _sum(stmt.start, stmt.extent), "min", ends)
    if lower is None or upper is None:
        _plain_loop(scope, stmt)
        return
    name = scope.fresh()
    parallel = stmt.kind is ForKind.PARALLEL
    if parallel:
        scope.line(f"affine.parallel ({name}) = ({lower[1]}) to ({upper[1]}) {{")
    else:
        scope.line(f"affine.for {name} = {lower[0]} to {upper[0]} {{")
    scope.affine[stmt.var] = name
    _nested(scope, stmt.body)
    del scope.affine[stmt.var]
    scope.line("}")


def _least(extent: Expr) -> list[Expr]:
    if isinstance(extent, Binary) and extent.op is BinaryOp.MIN:
        return [*_least(extent.lhs), *_least(extent.rhs)]
    return [extent]


def _sum(start: Expr, extent: Expr) -> Expr:
    if isinstance(start, IntImm) and isinstance(extent, IntImm):
        return IntImm(start.value + extent.value, start.dtype)
    return extent if _is_zero(start) else Binary(BinaryOp.ADD, start, extent)


def _bound(scope: Scope, whole: Expr, word: str, parts: list[Expr]) -> tuple[str, str] | None:
    """A bound for affine.for, and for affine.parallel; None if it is not affine."""
    used: list[Var] = []
    texts = [scope.map_text(part, _dimensions(used)) for part in parts]
    if None in texts:
        return None
    if isinstance(whole, IntImm):
        return str(whole.value), str(whole.value)
    results = ", ".join(text for text in texts if text is not None)
    operands = ", ".join(scope.affine[var] for var in used)
    spaces = ", ".join(f"d{n}" for n in range(len(used)))
    inline = ", ".join(str(scope.map_text(part, scope.affine.__getitem__)) for part in parts)
    many = len(parts) > 1
    prefix = f"{word} " if many else ""
    return (
        f"{prefix}affine_map<({spaces}) -> ({results})>({operands})",
        f"{word}({inline})" if many else inline,
    )


def _plain_loop(scope: Scope, stmt: For) -> None:
    """With bounds that are computed."""
    lower = scope.index(stmt.start)
    upper = scope.index(stmt.extent)
    if not _is_zero(stmt.start):  # as an index, since the end need not fit the type of the variable
        upper = scope.define(f"arith.addi {lower}, {upper} : index")
    step = scope.define("arith.constant 1 : index")
    name = scope.fresh()
    if stmt.kind is ForKind.PARALLEL:
        scope.line(f"scf.parallel ({name}) = ({lower}) to ({upper}) step ({step}) {{")
    else:
        scope.line(f"scf.for {name} = {lower} to {upper} step {step} {{")
    scope.depth += 1
    scope.values[stmt.var] = scope.define(f"arith.index_cast {name} : index to {type_of(stmt.var.dtype, stmt)}")
    _statement(scope, stmt.body)
    scope.depth -= 1
    scope.line("}")


_EMIT: Mapping[type[Stmt], Callable[..., None]] = {
    Seq: _seq,
    BufferStore: _store,
    Let: _let,
    IfThenElse: _branch,
    Allocate: _allocate,
    DeclBuffer: _declare,
    AttrStmt: _attribute,
    Evaluate: _evaluate,
    For: _for,
}
