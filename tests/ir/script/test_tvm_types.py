"""What a text means is what TVM's own reader says: every operator over every pair of types, and beside numbers.

A text is read here and printed; TVM reads both the text and what was printed, and must find the same program.
"""

from collections.abc import Iterator
from itertools import product

import pytest
import tvm
from tests.shares import one_in
from tvm.script import tirx as T
from tvm_ffi import structural_equal

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import For

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
TYPES = ("bool", *INTEGERS, *FLOATS)
NUMBERS = (
    "0",
    "1",
    "-1",
    "100",
    "300",
    "65536",
    "2147483648",
    "(2 * 3)",
    "(1 << 35)",
    "(7 // 2)",
    "1.5",
    "(0.25 + 0.5)",
    "(1 / 4)",
    "True",
)

BUFFERS = {(name, dtype): tvm.tirx.decl_buffer((4,), dtype, name) for name in "AB" for dtype in TYPES}
CONDITION = tvm.tirx.Var("c", "int32")

ARITHMETIC = ("{} + {}", "{} - {}", "{} * {}", "T.min({}, {})", "T.max({}, {})", "T.if_then_else(c > 0, {}, {})")
COMPARISONS = ("({} < {}) & (c > 0)", "({} == {}) & (c > 0)", "({} >= {}) & (c > 0)")
DIVISIONS = (
    "{} // {}",
    "{} % {}",
    "T.floordiv({}, {})",
    "T.floormod({}, {})",
    "T.truncdiv({}, {})",
    "T.ceildiv({}, {})",
)
BITS = (
    "{} & {}",
    "{} | {}",
    "{} ^ {}",
    "{} << {}",
    "{} >> {}",
    "T.bitwise_and({}, {})",
    "T.shift_left({}, {})",
    "T.shift_right({}, {})",
)
SHIFTS = ("{} << {}", "{} >> {}", "T.shift_left({}, {})", "T.shift_right({}, {})")
STRICT = ("T.Select(c > 0, {}, {})", "T.Add({}, {})", "T.Mul({}, {})", "T.Min({}, {})", "T.Div({}, {})")
SIGNS = ("-{}", "-({} + A[1])", "-{} * B[0]")
OTHERS = ("{} / {}", "T.pow({}, {})")
OPERATORS = (*ARITHMETIC, *COMPARISONS, *DIVISIONS, *BITS, *STRICT, *OTHERS)


def read_by_tvm(expression: str, a: str, b: str) -> object | None:
    """What TVM makes of an expression over `A[0]` and `B[0]`, None where it refuses; its reader calls Python in the
    same way.
    """
    names = {"T": T, "A": BUFFERS["A", a], "B": BUFFERS["B", b], "c": CONDITION}
    try:
        found: object = eval(expression, names)
        return found
    except (tvm.error.InternalError, RuntimeError, ValueError, TypeError):
        return None


def read_here(expression: str, a: str, b: str) -> str | None:
    """What is read here, as text; None where it is refused."""
    buffers = ", ".join(f'{name}: T.Buffer((4,), "{dtype}")' for name, dtype in (("A", a), ("B", b), ("C", "int32")))
    text = f"@T.prim_func(s_tir=True)\ndef main({buffers}, c: T.int32):\n    x = {expression}\n    C[0] = x\n"
    try:
        printed = print_func(loads(text))
    except LayoutproofError:
        return None
    return next(line.split(" = ", 1)[1] for line in printed.splitlines() if line.startswith("    x: "))


def by_choice(operator: str, left: str, right: str, a: str, b: str, here: bool) -> bool:
    """Whether one of both refuses what the other reads by choice: the table of `docs/reference/programs.md`. `here` is
    refused here.
    """
    large = {left, right} & {"2147483648", "(1 << 35)"}
    if here:
        floats = operator in OTHERS and not {a, b, left, right} & {*FLOATS, "1.5", "(0.25 + 0.5)", "(1 / 4)"}
        truths = a == b == "bool" and operator not in BITS
        return {a, b} == {"float16", "bfloat16"} or floats or truths or (operator in BITS and bool(large))
    if operator in (*DIVISIONS, "{} / {}"):
        return right == "0"
    return right in NUMBERS if operator in SHIFTS else "bfloat16" in (a, b) and operator == "T.pow({}, {})"


def differences(operator: str, cases: Iterator[tuple[str, str, str, str]]) -> Iterator[str]:
    """What is read otherwise than TVM reads it. A case: both operands as texts, and their types."""
    for left, right, a, b in cases:
        expression = operator.format(left, right)
        theirs, ours = read_by_tvm(expression, a, b), read_here(expression, a, b)
        if theirs is None or ours is None:
            if (theirs is None) != (ours is None) and not by_choice(operator, left, right, a, b, here=ours is None):
                yield f"{expression} of {a} and {b}: {'TVM' if theirs is None else 'layoutproof'} refuses"
        elif not structural_equal(theirs, read_by_tvm(ours, a, b)):
            yield f"{expression} of {a} and {b} is read as {ours}"


