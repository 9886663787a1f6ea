"""Gates are found however they are made; what looks like one and is none is told, and never passes for one."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.cli.calling import Caller, Outcome
from tests.shares import one_in

from layoutproof.cli import codes
from layoutproof.cli.gate.check_items import find_items
from layoutproof.cli.gate.gate_sites import gate_sites

BAD = "lp.check_map(lambda i: [i // 4], (14,))"
HEAD = "import layoutproof as lp\n"
BODY = "def bad():\n    return {bad}\n"
INNER = "    @lp.gate\n    def bad():\n        return {bad}\n"
# Each makes one gate called `bad` by way of which a wrong map would pass if it were not found.
ONE_GATE: Mapping[str, str] = {
    "decorator": "@lp.gate\n" + BODY,
    "decorator_with_options": "exact = lp.gate(strictness='ieee')\n@exact\n" + BODY,
    "decorator_in_a_table": "kinds = {{'x': lp.gate(strictness='ieee')}}\n@kinds['x']\n" + BODY,
    "attribute": "class ours: pass\nours.exact = lp.gate\n@ours.exact\n" + BODY,
    "partial": "from functools import partial\np = partial(lp.gate, strictness='ieee')\n@p()\ndef bad():\n"
    "    return {bad}\n",
    "call": BODY + "bad = lp.gate(bad)\n",
    "call_with_options": BODY + "bad = lp.gate(strictness='ieee')(bad)\n",
    "call_under_another_name": BODY + "other = lp.gate(bad)\n",
    "call_without_a_name": BODY + "lp.gate(bad)\n",
    "map": BODY + "ALL = list(map(lp.gate, [bad]))\n",
    "getattr": BODY + "bad = getattr(lp, 'gate')(bad)\n",
    "getattr_as_decorator": "@getattr(lp, 'gate')\n" + BODY,
    "dictionary": "@vars(lp)['gate']\n" + BODY,
    "imported_as": "from layoutproof import gate as g\n@g\n" + BODY,
    "star": "from layoutproof import *\n@gate\n" + BODY,
    "import_module": "import importlib\nx = importlib.import_module('layoutproof')\n@x.gate\n" + BODY,
    "dunder_import": "@__import__('layoutproof').gate\n" + BODY,
    "class_itself": "from layoutproof.lowering.gates import Gate\n"
    "bad = Gate(lambda: {bad}, None, None, False, 'checker')\n",
    "class_body": "class Layouts:\n" + INNER,
    "static_method": "class Layouts:\n    @staticmethod\n" + INNER,
    "loop": "for name in ['bad']:\n    def f():\n        return {bad}\n    f.__name__ = f.__qualname__ = name\n"
    "    lp.gate(f)\n",
    "loop_of_decorators": "for d in (lp.gate,):\n    @d\n    def bad():\n        return {bad}\n",
    "helper": "def make():\n" + INNER + "    return bad\nx = make()\n",
    "helper_of_helper": "def make(f):\n    return lp.gate(f)\ndef twice(f):\n    return make(f)\n@twice\ndef bad():\n"
    "    return {bad}\n",
    "lambda": "bad = lp.gate(lambda: {bad})\n",
    "condition": "import sys\nif sys:\n" + INNER,
    "try": "try:\n    from nowhere import gate as g\nexcept ImportError:\n    g = lp.gate\n@g\n" + BODY,
    "deleted": "@lp.gate\n" + BODY + "del bad\n",
    "walrus": "@(d := lp.gate)\n" + BODY,
    "globals": "def f():\n    return {bad}\nglobals()['bad'] = lp.gate(f)\n",
    "exec": "exec('''@lp.gate\n" + BODY + "''')",
}


def check(folder: Path, call: Caller, files: Mapping[str, str], *options: str) -> Outcome:
    """Write files into a folder and check all of it."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return call("check", ".", "--workers", "1", "--no-cache", *options)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@one_in(4)
@pytest.mark.parametrize("name", ONE_GATE)
def test_a_gate_is_found_however_it_is_made(name: str, here: Path, call: Caller) -> None:
    """The wrong map fails the run, in a folder that has other files."""
    done = check(here, call, {"all.py": HEAD + ONE_GATE[name].format(bad=BAD), "other.py": "x = 1\n"})
    assert done.code == 1, done.out + done.err
    assert "refuted" in done.out and "error[LP210]" in done.out


