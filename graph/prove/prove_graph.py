"""Whether a rewritten graph is equivalent to the old one: a verdict for each new value, in order.

The claim of a new value is that the elements of an old value are stored where the witness says, and that its padding
holds what the witness says. It follows for an input from the interface, for a constant from its data, for a layout
operator from an equality of maps, and for a call from the proof that its function is the old call's function with its
arrays in the layouts of the witness, where padding that the function requires is proved of the operands. Pads and crops
of the old graph are calls of functions. Nothing here knows how the new graph was found.

Nothing is proved of what is made of a value that is not proved. What a function leaves open (undefined padding,
elements that it does not write) has one value for all users of a result, so each old call is made once at most, and
opaque calls are made as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from types import MappingProxyType

import numpy as np

from layoutproof.graph.model.graph import (
    Call,
    Constant,
    Crop,
    LayoutTransform,
    Pad,
    Shape,
    Signature,
    Step,
    Value,
    number_of,
    reaches_outside,
    signature_of,
)
from layoutproof.graph.model.graph_witness import AS_IT_WAS, GraphRewrite, Interface, Place, Steps, rooted, roots_of
from layoutproof.graph.model.layout_maps import Asked, box_of, is_identity, prove_same, report_of
from layoutproof.graph.model.wellformed_graph import require_graph
from layoutproof.graph.operators.copies import as_call
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Expr, IntImm, binary, const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.interp.run import same_values
from layoutproof.ir.layout_record import Cell, Contract, layout_records
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import LAYOUT_TRANSFORMATIONS, PrimFunc
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering.proof_cache.remembered import verdicts_of
from layoutproof.verify.verdict.verdict import GOOD, Claim, ClaimKind, Status, Verdict

ENGINE = "symbolic"

StepVerdicts = Mapping[str, Sequence[Sequence[Verdict]]]
"""By names of functions: the checker's verdicts on each step that leads to them."""


def prove_graph_rewrite(
    rewrite: GraphRewrite,
    interface: Interface = AS_IT_WAS,
    checked: StepVerdicts = MappingProxyType({}),
    asked: Asked | None = None,
) -> tuple[Verdict, ...]:
    """A verdict for each value of the new graph, in order, then one for its outputs.

    `interface` is part of the claim, not of the witness. Steps with verdicts in `checked` are not checked again: the
    caller answers for them. `asked` gets the questions about index maps, for certificates. Raises LayoutproofError for
    a malformed graph.
    """
    for graph in (rewrite.old, rewrite.new):
        require_graph(graph)
        for step in graph.steps:
            if isinstance(step, LayoutTransform):  # recorded: that the graph is well-formed rests on it
                report_of(step.index_map, graph.by_name()[step.operand].shape, asked)
    return tuple(_Proof(rewrite, roots_of(rewrite.old), interface, checked, asked).verdicts())


def _holds(name: str) -> Claim:
    return Claim(ClaimKind.OTHER, f"{name} holds what the witness says", about=("value", name))


