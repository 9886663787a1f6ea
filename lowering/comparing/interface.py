"""Two programs with one interface: the new one over the old one's parameters, data variables and symbols.

Callers call the old program. What they pass first is its first parameter, whatever the new program calls it; so parameters are paired by
place, or as `match` says, and the new program's names for them give way to the old one's. Names that only the new program has give way
too where the old program's interface has them, so that nothing is captured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import counted, error
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.primfunc import APART, AXIS_SEPARATORS, LAYOUT, LAYOUT_TRANSFORMATIONS, NOALIAS, PrimFunc
from layoutproof.ir.script.parsing import did_you_mean
from layoutproof.ir.stmt import Attributes
from layoutproof.lowering import codes
from layoutproof.lowering.comparing.records import Renamed
from layoutproof.lowering.comparing.renaming import Renaming, out_of_the_way, strides_of
from layoutproof.lowering.comparing.symbols import symbol_values

Shape = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its variable, and its buffer unless it is a scalar. `number` is its place, from 1."""

    number: int
    var: Var
    buffer: Buffer | None

    @property
    def name(self) -> str:
        """What people call it."""
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


def aligned(old: PrimFunc, new: PrimFunc, match: Mapping[str, str] | None = None, boxes: Mapping[str, Shape] | None = None) -> PrimFunc:
    """`new` over the parameters, data variables and symbols of `old`, its parameters in the order that callers of `old` pass them in.

    `match` pairs parameters by name, new name to old name; the others are paired by their places among the rest. `boxes` has the shapes
    that re-laid parameters of `old`, by name, have in the new program: they tell symbols that only such shapes have.

    Raises LayoutproofError where the parameters do not correspond, in number, order, kind or type, where `match` names none, and where
    nothing tells what a symbol of the new program is.
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
    """The parameters of both programs, one for one, in the old program's order. Raises LayoutproofError where they do not correspond."""
    before, after = parameters_of(old), parameters_of(new)
    if len(before) != len(after):
        takes = f"the program before takes {counted(len(before), 'parameter', 'parameters')} ({_listed(before)})"
        raise error(codes.COMPARED_PARAMETERS, f"{takes}, the program after takes {len(after)} ({_listed(after)})", new.span)
    stated = _stated(old, new, match)
    rest = [p for p in after if p.name not in stated]
    taken = set(stated.values())
    others = [p for p in before if p.name not in taken]
    chosen = dict(zip((p.name for p in others), rest, strict=True))
    _check_order(old, new, others, rest)
    chosen |= {known: _named(after, name) for name, known in stated.items()}
    return tuple((p, chosen[p.name]) for p in before)


def _stated(old: PrimFunc, new: PrimFunc, match: Mapping[str, str]) -> dict[str, str]:
    """`match`, once each of its names is there and is used once."""
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
    """Raise LayoutproofError where a name that both programs have stands in another place: either reading may be the one meant."""
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
        help=f"where it is the same parameter all the same, match {moved.name} to {moved.name}; else match it to the one that it is",
    )


def _check_kind(before: Parameter, after: Parameter) -> None:
    """Raise LayoutproofError where one parameter cannot be the other."""
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
    """The function with its attributes about memories under the old names, and what it assumes of its callers as a step's own wish."""
    attrs = func.attrs
    for key in (AXIS_SEPARATORS, LAYOUT_TRANSFORMATIONS):
        stated = attrs.get(key)
        if isinstance(stated, Attributes):
            attrs = attrs.with_value(key, Attributes({renamed.memories.get(name, name): value for name, value in stated.items()}))
    records = layout_records(func)
    if records:
        kept = renamed.records(records)
        attrs = attrs.with_value(LAYOUT, Attributes(kept))
    assumed = [key for key in NOALIAS if attrs.get(key) in (True, 1)]
    if assumed and not old.noalias:
        # Callers of the old program promised no such thing, so it is asked of them, as where a pass needs it.
        attrs = Attributes({key: value for key, value in attrs.items() if key not in assumed}).with_value(APART, True)
    return func if attrs is func.attrs else replace(func, attrs=attrs)
