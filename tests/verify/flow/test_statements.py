"""Programs read into statements: exact domains, values over what is read, and refusals that name what has no exact
model.
"""

from __future__ import annotations

import pytest
from tests.verify.programs import program

from layoutproof.ir.expr import Expr, IfThenElseExpr, Var
from layoutproof.ir.text import expr_text
from layoutproof.verify.flow.statement_reader import read_statements
from layoutproof.verify.program.accesses import read_program
from layoutproof.verify.program.statement import NotModelled, Read, ReadRole, Statement, Statements


def read(body: str, *, attrs: str = '"tirx.noalias": True', **structures: tuple[Expr, ...]) -> Statements:
    """The statements of a body over A [8, 8], B [8] (floats) and I [8] (integers)."""
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    text = f"""@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32")):
    T.func_attr({{{attrs}}})
{lines}
"""
    return read_statements(read_program(program(text)), structures)


def only(statements: Statements) -> Statement:
    """The one statement there is."""
    (statement,) = statements.statements
    return statement


def guards(statement: Statement) -> list[str]:
    """What restricts a statement's instances."""
    return [expr_text(g.as_expr, "plain") for g in statement.domain.guards]


def roles(statement: Statement) -> list[tuple[str, ReadRole, bool]]:
    """What a statement reads, for what, and whether anywhere."""
    return [(r.data.name, r.role, r.anywhere) for r in statement.reads]


def cells(at: Read | Statement) -> list[str]:
    """Coordinates as text."""
    return [expr_text(c, "plain") for c in at.coordinates]


def test_an_index_condition_goes_into_the_domain() -> None:
    """A guard on loops restricts instances, its negation those of the other branch."""
    found = read("""
for i in range(8):
    if i < 3 or i > 5:
        B[i] = T.float32(0)
    else:
        B[i] = T.float32(1)
""")
    first, second = found.statements
    assert guards(first) == ["i < 3 or i > 5"]
    assert guards(second) == ["not i < 3", "not i > 5"]
    assert first.reads == () == second.reads


def test_a_condition_on_data_goes_into_the_value() -> None:
    """A store under a mixed conjunction happens where the indices allow it, and keeps the cell unless the data does."""
    statement = only(
        read("""
for i in range(8):
    if i < 3 and I[i] > 0:
        B[i] = T.float32(0)
""")
    )
    # In bounds, too: where data keeps the store from happening it need not be.
    assert guards(statement) == ["i < 3", "i >= 0", "i < 8"]
    assert isinstance(statement.value, IfThenElseExpr)
    assert roles(statement) == [("I_data", ReadRole.CONDITION, False), ("B_data", ReadRole.CURRENT, False)]
    assert statement.value.otherwise == statement.reads[1].var


def test_a_mixed_disjunction_goes_wholly_into_the_value() -> None:
    """`index or data` cannot restrict instances; the index condition stays in the value."""
    statement = only(
        read("""
for i in range(8):
    if i < 3 or I[i] > 0:
        B[i] = T.float32(0)
""")
    )
    assert "i < 3" not in guards(statement)
    assert isinstance(statement.value, IfThenElseExpr)
    assert expr_text(statement.value.condition, "plain") == "i < 3 or I_value > 0"


def test_a_condition_that_is_not_affine_goes_into_the_value() -> None:
    """A product of symbols is no integer set, but a value can say it."""
    found = read_statements(
        read_program(
            program("""
        @T.prim_func
        def main(B: T.Buffer(("n",), "float32"), C: T.Buffer(("m",), "float32")):
            n, m = T.int32(), T.int32()
            T.func_attr({"tirx.noalias": True})
            for i in range(n):
                if i * m < 7:
                    B[i] = T.float32(0)
    """)
        )
    )
    assert [r.role for r in only(found).reads] == [ReadRole.CURRENT]


