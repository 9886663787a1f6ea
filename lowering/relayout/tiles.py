"""How large a tile of a copy is: enough of what is written, and of what is read, lies together in it.

Memory moves in lines and is found fast in order, so both sides of a copy want runs of some lines. A tile is made of the loops that
step least in what is written and of those that step least in what is read, each until its runs are long enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layoutproof.lowering.relayout.digits import Digit

WRITTEN = 1024
"""The bytes that a tile's runs in what is written should have: the lines at their ends are written in two parts."""
READ = 128
"""The bytes that its runs in what is read should have; twice as many where blocks of it are turned."""
STRAIGHT = 16 * 1024
"""The bytes of a run that is copied as it is."""
LARGEST = 16 * 1024
"""A tile is no larger than this, in bytes: the nearest cache has to hold it beside what is read."""
FEW = 4
"""Along a loop with no more tiles than this they are of one size, as far as they can be."""
BLOCK = 16
"""The rows of the largest block that is turned at once: tiles along a loop that has many are a multiple of it."""
UNKNOWN = 1 << 30
"""What the extent of a loop over a symbol counts as."""


def choose_tile(digits: Sequence[Digit], width: int) -> dict[str, int]:
    """How many iterations of each loop a tile has; loops that it does not have are left out.

    `width` is that of an element in bytes. Empty where what is written has no loop that steps by one.
    """
    tile: dict[str, int] = {}
    if lies_straight(digits, width):
        _grow(tile, _prefix(digits), STRAIGHT, width)
        return tile
    _grow(tile, _chain(digits, lambda d: d.write_step), WRITTEN, width)
    if not tile:
        return {}
    read = _chain(digits, lambda d: d.read_step)
    turned = not read or read[0].write_step != 1
    _grow(tile, read, 2 * READ if turned else READ, width)
    return tile if _bytes(tile, width) <= LARGEST else {}


def lies_straight(digits: Sequence[Digit], width: int) -> bool:
    """Whether both streams are contiguous along the same loops, for runs that are worth copying as they are."""
    tile: dict[str, int] = {}
    _grow(tile, _prefix(digits), STRAIGHT, width)
    return _bytes(tile, width) >= READ


def _bytes(tile: dict[str, int], width: int) -> int:
    total = width
    for count in tile.values():
        total *= count
    return total


def _chain(digits: Sequence[Digit], step: Callable[[Digit], int | None]) -> list[Digit]:
    """The loops along which one stream is contiguous, innermost first."""
    chain: list[Digit] = []
    size = 1
    while True:
        found = next((d for d in digits if d not in chain and d.size != 1 and step(d) == size), None)
        if found is None:
            return chain
        chain.append(found)
        if found.size is None:
            return chain
        size *= found.size


def _prefix(digits: Sequence[Digit]) -> list[Digit]:
    """The loops along which both streams are contiguous."""
    prefix: list[Digit] = []
    for written, read in zip(_chain(digits, lambda d: d.write_step), _chain(digits, lambda d: d.read_step), strict=False):
        if written != read:
            break
        prefix.append(written)
    return prefix


def _grow(tile: dict[str, int], chain: Sequence[Digit], wanted: int, width: int) -> None:
    """Take loops of a chain into the tile until their runs have the bytes that are wanted, or the tile is as large as it may be."""
    run = width
    for digit in chain:
        if run >= wanted:
            return
        size = digit.size if digit.size is not None else UNKNOWN
        before = tile.get(digit.name, 1)
        room = LARGEST // (_bytes(tile, width) // before)
        count = max(before, min(size, -(-wanted // run), room))
        if size <= FEW * count:
            # Few tiles along this loop are made alike, or one: a last one that is small would be as much work.
            count = max(before, min(-(-size // max(size // count, 1)), room))
        elif count > BLOCK:
            count = max(before, count - count % BLOCK)
        if count > 1:
            tile[digit.name] = count
        run *= count
        if count < size:
            return
