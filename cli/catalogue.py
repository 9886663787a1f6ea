"""Every code with its documentation.

A table `MEANINGS` in `codes.py`, or beside the rules that it names, has one sentence for each code. The page
`meanings/LPnnn.md` in the table's folder, read on demand, says why the code matters, has an example, which the tests
run, and says what to do. Nothing here loads a solver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

LAYERS: Mapping[str, str] = {
    "1": "reading programs and maps",
    "2": "what is proved",
    "3": "transforms and schedules",
    "4": "code generation and running",
    "5": "the command line",
    "6": "graphs and plans",
    "7": "studies",
}

# By layer, in the order of their codes. A layer is loaded when one of its codes is asked for.
_TABLES: Mapping[str, tuple[str, ...]] = {
    "1": ("layoutproof.ir.codes", "layoutproof.ir.wellformed"),
    "2": ("layoutproof.verify.verdict.codes",),
    "3": ("layoutproof.lowering.codes",),
    "4": ("layoutproof.lowering.codegen.codes",),
    "5": ("layoutproof.cli.codes",),
    "6": ("layoutproof.graph.codes", "layoutproof.importers.mlir.codes"),
    "7": ("layoutproof.studies.codes",),
}
_EXAMPLE = "## Example"
_REMEDY = "## What to do"


@dataclass(frozen=True, slots=True)
class Meaning:
    """The documentation of one code, as Markdown.

    `what`: one sentence or two; `why`: why it matters; `example`: what raises it, or why that cannot be shown; `shows`:
    the message of the example; `remedy`: what to do. A code without a page has `what` alone.
    """

    code: str
    what: str
    why: str = ""
    example: str = ""
    remedy: str = ""

    @staticmethod
    def read(code: str, what: str, page: str) -> Meaning:
        """Split a page at the headings `## Example` and `## What to do`. Raises ValueError without these."""
        why, example_mark, rest = page.partition(f"{_EXAMPLE}\n")
        example, remedy_mark, remedy = rest.partition(f"{_REMEDY}\n")
        if not example_mark or not remedy_mark:
            raise ValueError(f"the page of {code} needs the headings {_EXAMPLE!r} and {_REMEDY!r}, in this order")
        return Meaning(code, what, why.strip(), example.strip(), remedy.strip())

    @property
    def layer(self) -> str:
        """What the code's layer is about."""
        return LAYERS[self.code[2]]

    @property
    def shows(self) -> str:
        """The first output line of the example that names the code; empty if there is none."""
        return next((line.strip() for line in self.example.splitlines() if self.code in line), "")

    def to_dict(self) -> dict[str, str]:
        """As `layoutproof explain --format json` prints it."""
        return {
            "code": self.code,
            "layer": self.layer,
            "what": self.what,
            "why": self.why,
            "example": self.example,
            "shows": self.shows,
            "remedy": self.remedy,
        }


@cache
def sentences(layer: str) -> Mapping[str, tuple[str, Path]]:
    """By code of a layer, in order: its sentence, and the path of its page, which may be missing."""
    return dict(sorted(entry for name in _TABLES[layer] for entry in _table(name).items()))


@cache
def _table(name: str) -> Mapping[str, tuple[str, Path]]:
    """The same for one table."""
    table = import_module(name)
    folder = Path(str(table.__file__)).parent / "meanings"
    return {code: (what, folder / f"{code}.md") for code, what in table.MEANINGS.items()}


def all_codes() -> tuple[str, ...]:
    """Every code, in order."""
    return tuple(code for layer in _TABLES for code in sentences(layer))


def sentence_of(code: str) -> str:
    """The sentence of a code. Raises KeyError for an unknown code."""
    return _entry(code)[0]


def meaning_of(code: str) -> Meaning:
    """The documentation of a code. Raises KeyError for an unknown code."""
    what, path = _entry(code)
    if not path.is_file():
        return Meaning(code, what)
    return Meaning.read(code, what, path.read_text(encoding="utf-8"))


def has_code(code: str) -> bool:
    """Whether there is such a code. Tables are loaded until one has it."""
    return any(code in _table(name) for name in _TABLES.get(code[2:3], ()))


def _entry(code: str) -> tuple[str, Path]:
    for name in _TABLES.get(code[2:3], ()):
        if code in _table(name):
            return _table(name)[code]
    raise KeyError(code)
