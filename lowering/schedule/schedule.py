"""The schedule: a program, and the transforms that were applied to it, each proved before it was kept.

A primitive either commits a proved step or raises `IllegalTransform` and leaves the schedule unchanged. The passes
propose; `layoutproof.verify` alone decides.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from layoutproof.ir import codes as ir_codes
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import counted, error, wrong_type
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Expr, ExprLike, Var, const, logical_and
from layoutproof.ir.primfunc import IRModule, PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.program_texts import program_diff, without_records
from layoutproof.ir.shown import ProgramDiff, Shown
from layoutproof.ir.wellformed import Stage, require_wellformed
from layoutproof.lowering import codes
from layoutproof.lowering.arith.known_facts import assumed_of_constants
from layoutproof.lowering.layout.transform_layout import ApplyBufferTransforms
from layoutproof.lowering.loops.decompose_reduction import DecomposeReduction, hoisted_inits
from layoutproof.lowering.loops.dependence import with_broken_order
from layoutproof.lowering.loops.nest import loops_of_block
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute
from layoutproof.lowering.lower.flatten import FlattenBuffer, LowerBlocks
from layoutproof.lowering.lower.simplify import Simplify
from layoutproof.lowering.lower.threads import without_threads
from layoutproof.lowering.lower.undef import RemoveAssume, RemoveStoreUndef
from layoutproof.lowering.padding.value_search import PadValueReport, search_pad_values
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.find import find_block, find_buffer, without_useless_name
from layoutproof.lowering.passes.illegal import IllegalTransform, RefusedStep, limited_stack, refusing
from layoutproof.lowering.passes.steps import GOOD_OR_EMPTY, ProofOptions, Step, prove_step
from layoutproof.lowering.runtime.array_layouts import check_records
from layoutproof.lowering.schedule.primitives import Primitives
from layoutproof.lowering.schedule.trace import Trace, load_trace, passes_of, save_trace, trace_of
from layoutproof.verify.settings import settings, within
from layoutproof.verify.values.fast_math import ALL, FastMathSet
from layoutproof.verify.verdict.verdict import GOOD, ClaimKind, Status, Verdict

if TYPE_CHECKING:
    from layoutproof.lowering.runtime.build_c import CKernel
    from layoutproof.lowering.runtime.call_arguments import Assumption
    from layoutproof.lowering.runtime.kernel import Kernel
    from layoutproof.lowering.runtime.opencl.devices import Device
    from layoutproof.verify.certificate.certificate import Certificate
    from layoutproof.verify.step_record import StepRecord

__all__ = ["LOWERING", "BufferName", "IllegalTransform", "Schedule", "Step"]

LOWERING: tuple[Pass, ...] = (
    ApplyBufferTransforms(),
    LowerBlocks(),
    Simplify(),
    FlattenBuffer(),
    Simplify(),
    RemoveAssume(),
    RemoveStoreUndef(),
)
"""From a scheduled program to one that code generators take: each step is checked like any other.

