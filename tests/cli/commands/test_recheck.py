"""`layoutproof recheck`: what it says of files that are right, changed or missing, and its exit codes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import jsonschema
import pytest
from tests import own_proofs
from tests.cli.calling import Caller
from tests.cli.schema import RECHECK
from tests.shares import one_in
from tests.tree import ROOT
from tests.verify.certificate.samples import certificate

from layoutproof.verify.certificate.lemmas import Lemma, LemmaFile
from layoutproof.verify.program.questions import SmtQuery
from layoutproof.verify.smt import engines
from layoutproof.verify.verdict.verdict import Status

FALSE = SmtQuery("(set-logic QF_LIA)\n(assert false)\n(check-sat)\n", "QF_LIA")
TRUE = SmtQuery("(set-logic QF_LIA)\n(assert true)\n(check-sat)\n", "QF_LIA")


def lemma_file(path: Path, *queries: SmtQuery) -> Path:
    """A file of lemmas that are said to hold."""
    LemmaFile("a test", tuple(Lemma(f"l{k}", "it holds", Status.PROVED, (q,)) for k, q in enumerate(queries))).save(
        path
    )
    return path


@one_in(9)
def test_a_certificate(call: Caller, tmp_path: Path) -> None:
    """A certificate is confirmed, with a table of the solvers."""
    path = tmp_path / "a.lpcert.json"
    certificate().save(path)
    outcome = call("recheck", str(path), "--jobs", "2")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("proved")
    assert [line.split()[0] for line in outcome.out.splitlines()[-5:-1]] == ["solver", "z3", "cvc5", "bitwuzla"]
    assert outcome.out.splitlines()[-1].startswith("2 steps: ")


def test_json(call: Caller, tmp_path: Path) -> None:
    """JSON follows the schema: every file with its counts, problems and exceptions, every engine with its own."""
    lemma_file(tmp_path / "a.lplemmas.json", FALSE)
    (tmp_path / "b.lpcert.json").write_bytes(b"{")
    outcome = call("recheck", str(tmp_path), "--format", "json", "--jobs", "1")
    jsonschema.validate(outcome.json(), RECHECK)
    good, bad = outcome.json()["files"]
    assert (good["verdict"], good["kind"], good["confirmed"]) == ("proved", "lemmas", 1)
    assert (bad["verdict"], bad["kind"]) == (None, "broken") and "cut off or was changed" in bad["problems"][0]
    assert outcome.code == 2


@one_in(10)
@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"a": FALSE}, 0),
        ({"a": TRUE}, 1),
        ({"a": FALSE, "b": TRUE}, 1),
        ({"a": FALSE, "b": None}, 2),
        ({"a": TRUE, "b": None}, 1),
    ],
)
def test_exit_codes(call: Caller, tmp_path: Path, files: Mapping[str, SmtQuery | None], code: int) -> None:
    """Refuted before refused before unknown; one bad file does not keep the others from being checked."""
    for name, query in files.items():
        path = tmp_path / f"{name}.lplemmas.json"
        lemma_file(path, query if query is not None else FALSE)
        if query is None:
            path.write_bytes(path.read_bytes().replace(b"it holds", b"it Holds"))
    outcome = call("recheck", str(tmp_path), "--jobs", "1")
    assert outcome.code == code
    assert sum(line.startswith(("proved", "refuted", "refused")) for line in outcome.out.splitlines()) == len(files)


def test_a_rewrite_is_as_expected_or_not(call: Caller, tmp_path: Path) -> None:
    """A rewrite that must be refuted, and is, is not called proved; one that expects the wrong thing is told with the
    reason.
    """
    known = ROOT / "proofs" / "refuted" / "order_interchanged.py"
    outcome = call("recheck", str(known))
    assert outcome.code == 0 and outcome.out.startswith(
        f"expected {known}: rewrite, the checker says what its header says\n"
    )
    path = tmp_path / "wrong.py"
    path.write_text(known.read_text().replace("# expect: refuted", "# expect: proved"))
    outcome = call("recheck", str(path))
    assert outcome.code == 1 and "proved is expected, the checker says refuted" in outcome.out
    assert outcome.out.startswith(f"refuted  {path}: rewrite\n")


@one_in(4)
def test_what_rests_on_one_engine_is_told_by_reason(call: Caller, tmp_path: Path) -> None:
    """Claims with one reason stand together under it, a few by name and the others counted; JSON names all."""
    lemmas = [Lemma(f"l{k}", "it holds", Status.PROVED, (FALSE,), exceptions=(("isl", "no text"),)) for k in range(5)]
    path = tmp_path / "a.lplemmas.json"
    LemmaFile("a test", (*lemmas, Lemma("l5", "it holds", Status.PROVED, (), exceptions=(("z3", "too long"),)))).save(
        path
    )
    outcome = call("recheck", str(path), "--jobs", "1")
    told = outcome.out.splitlines()
    start = told.index("resting on one engine (6; all are named in JSON):")
    assert told[start + 1 : start + 8] == [
        "  5 claims: no text",
        *(f"    {path}: l{k}: isl" for k in range(3)),
        "    and 2 more",
        "  1 claim: too long",
        f"    {path}: l5: z3",
    ]
    (file,) = call("recheck", str(path), "--jobs", "1", "--format", "json").json()["files"]
    assert file["exceptions"] == [*(f"l{k}: isl: no text" for k in range(5)), "l5: z3: too long"]


@one_in(4)
def test_output_goes_to_a_file_whole(call: Caller, tmp_path: Path) -> None:
    """With -o nothing is printed."""
    path = lemma_file(tmp_path / "a.lplemmas.json", FALSE)
    outcome = call("recheck", str(path), "-o", str(tmp_path / "report.txt"))
    assert (outcome.code, outcome.out) == (0, "")
    assert (tmp_path / "report.txt").read_text().startswith("proved")


def test_nothing_to_check(call: Caller, tmp_path: Path) -> None:
    """A folder without a file to check, and a path that is not there, are errors of the call."""
    (tmp_path / "notes.txt").write_text("no proof\n")
    outcome = call("recheck", str(tmp_path))
    assert outcome.code == 2 and "LP511" in outcome.err
    outcome = call("recheck", str(tmp_path / "missing.lpcert.json"))
    assert outcome.code == 2 and "No such file" in outcome.out


def test_two_solvers_are_needed(call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one solver installed, or chosen, the command says what to install, and checks nothing."""
    path = lemma_file(tmp_path / "a.lplemmas.json", FALSE)
    outcome = call("recheck", str(path), "--engine", "z3")
    assert outcome.code == 2 and "LP512" in outcome.err
    monkeypatch.setattr(engines, "installed", lambda: {"z3": "1"})
    outcome = call("recheck", str(path))
    assert outcome.code == 2 and "layoutproof[recheck]" in outcome.err
    outcome = call("recheck", str(path), "--engine", "z3", "--engine", "cvc5")
    assert outcome.code == 2 and "cvc5 is not installed" in outcome.err


