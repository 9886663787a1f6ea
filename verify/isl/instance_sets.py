"""Iteration domains as sets and relations between instances, in one isl context and one space of symbols for all
programs of a rewrite. Everything is exact; otherwise NotQuasiAffine is raised. Part of the trusted computing base.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from layoutproof.ir.expr import Expr, IntImm, Var, compare, widen
from layoutproof.ir.interval import Interval
from layoutproof.ir.node import Node
from layoutproof.ir.operators import CompareOp
from layoutproof.ir.visit import walk
from layoutproof.verify.isl.decode import Decoder, pieces_of
from layoutproof.verify.isl.encode import Encoder, NotQuasiAffine
from layoutproof.verify.isl.operations import bounds_of, coalesced, maps_of, sets_of
from layoutproof.verify.isl.space import (
    DEFAULT_OPERATIONS,
    Late,
    NamedSpace,
    NoAnswer,
    is_spent,
    isl,
    limited,
    map_from_affs,
    new_context,
)
from layoutproof.verify.program.evidence import UNRECORDED, Gathered
from layoutproof.verify.program.instances import Dim, Guard, IterationDomain, ranges_of
from layoutproof.verify.program.statement import NotModelled

_LARGE = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Instances:
    """An exact iteration domain as a set without a tuple name, with the encoder of expressions over its dims."""

    space: NamedSpace
    encoder: Encoder
    points: isl.Set

    def map_to(self, outputs: Sequence[Expr]) -> isl.Map:
        """Instance -> the values of expressions, without tuple names. Raises NotModelled."""
        with _exactly_modelled():
            return map_from_affs(self.space, [self.encoder.function(e) for e in outputs], self.points)


@contextmanager
def _exactly_modelled() -> Iterator[None]:
    try:
        yield
    except NotQuasiAffine as problem:
        raise NotModelled(problem.reason, problem.expr) from problem


Known: TypeAlias = tuple[tuple[Var, ...], tuple[Expr, ...], tuple[tuple[Var, Interval], ...]]
_MOST_KNOWN, _MOST_DOMAINS = 2, 512


class _Sets:
    """One context, and what of it depends on nothing but what is known of the symbols."""

    def __init__(self) -> None:
        self.ctx = new_context()
        self.nested = False
        self.context: isl.Set | None = None
        self._instances: dict[tuple[tuple[Dim, ...], tuple[Guard, ...]], Instances] = {}

    def instances(self, dims: tuple[Dim, ...], guards: tuple[Guard, ...], make: Callable[[], Instances]) -> Instances:
        """The instances in some loops under some guards, made where they are not there."""
        found = self._instances.get((dims, guards))
        if found is None:
            found = make()
            if len(self._instances) >= _MOST_DOMAINS:
                self._instances.clear()
            self._instances[dims, guards] = found
        return found


_SETS: OrderedDict[Known, _Sets] = OrderedDict()


def _sets_of(known: Known) -> _Sets:
    """The sets that programs share of which the same is known: those of a schedule's steps."""
    found = _SETS.pop(known, None)
    if found is None or is_spent(found.ctx) or found.nested:
        found = _Sets()
    _SETS[known] = found
    if len(_SETS) > _MOST_KNOWN:
        _SETS.popitem(last=False)
    return found


