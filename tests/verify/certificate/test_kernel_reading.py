"""The kernel's evidence in certificates: what is written is accepted when read, and nothing that is damaged is."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pytest
from tests.shares import one_in

from layoutproof.cli.gate.check_items import Item, Options
from layoutproof.cli.gate.judging.judge import judge
from layoutproof.cli.gate.outcomes import Kind, Outcome
from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.gates import gate
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.certificate.certificate import Certificate, certify
from layoutproof.verify.certificate.finder.kernel_evidence import find_evidence
from layoutproof.verify.certificate.kernel_reading import Trust, judge_document, judge_file
from layoutproof.verify.certificate.sealed_files import REFUTATIONS, Document, sealed, to_bytes
from layoutproof.verify.kernel.evidence import judge_certificate
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.step_record import StepRecord

PADDED = """
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> 1: lambda io, ii, j: [io * 8 + ii, j] where j < 14
# cells: A_data -> A_data: lambda i, j: [j, i]
# interface: A
@T.prim_func(s_tir=True)
def before(A: T.Buffer((20, 14), "float32"), B: T.Buffer((20,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(20):
        B[i] = T.float32(0.0)
    for i, j in T.grid(20, 14):
        B[i] = B[i] + A[i, j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 20), "float32"), B: T.Buffer((20,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [20, 14], "steps": [
        {"index_map": "lambda i, j: [j, i]", "shape": [16, 20], "contract": "T.float32(0.0)"}]}}})
    for j, i in T.grid(16, 20):
        T.assume(not j >= 14 or A[j, i] == T.float32(0.0))
    for i in range(20):
        B[i] = T.float32(0.0)
    for io, ii, j in T.grid(3, 8, 16):
        if io * 8 + ii < 20:
            B[io * 8 + ii] = B[io * 8 + ii] + A[j, io * 8 + ii]
"""


COPY = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]
"""


@cache
def padded() -> Certificate:
    """The certificate of a rewrite whose evidence has inverses, sources of loads, and refutations."""
    return certify([StepRecord("rewrite", {}, parse_rewrite(PADDED))], "f", find_evidence)


def judged(document: object) -> list[bool]:
    """Whether each claim of each step is accepted."""
    return [claim.is_accepted for step in judge_certificate(json.loads(json.dumps(document))) for claim in step.claims]


def test_what_is_written_is_accepted(tmp_path: Path) -> None:
    """The kernel accepts every claim of a certificate by what the file holds."""
    evidence = padded().document["steps"][0]["kernel"]
    assert evidence["inverses"] and {entry["kind"] for entry in evidence["sources"]} == {"assume", "store"}
    path = tmp_path / "padded.lpcert.json"
    padded().save(path)
    report = judge_file(path)
    assert report.problem is None and [step.trust for step in report.steps] == [Trust.KERNEL]
    assert "A[j, io * 8 + ii]" in report.programs[1]


def test_the_programs_that_are_shown_are_those_that_are_judged(tmp_path: Path) -> None:
    """A text in a program that looks like a function is shown as that text, however the decorator is written."""
    note = 'T.func_attr({"note": """\n@T.prim_func\ndef before(A):\n    A[0] = 1\n"""})'
    loop = f'(B: T.Buffer((8,), "int32")):\n    {note}\n    for i in range(8):\n        B[i] = 7\n'
    text = "".join(f"@ T.prim_func\ndef {name}{loop}" for name in ("before", "after"))
    step = {"rewrite": text.split("\n"), "licences": [], "kernel": find_evidence(text, frozenset())[0]}
    path = tmp_path / "a.lpcert.json"
    path.write_bytes(to_bytes(sealed({"steps": [step], "refutations": find_evidence(text, frozenset())[1]})))
    report = judge_file(path)
    assert [step.trust for step in report.steps] == [Trust.KERNEL]
    assert report.programs == tuple(f"@ T.prim_func\ndef {name}{loop}".rstrip() for name in ("before", "after"))


def _places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to each part of plain data."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(place for key, value in items for place in _places(value, (*path, key)))]


def _damaged(path: tuple[Any, ...], value: Any) -> Document:
    document = {key: copy.deepcopy(padded().document[key]) for key in ("steps", REFUTATIONS)}
    part: Any = document
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return document