@dataclass(frozen=True, slots=True)
class _Proof:
    """`held` are the proved values, `made` the first results of the old calls that were made, in order."""

    rewrite: GraphRewrite
    roots: Mapping[str, Place]
    interface: Interface
    checked: StepVerdicts
    asked: Asked | None
    chained: dict[tuple[str, PrimFunc], str | None] = field(
        default_factory=lambda: dict[tuple[str, PrimFunc], str | None]()
    )
    held: set[str] = field(default_factory=lambda: set[str]())
    made: list[str] = field(default_factory=lambda: list[str]())

    def verdicts(self) -> Iterator[Verdict]:
        unfit = next((value for value in self.rewrite.new.values() if not self.fitting(value)), None)
        if unfit is not None:
            yield self.verdict(unfit.name, "the witness says nothing of it that fits")
            return
        for name, verdict in self.inputs():
            yield self.kept(verdict, name)
        for constant in self.rewrite.new.constants:
            yield self.kept(self.constant(constant), constant.value.name)
        for step in self.rewrite.new.steps:
            yield self.kept(self.step(step), *(value.name for value in step.results))
        yield self.outputs()

    def kept(self, verdict: Verdict, *names: str) -> Verdict:
        """The verdict; where it is a proof, the values that it is about are held."""
        self.held.update(names if verdict.status is Status.PROVED else ())
        return verdict

    def fitting(self, value: Value) -> bool:
        """Whether the witness has for a value a map of an old one's indices, and a pad number of its type."""
        place = self.rewrite.places.get(value.name)
        old = self.rewrite.old.by_name()
        if place is None or place.value not in old or len(place.index_map.inputs) != len(old[place.value].shape):
            return False
        if place.pad is not None and (number_of(place.pad) is None or place.pad.dtype != value.dtype):
            return False
        return {v for output in place.index_map.outputs for v in free_variables(output)} <= set(place.index_map.inputs)

    def verdict(self, name: str, problem: str | None, engine: str = ENGINE) -> Verdict:
        """Proved, or unknown for a reason."""
        status = Status.PROVED if problem is None else Status.UNKNOWN
        return Verdict(status, _holds(name), engine, reason=problem)

    def inputs(self) -> Iterator[tuple[str, Verdict]]:
        """By names: inputs are the old ones, as the interface has them."""
        old = self.rewrite.old.inputs
        if [(v.name, v.dtype) for v in self.rewrite.new.inputs] != [(v.name, v.dtype) for v in old]:
            yield from (
                (v.name, self.verdict(v.name, "the inputs are not the old ones")) for v in self.rewrite.new.inputs
            )
            return
        for value, before in zip(self.rewrite.new.inputs, old, strict=True):
            place, index_map = self.rewrite.places[value.name], self.interface.inputs.get(value.name)
            if place.value != value.name:
                yield value.name, self.verdict(value.name, "the inputs are not the old ones")
            elif index_map is None:
                kept = (
                    value.shape == before.shape
                    and place.pad is None
                    and is_identity(place.index_map, value.shape, self.asked)
                )
                yield value.name, self.verdict(value.name, None if kept else "an input is given as it was")
            else:
                stored = self.stored(value, index_map, before.shape) and place.pad is None and self.fits(value)
                same_map = stored and self.same(place, index_map)
                problem = None if same_map else f"an input is given by `{index_map_text(index_map)}`"
                yield value.name, self.verdict(value.name, problem)
        if len(self.rewrite.new.inputs) != len(old):
            yield "", self.verdict("the graph", "it has more or fewer inputs")

    def stored(self, value: Value, index_map: IndexMap, shape: Shape) -> bool:
        """Whether a value has the shape in which a map stores an array."""
        return len(index_map.inputs) == len(shape) and value.shape == box_of(index_map, shape, self.asked)

    def constant(self, constant: Constant) -> Verdict:
        """Each element is in its place, bit for bit, and padding holds what the witness says."""
        place = self.place(constant.value.name)
        before = next((c for c in self.rewrite.old.constants if c.value.name == place.value), None)
        if before is None or before.value.dtype != constant.value.dtype or not self.fits(constant.value):
            return self.verdict(constant.value.name, "it is not made of a constant")
        if constant.sha256 is not None or before.sha256 is not None:
            shape = before.value.shape
            kept = constant.value.shape == shape and is_identity(place.index_map, shape, self.asked)
            known = kept and constant.digest == before.digest
            problem = None if known else f"only digests of it and of {place.value} are known"
            return self.verdict(constant.value.name, problem, "digest")
        found = place.index_map.unmap_array(constant.data, before.value.shape)
        # By bytes: NaNs are not all alike to a function that looks at their bits.
        if found.tobytes() != before.data.tobytes():
            return self.verdict(constant.value.name, f"it holds other elements than {place.value}", "evaluation")
        if place.pad is not None:
            inside = place.index_map.map_array(np.ones(before.value.shape, np.bool_), constant.value.shape)
            around = constant.data[~inside]
            number = number_of(place.pad)
            if number is None or not bool(same_values(around, np.full(around.shape, number, around.dtype)).all()):
                problem = f"its padding holds something else than {expr_text(place.pad)}"
                return self.verdict(constant.value.name, problem, "evaluation")
        return self.verdict(constant.value.name, None, "evaluation")

    def fits(self, value: Value) -> bool:
        """Whether the place's image lies inside the new value's box, every element in a cell of its own."""
        place = self.place(value.name)
        report = report_of(place.index_map, self.shape(place), self.asked)
        extents = [extent.value if isinstance(extent, IntImm) else None for extent in report.physical_shape]
        inside = len(extents) == len(value.shape) and all(
            e is not None and e <= n for e, n in zip(extents, value.shape, strict=True)
        )
        return inside and report.injective.status is Status.PROVED

    def place(self, name: str) -> Place:
        """The witness of a new value, in terms of the root of the old one."""
        return rooted(self.rewrite.places[name], self.roots)

    def same(self, place: Place, index_map: IndexMap) -> bool:
        """Whether a map of the old value's indices is proved to be that of the place."""
        return prove_same(place.index_map, index_map, self.shape(place), self.asked).status is Status.PROVED

    def shape(self, place: Place) -> Shape:
        """The shape of the old value."""
        return self.rewrite.old.by_name()[place.value].shape

    def padding(self, name: str, value: Value) -> tuple[bool, str | None]:
        """Whether a value has no padding, and the text of what its padding holds by the witness."""
        place = self.place(name)
        full = prod(self.shape(place)) == prod(value.shape)
        return full, None if place.pad is None else expr_text(place.pad)

    def step(self, step: Step) -> Verdict:
        """The claim of what a step makes, from the claims of what it uses."""
        name = ", ".join(value.name for value in step.results)
        missing = [operand for operand in step.operands if operand not in self.held]
        if missing:
            return self.verdict(name, f"{missing[0]}, of which it is made, is not proved to hold what the witness says")
        if isinstance(step, Call):
            return self.verdict(name, self.call(step), "rewrite")
        before, after = self.place(step.operand), self.place(step.result.name)
        if before.value != after.value:
            return self.verdict(name, f"it is made of {before.value}, not of {after.value}")
        axes = len(self.rewrite.new.by_name()[step.operand].shape)
        if before.index_map.rank != axes or not self.fits(step.result):
            return self.verdict(name, "its place, or that of its operand, does not lie inside it")
        found = prove_same(moved_by(step, before.index_map), after.index_map, self.shape(after), self.asked)
        if found.status is Status.REFUTED and any(after.value == value.name for value in self.rewrite.old.inputs):
            return Verdict(Status.REFUTED, _holds(name), found.engine, counterexample=found.counterexample)
        if found.status is Status.REFUTED:
            # Not refuted: elements of anything else but an input may be equal.
            problem = f"elements of {after.value} stand elsewhere in it: {found.counterexample}"
            return self.verdict(name, problem, found.engine)
        if found.status is not Status.PROVED:
            return self.verdict(name, found.reason, found.engine)
        return self.verdict(name, self.filled(step), found.engine)

    def filled(self, step: LayoutTransform | Pad | Crop) -> str | None:
        """Why the padding of a layout operator's result is not proved to hold what the witness says; None where it is.

        Elements are where the witness says, so padding of the result is padding of the operand, moved, or of a pad.
        """
        full, wanted = self.padding(step.result.name, step.result)
        if full or wanted is None:
            return None
        before, held = self.padding(step.operand, self.rewrite.new.by_name()[step.operand])
        if not before and held != wanted:
            return (
                f"its padding is said to hold {wanted}, that of {step.operand} holds "
                f"{held if held is not None else 'anything'}"
            )
        if (
            isinstance(step, Pad)
            and expr_text(step.value) != wanted
            and any(width for pair in step.widths for width in pair)
        ):
            return f"its padding is said to hold {wanted}, it is padded with {expr_text(step.value)}"
        if before and not isinstance(step, Pad):
            return "it has padding, what it is made of has none"
        return None

    def call(self, step: Call) -> str | None:
        """Why a call's results are not proved to be what the witness says; None where they are."""
        results = [self.place(value.name) for value in step.results]
        made = self.rewrite.old.producers().get(results[0].value)
        old = None if made is None or isinstance(made, LayoutTransform) else as_call(made, self.rewrite.old.by_name())
        if old is None:
            return f"no call made {results[0].value}"
        names = [*old.operands, *(value.name for value in old.results)]
        places = [*(self.place(name) for name in step.operands), *results]
        if [place.value for place in places] != [self.roots[name].value for name in names]:
            return f"its operands and results are not those of the call that made {results[0].value}"
        if old.results[0].name in self.made:
            return f"the call that made {results[0].value} is made more than once, and may not make the same each time"
        self.made.append(old.results[0].name)
        return self.function(step, old, places)

    def function(self, step: Call, call: Call, places: list[Place]) -> str | None:
        """Why a function is not proved to be that of an old call, its arrays in these places; None where it is."""
        new, old = step.function, call.function
        schedule = self.rewrite.schedules.get(new.name)
        if schedule is None:
            return f"nothing says how {new.name} came about"
        key = (new.name, old)
        if key not in self.chained:
            open_ = _left_open(old) if schedule.records else None
            self.chained[key] = open_ or chain_problem(schedule, old, new, self.checked.get(new.name))
        problem = self.chained[key]
        if problem is not None:
            return problem
        before, after = layout_records(old), layout_records(new)
        signature = signature_of(old)
        if _roles(signature) != _roles(signature_of(new)):
            return f"{new.name} reads and writes other arrays than {old.name}"
        names = (*call.operands, *(value.name for value in call.results))
        values = self.rewrite.new.by_name()
        ours = [*(values[name] for name in step.operands), *step.results]
        for buffer, name, place, value in zip(
            (*signature.operands, *signature.results), names, places, ours, strict=True
        ):
            steps, known = (
                records[buffer.data.name].steps if buffer.data.name in records else () for records in (after, before)
            )
            if steps[: len(known)] != known:
                return f"{new.name} does not go on from where {buffer.name} was stored before"
            stored = IndexMap.identity(buffer.rank)
            for each in steps[len(known) :]:
                stored = each.index_map.compose(stored)
            composed = stored.compose(self.roots[name].index_map)
            if prove_same(composed, place.index_map, self.shape(place), self.asked).status is not Status.PROVED:
                return (
                    f"{new.name} stores {buffer.name} by `{index_map_text(stored)}`, the witness says "
                    f"`{index_map_text(place.index_map)}`"
                )
            problem = self.contracts(
                new, buffer, value, [each.contract for each in steps[len(known) :]], buffer in signature.results
            )
            if problem is not None:
                return problem
        return None

    def contracts(
        self, new: PrimFunc, buffer: Buffer, value: Value, contracts: list[Contract | None], result: bool
    ) -> str | None:
        """Why padding is not proved to hold what a function requires, or the witness of its result; None where it is.

        Only the contract of a single transform is used: the padding of each of several is moved by the others.
        """
        full, held = self.padding(value.name, value)
        own = contracts[0] if len(contracts) == 1 else None
        if result:
            proved = full or held is None or (own is not None and held == own.text)
            return None if proved else f"the padding of {value.name} is not proved to hold {held}"
        if any(contract is not None for contract in contracts) and not full and (own is None or held != own.text):
            return f"{new.name} takes for granted what the padding of {buffer.name} holds"
        return None

    def outputs(self) -> Verdict:
        """The outputs are the old ones, as the interface has them."""
        old, asked = self.rewrite.old.by_name(), self.interface.outputs
        text = "the outputs are the old ones"
        if asked is None:
            asked = tuple((name, IndexMap.identity(len(old[name].shape))) for name in self.rewrite.old.outputs)
        else:
            text += ": " + ", ".join(f"{name} by `{index_map_text(index_map)}`" for name, index_map in asked)
        problem = next(self.differences(asked), None)
        status = Status.PROVED if problem is None else Status.UNKNOWN
        about = ("outputs", *(part for name, index_map in asked for part in (name, index_map_text(index_map))))
        return Verdict(status, Claim(ClaimKind.OTHER, text, about=about), ENGINE, reason=problem)

    def differences(self, asked: tuple[tuple[str, IndexMap], ...]) -> Iterator[str]:
        """Why inputs, outputs and opaque calls of the new graph are not proved to be those of the old one."""
        new, old = self.rewrite.new.by_name(), self.rewrite.old.by_name()
        unknown = sorted(set(self.interface.inputs) - {value.name for value in self.rewrite.old.inputs})
        if unknown:
            yield f"the interface speaks of {unknown[0]}, which is no input"
        if len(self.rewrite.new.outputs) != len(asked):
            yield "there are more or fewer of them"
            return
        if {name for name, _ in asked} != set(self.rewrite.old.outputs):
            yield "the interface does not have each of them"
            return
        for ours, (theirs, index_map) in zip(self.rewrite.new.outputs, asked, strict=True):
            place, root = self.place(ours), self.roots[theirs]
            if ours not in self.held:
                yield f"{ours} is not proved to hold what the witness says"
            kept = place.value == root.value and self.stored(new[ours], index_map, old[theirs].shape)
            wanted = index_map.compose(root.index_map)
            if not kept or not self.same(place, wanted):
                by = f" stored by `{index_map_text(index_map)}`" if self.interface.outputs else ""
                yield f"{ours} is not {theirs}{by}"
        calls = (step for step in self.rewrite.old.steps if isinstance(step, Call))
        outside = [call.results[0].name for call in calls if reaches_outside(call.function)]
        if [name for name in self.made if name in outside] != outside:
            yield "calls that reach outside of the graph are not made as they were"


