"""Texts of programs and of rewrites -> the core model of `programs`."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from layoutproof.verify.kernel import programs as core
from layoutproof.verify.kernel.expressions import Expressions, entries_of, fail, parse, script_name
from layoutproof.verify.kernel.functions import Functions
from layoutproof.verify.kernel.lanes import is_lane, one_lane
from layoutproof.verify.kernel.programs import TRUE, Buffer, Expr, Map, Statement, variable
from layoutproof.verify.kernel.rejected import Rejected

_IMPORTS = ("from tvm.script import tirx as T", "from tvm.script import tir as T", "from tvm.script import ir as I")
_EXPECTED, ASSUMPTIONS = ("proved", "refuted", "unknown", "vacuous", ""), {"nnan", "ninf", "nsz", "reassoc"}
_KEYS = ("about", "clause", "expect", "strictness", "where", "functions", "interface", "theta", "cells")
_ENTRY = re.compile(r"# ([a-z]+):(.*)")
_REMARK = re.compile(r"#\s*from \S+ import .*|#|\s*")
_MISPLACED = re.compile(rf"#\s*({'|'.join(_KEYS)})\s*:.*")
_ARROW = re.compile(r"(\w+)\s*->\s*(\w+)\s*(?::(.*))?")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
Scope = Mapping[str, Expr | Buffer]


def functions_of(text: str) -> dict[str, Functions]:
    """The functions of a text, by name."""
    found: dict[str, Functions] = {}
    for node in parse(text, "exec").body:
        if isinstance(node, ast.FunctionDef) and [script_name(d) for d in node.decorator_list] == ["prim_func"]:
            if node.name in found:
                fail(node, "two functions of one name")
            found[node.name] = Functions(node)
        elif not isinstance(node, ast.ImportFrom) or ast.unparse(node) not in _IMPORTS:
            fail(node, "only functions decorated with T.prim_func are understood here")
    return found


def lines_of(text: object) -> str:
    """The text with ends of lines that Python's syntax and the lines of a header agree on."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n") if isinstance(text, str) else "\r"
    if "\r" in plain or "\f" in plain:
        raise Rejected("the text has characters that are not understood")
    return plain


def read_rewrite(text: str) -> core.Rewrite:
    """Two programs, `before` and `after`, with the header that states the witness, and loops over lanes for vector
    statements. Raises Rejected.
    """
    text = lines_of(text)
    functions = functions_of(text)
    if set(functions) != {"before", "after"}:
        raise Rejected("a rewrite has the functions `before` and `after`")
    return Header(text, functions["before"], functions["after"]).rewrite()


