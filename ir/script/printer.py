"""Functions and modules -> text that reads back equal, in either dialect."""

from __future__ import annotations

from collections.abc import Iterator

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import TRUE, Expr, Var
from layoutproof.ir.intrinsics import Reducer
from layoutproof.ir.primfunc import IRModule, PrimFunc
from layoutproof.ir.script.print_statements import Page, default_data, print_allocations, print_statement
from layoutproof.ir.stmt import Allocate, Attributes, AttrValue, Block, For, Let, Stmt
from layoutproof.ir.text import DIALECTS, Dialect, string_text
from layoutproof.ir.visit import free_variables, nodes_of, walk


def print_func(f: PrimFunc, dialect: str = "current") -> str:
    """The text of a function, its imports in comments. `dialect` is `current` (TVM 0.27) or `old` (0.8 to 0.20).

    Reads back equal for every well-formed function. Raises KeyError for another dialect.
    """
    chosen = DIALECTS[dialect]
    page = Page(chosen)
    _function(page, f)
    return "\n".join([chosen.header[1], "", *page.lines, ""])


def print_module(module: IRModule, dialect: str = "current") -> str:
    """The text of a module as a class of functions."""
    chosen = DIALECTS[dialect]
    lines = [*chosen.header, "", "@I.ir_module", "class Module:"]
    for position, function in enumerate(module.functions):
        page = Page(chosen, depth=1)
        _function(page, function)
        lines += ([""] if position else []) + page.lines
    if not module.functions:
        lines.append("    pass")
    return "\n".join([*lines, ""])


def _function(page: Page, f: PrimFunc) -> None:
    sizes, handles = _free(f, page.dialect)
    page.handles.update({v.name: v.name for v in handles})
    mapped = dict(f.buffer_map)
    quoted = _quotable(f, sizes)
    parameters: list[str] = []
    matched: list[tuple[Var, Buffer]] = []
    for param in f.params:
        buffer = mapped.get(param)
        if buffer is None:
            parameters.append(f"{param.name}: T.{param.dtype}")
        elif _is_annotated(param, buffer):
            parameters.append(f"{buffer.name}: {_annotation(page, buffer, quoted)}")
            quoted = tuple(v for v in quoted if v not in buffer.shape)
            page.names_data(buffer)
        else:
            parameters.append(f"{param.name}: T.handle")
            matched.append((param, buffer))
    page.line(page.dialect.prim_func)
    page.line(f"def {f.name}({', '.join(parameters)}):")
    with page.indented():
        _declare(page, sizes)
        _declare(page, handles)
        if f.attrs:
            page.line(f"T.func_attr({page.attributes(f.attrs)})")
        for param, buffer in matched:
            page.line(f"{buffer.name} = T.match_buffer({param.name}, {page.buffer_arguments(buffer)})")
            page.names_data(buffer)
        body = f.body
        if isinstance(body, Block) and _only_allocates(body):
            print_allocations(page, body)
            body = body.body
        print_statement(page, body)


def _annotation(page: Page, buffer: Buffer, quoted: tuple[Var, ...]) -> str:
    arguments = page.buffer_arguments(buffer, quoted=quoted)
    simple = arguments == f"{page.listing(buffer.shape, quoted)}, {string_text(str(buffer.dtype))}"
    return f"T.Buffer[{arguments}]" if page.dialect.old_buffers and simple else f"T.Buffer({arguments})"


def _is_annotated(param: Var, buffer: Buffer) -> bool:
    """Whether the signature is enough: parameter and data variable have the names that the reader gives them."""
    return param.name == f"{buffer.name}_handle" and buffer.data.name == default_data(buffer)


def _only_allocates(block: Block) -> bool:
    """A root block that is nothing but the function's allocations."""
    plain = block.init is None and block.where == TRUE and block.reads is None and block.writes is None
    return block.is_root and bool(block.alloc_buffers) and plain and not block.match_buffers and not block.annotations


def _declare(page: Page, variables: tuple[Var, ...]) -> None:
    if variables:
        names = ", ".join(v.name for v in variables)
        page.line(f"{names} = {', '.join(f'T.{v.dtype}()' for v in variables)}")


def _quotable(f: PrimFunc, sizes: tuple[Var, ...]) -> tuple[Var, ...]:
    """Symbolic sizes: their first mention in the signature stands in quotes, as upstream writes it."""
    return tuple(v for v in sizes if v not in f.params)


def _free(f: PrimFunc, dialect: Dialect) -> tuple[tuple[Var, ...], tuple[Var, ...]]:
    """Variables that nothing in the function binds, in order of appearance: sizes and other values, then pointers."""
    bound = {p.name for p in f.params}
    used: dict[Var, None] = {}
    nodes = [buffer for _, buffer in f.buffer_map]
    for buffer in _defining(f.body, dialect):
        bound.add(buffer.data.name)
    bound.update(default_data(buffer) for buffer in nodes if buffer.data.name == default_data(buffer))
    for root in (*nodes, f.body):
        for node in walk(root):
            if isinstance(node, Var):
                used.setdefault(node)
            elif isinstance(node, For | Let):
                bound.add(node.var.name)
            elif isinstance(node, Block):
                bound.update(v.var.name for v in node.iter_vars)
            elif isinstance(node, Reducer):
                bound.update(v.name for v in (*node.left, *node.right))
            if isinstance(node, For | Block | Allocate):
                used.update(dict.fromkeys(_in_attribute(node.annotations)))
    used.update(dict.fromkeys(_in_attribute(f.attrs)))
    free = [v for v in used if v.name not in bound]
    return tuple(v for v in free if v.dtype != HANDLE), tuple(v for v in free if v.dtype == HANDLE)


def _in_attribute(value: AttrValue) -> Iterator[Var]:
    """The variables that an attribute's value mentions."""
    if isinstance(value, Expr):
        yield from free_variables(value)
    elif isinstance(value, tuple):
        yield from (v for part in value for v in _in_attribute(part))
    elif isinstance(value, Attributes):
        yield from (v for part in value.values() for v in _in_attribute(part))


def _defining(body: Stmt, dialect: Dialect) -> Iterator[Buffer]:
    """Buffers whose text introduces their data variable."""
    kinds: tuple[type[Stmt], ...] = (Allocate, Block)
    for node in nodes_of(body, *kinds):
        if isinstance(node, Allocate):
            if dialect.old_buffers or node.buffer.data.name == default_data(node.buffer):
                yield node.buffer
        elif isinstance(node, Block):
            yield from (b for b in node.alloc_buffers if b.data.name == default_data(b))
            yield from (m.buffer for m in node.match_buffers if m.buffer.data.name == default_data(m.buffer))