@pytest.mark.campaign
def test_the_kernel_alone_asks_no_solver(call: Caller, tmp_path: Path) -> None:
    """Solvers that are named beside --kernel-only would not be asked, which is said."""
    for option in (("--engine", "z3"), ("--arrays", str(tmp_path / "weights.npz"))):
        (tmp_path / "weights.npz").write_bytes(b"")
        outcome = call("recheck", str(tmp_path), "--kernel-only", *option)
        assert outcome.code == 2 and "--kernel-only asks no solver" in outcome.err + outcome.out


def test_own_lemmas_are_as_they_would_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    """Every rule of the simplifier, and every usual layout, stands under proofs/ with its lemma as the code has it
    now.
    """
    assert own_proofs.main(["--check", str(ROOT / "proofs")]) == 0, capsys.readouterr().err


@one_in(9)
def test_a_lemma_that_is_missing_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file under proofs/ is what would be written; one that lost a lemma, hashes made anew, is not."""
    some = [(name, file) for name, file in islice(own_proofs.files(), 1)]
    monkeypatch.setattr(own_proofs, "files", lambda: iter(some))
    assert own_proofs.main(["--check", str(ROOT / "proofs")]) == 0
    assert own_proofs.main([str(tmp_path)]) == 0
    (path,) = (tmp_path / "rules").glob("index*")
    file = LemmaFile.load(path)
    LemmaFile(file.about, file.lemmas[1:], file.tools).save(path)
    capsys.readouterr()
    assert own_proofs.main(["--check", str(tmp_path)]) == 1
    assert "make proofs" in capsys.readouterr().err
    assert own_proofs.main([]) == 2
