"""Rewrites as text for people and certificates: the witness in comment lines, then two programs, `before` and `after`.

    # theta: 1 -> 0: lambda i, jo, ji: [i, 4*jo + ji] where 4*jo + ji < 14
    # theta: 2 -> none
    # cells: A_data -> A_data: lambda i, j: [i, j//4, j%4]
    # interface: A, B

New store 1 computes old store 0, new store 2 none. A line without a map, `0 -> 0`, maps the loops of two equal nests
one to one; without any theta line every store has such a line with the store of its number (`theta: none` is an empty
witness). A test case has further lines, which are no part of the rewrite: `where` (preconditions), `expect`,
`strictness`, `clause` and `about`.

The types of a map's inputs are those of the loops (cells: int32) unless ` of int64, int32` follows it; functions with
names of their own are named by `# functions: old, new`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, Source, Span, counted, error, split_lines
from layoutproof.ir.dtype import HANDLE, INT32, DType
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_condition, parse_index_map
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite, Witness
from layoutproof.ir.script.parsing import did_you_mean
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads_module
from layoutproof.ir.text import CURRENT, expr_text
from layoutproof.ir.visit import bound_variables, loops_of_stores, walk

T = TypeVar("T")
BEFORE, AFTER = "before", "after"
EXPECTATIONS = ("proved", "refuted", "unknown", "vacuous")
IEEE = "ieee"
_NONE = "none"
_REPEATED = ("theta", "cells")
_KEYS = ("about", "clause", "expect", "strictness", "where", "functions", "interface", *_REPEATED)
_ENTRY = re.compile(r"#\s*([A-Za-z_]+)\s*:[ \t]*(.*?)\s*")
_IMPORT = re.compile(r"#\s*from \S+ import .*")
_ARROW = re.compile(r"(?P<new>\w+)\s*->\s*(?P<old>\w+)\s*(?::\s*(?P<rest>.*))?")
_WHERE = re.compile(r"(?:\s*of\s+(?P<types>[\w\s,]+?))?(?:\s*\bwhere\s+(?P<where>.*))?")


@dataclass(frozen=True, slots=True)
class LitmusHeader:
    """What a test case says beside its rewrite.

    `expect` is one of EXPECTATIONS; `strictness` the fast-math assumptions a proof needs, none for a proof bit for bit,
    None where nothing is said; `clause` the clause of the checker that refuses it; `where` a condition on symbols that
    callers vouch for.
    """

    expect: str | None = None
    strictness: tuple[str, ...] | None = None
    clause: str | None = None
    about: str | None = None
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class Litmus:
    """A rewrite with what its file says about it."""

    rewrite: Rewrite
    header: LitmusHeader


def parse_rewrite(text: str, name: str = "<rewrite>") -> Rewrite:
    """The rewrite of a text that messages call `name`. Raises LayoutproofError, as `parse_litmus` does."""
    return parse_litmus(text, name).rewrite


def parse_litmus(text: str, name: str = "<rewrite>") -> Litmus:
    """The rewrite of a text with what else stands in its header.

    Raises LayoutproofError, with the place, for a program or a line of the header that is not understood.
    """
    source = Source(name, text.removeprefix("\ufeff"))
    entries = list(_entries(source))
    functions = {f.name: f for f in loads_module(source.text, name).functions}
    if set(functions) != {BEFORE, AFTER}:
        message = f"a rewrite has the functions {BEFORE} and {AFTER}, this text has {', '.join(functions)}"
        raise error(codes.REWRITE_PROGRAMS, message, Span(source, 1, 0, 1, 1))
    return _Reader(source, entries, functions[BEFORE], functions[AFTER]).read()


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line of the header; `line` and `column` are where its value begins."""

    key: str
    value: str
    source: Source
    line: int
    column: int

    def span(self, start: int = 0, end: int | None = None) -> Span:
        stop = len(self.value) if end is None else end
        return Span(self.source, self.line, self.column + start, self.line, self.column + max(stop, start + 1))

    def fail(
        self, message: str, start: int = 0, end: int | None = None, *, help: str | None = None
    ) -> LayoutproofError:
        return error(codes.REWRITE_WITNESS, message, self.span(start, end), help=help)