@one_in(37)
@pytest.mark.parametrize("operator", OPERATORS)
def test_operands_of_every_two_types(operator: str) -> None:
    """Each operator over each pair of types has TVM's conversions, or is refused as TVM refuses it."""
    found = list(differences(operator, (("A[0]", "B[0]", a, b) for a, b in product(TYPES, TYPES))))
    assert not found, "\n".join(found)


@one_in(56)
@pytest.mark.parametrize("operator", OPERATORS)
def test_numbers_beside_every_type(operator: str) -> None:
    """Numbers on either side of each operator have the type that TVM gives them."""
    numbers = NUMBERS[2:] if operator in STRICT else NUMBERS  # TVM leaves `x + 0` out, but not the node of that name
    cases = [("A[0]", n, a, a) for a, n in product(TYPES, numbers)]
    if operator not in COMPARISONS:  # Python turns `1 < x` around before TVM sees it
        cases += [(n, "B[0]", a, a) for a, n in product(TYPES, numbers)]
    found = list(differences(operator, iter(cases)))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("operator", SIGNS)
def test_signs_keep_the_type(operator: str) -> None:
    """`-` has the type of its operand, however narrow, and is refused of what has no -1, as TVM refuses it."""
    operands = ("A[0]", "2", "True", "(2 * 3)") if operator != "-({} + A[1])" else ("A[0]",)
    found = list(differences(operator, ((operand, "", a, a) for operand, a in product(operands, TYPES))))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_complements_keep_the_type(dtype: str) -> None:
    """`~` has its operand's type however wide, and is written as TVM reads it; of a number it is Python's."""
    typed = read_here("~A[0]", dtype, dtype)
    assert typed is not None
    assert read_by_tvm(typed, dtype, dtype).expr_ty().dtype == dtype  # type: ignore[attr-defined]  # TVM says PrimExpr; this one has a type
    numbers = ("(2 * 3)", "0", "True") if not dtype.startswith("uint") else ()
    found = list(differences("~{} & A[1]", ((number, "", dtype, dtype) for number in numbers)))
    assert not found, "\n".join(found)


ROUNDED = (
    "T.float32(0.1)",
    "T.float32(16777217)",
    "T.float64(T.float32(0.1))",
    "T.float32(0.1).astype('float64')",
    "T.float32(T.float64(0.1))",
)
FOLDED = ("T.abs({0})", "T.floor({0})", "T.max({0}, T.float32(0))", "T.min(T.abs({0}), {0})", "{0} if True else {0}")


@pytest.mark.parametrize("operator", ("{} + {}", "T.max({}, {})", "T.if_then_else(c > 0, {}, {})"))
def test_a_conversion_begins_at_the_number_that_is_written(operator: str) -> None:
    """Beside a wider float a constant has the digits of the text, though its own type rounds them."""
    found = list(differences(operator, (("A[0]", number, "float64", "float64") for number in ROUNDED)))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text", FOLDED)
def test_what_tvm_folds_with_its_digits_is_not_converted(text: str) -> None:
    """A function of a constant that its type rounds is refused where another type is asked for, and there only."""
    form = '@T.prim_func(s_tir=True)\ndef main(C: T.Buffer((4,), "{}")):\n    C[0] = {}\n'
    rounded, exact = (text.format(number) for number in ("T.float32(16777217)", "T.float32(16777216)"))
    with pytest.raises(LayoutproofError, match="with the digits in the text"):
        loads(form.format("float64", rounded))
    for dtype, value in (("float32", rounded), ("float64", exact), ("float64", text.format("T.float32(A[0])"))):
        loads(form.format(dtype, value).replace("main(", 'main(A: T.Buffer((4,), "float32"), '))


def loop_type(text: str) -> str:
    """The type of the loop variable of a text, by TVM."""
    found = tvm.script.from_source(
        f"@T.prim_func\ndef main(n: T.int32):\n    for i in {text}:\n        T.evaluate(i)\n"
    )
    return str(found.body.loop_var.expr_ty().dtype)


def loop_type_here(text: str) -> str:
    """The same here, and of what is printed, by TVM."""
    func = loads(f"@T.prim_func(s_tir=True)\ndef main(n: T.int32):\n    for i in {text}:\n        T.evaluate(i)\n")
    assert isinstance(func.body, For)
    (line,) = [line.split(" in ")[1][:-1] for line in print_func(func).splitlines() if " in " in line]
    assert loop_type(line) == str(func.body.var.dtype)
    return str(func.body.var.dtype)


@pytest.mark.parametrize("word", ["range", "T.serial", "T.unroll"])
def test_loops_between_limits_of_two_types(word: str) -> None:
    """A loop variable is as wide as the wider limit, and unsigned if one is; `range(n)` begins at an int32."""
    for one in INTEGERS:
        texts = [f"{word}(T.{one}(2), T.{other}(8))" for other in INTEGERS]
        texts += [f"{word}(T.{one}(8))", f"{word}(2, T.{one}(8))", f"{word}(T.{one}(2), 8)"]
        for text in texts:
            assert loop_type_here(text) == loop_type(text), text
