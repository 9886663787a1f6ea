"""What a refused transform carries, and what no text can state; the other refusals stand in tests/programs/lowering."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.cases import PROGRAMS, Case, cases_of
from tests.conftest import Golden
from tests.lowering.programs import program

from layoutproof.ir.expr import const
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.ir.visit import replace_buffers
from layoutproof.lowering import codes
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict.verdict import Status

REFUTED = ("not_injective", "not_injective_rotation", "out_of_bounds")
CASES = [case for case in cases_of(PROGRAMS / "lowering" / "transform_layout.py") if case.name in REFUTED]


def strided() -> PrimFunc:
    """A parameter whose rows lie 17 apart."""
    func = program("""def main(A: T.Buffer((4, 16), "float32")):
    with T.sblock("one"):
        A[0, 0] = T.float32(0)
""")
    (param, buffer) = func.buffer_map[0]
    wide = replace(buffer, strides=(const(17), const(1)))
    return replace(func, buffer_map=((param, wide),), body=replace_buffers(func.body, {buffer: wide}))


def test_strides_are_refused(golden: Golden) -> None:
    """A buffer whose rows lie apart keeps its layout; the message is drawn without a place."""
    schedule = Schedule(strided())
    with pytest.raises(IllegalTransform) as caught:
        schedule.transform_layout("one", "A", "lambda i, j: [j, i]")
    assert caught.value.diagnostics[0].code == codes.STRIDES
    assert schedule.func == strided() and not schedule.steps
    golden.entry("refusals.txt", "strides", f"{caught.value}\n")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_refuted_maps_carry_their_counterexample(case: Case) -> None:
    """Where something was refuted, the verdict is in the exception."""
    with pytest.raises(IllegalTransform) as caught:
        Schedule(loads(case.source.text)).transform_layout(**case.options[1])
    assert caught.value.status is Status.REFUTED and caught.value.verdicts[0].counterexample


def test_every_code_is_explained_and_used() -> None:
    """Codes are unique, each has its meaning, and each stands in some message."""
    named = {name: value for name, value in vars(codes).items() if name.isupper() and isinstance(value, str)}
    assert len(set(named.values())) == len(named)
    assert set(codes.MEANINGS) == set(named.values())
    folder = Path(codes.__file__).parent
    text = "".join(path.read_text() for path in folder.rglob("*.py") if path.name != "codes.py")
    assert [name for name in named if f"codes.{name}" not in text] == []
