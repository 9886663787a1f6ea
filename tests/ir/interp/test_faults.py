"""Every kind of fault, and beside each the same program made right."""

from __future__ import annotations

import numpy as np
import pytest
from tests.running import fault, floats, program, result

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import FaultKind, run


def test_out_of_bounds_read_names_its_place() -> None:
    """A load past the end of an axis is a fault with buffer, indices, block, line and the variables' values."""
    func = program("""
        def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.sblock("copy"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi + 1]
    """)
    found = fault(func, [floats(1, 2, 3, 4), None], FaultKind.OUT_OF_BOUNDS)
    assert (found.buffer, found.indices, found.block) == ("A", (4,), "copy")
    assert found.values["vi"] == 3
    assert found.span is not None and found.span.line == 6
    assert "A[4]" in str(found)


def test_in_bounds_run_changes_only_what_it_writes() -> None:
    """A right program ends well and leaves the arguments it was given untouched."""
    func = program("""
        def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(3):
                B[i] = A[i + 1]
    """)
    a, b = floats(1, 2, 3, 4), floats(9, 9, 9, 9)
    found = result(func, [a, b])
    assert found["B"].tolist() == [2, 3, 4, 9]
    assert b.tolist() == [9, 9, 9, 9]
    assert found.written == {"B"}


def test_bounds_hold_per_axis() -> None:
    """An index outside its own axis is a fault even where the element number stays inside the data."""
    func = program("""
        def main(A: T.Buffer((4, 4), "float32")):
            for j in range(6):
                A[0, j] = T.float32(0)
    """)
    assert fault(func, [np.zeros((4, 4), np.float32)], FaultKind.OUT_OF_BOUNDS).indices == (0, 4)


def test_negative_index_is_out_of_bounds() -> None:
    """Indices do not count from the end."""
    func = program("""
        def main(A: T.Buffer((4,), "float32")):
            for i in range(4):
                A[i - 1] = T.float32(0)
    """)
    assert fault(func, [floats(1, 2, 3, 4)], FaultKind.OUT_OF_BOUNDS).indices == (-1,)


def test_lazy_choice_does_not_evaluate_the_other_side() -> None:
    """if_then_else guards an out-of-bounds load; select does not."""
    text = """
        def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                B[i] = {choice}(i < 3, A[i + 1], T.float32(7))
    """
    lazy = program(text.replace("{choice}", "T.if_then_else"))
    assert result(lazy, [floats(1, 2, 3, 4), None])["B"].tolist() == [2, 3, 4, 7]
    fault(program(text.replace("{choice}", "T.Select")), [floats(1, 2, 3, 4), None], FaultKind.OUT_OF_BOUNDS)


def test_connectives_evaluate_their_right_side_only_when_it_matters() -> None:
    """`i < 3 and A[i + 1] > 0` reads nothing out of bounds; the sides exchanged, it does."""
    text = """
        def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "int32")):
            for i in range(4):
                B[i] = T.Select({condition}, 1, 0)
    """
    good = program(text.replace("{condition}", "i < 3 and A[i + 1] > T.float32(2)"))
    assert result(good, [floats(1, 2, 3, 4), None])["B"].tolist() == [0, 1, 1, 0]
    fault(
        program(text.replace("{condition}", "A[i + 1] > T.float32(2) and i < 3")),
        [floats(1, 2, 3, 4), None],
        FaultKind.OUT_OF_BOUNDS,
    )


def test_read_of_a_fresh_temporary() -> None:
    """A temporary's cell is unreadable until it is written; so is a parameter that was given no array."""
    text = """
        def main(B: T.Buffer((4,), "float32")):
            C = T.sblock_alloc_buffer((4,))
            for i in range({n}):
                C[i] = T.float32(1)
            for i in range(4):
                B[i] = C[i]
    """
    assert fault(program(text.replace("{n}", "3")), [None], FaultKind.UNINITIALISED).indices == (3,)
    assert result(program(text.replace("{n}", "4")), [None])["B"].tolist() == [1, 1, 1, 1]
    accumulate = program("""
        def main(B: T.Buffer((2,), "float32")):
            for i in range(2):
                B[i] = B[i] + T.float32(1)
    """)
    fault(accumulate, [None], FaultKind.UNINITIALISED)
    assert result(accumulate, [floats(1, 2)])["B"].tolist() == [2, 3]


def test_cells_never_written_are_told_apart() -> None:
    """The states of a result tell written cells from untouched ones."""
    func = program("""
        def main(B: T.Buffer((3,), "float32")):
            B[1] = T.float32(5)
    """)
    assert result(func, [None]).states["B"].tolist() == [0, 1, 0]


