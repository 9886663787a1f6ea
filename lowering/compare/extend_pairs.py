"""From a few pairs of instances to all of them, temporaries by guesses, simplest first.

A relation between all instances is restricted until it is a function: by the loads of parameters, by index parts of
values, and by the cells written; then by what known pairs have in common, by the layouts of temporaries, and last by
the order of iterations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from layoutproof.ir.expr import Expr, IntImm, Var, const
from layoutproof.lowering.compare.instance_pairs import Places, Supposed
from layoutproof.lowering.compare.program_model import Side
from layoutproof.lowering.compare.value_trees import Way
from layoutproof.verify.flow.models import NEW, OLD, RewriteModel
from layoutproof.verify.flow.stored_values import Form
from layoutproof.verify.isl.instance_sets import Link, function_between
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.isl.proposing import (
    by_pair,
    determines,
    in_relation,
    leaves_open,
    widened,
    with_coordinate,
    with_places,
)
from layoutproof.verify.program.statement import Read, Statement


def box_links(rewrite_model: RewriteModel, old: Var, new: Var) -> list[Link]:
    """Relations from the cells of an old memory to those of a new one, by the tuple names of accesses."""
    return [_link(rewrite_model, old, new)] if rewrite_model.old.cells[old] == rewrite_model.new.cells[new] else []


def _link(rewrite_model: RewriteModel, old: Var, new: Var) -> Link:
    box = rewrite_model.old.cells[old]
    names = [f"c{axis}" for axis in range(len(box))]
    cells = [Var(name, extent.dtype) for name, extent in zip(names, box, strict=True)]
    step = function_between(rewrite_model.encoder(names), f"{OLD}in_{old.name}", cells, f"{NEW}in_{new.name}")
    return step.intersect_domain(rewrite_model.before.cell_set(old))


@dataclass(frozen=True, slots=True)
class Extended:
    """Pairs of instances, at most one old instance for each new one. `wide` is the same function wherever nothing
    contradicts it, if there is one.
    """

    link: Link
    wide: Link | None = None


class Undecided(Exception):
    """Several old instances may go with a new one; `link` has all that may."""

    def __init__(self, link: Link) -> None:
        super().__init__("several old instances may go with a new one")
        self.link = link


@dataclass(slots=True)
class Extender:
    """Extends relations between instances of two statements. `theta` has those that were found."""

    rewrite_model: RewriteModel
    new: Side
    old: Side
    theta: Mapping[tuple[int, int], Link]
    places: Places
    supposed: Supposed

    def extended(self, mine: Form, theirs: Form, seed: Link, way: Way) -> Iterator[Extended]:
        """The pairs of instances of two statements that extend `seed`, the likeliest first; none if its pairs
        contradict the loads. Raises Undecided if several old instances remain for a new one.
        """
        places, way = self.supposed.agreeing(mine, theirs, way)
        fits = seed.is_subset(places)
        if places.is_empty() or not (fits or self.are_recursive(mine.statement, theirs.statement)):
            return
        if fits and mine.points.is_subset(seed.domain()) and seed.is_single_valued():
            yield Extended(seed)
            return
        whole = self._whole(mine.statement, theirs.statement, seed, way, places)
        if whole.link.is_injective() or not seed.is_single_valued() or not seed.is_injective():
            yield whole
            return
        # One value is computed many times, or nothing separated the instances.
        # The known pairs are enough if they are not the end of a run.
        if not self.are_recursive(mine.statement, theirs.statement):
            yield Extended(seed)
            return
        again = [k for k in range(len(mine.statement.dims)) if leaves_open(whole.link, k)]
        part = with_places(whole.link, seed, again)
        if again and part.is_injective() and seed.is_subset(part):
            yield Extended(coalesced(part))
        else:
            yield whole
            yield Extended(seed)

    def _whole(self, new: Statement, old: Statement, seed: Link, way: Way, places: Link) -> Extended:
        recursive = self.are_recursive(new, old)
        link = places
        for narrowed in self._narrowed(new, old, seed, way, places):
            link = narrowed
            if link.is_single_valued():
                return Extended(coalesced(link), _wide(link, places))
        ordered = self._by_order(new, old, link)
        if ordered is not None and seed.is_subset(ordered) and ordered.is_single_valued():
            return Extended(coalesced(ordered))
        if seed.is_single_valued() and not recursive:
            return Extended(seed)
        raise Undecided(link)

    def are_recursive(self, new: Statement, old: Statement) -> bool:
        """Whether both statements read what they write: known instances are then the last of a run, perhaps of
        different ones.
        """
        return self.new.is_recursive(new) and self.old.is_recursive(old)

    def _narrowed(self, new: Statement, old: Statement, seed: Link, way: Way, link: Link) -> Iterator[Link]:
        """The relation after each further restriction. A seed of fused loops may be wrong about all instances if it has
        only the last ones: copies come first.
        """
        yield link
        recursive = self.are_recursive(new, old)
        for means in (self._by_copies, self.supposed.by_values):
            for mine, each in means(new, old, way):
                # A load that does not happen says nothing; the rest may be enough.
                for allowed in (each, each.union(self.places.idle(new, mine, old))):
                    smaller = link.intersect(allowed)
                    if (recursive or seed.is_subset(smaller)) and not smaller.is_empty():
                        link = smaller
                        break
            yield link
        link = self._by_seed(new, old, seed, link)
        yield link
        for options in self._by_boxes(new, old, way):
            found = next(
                (
                    smaller
                    for each in options
                    if seed.is_subset(smaller := link.intersect(each)) and not smaller.is_empty()
                ),
                None,
            )
            if found is not None:
                link = found
                yield link

    # Further means to separate instances

    def _by_seed(self, new: Statement, old: Statement, seed: Link, link: Link) -> Link:
        """The pairs in which coordinates of the old instance are the functions of the new one that they are in `seed`.
        Constants do not count: the seed may have only the end of a reduction.
        """
        if not seed.is_single_valued():
            return link
        for position, dim in enumerate(old.dims):
            found = with_coordinate(seed, position)
            if found is None or (found[1] and dim.extent != const(1, dim.extent.dtype)):
                continue
            each = found[0]
            smaller = link.intersect(each)
            if seed.is_subset(smaller) or (self.are_recursive(new, old) and not smaller.is_empty()):
                link = smaller
        return link

    def _by_boxes(self, new: Statement, old: Statement, way: Way) -> Iterator[list[Link]]:
        """For each pair of loads of temporaries, the pairs of instances that access one cell: one relation for each
        layout that the new one may have.
        """
        for mine, theirs in self.places.reads_of(new, old, way):
            if mine.data not in self.new.written or (mine.data == new.data and theirs.data == old.data):
                continue
            looked, found = self.new.access(new, mine), self.old.access(old, theirs).reverse()
            idle = self.places.idle(new, mine, old)
            links = box_links(self.rewrite_model, theirs.data, mine.data)
            yield [looked.apply_range(each.reverse()).apply_range(found).union(idle) for each in links]

    def _by_copies(self, new: Statement, old: Statement, way: Way) -> Iterator[tuple[Read, Link]]:
        """For each pair of loads, the pairs of instances that find one value, by copies and by known pairs."""
        known = self.rewrite_model.theta
        for link in self.theta.values():
            known = known.union(in_relation(link))
        for mine, theirs in self.places.reads_of(new, old, way):
            if mine.data == new.data and theirs.data == old.data:
                continue
            found = self.new.resolved(self.new.sources(new, mine)).apply_range(known)
            found = found.apply_range(self.old.resolved(self.old.sources(old, theirs)).reverse())
            link_here = by_pair(found).get((self.new.name(new), self.old.name(old)))
            if link_here is not None:
                yield mine, link_here

    def _by_order(self, new: Statement, old: Statement, link: Link) -> Link | None:
        """The pairs whose undetermined coordinates have the same position in their order; None if the numbers
        differ.
        """
        theirs = [k for k in range(len(old.dims)) if not determines(link, k)]
        mine = [k for k in range(len(new.dims)) if leaves_open(link, k)]
        sizes = [_extents(statement, positions) for statement, positions in ((new, mine), (old, theirs))]
        if sizes[0] is None or sizes[1] is None or prod(sizes[0]) != prod(sizes[1]):
            return None
        first, second = _place(new, mine, sizes[0]), _place(old, theirs, sizes[1])
        found = self.places.of_indices(new, first, old, second)
        return None if found is None else link.intersect(found)


def _wide(link: Link, places: Link) -> Link | None:
    """The function that a link is, on all of `places`; None if it has that domain already, and if it would collapse."""
    found = widened(link, places) if link is not places else None
    return found if found is not None and (found.is_injective() or not link.is_injective()) else None


def _extents(statement: Statement, positions: list[int]) -> list[int] | None:
    """The numbers of iterations of some loops; None if one is not constant."""
    extents = [statement.dims[k].extent for k in positions]
    numbers = [extent.value for extent in extents if isinstance(extent, IntImm)]
    return numbers if len(numbers) == len(extents) else None


def _place(statement: Statement, positions: list[int], sizes: list[int]) -> Expr:
    """The position of an instance in the order of some of its loops."""
    place: Expr = const(0)
    for position, size in zip(positions, sizes, strict=True):
        dim = statement.dims[position]
        here = dim.var if dim.start == const(0, dim.var.dtype) else dim.var - dim.start
        place = here if place == const(0) else place * size + here
    return place
