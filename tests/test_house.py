"""The manners of the house, as far as a machine can see them: sizes, docstrings, and tests that cannot be skipped."""

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tree import ROOT, all_files, code_files, files_of_tests, name_of

LONGEST_FILE = 450
LONGEST_FUNCTION = 70
MEDIAN_FUNCTION = 12

Function = ast.FunctionDef | ast.AsyncFunctionDef


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, Function):
            yield node


def length(function: Function) -> int:
    """Lines from `def` to the last one; decorators, which are often tables of cases, do not count."""
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def dotted(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


@pytest.mark.parametrize("path", all_files(), ids=name_of)
def test_file_is_short_and_says_why_it_exists(path: Path) -> None:
    """Every file fits the limit and begins with a docstring."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE
    docstring = ast.get_docstring(parsed(path))
    assert docstring is not None and len(docstring.split()) >= 4


@pytest.mark.parametrize("path", all_files(), ids=name_of)
def test_functions_are_short(path: Path) -> None:
    """No function is longer than the limit."""
    assert [f"{name_of(path)}:{f.lineno} {f.name}: {length(f)} lines" for f in functions(path) if length(f) > LONGEST_FUNCTION] == []


def test_functions_are_mostly_short() -> None:
    """Half of all shipped functions fit in a few lines."""
    lengths = sorted(length(function) for path in code_files() for function in functions(path))
    assert lengths[len(lengths) // 2] <= MEDIAN_FUNCTION


@pytest.mark.parametrize("path", files_of_tests(), ids=name_of)
def test_every_test_says_what_it_holds(path: Path) -> None:
    """Every test has a docstring that is one sentence, so that the list of tests reads as a specification."""
    for function in functions(path):
        if function.name.startswith("test_"):
            docstring = ast.get_docstring(function)
            assert docstring is not None, f"{name_of(path)}:{function.lineno} {function.name} has no docstring"
            assert docstring.rstrip().endswith("."), f"{name_of(path)}:{function.lineno} {function.name}: end the sentence"


@pytest.mark.parametrize("path", files_of_tests(), ids=name_of)
def test_no_test_is_skipped(path: Path) -> None:
    """No test is skipped or expected to fail: a case that does not work is mended or not claimed."""
    ways_out = {"skip", "skipif", "xfail", "importorskip"}
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Attribute) and node.attr in ways_out:
            assert not dotted(node).startswith("pytest."), f"{name_of(path)}:{node.lineno}: {dotted(node)}"


@pytest.mark.parametrize("path", all_files(), ids=name_of)
def test_suppressions_give_a_reason(path: Path) -> None:
    """A switched-off check names the check and, after another `#`, the reason."""
    with tokenize.open(path) as file:
        comments = [(t.start[0], t.string) for t in tokenize.generate_tokens(file.readline) if t.type == tokenize.COMMENT]
    for line, comment in comments:
        if re.match(r"#\s*(type:\s*ignore|noqa|pyright:)", comment):
            assert re.fullmatch(r"#[^#]*[\[:] ?[\w, -]+\]?  # \w.*", comment), f"{name_of(path)}:{line}: say why: {comment}"


@pytest.mark.parametrize("path", all_files(), ids=name_of)
def test_no_star_imports(path: Path) -> None:
    """Nothing is imported by star."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            assert all(alias.name != "*" for alias in node.names), f"{name_of(path)}:{node.lineno}"


@pytest.mark.parametrize("path", [*all_files(), *sorted(ROOT.glob("*.md")), ROOT / "Makefile"], ids=name_of)
def test_no_path_of_one_machine(path: Path) -> None:
    """No file names a folder that exists only on somebody's machine."""
    homes = "|".join(("root", "home", "Users", "work"))
    text = path.read_text(encoding="utf-8")
    assert re.findall(rf"(?<![\w.}}/])/(?:{homes})/\w+", text) == []
