"""Where a block or a piece of program touches a buffer: one index over the loops around it, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, IfThenElseExpr, Logical, Var
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse, Let, Stmt
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import children, free_variables, substitute
from layoutproof.lowering import codes
from layoutproof.lowering.effects import is_pure
from layoutproof.lowering.find import find_block
from layoutproof.lowering.layout import ROOT


@dataclass(frozen=True, slots=True)
class Touch:
    """One load or store of the buffer in the text: its index over loops and symbols, and the statements around it.

    `conditional` says that a condition within the block decides whether it happens.
    """

    node: BufferLoad | BufferStore
    index: tuple[Expr, ...]
    path: tuple[Stmt, ...]
    conditional: bool


def find_touch(func: PrimFunc, block: str, buffer: Buffer) -> Touch:
    """The access of `buffer` that a block's loops are to follow: its stores, else its loads, which must all be at one index.

    Of the function's own body, `root`, what plain loops do counts before what blocks among them do, such as those that fill padding.
    Raises LayoutproofError where there is none, where they differ, and where the index depends on data or on something that the block
    itself binds.
    """
    scope = None if block == ROOT else find_block(func, block)
    found = [t for t in _touches(func.body, buffer) if scope is None or any(s is scope for s in t.path)]
    if not found:
        place = "the function" if scope is None else f"block {block}"
        raise error(codes.NOT_IN_BLOCK, f"{place} neither reads nor writes {buffer.name}", scope.span if scope is not None else func.span)
    if scope is None:
        plain = [t for t in found if not any(isinstance(s, Block) and not s.is_root for s in t.path)]
        found = plain if plain else found
    stores = [t for t in found if isinstance(t.node, BufferStore)]
    chosen = stores if stores else found
    _check_one_index(block, buffer, chosen)
    # In plain loops the innermost access has all loops around it that the others have, too.
    touch = max(chosen, key=lambda t: (not t.conditional, len(t.path)))
    _check_expressible(block, buffer, touch, scope)
    return touch


def _check_one_index(block: str, buffer: Buffer, touches: Sequence[Touch]) -> None:
    different = list(dict.fromkeys(t.index for t in touches))
    if len(different) > 1:
        shown = " and ".join(f"[{', '.join(expr_text(i) for i in index)}]" for index in different[:2])
        raise error(codes.NO_ORDER, f"block {block} touches {buffer.name} at {shown}: it has no one order to follow", touches[0].node.span)


def _check_expressible(block: str, buffer: Buffer, touch: Touch, scope: Block | None) -> None:
    if not is_pure(*touch.index) or any(i.dtype.lanes > 1 for i in touch.index):
        raise error(codes.NO_ORDER, f"the index of {buffer.name} in block {block} depends on data or has lanes", touch.node.span)
    if scope is not None:
        start = next(n for n, s in enumerate(touch.path) if s is scope)
        inner = {s.var for s in touch.path[start:] if isinstance(s, For | Let)}
        used = [v.name for i in touch.index for v in free_variables(i) if v in inner]
        if used:
            message = f"{buffer.name} is accessed along {used[0]}, which stands inside block {block}; only loops around it are reordered"
            raise error(codes.NO_ORDER, message, touch.node.span)


def _touches(body: Stmt, buffer: Buffer) -> Iterator[Touch]:
    yield from _below(body, buffer, (), {}, False)


def _below(node: Node, buffer: Buffer, path: tuple[Stmt, ...], known: dict[Var, Expr], conditional: bool) -> Iterator[Touch]:
    """The accesses below a node; `known` has block variables and lets over loops."""
    if isinstance(node, Buffer):
        return
    if isinstance(node, BufferLoad | BufferStore) and node.buffer == buffer:
        yield Touch(node, tuple(substitute(i, known) for i in node.indices), path, conditional)
    if isinstance(node, Block):
        for iter_var in node.iter_vars:
            known = {**known, iter_var.var: substitute(iter_var.binding, known)}
    elif isinstance(node, Let) and is_pure(node.value):
        known = {**known, node.var: substitute(node.value, known)}
    inner = (*path, node) if isinstance(node, Stmt) else path
    for child in _executed(node):
        lazy = isinstance(node, IfThenElse | IfThenElseExpr) and child is not node.condition
        late = isinstance(node, Logical) and child is node.rhs
        yield from _below(child, buffer, inner, known, conditional or (lazy and not _around_block(node)) or late)


def _executed(node: Node) -> Iterator[Node]:
    """What runs below a node: of a block, its init and body, not what it says of its regions."""
    if isinstance(node, Block):
        if node.init is not None:
            yield node.init
        yield node.body
        return
    yield from children(node)


def _around_block(node: Node) -> bool:
    """Whether a branch without an alternative stands among the loops, where it is a guard like any other."""
    return isinstance(node, IfThenElse) and node.otherwise is None