def test_a_scatter_may_write_any_cell() -> None:
    """The instances of a scatter are those of its loops for every cell of the axis that data decides."""
    statement = only(
        read("""
for i in range(8):
    A[i, I[i]] = T.float32(2)
""")
    )
    assert statement.scatter == 1 and len(statement.dims) == 2
    assert cells(statement) == ["i", "cell"]
    assert expr_text(statement.value, "plain") == "if_then_else(I_value == cell, 2.0, A_value)"


def test_a_gather_may_read_any_cell() -> None:
    """A load whose index depends on data reads anywhere along that axis, in a iteration domain with one more dim."""
    statement = only(
        read("""
for i in range(8):
    B[i] = A[I[i], i]
""")
    )
    gather = next(r for r in statement.reads if r.anywhere)
    assert cells(gather) == ["cell", "i"]
    assert [d.var.name for d in gather.access.domain.dims] == ["i", "cell"]
    index = next(r for r in statement.reads if r.role is ReadRole.INDEX)
    assert gather.access.indices[0] == index.var


def test_a_let_loads_when_it_is_bound() -> None:
    """What a let loaded was read before the stores of its body."""
    found = read("""
for i in range(8):
    x: T.float32 = B[i]
    B[i] = T.float32(0)
    A[i, 0] = x + x
""")
    second = found.statements[1]
    (taken,) = second.reads
    assert taken.access.domain.time < second.domain.time
    assert taken.access.domain.time < found.statements[0].domain.time  # numbers stand at the first difference
    assert expr_text(second.value, "plain") == f"{taken.var.name} + {taken.var.name}"


def test_a_lazy_choice_guards_its_loads() -> None:
    """The load of a side that is not taken does not happen."""
    statement = only(
        read("""
for i in range(8):
    B[i] = T.if_then_else(i > 0, A[i - 1, 0], T.float32(0))
""")
    )
    (load,) = statement.reads
    assert [expr_text(g.as_expr, "plain") for g in load.access.domain.guards] == ["i > 0"]


def test_lanes_are_a_dim() -> None:
    """A vector store has a lane among its dims; what it loads is loaded by all lanes before any stores."""
    statement = only(read("B[T.ramp(0, 2, 4)] = A[3, T.ramp(7, -1, 4)] + T.broadcast(B[7], 4)"))
    (lane,) = statement.dims
    assert lane.lane and cells(statement) == ["0 + lane*2"]
    assert [cells(r) for r in statement.reads] == [["3", "7 + -lane"], ["7"]]
    assert lane not in statement.reads[0].access.domain.time and lane in statement.domain.time


def test_lanes_of_elements_are_a_coordinate() -> None:
    """Memory of vectors has its lanes as a last coordinate, whatever lanes the index adds."""
    found = read("""
T1 = T.alloc_buffer((4,), "float32x2")
T1[3] = B[T.ramp(0, 1, 2)]
B[T.ramp(0, 1, 4)] = T1[T.ramp(1, 1, 2)]
""")
    first, second = found.statements
    assert [expr_text(e, "plain") for e in found.cells[first.data]] == ["4", "2"]
    assert cells(first) == ["3", "lane"]
    assert cells(second.reads[0]) == ["1 + lane_1//2*1", "lane_1%2"]


SUM = """
for i, k in T.grid(8, 8):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", [i, k])
        T.where({where})
        with T.init():
            B[vi] = {init}
        B[vi] = B[vi] + A[vi, vk]
"""


def test_an_init_is_a_store_at_the_start_of_the_reduction() -> None:
    """It has the dims of the update, is numbered before it, and happens in the first iteration, under the block's
    guard.
    """
    start, update = read(SUM.format(where="i < 5", init="T.float32(0)")).statements
    assert [d.var.name for d in start.dims] == [d.var.name for d in update.dims] == ["i", "k"]
    assert (guards(start), guards(update)) == (["i < 5", "k == 0"], ["i < 5"])
    assert start.domain.time < update.domain.time and start.reads == ()


