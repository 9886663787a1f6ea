"""How a layout of one array of a function carries over to the others, derived from its accesses, without rules per
operator; and the function in these layouts, proved.

Source: Relax's issue `relax-layout-transformation`, "Flowing Layout Rewrite through an Operator".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from layoutproof.graph import codes
from layoutproof.graph.flow.array_accesses import UNBOUNDED, Access, Digit, Statement, digits_of, normal, statements_of
from layoutproof.graph.model.graph import shape_of
from layoutproof.graph.model.layout_maps import report_of
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, error
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.primfunc import LAYOUT_TRANSFORMATIONS, PrimFunc
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables, substitute, walk
from layoutproof.lowering.arith.affine import Affine, expression_of
from layoutproof.lowering.layout.pad_value import PadText
from layoutproof.lowering.layout.transform_layout import ROOT, ApplyBufferTransforms, TransformLayout
from layoutproof.lowering.passes.find import find_buffer
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.verdict.verdict import Status


class NoFlow(LayoutproofError):
    """The layout does not flow through the function; `reason` says where it stops, and why."""

    def __init__(self, func: PrimFunc, reason: str) -> None:
        self.reason = reason
        super().__init__(
            Diagnostic(codes.NO_FLOW, f"the layout does not flow through {func.name}: {reason}", func.span)
        )


Layouts = Mapping[str, IndexMap]
"""A map for each array, by the name of its buffer; arrays that are missing keep their layout."""


def flow(func: PrimFunc, given: Layouts) -> Layouts:
    """The layouts of all arrays of a function, temporaries too, that follow from those of some; only those that change
    are named.

    Raises NoFlow where an access would not be a clean image, where two accesses ask for different layouts of one array,
    and where a layout that was derived is not injective; LayoutproofError for a name or a map that does not fit the
    function.
    """
    maps = {name: fitted(func, name, index_map) for name, index_map in given.items()}
    statements = statements_of(func)
    changed = True
    while changed:
        changed = False
        for statement in statements:
            for unknown in _open(statement, maps):
                maps[unknown.buffer.name] = _derived(func, statement, unknown, maps)
                changed = True
    for statement in statements:
        _check_clean(func, statement, maps)
    for name, index_map in maps.items():
        check_injective(func, find_buffer(func, name), index_map)
    return {name: index_map for name, index_map in maps.items() if index_map.outputs != index_map.inputs}


def fitted(func: PrimFunc, name: str, index_map: IndexMap) -> IndexMap:
    """The map of an array, once it takes the array's indices. Raises LayoutproofError."""
    buffer = find_buffer(func, name)
    if len(index_map.inputs) != buffer.rank:
        message = (
            f"`{index_map_text(index_map)}` takes {len(index_map.inputs)} indices, {name} of {func.name} has "
            f"{buffer.rank} axes"
        )
        raise error(codes.TRANSFORM_MAP, message, buffer.span)
    return index_map


def _open(statement: Statement, maps: Layouts) -> Iterator[Access]:
    """Accesses of arrays that have no map yet, where one beside them has."""
    for access in statement.accesses:
        if access.buffer.name not in maps and any(other.buffer.name in maps for other in statement.accesses):
            yield access


