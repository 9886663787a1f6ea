"""The four lanes of a texel: loops over them, one lane of what they compute, and lanes joined into one vector.

A loop of four iterations that stores to four elements of one texel is gathered into one write, if each iteration
stores exactly once and nothing in the loop reads what it stores. Lanes are joined into one operation in float32 only:
its operators mean the same on vectors as on each lane.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.expr import FALSE, TRUE, Binary, Compare, Expr, IfThenElseExpr, IntImm, Logical, Select, Var, binary
from layoutproof.ir.node import Node
from layoutproof.ir.operators import COMPARISONS, BinaryOp, LogicalOp
from layoutproof.ir.stmt import Allocate, AttrStmt, BufferStore, DeclBuffer, For, IfThenElse, Let, Seq, Stmt
from layoutproof.ir.visit import (
    bound_variables,
    free_variables,
    loads_in,
    rewrite_bottom_up,
    stores_in,
    substitute,
    walk,
)
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.opencl.cl_helpers import Image
from layoutproof.lowering.codegen.opencl.cl_images import TEXEL, joined_terms, split_row, terms_of, unwidened

N = TypeVar("N", bound=Node)
ImageOf = Callable[[BufferLoad | BufferStore], Image | None]

CHANNELS = "xyzw"
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>-?(?:0x[0-9a-f.]+p[-+]\d+|\d+\.\d+)f)"
    r"|(?P<called>[A-Za-z_]\w*\()"
    r"|(?P<word>[A-Za-z_]\w*(?:\.[xyzw]|\[[^\[\]]*\])?)(?![\w(.\[])"
    r"|(?P<operator>[-+*/()])"
)
_TYPES = {"char", "short", "int", "long", "uchar", "ushort", "uint", "ulong", "float", "double", "bool"}
_SUM = re.compile(r"[\w\s+*/%()-]*")


def is_lane_loop(stmt: For) -> bool:
    """Whether it counts 0, 1, 2, 3."""
    return all(
        isinstance(part, IntImm) and part.value == value for part, value in ((stmt.start, 0), (stmt.extent, TEXEL))
    )


def at_lane(node: N, var: Var, lane: int) -> N:
    """`node` for one value of the loop's variable, without the zeros that it leaves in sums.

    The lane is added last to an index that steps by one, so that adjacent elements are recognised.
    """

    def visit(current: Node) -> Node:
        if isinstance(current, BufferLoad) and steps_by_one(current.indices[-1], var):
            return replace(current, indices=(*current.indices[:-1], _behind(current.indices[-1], var, lane)))
        return _folded(current)

    ordered = rewrite_bottom_up(node, visit)
    return rewrite_bottom_up(substitute(ordered, {var: IntImm(lane, var.dtype)}), _folded)


def _behind(index: Expr, var: Var, lane: int) -> Expr:
    """`index`, which steps by one with the variable, for one value of it."""
    rest = joined_terms((term for term in terms_of(index) if unwidened(term[1]) != var), index.dtype)
    return binary(BinaryOp.ADD, rest, IntImm(lane, index.dtype)) if lane != 0 else rest


def _folded(node: Node) -> Node:
    """Constant folding of what a lane's number leaves: sums with zero, decided comparisons and choices."""
    match node:
        case Binary(op=BinaryOp.ADD | BinaryOp.SUB, lhs=lhs, rhs=IntImm(value=0)):
            return lhs
        case Binary(op=BinaryOp.ADD, lhs=IntImm(value=0), rhs=rhs):
            return rhs
        case Compare(op=op, lhs=IntImm(value=a), rhs=IntImm(value=b)):
            return TRUE if COMPARISONS[op](a, b) else FALSE
        case (
            Logical(op=op, lhs=IntImm(value=value) as known, rhs=other)
            | Logical(op=op, lhs=other, rhs=IntImm(value=value) as known)
        ):
            return known if bool(value) is (op is LogicalOp.OR) else other
        case Select(condition=IntImm(value=value), then=then, otherwise=otherwise):
            return then if value else otherwise
        case IfThenElseExpr(condition=IntImm(value=value), then=then, otherwise=otherwise):
            return then if value else otherwise
        case _:
            return node


