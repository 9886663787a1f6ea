"""Layouts against the programs whose notations they are in: Triton and CUTLASS's pycute (the extra `layouts`), MLIR's
`mlir-opt`, TVM, and oneDNN (Debian and Ubuntu, apt install libdnnl-dev), which is asked to reorder arrays.
"""

from __future__ import annotations

from random import Random

import pytest
from tests.oracle.layouts import ORACLES, is_missing, left_inverses
from tests.oracle.triton import draw_points, linear_layouts

from layoutproof.ir.notations.cute import CuteLayout, parse_cute
from layoutproof.ir.notations.triton import HARDWARE
from layoutproof.verify.layouts.cute_algebra import complement, composition, cosize
from layoutproof.verify.layouts.linear_algebra import invert

pytestmark = pytest.mark.campaign


@pytest.mark.parametrize("name", [name for name in ORACLES if not is_missing(name)])
def test_other_systems_place_layouts_alike(name: str) -> None:
    """What each system says of random layouts is what the tool reads from their text."""
    assert ORACLES[name](Random(f"{name} in every campaign"), 1000) > 0


def test_triton_inverts_linear_layouts() -> None:
    """Triton's own linear layouts have the same inverses, and the same opinion on which have one."""
    from triton._C.libtriton.linear_layout import LinearLayout as Theirs

    draw = Random("linear layouts of Triton")
    inverted = 0
    for layout, bases in linear_layouts(draw, 1500):
        names = [f"dim{axis}" for axis in range(len(layout.extents))]
        theirs = Theirs.from_bases(list(zip(HARDWARE, bases, strict=True)), names, list(layout.extents), False)
        if not theirs.is_invertible():
            with pytest.raises(ValueError, match="the layout is not"):
                invert(layout)
            continue
        inverted += 1
        back, ours = theirs.invert(), invert(layout)
        for index in draw_points(draw, layout.extents):
            found = back.apply(dict(zip(names, index, strict=True)))
            assert ours(index) == tuple(found[name] for name in HARDWARE)
    assert inverted > 300


def test_pycute_is_wrong_where_a_stride_does_not_divide() -> None:
    """Off its domain `pycute`'s left inverse does not lead back, with no complaint: the example of the page is one."""
    import pycute

    layout = parse_cute("(3,2):(1,4)")
    offsets = [layout(index) for index in range(layout.size)]
    assert offsets == [0, 1, 2, 4, 5, 6]
    assert [pycute.left_inverse(pycute.Layout((3, 2), (1, 4)))(offset) for offset in offsets] == [0, 1, 2, 4, 5, 6]
    assert complement(layout, cosize(layout)).layout is None
    wrong = [wrong for _, _, wrong in left_inverses(Random("inverses of pycute"), 500) if wrong is not None]
    assert len(wrong) > 20


def test_pycute_composes_alike() -> None:
    """Where both compose two layouts and B stays inside A, they do it alike; pycute checks less, and may be wrong."""
    import pycute

    draw = Random("compositions of pycute")
    both = wrong = 0
    for _ in range(3000):
        a, b = (_plain(draw) for _ in range(2))
        try:
            theirs = pycute.composition(pycute.Layout(a.shape, a.stride), pycute.Layout(b.shape, b.stride))
        except AssertionError:
            continue
        values = [a(b(index)) for index in range(b.size)]
        # pycute drops coordinates where it divides by what does not divide: 8 of B become 6.
        right = theirs.size() == b.size and [theirs(index) for index in range(b.size)] == values
        ours = composition(a, b)
        if ours.layout is not None:
            both += 1
            assert [ours.layout(index) for index in range(b.size)] == values
        if len(ours.conditions) == 2 and ours.layout is None:
            assert not right
        wrong += not right
    assert both > 300 and wrong > 0


def _plain(draw: Random) -> CuteLayout:
    count = draw.randint(1, 3)
    shape = tuple(draw.choice([1, 2, 3, 4, 6, 8]) for _ in range(count))
    stride = [0] * count
    step = 1
    for axis in draw.sample(range(count), count):
        stride[axis] = step
        step *= shape[axis]
    return CuteLayout(shape, tuple(stride))
