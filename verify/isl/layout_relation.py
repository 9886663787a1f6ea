"""Index maps as isl's relations, `{ [i, j] -> [4i + j] : 0 <= i < 8 and 0 <= j < 4 }`, in both directions. Whatever is
decoded is encoded again and compared, so that a map is returned only if it is the relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import LayoutproofError, Source, error
from layoutproof.ir.expr import TRUE, Expr, IntImm, Select, Var, compare, const, logical_and
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.notation import Context, Notation, WrittenLayout, check_agrees, whole
from layoutproof.ir.operators import CompareOp
from layoutproof.ir.visit import free_variables
from layoutproof.verify.isl.decode import Decoder, pieces_of
from layoutproof.verify.isl.encode import Encoder, NotQuasiAffine
from layoutproof.verify.isl.operations import coalesced, extreme_of, function_of, point_of
from layoutproof.verify.isl.relation import make_relation
from layoutproof.verify.isl.space import BudgetExceeded, NamedSpace, integer, isl, limited, map_from_affs, new_context

OPERATIONS = 500_000
_HELP = "such as { [i, j] -> [4*i + j] : 0 <= i < 8 and 0 <= j < 4 }"


def to_isl(index_map: IndexMap, shape: Sequence[Expr] | None = None, where: Expr | None = None) -> isl.Map:
    """The map as a relation on the box of `shape`, or, without one, on all indices.

    Raises LayoutproofError where integer sets cannot state it, naming the part.
    """
    names = [v.name for v in index_map.inputs]
    used = (*index_map.outputs, *(shape if shape is not None else ()), *(() if where is None else (where,)))
    symbols = list(dict.fromkeys(v.name for e in used for v in free_variables(e) if v.name not in names))
    outputs = {f"p{axis}": output for axis, output in enumerate(index_map.outputs)}
    try:
        with limited(OPERATIONS, new_context()) as ctx:
            if shape is not None:
                found = make_relation(ctx, names, shape, symbols, TRUE if where is None else where, outputs).relation
            else:
                encoder = Encoder(NamedSpace(ctx, names, symbols))
                domain = None if where is None else encoder.set_of(where)
                found = map_from_affs(encoder.space, [encoder.function(o) for o in index_map.outputs], domain)
            for position, name in enumerate(names):
                found = found.set_dim_name(isl.dim_type.in_, position, name)
            for position, name in enumerate(outputs):
                found = found.set_dim_name(isl.dim_type.out, position, name)
            return found
    except (NotQuasiAffine, BudgetExceeded) as problem:
        raise error(codes.NOT_WRITTEN, f"isl cannot state the map: {problem}") from problem


def read_isl(text: str, context: Context, name: str = "<layout>") -> WrittenLayout:
    """The map of a relation. Raises LayoutproofError for text that is none, and where an index has two images."""
    source = Source(name, text)
    try:
        with limited(OPERATIONS, new_context()) as ctx:
            try:
                relation = isl.Map.read_from_str(ctx, text)
            except isl.Error as problem:
                if "syntax error" not in str(problem) and "read_from_str" not in str(problem):
                    raise
                message = "the text is no relation in isl's syntax"
                raise error(codes.NOTATION, message, whole(source), help=_HELP) from problem
            return _Reading(source, relation, context).layout()
    except (NotQuasiAffine, BudgetExceeded, ValueError) as problem:
        # Nodes refuse numbers that their types do not hold.
        raise error(codes.NOTATION, f"the relation was not read: {problem}", whole(source)) from problem


def from_isl(relation: Any, shape: Sequence[Expr] | None = None) -> WrittenLayout:
    """The map of an `islpy.Map` or of its text. Raises LayoutproofError as `read_isl`."""
    text = relation if isinstance(relation, str) else str(relation)
    return read_isl(text, Context(None if shape is None else tuple(shape)), "<isl>")


@dataclass(slots=True)
class _Reading:
    source: Source
    relation: isl.Map
    context: Context

    def fail(self, message: str) -> LayoutproofError:
        return error(codes.NOTATION, message, whole(self.source), help=_HELP)

    def layout(self) -> WrittenLayout:
        """The whole answer."""
        relation = self.relation.reset_tuple_id(isl.dim_type.in_).reset_tuple_id(isl.dim_type.out)
        names = _names(relation)
        params = [relation.get_dim_name(isl.dim_type.param, k) for k in range(relation.dim(isl.dim_type.param))]
        if set(names) & set(params):
            raise self.fail(f"the name {next(iter(set(names) & set(params)))} is an index and a parameter")
        self._check_function(relation, names)
        space = NamedSpace(relation.get_ctx(), names, [p for p in params if p is not None])
        outputs = self._outputs(relation, space)
        domain = _plain(relation.domain())
        shape = self._shape(domain, space)
        inputs = tuple(Var(name) for name in names)
        where = _restriction(domain, space, shape)
        return WrittenLayout(Notation.ISL, self.source.text, IndexMap(inputs, tuple(outputs)), shape, where)

    def _check_function(self, relation: isl.Map, names: Sequence[str]) -> None:
        if relation.domain().is_empty():
            raise self.fail("the relation is empty: no index has an image")
        if relation.is_single_valued():
            return
        pairs = relation.reverse().apply_range(relation)  # images of one index
        pairs = pairs.intersect(isl.Map.lex_lt(relation.get_space().range()))
        count = relation.dim(isl.dim_type.out)
        point = point_of(pairs.wrap())
        values = [integer(point.get_coordinate_val(isl.dim_type.set, k)) for k in range(2 * count)]
        first, second = values[:count], values[count:]
        both = _preimage(relation, first).intersect(_preimage(relation, second))
        index = point_of(both)
        at = [integer(index.get_coordinate_val(isl.dim_type.set, k)) for k in range(len(names))]
        raise self.fail(f"the relation is no map: {at} goes to {first} and to {second}")

    def _outputs(self, relation: isl.Map, space: NamedSpace) -> list[Expr]:
        """The outputs, by pieces where it takes several; checked to be the relation."""
        pieces = pieces_of(function_of(relation))
        decoder = Decoder(space)
        count = relation.dim(isl.dim_type.out)
        outputs = [decoder.affine(pieces[-1][1].get_aff(k)) for k in range(count)]
        for domain, piece in reversed(pieces[:-1]):
            condition = decoder.condition(_plain(domain).gist(_plain(relation.domain())))
            values = [decoder.affine(piece.get_aff(k)) for k in range(count)]
            outputs = [v if v == o else Select(condition, v, o) for v, o in zip(values, outputs, strict=True)]
        encoder = Encoder(space, _plain(relation.domain()))
        stated = map_from_affs(space, [encoder.function(o) for o in outputs], _plain(relation.domain()))
        if not _unnamed(stated).is_equal(_unnamed(relation)):
            raise self.fail("the relation was read as another map; write it as a lambda")
        return outputs

    def _shape(self, domain: isl.Set, space: NamedSpace) -> tuple[Expr, ...]:
        if self.context.shape is not None:
            if len(self.context.shape) != len(space.dims):
                check_agrees([const(1)] * len(space.dims), self.context, self.source)
            return self.context.shape
        return tuple(self._extent(domain, position, space) for position in range(len(space.dims)))

    def _extent(self, domain: isl.Set, position: int, space: NamedSpace) -> Expr:
        rank = len(space.dims)
        name = space.dims[position]
        values = domain.project_out(isl.dim_type.set, position + 1, rank - position - 1)
        values = values.project_out(isl.dim_type.set, 0, position)
        line = isl.LocalSpace.from_space(values.get_space())
        negative = isl.PwAff.from_aff(isl.Aff.var_on_domain(line, isl.dim_type.set, 0)).neg().pos_set()
        if not values.intersect(negative).is_empty():
            raise self.fail(f"the index {name} goes below 0: logical indices start at 0")
        if not values.dim_has_any_upper_bound(isl.dim_type.set, 0):
            raise error(
                codes.NOTATION_INCOMPLETE,
                f"the index {name} has no upper bound: bound it in the relation, or give the logical shape",
                whole(self.source),
            )
        pieces = pieces_of(extreme_of(values, True))
        if len(pieces) != 1:
            raise self.fail(f"the upper bound of {name} takes a case distinction: give the logical shape")
        largest = Decoder(NamedSpace(space.ctx, (), space.params)).affine(pieces[0][1].get_aff(0))
        return const(largest.value + 1) if isinstance(largest, IntImm) else _plus_one(largest)


def _plus_one(expr: Expr) -> Expr:
    """`n - 1 + 1` as `n`."""
    inner = getattr(expr, "lhs", None)
    minus_one = isinstance(inner, Expr) and expr == inner - 1
    return inner if minus_one and isinstance(inner, Expr) else expr + 1


def _restriction(domain: isl.Set, space: NamedSpace, shape: Sequence[Expr]) -> Expr | None:
    """The condition that keeps the domain inside the box; None where they are the same."""
    encoder = Encoder(space)
    box = [
        compare(CompareOp.LT, Var(name), extent) for name, extent in zip(space.dims, shape, strict=True)
    ]  # fmt: skip
    low = [compare(CompareOp.GE, Var(name), const(0)) for name in space.dims]
    whole_box = encoder.set_of(logical_and(*box, *low)) if box else space.universe()
    if whole_box.is_subset(domain):
        return None
    condition = Decoder(space).condition(coalesced(domain.intersect(whole_box)).gist(whole_box))
    if not encoder.set_of(condition).intersect(whole_box).is_equal(domain.intersect(whole_box)):
        raise NotQuasiAffine(condition, "the domain of the relation was read as another set")
    return condition


def _names(relation: isl.Map) -> list[str]:
    """The names of the indices, fresh ones where the relation has none, or has expressions."""
    found: list[str] = []
    for position in range(relation.dim(isl.dim_type.in_)):
        name = (
            relation.get_dim_name(isl.dim_type.in_, position)
            if relation.has_dim_name(isl.dim_type.in_, position)
            else None
        )
        plain = name is not None and name.isidentifier() and name not in found
        found.append(name if plain and name is not None else f"i{position}")
    return found if len(set(found)) == len(found) else [f"i{k}" for k in range(len(found))]


def _plain(points: isl.Set) -> isl.Set:
    """A set without names of dimensions, as `NamedSpace` makes them."""
    params = points.dim(isl.dim_type.param)
    names = [points.get_dim_name(isl.dim_type.param, k) or f"n{k}" for k in range(params)]
    space = isl.Space.set_alloc(points.get_ctx(), params, points.dim(isl.dim_type.set))
    for position, name in enumerate(names):
        space = space.set_dim_name(isl.dim_type.param, position, name)
    return isl.Set.universe(space).intersect(points.reset_tuple_id())


def _unnamed(relation: isl.Map) -> isl.Map:
    return relation.reset_tuple_id(isl.dim_type.in_).reset_tuple_id(isl.dim_type.out)


def _preimage(relation: isl.Map, image: Sequence[int]) -> isl.Set:
    for position, number in enumerate(image):
        relation = relation.fix_val(isl.dim_type.out, position, isl.Val.int_from_si(relation.get_ctx(), number))
    return relation.domain()