def _entries(source: Source) -> Iterator[_Entry]:
    seen: set[str] = set()
    inside = True
    for number, line in enumerate(split_lines(source.text), start=1):
        found = _ENTRY.fullmatch(line)
        whole = Span(source, number, 0, number, max(len(line), 1))
        if not inside:
            if found is not None and found[1] in _KEYS:
                raise error(
                    codes.REWRITE_HEADER, f"`{found[1]}` stands below the programs: the header stands above them", whole
                )
            continue
        if line.strip() in ("", "#") or _IMPORT.fullmatch(line) is not None:
            continue
        inside = line.startswith("#")
        if not inside:
            continue
        if found is None:
            raise error(codes.REWRITE_HEADER, "a line of the header is `# key: value`", whole)
        key = found[1]
        place = Span(source, number, found.start(1), number, found.end(1))
        if key not in _KEYS:
            raise error(codes.REWRITE_HEADER, f"the header has no key `{key}`", place, help=did_you_mean(key, _KEYS))
        if key in seen and key not in _REPEATED:
            raise error(codes.REWRITE_HEADER, f"`{key}` is given twice", place)
        seen.add(key)
        yield _Entry(key, found[2], source, number, found.start(2))


class _Reader:
    """Reads the header of one text, its programs being known."""

    def __init__(self, source: Source, entries: Sequence[_Entry], old: PrimFunc, new: PrimFunc) -> None:
        self.source = source
        self.entries = entries
        self.old, self.new = old, new
        self.symbols = {**_symbols(old), **_symbols(new)}
        self.loops = loops_of_stores(new.body)
        self.old_loops = loops_of_stores(old.body)
        self.old_stores = len(self.old_loops)

    def read(self) -> Litmus:
        names = self.one("functions")
        if names is not None:
            given = _listed(names)
            if len(given) != 2 or not all(n.isidentifier() for n in given):
                raise names.fail("the names of two functions are expected, `old, new`")
            self.old, self.new = replace(self.old, name=given[0]), replace(self.new, name=given[1])
        witness = Witness(self.instances(), tuple(self.cells(e) for e in self.all("cells")), self.interface())
        return Litmus(Rewrite(self.old, self.new, witness), self.header())

    def all(self, key: str) -> list[_Entry]:
        return [e for e in self.entries if e.key == key]

    def one(self, key: str) -> _Entry | None:
        return next(iter(self.all(key)), None)

    def header(self) -> LitmusHeader:
        expect, strictness, where = self.one("expect"), self.one("strictness"), self.one("where")
        if expect is not None and expect.value not in EXPECTATIONS:
            raise error(codes.REWRITE_HEADER, f"{expect.value!r} is none of {', '.join(EXPECTATIONS)}", expect.span())
        texts = [None if entry is None else entry.value for entry in (self.one("clause"), self.one("about"))]
        condition = None if where is None else self.condition(where, 0, len(where.value), {})
        fast_math = None if strictness is None else tuple(strictness.value.split()) if strictness.value != IEEE else ()
        return LitmusHeader(None if expect is None else expect.value, fast_math, texts[0], texts[1], condition)

    def interface(self) -> tuple[str, ...]:
        entry = self.one("interface")
        if entry is None:
            return ()
        known = [b.name for b in self.old.buffers]
        for name in _listed(entry):
            if name not in known:
                raise entry.fail(f"`{name}` is no parameter of the program before", help=did_you_mean(name, known))
        return _listed(entry)

    # ---- maps

    def instances(self) -> tuple[InstanceMap, ...]:
        lines = self.all("theta")
        if not lines:
            if len(self.loops) != self.old_stores:
                stores = f"the programs have {self.old_stores} and {counted(len(self.loops), 'store', 'stores')}"
                raise error(codes.REWRITE_WITNESS, f"{stores}: say which computes which by theta lines", self.new.span)
            return _same_stores(self.new)
        if [e.value for e in lines] == [_NONE]:
            return ()
        return tuple(self.instance(entry) for entry in lines)

    def instance(self, entry: _Entry) -> InstanceMap:
        found = _ARROW.fullmatch(entry.value)
        if found is None or not found["new"].isdecimal() or not (found["old"].isdecimal() or found["old"] == _NONE):
            raise entry.fail(
                "a theta line is `new -> old: lambda loops: [old loops]`, stores by number, or `new -> none`"
            )
        new = self.store(entry, found, "new", len(self.loops))
        old = None if found["old"] == _NONE else self.store(entry, found, "old", self.old_stores)
        types = tuple(loop.var.dtype for loop in self.loops[new])
        instances, where = self.map(entry, found, types, {loop.var.name: loop.var for loop in self.loops[new]})
        if old is None and instances is not None:
            raise entry.fail(
                f"new store {new} computes no old store, so there is no map of its instances", found.start("rest")
            )
        if old is not None and instances is None:
            instances = self.same_loops(entry, new, old)
        return InstanceMap(new, old, instances, where)

    def same_loops(self, entry: _Entry, new: int, old: int) -> IndexMap:
        """The map of a line that has none: the loops of both stores, one for one."""
        inside, before = len(self.loops[new]), len(self.old_loops[old])
        if inside != before:
            loops = f"new store {new} stands in {counted(inside, 'loop', 'loops')}, old store {old} in {before}"
            raise entry.fail(f"{loops}: a map is needed, `lambda loops: [old loops]`")
        variables = tuple(loop.var for loop in self.loops[new])
        return IndexMap(variables, variables)

    def store(self, entry: _Entry, found: re.Match[str], which: str, stores: int) -> int:
        number = int(found[which])
        if number >= stores:
            raise entry.fail(
                f"there is no {which} store {number}: there are {stores}, counted from 0", *found.span(which)
            )
        return number

    def cells(self, entry: _Entry) -> CellMap:
        found = _ARROW.fullmatch(entry.value)
        index_map = None if found is None else self.map(entry, found, (), {})[0]
        if found is None or index_map is None:
            raise entry.fail("a line of cells is `old_data -> new_data: lambda i, j: [...]`")
        return CellMap(found["new"], found["old"], index_map)  # the left name is the old one here

    def map(
        self, entry: _Entry, found: re.Match[str], types: Sequence[DType], loops: dict[str, Var]
    ) -> tuple[IndexMap | None, Expr | None]:
        """The map of a line, and its condition."""
        rest = found["rest"]
        if rest is None:
            return None, None
        start = found.start("rest")
        end = _end_of_map(rest) if rest.startswith("lambda") else 0
        tail = _WHERE.fullmatch(rest, end)
        if tail is None:
            raise entry.fail("a map is followed by nothing, or by `of types` and `where condition`", start + end)
        given = tail["types"]
        dtypes = types if given is None else tuple(self.dtype(entry, t.strip(), start) for t in given.split(","))
        index_map = None
        if end:
            index_map = self.placed(entry, start, start + end, partial(self.index_map, dtypes))
            if given is not None and len(dtypes) != len(index_map.inputs):
                raise entry.fail(
                    f"{len(dtypes)} types for {counted(len(index_map.inputs), 'input', 'inputs')}",
                    start + tail.start("types"),
                )
        inputs = loops if index_map is None else {v.name: v for v in index_map.inputs}
        where = (
            None
            if tail["where"] is None
            else self.condition(entry, start + tail.start("where"), start + tail.end("where"), inputs)
        )
        return index_map, where

    def index_map(self, types: Sequence[DType], text: str) -> IndexMap:
        return parse_index_map(text, self.source.name, symbols=self.symbols.values(), types=types, folded=False)

    def dtype(self, entry: _Entry, text: str, start: int) -> DType:
        try:
            return DType.parse(text)
        except ValueError as problem:
            raise entry.fail(str(problem), start) from problem

    def condition(self, entry: _Entry, start: int, end: int, inputs: dict[str, Var]) -> Expr:
        known = {**self.symbols, **inputs}
        return self.placed(entry, start, end, lambda text: parse_condition(text, known, self.source.name, folded=False))

    def placed(self, entry: _Entry, start: int, end: int, parse: Callable[[str], T]) -> T:
        """What `parse` makes of a part of a line; its messages point into the whole text."""
        blank = "\n" * (entry.line - 1) + " " * (entry.column + start)
        try:
            return parse(blank + entry.value[start:end])
        except LayoutproofError as problem:
            raise LayoutproofError([self.moved(d) for d in problem.diagnostics]) from problem

    def moved(self, diagnostic: Diagnostic) -> Diagnostic:
        """The same message, its excerpt from the whole text: lines and columns are right already."""
        span = diagnostic.span
        return diagnostic if span is None else replace(diagnostic, span=replace(span, source=self.source))