@one_in(10)
def test_damaged_evidence_is_rejected() -> None:
    """Whatever stands in for a part of the evidence, the kernel answers; of another type, it accepts less."""
    whole = judged(padded().document)
    assert all(whole)
    step = ("steps", 0, "kernel")
    places = [(*step, *place) for place in _places(padded().document["steps"][0]["kernel"])]
    name = next(iter(padded().document[REFUTATIONS]))
    places += [(REFUTATIONS, name, *place) for place in _places(padded().document[REFUTATIONS][name])]
    for place in places:
        was = reduce(lambda part, key: part[key], place, padded().document)
        values: tuple[object, ...] = (None, 1 << 5000, -1, 1.5, "lambda x: [x // 0, y]", [[]], {})
        for value in values:
            found = judged(_damaged(place, value))
            assert not any(found) or len(found) == len(whole), (place, value)
            # What is not needed may be anything of its kind.
            assert not all(found) or (value != 1 << 5000 and type(value) is type(was)), (place, value)


@pytest.mark.parametrize(
    "document",
    [None, [], {}, {"steps": 1, REFUTATIONS: {}}, {"steps": [], REFUTATIONS: []}],
)
def test_what_is_no_certificate_is_rejected(document: object) -> None:
    """The kernel raises Rejected, and nothing else, for what has no steps and refutations."""
    with pytest.raises(Rejected):
        judge_certificate(document)


@pytest.mark.parametrize("step", [None, 7, {}, {"rewrite": [1]}, {"rewrite": ["x"], "kernel": {}}])
def test_a_step_that_is_not_understood_is_rejected(step: object) -> None:
    """It is one claim, with the reason."""
    found = judge_document({"steps": [step], REFUTATIONS: {}})
    assert [[claim.kind for claim in step.claims] for step in found] == [["understood"]]


def test_steps_have_to_follow_each_other() -> None:
    """A step that begins with another program than the one before ends with is rejected."""
    step = padded().steps[0]
    claims = judge_certificate({"steps": [step, step], REFUTATIONS: padded().document[REFUTATIONS]})[1].claims
    assert [claim.kind for claim in claims if not claim.is_accepted] == ["begins"]
    schedule = Schedule(loads(COPY))
    schedule.split("B", "i", [None, 4])
    schedule.reorder("B", ["i_1", "i_0"])
    assert all(judged(schedule.certificate.document))


_ALONE = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("z3", "islpy", "numpy", "cvc5", "bitwuzla"):
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Blocked())
from layoutproof.cli.main import main
code = main(["recheck", "--kernel-only", "--format", "json", *sys.argv[1:]])
sys.exit(code)
"""


def _alone(*paths: Path) -> tuple[int, Any]:
    done = subprocess.run([sys.executable, "-c", _ALONE, *map(str, paths)], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@one_in(4)
def test_the_kernel_needs_no_solvers(tmp_path: Path) -> None:
    """`recheck --kernel-only` runs where no solver can be imported; it fails where a step is not accepted."""
    path, other, text = tmp_path / "padded.lpcert.json", tmp_path / "without.lpcert.json", tmp_path / "rewrite.py"
    padded().save(path)
    code, found = _alone(path)
    assert (code, found["accepted"], found["trust"]["steps"]["kernel"]) == (0, True, 1)
    bare = {**padded().document, REFUTATIONS: {}}
    other.write_bytes(to_bytes(sealed(bare)))
    text.write_text(PADDED)
    code, found = _alone(path, other, text)
    assert (code, found["accepted"], found["trust"]["steps"]["kernel"]) == (1, False, 1)
    assert found["files"][1]["steps"][0]["rejected"][0]["reason"] == "no refutation is given"
    other.write_bytes(to_bytes(bare))
    assert _alone(other)[0] == 2


def _checked(path: Path, trust: str = "checker") -> Outcome:
    return judge(Item(Kind.REWRITE, path.name, str(path)), Options((), cache=None, trust=trust))


def test_a_run_may_trust_the_kernel_alone(tmp_path: Path) -> None:
    """With that trust, a rewrite that the checker proves and the kernel does not accept is not proved."""
    path = tmp_path / "padded.py"
    path.write_text(PADDED)
    assert [_checked(path, trust).verdict for trust in ("checker", "kernel")] == ["proved", "proved"]
    path.write_text(PADDED.replace("+ A[i, j]", "+ T.max(A[i, j], A[i, j])"))
    assert _checked(path).verdict == "proved"
    outcome = _checked(path, "kernel")
    assert (outcome.verdict, [finding.code for finding in outcome.findings]) == ("unknown", ["LP232"])


_ORDER = """\
# theta: 0 -> 0: lambda k, i: [i, k]
from tvm.script import tir as T

