"""The language server, driven by a client over pipes: diagnostics with exact ranges, hovers, remedies, cancelling."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from lsprotocol import types
from tests.cli.editor.client import applied, driven, editor
from tests.shares import one_in
from tests.tree import ROOT

PROGRAM = (ROOT / "examples" / "programs" / "row_sum.py").read_text(encoding="utf-8")
STEP = '  ["transform_layout", {{"block": "sum", "buffer": "A", "index_map": "{}", "pad_value": {}}}]'
FOURS = "lambda i, j: [i, j//4, j%4]"
REMOVED = '  ["remove_branching_through_overcompute", {"block": "sum"}]'
BUFFER = '  ["sequential_buffer_access", {"block": "sum", "buffer": "A"}]'
GATES = """import layoutproof as lp


@lp.gate
def fours():
    return lp.check_map({}, shape=(16, 14))
"""


def trace(*steps: str) -> str:
    return "[\n" + ",\n".join(steps) + "\n]\n"


def step(index_map: str = FOURS, pad: str = "0.0") -> str:
    return STEP.format(index_map, pad)


def under(text: str, range: types.Range) -> str:
    """The text of a range in one line."""
    assert range.start.line == range.end.line
    return text.split("\n")[range.start.line][range.start.character : range.end.character]


def files(folder: Path, text: str) -> Path:
    (folder / "row_sum.py").write_text(PROGRAM, encoding="utf-8")
    path = folder / "row_sum.json"
    path.write_text(text, encoding="utf-8")
    return path


@one_in(10)
def test_traces(tmp_path: Path) -> None:
    """A schedule's mistakes stand at their characters while it is typed, and the refused step at its own line."""
    path = files(tmp_path, trace(step()))

    async def script() -> None:
        async with editor(tmp_path) as shown:
            shown.open(path)
            await shown.codes(path)
            broken = trace(step())[:-3]
            shown.change(path, broken)
            (found,) = await shown.codes(path, "LP328")
            assert found.range.start == types.Position(1, len(step()))
            for changed, code, what in (
                (step("lambda i, j: [i, j//4, k%4]"), "LP116", "k"),
                (step().replace('"sum"', '"summ"'), "LP303", '"summ"'),
                (step().replace('"A"', '"AA"'), "LP301", '"AA"'),
                (step().replace("transform_layout", "transform_layuot"), "LP327", '"transform_layuot"'),
                (step().replace("pad_value", "padvalue"), "LP311", '"padvalue"'),
                (step().replace('"A"', "3"), "LP313", "3"),
                (step("lambda i, j: [i, j//4]"), "LP314", step("lambda i, j: [i, j//4]").strip()),
            ):
                shown.change(path, trace(changed))
                (found,) = await shown.codes(path, code)
                assert under(trace(changed), found.range) == what
                assert found.severity is types.DiagnosticSeverity.Error
            text = trace(step(pad="1.0"), BUFFER, REMOVED)
            shown.change(path, text)
            (found,) = await shown.codes(path, "LP373")
            assert under(text, found.range) == REMOVED.strip()
            (related, *_) = found.related_information or ()
            assert related.location.uri.endswith("/row_sum.py")

    driven(script())


@one_in(10)
def test_remedies_of_traces(tmp_path: Path) -> None:
    """A remedy, put into the text, leaves nothing to say: a name that was meant, a pad value that is proved."""
    path = files(tmp_path, "[]")

    async def script() -> None:
        async with editor(tmp_path) as shown:
            shown.open(path)
            await shown.codes(path, "LP557")
            for text, code in (
                (trace(step().replace('"sum"', '"summ"')), "LP303"),
                (trace(step().replace("transform_layout", "transform_layuot")), "LP327"),
                (trace(step().replace("pad_value", "padvalue")), "LP311"),
                (trace(step(pad="1.0"), BUFFER, REMOVED), "LP373"),
                (trace(step().replace(', "pad_value": 0.0', ""), BUFFER, REMOVED), "LP374"),
            ):
                shown.change(path, text)
                (found,) = await shown.codes(path, code)
                mended = applied(text, (await shown.actions(path, found.range))[0])
                assert mended != text
                shown.change(path, mended)
                await shown.codes(path)

    driven(script())


