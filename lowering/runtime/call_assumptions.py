"""The preconditions of a call that the proofs assume.

They are gathered from every program on the way to the lowered one. Those on symbols are checked at every call. Those on
the contents of buffers cannot be: packing establishes them, or the caller guarantees them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Compare, Expr, IntImm, Var, const
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.layout_record import Cell, LayoutRecord, layout_records
from layoutproof.ir.node import Node
from layoutproof.ir.operators import CompareOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Evaluate
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import walk
from layoutproof.lowering.arith.known_facts import constants_of
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.requirements import Contract, Requirement
from layoutproof.lowering.runtime.call_arguments import Symbols
from layoutproof.verify.faults.arithmetic import call_assumptions
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.program.instances import IterationDomain, conjuncts


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
    found += _of_padding(lowered)
    found += [Assumption(Duty.PROMISED, text) for text in _of_data(original)]
    return tuple(found)


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


def _of_padding(lowered: PrimFunc) -> Iterator[Assumption]:
    """The contents of the inputs' padding at the start, which `kernel(...)` fills in."""
    records = layout_records(lowered)
    read = {load.buffer.data for load in walk(lowered.body) if isinstance(load, BufferLoad)}
    for buffer in (b for b in lowered.buffers if b.data in read):
        for contract in _contracts(records.get(buffer.data.name)):
            yield Assumption(Duty.PACKED, f"padding of {buffer.name} holds {contract}")


def _contracts(record: LayoutRecord | None) -> list[str]:
    steps = record.steps if record is not None else ()
    return list(dict.fromkeys(str(s.contract) for s in steps if s.padding is Cell.PAD_VALUE))


def _of_data(original: PrimFunc) -> Iterator[str]:
    """The program's own assumptions that no call can check: on contents of buffers, or on loop variables."""
    known = set(Facts.of(original).assumed)
    for node in walk(original.body):
        if isinstance(node, Evaluate) and isinstance(node.value, Assume):
            condition = node.value.condition
            if not {g.as_expr for g in conjuncts(condition)} <= known:
                yield f"{expr_text(condition, Style.PLAIN)}{_place(node)}"
