"""Where the cells of a temporary may be in the new program: guesses, simplest first."""

from __future__ import annotations

from layoutproof.ir.expr import Var
from layoutproof.verify.flow.models import NEW, OLD, World
from layoutproof.verify.isl.instance_sets import Link, function_between


def box_links(world: World, old: Var, new: Var) -> list[Link]:
    """Relations from the cells of a memory of the old program to those of one of the new, under the names that accesses lead to."""
    return [_link(world, old, new)] if world.old.cells[old] == world.new.cells[new] else []


def _link(world: World, old: Var, new: Var) -> Link:
    box = world.old.cells[old]
    names = [f"c{axis}" for axis in range(len(box))]
    cells = [Var(name, extent.dtype) for name, extent in zip(names, box, strict=True)]
    step = function_between(world.encoder(names), f"{OLD}in_{old.name}", cells, f"{NEW}in_{new.name}")
    return step.intersect_domain(world.before.cell_set(old))
