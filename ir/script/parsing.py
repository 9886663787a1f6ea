"""Text -> Python's syntax tree, with a message at its place for every failure; and the arguments of a call, bound to
parameter names as Python does.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import LayoutproofError, Source, Span, error, split_lines
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import IntImm, Var
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import Seq, opens_scope
from layoutproof.ir.visit import children

MAX_DEPTH = 128  # of an expression: the readers, and whatever walks the nodes later, recurse
MAX_NODE_DEPTH = 160  # of a program's nodes, statements and expressions together


class Text:
    """A source with its lines, to turn the byte columns of Python's tree into spans."""

    def __init__(self, source: Source, column_shift: int = 0) -> None:
        self.source = source
        self._lines = split_lines(source.text)
        self._shift = column_shift  # characters cut off the first line before parsing

    def column(self, line: int, byte_column: int) -> int:
        """The column in characters of a byte column of the parsed text."""
        text = self._lines[line - 1] if 1 <= line <= len(self._lines) else ""
        shift = self._shift if line == 1 else 0
        text = text[shift:]
        if text.isascii():
            return byte_column + shift
        return len(text.encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "replace")) + shift

    def span(self, node: ast.AST) -> Span:
        """Where a node stands. A node without a place of its own (an argument list) is at the start."""
        line = getattr(node, "lineno", 1)
        end_line = getattr(node, "end_lineno", None) or line
        start = self.column(line, getattr(node, "col_offset", 0))
        end = self.column(end_line, getattr(node, "end_col_offset", None) or 0)
        return Span(self.source, line, start, end_line, end if end_line > line else max(end, start + 1))

    def fail(self, code: str, message: str, node: ast.AST, *, help: str | None = None) -> LayoutproofError:
        """An error that points at `node`."""
        return error(code, message, self.span(node), help=help)

    def start(self) -> Span:
        """The first non-blank place."""
        for number, line in enumerate(self._lines, start=1):
            if line.strip():
                column = len(line) - len(line.lstrip())
                return Span(self.source, number, column, number, len(line.rstrip()))
        return Span(self.source, 1, 0, 1, 1)


def parse_module(source: Source) -> tuple[ast.Module, Text]:
    """The tree of a program text. Raises LayoutproofError for text that is empty, binary or not Python."""
    _check_characters(source)
    text = Text(source)
    tree = _parse(source.text, text, "exec")
    assert isinstance(tree, ast.Module)
    if not tree.body:
        raise error(codes.EMPTY, "the text is empty: a program is expected", text.start())
    return tree, text


def parse_expression(source: Source, wanted: str) -> tuple[ast.expr, Text]:
    """The tree of one expression; `wanted` says what it should be, for the message about an empty text."""
    _check_characters(source)
    stripped = source.text.lstrip()
    if not stripped:
        raise error(codes.EMPTY, f"the text is empty: {wanted} is expected", Span(source, 1, 0, 1, 1))
    shift = len(source.text) - len(stripped)
    if shift and set(source.text[:shift]) & set("\r\n"):
        shift = 0  # leading line breaks stay, so that lines count from where the user's text starts
    text = Text(source, shift)
    code = source.text[shift:].rstrip()
    try:
        tree = _parse(code, text, "eval")
    except LayoutproofError:
        if not set(code) & set("\r\n"):
            raise
        # Line breaks outside brackets end a Python expression, but not a map written over several lines.
        tree = _parse_in_parentheses(source, code, shift)
        text = Text(source, shift - 1)
    assert isinstance(tree, ast.Expression)
    check_depth(tree, text)
    return tree.body, text


def _parse_in_parentheses(source: Source, code: str, shift: int) -> ast.Expression:
    tree = _parse(f"({code}\n)", Text(source, shift - 1), "eval")
    assert isinstance(tree, ast.Expression)
    return tree


_UNREADABLE = re.compile("[\0\ud800-\udfff]")


