"""What the HTML report is told of schedules, rewrites and maps: whole programs, and cells that hold what the maps
say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import given, reject
from tests.cli.gate.scheduled import applied, changed, program, trace
from tests.random.index_maps import RandomMap, index_maps
from tests.records import read_record
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.cli.gate.judging.detail import detail_of, detail_of_map, detail_of_refusal, detail_of_rewrite
from layoutproof.cli.gate.judging.stored_cells import WHOLE, Stored, picture_data
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Var, const
from layoutproof.ir.layout_record import LayoutRecord, LayoutStep
from layoutproof.ir.notations.map_text import parse_condition, parse_index_map
from layoutproof.ir.notations.rewrite_text import parse_litmus
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.lowering.schedule.trace import program_text
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.map_report import MapReport

ROW, CONV = "row_sum", "conv2d"


def text_of(part: dict[str, Any], stage: int) -> str:
    """A program put together from its lines."""
    return "\n".join(part["lines"][number] for number in part["stages"][stage])


def shown_cells(data: Mapping[str, Any]) -> Iterator[tuple[tuple[int, ...], int | list[int]]]:
    """Every shown cell of a picture's data by its physical index, with its number."""
    indices = product(*(level["shown"] for level in data["levels"]))
    yield from zip(indices, data["cells"], strict=True)


@one_in(7)
@pytest.mark.parametrize("name", [ROW, CONV])
def test_programs_of_every_step(name: str) -> None:
    """A part holds the program before and after each step, with one difference for each, and is plain data."""
    schedule = Schedule.replay(program(name), trace(name))
    part = detail_of(schedule)
    functions = [schedule.original, *(step.rewrite.new for step in schedule.steps)]
    assert [text_of(part, stage) for stage in range(len(functions))] == [
        program_text(f).rstrip("\n") for f in functions
    ]
    assert len(part["changes"]) == len(schedule.steps) and not part["refused"]
    assert json.loads(json.dumps(part)) == part
    assert detail_of(schedule) == part


@one_in(9)
def test_contracts_and_assumptions() -> None:
    """What padding holds is said by buffer and map; assumptions name who answers for them, and the step that brought
    them.
    """
    part = detail_of(Schedule.replay(program(CONV), trace(CONV)))
    held = {one["buffer"]: (one["padding"], one["holds"], one["cells"]) for one in part["contracts"]}
    assert held["A"] == ("value", "T.float32(0.0)", 56 * 56 * 2)
    assert held["conv2d"] == ("undef", "undef", 56 * 56 * 2)
    whose = {(one["whose"], one["since"]) for one in part["assumptions"]}
    assert ("program", 1) in whose and ("call", 0) in whose
    symbolic = detail_of(Schedule.replay(program(ROW), trace(ROW)))
    assert {"text": "m + 3 fits int32", "whose": "call", "since": 0} in symbolic["assumptions"]


def test_a_refused_map_is_drawn_with_its_clashes() -> None:
    """Of a map that is not injective there is a picture, in which every cell names the indices that meet there."""
    schedule, refused, _ = applied(program(ROW), changed(ROW, 0, index_map="lambda i, j: [i//2, j]"))
    part = detail_of(schedule, refused)
    (layout,) = part["layouts"]
    width = layout["picture"]["sizes"]["m"]
    assert layout["refused"] and layout["buffer"] == "A"
    assert dict(shown_cells(layout["picture"]))[(3, 2)] == [6 * width + 2, 7 * width + 2]


@one_in(4)
def test_a_refused_step_has_its_program() -> None:
    """The program that a refused transform would have made is the last stage, and is not part of what all kept steps
    changed.
    """
    schedule, refused, problem = applied(program(ROW), changed(ROW, 0, pad_value=1.0))
    assert problem is not None and len(schedule.steps) == 2
    part = detail_of(schedule, refused)
    assert part["refused"] and len(part["stages"]) == 4 and len(part["changes"]) == 3
    assert sum(row[1] if row[0] == "=" else 0 for row in part["whole"]) < len(part["stages"][2])


def test_a_refusal_alone() -> None:
    """Where the schedule is not at hand, a refused step shows the program that it was for and the one that it would
    have made.
    """
    schedule, refused, _ = applied(program(ROW), changed(ROW, 0, pad_value=1.0))
    assert refused is not None
    part, whole = detail_of_refusal(refused), detail_of(schedule, refused)
    assert part["refused"] and part["primitives"] == ["remove_branching_through_overcompute"]
    assert [text_of(part, stage) for stage in (0, 1)] == [text_of(whole, stage) for stage in (2, 3)]
    assert part["layouts"] == whole["layouts"]


def test_a_transform_that_means_nothing_leaves_no_stage() -> None:
    """A buffer that is not there gives neither program nor picture."""
    schedule, refused, _ = applied(program(ROW), changed(ROW, 0, buffer="nothing"))
    part = detail_of(schedule, refused)
    assert not part["refused"] and len(part["stages"]) == 1 and part["layouts"] == []


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("lambda i: [i//4, i%4]", (14,)),
        ("lambda i: [(i + 3)//4, (i + 3)%4]", (14,)),
        ("lambda n, c: [n*3 + c//4, AXIS_SEPARATOR, c%4]", (2, 10)),
        ("lambda i, j: [j, i ^ j]", (8, 8)),
        ("lambda i, j: [i + j]", (3, 4)),
    ],
)
def test_cells_hold_what_the_map_says(text: str, shape: tuple[int, ...]) -> None:
    """Every cell of a small box has the indices that the map sends there, counted one by one; the others are
    padding.
    """
    assert_as_the_map_says(check_map(text, shape), shape)


