"""Two programs with one interface: the new one, and its layout records, over the old one's parameters and symbols.

Parameters are paired by position, or by `match`, and get the old program's names; other names of the new program make
way for names of the old interface, so that nothing is captured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError, counted, error
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Expr, IntImm, Var, widen
from layoutproof.ir.index_map import IndexMap, narrowed
from layoutproof.ir.layout_record import Contract, LayoutRecord, LayoutStep, boxed, layout_records
from layoutproof.ir.node import Node, trampoline
from layoutproof.ir.primfunc import APART, AXIS_SEPARATORS, LAYOUT, LAYOUT_TRANSFORMATIONS, NOALIAS, PrimFunc
from layoutproof.ir.script.parsing import did_you_mean
from layoutproof.ir.stmt import Attributes, Stmt
from layoutproof.ir.visit import (
    bound_variables,
    buffers_in,
    free_variables,
    fresh,
    map_children,
    mapped,
    substitute,
    take_fresh,
)
from layoutproof.lowering import codes
from layoutproof.lowering.arith.known_facts import constants_of
from layoutproof.lowering.compare.stated_layouts import same_extents, symbol_values, symbols_of
from layoutproof.lowering.layout.pad_value import checked
from layoutproof.lowering.passes.find import all_buffers


def check_contracts(func: PrimFunc) -> None:
    """Raise LayoutproofError if a layout record has a contract that is no pad value of its buffer."""
    buffers = {b.data.name: b for b in reversed(all_buffers(func))}
    for name, record in layout_records(func).items():
        for step in record.steps if name in buffers else ():
            if step.contract is not None and not step.contract.is_undef:
                _check_contract(func, buffers[name], step, step.contract)


def _check_contract(func: PrimFunc, buffer: Buffer, step: LayoutStep, contract: Contract) -> None:
    try:
        checked(contract, boxed(buffer, step.shape, constants_of(func)))
    except LayoutproofError as problem:
        first = problem.diagnostics[0]
        message = f"the layout record of {buffer.name} states {contract.text!r} of padding: {first.message}"
        raise error(first.code, message, func.span) from problem


@dataclass(frozen=True, slots=True)
class Renamed:
    """New meanings of names: memories by name, symbols and integer parameters of the new program as expressions of the
    old one, buffer parameters (the old one, the new one) by the new memory's name.
    """

    memories: Mapping[str, str]
    symbols: Mapping[Var, Expr]
    parameters: Mapping[str, tuple[Buffer, Buffer]]

    def records(self, records: Mapping[str, LayoutRecord]) -> dict[str, LayoutRecord]:
        """The records under the old names."""
        return {self.memories.get(name, name): self._record(name, record) for name, record in records.items()}

    def _record(self, name: str, record: LayoutRecord) -> LayoutRecord:
        steps = tuple(
            LayoutStep(self._map(s.index_map), self._shape(s.shape), self._contract(name, s.contract))
            for s in record.steps
        )
        return LayoutRecord(self._shape(record.logical_shape), steps)

    @property
    def _plain(self) -> dict[Var, Expr]:
        """The symbols of maps and extents, which have 32 bits there."""
        return {Var(v.name): narrowed(value) for v, value in self.symbols.items() if v != value}

    def _shape(self, shape: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(substitute(extent, self._plain) for extent in shape)

    def _map(self, index_map: IndexMap) -> IndexMap:
        values = self._plain
        inputs = _apart(index_map.inputs, values)
        known = {**values, **dict(zip(index_map.inputs, inputs, strict=True))}
        return replace(
            index_map, inputs=inputs, outputs=tuple(substitute(output, known) for output in index_map.outputs)
        )

    def _contract(self, name: str, contract: Contract | None) -> Contract | None:
        if contract is None or contract.is_undef or name not in self.parameters:
            return contract
        before, after = self.parameters[name]
        values = {v: value for v, value in self.symbols.items() if v != value}
        inputs = _apart(contract.inputs, values)
        known: dict[Var, Expr] = {**values, **dict(zip(contract.inputs, inputs, strict=True))}

        def visit(node: Node) -> Node:
            if isinstance(node, Var):
                return known.get(node, node)
            if isinstance(node, Buffer):
                return replace(node, name=before.name) if node.name == after.name else node
            return map_children(node, visit)

        renamed = visit(contract.value)
        assert isinstance(renamed, Expr)
        return Contract(inputs, renamed)


def _apart(inputs: tuple[Var, ...], values: Mapping[Var, Expr]) -> tuple[Var, ...]:
    """Inputs with names that no symbol of the substituted expressions has."""
    used = {u.name for value in values.values() for u in free_variables(value)}
    taken = used | {v.name for v in inputs}
    return tuple(replace(v, name=fresh(f"{v.name}_", taken)) if v.name in used else v for v in inputs)


_DATA = "_data"  # what a memory is called after its buffer, where a program is read


def out_of_the_way(old: PrimFunc, new: PrimFunc) -> tuple[dict[Var, Var], dict[str, str]]:
    """New names of variables and buffers of the new program's body whose names the old program needs.

    A buffer and its memory change names together, so that the printed program reads back as it is.
    """
    reserved = {*_interface_names(old), *_remembered(old, new)}
    parameters = {b.data for b in new.buffers}
    buffers = [b for b in buffers_in(new.body) if b not in new.buffers]
    own = dict.fromkeys((*bound_variables(new.body), *(b.data for b in buffers if b.data not in parameters)))
    taken = reserved | {v.name for v in own} | {b.name for b in buffers} | _interface_names(new)
    taken |= {name.removesuffix(_DATA) for name in taken}
    variables: dict[Var, Var] = {}
    names: dict[str, str] = {}
    for buffer in buffers:
        mine = buffer.data not in parameters
        if buffer.name not in names and (buffer.name in reserved or (mine and buffer.data.name in reserved)):
            names[buffer.name] = fresh(buffer.name, taken)
            taken |= {names[buffer.name], names[buffer.name] + _DATA}
        if mine and buffer.name in names and buffer.data.name == buffer.name + _DATA:
            variables[buffer.data] = replace(buffer.data, name=names[buffer.name] + _DATA)
    for variable in own:
        if variable.name in reserved and variable not in variables:
            name = take_fresh(variable.name, taken)
            variables[variable] = replace(variable, name=name)
    return variables, names


def _interface_names(func: PrimFunc) -> set[str]:
    buffers = {name for b in func.buffers for name in (b.name, b.data.name)}
    return buffers | {p.name for p in func.params} | {v.name for v in symbols_of(func)}


def _remembered(old: PrimFunc, new: PrimFunc) -> Iterator[str]:
    """Temporaries of the old program with a layout record that one of the same name in the new program does not
    continue.
    """
    parameters = {b.data.name for b in old.buffers}
    records = layout_records(new)
    for name, record in layout_records(old).items():
        longer = records.get(name)
        goes_on = (
            longer is not None
            and longer.logical_shape == record.logical_shape
            and longer.steps[: len(record.steps)] == record.steps
        )
        if name not in parameters and not goes_on:
            yield name


def strides_of(buffer: Buffer) -> tuple[Expr, ...]:
    """The strides of a buffer; none if they are the row-major ones."""
    size = 1
    for stride, extent in zip(reversed(buffer.strides), reversed(buffer.shape), strict=True) if buffer.strides else ():
        if not (isinstance(stride, IntImm) and isinstance(extent, IntImm) and stride.value == size):
            return buffer.strides
        size *= extent.value
    return ()


@dataclass(frozen=True, slots=True)
class Renaming:
    """Replaces the new program's nodes by the old one's, keeping the spans of statements.

    `values` are the new values of variables, `parameters` the old buffers of new ones, `own_buffers` the names of those
    of the body.
    """

    values: Mapping[Var, Expr]
    parameters: Mapping[Buffer, Buffer]
    own_buffers: Mapping[str, str]

    def function(self, new: PrimFunc, parameters: Sequence[tuple[Var, Buffer | None]]) -> PrimFunc:
        """The function under the new names. `parameters` are the old program's, in order, each with the new one's
        buffer.
        """
        buffer_map = tuple((var, self.buffer(buffer)) for var, buffer in parameters if buffer is not None)
        root: Node = new.body
        body = trampoline(lambda node: mapped(node) if isinstance(node, Stmt) else self.visit(node), root)
        assert isinstance(body, Stmt)
        return replace(new, params=tuple(var for var, _ in parameters), buffer_map=buffer_map, body=body)

    def visit(self, node: Node) -> Node:
        """A node with everything below it renamed."""
        if isinstance(node, Var):
            value = self.values.get(node)
            if value is None or value == node:
                return node
            return (
                replace(value, span=node.span)
                if isinstance(value, Var) and value.dtype == node.dtype
                else widen(value, node.dtype)
            )
        if isinstance(node, Buffer):
            return self.buffer(node)
        return map_children(node, self.visit)

    def buffer(self, buffer: Buffer) -> Buffer:
        """A buffer with its memory, name and extents renamed; a parameter gets the old program's extents if they are
        equal.
        """
        rebuilt = map_children(buffer, self.visit)
        known = self.parameters.get(buffer)
        if known is None:
            name = self.own_buffers.get(buffer.name, buffer.name)
            return rebuilt if name == rebuilt.name else replace(rebuilt, name=name)
        shape = known.shape if same_extents(rebuilt.shape, known.shape) else rebuilt.shape
        strides, mine, theirs = rebuilt.strides, strides_of(rebuilt), strides_of(known)
        if strides != known.strides and (same_extents(mine, theirs) if theirs else not mine):
            # Row-major strides are stated if the old program states them.
            strides = known.strides if theirs or len(known.strides) == rebuilt.rank else ()
        if (shape, strides, known.name) == (rebuilt.shape, rebuilt.strides, rebuilt.name):
            return rebuilt
        return replace(rebuilt, shape=shape, strides=strides, name=known.name)


Shape = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its variable, and its buffer unless it is a scalar. `number` is its place, from 1."""

    number: int
    var: Var
    buffer: Buffer | None

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.buffer.name if self.buffer is not None else self.var.name

    @property
    def text(self) -> str:
        """It and what it takes, for messages."""
        if self.buffer is None:
            return f"{self.name}, {'a bare pointer' if self.var.dtype == HANDLE else f'a scalar of {self.var.dtype}'}"
        return f"{self.name}, a buffer of {self.buffer.dtype}"


