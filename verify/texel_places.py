"""Which texel an access touches, as coordinates that agree exactly when the texels do, and which writes cover the texels that they touch.

With symbolic extents the physical axes of a texture are products, which integer sets cannot state. Their digits, one for each axis that
was flattened, are proved to be in range, as for other memory (see `cells`); the last digit, which counts channels, is left out.
Accesses that touch several texels at once are compared by the larger units of the coarsest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import FALSE, TRUE, Expr, IntImm, const, logical_or
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.subst import substitute
from layoutproof.ir.visit import free_variables
from layoutproof.verify.bounds import digits_in_range
from layoutproof.verify.cells import Place, in_box
from layoutproof.verify.facts import Facts
from layoutproof.verify.instances import Access, AccessKind, Dim
from layoutproof.verify.integers import above, below
from layoutproof.verify.padding_cells import record_shape
from layoutproof.verify.radix import Polynomial, factors_of, stride_radices
from layoutproof.verify.texel_images import Texture

# A place in texture memory: layer, row and column of a texel, or row and column.
Texel = tuple[int, ...]


def texel_places(facts: Facts, texture: Texture) -> list[Place]:
    """Every access of a texture with the coordinates of its texel, or of the unit that its texel lies in."""
    boxed = _by_box(facts, texture)
    if boxed is not None:
        return boxed
    for radices in _radices(facts, texture):
        places = [_by_digits(facts, texture, access, radices) for access in texture.accesses]
        found = [place for place in places if place is not None]
        if len(found) == len(places):
            return found
    return [Place(access, (*access.indices[:-1], _of_unit(access, texture))) for access in texture.accesses]


def _by_box(facts: Facts, texture: Texture) -> list[Place] | None:
    """By the indices in the box of the memory's layout record, where it has one whose last axis holds whole units."""
    record = layout_records(facts.program.function).get(texture.data.name)
    if record is None:
        return None
    box = record_shape(record, facts.program.symbols)
    last = box[-1] if box else None
    if not isinstance(last, IntImm) or last.value % texture.unit:
        return None
    found = []
    for access in texture.accesses:
        place = in_box(facts, access, box)
        if place is None:
            return None
        found.append(_in_units(facts, place, texture.unit))
    return found


def _in_units(facts: Facts, place: Place, unit: int) -> Place:
    """A place whose last coordinate counts units, not scalars."""
    *outer, within = place.coordinates
    if unit == 1:
        return place
    interval = facts.interval(within, place.access.scene)
    inside = 0 <= interval.low and interval.high < unit
    return Place(place.access, (*outer, const(0, within.dtype) if inside else within // const(unit, within.dtype)))


def _radices(facts: Facts, texture: Texture) -> Iterator[tuple[Sequence[Expr], ...]]:
    """Radices for each axis, the last counting scalars: the factors of the extents, or what the strides of the writes suggest."""
    *outer, last = texture.view.shape
    lanes = texture.view.dtype.lanes
    extents = (*outer, last * const(lanes, last.dtype) if lanes > 1 else last)
    yield tuple(factors_of(extent) for extent in extents)
    symbols = frozenset(facts.program.symbols)
    indices = [_scalars(access) for access in texture.of_kind(AccessKind.WRITE)]
    suggested = (stride_radices((index[axis] for index in indices), extent, symbols) for axis, extent in enumerate(extents))
    yield tuple(found if found else factors_of(extent) for found, extent in zip(suggested, extents, strict=True))


def _scalars(access: Access) -> tuple[Expr, ...]:
    """The indices of the first scalar of the element that is accessed."""
    *outer, last = access.indices
    lanes = access.buffer.dtype.lanes
    return (*outer, last * const(lanes, last.dtype) if lanes > 1 else last)


def _by_digits(facts: Facts, texture: Texture, access: Access, radices: Sequence[Sequence[Expr]]) -> Place | None:
    last = radices[-1][-1]
    if texture.unit > 1 and not (isinstance(last, IntImm) and last.value % texture.unit == 0 and last.value > 0):
        return None
    coordinates: list[Expr] = []
    for index, parts in zip(_scalars(access), radices, strict=True):
        digits = digits_in_range(facts, access.scene, index, parts) if len(parts) > 1 else [index]
        if digits is None:
            return None
        coordinates += digits
    return _in_units(facts, Place(access, tuple(coordinates)), texture.unit)


def _of_unit(access: Access, texture: Texture) -> Expr:
    last = access.indices[-1]
    size = texture.unit // access.buffer.dtype.lanes
    return last // const(size, last.dtype) if size > 1 else last


def partial_where(access: Access, texture: Texture) -> Expr:
    """Where a write leaves out a channel of the texel that it touches: a condition on its instances, FALSE where it never does.

    Lanes that are not known to lie side by side are taken for a part of a texel.
    """
    size, lanes, last = texture.channels, access.buffer.dtype.lanes, access.indices[-1]
    if lanes % size == 0:
        return FALSE
    lane = next((dim for dim in access.scene.dims if dim.lane), None)
    count = lane.extent.value if lane is not None and isinstance(lane.extent, IntImm) else 1
    if lane is None or not _is_run(last, lane) or count * lanes < size:
        return TRUE
    first = substitute(last, {lane.var: const(0, lane.var.dtype)}) * const(lanes, last.dtype)
    texel = last * const(lanes, last.dtype) // const(size, last.dtype) * const(size, last.dtype)
    return logical_or(below(texel, first), above(texel + const(size, last.dtype), first + const(count * lanes, last.dtype)))


def _is_run(index: Expr, lane: Dim) -> bool:
    """Whether the lanes of an index follow each other."""
    terms = Polynomial.of(index).terms
    others = {v for monomial in terms if monomial != (lane.var,) for atom in monomial for v in free_variables(atom)}
    return terms.get((lane.var,)) == 1 and lane.var not in others


def texels_at(access: Access, texture: Texture, point: Mapping[str, int]) -> set[Texel]:
    """The texels of the one element that is accessed at a point. Raises Trap or KeyError where an index has no value there."""
    *outer, column = (int(evaluate(index, point)) for index in access.indices)
    lanes = access.buffer.dtype.lanes
    return {(*outer, (column * lanes + part) // texture.channels) for part in range(lanes)}


def channels_written(access: Access, texture: Texture, point: Mapping[str, int], texel: Texel) -> list[int]:
    """Which channels of a texel the whole statement writes that the point belongs to. Raises Trap or KeyError as `texels_at`."""
    found = set[int]()
    across = [dim for dim in access.scene.dims if dim.lane]
    counts = [range(int(evaluate(dim.extent, point))) for dim in across]
    parts = range(access.buffer.dtype.lanes)
    for *numbers, part in product(*counts, parts):
        env = {**point, **{dim.var.name: number for dim, number in zip(across, numbers, strict=True)}}
        *outer, column = (int(evaluate(index, env)) for index in access.indices)
        scalar = column * len(parts) + part
        if (*outer, scalar // texture.channels) == texel:
            found.add(scalar % texture.channels)
    return sorted(found)
