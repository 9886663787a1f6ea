"""Whether a rewritten graph does what the graph did: every new value is asked for by itself, from those before it.

The claim of each new value is that the elements of an old one stand where the witness says, and that all other cells
hold what it says of them, if it does. For an input that is so where the witness leaves it as it is, or as the interface
has it; for a constant it is looked at; for the layout operators it is an equality of maps; for a call it follows from
the proof that its function is the old call's function with its arrays in the layouts in which the witness has operands
and results, where padding that the function takes for granted is proved of the operands. Pads and crops of the old
graph are calls of functions that do what they do. Nothing here knows how the new graph was found.

A claim is proved together with those that it rests on: of what is made of a value that is not proved to hold what is
said, nothing is. Functions may leave something open (undefined padding, elements that they do not write), which one
call settles for all who use its results: so each old call is made once at most, and calls that reach outside of the
graph are made just as they were.
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
    Graph,
    LayoutTransform,
    Pad,
    Shape,
    Signature,
    Step,
    Value,
    number_of,
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
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.layout_record import Contract, layout_records
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import LAYOUT_TRANSFORMATIONS, PrimFunc
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables, walk
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering.proof_cache.remembered import verdicts_of
from layoutproof.verify.verdict.verdict import GOOD, Claim, ClaimKind, Status, Verdict

ENGINE = "symbolic"


Said = Mapping[str, Sequence[Sequence[Verdict]]]
"""For functions, by their names, what the checker said of each step that leads to them."""


def prove_graph_rewrite(
    rewrite: GraphRewrite,
    interface: Interface = AS_IT_WAS,
    said: Said = MappingProxyType({}),
    asked: Asked | None = None,
) -> tuple[Verdict, ...]:
    """A verdict for each value of the new graph, in order, then one for its outputs. Raises LayoutproofError for a
    malformed graph.

    `interface` belongs to the claim, not to the witness: in whatever other way the new graph is called, nothing is
    proved. `said` is for those who have asked the checker about the steps of chains already, and answer for it: they
    are not checked again. `asked` gets what is asked of index maps, for certificates.
    """
    for graph in (rewrite.old, rewrite.new):
        require_graph(graph)
        for step in graph.steps:
            if isinstance(step, LayoutTransform):
                report_of(
                    step.index_map, graph.by_name()[step.operand].shape, asked
                )  # what a graph that is well-formed rests on
    return tuple(_Proof(rewrite, roots_of(rewrite.old), interface, said, asked).verdicts())


def _holds(name: str) -> Claim:
    return Claim(ClaimKind.OTHER, f"{name} holds what the witness says")


@dataclass(frozen=True, slots=True)
class _Proof:
    """`held` are the values whose claims are proved, `made` the old calls that were made, by their first results, in
    the new order.
    """

    rewrite: GraphRewrite
    roots: Mapping[str, Place]
    interface: Interface
    said: Said
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
        """The verdict, once it is entered which values it is about."""
        self.held.update(names if verdict.status is Status.PROVED else ())
        return verdict

    def fitting(self, value: Value) -> bool:
        """Whether what the witness says of a value is a map of an old one's indices, and a number that padding of its
        type can hold.
        """
        place = self.rewrite.places.get(value.name)
        old = self.rewrite.old.by_name()
        if place is None or place.value not in old or len(place.index_map.inputs) != len(old[place.value].shape):
            return False
        if place.pad is not None and (number_of(place.pad) is None or place.pad.dtype != value.dtype):
            return False
        return {v for output in place.index_map.outputs for v in free_variables(output)} <= set(place.index_map.inputs)

    def verdict(self, name: str, problem: str | None, engine: str = ENGINE) -> Verdict:
        """Proved, or unknown for a reason."""
        claim = _holds(name)
        status = Status.PROVED if problem is None else Status.UNKNOWN
        return Verdict(status, claim, engine, reason=problem)

    def inputs(self) -> Iterator[tuple[str, Verdict]]:
        """Inputs are the old ones, as the interface has them; each with its name."""
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
                same_map = (
                    stored and prove_same(place.index_map, index_map, before.shape, self.asked).status is Status.PROVED
                )
                yield (
                    value.name,
                    self.verdict(
                        value.name, None if same_map else f"an input is given by `{index_map_text(index_map)}`"
                    ),
                )
        if len(self.rewrite.new.inputs) != len(old):
            yield "", self.verdict("the graph", "it has more or fewer inputs")

    def stored(self, value: Value, index_map: IndexMap, shape: Shape) -> bool:
        """Whether a value has the shape in which a map stores an array."""
        return len(index_map.inputs) == len(shape) and value.shape == box_of(index_map, shape, self.asked)

    def constant(self, constant: Constant) -> Verdict:
        """Each element stands in its place, bit for bit, and around them what padding is said to hold."""
        place = self.place(constant.value.name)
        before = next((c for c in self.rewrite.old.constants if c.value.name == place.value), None)
        if before is None or before.value.dtype != constant.value.dtype or not self.fits(constant.value):
            return self.verdict(constant.value.name, "it is not made of a constant")
        if constant.sha256 is not None or before.sha256 is not None:
            kept = constant.value.shape == before.value.shape and is_identity(
                place.index_map, before.value.shape, self.asked
            )
            known = kept and constant.digest == before.digest
            return self.verdict(
                constant.value.name, None if known else f"only digests of it and of {place.value} are known", "digest"
            )
        found = place.index_map.unmap_array(constant.data, before.value.shape)
        # By bytes: NaNs are not all alike to a function that looks at their bits.
        if found.tobytes() != before.data.tobytes():
            return self.verdict(constant.value.name, f"it holds other elements than {place.value}", "evaluation")
        if place.pad is not None:
            inside = place.index_map.map_array(np.ones(before.value.shape, np.bool_), constant.value.shape)
            around = constant.data[~inside]
            number = number_of(place.pad)
            if number is None or not bool(same_values(around, np.full(around.shape, number, around.dtype)).all()):
                return self.verdict(
                    constant.value.name, f"its padding holds something else than {expr_text(place.pad)}", "evaluation"
                )
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
        """What the witness says of a new value, said of the root of the old one."""
        return rooted(self.rewrite.places[name], self.roots)

    def shape(self, place: Place) -> Shape:
        """The shape of the old value."""
        return self.rewrite.old.by_name()[place.value].shape

    def padding(self, name: str, value: Value) -> tuple[bool, str | None]:
        """Whether a value has no padding at all, and what is said of what its padding holds, as text; of an operand
        that is proved.
        """
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
            # Elements of anything else but an input may be alike.
            return self.verdict(
                name, f"elements of {after.value} stand elsewhere in it: {found.counterexample}", found.engine
            )
        if found.status is not Status.PROVED:
            return self.verdict(name, found.reason, found.engine)
        return self.verdict(name, self.filled(step), found.engine)

    def filled(self, step: LayoutTransform | Pad | Crop) -> str | None:
        """Why the padding of what a layout operator makes is not proved to hold what is said; None where it is.

        Elements are where the witness says: padding of the result is padding of the operand, moved, and what a pad puts
        there.
        """
        full, wanted = self.padding(step.result.name, step.result)
        if full or wanted is None:
            return None
        before, held = self.padding(step.operand, self.rewrite.new.by_name()[step.operand])
        if not before and held != wanted:
            return f"its padding is said to hold {wanted}, that of {step.operand} holds {held if held is not None else 'anything'}"
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
        """Why a call is not proved to make what the witness says; None where it is."""
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
            self.chained[key] = chain_problem(schedule, old, new, self.said.get(new.name))
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
                return f"{new.name} stores {buffer.name} by `{index_map_text(stored)}`, the witness says `{index_map_text(place.index_map)}`"
            problem = self.contracts(
                new, buffer, value, [each.contract for each in steps[len(known) :]], buffer in signature.results
            )
            if problem is not None:
                return problem
        return None

    def contracts(
        self, new: PrimFunc, buffer: Buffer, value: Value, contracts: list[Contract | None], result: bool
    ) -> str | None:
        """Why padding is not proved to hold what a function takes for granted, or what is said of its result; None
        where it is.

        Only what a single transform says is used: of several, each speaks of padding that the others move.
        """
        full, said = self.padding(value.name, value)
        own = contracts[0] if len(contracts) == 1 else None
        if result:
            held = full or said is None or (own is not None and said == own.text)
            return None if held else f"the padding of {value.name} is not proved to hold {said}"
        if any(contract is not None for contract in contracts) and not full and (own is None or said != own.text):
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
        return Verdict(
            Status.PROVED if problem is None else Status.UNKNOWN, Claim(ClaimKind.OTHER, text), ENGINE, reason=problem
        )

    def differences(self, asked: tuple[tuple[str, IndexMap], ...]) -> Iterator[str]:
        """Why the new graph is not proved to be called, and to do outside of itself, what the old one was and did."""
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
            if (
                not kept
                or prove_same(place.index_map, wanted, self.shape(place), self.asked).status is not Status.PROVED
            ):
                yield f"{ours} is not {theirs}" + (
                    f" stored by `{index_map_text(index_map)}`" if self.interface.outputs else ""
                )
        outside = _outside(self.rewrite.old)
        if [name for name in self.made if name in outside] != outside:
            yield "calls that reach outside of the graph are not made as they were"


def _outside(graph: Graph) -> list[str]:
    """The first results of calls whose functions call what is not known here, in order."""
    return [
        step.results[0].name
        for step in graph.steps
        if isinstance(step, Call) and any(isinstance(node, OpaqueCall) for node in walk(step.function.body))
    ]


def _roles(signature: Signature) -> tuple[list[str], list[str]]:
    """The arrays that are read and those that are made, by what they hold."""
    return [buffer.data.name for buffer in signature.operands], [buffer.data.name for buffer in signature.results]


def moved_by(step: LayoutTransform | Pad | Crop, place: IndexMap) -> IndexMap:
    """Where an element stands after a layout operator that stood at `place` before."""
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
    schedule: Steps, old: PrimFunc, new: PrimFunc, said: Sequence[Sequence[Verdict]] | None = None
) -> str | None:
    """Why the steps of a schedule do not lead from one function to another, names aside, each proved; None where they
    do.

    `said` is what the checker said of each step, where it was asked already.
    """
    start = schedule.original
    if _unasked(start) != _unasked(replace(old, name=start.name)):
        return f"the steps do not start with {old.name}"
    current = start
    for number, step in enumerate(schedule.records, start=1):
        if step.rewrite.old != current:
            return f"step {number} does not start where the one before it ends"
        # The checker takes it that programs are well-formed, also those that are only passed through.
        if check_wellformed(step.rewrite.new):
            return f"step {number} leads to a program that is not well-formed"
        if said is not None:
            verdicts = tuple(said[number - 1]) if number <= len(said) else ()
        else:
            verdicts = verdicts_of(step.rewrite, step.where, step.allowed, False, step.primitive, step.arguments)
        if not verdicts:
            return f"nothing is said of step {number}"
        bad = next((v for v in verdicts if v.status not in GOOD), None)
        if bad is not None:
            return f"step {number} is {bad.status.value}: {bad.claim}"
        if any(v.strictness for v in verdicts) or step.where is not None:
            return f"step {number} does not hold bit for bit and for every call"
        current = step.rewrite.new
    return None if current == replace(new, name=schedule.original.name) else f"the steps do not end in {new.name}"


def _unasked(func: PrimFunc) -> PrimFunc:
    """The function without the attribute that lists what is to be re-laid, which says nothing of what the function
    does.
    """
    return replace(func, attrs=func.attrs.without(LAYOUT_TRANSFORMATIONS))