def _left_open(func: PrimFunc) -> str | None:
    """What a function's records leave to any rewrite of it; in a graph others may read it: results are whole arrays."""
    records = layout_records(func)
    for buffer in signature_of(func).results:
        record = records.get(buffer.data.name)
        if record is not None and any(step.padding is Cell.PAD_UNDEF for step in record.steps):
            return f"{func.name} leaves to its rewrites what the padding of {buffer.name} holds, and others may read it"
    return None


def _roles(signature: Signature) -> tuple[list[str], list[str]]:
    """The data variables of the arrays that are read, and of those that are made."""
    return [buffer.data.name for buffer in signature.operands], [buffer.data.name for buffer in signature.results]


def moved_by(step: LayoutTransform | Pad | Crop, place: IndexMap) -> IndexMap:
    """Where a layout operator moves an element from `place`."""
    match step:
        case LayoutTransform():
            return step.index_map.compose(place)
        case Pad():
            return _shifted(place, [before for before, _ in step.widths])
        case Crop():
            return _shifted(place, [-start for start in step.starts])


def _shifted(place: IndexMap, distances: list[int]) -> IndexMap:
    outputs: list[Expr] = []
    for output, distance in zip(place.outputs, distances, strict=True):
        outputs.append(output if distance == 0 else binary(BinaryOp.ADD, output, const(distance, output.dtype)))
    return IndexMap(place.inputs, tuple(outputs))