def _listed(entry: _Entry) -> tuple[str, ...]:
    return tuple(part.strip() for part in entry.value.split(",")) if entry.value else ()


def _end_of_map(text: str) -> int:
    """Where the bracket that closes a lambda's list ends; the whole text where none does."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "]" and depth == 0:
            return position + 1
    return len(text)


def _symbols(func: PrimFunc) -> dict[str, Var]:
    """The variables of a function that no statement in it binds: symbolic sizes and scalar parameters."""
    bound = {v.name for v in bound_variables(func.body)}
    roots = (*func.params, *func.buffers, func.body)
    used = [node for root in roots for node in walk(root) if isinstance(node, Var) and node.dtype != HANDLE]
    return {v.name: v for v in used if v.name not in bound}


def _same_stores(new: PrimFunc) -> tuple[InstanceMap, ...]:
    """The witness of programs whose stores kept their numbers and loops."""
    every = [tuple(loop.var for loop in loops) for loops in loops_of_stores(new.body)]
    return tuple(InstanceMap(k, k, IndexMap(inputs, inputs)) for k, inputs in enumerate(every))


# ---- writing


def rewrite_text(rewrite: Rewrite, header: LitmusHeader | None = None) -> str:
    """The text of a rewrite, and of a test case's header; it reads back equal. Raises KeyError for an unknown store."""
    lines = [f"# {key}: {value}" for key, value in (*_header_lines(header), *_witness_lines(rewrite))]
    return "\n".join([*lines, CURRENT.header[1], "", _body(rewrite.old, BEFORE), "", _body(rewrite.new, AFTER)])


