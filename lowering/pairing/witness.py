"""Relations between instances as the maps that a witness has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.rewrite import InstanceMap
from layoutproof.ir.stmt import For
from layoutproof.ir.visit import loops_of_stores
from layoutproof.lowering.pairing.engine import Search
from layoutproof.verify.flow.statement_reader import Statement
from layoutproof.verify.isl.instance_sets import Link
from layoutproof.verify.isl.proposing import condition_on, functions_of


def instance_maps(search: Search) -> tuple[InstanceMap, ...]:
    """What a search found, for every store of the new program in order; one that computes nothing of the old program says so."""
    rewrite = search.world.rewrite
    new_loops, old_loops = loops_of_stores(rewrite.new.body), loops_of_stores(rewrite.old.body)
    result: list[InstanceMap] = []
    for number, loops in enumerate(new_loops):
        claims = [
            claim
            for (mine, theirs), link in sorted(search.theta.items(), key=lambda item: item[0])
            if mine == number
            for claim in _claims(search, search.new.by_number[mine], search.old.by_number[theirs], link, loops, old_loops[theirs])
        ]
        result += claims or [InstanceMap(number, None, None)]
    return tuple(result)


def _claims(
    search: Search, new: Statement, old: Statement, link: Link, loops: Sequence[For], old_loops: Sequence[For]
) -> Iterator[InstanceMap]:
    """One map for each piece of a function."""
    space = search.world.encoder_of(new.dims).space
    names: dict[str, Expr] = {dim.var.name: dim.var for dim in new.dims}
    positions = {dim.var.name: k for k, dim in enumerate(old.dims)}
    mine, theirs = [dim for dim in new.dims if dim.lane][:1], [dim for dim in old.dims if dim.lane][:1]
    for piece in functions_of(link, space, names):
        # An init stands in the loops of its reduction too, and has no coordinate for them: it happens at their start.
        outputs = [piece.outputs[positions[loop.var.name]] if loop.var.name in positions else loop.start for loop in old_loops]
        inputs = [loop.var for loop in loops]
        if mine or theirs:
            inputs += [dim.var for dim in mine]
            outputs += [piece.outputs[positions[dim.var.name]] for dim in theirs]
        where = condition_on(piece.where, search.new.domain(new), space, names)
        yield InstanceMap(new.number, old.number, IndexMap(tuple(inputs), tuple(outputs)), where)
