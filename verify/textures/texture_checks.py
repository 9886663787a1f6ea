"""What must hold of a lowered program so that its textures can be images of a device, beside what holds of every
program.

An image is read and written by whole texels, has limits to its size, and wraps no coordinate: each is an obligation
with a verdict of its own. `check_program` has the others, races between whole texels among them. Limits that only some
sizes keep are asked of every call; `size_conditions` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Not, Var
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.node import Node
from layoutproof.ir.operators import CompareOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, Let
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables, walk
from layoutproof.verify.faults.bounds import prove_access_in_bounds
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
from layoutproof.verify.program.instances import Access, AccessKind, IterationDomain
from layoutproof.verify.program.questions import Because, Search, compare_integers
from layoutproof.verify.textures.texel_places import Texture, find_textures, is_texture, texel_places
from layoutproof.verify.textures.texel_races import prove_texel_races, prove_texel_writes
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Verdict


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """The largest image that a device takes, in texels, and the most layers of an array of images."""

    width: int
    height: int
    layers: int = 2048

    def of(self, direction: str) -> int:
        """The limit for "width", "height" or "layers"."""
        return {"width": self.width, "height": self.height, "layers": self.layers}[direction]


# What OpenCL asks at least of devices that have images (2.0, 1.2), and what small ones have. 2048 layers are the least
# everywhere.
PROFILES: Mapping[str, DeviceLimits] = MappingProxyType(
    {f"{size}x{size}": DeviceLimits(size, size) for size in (16384, 8192, 4096)}
)


@dataclass(frozen=True, slots=True)
class SizeCondition:
    """A precondition of calls: `expr`, over symbols and integers, is true. `about` is its subject in words."""

    expr: Expr
    about: str


def check_texels(func: PrimFunc, limits: DeviceLimits, *, where: Expr | None = None) -> tuple[Verdict, ...]:
    """The obligations of every texture that a lowered, flattened function accesses, each with its own verdict.

    In this order, for each texture: it is an image; its size; coordinates inside; each write covers its texel or is its
    only writer; no texel read that another work item writes; nothing undefined stored. Then opaque calls,
    and that no two parameters are one memory. Without textures there is nothing but a refusal of parameters that are.
    `where` is a condition on symbols that the caller vouches for. Raises LayoutproofError for a malformed layout
    record.
    """
    return check_texel_facts(Facts.of(func, where), limits)


def check_texel_facts(facts: Facts, limits: DeviceLimits) -> tuple[Verdict, ...]:
    """`check_texels` for a program that was read already."""
    textures, verdicts = find_textures(facts)
    undefined = _undefined_names(facts.program.function)
    found = list(verdicts)
    for texture in textures:
        found.append(_prove_size(facts, texture, limits))
        found += _prove_inside(facts, texture)
        places = texel_places(facts, texture)
        found += prove_texel_writes(facts, texture, places)
        found += prove_texel_races(facts, texture, places)
        found += (_prove_defined(facts, access, undefined) for access in texture.of_kind(AccessKind.WRITE))
    if found:
        found += _obstacles(facts)
    return (*found, *_prove_apart(facts, bool(found)))


def size_conditions(func: PrimFunc, limits: DeviceLimits, *, where: Expr | None = None) -> tuple[SizeCondition, ...]:
    """The preconditions of `check_texels`: sizes of textures that symbols may take past the limits."""
    facts = Facts.of(func, where)
    textures, _ = find_textures(facts)
    return tuple(condition for texture in textures for condition in _conditions(facts, texture, limits))


# Sizes


@dataclass(frozen=True, slots=True)
class _Size:
    """How many texels a texture has in a direction, and the device's limit on them."""

    texture: str
    direction: str
    texels: Expr
    limit: int

    @property
    def fits(self) -> Expr:
        return compare_integers(CompareOp.LE, self.texels, self.limit)


def _sizes(texture: Texture, limits: DeviceLimits) -> Iterator[_Size]:
    for direction, texels in texture.sizes:
        yield _Size(texture.name, direction, texels, limits.of(direction))


def _conditions(facts: Facts, texture: Texture, limits: DeviceLimits) -> Iterator[SizeCondition]:
    for size in _sizes(texture, limits):
        if not facts.search(IterationDomain(), Not(size.fits)).is_empty:
            yield SizeCondition(
                size.fits, f"the {size.direction} of texture {size.texture}, at most {size.limit} texels"
            )


def _prove_size(facts: Facts, texture: Texture, limits: DeviceLimits) -> Verdict:
    """Within the limits for all symbols, or some (a precondition); refuted where none keeps to them."""
    watch = facts.watch()
    deep = f", and {limits.layers} layers" if len(texture.sizes) > 2 else ""
    what = f"texture {texture.name} is at most {limits.width} by {limits.height} texels{deep}"
    claim = Claim(ClaimKind.OTHER, what, about=("texture-size", texture.name))
    engine, asked = STRUCTURE, list[str]()
    for size in _sizes(texture, limits):
        over = facts.search(IterationDomain(), Not(size.fits))
        if over.is_empty:
            engine = over.engine
        elif not free_variables(size.fits) or facts.search(IterationDomain(), size.fits).is_empty:
            return _too_large(facts, size, over, claim, watch)
        else:
            asked.append(expr_text(size.fits, Style.PLAIN))
    if asked:
        claim = replace(claim, head=f"precondition: {claim}")
        return proved(claim, STRUCTURE, watch, f"precondition: {', '.join(asked)}")
    return proved(claim, engine, watch)


