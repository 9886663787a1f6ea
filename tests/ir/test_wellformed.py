"""Well-formedness: every rule is broken by a program made for it, and by no program of the data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.records import read_record
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.ir.buffer import Buffer, BufferLoad, Range, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import BOOL, FLOAT32, HANDLE, INT32, INT64
from layoutproof.ir.expr import Broadcast, Expr, IntImm, Select, Var, const, equal
from layoutproof.ir.intrinsics import Assume, Undef
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import load_module
from layoutproof.ir.stmt import (
    Allocate,
    Attributes,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    IterKind,
    IterVar,
    Let,
    Stmt,
    seq,
)
from layoutproof.ir.wellformed import RULES, Stage, check_wellformed, require_wellformed

DATA = ROOT / "tests" / "data"
A = make_buffer("A", (4,), "float32")
B = make_buffer("B", (4, 4), "float32")
C = make_buffer("C", (4,), "float32")
ROW, COL = Var("i"), Var("j")
ONE = const(1.0, FLOAT32)


def function(body: Stmt, attrs: dict[str, Any] | None = None, buffers: tuple[Buffer, ...] = (A, B)) -> PrimFunc:
    """A function over buffers."""
    handles = tuple(Var(f"handle{k}", HANDLE) for k in range(len(buffers)))
    return PrimFunc("main", handles, tuple(zip(handles, buffers, strict=True)), body, Attributes(attrs))


def loop(var: Var, body: Stmt, extent: int = 4) -> For:
    """A serial loop."""
    return For(var, IntImm(0), IntImm(extent), ForKind.SERIAL, body)


def store(*indices: Expr, value: Expr = ONE) -> BufferStore:
    """A store to A, or to B where there are two indices."""
    return BufferStore(A if len(indices) == 1 else B, indices, value)


def block(body: Stmt, init: Stmt | None = None, *kinds: IterKind, names: tuple[str, ...] = ("vi", "vk")) -> Stmt:
    """A block over i and j."""
    iters = tuple(
        IterVar(Var(n), k, Range(IntImm(0), IntImm(4)), loop_var)
        for n, k, loop_var in zip(names, kinds, (ROW, COL), strict=False)
    )
    return loop(ROW, loop(COL, Block("block", iters, body, init=init)))


def attributed(name: str, value: object) -> PrimFunc:
    """A right body under an attribute."""
    return function(loop(ROW, store(ROW)), {name: value})


VI, VK = Var("vi"), Var("vk")
SR = (IterKind.SPATIAL, IterKind.REDUCE)
RECORD = read_record((3,), ("lambda i: [i]", (4,), None))

BROKEN: list[tuple[str, PrimFunc]] = [
    ("LP150", function(loop(ROW, loop(ROW, store(ROW))))),
    ("LP150", function(loop(ROW, Let(ROW, IntImm(2), store(ROW))))),
    ("LP151", function(store(ROW))),
    ("LP151", function(seq(loop(ROW, store(ROW)), store(ROW)))),
    ("LP151", function(For(Var("i", INT64), IntImm(0, INT64), IntImm(4, INT64), ForKind.SERIAL, store(ROW)))),
    ("LP152", function(loop(ROW, BufferStore(C, (ROW,), ONE)))),
    ("LP152", function(loop(ROW, store(ROW, value=BufferLoad(C, (ROW,)))))),
    ("LP152", function(seq(Allocate(C, store(IntImm(0))), BufferStore(C, (IntImm(0),), ONE)))),
    ("LP153", function(DeclBuffer(C, store(IntImm(0))))),
    ("LP154", function(Allocate(C, Allocate(C, store(IntImm(0)))))),
    ("LP154", function(Allocate(replace(A, data=Var("other", HANDLE)), store(IntImm(0))))),
    ("LP155", function(Allocate(make_buffer("P", (4,), HANDLE), store(IntImm(0))))),
    ("LP155", function(Allocate(make_buffer("P", (-4,), INT32), store(IntImm(0))))),
    ("LP156", function(loop(ROW, store(ROW), -1))),
    ("LP157", function(store(Undef(INT32)))),
    ("LP157", function(store(IntImm(0), value=BufferLoad(A, (Undef(INT32),))))),
    ("LP157", function(IfThenElse(equal(Undef(INT32), IntImm(0)), store(IntImm(0))))),
    ("LP157", function(store(IntImm(0), value=Select(Undef(BOOL), ONE, ONE)))),
    ("LP158", function(Evaluate(Assume(Assume(equal(IntImm(0), IntImm(0))))))),
    ("LP159", function(block(store(VI), store(VK), *SR))),
    ("LP159", function(block(store(VK), store(VI), *SR))),
    ("LP160", function(block(store(VI), None, *SR, names=("vi", "vi")))),
    ("LP164", attributed("buffer_layout_transformations", ["lambda i: [i]"])),
    ("LP164", attributed("buffer_layout_transformations", {"Z": ["lambda i: [i]"]})),
    ("LP164", attributed("buffer_layout_transformations", {"A_data": ["lambda i [i]"]})),
    ("LP164", attributed("buffer_layout_transformations", {"A_data": [3]})),
    ("LP165", attributed("buffer_axis_separators", [0])),
    ("LP165", attributed("buffer_axis_separators", {"Z": [0]})),
    ("LP165", attributed("buffer_axis_separators", {"B_data": [1]})),
    ("LP165", attributed("buffer_axis_separators", {"B_data": ["0"]})),
    ("LP166", attributed("layoutproof.layout", {"Z": RECORD})),
    ("LP166", attributed("layoutproof.layout", {"A_data": {"steps": []}})),
    ("LP167", PrimFunc("main", (Var("p", INT32),), ((Var("p", INT32), A),), loop(ROW, store(ROW)))),
    ("LP167", function(loop(ROW, store(ROW)), buffers=(A, replace(C, name="A")))),
    ("LP168", function(Evaluate(Broadcast(IntImm(0), 4)))),
]


@pytest.mark.parametrize(("code", "func"), BROKEN, ids=[f"{code}-{k}" for k, (code, _) in enumerate(BROKEN)])
def test_broken_program_is_found(code: str, func: PrimFunc) -> None:
    """The program breaks the rule it was made for, and says the function's name."""
    found = check_wellformed(func)
    assert code in [d.code for d in found]
    assert all(d.message.startswith("main: ") for d in found)
    with pytest.raises(LayoutproofError):
        require_wellformed(func)


