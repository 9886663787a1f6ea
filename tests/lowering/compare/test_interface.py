"""Two programs get one interface: whose parameter is whose, what gives way, what is refused."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from tests.lowering.programs import program
from tests.records import read_record
from tests.shares import one_in

import layoutproof as lp
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Var
from layoutproof.ir.interp import run
from layoutproof.ir.layout_record import layout_records, with_record
from layoutproof.ir.primfunc import APART, AXIS_SEPARATORS, PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import Attributes
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering import codes
from layoutproof.lowering.compare.shared_interface import aligned
from layoutproof.verify.verdict.verdict import Status


def copying(signature: str, body: str, attributes: str = "") -> PrimFunc:
    """A function with a signature and a body of one level."""
    lines = [f"    {line}" for line in ([f"T.func_attr({{{attributes}}})"] if attributes else []) + body.splitlines()]
    return program("\n".join([f"def main({signature}):", *lines, ""]))


def symbolic(name: str, shapes: Mapping[str, str], body: str) -> PrimFunc:
    """A function over buffers of symbolic shapes, `name` being the symbols, separated by commas."""
    declared = [f"{one} = T.int32()" for one in name.split(",")]
    matched = [
        f'{buffer} = T.match_buffer({buffer.lower()}_handle, {shape}, "float32")' for buffer, shape in shapes.items()
    ]
    signature = ", ".join(f"{buffer.lower()}_handle: T.handle" for buffer in shapes)
    return copying(signature, "\n".join([*declared, *matched, body]))


PLAIN = copying('A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")', "for i in range(14):\n    B[i] = A[i]")


def refused(old: PrimFunc, new: PrimFunc, match: Mapping[str, str] | None = None) -> tuple[str, str]:
    """The code and the text with which two interfaces are refused."""
    with pytest.raises(LayoutproofError) as problem:
        aligned(old, new, match)
    (diagnostic,) = problem.value.diagnostics
    return diagnostic.code, diagnostic.render()


def test_the_same_interface_stays_as_it_is() -> None:
    """A program over the names that it is aligned to is not touched."""
    assert aligned(PLAIN, PLAIN, {}) == PLAIN


def test_names_are_taken_over_by_place() -> None:
    """Parameters, their handles, buffers and memories get the old names; lines stay those of the text."""
    new = copying(
        'X: T.Buffer((14,), "float32"), Y: T.Buffer((14,), "float32")', "for k in range(14):\n    Y[k] = X[k]"
    )
    result = aligned(PLAIN, new, {})
    assert result.params == PLAIN.params
    assert result.buffer_map == PLAIN.buffer_map
    assert "B[k] = A[k]" in print_func(result)
    assert (
        result.body.span is not None and result.body.span.line == new.body.span.line
        if new.body.span is not None
        else False
    )


def test_names_of_the_body_give_way() -> None:
    """A loop, a temporary and a view that have names of the old interface get others, so that nothing is captured."""
    new = copying(
        'X: T.Buffer((14,), "float32"), Y: T.Buffer((14,), "float32")',
        'B = T.sblock_alloc_buffer((14,), "float32")\n'
        "for A in range(14):\n    B[A] = X[A]\nfor i in range(14):\n    Y[i] = B[i] + T.float32(1)",
    )
    result = aligned(PLAIN, new, {})
    assert not check_wellformed(result)
    text = print_func(result)
    assert "B_1[A_1] = A[A_1]" in text
    assert "B[i] = B_1[i] + " in text


def test_a_view_of_a_parameter_sees_the_old_memory() -> None:
    """What is declared over a parameter's memory is renamed with it."""
    new = copying(
        'X: T.Buffer((14,), "float32"), Y: T.Buffer((14,), "float32")',
        'A = T.decl_buffer((14,), "float32", data=X.data)\nfor i in range(14):\n    Y[i] = A[i]',
    )
    result = aligned(PLAIN, new, {})
    assert not check_wellformed(result)
    assert 'A_1 = T.decl_buffer((14,), "float32", data=A.data)' in print_func(result)


def test_symbols_are_told_by_their_place() -> None:
    """The symbol that stands where the old program has n is n, also where a loop had that name."""
    old = symbolic("n", {"A": "(n,)", "B": "(n,)"}, "for i in range(n):\n    B[i] = A[i]")
    new = symbolic("m", {"A": "(m,)", "B": "(m,)"}, "for n in range(m):\n    B[n] = A[n]")
    result = aligned(old, new, {})
    assert result.buffer_map == old.buffer_map
    assert "for n_1 in range(n):" in print_func(result)


