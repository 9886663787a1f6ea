"""The arguments of a call: the parameter of each, and the values of scalars and shape symbols; and the preconditions of
a call that the proofs assume.

Those are gathered from every program on the way to the lowered one. Those on symbols are checked at every call. Those
on the contents of buffers cannot be: packing establishes them, or the caller guarantees them.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, Compare, Expr, IntImm, Var, const
from layoutproof.ir.interval import Interval
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.layout_record import Cell, LayoutRecord, layout_records
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import Evaluate
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables, nodes_of
from layoutproof.lowering.arith.known_facts import constants_of
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.calling_convention import Parameter
from layoutproof.lowering.codegen.requirements import Contract, Requirement
from layoutproof.lowering.passes.effects import data_written
from layoutproof.verify.faults.arithmetic import call_assumptions
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.program.instances import IterationDomain, conjuncts


class Symbols:
    """The known symbols of one call, and the argument that each comes from."""

    def __init__(self, bounds: Mapping[str, Interval]) -> None:
        self.values: dict[str, int] = {}
        self._origin: dict[str, str] = {}
        self._bounds = bounds

    def bind(self, name: str, value: int, origin: str) -> None:
        """Set `name` to `value`, from `origin`. Raises LayoutproofError (LP426) where that contradicts another value or
        its bounds.
        """
        known = self.values.setdefault(name, value)
        if known != value:
            raise error(codes.SYMBOLS, f"{name} is {known} by {self._origin[name]} and {value} by {origin}")
        self._origin.setdefault(name, origin)
        limits = self._bounds.get(name)
        if limits is not None and not limits.low <= value <= limits.high:
            raise error(
                codes.SYMBOLS,
                f"{name} is {value} by {origin}; this kernel was built for {limits.low} <= {name} <= {limits.high}",
            )

    def match(self, argument: str, kind: str, extents: Sequence[Expr], shape: Sequence[int]) -> None:
        """Bind symbols by the shape of an argument. Raises LayoutproofError (LP421) for another number of axes."""
        if len(extents) != len(shape):
            wanted = f"its {kind} shape is {_shape_text(extents)}, {len(extents)} axes"
            raise error(codes.ARGUMENT_SHAPE, f"{argument} has {len(shape)} axes, {list(shape)}; {wanted}")
        for axis, (extent, actual) in enumerate(zip(extents, shape, strict=True)):
            found = _solve(extent, actual)
            if found is not None:
                self.bind(*found, f"axis {axis} of {argument}")

    def check(self, argument: str, kind: str, extents: Sequence[Expr], shape: Sequence[int]) -> None:
        """Raise LayoutproofError (LP421) unless an argument has the shape that its extents give."""
        wanted = tuple(self.evaluate(extent, argument) for extent in extents)
        if wanted != tuple(shape):
            named = f" ({_shape_text(extents)})" if any(not isinstance(e, IntImm) for e in extents) else ""
            raise error(
                codes.ARGUMENT_SHAPE, f"{argument} has shape {list(shape)}; its {kind} shape is {list(wanted)}{named}"
            )

    def start(self, argument: str, offset: Expr) -> None:
        """Have an array start at its first element. Raises LayoutproofError (LP426) where it would start elsewhere."""
        origin = f"{argument}, which starts at its first element"
        if isinstance(offset, Var):
            self.bind(offset.name, 0, origin)
        elif (found := self.evaluate(offset, argument)) != 0:
            raise error(codes.SYMBOLS, f"{extent_text(offset)} is 0 by {origin}, and {found} by the other arguments")

    def value(self, name: str, kernel: str) -> int:
        """A symbol's number. Raises LayoutproofError (LP426) where no argument determines it."""
        if name not in self.values:
            raise error(
                codes.SYMBOLS,
                f"{name}, a parameter of {kernel}, cannot be found from the arrays",
                help=f"give it by name: {name}=...",
            )
        return self.values[name]

    def told(self, name: str) -> str:
        """A known symbol's number and the argument that it comes from: `n = 3 (axis 0 of A)`."""
        return f"{name} = {self.values[name]} ({self._origin[name]})"

    def evaluate(self, extent: Expr, argument: str) -> int:
        """An extent's number. Raises LayoutproofError (LP426) for an unknown symbol, LP421 for a division by zero."""
        missing = [v.name for v in free_variables(extent) if v.name not in self.values]
        if missing:
            raise error(
                codes.SYMBOLS,
                f"{missing[0]}, in the shape of {argument}, cannot be found from the arrays",
                help=f"give it by name: {missing[0]}=...",
            )
        try:
            return int(evaluate(extent, self.values))
        except Trap as trap:
            raise error(codes.ARGUMENT_SHAPE, f"the shape of {argument} has no value: {trap}") from trap