def parameters_of(func: PrimFunc) -> tuple[Parameter, ...]:
    """The parameters of a function in order."""
    mapped = dict(func.buffer_map)
    return tuple(Parameter(number, param, mapped.get(param)) for number, param in enumerate(func.params, start=1))


def aligned(
    old: PrimFunc, new: PrimFunc, match: Mapping[str, str] | None = None, boxes: Mapping[str, Shape] | None = None
) -> PrimFunc:
    """`new` over the parameters, data variables and symbols of `old`, with its parameters in the order of `old`.

    `match` pairs parameters by name, new name to old name; the others are paired by position among the rest. `boxes`
    has the shapes in the new program of transformed parameters of `old`, by name: they determine symbols that only such
    shapes have.

    Raises LayoutproofError if the parameters do not correspond, in number, order, kind or type, if `match` has an
    unknown name, and if a symbol of the new program is not determined.
    """
    pairs = paired(old, new, {} if match is None else match)
    for before, after in pairs:
        _check_kind(before, after)
    names: dict[Var, Var] = {after.var: before.var for before, after in pairs}
    names |= {a.buffer.data: b.buffer.data for b, a in pairs if a.buffer is not None and b.buffer is not None}
    buffers = tuple((b.buffer, a.buffer) for b, a in pairs if a.buffer is not None and b.buffer is not None)
    symbols = symbol_values(old, new, buffers, {} if boxes is None else boxes, names)
    away, own_buffers = out_of_the_way(old, new)
    renaming = Renaming({**symbols, **names, **away}, {after: before for before, after in buffers}, own_buffers)
    memories = {after.name: before.name for after, before in {**names, **away}.items() if after.dtype == HANDLE}
    sizes = {**symbols, **{after.var: before.var for before, after in pairs if after.var.dtype.is_integer}}
    renamed = Renamed(memories, sizes, {after.data.name: (before, after) for before, after in buffers})
    return _attributed(renaming.function(new, [(before.var, after.buffer) for before, after in pairs]), old, renamed)


