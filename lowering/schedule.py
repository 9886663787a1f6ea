"""The schedule: a program, and the transforms that were applied to it, each proved before it was kept.

A primitive either commits a proved step or raises `IllegalTransform` and leaves the schedule as it was. The passes propose; what is
true of a proposal is asked of `layoutproof.verify` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, error
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Expr, ExprLike, Var, const, logical_and
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.map_text import index_map_text, parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.script import print_func
from layoutproof.ir.wellformed import Stage, require_wellformed
from layoutproof.lowering import codes
from layoutproof.lowering.arguments import ArgumentKind, from_json
from layoutproof.lowering.blocks import LowerBlocks
from layoutproof.lowering.buffer_transforms import ApplyBufferTransforms
from layoutproof.lowering.conventions import check_records
from layoutproof.lowering.find import find_buffer
from layoutproof.lowering.flatten import FlattenBuffer
from layoutproof.lowering.illegal import IllegalTransform
from layoutproof.lowering.layout import TransformLayout
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute, candidates
from layoutproof.lowering.loops.reorder import Reorder
from layoutproof.lowering.loops.sequential import SequentialBufferAccess
from layoutproof.lowering.loops.split import Split
from layoutproof.lowering.pad_value import pad_text
from layoutproof.lowering.passes import Pass
from layoutproof.lowering.proving import GOOD, GOOD_OR_EMPTY, check_step
from layoutproof.lowering.registry import LOWERING
from layoutproof.lowering.scopes import assumed_of_constants, constants_of
from layoutproof.lowering.separators import SetAxisSeparators
from layoutproof.lowering.simplify import Simplify
from layoutproof.lowering.trace import Trace, load_trace, passes_of, save_trace, trace_of
from layoutproof.lowering.undef import RemoveAssume, RemoveStoreUndef
from layoutproof.verify.values.licences import ALL, Licences
from layoutproof.verify.verdict import Status, Verdict, worst

if TYPE_CHECKING:
    from layoutproof.lowering.runtime.kernel import Kernel
    from layoutproof.verify.certificate.certificate import Certificate

__all__ = ["BufferName", "IllegalTransform", "Schedule", "Step"]

MapLike = IndexMap | Callable[..., Any] | str


@dataclass(frozen=True, slots=True)
class Step:
    """One applied transform: the pass, the rewrite that it proposed, and the verdicts under which it was kept.

    `where` is what was taken for granted of symbols, `allowed` the float licences that proofs could use.
    """

    transform: Pass
    rewrite: Rewrite
    verdicts: tuple[Verdict, ...]
    where: Expr | None = None
    allowed: Licences = ALL

    @property
    def status(self) -> Status:
        """The worst of the verdicts."""
        return worst(v.status for v in self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """The step as JSON has it."""
        obligations = [v.to_dict() for v in self.verdicts]
        return {"primitive": self.transform.primitive, "arguments": self.transform.arguments(), "obligations": obligations}

    def __str__(self) -> str:
        return str(self.transform)


@dataclass(frozen=True, slots=True)
class BufferName:
    """A buffer by name, for pad values that load from it: `B[0, (io - 14) % 4]`."""

    buffer: Buffer

    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> Expr:
        given = indices if isinstance(indices, tuple) else (indices,)
        index = tuple(i if isinstance(i, Expr) else const(int(i)) for i in given)
        shape = tuple(const(1) for _ in index)
        return BufferLoad(Buffer(self.buffer.name, self.buffer.dtype, shape, Var(self.buffer.data.name, HANDLE)), index)


class Schedule:
    """A function under transformation. `interface="fixed"` refuses to change the layout of parameters; `allowed` are the float licences
    that proofs may use, the fewest that suffice.
    """

    def __init__(self, func: PrimFunc, *, interface: str = "free", allowed: Licences = ALL) -> None:
        """Raises LayoutproofError for a function that is not well-formed, or whose layout records state maps that are not proved, and
        for an interface that is neither "free" nor "fixed".
        """
        if interface not in ("free", "fixed"):
            raise error(codes.ARGUMENT_TYPE, f'interface is "free" or "fixed", not {interface!r}')
        self.original = require_wellformed(func)
        check_records(func)
        self.interface = interface
        self.allowed = allowed
        self._steps: list[Step] = []
        self._lowered: tuple[PrimFunc, tuple[Step, ...]] | None = None

    @property
    def func(self) -> PrimFunc:
        """The program as it is now."""
        return self._steps[-1].rewrite.new if self._steps else self.original

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was applied, in order, with its verdicts."""
        return tuple(self._steps)

    @property
    def trace(self) -> Trace:
        """What was applied, as plain data that `replay` takes."""
        return trace_of([step.transform for step in self._steps])

    def script(self) -> str:
        """The program as text in the script syntax."""
        return print_func(self.func)

    def buffer(self, name: str) -> BufferName:
        """A buffer to load from in a pad value. Raises LayoutproofError where there is none of that name."""
        return BufferName(find_buffer(self.func, name))

    def apply(self, transform: Pass) -> Step:
        """Apply a pass: propose, check, keep. Raises IllegalTransform, leaving the schedule as it was."""
        try:
            return self._applied(transform)
        except IllegalTransform as problem:
            offered = self._with_wrapping_offered(problem, transform)
            if offered is problem:
                raise
            raise offered from problem

    def _applied(self, transform: Pass, *, search: bool = True) -> Step:
        step = self._proved(transform, search=search)
        self._steps.append(step)
        self._lowered = None
        return step

    def _proved(self, transform: Pass, *, search: bool = True) -> Step:
        """The step that a pass would be, not kept; `search` is as in `prove_step`."""
        known = self._steps[-1].verdicts if self._steps else None
        fixed = self.interface == "fixed"
        return prove_step(self.func, transform, fixed=fixed, where=self._assumed(), known=known, allowed=self.allowed, search=search)

    def _assumed(self) -> Expr | None:
        found = [c for c in map(assumed_of_constants, (self.original, self.func)) if c is not None]
        return logical_and(*dict.fromkeys(found)) if found else None

    def transform_layout(self, block: str, buffer: str, index_map: MapLike, pad_value: Any = None) -> Step:
        """Store a buffer by an index map: an `IndexMap`, a function of its indices, or text.

        `pad_value` is None (padding must not be touched), `undef`, a number, an expression, text in the script syntax, or a function
        of the physical indices that returns one of these.
        """
        with _refusing():
            names = {"block": block, "buffer": buffer}
            for name, value in names.items():
                from_json(ArgumentKind.NAME, value, f"transform_layout, argument {name!r}")
            text = self._map_text(buffer, index_map)
            rank = parse_index_map(text, symbols=constants_of(self.func)).rank
            pad = pad_text(pad_value, rank, find_buffer(self.func, buffer).dtype)
        return self.apply(TransformLayout(block, buffer, text, pad))

    def set_axis_separators(self, buffer: str, separators: Sequence[int]) -> Step:
        """State the axis groups of a buffer: the index of the last axis of each group but the last."""
        with _refusing():
            transform = SetAxisSeparators.from_arguments({"buffer": buffer, "separators": separators})
        return self.apply(transform)

    def split(self, block: str, loop: str | int, factors: Sequence[int | None]) -> Step:
        """Make one loop several, with these extents; one factor may be None, and is as large as it takes.

        The loop is named by its variable, or by its position among the loops around the block. The new ones are `i_0`, `i_1`, ...
        """
        with _refusing():
            transform = Split.from_arguments({"block": block, "loop": loop, "factors": factors})
        return self.apply(transform)

    def reorder(self, block: str, loops: Sequence[str | int]) -> Step:
        """Put loops that stand directly in one another into this order, outermost first; others keep their places."""
        with _refusing():
            transform = Reorder.from_arguments({"block": block, "loops": loops})
        return self.apply(transform)

    def sequential_buffer_access(self, block: str, buffer: str) -> Step:
        """Make the loops of a block visit a buffer in the row-major order of its physical layout; other loops go inside."""
        with _refusing():
            transform = SequentialBufferAccess.from_arguments({"block": block, "buffer": buffer})
        return self.apply(transform)

    def remove_branching_through_overcompute(self, block: str, guards: Sequence[int] | None = None, wrap: bool = False) -> Step:
        """Drop guards of a block whose missing iterations are invisible; the step's text and the trace say which.

        Guards are numbered from the outside to the inside, `-1 - k` keeps the alternative of guard `k`. None tries all of them, then
        fewer, and keeps the largest set that is proved. With `wrap` loads that would leave their buffer take their index modulo its
        extent; a refusal says so where that would be proved.
        """
        with _refusing():
            given = RemoveBranchingThroughOvercompute.from_arguments({"block": block, "guards": guards, "wrap": wrap})
            tries = candidates(self.func, block, wrap) if guards is None else (given,)
        if guards is None:
            for each in tries:
                try:
                    return self._applied(each, search=False)
                except IllegalTransform:
                    continue
        # Of what is refused in the end, the counterexample is looked for; among what is only tried, it would be thrown away.
        return self.apply(tries[0])

    def _with_wrapping_offered(self, problem: IllegalTransform, transform: Pass) -> IllegalTransform:
        """The refusal; of guards that cannot go, with the wrapped index as its help where only that is missing."""
        if not isinstance(transform, RemoveBranchingThroughOvercompute) or transform.wrap:
            return problem
        if not any("stays within" in verdict.claim for verdict in problem.verdicts):
            return problem
        wrapped = replace(transform, wrap=True)
        try:
            self._proved(wrapped, search=False)
        except IllegalTransform:
            return problem
        first, *rest = problem.diagnostics
        text = f"with wrap=True the loads that leave their buffers take their index modulo the extent, and that is proved: {wrapped}"
        return IllegalTransform((replace(first, help=text), *rest), problem.verdicts)

    def apply_buffer_transforms(self) -> Step:
        """Apply the attribute `buffer_layout_transformations`, and remove it."""
        return self.apply(ApplyBufferTransforms())

    def simplify(self) -> Step:
        """Rewrite expressions by proved rules."""
        return self.apply(Simplify())

    def lower_blocks(self) -> Step:
        """Replace blocks by guards, allocations and inits among the loops."""
        return self.apply(LowerBlocks())

    def flatten_buffer(self) -> Step:
        """Give every buffer as many axes as it has axis groups."""
        return self.apply(FlattenBuffer())

    def remove_assume(self) -> Step:
        """Take out assumptions, which are compile-time statements."""
        return self.apply(RemoveAssume())

    def remove_store_undef(self) -> Step:
        """Take out stores of undefined values."""
        return self.apply(RemoveStoreUndef())

    def _map_text(self, buffer: str, index_map: MapLike) -> str:
        if isinstance(index_map, str):
            return index_map
        if isinstance(index_map, IndexMap):
            return index_map_text(index_map)
        return index_map_text(IndexMap.from_func(index_map, find_buffer(self.func, buffer).rank))

    @staticmethod
    def replay(func: PrimFunc, trace: object, *, interface: str = "free") -> Schedule:
        """The schedule that a trace describes. Raises LayoutproofError for a malformed trace, IllegalTransform naming the step refused."""
        schedule = Schedule(func, interface=interface)
        for number, transform in enumerate(passes_of(trace), start=1):
            try:
                schedule.apply(transform)
            except IllegalTransform as problem:
                raise _at_step(problem, number) from problem
        return schedule

    @staticmethod
    def load(func: PrimFunc, path: str | Path, *, interface: str = "free") -> Schedule:
        """`replay` of the trace in a file."""
        return Schedule.replay(func, load_trace(path), interface=interface)

    def save_trace(self, path: str | Path) -> None:
        """Write the trace as JSON."""
        save_trace(path, self.trace)

    def lower(self) -> PrimFunc:
        """The program for code generators: transforms applied, blocks lowered, buffers flat, compile-time statements out.

        Every pass on the way is checked like a step; a program that does nothing may be lowered, its steps then are vacuous. A
        simplification that cannot be decided is left out. Raises IllegalTransform where a pass is refused.
        """
        if self._lowered is None:
            self._lowered = _lower(self.func, self._assumed(), self._steps[-1].verdicts if self._steps else None, self.allowed)
        return self._lowered[0]

    @property
    def lowered(self) -> PrimFunc:
        """`lower()`, kept until the next step."""
        return self.lower()

    @property
    def lowering_steps(self) -> tuple[Step, ...]:
        """The passes of `lower()` with their verdicts."""
        self.lower()
        return self._lowered[1] if self._lowered is not None else ()

    @property
    def certificate(self) -> Certificate:
        """Everything that was proved of the steps, and of the passes of `lower()` where that was called, for others to check again.

        Each step is checked anew, on its text, with the questions to solvers written down.
        """
        from layoutproof.verify.certificate.certificate import StepRecord, certify

        steps = (*self._steps, *(self._lowered[1] if self._lowered is not None else ()))
        records = [StepRecord(s.transform.primitive, s.transform.arguments(), s.rewrite, s.where, s.allowed) for s in steps]
        return certify(records, self.original.name)

    def build(self, target: str = "c", *, check: bool = True, fast: bool = False) -> Kernel:
        """The kernel for a target, called on arrays in logical layout. Raises LayoutproofError, for an unknown target too."""
        # The runtime starts compilers; who only schedules does not load it.
        from layoutproof.lowering.assumptions import assumptions_of
        from layoutproof.lowering.conventions import runtime_layouts
        from layoutproof.lowering.runtime.build import build_c

        if target != "c":
            raise error(codes.ARGUMENT_TYPE, f'there is no target {target!r}; "c" is one')
        lowered = self.lower()
        later = [step.rewrite.new for step in (*self._steps, *self.lowering_steps)]
        assumptions = assumptions_of(self.original, later, lowered, self._assumed())
        return build_c(lowered, runtime_layouts(lowered), check=check, fast=fast, assumptions=assumptions)


