"""Inverses: which instance computes an old one, and which cell becomes another. And expressions of the kernel's
programs, with others in them, or as text. For the search only.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Binary, IntImm
from layoutproof.ir.expr import Expr as IrExpr
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.map_text import parse_index_map, parse_shape
from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.rewrite import InstanceMap, Rewrite
from layoutproof.ir.stmt import For
from layoutproof.ir.visit import free_variables, loops_of_stores
from layoutproof.verify.kernel.encoding import Context
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import TRUE, Expr, Loop, Map, Program, Statement, is_affine_condition, walk
from layoutproof.verify.kernel.reader import read_map, read_rewrite, scope_of
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.kernel.step import Inverse, Source
from layoutproof.verify.maps.map_facts import report_on

_INFIX = ("+", "-", "*", "//", "%", "and", "or", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^", "<<", ">>")
_CALLED = {"min": "min", "max": "max", "truncdiv": "truncdiv", "truncmod": "truncmod"}
_CALLED |= {"select": "Select", "if": "if_then_else"}


def replaced(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """The expression with values for some variables."""
    if e[0] == "var":
        return values.get(e[2], e)
    if e[0] == "load":
        return (*e[:3], tuple(replaced(index, values) for index in e[3]))
    return (*e[:2], *(replaced(part, values) if isinstance(part, tuple) else part for part in e[2:]))


def conjunction(conditions: Sequence[Expr]) -> Expr:
    """All of the conditions."""
    return reduce(lambda a, b: ("and", "bool", a, b), conditions) if conditions else TRUE


def within(loops: Sequence[Loop], at: Mapping[str, Expr]) -> list[Expr]:
    """The conditions that loops have values within their ranges."""
    found: list[Expr] = []
    for loop in loops:
        start, end = (replaced(e, at) for e in (loop.start, ("+", loop.dtype, loop.start, loop.extent)))
        found += [("<=", "bool", start, at[loop.var]), ("<", "bool", at[loop.var], end)]
    return found


def variables(loops: Sequence[Loop]) -> list[Expr]:
    """The variables of loops."""
    return [("var", loop.dtype, loop.var) for loop in loops]


def names_of(statement: Statement) -> tuple[str, ...]:
    """The names of the loops around a statement."""
    return tuple(loop.var for loop in statement.loops)


def text_of(e: Expr, names: Mapping[str, str], *, is_typed: bool = True) -> str | None:
    """An expression as text, with names for variables; None where it has none. Numbers of other types than int32 stand
    with their types if `is_typed`.
    """
    if e[0] == "const":
        return str(e[2]) if e[1] in ("int32", "bool") or not is_typed else f"T.{e[1]}({e[2]})"
    if e[0] == "var":
        return names.get(e[2], e[2])
    parts = [text_of(part, names, is_typed=is_typed) for part in e[2:] if isinstance(part, tuple)]
    texts = [part for part in parts if part is not None]
    if len(texts) < len(parts):
        return None
    if e[0] in _INFIX:
        return f"({texts[0]} {e[0]} {texts[1]})"
    if e[0] == "not":
        return f"(not {texts[0]})"
    function = e[1] if e[0] == "cast" else _CALLED.get(e[0])
    return None if function is None else f"T.{function}({', '.join(texts)})"


_MOST_VALUES = 256
_ARITHMETIC = ("const", "var", "+", "-", "*", "//", "%")


def inverses_of(text: str, left_out: Container[int] = ()) -> dict[int, list[Inverse]]:
    """For each old store which part of theta computes it, and by which map; nothing where none was found. Of several
    parts, each has the condition that it computes the instance, but the last one, which has the rest. Of some new
    stores theta says nothing.
    """
    rewrite, plain = parse_rewrite(text), read_rewrite(text)
    loops = loops_of_stores(rewrite.new.body)
    given: dict[int, list[InstanceMap]] = {}
    for each in rewrite.witness.instances:
        if each.instances is not None and each.old_store is not None:
            given.setdefault(each.new_store, []).append(each)
    found: dict[int, list[tuple[Inverse, Map, Statement]]] = {}
    part = -1
    for store in (s for s in plain.new.stores if s.number not in left_out):
        for line, each in zip(plain.theta.get(store.number, ()), given.get(store.number, ()), strict=False):
            part += 1
            theta = line[1]
            assert each.instances is not None
            inverse = _inverse_of(theta, each.instances, loops[store.number], store, plain.new)
            if inverse is not None:
                found.setdefault(line[0], []).append((Inverse(part, inverse), theta, store))
    return {old: [*(_conditional(*entry) for entry in entries[:-1]), entries[-1][0]] for old, entries in found.items()}


def _inverse_of(theta: Map, stated: IndexMap, loops: Sequence[For], store: Statement, program: Program) -> Map | None:
    """The inverse of a line of theta; of one that says nothing of lanes, by the lane's name. A loop of which theta does
    not speak has the value that a guard says, or the first one.
    """
    extents: list[int | IrExpr] = [loop.extent for loop in loops]
    if len(stated.inputs) > len(loops):
        extents.append(store.loops[-1].extent[2])
    used = {v.name for output in stated.outputs for v in free_variables(output)}
    free = [k for k, v in enumerate(stated.inputs) if v.name in used]
    asked = replace(stated, inputs=tuple(stated.inputs[k] for k in free))
    names: tuple[str, ...] | None = tuple(f"o{k}" for k in range(len(stated.outputs)))
    outputs: tuple[Expr, ...] = ()
    if free:
        # Instances that guards exclude may lie below zero, where the engine for maps of cells gives no inverse.
        for shift in (0, 1 << 10):
            moved = tuple(Binary(BinaryOp.ADD, e, IntImm(shift, e.dtype)) if shift else e for e in stated.outputs)
            inverse = inverse_map(replace(asked, outputs=moved), [extents[k] for k in free])
            if inverse is not None:
                break
        else:
            return None
        names, outputs, _ = read_map(index_map_text(inverse), scope_of(program.symbols), {})
        back = {n: ("+", "int32", ("var", "int32", n), ("const", "int32", shift)) for n in names or () if shift}
        outputs = tuple(replaced(output, back) for output in outputs)
    assert names is not None
    rest = theta.outputs[len(names) :]
    if len(outputs) != len(free) or len(stated.inputs) + len(rest) != len(theta.names):
        return None
    known, pinned = dict(zip(free, outputs, strict=True)), _pinned(store)
    known |= _outer(store.loops, known)
    at = dict[str, Expr]()
    for k, loop in enumerate(store.loops[: len(stated.inputs)]):
        at[loop.var] = replaced(known.get(k, pinned.get(k, loop.start)), at)
    values = list(at.values())
    if _names_in(*values) - {*names, *(name for name, _ in program.symbols)}:
        return None
    return Map((*names, *(e[2] for e in rest)), (*values, *rest))


def _outer(loops: Sequence[Loop], known: Mapping[int, Expr]) -> dict[int, Expr]:
    """The values of loops over tiles, by those of loops in a tile, which start at a multiple of the tile's number."""
    found: dict[int, Expr] = {}
    for k in (k for k in range(len(loops)) if k not in known):
        outer, zero = loops[k].var, ("const", loops[k].dtype, 0)
        for inner, value in ((loops[j], value) for j, value in known.items() if j > k):
            if all(part[0] in _ARITHMETIC for part in walk(inner.start)):
                names = {part[2]: Poly.var(part[2]) for part in walk(inner.start) if part[0] == "var"}
                size = dict(Context([]).number(inner.start, names).terms).get((outer,), 0)
                if size > 0:
                    offset = ("-", inner.dtype, value, replaced(inner.start, {outer: zero}))
                    found.setdefault(k, ("//", inner.dtype, offset, ("const", inner.dtype, size)))
    return found


