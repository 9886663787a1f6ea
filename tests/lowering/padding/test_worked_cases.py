"""The worked cases: index maps with known boxes and known padding, as reports and as the programs that re-laying a copy
makes of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import pytest
from tests.conftest import Golden
from tests.shares import one_in

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Var
from layoutproof.ir.interp.layout_cells import padding_cells
from layoutproof.ir.layout_record import Cell
from layoutproof.ir.notations.map_text import parse_condition, parse_index_map
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.lowering.schedule.trace import program_text
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.verdict.verdict import Status

Index = tuple[int, ...]
NAMES = ("i", "j", "k", "l")


@dataclass(frozen=True)
class Worked:
    """A map on a shape: the box, how many cells of it are padding, and, where there are few, which; the flat shape
    where it is told.
    """

    shape: tuple[int, ...]
    outputs: str
    physical: tuple[int, ...]
    padding: frozenset[Index] | int = 0
    flat: tuple[int, ...] | None = None

    @property
    def index_map(self) -> str:
        """The map as text."""
        return f"lambda {', '.join(NAMES[: len(self.shape)])}: [{self.outputs}]"

    @property
    def count(self) -> int:
        """The number of padding cells."""
        return self.padding if isinstance(self.padding, int) else len(self.padding)


def cells(*found: Index) -> frozenset[Index]:
    """Some cells."""
    return frozenset(found)


def row(number: int, *columns: int) -> frozenset[Index]:
    """Cells of one row."""
    return frozenset((number, column) for column in columns)


CASES = {
    "16 in rows of 8": Worked((16,), "i//8, i%8", (2, 8)),
    "14 in rows of 8": Worked((14,), "i//8, i%8", (2, 8), row(1, 6, 7)),
    "14 from the third place on": Worked((14,), "(i+2)//8, (i+2)%8", (2, 8), row(0, 0, 1)),
    "16 from the third place on": Worked((16,), "(i+2)//8, (i+2)%8", (3, 8), row(0, 0, 1) | row(2, *range(2, 8))),
    "18 from the third place on": Worked((18,), "(i+2)//8, (i+2)%8", (3, 8), row(0, 0, 1) | row(2, *range(4, 8))),
    "14 in rows of 4": Worked((14,), "i//4, i%4", (4, 4), row(3, 2, 3)),
    "3 in rows of 4": Worked((3,), "i//4, i%4", (1, 4), cells((0, 3))),
    "channels in fours": Worked((16, 64, 64, 128), "i, l//4, j, k, l%4", (16, 32, 64, 64, 4), 0, (8388608,)),
    "channels in fours, as a texture": Worked(
        (16, 64, 64, 128), "i, l//4, j, AXIS_SEPARATOR, k, l%4", (16, 32, 64, 64, 4), 0, (32768, 256)
    ),
    "a transposition": Worked((2, 3), "j, i", (3, 2)),
    "a swizzle": Worked((64,), "i//8, (i//8) ^ (i%8)", (8, 8)),
    "a rotation": Worked((4, 4), "i, (i+j)%4", (4, 4)),
    "a permutation by a factor": Worked((8,), "(5*i)%8", (8,)),
    "a skew": Worked(
        (4, 4), "i+j, j", (7, 4), frozenset((p, q) for p, q in product(range(7), range(4)) if not 0 <= p - q < 4)
    ),
}


def program(shape: tuple[int, ...]) -> str:
    """A copy of an array."""
    names = ", ".join(NAMES[: len(shape)])
    variables = ", ".join(f"v{name}" for name in NAMES[: len(shape)])
    kinds, extents = "S" * len(shape), ", ".join(map(str, shape))
    loops = f"for {names} in T.grid({extents})" if len(shape) > 1 else f"for {names} in range({extents})"
    axes = f'T.axis.remap("{kinds}", [{names}])' if len(shape) > 1 else f"T.axis.spatial({extents}, {names})"
    sizes = f"({extents},)" if len(shape) == 1 else f"({extents})"
    return f"""@T.prim_func(s_tir=True)