# ---- which parameter is which


def paired(old: PrimFunc, new: PrimFunc, match: Mapping[str, str]) -> tuple[tuple[Parameter, Parameter], ...]:
    """The parameters of both programs, one for one, in the old program's order. Raises LayoutproofError if they do not
    correspond.
    """
    before, after = parameters_of(old), parameters_of(new)
    if len(before) != len(after):
        takes = f"the program before takes {counted(len(before), 'parameter', 'parameters')} ({_listed(before)})"
        raise error(
            codes.COMPARED_PARAMETERS, f"{takes}, the program after takes {len(after)} ({_listed(after)})", new.span
        )
    stated = _stated(old, new, match)
    rest = [p for p in after if p.name not in stated]
    taken = set(stated.values())
    others = [p for p in before if p.name not in taken]
    chosen = dict(zip((p.name for p in others), rest, strict=True))
    _check_order(old, new, others, rest)
    chosen |= {known: _named(after, name) for name, known in stated.items()}
    return tuple((p, chosen[p.name]) for p in before)


def _stated(old: PrimFunc, new: PrimFunc, match: Mapping[str, str]) -> dict[str, str]:
    """`match`, after checking that each of its names exists and is used once."""
    found: dict[str, str] = {}
    for name, known in match.items():
        for what, func, given in (("after", new, name), ("before", old, known)):
            names = [p.name for p in parameters_of(func)]
            if given not in names:
                hint = did_you_mean(str(given), names)
                there = hint if hint is not None else f"its parameters are {', '.join(names)}"
                raise error(codes.COMPARED_MATCH, f"match: the program {what} has no parameter {given!r}", help=there)
        if known in found.values():
            first = next(k for k, v in found.items() if v == known)
            raise error(codes.COMPARED_MATCH, f"match: {first!r} and {name!r} cannot both be {known!r}")
        found[name] = known
    return found


