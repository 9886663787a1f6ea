"""Ready layouts of tensors in textures: what is proved of each for all shapes is what counting finds, and schedules
take them.
"""

from __future__ import annotations

from itertools import product
from math import prod
from random import Random

import pytest
from tests.lowering.small_operators import assert_same_results
from tests.shares import one_in
from tests.verify.programs import program, statuses

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import AXIS_SEPARATOR, IndexMap
from layoutproof.ir.text import Style, expr_text
from layoutproof.lowering.layout import textures
from layoutproof.lowering.layout.textures import NHC4W4, RGBA, TEXTURE_LAYOUTS, TextureLayout
from layoutproof.lowering.lower.flatten import FlattenBuffer, LowerBlocks
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.textures.texture_checks import PROFILES, check_texels
from layoutproof.verify.verdict.verdict import Status

LAYOUTS = tuple(TEXTURE_LAYOUTS.values())
each_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)


def shapes(layout: TextureLayout, number: int) -> list[tuple[int, ...]]:
    """Small random shapes, the first all ones."""
    rng = Random(layout.name)
    return [tuple(1 if k == 0 else rng.randint(1, 7) for _ in layout.axes) for k in range(number)]


def symbolic(layout: TextureLayout, exprs: tuple[Expr, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The values of expressions over the names of a layout's extents, at a shape."""
    values = {letter.upper(): extent for letter, extent in zip(layout.axes, shape, strict=True)}
    return tuple(int(evaluate(expr, values)) for expr in exprs)


@each_layout
def test_proved_for_all_shapes(layout: TextureLayout) -> None:
    """Each layout gives each element a place of its own, and says which places are padding, whatever the extents."""
    report = check_map(layout.index_map, layout.sizes)
    assert report.injective.status is Status.PROVED
    assert report.padding.predicate is not None and report.inverse is not None
    assert expr_text(layout.physical_shape(layout.sizes)[-1], Style.PLAIN) == str(RGBA)


@one_in(4)
@each_layout
def test_places_as_counted(layout: TextureLayout) -> None:
    """At small shapes the map is injective and its box is the stated one, for numbers and for names."""
    of_names = layout.physical_shape(layout.sizes)
    for shape in shapes(layout, 8):
        places = {layout.index_map.evaluate(index) for index in product(*map(range, shape))}
        box = symbolic(layout, layout.physical_shape(shape), shape)
        assert len(places) == prod(shape)
        assert box == symbolic(layout, of_names, shape) == layout.index_map.map_shape(shape)
        assert all(0 <= part < extent for place in places for part, extent in zip(place, box, strict=True))


@each_layout
def test_texels_as_counted(layout: TextureLayout) -> None:
    """Width, height and layers are the products of the groups without channels; at most one texel per element."""
    of_names = layout.texels(layout.sizes)
    for shape in shapes(layout, 8):
        box = layout.index_map.map_shape(shape)
        *outer, last = [prod(box[axis] for axis in group) for group in layout.index_map.groups]
        counted = (last // RGBA, *reversed(outer))
        found = [side for side in (of_names.width, of_names.height, of_names.layers) if side is not None]
        assert symbolic(layout, tuple(found), shape) == counted
        sides = layout.texels(shape)
        assert [
            int(evaluate(side, {})) for side in (sides.width, sides.height, sides.layers) if side is not None
        ] == list(counted)
        assert prod(counted) <= prod(shape)
    assert (of_names.layers is not None) == (layout.kind == "image2d_array")


def flattened(layout: TextureLayout) -> IndexMap:
    """The map to layer, row and column of the image, columns counting channels, over names for the extents."""
    box = layout.physical_shape(layout.sizes)
    found: list[Expr] = []
    for group in layout.index_map.groups:
        number: Expr = layout.index_map.outputs[group[0]]
        for axis in group[1:]:
            number = number * box[axis] + layout.index_map.outputs[axis]
        found.append(number)
    return IndexMap(layout.index_map.inputs, tuple(found))


@each_layout
def test_no_two_elements_share_a_channel_of_the_image(layout: TextureLayout) -> None:
    """The coordinates in the image itself, products of extents and all, tell the elements apart for all shapes."""
    assert check_map(flattened(layout), layout.sizes).injective.status is Status.PROVED


@each_layout
def test_a_layout_is_a_function_of_indices(layout: TextureLayout) -> None:
    """Called, a layout gives the list that a lambda would, separators in their places; both ways make one text."""
    assert IndexMap.from_func(layout).outputs == layout.index_map.outputs
    assert IndexMap.from_func(layout).separators == layout.separators
    assert layout(*range(1, 1 + len(layout.axes))).count(AXIS_SEPARATOR) == len(layout.separators)


def test_the_same_places_for_another_order() -> None:
    """A layout of a tensor with its axes in another order puts each element where it was."""
    nhwc = NHC4W4.taking("nhwc")
    assert nhwc.text == "lambda n, h, w, c: [n, h, AXIS_SEPARATOR, c//4, w, c%4]"
    for n, c, h, w in product(range(2), range(6), range(3), range(2)):
        assert nhwc.index_map.evaluate((n, h, w, c)) == NHC4W4.index_map.evaluate((n, c, h, w))


@pytest.mark.parametrize("axes", ["nhw", "nhwd", "nnhw", ""])
def test_other_letters_are_refused(axes: str) -> None:
    """The letters are the layout's own, each once."""
    with pytest.raises(LayoutproofError, match="NHC4W4 stores a tensor with the axes nchw"):
        NHC4W4.taking(axes)


@pytest.mark.parametrize("shape", ["n, h", (1, 2, 3), (1, 2, 3, 4, 5)])
def test_shapes_of_another_rank_are_refused(shape: str | tuple[int, ...]) -> None:
    """A shape has one extent for each axis."""
    with pytest.raises(LayoutproofError, match="extents"):
        NHC4W4.texels(shape)


def test_an_image_has_two_groups_or_three() -> None:
    """A map without separators is no layout in a texture."""
    with pytest.raises(ValueError, match="1 axis groups"):
        TextureLayout("flat", "memory in a row", IndexMap.identity(2))


TENSORS = tuple(layout for layout in LAYOUTS if layout.axes == "nchw")
COPY = """
    @T.prim_func
    def main(A: T.Buffer({shape}, "float32"), B: T.Buffer({shape}, "float32", scope="global.texture")):
        {symbols}
        T.func_attr({{"tirx.noalias": True}})
        for n, h, w, c in T.grid({extents}):
            with T.block("double"):
                vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
                B[vn, vh, vw, vc] = A[vn, vh, vw, vc] * T.float32(2.0)
"""


@one_in(4)
@pytest.mark.parametrize("layout", TENSORS, ids=lambda layout: layout.name)
def test_a_schedule_takes_them(layout: TextureLayout) -> None:
    """A buffer is stored by a layout by handing it over; the program goes on to mean the same, and its texels are
    proved.
    """
    func = program(COPY.format(shape="(2, 3, 5, 6)", symbols="", extents="2, 3, 5, 6"))
    schedule = Schedule(func)
    schedule.transform_layout("double", "B", layout.taking("nhwc"), 0.0)
    assert_same_results(func, schedule.func)
    lowered = schedule.lower()
    assert statuses(check_texels(lowered, PROFILES["4096x4096"])) == {Status.PROVED}


def by_texels(layout: TextureLayout) -> Schedule:
    """A copy of a tensor of any shape into a texture, in the order of its cells."""
    symbols = "a, b, d, e = T.int32(), T.int32(), T.int32(), T.int32()"
    schedule = Schedule(program(COPY.format(shape='("a", "b", "d", "e")', symbols=symbols, extents="a, b, d, e")))
    schedule.transform_layout("double", "B", layout.taking("nhwc"), 0.0)
    schedule.sequential_buffer_access("double", "B")
    return schedule


@one_in(9)
@pytest.mark.parametrize("layout", TENSORS, ids=lambda layout: layout.name)
def test_texels_of_any_shape(layout: TextureLayout) -> None:
    """With extents that are symbols, what textures ask for is proved; only the size is asked of each call."""
    verdicts = check_texels(by_texels(layout).lower(), PROFILES["16384x16384"])
    assert statuses(verdicts) == {Status.PROVED}
    assert [v.claim.text for v in verdicts if v.claim.text.startswith("precondition: ")]


@one_in(10)
@pytest.mark.parametrize("layout", TENSORS, ids=lambda layout: layout.name)
def test_a_work_item_for_each_texel(layout: TextureLayout) -> None:
    """With each texel written by a work item of its own, channel after channel, no texel is clobbered, whatever the
    shape; with a work item for each channel it is.
    """
    schedule = by_texels(layout)
    axes = layout.index_map.rank
    for loop, expected in ((axes - 2, Status.PROVED), (axes - 1, Status.REFUTED)):
        for outer in range(loop + 1):
            schedule.parallel("double", outer)
        blocks = LowerBlocks().propose(schedule.func).new
        verdicts = check_texels(FlattenBuffer().propose(blocks).new, PROFILES["16384x16384"])
        of_loops = next(v for v in verdicts if "covers its texel" in v.claim.text)
        assert of_loops.status is expected


def test_the_names_are_those_of_the_module() -> None:
    """Every layout is found by its name, in the table and in the module."""
    assert all(getattr(textures, name) is layout and layout.name == name for name, layout in TEXTURE_LAYOUTS.items())
