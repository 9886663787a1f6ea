"""Finding blocks and buffers of a function by name, with messages that say what there is."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from itertools import chain

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError, error, meant, wrong_type
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, Seq, Stmt
from layoutproof.ir.visit import buffers_in, children, kinds_in
from layoutproof.lowering import codes
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.illegal import IllegalTransform


def all_buffers(func: PrimFunc) -> tuple[Buffer, ...]:
    """Every distinct buffer of a function: parameters first, then in order of appearance."""
    found: dict[Buffer, None] = dict.fromkeys(func.buffers)
    found.update(dict.fromkeys(buffers_in(func.body)))
    return tuple(found)


def find_buffer(func: PrimFunc, name: str) -> Buffer:
    """The buffer called `name`. Raises LayoutproofError if there is none, or two."""
    if not isinstance(name, str):
        raise wrong_type(codes.ARGUMENT_TYPE, "the argument 'buffer'", name, "the name of a buffer")
    named = [b for b in all_buffers(func) if b.name == name]
    if not named:
        raise _unknown(
            codes.NO_BUFFER, f"{func.name} has no buffer called {name!r}", name, [b.name for b in all_buffers(func)]
        )
    if len(named) > 1:
        raise error(
            codes.TWO_BUFFERS, f"{func.name} has {len(named)} buffers called {name!r}; rename one", named[1].span
        )
    return named[0]


def find_block(func: PrimFunc, name: str) -> Block:
    """The block called `name`. Raises LayoutproofError if there is none, or two."""
    if not isinstance(name, str):
        raise wrong_type(codes.ARGUMENT_TYPE, "the argument 'block'", name, "the name of a block")
    named = [n for n in blocks_in(func.body) if n.name == name]
    if not named:
        raise _unknown(codes.NO_BLOCK, f"{func.name} has no block called {name!r}", name, _block_names(func))
    if len(named) > 1:
        raise error(codes.TWO_BLOCKS, f"{func.name} has {len(named)} blocks called {name!r}; rename one", named[1].span)
    return named[0]


def aliases_of(func: PrimFunc, buffer: Buffer) -> tuple[Buffer, ...]:
    """The other buffers with the same data variable."""
    return tuple(b for b in all_buffers(func) if b.data == buffer.data and b != buffer)


_OPTIONS = {codes.NO_BLOCK: "block", codes.NO_BUFFER: "buffer"}


def without_useless_name(problem: IllegalTransform, transform: Pass, func: PrimFunc) -> IllegalTransform:
    """The refusal of an unknown name; it does not propose a similar one for which the transform is no valid input."""
    first, *rest = problem.diagnostics
    option = _OPTIONS.get(first.code)
    wrong = getattr(transform, option, None) if option is not None else None
    if option is None or not isinstance(wrong, str):
        return problem
    known = [b.name for b in all_buffers(func)] if option == "buffer" else _block_names(func)
    for name in get_close_matches(wrong, known, n=1):
        if not _applies(replace(transform, **{option: name}), func):
            return IllegalTransform([replace(first, help=f"available: {', '.join(known)}"), *rest])
    return problem


def _applies(transform: Pass, func: PrimFunc) -> bool:
    """Whether a transform is valid input. What is refuted is, and a second wrong name is mended next."""
    try:
        transform.propose(func)
    except IllegalTransform as problem:
        return bool(problem.verdicts)
    except LayoutproofError as problem:
        return problem.diagnostics[0].code in _OPTIONS
    return True


def _block_names(func: PrimFunc) -> list[str]:
    return [n.name for n in blocks_in(func.body)]


def _unknown(code: str, message: str, name: str, known: list[str]) -> LayoutproofError:
    return error(code, message, help=meant(name, known, f"available: {', '.join(known)}" if known else None))


def blocks_in(stmt: Stmt) -> list[Block]:
    """Every block below, in the order of `walk`."""
    found: list[Block] = []
    stack: list[Stmt] = [stmt]
    while stack:
        node = stack.pop()
        if node._blocks is not None:
            found += node._blocks
        elif isinstance(node, Seq):
            # As in `buffers_in`: statements of a long program are in its next version, too.
            found += chain.from_iterable(map(_blocks_of, node.body[:-1]))
            stack += node.body[-1:]
        elif Block in kinds_in(node):
            if isinstance(node, Block):
                found.append(node)
            stack += reversed([child for child in children(node) if isinstance(child, Stmt)])
    return found


def _blocks_of(part: Stmt) -> tuple[Block, ...]:
    if part._blocks is None:
        object.__setattr__(part, "_blocks", tuple(blocks_in(part)))
    return part._blocks or ()


def parts_with(sequence: Seq, block: Block) -> list[Stmt]:
    """The statements of a sequence that hold a block, this very object."""
    return [part for part in sequence.body for each in _blocks_of(part) if each is block]
