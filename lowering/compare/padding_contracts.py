"""Contracts of padding that were not given: the candidates of each buffer, and the search for a choice that is proved.

A buffer that the new program only reads gets the weakest contract that suffices: callers have to keep it. One that it
writes gets the strongest provable one: callers may rely on it. Nothing here is evidence; the checker decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import Compare, Expr, FloatImm, IntImm
from layoutproof.ir.intrinsics import Assume, Limit, OpaqueCall, Undef
from layoutproof.ir.layout_record import Contract, layout_records
from layoutproof.ir.operators import CompareOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import BufferStore
from layoutproof.ir.visit import free_variables, rewrite_bottom_up, walk
from layoutproof.lowering.arith.affine import fold_constants
from layoutproof.lowering.passes.effects import data_written
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.flow.known_values import Knowledge
from layoutproof.verify.flow.models import NEW, RewriteModel
from layoutproof.verify.flow.observable import padding_of
from layoutproof.verify.flow.simulate import OPERATIONS
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.instance_sets import links_of, only
from layoutproof.verify.isl.space import BudgetExceeded
from layoutproof.verify.program.statement import NotModelled
from layoutproof.verify.verdict import codes as claims
from layoutproof.verify.verdict.verdict import Status, Verdict

MOST_CHOICES = 10
_MOST_CONSTANTS = 3

Choice = Contract | None


@dataclass(frozen=True, slots=True)
class LastStored:
    """What is known of a buffer's padding at the end: a value for all of it, or that nothing writes it."""

    value: Contract | None = None
    untouched: bool = False


def options_of(new: PrimFunc, buffer: Buffer, last: LastStored | None) -> tuple[Choice, ...]:
    """The contracts to try for a parameter of `new` with padding, best first. `last` is the final value of its padding,
    if known.
    """
    seen = [_constant(value, buffer) for value in _constants(new, buffer)]
    values = [contract for contract in dict.fromkeys(seen) if contract is not None][:_MOST_CONSTANTS]
    undef = Contract.undef(buffer.dtype)
    assumed = list(dict.fromkeys(assumed_contracts(new, buffer)))
    found: list[Choice]
    if buffer.data not in data_written(new.body):
        found = [*assumed, None, undef, *values]
    elif last is None:
        found = [*assumed, *values, None, undef]
    elif last.value is not None:
        found = [last.value, undef]
    else:
        found = [None, undef] if last.untouched else [undef]
    return tuple(dict.fromkeys(found))


def assumed_contracts(func: PrimFunc, buffer: Buffer) -> Iterator[Contract]:
    """The contracts that the program's own assumptions about a buffer state."""
    for node in walk(func.body):
        if not isinstance(node, Assume):
            continue
        for part in walk(node.condition):
            if not isinstance(part, Compare) or part.op is not CompareOp.EQ:
                continue
            for load, other in ((part.lhs, part.rhs), (part.rhs, part.lhs)):
                if isinstance(load, BufferLoad) and load.buffer.data == buffer.data:
                    contract = Contract.undef(buffer.dtype) if isinstance(other, Undef) else _constant(other, buffer)
                    if contract is not None:
                        yield contract


def _constants(func: PrimFunc, buffer: Buffer) -> Iterator[Expr]:
    """Constants of the buffer's type in stored values: identities of reductions, arms of choices."""
    for store in walk(func.body):
        if isinstance(store, BufferStore):
            yield from (
                n for n in walk(store.value) if isinstance(n, FloatImm | IntImm | Limit) and n.dtype == buffer.dtype
            )


def _constant(value: Expr, buffer: Buffer) -> Contract | None:
    """The contract of a constant expression of the buffer's type; None for others."""
    if (
        value.dtype != buffer.dtype
        or free_variables(value)
        or any(isinstance(n, BufferLoad | OpaqueCall | Undef) for n in walk(value))
    ):
        return None
    return Contract((), rewrite_bottom_up(value, lambda n: fold_constants(n) if isinstance(n, Expr) else n))


