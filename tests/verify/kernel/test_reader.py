"""Tests of the kernel's reader: its programs mean what the project's own reader and interpreter say."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.attack.campaign import attempts
from tests.lowering.small_operators import NAMES, small
from tests.oracle.numbers import random_array
from tests.random.flow import random_flow_program
from tests.random.typed_programs import random_program
from tests.shares import one_in
from tests.verify.kernel.core_interpreter import CoreRun

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.interp.memory import DEFINED, Fault
from layoutproof.ir.interp.run import run, same_values
from layoutproof.ir.notations.rewrite_text import parse_rewrite, rewrite_text
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.visit import free_variables, loops_of_stores
from layoutproof.lowering.schedule.schedule import LOWERING
from layoutproof.verify.kernel.lanes import is_lane
from layoutproof.verify.kernel.programs import TRUE, Map, Program
from layoutproof.verify.kernel.reader import functions_of, lines_of, read_rewrite
from layoutproof.verify.kernel.rejected import Rejected

ROOT = Path(__file__).parents[3]
REWRITES = sorted([*(ROOT / "proofs" / "accepted").glob("*.py"), *(ROOT / "proofs" / "refuted").glob("*.py")])
PAIRS = sorted((ROOT / "tests" / "data" / "pairs").glob("*.py"))
LIMIT = 1_000  # iterations of a run


def number(extent: Expr, symbols: dict[str, int]) -> int:
    return int(evaluate(extent, symbols))


def symbols_of(func: PrimFunc, rng: Random) -> dict[str, int]:
    """Small sizes for the names of a function."""
    found = {v.name: rng.randint(0, 6) for b in func.buffers for e in b.shape for v in free_variables(e)}
    return found | {p.name: rng.randint(0, 5) for p in func.params if p.dtype.is_integer}


def compare(func: PrimFunc, program: Program, rng: Random) -> bool | None:
    """Whether both give the same arrays on random inputs; None for a long run, faults, and memory seen as two types."""
    types = {(b.data, b.dtype) for b in program.buffers.values()}
    if len(types) > len({data for data, _ in types}):
        return None
    symbols = symbols_of(func, rng)
    shapes = {b.name: tuple(number(e, symbols) for e in b.shape) for b in func.buffers}
    arrays = {}
    for b in func.buffers:
        lanes = (b.dtype.lanes,) if b.dtype.lanes > 1 else ()
        arrays[b.name] = random_array(str(b.dtype.element), (*shapes[b.name], *lanes), rng, 0.3)
        arrays[b.name] = np.asarray(arrays[b.name]).astype(numpy_dtype(b.dtype))
    try:
        expected = run(func, {**arrays, **symbols}, limit=LIMIT)
    except (Fault, LayoutproofError):
        return None
    found = CoreRun(program, arrays, symbols).run()
    same = []
    for name, array in expected.arrays.items():
        sure = expected.states[name].reshape(-1) == DEFINED
        mine = found[name].reshape(array.shape)
        same.append(bool(np.all(same_values(array, mine).reshape(-1)[sure])))
    return all(same)


def read_program(text: str) -> Program:
    """The one function of a text."""
    found = functions_of(lines_of(text))
    if len(found) != 1:
        raise Rejected("one function is expected")
    return next(reader.program(name) for name, reader in found.items())


@one_in(7)
@pytest.mark.parametrize("path", REWRITES, ids=lambda p: p.stem)
def test_rewrites_of_proofs_mean_the_same(path: Path) -> None:
    """Both programs of each rewrite in proofs/ run as the project's interpreter runs them, or the text is rejected."""
    text = path.read_text()
    try:
        found = read_rewrite(text)
    except Rejected:
        assert any(word in text for word in ("T.let", "T.bind", "T.call_extern", "cells_apart", " = A["))
        return
    expected = parse_rewrite(text)
    for func, program in ((expected.old, found.old), (expected.new, found.new)):
        written = [sum(not is_lane(loop) for loop in s.loops) for s in program.stores]
        assert [len(loops) for loops in loops_of_stores(func.body)] == written
        assert compare(func, program, Random(7)) in (True, None)


