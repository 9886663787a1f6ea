"""Where the sources are and what stands in them, for the tests that look at the repository itself; each file is parsed
once.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGE_DIR: dict[str, str] = PROJECT["tool"]["setuptools"]["package-dir"]
ROOMS: tuple[str, ...] = tuple(folder for name, folder in PACKAGE_DIR.items() if name != "layoutproof")
FACE = ROOT / PACKAGE_DIR["layoutproof"]


MATERIAL = frozenset({"data", "golden", "programs"})
"""Folders of files that are read as text; a Python file in them is not code of ours."""

SHIPPED = frozenset({".json", ".html", ".css", ".js", ".md", ".toml"})
"""Files beside the code that it reads."""


WAYS_OUT = frozenset({"skip", "skipif", "xfail", "importorskip"})
CODE = re.compile(r"\bLP\d{3}\b")


@dataclass(frozen=True)
class Function:
    """What a function looks like: `length` in lines from `def` to the last one; decorators, often tables of cases, do
    not count.
    """

    place: str
    name: str
    length: int
    docstring: str | None


@dataclass(frozen=True)
class File:
    """What the tests ask about one file; places are path and line."""

    name: str
    text: str
    docstring: str | None
    functions: tuple[Function, ...]
    ways_out: tuple[str, ...]
    star_imports: tuple[str, ...]
    imports: tuple[tuple[str, str], ...]
    """Module and name of each `from layoutproof.x import y`."""
    strings: tuple[tuple[int, str], ...]
    """Line and text of each string, docstrings too."""
    codes: tuple[str, ...]
    """The diagnostic codes that stand as strings of their own."""
    named_codes: tuple[str, ...]
    """The names that the module gives to codes."""
    has_meanings: bool
    """Whether the module has a table MEANINGS."""
    code_lines: int
    """The lines that are neither blank nor comments nor of a docstring nor of an import."""


@cache
def file(path: Path) -> File:
    """The file, read and parsed once."""
    text, name = path.read_text(encoding="utf-8"), name_of(path)
    module = ast.parse(text, name)
    nodes = _nodes(module)
    assigned = [n for n in module.body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)]
    named = [n for n in assigned if isinstance(n.value, ast.Constant) and CODE.fullmatch(str(n.value.value))]
    imports = [n for n in nodes[ast.ImportFrom] if isinstance(n, ast.ImportFrom)]
    strings = [
        (n.lineno, n.value) for n in nodes[ast.Constant] if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]
    return File(
        name,
        text,
        ast.get_docstring(module),
        tuple(
            _function(name, n) for n in nodes[ast.FunctionDef] if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
        ),
        tuple(
            f"{name}:{n.lineno} {dotted}"
            for n in nodes[ast.Attribute]
            if isinstance(n, ast.Attribute) and (dotted := _way_out(n))
        ),
        tuple(f"{name}:{n.lineno}" for n in imports if any(each.name == "*" for each in n.names)),
        tuple(each for n in imports for each in _imports(n)),
        tuple(strings),
        tuple(value for _, value in strings if CODE.fullmatch(value)),
        tuple(target.id for node in named for target in node.targets if isinstance(target, ast.Name)),
        any(
            isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name) and n.target.id == "MEANINGS"
            for n in module.body
        ),
        _code_lines(text, nodes),
    )


def _code_lines(text: str, nodes: dict[type[ast.AST], list[ast.AST]]) -> int:
    apart: set[int] = set()
    for node in (*nodes[ast.Import], *nodes[ast.ImportFrom], *nodes[ast.Expr]):
        assert isinstance(node, ast.stmt)
        if not isinstance(node, ast.Expr) or isinstance(node.value, ast.Constant):
            apart |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(number not in apart and line != "" and not line.startswith("#") for number, line in lines)


def _nodes(module: ast.Module) -> dict[type[ast.AST], list[ast.AST]]:
    """The nodes that are asked for, by type."""
    found: dict[type[ast.AST], list[ast.AST]] = {kind: [] for kind in _ASKED}
    found[ast.AsyncFunctionDef] = found[ast.FunctionDef]
    nodes: list[ast.AST] = [module]
    for node in nodes:
        for name in node._fields:
            part = getattr(node, name, None)
            for child in part if isinstance(part, list) else (part,):
                # Names are most of all, and have nothing in them.
                if type(child) not in _LEAVES and isinstance(child, ast.AST):
                    nodes.append(child)
                    if type(child) in found:
                        found[type(child)].append(child)
    return found


_ASKED = (ast.FunctionDef, ast.Attribute, ast.Import, ast.ImportFrom, ast.Expr, ast.Constant)
_LEAVES = frozenset({ast.Name, ast.Load, ast.Store, str, int, type(None)})


def _function(name: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    assert node.end_lineno is not None
    return Function(
        f"{name}:{node.lineno} {node.name}", node.name, node.end_lineno - node.lineno + 1, ast.get_docstring(node)
    )


def _way_out(node: ast.Attribute) -> str | None:
    """`pytest.mark.skip` and the like."""
    dotted = ast.unparse(node) if node.attr in WAYS_OUT else ""
    return dotted if dotted.startswith("pytest.") else None


def _imports(node: ast.ImportFrom) -> Iterator[tuple[str, str]]:
    if node.module is not None and node.module.startswith("layoutproof."):
        yield from ((node.module, alias.name) for alias in node.names)


def code_files() -> list[Path]:
    """Every Python file that is shipped, each once: the rooms in their top-level folders, and the face's own files."""
    return sorted([*FACE.glob("*.py"), *(path for room in ROOMS for path in _python_below(ROOT / room))])


def files_of_tests() -> list[Path]:
    """Every Python file below tests/."""
    return sorted(_python_below(ROOT / "tests"))


def all_files() -> list[Path]:
    """Shipped code, tests, benchmarks, examples and what makes the documentation."""
    beside = [path for folder in ("benchmarks", "examples", "docs") for path in _python_below(ROOT / folder)]
    return sorted([*code_files(), *files_of_tests(), *beside])


def material_files() -> list[Path]:
    """Every file that is shipped without being code."""
    return sorted(
        path
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and (_is_material(path) or path.suffix in SHIPPED)
    )


def name_of(path: Path) -> str:
    """The path below the repository's root, as a test id."""
    return path.relative_to(ROOT).as_posix()


def _python_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.py") if not _is_material(path) and "_build" not in path.parts]


def _is_material(path: Path) -> bool:
    return not MATERIAL.isdisjoint(path.relative_to(ROOT).parts[:-1])
