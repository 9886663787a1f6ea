"""Certificates show when they were changed, also by somebody who computes the hashes anew."""

from __future__ import annotations

import copy
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.lowering.small_operators import OPERATORS
from tests.shares import one_in
from tests.tree import ROOT
from tests.verify.certificate.samples import certificate

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.script.reader import load
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.certificate.certificate import Certificate, query_dict, query_id
from layoutproof.verify.certificate.kernel_reading import Trust, judge_file
from layoutproof.verify.certificate.reading import Kind, read_file
from layoutproof.verify.certificate.sealed_files import Document, chained, sealed, to_bytes
from layoutproof.verify.flow.simulate import ENGINE as DATAFLOW
from layoutproof.verify.program.questions import SmtQuery
from layoutproof.verify.verdict.verdict import Status

SCHEMA = json.loads((ROOT / "proofs" / "certificate.schema.json").read_text())


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A certificate on disk."""
    path = tmp_path / "row_sum.lpcert.json"
    certificate().save(path)
    return path


@one_in(4)
def test_what_is_saved_is_read(saved: Path) -> None:
    """A certificate reads back equal, follows the schema, and derives again without a problem."""
    assert Certificate.load(saved) == certificate()
    jsonschema.validate(certificate().document, SCHEMA)
    reading = read_file(saved)
    assert (reading.kind, reading.status, reading.problems) == (Kind.CERTIFICATE, Status.PROVED, [])
    assert reading.claims == sum(len(step["obligations"]) for step in certificate().steps)
    assert {query.text for _, query in reading.questions} == {query.text for query in certificate().queries.values()}


def test_it_is_the_same_every_time(saved: Path) -> None:
    """No time and no chance is in a certificate: made again, it is the same file."""
    from tests.verify.certificate.samples import schedule

    assert to_bytes(schedule().certificate.document) == saved.read_bytes()


def test_each_flipped_bit_is_caught(saved: Path) -> None:
    """Whatever bit of whatever byte is flipped, the file is refused."""
    data = saved.read_bytes()
    chance = random.Random(0)
    for _ in range(300):
        position, bit = chance.randrange(len(data)), chance.randrange(8)
        changed = bytearray(data)
        changed[position] ^= 1 << bit
        saved.write_bytes(changed)
        reading = read_file(saved)
        assert reading.kind is Kind.BROKEN and reading.problems, (position, bit)


def test_each_cut_off_end_is_caught(saved: Path) -> None:
    """A file that ends early, or goes on, is refused."""
    data = saved.read_bytes()
    chance = random.Random(1)
    for length in (0, 1, len(data) - 1, len(data) - 2, *(chance.randrange(len(data)) for _ in range(30))):
        saved.write_bytes(data[:length])
        assert read_file(saved).kind is Kind.BROKEN, length
    for more in (b"\n", b" ", b"{}", data):
        saved.write_bytes(data + more)
        assert read_file(saved).kind is Kind.BROKEN, more


Change = Callable[[Document], None]


def _obligations(document: Document) -> list[Document]:
    found: list[Document] = document["steps"][0]["obligations"]
    return found


def _without_first(document: Document) -> None:
    del _obligations(document)[0]


def _without_last(document: Document) -> None:
    _obligations(document).pop()


def _swapped(document: Document) -> None:
    obligations = _obligations(document)
    obligations[0], obligations[1] = obligations[1], obligations[0]


def _reworded(document: Document) -> None:
    _obligations(document)[0]["claim"] += " always"


def _stricter(document: Document) -> None:
    _obligations(document)[0]["strictness"] = ["nnan"]


def _refuted(document: Document) -> None:
    _obligations(document)[0]["status"] = "refuted"


def _without_step(document: Document) -> None:
    del document["steps"][0]


def _other_program(document: Document) -> None:
    step = document["steps"][0]
    step["rewrite"] = [line.replace("float32(0.0)", "float32(1.0)") for line in step["rewrite"]]


def _other_witness(document: Document) -> None:
    step = document["steps"][0]
    step["rewrite"] = [
        line.replace("j // 4, j % 4", "j % 4, j // 4") if line.startswith("# cells") else line
        for line in step["rewrite"]
    ]


def _fewer_questions(document: Document) -> None:
    next(o for o in _obligations(document) if o["queries"])["queries"].pop()


def _no_question(document: Document) -> None:
    for obligation in _obligations(document):
        obligation["queries"] = []


def _easy_question(document: Document) -> None:
    easy = SmtQuery("(set-logic QF_LIA)\n(assert false)\n(check-sat)\n", "QF_LIA")
    document["queries"][query_id(easy)] = query_dict(easy)
    next(o for o in _obligations(document) if o["queries"])["queries"] = [query_id(easy)]


def _expects_otherwise(document: Document) -> None:
    for query in document["queries"].values():
        query["expected"] = "sat"


def _assumes_more(document: Document) -> None:
    document["steps"][0]["assumptions"].append({"condition": "n == 0", "fits": None, "whose": "caller"})


def _allows_more(document: Document) -> None:
    document["steps"][0]["rewrite"].insert(0, "# where: n == 0")


def _other_form(document: Document) -> None:
    document["format"] = "layoutproof-certificates"


def _later_version(document: Document) -> None:
    document["version"] = 3


def _earlier_version(document: Document) -> None:
    document["version"] = 1


def _other_claim(document: Document) -> None:
    _obligations(document)[0]["identity"] = ["other", "all is well"]


def _text_for_list(document: Document) -> None:
    document["steps"][0]["rewrite"] = "\n".join(document["steps"][0]["rewrite"])


def _number_for_text(document: Document) -> None:
    _obligations(document)[0]["claim"] = 7


def _steps_missing(document: Document) -> None:
    del document["steps"]


def _extra_obligation(document: Document) -> None:
    _obligations(document).append({**_obligations(document)[0], "identity": ["other", "all is well"]})


CHANGES: tuple[Change, ...] = (
    _without_first, _without_last, _swapped, _reworded, _stricter, _refuted, _without_step, _other_program,
    _other_witness, _fewer_questions, _no_question, _easy_question, _expects_otherwise, _assumes_more, _allows_more,
    _other_form, _later_version, _earlier_version, _other_claim, _text_for_list, _number_for_text, _steps_missing,
    _extra_obligation,
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_a_change_is_caught_by_the_hashes(saved: Path, change: Change) -> None:
    """Whatever is changed, the hashes that stand there no longer fit."""
    document = copy.deepcopy(certificate().document)
    change(document)
    saved.write_bytes(to_bytes(document))
    with pytest.raises(LayoutproofError):
        Certificate.load(saved)
    assert read_file(saved).kind is Kind.BROKEN


def _rehashed(document: Document) -> Document:
    """The document with all hashes as its parts now demand."""
    queries: dict[str, Any] = {}
    renamed: dict[str, str] = {}
    for key, q in document["queries"].items():
        renamed[key] = query_id(SmtQuery("\n".join(q["text"]), q["logic"], q["expected"], q["engine"]))
        queries[renamed[key]] = q
    for step in document.get("steps", []):
        for obligation in step["obligations"]:
            obligation["queries"] = [renamed.get(q, q) for q in obligation["queries"]]
        step["obligations"] = chained(step["obligations"])
    if "steps" in document:
        document["steps"] = chained(document["steps"])
        used = {q for step in document["steps"] for o in step["obligations"] for q in o["queries"]}
        document["queries"] = {key: queries[key] for key in sorted(queries) if key in used}
    return sealed(document)


# These lead to a certificate that is whole and true: of the lowering alone, of the same obligations in another order,
# in other words, which are for readers, and of the version whose claims are not compared.
TRUE_STILL = {_without_step, _swapped, _reworded, _earlier_version}


@one_in(40)
@pytest.mark.parametrize(
    "change", [c for c in CHANGES if c not in TRUE_STILL], ids=lambda change: change.__name__.strip("_")
)
def test_a_forgery_is_caught_by_deriving_again(saved: Path, change: Change) -> None:
    """Whoever changes a certificate and computes all hashes anew is caught: the checker has other obligations, or other
    questions.
    """
    document = copy.deepcopy(certificate().document)
    change(document)
    saved.write_bytes(to_bytes(_rehashed(document)))
    reading = read_file(saved)
    assert reading.kind is Kind.BROKEN or reading.status is not Status.PROVED, change.__name__
    assert reading.problems


@one_in(7)
def test_a_forgery_that_says_the_truth_passes(saved: Path) -> None:
    """Hashes computed anew over what is still right are right: they protect a file, they do not sign it."""
    for change in TRUE_STILL:
        document = copy.deepcopy(certificate().document)
        change(document)
        saved.write_bytes(to_bytes(_rehashed(document)))
        kind = Kind.BY_SENTENCES if change is _earlier_version else Kind.CERTIFICATE
        reading = read_file(saved)
        assert (reading.kind, reading.status) == (kind, Status.PROVED)


def test_a_certificate_of_version_1_is_read(tmp_path: Path) -> None:
    """One that was written by version 1: its steps are derived again and asked of solvers; it has nothing for the
    kernel, which accepts none of them. Changed, it is refused as any other.
    """
    path = ROOT / "tests" / "data" / "certificates" / "of_version_1.lpcert.json"
    reading = read_file(path)
    assert (reading.kind, reading.status, reading.problems) == (Kind.BY_SENTENCES, Status.PROVED, [])
    assert [step.name for step in reading.steps] == ["step 1, split", "step 2, parallel"]
    assert reading.claims > 10 and reading.questions
    assert [step.trust for step in judge_file(path).steps] == [Trust.NONE] * 2
    other = tmp_path / "changed.lpcert.json"
    other.write_bytes(path.read_bytes().replace(b"A[vi] * T.float32(2.0)", b"A[vi] * T.float32(3.0)", 1))
    assert other.read_bytes() != path.read_bytes() and read_file(other).kind is Kind.BROKEN
    forged = json.loads(other.read_bytes())
    other.write_bytes(to_bytes(_rehashed(forged)))
    reading = read_file(other)
    assert reading.kind is Kind.BROKEN or reading.status is not Status.PROVED


@one_in(4)
def test_a_dataflow_in_other_pieces(tmp_path: Path) -> None:
    """Another question about where a cell was written last does not break a certificate: it is asked besides the
    checker's own.
    """
    made = Schedule.replay(
        load(OPERATORS / "dense.py"), [["split", {"block": "T_matmul_NT", "loop": "k", "factors": [None, 9]}]]
    ).certificate
    document, path = copy.deepcopy(made.document), tmp_path / "dense.lpcert.json"
    flow = next(
        o for step in document["steps"] for o in step["obligations"] if o["engine"] == DATAFLOW and o["queries"]
    )
    query = document["queries"][flow["queries"][0]]
    other = SmtQuery(
        "\n".join(query["text"]).replace("(check-sat)", "(assert true)\n(check-sat)"),
        query["logic"],
        query["expected"],
        query["engine"],
    )
    document["queries"][query_id(other)] = query_dict(other)
    flow["queries"][0] = query_id(other)
    path.write_bytes(to_bytes(_rehashed(document)))
    reading = read_file(path)
    assert (reading.kind, reading.status, reading.problems) == (Kind.CERTIFICATE, Status.PROVED, [])
    texts = {question.text for _, question in reading.questions}
    assert {other.text, *(question.text for question in made.queries.values())} <= texts


def test_killed_while_saving(tmp_path: Path) -> None:
    """A process that is killed while it saves leaves the old certificate or the new one, and never a part."""
    path = tmp_path / "c.lpcert.json"
    certificate().save(path)
    before = path.read_bytes()
    script = (
        "from pathlib import Path\nfrom layoutproof.verify.certificate.sealed_files import write_whole\n"
        f"data = Path({str(path)!r}).read_bytes() * 50\nprint('ready', flush=True)\n"
        f"while True: write_whole(Path({str(path)!r}), data)\n"
    )
    for wait in (0.0, 0.01, 0.03):
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert path.read_bytes() in (before, before * 50)
        path.write_bytes(before)


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"null",
        b"\xff\xfe",
        b'{"sha256": 1}',
        b'{"sha256": 1, "x": 1e999}',
        b"[" * 100_000,
        b"# expect: proved\n",
    ],
)
def test_garbage_is_refused(tmp_path: Path, garbage: bytes) -> None:
    """What is no certificate is refused with a reason, whatever it is."""
    for name in ("a.lpcert.json", "a.lplemmas.json", "a.py"):
        path = tmp_path / name
        path.write_bytes(garbage)
        reading = read_file(path)
        assert reading.kind is Kind.BROKEN and reading.problems


def test_what_is_nested_deep_is_refused(tmp_path: Path) -> None:
    """A document that is sealed, and nested as deeply as Python's reader of JSON takes it, is no certificate."""
    inner: list[Any] = []
    for _ in range(900):
        inner = [inner]
    document = sealed({"format": "layoutproof-certificate", "version": 2, "steps": inner})
    (tmp_path / "a.lpcert.json").write_text(json.dumps(document))
    reading = read_file(tmp_path / "a.lpcert.json")
    assert reading.kind is Kind.BROKEN and "nested" in reading.problems[0]


@pytest.mark.parametrize("form", ["layoutproof-certificate", "layoutproof-lemmas"])
def test_what_claims_nothing_is_not_proved(tmp_path: Path, form: str) -> None:
    """A file that is in order and has no step, or no lemma, confirms nothing."""
    parts: dict[str, object] = {"steps": [], "refutations": {}} if form == "layoutproof-certificate" else {"lemmas": []}
    version = 2 if form == "layoutproof-certificate" else 1
    document = {"format": form, "version": version, "function": "f", "about": "f", "tools": {}, "queries": {}, **parts}
    (tmp_path / "a.lpcert.json").write_bytes(to_bytes(sealed(document)))
    assert read_file(tmp_path / "a.lpcert.json").status is Status.VACUOUS
