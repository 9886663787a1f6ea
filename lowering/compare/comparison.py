"""Question and answer of a comparison of two programs, as plain data.

The question to the search for a witness, how far it came, and the rewrite that was proved. Nothing here is evidence: a
witness is a claim, which the checker accepts or refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from layoutproof.ir.diagnostic import counted
from layoutproof.ir.expr import Expr
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite, Witness
from layoutproof.lowering.compare.rolled import unrolled
from layoutproof.verify.values.fast_math import FastMathSet
from layoutproof.verify.verdict.report import Report, worst
from layoutproof.verify.verdict.verdict import Status, Verdict

if TYPE_CHECKING:
    from layoutproof.verify.certificate.certificate import Certificate
    from layoutproof.verify.step_record import StepRecord


@dataclass(frozen=True, slots=True)
class Question:
    """Which instances of `new` compute which of `old`?

    Both functions have the same parameters, data variables and symbols, as nodes (see `shared_interface`). `cells` has
    the cell maps of parameters with known layouts; parameters of one shape without an entry keep their cells. `unknown`
    names the parameters (buffers of `old`) whose layouts are searched. `where` is a condition on symbols that callers
    guarantee.
    """

    old: PrimFunc
    new: PrimFunc
    where: Expr | None = None
    cells: tuple[CellMap, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """An answer: an instance map for each new store, and the cell maps of all parameters that moved, also of `unknown`
    ones.
    """

    instances: tuple[InstanceMap, ...]
    cells: tuple[CellMap, ...]


@dataclass(frozen=True, slots=True)
class Furthest:
    """The place at which a search for a witness ended.

    `reason` is a sentence for people. `new_store` and `old_store` are the stores that it had reached, by their numbers
    in program order, `new_line` and `old_line` their lines, from 1, `operand` the access without a counterpart, as
    text, and `relation` the instances that were to be equal there, as text; None if there is none. `matched` counts the
    stores of the new program with a counterpart.
    """

    reason: str
    new_store: int | None = None
    old_store: int | None = None
    new_line: int | None = None
    old_line: int | None = None
    operand: str | None = None
    relation: str | None = None
    matched: int = 0

    def text(self) -> str:
        """All of it in a few lines."""
        lines = [self.reason]
        if self.operand is not None:
            lines.append(f"operand: {self.operand}")
        if self.relation is not None:
            lines.append(f"relation: {self.relation}")
        if self.matched:
            lines.append(f"{counted(self.matched, 'store', 'stores')} of the new program had a counterpart by then")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "reason": self.reason,
            "new_store": self.new_store,
            "old_store": self.old_store,
            "new_line": self.new_line,
            "old_line": self.old_line,
            "operand": self.operand,
            "relation": self.relation,
            "matched": self.matched,
        }


class NoWitness(Exception):
    """No witness was found; `furthest` says how far the search came, `out_of_budget` whether it was stopped."""

    def __init__(self, furthest: Furthest, *, out_of_budget: bool = False) -> None:
        super().__init__(furthest.reason)
        self.furthest = furthest
        self.out_of_budget = out_of_budget


PRIMITIVE = "compare"
NO_STEP = "the proof rests on laws of how threads join tuples, of which there is no certificate"


@dataclass(frozen=True, slots=True)
class BufferLayout:
    """The layout in the program after of a parameter of the program before.

    `buffer` is its name before, `stored_as` its name after. `index_map` is the map's text, from logical to physical
    indices, and `pad_value` the contract of the padding (None: there is none, or it must not be touched; `undef`: it
    holds anything; else the text of its value). `layout_given` and `pad_given` say whether the caller stated them;
    otherwise they were found.
    """

    buffer: str
    stored_as: str
    index_map: str
    pad_value: str | None
    layout_given: bool
    pad_given: bool

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "buffer": self.buffer,
            "stored_as": self.stored_as,
            "index_map": self.index_map,
            "pad_value": self.pad_value,
            "layout_given": self.layout_given,
            "pad_given": self.pad_given,
        }


@dataclass(frozen=True, repr=False)
class Comparison(Report):
    """The answer to whether `after` does what `before` does, up to layouts of parameters.

    `layouts` are those of the parameters whose layouts differ, as given or found. The first of `verdicts` answers the
    question as a whole; the others are the checker's on the rewrite from `before` to `after` (with its layout records).
    Without a witness they are missing, `rewrite` is None, and `furthest` says how far the search came. `where` is the
    precondition on symbols (the caller's, and what `before` assumes), `allowed` the fast-math assumptions that proofs
    might use, `seconds` the wall-clock time in total. `around` are proved rewrites from `before` to what `rewrite`
    starts with, and from where it ends, if it is about programs in which sums were separated. `match` is the caller's:
    parameters of `after` by name, with those of `before`.
    """

    before: PrimFunc
    after: PrimFunc
    verdicts: tuple[Verdict, ...]
    layouts: tuple[BufferLayout, ...] = ()
    rewrite: Rewrite | None = None
    furthest: Furthest | None = None
    where: Expr | None = None
    allowed: FastMathSet = frozenset()
    seconds: float = 0.0
    rolled: bool = False
    around: tuple[Rewrite | None, Rewrite | None] = (None, None)
    match: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<{self.status.value}: {self.before.name} and {self.after.name}>" if self.ok else super().__repr__()

    @property
    def asked(self) -> tuple[Verdict, ...]:
        """All verdicts."""
        return self.verdicts

    @property
    def status(self) -> Status:
        """The worst verdict's status."""
        return worst(verdict.status for verdict in self.verdicts)

    @cached_property
    def strictness(self) -> tuple[str, ...]:
        """The fast-math assumptions that the proof rests on, by name; none if it holds bit for bit."""
        return tuple(sorted({flag for verdict in self.verdicts for flag in verdict.strictness}))

    @property
    def arguments(self) -> dict[str, Any]:
        """The layouts, as the arguments of a step in a report and a certificate."""
        return {"layouts": [layout.to_dict() for layout in self.layouts]}

    @property
    def certificate(self) -> Certificate:
        """What was proved, for others to check again. Raises ValueError if not all is proved."""
        from layoutproof.verify.certificate.certificate import certify
        from layoutproof.verify.certificate.finder.kernel_evidence import find_evidence

        if not self.records:
            if self.status is Status.PROVED:
                raise ValueError(NO_STEP)
            raise ValueError(f"there is no certificate of a comparison that is {self.status.value}")
        return certify(self.records, self.before.name, find_evidence)

    @property
    def records(self) -> tuple[StepRecord, ...]:
        """The step, as certificates have it, and those that write loops out which were found; none if not all is
        proved.
        """
        from layoutproof.verify.step_record import StepRecord

        if self.rewrite is None or self.status is not Status.PROVED:
            return ()
        proved = StepRecord(PRIMITIVE, self.arguments, self.rewrite, self.where, self.allowed)

        def exact(rewrite: Rewrite) -> StepRecord:
            return StepRecord(PRIMITIVE, {}, rewrite, self.where, frozenset())

        first, last = (() if each is None else (exact(each),) for each in self.around)
        steps = (*first, proved, *last)
        if not self.rolled:
            return steps
        old, new = steps[0].rewrite.old, steps[-1].rewrite.new
        writing = [
            () if one == other else (exact(Rewrite(one, other, Witness(()))),)
            for one, other in ((unrolled(old), old), (new, unrolled(new)))
        ]
        return (*writing[0], *steps, *writing[1])

    def to_dict(self) -> dict[str, Any]:
        """JSON with the keys of a schedule's report: one step, and how far an unsuccessful search came."""
        step = {
            "primitive": PRIMITIVE,
            "arguments": self.arguments,
            "obligations": [verdict.to_dict() for verdict in self.verdicts],
        }
        return {
            "program": self.before.name,
            "after": self.after.name,
            "verdict": self.status.value,
            "steps": [step],
            "layouts": [layout.to_dict() for layout in self.layouts],
            "strictness": list(self.strictness),
            "furthest": self.furthest.to_dict() if self.furthest is not None else None,
            "seconds": self.seconds,
            "certificate": None,
        }
