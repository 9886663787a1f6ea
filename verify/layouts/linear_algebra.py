"""Layouts that are linear over bits: composed, inverted, and what it takes to move data from one to another, decided by
ranks over F2.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from layoutproof.ir.notations.triton import HARDWARE, Basis, LinearLayout
from layoutproof.verify.layouts.conflicts import rank_over_bits


class Moves(StrEnum):
    """How far data has to go from one layout to another, the nearest first."""

    NONE = "none"
    REGISTERS = "registers"
    LANES = "lanes"
    WARPS = "shared memory"
    BLOCKS = "other blocks"


def compose(outer: LinearLayout, inner: LinearLayout) -> LinearLayout:
    """First `inner`, then `outer`, whose inputs are its outputs. Raises ValueError where they do not fit."""
    if len(inner.extents) != len(outer.inputs):
        raise ValueError(f"{len(inner.extents)} outputs for {len(outer.inputs)} inputs")
    for extent, size, name in zip(inner.extents, outer.shape, outer.names, strict=True):
        if extent > size:
            raise ValueError(f"an output of {extent} values is the input {name}, of {size}")
    return LinearLayout(
        tuple((name, tuple(outer(basis) for basis in bases)) for name, bases in inner.inputs), outer.extents
    )


def invert(layout: LinearLayout, names: Sequence[str] | None = None) -> LinearLayout:
    """The layout from outputs to inputs, whose inputs get `names` (`dim0`, `dim1`, ...). Raises ValueError where two
    inputs have one output, or an output has no input.
    """
    columns = _columns(layout)
    bits = sum(extent.bit_length() - 1 for extent in layout.extents)
    if rank_over_bits(columns) < len(columns):
        raise ValueError("the layout is not injective: the images of its bits are dependent")
    if len(columns) < bits:
        raise ValueError(f"the layout is not surjective: it has {len(columns)} bits of {bits}")
    solved = _inverse_columns(columns, bits)
    counts = [len(bases) for _, bases in layout.inputs]
    found: list[tuple[str, tuple[Basis, ...]]] = []
    position = 0
    for axis, extent in enumerate(layout.extents):
        size = extent.bit_length() - 1
        name = f"dim{axis}" if names is None else names[axis]
        found.append((name, tuple(_parts(solved[position + k], counts) for k in range(size))))
        position += size
    return LinearLayout(tuple(found), layout.shape)


def _columns(layout: LinearLayout) -> list[int]:
    """The images of all bits as numbers, the outputs one above the other."""
    return [_packed(basis, layout.extents) for _, bases in layout.inputs for basis in bases]


def _packed(basis: Sequence[int], extents: Sequence[int]) -> int:
    result, position = 0, 0
    for value, extent in zip(basis, extents, strict=True):
        result |= value << position
        position += extent.bit_length() - 1
    return result


def _parts(mask: int, counts: Sequence[int]) -> Basis:
    """A combination of input bits as the index over the inputs."""
    found: list[int] = []
    for count in counts:
        found.append(mask & ((1 << count) - 1))
        mask >>= count
    return tuple(found)


def _inverse_columns(columns: Sequence[int], bits: int) -> list[int]:
    """For each output bit, the combination of columns that is this bit alone; the columns are a basis."""
    rows = [(column, 1 << k) for k, column in enumerate(columns)]
    for bit in range(bits):
        pivot = next(k for k in range(bit, bits) if rows[k][0] >> bit & 1)
        rows[bit], rows[pivot] = rows[pivot], rows[bit]
        rows = [
            (value ^ rows[bit][0], used ^ rows[bit][1]) if k != bit and value >> bit & 1 else (value, used)
            for k, (value, used) in enumerate(rows)
        ]
    return [used for _, used in rows]


def moves_between(first: LinearLayout, second: LinearLayout) -> Moves:
    """How far the elements go that each thread has to hold in the second layout, from where the first one has them.

    Within a level, every element that a thread (a warp, a block) holds in the second layout is one that it holds in the
    first. Raises ValueError for layouts of other hardware or other tensors.
    """
    for name in HARDWARE[1:]:
        if len(first.bases(name)) != len(second.bases(name)):
            raise ValueError(f"the layouts are of other hardware: {name} has another number of bits")
    extents = tuple(max(a, b) for a, b in zip(first.extents, second.extents, strict=True))
    a = {name: [_packed(basis, extents) for basis in first.bases(name)] for name in HARDWARE}
    b = {name: [_packed(basis, extents) for basis in second.bases(name)] for name in HARDWARE}
    if a == b:
        return Moves.NONE
    for level, moves in enumerate((Moves.REGISTERS, Moves.LANES, Moves.WARPS)):
        inside, above = HARDWARE[: level + 1], HARDWARE[level + 1 :]
        held = [value for name in inside for value in a[name]]
        wanted = [value for name in inside for value in b[name]]
        wanted += [x ^ y for name in above for x, y in zip(a[name], b[name], strict=True)]
        if rank_over_bits([*held, *wanted]) == rank_over_bits(held):
            return moves
    return Moves.BLOCKS
