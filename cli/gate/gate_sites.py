"""Where the text of a Python file makes gates: by `gate` as a decorator or in a call, under whatever name it is known.

Loading a file runs it, so a folder's files are loaded only if they may make gates. The text decides that, with those of
the modules beside it from which it imports; it errs on the side of loading. What is certain is listed as sites, each of
which has to make a gate when the file is loaded.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

_OURS = "layoutproof"
_GATE = "gate"
_CLASS = "Gate"
_DEEPEST = 8  # modules that import from one another until the gate is reached
_HIGHEST = 8  # folders above a file in which a module of the same project may stand
_NOTHING = (frozenset[str](), frozenset[str]())
_LOOKUPS = frozenset({"getattr", "attrgetter"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Site:
    """A place that makes a gate: the `def` that is decorated, or the call.

    `certain`: it is known to be layoutproof's `gate`, and not one of the same name. `scope` is the innermost function
    or class around it, None at the top of the file. `handed_on` says that this is a function that makes gates for its
    callers: it returns what is decorated, or calls `gate`.
    """

    node: Function | ast.Call
    name: str
    certain: bool
    scope: str | None = None
    handed_on: bool = False


@dataclass(slots=True)
class _Known:
    """What names of a module stand for: `decorators` are `gate` or such as `gate(strictness="ieee")`; `makers` are
    functions and classes in whose body a gate is made; `ours` are modules of layoutproof; `beside` are other modules,
    with the decorators and makers that they have.
    """

    decorators: set[str] = field(default_factory=set)
    makers: set[str] = field(default_factory=set)
    ours: set[str] = field(default_factory=set)
    beside: dict[str, tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)

    def size(self) -> int:
        """How much is known; it only grows."""
        return len(self.decorators) + len(self.makers) + len(self.ours)

    def of_module(self, node: ast.expr) -> tuple[frozenset[str], frozenset[str]]:
        """The decorators and makers of the module beside the file that an expression names."""
        return self.beside.get(_dotted(node), _NOTHING) if self.beside else _NOTHING


@dataclass(frozen=True, slots=True)
class GateSites:
    """What a file's text says about gates. `possible`: it may make one; `sites`: those that it certainly makes."""

    possible: bool
    sites: tuple[Site, ...]


def gate_sites(tree: ast.Module, path: Path) -> GateSites:
    """Where a file makes gates. `path` is where modules beside it are looked for."""
    known = _known(tree, path, _DEEPEST)
    # A decorator called `gate` in a file that knows layoutproof is taken for its gate, wherever it is from.
    sites = tuple(_sites(tree, known, None))
    return GateSites(bool(sites) or _may_make(tree, known), sites)


def has_gates(tree: ast.Module, path: Path) -> bool:
    """Whether a file may make gates when it is loaded."""
    return gate_sites(tree, path).possible


def mentions_layoutproof(text: str | bytes) -> bool:
    """Whether a text has the word, in whatever place."""
    return _OURS in text if isinstance(text, str) else _OURS.encode() in text


# --- what names stand for
# ----------------------------------------------------------------------------------------------------------------------


def _known(tree: ast.Module, path: Path, depth: int) -> _Known:
    known = _Known()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            _import(node, path, depth, known)
        elif isinstance(node, ast.ImportFrom):
            _import_from(node, path, depth, known)
    if not (known.size() or any(some for pair in known.beside.values() for some in pair)):
        # Only a lookup by name is left, such as `importlib.import_module("layoutproof")`.
        known.ours |= {_OURS} if any(_is_text(node, _OURS) for node in ast.walk(tree)) else set()
        if not known.ours:
            return known
    size = -1
    while size != known.size():
        size = known.size()
        for node in ast.walk(tree):
            _bind(node, known)
    return known


def _import(node: ast.Import, path: Path, depth: int, known: _Known) -> None:
    for alias in node.names:
        top = alias.name.partition(".")[0]
        if top == _OURS:
            known.ours.add(alias.asname if alias.asname is not None else top)
        elif (file := _module_file(alias.name, 0, path)) is not None:
            known.beside[alias.asname if alias.asname is not None else alias.name] = _exports(file, depth)


