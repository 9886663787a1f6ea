"""One question about an index map, prepared for the engines: names, extents, assumptions on symbols, and the
components, each with its part of the physical box. Outputs and inputs that share no variable are independent: their
proofs, predicates and images combine by product. Part of the trusted computing base.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from layoutproof.ir import codes
from layoutproof.ir.codes import TOO_DEEP
from layoutproof.ir.diagnostic import counted, error
from layoutproof.ir.dtype import INT32, INT64, DType
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import TRUE, Binary, Expr, IntImm, Var, const, logical_and
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.semantics import Trap
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import children, free_variables, fresh
from layoutproof.verify.algebra.lift import Lifter, number
from layoutproof.verify.algebra.polynomials import GiveUp, Poly, constant, constant_of, multiply
from layoutproof.verify.algebra.ring import Ring
from layoutproof.verify.algebra.symbols import raise_lower_bounds, symbol_forms

Extent = int | Expr
Shape = Sequence[int | Expr]

MAX_DEPTH = 150
MAX_OPERANDS = 20_000
SHALLOW = 12
_CELL_NAME = re.compile(r"p\d+")


@dataclass(slots=True)
class Component:
    """Axes and inputs that share variables, and nothing else does."""

    axes: tuple[int, ...]
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """The question as read: the map, as given and with its own names, the shape, symbols, and each output's inputs."""

    given: IndexMap
    index_map: IndexMap
    shape: tuple[Expr, ...]
    extents: tuple[Extent, ...]
    where: Expr
    symbols: tuple[str, ...]
    uses: tuple[tuple[int, ...], ...]

    def domain_text(self) -> str:
        """The box as people read it: `[n, 64]`, with the side condition where there is one."""
        box = f"[{', '.join([str(e) if isinstance(e, int) else expr_text(e, 'plain') for e in self.extents])}]"
        return box if self.where == TRUE else f"{box} where {expr_text(self.where, 'plain')}"