def _too_large(facts: Facts, size: _Size, over: Search, claim: Claim, watch: Stopwatch) -> Verdict:
    point, limit, direction = over.point, size.limit, size.direction
    number = int(evaluate(size.texels, point)) if point is not None and facts.happens(IterationDomain(), point) else 0
    if point is None or number <= limit:
        return left_open(claim, over, watch)
    values = visible(IterationDomain(), point, facts.program)
    at = f" at {values_text(values)}, and too many at any sizes that are allowed" if values else ""
    shown = {"buffer": size.texture, "direction": direction, "texels": number, "limit": limit, "values": values}
    text = f"the {direction} of {size.texture} is {number} texels{at}; the device takes {limit}"
    return refuted(claim, over.engine, shown, text, watch)


# Coordinates


def _prove_inside(facts: Facts, texture: Texture) -> Iterator[Verdict]:
    """One verdict an access: no coordinate leaves the image, so that how a sampler would wrap it plays no part."""
    seen: set[tuple[object, ...]] = set()
    for access in texture.accesses:
        key = (access.buffer, access.indices, access.domain.dims, access.domain.guards, access.node.span)
        if key not in seen:
            seen.add(key)
            yield prove_access_in_bounds(facts, access)


# What is stored


def _undefined_names(func: PrimFunc) -> frozenset[Var]:
    """The variables that stand for a value in which something undefined is."""
    lets = [node for node in walk(func.body) if isinstance(node, Let)]
    found: set[Var] = set()
    size = -1
    while len(found) != size:
        size = len(found)
        found |= {let.var for let in lets if _is_undefined(let.value, frozenset(found))}
    return frozenset(found)


def _is_undefined(value: Node, names: frozenset[Var]) -> bool:
    return any(isinstance(node, Undef) or (isinstance(node, Var) and node in names) for node in walk(value))


def _prove_defined(facts: Facts, access: Access, names: frozenset[Var]) -> Verdict:
    """No undefined value is stored: a texel has no channel that is left alone."""
    watch = facts.watch()
    what, about = f"write {access.text} stores a value", ("defined-texel", access.text)
    claim = Claim(ClaimKind.OTHER, what, access.place, about=about)
    assert isinstance(access.node, BufferStore)
    if not _is_undefined(access.node.value, names):
        return proved(claim, STRUCTURE, watch)
    found = facts.search(access.domain)
    if found.is_empty:
        return proved(claim, found.engine, watch, "it is never executed")
    hint = "remove_store_undef takes such stores out"
    if found.point is None or not facts.happens(access.domain, found.point):
        return unknown(claim, found.engine, f"undef is stored if it is executed, and that is not known; {hint}", watch)
    values = visible(access.domain, found.point, facts.program)
    at = f" at {values_text(values)}" if values else ""
    if access.data_dependent:
        return unknown(claim, found.engine, f"undef is stored{at}, depending on data; {hint}", watch)
    shown = {"buffer": access.buffer.name, "place": str(access.place), "values": values}
    return refuted(claim, found.engine, shown, f"undef is stored{at}; {hint}", watch)


# What is around textures


def _obstacles(facts: Facts) -> Iterator[Verdict]:
    """One verdict for each opaque part of the program, which could reach a texture."""
    for obstacle in facts.program.obstacles:
        where = obstacle.spot.place_of(obstacle.node)
        what = "textures are reached by loads and stores only"
        claim = Claim(ClaimKind.OTHER, what, where, about=("texture-access",))
        yield unknown(claim, STRUCTURE, f"{obstacle.what} is not looked into", facts.watch())


def _prove_apart(facts: Facts, textured: bool) -> Iterator[Verdict]:
    """That no two parameters are one memory, where one of them is a texture or `noalias` makes them `restrict`."""
    function = facts.program.function
    watch = facts.watch()
    claim = Claim(ClaimKind.OTHER, "no two parameters are one memory", about=("apart",))
    for first, second in combinations(function.buffers, 2):
        if first.data == second.data and (function.noalias or is_texture(first) or is_texture(second)):
            why = (
                "noalias promises that they do not overlap"
                if function.noalias
                else "an image is one argument of a kernel"
            )
            shown = {"first": first.name, "second": second.name, "data": first.data.name}
            yield refuted(
                claim, STRUCTURE, shown, f"{first.name} and {second.name} are both {first.data.name}, and {why}", watch
            )
            return
    if not textured:
        return
    written = {access.data for access in facts.program.accesses if access.kind is AccessKind.WRITE}
    if len(function.buffers) > 1 and not function.noalias and written & {buffer.data for buffer in function.buffers}:
        yield unknown(
            claim, STRUCTURE, "parameters may overlap: the function does not assume noalias", watch, Because.OVERLAP
        )
    else:
        yield proved(claim, STRUCTURE, watch, "the function assumes noalias" if function.noalias else None)
