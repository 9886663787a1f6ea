"""Taking a statement out of a sequence into loops of its own: what stands before it runs before, in copies of the loops; likewise
what stands after it. That is how an init among plain loops is split off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layoutproof.ir.diagnostic import error
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import For, IfThenElse, Seq, Stmt, seq
from layoutproof.ir.visit import stores_in
from layoutproof.lowering import codes
from layoutproof.lowering.effects import is_pure
from layoutproof.lowering.loops.nest import path_to, put

Parts = tuple[Stmt | None, Stmt, Stmt | None]


def distribute(func: PrimFunc, top: For, target: Stmt) -> tuple[PrimFunc, tuple[int, ...]]:
    """The function with `target`, which stands below `top`, in loops of its own, and the old numbers of the new stores.

    Raises LayoutproofError where something other than loops, sequences and branches stands between them. Statements stay the objects
    that they are, but for those between the two.
    """
    path = (*path_to(top, target), target)
    new = put(func, top, seq(*(part for part in _parts(path) if part is not None)))
    old_numbers = {id(store): number for number, store in enumerate(stores_in(func.body))}
    return new, tuple(old_numbers[id(store)] for store in stores_in(new.body))


def _parts(path: Sequence[Stmt]) -> Parts:
    """What runs before the end of a path, with it, and after it, each in what is around it."""
    stmt, rest = path[0], path[1:]
    if not rest:
        return None, stmt, None
    before, target, after = _parts(rest)
    match stmt:
        case For():
            loops = (None if part is None else replace(stmt, body=part) for part in (before, after))
            return next(loops), replace(stmt, body=target), next(loops)
        case IfThenElse(condition=condition, otherwise=None) if is_pure(condition):
            branches = (None if part is None else replace(stmt, then=part) for part in (before, after))
            return next(branches), replace(stmt, then=target), next(branches)
        case Seq(body=body):
            position = next(n for n, part in enumerate(body) if part is rest[0])
            first = [*body[:position], *([before] if before is not None else [])]
            last = [*([after] if after is not None else []), *body[position + 1 :]]
            return seq(*first) if first else None, target, seq(*last) if last else None
        case _:
            message = f"a {type(stmt).__name__} stands among the loops, which cannot be taken apart there"
            raise error(codes.LOOP_NEST, message, stmt.span)