@pytest.mark.parametrize("access", ["B[0] = A[3]", "A[3] = T.float32(1)"])
def test_forbidden_padding(access: str) -> None:
    """Padding without a contract, from a mask, may be neither read nor written; other cells may."""
    func = program(f"""
        def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            {access}
    """)
    mask = np.array([True, True, True, False])
    assert fault(func, [floats(1, 2, 3, 4), floats(0, 0, 0, 0)], FaultKind.FORBIDDEN, readable={"A": mask}).indices == (
        3,
    )
    result(func, [floats(1, 2, 3, 4), floats(0, 0, 0, 0)], readable={"A": ~mask | np.array([0, 0, 0, 1], bool)})


def test_integer_division_by_zero_traps() -> None:
    """A zero divisor is a trap, in values and in indices."""
    func = program("""
        def main(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
            for i in range(3):
                B[i] = 12 // A[i]
    """)
    found = fault(func, [np.array([1, -2, 0], np.int32), None], FaultKind.TRAP)
    assert found.values["i"] == 2
    assert result(func, [np.array([5, -5, 7], np.int32), None])["B"].tolist() == [2, -3, 1]


@pytest.mark.parametrize("operation", ["//", "%"])
def test_overflowing_quotient_traps(operation: str) -> None:
    """INT_MIN by -1 traps, the remainder too."""
    func = program(f"""
        def main(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
            B[0] = A[0] {operation} B[0]
    """)
    fault(func, [np.array([-(2**31)], np.int32), np.array([-1], np.int32)], FaultKind.TRAP)
    result(func, [np.array([-(2**31)], np.int32), np.array([-2], np.int32)])


@pytest.mark.parametrize(("amount", "good"), [(-1, False), (0, True), (7, True), (8, False)])
def test_shift_amounts(amount: int, good: bool) -> None:
    """A shift by less than zero or by the width traps."""
    func = program("""
        def main(A: T.Buffer((1,), "int8"), S: T.Buffer((1,), "int8"), B: T.Buffer((1,), "int8")):
            B[0] = T.shift_left(A[0], S[0])
    """)
    arguments = [np.array([3], np.int8), np.array([amount], np.int8), None]
    if good:
        assert result(func, arguments)["B"][0] == np.array(3 << amount).astype(np.int8)
    else:
        fault(func, arguments, FaultKind.TRAP)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2147483648.0, -2147483904.0])
def test_float_out_of_an_integers_range_traps(value: float) -> None:
    """A cast from a float that no integer of the type is near traps; one in range truncates."""
    func = program("""
        def main(A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "int32")):
            B[0] = T.Cast("int32", A[0])
    """)
    fault(func, [floats(value), None], FaultKind.TRAP)
    assert result(func, [floats(-2147483648.0), None])["B"].tolist() == [-(2**31)]
    assert result(func, [floats(-3.75), None])["B"].tolist() == [-3]


def test_index_arithmetic_must_fit_where_values_wrap() -> None:
    """The same product overflows as an index and wraps as a value."""
    index = program("""
        def main(A: T.Buffer((8,), "int32"), n: T.int32):
            A[(n * n) % 8] = 1
    """)
    assert "int32" in str(fault(index, [np.zeros(8, np.int32), 65536], FaultKind.OVERFLOW))
    assert result(index, [np.zeros(8, np.int32), 3])["A"].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    value = program("""
        def main(A: T.Buffer((2,), "int32")):
            A[0] = A[1] * A[1] + 5
    """)
    assert result(value, [np.array([0, 65536], np.int32)])["A"].tolist() == [5, 65536]


def test_an_index_that_does_not_fit_while_it_is_computed() -> None:
    """Every sub-expression of an index must fit, not only the result; int64 arithmetic does fit."""
    text = """
        def main(A: T.Buffer((8,), "float32"), n: T.{type}):
            A[(n + n) - n - n] = T.float32(1)
    """
    fault(program(text.replace("{type}", "int32")), [np.zeros(8, np.float32), 2**30], FaultKind.OVERFLOW)
    result(program(text.replace("{type}", "int64")), [np.zeros(8, np.float32), 2**30])


def test_conditions_over_loop_variables_are_index_arithmetic() -> None:
    """A guard whose arithmetic over loop variables overflows is a fault, not a guard that wraps."""
    func = program("""
        def main(A: T.Buffer((3,), "float32")):
            for i in range(3):
                if i * 2000000000 > 5:
                    A[i] = T.float32(1)
    """)
    fault(func, [np.zeros(3, np.float32)], FaultKind.OVERFLOW)


def test_violated_assumption() -> None:
    """An assumption that does not hold is a fault at its line; one that holds does nothing."""
    func = program("""
        def main(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "float32")):
            for i in range(4):
                T.evaluate(T.assume(i < 3 or A[i] == T.float32(0)))
            B[0] = A[0]
    """)
    assert fault(func, [floats(1, 2, 3, 4), None], FaultKind.ASSUMPTION).values["i"] == 3
    assert result(func, [floats(1, 2, 3, 0), None])["B"].tolist() == [1]