def _import_from(node: ast.ImportFrom, path: Path, depth: int, known: _Known) -> None:
    module = node.module if node.module is not None else ""
    if node.level == 0 and module.partition(".")[0] == _OURS:
        for alias in node.names:
            name = alias.asname if alias.asname is not None else _GATE if alias.name == "*" else alias.name
            (known.decorators if alias.name in (_GATE, _CLASS, "*") else known.ours).add(name)
        return
    file = _module_file(module, node.level, path)
    decorators, makers = _exports(file, depth) if file is not None else _NOTHING
    for alias in node.names:
        name = alias.asname if alias.asname is not None else alias.name
        if alias.name == "*":
            known.decorators |= decorators
            known.makers |= makers
        elif alias.name in decorators:
            known.decorators.add(name)
        elif alias.name in makers:
            known.makers.add(name)
        elif (inner := _module_file(f"{module}.{alias.name}" if module else alias.name, node.level, path)) is not None:
            known.beside[name] = _exports(inner, depth)


def _module_file(module: str, level: int, path: Path) -> Path | None:
    """The file of a module that stands beside a file, or beside a folder above it; None for installed ones."""
    parts = module.split(".") if module else []
    return _beside(tuple(parts), level, path.resolve().parent)


@lru_cache(maxsize=4096)
def _beside(parts: tuple[str, ...], level: int, folder: Path) -> Path | None:
    above = (folder, *folder.parents)[:_HIGHEST]
    places = above[level - 1 : level] if level else above
    for place in places:
        whole = place.joinpath(*parts)
        for file in (whole.with_suffix(".py") if parts else None, whole / "__init__.py"):
            if file is not None and file.is_file():
                return file
    return None


def _exports(file: Path, depth: int) -> tuple[frozenset[str], frozenset[str]]:
    """The decorators and makers that a module beside the file has."""
    try:
        found = file.stat()
        return _exports_of(file, depth, found.st_mtime_ns, found.st_size) if depth else _NOTHING
    except OSError:
        return _NOTHING  # importing it fails as well, which is reported


@lru_cache(maxsize=512)
def _exports_of(file: Path, depth: int, *version: int) -> tuple[frozenset[str], frozenset[str]]:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _NOTHING
    known = _known(tree, file, depth - 1)
    return frozenset(known.decorators), frozenset(known.makers)


def _bind(node: ast.AST, known: _Known) -> None:
    """Learn from one node what a name stands for."""
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        _assign(node.targets if isinstance(node, ast.Assign) else (node.target,), node.value, known)
    elif isinstance(node, ast.For | ast.comprehension):
        _assign([node.target], node.iter, known)
    elif isinstance(node, Function | ast.ClassDef) and not any(_is_decorator(d, known) for d in node.decorator_list):
        if any(_makes(inner, known) or _refers(inner, known) for part in node.body for inner in ast.walk(part)):
            known.makers.add(node.name)


def _assign(targets: Sequence[ast.expr], value: ast.expr, known: _Known) -> None:
    names = {name for target in targets for name in _names(target)}
    if _is_decorator(value, known):
        known.decorators |= names
    elif _is_ours(value, known):
        known.ours |= names
    elif any(_refers(inner, known) for inner in ast.walk(value)) and not _makes(value, known):
        known.makers |= names