class Header:
    """The lines `# key: value` above the functions, which end with the first line that is no comment."""

    def __init__(self, text: str, before: Functions, after: Functions) -> None:
        self.entries: dict[str, list[str]] = {key: [] for key in _KEYS}
        is_above = True
        for number, line in enumerate(text.split("\n"), 1):
            is_above = is_above and (not line.strip() or line.startswith("#"))
            found = _ENTRY.fullmatch(line) if is_above else None
            if found is not None and found[1] in _KEYS:
                self.entries[found[1]].append(found[2].strip())
            elif (_REMARK.fullmatch(line) is None) if is_above else _MISPLACED.fullmatch(line):
                raise Rejected(f"line {number}: this line of the header is not understood, or not in its place")
        if any(len(self.entries[key]) > 1 for key in _KEYS if key not in ("theta", "cells")):
            raise Rejected("a key of the header is given twice")
        names = self.listed("functions") or ("before", "after")
        if len(names) != 2 or not all(map(str.isidentifier, names)):
            raise Rejected("the names of two functions are expected")
        expect, strictness = ("".join(self.entries[key]) for key in ("expect", "strictness"))
        if expect not in _EXPECTED or (strictness != "ieee" and not set(strictness.split()) <= ASSUMPTIONS):
            raise Rejected("a verdict, or fast-math assumptions, are not known")
        self.old, self.new = (recorded(f, name) for f, name in zip((before, after), names, strict=True))
        self.written = after.written
        self.symbols: dict[str, Expr | Buffer] = {}
        for name, dtype in (*self.old.symbols, *self.new.symbols):
            if self.symbols.setdefault(name, ("var", dtype, name)) != ("var", dtype, name):
                raise Rejected(f"the symbol `{name}` has two types")
        if any(name in written for name in self.symbols for written in (before.written, after.written)):
            raise Rejected("a loop has the name of a symbol of the other program")

    def listed(self, key: str) -> tuple[str, ...]:
        return tuple(part.strip() for value in self.entries[key] for part in value.split(",") if value)

    def rewrite(self) -> core.Rewrite:
        interface = self.listed("interface")
        if not set(interface) <= set(self.old.params):
            raise Rejected("the interface names something that is no parameter")
        where = next((_condition(value, self.symbols) for value in self.entries["where"]), TRUE)
        strictness = "".join(self.entries["strictness"])
        return core.Rewrite(self.old, self.new, self.theta(), self.cells(), where, interface, strictness)

    def theta(self) -> dict[int, tuple[core.Instances, ...]]:
        old, new, lines = self.old.stores, self.new.stores, self.entries["theta"]
        if not lines:
            if len(old) != len(new):
                raise Rejected("which store computes which is not stated")
            lines = [f"{k} -> {k}" for k in range(len(new))]
        found: dict[int, tuple[core.Instances, ...]] = {}
        for line in lines if lines != ["none"] else ():
            match = _ARROW.fullmatch(line)
            if match is None or not _NUMBER.fullmatch(match[1]) or not _NUMBER.fullmatch(match[2].replace("none", "0")):
                raise Rejected("a line of theta is not understood")
            if int(match[1]) >= len(new) or (match[2] != "none" and int(match[2]) >= len(old)):
                raise Rejected("a line of theta names a store that is not there")
            number, computes = int(match[1]), None if match[2] == "none" else old[int(match[2])]
            found[number] = (*found.get(number, ()), *self.instances(new[number], computes, (match[3] or "").strip()))
        return found

    def instances(self, new: Statement, old: Statement | None, text: str) -> tuple[core.Instances, ...]:
        here = {self.written[loop.var]: variable(loop) for loop in new.loops if not is_lane(loop)}
        names, exprs, where = read_map(text, self.symbols, here)
        if old is None:
            if names is not None:
                raise Rejected("a line of theta that names no old store has a map")
            return ()
        if names is None:
            names, exprs = tuple(e[2] for e in here.values()), tuple(here.values())
        if len(names) == len(new.loops) - 1 and is_lane(new.loops[-1]):
            names = (*names, new.loops[-1].var)
            if len(exprs) == len(old.loops) - 1 and is_lane(old.loops[-1]):
                exprs = (*exprs, variable(new.loops[-1]))
        if (len(names), len(exprs)) != (len(new.loops), len(old.loops)):
            raise Rejected("a map of theta has not as many entries as there are loops")
        return ((old.number, Map(names, exprs, where)),)

    def cells(self) -> dict[str, core.Cells]:
        old, new = ({b.data for b in program.buffers.values()} for program in (self.old, self.new))
        found: dict[str, core.Cells] = {}
        for line in self.entries["cells"]:
            match = _ARROW.fullmatch(line)
            if match is None or match[1] not in old or match[2] not in new or match[2] in found:
                raise Rejected("a line of cells is not understood, or two old buffers became one")
            names, exprs, where = read_map((match[3] or "").strip(), self.symbols, {})
            if names is None or where != TRUE:
                raise Rejected("a line of cells states a map")
            found[match[2]] = (match[1], Map(names, exprs))
        return found


def recorded(function: Functions, name: str) -> core.Program:
    """The program of a function, with the records of its layouts."""
    program = function.program(name)
    symbols = {n: ("var", "int32", n) for n, dtype in program.symbols if core.is_index(dtype)}  # as in each record
    layouts = {}
    for data, given in function.layouts.items():
        owner = program.owner(data)
        if owner is None:
            raise Rejected(f"there is no memory {data}, of which there is a record")
        logical, entries = _fields(given, "logical_shape", "steps")
        steps = tuple(_layout(step, symbols, program, owner.dtype) for step in _items(entries))
        layouts[data] = core.Record(_box(logical, symbols), steps)
    return one_lane(replace(program, layouts=layouts))