@one_in(35)
@pytest.mark.parametrize("seed", range(200))
def test_random_programs_mean_the_same(seed: int) -> None:
    """A random program, as written and as printed, is rejected or means what the project's own reader makes of it."""
    for text in (random_program(seed).text, random_flow_program(seed)):
        try:
            func = loads(text)
        except LayoutproofError:
            continue
        for given in (text, print_func(func)):
            try:
                program = read_program(given)
            except Rejected:
                continue
            assert compare(func, program, Random(seed)) in (True, None)


@pytest.mark.parametrize("path", PAIRS, ids=lambda p: p.stem)
def test_programs_of_pairs_are_read(path: Path) -> None:
    """Each program that TVM printed before and after a layout transform is read, with the loops of its stores."""
    program = read_program(path.read_text())
    expected = loops_of_stores(loads(path.read_text()).body)
    assert [len(s.loops) for s in program.stores] == [len(loops) for loops in expected]


HEAD = '@T.prim_func\ndef main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):\n'


def one(*lines: str) -> Program:
    """The program of these lines below a signature with two buffers."""
    return read_program(HEAD + "".join(f"    {line}\n" for line in lines))


def test_a_block_is_written_out() -> None:
    """Variables are replaced by their bindings; the init is guarded by T.where and the starts of all reduce axes."""
    program = one(
        "for i, k in T.grid(4, 2):",
        "    with T.sblock('sum'):",
        "        vi = T.axis.spatial(8, i * 2)",
        "        vk = T.axis.reduce((1, 3), (k + 1) % 2 + 1)",
        "        T.where(i < 3)",
        "        with T.init():",
        "            B[vi] = T.float32(0)",
        "        B[vi] = B[vi] + A[vk]",
    )
    init, update = program.stores
    i, k = (("var", "int32", name) for name in "ik")

    def number(value: int) -> tuple[object, ...]:
        return ("const", "int32", value)

    reduced = ("+", "int32", ("%", "int32", ("+", "int32", k, number(1)), number(2)), number(1))
    where = ("<", "bool", i, number(3))
    assert init.guards == (where, ("==", "bool", reduced, number(1)))
    assert update.guards == (where,)
    assert init.value == ("const", "float32", "0x0.0p+0")
    assert update.indices == (("*", "int32", i, number(2)),)
    assert (init.time, update.time) == ((0, 0, 0), (0, 0, 1))
    bound = [x.indices for x in program.insides if x.guards == (where,)]
    assert bound == [(update.indices[0], number(0), number(8)), (reduced, number(1), number(2))]
    assert [x.indices[0] for x in program.insides if not x.guards] == [update.indices[0], reduced]


def test_times_order_the_statements() -> None:
    """Positions count the siblings in each loop, those of branches and blocks among them."""
    program = one(
        "B[0] = A[0]",
        "for i in range(2):",
        "    if i > 0:",
        "        B[i] = A[1]",
        "    else:",
        "        for k in T.parallel(1, 3):",
        "            B[k] = A[2]",
        "    B[3] = A[3]",
        "for i in range(2):",
        "    T.assume(i < 2)",
    )
    assert [s.time for s in program.statements] == [(0,), (1, 0), (1, 1, 0), (1, 2), (2, 0)]
    assert [s.number for s in program.statements] == [0, 1, 2, 3, -1]
    assert [loop.var for loop in program.statements[-1].loops] == ["i_1"]
    inner = program.stores[2].loops[1]
    assert (inner.kind, inner.start[2], inner.extent[2]) == ("parallel", 1, 2)
    assert program.stores[2].guards[0][0] == "not"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("0.1", "0x1.99999a0000000p-4"),
        ("-0.0", "-0x0.0p+0"),
        ("1", "0x1.0000000000000p+0"),
        ('T.float32("-inf")', "-inf"),
        ('T.float32("nan")', "nan"),
        ("T.float32(16777217.0)", "0x1.0000000000000p+24"),
    ],
)
def test_floats_are_rounded_to_their_type(line: str, value: str) -> None:
    """A float constant is the nearest number of its type, its sign of zero kept."""
    assert one(f"B[0] = {line}").stores[0].value == ("const", "float32", value)