STAGED: list[tuple[str, Stage, PrimFunc]] = [
    ("LP161", Stage.LOWERED, function(block(store(VI), None, *SR))),
    ("LP162", Stage.FLATTENED, function(loop(ROW, store(ROW, ROW)))),
    ("LP163", Stage.FLATTENED, attributed("buffer_layout_transformations", {"A_data": ["lambda i: [i]"]})),
]


@pytest.mark.parametrize(("code", "stage", "func"), STAGED, ids=[code for code, _, _ in STAGED])
def test_stages_ask_for_more(code: str, stage: Stage, func: PrimFunc) -> None:
    """What is right in a script is found where the program claims to be lowered or flattened."""
    assert check_wellformed(func, Stage.SCRIPT) == ()
    assert [d.code for d in check_wellformed(func, stage)] == [code]


RIGHT: list[PrimFunc] = [
    function(seq(loop(ROW, store(ROW)), loop(ROW, store(ROW)))),
    function(Allocate(C, loop(ROW, BufferStore(C, (ROW,), Undef(FLOAT32))))),
    function(seq(Allocate(C, store(IntImm(0))), Allocate(C, store(IntImm(1))))),
    function(DeclBuffer(replace(C, data=A.data), BufferStore(replace(C, data=A.data), (IntImm(0),), ONE))),
    function(Evaluate(Assume(equal(BufferLoad(A, (IntImm(0),)), Undef(FLOAT32))))),
    function(block(store(VI), store(VI), *SR)),
    attributed("buffer_layout_transformations", {"A_data": ["lambda i: [i // 2, i % 2]"]}),
    attributed("buffer_axis_separators", {"B_data": [0]}),
    function(
        loop(ROW, store(ROW)),
        {
            "buffer_layout_transformations": {"A_data": ["lambda i: [i//2, i%2]"]},
            "buffer_axis_separators": {"A_data": [0]},
        },
    ),
    attributed("layoutproof.layout", {"A_data": RECORD}),
]


@pytest.mark.parametrize("func", RIGHT, ids=[str(k) for k in range(len(RIGHT))])
def test_right_program_passes(func: PrimFunc) -> None:
    """The neighbours of the broken programs that are right pass."""
    assert check_wellformed(func) == ()
    assert require_wellformed(func) is func


def test_every_rule_is_broken_by_something() -> None:
    """Each rule of the table has a program that breaks it, and codes are not shared."""
    assert {rule.code for rule in RULES} == {code for code, _ in BROKEN} | {code for code, _, _ in STAGED}
    assert len({rule.code for rule in RULES}) == len(RULES)


@one_in(4)
@pytest.mark.parametrize("path", sorted(set(DATA.glob("*/*.py")) - set(DATA.glob("wild/*.py"))), ids=lambda p: p.stem)
def test_real_programs_pass(path: Path) -> None:
    """Every operator, and every program that was transformed elsewhere, is well-formed."""
    assert [check_wellformed(func) for func in load_module(path).functions if check_wellformed(func)] == []