@dataclass(frozen=True, slots=True)
class _Part:
    """An output of a map that carries over: `output` over variables, with the other array's axis and name of each."""

    output: Expr
    axes: Mapping[Var, int]
    names: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class _Pair:
    """An access whose array has a map, and one whose array is to get its own."""

    func: PrimFunc
    known: Access
    index_map: IndexMap
    unknown: Access

    def parts(self) -> Iterator[_Part]:
        """The outputs of the map that go along. Raises NoFlow."""
        taken = {axis for index in self.known.indices if (axis := self.axis_of(_variable(index))) is not None}
        digits = self.digits()
        for output in self.index_map.outputs:
            part = self.carried(output, taken, digits)
            if part is not None:
                taken |= set(part.axes.values())
                yield part

    def axis_of(self, variable: Var | None) -> int | None:
        """The one axis of the other array that is indexed by a variable plus a number; None for none or several."""
        axes = [
            axis
            for axis, index in enumerate(self.unknown.indices)
            if variable is not None and _variable(index) == variable
        ]
        return axes[0] if len(axes) == 1 else None

    def axes_in(self, output: Expr) -> list[int]:
        """The axes of the known array that an output of its map is over."""
        return [axis for axis, variable in enumerate(self.index_map.inputs) if variable in free_variables(output)]

    def carried(self, output: Expr, taken: AbstractSet[int], digits: Mapping[int, Digit]) -> _Part | None:
        """An output of the other's map; None where it has none of the axes. Axes in `taken` have an output."""
        axes = self.axes_in(output)
        variables = [_variable(self.known.indices[axis]) for axis in axes]
        followed = [self.axis_of(variable) for variable in variables]
        if axes and None not in followed:
            return self.part(
                output, axes, [v for v in variables if v is not None], [axis for axis in followed if axis is not None]
            )
        if axes and all(axis in digits for axis in axes):
            return self.in_digits(output, axes, digits)
        same = self.same_index(output)
        if axes and same is not None and same not in taken:
            return _Part(Var(f"u{same}"), {Var(f"u{same}"): same}, {})
        used = {v for axis in axes for v in free_variables(self.known.indices[axis])}
        touched = [k for k, index in enumerate(self.unknown.indices) if used & set(free_variables(index))]
        if not touched:
            return None
        if output == self.index_map.inputs[axes[0]]:
            # An axis that stays as it is may be read at any place: windows, strides.
            free = [k for k in touched if k not in taken]
            return self.part(output, axes, [self.index_map.inputs[axes[0]]], free[:1]) if free else None
        term = self.fresh_term(output)
        if term is not None:
            (variable,) = free_variables(term)
            axis = self.axis_of(variable)
            if axis is not None:
                return _Part(term, {variable: axis}, {axis: self.index_map.inputs[axes[0]].name})
        shown, index_map = expr_text(output, "plain"), index_map_text(self.index_map)
        raise NoFlow(
            self.func,
            f"`{index_map}` of {self.known.buffer.name} takes `{shown}` from an index that {self.unknown} mixes with "
            f"others, so {self.unknown.buffer.name} has no axis that follows it in {self.known}",
        )

    def part(self, output: Expr, mine: Sequence[int], variables: Sequence[Var], other: Sequence[int]) -> _Part:
        """An output over axes that are followed."""
        inputs = [self.index_map.inputs[axis] for axis in mine]
        values: dict[Var, Expr] = dict(zip(inputs, variables, strict=True))
        names = {axis: v.name for axis, v in zip(other, inputs, strict=True)}
        return _Part(substitute(output, values), dict(zip(variables, other, strict=True)), names)

    def digits(self) -> Mapping[int, Digit]:
        """The axes of the known array that are digits of an axis of the other, which is split or joined.

        The map has to have coarse ones first: else the elements of the other array would come in an order that no axis
        of it has.
        """
        found = digits_of(self.known, self.unknown)
        places: dict[int, list[int]] = {}
        steps: dict[int, list[int]] = {}
        for place, output in enumerate(self.index_map.outputs):
            for digit in (found[axis] for axis in self.axes_in(output) if axis in found):
                places.setdefault(digit.axis, []).append(place)
                steps.setdefault(digit.axis, []).append(digit.step)
        apart = {
            axis
            for axis, held in places.items()
            if steps[axis] == sorted(steps[axis], reverse=True) and not self.is_one(held)
        }
        return {axis: digit for axis, digit in found.items() if digit.axis in apart}

    def is_one(self, places: Sequence[int]) -> bool:
        """Whether some outputs of the map are adjacent and together one axis of the other array."""
        beside = places == list(range(places[0], places[-1] + 1))
        return beside and all(self.index_map.outputs[place] in self.index_map.inputs for place in places)

    def in_digits(self, output: Expr, mine: Sequence[int], digits: Mapping[int, Digit]) -> _Part:
        """An output over axes that are digits of the other's axes."""
        whole = {digits[axis].axis: Var(f"u{digits[axis].axis}") for axis in mine}
        shape = shape_of(self.unknown.buffer)
        values: dict[Var, Expr] = {
            self.index_map.inputs[axis]: digits[axis].of(whole[digits[axis].axis]) for axis in mine
        }
        extents = {variable: shape[axis] for axis, variable in whole.items()}
        moved = expression_of(normal(substitute(output, values), extents), output.dtype)
        return _Part(moved, {variable: axis for axis, variable in whole.items()}, {})

    def same_index(self, output: Expr) -> int | None:
        """The one axis of the other whose index is an output of the known one's map; None for none or several."""
        values: dict[Var, Expr] = dict(zip(self.index_map.inputs, self.known.indices, strict=True))
        image = normal(substitute(output, values), self.known.extents)
        found = [
            axis for axis, index in enumerate(self.unknown.indices) if normal(index, self.unknown.extents) == image
        ]
        return found[0] if len(found) == 1 and image.terms else None

    def fresh_term(self, output: Expr) -> Expr | None:
        """The one part of a variable that only the mapped index has, `c//4` of `(g*8 + c)//4`; else None."""
        values: dict[Var, Expr] = dict(zip(self.index_map.inputs, self.known.indices, strict=True))
        image = substitute(output, values)
        # With a group that is just one block, `c//4` is 0 where `c` is below 4, and still says where it goes.
        bounded, unbounded = (
            _new_terms(self.known, normal(image, extents)) for extents in (self.known.extents, UNBOUNDED)
        )
        terms = bounded if bounded else unbounded
        if len(terms) != 1 or len(free_variables(terms[0])) != 1:
            return None
        before = _operations(self.known)
        # A part of a part of an axis is none of the axis.
        return None if any(node in before for node in walk(terms[0])) else terms[0]