@dataclass(slots=True)
class Problem:
    """A map on a box, with its normal forms in `ring`.

    `atoms` and `extent_polys` are the inputs and their extents; an input of extent 1 has no atom. An output without a
    normal form is None, with the reason in `why_not`. `input_forms` has the forms of all names that the map may use.
    """

    reading: Reading
    ring: Ring
    symbol_forms: dict[str, Poly]
    extent_polys: tuple[Poly | None, ...]
    atoms: tuple[int | None, ...]
    outputs: tuple[Poly | None, ...]
    input_forms: dict[str, Poly]
    why_not: dict[int, str] = field(default_factory=dict)
    shown: dict[int, Expr] = field(default_factory=dict)

    @property
    def given(self) -> IndexMap:
        """The map as the user wrote it."""
        return self.reading.given

    @property
    def index_map(self) -> IndexMap:
        """The map with inputs whose names differ from the symbols'."""
        return self.reading.index_map

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The extents as expressions."""
        return self.reading.shape

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The extents, numbers where they are."""
        return self.reading.extents

    @property
    def where(self) -> Expr:
        """The side condition on the symbols."""
        return self.reading.where

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the symbols."""
        return self.reading.symbols

    @property
    def concrete(self) -> bool:
        """Whether the shape and the map are free of symbols."""
        return not self.symbols

    def numbers(self, inputs: Sequence[int]) -> tuple[int, ...]:
        """The extents of some inputs of a concrete problem."""
        found = tuple(self.extents[k] for k in inputs)
        assert all(isinstance(e, int) for e in found)
        return tuple(e for e in found if isinstance(e, int))

    def assumptions(self) -> str | None:
        """The assumptions on symbols with the side condition; None for a concrete question."""
        if not self.symbols:
            return None
        stated = "" if self.where == TRUE else f" with {expr_text(self.where, 'plain')}"
        names = ", ".join(self.symbols)
        empty = "where an extent is 0 there is no logical index and nothing to place"
        return f"for all {names} of at least 0{stated}; {empty}"

    @property
    def inhabited(self) -> Expr:
        """The side condition, and that no extent that is one symbol is 0, where there would be no logical index."""
        facts = [extent >= 1 for extent in dict.fromkeys(self.shape) if isinstance(extent, Var)]
        return logical_and(*([] if self.where == TRUE and facts else [self.where]), *facts)

    def domain_text(self) -> str:
        """The box as people read it: `[n, 64]`, with the side condition where there is one."""
        return self.reading.domain_text()


# Checking the question


def coerce_shape(shape: Shape) -> tuple[Expr, ...]:
    """The extents as expressions; numbers as constants. Raises LayoutproofError for anything that is not an extent."""
    return tuple(
        item if isinstance(item, Expr) else _extent_constant(position, item) for position, item in enumerate(shape)
    )


def _extent_constant(position: int, item: Any) -> Expr:
    expected = f"extent {position} of the shape is {item!r}: an integer, a name or an expression is expected"
    if isinstance(item, bool):
        raise error(codes.SHAPE, expected)
    try:
        extent = operator.index(item)
    except TypeError as problem:
        raise error(codes.SHAPE, expected) from problem
    if extent > INT64.max_int:
        raise error(
            codes.TOO_WIDE, f"extent {position} of the shape is {extent}: an index of 64 bits reaches {INT64.max_int}"
        )
    return number(extent) if 0 < extent <= INT32.max_int else const(extent)


def check_rank(index_map: IndexMap, rank: int) -> None:
    """Raise LayoutproofError where a map does not take as many indices as a shape has extents."""
    if len(index_map.inputs) != rank:
        takes, extents = counted(len(index_map.inputs), "index", "indices"), counted(rank, "extent", "extents")
        raise error(codes.RANK, f"the index map takes {takes}, the shape has {extents}")


def make_problem(given: IndexMap, shape: Shape, where: Expr | None = None) -> Problem:
    """The question, checked, in normal form. Raises LayoutproofError as `read_problem` does."""
    return with_forms(read_problem(given, shape, where))


def read_problem(given: IndexMap, shape: Shape, where: Expr | None = None) -> Reading:
    """The question, checked. Raises LayoutproofError (LP101 to LP108, LP130) for anything wrong with it."""
    extents = tuple(_extent(position, e) for position, e in enumerate(coerce_shape(shape)))
    exprs = tuple(number(e, INT32 if e <= INT32.max_int else INT64) if isinstance(e, int) else e for e in extents)
    names: dict[str, Var] = {v.name: v for e in extents if not isinstance(e, int) for v in free_variables(e)}
    condition = _condition(where)
    check_rank(given, len(extents))
    for position, (extent, v) in enumerate(zip(extents, given.inputs, strict=True)):
        if isinstance(extent, int) and extent > v.dtype.max_int:
            index = f"the index {v.name} of type {v.dtype} reaches {v.dtype.max_int}"
            raise error(codes.TOO_WIDE, f"extent {position} of the shape is {extent}: {index}")
    used = [_variables(axis, output) for axis, output in enumerate(given.outputs)]
    inputs = {v.name: k for k, v in enumerate(given.inputs)}
    for v in free_variables(condition) if condition is not TRUE else ():
        names.setdefault(v.name, v)
    for found in used:
        for name, v in found.items():
            if name not in inputs:
                names.setdefault(name, v)
    for name in names:
        if _CELL_NAME.fullmatch(name):
            raise error(
                codes.RESERVED_NAME, f"a shape may not use the name {name}: p0, p1, ... are the physical indices"
            )
    internal = _renamed_apart(given, names) if any(name in inputs for name in names) else given
    uses = tuple([tuple(sorted([inputs[name] for name in found if name in inputs])) for found in used])
    return Reading(given, internal, exprs, extents, condition, tuple(names), uses)


def _renamed_apart(given: IndexMap, taken: Iterable[str]) -> IndexMap:
    """The map with names of inputs that are not taken."""
    names: list[str] = []
    for v in given.inputs:
        names.append(fresh(v.name, {*taken, *names}))
    return given.rename(names)


def _extent(position: int, expr: Expr) -> Extent:
    if isinstance(expr, IntImm) and expr.value >= 1:
        return expr.value
    if not expr.dtype.is_integer or expr.dtype.lanes != 1:
        raise error(codes.SHAPE, f"extent {position} of the shape is a {expr.dtype}, not an integer")
    if free_variables(expr):
        return expr
    value = evaluate(expr, {})
    if value < 1:
        raise error(codes.SHAPE, f"extent {position} of the shape is {value}: an extent is at least 1")
    return int(value)


def _condition(where: Expr | None) -> Expr:
    if where is None:
        return TRUE
    if not isinstance(where, Expr):
        raise error(
            codes.SIDE_CONDITION,
            f"the side condition is {where!r}: an expression, or text such as 'n >= 1', is expected",
        )
    if not where.dtype.is_bool or where.dtype.lanes != 1:
        raise error(codes.SIDE_CONDITION, f"the side condition is a {where.dtype}, not a truth value")
    return where


_SMALL = 64  # operands that are counted one by one


def written_size(expr: Expr) -> int:
    """The number of operands of an expression written out; parts that are shared in memory count each time."""
    count, stack = 0, [expr]
    while stack and count < _SMALL:
        count += 1
        stack += [child for child in children(stack.pop()) if isinstance(child, Expr)]
    if not stack:
        return count
    # With parts that are shared this may be very many: each is looked at once.
    sizes: dict[int, int] = {}
    stack = [expr]
    while stack:
        node = stack[-1]
        below = [child for child in children(node) if isinstance(child, Expr)]
        missing = [child for child in below if id(child) not in sizes]
        if missing:
            stack.extend(missing)
        else:
            sizes[id(node)] = 1 + sum(sizes[id(child)] for child in below)
            stack.pop()
    return sizes[id(expr)]


def _variables(axis: int, expr: Expr) -> dict[str, Var]:
    """The variables of an output, by name. Raises LayoutproofError for one that is too deep or too large."""
    found: dict[str, Var] = {}
    level: list[Expr] = [expr]
    for depth in range(MAX_DEPTH):
        below: list[Expr] = []
        for node in level:
            if isinstance(node, Var):
                found[node.name] = node
            elif isinstance(node, Binary):
                below += (node.lhs, node.rhs)
            elif not isinstance(node, IntImm):
                below += (child for child in children(node) if isinstance(child, Expr))
        if not below:
            # With shared subexpressions few nodes may be very many operands when written out.
            if depth >= SHALLOW and written_size(expr) > MAX_OPERANDS:
                raise error(TOO_DEEP, f"axis {axis} of the index map has more than {MAX_OPERANDS} operands written out")
            return found
        # A shared subexpression counts once per level, so that no level outgrows the expression.
        level = list({id(node): node for node in below}.values()) if len(below) > 64 else below
    raise error(TOO_DEEP, f"axis {axis} of the index map is nested deeper than {MAX_DEPTH} levels")


def with_forms(reading: Reading) -> Problem:
    """The question in the normal form of a ring."""
    ring = Ring()
    shown: dict[int, Expr] = {}
    names, condition, extents = reading.symbols, reading.where, reading.extents
    forms = symbol_forms(ring, names, condition, shown) if names else {}
    lifter = Lifter(ring, forms)
    polys: list[Poly | None] = []
    for extent in extents:
        try:
            poly = constant(extent) if isinstance(extent, int) else lifter.lift(extent)
        except GiveUp:
            poly = None
        if poly is not None and not isinstance(extent, int):
            raise_lower_bounds(ring, poly)
        polys.append(poly)
    atoms: list[int | None] = []
    values = dict(forms)
    for v, poly in zip(reading.index_map.inputs, polys, strict=True):
        if poly is not None and constant_of(poly) == 1:
            values[v.name] = {}
            atoms.append(None)
            continue
        form = ring.name(v.name, 0, None, unknown=True) if poly is None else ring.below(v.name, poly, unknown=True)
        ((atom,),) = form
        atoms.append(atom)
        values[v.name] = form
    problem = Problem(reading, ring, forms, tuple(polys), tuple(atoms), (), values, shown=shown)
    problem.outputs = _lift_outputs(problem, values)
    return problem


def _lift_outputs(problem: Problem, values: Mapping[str, Poly]) -> tuple[Poly | None, ...]:
    lifter = Lifter(problem.ring, values)
    outputs: list[Poly | None] = []
    for axis, output in enumerate(problem.index_map.outputs):
        try:
            outputs.append(lifter.lift(output))
        except (GiveUp, Trap) as reason:
            outputs.append(None)
            problem.why_not[axis] = str(reason)
    return tuple(outputs)


# Components


def components(problem: Problem) -> list[Component]:
    """Connected parts, in the order of their first axis; unused inputs are parts without axes.

    Inputs of extent 1 are constants: they connect nothing and belong to no component, nor do constant axes connect.
    """
    group: dict[int, int] = {}
    axes_of: dict[int, list[int]] = {}
    inputs_of: dict[int, list[int]] = {}
    for axis, uses in enumerate(problem.reading.uses):
        used = [k for k in uses if problem.atoms[k] is not None]
        joined = sorted({group[k] for k in used if k in group})
        home = joined[0] if joined else axis
        axes_of.setdefault(home, [])
        inputs_of.setdefault(home, [])
        for other in joined[1:]:
            axes_of[home] += axes_of.pop(other)
            inputs_of[home] += inputs_of.pop(other)
        axes_of[home].append(axis)
        inputs_of[home] += [k for k in used if k not in group]
        for k in inputs_of[home]:
            group[k] = home
    found = [
        Component(tuple(sorted(axes_of[h])), tuple(sorted(inputs_of[h])))
        for h in sorted(axes_of, key=lambda h: min(axes_of[h]))
    ]
    unused = [k for k, atom in enumerate(problem.atoms) if atom is not None and k not in group]
    return [*found, *(Component((), (k,)) for k in unused)]


@lru_cache(maxsize=256)
def cell_variable(axis: int, dtype: DType) -> Var:
    """`p<axis>`."""
    return Var(f"p{axis}", dtype)


@dataclass(slots=True)
class Part:
    """A component with its box: `sizes` of the axes with a closed form, `cells[axis]` the form of `p<axis>`, or 0."""

    problem: Problem
    axes: tuple[int, ...]
    inputs: tuple[int, ...]
    sizes: Mapping[int, Poly]
    cells: Mapping[int, Poly]
    cell_type: DType = INT32  # with which cells are written

    @property
    def names(self) -> list[str]:
        """The names of the inputs."""
        return [self.problem.index_map.inputs[k].name for k in self.inputs]

    @property
    def unit_names(self) -> list[str]:
        """The names of all inputs of extent 1, which the outputs may be written with."""
        problem = self.problem
        return [v.name for v, atom in zip(problem.index_map.inputs, problem.atoms, strict=True) if atom is None]

    @property
    def outputs(self) -> list[Expr]:
        """The output expressions of the axes."""
        return [self.problem.index_map.outputs[a] for a in self.axes]

    @property
    def extents(self) -> tuple[int, ...]:
        """The inputs' extents; concrete problems only."""
        return self.problem.numbers(self.inputs)

    @property
    def box(self) -> tuple[int, ...]:
        """The axes' extents; concrete problems only."""
        return tuple(self.sizes[a].get((), 0) for a in self.axes)

    def cell(self, axis: int) -> Expr:
        """`p<axis>`, or 0 where the axis has one cell."""
        return cell_variable(axis, self.cell_type) if self.cells[axis] else number(0, self.cell_type)

    def box_size(self) -> Poly | None:
        """The number of cells of the component's axes; None where an extent has no closed form."""
        result: Poly = constant(1)
        for axis in self.axes:
            if axis not in self.sizes:
                return None
            result = multiply(result, self.sizes[axis])
        return result

    def domain_size(self) -> Poly | None:
        """The number of logical indices of the component."""
        result: Poly = constant(1)
        for k in self.inputs:
            extent = self.problem.extent_polys[k]
            if extent is None:
                return None
            result = multiply(result, extent)
        return result