REEXPORTED = {
    "name": ("from layoutproof import gate as proved\n", "from ours import proved\n@proved\n"),
    "maker": ("import layoutproof as lp\nexact = lp.gate(strictness='ieee')\n", "from ours import exact\n@exact\n"),
    "module": ("import layoutproof as lp\nexact = lp.gate(strictness='ieee')\n", "import ours\n@ours.exact\n"),
    "module_as": ("from layoutproof import gate as proved\n", "import ours as o\n@o.proved\n"),
    "star": ("from layoutproof import gate as proved\n", "from ours import *\n@proved\n"),
    "function": (
        "import layoutproof as lp\ndef proved(f):\n    return lp.gate(f)\n",
        "from ours import proved\n@proved\n",
    ),
}


@pytest.mark.parametrize("way", REEXPORTED)
def test_a_gate_that_another_module_hands_on(way: str, here: Path, call: Caller) -> None:
    """A module beside the file, or above it, has `gate` under another name; the file itself never says layoutproof."""
    helper, use = REEXPORTED[way]
    gate = f"{use}def bad():\n    from maps import bad\n    return bad()\n"
    maps = f"{HEAD}def bad():\n    return {BAD}\n"
    done = check(here, call, {"ours.py": helper, "gates.py": gate, "maps.py": maps})
    assert done.code == 1 and "gates.py::bad: refuted" in done.out, done.out + done.err
    relative = gate.replace("from ours", "from .ours").replace("import ours", "from . import ours")
    assert gate_sites(ast.parse(relative), here / "gates.py").possible


def test_gates_of_one_name_in_a_loop_are_an_error_or_have_names(here: Path, call: Caller) -> None:
    """Gates that replace one another cannot be told apart, which is said; with a variable each they are all judged."""
    body = "    def g():\n        return lp.check_map(lambda i: [i // n, i % n], (14,))\n"
    loop = f"{HEAD}for n in (4, 7):\n    @lp.gate\n{body}"
    done = check(here, call, {"gates.py": loop})
    assert done.code == 2 and "two gates are called g" in done.out + done.err
    made = f"{HEAD}def make(n):\n    @lp.gate\n{body}    return g\na, b = make(4), make(7)\n"
    done = check(here, call, {"gates.py": made})
    assert (done.code, done.out.splitlines()[:2]) == (0, ["proved   gates.py::a", "proved   gates.py::b"])
    named = f"{HEAD}for n in (4, 7):\n{body}    globals()[f'rows_{{n}}'] = lp.gate(g)\n"
    done = check(here, call, {"gates.py": named})
    assert (done.code, done.out.splitlines()[:2]) == (0, ["proved   gates.py::rows_4", "proved   gates.py::rows_7"])


NEVER_MADE = {
    "type_checking": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n" + INNER,
    "call_under_a_condition": BODY + "if not lp:\n    bad = lp.gate(bad)\n",
    "empty_loop": "for n in ():\n" + INNER,
    "after_main": "def main():\n" + INNER + "if __name__ == '__main__':\n    main()\n",
    "a_gate_that_is_none": "gate = lambda f: f\n@gate\n" + BODY,
    "renamed": "@lp.gate\n" + BODY + "bad = 5\n",
    "decorated_further": "def outer(f):\n    return lambda: f()\n@outer\n@lp.gate\n" + BODY,
}


@pytest.mark.parametrize("name", NEVER_MADE)
def test_a_gate_that_is_never_made_is_an_error(name: str, here: Path, call: Caller) -> None:
    """What the text says is a gate has to be one when the file is loaded, or the run fails, with its line."""
    good = "@lp.gate\ndef good():\n    return lp.check_map(lambda i: [i], (14,))\n"
    done = check(here, call, {"gates.py": HEAD + good + NEVER_MADE[name].format(bad=BAD)})
    told = done.out + done.err
    assert done.code == 2 and f"error[{codes.GATE_FILE}]" in told and "gate bad" in told, told