REJECTED = [
    "B[0] = A[0] + T.float64(1)",
    "B[0] = A[0] + T.int32(1)",
    "B[0] = T.int32(1)",
    "B[0] = T.float32(16777217)",
    "B[0] = 1e39",
    "B[0] = A[1.0]",
    "B[T.undef(dtype='int32')] = A[0]",
    "B[0] = A[0, 0]",
    "B[0] = A",
    "B[0] = C[0]",
    "B[0] = T.max(A[0])",
    "B[0] = T.exp(1)",
    "B[0] = T.call_extern('float32', 'f', A[0])",
    "B[0] = T.if_then_else(A[0], A[1], A[2])",
    "B[0] = T.Ramp(0, 4)",
    "B[0] += A[0]",
    "B[0:4] = A[0:4]",
    "x = A[0]",
    "if 0 < 1 < 2: B[0] = A[0]",
    "if A[0] > T.float32(0): pass",
    "for i in range(A[0]): B[0] = A[0]",
    "for A in range(3): B[0] = A[0]",
    "for i in range(3): pass",
    "for i in T.thread_binding(3, thread='threadIdx.x'): B[i] = A[i]",
    "while True: B[0] = A[0]",
    "T.attr('x', 'y', 1)",
    "return",
    "T.func_attr({'a': 1, 'a': 2})",
    "T.func_attr({1: 2})",
    "B = T.alloc_buffer((4,))",
    "C = T.decl_buffer((4,), data=D.data)",
    "assert True",
    "A, B = 1, 2",
]


@pytest.mark.parametrize("line", REJECTED)
def test_what_is_not_understood_is_rejected_with_its_line(line: str) -> None:
    """Nothing is skipped, and no type is guessed."""
    with pytest.raises(Rejected, match=r"^line 3: ."):
        one(line)


def test_a_condition_that_its_body_changes_is_rejected() -> None:
    """A guard stands at each statement below it, so none of several may change what the guard has read."""
    one("if A[0] > T.float32(0):", "    A[0] = T.float32(0)")
    with pytest.raises(Rejected, match="changed"):
        one("if A[0] > T.float32(0):", "    A[0] = T.float32(0)", "    B[0] = A[1]")
    with pytest.raises(Rejected, match="changed"):
        one("if A[0] > T.float32(0):", "    B[0] = A[1]", "    B[1] = A[1]")  # B may be A
    one('T.func_attr({"tirx.noalias": True})', "if A[0] > T.float32(0):", "    B[0] = A[1]", "    B[1] = A[1]")


def test_views_have_the_memory_of_what_they_view() -> None:
    """A view of a view has the data, and the loops around the allocation, of the first buffer."""
    program = one(
        "for i in range(2):",
        "    C = T.alloc_buffer((8,))",
        "    for k in range(2):",
        '        D = T.decl_buffer((2,), "float32x4", data=C.data)',
        "        E = T.decl_buffer((4,), data=D.data, elem_offset=4, strides=(1,))",
        "        E[k] = A[k]",
    )
    found = {name: (b.data, len(b.loops), b.is_parameter) for name, b in program.buffers.items()}
    assert found["A"] == ("A_data", 0, True)
    assert found["C"] == found["D"] == found["E"] == ("C_data", 1, False)
    assert program.buffers["E"].strides == (("const", "int32", 1),)


def test_lets_are_replaced_and_their_arithmetic_is_kept() -> None:
    """What a name of a let stands for is substituted; that it is evaluated is kept, used or not."""
    program = one("for i in range(8):", "    x: T.let[T.int32] = 7 // i", "    B[i] = A[i]")
    assert [x.indices[0][0] for x in program.insides] == ["//"]
    assert one("for i in range(8):", "    x: T.let[T.int32] = i + 1", "    B[x] = A[x]").stores[0].indices[0][0] == "+"


