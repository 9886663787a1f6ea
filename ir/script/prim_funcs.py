"""One decorated function of a text -> PrimFunc: its parameters, its attributes, the allocations of the function."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import replace

from layoutproof.ir.attributes import Attributes
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import HANDLE, DType, Kind
from layoutproof.ir.expr import Var
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script import codes
from layoutproof.ir.script.arguments import bind, did_you_mean, parse_dtype
from layoutproof.ir.script.attribute_values import read_attributes
from layoutproof.ir.script.buffers import BUFFER_PARAMETERS, BufferArguments
from layoutproof.ir.script.expressions import dotted_name
from layoutproof.ir.script.parsing import Text
from layoutproof.ir.script.records import with_records
from layoutproof.ir.script.statements import StatementReader
from layoutproof.ir.stmt import Block

_DECORATOR_OPTIONS = ("private", "check_well_formed", "s_tir", "persistent")


def is_current_dialect(node: ast.FunctionDef, current_import: bool) -> bool:
    """Whether a function is written as TVM 0.27 has it, where `T.alloc_buffer` is a statement of its own."""
    if current_import:
        return True
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and any(k.arg == "s_tir" for k in decorator.keywords):
            return True
    return any(isinstance(n, ast.Attribute) and n.attr.startswith("sblock") for n in ast.walk(node))


def decorates(node: ast.expr, name: str) -> bool:
    """Whether a decorator is `T.prim_func`, `tvm.script.ir_module`, ..., with or without arguments."""
    path = dotted_name(node.func if isinstance(node, ast.Call) else node)
    return path is not None and path[-1] == name


class PrimFuncReader:
    """Reads one function."""

    def __init__(self, text: Text, node: ast.FunctionDef, namespaces: Collection[str], current_import: bool) -> None:
        self.text = text
        self.node = node
        current = is_current_dialect(node, current_import)
        allocations = frozenset({"sblock_alloc_buffer"} if current else {"alloc_buffer", "sblock_alloc_buffer"})
        self.statements = StatementReader(text, namespaces, allocations)
        self.env = self.statements.env
        self.buffers = BufferArguments(self.statements.exprs, self.env)
        self.params: list[Var] = []
        self.map: dict[Var, Buffer] = {}
        self.allocations: list[Buffer] = []
        self.attrs: Attributes | None = None
        self.attrs_call: ast.Call | None = None

    def read(self) -> PrimFunc:
        """The function. Raises LayoutproofError."""
        self._check_decorators()
        self._declare_sizes()
        self._parameters()
        nodes = self.node.body
        if isinstance(nodes[0], ast.Expr) and isinstance(nodes[0].value, ast.Constant) and isinstance(nodes[0].value.value, str):
            nodes = nodes[1:]  # a docstring
        with self.env.frame(self.node):
            body = self.statements.body(nodes, self.node, self._take)
        if self.allocations:
            body = self.statements.exprs.make(self.node, Block, "root", (), body)
            assert isinstance(body, Block)
            body = replace(body, alloc_buffers=tuple(self.allocations))
        func = self.statements.exprs.make(
            self._signature(),
            PrimFunc,
            self.node.name,
            tuple(self.params),
            tuple((p, self.map[p]) for p in self.params if p in self.map),
            body,
            self.attrs if self.attrs is not None else Attributes(),
            code=codes.FUNCTIONS,
        )
        return func if self.attrs_call is None else with_records(func, self.text, self.attrs_call)

    def _signature(self) -> ast.AST:
        """The `def` line only, so that a message about a function does not underline all of it."""
        head = ast.Pass(lineno=self.node.lineno, col_offset=self.node.col_offset)
        head.end_lineno, head.end_col_offset = self.node.lineno, self.node.col_offset + len("def ") + len(self.node.name.encode())
        return head

    def _check_decorators(self) -> None:
        for decorator in self.node.decorator_list:
            if not decorates(decorator, "prim_func"):
                raise self.text.fail(codes.FUNCTIONS, "the decorator of a program is T.prim_func", decorator)
            if isinstance(decorator, ast.Call):
                bind(self.text, decorator, "T.prim_func", _DECORATOR_OPTIONS, 0)
        returns = self.node.returns
        if returns is None or (isinstance(returns, ast.Constant) and returns.value is None):
            return
        # TVM writes the type of a status there; what returns one is refused where it does.
        path = dotted_name(returns)
        if path is None or len(path) < 2 or not path[-1].startswith(("int", "uint")):
            raise self.text.fail(codes.UNSUPPORTED, "a program returns nothing: its results are buffers it writes", returns)
        parse_dtype(self.text, returns, path[-1])

    def _declare_sizes(self) -> None:
        """Bind the symbolic sizes that the body declares, since the signature already uses them."""
        for statement in self.node.body:
            for name, dtype, target in self.statements.declarations(statement):
                if self.env.lookup(name) is None:
                    self.env.bind(name, Var(name, dtype, span=self.text.span(target)), target)

    # ---- parameters

    def _parameters(self) -> None:
        a = self.node.args
        for extra in (a.vararg, a.kwarg, *a.kwonlyargs, *a.posonlyargs):
            if extra is not None:
                raise self.text.fail(codes.UNSUPPORTED, "a program has plain positional parameters", extra)
        for default in a.defaults:
            raise self.text.fail(codes.UNSUPPORTED, "a parameter of a program has no default", default)
        buffers: list[tuple[ast.arg, ast.expr]] = []
        for arg in a.args:
            buffer = self._buffer_annotation(arg)
            if buffer is not None:
                buffers.append((arg, buffer))
                self.params.append(Var(f"{arg.arg}_handle", HANDLE, span=self.text.span(arg)))
            else:
                var = Var(arg.arg, self._scalar_type(arg), span=self.text.span(arg))
                self.env.bind(arg.arg, var, arg)
                self.params.append(var)
        for arg, annotation in buffers:
            self._buffer_parameter(arg, annotation)

    def _buffer_annotation(self, arg: ast.arg) -> ast.expr | None:
        annotation = arg.annotation
        if annotation is None:
            message = f"the parameter `{arg.arg}` has no type"
            raise self.text.fail(codes.FUNCTIONS, message, arg, help='write T.Buffer((16, 14), "float32"), T.handle or T.int32')
        head = annotation.func if isinstance(annotation, ast.Call) else annotation
        head = head.value if isinstance(head, ast.Subscript) else head
        return annotation if self.statements.script_name(head) in ("Buffer", "match_buffer") else None

    def _scalar_type(self, arg: ast.arg) -> DType:
        annotation = arg.annotation
        assert annotation is not None
        node = annotation.func if isinstance(annotation, ast.Call) else annotation
        name = self.statements.script_name(node)
        if name is None:
            message = f"the type of `{arg.arg}` is not known: T.Buffer, T.handle or T.int32 is expected"
            raise self.text.fail(codes.FUNCTIONS, message, annotation)
        if name[:1].isupper() or "." in name:
            raise self.text.fail(codes.UNKNOWN_FUNCTION, f"`T.{name}` is not known", annotation, help=did_you_mean(name, ("Buffer",), "T."))
        return parse_dtype(self.text, annotation, name)

    def _buffer_parameter(self, arg: ast.arg, annotation: ast.expr) -> None:
        if isinstance(annotation, ast.Call):
            bound = bind(self.text, annotation, "T.Buffer", BUFFER_PARAMETERS, 1)
        elif isinstance(annotation, ast.Subscript):
            entries = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
            if len(entries) == 2 and isinstance(entries[1], ast.Constant) and isinstance(entries[1].value, str):
                bound = {"shape": entries[0], "dtype": entries[1]}
            else:
                bound = {"shape": annotation.slice}
        else:
            raise self.text.fail(codes.WRONG_ARGUMENTS, "T.Buffer needs a shape", annotation)
        buffer = self.buffers.buffer(arg, arg.arg, bound)
        self.env.bind(arg.arg, buffer, arg)
        self.map[Var(f"{arg.arg}_handle", HANDLE)] = buffer

    # ---- statements of the function as a whole

    def _take(self, node: ast.stmt, inside: bool) -> bool:
        """Attributes, buffers of handle parameters, allocations; False for any other statement."""
        value = node.value if isinstance(node, ast.Assign | ast.Expr) else None
        found = self.statements.script_call(value) if value is not None else None
        if found is None:
            return False
        name, call = found
        if name == "func_attr" and isinstance(node, ast.Expr):
            self._func_attr(call, inside)
            return True
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(target, ast.Name) or name not in {"match_buffer", *self.statements.block_allocations}:
            return False
        if inside:
            raise self.statements.misplaced(call, name)
        if name == "match_buffer":
            self._match(node, target, call)
        else:
            bound = bind(self.text, call, f"T.{name}", BUFFER_PARAMETERS, 1)
            buffer = self.buffers.buffer(node, target.id, bound)
            self.env.bind(target.id, buffer, target)
            self.allocations.append(buffer)
        return True

    def _func_attr(self, call: ast.Call, inside: bool) -> None:
        if inside:
            raise self.statements.misplaced(call, "func_attr")
        if self.attrs is not None:
            raise self.text.fail(codes.MISPLACED, "a function has one T.func_attr", call)
        self.attrs_call = call
        bound = bind(self.text, call, "T.func_attr", ("attrs",), 1)
        self.attrs = read_attributes(self.statements.exprs, bound["attrs"], "T.func_attr")

    def _match(self, node: ast.stmt, target: ast.Name, call: ast.Call) -> None:
        param = self._matched_parameter(call)
        first = call.args[0] if call.args else None
        named = isinstance(first, ast.Name) and self.env.lookup(first.id) == param
        rest = ast.copy_location(ast.Call(call.func, call.args[1:] if named else call.args, list(call.keywords)), call)
        rest.keywords = [k for k in rest.keywords if k.arg not in ("param", "a")]
        buffer = self.buffers.buffer(node, target.id, bind(self.text, rest, "T.match_buffer", BUFFER_PARAMETERS, 1))
        self.env.bind(target.id, buffer, target)
        self.map[param] = buffer

    def _matched_parameter(self, call: ast.Call) -> Var:
        """The handle that is matched: the one named, or the next one where the text names none, as in the seeds' examples."""
        node = next((k.value for k in call.keywords if k.arg in ("param", "a")), call.args[0] if call.args else None)
        free = [p for p in self.params if p.dtype.kind is Kind.HANDLE and p not in self.map]
        if node is None or isinstance(node, ast.Tuple | ast.List):
            if not free:
                raise self.text.fail(codes.BUFFER_USE, "every handle parameter has its buffer already", call)
            return free[0]
        value = self.env.lookup(node.id) if isinstance(node, ast.Name) else None
        if isinstance(node, ast.Name) and value is None:
            raise self.statements.exprs.undefined(node, node.id)
        if not isinstance(value, Var) or value not in self.params or value.dtype.kind is not Kind.HANDLE:
            raise self.text.fail(codes.BUFFER_USE, "a handle parameter of the function is expected", node)
        if value in self.map:
            raise self.text.fail(codes.BUFFER_USE, f"`{value.name}` has its buffer already", node)
        return value