_BODIES: Kept[str] = Kept(64)


def _body(func: PrimFunc, name: str) -> str:
    """The text of a function under another name. The program after one step is the one before the next."""

    def printed() -> str:
        return print_func(replace(func, name="")).removeprefix(CURRENT.header[1]).lstrip("\n")

    return _BODIES.get(func, (), printed).replace("def (", f"def {name}(", 1)


def _header_lines(header: LitmusHeader | None) -> Iterator[tuple[str, str]]:
    if header is None:
        return
    strictness = None if header.strictness is None else " ".join(header.strictness) if header.strictness else IEEE
    texts = {"about": header.about, "clause": header.clause, "expect": header.expect, "strictness": strictness}
    yield from ((key, value) for key, value in texts.items() if value is not None)
    if header.where is not None:
        yield "where", expr_text(header.where)


def _witness_lines(rewrite: Rewrite) -> Iterator[tuple[str, str]]:
    if (rewrite.old.name, rewrite.new.name) != (BEFORE, AFTER):
        yield "functions", f"{rewrite.old.name}, {rewrite.new.name}"
    witness = rewrite.witness
    same = len(loops_of_stores(rewrite.old.body)) == len(loops_of_stores(rewrite.new.body))
    if not same or witness.instances != _same_stores(rewrite.new):
        loops = dict(enumerate(loops_of_stores(rewrite.new.body)))
        for m in witness.instances:
            old = _NONE if m.old_store is None else str(m.old_store)
            types = tuple(loop.var.dtype for loop in loops[m.new_store])
            yield "theta", f"{m.new_store} -> {old}{_map_text(m.instances, types, m.where)}"
        if not witness.instances:
            yield "theta", _NONE
    for c in witness.cells:
        yield "cells", f"{c.old_data} -> {c.new_data}{_map_text(c.cells, (), None)}"
    if witness.changes_interface:
        yield "interface", ", ".join(witness.changes_interface)


def _map_text(index_map: IndexMap | None, types: Sequence[DType], where: Expr | None) -> str:
    parts: list[str] = []
    if index_map is not None:
        parts.append(_lambda_text(index_map))
        assumed = types if len(types) == len(index_map.inputs) else (INT32,) * len(index_map.inputs)
        given = tuple(v.dtype for v in index_map.inputs)
        if given != tuple(assumed):
            parts.append(f"of {', '.join(map(str, given))}")
    if where is not None:
        parts.append(f"where {expr_text(where)}")
    return f": {' '.join(parts)}" if parts else ""


def _lambda_text(index_map: IndexMap) -> str:
    """As `index_map.index_map_text`, but with typed constants, so that maps of every width read back equal."""
    entries: list[str] = []
    for axis, output in enumerate(index_map.outputs):
        entries.append(expr_text(output))
        if axis in index_map.separators:
            entries.append("AXIS_SEPARATOR")
    names = ", ".join(v.name for v in index_map.inputs)
    return f"lambda{' ' if names else ''}{names}: [{', '.join(entries)}]"


__all__ = ["EXPECTATIONS", "IEEE", "Litmus", "LitmusHeader", "parse_litmus", "parse_rewrite", "rewrite_text"]