def _solve(extent: Expr, actual: int) -> tuple[str, int] | None:
    """The one symbol of an extent and its value, where the extent is that symbol or a constant times it."""
    if isinstance(extent, Var):
        return extent.name, actual
    if isinstance(extent, Binary) and extent.op is BinaryOp.MUL:
        for variable, factor in ((extent.lhs, extent.rhs), (extent.rhs, extent.lhs)):
            if isinstance(variable, Var) and isinstance(factor, IntImm) and factor.value != 0:
                if actual % factor.value == 0:
                    return variable.name, actual // factor.value
    return None


def _shape_text(extents: Sequence[Expr]) -> str:
    return f"[{', '.join(extent_text(e) for e in extents)}]"


def extent_text(extent: Expr) -> str:
    """An extent as text."""
    return expr_text(extent, "plain")


class Signature:
    """The parameters of one kernel, as a caller sees them."""

    def __init__(self, name: str, parameters: Sequence[Parameter]) -> None:
        self.name = name
        self.parameters = tuple(parameters)
        self.by_name = {p.name: p for p in parameters}
        self.own = tuple(p for p in parameters if not p.implied)
        self.inputs = tuple(p for p in parameters if not p.writes or p.needs_content)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(p.name for p in self.parameters)})"

    def assign(
        self, arguments: Sequence[object], named: Mapping[str, object], *, every_array: bool = False
    ) -> dict[str, object]:
        """Arguments by parameter.

        As many as there are parameters (with or without implied shape symbols): all in order; fewer: the inputs in
        order. Raises LayoutproofError (LP420) for too many, an unknown name, a parameter given twice or a missing
        input.
        """
        everything = every_array or len(arguments) in (len(self.parameters), len(self.own))
        order = self.parameters if everything else self.inputs
        if len(arguments) > len(order):
            raise self._misuse(f"{len(arguments)} arguments", every_array)
        given: dict[str, object] = {p.name: value for p, value in zip(order, arguments, strict=False)}
        for name, value in named.items():
            if name not in self.by_name:
                raise self._misuse(f"the unknown argument {name!r}", every_array)
            if name in given:
                raise self._misuse(f"{name} twice", every_array)
            given[name] = value
        for parameter in self.parameters if every_array else self.inputs:
            if parameter.name not in given and not parameter.is_symbol:
                raise self._misuse(f"no {parameter.name}", every_array)
        return given

    def _misuse(self, what: str, every_array: bool) -> LayoutproofError:
        everything, inputs = _names_of(self.parameters), _names_of(self.inputs)
        takes = f"it takes its inputs ({inputs}) or all parameters ({everything})"
        help = f"raw takes all parameters: {everything}" if every_array else takes
        return error(codes.ARGUMENTS, f"{self.name} was given {what}", help=help)


def _names_of(parameters: Sequence[Parameter], most: int = 12) -> str:
    names = [p.name for p in parameters]
    return ", ".join(names if len(names) <= most else [*names[:most], f"and {len(names) - most} more"])


