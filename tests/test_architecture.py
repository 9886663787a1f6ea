"""ARCHITECTURE.md is true where that can be compared: the trust base, the clauses, and the files that it names."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import pytest

from tests.clauses import PERMISSIVE, Clause
from tests.tree import ROOT, file

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
RIGHT = PAGE.partition("## Trusted computing base")[2].partition("### Claims of `compare`")[0]
COMPARED = PAGE.partition("### Claims of `compare`")[2].partition("### Claims about graphs")[0]
GRAPHS = PAGE.partition("### Claims about graphs")[2].partition("### What rechecking")[0]
KERNEL = ROOT / "verify" / "kernel"
CHECKER, PLANNED = "layoutproof.verify.checker", "layoutproof.graph.prove.prove_graph"


def source_of(module: str) -> Path | None:
    """The file of a module of ours; None for a name that is none."""
    path = ROOT.joinpath(*module.split(".")[1:])
    return next((each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file()), None)


@cache
def imported_by(module: str) -> frozenset[str]:
    """The modules of ours that a module's text imports, wherever it does."""
    path = source_of(module)
    assert path is not None
    named = {part if source_of(part := f"{origin}.{name}") else origin for origin, name in file(path).imports}
    return frozenset(name for name in named if source_of(name))


def reached(start: str) -> set[str]:
    """Everything that a module imports, and what that imports."""
    found, todo = {start}, [start]
    while todo:
        new = imported_by(todo.pop()) - found
        found |= new
        todo += new
    return found


def modules_of(start: str) -> set[str]:
    """What a module reaches and itself, packages' faces aside, which hold no code."""
    return {
        module for module in reached(start) if (path := source_of(module)) is not None and path.name != "__init__.py"
    }


def in_table(text: str) -> list[str]:
    """The modules that a table names, by folder."""
    rows = re.findall(r"^\| `([\w/]+/)` \| ([^|]*) \|", text, re.MULTILINE)
    return [
        f"layoutproof.{folder.replace('/', '.')}{name}"
        for folder, names in rows
        for name in re.findall(r"`(\w+)`", names)
    ]


def listed(section: str) -> list[str]:
    """The modules in a section's two tables, those that are trusted and those that are reached only; both have some."""
    trusted, _, others = section.partition("Imported as well, and not trusted")
    assert in_table(trusted) and in_table(others)
    return sorted(in_table(section))


def test_the_trust_base_is_listed() -> None:
    """The two tables have every module that the checker reaches, once, and no other one."""
    assert listed(RIGHT) == sorted(modules_of(CHECKER))


def test_lines_of_the_trust_base_are_those_that_the_page_says() -> None:
    """Its modules, their lines and those of code, to half a percent; and it stays below 20,000 lines of code."""
    trusted = in_table(RIGHT.partition("Imported as well, and not trusted")[0])
    paths = [path for module in trusted if (path := source_of(module)) is not None]
    said = re.findall(r"There are ([\d,]+) modules with ([\d,]+) lines, ([\d,]+) of\s+them code", RIGHT)
    modules, lines, code = (int(number.replace(",", "")) for number in said[0])
    assert modules == len(paths)
    assert abs(lines / sum(len(file(path).text.splitlines()) for path in paths) - 1) < 0.005
    counted = sum(file(path).code_lines for path in paths)
    assert abs(code / counted - 1) < 0.005 and counted < 20_000


def test_the_trust_base_of_graphs_is_listed() -> None:
    """The two tables on graphs have every further module that the proof of a planned graph reaches, once, and no other
    one.
    """
    assert listed(GRAPHS) == sorted(modules_of(PLANNED) - modules_of(CHECKER))


def test_what_decides_of_comparisons_is_listed() -> None:
    """The two tables on `compare` have each module of its folder and of that of kernels once, and what decides is
    reached from it.
    """
    trusted, _, proposing = COMPARED.partition("The rest of the folder proposes")
    decide, propose = in_table(trusted), in_table(proposing)
    for folder in ("lowering/compare", "ir/threads"):
        prefix = f"layoutproof.{folder.replace('/', '.')}."
        listed_here = sorted(name for name in (*decide, *propose) if name.startswith(prefix))
        assert listed_here == sorted(
            f"{prefix}{path.stem}" for path in (ROOT / folder).glob("*.py") if path.name != "__init__.py"
        )
    assert set(decide) <= modules_of("layoutproof.lowering.compare.compare_programs")


