"""Texts and files to functions and modules: each decorated function becomes a PrimFunc with its parameters, attributes
and body.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError, Source, error, wrong_type
from layoutproof.ir.dtype import HANDLE, DType, Kind
from layoutproof.ir.expr import Var
from layoutproof.ir.primfunc import LAYOUT, IRModule, PrimFunc
from layoutproof.ir.script.declarations import BUFFER_PARAMETERS, BufferArguments, read_attributes
from layoutproof.ir.script.expressions import dotted_name
from layoutproof.ir.script.parsing import (
    Text,
    bind,
    check_depth,
    check_node_depth,
    did_you_mean,
    limited_depth,
    parse_dtype,
    parse_module,
)
from layoutproof.ir.script.statements import StatementReader
from layoutproof.ir.stmt import Attributes, Block

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
        if (
            isinstance(nodes[0], ast.Expr)
            and isinstance(nodes[0].value, ast.Constant)
            and isinstance(nodes[0].value.value, str)
        ):
            nodes = nodes[1:]  # a docstring
        with self.env.frame(self.node):
            body = self.statements.body(nodes, self._take)
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
        if self.attrs_call is None or LAYOUT not in func.attrs:
            return func
        # Loaded late: most programs have no records, and index maps load numpy.
        from layoutproof.ir.script.index_maps import with_records

        return with_records(func, self.text, self.attrs_call)

    def _signature(self) -> ast.AST:
        """The `def` line only, so that a message about a function does not underline all of it."""
        head = ast.Pass(lineno=self.node.lineno, col_offset=self.node.col_offset)
        head.end_lineno, head.end_col_offset = (
            self.node.lineno,
            self.node.col_offset + len("def ") + len(self.node.name.encode()),
        )
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
            raise self.text.fail(
                codes.UNSUPPORTED, "a program returns nothing: its results are buffers it writes", returns
            )
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
            raise self.text.fail(
                codes.FUNCTIONS, message, arg, help='write T.Buffer((16, 14), "float32"), T.handle or T.int32'
            )
        head = annotation.func if isinstance(annotation, ast.Call) else annotation
        head = head.value if isinstance(head, ast.Subscript) else head
        return annotation if self.statements.script_name(head) in ("Buffer", "buffer", "match_buffer") else None

    def _scalar_type(self, arg: ast.arg) -> DType:
        annotation = arg.annotation
        assert annotation is not None
        node = annotation.func if isinstance(annotation, ast.Call) else annotation
        name = self.statements.script_name(node)
        if name is None:
            message = f"the type of `{arg.arg}` is not known: T.Buffer, T.handle or T.int32 is expected"
            raise self.text.fail(codes.FUNCTIONS, message, annotation)
        if name[:1].isupper() or "." in name:
            raise self.text.fail(
                codes.UNKNOWN_FUNCTION,
                f"`T.{name}` is not known",
                annotation,
                help=did_you_mean(name, ("Buffer",), "T."),
            )
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
        self.env.passed.add(buffer.data)
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
            buffer = self.buffers.allocated(node, target.id, bound)
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
        self.env.passed.add(buffer.data)
        self.map[param] = buffer

    def _matched_parameter(self, call: ast.Call) -> Var:
        """The handle that is matched: by name, or the next one where the text has no name."""
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


_SCRIPT_MODULES = ("tvm.script.tir", "tvm.script.tirx", "tvm.tir", "tvm.tirx", "tvm.script.parser.tir")


def loads(text: str, name: str = "<text>") -> PrimFunc:
    """The one function of a text. `name` stands for the text in messages.

    Raises LayoutproofError for anything that is not understood, and unless there is exactly one function.
    """
    if not isinstance(text, str):
        raise wrong_type(codes.ARGUMENT, "loads, argument 'text'", text, "the text of a program")
    module, source = _read(Source(name, text.removeprefix("\ufeff")))
    if len(module.functions) != 1:
        names = ", ".join(f.name for f in module.functions)
        raise error(
            codes.FUNCTIONS, f"one function is expected, the text has {len(module.functions)}: {names}", source.start()
        )
    return module.functions[0]


def loads_module(text: str, name: str = "<text>") -> IRModule:
    """All functions of a text: those of its module class, or those at its top. Raises LayoutproofError."""
    return _read(Source(name, text.removeprefix("\ufeff")))[0]


def load(path: str | Path) -> PrimFunc:
    """The one function of a file. Raises LayoutproofError."""
    if not isinstance(path, (str, Path)):
        help = "layoutproof.loads reads the text of a program"
        raise wrong_type(codes.ARGUMENT, "load, argument 'path'", path, "the path of a file", help=help)
    return loads(read_text(path), str(path))


def load_module(path: str | Path) -> IRModule:
    """All functions of a file. Raises LayoutproofError."""
    return loads_module(read_text(path), str(path))


def read_text(path: str | Path) -> str:
    """A file's text, UTF-8 with or without a byte-order mark.

    Raises LayoutproofError where there is no such file, it is a directory, may not be read, or is not text.
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError as problem:
        raise error(codes.UNREADABLE_FILE, f"{path}: there is no such file") from problem
    except IsADirectoryError as problem:
        raise error(codes.UNREADABLE_FILE, f"{path} is a directory; a file is expected") from problem
    except PermissionError as problem:
        raise error(codes.UNREADABLE_FILE, f"{path} may not be read: permission denied") from problem
    except (OSError, ValueError) as problem:  # ValueError: a null byte in the path
        raise error(codes.UNREADABLE_FILE, f"{str(path)!r} cannot be read: {problem}") from problem
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data[: problem.start].count(b"\n") + 1
        message = f"{path}: byte {problem.start} (line {line}) is not UTF-8: this looks like a binary file"
        raise error(codes.UNDECODABLE, message) from problem


