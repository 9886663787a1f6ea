"""Four lanes that were written one by one as one vector, where they say the same of four channels or of four elements in a row.

Only float32: its operators mean the same on vectors as on each lane. Where the text of a lane holds anything else (a cast, a comparison,
an integer, a call that is another one in each lane), the vector is put together from its lanes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from layoutproof.lowering.codegen.opencl.images import TEXEL

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


def whole_texel(lanes: Sequence[str]) -> str | None:
    """The variable of which the lanes are the four channels in order."""
    texel = lanes[0].removesuffix(f".{CHANNELS[0]}")
    return texel if texel.isidentifier() and list(lanes) == [f"{texel}.{channel}" for channel in CHANNELS] else None


def elements_in_a_row(lanes: Sequence[str], is_pointer: Callable[[str], bool]) -> str | None:
    """A load of four elements one behind the other, if the lanes are those. `is_pointer` knows pointers to elements of their type."""
    pointer, _, place = lanes[0].removesuffix("]").partition("[")
    # `p + 1` is one more than `p` only where no operator in `p` binds looser than `+`.
    if not is_pointer(pointer) or _SUM.fullmatch(place) is None:
        return None
    places = (
        [str(int(place) + lane) for lane in range(TEXEL)] if place.isdecimal() else [place, *(f"{place} + {k}" for k in range(1, TEXEL))]
    )
    if list(lanes) != [f"{pointer}[{each}]" for each in places]:
        return None
    if place == "0":
        return f"vload4(0, {pointer})"
    return f"vload4(0, {pointer} + {place if place.isalnum() else f'({place})'})"


def same_of_all(lanes: Sequence[str], is_pointer: Callable[[str], bool]) -> str | None:
    """Arithmetic on float32 that is the same in all lanes, on whole vectors; None where it is not, or is more than that."""
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
    """The words, numbers and operators of a text; a call is one word with all that is in it. None where there is anything else."""
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
    """The place behind the bracket that closes the one before `place`, and behind a channel that is taken of the result."""
    depth = 1
    while depth > 0:
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        place += 1
    return place + 2 if re.match(r"\.[xyzw]\b", text[place:]) else place