def _check_characters(source: Source) -> None:
    found = _UNREADABLE.search(source.text)
    if found is None:
        return
    before = split_lines(source.text[: found.start()])
    place = Span(source, len(before), len(before[-1]), len(before), len(before[-1]) + 1)
    what = "a null byte" if found[0] == "\0" else f"a lone surrogate U+{ord(found[0]):04X}"
    raise error(codes.UNDECODABLE, f"{what} in the text: this looks like binary data", place)


def _parse(code: str, text: Text, mode: str) -> ast.AST:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in strings
            return ast.parse(code, mode=mode)
    except SyntaxError as problem:
        raise _syntax_error(problem, text) from problem
    except (RecursionError, MemoryError) as problem:
        raise error(codes.TOO_DEEP, "the text is nested too deeply to be read", text.start()) from problem
    except ValueError as problem:  # a number with more digits than Python converts
        raise error(codes.SYNTAX, f"not Python syntax: {problem}", text.start()) from problem


def _syntax_error(problem: SyntaxError, text: Text) -> LayoutproofError:
    last = len(split_lines(text.source.text))
    line = min(problem.lineno if problem.lineno is not None else 1, last)
    content = text.source.line(line)
    shift = text.column(line, 0)
    start = min(max(0, (problem.offset or 1) - 1 + shift), len(content))
    end = (problem.end_offset or 0) - 1 + shift if problem.end_lineno == line else start + 1
    span = Span(text.source, line, start, line, max(min(end, len(content)), start + 1))
    if "too many nested" in problem.msg or "too many levels" in problem.msg:
        return error(codes.TOO_DEEP, f"the text is nested too deeply: {problem.msg}", span)
    return error(codes.SYNTAX, f"not Python syntax: {problem.msg}", span)


_SHALLOW = frozenset({ast.Name, ast.Constant, ast.Load, ast.Store, str, int, type(None)})


def check_depth(tree: ast.AST, text: Text, limit: int = MAX_DEPTH) -> None:
    """Raise LayoutproofError for a tree deeper than `limit`; n `and`s count as n - 1 levels, each `elif` as one."""
    if len(text.source.text) <= limit:
        return  # every level takes a character
    stack: list[tuple[ast.AST, int]] = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > limit:
            raise text.fail(codes.TOO_DEEP, f"the text is nested more than {limit} levels deep here", node)
        below = depth + _levels(node)
        for name in node._fields:
            part = getattr(node, name, None)
            for child in part if isinstance(part, list) else (part,):
                # Half of all nodes are names and numbers: one level more below these is all that there can be.
                if (below >= limit or type(child) not in _SHALLOW) and isinstance(child, ast.AST):
                    stack.append((child, below))


def _levels(node: ast.AST) -> int:
    """How many levels deeper the children of a node are."""
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.Compare):
        return len(node.ops)
    if isinstance(node, ast.Call) and _is_extreme(node.func):
        return max(1, len(node.args) - 1)  # min and max of many values are nested calls of two
    return 1 if isinstance(node, ast.expr | ast.stmt) else 0


_LEAVES = frozenset({Var, IntImm})


def check_node_depth(root: Node, start: Span) -> None:
    """Raise LayoutproofError where a program's nodes are nested so deeply that passes over them might not return."""
    stack: list[tuple[Node, int]] = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_NODE_DEPTH:
            place = node.span if node.span is not None else start
            raise error(
                codes.TOO_DEEP, f"statements and expressions are nested more than {MAX_NODE_DEPTH} deep here", place
            )
        # Statements that follow one another are as deep as they are many: `ir/visit.py` makes room for them.
        below = depth if isinstance(node, Seq) or opens_scope(node) else depth + 1
        is_near = below >= MAX_NODE_DEPTH
        stack.extend((child, below) for child in children(node) if is_near or type(child) not in _LEAVES)


@contextmanager
def limited_depth(text: Text) -> Generator[None, None, None]:
    """A text that still exhausts Python's stack (because its caller has used most of it) is too deep as well."""
    try:
        yield
    except RecursionError as problem:
        raise error(codes.TOO_DEEP, "the text is nested too deeply to be read here", text.start()) from problem