@dataclass(slots=True)
class _Derived:
    """The map of an array on its way: outputs with the axes that they are over."""

    inputs: tuple[Var, ...]
    outputs: list[Expr]
    placed: list[frozenset[int]]

    def covered(self) -> frozenset[int]:
        """The axes that some output is over."""
        return frozenset(axis for axes in self.placed for axis in axes)

    def put(self, place: int, output: Expr, axes: frozenset[int]) -> None:
        """Put an output in its place."""
        self.outputs.insert(place, output)
        self.placed.insert(place, axes)

    def behind(self, axis: int) -> int:
        """The place right behind the coarsest part of the axis before, so that what is left inside stays inside."""
        return next((k + 1 for k, axes in enumerate(self.placed) if axis - 1 in axes), 0)

    def finer(self) -> int:
        """The place before the parts of axes of which coarser parts stand further out."""
        seen: set[int] = set()
        for place, axes in enumerate(self.placed):
            if axes & seen:
                return place
            seen |= axes
        return len(self.placed)


def _derived(func: PrimFunc, statement: Statement, unknown: Access, maps: Layouts) -> IndexMap:
    """The map of an array from all accesses beside it that have one: the first says where its axes go, the others what
    it leaves open.

    Raises NoFlow.
    """
    pairs = [
        _Pair(func, known, maps[known.buffer.name], unknown)
        for known in statement.accesses
        if known.buffer.name in maps and known.buffer != unknown.buffer
    ]
    parts = [list(pair.parts()) for pair in pairs]
    inputs = tuple(Var(name) for name in _names(parts, unknown.buffer.rank))
    found = _Derived(inputs, [], [])
    rest: list[tuple[Expr, frozenset[int]]] = []
    for number, items in enumerate(parts):
        settled = found.covered() | {axis for _, axes in rest for axis in axes}
        for part in items:
            over = frozenset(part.axes.values())
            if over & settled:
                continue
            moved = substitute(part.output, {variable: inputs[axis] for variable, axis in part.axes.items()})
            if number == 0:
                found.put(len(found.placed), moved, over)
            elif moved not in inputs:
                rest.append((moved, over))
    for axis in range(unknown.buffer.rank):
        if axis not in found.covered():
            coarse = next(((output, over) for output, over in rest if axis in over), (inputs[axis], frozenset({axis})))
            rest = [item for item in rest if item != coarse]
            found.put(found.behind(axis), *coarse)
    place = found.finer()
    for number, (output, over) in enumerate(rest):
        found.put(place + number, output, over)
    return IndexMap(inputs, tuple(found.outputs))


def _names(parts: Sequence[Sequence[_Part]], rank: int) -> list[str]:
    """Names for the axes: those of the axes that they follow, else ones that are not taken."""
    named: dict[int, str] = {}
    for items in parts:
        for part in items:
            for axis, name in part.names.items():
                if name not in named.values():
                    named.setdefault(axis, name)
    fresh = (name for name in (f"a{k}" for k in range(2 * rank)) if name not in named.values())
    return [named[axis] if axis in named else next(fresh) for axis in range(rank)]