def test_symbols_that_places_contradict_are_told_by_name() -> None:
    """A buffer that is stored transposed leaves its symbols what they are called."""
    old = symbolic("n,k", {"A": "(n, k)", "B": "(n,)"}, "for i in range(n):\n    B[i] = A[i, 0]")
    new = symbolic("n,k", {"A": "(k, n)", "B": "(n,)"}, "for i in range(n):\n    B[i] = A[0, i]")
    result = aligned(old, new, {})
    assert [str(buffer.shape) for buffer in result.buffers] == [str(buffer.shape) for buffer in new.buffers]


def test_a_symbol_may_be_a_number_or_an_expression() -> None:
    """A program for every size is taken for the size of the old one; one for multiples of four for those."""
    new = symbolic("m", {"A": "(m,)", "B": "(m,)"}, "for i in range(m):\n    B[i] = A[i]")
    assert "range(14)" in print_func(aligned(PLAIN, new, {}))
    old = symbolic("n", {"A": "(4 * n,)", "B": "(4 * n,)"}, "for i in range(4 * n):\n    B[i] = A[i]")
    assert aligned(old, new, {}).buffers == old.buffers


def test_a_box_tells_a_symbol() -> None:
    """The shape that a given layout has tells what a symbol of that shape alone is."""
    old = symbolic("n", {"A": "(n,)"}, "for i in range(n):\n    A[i] = T.float32(0)")
    new = symbolic("m", {"A": "(m, 4)"}, "for i, j in T.grid(m, 4):\n    A[i, j] = T.float32(0)")
    code, text = refused(old, new)
    assert code == codes.COMPARED_SYMBOL and "symbol m" in text
    n = Var("n")
    assert "((n + 3) // 4, 4)" in print_func(aligned(old, new, {}, {"A": ((n + 3) // 4, n * 0 + 4)}))


def test_symbols_that_contradict_each_other_are_refused() -> None:
    """One symbol cannot be two, and the message has both places."""
    old = symbolic("n,k", {"A": "(n,)", "B": "(k,)"}, "for i in range(n):\n    A[i] = T.float32(0)")
    new = symbolic("m", {"A": "(m,)", "B": "(m,)"}, "for i in range(m):\n    A[i] = T.float32(0)")
    code, text = refused(old, new)
    assert code == codes.COMPARED_SYMBOL
    assert "n (axis 0 of A) and k (axis 0 of B)" in text


def test_wide_extents_are_the_same_extents() -> None:
    """A shape in 64 bits is that shape; the old program's is kept."""
    new = copying(
        'A: T.Buffer((T.int64(14),), "float32"), B: T.Buffer((T.int64(14),), "float32")',
        "for i in range(14):\n    B[i] = A[i]",
    )
    assert aligned(PLAIN, new, {}).buffers == PLAIN.buffers


@pytest.mark.parametrize(
    ("first", "second"), [("", ", strides=[4, 1]"), (", strides=[4, 1]", ""), (", strides=[8, 1]", ", strides=[8, 1]")]
)
def test_strides_that_say_nothing(first: str, second: str) -> None:
    """A buffer whose strides are those of its rows is one without strides; others have to be the same."""
    old, new = (
        copying("a: T.handle", f'{name} = T.match_buffer(a, (3, 4), "float32"{strides})\n{name}[1, 2] = T.float32(0)')
        for name, strides in (("A", first), ("B", second))
    )
    assert aligned(old, new, {}).buffers == old.buffers
    assert lp.compare(old, new).status is lp.Status.PROVED
    if "8" in first:
        code, text = refused(
            old, copying("a: T.handle", 'A = T.match_buffer(a, (3, 4), "float32")\nA[1, 2] = T.float32(0)')
        )
        assert code == codes.COMPARED_PARAMETERS and "the first has strides, the other has not" in text


def test_symbols_of_another_width() -> None:
    """A size in 64 bits is the old one's, cast where the body computes with it."""
    old = symbolic("n", {"A": "(n,)", "B": "(n,)"}, "for i in range(n):\n    B[i] = A[i]")
    new = copying(
        "a: T.handle, b: T.handle",
        "m = T.int64()\n"
        'A = T.match_buffer(a, (m,), "float32")\nB = T.match_buffer(b, (m,), "float32")\nfor i in range(m):\n'
        "    B[i] = A[i]",
    )
    result = aligned(old, new, {})
    assert result.buffers[0].shape == old.buffers[0].shape
    assert not check_wellformed(result)
    assert lp.compare(old, new).status is lp.Status.PROVED


def test_match_pairs_by_name_and_keeps_the_callers_order() -> None:
    """Parameters that the new program takes in another order come in the order in which callers of the old one pass
    them.
    """
    new = copying(
        'Y: T.Buffer((14,), "float32"), X: T.Buffer((14,), "float32")', "for k in range(14):\n    Y[k] = X[k]"
    )
    result = aligned(PLAIN, new, {"X": "A"})
    assert result.params == PLAIN.params
    assert [buffer.name for buffer in result.buffers] == ["A", "B"]
    assert "B[k] = A[k]" in print_func(result)


def test_another_order_of_the_same_names_is_refused() -> None:
    """Names and places that say different things are not guessed at; said by match, they are what is said."""
    new = copying(
        'B: T.Buffer((14,), "float32"), A: T.Buffer((14,), "float32")', "for i in range(14):\n    B[i] = A[i]"
    )
    code, text = refused(PLAIN, new)
    assert code == codes.COMPARED_ORDER
    assert "B is parameter 2 before (A, B) and parameter 1 after (B, A)" in text
    assert aligned(PLAIN, new, {"A": "A"}) == PLAIN


@pytest.mark.parametrize(
    ("signature", "said"),
    [
        (
            'A: T.Buffer((14,), "float32")',
            "the program before takes 2 parameters (A, B), the program after takes 1 (A)",
        ),
        (
            'A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float64")',
            "before is B, a buffer of float32, after it is B, a buffer of float64",
        ),
        (
            'A: T.Buffer((14,), "float32"), n: T.int32',
            "before is B, a buffer of float32, after it is n, a scalar of int32",
        ),
        (
            'A: T.Buffer((14,), "float32"), p: T.handle',
            "before is B, a buffer of float32, after it is p, a bare pointer",
        ),
        ('A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32x4")', "after it is B, a buffer of float32x4"),
    ],
)
def test_parameters_of_other_kinds_are_refused(signature: str, said: str) -> None:
    """A number, a type or a kind that differs is named, with both parameters and what each takes."""
    code, text = refused(PLAIN, copying(signature, "T.evaluate(0)"))
    assert code == codes.COMPARED_PARAMETERS
    assert said in text


def test_scalars_are_parameters_too() -> None:
    """A scalar takes the old name, in the body and in shapes."""
    old = copying('A: T.Buffer((14,), "int32"), n: T.int32', "for i in range(14):\n    A[i] = n")
    new = copying('A: T.Buffer((14,), "int32"), i: T.int32', "for n in range(14):\n    A[n] = i")
    result = aligned(old, new, {})
    assert result.params == old.params
    assert "A[n_1] = n" in print_func(result)


@pytest.mark.parametrize(
    ("match", "said"),
    [
        ({"Q": "A"}, "the program after has no parameter 'Q'"),
        ({"A": "Q"}, "the program before has no parameter 'Q'"),
        ({"A": "A", "B": "A"}, "'A' and 'B' cannot both be 'A'"),
    ],
)
def test_match_that_means_nothing_is_refused(match: Mapping[str, str], said: str) -> None:
    """Names that are no parameters, and two for one, are refused by name."""
    code, text = refused(PLAIN, PLAIN, match)
    assert (code, said in text) == (codes.COMPARED_MATCH, True)


def test_attributes_about_memories_follow() -> None:
    """Axis separators and layout records are about the old memories, their symbols and loads renamed in their texts."""
    old = symbolic("n", {"A": "(n,)", "B": "(n,)"}, "for i in range(n):\n    B[i] = A[i]")
    new = symbolic("m", {"X": "(m,)", "Y": "((m + 3) // 4, 4)"}, "for i in range(m):\n    Y[i // 4, i % 4] = X[i]")
    step = "lambda n: [n//4, n%4 + 0*m]", ("(m + 3)//4", 4), "lambda p, q: Y[0, q % 2]"
    record = read_record(("m",), step, symbols=("m",), buffer="Y")
    marked = PrimFunc(
        new.name, new.params, new.buffer_map, new.body, with_record(new, "Y_data", record).with_value(
            AXIS_SEPARATORS, {"Y_data": (0,)}
        )
    )  # fmt: skip
    result = aligned(old, marked, {})
    wanted = "lambda n_: [n_//4, n_%4 + 0*n]", ("(n + 3)//4", 4), "lambda p, q: B[0, q % 2]"
    assert layout_records(result)["B_data"] == read_record(("n",), wanted, symbols=("n",), buffer="B")
    assert result.attrs[AXIS_SEPARATORS] == Attributes({"B_data": (0,)})


def test_an_assumption_about_callers_becomes_a_wish() -> None:
    """That parameters do not overlap is asked of callers where only the new program takes it for granted."""
    new = copying(
        'A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")',
        "for i in range(14):\n    B[i] = A[i]",
        '"tirx.noalias": True',
    )
    assert aligned(PLAIN, new, {}).attrs == Attributes({APART: True})
    assert aligned(new, new, {}).attrs == Attributes({"tirx.noalias": True})


RENAMED: Mapping[str, tuple[PrimFunc, PrimFunc, Mapping[str, str]]] = {
    "temporaries": (
        copying(
            'X: T.Buffer((6,), "int32"), Y: T.Buffer((6,), "int32")', "for X_1 in range(6):\n    Y[X_1] = X[X_1] * 2"
        ),
        copying(
            'Y: T.Buffer((6,), "int32"), Z: T.Buffer((6,), "int32")',
            'X = T.alloc_buffer((6,), "int32")\n'
            "for Y_1 in range(6):\n    X[Y_1] = Y[Y_1]\nfor X_data in range(6):\n    Z[X_data] = X[X_data] * 2",
        ),
        {"Y": "X"},
    ),
    "another order": (
        copying(
            'X: T.Buffer((6,), "int32"), n: T.int32, Y: T.Buffer((6,), "int32")',
            "for i in range(6):\n    Y[i] = X[i] * n",
        ),
        copying(
            'Y: T.Buffer((6,), "int32"), X: T.Buffer((6,), "int32"), i: T.int32',
            "for n in range(6):\n    Y[n] = X[n] * i",
        ),
        {"Y": "Y", "X": "X"},
    ),
    "lets": (
        copying('X: T.Buffer((6,), "int32"), Y: T.Buffer((6,), "int32")', "for i in range(6):\n    Y[i] = X[i] + 1"),
        copying(
            'P: T.Buffer((6,), "int32"), Q: T.Buffer((6,), "int32")',
            "for X in range(6):\n    with T.LetStmt(P[X] + 1) as Y:\n        Q[X] = Y",
        ),
        {},
    ),
}


@pytest.mark.parametrize("name", RENAMED)
def test_renaming_changes_nothing_that_a_program_does(name: str) -> None:
    """Run in the old order of parameters, the aligned program stores what the given one stores; so does the old one
    here.
    """
    old, new, match = RENAMED[name]
    result = aligned(old, new, match)
    assert not check_wellformed(result)
    assert [p.name for p in result.params] == [p.name for p in old.params]
    after = loads(print_func(result))
    data = np.arange(6, dtype=np.int32) * 3
    values: dict[str, object] = {"n": 5}
    values |= {b.name: data + k for k, b in enumerate(old.buffers)}
    outcomes = [run(func, {name: values[name] for name in names_of(old)}) for func in (old, result, after)]
    for buffer in old.buffers:
        assert all((outcome[buffer.name] == outcomes[0][buffer.name]).all() for outcome in outcomes)


def names_of(func: PrimFunc) -> list[str]:
    """What callers pass, by name."""
    mapped = dict(func.buffer_map)
    return [mapped[p].name if p in mapped else p.name for p in func.params]


_THROUGH = """
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({{"tir.noalias": True}})
    t = T.alloc_buffer((16,), "{dtype}")
    for i in range(16):
        with T.block("narrow"):
            v = T.axis.spatial(16, i)
            t[v] = T.Cast("{dtype}", A[v])
    for i in range(16):
        with T.block("wide"):
            v = T.axis.spatial(16, i)
            B[v] = T.Cast("float32", t[v])
"""


@one_in(4)
def test_temporaries_of_two_types() -> None:
    """What `set_dtype` makes of a program is compared, and not proved: values of two types are no error of the one who
    asks.
    """
    narrow, wide = (loads(_THROUGH.format(dtype=dtype)) for dtype in ("float16", "float32"))
    for before, after in ((wide, narrow), (narrow, wide)):
        assert lp.compare(before, after).status in (Status.UNKNOWN, Status.REFUTED)


_ROWS = """def main(A: T.Buffer(({n},), "int32"), B: T.Buffer(({n},), "int32"), {n}: T.int32):
    for i in range({n} // 4 - 1):
        with T.block("b"):
            v = T.axis.spatial({n} // 4 - 1, i)
            a = T.match_buffer(A[v * 4 : v * 4 + {extent}], ({extent},), "int32", offset_factor=1)
            for j in range(4):
                B[v * 4 + j] = a[j + 1]
"""
_PLAIN_ROWS = """def main(A: T.Buffer((n,), "int32"), B: T.Buffer((n,), "int32"), n: T.int32):
    for i, j in T.grid(n // 4 - 1, 4):
        B[i * 4 + j] = A[i * 4 + j + 1]
"""


@pytest.mark.parametrize("name", ["n", "m"])
def test_accesses_outside_of_a_matched_region(name: str) -> None:
    """An access that leaves its region is an error in the program after, though it stays in the buffer."""
    plain, rows, short = (program(t) for t in (_PLAIN_ROWS, *(_ROWS.format(n=name, extent=e) for e in (5, 4))))
    assert lp.compare(plain, rows).status is Status.PROVED
    assert lp.compare(short, plain).status is Status.PROVED
    found = lp.compare(plain, short)
    assert found.status is Status.UNKNOWN and "outside of its matched region" in str(found.verdicts[0].reason)