class Workspace:
    """One isl context and one space of symbols for all programs of a rewrite.

    `assumed` are conditions on symbols (one that isl cannot express is left out, which allows more values), `ranges`
    bounds symbols. `operations` bounds each outermost `limited` block. Answers of integer sets are `gathered`.
    """

    def __init__(
        self,
        symbols: Sequence[Var],
        assumed: Sequence[Expr],
        ranges: Mapping[Var, Interval],
        operations: int = DEFAULT_OPERATIONS,
        gathered: Gathered = UNRECORDED,
    ) -> None:
        self.symbols = tuple(dict.fromkeys(symbols))
        self.operations, self.gathered = operations, gathered
        known = (self.symbols, tuple(assumed), tuple(ranges.items()))
        # Evidence is gathered of sets that nothing else has touched.
        self._sets = _Sets() if gathered.is_recording else _sets_of(known)
        self.ctx = self._sets.ctx
        self.params = tuple(dict.fromkeys(symbol.name for symbol in self.symbols))
        self.fitting: tuple[Expr, ...] = ()
        """Conditions on symbols with which index arithmetic fits its types; not part of the sets."""
        if self._sets.context is None:
            with self.limited():
                self._sets.context = self._context(assumed, ranges)
        self.context: isl.Set = self._sets.context

    @contextmanager
    def limited(self) -> Iterator[isl.Context]:
        """Bounds isl's work inside by the workspace's operations; a nested block shares its budget.

        Raises BudgetExceeded, and NotModelled where isl fails for another reason.
        """
        if self._sets.nested:
            yield self.ctx
            return
        self._sets.nested = True
        try:
            with limited(self.operations, self.ctx):
                yield self.ctx
        except isl.Error as problem:
            raise NotModelled(f"isl could not go on: {problem}") from problem
        finally:
            self._sets.nested = False

    def space(self, names: Sequence[str]) -> NamedSpace:
        """The space of some dims over the symbols."""
        return NamedSpace(self.ctx, names, self.params)

    def _context(self, assumed: Sequence[Expr], ranges: Mapping[Var, Interval]) -> isl.Set:
        """The values of the symbols that are allowed, as a set without dims."""
        space = self.space(())
        encoder = Encoder(space)
        points = space.universe()
        for variable, interval in ranges.items():
            if variable.name not in space:
                continue
            function = encoder.function(Var(variable.name, variable.dtype))
            # The bounds of types only make the sets larger; without them more values are allowed.
            if -_LARGE < interval.low:
                points = points.intersect(function.ge_set(encoder.constant(int(interval.low))))
            if interval.high < _LARGE:
                points = points.intersect(function.le_set(encoder.constant(int(interval.high))))
        for condition in assumed:
            try:
                points = points.intersect(encoder.set_of(condition))
            except NotQuasiAffine:
                continue
        return coalesced(points)

    def instances(self, domain: IterationDomain) -> Instances:
        """All instances of an iteration domain. Raises NotModelled for a bound or guard that is not quasi-affine."""
        return self._sets.instances(
            tuple(domain.dims),
            tuple(domain.guards),
            lambda: self.restricted(self.boxed(domain.dims), domain.guards),
        )

    def boxed(self, dims: Sequence[Dim]) -> Instances:
        """All values of some loops."""
        return self._sets.instances(tuple(dims), (), lambda: self._boxed(dims))

    def _boxed(self, dims: Sequence[Dim]) -> Instances:
        space = self.space([dim.var.name for dim in dims])
        plain = Encoder(space)
        points = space.universe().intersect_params(self.context.params())
        with _exactly_modelled():
            for dim in dims:
                variable, start = plain.function(dim.var), plain.function(dim.start)
                points = points.intersect(variable.ge_set(start)).intersect(
                    variable.lt_set(start.add(plain.function(dim.extent)))
                )
        return Instances(space, Encoder(space, points, ranges=ranges_of(dims)), points)

    def restricted(self, instances: Instances, guards: Sequence[Guard]) -> Instances:
        """The instances where conditions hold."""
        points = instances.points
        with _exactly_modelled():
            for guard in guards:
                points = points.intersect(instances.encoder.set_of(guard.condition, guard.holds))
        if not guards:
            return instances
        points = coalesced(points)
        return Instances(instances.space, Encoder(instances.space, points, ranges=instances.encoder.ranges), points)


Points: TypeAlias = "isl.Set"
Link: TypeAlias = "isl.Map"
Sources: TypeAlias = "isl.UnionSet"
if not TYPE_CHECKING:
    Relation = Late(lambda: isl.UnionMap)  # a class that must not be loaded at import
else:
    Relation: TypeAlias = isl.UnionMap


# Products of numbers of pieces and of quotients: usual steps are ten times below, those of a second above. So are
# quotients of one piece, such as digits under XOR have.
_MANY, _QUOTIENTS, _DEEP = 40, 2_000, 120


