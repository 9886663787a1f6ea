"""Which memory of a lowered program is a texture, how large it is in texels, which texel each access touches, and which
writes cover the texels that they touch. The last physical axis counts the channels of texels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import counted
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import FALSE, TRUE, Expr, IntImm, Var, const, logical_or
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.verify.algebra.radix import Polynomial, factors_of, stride_radices
from layoutproof.verify.faults.bounds import Place, digits_in_range, in_box
from layoutproof.verify.faults.facts import STRUCTURE, Facts, proved, refuted
from layoutproof.verify.faults.reads import record_shape
from layoutproof.verify.program.instances import Access, AccessKind, Dim
from layoutproof.verify.program.questions import above, below
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Verdict

TEXTURE = "global.texture"
RGBA = 4
_LOOKS = (AccessKind.READ, AccessKind.WRITE)
_Axis = frozenset[tuple[tuple[Expr, ...], int]]


@dataclass(frozen=True, slots=True, eq=False)
class Texture:
    """An image that kernels access: its memory, the view of it by physical axes, and what is done with it.

    `view.shape` counts elements of `view.dtype`, which may have lanes. `unit` is the number of scalars that the
    coarsest access touches at once, a texel at least.
    """

    data: Var
    name: str
    view: Buffer
    channels: int
    accesses: tuple[Access, ...]
    unit: int

    @property
    def sizes(self) -> tuple[tuple[str, Expr], ...]:
        """The number of texels in each direction, by its name, over the symbols and the integers."""
        *outer, last = (Polynomial.of(extent) for extent in self.view.shape)
        scalars = last.times(Polynomial({(): self.view.dtype.lanes}))
        across = scalars.divided(Polynomial({(): self.channels}))[0]
        named = zip(("width", "height", "layers")[: self.view.rank], (across, *reversed(outer)), strict=True)
        return tuple((name, texels.to_expr()) for name, texels in named)

    def of_kind(self, kind: AccessKind) -> tuple[Access, ...]:
        """The reads, or the writes, in the order of the text."""
        return tuple(access for access in self.accesses if access.kind is kind)


def is_texture(buffer: Buffer) -> bool:
    """Whether a buffer is declared as texture memory."""
    return buffer.scope.startswith(TEXTURE)


def channels_of(buffer: Buffer) -> int:
    """4 if the last axis holds a multiple of 4 scalars for all symbols, read off its text; else 1."""
    scalars = Polynomial.of(buffer.shape[-1]).times(Polynomial({(): buffer.dtype.lanes}))
    return RGBA if all(coefficient % RGBA == 0 for coefficient in scalars.terms.values()) else 1


def find_textures(facts: Facts) -> tuple[tuple[Texture, ...], tuple[Verdict, ...]]:
    """The textures that the program accesses, and one verdict each that an image can be what the text makes of them.

    Of those that cannot, the verdict alone is given.
    """
    found: list[Texture] = []
    verdicts: list[Verdict] = []
    accesses: dict[Var, list[Access]] = {}
    for access in facts.program.accesses:
        if access.kind in _LOOKS:
            accesses.setdefault(access.data, []).append(access)
    for data, touching in accesses.items():
        owner = facts.program.allocation(data)
        if not is_texture(owner if owner is not None else touching[0].buffer) and not any(
            is_texture(a.buffer) for a in touching
        ):
            continue
        watch = facts.watch()
        name = owner.name if owner is not None else touching[0].buffer.name
        claim = Claim(
            ClaimKind.OTHER,
            f"texture {name} is an image of two axes, or an array of them of three, that every view sees alike",
            about=("texture-shape", name),
        )
        problem = next(_problems(name, owner, touching), None)
        if problem is not None:
            reason, shown = problem
            verdicts.append(refuted(claim, STRUCTURE, {"buffer": name, **shown}, reason, watch))
            continue
        verdicts.append(proved(claim, STRUCTURE, watch))
        view = touching[0].buffer
        channels = channels_of(view)
        unit = max(channels, *(access.buffer.dtype.lanes for access in touching))
        found.append(Texture(data, name, view, channels, tuple(touching), unit))
    return tuple(found), tuple(verdicts)


def _problems(name: str, owner: Buffer | None, accesses: list[Access]) -> Iterator[tuple[str, dict[str, object]]]:
    """Why memory is no image: in words, and as data."""
    first = accesses[0].buffer
    if first.rank not in (2, 3):
        axes, given = first.rank, first.rank if owner is None else owner.rank
        physical = counted(axes, "physical axis", "physical axes")
        made = f", made of {counted(given, 'axis', 'axes')}" if given != axes else ""
        hint = f"set_axis_separators({name!r}, ...) says after which axes a new one begins"
        yield f"{name} has {physical}{made}; an image has 2, an array of images 3: {hint}", {"axes": axes}
    for access in accesses:
        view = access.buffer
        if not is_texture(view):
            yield (
                f"{access.text} ({access.place}) sees it in scope {view.scope}",
                {"view": view.name, "scope": view.scope},
            )
        if view.strides or view.elem_offset != IntImm(0, view.elem_offset.dtype):
            yield f"the view {view.name} has strides or an offset, and images have none", {"view": view.name}
        if view.dtype.element != first.dtype.element:
            yield (
                f"the view {view.name} holds {view.dtype}, not {first.dtype}: an image has one type",
                {"view": view.name},
            )
        if view.rank != first.rank or axes_of(view) != axes_of(first):
            yield (
                f"the views {first.name} and {view.name} have other extents: an image has one shape",
                {"view": view.name},
            )
        if view.rank in (2, 3) and not _fills(view, accesses):
            yield f"elements of {view.dtype.lanes} lanes do not fill texels", {"view": view.name}
        if access.domain.allocations.get(access.data, 0) > 0:
            loops = [dim.var.name for dim in access.domain.dims[: access.domain.allocations[access.data]]]
            yield (
                f"{name} is allocated inside the loops {', '.join(loops)}; an image is made before the kernel runs",
                {"loops": loops},
            )


def axes_of(view: Buffer) -> tuple[_Axis, ...]:
    """How many scalars each axis counts, in a form that is equal where the polynomials are."""
    *outer, last = (Polynomial.of(extent) for extent in view.shape)
    scalars = last.times(Polynomial({(): view.dtype.lanes}))
    return tuple(frozenset(extent.terms.items()) for extent in (*outer, scalars))


def _fills(view: Buffer, accesses: list[Access]) -> bool:
    """Whether elements begin where units do."""
    unit = max(channels_of(view), *(access.buffer.dtype.lanes for access in accesses))
    return all(unit % access.buffer.dtype.lanes == 0 for access in accesses) and unit % channels_of(view) == 0


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
    interval = facts.interval(within, place.access.domain)
    inside = 0 <= interval.low and interval.high < unit
    return Place(place.access, (*outer, const(0, within.dtype) if inside else within // const(unit, within.dtype)))


def _radices(facts: Facts, texture: Texture) -> Iterator[tuple[Sequence[Expr], ...]]:
    """Radices per axis, the last counting scalars: factors of the extents, or the strides of the writes."""
    *outer, last = texture.view.shape
    lanes = texture.view.dtype.lanes
    extents = (*outer, last * const(lanes, last.dtype) if lanes > 1 else last)
    yield tuple(factors_of(extent) for extent in extents)
    symbols = frozenset(facts.program.symbols)
    indices = [_scalars(access) for access in texture.of_kind(AccessKind.WRITE)]
    suggested = (
        stride_radices((index[axis] for index in indices), extent, symbols) for axis, extent in enumerate(extents)
    )
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
        digits = digits_in_range(facts, access.domain, index, parts) if len(parts) > 1 else [index]
        if digits is None:
            return None
        coordinates += digits
    return _in_units(facts, Place(access, tuple(coordinates)), texture.unit)


def _of_unit(access: Access, texture: Texture) -> Expr:
    last = access.indices[-1]
    size = texture.unit // access.buffer.dtype.lanes
    return last // const(size, last.dtype) if size > 1 else last


def partial_where(access: Access, texture: Texture) -> Expr:
    """Where a write leaves out a channel of the texel that it touches: a condition on its instances, FALSE where it
    never does.

    Lanes that are not known to lie side by side are taken for a part of a texel.
    """
    size, lanes, last = texture.channels, access.buffer.dtype.lanes, access.indices[-1]
    if lanes % size == 0:
        return FALSE
    lane = next((dim for dim in access.domain.dims if dim.lane), None)
    count = lane.extent.value if lane is not None and isinstance(lane.extent, IntImm) else 1
    if lane is None or not _is_run(last, lane) or count * lanes < size:
        return TRUE
    first = substitute(last, {lane.var: const(0, lane.var.dtype)}) * const(lanes, last.dtype)
    texel = last * const(lanes, last.dtype) // const(size, last.dtype) * const(size, last.dtype)
    return logical_or(
        below(texel, first), above(texel + const(size, last.dtype), first + const(count * lanes, last.dtype))
    )


def _is_run(index: Expr, lane: Dim) -> bool:
    """Whether the lanes of an index follow each other."""
    terms = Polynomial.of(index).terms
    others = {v for monomial in terms if monomial != (lane.var,) for atom in monomial for v in free_variables(atom)}
    return terms.get((lane.var,)) == 1 and lane.var not in others


def texels_at(access: Access, texture: Texture, point: Mapping[str, int]) -> set[Texel]:
    """The texels of the element accessed at a point. Raises Trap or KeyError if an index has no value."""
    *outer, column = (int(evaluate(index, point)) for index in access.indices)
    lanes = access.buffer.dtype.lanes
    return {(*outer, (column * lanes + part) // texture.channels) for part in range(lanes)}


def channels_written(access: Access, texture: Texture, point: Mapping[str, int], texel: Texel) -> list[int]:
    """The channels that the whole statement of a point writes. Raises Trap or KeyError as `texels_at`."""
    found = set[int]()
    across = [dim for dim in access.domain.dims if dim.lane]
    counts = [range(int(evaluate(dim.extent, point))) for dim in across]
    parts = range(access.buffer.dtype.lanes)
    for *numbers, part in product(*counts, parts):
        env = {**point, **{dim.var.name: number for dim, number in zip(across, numbers, strict=True)}}
        *outer, column = (int(evaluate(index, env)) for index in access.indices)
        scalar = column * len(parts) + part
        if (*outer, scalar // texture.channels) == texel:
            found.add(scalar % texture.channels)
    return sorted(found)
