"""The layout record: what it says of each cell, and how it comes through the attribute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.records import read_record, read_step
from tests.running import fault, program, result

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import FaultKind, run_fillings
from layoutproof.ir.interp.layout_cells import cells_of, padding_cells
from layoutproof.ir.layout_record import Cell, LayoutRecord, LayoutStep, layout_records, with_record
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads

L, V, U, X = Cell.LOGICAL, Cell.PAD_VALUE, Cell.PAD_UNDEF, Cell.PAD_FORBIDDEN
FOURS = "lambda i: [i // 4, i % 4]"


def record(contract: str | None) -> LayoutRecord:
    """14 elements in rows of 4."""
    return read_record((14,), (FOURS, (4, 4), contract))


@pytest.mark.parametrize(("contract", "cell"), [(None, X), ("undef", U), ("T.float32(0)", V)])
def test_padding_has_the_contract_of_its_step(contract: str | None, cell: Cell) -> None:
    """The two cells past the fourteenth are padding with the step's contract; all others are logical."""
    cells = cells_of(record(contract), {})
    assert cells.shape == (4, 4)
    assert cells.reshape(-1).tolist() == [L] * 14 + [cell] * 2


def test_each_cell_obeys_the_step_that_introduced_it() -> None:
    """After two steps the padding of the first keeps its contract where the second moves it."""
    twice = record("undef").with_step(read_step("lambda i, j: [j, i // 3, i % 3]", (4, 2, 3), None))
    cells = cells_of(twice, {})
    expected = np.full((4, 2, 3), X, np.uint8)
    for i in range(4):
        for j in range(4):
            expected[j, i // 3, i % 3] = L if i * 4 + j < 14 else U
    assert np.array_equal(cells, expected)


def test_symbolic_extents() -> None:
    """Extents may be texts over the function's symbols."""
    symbolic = read_record(("n",), (FOURS, ("(n + 3) // 4", 4), None), symbols=("n",))
    for n in (1, 4, 6, 14):
        cells = cells_of(symbolic, {"n": n})
        assert cells.shape == ((n + 3) // 4, 4)
        assert int((cells == L).sum()) == n


def test_symbol_in_the_map() -> None:
    """An index map may use a symbol of the shape."""
    reverse = read_record(("n",), ("lambda i: [n - i]", ("n + 1",), None), symbols=("n",))
    assert cells_of(reverse, {"n": 3}).tolist() == [X, L, L, L]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (read_step(FOURS, (3, 4)), "leaves the box"),
        (read_step("lambda i: [i // 2]", (7,)), "not injective"),
        (read_step("lambda i, j: [i, j]", (14, 1)), "does not lead from 1"),
        (read_step(FOURS, (16,)), "to 1 axis"),
    ],
)
def test_a_step_that_cannot_be(step: LayoutStep, message: str) -> None:
    """A record that contradicts itself is an error that says why."""
    with pytest.raises(LayoutproofError, match=message):
        cells_of(read_record((14,)).with_step(step), {})


def test_a_box_that_is_negative_at_some_size() -> None:
    """A box of n - 1 cells is no array where n is 0, nor is a logical shape where n is -1: the error says so."""
    less = read_record(("n",), ("lambda i: [i]", ("n - 1",), None), symbols=("n",))
    for n in (0, -1):
        with pytest.raises(LayoutproofError, match="has a negative extent"):
            cells_of(less, {"n": n})


COPY = """
    def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        A_flat = T.decl_buffer((16,), "float32", data=A.data)
        for i in range({extent}):
            B[i // 4, i % 4] = A_flat[i] + T.float32(1)
"""


def recorded(extent: int, **contracts: str | None) -> PrimFunc:
    """The copy of `extent` elements with a record for each named parameter."""
    func = program(COPY.replace("{extent}", str(extent)))
    for name, contract in contracts.items():
        buffer = next(b for b in func.buffers if b.name == name)
        func = PrimFunc(
            func.name, func.params, func.buffer_map, func.body, with_record(func, buffer.data.name, record(contract))
        )
    return func


def test_the_attribute_survives_printing_and_reading() -> None:
    """Printed and read back, the record is the same."""
    func = recorded(14, A=None, B="T.float32(0)")
    again = loads(print_func(func))
    assert again == func
    assert (
        layout_records(again)
        == layout_records(func)
        == {b.data.name: record(c) for b, c in zip(func.buffers, (None, "T.float32(0)"), strict=True)}
    )
    assert {k: v.shape for k, v in padding_cells(again, {}).items()} == {b.data.name: (4, 4) for b in func.buffers}


def test_the_interpreter_forbids_padding_without_contract() -> None:
    """Touching the padding of a recorded parameter, even through a flat view, is a fault; staying off it is not."""
    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    assert fault(recorded(16, A=None), [a, None], FaultKind.FORBIDDEN).indices == (14,)
    assert fault(recorded(16, B=None), [a, None], FaultKind.FORBIDDEN).indices == (3, 2)
    found = result(recorded(14, A=None, B=None), [a, None])
    assert found["B"].reshape(-1)[:14].tolist() == list(range(1, 15))
    result(recorded(16, A="T.float32(0)", B="T.float32(0)"), [a, None])


def test_undefined_padding_is_filled_and_marked() -> None:
    """Padding whose contract is undef may be read; what is computed from it is marked."""
    func, arguments = recorded(16, A="undef"), [np.zeros((4, 4), np.float32), None]
    assert result(func, arguments).states["B"].reshape(-1).tolist() == [1] * 14 + [3] * 2
    assert run_fillings(func, arguments).depends["B"].reshape(-1).tolist() == [False] * 14 + [True] * 2


@pytest.mark.parametrize(
    "value",
    [
        3,
        {"A_data": 3},
        {"A_data": {"logical_shape": [1.5], "steps": []}},
        {"A_data": {"logical_shape": [4], "steps": [{}]}},
    ],
)
def test_malformed_attributes_are_refused(value: Any) -> None:
    """Anything else under the attribute's name is an error."""
    func = program(COPY.replace("{extent}", "14"))
    with pytest.raises(LayoutproofError, match="LP185"):
        layout_records(
            PrimFunc(
                func.name, func.params, func.buffer_map, func.body, func.attrs.with_value("layoutproof.layout", value)
            )
        )
