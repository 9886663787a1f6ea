"""Programs and gate files, read once in each process.

What code of a gate file does to the process (imports from its folder, the working directory, an early exit) is undone.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType, TracebackType
from typing import NoReturn

from layoutproof.cli import codes
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, Source, Span, error
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.gates import Gate, gates_of

_OURS = "layoutproof"
_modules: dict[Path, dict[str, ModuleType]] = {}


@contextlib.contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Within it, modules of a folder can be imported, before all others, as for a Python script.

    They are removed afterwards, and restored when the folder is importable again. Modules of other folders with the
    same names, which tests may have imported, are hidden meanwhile.
    """
    own = _modules.setdefault(folder, {})
    others = set(_from_elsewhere(folder))
    hidden = {name: module for name, module in sys.modules.items() if name in own or name in others}
    for name in others:
        del sys.modules[name]
    before = set(sys.modules)
    sys.modules.update(own)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name not in before and _stands_in(name, folder)]:
            own[name] = sys.modules[name]
        for name in own:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)


def _from_elsewhere(folder: Path) -> Iterator[str]:
    """Loaded modules that have the name of one in a folder but are not from it, except installed and standard ones."""
    with contextlib.suppress(OSError):
        names = {name.removesuffix(".py") for name in os.listdir(folder)} - sys.stdlib_module_names - {_OURS}
        for name in list(sys.modules):
            top = name.partition(".")[0]
            file = getattr(sys.modules.get(top), "__file__", None) if top in names else None
            if file is not None and "site-packages" not in Path(file).parts and not _stands_in(name, folder):
                yield name


def _stands_in(name: str, folder: Path) -> bool:
    """Whether a module is a file of a folder, or in a package there."""
    top = name.partition(".")[0]
    if top == _OURS or top.startswith(f"{_OURS}_gates_"):
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    if file is not None:
        return Path(file).parent == folder or (
            Path(file).name.startswith("__init__.") and Path(file).parents[1] == folder
        )
    # A folder without `__init__.py` is a package without a file.
    return any(Path(place).parent == folder for place in getattr(sys.modules.get(top), "__path__", ()))


@contextlib.contextmanager
def staying() -> Iterator[None]:
    """Within it, `os._exit` raises SystemExit, since it would end the run with success; afterwards the working
    directory is restored.

    A process forked meanwhile that comes out of it ends, since it would repeat the run.
    """
    here, process, end = os.getcwd(), os.getpid(), os._exit

    def told(status: int = 0) -> NoReturn:
        if os.getpid() == process:
            raise SystemExit(status)
        end(status)  # a process that was started here is free to go

    os._exit = told
    try:
        yield
    finally:
        os._exit = end
        if os.getpid() != process:
            end(1)
        os.chdir(here)


_copies: dict[str, str] = {}


def use_copies(copies: Mapping[str, str]) -> None:
    """From now on, this process reads these copies in place of their paths, and no others."""
    _copies.clear()
    _copies.update(copies)


def place_of(path: str) -> str:
    """The file to read for a path."""
    return _copies.get(path, path)


Function = ast.FunctionDef | ast.AsyncFunctionDef


def has_gates(tree: ast.AST) -> bool:
    """Whether a function in the tree of a Python file is decorated with `gate`."""
    return next(decorated_with_gate(tree), None) is not None


def decorated_with_gate(tree: ast.AST) -> Iterator[Function]:
    """The functions decorated with `gate`, with arguments or without, from any module or under its imported name."""
    names = {"gate"}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module is not None
            and node.module.partition(".")[0] == "layoutproof"
        ):
            names |= {alias.asname for alias in node.names if alias.name == "gate" and alias.asname is not None}
    for node in ast.walk(tree):
        if isinstance(node, Function) and any(_is_gate(decorator, names) for decorator in node.decorator_list):
            yield node