def _named(parameters: Sequence[Parameter], name: str) -> Parameter:
    return next(p for p in parameters if p.name == name)


def _check_order(old: PrimFunc, new: PrimFunc, before: Sequence[Parameter], after: Sequence[Parameter]) -> None:
    """Raise LayoutproofError if a name of both programs has different positions: either pairing may be the one
    meant.
    """
    places = {p.name: k for k, p in enumerate(before)}
    moved = next((p for k, p in enumerate(after) if places.get(p.name, k) != k), None)
    if moved is None:
        return
    other = _named(before, moved.name)
    first = f"parameter {other.number} before ({_listed(parameters_of(old))})"
    then = f"parameter {moved.number} after ({_listed(parameters_of(new))})"
    raise error(
        codes.COMPARED_ORDER,
        f"{moved.name} is {first} and {then}: who calls the one cannot call the other",
        new.span,
        help=(
            f"where it is the same parameter all the same, match {moved.name} to {moved.name}; else match it to the "
            "one that it is"
        ),
    )


def _check_kind(before: Parameter, after: Parameter) -> None:
    """Raise LayoutproofError if one parameter cannot be the other."""
    a, b = before.buffer, after.buffer
    if (a is None) != (b is None) or before.var.dtype != after.var.dtype:
        raise _differs(before, after, "")
    if a is None or b is None:
        return
    if a.dtype != b.dtype:
        raise _differs(before, after, "")
    if bool(strides_of(a)) != bool(strides_of(b)):
        raise _differs(before, after, f": the {'first' if a.strides else 'second'} has strides, the other has not")


def _differs(before: Parameter, after: Parameter, more: str) -> Exception:
    which = f"parameter {before.number} before is {before.text}, after it is {after.text}{more}"
    place = after.buffer.span if after.buffer is not None else after.var.span
    return error(codes.COMPARED_PARAMETERS, f"{which}: one cannot be passed as the other", place, help=_MATCH_HELP)


_MATCH_HELP = "parameters are paired by place; `match` pairs them by name, new name to old name"


def _listed(parameters: Iterable[Parameter]) -> str:
    return ", ".join(p.name for p in parameters)


# ---- attributes


def _attributed(func: PrimFunc, old: PrimFunc, renamed: Renamed) -> PrimFunc:
    """The function with attributes about memories under the old names, and its preconditions as a step's own."""
    attrs = func.attrs
    for key in (AXIS_SEPARATORS, LAYOUT_TRANSFORMATIONS):
        stated = attrs.get(key)
        if isinstance(stated, Attributes):
            attrs = attrs.with_value(
                key, Attributes({renamed.memories.get(name, name): value for name, value in stated.items()})
            )
    records = layout_records(func)
    if records:
        kept = renamed.records(records)
        attrs = attrs.with_value(LAYOUT, Attributes(kept))
    assumed = [key for key in NOALIAS if attrs.get(key) in (True, 1)]
    if assumed and not old.noalias:
        # A new precondition of callers, as if a pass needed it.
        attrs = Attributes({key: value for key, value in attrs.items() if key not in assumed}).with_value(APART, True)
    return func if attrs is func.attrs else replace(func, attrs=attrs)
