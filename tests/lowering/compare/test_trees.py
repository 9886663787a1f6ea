"""Two value trees side by side: which loads go together, and what stands in their way."""

from __future__ import annotations

from dataclasses import replace

from tests.lowering.compare.questions import from_text

from layoutproof.ir.expr import Expr, Var
from layoutproof.lowering.compare.value_trees import Matcher, Value
from layoutproof.lowering.compare.witness_search import search_of
from layoutproof.verify.program.statement import Read

SIGNATURE = (
    'A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32"), K: T.Buffer((8,), "int32"), B: T.Buffer((8,), '
    '"float32")'
)


def value(expr: str) -> Value:
    """The value of a store in a loop over `i`."""
    body = f"for i in range(8):\n    B[i] = {expr}\n"
    statement = search_of(from_text(SIGNATURE, body, body)).new.by_number[0]
    return Value(statement.value, statement.reads)


def same_memory(mine: Read, theirs: Read) -> int | None:
    """Loads of one memory go together."""
    return 0 if mine.data.name == theirs.data.name else None


def anything(mine: Read, theirs: Read) -> int | None:
    """All loads go together, those of one memory better."""
    return 0 if mine.data.name == theirs.data.name else 1


def name_of(side: Value, leaf: Expr) -> str:
    """The buffer of a load, or the text of a number."""
    read = side.read_of(leaf)
    return read.access.buffer.name if read is not None else "number"


def ways(new: str, old: str) -> list[list[tuple[str, str]]]:
    """The pairs of loads of each way, by their buffers."""
    mine, theirs = value(new), value(old)
    found = Matcher(mine, theirs, anything).ways()
    return [[(name_of(mine, a), name_of(theirs, b)) for a, b in (*way.loads, *way.constants)] for way in found]


def matches(new: str, old: str) -> bool:
    """Whether there is a way at all, with loads of one memory only."""
    return bool(Matcher(value(new), value(old), same_memory).ways())


def test_commuted() -> None:
    """Operands of sums and products may be swapped; the way that pairs loads of one buffer comes first."""
    assert ways("A[i] + D[i]", "D[i] + A[i]") == [[("A", "A"), ("D", "D")], [("A", "D"), ("D", "A")]]
    assert matches("T.float32(2) * (A[i] + D[i])", "(D[i] + A[i]) * T.float32(2)")


def test_not_commuted() -> None:
    """Operands of differences and quotients may not."""
    assert ways("A[i] - D[i]", "D[i] - A[i]") == [[("A", "D"), ("D", "A")]]
    assert not matches("A[i] / D[i]", "D[i] / A[i]")


def test_loads_for_numbers_come_last() -> None:
    """A load may stand for a number that it is known to find, after every way in which numbers stand for numbers."""
    assert ways("T.max(A[i], T.float32(0))", "T.max(T.float32(0), A[i])") == [[("A", "A")]]
    assert ways("A[i] + T.float32(1)", "T.float32(3) + T.float32(1)") == [[("A", "number")]]


def test_never_both_ways_round() -> None:
    """A load for a number and a number for a load: that is a difference, and no match."""
    assert ways("T.max(A[i], T.float32(1))", "T.max(A[i], T.float32(0))") == []


def test_a_number_alone() -> None:
    """A load that is the whole value is a copy, and no match for a number."""
    assert ways("A[i]", "T.float32(1)") == []


def test_choices() -> None:
    """All ways to write a choice are one, and so is the choice with the opposite condition."""
    eager = "T.Select(D[i] < T.float32(0), A[i], T.float32(1))"
    assert matches(eager, "T.if_then_else(D[i] < T.float32(0), A[i], T.float32(1))")
    assert matches(eager, "T.if_then_else(not D[i] < T.float32(0), T.float32(1), A[i])")
    assert not matches(eager, "T.if_then_else(D[i] < T.float32(0), T.float32(1), A[i])")


def test_mirrored_comparisons() -> None:
    """A comparison may be read from the other side."""
    assert matches("T.Select(A[i] < D[i], A[i], D[i])", "T.Select(D[i] > A[i], A[i], D[i])")
    assert not matches("T.Select(A[i] < D[i], A[i], D[i])", "T.Select(D[i] < A[i], A[i], D[i])")


