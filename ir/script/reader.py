"""Texts and files -> functions and modules."""

from __future__ import annotations

import ast
from pathlib import Path

from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.primfunc import IRModule, PrimFunc
from layoutproof.ir.script import codes
from layoutproof.ir.script.parsing import Text, check_depth, check_node_depth, limited_depth, parse_module
from layoutproof.ir.script.prim_funcs import PrimFuncReader, decorates
from layoutproof.ir.source import Source

_SCRIPT_MODULES = ("tvm.script.tir", "tvm.script.tirx", "tvm.tir", "tvm.tirx", "tvm.script.parser.tir")


def loads(text: str, name: str = "<text>") -> PrimFunc:
    """The one function of a text. `name` stands for the text in messages.

    Raises LayoutproofError for anything that is not understood, and unless there is exactly one function.
    """
    module, source = _read(Source(name, text.removeprefix("\ufeff")))
    if len(module.functions) != 1:
        names = ", ".join(f.name for f in module.functions)
        raise error(codes.FUNCTIONS, f"one function is expected, the text has {len(module.functions)}: {names}", source.start())
    return module.functions[0]


def loads_module(text: str, name: str = "<text>") -> IRModule:
    """All functions of a text: those of its module class, or those at its top. Raises LayoutproofError."""
    return _read(Source(name, text.removeprefix("\ufeff")))[0]


def load(path: str | Path) -> PrimFunc:
    """The one function of a file. Raises LayoutproofError."""
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
    return _module(reader.functions, text), text


def _module(functions: list[PrimFunc], text: Text) -> IRModule:
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
        """Imports are not followed; they only say what the script's namespace is called."""
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
            raise self.text.fail(codes.FUNCTIONS, message, place, help="nothing in a text is executed, so only programs may stand in it")
        self.functions.append(PrimFuncReader(self.text, node, self.namespaces, self.current_import).read())

    def _class(self, node: ast.ClassDef) -> None:
        if not any(decorates(d, "ir_module") for d in node.decorator_list):
            raise self.text.fail(codes.FUNCTIONS, f"the class `{node.name}` is not decorated with I.ir_module", _name_of(node))
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
