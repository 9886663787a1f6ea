"""Programs that tests of `compare` put into files: a small relu, and what compilers make of it, rightly and wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

HEAD = 'def {name}({parameters}):\n    T.func_attr({{"tirx.noalias": True}})\n'


def program(body: str, parameters: str, name: str = "main") -> str:
    """The text of a program: the body's lines, indented by four."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return f"# from tvm.script import tirx as T\n\n@T.prim_func\n{HEAD.format(name=name, parameters=parameters)}{lines}"


ROW = 'A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")'
PACKED = 'A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")'

BEFORE = program(
    """
for i in range(14):
    B[i] = T.max(A[i], T.float32(0))
""",
    ROW,
)
AFTER = program(
    """
for io in range(4):
    for ii in T.vectorized(4):
        B[io, ii] = T.if_then_else(io * 4 + ii < 14, T.max(T.float32(0), A[io * 4 + ii]), T.float32(0))
""",
    PACKED,
)
LAYOUT = ("--layout", "B=lambda i: [i//4, i%4]")
WRONG = AFTER.replace("< 14", "< 13")
"""The last element is taken for padding."""
STRANGE = program('for io, ii in T.grid(4, 4):\n    B[io, ii] = T.call_extern("float32", "f", io * 4 + ii)', PACKED)
"""What it stores is known to nobody."""
SUM = program(
    """
for i in range(4):
    B[i] = T.float32(0)
    for k in range(6):
        B[i] = B[i] + A[i, k]
""",
    'A: T.Buffer((4, 6), "float32"), B: T.Buffer((4,), "float32")',
)
REGROUPED = SUM.replace("A[i, k]", "A[i, 5 - k]")
SYMBOLIC = program(
    """
n = T.int32()
for i in range(n):
    B[i] = A[i] + T.float32(1)
""",
    'A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")',
)


PROGRAMS = {"before": BEFORE, "after": AFTER, "wrong": WRONG, "strange": STRANGE, "sum": SUM, "regrouped": REGROUPED}


def write_programs(folder: Path) -> None:
    """Put the programs into files of a folder."""
    for name, text in PROGRAMS.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the programs in files, and a proof cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYOUTPROOF_PROOF_CACHE", str(tmp_path / "cache" / "proofs.sqlite"))
    write_programs(tmp_path)
    return tmp_path