def last_stored(values: Sequence[Expr | None], buffer: Buffer, untouched: bool) -> LastStored:
    """What padding ends with, from what is known of its parts."""
    found = {None if value is None else _constant(value, buffer) for value in values}
    if len(found) == 1:
        (only,) = found
        if only is not None:
            return LastStored(only)
    return LastStored(None, untouched)


# ---- choosing


@dataclass(slots=True)
class Choosing:
    """One contract for each parameter, changed after each failure: of the buffer that the failure names, else of the
    next one.
    """

    options: Mapping[str, tuple[Choice, ...]]
    memories: Mapping[str, str]
    at: dict[str, int] = field(init=False)
    tried: set[tuple[int, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.at = dict.fromkeys(self.options, 0)

    def first(self) -> dict[str, Choice]:
        """What is tried first."""
        return self._taken(self.at)

    def next(self, verdicts: Sequence[Verdict]) -> dict[str, Choice] | None:
        """What is tried after these verdicts; None if enough was."""
        if len(self.tried) >= MOST_CHOICES:
            return None
        for name in self._blamed(verdicts):
            further = {**self.at, name: self.at[name] + 1}
            if further[name] < len(self.options[name]) and tuple(further.values()) not in self.tried:
                return self._taken(further)
        for choice in self._all():
            if choice not in self.tried:
                return self._taken(dict(zip(self.options, choice, strict=True)))
        return None

    def _taken(self, at: dict[str, int]) -> dict[str, Choice]:
        self.at = at
        self.tried.add(tuple(at.values()))
        return {name: self.options[name][k] for name, k in at.items()}

    def _all(self) -> Iterator[tuple[int, ...]]:
        ranges = [range(len(options)) for options in self.options.values()]
        yield from sorted(islice(product(*ranges), 4096), key=sum)

    def _blamed(self, verdicts: Sequence[Verdict]) -> Iterator[str]:
        for verdict in verdicts:
            if verdict.status is not Status.PROVED and verdict.claim.kind.code in ABOUT_PADDING:
                yield from (
                    name for name in self.options if not {name, self.memories[name]}.isdisjoint(verdict.claim.buffers)
                )


ABOUT_PADDING = frozenset({claims.PADDING_POSTCONDITION, claims.PADDING_TOUCHED, claims.ASSUMED, claims.UNDEFINED_READ})


def endings(rewrite: Rewrite, where: Expr | None, names: Sequence[str]) -> dict[str, LastStored]:
    """The final values of the padding that the last steps of these parameters' records introduced; unknown ones are
    missing.
    """
    if not names:
        return {}
    try:
        rewrite_model = RewriteModel.of(
            rewrite, Facts.of(rewrite.old, where), Facts.of(rewrite.new, where, rewrite.old), OPERATIONS
        )
        with rewrite_model.workspace.limited():
            facts = Knowledge.of(rewrite_model, rewrite_model.after, rewrite_model.new, NEW)
            return {name: _ending(rewrite_model, facts, name) for name in names}
    except (NotModelled, NotQuasiAffine, BudgetExceeded):
        return {}


def _ending(rewrite_model: RewriteModel, facts: Knowledge, name: str) -> LastStored:
    buffer = next(b for b in rewrite_model.rewrite.new.buffers if b.name == name)
    record = layout_records(rewrite_model.rewrite.new)[buffer.data.name]
    data = rewrite_model.memory(rewrite_model.new, buffer.data.name)
    box = rewrite_model.cells_region(rewrite_model.after, data)
    if len(box.encoder.space.dims) != len(record.shape):
        return LastStored()
    region = box.within(padding_of(record, len(record.steps) - 1, box.encoder))
    if region.is_empty:
        return LastStored(None, untouched=True)
    tag = f"{NEW}out_{buffer.data.name}"
    flow = rewrite_model.after.final(data).intersect_domain(only(region.named(tag)))
    untouched = all(origin == f"{NEW}in_{buffer.data.name}" for origin, _ in links_of(flow, tag))
    return last_stored([known.value for known in facts.of_flow(flow, tag, region)], buffer, untouched)
