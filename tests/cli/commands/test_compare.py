"""`layoutproof compare`: the answers on two programs, in every format, and the errors of wrong calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.cli.calling import Caller, files_below, steady
from tests.cli.compared_programs import AFTER, BEFORE, LAYOUT, ROW, SYMBOLIC, WRONG, folder, program
from tests.cli.schema import COMPARISON
from tests.conftest import Golden
from tests.shares import one_in

from layoutproof.cli.gate.outcomes import COMPARED, Outcome
from layoutproof.verify.certificate.certificate import Certificate
from layoutproof.verify.verdict.verdict import Status

__all__ = ["folder"]  # a fixture

PAIRS = {
    "proved": ("after.py", LAYOUT, 0),
    "proved_with_pad": ("after.py", (*LAYOUT, "--pad", "B=T.float32(0)"), 0),
    "proved_found": ("after.py", (), 0),
    "refuted": ("wrong.py", LAYOUT, 1),
    "no_witness": ("sum.py", (), 3),
    "unknown_call": ("strange.py", (), 3),
}


@one_in(4)
@pytest.mark.parametrize("name", PAIRS)
def test_text(call: Caller, golden: Golden, folder: Path, name: str) -> None:
    """A comparison is told whole: layouts, what keeps its layout, fast-math assumptions, assumptions; what speaks
    against it with lines of both files.
    """
    after, options, code = PAIRS[name]
    outcome = call("compare", "before.py", after, *options)
    assert (outcome.code, outcome.err) == (code, "")
    golden(f"cli_compare/{name}.txt", steady(outcome.out, folder))


@one_in(4)
@pytest.mark.parametrize("name", PAIRS)
def test_json(call: Caller, folder: Path, name: str) -> None:
    """JSON has exactly the keys that are promised, and reads back as the outcome that it is."""
    after, options, code = PAIRS[name]
    found = call("compare", "before.py", after, *options, "--format", "json").json()
    jsonschema.validate(found, COMPARISON)
    assert found["verdict"] == {0: "proved", 1: "refuted", 3: "unknown"}[code]
    assert (found["program"], found["after"]) == ("before.py:main", f"{after}:main")
    assert set(COMPARED) <= set(found)
    assert {**Outcome.from_dict(found).to_dict(), "version": 1} == found
    if name == "no_witness":
        assert "no layout of B fits" in found["furthest"]["reason"]


def test_what_was_given_is_told_from_what_was_found(call: Caller, folder: Path) -> None:
    """Of each layout and pad value it is said whether it was given."""

    def layout(*options: str) -> Any:
        (found,) = call("compare", "before.py", "after.py", *options, "--format", "json").json()["layouts"]
        return found

    assert [layout()[key] for key in ("layout_given", "pad_given")] == [False, False]
    given = layout(*LAYOUT, "--pad", "B=0.0")
    assert (given["buffer"], given["index_map"], given["layout_given"], given["pad_given"]) == (
        "B",
        "lambda i: [i//4, i%4]",
        True,
        True,
    )
    assert layout("--layout", "B=W->W4w")["index_map"] == "lambda w: [w//4, w%4]"


def test_what_keeps_its_cells(call: Caller, folder: Path) -> None:
    """A parameter of one shape in both keeps its layout, which is said, unless its layout is given."""
    assert call("compare", "before.py", "after.py", "--format", "json").json()["kept"] == ["A"]
    Path("turned.py").write_text(BEFORE.replace("B[i] = T.max(A[i]", "B[i] = T.max(A[13 - i]"), encoding="utf-8")
    told = call("compare", "before.py", "turned.py")
    assert told.code == 1 and "A, B keep their layouts: they have the same shape" in told.out
    turned = call("compare", "before.py", "turned.py", "--layout", "A=lambda i: [13 - i]")
    assert turned.code == 0 and "B keeps its layout" in turned.out


@one_in(4)
@pytest.mark.parametrize("form", ["junit", "sarif", "github", "html"])
def test_other_forms(call: Caller, folder: Path, form: str) -> None:
    """Every form of a report shows what is refuted, with its code, and a file that is written is the one that would be
    printed.
    """
    printed = call("compare", "before.py", "wrong.py", *LAYOUT, "--format", form, "--stable")
    assert printed.code == 1 and "LP22" in printed.out and "wrong.py" in printed.out
    written = call(
        "compare", "before.py", "wrong.py", *LAYOUT, "--stable", "--report", f"{form}=report", "-o", "text.txt"
    )
    assert written.code == 1 and Path("report").read_text(encoding="utf-8") == printed.out
    assert "LP22" in Path("text.txt").read_text(encoding="utf-8")


def test_both_lines_are_shown(call: Caller, folder: Path) -> None:
    """What is refuted stands in the file after, and has the store before as a related place, in its own file."""
    (found,) = call("compare", "before.py", "wrong.py", *LAYOUT, "--format", "json").json()["findings"]
    assert found["place"]["path"] == "wrong.py" and "B[io, ii]" in found["place"]["text"]
    assert [(one["path"], one["text"].strip()) for one in found["related"]] == [
        ("before.py", "B[i] = T.max(A[i], T.float32(0))")
    ]


UNGUARDED = AFTER.replace(
    "T.if_then_else(io * 4 + ii < 14, T.max(T.float32(0), A[io * 4 + ii]), T.float32(0))", "A[io * 4 + ii]"
)
RACING = AFTER.replace("T.vectorized", "T.parallel").replace("B[io, ii]", "B[io, ii // 2]")


@pytest.mark.parametrize(
    ("text", "options", "code", "said"),
    [
        (UNGUARDED, (), "LP215", "read A[io*4 + ii] stays within [14] (line 8) is refuted: A[1"),
        (RACING, (), "LP220", "touch one cell, one writing (line 7) is refuted: "),
        (AFTER, ("--pad", "B=1.0"), "LP223", "expected 1.0 (0x1p+0) by its contract `T.float32(1.0)`, got "),
        (WRONG, (), "LP222", "`B[13]` (now at [3, 1]): expected 1.0 (0x1p+0), got 0.0"),
    ],
)
def test_codes(call: Caller, folder: Path, text: str, options: tuple[str, ...], code: str, said: str) -> None:
    """What is refuted has the code of what is wrong: an access, a race, padding, or a value that differs."""
    Path("bad.py").write_text(text, encoding="utf-8")
    outcome = call("compare", "before.py", "bad.py", *LAYOUT, *options, "--format", "json")
    (finding,) = outcome.json()["findings"]
    assert (outcome.code, finding["code"]) == (1, code)
    assert (
        finding["message"].startswith("main after does not do what main before does: ") and said in finding["message"]
    )


@one_in(9)
def test_certificate(call: Caller, folder: Path) -> None:
    """A proved comparison leaves a certificate that is confirmed; another one leaves none."""
    outcome = call("compare", "before.py", "after.py", "--certificate", "c.json")
    assert outcome.code == 0 and "  certificate: c.json" in outcome.out.splitlines()
    certificate = Certificate.load("c.json")
    assert certificate.status is Status.PROVED
    assert [step["primitive"] for step in certificate.steps] == ["compare"]
    told = call("recheck", "c.json")
    assert told.code == 0 and told.out.startswith("proved   c.json: certificate, ")
    assert call("compare", "before.py", "wrong.py", *LAYOUT, "--certificate", "w.json").code == 1
    assert not Path("w.json").exists()


def test_witness(call: Caller, folder: Path) -> None:
    """The rewrite that was found is a text that `check` proves; where none was found, no file is written, and none is
    told of.
    """
    outcome = call("compare", "before.py", "after.py", "--witness", "w.py")
    assert outcome.code == 0 and outcome.out.endswith("  witness: w.py\n")
    told = call("check", "w.py")
    assert told.code == 0 and told.out.startswith("w.py: proved")
    none = call("compare", "before.py", "sum.py", "--witness", "none.py", "--format", "json")
    assert none.code == 3 and none.json()["witness"] is None and not Path("none.py").exists()


def test_strictness(call: Caller, folder: Path) -> None:
    """The fewest fast-math assumptions are reported; where they are not allowed, what breaks without them refutes it,
    or nothing is decided.
    """
    allowed = call("compare", "sum.py", "regrouped.py")
    assert allowed.code == 0 and "the two programs do the same with reassoc" in allowed.out
    assert call("compare", "sum.py", "regrouped.py", "--format", "json").json()["strictness"] == ["reassoc"]
    assert call("compare", "sum.py", "regrouped.py", "--strictness", "ieee").code in (1, 3)


def test_the_same_program(call: Caller, folder: Path) -> None:
    """A program does what it does itself; a text with two functions may hold both."""
    assert call("compare", "before.py", "before.py").code == 0
    Path("both.py").write_text(
        BEFORE.replace("def main", "def old") + AFTER.partition("\n\n")[2].replace("def main", "def new")
    )
    told = call("compare", "both.py", "both.py", "--function", "old=new")
    assert told.code == 0 and told.out.startswith("both.py:old -> both.py:new: proved\n")
    assert call("compare", "both.py", "after.py").code == 2


def test_names_that_differ(call: Caller, folder: Path) -> None:
    """Parameters are paired by place; `--match` pairs them by name."""
    other = AFTER.replace("A", "x").replace("B[", "y[").replace("B:", "y:").replace("T.Buffer", "T.Buffer")
    Path("other.py").write_text(other, encoding="utf-8")
    assert call("compare", "before.py", "other.py").code == 0
    swapped = program(
        "for i in range(14):\n    y[i] = T.max(x[i], T.float32(0))", ROW.replace("A:", "y:").replace("B:", "x:")
    )
    Path("swapped.py").write_text(swapped, encoding="utf-8")
    assert call("compare", "before.py", "swapped.py").code == 1
    assert call("compare", "before.py", "swapped.py", "--match", "x=A", "--match", "y=B").code == 0


def test_where(call: Caller, folder: Path) -> None:
    """What callers vouch for is a part of the question, and is told with the answer."""
    Path("n.py").write_text(SYMBOLIC, encoding="utf-8")
    halves = SYMBOLIC.replace("for i in range(n):", "for i in range(n // 2 * 2):")
    Path("halves.py").write_text(halves, encoding="utf-8")
    assert call("compare", "n.py", "halves.py").code == 1
    told = call("compare", "n.py", "halves.py", "--where", "n % 2 == 0")
    assert told.code == 0 and "given precondition: n%2 == 0" in told.out


def test_findings_can_be_spared(call: Caller, folder: Path) -> None:
    """Codes are ignored, unknowns allowed, and a baseline knows a finding by what was asked, wherever it stands in the
    file.
    """
    refuted = ("compare", "before.py", "wrong.py", *LAYOUT)
    assert call(*refuted, "--ignore", "LP2").code == 0
    assert call("compare", "before.py", "strange.py", "--allow-unknown").code == 0
    assert call(*refuted, "--write-baseline", "base.json").code == 1
    assert call(*refuted, "--baseline", "base.json").code == 0
    Path("wrong.py").write_text("# one line more\n" + WRONG, encoding="utf-8")
    assert call(*refuted, "--baseline", "base.json").code == 0
    Path("wrong.py").write_text(WRONG.replace("< 13", "< 12"), encoding="utf-8")
    assert call(*refuted, "--baseline", "base.json").code == 1


def test_what_was_proved_is_known(call: Caller, folder: Path) -> None:
    """A second run takes the proof from the cache, and says the same."""
    first, second = (call("compare", "before.py", "after.py", "--format", "json").json() for _ in range(2))
    assert (first["cached"], second["cached"]) == (False, True)
    again = [call("compare", "before.py", "after.py", "--format", "json", "--stable").out for _ in range(2)]
    assert (
        again[0]
        == again[1]
        == call("compare", "before.py", "after.py", "--format", "json", "--stable", "--no-cache").out
    )


@one_in(9)
def test_a_limit_of_time(call: Caller, folder: Path) -> None:
    """In a process of its own a comparison ends as it does here, and one that takes too long is unknown."""
    assert (
        call("compare", "before.py", "after.py", "--timeout", "300").out == call("compare", "before.py", "after.py").out
    )
    told = call("compare", "before.py", "after.py", "--timeout", "0.01", "--no-cache", "--format", "json")
    assert told.code == 3 and told.json()["findings"][0]["code"] == "LP525"


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--layout", "B"), ("LP514", "'B'", "NAME=MAP")),
        (("--layout", "=lambda i: [i]"), ("LP514",)),
        (("--layout", "Q=lambda i: [i]"), ("LP515", "Q", "its parameters are A, B")),
        (("--layout", "b=lambda i: [i]"), ("LP515", "b", "A, B")),
        (("--layout", "B=lambda i: [i", "--pad", "B=0"), ("--layout B:1:", "LP110")),
        (("--layout", "B=lambda i: [i//4, j%4]"), ("--layout B:1:18", "`j` is not defined")),
        (("--layout", "B=lambda i, j: [i]"), ("LP514", "takes 2 indices, and B has 1 axis", "before.py:4:")),
        (("--layout", "B=lambda i: [i]", "--layout", "B=lambda i: [i]"), ("LP514", "B is given twice")),
        (("--layout", "B=NHWC->NCHW4c"), ("LP514", "takes 4 indices")),
        (("--pad", "B"), ("LP514", "NAME=VALUE")),
        (("--pad", "B=1 +"), ("--pad B:1:", "LP110")),
        (("--pad", "Q=0"), ("LP515",)),
        (("--match", "A"), ("LP514", "NEW=OLD")),
        (("--match", "Q=A"), ("LP515", "after.py")),
        (("--match", "A=Q"), ("LP515", "before.py")),
        (("--match", "A=A", "--match", "B=A"), ("LP514", "A is given twice")),
        (("--where", "n >= 1"), ("--where:1:1", "`n` is not defined", "there is none")),
        (("--where", "1 +"), ("--where:1:",)),
        (("--function", "other"), ("LP506", "it has main")),
        (("--function", "main="), ("LP514", "NAME=NAME")),
        (("--function", "main=other"), ("LP506", "after.py")),
        (("-o", "before.py"), ("LP502", "before.py")),
        (("--witness", "after.py"), ("LP502", "--witness")),
        (("--witness", "x.py", "--certificate", "x.py"), ("LP502",)),
        (("--certificate", "nowhere/c.json"), ("nowhere",)),
        (("--report", "pdf=x"), ("pdf",)),
        (("--strictness", "exact"), ("exact",)),
        (("--cache", "c.sqlite", "--no-cache"), ("--no-cache",)),
        (("--baseline", "missing.json"), ("LP537",)),
        (("third.py",), ("third.py",)),
    ],
)
def test_wrong_calls(call: Caller, folder: Path, options: tuple[str, ...], parts: tuple[str, ...]) -> None:
    """A wrong option is told before anything is done, with its name and place, and leaves nothing behind."""
    before = files_below(folder)
    outcome = call("compare", "before.py", "after.py", *options)
    assert outcome.code == 2 and outcome.out == ""
    assert [part for part in parts if part not in outcome.err] == []
    assert files_below(folder) == before


@pytest.mark.parametrize(
    ("files", "part"),
    [
        (("missing.py", "after.py"), "missing.py"),
        (("before.py", "missing.py"), "missing.py"),
        ((".", "after.py"), "LP511"),
        (("before.py", "broken.py"), "broken.py:1:"),
        (("before.py", "three.py"), "LP"),
        (("before.py", "integers.py"), "LP"),
        (("before.py",), "AFTER.py"),
    ],
)
def test_wrong_files(call: Caller, folder: Path, files: tuple[str, ...], part: str) -> None:
    """A file that holds no such program is told of, with its place."""
    Path("broken.py").write_text("def main(:\n")
    Path("three.py").write_text(program("C[0] = A[0]", ROW + ', C: T.Buffer((1,), "float32")'))
    Path("integers.py").write_text(BEFORE.replace("float32", "int32"))
    outcome = call("compare", *files)
    assert outcome.code == 2 and part in outcome.err and outcome.out == ""


def test_the_baseline_names_the_pair(call: Caller, folder: Path) -> None:
    """An entry of a baseline says which programs it is about."""
    call("compare", "before.py", "wrong.py", *LAYOUT, "--write-baseline", "base.json")
    (entry,) = json.loads(Path("base.json").read_text())["entries"]
    assert (entry["file"], entry["name"], entry["status"]) == ("wrong.py", "before.py -> wrong.py", "refuted")


def test_remarks_on_the_programs(call: Caller, tmp_path: Path) -> None:
    """What TVM computes otherwise is told once, with its place, of compared programs, of a schedule's program, and by
    gates.
    """
    program, trace, gates = tmp_path / "sums.py", tmp_path / "sums.json", tmp_path / "gates.py"
    program.write_text(
        '@T.prim_func\ndef main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):\n'
        '    for i in range(8):\n        with T.sblock("b"):\n            v = T.axis.spatial(8, i)\n'
        "            B[v] = (A[v] + T.float32(100)) - A[v]\n"
    )
    trace.write_text('[["split", {"block": "b", "loop": "i", "factors": [2, 4]}]]')
    gates.write_text(
        f"import layoutproof as lp\nPROGRAM = lp.load({str(program)!r})\n\n@lp.gate\ndef tiled():\n"
        "    schedule = lp.Schedule(PROGRAM)\n    schedule.split('b', 'i', [2, 4])\n"
        "    return schedule, lp.compare(PROGRAM, PROGRAM)\n"
    )
    for arguments in (
        ("compare", str(program), str(program)),
        ("check", str(program), "--trace", str(trace)),
        ("check", str(gates)),
    ):
        result = call(*arguments)
        assert result.code == 0, result.err
        assert result.out.count("warning[LP133]") == 1
        assert f"{program.name}:6:20: a term with both signs" in result.out