def _read(source: Source) -> tuple[IRModule, Text]:
    tree, text = parse_module(source)
    check_depth(tree, text)
    reader = _ModuleReader(text)
    with limited_depth(text):
        for node in tree.body:
            reader.top_level(node)
    for function in reader.functions:
        check_node_depth(function.body, text.start())
    if not reader.functions:
        help = "programs are written @T.prim_func, then def main(...):"
        raise error(codes.FUNCTIONS, "there is no function decorated with T.prim_func", text.start(), help=help)
    return _module(reader.functions), text


def _module(functions: list[PrimFunc]) -> IRModule:
    for position, function in enumerate(functions):
        for earlier in functions[:position]:
            if earlier.name == function.name:
                raise error(codes.BOUND_TWICE, f"two functions are called `{function.name}`", function.span)
    return IRModule(tuple(functions))


class _ModuleReader:
    """Reads what stands at the top of a text."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.namespaces = {"T"}
        self.current_import = False
        self.functions: list[PrimFunc] = []

    def top_level(self, node: ast.stmt) -> None:
        """An import, a function or a class of functions; anything else is an error."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node)
        elif isinstance(node, ast.FunctionDef):
            self._function(node)
        elif isinstance(node, ast.ClassDef):
            self._class(node)
        elif not _is_docstring(node):
            raise self._unexpected(node)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Imports are not followed; they only name the script's namespace."""
        prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            module = prefix + alias.name
            if module in _SCRIPT_MODULES:
                self.namespaces.add(alias.asname if alias.asname is not None else alias.name)
                self.current_import |= module.endswith("tirx")

    def _function(self, node: ast.FunctionDef) -> None:
        if not any(decorates(d, "prim_func") for d in node.decorator_list):
            place = node.decorator_list[0] if node.decorator_list else _name_of(node)
            message = f"the function `{node.name}` is not decorated with T.prim_func"
            raise self.text.fail(
                codes.FUNCTIONS, message, place, help="nothing in a text is executed, so only programs may stand in it"
            )
        self.functions.append(PrimFuncReader(self.text, node, self.namespaces, self.current_import).read())

    def _class(self, node: ast.ClassDef) -> None:
        if not any(decorates(d, "ir_module") for d in node.decorator_list):
            raise self.text.fail(
                codes.FUNCTIONS, f"the class `{node.name}` is not decorated with I.ir_module", _name_of(node)
            )
        for member in node.body:
            if isinstance(member, ast.FunctionDef):
                self._function(member)
            elif not _is_docstring(member) and not isinstance(member, ast.Pass):
                raise self._unexpected(member)

    def _unexpected(self, node: ast.stmt) -> LayoutproofError:
        message = "only imports, functions decorated with T.prim_func and modules of them may stand here"
        return self.text.fail(codes.FUNCTIONS, message, node)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _name_of(node: ast.FunctionDef | ast.ClassDef) -> ast.AST:
    word = "class " if isinstance(node, ast.ClassDef) else "def "
    place = ast.Pass(lineno=node.lineno, col_offset=node.col_offset)
    place.end_lineno, place.end_col_offset = node.lineno, node.col_offset + len(word) + len(node.name.encode())
    return place