def test_data_may_decide_whether_an_init_happens() -> None:
    """Under a guard on data the init keeps what is there or stores its value; the loops of the reduction may take part
    in that.
    """
    start, _ = read(SUM.format(where="I[k] > 0", init='T.Cast("float32", vk)')).statements
    assert guards(start) == ["k == 0", "i >= 0", "i < 8"]
    assert expr_text(start.value, "plain") == "if_then_else(I_value > 0, float32(k), B_value)"


def test_temporaries_in_loops_are_apart() -> None:
    """Memory that is allocated in a loop is another one in each iteration."""
    found = read("""
for i in range(8):
    with T.block("b"):
        T1 = T.alloc_buffer((2,))
        T1[1] = B[i]
""")
    data = only(found).data
    assert cells(only(found)) == ["i", "1"]
    assert [expr_text(e, "plain") for e in found.cells[data]] == ["8", "2"]
    assert [d.var.name for d in found.leading[data]] == ["i"]


def test_a_view_means_the_cells_of_its_memory() -> None:
    """A flat view of a matrix has the matrix's coordinates."""
    found = read("""
T1 = T.alloc_buffer((4, 2))
V = T.decl_buffer((8,), "float32", data=T1.data)
for i in range(8):
    V[i] = B[i]
""")
    assert cells(only(found)) == ["i//2", "i%2"]


def test_flat_cells_of_a_symbolic_shape_get_their_structure() -> None:
    """A flattened index over symbols is taken apart by the structure that the caller knows."""
    text = """
        @T.prim_func
        def main(b: T.handle):
            n, m = T.int32(), T.int32()
            B = T.match_buffer(b, (n * m,), "float32")
            for i, j in T.grid(n, m):
                B[i * m + j] = T.float32(0)
    """
    n, m = Var("n"), Var("m")
    found = read_statements(read_program(program(text)), {"B_data": (n, m)})
    assert cells(only(found)) == ["i", "j"]
    assert found.cells[only(found).data] == (n, m)


def test_assumptions_about_memory_are_facts() -> None:
    """An assumption that loads is kept with its instances, what it says, and what it looks at."""
    found = read("""
for i, j in T.grid(8, 8):
    T.evaluate(T.assume(j < 5 or A[i, j] == T.float32(0)))
B[0] = T.float32(0)
""")
    (fact,) = found.assumptions
    (load,) = fact.reads
    assert [d.var.name for d in fact.dims] == ["i", "j"]
    assert expr_text(fact.condition, "plain") == "j < 5 or A_value == 0.0"
    assert [expr_text(g.as_expr, "plain") for g in load.access.domain.guards] == ["not j < 5"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("for i in range(I[0]):\n    B[0] = T.float32(0)", "a bound of loop i depends on data"),
        ('T.evaluate(T.call_extern("int32", "f"))\nB[0] = T.float32(0)', "may touch anything"),
        ("x: T.float32 = T.undef()\nB[0] = x", "x stands for an undefined value"),
        ('for i in T.thread_binding(8, thread="threadIdx.x"):\n    B[i] = T.float32(0)', "loop i is bound to a thread"),
        (
            'V = T.decl_buffer((8,), "int32", data=B.data)\nV[0] = 1\nB[1] = T.float32(0)',
            "V sees float32 memory as int32",
        ),
    ],
)  # fmt: skip
def test_what_has_no_exact_model_is_refused(body: str, reason: str) -> None:
    """Nothing is approximated: the refusal says what it is."""
    with pytest.raises(NotModelled, match=reason):
        read(body)


def test_parameters_may_overlap() -> None:
    """Without an assumption that parameters are apart, a write to one beside another has no exact model."""
    with pytest.raises(NotModelled, match="B and A may overlap"):
        read("B[0] = A[0, 0]", attrs="")
    read("B[0] = B[1]", attrs="")
    read("B[0] = A[0, 0]", attrs='"layoutproof.apart": True')