def test_what_is_passed_over_is_said(here: Path, call: Caller) -> None:
    """Files that mention layoutproof and make no gate, and folders of built files with such, are named on standard
    error.
    """
    gate = f"{HEAD}@lp.gate\ndef good():\n    return lp.check_map(lambda i: [i], (14,))\n"
    files = {
        "gates.py": gate,
        "late.py": f"{HEAD}def make():\n    @lp.gate\n    def g():\n        return {BAD}\n    return g\n",
        "maps.py": f"{HEAD}MAP = lp.IndexMap\n",
        "old.py": "print 'not this Python'\n",
        "plain.py": "x = 1\n",
        "build/lib/gates.py": gate,
        "dist/notes.py": "x = 1\n",
        "lone.json": '[["split", {"block": "C", "loop": "i", "factors": [4, 4]}]]',
        "data.json": "[[1, 2]]",
    }
    done = check(here, call, files)
    assert done.code == 0, done.out + done.err
    for words in (
        "late.py:4: make() makes the gate g, and is not called",
        "maps.py mentions layoutproof, and makes no gate",
        "old.py is not Python",
        "build is left out, as a folder of built files, and has build/lib/gates.py",
        "lone.json has schedules, and there is no program lone.py",
    ):
        assert f"note: {words}" in done.err, done.err
    assert len(done.err.splitlines()) == 5 and "plain" not in done.err
    assert call("check", "build", "--no-cache").code == 0


def test_a_folder_without_a_gate_does_not_pass(here: Path, call: Caller) -> None:
    """Nothing to check is wrong input, and what was passed over is said."""
    done = check(here, call, {"maps.py": f"{HEAD}MAP = lp.IndexMap\n"})
    assert done.code == 2 and codes.NOTHING_TO_CHECK in done.err
    assert "note: maps.py mentions layoutproof, and makes no gate" in done.err


def test_links_that_lead_nowhere_are_errors(here: Path, call: Caller) -> None:
    """A link to a file of gates that is gone, or to itself, fails the run."""
    gate = f"{HEAD}@lp.gate\ndef good():\n    return lp.check_map(lambda i: [i], (14,))\n"
    (here / "gone.py").symlink_to("nowhere.py")
    (here / "loop.py").symlink_to("loop.py")
    done = check(here, call, {"gates.py": gate})
    assert done.code == 2 and "gone.py: error" in done.out and "loop.py: error" in done.out


def test_a_name_that_is_no_text(here: Path, call: Caller) -> None:
    """A file whose name is not UTF-8 is checked as any other."""
    (here / "g\udcff.py").write_text(HEAD + ONE_GATE["decorator"].format(bad=BAD))
    done = call("check", ".", "--workers", "1", "--no-cache")
    assert done.code == 1 and "refuted" in done.out


def test_files_that_make_no_gate_are_not_run(here: Path) -> None:
    """Loading a file runs it, so what only looks similar is not loaded."""
    exits = "raise SystemExit(1)\n"
    files = {
        "model.py": f"import torch\nclass M:\n    def f(self, x):\n        return self.gate(x)\n{exits}",
        "uses.py": f"{HEAD}class M:\n    def f(self, x):\n        return self.gate(x)\n{exits}",
        "options.py": f"{HEAD}parser.add_argument('gate')\n{exits}",
        "good.py": f"{HEAD}@lp.gate\ndef blocked():\n    return lp.check_map(lambda i: [i], (14,))\n",
        "runs.py": f"from good import blocked\nblocked()\n{exits}",
    }
    for name, text in files.items():
        (here / name).write_text(text)
    assert [item.name for item in find_items([Path()])] == ["good.py::blocked"]


@pytest.mark.parametrize(("expected", "code"), [("0", 0), ("1", 0), ("2", 0), ("3", 2)])
def test_fewer_gates_than_expected_fail(expected: str, code: int, here: Path, call: Caller) -> None:
    """`--expect N` fails a run with fewer items, in every report; one with a wrong item fails as that."""
    gate = "@lp.gate\ndef {}():\n    return lp.check_map(lambda i: [i], (14,))\n"
    files = {"gates.py": HEAD + gate.format("a") + gate.format("b")}
    done = check(here, call, files, "--expect", expected, "--report", "json=found.jsonl", "--report", "junit=found.xml")
    assert done.code == code, done.out + done.err
    last = json.loads((here / "found.jsonl").read_text().splitlines()[-1])
    assert (last["verdict"] is None) == (code == 2)
    assert ("LP519" in done.out) == ("LP519" in (here / "found.xml").read_text()) == (code == 2)


def test_expected_gates_are_those_of_all_shards(here: Path, call: Caller) -> None:
    """A part of a run counts the items of the whole."""
    gate = "@lp.gate\ndef {}():\n    return lp.check_map(lambda i: [i], (14,))\n"
    files = {"gates.py": HEAD + gate.format("a") + gate.format("b")}
    assert check(here, call, files, "--expect", "2", "--shard", "2/2").code == 0
    assert check(here, call, files, "--expect", "3", "--shard", "2/2").code == 2
    assert call("check", "gates.py", "gates.py", "--no-cache", "--workers", "1", "--expect", "3").code == 2
