"""Where values come from: every source of every read, the ends of memories, and what reductions contribute, against
brute force.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

import islpy as isl
import numpy as np
import pytest
from tests.random.faulty import random_program
from tests.random.flow import random_flow_program
from tests.random.objects import RandomProgram
from tests.shares import one_in, some
from tests.verify.program.model_oracle import Oracle, Point, differences, fixed, pairs, set_points
from tests.verify.program.model_runs import disagreements
from tests.verify.programs import program

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Var
from layoutproof.ir.interp.memory import Fault
from layoutproof.ir.interp.run import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import Attributes
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.flow.statement_reader import read_statements
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.instance_sets import Workspace
from layoutproof.verify.isl.last_writer import Timestamp, suffixes
from layoutproof.verify.isl.operations import greatest, is_extreme, least
from layoutproof.verify.isl.space import BudgetExceeded
from layoutproof.verify.program.statement import NotModelled, Statements


@dataclass(frozen=True)
class Modelled:
    """A program with its flow."""

    function: PrimFunc
    statements: Statements
    flow: Dataflow

    def data(self, name: str) -> Var:
        """The memory of a buffer."""
        return next(d for d in self.statements.cells if d.name == f"{name}_data")


def modelled(function: PrimFunc, operations: int = 200_000) -> Modelled:
    """The model of a function whose parameters are apart."""
    if not function.noalias:
        function = replace(function, attrs=Attributes({**dict(function.attrs.items()), "tir.noalias": True}))
    facts = Facts.of(function)
    statements = read_statements(facts.program)
    return Modelled(
        function,
        statements,
        Dataflow(Workspace(facts.program.symbols, facts.assumed, facts.ranges, operations), statements, "n"),
    )


def sources(model: Modelled, number: int, read: int = 0) -> str:
    """The sources of one read as isl writes them."""
    statement = model.statements.statements[number]
    return str(model.flow.sources(statement, statement.reads[read]))


SUM = """
    @T.prim_func
    def main(A: T.Buffer((16, "n"), "float32"), B: T.Buffer((16,), "float32")):
        n = T.int32()
        T.func_attr({"tirx.noalias": True})
        for i, k in T.grid(16, n):
            with T.block("b"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
"""


def test_a_reduction_of_any_length() -> None:
    """The first update reads what init stored, every other one its predecessor; an empty reduction leaves what was
    there.
    """
    model = modelled(program(SUM))
    start, update = model.statements.statements
    got = model.flow.sources(update, update.reads[0])
    expected = isl.UnionMap(
        "[n] -> { n1[i, 0] -> n0[i, 0] : 0 <= i <= 15 and n > 0;"
        " n1[i, k] -> n1[i, k - 1] : 0 <= i <= 15 and 0 < k < n }",
        context=model.flow.workspace.ctx,
    )
    assert got.is_equal(expected)
    ends = isl.UnionMap(
        "[n] -> { nout_B_data[i] -> n1[i, n - 1] : 0 <= i <= 15 and n > 0;"
        " nout_B_data[i] -> nin_B_data[i] : 0 <= i <= 15 and n = 0 }",
        context=model.flow.workspace.ctx,
    )
    assert model.flow.final(model.data("B")).is_equal(ends)
    assert model.flow.domain(start).is_equal(
        isl.Set("[n] -> { n0[i, 0] : 0 <= i <= 15 and n > 0 }", context=model.flow.workspace.ctx)
    )


def test_a_rotated_reduction_starts_in_its_middle() -> None:
    """The updates before the init add to what was there, and are lost; the init follows them."""
    rotated = SUM.replace('"n"', "8").replace("        n = T.int32()\n", "").replace("T.grid(16, n)", "T.grid(16, 8)")
    axes = "vi = T.axis.spatial(16, i)\n                vk = T.axis.reduce(8, (k + 4) % 8)"
    model = modelled(program(rotated.replace('vi, vk = T.axis.remap("SR", [i, k])', axes)))
    _, update = model.statements.statements
    expected = isl.UnionMap(
        "{ n1[i, 0] -> nin_B_data[i] : 0 <= i <= 15; n1[i, 4] -> n0[i, 4] : 0 <= i <= 15;"
        "  n1[i, k] -> n1[i, k - 1] : 0 <= i <= 15 and 0 < k < 8 and not (k = 4) }",
        context=model.flow.workspace.ctx,
    )
    assert model.flow.sources(update, update.reads[0]).is_equal(expected)


def test_what_nobody_writes_is_there_from_the_start() -> None:
    """A parameter that is only read is its own source."""
    assert "n1[i0, i1] -> nin_A_data[i0, i1]" in sources(modelled(program(SUM)), 1, 1)


def test_contributions_of_a_reduction() -> None:
    """Outside the chain of updates the owner is init, or what was there; the chain contributes all its updates before
    the reader.
    """
    model = modelled(program(SUM))
    owner, parts = model.flow.reduced_final(model.data("B"), frozenset((1,)))
    ctx = model.flow.workspace.ctx
    owners = (
        "[n] -> { nout_B_data[i] -> n0[i, 0] : 0 <= i <= 15 and n > 0;"
        " nout_B_data[i] -> nin_B_data[i] : 0 <= i <= 15 and n = 0 }"
    )
    assert owner.is_equal(isl.UnionMap(owners, context=ctx))
    assert parts.is_equal(
        isl.UnionMap("[n] -> { nout_B_data[i] -> n1[i, k] : 0 <= i <= 15 and 0 <= k < n }", context=ctx)
    )
    update = model.statements.statements[1]
    _, before = model.flow.reduced(update, update.reads[0], frozenset((1,)))
    assert before.is_equal(
        isl.UnionMap("[n] -> { n1[i, k] -> n1[i, l] : 0 <= i <= 15 and 0 <= l < k < n }", context=ctx)
    )


def test_stores_can_be_deleted() -> None:
    """Without some of its stores, a program's reads find what was there before; other memories keep their flow."""
    model = modelled(program(SUM))
    _, update = model.statements.statements
    ctx = model.flow.workspace.ctx
    odd = isl.Set("[n] -> { [i, k] : k mod 2 = 1 }", context=ctx)
    left = model.flow.without({1: odd})
    assert left.domain(update).is_equal(model.flow.domain(update).subtract(odd.set_tuple_name("n1")))
    expected = isl.UnionMap(
        "[n] -> { n1[i, 0] -> n0[i, 0] : 0 <= i <= 15 and n > 0;"
        " n1[i, k] -> n1[i, k - 2] : 0 <= i <= 15 and 0 < k < n and k mod 2 = 0 }",
        context=ctx,
    )
    assert left.sources(update, update.reads[0]).is_equal(expected)
    inputs = left.sources(update, update.reads[1])
    assert inputs.is_equal(
        model.flow.sources(update, update.reads[1]).intersect_domain(isl.UnionSet.from_set(left.domain(update)))
    )
    again = left.without({1: isl.Set("[n] -> { [i, k] : k mod 2 = 0 }", context=ctx)})
    assert again.domain(update).is_empty()


def test_writers_a_stride_apart_hide_nothing_else() -> None:
    """Cells between the strides of a writer keep their earlier writer, and the initial value where there is none."""
    model = modelled(program("""
        @T.prim_func
        def main(B: T.Buffer((6,), "float32")):
            B[3] = T.float32(1)
            for i in range(3):
                B[i * 2 % 6] = T.float32(2)
    """))  # fmt: skip
    ends = pairs(model.flow.final(model.data("B")), fixed(model.flow, {}))
    assert {(cell[0], source) for (_, cell), source in ends} == {
        (0, ("n1", (0,))), (1, ("nin_B_data", (1,))), (2, ("n1", (1,))), (3, ("n0", ())),
        (4, ("n1", (2,))), (5, ("nin_B_data", (5,))),
    }  # fmt: skip


def test_the_product_of_symbols_is_no_integer_set() -> None:
    """An access that integer sets cannot say is refused, named."""
    model = modelled(program("""
        @T.prim_func
        def main(B: T.Buffer((64,), "float32"), C: T.Buffer(("n",), "float32"), D: T.Buffer(("m",), "float32")):
            n, m = T.int32(), T.int32()
            for i in range(n):
                B[i * m] = B[0]
    """))  # fmt: skip
    with pytest.raises(NotModelled, match="a product of two variables"):
        sources(model, 0)


def test_the_budget_is_kept() -> None:
    """Past its operations isl stops; nothing half-finished is kept, and a larger budget finds the answer."""
    function = program(random_flow_program(0))
    model = modelled(function, operations=60)
    statement = model.statements.statements[-1]
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            model.flow.final(statement.data)
    assert not differences(Oracle(model.statements, {}, "n"), modelled(function).flow)


def test_blocks_of_work_share_a_budget() -> None:
    """A limited block inside another one does not lift the outer limit."""
    workspace = Workspace((), (), {}, operations=500)
    whole = isl.Set("{ [i, j] : 0 <= i <= 10 and 0 <= j <= i }", context=workspace.ctx)
    part = isl.Set("{ [i, j] : 3 <= i <= 10 and 2*j <= i }", context=workspace.ctx)
    with pytest.raises(BudgetExceeded), workspace.limited():
        with workspace.limited():
            pass
        for _ in range(100):
            whole.subtract(part).is_empty()


def test_two_writes_at_one_time_are_an_error() -> None:
    """A tie would let a writer be overlooked silently: it cannot be computed with."""
    space = Workspace((), (), {}).space(["i"])
    tied = Timestamp(space, (0, 1), space.universe())
    with pytest.raises(ValueError, match="at one time"):
        suffixes([tied, tied], 0)


def test_extremes_are_checked() -> None:
    """The last partner is the last one: a wrong answer is noticed, a right one recognised, the relation unchanged."""
    relation = isl.Map(
        "{ [i] -> [j] : 0 <= i <= 2 and 0 <= j <= 5 and (i - j) mod 3 = 0 and 3*floor(j/3) <= 2*floor(j/2) }"
    )
    text = str(relation)
    assert greatest(relation).is_equal(isl.Map("{ [0] -> [0]; [1] -> [4]; [2] -> [5] }"))
    assert least(relation).is_equal(isl.Map("{ [0] -> [0]; [1] -> [1]; [2] -> [2] }"))
    assert str(relation) == text
    assert not is_extreme(relation, isl.Map("{ [i] -> [i] : 0 <= i <= 2 }"), True)
    assert not is_extreme(relation, isl.Map("{ [i] -> [i] : 0 <= i <= 1 }"), False)
    assert not is_extreme(relation, isl.Map("{ [i] -> [9] : 0 <= i <= 2 }"), True)


# Random programs

FLOW, SYMBOLIC, TEXT, NODES, FAULTY = "flow", "symbolic", "text", "nodes", "faulty"


def random_function(kind: str, seed: int) -> PrimFunc:
    """A random program of a kind."""
    match kind:
        case "flow" | "symbolic":
            return program(random_flow_program(seed, symbolic=kind == SYMBOLIC))
        case "text":
            return program(random_program(seed))
        case _:
            return RandomProgram(seed, faults=kind == FAULTY, undef=False, shared=seed % 2 == 0).function()


def sizes(model: Modelled) -> Iterator[dict[str, int]]:
    """Values for the symbols."""
    symbols = model.flow.workspace.params
    for numbers in ((3, 4), (1, 2), (2, 3)) if symbols else ((),):
        yield dict(zip(symbols, numbers, strict=True))


def some_removed(
    model: Modelled, rng: Random, symbols: dict[str, int]
) -> tuple[dict[int, isl.Set], dict[int, set[Point]]]:
    """Some instances of some statements."""
    numbers = [s.number for s in model.statements.statements]
    removed: dict[int, isl.Set] = {}
    for number in rng.sample(numbers, rng.randint(1, min(2, len(numbers)))):
        points = model.flow.domain(model.statements.statements[number])
        if points.dim(isl.dim_type.set) and rng.random() < 0.7:
            points = points.upper_bound_val(
                isl.dim_type.set, 0, isl.Val.int_from_si(model.flow.workspace.ctx, rng.randint(0, 3))
            )
        removed[number] = points
    return removed, {number: set_points(points, fixed(model.flow, symbols)) for number, points in removed.items()}


def found_wrong(kind: str, seed: int) -> list[str] | None:
    """What the flow of a random program has wrong; None where there is no model, or where an index divides by zero,
    which other obligations refute.
    """
    try:
        model = modelled(random_function(kind, seed))
        rng, wrong = Random(seed), list[str]()
        numbers = [s.number for s in model.statements.statements]
        chains = [frozenset(rng.sample(numbers, rng.randint(1, len(numbers))))] if numbers else []
        for symbols in sizes(model):
            wrong += differences(Oracle(model.statements, symbols, "n"), model.flow, chains)
            if numbers:
                removed, points = some_removed(model, rng, symbols)
                wrong += differences(Oracle(model.statements, symbols, "n", points), model.flow.without(removed))
        return wrong
    except (NotModelled, BudgetExceeded, Trap):
        return None


STARTS = [(FLOW, 0), (SYMBOLIC, 0), (TEXT, 0), (NODES, 872), (NODES, 3136), (FAULTY, 0)]


@one_in(14)
@pytest.mark.parametrize(
    "start", some([(kind, first + skipped) for skipped in range(0, 32, 4) for kind, first in STARTS], len(STARTS))
)
def test_random_programs_have_their_exact_sources(start: tuple[str, int]) -> None:
    """Domains, sources, ends, chains and deletions agree with brute force; most programs have a model."""
    kind, first = start
    results = [found_wrong(kind, seed) for seed in range(first, first + 4)]
    assert [wrong for wrong in results if wrong] == []
    assert sum(wrong is not None for wrong in results) >= 2


def run_wrong(kind: str, seed: int) -> list[str] | None:
    """Where the model of a random program, run on arrays, ends otherwise than the program; None where that faults or
    has no model.
    """
    try:
        model = modelled(random_function(kind, seed))
        symbols = next(sizes(model))
        rng, arrays = np.random.default_rng(seed), {}
        for buffer in model.function.buffers:
            shape = tuple(int(evaluate(e, symbols)) for e in buffer.shape)
            values = rng.standard_normal(shape) if buffer.dtype.is_float else rng.integers(-1, 6, shape)
            arrays[buffer.name] = values.astype(str(buffer.dtype))
        after = run(model.function, {name: array.copy() for name, array in arrays.items()})
        return disagreements(model.function, model.flow, symbols, arrays, after.arrays)
    except (NotModelled, BudgetExceeded, Fault):
        return None


@one_in(21)
@pytest.mark.parametrize("kind", [FLOW, SYMBOLIC, NODES])
@pytest.mark.parametrize("first", some(range(0, 60, 12), 1))
def test_models_run_as_the_reference_interpreter(first: int, kind: str) -> None:
    """Following sources from the end to the inputs, and computing values on the way, gives what a run gives: inits,
    guards, scatters.
    """
    results = [run_wrong(kind, seed) for seed in range(first, first + 12)]
    assert [wrong for wrong in results if wrong] == []
    assert sum(wrong is not None for wrong in results) >= 8
