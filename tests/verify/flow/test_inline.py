"""Values in the place of loads: a form of a statement stores what the statement stores, by brute force, and what must
not be looked through is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.shares import one_in, some
from tests.verify.isl.test_dataflow import modelled, random_function, sizes
from tests.verify.program.model_oracle import Named, Point, fixed, key_of, pairs, set_points
from tests.verify.program.model_runs import ModelRun, Number
from tests.verify.programs import program

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.interp.memory import Fault, same_value
from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.flow.copies import representatives
from layoutproof.verify.flow.stored_values import Form, StoredValues, unfolded
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.instance_sets import no_points
from layoutproof.verify.isl.space import BudgetExceeded
from layoutproof.verify.program.statement import NotModelled, Statement
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status


def forms_of(flow: Dataflow, statement: Statement, *, updates: bool = True) -> list[Form]:
    """Everything that can be looked through in one statement."""
    points = flow.domain(statement)
    return StoredValues(flow, no_points(points), updates=updates).through(statement, points)


class FormRun(ModelRun):
    """A run of a program's model in which each statement stores what its forms say."""

    def __init__(
        self,
        function: PrimFunc,
        flow: Dataflow,
        symbols: Mapping[str, int],
        arrays: Mapping[str, Any],
        *,
        updates: bool,
    ) -> None:
        super().__init__(function, flow, symbols, arrays)
        at = fixed(flow, symbols)
        self.changed = 0
        self.forms: dict[Named, Statement] = {}
        for statement in flow.statements.statements:
            forms = forms_of(flow, statement, updates=updates)
            found: list[Point] = []
            for form in forms:
                here = set_points(form.points, at)
                found += here
                self.forms |= {(f"{flow.tag}{statement.number}", point): form.statement for point in here}
                self.changed += form.statement is not statement and bool(here)
            assert sorted(found) == sorted(set_points(flow.domain(statement), at)), (
                "the forms are of all points, each once"
            )

    def value(self, source: Named) -> Number:
        """What an instance stores, by its form."""
        form = self.forms.get(source)
        if form is not None and source not in self._values:
            original = self._by_name[source[0]]
            self._by_name[source[0]] = form
            try:
                return super().value(source)
            finally:
                self._by_name[source[0]] = original
        return super().value(source)


def compared(kind: str, seed: int, *, updates: bool) -> tuple[list[str], int] | None:
    """Cells that forms say to end otherwise than the statements themselves, and how many forms differ from their
    statement.
    """
    try:
        model = modelled(random_function(kind, seed), 2_000_000)
        symbols = next(sizes(model))
        rng, arrays = np.random.default_rng(seed), {}
        for buffer in model.function.buffers:
            shape = tuple(int(evaluate(e, symbols)) for e in buffer.shape)
            values = rng.standard_normal(shape) if buffer.dtype.is_float else rng.integers(0, 3, shape)
            arrays[buffer.data.name] = values.astype(str(buffer.dtype))
        plain = ModelRun(model.function, model.flow, symbols, arrays)
        formed = FormRun(model.function, model.flow, symbols, arrays, updates=updates)
        wrong = []
        for buffer in model.function.buffers:
            mine, theirs = formed.final(buffer.data), plain.final(buffer.data)
            wrong += [
                f"{buffer.name}{list(c)}: {mine[c]}, not {v}"
                for c, v in theirs.items()
                if not same_value(float(v), float(mine[c]))
            ]
    except (NotModelled, BudgetExceeded, Fault, IndexError):
        return None
    return wrong, formed.changed


@one_in(42)
@pytest.mark.parametrize("updates", [True, False])
@pytest.mark.parametrize("kind", ["flow", "symbolic", "nodes"])
@pytest.mark.parametrize("seeds", some((range(3), range(3, 40)), 1), ids=str)
def test_a_form_stores_what_its_statement_stores(seeds: range, kind: str, *, updates: bool) -> None:
    """Random programs run through their forms end as they end through their statements; many statements have another
    form.
    """
    results = [found for seed in seeds if (found := compared(kind, seed, updates=updates)) is not None]
    assert [wrong for wrong, _ in results if wrong] == []
    assert 2 * len(results) >= len(seeds) and 2 * sum(changed for _, changed in results) + 1 >= len(seeds)


SEVERAL = """
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.func_attr({"tirx.noalias": True})
        C = T.alloc_buffer((8,), "float32")
        for i in range(8):
            C[i] = A[i] + T.float32(1)
        for i in range(4):
            C[2 * i] = A[7 - i] + T.float32(2)
        for i in range(8):
            A[i] = T.float32(0)
        for j in range(8):
            B[7 - j] = C[7 - j] + A[7 - j]
"""