def test_the_proof_of_a_graph_knows_no_plan() -> None:
    """What decides of a graph shares no code with what proposes layouts for it."""
    proposing = ("planning", "flow", "rewrite", "tuning")
    assert not any(
        module.startswith(f"layoutproof.graph.{name}") for module in modules_of(PLANNED) for name in proposing
    )


def test_the_checker_reaches_no_pass_and_no_certificate() -> None:
    """What decides shares no code with what proposes or with the search for counterexamples, and does not ask what was
    written down.
    """
    assert not any(
        f".{room}." in module for module in modules_of(CHECKER) for room in ("lowering", "certificate", "replay")
    )


@pytest.mark.parametrize("clause", Clause)
def test_clauses(clause: Clause) -> None:
    """Each clause is in the table, with files that are there, one of which has a function that checks it."""
    row = next(line for line in PAGE.splitlines() if line.startswith("|") and f"`{clause.value}`" in line)
    files = [ROOT / "verify" / name for name in re.findall(r"`([\w/]+\.py)`", row.split("|")[2])]
    assert files and all(path.is_file() for path in files)
    checking = [resolve_name(f"layoutproof.verify.{name}") for name in PERMISSIVE[clause]]
    assert any(source_of(function.__module__) in files for function in checking)


def test_the_guide_leads_to_code() -> None:
    """Each row of the table of questions in CONTRIBUTING.md names files, and what it says stands in them does."""
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Finding your way")[2]
    rows = re.findall(r"`([\w/]+\.py)`: `(\w+)`", guide.partition("###")[0])
    assert len(rows) >= 10
    for path, name in rows:
        pattern = rf"^(?:(?:def|class) {name}\b|{name}\b.* = )"
        assert re.search(pattern, file(ROOT / path).text, re.MULTILINE), (path, name)


def test_named_files_are_there() -> None:
    """Every path in the page leads to a file or a folder, from the top or from a folder that the page describes."""
    named = re.findall(r"`([\w.]+/[\w/.]*)`", PAGE)
    assert "verify/checker.py" in named and "values/prover.py" in named
    for name in named:
        places = [ROOT / name, *(ROOT / top / name for top in ("verify", "lowering", "studies", "cli/gate"))]
        assert any(place.exists() or place.with_suffix(".py").exists() for place in places), name


def test_lines_of_the_kernel_are_those_that_documents_say() -> None:
    """Each module is in one row of the table, with its lines, and the sum is what other pages say, rounded."""
    lines = {path.stem: len(path.read_text(encoding="utf-8").splitlines()) for path in KERNEL.glob("*.py")}
    page, trust, readme = (
        (ROOT / name).read_text(encoding="utf-8")
        for name in ("docs/explanation/kernel.md", "docs/explanation/trust.md", "README.md")
    )
    table = page.partition("<!-- lines of the kernel -->")[2].partition("<!-- end of lines -->")[0]
    rows = re.findall(r"^\| ([\d,]+) \| ([`\w, ]+) \|", table, re.MULTILINE)
    named = [[name.strip("` ") for name in names.split(",")] for _, names in rows]
    assert sorted(name for names in named for name in names) == sorted(lines)
    for (said, _), names in zip(rows, named, strict=True):
        assert abs(int(said.replace(",", "")) / sum(lines[name] for name in names) - 1) < 0.05, names
    total = sum(lines.values())
    assert abs(int(re.findall(r"It has ([\d,]+); without comments", page)[0].replace(",", "")) / total - 1) < 0.05
    for text in (trust, readme):
        said = re.findall(r"(?:a program of its own: |trust.md\) of )([\d,]+) lines", text)
        assert [abs(int(each.replace(",", "")) - total) <= 100 for each in said] == [True]
