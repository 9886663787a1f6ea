"""Layout records of transformed programs, printed and read back, and the differences between two of them."""

from __future__ import annotations

import pytest
from tests.lowering.programs import program
from tests.shares import one_in

from layoutproof.ir.dtype import FLOAT32, INT32, INT64
from layoutproof.ir.expr import Cast, Expr, FloatImm, Select, Var, compare, const
from layoutproof.ir.index_map import IndexMap, index_map_text, narrowed
from layoutproof.ir.layout_record import Cell, Contract, LayoutRecord, LayoutStep, layout_records
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.operators import CompareOp as Op
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.layout.pad_value import PadText
from layoutproof.lowering.layout.transform_layout import TransformLayout

ROWS = """def main(A: T.Buffer(({extents}), "float32"), B: T.Buffer(({extents}), "float32")):
    {sizes}T.func_attr({{"tirx.noalias": True}})
    for i in range({rows}):
        for j in range({columns}):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
"""
BORDER = "lambda r, c, d: B[r, T.min(c, {last}), 1]"


def rows(columns: str, sizes: str = "") -> str:
    """A copy of rows, of a number that is known or a symbol."""
    count = "n" if sizes else columns.replace("14", "6")
    return ROWS.format(
        extents=f"{count}, {columns}", rows=count, columns=columns, sizes=f"{sizes}\n    " if sizes else ""
    )


@one_in(4)
@pytest.mark.parametrize(
    "text", [rows("14"), rows("T.int64(14)"), rows("14", "n = T.int32()"), rows("T.int64(14)", "n = T.int64()")]
)
@pytest.mark.parametrize("pad", [None, "T.undef()", 0.0, -0.0, BORDER, 'T.float32("-inf")'])
def test_records_read_back_equal(text: str, pad: PadText) -> None:
    """A function with the records that transforms left, of symbols, wide extents and each kind of contract, is what its
    text is read as.
    """
    wide = "int64" in text
    index_map = "lambda i, j: [i, j//4, j%4]" if "n =" not in text else "lambda i, j: [n - 1 - i, j//4, j%4]"
    given = pad.format(last="T.int64(2)" if wide else "2") if isinstance(pad, str) else pad
    if pad == BORDER and "n =" in text:
        given = 'lambda r, c, d: T.Cast("float32", r * n + c)'  # loads need constant extents
    func = TransformLayout("root", "B", index_map, given).propose(program(text)).new
    func = TransformLayout("root", "A", "lambda i, j: [j//4, i, j%4]", "T.undef()").propose(func).new
    again = loads(print_func(func))
    assert again == func and layout_records(again) == layout_records(func)
    assert print_func(again) == print_func(func)
    (step,) = layout_records(again)["B_data"].steps
    assert step.padding is (
        Cell.PAD_FORBIDDEN if pad is None else Cell.PAD_UNDEF if pad == "T.undef()" else Cell.PAD_VALUE
    )


INDEX, WIDE = Var("i"), Var("i", INT64)


@pytest.mark.parametrize(
    "output",
    [
        INDEX + const(2) * const(3),
        WIDE * const(-1, INT64),
        Cast(INT64, INDEX) // const(3_000_000_000),
        const(5, INT64),
        const(1 << 20) * const(1 << 20),
        Select(compare(Op.LT, WIDE, const(3, INT64)), WIDE, const(2, INT64)),
        (WIDE << const(2, INT64)) + (const(1) << const(3)),
    ],
)
def test_a_map_that_a_pass_built_is_what_its_text_is_read_as(output: Expr) -> None:
    """Widths, constants and arithmetic on constants: a step holds what its text says."""
    used = WIDE if narrowed(output) != output and output.dtype == INT64 and not isinstance(output, Cast) else INDEX
    index_map = LayoutStep(IndexMap((used,), (output,)), ()).index_map
    assert index_map == parse_index_map(index_map_text(index_map)).narrowed()


ZERO, ONE = FloatImm(0.0, FLOAT32), FloatImm(1.0, FLOAT32)
P, N = Var("p"), Var("n")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Contract((), ZERO), Contract((), FloatImm(-0.0, FLOAT32))),
        (Contract((P,), Cast(FLOAT32, P)), Contract((), Cast(FLOAT32, P))),
        (Contract((), ZERO), Contract.undef(FLOAT32)),
        (Contract((P,), Cast(FLOAT32, P + 3)), Contract((P,), Cast(FLOAT32, Cast(INT64, P) + const(3, INT64)))),
    ],
)
def test_contracts_that_differ(first: Contract, second: Contract) -> None:
    """The sign of a zero, a symbol of an index's name, undefined values and wide arithmetic tell contracts apart."""
    assert first != second and LayoutStep(IndexMap.identity(1), (N,), first) != LayoutStep(
        IndexMap.identity(1), (N,), second
    )


def test_a_symbol_with_the_name_of_an_index_is_refused() -> None:
    """No text could tell the two."""
    with pytest.raises(TypeError, match="has the name of one of its indices"):
        Contract((P,), Cast(FLOAT32, Var("p", INT64)))


def test_records_tell_maps_and_extents_apart() -> None:
    """Another map, another box and another symbol make another record; the widths of variables do not."""
    step = LayoutStep(IndexMap((INDEX,), (INDEX // 4, INDEX % 4)), (const(4), const(4)))
    assert step == LayoutStep(IndexMap((WIDE,), (WIDE // 4, WIDE % 4)), (const(4, INT64), const(4)))
    assert step != LayoutStep(IndexMap((WIDE,), (Cast(INT32, WIDE) // 4, WIDE % 4)), (const(4), const(4)))
    assert step != LayoutStep(IndexMap((INDEX,), (INDEX % 4, INDEX // 4)), (const(4), const(4)))
    assert step != LayoutStep(IndexMap((INDEX,), (INDEX // 4, INDEX % 4)), (const(4), const(1 << 40)))
    assert LayoutRecord((N,)) == LayoutRecord((Var("n", INT64),)) != LayoutRecord((Var("m"),))