def test_each_part_has_the_value_that_it_finds() -> None:
    """A load of what two statements wrote falls into parts, and reads what was there when each value was computed."""
    model = modelled(program(SEVERAL))
    reader = model.statements.statements[3]
    domain = model.flow.domain(reader)
    found = list(unfolded(model.flow, reader, reader.reads[0], domain, no_points(domain)))
    texts = {}
    for form in found:
        at = fixed(model.flow, {})
        here = {point[0] for point in set_points(form.points, at)}
        texts[frozenset(here)] = expr_text(form.statement.value, Style.PLAIN)
        for read in form.statement.reads:
            origins = {b[0] for _, b in pairs(model.flow.sources(form.statement, read), at)}
            assert origins == ({"nin_A_data"} if "~" in read.var.name else {"n2"})
    assert set(texts) == {frozenset({1, 3, 5, 7}), frozenset({0, 2, 4, 6})}
    assert "1.0" in texts[frozenset({0, 2, 4, 6})] and "2.0" in texts[frozenset({1, 3, 5, 7})]


def test_a_form_belongs_to_its_flow() -> None:
    """A load in the place of another is refused in a flow without some instances: its sources are not known there."""
    model = modelled(program(SEVERAL))
    reader, last = model.statements.statements[3], model.statements.statements[2]
    (form, *_) = forms_of(model.flow, reader)
    other = model.flow.without({2: model.flow.domain(last)})
    read = next(each for each in form.statement.reads if "~" in each.var.name)
    with pytest.raises(NotModelled):
        other.sources(form.statement, read)
    assert key_of(reader.dims, {"j": 3}) == (3,) and model.flow.is_whole(last.data) and not other.is_whole(last.data)


def test_what_is_kept_stays() -> None:
    """A load stays where what it finds is of a kept instance."""
    model = modelled(program(SEVERAL))
    reader, second = model.statements.statements[3], model.statements.statements[1]
    kept = no_points(model.flow.domain(second)).union(model.flow.domain(second).to_union_set())
    forms = StoredValues(model.flow, kept).through(reader, model.flow.domain(reader))
    at = fixed(model.flow, {})
    loading = [f for f in forms if any(v.name.startswith("C_value") for v in free_variables(f.statement.value))]
    assert [set_points(f.points, at) for f in loading] == [{(1,), (3,), (5,), (7,)}]


PAIR = """\
# theta: THETA
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.alloc_buffer((8,), "CTYPE")
BEFORE

@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
AFTER
"""


def asked(theta: str, before: str, after: str, ctype: str = "float32") -> Status:
    """What the checker says of a pair of bodies, without a run."""

    def body(text: str) -> str:
        return "".join(f"    {line}\n" for line in text.splitlines())

    text = (
        PAIR.replace("THETA", theta)
        .replace("CTYPE", ctype)
        .replace("BEFORE", body(before))
        .replace("AFTER", body(after))
    )
    return worst(v.status for v in prove_rewrite(parse_rewrite(text, "pair")).verdicts)


def loop(*stores: str, over: str = "range(8)") -> str:
    """Stores in a loop over all elements."""
    return "".join([f"for i in {over}:\n", *(f"    {store}\n" for store in stores)])


def stored(value: str, use: str = "C[i] * T.float32(2)") -> str:
    """A value in a temporary, then what is made of that."""
    return loop(f"C[i] = {value}") + loop(f"B[i] = {use}")


EXP, ONE = "T.exp(A[i])", "T.float32(1)"
RATIO = 'A[7 - i] / T.Cast("float32", D[i])'
CHOICE = 'T.if_then_else(i < 3, A[i], T.Cast("float32", i * i))'
BRANCH = (
    'if i < 3:\n        B[i] = A[i] * T.float32(2)\n    else:\n        B[i] = T.Cast("float32", i * i) * T.float32(2)'
)


@one_in(4)
@pytest.mark.parametrize(
    ("before", "after", "theta"),
    [
        (stored(EXP), loop(f"B[i] = {EXP} * T.float32(2)"), "0 -> 1"),
        (stored(RATIO), loop(f"B[i] = {RATIO} * T.float32(2)"), "0 -> 1"),
        # The value depends on the loop, and on a choice that the loop makes.
        (stored(CHOICE), loop(BRANCH), "0 -> 1\n# theta: 1 -> 1"),
        # A temporary of one element, used over and over.
        (loop(f"C[0] = {EXP}", "B[i] = C[0] * T.float32(2)"), loop(f"B[i] = {EXP} * T.float32(2)"), "0 -> 1"),
        # Two in a row, the second over vectors.
        (
            loop(f"C[i] = {EXP}") + loop("C[i] = C[i] + A[i]", over="T.vectorized(8)") + loop("B[i] = C[7 - i]"),
            loop("B[i] = T.exp(A[7 - i]) + A[7 - i]"),
            "0 -> 2",
        ),
        # What is stored in a parameter, and is stored again by the new program, may be written out, too.
        (
            loop(f"A[i] = {EXP}") + loop("B[i] = A[i] * T.float32(2)"),
            loop(f"B[i] = {EXP} * T.float32(2)") + loop(f"A[i] = {EXP}"),
            "0 -> 1\n# theta: 1 -> 0",
        ),
    ],
)
def test_written_out(before: str, after: str, theta: str) -> None:
    """A value that was stored is the value that is loaded, however it was stored."""
    assert asked(theta, before, after) is Status.PROVED


