"""Which cells hold elements: the conditions that keep away from padding hold on exactly those cells."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from tests.lowering.programs import copy, program
from tests.lowering.small_operators import random_map
from tests.shares import one_in, some

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import logical_and
from layoutproof.ir.interp.layout_cells import padding_cells
from layoutproof.ir.layout_record import Cell
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.layout.transform_layout import TransformLayout
from layoutproof.lowering.lower.flatten import FlattenBuffer, LowerBlocks
from layoutproof.lowering.padding.elements import Elements, cells_of
from layoutproof.lowering.passes.find import all_buffers


def check_elements(func: PrimFunc, symbols: dict[str, int]) -> int:
    """Compare conditions and record, cell by cell, for every transformed parameter; the number of cells."""
    elements, kinds, looked = Elements(func), padding_cells(func, symbols), 0
    for buffer in func.buffers:
        if buffer.data.name not in kinds:
            continue
        conditions = elements.conditions(buffer)
        assert conditions is not None, buffer.name
        names = [cell.name for cell in cells_of(buffer)]
        for cell in product(*map(range, kinds[buffer.data.name].shape)):
            env = {**symbols, **dict(zip(names, cell, strict=True))}
            holds = bool(evaluate(logical_and(*conditions), env))
            assert holds is bool(kinds[buffer.data.name][cell] == Cell.LOGICAL), (buffer.name, cell)
            looked += 1
    return looked


@one_in(14)
@pytest.mark.parametrize("seed", some(range(40), 16))
def test_random_layouts(seed: int) -> None:
    """One, two or three transforms of a matrix, each with padding of its own: split, shifted, swizzled and transposed
    axes.
    """
    rng = Random(f"elements {seed}")
    rows, columns = rng.randint(1, 7), rng.randint(1, 9)
    func = program(f"""def main(A: T.Buffer(({rows}, {columns}), "int32")):
    for i, j in T.grid({rows}, {columns}):
        with T.sblock("fill"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = vi
""")
    for _ in range(rng.randint(1, 3)):
        (buffer,) = func.buffers
        if buffer.rank > 4:
            break
        func = (
            TransformLayout("fill", "A", random_map(rng, buffer.rank), rng.choice([None, 0, "T.undef()"]))
            .propose(func)
            .new
        )
    assert check_elements(func, {}) > 0


@pytest.mark.parametrize("text", ["i//4, i%4", "(i + 2)//8, (i + 2)%8", "i, 0", "0, i//3, i%3"])
@pytest.mark.parametrize("size", [1, 2, 4, 13, 16])
def test_layouts_of_any_size(text: str, size: int) -> None:
    """One condition over the symbol says it for every size."""
    func = TransformLayout("copy", "B", f"lambda i: [{text}]").propose(symbolic_copy()).new
    assert check_elements(func, {"n": size}) > 0


def symbolic_copy() -> PrimFunc:
    """A copy of n elements."""
    return program("""def main(A: T.Buffer(("n",), "float32"), B: T.Buffer((n,), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n):
        with T.sblock("copy"):
            v = T.axis.spatial(n, i)
            B[v] = A[v]
""")


def test_a_buffer_that_was_never_relaid() -> None:
    """Without a record there is nothing to say, and nothing to keep away from."""
    func = copy()
    elements = Elements(func)
    assert [elements.conditions(buffer) for buffer in func.buffers] == [None, None]
    assert elements.at(func.buffers[0], (func.buffers[0].shape[0],)) == ()


def test_a_flat_buffer_has_another_shape_than_its_record() -> None:
    """After flattening the record's axes are gone; there is no condition for the flat view rather than a wrong one."""
    func = TransformLayout("copy", "B", "lambda i: [i//4, i%4]").propose(copy()).new
    func = FlattenBuffer().propose(LowerBlocks().propose(func).new).new
    flat = next(b for b in all_buffers(func) if b.rank == 1 and b.data.name == "B_data")
    assert Elements(func).conditions(flat) is None


def test_a_record_that_is_wrong_is_an_error() -> None:
    """A record written by hand that no map can be read from is refused with what is wrong."""
    step = '{"index_map": "lambda i: [i//", "shape": [4, 4], "contract": None}'
    record = f'"layoutproof.layout": {{"B_data": {{"logical_shape": [14], "steps": [{step}]}}}}'
    with pytest.raises(LayoutproofError, match="the layout record of B_data: not Python syntax"):
        program(f'def main(B: T.Buffer((4, 4), "float32")):\n    T.func_attr({{{record}}})\n    T.evaluate(0)\n')