Indices are simplified while they have one axis each, which is proved for all sizes; flat indices have products of
symbols.
"""

NESTED: tuple[Pass, ...] = (
    ApplyBufferTransforms(),
    LowerBlocks(),
    Simplify(),
    RemoveAssume(),
    RemoveStoreUndef(),
)
"""The same without flat buffers."""

_OFFERED = 0.1  # of the budgets, for a proof of what is offered instead of a refused step


@dataclass(frozen=True, slots=True)
class BufferName:
    """A buffer by name, for pad values that load from it: `B[0, (io - 14) % 4]`."""

    buffer: Buffer

    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> Expr:
        given = indices if isinstance(indices, tuple) else (indices,)
        index = tuple(i if isinstance(i, Expr) else const(int(i)) for i in given)
        shape = tuple(const(1) for _ in index)
        return BufferLoad(Buffer(self.buffer.name, self.buffer.dtype, shape, Var(self.buffer.data.name, HANDLE)), index)


class Schedule(Primitives, Shown):
    """A function under transformation. `interface="fixed"` refuses to change the layout of parameters; `allowed` are
    the fast-math assumptions that proofs may use, as few as possible: by default all that the gate permits.
    """

    def __init__(self, func: PrimFunc, *, interface: str = "free", allowed: FastMathSet | None = None) -> None:
        """Raises LayoutproofError for what is no function, one that is not well-formed, or whose layout records have
        maps that are not proved, and for an interface that is neither "free" nor "fixed".
        """
        if not isinstance(func, PrimFunc):
            help = "layoutproof.load reads one from a file, layoutproof.loads from text"
            raise wrong_type(ir_codes.ARGUMENT, "Schedule, argument 'func'", func, "a PrimFunc", help=help)
        if interface not in ("free", "fixed"):
            raise error(codes.ARGUMENT_TYPE, f'interface is "free" or "fixed", not {interface!r}')
        self.original = require_wellformed(func)
        check_records(func)
        self.interface = interface
        # A gate, or the run that asks it, may bound the fast-math assumptions.
        self.allowed = settings().usable(ALL if allowed is None else allowed)
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

    def __repr__(self) -> str:
        return f"<schedule of {self.original.name}: {counted(len(self._steps), 'step', 'steps')}, each proved>"

    @property
    def mod(self) -> IRModule:
        """The program as a module of one function, as schedules of TVM have it."""
        return IRModule((self.func,))

    def show(self) -> None:
        """Print the program, its layout records left out."""
        print(without_records(self.script()))

    def diff(self, step: int = -1) -> ProgramDiff:
        """The lines of the program that a step changed, as a unified diff; by default the last step.

        Steps are numbered from 0. Raises LayoutproofError for one that there is not.
        """
        if not isinstance(step, int):
            raise wrong_type(ir_codes.ARGUMENT, "diff, argument 'step'", step, "the number of a step")
        if not -len(self._steps) <= step < len(self._steps):
            raise error(
                codes.NO_STEP, f"there is no step {step}: {counted(len(self._steps), 'step', 'steps')} are kept"
            )
        rewrite = self._steps[step].rewrite
        return program_diff(print_func(rewrite.old), print_func(rewrite.new))

    def get_block(self, name: str) -> str:
        """The name of a block, as the primitives take it. Raises LayoutproofError if there is none of that name."""
        return find_block(self.func, name).name

    def get_loops(self, block: str) -> tuple[str, ...]:
        """The variables of the loops around a block, outermost first, as the primitives take them. Raises as
        `get_block`.
        """
        return tuple(loop.var.name for loop in loops_of_block(self.func, block))

    def buffer(self, name: str) -> BufferName:
        """A buffer to load from in a pad value. Raises LayoutproofError if there is none of that name."""
        return BufferName(find_buffer(self.func, name))

    def apply(self, transform: Pass) -> Step:
        """Apply a pass: propose, check, keep. Raises IllegalTransform, leaving the schedule as it was."""
        try:
            return self._keep(self._proved(transform))
        except IllegalTransform as problem:
            offered = without_useless_name(self._with_wrapping_offered(problem, transform), transform, self.func)
            if transform.moves_iterations and problem.verdicts:
                offered = with_broken_order(problem, transform.propose(self.func))
            offered.step = RefusedStep(transform.primitive, transform.arguments(), self.func)
            if offered is problem:
                raise
            raise offered from problem

    def attempt(self, transform: Pass) -> Step:
        """`apply` without a search for counterexamples: for one of several passes that are tried."""
        return self._keep(self._proved(transform, search=False))

    def _take(self, kind: type[Pass], /, **arguments: Any) -> Step:
        """Apply the first pass for these arguments that is proved; if none is, the refusal of the first is raised."""
        with refusing():
            tries = kind.tries(self.func, arguments)
        for each in tries if len(tries) > 1 else ():
            try:
                return self.attempt(each)
            except IllegalTransform:
                continue
        # Only the last refusal needs a counterexample.
        return self.apply(tries[0])

    def pad_value_search(self, block: str, buffer: str) -> PadValueReport:
        """Which pad values of a transformed buffer would make guards of a block unnecessary, each answer proved.

        Candidates are the identities of the block's reductions, zero, one, the limits of the type, `undef` and no
        contract, in the last transform of the buffer; later steps are repeated. The schedule does not change. Raises
        IllegalTransform if no step transformed the buffer, and for unknown names.
        """
        with refusing():
            return search_pad_values(self.steps, block, buffer)

    def prove_shared_memory(self, limit: int) -> tuple[Verdict, ...]:
        """Whether the buffers that the threads of a block share take `limit` bytes at most, for all sizes: one verdict
        for each kernel. A device has so many; `layoutproof devices` tells it of OpenCL's.
        """
        from layoutproof.verify.faults.shared_memory import prove_shared_fits

        if not isinstance(limit, int):
            raise wrong_type(ir_codes.ARGUMENT, "prove_shared_memory, argument 'limit'", limit, "a number of bytes")
        return prove_shared_fits(self.func, limit, self._assumed())

    def fork(self) -> Schedule:
        """A schedule in the same state; what is applied to either from now on does not concern the other."""
        variant = copy(self)
        variant._steps = list(self._steps)
        return variant

    def undo(self) -> None:
        """Undo the last step. Raises LayoutproofError if there is none."""
        if not self._steps:
            raise error(codes.NO_STEP, "there is no step to take back")
        self._steps.pop()
        self._lowered = None

    def _keep(self, step: Step) -> Step:
        self._steps.append(step)
        self._lowered = None
        return step

    def _proved(self, transform: Pass, *, search: bool = True) -> Step:
        """The step that a pass would be, not kept; `search` is as in `ProofOptions`."""
        where = self._assumed()
        accepted = GOOD_OR_EMPTY if transform.may_leave_nothing and where is None else GOOD
        options = ProofOptions(where, accepted, self.allowed, search, fixed=self.interface == "fixed")
        with refusing(), limited_stack(self.func):
            return prove_step(self.func, transform, options, self._known)

    @property
    def _known(self) -> tuple[Verdict, ...] | None:
        return self._steps[-1].verdicts if self._steps else None

    def _assumed(self) -> Expr | None:
        found = [c for c in map(assumed_of_constants, (self.original, self.func)) if c is not None]
        return logical_and(*dict.fromkeys(found)) if found else None

    def _with_wrapping_offered(self, problem: IllegalTransform, transform: Pass) -> IllegalTransform:
        """The refusal, with the wrapped index as its help if only that is missing."""
        if not isinstance(transform, RemoveBranchingThroughOvercompute) or transform.wrap:
            return problem
        if not any(verdict.claim.kind is ClaimKind.WITHIN_BUFFER for verdict in problem.verdicts):
            return problem
        wrapped = replace(transform, wrap=True)
        try:
            # What is offered besides a refusal may not take longer than that.
            with within(replace(settings(), budget_scale=_OFFERED * settings().budget_scale)):
                self._proved(wrapped, search=False)
        except IllegalTransform:
            return problem
        first, *rest = problem.diagnostics
        text = (
            "with wrap=True the accesses that leave their buffers take their index modulo the extent, and that is "
            f"proved: {wrapped}"
        )
        return IllegalTransform((replace(first, help=text), *rest), problem.verdicts)

    @staticmethod
    def replay(func: PrimFunc, trace: object, *, interface: str = "free") -> Schedule:
        """The schedule that a trace describes. Raises LayoutproofError for a malformed trace, IllegalTransform naming
        the step refused.
        """
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
        """The program for code generators: transforms applied, blocks lowered, buffers flat, no compile-time
        statements.

        Every pass on the way is checked like a step; a program that does nothing may be lowered, its steps then are
        vacuous. A simplification that cannot be decided is left out. Kernels with thread axes become parallel loops.
        Raises IllegalTransform if a pass is refused, or two threads of a kernel disturb one another.
        """
        if self._lowered is None:
            where = self._assumed()
            # Where assumptions cannot all hold, everything is vacuous, and a kernel would do anything.
            options = ProofOptions(where, GOOD_OR_EMPTY if where is None else GOOD, self.allowed)
            func = without_threads(self.func)
            self._lowered = _lower(func, options, self._known if func is self.func else None)
        return self._lowered[0]

    def lower_nested(self) -> PrimFunc:
        """Like `lower()`, with the axes of buffers kept, as memrefs of MLIR have them. Raises IllegalTransform."""
        where = self._assumed()
        options = ProofOptions(where, GOOD_OR_EMPTY if where is None else GOOD, self.allowed)
        return _lower(self.func, options, self._known, NESTED, Stage.LOWERED)[0]

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
        """What was proved of the steps, and of the passes of `lower()` if that was called, for others to check again.

        Each step is checked anew, on its text, and the queries to solvers are recorded.
        """
        from layoutproof.verify.certificate.certificate import certify
        from layoutproof.verify.certificate.finder.kernel_evidence import find_evidence

        later = self._lowered[1] if self._lowered is not None else ()
        return certify((*self.records, *(step.record for step in later)), self.original.name, find_evidence)

    @property
    def records(self) -> tuple[StepRecord, ...]:
        """The steps that are kept, as certificates have them."""
        return tuple(step.record for step in self._steps)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the proofs took for granted of calls of the lowered function, each with who sees to it."""
        from layoutproof.lowering.runtime.call_arguments import assumptions_of

        lowered = self.lower()
        later = [step.rewrite.new for step in (*self._steps, *self.lowering_steps)]
        return assumptions_of(self.original, later, lowered, self._assumed())

    @property
    def preconditions(self) -> tuple[str, ...]:
        """What callers have to see to, beside sizes: what the padding of inputs holds, and what the program assumes of
        their contents.
        """
        from layoutproof.lowering.runtime.call_arguments import preconditions_of

        return preconditions_of(self.original, self.func)

    @overload
    def build(self, target: Literal["c"] = "c", *, check: bool = True, fast: bool = False) -> CKernel: ...
    @overload
    def build(
        self,
        target: str,
        *,
        check: bool = True,
        fast: bool = False,
        device: str | Device | None = None,
        profile: str | None = None,
    ) -> Kernel: ...
    def build(
        self,
        target: str = "c",
        *,
        check: bool = True,
        fast: bool = False,
        device: str | Device | None = None,
        profile: str | None = None,
    ) -> Kernel:
        """The kernel for a target, "c" or "opencl", called on arrays in logical layout.

        `device` and `profile` are for OpenCL, as `build_opencl` takes them: a part of the device's name, and the
        largest image of other devices. Raises LayoutproofError, for an unknown target too.
        """
        # The runtime starts compilers, so it is loaded only here.
        from layoutproof.lowering.runtime.array_layouts import runtime_layouts
        from layoutproof.lowering.runtime.build_c import build_c

        if target not in ("c", "opencl"):
            raise error(codes.ARGUMENT_TYPE, f'there is no target {target!r}; available: "c", "opencl"')
        if target == "c" and (device is not None or profile is not None):
            raise error(
                codes.ARGUMENT_TYPE, "the C target runs on the processor: it has no other device, and no profile of one"
            )
        lowered = self.lower()
        assumptions = self.assumptions
        layouts = runtime_layouts(lowered)
        if target == "c":
            return build_c(lowered, layouts, check=check, fast=fast, assumptions=assumptions)
        from layoutproof.lowering.runtime.opencl.build_opencl import build_opencl

        return build_opencl(
            lowered, layouts, device=device, profile=profile, check=check, fast=fast, assumptions=assumptions
        )


def _lower(
    func: PrimFunc,
    options: ProofOptions,
    known: tuple[Verdict, ...] | None,
    passes: tuple[Pass, ...] = LOWERING,
    stage: Stage = Stage.FLATTENED,
) -> tuple[PrimFunc, tuple[Step, ...]]:
    steps: list[Step] = []
    first, *rest = passes
    for transform in (first, *hoisted_inits(func), *rest):
        optional = isinstance(transform, Simplify | DecomposeReduction)
        try:
            # A pass that may be left out needs no counterexample.
            step = prove_step(func, transform, replace(options, search=not optional), known)
        except IllegalTransform as problem:
            if not optional or problem.status not in (None, Status.UNKNOWN):
                raise
            continue
        steps.append(step)
        func, known = step.rewrite.new, step.verdicts
    return require_wellformed(func, stage), tuple(steps)


def _at_step(problem: IllegalTransform, number: int) -> IllegalTransform:
    first, *rest = problem.diagnostics
    return IllegalTransform((replace(first, message=f"step {number}: {first.message}"), *rest), problem.verdicts)