REWRITE = """\
# about: a case
# strictness: nnan nsz
# where: n >= 4
# functions: f, g
# theta: 0 -> 1: lambda a, b: [a * 4 + b] of int32, int32 where a * 4 + b < n
# theta: 0 -> 0: lambda a, b: [a]
# theta: 1 -> none
# cells: A_data -> A_data: lambda n: [n // 4, AXIS_SEPARATOR, n % 4]
# interface: A
# from tvm.script import tirx as T

@T.prim_func
def before(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    for i in range(n):
        B[i] = A[i]
    for i in range(n):
        B[i] = A[i]

@T.prim_func
def after(A: T.Buffer(((n + 3) // 4, 4), "float32"), B: T.Buffer((n,), "float32")):
    n = T.int32()
    for i, j in T.grid((n + 3) // 4, 4):
        B[i * 4 + j] = A[i, j]
    B[0] = A[0, 0]
"""


def test_a_header_is_read() -> None:
    """Theta by position of the loops, cells by data variable, conditions over symbols and inputs."""
    found = read_rewrite(REWRITE)
    assert (found.old.name, found.new.name, found.interface, found.strictness) == ("f", "g", ("A",), "nnan nsz")
    (first, theta), second = found.theta[0]
    assert (first, theta.names, theta.outputs[0][0], theta.where[0]) == (1, ("a", "b"), "+", "<")
    assert second == (0, Map(("a", "b"), (("var", "int32", "a"),)))
    assert found.theta[1] == ()
    old, cells = found.cells["A_data"]
    assert (old, cells.names, [e[0] for e in cells.outputs]) == ("A_data", ("n",), ["//", "%"])
    assert found.where == (">=", "bool", ("var", "int32", "n"), ("const", "int32", 4))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# theta: 1 -> none", "# theta: 2 -> none"),
        ("# theta: 1 -> none", "# theta: 1 -> 2"),
        ("# theta: 1 -> none", "# theta: 1 -> 0"),
        ("# theta: 1 -> none", "# theta: 1 -> none: lambda: []"),
        ("# theta: 1 -> none", "# thetas: 1 -> none"),
        ("lambda a, b: [a] ", "lambda a: [a] "),
        ("lambda a, b: [a]\n", "lambda a, b: [a, b]\n"),
        ("lambda a, b: [a]\n", "lambda a, a: [a]\n"),
        ("lambda a, b: [a]\n", "lambda a, *b: [a]\n"),
        ("lambda a, b: [a]\n", "lambda a, b: [c]\n"),
        ("lambda a, b: [a]\n", "lambda a, b: [A[a]]\n"),
        ("lambda a, b: [a]\n", "lambda a, b: [a] if b\n"),
        ("of int32, int32", "of int32"),
        ("of int32, int32", "of int32, float32"),
        ("# interface: A", "# interface: C"),
        ("# interface: A", "# interface: A\n# interface: B"),
        ("A_data -> A_data", "C_data -> A_data"),
        ("A_data: lambda n: [n // 4, AXIS_SEPARATOR, n % 4]", "A_data"),
        ("n = T.int32()", "n = T.int64()"),
        ("def after", "def later"),
        ("    B[0] = A[0, 0]\n", "    B[0] = A[0, 0]\n# interface: B\n"),
        ("# strictness: nnan nsz", "# strictness: nnan nsx"),
        ("# strictness: nnan nsz", "# expect: prooved"),
        ("# functions: f, g", "# functions: f, g h"),
    ],
)
def test_a_header_that_is_not_understood_is_rejected(old: str, new: str) -> None:
    """A line of the header says what it must, in its place, of stores, buffers and parameters that are there."""
    assert old.rstrip() in REWRITE
    with pytest.raises(Rejected):
        read_rewrite(REWRITE.replace(old.rstrip(" "), new.rstrip(" ")))


ABSURD = [
    "", "\0", "\ud800", "\r", "T." * 9_000, "a" + ".b" * 90_000, "(" * 9_000, "[" * 150 + "]" * 150,
    "-" * 90_000 + "1",
    "#" * 1_100_000, "# where:" + " " * 90_000 + "x", "# theta: 0 -> 0: lambda" + "[" * 9_000,
    HEAD + "    A[0] = " + "9" * 9_000, HEAD + "    A[0] = 0x" + "f" * 9_000,
    HEAD + "    A[0] = " + "+".join(["A[0]"] * 9_000),
    HEAD + "    A[0] = T.Select(" + " and ".join(["A[0] > A[1]"] * 900) + ", A[0], A[1])",
    HEAD + "".join(f"{'    ' * k}for i{k} in range(1):\n" for k in range(1, 99)) + "    " * 99 + "A[0] = A[1]",
    HEAD + "    x0 = 1\n" + "".join(f"    x{k + 1} = x{k} + x{k}\n" for k in range(99)) + "    A[x99] = A[0]",
]  # fmt: skip