def chain_problem(
    schedule: Steps, old: PrimFunc, new: PrimFunc, checked: Sequence[Sequence[Verdict]] | None = None
) -> str | None:
    """Why proved steps of a schedule do not lead from one function to another, names aside; None where they do.

    `checked` are the checker's verdicts on each step, where it was asked already.
    """
    start = schedule.original
    if _without_requests(start) != _without_requests(replace(old, name=start.name)):
        return f"the steps do not start with {old.name}"
    current = start
    for number, step in enumerate(schedule.records, start=1):
        if step.rewrite.old != current:
            return f"step {number} does not start where the one before it ends"
        # The checker takes it for granted that programs are well-formed, also those that are only passed through.
        if check_wellformed(step.rewrite.new):
            return f"step {number} leads to a program that is not well-formed"
        if checked is not None:
            verdicts = tuple(checked[number - 1]) if number <= len(checked) else ()
        else:
            verdicts = verdicts_of(step.rewrite, step.where, step.allowed, False, step.primitive, step.arguments)
        if not verdicts:
            return f"step {number} has no verdicts"
        bad = next((v for v in verdicts if v.status not in GOOD), None)
        if bad is not None:
            return f"step {number} is {bad.status.value}: {bad.claim}"
        if any(v.strictness for v in verdicts) or step.where is not None:
            return f"step {number} does not hold bit for bit and for every call"
        current = step.rewrite.new
    return None if current == replace(new, name=schedule.original.name) else f"the steps do not end in {new.name}"


def _without_requests(func: PrimFunc) -> PrimFunc:
    """The function without the attribute of layout transformations to make, which has no effect on what it does."""
    return replace(func, attrs=func.attrs.without(LAYOUT_TRANSFORMATIONS))