@T.prim_func
def before(A: T.Buffer((8,), "float32"), C: T.Buffer((64,), "float32")):
    T.func_attr({"tir.noalias": True})
    for i, k in T.grid(32, 8):
        C[T.shift_left(i, 1) % 64] = C[T.shift_left(i, 1) % 64] + A[k]

@T.prim_func
def after(A: T.Buffer((8,), "float32"), C: T.Buffer((64,), "float32")):
    T.func_attr({"tir.noalias": True})
    for k, i in T.grid(8, 32):
        C[T.shift_left(i, 1) % 64] = C[T.shift_left(i, 1) % 64] + A[k]
"""


def test_the_kernel_takes_what_is_told_of_a_step(tmp_path: Path) -> None:
    """A step that holds bit for bit by the checker, and by the kernel only where sums may be regrouped, is not accepted
    as one that holds bit for bit.
    """
    path, fast_math = tmp_path / "order.py", ("nnan", "nsz", "reassoc")
    path.write_text(_ORDER)
    item = Item(Kind.REWRITE, path.name, str(path))
    found = [judge(item, Options(fast_math, cache=None, trust=trust)) for trust in ("checker", "kernel")]
    assert [outcome.verdict for outcome in found] == ["proved", "unknown"]
    # Where the order changes, the checker needs the assumption, too, and tells it.
    path.write_text(_ORDER.replace("[i, k]", "[i, 7 - k]").replace("A[k]\n\n", "A[7 - k]\n\n"))
    found = [judge(item, Options(fast_math, cache=None, trust=trust)) for trust in ("checker", "kernel")]
    assert [outcome.verdict for outcome in found] == ["proved", "proved"]


_GATES = """
from pathlib import Path
from layoutproof import Schedule, load
from layoutproof.lowering.gates import gate

def schedule():
    return Schedule(load(Path(__file__).with_name("copy.py")))

def in_tiles():
    found = schedule()
    found.split("B", "i", [None, 4])
    found.reorder("B", ["i_1", "i_0"])
    return found

def simplified():
    found = schedule()
    found.simplify()
    return found

@gate(trust="kernel")
def tiles():
    return in_tiles()

@gate(trust="kernel")
def factor():
    return simplified()

@gate
def factor_by_the_checker():
    return simplified()
"""


def test_a_gate_of_a_schedule_may_trust_the_kernel_alone(tmp_path: Path) -> None:
    """It passes where the kernel accepts each step; a step that only the checker proves is named in the finding."""
    (tmp_path / "copy.py").write_text(COPY.replace("A[vi]", "T.if_then_else(A[vi] < T.float32(1.0), A[vi], A[vi])"))
    path = tmp_path / "gates.py"
    path.write_text(_GATES)

    def checked(name: str, trust: str = "checker") -> Outcome:
        item = Item(Kind.GATE, f"{path}::{name}", str(path), 1, name)
        return judge(item, Options((), cache=None, trust=trust))

    assert (checked("tiles").verdict, checked("tiles").findings) == ("proved", ())
    assert (checked("factor_by_the_checker").verdict, checked("factor_by_the_checker").findings) == ("proved", ())
    for outcome in (checked("factor"), checked("factor_by_the_checker", "kernel")):
        assert (outcome.verdict, [finding.code for finding in outcome.findings]) == ("unknown", ["LP232"])
        assert outcome.findings[0].message.startswith("simplify")
        assert "the kernel rejects same-value" in outcome.findings[0].message


def test_a_gate_trusts_one_of_two() -> None:
    """A gate names the checker or the kernel."""
    with pytest.raises(Exception, match="trust: checker or kernel, not 'solvers'"):
        gate(trust="solvers")(lambda: None)
