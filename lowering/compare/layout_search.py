"""The search for a witness if the layouts of some parameters are not known: the layouts first, one buffer at a time,
then the instances.

What the programs and the known layouts decide is solved (`layout_equations`, `layout_formulas`); only what they leave
open is proposed from the shapes (`layout_candidates`), without contradicting what is known, and each choice determines
more of the others. Nothing here is evidence: the checker refuses a witness with a wrong layout like any other.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import count, islice
from math import prod

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError, counted
from layoutproof.ir.expr import Binary, Expr, IntImm, Var, const, widen
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import CellMap
from layoutproof.ir.stmt import ForKind
from layoutproof.ir.visit import walk
from layoutproof.lowering.compare.comparison import Found, Furthest, NoWitness, Question
from layoutproof.lowering.compare.layout_candidates import Candidate, candidates, index_names
from layoutproof.lowering.compare.layout_equations import Solving
from layoutproof.lowering.compare.layout_formulas import Guess, bounded, layout_of, written_out
from layoutproof.lowering.compare.value_meetings import Meetings
from layoutproof.lowering.compare.witness_search import find_witness, search_of
from layoutproof.verify.flow.models import NEW, OLD, RewriteModel
from layoutproof.verify.flow.simulate import OPERATIONS
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.instance_sets import Link, function_between
from layoutproof.verify.isl.proposing import is_inside, lowest, touched
from layoutproof.verify.isl.space import BudgetExceeded
from layoutproof.verify.maps.injective import prove_injective
from layoutproof.verify.program.instances import Dim
from layoutproof.verify.program.statement import NotModelled
from layoutproof.verify.settings import scaled
from layoutproof.verify.verdict.verdict import Status

# How often layouts are put in to see what follows, how many layouts of one buffer are gone through, how many that
# accesses state.
_LOOKS, _OPTIONS, _STATED = 80, 12, 3
# How many layouts of one buffer are tried where only the shapes are asked, and how many choices of all.
_BLIND, _TRIES = 3, 6
_LESS = 10
# How often integer sets may run out of operations before the search is given up.
_OVERRUNS = 3
# What a choice costs that contradicts something, that does without what accesses state, and that was read off a
# relation, or off the first cell that is touched.
_LOST, _UNSTATED, _READ_OFF, _MOVED = 500, 60, 40, 15


def find_witnesses(question: Question) -> Iterator[Found]:
    """Witnesses with the layouts of `question.unknown`, one for each choice of layouts, the likeliest first, lazily.

    Raises NoWitness if there is none at all, with the search that came furthest and the layouts that were tried.
    """
    if not question.unknown:
        yield find_witness(question)
        return
    yield from _Hunt(question).witnesses()


def possible_layouts(question: Question) -> dict[str, list[IndexMap]]:
    """All layouts of `question.unknown` that come into question, by the data variable's name: those that accesses state
    or nearly state, and those that the shapes allow, also with padding in front.
    """
    return _Hunt(question).possible()


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A parameter whose layout is searched; `names` are the indices of its cells in the program before."""

    before: Buffer
    after: Buffer
    names: tuple[Var, ...]
    proposed: tuple[Candidate, ...]

    @staticmethod
    def of(function: PrimFunc, before: Buffer, after: Buffer, *, swizzles: bool) -> _Parameter:
        """The parameter, with the layouts that its shapes allow."""
        names = index_names(function, before)
        found = [
            each
            for each in candidates(names, before.shape, after.shape)
            if swizzles or not _has_xor(each.index_map.outputs)
        ]
        return _Parameter(
            before,
            after,
            names,
            tuple(replace(each, index_map=_bounded(each.index_map, before.shape)) for each in found),
        )

    @property
    def data(self) -> str:
        """The name of its data variable."""
        return self.before.data.name


class _Stage(StrEnum):
    """The origin of a layout: accesses state it, or nearly, or the shapes allow it."""

    STATED = "stated"
    GUESSED = "guessed"
    SHAPES = "shapes"