def _lower(func: PrimFunc, where: Expr | None, known: tuple[Verdict, ...] | None, allowed: Licences) -> tuple[PrimFunc, tuple[Step, ...]]:
    steps: list[Step] = []
    # Where assumptions cannot all hold, everything is vacuous, and a kernel would do anything: that is not accepted.
    accepted = GOOD_OR_EMPTY if where is None else GOOD
    for transform in LOWERING:
        try:
            last = steps[-1].verdicts if steps else known
            # What may be left out needs no counterexample.
            search = not isinstance(transform, Simplify)
            steps.append(prove_step(func, transform, where=where, accepted=accepted, known=last, allowed=allowed, search=search))
        except IllegalTransform as problem:
            if not isinstance(transform, Simplify) or problem.status is not Status.UNKNOWN:
                raise
        func = steps[-1].rewrite.new
    return require_wellformed(func, Stage.FLATTENED), tuple(steps)


def prove_step(
    func: PrimFunc,
    transform: Pass,
    *,
    fixed: bool = False,
    where: Expr | None = None,
    accepted: frozenset[Status] = GOOD,
    known: tuple[Verdict, ...] | None = None,
    allowed: Licences = ALL,
    search: bool = True,
) -> Step:
    """The step that a pass makes of a function, checked. Raises IllegalTransform where it does not apply or is not proved.

    `known` are verdicts on `func` as it is, under the same `where`: they stand where a pass changes nothing. Without `search` no
    counterexample is looked for where a proof fails.
    """
    with _refusing():
        rewrite = transform.propose(func)
    if fixed and rewrite.witness.changes_interface:
        names = ", ".join(rewrite.witness.changes_interface)
        message = f"{transform.primitive} would change the layout of the parameter {names}, and the schedule's interface is fixed"
        raise IllegalTransform(Diagnostic(codes.FIXED_INTERFACE, message, func.span))
    if known is not None and rewrite.new == func:
        # What needed licences was said of how the program came about.
        return Step(transform, rewrite, tuple(v for v in known if not v.strictness), where, allowed)
    return Step(transform, rewrite, check_step(transform, rewrite, where, accepted, allowed, search), where, allowed)


@contextmanager
def _refusing() -> Iterator[None]:
    """Input errors inside become refusals."""
    try:
        yield
    except IllegalTransform:
        raise
    except LayoutproofError as problem:
        raise IllegalTransform(problem.diagnostics) from problem


def _at_step(problem: IllegalTransform, number: int) -> IllegalTransform:
    first, *rest = problem.diagnostics
    return IllegalTransform((replace(first, message=f"step {number}: {first.message}"), *rest), problem.verdicts)
