"""The search for pad values that make branches unnecessary: each candidate is tried, each answer proved.

Source: TVM's RFC `layout-transformation-padding-roadmap`, which names the search as a future possibility and leaves it
open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Binary, Cast, Expr, FloatImm, IntImm
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, Stmt
from layoutproof.ir.visit import stores_in, walk
from layoutproof.lowering import codes
from layoutproof.lowering.layout.pad_value import PadText
from layoutproof.lowering.layout.transform_layout import ROOT, TransformLayout
from layoutproof.lowering.loops.nest import GuardKind, GuardSite, guard_sites
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.find import find_block, find_buffer
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.passes.steps import ProofOptions, Step, prove_step
from layoutproof.verify.verdict.verdict import ClaimKind, Status


@dataclass(frozen=True, slots=True)
class CandidateValue:
    """A pad value to try, as a trace states it, and why."""

    pad: PadText
    why: str

    def __str__(self) -> str:
        if self.pad is None:
            return "no contract"
        return {"T.undef()": "undef"}.get(self.pad, self.pad) if isinstance(self.pad, str) else repr(self.pad)


# Neutral values of operators, exactly or on one side of zero. They are only tried; the laws are the checker's.
_NEUTRAL: Mapping[str, tuple[str, ...]] = {
    "+": ("0", "-0"),
    "-": ("0", "-0"),
    "*": ("1",),
    "max": ("-inf", "lowest"),
    "min": ("inf", "highest"),
    "fmax": ("-inf", "lowest"),
    "fmin": ("inf", "highest"),
    "maximum": ("-inf", "lowest"),
    "minimum": ("inf", "highest"),
    "&": ("ones",),
    "|": ("0",),
    "^": ("0",),
}
_OPERATORS = (
    BinaryOp.ADD,
    BinaryOp.SUB,
    BinaryOp.MUL,
    BinaryOp.MIN,
    BinaryOp.MAX,
    BinaryOp.BITAND,
    BinaryOp.BITOR,
    BinaryOp.BITXOR,
)


def candidate_values(scope: Stmt, buffer: Buffer) -> tuple[CandidateValue, ...]:
    """Pad values for a buffer that is used below `scope`: no contract and `undef` first, then the identities of its
    reductions, numbers that are subtracted from its elements, zero, one, and the limits of the type.
    """
    dtype = buffer.dtype.element
    found: dict[str, CandidateValue] = {}
    wanted: list[tuple[PadText, str]] = [(None, "padding must not be accessed"), ("T.undef()", "anything may be there")]
    for operator in dict.fromkeys(_reductions(scope)):
        wanted += [
            (value, f"identity of {operator}")
            for name in _NEUTRAL[operator]
            if (value := _value(name, dtype)) is not None
        ]
    wanted += [(number, "taken away from each element") for number in _taken_away(scope, buffer)]
    ends = ("-inf", "inf") if dtype.is_float else ("lowest", "highest")
    for name, why in (("0", "zero"), ("1", "one"), (ends[0], "low end of the type"), (ends[1], "high end of the type")):
        value = _value(name, dtype)
        if value is not None:
            wanted.append((value, why))
    for pad, why in wanted:
        candidate = CandidateValue(pad, why)
        found.setdefault(str(candidate), candidate)
    return tuple(found.values())


def _value(name: str, dtype: DType) -> PadText:
    """A value by its name, in the form of a trace; None if the type has none."""
    if dtype.is_bool:
        return {"0": False, "1": True, "ones": True, "lowest": False, "highest": True}.get(name)
    if dtype.is_float:
        floats: dict[str, PadText] = {
            "0": 0.0,
            "-0": -0.0,
            "1": 1.0,
            "-inf": f'T.{dtype}("-inf")',
            "inf": f'T.{dtype}("inf")',
        }
        limits: dict[str, PadText] = {"lowest": f'T.min_value("{dtype}")', "highest": f'T.max_value("{dtype}")'}
        return {**floats, **limits}.get(name)
    lowest, highest = dtype.min_int, dtype.max_int
    integers = {"0": 0, "1": 1, "-inf": lowest, "lowest": lowest, "inf": highest, "highest": highest}
    return {**integers, "ones": -1 if lowest < 0 else highest}.get(name)


def _reductions(scope: Stmt) -> Iterator[str]:
    """The operators by which stores below `scope` update a cell."""
    for store in stores_in(scope):
        operator = _operator(store)
        if operator is not None:
            yield operator


def _operator(store: BufferStore) -> str | None:
    match store.value:
        case Binary(op=op, lhs=lhs, rhs=rhs) if op in _OPERATORS:
            return op.value if any(_is_cell(side, store) for side in (lhs, rhs)) else None
        case Call(function=function, arguments=arguments) if function in _NEUTRAL:
            return function if any(_is_cell(side, store) for side in arguments) else None
        case Call(function="fma", arguments=arguments):
            return "+" if _is_cell(arguments[-1], store) else None
        case _:
            return None


def _is_cell(value: Expr, store: BufferStore) -> bool:
    return isinstance(value, BufferLoad) and value.buffer == store.buffer and value.indices == store.indices


def _taken_away(scope: Stmt, buffer: Buffer) -> Iterator[int | float]:
    """Constants that are subtracted from elements: the zero point of quantised data."""
    for node in walk(scope):
        if isinstance(node, Binary) and node.op is BinaryOp.SUB and isinstance(node.rhs, IntImm | FloatImm):
            left = node.lhs
            while isinstance(left, Cast):
                left = left.value
            number = node.rhs.value
            if isinstance(left, BufferLoad) and left.buffer == buffer and _fits(number, buffer.dtype.element):
                yield number


def _fits(number: int | float, dtype: DType) -> bool:
    return dtype.is_float or (isinstance(number, int) and dtype.min_int <= number <= dtype.max_int)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a guard may go. `strictness` lists the fast-math assumptions that the proof needs, none for a proof bit
    for bit; `wrapped` says that loads must take their index modulo the extent; `claim` and `reason` are of what is not
    proved; `leaves` says that an access is out of bounds: a wrapped index may help.
    """

    status: Status
    strictness: tuple[str, ...] = ()
    wrapped: bool = False
    claim: str | None = None
    reason: str | None = None
    leaves: bool = False

    @property
    def goes(self) -> bool:
        """Whether it is proved that the guard may go."""
        return self.status is Status.PROVED

    def __str__(self) -> str:
        if self.goes:
            under = f"is removed with {' '.join(self.strictness)}" if self.strictness else "is removed, bit for bit"
            return f"{under}, its accesses wrapped" if self.wrapped else under
        word = "refuted" if self.status is Status.REFUTED else "not decided"
        return f"is kept: {word}: {self.claim}" if self.claim is not None else f"is kept: {word}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "status": self.status.value,
            "strictness": list(self.strictness),
            "wrapped": self.wrapped,
            "claim": self.claim,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate: the outcome for each guard, by its text, and, if several may go, for all of these `together`.

    `refused` says why the buffer cannot be stored so, or why a later step does not hold.
    """

    candidate: CandidateValue
    outcomes: Mapping[str, Outcome]
    together: Outcome | None = None
    refused: str | None = None

    @property
    def removed(self) -> tuple[str, ...]:
        """The guards that may go."""
        return tuple(guard for guard, outcome in self.outcomes.items() if outcome.goes)

    @property
    def cost(self) -> tuple[int, int]:
        """For comparisons: guards that stay, then fast-math assumptions that are needed."""
        fast_math = {word for outcome in (*self.outcomes.values(), *self._together) for word in outcome.strictness}
        apart = self.together is not None and not self.together.goes
        return len(self.outcomes) - (1 if apart else len(self.removed)), len(fast_math)

    @property
    def _together(self) -> tuple[Outcome, ...]:
        return () if self.together is None else (self.together,)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        outcomes = {guard: outcome.to_dict() for guard, outcome in self.outcomes.items()}
        together = None if self.together is None else self.together.to_dict()
        named = {"pad_value": self.candidate.pad, "why": self.candidate.why}
        return {**named, "guards": outcomes, "together": together, "refused": self.refused}


@dataclass(frozen=True, slots=True)
class PadValueReport:
    """The pad values tried for `buffer`, stored by `index_map`, and what each does to the guards of `block`."""

    block: str
    buffer: str
    index_map: str
    rows: tuple[Row, ...]

    @property
    def guards(self) -> tuple[str, ...]:
        """The guards that were tried, in the order of the text."""
        return tuple(dict.fromkeys(guard for row in self.rows for guard in row.outcomes))

    @property
    def best(self) -> Row | None:
        """The first row that removes the most guards with the fewest fast-math assumptions; None if no candidate
        removes any.
        """
        able = [row for row in self.rows if row.removed]
        return min(able, key=lambda row: row.cost) if able else None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        rows = [row.to_dict() for row in self.rows]
        return {
            "block": self.block,
            "buffer": self.buffer,
            "index_map": self.index_map,
            "guards": list(self.guards),
            "candidates": rows,
        }

    def __str__(self) -> str:
        lines = [f"pad values for {self.buffer} in block {self.block}, stored by `{self.index_map}`"]
        guards = self.guards
        lines += [f"  guard {number}: {guard}" for number, guard in enumerate(guards)]
        width = max((len(str(row.candidate)) for row in self.rows), default=0)
        for row in self.rows:
            said = [f"guard {guards.index(guard)} {outcome}" for guard, outcome in row.outcomes.items()]
            if row.together is not None:
                said.append(f"all of these together: {row.together}")
            if row.refused is not None:
                said = [f"refused: {row.refused}"]
            for number, text in enumerate(said or ["no guard is left"]):
                name = str(row.candidate) if number == 0 else ""
                lines.append(f"  {name:<{width}}  {text}")
        best = self.best
        lines.append(
            "no candidate removes a guard" if best is None else f"best: {best.candidate} ({best.candidate.why})"
        )
        return "\n".join(lines)


def search_pad_values(steps: Sequence[Step], block: str, buffer: str) -> PadValueReport:
    """Try pad values for the last transform of `buffer` among `steps`, and report which guards of `block` may go then.

    The later steps are taken again, each proved, except those that dropped guards of the block; then each guard is
    tried alone. Raises LayoutproofError if no step transformed the buffer, and for an unknown block or buffer.
    """
    number = _last_transform(steps, buffer)
    step = steps[number]
    assert isinstance(step.transform, TransformLayout)
    before = step.rewrite.old
    scope = before.body if block == ROOT else find_block(before, block)
    later = [s for s in steps[number + 1 :] if not _drops_guards(s.transform, block)]
    rows: list[Row] = []
    for candidate in candidate_values(scope, find_buffer(before, buffer)):
        attempt = [replace(step, transform=replace(step.transform, pad_value=candidate.pad)), *later]
        rows.append(_row(_Trying(before, attempt, block), candidate))
    return PadValueReport(block, buffer, step.transform.index_map, tuple(rows))


def _last_transform(steps: Sequence[Step], buffer: str) -> int:
    for number in reversed(range(len(steps))):
        transform = steps[number].transform
        if isinstance(transform, TransformLayout) and transform.buffer == buffer:
            return number
    known = dict.fromkeys(s.transform.buffer for s in steps if isinstance(s.transform, TransformLayout))
    hint = (
        f"steps change the layout of {', '.join(known)}"
        if known
        else "apply transform_layout first, with any pad value"
    )
    raise error(
        codes.NO_LAYOUT_STEP,
        f"no step of the schedule changes the layout of {buffer}: there is no pad value to choose",
        help=hint,
    )


def _drops_guards(transform: Pass, block: str) -> bool:
    return isinstance(transform, RemoveBranchingThroughOvercompute) and transform.block == block


@dataclass(frozen=True, slots=True)
class _Trying:
    """A schedule with one candidate in it: a program, the steps to take, and the block whose guards are to go."""

    start: PrimFunc
    steps: Sequence[Step]
    block: str

    def result(self) -> PrimFunc:
        """The program after the steps. Raises IllegalTransform at the first that is refused."""
        func = self.start
        for step in self.steps:
            func = prove_step(func, step.transform, ProofOptions(step.where, allowed=step.allowed)).rewrite.new
        return func

    def row(self, candidate: CandidateValue) -> Row:
        """The outcome for each guard of the block, by its text, and for all together that may go one by one."""
        func = self.result()
        found: dict[str, Outcome] = {}
        going: list[int] = []
        for number, site in _guards_of(func, self.block):
            choice, outcome = self.choose(func, number, site)
            found.setdefault(str(site), outcome)
            if outcome.goes:
                going.append(choice)
        if len(going) < 2:
            return Row(candidate, found)
        together = self.attempt(func, RemoveBranchingThroughOvercompute(self.block, tuple(going)))
        if together.leaves:
            together = self.attempt(func, RemoveBranchingThroughOvercompute(self.block, tuple(going), wrap=True))
        return Row(candidate, found, together)

    def choose(self, func: PrimFunc, number: int, site: GuardSite) -> tuple[int, Outcome]:
        """The first way to remove a guard that is proved: as it is, else with wrapped loads if only bounds fail."""
        choices = (number, -1 - number) if site.has_alternative else (number,)
        plain = [(c, self.attempt(func, RemoveBranchingThroughOvercompute(self.block, (c,)))) for c in choices]
        leaving = [c for c, found in plain if found.leaves]
        wrapped = (
            (c, self.attempt(func, RemoveBranchingThroughOvercompute(self.block, (c,), wrap=True))) for c in leaving
        )
        return next(((c, found) for c, found in chain(plain, wrapped) if found.goes), plain[0])

    def attempt(self, func: PrimFunc, transform: RemoveBranchingThroughOvercompute) -> Outcome:
        last = self.steps[-1]
        try:
            proved = prove_step(func, transform, ProofOptions(last.where, allowed=last.allowed))
        except IllegalTransform as problem:
            return _refused(problem)
        words = tuple(dict.fromkeys(word for v in proved.verdicts for word in v.strictness))
        return Outcome(Status.PROVED, words, transform.wrap)


def _guards_of(func: PrimFunc, block: str) -> list[tuple[int, GuardSite]]:
    """The guards of a block with their numbers; of the function's own body those among plain loops, if there are any:
    the others say where blocks fill padding.
    """
    sites = list(enumerate(guard_sites(func, block)))
    plain = [(number, site) for number, site in sites if site.kind is not GuardKind.BLOCK]
    return plain if block == ROOT and plain else sites


def _row(trying: _Trying, candidate: CandidateValue) -> Row:
    try:
        return trying.row(candidate)
    except LayoutproofError as problem:
        return Row(candidate, {}, refused=problem.diagnostics[0].message)


def _refused(problem: IllegalTransform) -> Outcome:
    verdict = problem.verdict
    if verdict is None:
        return Outcome(Status.UNKNOWN, claim=problem.diagnostics[0].message)
    return Outcome(
        verdict.status,
        claim=verdict.claim.text,
        reason=verdict.reason,
        leaves=verdict.claim.kind is ClaimKind.WITHIN_BUFFER,
    )