def steps_by_one(index: Expr, var: Var) -> bool:
    """Whether the index is the variable plus what does not depend on it."""
    return [(sign, unwidened(term)) for sign, term in terms_of(index) if var in free_variables(term)] == [
        (BinaryOp.ADD, var)
    ]


def hoisted_guard(stmt: For) -> IfThenElse | None:
    """The guard around all of a loop's body, if it is the same for every lane and reads no memory."""
    body = stmt.body
    if not isinstance(body, IfThenElse) or body.otherwise is not None or any(True for _ in loads_in(body.condition)):
        return None
    return body if stmt.var not in free_variables(body.condition) else None


def is_partial(store: BufferStore, image: Image | None) -> bool:
    """Whether it stores one element of a texel of four."""
    return image is not None and image.channels == TEXEL and store.value.dtype.lanes == 1


@dataclass(frozen=True, slots=True)
class Gathered:
    """A store of one element that writes a whole texel over the loop."""

    store: BufferStore
    image: Image


def gathered_stores(stmt: For, image_of: ImageOf) -> tuple[Gathered, ...]:
    """The stores that the loop gathers into texels; none if it is no loop over lanes.

    Raises LayoutproofError (LP405) if it is one and cannot be gathered.
    """
    if not is_lane_loop(stmt):
        return ()
    found: list[Gathered] = []
    for store in stores_in(stmt.body):
        image = image_of(store)
        if image is None or not is_partial(store, image) or unwidened(split_row(store.indices[-1])[1]) != stmt.var:
            continue
        _check_gathered(stmt, store, image_of)
        found.append(Gathered(store, image))
    return tuple(found)


def _check_gathered(stmt: For, store: BufferStore, image_of: ImageOf) -> None:
    image = image_of(store)
    bound = {stmt.var, *bound_variables(stmt.body)}
    if not any(other is store for other in _always(stmt.body)):
        raise partial_write(
            store, f"an iteration of loop {stmt.var.name} stores to it in a loop or under a condition of its own"
        )
    if sum(image_of(other) == image for other in stores_in(stmt.body)) > 1:
        raise partial_write(store, f"loop {stmt.var.name} stores to it more than once")
    inner = [v.name for index in store.indices for v in free_variables(index) if v in bound and v != stmt.var]
    outer = [v.name for index in store.indices[:-1] for v in free_variables(index) if v == stmt.var]
    if inner or outer or any(True for index in store.indices for _ in loads_in(index)):
        raise partial_write(store, f"the texel is another one in each iteration of loop {stmt.var.name}")
    reads = [load for load in loads_in(stmt.body) if image_of(load) == image]
    own = [load for load in loads_in(store.value) if image_of(load) == image and load.indices == store.indices]
    if len(reads) > len(own):
        raise partial_write(store, f"loop {stmt.var.name} reads what it stores")


def _always(stmt: Stmt) -> Iterator[BufferStore]:
    """The stores that each execution of a statement executes once."""
    match stmt:
        case BufferStore():
            yield stmt
        case Seq(body=parts):
            for part in parts:
                yield from _always(part)
        case Let(body=body) | DeclBuffer(body=body) | Allocate(body=body) | AttrStmt(body=body):
            yield from _always(body)
        case _:
            return


def partial_write(store: BufferStore, why: str) -> LayoutproofError:
    """The refusal of a store to part of a texel."""
    name = store.buffer.name
    return error(
        codes.TEXEL,
        f"the OpenCL target writes the RGBA texture {name} a texel of {TEXEL} elements at a time, and here it is "
        f"stored to in part: {why}",
        store.span,
        help=f"make the innermost loop run over the {TEXEL} elements of a texel (split by {TEXEL}, reorder), with no "
        f"guard of its own, and vectorize it by {TEXEL}; or give {name} a last axis that is no multiple of {TEXEL}, "
        "for an image of one channel",
    )