def main(A: T.Buffer({sizes}, "float32"), B: T.Buffer({sizes}, "float32")):
    T.func_attr({{"tirx.noalias": True}})
    {loops}:
        with T.sblock("copy"):
            {variables} = {axes}
            B[{variables}] = A[{variables}]
"""


@pytest.mark.parametrize("name", CASES)
def test_the_report_of_a_map(name: str) -> None:
    """Injective, with this box; the padding predicate holds on exactly these cells, and on no others of the box."""
    case = CASES[name]
    report = check_map(case.index_map, case.shape)
    assert report.injective.status is Status.PROVED
    data = report.to_dict()
    assert data["physical_shape"] == list(case.physical)
    assert data["padding"]["cells"] == case.count
    if case.flat is not None:
        assert data["flattened_shape"] == list(case.flat)
    if prod(case.physical) <= 1024:
        assert satisfying(data["padding"]["predicate"], case.physical) == unreached(case)


def satisfying(predicate: str, box: tuple[int, ...]) -> set[Index]:
    """The cells of a box where a predicate holds."""
    condition = parse_condition(predicate, [Var(f"p{axis}") for axis in range(len(box))])
    points = product(*map(range, box))
    return {
        point for point in points if bool(evaluate(condition, {f"p{axis}": value for axis, value in enumerate(point)}))
    }


def unreached(case: Worked) -> set[Index]:
    """The cells of the box that no index goes to, which are those that the case lists."""
    index_map = parse_index_map(case.index_map)
    reached = {index_map.evaluate(index) for index in product(*map(range, case.shape))}
    left = set(product(*map(range, case.physical))) - reached
    assert isinstance(case.padding, int) or left == case.padding
    return left


@one_in(14)
@pytest.mark.parametrize("name", CASES)
def test_the_program_of_a_map(name: str, golden: Golden) -> None:
    """A copy before, and after its output was re-laid with a pad value and both were followed, as text in surface
    syntax.
    """
    case = CASES[name]
    schedule = Schedule(loads(program(case.shape)))
    before = program_text(schedule.func)
    schedule.transform_layout("copy", "B", case.index_map, 0.0)
    text = f"{before}\n# re-laid\n{program_text(schedule.func)}"
    schedule.sequential_buffer_access("copy", "B")
    text += f"\n# followed\n{program_text(schedule.func)}"
    golden(f"worked/{name.replace(' ', '_')}.txt", text)
    assert all(step.status is Status.PROVED for step in schedule.steps)
    if prod(case.physical) <= 1024:
        kinds: Any = padding_cells(schedule.func, {}).get("B_data")
        found = {tuple(map(int, cell)) for cell in zip(*(kinds == Cell.PAD_VALUE).nonzero(), strict=True)}
        assert found == unreached(case)


@one_in(7)
@pytest.mark.parametrize("size", range(1, 40))
def test_rows_of_four_of_any_number(size: int) -> None:
    """Of n elements in rows of 4: `(n + 3)//4` rows, and padding where `4*p0 + p1 >= n`."""
    report = check_map("lambda i: [i//4, i%4]", ("n",)).to_dict()
    assert report["injective"]["status"] == "proved"
    rows, columns = (int(eval(str(extent), {}, {"n": size})) for extent in report["physical_shape"])
    assert (rows, columns) == ((size + 3) // 4, 4)
    for p0, p1 in product(range(rows), range(4)):
        assert bool(eval(report["padding"]["predicate"], {}, {"n": size, "p0": p0, "p1": p1})) is (4 * p0 + p1 >= size)


def test_a_map_that_loses_elements_is_refused() -> None:
    """`i//4` puts 0 and 1 into one place; the report and the schedule both say so."""
    report = check_map("lambda i: [i//4]", (14,))
    assert report.to_dict()["physical_shape"] == [4]
    assert report.injective.counterexample == {"first": [0], "second": [1], "image": [0]}
    with pytest.raises(IllegalTransform, match="not injective"):
        Schedule(loads(program((14,)))).transform_layout("copy", "B", "lambda i: [i//4]")