@dataclass(frozen=True, slots=True)
class Region:
    """Points over named dims, without a tuple name, with the encoder of expressions over them."""

    encoder: Encoder
    points: Points

    @property
    def is_empty(self) -> bool:
        """Whether there is no point at all."""
        return bool(self.points.is_empty())

    def within(self, points: Points) -> Region:
        """The part inside further points (of any tuple name). Raises NoAnswer where that is too much work."""
        _check_size(self.points, points)
        return Region(self.encoder, coalesced(self.points.intersect(unnamed(points))))

    def outside(self, points: Points) -> Region:
        """The part outside. Raises NoAnswer where that is too much work."""
        _check_size(self.points, points)
        return Region(self.encoder, coalesced(self.points.subtract(unnamed(points))))

    def split(self, condition: Expr) -> tuple[Region, Region]:
        """The points where a condition holds, and the others. Raises NotQuasiAffine."""
        holds, fails = self.encoder.set_of(condition), self.encoder.set_of(condition, False)
        return Region(self.encoder, self.points.intersect(holds)), Region(self.encoder, self.points.intersect(fails))

    def constant(self, expr: Expr) -> int | None:
        """The one value of an integer expression on the region, for every value of the symbols, if it has one."""
        function = self.encoder.function(expr).intersect_domain(self.points)
        if function.domain().is_empty():
            return 0
        found = bounds_of(function)
        return found[0] if found is not None and found[0] == found[1] else None

    def always_equal(self, first: Expr, second: Expr) -> bool:
        """Whether two integer expressions agree on the whole region."""
        return bool(self.points.intersect(self.encoder.set_of(compare(CompareOp.NE, first, second))).is_empty())

    def fits(self, expr: Expr) -> bool:
        """Whether no part of an integer expression leaves its type on the region."""
        return all(self._in_type(part) for part in _parts(expr))

    def _in_type(self, expr: Expr) -> bool:
        function = self.encoder.function(expr)
        low, high = self.encoder.constant(expr.dtype.min_int), self.encoder.constant(expr.dtype.max_int)
        beyond = function.lt_set(low).union(function.gt_set(high))
        return bool(self.points.intersect(beyond).is_empty())

    def named(self, name: str) -> Points:
        """The points with a tuple name."""
        return self.points.set_tuple_name(name)


def _check_size(first: Points, second: Points) -> None:
    """Refuse sets of many pieces with many quotients: they take isl minutes, but few operations by its count."""
    mine, theirs = first.n_basic_set(), second.n_basic_set()
    if mine * theirs >= _MANY and _quotients(first) * theirs + _quotients(second) * mine > _QUOTIENTS:
        raise NoAnswer("sets of instances fall into too many pieces with too many quotients")
    if _deepest(first) + _deepest(second) > _DEEP:
        raise NoAnswer("a set of instances has too many quotients")


def _quotients(points: Points) -> int:
    return sum(piece.dim(isl.dim_type.div) for piece in points.get_basic_sets())


def _deepest(points: Points) -> int:
    return max((piece.dim(isl.dim_type.div) for piece in points.get_basic_sets()), default=0)


def joined(regions: Sequence[Region]) -> Region:
    """All points of regions over the same dims, at least one."""
    first, *others = regions
    if not others:
        return first
    points = first.points
    for other in others:
        points = points.union(other.points)
    return Region(first.encoder, coalesced(points))


def covers(parts: Iterable[Region], whole: Region) -> bool:
    """Whether each point of `whole` is in one of the parts, so that what holds on each of these holds on all of it."""
    for part in parts:
        if part.points.plain_is_equal(whole.points):
            return True
        whole = whole.outside(part.points)
    return whole.is_empty


def _parts(expr: Expr) -> Iterator[Expr]:
    seen: set[Node] = set()
    for node in walk(expr):
        if isinstance(node, Expr) and node.dtype.is_integer and not isinstance(node, IntImm | Var) and node not in seen:
            seen.add(node)
            yield node


def unnamed(points: Points) -> Points:
    """The points without a tuple name."""
    return points.reset_tuple_id() if points.has_tuple_id() else points


def function_between(
    encoder: Encoder, name: str, outputs: Sequence[Expr], target: str, where: Expr | None = None
) -> isl.Map:
    """The map from points of the encoder's space, `name`, to the outputs, `target`. Raises NotQuasiAffine."""
    result = map_from_affs(encoder.space, [encoder.function(output) for output in outputs])
    if where is not None:
        result = result.intersect_domain(encoder.set_of(where))
    return result.set_tuple_name(isl.dim_type.in_, name).set_tuple_name(isl.dim_type.out, target)


def agreement(first: Relation, second: Relation, name: str, like: Points) -> Points:
    """Where two relations lead from one point of the tuple `name` to one and the same place; both are single valued."""
    common = first.intersect(second).domain()
    return part_of(common, name, like)


def part_of(points: Sources, name: str, like: Points) -> Points:
    """The points of one tuple in a union; `like` is a set of that tuple's space."""
    space = like.set_tuple_name(name).get_space()
    return points.extract_set(space)