def _is_gate(decorator: ast.expr, names: set[str]) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (isinstance(called, ast.Attribute) and called.attr == "gate") or (
        isinstance(called, ast.Name) and called.id in names
    )


_KEPT = 64  # files


def read_program(path: str, name: str | None) -> PrimFunc:
    """The function of that name in a program's file; the only one if `name` is None or empty.

    Raises LayoutproofError for a file that cannot be read or is no program, and, listing the names, for a missing
    function.
    """
    return function_of(path, text_of(path), name)


def function_of(path: str, text: str, name: str | None) -> PrimFunc:
    """The same for the text of a file called `path`."""
    functions = _module(path, text)
    if name:
        if name in functions:
            return functions[name]
        raise error(codes.FUNCTION, f"{path} has no function {name}", help=f"it has {', '.join(functions)}")
    if len(functions) != 1:
        help = f"it has {', '.join(functions)}"
        raise error(codes.FUNCTION, f"{path} has {len(functions)} functions; choose one with --function", help=help)
    return next(iter(functions.values()))


def remarks_on(func: PrimFunc) -> tuple[Diagnostic, ...]:
    """Warnings and notes on a valid program: inits that may not run, and differences from TVM."""
    from layoutproof.ir.script.lint import check_init, check_upstream

    if func.span is not None and is_mlir(func.span.source.name):
        return ()
    return (*check_init(func), *check_upstream(func))


def text_of(path: str) -> str:
    """A file's current text. Raises LayoutproofError."""
    path = place_of(path)
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        found = None
    # A file that was written again has another time or another inode.
    return _text(path, *((found.st_mtime_ns, found.st_size, found.st_ino) if found is not None else ()))


@lru_cache(maxsize=_KEPT)
def _text(path: str, *version: int) -> str:
    from layoutproof.ir.script.reader import read_text

    return read_text(path)


def is_mlir(path: str) -> bool:
    """Whether a file is read as MLIR."""
    return path.endswith(".mlir")


@lru_cache(maxsize=_KEPT)
def _module(path: str, text: str) -> Mapping[str, PrimFunc]:
    if is_mlir(path):
        from layoutproof.importers.mlir import read_functions

        return {name: function.program for name, function in read_functions(text, path).items()}
    from layoutproof.ir.script.reader import loads_module

    return {function.name: function for function in loads_module(text, path).functions}


