"""Relations between instances as people read them."""

from __future__ import annotations

from layoutproof.ir.expr import TRUE
from layoutproof.ir.text import Style, expr_text
from layoutproof.verify.flow.models import World
from layoutproof.verify.flow.statement_reader import Statement
from layoutproof.verify.isl.instance_sets import Link
from layoutproof.verify.isl.proposing import condition_on, every_pair, functions_of, read_as_condition

# The longest text of a relation in a message.
_LONGEST = 400


def told_relation(world: World, new: Statement, old: Statement, link: Link) -> str:
    """Which instances of the old statement go with which of the new one: as functions of the new loops where they are functions, else as a
    condition on the loops of both.
    """
    text = _as_functions(world, new, link) if link.is_single_valued() else _as_condition(world, new, old, link)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _as_functions(world: World, new: Statement, link: Link) -> str:
    space = world.encoder_of(new.dims).space
    names = {dim.var.name: dim.var for dim in new.dims}
    head = f"[{', '.join(dim.var.name for dim in new.dims)}]"
    whole = world.after.domain(new)
    told: list[str] = []
    for piece in functions_of(link, space, names):
        outputs = ", ".join(expr_text(each, Style.PLAIN) for each in piece.outputs)
        where = condition_on(piece.where, whole, space, names)
        told.append(f"{head} -> [{outputs}]" + (f" where {expr_text(where, Style.PLAIN)}" if where is not None else ""))
    return "; ".join(told)


def _as_condition(world: World, new: Statement, old: Statement, link: Link) -> str:
    mine = [dim.var.name for dim in new.dims]
    theirs = [_fresh(dim.var.name, mine) for dim in old.dims]
    among = every_pair(world.after.domain(new), world.before.domain(old))
    within = read_as_condition(link, among, [*mine, *theirs], world.workspace.params)
    head = f"[{', '.join(mine)}] -> [{', '.join(theirs)}]"
    return head if within == TRUE else f"{head} where {expr_text(within, Style.PLAIN)}"


def _fresh(name: str, taken: list[str]) -> str:
    return f"{name}_before" if name in taken else name
