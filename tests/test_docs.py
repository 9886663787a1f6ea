"""The documentation is true: commands print what it shows, its Python runs, links lead somewhere, tables follow the
code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from docs.code_pages import write_pages
from docs.generate import PAGES
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

import layoutproof
from layoutproof import te
from layoutproof.ir.script.reader import loads_module
from tests.cli.calling import Caller
from tests.conftest import Golden
from tests.pages import (
    Block,
    Session,
    agrees,
    anchors,
    blocks,
    like_a_checkout,
    links,
    run_command,
    run_script,
    sessions,
    with_printed,
)
from tests.tree import ROOT, code_files

pytestmark = pytest.mark.pages

DOCS = ROOT / "docs"
COMMANDS = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
CODES = DOCS / "codes"  # made when the site is built
NOTEBOOKS = DOCS / "notebooks"  # likewise: a page for each notebook
FILES = sorted(path for path in DOCS.rglob("*.md") if not {"_build", "codes", "notebooks"} & set(path.parts))
NAMES = [path.relative_to(DOCS).as_posix() for path in FILES]

# Pages that one reader follows in one folder, in this order.
TUTORIAL = [f"tutorial/{name}.md" for name in ("index", "map", "schedule", "failure", "padding", "gate", "ci")]
ALONE = [name for name in NAMES if name not in TUTORIAL]
# Commands of other programs that a page may show.
OTHERS = ("pytest", "git", "pip", "make", "pre-commit", "python", "dask")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Caller:
    """A function that runs the command line in this process."""
    return Caller(capsys)


@pytest.fixture
def reader(call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Reader:
    """A reader who follows pages in a folder of their own, with proofs of their own only."""
    like_a_checkout(tmp_path, monkeypatch)
    monkeypatch.setenv("LAYOUTPROOF_PROOF_CACHE", str(tmp_path / ".cache" / "proofs.sqlite"))
    return Reader(call, bool(request.config.getoption("--update-golden")))


class Reader:
    """Does what a page says, block by block; with `update` the page is made to show what was printed."""

    def __init__(self, call: Caller, update: bool) -> None:
        self.call = call
        self.update = update
        self.printed = ""

    def follow(self, path: Path) -> None:
        """Everything on one page."""
        for block in blocks(path.read_text(encoding="utf-8")):
            if block.file is not None:
                Path(block.file).parent.mkdir(parents=True, exist_ok=True)
                Path(block.file).write_text(block.text, encoding="utf-8")
            if block.language == "console":
                for session in sessions(block):
                    self._session(path, session)
            elif block.language == "python":
                self._python(path, block)
            elif block.prints:
                assert agrees(block.text, self.printed), f"{path}:{block.line}: the script prints\n{self.printed}"

    def _session(self, path: Path, session: Session) -> None:
        program, _, rest = session.command.partition(" ")
        if program == "cat":
            Path(rest).write_text(session.shown, encoding="utf-8")
        elif program == "layoutproof":
            printed = run_command(session.command, session.code, self.call)
            if agrees(session.shown, printed):
                return
            assert self.update, f"{path}: $ {session.command}\nprints\n{printed}"
            path.write_text(with_printed(path.read_text(encoding="utf-8"), session, printed), encoding="utf-8")
        else:
            assert program in OTHERS, session.command

    def _python(self, path: Path, block: Block) -> None:
        if re.search(r"^@T\.prim_func", block.text, re.MULTILINE) and block.file is not None:
            assert loads_module(block.text, block.file).functions
        else:
            self.printed = run_script(block.text)


def test_tutorial(reader: Reader) -> None:
    """Who follows the tutorial from its first page to its last gets what it shows."""
    for name in TUTORIAL:
        reader.follow(DOCS / name)


@pytest.mark.parametrize("name", ALONE)
def test_page(reader: Reader, name: str) -> None:
    """Who begins with this page, in the repository's folder, gets what it shows."""
    reader.follow(DOCS / name)


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of codes as the site has them."""
    folder = tmp_path_factory.mktemp("codes")
    write_pages(folder)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str, codes: Path) -> None:
    """Every link names a file of ours that is there, and a heading in it if it names one."""
    page = DOCS / name
    for file, heading in links(page):
        target = (page.parent / file).resolve() if file else page
        target = codes / target.name if target.parent == CODES else target
        target = target.with_suffix(".ipynb") if target.parent == NOTEBOOKS else target
        assert target.exists(), file
        assert not heading or heading in anchors(target), f"{file}#{heading}"


@pytest.mark.parametrize("name", TUTORIAL)
def test_codes_are_those_shown(name: str) -> None:
    """A code that the tutorial speaks of is one that the reader has seen in the output on that page."""
    text = (DOCS / name).read_text(encoding="utf-8")
    shown = {
        code
        for block in blocks(text)
        if block.language == "console"
        for code in re.findall(r"error\[(LP\d+)\]", block.text)
    }
    assert set(re.findall(r"LP\d{3}", text)) == shown


def test_environment_variables_are_listed() -> None:
    """Each variable of ours that the code looks at stands on the page of environment variables."""
    text = (DOCS / "reference" / "environment.md").read_text(encoding="utf-8")
    read = {
        name
        for path in code_files()
        for name in re.findall(r"\bLAYOUTPROOF_[A-Z_]+\b", path.read_text(encoding="utf-8"))
    }
    assert read and {name for name in read if f"`{name}`" not in text} == set()


def test_every_page_is_in_the_table_of_contents() -> None:
    """Each page is named in a table of contents, of the first page or of one that is named there."""
    named = {"index"}
    for name in NAMES:
        for block in blocks((DOCS / name).read_text(encoding="utf-8")):
            if block.language == "{toctree}":
                folder = Path(name).parent
                named |= {
                    (folder / line).as_posix() for line in block.text.split("\n") if line and not line.startswith(":")
                }
    made = {f"notebooks/{path.stem}" for path in NOTEBOOKS.glob("*.ipynb")}
    assert {*(name.removesuffix(".md") for name in NAMES), "codes/index", *made} == named


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path: Path) -> None:
    """A notebook is kept as it is before a run: `make docs` runs it, and what it shows is that of today."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 5 and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.parametrize("name", PAGES)