@lru_cache(maxsize=_KEPT)
def _gates(path: str, where: Path, text: str) -> Mapping[str, object]:
    """The definitions of a gate file by name. The file is run, once in each process unless its text changes.

    Its folder is importable meanwhile. Raises LayoutproofError, with the line, for a file that cannot be read or fails.
    """
    if "\0" in text:
        # Some Pythons say that with a ValueError, and none says where.
        line, column = (
            text.count("\n", 0, text.index("\0")) + 1,
            text.index("\0") - text.rfind("\n", 0, text.index("\0")) - 1,
        )
        raise error(
            codes.GATE_FILE, "not Python: a null byte", Span(Source(path, text), line, column, line, column + 1)
        )
    name = f"layoutproof_gates_{hashlib.sha256(str(where).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, where)
    if spec is None or spec.loader is None:
        raise error(codes.GATE_FILE, f"{path} is no Python file: a file of gates ends in .py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickling look a module up by its name.
    sys.modules[name] = module
    try:
        with running(path), importable(where.parent):
            exec(compile(text, str(where), "exec"), module.__dict__)
    except MemoryError as problem:  # Python's parser raises it for what is nested too deep
        raise error(
            codes.GATE_FILE, f"{path} is nested too deep, or takes more memory to load than there is"
        ) from problem
    return module.__dict__


def gates_in(path: str) -> Mapping[str, Gate]:
    """The gates of a file, by name, in the order of their lines.

    Raises LayoutproofError for a file that cannot be read or fails, and for a function that is decorated as a gate but
    is none: redefined, deleted, decorated further, or nested. It would be missed silently.
    """
    return _gates_in(path, Path(path).resolve(), text_of(path))


@lru_cache(maxsize=_KEPT)
def _gates_in(path: str, where: Path, text: str) -> Mapping[str, Gate]:
    found: dict[str, Gate] = {}
    namespace = _gates(path, where, text)
    with running(path):  # an object of the file may run code of the file when it is only looked at
        gates = gates_of(namespace)
    for gate in gates:
        if gate.name in found:
            raise error(
                codes.GATE_FILE,
                f"{path}: two gates are called {gate.name}",
                help="name them apart, or make one with cases",
            )
        found[gate.name] = gate
    lines = {gate.line for gate in found.values()}
    tree = ast.parse(text)
    decorated = list(decorated_with_gate(tree))
    names = Counter(node.name for node in decorated)
    # A function that another decorator has put itself in front of stands in that one's lines.
    wrapped = {
        n.name
        for n in decorated
        if n in tree.body and names[n.name] == 1 and any(gate is namespace.get(n.name) for gate in found.values())
    }
    lost = [node for node in decorated if node.lineno not in lines and node.name not in wrapped]
    if (lost or not found) and "layoutproof" in text:
        source = Source(path, text)
        span = (
            Span(source, lost[0].lineno, lost[0].col_offset, lost[0].lineno, len(source.line(lost[0].lineno)))
            if lost
            else None
        )
        what = (
            f"the gate {lost[0].name} is not there when the file has been loaded" if lost else f"{path} defines no gate"
        )
        hint = (
            "a gate is a function of the file itself, not of a class or a function; its name is its own, "
            "its first decorator `gate`"
        )
        raise error(codes.GATE_FILE, what, span, help=hint)
    return found


@contextlib.contextmanager
def running(path: str) -> Iterator[None]:
    """Run code of a gate file: its output goes to standard error, its exceptions become a LayoutproofError with their
    line.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr), contextlib.redirect_stderr(sys.stderr), staying():
            yield
    except (LayoutproofError, KeyboardInterrupt, MemoryError):
        raise
    except SyntaxError as problem:
        raise LayoutproofError(_syntax(path, problem)) from problem
    except BaseException as problem:  # a gate is somebody's code: it may raise anything, SystemExit too
        # Python's own words for it: what an exception says of itself is code of the file as well, which may fail.
        said = "".join(traceback.format_exception_only(problem)).strip()
        name = type(problem).__name__
        first, *rest = said[said.find(name) :].splitlines() if name in said else [name]
        diagnostic = Diagnostic(
            codes.GATE_RAISED, first, place_in(path, problem.__traceback__), help=rest[-1] if rest else None
        )
        raise LayoutproofError(diagnostic) from problem


def place_in(path: str, trace: TracebackType | None) -> Span | None:
    """The innermost line of a file in a traceback; None if it is not there."""
    where = str(Path(path).resolve())
    found: Span | None = None
    source: Source | None = None
    for frame, line in traceback.walk_tb(trace):
        if frame.f_code.co_filename == where:
            source = Source(path, text_of(path)) if source is None else source
            text = source.line(line)
            found = Span(source, line, len(text) - len(text.lstrip()), line, max(len(text.rstrip()), 1))
    return found


def _syntax(path: str, problem: SyntaxError) -> Diagnostic:
    where = str(Path(path).resolve())
    if problem.filename != where or problem.lineno is None:
        return Diagnostic(codes.GATE_FILE, f"{path}: {problem}")
    source = Source(path, text_of(path))
    line, column = problem.lineno, max((problem.offset or 1) - 1, 0)
    end_line = problem.end_lineno if problem.end_lineno is not None else line
    end = problem.end_offset - 1 if problem.end_offset is not None and problem.end_offset > 0 else column + 1
    return Diagnostic(
        codes.GATE_FILE, f"not Python: {problem.msg}", Span(source, line, column, end_line, max(end, column + 1))
    )
