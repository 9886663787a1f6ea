"""Every access lies inside its buffer, and which cell of memory it touches, as coordinates that agree exactly when the
cells do. A violation that data may or may not bring about is `unknown`, never `refuted`; a refutation is evaluated
again. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import gcd, prod

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.evaluate import evaluate, foreign_part
from layoutproof.ir.expr import Expr, IntImm, Var, const, is_zero, widen
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import ForKind
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.verify.algebra.radix import Polynomial, factors_of, split_digits, stride_radices
from layoutproof.verify.faults.facts import (
    STRUCTURE,
    Facts,
    Stopwatch,
    left_open,
    proved,
    refuted,
    unknown,
    values_text,
    visible,
)
from layoutproof.verify.faults.swizzles import has_swizzle, unswizzled
from layoutproof.verify.program.evidence import Digits
from layoutproof.verify.program.instances import Access, AccessKind, Dim, IterationDomain, ranges_of
from layoutproof.verify.program.questions import Because, Search, at_least, below, nothing
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Verdict


def prove_in_bounds(facts: Facts) -> tuple[Verdict, ...]:
    """One verdict per access, in text order: every index is in `[0, extent)` in every instance."""
    seen: dict[tuple[object, ...], None] = {}
    verdicts = []
    for access in facts.program.accesses:
        key = (access.buffer, access.indices, access.domain.dims, access.domain.guards, access.node.span)
        if key not in seen:
            seen[key] = None
            verdicts.append(prove_access_in_bounds(facts, access))
    return tuple(verdicts)


def prove_access_in_bounds(facts: Facts, access: Access) -> Verdict:
    """That one access stays inside its buffer."""
    watch = facts.watch()
    shape = ", ".join(expr_text(e, Style.PLAIN) for e in access.buffer.shape)
    what, about = f"{access.kind.value} {access.text} stays within [{shape}]", (access.kind.value, access.text, shape)
    claim = Claim(ClaimKind.WITHIN_BUFFER, what, access.place, about=about)
    engine = STRUCTURE
    undecided: Verdict | None = None
    for axis, (index, extent) in enumerate(zip(access.indices, access.buffer.shape, strict=True)):
        found = find_outside(facts, access.domain, index, extent)
        if found.is_empty:
            engine = max(engine, found.engine, key=_ORDER.index)
            continue
        verdict = _violation(facts, access, axis, found, claim, watch)
        if verdict.counterexample is not None:
            return verdict
        undecided = undecided if undecided is not None else verdict
    return undecided if undecided is not None else proved(claim, engine, watch)


# Engines by increasing power.
_ORDER = (STRUCTURE, "intervals", "isl", "mixed-radix", "z3")


def find_outside(facts: Facts, domain: IterationDomain, index: Expr, extent: Expr) -> Search:
    """An instance in which `index` is not in `[0, extent)`."""
    if isinstance(extent, IntImm):
        interval = facts.interval(index, domain)
        if interval.low >= 0 and interval.high < extent.value:
            return facts.by_intervals(domain, index, 0, extent.value - 1)
        found = facts.model.outside(domain, index, 0, extent.value - 1)
    else:
        low, high = facts.model.search(domain, below(index, 0)), facts.model.search(domain, at_least(index, extent))
        found = high if low.is_empty else low
    if found.is_empty or (found.point is not None and found.exact):
        return found
    for radices in (factors_of(extent), stride_radices((index,), extent, frozenset(facts.program.symbols))):
        digits = digits_in_range(facts, domain, index, radices) if len(radices) > 1 else None
        if digits is not None:
            facts.gathered.record(Digits(index, tuple(digits), tuple(radices), extent))
            return nothing("mixed-radix")
    return facts.decide(found, domain, below(index, 0), at_least(index, extent))


def digits_in_range(facts: Facts, domain: IterationDomain, index: Expr, radices: Sequence[Expr]) -> list[Expr] | None:
    """The mixed-radix digits of `index`, if each is proved to be in the range of its radix; else None."""
    if not radices:
        return None
    digits = split_digits(index, radices) if len(radices) > 1 else [index]
    return digits if all(_in_range(facts, domain, d, r) for d, r in zip(digits, radices, strict=True)) else None


def _in_range(facts: Facts, domain: IterationDomain, digit: Expr, radix: Expr) -> bool:
    if isinstance(radix, IntImm):
        interval = facts.interval(digit, domain)
        if interval.low >= 0 and interval.high < radix.value:
            return facts.by_intervals(domain, digit, 0, radix.value - 1).is_empty
        return facts.model.outside(domain, digit, 0, radix.value - 1).is_empty
    return (
        facts.model.search(domain, below(digit, 0)).is_empty
        and facts.model.search(domain, at_least(digit, radix)).is_empty
    )


def _violation(facts: Facts, access: Access, axis: int, found: Search, claim: Claim, watch: Stopwatch) -> Verdict:
    index = expr_text(access.indices[axis], Style.PLAIN)
    if found.point is None:
        return left_open(claim, found, watch, f"index {axis}, {index}: ")
    point = found.point
    values = visible(access.domain, point, facts.program)
    where = f" at {values_text(values)}" if values else ""
    numbers = replayed_index(facts, access, point)
    if numbers is None or not found.exact:
        return left_open(claim, found, watch, f"index {axis}, {index}: ")
    if access.data_dependent:
        return unknown(
            claim,
            found.engine,
            f"index {axis} depends on data, and may be {numbers[0][axis]}{where}",
            watch,
            Because.DATA,
        )
    seen = {
        "buffer": access.buffer.name,
        "place": str(access.place),
        "indices": numbers[0],
        "extents": numbers[1],
        "values": values,
    }
    return refuted(claim, found.engine, seen, f"{access.buffer.name}{numbers[0]} of {numbers[1]}{where}", watch)


def replayed_index(facts: Facts, access: Access, point: Mapping[str, int]) -> tuple[list[int], list[int]] | None:
    """Indices and extents at a point where the access happens and is out of bounds; None when either is not so."""
    if not facts.happens(access.domain, point):
        return None
    try:
        indices = [int(evaluate(index, point)) for index in access.indices]
        extents = [int(evaluate(extent, point)) for extent in access.buffer.shape]
    except (Trap, KeyError, TypeError):
        return None
    outside = any(not 0 <= i < e for i, e in zip(indices, extents, strict=True))
    return (indices, extents) if outside else None


PART = "part"


@dataclass(frozen=True, slots=True)
class Place:
    """An access and its cell. Where views differ in element size, one more dim counts the parts of an element."""

    access: Access
    coordinates: tuple[Expr, ...]


def places_of(facts: Facts, data: Var, structure: tuple[Expr, ...] | None = None) -> list[Place]:
    """Every access of a memory with its cell. `structure` is a shape that the memory is known to have, if any.

    Coordinates name cells in one way for all accesses, which need not be their indices.
    """
    places = _by_structure(facts, data, structure)
    cells = unswizzled([place.coordinates for place in places], frozenset(facts.program.symbols))
    return [replace(place, coordinates=cell) for place, cell in zip(places, cells, strict=True)]


def _by_structure(facts: Facts, data: Var, structure: tuple[Expr, ...] | None) -> list[Place]:
    accesses = list(facts.program.touching(data))
    views = {_view(a.buffer) for a in accesses}
    if len(views) == 1 and not accesses[0].buffer.strides and (len(accesses[0].indices) != 1 or structure is None):
        for radices in _flat_radices(facts, accesses) if accesses[0].indices else ():
            digits = _by_digits(facts, accesses, radices)
            if digits is not None:
                return digits
        return [Place(a, a.indices) for a in accesses]
    for radices in _candidates(facts, accesses, structure):
        digits = _by_digits(facts, accesses, radices)
        if digits is not None:
            return digits
    return _by_units(accesses)


def structured(facts: Facts, access: Access, shape: tuple[Expr, ...]) -> tuple[Expr, ...] | None:
    """The indices of an access in a memory of `shape`, flattened axes as digits; None if that is not proved."""
    if not is_row_major(access.buffer) or not is_zero(access.buffer.elem_offset):
        return None
    if access.buffer.shape == shape:
        return access.indices
    groups = _groups(access.buffer.shape, shape)
    if groups is None:
        return None
    found: list[Expr] = []
    for index, radices in zip(access.indices, groups, strict=True):
        digits = digits_in_range(facts, access.domain, index, radices)
        if digits is None:
            digits = _divided_digits(index, radices)
        if digits is None:
            return None
        found += digits
    return tuple(found)


def is_row_major(buffer: Buffer) -> bool:
    """Whether elements stand row by row: strides, if any, are numbers and say so."""
    weight: int | None = 1
    for extent, stride in zip(reversed(buffer.shape), reversed(buffer.strides), strict=True) if buffer.strides else ():
        if not (isinstance(stride, IntImm) and stride.value == weight):
            return False
        weight = weight * extent.value if isinstance(extent, IntImm) else None
    return True


def counted_bytes(root: Buffer, box: Sequence[Expr]) -> int | None:
    """The bytes of a cell of a layout record's box: the memory's elements, or their scalars; None if unknown."""
    if root.dtype.lanes == 1:
        return root.dtype.bytes
    elements, cells = (_product(shape) for shape in (root.shape, box))
    if elements.terms == cells.terms:
        return root.dtype.bytes
    scalars = elements.times(Polynomial({(): root.dtype.lanes}))
    return root.dtype.element.bytes if scalars.terms == cells.terms else None


def _product(shape: Sequence[Expr]) -> Polynomial:
    product = Polynomial({(): 1})
    for extent in shape:
        product = product.times(Polynomial.of(extent))
    return product


def in_box(facts: Facts, access: Access, box: tuple[Expr, ...]) -> Place | None:
    """An access with its cell in the box of the memory's layout record; of elements that are vectors where the box
    counts scalars, with the lane as one more dim. None where that is not proved.
    """
    root = facts.program.allocation(access.data)
    counted = counted_bytes(root, box) if root is not None else None
    if counted == access.buffer.dtype.element.bytes and access.buffer.dtype.lanes > 1:
        access = _by_scalars(access)
    if counted != access.buffer.dtype.bytes:
        return None
    cell = structured(facts, access, box)
    return None if cell is None else Place(access, cell)


def _by_scalars(access: Access) -> Access:
    """An access of a vector as one of each of its scalars."""
    buffer, lanes = access.buffer, access.buffer.dtype.lanes
    if buffer.strides or not is_zero(buffer.elem_offset) or not access.indices:
        return access
    dim = _part_of(access, lanes)
    return scalar_of(replace(access, domain=replace(access.domain, dims=(*access.domain.dims, dim))), dim.var)


def scalar_of(access: Access, lane: Expr) -> Access:
    """An access of a vector as one of the scalar in a lane; its buffer is row-major."""
    buffer, lanes = access.buffer, access.buffer.dtype.lanes
    *others, last = access.indices
    index = last * const(lanes, last.dtype) + widen(lane, last.dtype)
    shape = (*buffer.shape[:-1], buffer.shape[-1] * const(lanes, buffer.shape[-1].dtype))
    return replace(access, buffer=replace(buffer, dtype=buffer.dtype.element, shape=shape), indices=(*others, index))


def _part_of(access: Access, size: int) -> Dim:
    """A dim over the parts of an element."""
    part = Var(PART)
    names = {dim.var.name for dim in access.domain.dims}
    while part.name in names:
        part = Var(part.name + "_")
    return Dim(part, const(0), const(size), ForKind.SERIAL, lane=True)


def _divided_digits(index: Expr, radices: Sequence[Expr]) -> list[Expr] | None:
    """The digits by division, for constant radices but the first; right for every index in bounds."""
    if not radices:
        return []
    sizes = [radix.value for radix in radices[1:] if isinstance(radix, IntImm)]
    weight = prod(sizes)
    if len(sizes) != len(radices) - 1 or not 0 < weight <= index.dtype.max_int:
        return None
    digits: list[Expr] = []
    for size in (None, *sizes):
        weight = weight if size is None else weight // size
        quotient = index // const(weight, index.dtype) if weight > 1 else index
        digits.append(quotient if size is None else quotient % const(size, index.dtype))
    return digits


def _groups(flat: Sequence[Expr], shape: Sequence[Expr]) -> list[list[Expr]] | None:
    """The axes of `shape` whose product each axis of `flat` is; None where it is not so."""
    groups: list[list[Expr]] = []
    rest = list(shape)
    for extent in flat:
        wanted, product, group = Polynomial.of(extent), Polynomial.of(const(1)), list[Expr]()
        while rest and product != wanted:
            group.append(rest.pop(0))
            product = product.times(Polynomial.of(group[-1]))
        # Axes of extent 1 belong to what stands before them; a flat one may be left without any.
        while rest and product == wanted and Polynomial.of(rest[0]).constant == 1:
            group.append(rest.pop(0))
        if product != wanted:
            return None
        groups.append(group)
    return groups if not rest else None


_View = tuple[tuple[Expr, ...], tuple[Expr, ...], Expr, int]


def _view(buffer: Buffer) -> _View:
    return (buffer.shape, buffer.strides, buffer.elem_offset, buffer.dtype.bytes)


def _candidates(
    facts: Facts, accesses: Sequence[Access], structure: tuple[Expr, ...] | None
) -> Iterator[Sequence[Expr]]:
    if structure is not None:
        yield structure
    shapes = {a.buffer.shape for a in accesses if len(a.indices) > 1}
    if len(shapes) == 1:
        yield next(iter(shapes))
    if not shapes:
        yield from _flat_radices(facts, accesses)


def _flat_radices(facts: Facts, accesses: Sequence[Access]) -> Iterator[Sequence[Expr]]:
    """Radices, axis by axis, of flattened axes: the factors of the extents, or the strides of the stores."""
    shape = accesses[0].buffer.shape
    yield [factor for extent in shape for factor in factors_of(extent)]
    writes = [access.indices for access in accesses if access.kind is AccessKind.WRITE]
    symbols = frozenset(facts.program.symbols)
    suggested = (
        stride_radices((index[axis] for index in writes), extent, symbols) for axis, extent in enumerate(shape)
    )
    radices = [
        radix
        for found, extent in zip(suggested, shape, strict=True)
        for radix in (found if found else factors_of(extent))
    ]
    yield radices
    if len(shape) == 1 and any(has_swizzle(index) for (index,) in writes):
        # Threads that store a row part by part, and read it whole, have strides of their own.
        for cut in range(1, len(radices)):
            yield [_product(radices[:cut]).to_expr(), _product(radices[cut:]).to_expr()]


def _by_digits(facts: Facts, accesses: Sequence[Access], radices: Sequence[Expr]) -> list[Place] | None:
    if len(radices) < 2:
        return None
    sizes = {a.buffer.dtype.bytes for a in accesses}
    if len(sizes) != 1 or any(a.buffer.strides or not is_zero(a.buffer.elem_offset) for a in accesses):
        return None
    places = []
    for access in accesses:
        found = access.indices if access.buffer.shape == tuple(radices) else structured(facts, access, tuple(radices))
        if found is None:
            return None
        places.append(Place(access, found))
    return places


def _by_units(accesses: Sequence[Access]) -> list[Place]:
    unit = 0
    for access in accesses:
        unit = gcd(unit, access.buffer.dtype.bytes)
    return [_in_units(access, access.buffer.dtype.bytes // unit) for access in accesses]


def _in_units(access: Access, size: int) -> Place:
    number = element_number(access.buffer, access.indices)
    if size == 1:
        return Place(access, (number,))
    dim = _part_of(access, size)
    domain = replace(access.domain, dims=(*access.domain.dims, dim))
    return Place(
        replace(access, domain=domain), ((Polynomial.of(number * size).plus(Polynomial.of(dim.var))).to_expr(),)
    )


def element_number(buffer: Buffer, indices: Sequence[Expr]) -> Expr:
    """How many elements from the start of the memory `buffer[indices]` lies, as a polynomial written out."""
    total = Polynomial.of(buffer.elem_offset)
    if buffer.strides:
        for index, stride in zip(indices, buffer.strides, strict=True):
            total = total.plus(Polynomial.of(index).times(Polynomial.of(stride)))
        return total.to_expr()
    number = Polynomial({})
    for index, extent in zip(indices, buffer.shape, strict=True):
        number = number.times(Polynomial.of(extent)).plus(Polynomial.of(index))
    return total.plus(number).to_expr()


_MOST_CORNERS = 64


def always_outside(access: Access, index: Expr, extent: Expr) -> str | None:
    """An iteration in which an index is outside, and that every run has: at one of the ends of the loops."""
    domain, names = access.domain, {dim.var for dim in access.domain.dims}
    if domain.guards or domain.depends_on_data(index, extent) or not isinstance(extent, IntImm):
        return None
    if foreign_part(index) is not None or not names.issuperset(free_variables(index)):
        return None
    ranges = ranges_of(domain.dims)
    if len(ranges) < len(domain.dims) or any(last < first for first, last in ranges.values()):
        return None
    used = [v.name for v in free_variables(index)]
    for corner in islice(product(*(dict.fromkeys(ranges[name]) for name in used)), _MOST_CORNERS):
        values = dict(zip(used, corner, strict=True))
        try:
            inside = 0 <= evaluate(index, values) < extent.value
        except Trap:
            return None
        if not inside:
            return f" at {', '.join(f'{name} = {value}' for name, value in values.items())}"
    return None