def test_tables_are_those_of_the_code(name: str, request: pytest.FixtureRequest) -> None:
    """Pages made from commands and functions are what `python -m docs.generate` writes now."""
    Golden(ROOT, bool(request.config.getoption("--update-golden")))(name, PAGES[name]())


def test_python_reference_is_complete() -> None:
    """Each public name of the package stands on the page of the Python API, and `te` is documented whole."""
    text = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    assert [name for name in layoutproof.__all__ if not re.search(rf"layoutproof\.{name}\b", text)] == []
    assert "automodule:: layoutproof.te" in text
    assert [name for name in te.__all__ if not getattr(te, name).__doc__] == []


SCHEMAS: Mapping[str, Any] = {
    path.name: json.loads(path.read_text(encoding="utf-8")) for path in (DOCS / "schemas").glob("*.json")
}


def conforms(value: Any, name: str) -> None:
    """Fail unless a value has the form that a schema of the documentation says."""
    registry: Registry[Any] = Registry().with_resources((n, Resource.from_contents(s)) for n, s in SCHEMAS.items())
    Draft202012Validator(SCHEMAS[name], registry=registry).validate(value)


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_schemas(name: str) -> None:
    """Each schema is one, and allows no key that it does not describe."""
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["additionalProperties"] is False


def test_commands_with_json_are_listed() -> None:
    """The page of JSON names every command that can print it, and no other."""
    page = (DOCS / "reference" / "json.md").read_text(encoding="utf-8").partition("## ")[0]
    named = {
        name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`([\w -]+)`", row)
    }
    sections = re.findall(r"^##+ `?layoutproof ([\w -]+?)`?$(.*?)(?=^##+ |\Z)", COMMANDS, re.MULTILINE | re.DOTALL)
    assert named == {name for name, text in sections if re.search(r"--format \[[^]]*json", text)}


@pytest.mark.parametrize("shape", ["14", "n"])
@pytest.mark.parametrize("text", ["lambda i: [i//4, i%4]", "lambda i: [i//4]", "lambda i: [i*i % 7, i]"])
def test_map_conforms_to_its_schema(call: Caller, text: str, shape: str) -> None:
    """What `map` prints as JSON has the form that the documentation says."""
    conforms(call("map", text, "--shape", shape, "--format", "json").json(), "map.schema.json")


@pytest.mark.parametrize(
    ("after", "options"),
    [("relu_packed", ()), ("relu_wrong", ("--layout", "B=NHWC->NCHW4c")), ("relu_wrong", ()), ("row_sum", ())],
)
def test_compare_conforms_to_its_schema(reader: Reader, call: Caller, after: str, options: tuple[str, ...]) -> None:
    """What `compare` prints as JSON has the form that the documentation says, whatever the verdict."""
    found = call(
        "compare", "examples/programs/relu.py", f"examples/programs/{after}.py", *options, "--format", "json"
    ).json()
    assert found["kind"] == "comparison"
    conforms(found, "check.schema.json")


@pytest.mark.parametrize("options", [(), ("--stable",)])
def test_check_conforms_to_its_schema(reader: Reader, call: Caller, options: tuple[str, ...]) -> None:
    """Each outcome that `check` prints as JSON has the form that the documentation says, whatever the item and the
    verdict.
    """
    reader.follow(DOCS / "reference" / "gates.md")
    Path("row_sum.py").write_text(Path("examples/programs/row_sum.py").read_text(), encoding="utf-8")
    good = json.loads(Path("examples/row_sum.json").read_text())
    wrong = [
        [name, {**arguments, **({"pad_value": 1.0} if "pad_value" in arguments else {})}] for name, arguments in good
    ]
    lines = [json.dumps(trace) for trace in (good, wrong, [["split", {"block": "none"}]], "no trace")]
    Path("row_sum.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    paths = (
        "gates.py",
        "row_sum.py",
        "proofs/refuted/order_interchanged.py",
        "proofs/refuted/observable_last_element.py",
    )
    printed = call("check", *paths, "--format", "json", "--workers", "1", *options).out
    outcomes = [json.loads(line) for line in printed.splitlines()]
    assert {outcome["verdict"] for outcome in outcomes} >= {"proved", "refuted", None}
    assert {outcome["kind"] for outcome in outcomes} == {"gate", "trace", "rewrite"}
    for outcome in outcomes:
        conforms(outcome, "check.schema.json")