def scalar_value(parameter: Parameter, value: object) -> int | float:
    """A number for a scalar parameter. Raises LayoutproofError (LP422) for another type, or where it does not fit."""
    name, dtype = parameter.name, parameter.dtype
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if dtype.is_float:
        if isinstance(value, numbers.Real | np.floating | np.integer) or _is_narrow_float(value):
            return float(value)  # type: ignore[arg-type]  # ml_dtypes' scalars are floats that numbers does not know
        raise error(codes.ARGUMENT_TYPE, f"{name} is {value!r}; a number of type {dtype} is expected")
    if dtype.is_bool and isinstance(value, bool | np.bool_):
        return int(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return _fitting(name, int(value), dtype)
    raise error(
        codes.ARGUMENT_TYPE,
        f"{name} is {value!r}; {'a truth value' if dtype.is_bool else f'an integer of type {dtype}'} is expected",
    )


def _is_narrow_float(value: object) -> bool:
    return isinstance(value, np.generic) and value.dtype.kind in "fV"


def _fitting(name: str, value: int, dtype: DType) -> int:
    low, high = (0, 1) if dtype.kind is Kind.BOOL else (dtype.min_int, dtype.max_int)
    if not low <= value <= high:
        raise error(codes.ARGUMENT_TYPE, f"{name} is {value}, which does not fit {dtype}")
    return value


class Duty(StrEnum):
    """Who ensures that an assumption holds."""

    CHECKED = "checked at every call"
    PACKED = "established by kernel(...), not checked in kernel.raw(...)"
    PROMISED = "not checked"


@dataclass(frozen=True, slots=True)
class Assumption:
    """One precondition, in words; `requirement` where it is a condition on symbols."""

    duty: Duty
    text: str
    requirement: Requirement | None = None

    def __str__(self) -> str:
        return f"{self.text} ({self.duty})"


def contract_of(assumptions: Iterable[Assumption]) -> Contract:
    """The same for generated C, which has no packing."""
    given = tuple(assumptions)
    requirements = tuple(a.requirement for a in given if a.requirement is not None)
    return Contract(requirements, tuple(a.text for a in given if a.duty is not Duty.CHECKED))


def check_requirements(kernel: str, assumptions: Iterable[Assumption], symbols: Symbols) -> None:
    """Raise LayoutproofError: LP431 for the first requirement that the symbols of a call do not meet, over the
    integers, LP426 for an unknown symbol.
    """
    for assumption in assumptions:
        requirement = assumption.requirement
        if requirement is None:
            continue
        for name in requirement.symbols:
            symbols.value(name, kernel)
        why = requirement.failure(symbols.values)
        if why is not None:
            told = ", ".join(symbols.told(name) for name in requirement.symbols)
            raise error(
                codes.ASSUMPTION,
                f"{kernel} assumes {requirement.text}{requirement.place}, and {why} for {told}",
                help="the proofs say nothing about such a call: another schedule, or index types that are wider, may "
                "allow it",
            )


def assumptions_of(
    original: PrimFunc, later: Iterable[PrimFunc], lowered: PrimFunc, where: Expr | None
) -> tuple[Assumption, ...]:
    """All preconditions of calls of the lowered function.

    `later` are the programs between the original and the lowered one; `where` is what the proofs assumed of symbols
    besides each program's own text.
    """
    functions = list(dict.fromkeys((original, *later, lowered)))
    found = [Assumption(Duty.CHECKED, r.text, r) for r in _requirements(functions, where)]
    if lowered.noalias:
        found.append(Assumption(Duty.CHECKED, "parameters do not overlap where one of them is written"))
    found += _of_padding(lowered, lowered.buffers)
    found += [Assumption(Duty.PROMISED, text) for text in _of_data(original)]
    return tuple(found)


def preconditions_of(original: PrimFunc, scheduled: PrimFunc) -> tuple[str, ...]:
    """What callers of a scheduled function have to see to, beside sizes: the contents of its inputs, in words.

    What the function writes it pads itself.
    """
    written = data_written(scheduled.body)
    inputs = (buffer for buffer in scheduled.buffers if buffer.data not in written)
    return (*(assumption.text for assumption in _of_padding(scheduled, inputs)), *_of_data(original))


def _requirements(functions: Sequence[PrimFunc], where: Expr | None) -> Iterator[Requirement]:
    """Conditions on symbols, each once; those implied by the ranges of the symbols are left out."""
    seen: set[tuple[str, bool]] = set()
    for function in functions:
        if not constants_of(function):
            continue
        facts = Facts.of(function, where)
        conditions = [
            Requirement(v >= const(r.low, v.dtype)) for v, r in facts.ranges.items() if r.low > v.dtype.min_int
        ]
        conditions += [Requirement(c, place=_place(c)) for c in facts.assumed if not _is_plain(facts, c)]
        conditions += [Requirement(e, True, _place(e)) for e in call_assumptions(function, where)]
        for requirement in conditions:
            key = (requirement.text, requirement.fits)
            if key not in seen:
                seen.add(key)
                yield requirement


def _is_plain(facts: Facts, condition: Expr) -> bool:
    """Whether a condition is true, or `e >= number` as the ranges of the symbols alone imply."""
    match condition:
        case IntImm(value=truth):
            return bool(truth)
        case Compare(op=CompareOp.GE, lhs=left, rhs=IntImm(value=least)) if not isinstance(left, Var):
            return facts.interval(left, IterationDomain()).low >= least
        case _:
            return False


def _place(node: Node) -> str:
    return f" (line {node.span.line})" if node.span is not None else ""


def _of_padding(lowered: PrimFunc, parameters: Iterable[Buffer]) -> Iterator[Assumption]:
    """The contents of the padding of those parameters that are read, at the start, which `kernel(...)` fills in."""
    records = layout_records(lowered)
    read = {load.buffer.data for load in nodes_of(lowered.body, BufferLoad)}
    for buffer in (b for b in parameters if b.data in read):
        for contract in _contracts(records.get(buffer.data.name)):
            yield Assumption(Duty.PACKED, f"padding of {buffer.name} holds {contract}")


def _contracts(record: LayoutRecord | None) -> list[str]:
    steps = record.steps if record is not None else ()
    return list(dict.fromkeys(str(s.contract) for s in steps if s.padding is Cell.PAD_VALUE))


def _of_data(original: PrimFunc) -> Iterator[str]:
    """The program's own assumptions that no call can check: on contents of buffers, or on loop variables."""
    evaluated = ((node, node.value) for node in nodes_of(original.body, Evaluate))
    assumed = [(node, value.condition) for node, value in evaluated if isinstance(value, Assume)]
    if not assumed:
        return  # facts take a solver, which a run that finds everything in the cache does not load
    known = set(Facts.of(original).assumed)
    for node, condition in assumed:
        if not {g.as_expr for g in conjuncts(condition)} <= known:
            yield f"{expr_text(condition, Style.PLAIN)}{_place(node)}"
