"""Operands of matrix instructions by name: as a library of them has them, as AMD's and NVIDIA's manuals say, and each
element held equally often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree

import numpy as np
import pytest
import tensor_layouts
from tensor_layouts import analysis, atoms_amd, atoms_amx, atoms_nv, atoms_xe
from tensor_layouts.atoms import MMAAtom
from tests.random.layout_campaign import cells_of
from tests.random.layouts import Ints
from tests.shares import one_in

import layoutproof as lp
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.notations.atoms import Operand, atom_of, parse_operand
from layoutproof.ir.notations.cute import CuteLayout, leaves
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.verify.layouts.conflicts import Memory, count_conflicts
from layoutproof.verify.maps.injective import prove_injective
from layoutproof.verify.maps.layout_text import read_layout
from layoutproof.verify.verdict.verdict import Status

OPERANDS = ("A", "B", "C")


def named() -> Iterator[tuple[str, MMAAtom]]:
    """Every named matrix instruction of the library."""
    for module in (atoms_nv, atoms_amd, atoms_amx, atoms_xe):
        for name, value in vars(module).items():
            if isinstance(value, MMAAtom):
                yield name, value


MOST_COLLIDING = 1 << 18  # points of a map that is not injective, as `map_picture` draws them
ATOMS = dict(named())
# Names of instructions that the architecture lacks: RDNA4 has 16x16x16, and 16x16x32 of 4 bits.
LACKING = [name for name in ATOMS if name.startswith("RDNA4")]


def theirs(atom: MMAAtom, which: str) -> CuteLayout:
    """An operand of the library as a layout of the tool."""
    layout = getattr(atom, f"{which.lower()}_layout")
    return CuteLayout(layout.shape, layout.stride)


def offsets(layout: CuteLayout) -> Ints:
    """The offset of every coordinate, by digits."""
    index = np.arange(layout.size, dtype=np.int64)
    found = np.zeros(layout.size, dtype=np.int64)
    for extent, stride in layout.flat:
        found += index % extent * stride
        index //= extent
    return found


def difference(ours: CuteLayout, other: CuteLayout) -> tuple[int, int, int, int] | None:
    """The first lane and value with other offsets, which come last: both are sums over lane and value."""
    (lanes, values), (their_lanes, their_values) = ours.modes, other.modes
    if (lanes.size, values.size) != (their_lanes.size, their_values.size):
        return lanes.size, values.size, their_lanes.size, their_values.size
    for mode, other_mode, of_lane in ((lanes, their_lanes, True), (values, their_values, False)):
        a, b = offsets(mode), offsets(other_mode)
        wrong = np.flatnonzero(a != b)
        if len(wrong):
            place = int(wrong[0])
            return (place, 0, int(a[place]), int(b[place])) if of_lane else (0, place, int(a[place]), int(b[place]))
    return None


def test_named_operands_are_those_of_the_library() -> None:
    """All operands of NVIDIA's, Intel's and AMX's 137 instructions are the library's but one, which misses elements."""
    wrong, seen = {}, 0
    for name, atom in ATOMS.items():
        if name.startswith(("CDNA", "RDNA")):
            continue
        for which in OPERANDS:
            seen += 1
            found = difference(atom_of(name).operand(which).layout(), theirs(atom, which))
            if found is not None:
                wrong[f"{name}.{which}"] = found
    # Lane 1 holds K from 8 on: offset 64 of N = 8 rows. The library, and CUTLASS, say 32, which is K = 4.
    assert wrong == {"SM80_16x8x32_S32S4S4S32_TN.B": (1, 0, 64, 32)}
    assert seen == 3 * 137


@one_in(301)
@pytest.mark.parametrize("name", [name for name in ATOMS if name not in LACKING])
def test_operands_are_drawn_by_lane(name: str) -> None:
    """Each operand has a picture with the cells of it that are shown; but those that all lanes of a large tile hold."""
    for which in OPERANDS:
        layout = atom_of(name).operand(which).layout()
        if layout.size > MOST_COLLIDING and layout.size > len(set(offsets(layout))):
            with pytest.raises(LayoutproofError, match="too many to draw"):
                lp.draw(f"{name}.{which}")
            continue
        picture = ElementTree.fromstring(lp.draw(f"{name}.{which}", cells=64).svg)
        assert sum(part.tag.endswith("title") for part in picture.iter()) >= min(16, layout.size), which


def test_amd_in_the_library_takes_lanes_apart_the_wrong_way() -> None:
    """The library's text says that a lane's block is `lane // columns`; its layouts count blocks fastest. With the
    blocks of its text, and K divided among them, C is as here.
    """
    checked = 0
    for name, atom in ATOMS.items():
        if not name.startswith("CDNA") or theirs(atom, "C").size != atom_of(name).operand("C").layout().size:
            continue
        if name.startswith("CDNA_4x4x4"):
            continue  # sixteen products, which the library has as one of 4x64x4
        other, ours = theirs(atom, "C"), atom_of(name).operand("C").layout()
        assert difference(ours, other) is not None
        # Their digits: ((blocks, columns), (groups, size)), of which the text makes lane = column + columns * block.
        blocks, columns, groups, size = leaves(other.shape)
        block, column, group, inner = leaves(other.stride)
        turned = CuteLayout(((columns, blocks), (size, groups)), ((column, block), (inner, group)))
        assert difference(ours, turned) is None, name
        checked += 1
    assert checked == 33


def test_elements_are_held_equally_often() -> None:
    """Every element of an operand is held by some lane, and by as many as any other: once, or broadcast."""
    names = [name for name in ATOMS if name not in LACKING]
    for operand in dict.fromkeys(atom_of(name).operand(which) for name in names for which in OPERANDS):
        lanes, values = operand.shape
        if lanes * values > 1 << 14:
            lanes = 1  # of factors in shared memory, all lanes are alike
            assert all(not row and not column for _, row, column in operand.lane)
        cells = cells_of(operand.index_map(), (lanes, values))
        counts = np.unique(cells[:, 0] + cells[:, 1] * operand.rows, return_counts=True)[1]
        assert len(counts) == operand.rows * operand.columns and len(set(counts.tolist())) == 1
        offsets = (cells[:, 0] + cells[:, 1] * operand.rows).reshape(lanes, values)
        layout = operand.layout()
        for lane, value in ((lanes - 1, 0), (0, values - 1), (lanes // 3, values // 5)):
            assert layout(lane + value * operand.shape[0]) == offsets[lane, value]


@pytest.mark.campaign
def test_every_layout_of_the_library() -> None:
    """Of all 187 named instructions, written as CuTe layouts: C is a bijection; A and B are, or hold all elements
    equally often, but for AMD's whose K is divided among lanes, and one of NVIDIA's. Where a layout is small, the
    library's own analysis is asked, and agrees.
    """
    short, asked = Counter[str](), set[str]()
    known: dict[str, tuple[bool, int, bool]] = {}
    for name, atom in ATOMS.items():
        m, n, k = atom.shape_mnk
        for which, elements in (("A", m * k), ("B", n * k), ("C", m * n)):
            layout = theirs(atom, which)
            if str(layout) not in known:
                known[str(layout)] = judged(layout)
            injective, reached, evenly = known[str(layout)]
            covers = reached == elements and evenly
            if layout.size <= 1 << 10 and f"{layout} {elements}" not in asked:
                asked.add(f"{layout} {elements}")
                found = analysis.operand_analysis(atom)[which.lower()]
                assert injective == (found["duplicates"] == 0), (name, which)
                assert (reached == elements) == found["coverage_ok"], (name, which)
            if which == "C":
                assert injective and covers
            elif not covers:
                short[f"{name[:4]}.{which}"] += 1
    assert len(ATOMS) == 187 and len(asked) > 40
    assert short == {"CDNA.A": 34, "CDNA.B": 33, "SM80.B": 1}


def judged(layout: CuteLayout) -> tuple[bool, int, bool]:
    """Whether a layout is proved injective, the number of its offsets if they have no gaps, and whether it reaches them
    equally often. Of large ones, whose lanes all have the same, one lane is asked.
    """
    if layout.size > 1 << 14 and not offsets(layout.modes[0]).any():
        injective, reached, evenly = judged(layout.modes[1])
        return injective and layout.modes[0].size == 1, reached, evenly
    written = read_layout(str(layout))
    verdict = prove_injective(written.index_map, written.extents())
    assert verdict.status in (Status.PROVED, Status.REFUTED)
    cells = cells_of(written.index_map, tuple(extent for extent, _ in layout.flat))[:, 0]
    places, counts = np.unique(cells, return_counts=True)
    whole = len(places) == int(places[-1]) + 1
    return verdict.status is Status.PROVED, len(places) if whole else -1, len(set(counts.tolist())) == 1


@pytest.mark.campaign
def test_bank_conflicts_are_those_of_the_library() -> None:
    """The most words of one bank that 32 lanes want with all their values are those that the library counts."""
    seen, degrees = set(), Counter[int]()
    for atom in ATOMS.values():
        for which in OPERANDS:
            layout = theirs(atom, which)
            if str(layout) in seen or layout.size > 1 << 10:
                continue
            seen.add(str(layout))
            lanes, values = layout.modes[0].size, layout.modes[1].size
            group = min(lanes, 32)
            offset = layout.map_on((lanes, values))
            # All values of a group of lanes at once: one phase of group * values accesses.
            first = parse_index_map(f"lambda access: [access % {group}, access // {group}]")
            for element in (1, 2, 4):
                phase = 1 << (group * values - 1).bit_length()
                found = count_conflicts(offset.compose(first), (group * values,), Memory(element=element, phase=phase))
                expected = analysis.bank_conflicts(
                    tensor_layouts.Layout(layout.shape, layout.stride), element_bytes=element, group_size=group
                )
                assert found.worst == expected["max_ways"], (layout, element)
                degrees[found.worst] += 1
    assert len(seen) > 40 and max(degrees) >= 8, degrees


@pytest.mark.parametrize(
    ("text", "lane", "value", "place"),
    [
        # v_mfma_f32_32x32x8_f16: lane l holds row l % 32 of A, K from 4 * (l // 32); four rows of C after each other.
        ("CDNA_32x32x8_F32F16F16_MFMA.A", 33, 2, (1, 6)),
        ("CDNA_32x32x8_F32F16F16_MFMA.C", 33, 5, (13, 1)),
        ("CDNA_16x16x4_F64F64F64_MFMA.C", 17, 2, (9, 1)),
        ("CDNA_32x32x4_F32F16F16_MFMA.C", 33, 17, (37, 1)),
        ("CDNA_4x4x4_F32F16F16_MFMA.C", 5, 2, (6, 1)),
        ("RDNA3_16x16x16_F32F16F16_WMMA.C", 17, 3, (7, 1)),
        ("RDNA4_16x16x16_F32F16F16_WMMA.A", 17, 5, (1, 13)),
        ("RDNA4_16x16x32_I32I4I4_WMMA.A", 17, 5, (1, 21)),
        ("SM90_64x16x16_F32F16F16_RS.A", 37, 3, (25, 3)),
        ("SM120_16x8x64_F32E4M3E4M3F32_TN_SPARSE.B", 5, 6, (1, 22)),
    ],
)  # fmt: skip
def test_places_by_the_manuals(text: str, lane: int, value: int, place: tuple[int, int]) -> None:
    """Single elements, worked out by hand from the makers' descriptions."""
    assert parse_operand(text).index_map().evaluate((lane, value)) == place


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SM80_16x8x16_F32F16F16F32_TN", "1:29.*and an operand, A, B or C"),
        ("SM80_16x8x16_F32F16F16F32_TN.D", "1:30.*the operand is A, B or C, not D"),
        ("SM80_16x8x16_F32F16F16F32_TN.A x", "1:32.*the text should end here"),
        ("SM80_16x8x9_F32F16F16F32_TN.A", "1:1.*no instruction of SM80 multiplies 16x8x9 of F32F16F16F32"),
        ("SM80_16x16x16_F32F16F16F32_TN.A", "no instruction of SM80 multiplies 16x16x16"),
        ("SM80_16x8x16_X.A", "no instruction of SM80"),
        ("SM42_16x8x16_F32F16F16F32_TN.A", "the architecture SM42 is none of SM61, SM70"),
        ("SM70_8x8x4_F32F16F16F32_XY.A", "no instruction of SM70"),
        ("SM90_64x12x16_F32F16F16_SS.A", "no instruction of SM90"),
        ("SM61_2x2x4_S32S8S8S32.A", "no instruction of SM61"),
        ("CDNA_8x8x4_F32F16F16_MFMA.A", "no instruction of CDNA"),
        ("CDNA_32x32x3_F32F16F16_MFMA.A", "no instruction of CDNA"),
        ("RDNA4_16x16x32_F32F16F16_WMMA.A", "no instruction of RDNA4"),
        ("XeHPC_8x16x8_F32F16F16_DPAS.A", "no instruction of XeHPC"),
        ("SM80_16x8x_F.A", "has not the form ARCH_MxNxK_TYPES"),
        ("SM80_0x8x16_F32F16F16F32_TN.A", "has not the form ARCH_MxNxK_TYPES"),
        ("?", "a name such as SM80"),
    ],
)
def test_a_name_that_is_none_is_refused(text: str, message: str) -> None:
    """The message has the column and what was expected."""
    with pytest.raises(LayoutproofError, match=message):
        read_layout(text, notation="mma")


def test_volta_and_the_dot_product() -> None:
    """The oldest instructions: eight lanes, and one."""
    assert parse_operand("SM61_1x1x4_S32S8S8S32.C") == Operand(1, 1, ((1, 0, 0),), ((1, 0, 0),))
    assert parse_operand("SM70_8x8x4_F32F16F16F32_TT.B").index_map().evaluate((5, 2)) == (6, 1)