@one_in(4)
def test_gates_and_maps(tmp_path: Path) -> None:
    """A gate's refused map stands at the map, one that cannot be read at its character, and broken Python too."""
    path = tmp_path / "gates.py"

    async def script() -> None:
        async with editor(tmp_path) as shown:
            text = GATES.format('"lambda i, j: [i, j // 4]"')
            shown.open(path, text)  # it is not written yet
            (found,) = await shown.codes(path, "LP210")
            assert under(text, found.range) == "lambda i, j: [i, j // 4]" and "both go to" in found.message
            path.touch()
            shown.change(path, text)
            await shown.codes(path, "LP210", "LP210")  # of the gate as well
            text = GATES.format('"lambda i, j: [i, k // 4]"')
            shown.change(path, text)
            found, _ = await shown.codes(path, "LP116", "LP116")
            assert under(text, found.range) == "k"
            text = GATES.format("lambda i, j: [i, j // 4, j % 4]")
            shown.change(path, text)
            await shown.codes(path)
            shown.change(path, text.replace("(16, 14))", "(16, 14)"))
            (broken,) = await shown.codes(path, "LP555")
            assert broken.range.start.line == 5
            shown.change(path, "import layoutproof as lp\n\n\n@lp.gate\ndef f():\n    return 1 // 0\n")
            (raised,) = await shown.codes(path, "LP556")
            assert raised.range.start.line == 5 and "ZeroDivisionError" in raised.message

    driven(script())


@one_in(4)
def test_scripts(tmp_path: Path) -> None:
    """A program is checked by itself: an unknown name, an access out of bounds; mended, it has no diagnostics."""
    path = tmp_path / "row_sum.py"
    path.write_text(PROGRAM, encoding="utf-8")

    async def script() -> None:
        async with editor(tmp_path) as shown:
            shown.open(path)
            await shown.codes(path)
            text = PROGRAM.replace("A[vi, vj]", "A[vi, vk]")
            shown.change(path, text)
            (found,) = await shown.codes(path, "LP116")
            assert under(text, found.range) == "vk"
            text = PROGRAM.replace("A[vi, vj]", "A[vi, vj + 1]")
            shown.change(path, text)
            *_, found = await shown.codes(path, "LP215")
            assert "stays within" in found.message and found.range.start.line == 11
            shown.change(path, PROGRAM)
            await shown.codes(path)

    driven(script())


@one_in(9)
def test_schedules_beside_a_program(tmp_path: Path) -> None:
    """A change of the program that makes its schedule illegal is told in the program."""
    path = files(tmp_path, trace(step(), BUFFER, REMOVED)).with_suffix(".py")

    async def script() -> None:
        async with editor(tmp_path) as shown:
            shown.open(path)
            await shown.codes(path)
            text = PROGRAM.replace("B[vi] + A", "B[vi] * A").replace("float32(0)", "float32(1)")
            shown.change(path, text)
            await shown.codes(path, "LP373")

    driven(script())


@one_in(10)
def test_hover(tmp_path: Path) -> None:
    """A map shows its padding predicate and its picture, to a client that takes markdown; a buffer its layout."""
    path = files(tmp_path, trace(step()))
    gates = tmp_path / "gates.py"
    text = GATES.format("lambda i, j: [i, j // 4, j % 4]")

    async def script() -> None:
        async with editor(tmp_path) as shown:
            shown.open(path)
            told = await shown.hover(path, 1, step().index("lambda") + 3)
            assert re.search(r"padding where +4\*p1 \+ p2 >= m", told), told
            assert "drawn for m = 6" in told
            (data,) = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", told)
            picture = ElementTree.fromstring(base64.b64decode(data))
            assert picture.tag.endswith("svg") and len(list(picture.iter())) > 50
            shown.open(gates, text)
            line = text.split("\n")[5]
            told = await shown.hover(gates, 5, line.index("j % 4"))
            assert re.search(r"physical shape +16, 4, 4", told) and "data:image" in told
            assert await shown.hover(gates, 0, 2) == ""
            shown.open(tmp_path / "row_sum.py")
            told = await shown.hover(tmp_path / "row_sum.py", 3, 12)
            assert "A: float32 [16, m]" in told

    async def plain() -> None:
        async with editor(tmp_path, "emacs") as shown:
            shown.open(gates, text)
            told = await shown.hover(gates, 5, text.split("\n")[5].index("j % 4"))
            assert "padding where" in told

    driven(script())
    driven(plain())


