"""Dropping guards: a few iterations more, which nobody sees, for a loop without branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import ClassVar

from layoutproof.ir.diagnostic import counted, error
from layoutproof.ir.expr import Expr, logical_and
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.visit import loops_of_stores
from layoutproof.lowering import codes
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.loops.dropping import Dropping, Origin
from layoutproof.lowering.loops.sites import GuardKind, GuardSite, guard_sites
from layoutproof.lowering.loops.wrapping import wrap_indices
from layoutproof.lowering.passes import Pass, option
from layoutproof.lowering.scopes import symbol_scope

MAX_CANDIDATES = 16
"""Sets of guards that are tried, at most, when none are named."""


@dataclass(frozen=True)
class RemoveBranchingThroughOvercompute(Pass):
    """Drop guards whose missing iterations are invisible (the roadmap's `remove_branching_through_overcompute`).

    The guards of a block are numbered from the outside to the inside: conjuncts of branches around it, of its own guard, of branches
    inside it, and choices in values. `guards` says which to drop: `k` keeps what guard `k` guards, `-1 - k` the alternative of a branch
    or a choice. Null is all those around the block and its own; where there is none, all. Domains of block variables grow with what
    runs more. With `wrap`, accesses that would leave their buffer take their index modulo its extent.
    """

    primitive: ClassVar[str] = "remove_branching_through_overcompute"
    drops_branches: ClassVar[bool] = True
    block: str = field(metadata=option(ArgumentKind.NAME))
    guards: tuple[int, ...] | None = field(default=None, metadata=option(ArgumentKind.CHOICES))
    wrap: bool = field(default=False, metadata=option(ArgumentKind.FLAG))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function without the guards. Raises LayoutproofError for a block without guards, and for a number that none of them has."""
        sites = guard_sites(func, self.block)
        if not sites:
            raise error(codes.NO_GUARD, f"block {self.block} has no guard: nothing in it or around it depends on a condition", func.span)
        chosen = self.guards if self.guards is not None else default_guards(sites)
        numbers = [_number(self.block, sites, choice) for choice in chosen]
        dropping = Dropping(
            [sites[n] for n in numbers],
            [sites[n] for n, choice in zip(numbers, chosen, strict=True) if choice < 0],
            symbol_scope(func),
        )
        new = func.with_body(dropping.statement(func.body))
        if self.wrap:
            new = wrap_indices(new)
        return Rewrite(func, new, Witness(tuple(_instances(func, new, dropping.origins))))


def default_guards(sites: Sequence[GuardSite]) -> tuple[int, ...]:
    """The guards around a block and its own; all where there is none of these."""
    plain = tuple(n for n, s in enumerate(sites) if s.kind in (GuardKind.AROUND, GuardKind.BLOCK) and not s.has_alternative)
    return plain if plain else tuple(range(len(sites)))


def candidates(func: PrimFunc, block: str, wrap: bool = False) -> tuple[RemoveBranchingThroughOvercompute, ...]:
    """What may be dropped, much before little: the first is the default. Raises LayoutproofError as `propose` does."""
    sites = guard_sites(func, block)
    first = RemoveBranchingThroughOvercompute(block, None, wrap)
    first.propose(func)
    default = default_guards(sites)
    others = (RemoveBranchingThroughOvercompute(block, g, wrap) for g in _subsets(sites) if g != default)
    return (RemoveBranchingThroughOvercompute(block, default, wrap), *islice(others, MAX_CANDIDATES - 1))


def _subsets(sites: Sequence[GuardSite]) -> Iterator[tuple[int, ...]]:
    """Sets of guards to drop, the largest first; what is guarded stays before its alternative."""
    # More guards than this are tried all together and one by one.
    if len(sites) > 8:
        yield tuple(range(len(sites)))
        yield from ((n,) for n in range(len(sites)))
        return
    options = [(n, -1 - n, None) if site.has_alternative else (n, None) for n, site in enumerate(sites)]
    found = [tuple(n for n in choice if n is not None) for choice in product(*options)]
    yield from sorted((f for f in found if f), key=lambda f: (-len(f), sum(n < 0 for n in f)))


def _number(block: str, sites: Sequence[GuardSite], choice: int) -> int:
    number = choice if choice >= 0 else -1 - choice
    if number >= len(sites):
        shown = "; ".join(f"{n}: {site}" for n, site in enumerate(sites))
        raise error(codes.NO_GUARD, f"block {block} has {counted(len(sites), 'guard', 'guards')}, there is no guard {number}", help=shown)
    if choice < 0 and not sites[number].has_alternative:
        message = f"guard {number} of block {block}, {sites[number]}, has no alternative that could stay"
        raise error(codes.NO_GUARD, message, sites[number].node.span)
    return number


def _instances(old: PrimFunc, new: PrimFunc, origins: Sequence[Sequence[Origin]]) -> Iterator[InstanceMap]:
    """Theta is the identity on loops, wherever the conditions that were dropped hold."""
    old_loops, new_loops = loops_of_stores(old.body), loops_of_stores(new.body)
    for number, (loops, claims) in enumerate(zip(new_loops, origins, strict=True)):
        inputs = tuple(loop.var for loop in loops)
        for claim in claims:
            outputs: tuple[Expr, ...] = tuple(loop.var for loop in old_loops[claim.number])
            where = logical_and(*claim.conditions) if claim.conditions else None
            yield InstanceMap(number, claim.number, IndexMap(inputs, outputs), where)