def _variable(index: Expr) -> Var | None:
    """The variable of an index that is one variable, or one and a number."""
    form = normal(index)
    if len(form.terms) != 1:
        return None
    (term, coefficient), *_ = form.terms.items()
    return term if isinstance(term, Var) and coefficient == 1 else None


def _check_clean(func: PrimFunc, statement: Statement, maps: Layouts) -> None:
    """Raise NoFlow unless each variable that one access takes apart is taken apart alike by the others that use it."""
    parts: dict[Var, tuple[Access, list[Mapping[Expr, int]]]] = {}
    for access in statement.accesses:
        images = _images(access, maps)
        for variable in {v for image in images for term in _new_terms(access, image) for v in free_variables(term)}:
            parts.setdefault(variable, (access, [_about(access, image, variable) for image in images]))
    for access in statement.accesses:
        for image in _images(access, maps):
            for variable, (first, known) in parts.items():
                about = _about(access, image, variable)
                if about and about not in known:
                    layout = index_map_text(maps[first.buffer.name])
                    raise NoFlow(
                        func,
                        f"{access} would not be a clean image: {first} takes `{variable.name}` apart by `{layout}`, "
                        "another way",
                    )


def _images(access: Access, maps: Layouts) -> list[Affine]:
    index_map = maps.get(access.buffer.name)
    indices = access.indices if index_map is None else index_map.map_indices(access.indices)
    return [normal(index, access.extents) for index in indices]


def _operations(access: Access) -> frozenset[Expr]:
    """The quotients, remainders and other operations that the indices of an access have."""
    return frozenset(
        term for index in access.indices for term in normal(index, access.extents).terms if not isinstance(term, Var)
    )


def _new_terms(access: Access, image: Affine) -> list[Expr]:
    """The quotients, remainders and other operations of an image that the indices had not."""
    before = _operations(access)
    return [term for term in image.terms if not isinstance(term, Var) and term not in before]


def _about(access: Access, image: Affine, variable: Var) -> Mapping[Expr, int]:
    """What an image says of a variable, operations aside that the indices had before."""
    before = _operations(access)
    return {
        term: factor for term, factor in image.terms.items() if variable in free_variables(term) and term not in before
    }


def check_injective(func: PrimFunc, buffer: Buffer, index_map: IndexMap) -> None:
    """Raise NoFlow unless a map is proved to give each element of an array a place of its own."""
    try:
        report = report_of(index_map, shape_of(buffer))
    except LayoutproofError as problem:
        # A map that was derived may give places below zero, as along an axis that is turned around.
        why = problem.diagnostics[0].message
        raise NoFlow(
            func, f"`{index_map_text(index_map)}`, which {buffer.name} would get, is no layout: {why}"
        ) from problem
    if report.injective.status is not Status.PROVED:
        raise NoFlow(
            func, f"`{index_map_text(index_map)}`, which {buffer.name} would get, is not proved to be injective"
        )


NAME = "operator"
"""What every function is called while it is proved: equal operators of different names then share their proofs and
kernels.
"""


def relaid(func: PrimFunc, layouts: Layouts, pads: Mapping[str, PadText] | None = None) -> Schedule:
    """The schedule that stores arrays by maps; its program is the function in these layouts. `pads` are contracts of
    padding, by name.

    What its first step applies stands in an attribute of its original, which says nothing of what the function does.
    Raises IllegalTransform where a step is not proved.
    """
    known: Mapping[str, PadText] = pads if pads is not None else {}
    together = {
        find_buffer(func, name).data.name: [index_map_text(m)] for name, m in layouts.items() if known.get(name) is None
    }
    named = replace(func, name=NAME)
    if not together:
        schedule = Schedule(named, allowed=frozenset())
    else:
        schedule = Schedule(
            replace(named, attrs=named.attrs.with_value(LAYOUT_TRANSFORMATIONS, together)), allowed=frozenset()
        )
        schedule.apply(ApplyBufferTransforms())
    for name, index_map in layouts.items():
        if known.get(name) is not None:
            schedule.apply(TransformLayout(ROOT, name, index_map_text(index_map), known[name]))
    return schedule
