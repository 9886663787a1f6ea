"""Operands of matrix instructions by name: as a library of them has them, as AMD's and NVIDIA's manuals say, and each
element held equally often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
import tensor_layouts
from tensor_layouts import analysis, atoms_amd, atoms_amx, atoms_nv, atoms_xe
from tensor_layouts.atoms import MMAAtom
from tests.random.layout_campaign import cells_of

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.atoms import Operand, atom_of, parse_operand
from layoutproof.ir.notations.cute import CuteLayout
from layoutproof.verify.layouts.conflicts import Memory, count_conflicts
from layoutproof.verify.layouts.properties import broadcast_axes
from layoutproof.verify.maps.layout_text import read_layout
from layoutproof.verify.maps.map_facts import report_on
from layoutproof.verify.verdict.verdict import Status

OPERANDS = ("A", "B", "C")


def named() -> Iterator[tuple[str, MMAAtom]]:
    """Every named matrix instruction of the library."""
    for module in (atoms_nv, atoms_amd, atoms_amx, atoms_xe):
        for name, value in vars(module).items():
            if isinstance(value, MMAAtom):
                yield name, value


ATOMS = dict(named())
# Names of instructions that the architecture lacks: RDNA4 has 16x16x16, and 16x16x32 of 4 bits.
LACKING = [name for name in ATOMS if name.startswith("RDNA4")]


def theirs(atom: MMAAtom, which: str) -> CuteLayout:
    """An operand of the library as a layout of the tool."""
    layout = getattr(atom, f"{which.lower()}_layout")
    return CuteLayout(layout.shape, layout.stride)


def difference(ours: CuteLayout, other: CuteLayout) -> tuple[int, int, int, int] | None:
    """The first lane and value with other offsets, which come last: both are sums over lane and value."""
    (lanes, values), (their_lanes, their_values) = ours.modes, other.modes
    if (lanes.size, values.size) != (their_lanes.size, their_values.size):
        return lanes.size, values.size, their_lanes.size, their_values.size
    points = [(lane, 0) for lane in range(lanes.size)] + [(0, value) for value in range(values.size)]
    for lane, value in points:
        pair = lanes(lane) + values(value), their_lanes(lane) + their_values(value)
        if pair[0] != pair[1]:
            return lane, value, *pair
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
        (blocks, columns), (groups, size) = other.shape  # type: ignore[misc]  # they are nested so
        (block, column), (group, inner) = other.stride  # type: ignore[misc]
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
    equally often, but for AMD's whose K is divided among lanes, and one of NVIDIA's. The library's own analysis agrees.
    """
    short = Counter[str]()
    known: dict[str, tuple[bool, bool]] = {}
    for name, atom in ATOMS.items():
        expected = analysis.operand_analysis(atom)
        for which in OPERANDS:
            layout, found = theirs(atom, which), expected[which.lower()]
            if str(layout) not in known:
                known[str(layout)] = judged(layout)
            injective, covers = known[str(layout)]
            assert injective == (found["duplicates"] == 0), (name, which)
            assert (covers and layout_size(layout) == found["domain_size"]) == found["coverage_ok"], (name, which)
            if which == "C":
                assert injective and covers
            elif not found["coverage_ok"]:
                short[f"{name[:4]}.{which}"] += 1
    assert len(ATOMS) == 187
    assert short == {"CDNA.A": 34, "CDNA.B": 33, "SM80.B": 1}


def layout_size(layout: CuteLayout) -> int:
    """One more than the largest offset."""
    return 1 + sum((extent - 1) * stride for extent, stride in layout.flat)


def judged(layout: CuteLayout) -> tuple[bool, bool]:
    """Whether a layout is proved injective, and whether its offsets have no gaps, by its reports."""
    if layout.size > 1 << 14:
        assert leading(layout) == 0
        return False, judged(layout.modes[1])[1]
    written = read_layout(str(layout))
    report = report_on(written.index_map, written.extents())
    assert report.injective.status in (Status.PROVED, Status.REFUTED)
    axes = broadcast_axes(written.index_map, written.extents())
    assert all(layout.flat[axis][1] == 0 for axis in axes)
    offsets = cells_of(written.index_map, tuple(extent for extent, _ in layout.flat))[:, 0]
    return report.injective.status is Status.PROVED, bool(len(np.unique(offsets)) == layout_size(layout))


def leading(layout: CuteLayout) -> int:
    """The stride of the first mode, which is plain."""
    stride = layout.modes[0].stride
    assert isinstance(stride, int)
    return stride


@pytest.mark.campaign
def test_bank_conflicts_are_those_of_the_library() -> None:
    """The most words of one bank that 32 lanes want with all their values are those that the library counts."""
    seen, degrees = set(), Counter[int]()
    for atom in ATOMS.values():
        for which in OPERANDS:
            layout = theirs(atom, which)
            if str(layout) in seen or layout.size > 1 << 13:
                continue
            seen.add(str(layout))
            lanes, values = layout.modes[0].size, layout.modes[1].size
            group = min(lanes, 32)
            offset = layout.map_on((lanes, values))
            # All values of a group of lanes at once: one phase of group * values accesses.
            first = IndexMap.from_func(lambda access, group=group: [access % group, access // group])  # type: ignore[misc]
            for element in (1, 2, 4):
                phase = 1 << (group * values - 1).bit_length()
                found = count_conflicts(offset.compose(first), (group * values,), Memory(element=element, phase=phase))
                expected = analysis.bank_conflicts(
                    tensor_layouts.Layout(layout.shape, layout.stride), element_bytes=element, group_size=group
                )
                assert found.worst == expected["max_ways"], (layout, element)
                degrees[found.worst] += 1
    assert len(seen) > 60 and max(degrees) >= 8, degrees


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