@one_in(4)
@pytest.mark.parametrize(
    ("before", "after", "theta", "ctype"),
    [
        # The neighbour's value, and another value on one element.
        (stored(EXP), loop("B[i] = T.exp(A[7 - i]) * T.float32(2)"), "0 -> 1", "float32"),
        (stored(EXP), loop(f"B[i] = T.if_then_else(i < 7, {EXP}, A[i]) * T.float32(2)"), "0 -> 1", "float32"),
        # What the temporary rounds, or wraps, is left as it is.
        (stored('T.Cast("float16", A[i])', 'T.Cast("float32", C[i])'), loop("B[i] = A[i]"), "0 -> 1", "float16"),
        (
            stored('T.Cast("int8", D[i])', 'T.Cast("float32", C[i])'),
            loop('B[i] = T.Cast("float32", D[i])'),
            "0 -> 1",
            "int8",
        ),
        # The operand is overwritten in between.
        (
            loop(f"C[i] = {EXP}", "A[i] = T.float32(0)") + loop("B[i] = C[i]"),
            loop("A[i] = T.float32(0)", f"B[i] = {EXP}"),
            "0 -> 1\n# theta: 1 -> 2",
            "float32",
        ),
        # Right or not, these are left open: a store, a load or a cell that data decides.
        (
            loop(f"C[i] = {ONE}", "if D[i] > 0:\n        C[i] = A[i]") + loop("B[i] = C[i]"),
            loop(f"B[i] = T.Select(D[i] > 0, A[i], {ONE})"),
            "0 -> 2",
            "float32",
        ),
        (
            stored(EXP, "T.if_then_else(D[i] > 0, C[i], A[i])"),
            loop(f"B[i] = T.if_then_else(D[i] > 0, {EXP}, A[i])"),
            "0 -> 1",
            "float32",
        ),
        (stored(EXP, "C[D[i] % 8]"), loop("B[i] = T.exp(A[D[i] % 8])"), "0 -> 1", "float32"),
        (stored("(D[i] + 1) % 8", "A[C[i]]"), loop("B[i] = A[(D[i] + 1) % 8]"), "0 -> 1", "int32"),
        (
            loop("C[i] = T.float32(0)") + loop("C[D[i] % 8] = A[i]") + loop("B[i] = C[i] + A[i]"),
            loop("B[i] = A[i] + A[i]"),
            "0 -> 2",
            "float32",
        ),
        # Somebody else may have looked at the temporary, and written to it.
        (
            loop(f"C[i] = {EXP}") + 'T.call_extern("void", "look", C.data)\n' + loop("B[i] = C[i]"),
            loop(f"B[i] = {EXP}"),
            "0 -> 1",
            "float32",
        ),
        # What is stored as a float is loaded as an integer.
        (
            'V = T.decl_buffer((8,), "int32", data=C.data)\n' + stored("A[i]", 'T.Cast("float32", V[i])'),
            loop('B[i] = T.Cast("float32", T.Cast("int32", A[i]))'),
            "0 -> 1",
            "float32",
        ),
        # Half of what is loaded was never stored: no value stands for that.
        (loop(f"C[i] = {EXP}", over="range(4)") + loop("B[i] = C[i]"), loop(f"B[i] = {EXP}"), "0 -> 1", "float32"),
    ],
)
def test_not_proved(before: str, after: str, theta: str, ctype: str) -> None:
    """What is wrong is not proved, nor what a value cannot stand for."""
    assert asked(theta, before, after, ctype) is Status.UNKNOWN


def test_a_temporary_that_iterations_share() -> None:
    """One cell for all iterations is written and loaded by each in turn: right in a serial loop, a race in a parallel
    one.
    """
    before, theta = loop(f"B[i] = {EXP} * T.float32(2)"), "0 -> none\n# theta: 1 -> 0"
    for over, wanted in (("range(8)", True), ("T.parallel(8)", False)):
        after = "C = T.alloc_buffer((1,))\n" + loop(f"C[0] = {EXP}", "B[i] = C[0] * T.float32(2)", over=over)
        assert (asked(theta, before, after) is Status.PROVED) == wanted


def test_loads_that_never_happen_together_are_not_one() -> None:
    """Of three loads of one cell, two under opposite conditions and one after a store, no two stand for one another by
    way of the third.
    """
    model = modelled(
        program("""
    @T.prim_func
    def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        T.func_attr({"tirx.noalias": True})
        for i in range(8):
            x = T.if_then_else(i < 4, A[i], 0)
            y = T.if_then_else(i >= 4, A[i], 0)
            if i >= 4:
                A[i] = A[i] + 1
            B[i] = x + y * 2 + A[i]
    """)
    )
    last = model.statements.statements[-1]
    found = representatives(model.flow, last)
    assert len(found) == 3 and len(set(found.values())) == 2
