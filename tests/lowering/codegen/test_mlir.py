"""Programs printed as MLIR: what is printed reads back as the same program, and the rest is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.calling import Caller
from tests.shares import one_in
from tests.tree import ROOT

import layoutproof as lp
from layoutproof.cli.mlir_build import mlir_of
from layoutproof.importers.mlir import read_functions
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.codegen.mlir import emit_mlir

PROGRAMS = ROOT / "examples" / "programs"


def _program(parameters: str, *lines: str) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"from tvm.script import tirx as T\n\n@T.prim_func(s_tir=True)\ndef f({parameters}):\n{body}\n"


@one_in(4)
@pytest.mark.parametrize(
    ("program", "trace"),
    [("relu.py", None), ("row_sum.py", None), ("relu_packed.py", None), ("conv2d.py", "conv2d.json")],
)
def test_reads_back(program: str, trace: str | None) -> None:
    """A schedule's program is printed, read again, and proved to do what it did."""
    func = lp.load(PROGRAMS / program)
    schedule = lp.Schedule(func) if trace is None else lp.Schedule.load(func, ROOT / "examples" / trace)
    text, interface, report = mlir_of(schedule, check=True)
    assert report is not None and "proved" in report.self_check
    assert interface["entry"] == func.name and len(interface["parameters"]) == len(func.params)
    assert "affine.for" in text and "affine.store" in text


def test_text() -> None:
    """Loops, branches and accesses are affine where their indices are; integers have their own operations."""
    func = loads(
        _program(
            'n: T.int32, A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")',
            'T.func_attr({"tirx.noalias": True})',
            "for i in range(T.min(8, n)):",
            "    if i % 2 == 0:",
            "        B[i] = A[i] % 3 + T.max(A[A[i] % 1], 2)",
        )
    )
    text = emit_mlir(func)
    for part in (
        "func.func @f(%n: i32, %A: memref<8xi32>, %B: memref<8xi32>)",
        "to min affine_map<(d0) -> (8, d0)>(%1) {",
        "affine.if affine_set<(d0) : ((d0 mod 2) - 0 == 0)>",
        "arith.floordivsi",
        "arith.maxsi",
        "memref.load %A[",
    ):
        assert part in text, text
    assert read_functions(text, "f.mlir")["f"].program.name == "f"


REFUSED = {
    "vector": ('A: T.Buffer((4,), "float32x4")', ["A[0] = A[1]"], "a vector"),
    "opaque": ('A: T.Buffer((4,), "float32")', ['A[0] = T.call_extern("float32", "g", A[1])'], "no counterpart"),
    "function": ('A: T.Buffer((4,), "float32")', ["A[0] = T.sigmoid(A[1])"], "sigmoid"),
    "thread": (
        'A: T.Buffer((4,), "float32")',
        ['for i in T.thread_binding(4, thread="threadIdx.x"):', "    A[i] = T.float32(0)"],
        "threads of a GPU",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """What has no counterpart is an error with its line, and nothing is printed."""
    parameters, lines, message = REFUSED[name]
    func = loads(_program(parameters, *lines))
    with pytest.raises(LayoutproofError) as found:
        emit_mlir(func)
    (diagnostic,) = found.value.diagnostics
    assert diagnostic.code == "LP403" and message in diagnostic.message
    assert diagnostic.span is not None and diagnostic.span.line >= 4


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`build --target mlir` writes both files, and neither where the program cannot be printed."""
    files = [tmp_path / "k.mlir", tmp_path / "k.json"]
    arguments = ["-o", *map(str, files), "--target", "mlir"]
    call = Caller(capsys)
    done = call("build", str(PROGRAMS / "relu.py"), *arguments)
    assert done.code == 0, done.err
    assert "proved to do what the program does" in done.out and all(file.exists() for file in files)
    for file in files:
        file.unlink()
    bad = tmp_path / "bad.py"
    bad.write_text(_program(REFUSED["function"][0], *REFUSED["function"][1]), encoding="utf-8")
    done = call("build", str(bad), *arguments)
    assert done.code == 2 and "sigmoid" in done.err and not any(file.exists() for file in files)


def _printed(parameters: str, *lines: str) -> str:
    return emit_mlir(loads(_program(parameters, *lines)))


@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_one_of_two_zeros(name: str) -> None:
    """`maxnumf` may give either of -0.0 and 0.0, and `fmax` of a program gives one: it is printed by what it means."""
    func = loads(
        _program('A: T.Buffer((8,), "float32")', f"for i in range(8):\n        A[i] = T.{name}(A[i], T.float32(0))")
    )
    text, _, report = mlir_of(lp.Schedule(func), check=True)
    assert "numf" not in text and report is not None and "proved" in report.self_check


def test_what_has_no_sign() -> None:
    """A size or an index without a sign is no negative one where its first bit is set."""
    text = _printed(
        'n: T.uint32, A: T.Buffer((256,), "int32"), U: T.Buffer((8,), "uint8")',
        "for i in range(8):",
        "    if n > T.uint32(5):",
        "        A[U[i]] = 1",
    )
    assert text.count("arith.index_castui") == 2 and "arith.index_cast " not in text


def test_a_view_further_inside() -> None:
    """A view that starts elsewhere is not printed as the memory itself."""
    with pytest.raises(LayoutproofError, match="another view"):
        _printed(
            'A: T.Buffer((8,), "int32")',
            'V = T.decl_buffer((8,), "int32", data=A.data, elem_offset=2)',
            "for i in range(6):",
            "    V[i] = 1",
        )


def test_what_need_not_have_a_value() -> None:
    """The integer of a float is made only where the condition before it holds."""
    text = _printed(
        'x: T.float32, A: T.Buffer((8,), "int32")',
        "for i in range(8):",
        '    if x < T.float32(3) and T.Cast("int32", x) > -5:',
        "        A[i] = 1",
    )
    assert text.index("-> (i1) {") < text.index("arith.fptosi")
