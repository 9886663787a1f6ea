"""When one access comes before another: the pairs of instances, as scenes over both, case by case.

The instances of an access that happen before a given one form one case for each loop around both (an earlier iteration of it, all
outer loops equal) and one for the text (all common loops equal, and standing before). Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.subst import substitute
from layoutproof.verify.cells import Place
from layoutproof.verify.instances import Dim, Guard, Scene, Unknown
from layoutproof.verify.integers import below, same
from layoutproof.verify.search import Cover

MARK = "'"


def same_cell(first: Place, second: Place, values: Mapping[Var, Expr]) -> tuple[Expr, ...]:
    """That both touch one cell, the second with variables replaced."""
    pairs = zip(first.coordinates, second.coordinates, strict=True)
    return tuple(same(a, substitute(b, values)) for a, b in pairs)


def joined(first: Place, second: Place, shared: int) -> tuple[Scene, dict[Var, Expr]]:
    """The instances of both whose first `shared` loops agree, and what the second's variables are called there.

    The first's guards are left out: they are for whoever asks about its instances to add.
    """
    here, there = first.access.scene, second.access.scene
    values: dict[Var, Expr] = {}
    dims: list[Dim] = list(here.dims)
    for position, dim in enumerate(there.dims):
        if position < shared:
            values[dim.var] = here.dims[position].var
            continue
        marked = Var(dim.var.name + MARK, dim.var.dtype)
        dims.append(replace(dim, var=marked, start=substitute(dim.start, values), extent=substitute(dim.extent, values)))
        values[dim.var] = marked
    unknowns = list(here.unknowns)
    for other in there.unknowns:
        marked = Var(other.var.name + MARK, other.var.dtype)
        unknowns.append(Unknown(marked, other.source))
        values[other.var] = marked
    guards = tuple(Guard(substitute(g.condition, values), g.holds, g.group) for g in there.guards)
    scene = replace(here, dims=tuple(dims), guards=guards, unknowns=tuple(unknowns), dropped=(*here.dropped, *there.dropped))
    return scene, values


def pairs_before(later: Place, earlier: Place) -> Iterator[Cover]:
    """Where `earlier` touches the cell of `later` before it, in the same allocation where the memory is a temporary.

    The cheap case first: the same iteration of all common loops; then earlier iterations, innermost loop first.
    """
    depth = later.access.scene.allocations.get(later.access.data, 0)
    if earlier.access.scene.allocations.get(earlier.access.data, 0) != depth:
        return
    before, common = _common(later.access.scene.time, earlier.access.scene.time)
    if before and common >= depth:
        scene, values = joined(later, earlier, common)
        yield Cover(scene, same_cell(later, earlier, values))
    for position in range(common - 1, depth - 1, -1):
        scene, values = joined(later, earlier, position)
        mine, theirs = later.access.scene.dims[position].var, earlier.access.scene.dims[position].var
        yield Cover(scene, (*same_cell(later, earlier, values), below(values[theirs], mine)))


def _common(later: tuple[int | Dim, ...], earlier: tuple[int | Dim, ...]) -> tuple[bool, int]:
    """Whether the second stands before the first in the text, and how many loops are around both."""
    loops = 0
    shared = min(len(later), len(earlier))  # one may stand deeper than the other
    for a, b in zip(later[:shared], earlier[:shared], strict=True):
        if isinstance(a, Dim) and a == b:
            loops += 1
        elif isinstance(a, int) and isinstance(b, int):
            if a != b:
                return b < a, loops
        else:
            return False, loops
    return False, loops
