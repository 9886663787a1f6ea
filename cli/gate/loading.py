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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType, TracebackType
from typing import NoReturn

from layoutproof.cli import codes
from layoutproof.cli.gate.gate_sites import Function, Site, gate_sites
from layoutproof.cli.gate.run_control import Stopped, TimeIsUp
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, Severity, Source, Span, error
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.lowering.gates import Gate, gates_made_by, recording

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


_KEPT = 64  # files
_LOCAL = "<locals>."


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


def remarks_on(func: PrimFunc, *, empty: bool = False) -> tuple[Diagnostic, ...]:
    """Warnings and notes on a valid program: inits that may not run, and differences from TVM.

    That reductions of symbolic size may be `empty` is told only of a program that is built for all sizes.
    """
    return _REMARKS.get(func, (empty,), lambda: _remarks(func, empty))


_REMARKS: Kept[tuple[Diagnostic, ...]] = Kept(64)


def _remarks(func: PrimFunc, empty: bool) -> tuple[Diagnostic, ...]:
    from layoutproof.ir.script.lint import check_init, check_upstream

    if func.span is not None and is_mlir(func.span.source.name):
        return ()
    inits = (each for each in check_init(func) if empty or each.severity is not Severity.NOTE)
    return (*inits, *check_upstream(func))


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
def _gates(path: str, where: Path, text: str) -> tuple[Mapping[str, object], tuple[Gate, ...]]:
    """The definitions of a gate file by name, and all gates that were made meanwhile, by other modules too. The file is
    run, once in each process unless its text changes.

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
    name = f"layoutproof_gates_{hashlib.sha256(os.fsencode(where)).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, where)
    if spec is None or spec.loader is None:
        raise error(codes.GATE_FILE, f"{path} is no Python file: a file of gates ends in .py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickling look a module up by its name.
    sys.modules[name] = module
    try:
        with running(path), importable(where.parent), recording() as made:
            exec(compile(text, str(where), "exec"), module.__dict__)
    except MemoryError as problem:  # Python's parser raises it for what is nested too deep
        raise error(
            codes.GATE_FILE, f"{path} is nested too deep, or takes more memory to load than there is"
        ) from problem
    return module.__dict__, tuple(made)


@dataclass(frozen=True, slots=True)
class GateFile:
    """The gates that a file made when it was loaded, each with the name that reports give it and its line in the file.

    `uncalled`: functions that would make more gates, and were not called.
    """

    gates: Mapping[str, Gate]
    lines: Mapping[str, int]
    uncalled: tuple[Site, ...] = ()


def gates_in(path: str) -> Mapping[str, Gate]:
    """The gates of a file, by name; see `load_gates`."""
    return load_gates(path).gates


def load_gates(path: str) -> GateFile:
    """The gates of a file, in the order in which it makes them.

    Raises LayoutproofError for a file that cannot be read or fails, for gates that cannot be told apart, and for a
    place that would make a gate and did not. They would be missed silently.
    """
    text = text_of(path)  # first, since it tells what is wrong with a link
    return _load_gates(path, Path(path).resolve(), text)


@lru_cache(maxsize=_KEPT)
def _load_gates(path: str, where: Path, text: str) -> GateFile:
    namespace, recorded = _gates(path, where, text)
    module = str(namespace["__name__"])
    made = gates_made_by(module, recorded)
    source = Source(path, text)
    with running(path):  # an object of the file may run code of the file when it is only looked at
        named = _name_gates(path, made, namespace)
    uncalled: list[Site] = []
    for site in gate_sites(ast.parse(text), where).sites:
        if _was_made(site, made, module):
            _check_stays(site, namespace, source)
        elif site.certain and not site.handed_on:
            raise _not_there(site, "is not made when the file is loaded", _REACH, source)
        elif site.certain:
            uncalled.append(site)
    lines = {name: _line_in(gate, module) for name, gate in named.items()}
    return GateFile(named, lines, tuple(uncalled))


def _name_gates(path: str, made: Sequence[Gate], namespace: Mapping[str, object]) -> dict[str, Gate]:
    """The gates by name: that of the function, with its class; where several have one, that of the variable.

    Raises LayoutproofError for gates that cannot be told apart.
    """
    bound: dict[int, str] = {}
    for name, value in namespace.items():
        if isinstance(value, Gate):
            bound.setdefault(id(value), name)
    shared = Counter(_own_name(gate) for gate in made)
    found: dict[str, Gate] = {}
    for gate in made:
        own = _own_name(gate)
        unclear = shared[own] > 1 or not own.isprintable() or "<" in own
        called: str | None = bound.get(id(gate)) if unclear else own
        if called is None or found.get(called, gate) is not gate:
            raise error(
                codes.GATE_FILE,
                f"{path}: two gates are called {own}" if shared[own] > 1 else f"{path}: a gate has no name: {own}",
                help="name them apart, by a variable for each or `__name__` before `gate`, or make one with cases",
            )
        found[called] = gate
    return found


def _line_in(gate: Gate, module: str) -> int:
    """The line of a gate in a module that made it: its `def`, or the call where the function is another module's."""
    if gate.function.__module__ == module or not gate.calls:
        return gate.line
    return gate.calls[-1][1]