def test_assumed_equality_is_value_identity() -> None:
    """In an assumption +0 is not -0 and NaN is NaN; inside an arithmetic condition they are IEEE's."""
    text = """
        def main(A: T.Buffer((1,), "float32")):
            T.evaluate(T.assume({condition}))
    """
    zero = program(text.replace("{condition}", "A[0] == T.float32(0)"))
    fault(zero, [floats(-0.0)], FaultKind.ASSUMPTION)
    result(zero, [floats(0.0)])
    nan = program(text.replace("{condition}", 'A[0] == T.float32("nan")'))
    result(nan, [floats(float("nan"))])
    fault(nan, [floats(1.0)], FaultKind.ASSUMPTION)
    ieee = program(text.replace("{condition}", "not (A[0] != T.float32(0))"))
    result(ieee, [floats(-0.0)])


def test_executed_instance_outside_its_domain() -> None:
    """A block that runs for a value outside its variable's domain is faulty, unless its guard excludes it."""
    text = """
        def main(A: T.Buffer((16,), "float32")):
            for i, j in T.grid(4, 4):
                with T.sblock("fill"):
                    vi = T.axis.spatial(14, i * 4 + j)
                    {where}
                    A[vi] = T.float32(1)
    """
    fault(program(text.replace("{where}", "T.reads()")), [np.zeros(16, np.float32)], FaultKind.BINDING)
    found = result(program(text.replace("{where}", "T.where(i * 4 + j < 14)")), [np.zeros(16, np.float32)])
    assert found["A"].tolist() == [1.0] * 14 + [0.0] * 2


def test_unknown_calls_are_named() -> None:
    """A program with an opaque call is refused by name, not run without it."""
    func = program("""
        def main(A: T.Buffer((4,), "float32")):
            T.evaluate(T.call_extern("int32", "mystery", A[0]))
    """)
    with pytest.raises(LayoutproofError, match=r"call_extern|mystery"):
        run(func, [floats(1, 2, 3, 4)])


def test_runs_are_limited() -> None:
    """A run past its limit of iterations is stopped with an error, however large the extents are."""
    func = program("""
        def main(A: T.Buffer((1,), "float32")):
            for i, j in T.grid(1000000000, 1000000000):
                A[0] = T.float32(0)
    """)
    for plain in (False, True):
        with pytest.raises(LayoutproofError, match="stopped"):
            run(func, [floats(1)], limit=1000, plain=plain)


WRONG_ARGUMENTS = [
    ([], "takes 2 arguments"),
    ([np.zeros(4, np.float64), None], "holds float32, the array float64"),
    ([np.zeros((4, 1), np.float32), None], "has 1 axes"),
    ([np.zeros(4, np.float32), np.zeros(5, np.float32)], "n is 4, but B says 5"),
    ([[1.0], None], "takes an array"),
    ([None, None], "no value for n"),
    ({"C": np.zeros(4, np.float32)}, "no parameter C"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG_ARGUMENTS)
def test_arguments_that_do_not_fit(arguments: object, message: str) -> None:
    """Wrong counts, types, ranks, shapes that disagree and unknown names each have their message."""
    func = program("""
        def main(A: T.Buffer(("n",), "float32"), B: T.Buffer((n,), "float32")):
            n = T.int32()
            for i in range(n):
                B[i] = A[i]
    """)
    with pytest.raises(LayoutproofError, match=message):
        run(func, arguments)  # type: ignore[arg-type]  # wrong arguments are what is tested


def test_elements_before_the_memory() -> None:
    """Strides that lead before the start of a parameter's memory are refused, not counted from its end."""
    func = program("""
        def main(a: T.handle, n: T.int32, s: T.int32):
            A = T.match_buffer(a, (n,), "float32", strides=(s,))
            for i in range(n):
                A[i] = T.float32(1)
    """)
    for step in (-1, -2):
        with pytest.raises(LayoutproofError, match=rf"an element of A lies before its memory, at {step}"):
            run(func, {"A": floats(0, 0), "n": 2, "s": step})


def test_symbols_by_name() -> None:
    """A symbol that no array tells is given by name."""
    func = program("""
        def main(B: T.Buffer(("n",), "float32")):
            n = T.int32()
            for i in range(n):
                B[i] = T.float32(2)
    """)
    assert result(func, {"n": 3})["B"].tolist() == [2, 2, 2]


def test_programs_that_nest_too_deep_for_python_still_run() -> None:
    """Thirty nested loops, and thirty nested branches, run: the plain evaluator takes over."""
    loops = (
        "".join(f"{'    ' * k}for i{k} in range(1):\n" for k in range(1, 31))
        + "    " * 31
        + "A[0] = A[0] + T.float32(1)\n"
    )
    branches = (
        "".join(f"{'    ' * k}if A[0] > T.float32({k - 40}):\n" for k in range(1, 31))
        + "    " * 31
        + "A[0] = A[0] + T.float32(1)\n"
    )
    for body in (loops, branches):
        func = program('def main(A: T.Buffer((1,), "float32")):\n' + body)
        assert result(func, [floats(1)])["A"].tolist() == [2]