def _fields(given: object, *keys: str) -> list[Any]:
    """The values of an object that has these keys and no others."""
    if type(given) is not dict or set(given) != set(keys):
        raise Rejected(f"a part of a record has not the keys {', '.join(keys)}")
    return [given[key] for key in keys]


def _layout(step: object, symbols: Scope, program: core.Program, dtype: str) -> core.Layout:
    text, box, said = _fields(step, "index_map", "shape", "contract")
    names, outputs, where = read_map(str(text), symbols, {})
    shape = _box(box, symbols)
    if names is None or where != TRUE:
        raise Rejected("the map of a record is not understood")
    if said in (None, "undef"):
        return core.Layout(Map(names, outputs), shape, ("undef", core.element_of(dtype)) if said else None)
    tree = parse(str(said), "eval").body
    inputs = [a.arg for a in tree.args.args] if isinstance(tree, ast.Lambda) else []
    places = {n: core.place(axis) for axis, n in enumerate(inputs)}
    reader = Expressions({**symbols, **program.buffers, **places})
    node = tree.body if isinstance(tree, ast.Lambda) else tree
    return core.Layout(Map(names, outputs), shape, reader.typed(node, reader.read(node), dtype))


def _items(given: object) -> list[object]:
    if type(given) is not list:
        raise Rejected("a shape, or the steps of a record, are no list")
    return cast("list[object]", given)


def _box(shape: object, symbols: Scope) -> tuple[Expr, ...]:
    return tuple(read_extent(str(extent), symbols) for extent in _items(shape))


def scope_of(symbols: Sequence[tuple[str, str]]) -> dict[str, Expr | Buffer]:
    """What expressions over symbols may name."""
    return {name: ("var", dtype, name) for name, dtype in symbols}


def read_extent(text: str, symbols: Scope) -> Expr:
    """An integer expression over symbols."""
    return Expressions(symbols).integer(parse(text, "eval").body)


def _condition(text: str, scope: Scope) -> Expr:
    return Expressions(scope).condition(parse(text, "eval").body)


def read_map(
    text: str, symbols: Scope, here: Mapping[str, Expr]
) -> tuple[tuple[str, ...] | None, tuple[Expr, ...], Expr]:
    """Names, expressions and condition of `lambda i: [i // 4] of int32 where i < 14`, `here` being the loops."""
    end = (text.rfind("]") + 1 or len(text)) if text.startswith("lambda") else 0
    stated, where, condition = text[end:].partition("where")
    types = [core.parse_dtype(t.strip()) or "" for t in stated.strip().removeprefix("of ").split(",")]
    if stated.strip() and (not end or not stated.strip().startswith("of ") or any("x" in t for t in types)):
        raise Rejected("a map is followed by something that is not understood")
    names: tuple[str, ...] | None = None
    exprs: tuple[Expr, ...] = ()
    scope: Scope = {**symbols, **here}
    if end:
        tree = parse(text[:end], "eval").body
        names = tuple(a.arg for a in tree.args.args) if isinstance(tree, ast.Lambda) else ()
        if not stated.strip():
            types = [e[1] for e in here.values()] if len(here) == len(names) else ["int32"] * len(names)
        if not isinstance(tree, ast.Lambda) or ast.unparse(tree.args) != ", ".join(dict.fromkeys(names)):
            raise Rejected("a map is not understood")
        if len(types) != len(names) or not all(map(core.is_integer, types)):
            raise Rejected("a map has not as many types as inputs")
        scope = {**symbols, **{n: ("var", t, n) for n, t in zip(names, types, strict=True)}}
        entries = [e for e in entries_of(tree.body) if ast.unparse(e) != "AXIS_SEPARATOR"]
        exprs = tuple(map(Expressions(scope).integer, entries))
    return names, exprs, _condition(condition.strip(), scope) if where else TRUE