def _is_extreme(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.lower() in ("min", "max")


Bound = dict[str, ast.expr]


def bind(text: Text, call: ast.Call, name: str, parameters: Sequence[str], required: int) -> Bound:
    """Parameter name -> argument. Raises LayoutproofError unless the first `required` are given and all are known."""
    bound: Bound = {}
    for position, argument in enumerate(call.args):
        if isinstance(argument, ast.Starred):
            raise text.fail(codes.UNSUPPORTED, f"a starred argument of {name}", argument)
        if position >= len(parameters):
            raise text.fail(
                codes.WRONG_ARGUMENTS, f"{name} takes {_count(parameters, required)}, not {len(call.args)}", argument
            )
        bound[parameters[position]] = argument
    for keyword in call.keywords:
        if keyword.arg is None:
            raise text.fail(codes.UNSUPPORTED, f"** in a call of {name}", keyword.value)
        if keyword.arg not in parameters:
            raise text.fail(
                codes.WRONG_ARGUMENTS,
                f"{name} has no argument `{keyword.arg}`",
                keyword,
                help=did_you_mean(keyword.arg, parameters),
            )
        if keyword.arg in bound:
            raise text.fail(codes.WRONG_ARGUMENTS, f"{name} is given `{keyword.arg}` twice", keyword)
        bound[keyword.arg] = keyword.value
    missing = [p for p in parameters[:required] if p not in bound]
    if missing:
        words = " and ".join(f"`{m}`" for m in missing)
        raise text.fail(codes.WRONG_ARGUMENTS, f"{name} lacks {words}; it takes {_count(parameters, required)}", call)
    return bound


def _count(parameters: Sequence[str], required: int) -> str:
    most = len(parameters)
    if most == 0:
        return "no arguments"
    number = str(most) if required == most else f"{required} to {most}"
    return f"{number} argument{'s' if most > 1 else ''} ({', '.join(parameters)})"


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str | None:
    """`did you mean ...?` for the closest known name, or None."""
    from difflib import get_close_matches  # for a message only

    close = get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f"did you mean `{prefix}{close[0]}`?" if close else None


def is_text(node: ast.expr) -> bool:
    """Whether an expression is a string literal."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def read_string(text: Text, node: ast.expr, what: str) -> str:
    """A string literal; `what` names it in the message."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise text.fail(codes.WRONG_ARGUMENTS, f"{what} must be a string in quotes", node)


def read_integer(text: Text, node: ast.expr, what: str) -> int:
    """An integer literal, a minus sign allowed."""
    sign, inner = (-1, node.operand) if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else (1, node)
    if isinstance(inner, ast.Constant) and isinstance(inner.value, int) and not isinstance(inner.value, bool):
        return sign * inner.value
    raise text.fail(codes.WRONG_ARGUMENTS, f"{what} must be an integer literal", node)


_COMMON_TYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "bfloat16", "handle",
)  # fmt: skip


def read_dtype(text: Text, node: ast.expr) -> DType:
    """A data type: `"float32"`, or `T.float32` without a call."""
    name = node.attr if isinstance(node, ast.Attribute) else read_string(text, node, "a data type")
    return parse_dtype(text, node, name)


def parse_dtype(text: Text, node: ast.AST, name: str) -> DType:
    """The data type called `name`; raises LayoutproofError at `node` for others."""
    try:
        return DType.parse(name)
    except ValueError as problem:
        raise text.fail(codes.WRONG_TYPE, str(problem), node, help=did_you_mean(name, _COMMON_TYPES)) from problem


def read_list(text: Text, node: ast.expr, what: str) -> list[ast.expr]:
    """The entries of a list or tuple display."""
    if isinstance(node, ast.List | ast.Tuple):
        for entry in node.elts:
            if isinstance(entry, ast.Starred):
                raise text.fail(codes.UNSUPPORTED, f"a starred entry of {what}", entry)
        return list(node.elts)
    raise text.fail(codes.WRONG_ARGUMENTS, f"{what} must be a list or a tuple", node)