def _pinned(store: Statement) -> dict[int, Expr]:
    """The loops of which a guard says one value, by their places."""
    places = {("var", loop.dtype, loop.var): k for k, loop in enumerate(store.loops)}
    conditions = [e for guard in store.guards for e in _conjuncts(guard)]
    equal = [e for e in conditions if e[0] == "=="]
    inner = {loop.var for loop in store.loops}
    found = {
        places[e[2]]: e[3]
        for e in equal
        if e[2] in places
        and not any(part[0] == "load" or part[2] in inner for part in walk(e[3]) if part[0] != "const")
    }
    for k, loop in enumerate(store.loops):
        own = [e for e in conditions if {part[2] for part in walk(e) if part[0] == "var"} == {loop.var}]
        if own and loop.start[0] == loop.extent[0] == "const" and loop.extent[2] <= _MOST_VALUES:
            first = loop.start[2]
            values = [v for v in range(first, first + loop.extent[2]) if all(_holds(e, loop.var, v) for e in own)]
            if len(values) == 1:
                found[k] = ("const", loop.dtype, values[0])
    return found


def _holds(condition: Expr, name: str, value: int) -> bool:
    try:
        Context([]).prove(condition, {name: Poly.const(value)})
    except Rejected:
        return False
    return True


def _conjuncts(e: Expr) -> list[Expr]:
    return [*_conjuncts(e[2]), *_conjuncts(e[3])] if e[0] == "and" else [e]


def inverse_map(stated: IndexMap, extents: Sequence[int | IrExpr]) -> IndexMap | None:
    """The inverse of a map on a box, if one was found."""
    try:
        return report_on(stated, tuple(extents)).inverse
    except LayoutproofError:
        return None