def _own_name(gate: Gate) -> str:
    """The name of a gate's function, after those of the classes that it stands in."""
    whole = str(getattr(gate.function, "__qualname__", gate.name))
    return f"{whole.rpartition(_LOCAL)[2].rpartition('.')[0]}.{gate.name}".removeprefix(".")


def _was_made(site: Site, made: Iterable[Gate], module: str) -> bool:
    """Whether a gate was made from a place: its line was being executed, or its function's `def` stands there."""
    node = site.node
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    last = node.lineno if isinstance(node, Function) else node.end_lineno or node.lineno
    return any(name == module and first <= line <= last for gate in made for name, line in gate.calls) or (
        isinstance(node, Function) and any(gate.line == node.lineno and gate.name == node.name for gate in made)
    )


def _check_stays(site: Site, namespace: Mapping[str, object], source: Source) -> None:
    """Raise LayoutproofError if the name of a decorated function stands for something else, which may do more."""
    if isinstance(site.node, Function) and site.scope is None:
        there = namespace.get(site.name)
        if there is not None and not isinstance(there, Gate):
            raise _not_there(site, "is decorated further, or its name is given to something else", _FIRST, source)


_REACH = (
    "loading the file must reach it: no condition that is false around it, and a call of the function that makes it"
)
_FIRST = "let `gate` be the first decorator, above all others, and the name its own"


def _not_there(site: Site, what: str, hint: str, source: Source) -> LayoutproofError:
    node, where = site.node, f" in {site.scope}" if site.scope is not None else ""
    span = Span(source, node.lineno, node.col_offset, node.lineno, len(source.line(node.lineno)))
    return error(codes.GATE_FILE, f"the gate {site.name}{where} {what}", span, help=hint)


@contextlib.contextmanager
def running(path: str) -> Iterator[None]:
    """Run code of a gate file: its output goes to standard error, its exceptions become a LayoutproofError with their
    line.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr), contextlib.redirect_stderr(sys.stderr), staying():
            yield
    except (LayoutproofError, KeyboardInterrupt, MemoryError, Stopped, TimeIsUp):
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
    where = os.path.realpath(path)
    found: Span | None = None
    source: Source | None = None
    for frame, line in traceback.walk_tb(trace):
        if frame.f_code.co_filename == where:
            source = Source(path, text_of(path)) if source is None else source
            text = source.line(line)
            found = Span(source, line, len(text) - len(text.lstrip()), line, max(len(text.rstrip()), 1))
    return found


def _syntax(path: str, problem: SyntaxError) -> Diagnostic:
    where = os.path.realpath(path)
    if problem.filename != where or problem.lineno is None:
        return Diagnostic(codes.GATE_FILE, f"{path}: {problem}")
    source = Source(path, text_of(path))
    line, column = problem.lineno, max((problem.offset or 1) - 1, 0)
    end_line = problem.end_lineno if problem.end_lineno is not None else line
    end = problem.end_offset - 1 if problem.end_offset is not None and problem.end_offset > 0 else column + 1
    return Diagnostic(
        codes.GATE_FILE, f"not Python: {problem.msg}", Span(source, line, column, end_line, max(end, column + 1))
    )