def lane_stores(stmt: For, image_of: ImageOf) -> BufferStore | None:
    """The store to plain memory that is all of a lane loop, if it reads a texel's channels in order; else None.

    Neither the texel nor whether it is read depends on memory, so that it may be read before the first store.
    """
    body = stmt.body
    if (
        not is_lane_loop(stmt)
        or not isinstance(body, BufferStore)
        or image_of(body) is not None
        or body.value.dtype.lanes > 1
    ):
        return None
    found = False
    conditions = [node.condition for node in walk(body) if isinstance(node, IfThenElseExpr)]
    if any(True for condition in conditions for _ in loads_in(condition)):
        return None
    for load in loads_in(body):
        image = image_of(load)
        if image is not None and image.channels == TEXEL:
            if any(True for index in load.indices for _ in loads_in(index)):
                return None
            found = found or (load.dtype.lanes == 1 and stmt.var in free_variables(load.indices[-1]))
    return body if found else None


def is_over_lanes(stmt: For, image_of: ImageOf) -> bool:
    """Whether a loop, perhaps below guards that all its iterations share, is one over the lanes of texels."""
    guard = hoisted_guard(stmt)
    if guard is not None:
        return is_over_lanes(replace(stmt, body=guard.then), image_of)
    return bool(gathered_stores(stmt, image_of)) or lane_stores(stmt, image_of) is not None


def store_at(store: BufferStore, var: Var, lane: int) -> BufferStore:
    """The store for one value of the loop's variable."""
    *outer, last = (at_lane(index, var, lane) for index in store.indices)
    if steps_by_one(store.indices[-1], var):
        last = _behind(store.indices[-1], var, lane)
    return replace(store, indices=(*outer, last), value=at_lane(store.value, var, lane))


def whole_texel(lanes: Sequence[str]) -> str | None:
    """The variable whose four channels the lanes are, in order."""
    texel = lanes[0].removesuffix(f".{CHANNELS[0]}")
    return texel if texel.isidentifier() and list(lanes) == [f"{texel}.{channel}" for channel in CHANNELS] else None


def elements_in_a_row(lanes: Sequence[str], is_pointer: Callable[[str], bool]) -> str | None:
    """A load of four consecutive elements, if the lanes are those. `is_pointer` knows pointers to elements of their
    type.
    """
    pointer, _, place = lanes[0].removesuffix("]").partition("[")
    # `p + 1` is one more than `p` only where no operator in `p` binds looser than `+`.
    if not is_pointer(pointer) or _SUM.fullmatch(place) is None:
        return None
    places = (
        [str(int(place) + lane) for lane in range(TEXEL)]
        if place.isdecimal()
        else [place, *(f"{place} + {k}" for k in range(1, TEXEL))]
    )
    if list(lanes) != [f"{pointer}[{each}]" for each in places]:
        return None
    if place == "0":
        return f"vload4(0, {pointer})"
    return f"vload4(0, {pointer} + {place if place.isalnum() else f'({place})'})"


def same_of_all(lanes: Sequence[str], is_pointer: Callable[[str], bool]) -> str | None:
    """Float32 arithmetic that is the same in all lanes, as vector arithmetic; None for anything else."""
    tokens = [found for lane in lanes if (found := _tokens(lane)) is not None]
    if len(tokens) < TEXEL or len({len(found) for found in tokens}) > 1:
        return None
    joined: list[str] = []
    vectors = 0
    for column in zip(*tokens, strict=True):
        if len(set(column)) == 1:
            joined.append(column[0])
            continue
        texel = whole_texel(column)
        vector = texel if texel is not None else elements_in_a_row(column, is_pointer)
        if vector is None:
            return None
        vectors += 1
        joined.append(vector)
    return "".join(joined) if vectors > 0 else None


def _tokens(text: str) -> list[str] | None:
    """The words, numbers and operators of a text, a call as one word; None if it contains anything else."""
    found: list[str] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match["word"] in _TYPES:
            return None
        end = _behind_call(text, match.end()) if match["called"] is not None else match.end()
        found.append(text[place:end])
        place = end
    return found


def _behind_call(text: str, place: int) -> int:
    """The position after the bracket that closes the one before `place`, and after a channel selection."""
    depth = 1
    while depth > 0:
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        place += 1
    return place + 2 if re.match(r"\.[xyzw]\b", text[place:]) else place