def test_functions() -> None:
    """Calls of one function go together, `fmax` either way round, `pow` not."""
    assert matches("T.exp(A[i])", "T.exp(A[i])")
    assert not matches("T.exp(A[i])", "T.sqrt(A[i])")
    assert matches("T.fmax(A[i], D[i])", "T.fmax(D[i], A[i])")
    assert not matches("T.pow(A[i], D[i])", "T.pow(D[i], A[i])")


def test_numbers() -> None:
    """A number is a number however it is written, and no other one; the sign of a zero counts."""
    assert matches("A[i] + T.min_value('float32')", "T.float32(-3.4028234663852886e+38) + A[i]")
    assert not matches("A[i] + T.float32(1)", "A[i] + T.float32(2)")
    assert not matches("A[i] + T.float32(0)", "A[i] + T.float32(-0.0)")


def test_what_changes_nothing() -> None:
    """A zero that is added and a one that is multiplied may be missing on one side."""
    assert matches("A[i] * D[i]", "T.float32(0) + A[i] * D[i]")
    assert matches("T.exp(A[i]) * T.float32(1)", "T.exp(A[i])")
    assert not matches("A[i] * D[i]", "T.float32(1) + A[i] * D[i]")
    assert not matches("T.exp(A[i])", "T.exp(A[i]) - T.float32(0)")


def test_what_may_change_nothing() -> None:
    """Where the rest of a sum matches, its other operand keeps the values from matching: it may find a zero."""
    mine, theirs = value("T.exp(A[i])"), value("D[i] + T.exp(A[i])")
    ((is_new, load),) = Matcher(mine, theirs, same_memory).blocked()
    assert not is_new
    assert name_of(theirs, load) == "D"


def test_types() -> None:
    """Values of another type are others; a cast goes with a cast to one type."""
    assert matches("T.Cast('float32', K[i])", "T.Cast('float32', K[i])")
    assert not matches("T.Cast('float32', T.Cast('float64', A[i]))", "A[i] + T.float32(0)")


def test_indices() -> None:
    """Index-only parts are paired as they are: whether they are equal depends on the instances."""
    mine, theirs = value("T.Cast('float32', 2 * i + 1)"), value("T.Cast('float32', i * 3)")
    (way,) = Matcher(mine, theirs, same_memory).ways()
    assert not way.loads
    assert len(way.indices) == 1


def test_long_sums() -> None:
    """The ways of a long sum are bounded, and the first pairs loads of one memory."""
    terms = " + ".join(f"A[{k}] * D[{k}]" for k in range(8))
    found = ways(terms, terms)
    assert len(found) == 24
    assert found[0] == [("A", "A"), ("D", "D")] * 8


def test_blocked() -> None:
    """The loads that keep two values from matching are named, those of the program after as such; none where operators
    differ.
    """
    mine, theirs = value("T.exp(A[i]) + D[i]"), value("T.exp(A[i]) + T.sqrt(A[i])")
    ((is_new, load),) = Matcher(mine, theirs, same_memory).blocked()
    assert is_new
    assert name_of(mine, load) == "D"
    assert Matcher(value("T.exp(A[i])"), value("T.sqrt(A[i])"), same_memory).blocked() == []


def test_guesses() -> None:
    """Values of different forms: each load with the best one of the other program, where all of both have one."""
    mine, theirs = value("A[i] + A[i]"), value("A[i] * T.float32(2)")
    (way,) = Matcher(mine, theirs, same_memory).guesses()
    assert [(name_of(mine, a), name_of(theirs, b)) for a, b in way.loads] == [("A", "A")]
    assert Matcher(value("A[i] + D[i]"), value("A[i] * T.float32(2)"), same_memory).guesses() == []
    assert Matcher(value("A[i] + A[i]"), value("A[i] * D[i]"), same_memory).guesses() == []
    assert Matcher(value("T.float32(3)"), value("T.float32(4)"), same_memory).guesses() == []


def test_variables_of_reads_only() -> None:
    """A variable that stands for no load of the value is no leaf of it."""
    plain = value("A[i]")
    assert plain.read_of(Var("elsewhere", plain.expr.dtype)) is None
    assert replace(plain.reads[0], var=Var("x", plain.expr.dtype)) not in plain.reads