@pytest.mark.parametrize("text", ABSURD, ids=range(len(ABSURD)))
def test_absurd_texts_are_rejected(text: str) -> None:
    """Any text is read or rejected, whatever its size and depth."""
    for read in (read_rewrite, read_program):
        with pytest.raises(Rejected):
            read(text)


@one_in(35)
@pytest.mark.parametrize("seed", range(200))
def test_damaged_texts_are_read_or_rejected(seed: int) -> None:
    """No damage to a text of proofs/ raises anything but Rejected."""
    rng, read = Random(seed), 0
    for _ in range(10):
        text = list(rng.choice(REWRITES).read_text())
        for _ in range(rng.choice([1, 1, 2, 5])):
            place, size = rng.randrange(len(text)), rng.choice([1, 3, 20])
            copied = rng.randrange(len(text))
            text[place : place + rng.choice([0, size])] = rng.choice([rng.choice(TOKENS), text[copied : copied + size]])
        with contextlib.suppress(Rejected):
            read_rewrite("".join(text))
            read += 1
    assert read < 10


TOKENS = [
    "(", ")", "[", "]", ",", ":", "\n", "    ", "T.", "A", "i", "0", "1.5", "*", "//", "None", "lambda", " if ", "=",
    "->", "#", "'", "\0", "\r", "T.undef()", "T.Ramp(0, 1, 4)", "not ", "-", "T.init()", "T.int32()", "**", "=None",
]  # fmt: skip


def at_points(exprs: tuple[Any, ...], env: dict[str, int], names: tuple[str, ...], given: IndexMap) -> bool:
    """Whether both forms of a map agree at a random point."""
    nothing = CoreRun(read_program(HEAD + "    A[0] = B[0]"), {}, {})
    values = [3 * k * k + 2 for k in range(len(names))]
    mine = [nothing.at(e, {**env, **dict(zip(names, values, strict=True))})[0] for e in exprs]
    inputs = dict(zip((v.name for v in given.inputs), values, strict=True))
    return mine == [number(e, {**env, **inputs}) for e in given.outputs]


def check_rewrite(rewrite: Rewrite, seed: int) -> None:
    """The text of a rewrite, as certificates have it, is read, and says the same of programs, stores and cells."""
    found = read_rewrite(rewrite_text(rewrite))
    for func, program in ((rewrite.old, found.old), (rewrite.new, found.new)):
        assert compare(func, program, Random(seed)) in (True, None)
        assert (program.noalias, program.name) == (func.noalias, func.name)
    env = {name: 4 + len(name) for name, _ in (*found.old.symbols, *found.new.symbols)}
    stated = sorted((m for m in rewrite.witness.instances if m.instances is not None), key=lambda m: m.new_store)
    lines = (a for k in sorted(found.theta) for a in found.theta[k])
    for (old_store, mine), theirs in zip(lines, stated, strict=True):
        assert old_store == theirs.old_store
        assert (mine.where == TRUE) is (theirs.where is None)
        assert theirs.instances is not None
        assert at_points(mine.outputs, env, mine.names, theirs.instances)
    for cells in rewrite.witness.cells:
        old, f = found.cells[cells.new_data]
        assert old == cells.old_data
        assert at_points(f.outputs, env, f.names, cells.cells)


@one_in(16)
@pytest.mark.parametrize("name", NAMES)
def test_rewrites_of_the_lowering_are_read(name: str) -> None:
    """Every rewrite that lowering proposes for the operators."""
    func = small(name)
    for step in LOWERING:
        rewrite = step.propose(func)
        check_rewrite(rewrite, 3)
        func = rewrite.new


@one_in(61)
@pytest.mark.parametrize("seed", range(100))
def test_random_rewrites_are_read(seed: int) -> None:
    """Random rewrites, right and wrong ones."""
    for attempt in itertools.islice(attempts(Random(seed)), 6):
        check_rewrite(attempt.rewrite, seed)