@dataclass(frozen=True, slots=True)
class _Choice:
    """Layouts of some parameters, by the data variable's name. `guessed`: accesses do not state all of them.
    `confirmed`: all were put in, and nothing contradicts them. `lost`: something does. `passed` has the questions that
    are not asked again, by parameter. `blind`: only the shapes are asked.
    """

    maps: Mapping[str, IndexMap] = field(default_factory=dict)
    guessed: bool = False
    confirmed: bool = False
    passed: frozenset[tuple[str, _Stage]] = frozenset()
    lost: bool = False
    blind: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether nothing more can be learned by looking at it."""
        return self.lost or self.confirmed or self.blind

    def text(self) -> str:
        """All layouts on one line."""
        return ", ".join(
            f"{name.removesuffix('_data')}: {index_map_text(self.maps[name])}" for name in sorted(self.maps)
        )


@dataclass(slots=True)
class _Hunt:
    question: Question
    tried: list[str] = field(default_factory=list)
    best: Furthest | None = None
    blind: int = 0
    overruns: int = 0
    _parameters: dict[str, _Parameter] = field(default_factory=dict)
    _meetings: Meetings | None = None
    _given: dict[str, Link] = field(default_factory=dict)
    _links: dict[tuple[str, tuple[Expr, ...]], Link] = field(default_factory=dict)
    _heap: list[tuple[int, int, _Choice]] = field(default_factory=list)
    _number: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        old, new = self.question.old, self.question.new
        after = {buffer.data.name: buffer for buffer in new.buffers}
        swizzles = _has_xor((old.body, new.body))
        for buffer in old.buffers:
            if buffer.name in self.question.unknown:
                self._parameters[buffer.data.name] = _Parameter.of(
                    old, buffer, after[buffer.data.name], swizzles=swizzles
                )

    def witnesses(self) -> Iterator[Found]:
        """What `find_witnesses` gives."""
        found, settled = 0, False
        self._push(0, _Choice())
        for _ in range(scaled(_LOOKS)):
            if not self._heap or self.overruns >= _OVERRUNS:
                break
            cost, _, choice = heapq.heappop(self._heap)
            if (settled and choice.passed) or (choice.blind and self.blind == _TRIES):
                continue
            if len(choice.maps) == len(self._parameters) and (choice.is_settled or not choice.guessed):
                # Once there is a witness, others are worth less.
                witness = self._witness(choice, OPERATIONS if not found else OPERATIONS // _LESS)
                if witness is not None:
                    # A layout that accesses state and that leads to a witness is the one meant.
                    settled = settled or not (choice.guessed or choice.is_settled or choice.passed)
                    found += 1
                    yield witness
                continue
            self._go_on(cost, choice)
        if not found:
            raise NoWitness(self._furthest())

    def possible(self) -> dict[str, list[IndexMap]]:
        """What `possible_layouts` gives."""
        found = {name: [each.index_map for each in p.proposed] for name, p in self._parameters.items()}
        try:
            solving = self._solved(_Choice())
            for name, parameter in self._parameters.items():
                found[name] += [each.index_map for each in self._written(solving, parameter, tuple(Guess))]
                with solving.rewrite_model.workspace.limited():
                    moved = (self._shifted(solving.rewrite_model, parameter, each) for each in parameter.proposed)
                    found[name] += [each.index_map for each in moved if each is not None]
        except (NotModelled, NotQuasiAffine, BudgetExceeded) as problem:
            self._note(Furthest(problem.reason if not isinstance(problem, BudgetExceeded) else str(problem)))
        return {name: list({each.outputs: each for each in maps}.values()) for name, maps in found.items()}

    def _push(self, cost: int, choice: _Choice) -> None:
        heapq.heappush(self._heap, (cost, next(self._number), choice))

    def _go_on(self, cost: int, choice: _Choice) -> None:
        """Find the ways to choose one more layout; by the shapes alone if integer sets do not help."""
        if choice.blind:
            self._guess(
                cost, choice, [parameter for name, parameter in self._parameters.items() if name not in choice.maps]
            )
            return
        try:
            self._look(cost, choice)
        except (NotModelled, NotQuasiAffine) as problem:
            self._note(Furthest(problem.reason))
            self._push(cost + _LOST, replace(choice, blind=True))
        except BudgetExceeded as problem:
            # What was begun in this context cannot go on.
            self.overruns += 1
            self._meetings = None
            self._links.clear()
            self._note(Furthest(f"the search for layouts ran out of its budget: {problem}"))
            self._push(cost + _LOST, replace(choice, blind=True))

    def _guess(self, cost: int, choice: _Choice, parameters: list[_Parameter]) -> None:
        """Go on with the layouts that shapes alone make likely."""
        for parameter in parameters[:1]:
            for candidate in parameter.proposed[:_BLIND]:
                self._push(cost + candidate.cost, self._with(choice, parameter.data, candidate.index_map, True))

    # One look

    def _look(self, cost: int, choice: _Choice) -> None:
        """Put the layouts in, and go on with each way to choose one more."""
        solving = self._solved(choice)
        if solving.lost and not choice.lost:
            self._push(cost + _LOST, replace(choice, lost=True))
            return
        if len(choice.maps) == len(self._parameters):
            self._push(cost, replace(choice, confirmed=True))
            return
        options = self._options(solving, choice)
        if options is None:
            self._push(cost + _LOST, replace(choice, blind=True))
            return
        name, found, stage = options
        for candidate in found:
            self._push(cost + candidate.cost, self._with(choice, name, candidate.index_map, stage is not _Stage.STATED))
        if stage is not _Stage.SHAPES:
            self._push(cost + _UNSTATED, replace(choice, passed=choice.passed | {(name, stage)}))

    @staticmethod
    def _with(choice: _Choice, name: str, index_map: IndexMap, guessed: bool) -> _Choice:
        return replace(choice, maps={**choice.maps, name: index_map}, guessed=choice.guessed or guessed)

    def _solved(self, choice: _Choice) -> Solving:
        meetings = self._fresh()
        with meetings.search.rewrite_model.workspace.limited():
            chosen = {n: each for n, each in choice.maps.items() if self._is_touched(meetings.search.rewrite_model, n)}
            links = {name: self._link(meetings.search.rewrite_model, name, each) for name, each in chosen.items()}
        solving = Solving(meetings, {**self._given, **links})
        solving.run()
        return solving

    def _fresh(self) -> Meetings:
        """Both programs, with the layouts that are given."""
        if self._meetings is None:
            self._meetings = Meetings(search_of(self.question))
            rewrite_model = self._meetings.search.rewrite_model
            with rewrite_model.workspace.limited():
                for buffer in self.question.old.buffers:
                    if buffer.data in rewrite_model.old.cells and buffer.data.name not in self._parameters:
                        link = rewrite_model.cells(rewrite_model.entry(buffer.data.name), f"{OLD}in_", f"{NEW}in_")
                        if link is not None:
                            self._given[buffer.data.name] = link
        return self._meetings

    @staticmethod
    def _is_touched(rewrite_model: RewriteModel, name: str) -> bool:
        """Whether both programs use a parameter; else any layout will do."""
        return all(
            any(data.name == name for data in statements.cells) for statements in (rewrite_model.old, rewrite_model.new)
        )

    def _link(self, rewrite_model: RewriteModel, name: str, index_map: IndexMap) -> Link:
        """A layout as a relation between cells. Raises NotModelled, NotQuasiAffine."""
        key = name, index_map.outputs
        if key not in self._links:
            old, new = (rewrite_model.memory(each, name) for each in (rewrite_model.old, rewrite_model.new))
            box = rewrite_model.old.cells[old]
            dims = tuple(
                Dim(Var(f"c{axis}", e.dtype), const(0, e.dtype), e, ForKind.SERIAL) for axis, e in enumerate(box)
            )
            outputs = index_map.map_indices([dim.var for dim in dims])
            link = function_between(rewrite_model.encoder_of(dims), f"{OLD}in_{name}", outputs, f"{NEW}in_{new.name}")
            self._links[key] = link.intersect_domain(rewrite_model.before.cell_set(old))
        return self._links[key]

    # Ways to choose one more layout

    def _options(self, solving: Solving, choice: _Choice) -> tuple[str, list[Candidate], _Stage] | None:
        """The parameter to choose a layout of next, with its layouts, and their origin; None if one has none."""
        open_ones = [parameter for name, parameter in self._parameters.items() if name not in choice.maps]
        for stage, guesses in ((_Stage.STATED, (Guess.NONE,)), (_Stage.GUESSED, (Guess.SMALL, Guess.LARGE))):
            for parameter in open_ones:
                found = [] if (parameter.data, stage) in choice.passed else self._written(solving, parameter, guesses)
                if found:
                    return parameter.data, found, stage
        best: tuple[str, list[Candidate], _Stage] | None = None
        for parameter in open_ones:
            found = self._proposed(solving, parameter)
            if not found:
                self._note(Furthest(f"no layout of {parameter.before.name} fits what both programs do with it"))
                return None
            if best is None or len(found) < len(best[1]):
                best = parameter.data, found, _Stage.SHAPES
        return best

    def _written(self, solving: Solving, parameter: _Parameter, guesses: tuple[Guess, ...]) -> list[Candidate]:
        """The layouts that accesses state."""
        rewrite_model, spots = solving.rewrite_model, solving.spots.get(parameter.data, [])
        shapes = parameter.before.shape, parameter.after.shape
        with rewrite_model.workspace.limited():
            maps = [
                each
                for guess in guesses
                for each in islice(written_out(rewrite_model, parameter.names, *shapes, spots, guess), _STATED)
            ]
            found = {each.outputs: each for each in maps if self._is_layout(rewrite_model, parameter, each)}
        return [Candidate(each, cost) for cost, each in enumerate(found.values())]

    def _proposed(self, solving: Solving, parameter: _Parameter) -> list[Candidate]:
        """The layouts that the shapes allow, without contradictions to what is known."""
        rewrite_model = solving.rewrite_model
        allowed = solving.allowed(parameter.data)
        found: list[Candidate] = []
        with rewrite_model.workspace.limited():
            for candidate in parameter.proposed:
                if len(found) < _OPTIONS and self._fits(rewrite_model, parameter, candidate.index_map, allowed):
                    found.append(candidate)
            for candidate in parameter.proposed[:_OPTIONS] if not found else ():
                shifted = self._shifted(rewrite_model, parameter, candidate)
                if shifted is not None and self._fits(rewrite_model, parameter, shifted.index_map, allowed):
                    found.append(shifted)
            read = None if allowed is None or found else layout_of(rewrite_model, parameter.names, allowed)
            if read is not None and self._is_layout(rewrite_model, parameter, read):
                found.append(Candidate(read, _READ_OFF))
        return found

    def _shifted(self, rewrite_model: RewriteModel, parameter: _Parameter, candidate: Candidate) -> Candidate | None:
        """A layout with padding in front: moved to where the cells begin that the new program touches. None if those
        begin at the first cell, or sizes are symbolic.
        """
        sizes = [extent.value for extent in parameter.after.shape if isinstance(extent, IntImm)]
        if len(sizes) != len(parameter.after.shape) or not self._is_touched(rewrite_model, parameter.data):
            return None
        name, whole = parameter.after.data.name, const(prod(sizes))
        try:
            dims = tuple(Dim(v, const(0, v.dtype), widen(whole, v.dtype), ForKind.SERIAL) for v in parameter.names)
            encoder = rewrite_model.encoder_of(dims)
            link = function_between(encoder, f"{OLD}in_{name}", candidate.index_map.outputs, f"{NEW}in_{name}")
            first = lowest(touched(rewrite_model.after, name).apply(link.reverse()))
        except (NotModelled, NotQuasiAffine):
            return None
        if first is None or not any(first):
            return None
        moved = [v + low if low else v for v, low in zip(parameter.names, first, strict=True)]
        index_map = IndexMap(parameter.names, tuple(candidate.index_map.map_indices(moved)))
        return Candidate(index_map, candidate.cost + _MOVED)

    def _fits(
        self, rewrite_model: RewriteModel, parameter: _Parameter, index_map: IndexMap, allowed: Link | None
    ) -> bool:
        try:
            return allowed is None or is_inside(self._link(rewrite_model, parameter.data, index_map), allowed)
        except NotQuasiAffine:
            return False

    def _is_layout(self, rewrite_model: RewriteModel, parameter: _Parameter, index_map: IndexMap) -> bool:
        """Whether a map leads into the box and gives no cell to two."""
        if not self._is_touched(rewrite_model, parameter.data) or index_map.rank != len(parameter.after.shape):
            return False
        box = rewrite_model.after.cell_set(rewrite_model.memory(rewrite_model.new, parameter.after.data.name))
        try:
            inside = self._link(rewrite_model, parameter.data, index_map).range().is_subset(box)
            return (
                bool(inside)
                and prove_injective(index_map, parameter.before.shape, self.question.where).status is Status.PROVED
            )
        except (LayoutproofError, NotQuasiAffine):
            return False

    # A choice of all layouts

    def _witness(self, choice: _Choice, operations: int) -> Found | None:
        text = choice.text()
        if text in self.tried:
            return None
        self.blind += choice.blind
        self.tried.append(text)
        found = (CellMap(name, self._parameters[name].after.data.name, each) for name, each in choice.maps.items())
        cells = (*self.question.cells, *found)
        try:
            return find_witness(replace(self.question, cells=cells, unknown=()), operations)
        except NoWitness as problem:
            self.overruns += problem.out_of_budget
            self._note(problem.furthest)
            return None

    def _note(self, furthest: Furthest) -> None:
        if self.best is None or furthest.matched > self.best.matched:
            self.best = furthest

    def _furthest(self) -> Furthest:
        """The search that came furthest, and its layouts."""
        names = ", ".join(self.question.unknown)
        best = self.best if self.best is not None else Furthest("nothing is known of it")
        if not self.tried:
            return replace(best, reason=f"no layout of {names} was found: {best.reason}")
        shown = "; ".join(self.tried[:3]) + ("; ..." if len(self.tried) > 3 else "")
        return replace(
            best, reason=f"{counted(len(self.tried), 'layout', 'layouts')} of {names} tried ({shown}): {best.reason}"
        )


def _has_xor(nodes: Iterable[Node]) -> bool:
    return any(isinstance(part, Binary) and part.op is BinaryOp.BITXOR for node in nodes for part in walk(node))


def _bounded(index_map: IndexMap, shape: tuple[Expr, ...]) -> IndexMap:
    return replace(index_map, outputs=tuple(bounded(output, index_map.inputs, shape) for output in index_map.outputs))