def _conditional(inverse: Inverse, theta: Map, store: Statement) -> Inverse:
    """The inverse with the condition that theta takes what it gives back to where it is from, and that it gives an
    instance that is executed.
    """
    names, there = inverse.map.names, dict(zip(theta.names, inverse.map.outputs, strict=True))
    context = Context([])
    values = {
        e[2]: Poly.var(e[2]) for output in (*theta.outputs, *there.values()) for e in walk(output) if e[0] == "var"
    }
    values |= {name: Poly.var(name) for name in names}
    conditions: list[Expr] = []
    for name, output in zip(names, theta.outputs, strict=True):
        back = replaced(output, there)
        if context.number(back, values) != values[name]:
            conditions.append(("==", "bool", back, ("var", back[1], name)))
    conditions += _executed(store, inverse.map.outputs)
    if theta.where != TRUE:
        conditions.append(replaced(theta.where, there))
    return Inverse(inverse.part, Map(names, inverse.map.outputs, conjunction(conditions)))


def _executed(store: Statement, values: Sequence[Expr]) -> list[Expr]:
    """The conditions that values are within the ranges of a store's loops, of those that no other loop or load changes,
    and satisfy its guards.
    """
    at = {loop.var: value for loop, value in zip(store.loops, values, strict=True)}
    fixed = [loop for loop in store.loops if not _names_in(loop.start, loop.extent) & {None, *at}]
    return [*within(fixed, at), *(replaced(guard, at) for guard in store.guards if is_affine_condition(guard))]


def _names_in(*exprs: Expr) -> set[str | None]:
    """The variables in expressions; None stands for loads."""
    parts = (part for e in exprs for part in walk(e))
    return {part[2] if part[0] == "var" else None for part in parts if part[0] in ("var", "load")}


def fills_of(rewrite: Rewrite, text: str) -> tuple[dict[str, Source], dict[str, Map]]:
    """By memory whose layout changes: a store of a constant that no line of theta names, or else the last one that
    chooses a constant, at the cell that it writes by its loops; and the inverse of the cell map.
    """
    program = read_rewrite(text).new
    computed = {each.new_store for each in rewrite.witness.instances if each.old_store is not None}
    fills: dict[str, Source] = {}
    backs: dict[str, Map] = {}
    shapes = {buffer.data.name: buffer.shape for buffer in rewrite.old.buffers}
    for cells in rewrite.witness.cells:
        if cells.old_data not in shapes:
            continue
        inverse = inverse_map(cells.cells, shapes[cells.old_data])
        if inverse is not None:
            names, outputs, _ = read_map(index_map_text(inverse), scope_of(program.symbols), {})
            backs[cells.new_data] = Map(names or (), outputs)
        for store in program.stores:
            axes = tuple(f"q{k}" for k in range(len(store.indices)))
            given = {index: ("var", "int32", axis) for index, axis in zip(store.indices, axes, strict=True)}
            loops = [("var", loop.dtype, loop.var) for loop in store.loops]
            is_fill = store.number not in computed and store.value[0] == "const" and len(store.loops) > 0
            found = fills.get(cells.new_data)
            is_better = is_fill or found is None or found.index in computed
            if (
                program.buffers[store.buffer].data == cells.new_data
                and is_better
                and (is_fill or store.value[0] in ("if", "select"))
                and all(
                    loop in given or each.start[0] == "const" for loop, each in zip(loops, store.loops, strict=True)
                )
            ):
                outputs = tuple(given.get(loop, each.start) for loop, each in zip(loops, store.loops, strict=True))
                fills[cells.new_data] = Source("store", store.number, Map(axes, outputs))
    return fills, backs


def solved(loops: Sequence[Loop], indices: Sequence[Expr], target: Sequence[Expr]) -> dict[str, Expr]:
    """The values of loops of which indices are a one-to-one map, by the index map's inverse."""
    names = {loop.var: f"v{number}" for number, loop in enumerate(loops)}
    used = [
        (index, value)
        for index, value in zip(indices, target, strict=False)
        if any(part[0] == "var" and part[2] in names for part in walk(index))
    ]
    mine = [loop for loop in loops if any(("var", loop.dtype, loop.var) in walk(index) for index, _ in used)]
    try:
        if not mine or any(part[0] == "load" for index, _ in used for part in walk(index)):
            return {}
        outputs = ", ".join(_plain(index, names) for index, _ in used)
        others = {part[2] for index, _ in used for part in walk(index) if part[0] == "var"} - set(names)
        text = f"lambda {', '.join(names[loop.var] for loop in mine)}: [{outputs}]"
        index_map = parse_index_map(text, symbols=sorted(others))
        shape = parse_shape(",".join(_plain(loop.extent, names) for loop in mine))
        inverse = inverse_map(index_map, shape)
        if inverse is None:
            return {}
        inputs, values, _ = read_map(index_map_text(inverse), {}, {})
        given = dict(zip(inputs or (), (value for _, value in used), strict=False))
        return {loop.var: replaced(e, given) for loop, e in zip(mine, values, strict=False)}
    except (LayoutproofError, Rejected):
        return {}


def _plain(e: Expr, names: Mapping[str, str]) -> str:
    text = text_of(e, names, is_typed=False)
    if text is None or not all(part[0] in _ARITHMETIC for part in walk(e)):
        raise Rejected("no index map has such a text")
    return text