@one_in(7)
def test_cancelling(tmp_path: Path) -> None:
    """A check that takes long ends when the text changes, with what it has started, and the new text is checked."""
    path, started = tmp_path / "gates.py", tmp_path / "started"
    slow = (
        "import os, time\nfrom pathlib import Path\nimport layoutproof as lp\n\n\n@lp.gate\ndef slow():\n"
        f"    Path({str(started)!r}).write_text(str(os.getpid()))\n    time.sleep(600)\n"
    )

    async def script() -> None:
        path.touch()
        async with editor(tmp_path) as shown:
            shown.open(path, slow)
            async with asyncio.timeout(150):
                while not started.exists() or not started.read_text():
                    await asyncio.sleep(0.05)
            number = int(started.read_text())
            begun = time.monotonic()
            shown.change(path, GATES.format("lambda i, j: [i, j // 4]"))
            await shown.until(path, lambda found: any("both go to" in each.message for each in found))
            assert time.monotonic() - begun < 300  # and not 600
            assert not Path(f"/proc/{number}").exists() or os.name != "posix"

    driven(script())


@one_in(10)
def test_the_limit_of_time(tmp_path: Path) -> None:
    """A check that takes longer than the limit ends as one that is not known, and the server goes on."""
    path = tmp_path / "gates.py"
    slow = "import time\nimport layoutproof as lp\n\n\n@lp.gate\ndef slow():\n    time.sleep(600)\n"

    async def script() -> None:
        path.touch()
        async with editor(tmp_path, "visual_studio_code", "--timeout", "5") as shown:
            shown.open(path, slow)
            (found,) = await shown.codes(path, "LP525")
            assert found.severity is types.DiagnosticSeverity.Warning
            shown.change(path, GATES.format("lambda i, j: [i, j // 4, j % 4]"))
            await shown.codes(path)

    driven(script())


@one_in(4)
def test_what_code_prints_is_no_message(tmp_path: Path) -> None:
    """A gate file that writes to standard output, also past Python, or ends its process, disturbs nothing."""
    path = tmp_path / "gates.py"
    loud = GATES.format("lambda i, j: [i, j // 4, j % 4]") + "\n\nimport os\nprint('x')\nos.system('echo y')\n"
    gone = GATES.format("lambda i, j: [i, j]") + "\n\nimport os\nos.kill(os.getpid(), 9)\n"

    async def script() -> None:
        path.touch()
        async with editor(tmp_path) as shown:
            shown.open(path, loud)
            await shown.codes(path)
            shown.change(path, gone)
            (found,) = await shown.codes(path, "LP527")
            assert "SIGKILL" in found.message
            shown.change(path, loud)
            await shown.codes(path)

    driven(script())


@one_in(4)
def test_columns_are_the_clients(tmp_path: Path) -> None:
    """Columns count in UTF-16 for a client of that kind: a character past U+FFFF is two."""
    path = tmp_path / "gates.py"
    text = GATES.format('"lambda i, j: [i, k // 4]", where=None if "\N{GRINNING FACE}" else None')
    text = text.replace("lp.check_map(", '"\N{GRINNING FACE}" and lp.check_map(')

    async def script() -> None:
        async with editor(tmp_path) as shown:
            shown.open(path, text)
            column = text.split("\n")[5].index("k // 4")
            await shown.until(path, lambda all: any(each.range.start.character == column + 1 for each in all))

    driven(script())


@one_in(4)
def test_other_files_are_left_alone(tmp_path: Path) -> None:
    """Files that have nothing to do with layouts get no diagnostics, broken ones neither."""
    settings, module = tmp_path / "settings.json", tmp_path / "module.py"

    async def script() -> None:
        async with editor(tmp_path) as shown:
            for path, text in ((settings, json.dumps({"a": [1]})[:-1]), (module, "def f(:\n")):
                shown.open(path, text)
                await shown.codes(path)

    driven(script())


@one_in(4)
def test_the_configuration_holds(tmp_path: Path) -> None:
    """The table of pyproject.toml says which findings count: an ignored one is a hint."""
    path = files(tmp_path, trace(step("lambda i, j: [i, j//4]")))
    (tmp_path / "pyproject.toml").write_text('[tool.layoutproof]\nignore = ["LP314"]\n')

    async def script() -> None:
        async with editor(tmp_path) as shown:
            shown.open(path)
            (found,) = await shown.codes(path, "LP314")
            assert found.severity is types.DiagnosticSeverity.Hint

    driven(script())