@given(index_maps())
def test_cells_of_random_maps(drawn: RandomMap) -> None:
    """The same of random maps, injective and not, as far as they can be drawn whole."""
    try:
        report = check_map(drawn.text, drawn.shape)
    except LayoutproofError:
        reject()  # one that goes below zero, or divides by it: there is no report to draw
    box = report.to_dict()["physical_shape"]
    if prod(box) <= WHOLE and max(box) <= 64 and prod(drawn.shape) <= WHOLE:
        assert_as_the_map_says(report, drawn.shape)


def assert_as_the_map_says(report: MapReport, shape: tuple[int, ...]) -> None:
    """The picture of a map has every cell of its box, each with the first indices that the map sends there."""
    (layout,) = detail_of_map(report)["layouts"]
    picture = layout["picture"]
    expected: dict[tuple[int, ...], list[int]] = {}
    for number, index in enumerate(product(*map(range, shape))):
        expected.setdefault(report.index_map.evaluate(index), []).append(number)
    assert picture["total"] == prod(picture["box"])
    for cell, holds in shown_cells(picture):
        there = expected.get(cell, [])[:8]
        assert holds == (-1 if not there else there[0] if len(there) == 1 else there)
    assert picture["padding"] == picture["total"] - len(expected)


def test_padding_of_two_steps_is_told_apart() -> None:
    """A padding cell names the step that introduced it."""
    record = read_record(
        (14,), ("lambda i: [i//4, i%4]", (4, 4), None), ("lambda a, b: [a//3, a%3, b]", (2, 3, 4), "undef")
    )
    picture = picture_data(Stored(record.logical_shape, record.steps))
    assert picture is not None
    cells = dict(shown_cells(picture))
    assert cells[(1, 0, 1)] == 13 and cells[(1, 0, 2)] == -1 and cells[(1, 1, 0)] == -2


@pytest.mark.parametrize("shape", [(1, 56, 56, 70), (64, 224, 224, 70)])
def test_a_large_box_shows_its_ends(shape: tuple[int, ...]) -> None:
    """Of a large box some hundred cells are told, the last of each axis among them, and each holds what the map
    says.
    """
    index_map = parse_index_map("lambda n, h, w, c: [n, c//4, h, w, c%4]")
    box = (shape[0], 18, *shape[1:3], 4)
    record = LayoutRecord(tuple(map(const, shape)), (LayoutStep(index_map, tuple(map(const, box))),))
    picture = picture_data(Stored(record.logical_shape, record.steps))
    assert picture is not None
    cells = dict(shown_cells(picture))
    assert prod(box) > WHOLE >= len(cells)
    assert cells[tuple(extent - 1 for extent in box)] == -1
    for cell, holds in cells.items():
        if isinstance(holds, int) and holds >= 0:
            index: list[int] = []
            for extent in reversed(shape):
                holds, at = divmod(holds, extent)
                index.insert(0, at)
            assert index_map.evaluate(index) == cell
        else:
            assert cell[1] * 4 + cell[4] >= shape[3]


def test_symbolic_shapes_are_shown_at_a_size_that_is_allowed() -> None:
    """The sample meets the condition on symbols and is said; where no small size meets it there is no picture."""
    n = Var("n")
    record = read_record(("n",), ("lambda i: [i//4, i%4]", ("(n + 3)//4", 4), None), symbols=("n",))
    stored = Stored(record.logical_shape, record.steps, symbols=(n,), where=parse_condition("n % 8 == 0", [n]))
    picture = picture_data(stored)
    assert picture is not None and picture["sizes"]["n"] % 8 == 0
    nowhere = Stored((n,), stored.steps, symbols=(n,), where=parse_condition("n > 1000000", [n]))
    assert picture_data(nowhere) is None


def test_texels() -> None:
    """Two axis groups are an image whose last extent counts channels by four where it can; one group is none."""
    (image,) = detail_of_map(check_map("lambda n, c: [n, AXIS_SEPARATOR, c//4, c%4]", (2, 10)))["layouts"]
    assert image["picture"]["channels"] == 4 and image["picture"]["groups"] == [[0], [1, 2]]
    (odd,) = detail_of_map(check_map("lambda n, c: [n, AXIS_SEPARATOR, c]", (2, 5)))["layouts"]
    assert odd["picture"]["channels"] == 1
    (plain,) = detail_of_map(check_map("lambda n, c: [c, n]", (2, 5)))["layouts"]
    assert plain["picture"]["channels"] is None


@one_in(7)
@pytest.mark.parametrize("path", sorted((ROOT / "proofs").glob("*/*.py")), ids=lambda path: path.stem)
def test_rewrites(path: Any) -> None:
    """Every rewrite among the proofs has its two programs, and each buffer that moves its picture or the reason for
    none.
    """
    litmus = parse_litmus(path.read_text(encoding="utf-8"), path.name)
    part = detail_of_rewrite(litmus.rewrite, litmus.header.where)
    assert text_of(part, 0) == program_text(litmus.rewrite.old).rstrip("\n")
    assert text_of(part, 1) == program_text(litmus.rewrite.new).rstrip("\n")
    assert json.loads(json.dumps(part)) == part