def _names(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case ast.Subscript(value=inner) | ast.Starred(value=inner):
            yield from _names(inner)
        case ast.Tuple(elts=several) | ast.List(elts=several):
            for each in several:
                yield from _names(each)
        case _:
            pass


def _dotted(node: ast.expr) -> str:
    """`a.b.c` as text; "" for other expressions."""
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return node.id if isinstance(node, ast.Name) else ""


def _is_ours(node: ast.expr, known: _Known) -> bool:
    """Whether an expression is a module of layoutproof, or looks one up by its name."""
    if isinstance(node, ast.Name):
        return node.id in known.ours
    if isinstance(node, ast.Attribute | ast.Subscript):
        return _is_ours(node.value, known) or (isinstance(node, ast.Subscript) and _is_text(node.slice, _OURS))
    if isinstance(node, ast.Call):
        return any(_is_text(argument, _OURS) or _is_ours(argument, known) for argument in node.args)
    return False


def _is_text(node: ast.AST, text: str) -> bool:
    """Whether it is this text, or for a module's name one in it."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.partition(".")[0] == text


def _is_decorator(node: ast.expr, known: _Known) -> bool:
    """Whether an expression is `gate`, or makes a decorator of it: `lp.gate(strictness="ieee")`."""
    if isinstance(node, ast.Call) and not node.args:
        return _is_gate(node.func, known)
    return _is_gate(node, known)


def _is_gate(node: ast.expr, known: _Known) -> bool:
    match node:
        case ast.Name(id=name):
            return name in known.decorators
        case ast.Attribute(value=base, attr=name):
            return (
                name in known.of_module(base)[0]
                or (name == _GATE and _is_ours(base, known))
                or name in known.decorators
            )
        case ast.Call(func=ast.Name(id="getattr"), args=[base, ast.Constant(value=name), *_]):
            return name == _GATE and (_is_ours(base, known) or name in known.decorators)
        case ast.Subscript(value=base, slice=ast.Constant(value=name)):
            return name == _GATE and _is_ours(base, known)
        case _:
            return False


def _refers(node: ast.AST, known: _Known) -> bool:
    """Whether a node is a decorator, or something that makes gates."""
    match node:
        case ast.Name(id=name):
            return name in known.decorators or name in known.makers
        case ast.Attribute(value=base, attr=name):
            return name in known.of_module(base)[1] or name in known.makers or _is_gate(node, known)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments):
            # Whatever it is looked up in, if the file knows layoutproof.
            return name in _LOOKUPS and bool(known.ours) and any(_is_text(each, _GATE) for each in arguments)
        case ast.Subscript():
            return _is_gate(node, known)
        case _:
            return False


def _makes(node: ast.AST, known: _Known) -> bool:
    """Whether a node is a call of `gate` with the function, or a definition decorated with it."""
    if isinstance(node, ast.Call):
        # A decorator with options that is called with the function, too: `lp.gate(strictness="ieee")(f)`.
        return bool(node.args) and (_is_gate(node.func, known) or _is_decorator(node.func, known))
    return isinstance(node, Function) and any(_is_named_gate(each, known) for each in node.decorator_list)


# --- where gates are made
# ----------------------------------------------------------------------------------------------------------------------


def _is_named_gate(decorator: ast.expr, known: _Known) -> bool:
    """Whether a decorator is `gate`: also one of this name from a module that is not looked into."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    named = (isinstance(called, ast.Attribute) and called.attr == _GATE) or (
        isinstance(called, ast.Name) and called.id == _GATE
    )
    return named or _is_decorator(decorator, known)


def _sites(node: ast.AST, known: _Known, around: Function | ast.ClassDef | None) -> Iterator[Site]:
    inner = node if isinstance(node, Function | ast.ClassDef) else around
    for child in ast.iter_child_nodes(node):
        if _makes(child, known):
            yield _site(child, inner, known)
        yield from _sites(child, known, inner)


def _site(node: ast.AST, around: Function | ast.ClassDef | None, known: _Known) -> Site:
    where = around.name if around is not None else None
    if isinstance(node, ast.Call):
        return Site(node, ast.unparse(node.args[0]), True, where, isinstance(around, Function))
    assert isinstance(node, Function)
    certain = bool(known.ours) or any(_is_decorator(each, known) for each in node.decorator_list)
    handed_on = isinstance(around, Function) and any(
        isinstance(each, ast.Return | ast.Yield) and isinstance(each.value, ast.Name) and each.value.id == node.name
        for each in ast.walk(around)
    )
    return Site(node, node.name, certain, where, handed_on)


def _may_make(tree: ast.Module, known: _Known) -> bool:
    """Whether something in a file may make a gate without saying so: a call, a loop, a table of decorators."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call | Function | ast.ClassDef):
            used = [node.func, *node.args] if isinstance(node, ast.Call) else node.decorator_list
            if known.ours and isinstance(node, ast.Call) and _dotted(node.func) == "exec":
                return True  # of a text that is only known when it is run
            if any(_refers(inner, known) for each in used for inner in ast.walk(each)):
                return True
    return False