def from_tuple(relation: Relation, name: str, called: str) -> Relation:
    """The part of a relation that leads from the tuple `name`, the tuple called otherwise."""
    result = isl.UnionMap.empty(relation.get_space())
    for each in maps_of(relation):
        if each.get_tuple_name(isl.dim_type.in_) == name:
            result = result.union(isl.UnionMap.from_map(each.set_tuple_name(isl.dim_type.in_, called)))
    return result


def only(points: Points) -> Sources:
    """One set as a union."""
    return isl.UnionSet.from_set(points)


def no_relation(points: Points) -> Relation:
    """The empty relation over the parameters of `points`."""
    return isl.UnionMap.empty(points.get_space().params())


def no_points(points: Points) -> Sources:
    """The empty union of sets over the parameters of `points`."""
    return isl.UnionSet.empty(points.get_space().params())


def relations(maps: Sequence[isl.Map], points: Points) -> Relation:
    """Maps as one relation."""
    result = no_relation(points)
    for each in maps:
        result = result.union(isl.UnionMap.from_map(each))
    return result


def tuples_of(points: Sources) -> Iterator[tuple[str, Points]]:
    """The sets of a union by tuple name, in alphabetical order so that everything after is the same in every run."""
    found = [(each.get_tuple_name() if each.has_tuple_name() else "", each) for each in sets_of(points)]
    yield from sorted(found, key=lambda pair: pair[0])


def links_of(relation: Relation, name: str) -> Iterator[tuple[str, Link]]:
    """The parts of a relation from the tuple `name`, by the name of their target, in alphabetical order."""
    here = [each for each in maps_of(relation) if each.get_tuple_name(isl.dim_type.in_) == name]
    found = [
        (each.get_tuple_name(isl.dim_type.out) if each.has_tuple_name(isl.dim_type.out) else "", each) for each in here
    ]
    yield from sorted(found, key=lambda pair: pair[0])


def without_dim(points: Points, position: int) -> Points:
    """The points with one coordinate projected away."""
    return points.project_out(isl.dim_type.set, position, 1)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a relation: on `points`, with the relation's tuple name, `link` leads to the values of `outputs`."""

    points: Points
    link: Link
    outputs: tuple[Expr, ...]


def pieces_said(workspace: Workspace, link: Link, dims: Sequence[Dim], targets: Sequence[Dim]) -> Iterator[Piece]:
    """The parts of a single valued relation, from points over `dims`, that expressions over `dims` and symbols give,
    each output in the type of its target. Other parts are left out.
    """
    # Numbers of one kind go together whatever their widths; other mixtures are not decoded.
    if len({v.dtype.kind for v in (*workspace.symbols, *(dim.var for dim in (*dims, *targets)))}) > 1:
        return
    encoder = workspace.boxed(dims).encoder
    decoder = Decoder(encoder.space, {v.name: v for v in (*workspace.symbols, *(dim.var for dim in dims))})
    for where, piece in pieces_of(isl.PwMultiAff.from_map(link)):
        try:
            outputs = tuple(widen(decoder.affine(piece.get_aff(k)), dim.var.dtype) for k, dim in enumerate(targets))
            stated = function_between(encoder, _name(link, isl.dim_type.in_), outputs, _name(link, isl.dim_type.out))
            region = Region(encoder, in_types(encoder, workspace, unnamed(where)))
            part = link.intersect_domain(where)
            if stated.intersect_domain(where).is_equal(part) and all(region.fits(output) for output in outputs):
                yield Piece(where, part, outputs)
        except (NotQuasiAffine, ValueError):
            # The numbers are too large for an expression.
            continue


def in_types(encoder: Encoder, workspace: Workspace, points: Points) -> Points:
    """The points where symbols have values of their types, with which index arithmetic has too."""
    for condition in workspace.fitting:
        try:
            points = points.intersect(encoder.set_of(condition))
        except NotQuasiAffine:
            continue
    for symbol in workspace.symbols:
        value = encoder.function(symbol)
        low, high = encoder.constant(symbol.dtype.min_int), encoder.constant(symbol.dtype.max_int)
        points = points.intersect(value.ge_set(low)).intersect(value.le_set(high))
    return points


def _name(link: Link, kind: isl.dim_type) -> str:
    name = link.get_tuple_name(kind)
    assert name is not None
    return name
