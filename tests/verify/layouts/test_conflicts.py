"""Bank conflicts against a count in plain Python, smallest swizzles and paddings against trying all smaller ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from random import Random

import numpy as np
import pytest
from tests.random.layout_campaign import cells_of

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.cute import Swizzle
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.verify.layouts.accesses import in_memory, judge_accesses, read_access
from layoutproof.verify.layouts.conflict_free import Pattern, find_conflict_free
from layoutproof.verify.layouts.conflicts import Memory, count_conflicts, count_transactions
from layoutproof.verify.maps.layout_text import read_layout


def brute_rounds(offsets: Sequence[Sequence[int]], memory: Memory) -> list[int]:
    """The rounds of each phase: for each bank, the set of its words that the lanes want."""
    rounds = []
    for row in offsets:
        for start in range(0, len(row), memory.lanes):
            words: dict[int, set[int]] = {}
            for offset in row[start : start + memory.lanes]:
                for byte in range(offset * memory.element, (offset + memory.vector) * memory.element):
                    word = byte // memory.width
                    words.setdefault(word % memory.banks, set()).add(word)
            rounds.append(max(len(found) for found in words.values()))
    return rounds


def rows_of(offset: IndexMap, shape: tuple[int, ...]) -> list[list[int]]:
    return cells_of(offset, shape).reshape(-1, shape[-1]).tolist()


def draw_pattern(draw: Random) -> tuple[IndexMap, tuple[int, ...]]:
    lanes = draw.choice([8, 16, 32, 32, 32, 48])
    shape = (draw.choice([1, 2, 3, 4]), lanes)
    step, pitch = draw.choice([1, 2, 4, 8, 32, 33, 64]), draw.choice([0, 1, 4, 32, 64, 100])
    inner = f"(k*{pitch} + t*{step})"
    text = draw.choice([inner, f"({inner} ^ ({inner} >> 5 & 7) * 4)", f"(k + t % 8 * {pitch} + t//8 * {step})"])
    return parse_index_map(f"lambda k, t: [{text}]"), shape


def test_counts_by_brute_force() -> None:
    """Rounds, the worst phase and the number of phases are those of a count word by word, by either engine."""
    draw = Random("conflicts in every run")
    engines = set()
    for _ in range(150):
        offset, shape = draw_pattern(draw)
        memory = Memory(
            draw.choice([16, 32]), draw.choice([4, 8]), draw.choice([1, 2, 4, 8]), draw.choice([1, 1, 2, 4])
        )
        found = count_conflicts(offset, shape, memory)
        expected = brute_rounds(rows_of(offset, shape), memory)
        assert (found.phases, found.rounds, found.worst) == (len(expected), sum(expected), max(expected)), (
            offset,
            shape,
        )
        engines.add(found.engine)
    assert engines == {"GF(2)", "enumeration"}


def test_the_worst_phase_is_one() -> None:
    """The index and the bank of the report are those of a phase with the most rounds."""
    offset = parse_index_map("lambda k, t: [t * (k * 16 + 1)]")
    found = count_conflicts(offset, (3, 32), Memory())
    assert found.engine == "enumeration" and found.worst == 1
    offset = parse_index_map("lambda k, t: [t * (k * 16)]")
    found = count_conflicts(offset, (3, 32), Memory())
    assert (found.worst, found.at, found.bank) == (32, (2, 0), 0)


def test_transactions_by_brute_force() -> None:
    """Segments that the lanes of an iteration touch are counted byte by byte."""
    draw = Random("transactions in every run")
    for _ in range(40):
        offset, shape = draw_pattern(draw)
        memory = Memory(32, 4, draw.choice([2, 4]), draw.choice([1, 2]))
        touched = [
            {
                byte // 32
                for o in row
                for byte in range(o * memory.element, (o + memory.vector) * memory.element)
            }
            for row in rows_of(offset, shape)
        ]  # fmt: skip
        found = count_transactions(offset, shape, memory)
        assert (found.transactions, found.worst) == (sum(map(len, touched)), max(map(len, touched)))


CASES = [
    # A column of a 32x32 tile of words; rows of 128 bytes of halves as a matrix instruction loads them; both at once.
    ("lambda i, j: [i*32 + j]", (32, 32), ["lambda t: [t, 0]"], [(32,)], Memory()),
    ("lambda i, j: [i*64 + j]", (8, 64), ["lambda k, t: [t, k*8]"], [(8, 8)], Memory(element=2, vector=8)),
    ("lambda i, j: [i*16 + j]", (16, 16), ["lambda t: [t, 0]", "lambda t: [0, t]"], [(16,), (16,)], Memory(16, 4)),
    ("lambda i, j: [i*12 + j]", (6, 12), ["lambda t: [t, 0]"], [(6,)], Memory(8, 4)),
]


@pytest.mark.parametrize(("layout", "box", "accesses", "lanes", "memory"), CASES, ids=lambda value: str(value)[:24])
def test_the_smallest_swizzle_and_padding(
    layout: str, box: tuple[int, ...], accesses: list[str], lanes: list[tuple[int, ...]], memory: Memory
) -> None:
    """What is found has no conflicts, and trying every swizzle of fewer bits, and every smaller padding, finds none."""
    offset = parse_index_map(layout)
    row = offset.evaluate([1, 0])[0]
    patterns = [
        Pattern(offset.compose(parse_index_map(access)), shape) for access, shape in zip(accesses, lanes, strict=True)
    ]
    found = find_conflict_free(patterns, memory, row)
    rows = [rows_of(pattern.offset, pattern.shape) for pattern in patterns]

    def free(change: Swizzle | int) -> bool:
        moved = [
            [[change(o) if isinstance(change, Swizzle) else o + change * (o // row) for o in line] for line in each]
            for each in rows
        ]
        return all(max(brute_rounds(each, memory)) == 1 for each in moved)

    bits = max(o for each in rows for line in each for o in line).bit_length()
    least = memory.vector.bit_length() - 1
    every = [
        Swizzle(count, base, shift)
        for count, base, shift in product(range(bits), range(least, bits), range(1, bits))
        if shift >= count and base + count + shift <= bits
    ]
    free_ones = [swizzle for swizzle in every if free(swizzle)]
    if found.swizzle is None:
        assert free_ones == []
    else:
        assert free(found.swizzle)
        assert found.swizzle.bits == min(swizzle.bits for swizzle in [*free_ones, found.swizzle])
    paddings = [p for p in range(0, memory.banks * memory.width // memory.element, memory.vector) if free(p)]
    assert found.padding == (paddings[0] if paddings else None)


def test_known_answers() -> None:
    """The swizzle of eight rows of 128 bytes of halves is the one that is used for them everywhere."""
    layout = read_layout("(8,64):(64,1)")
    access = read_access("lambda k, t: [t % 8, k*8]", "8,8", layout)
    report = judge_accesses(layout, [access], Memory(element=2, vector=8), row=None)
    assert report.has_conflicts and report.patterns[0][1].rounds == 64
    assert report.found is not None
    assert (str(report.found.swizzle), report.found.padding, report.found.row) == ("Sw<3,3,3>", 8, 64)
    swizzled = read_layout("Sw<3,3,3> o 0 o (8,64):(64,1)")
    assert not judge_accesses(swizzled, [access], Memory(element=2, vector=8)).has_conflicts


@pytest.mark.parametrize("element", [1, 2, 4])
@pytest.mark.parametrize("row", [32, 64, 128])
def test_the_swizzles_of_cutlass_are_found(element: int, row: int) -> None:
    """For eight rows of 32, 64 and 128 bytes, read 16 bytes a lane, the search ends at CUTLASS's own: 1, 2 and 3 bits,
    from the vector on, 3 places up. All of fewer bits were counted, and have conflicts.
    """
    columns, vector = row // element, 16 // element
    layout = read_layout(f"(8,{columns}):({columns},1)")
    access = read_access(f"lambda k, t: [t, k*{vector}]", f"{columns // vector},8", layout)
    found = judge_accesses(layout, [access], Memory(element=element, vector=vector), row=None).found
    expected = Swizzle({32: 1, 64: 2, 128: 3}[row], vector.bit_length() - 1, 3)
    assert found is not None and found.swizzle == expected


def test_patterns_in_other_notations() -> None:
    """Lanes of a Triton layout access its tensor; a CuTe layout may be accessed by one index."""
    layout = read_layout("(8,32):(32,1)")
    blocked = "#linear<{register=[[0,1]], lane=[[0,2],[0,4],[0,8],[0,16],[1,0]], warp=[[2,0],[4,0]], block=[]}>"
    found = judge_accesses(layout, [read_access(blocked, None, layout)], Memory()).patterns[0][1]
    assert (found.phases, found.rounds) == (8, 16)
    one = judge_accesses(layout, [read_access("32:1", None, layout)], Memory()).patterns[0][1]
    assert (one.phases, one.rounds) == (1, 8)


def test_shared_memory_of_triton() -> None:
    """Its layouts go from offsets to indices; accesses need the inverse. Triton's swizzle is CUTLASS's, without
    conflicts where rows alone have some.
    """
    access = "lambda k, t: [t, k*8]"
    for phases, conflicts in ((8, 0), (1, 56)):
        text = f"#ttg.swizzled_shared<{{vec = 8, perPhase = 1, maxPhase = {phases}, order = [1, 0]}}>"
        layout = in_memory(read_layout(text, read_layout("(8,64):(1,1)").shape))
        swizzle = "Sw<3,3,3>" if phases == 8 else "Sw<0,3,3>"
        same = read_layout(f"{swizzle} o 0 o (8,64):(64,1)")
        assert np.array_equal(cells_of(layout.index_map, (8, 64)), cells_of(same.index_map, (8, 64)))
        report = judge_accesses(layout, [read_access(access, "8,8", layout)], Memory(element=2, vector=8))
        assert report.patterns[0][1].conflicts == conflicts


def test_patterns_that_leave_the_layout_are_refused() -> None:
    """An access outside the layout, a pattern of another rank, and memories of odd sizes are errors."""
    layout = read_layout("lambda i, j: [i*32 + j]", read_layout("(8,32):(1,1)").shape)
    with pytest.raises(LayoutproofError, match="axis 0 of the access pattern goes from 0 to 31, of 8 indices"):
        judge_accesses(layout, [read_access("lambda t: [t, 0]", "32", layout)], Memory())
    with pytest.raises(LayoutproofError, match="gives 1 index, the layout takes 2"):
        read_access("lambda t: [t]", "32", layout)
    with pytest.raises(LayoutproofError, match="does not say the extents of its iterations and lanes"):
        read_access("lambda t: [t, 0]", None, layout)
    with pytest.raises(LayoutproofError, match="a power of two as its banks, not 12"):
        Memory(banks=12)
    with pytest.raises(LayoutproofError, match="accesses 256 bytes at once"):
        Memory(element=8, vector=32)
