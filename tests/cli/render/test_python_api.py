"""`lp.draw`, `lp.plan`, `lp.explain`, and what a schedule shows of itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.render.test_notebook import EXAMPLES, refusal, scheduled
from tests.shares import one_in

import layoutproof as lp
from layoutproof.cli.plot.scene import Rect
from layoutproof.cli.plot.strip_figure import strips
from layoutproof.ir.interp.layout_cells import padding_cells
from layoutproof.ir.layout_record import Cell, layout_records


@one_in(4)
def test_a_drawing_is_saved(tmp_path: Path) -> None:
    """A drawing is an SVG, saved as such or as a PNG; another ending is refused."""
    drawing = lp.draw(lambda i, j: [i, j ^ i], (8, 8), colour="bank:8")
    assert drawing.svg.startswith("<svg") and "8 banks" in drawing.svg
    drawing.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == drawing.svg == drawing._repr_svg_()
    drawing.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(lp.LayoutproofError, match=r"expected \.svg or \.png"):
        drawing.save(tmp_path / "a.gif")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "a.svg"]


@pytest.mark.parametrize(
    ("arguments", "named", "said"),
    [
        (("lambda i: [i]",), {}, "does not say its shape"),
        (("lambda i: [i]", (4,)), {"colour": "pink"}, "colour is one of auto, order, row, bank"),
        (("lambda i: [i]", (4,)), {"colour": "bank:1"}, "bank:8"),
        (("lambda i: [i]", "n"), {}, "not known as numbers|symbolic"),
        ((lp.check_map("lambda i: [i]", (4,)).injective,), {}, "no counterexample"),
    ],
)
def test_what_cannot_be_drawn(arguments: tuple[object, ...], named: dict[str, str], said: str) -> None:
    """A question without a picture is an error that says what is missing."""
    with pytest.raises(lp.LayoutproofError, match=said):
        lp.draw(*arguments, **named)  # type: ignore[arg-type]  # wrong calls are what this is about


def test_the_picture_of_a_refusal() -> None:
    """Each padding cell that was read is outlined, and both results are there."""
    scene = lp.draw(refusal()).scene
    titles = [item.title for item in scene.items if isinstance(item, Rect) and item.hatch]
    assert titles and all(re.fullmatch(r"A\[\d+, \d+, \d+\] = 1\.0", title) for title in titles)
    assert len([item for item in scene.items if isinstance(item, Rect) and item.fill == "none"]) == len(titles)
    assert scene.title.startswith("B[0]: expected ")


def test_strips_are_what_the_record_says() -> None:
    """Memory after a step holds each element once, where the map puts it, and padding where the record has padding."""
    func = scheduled().func
    (record,) = layout_records(func).values()
    first, last = strips(record, {"m": 6})
    assert first.cells.tolist() == list(range(16 * 6))
    assert sorted(last.cells[last.cells >= 0].tolist()) == list(range(16 * 6))
    for cell, element in enumerate(last.cells.tolist()):
        row, block, lane = np.unravel_index(cell, last.box)
        assert element == (row * 6 + block * 4 + lane if block * 4 + lane < 6 else -1)
    (kinds,) = padding_cells(func, {"m": 6}).values()
    assert ((kinds.reshape(-1) == Cell.LOGICAL) == (last.cells >= 0)).all()


def test_a_buffer_of_a_schedule() -> None:
    """A buffer is drawn for given sizes: a strip before the step and one after it; sizes that are missing are named."""
    svg = lp.draw(scheduled(), "A", sizes={"m": 6}).svg
    assert "16 * 6" not in svg and "96 cells, no padding" in svg and "128 cells, 32 of them padding" in svg
    with pytest.raises(lp.LayoutproofError, match="give its size, m=N"):
        lp.draw(scheduled(), "A")
    with pytest.raises(lp.LayoutproofError, match="the name of a buffer"):
        lp.draw(scheduled())


def test_plans_by_names() -> None:
    """A graph's file is planned with layouts by name, as the command does it; unknown names are errors."""
    plan = lp.plan(EXAMPLES / "network.py", {"conv": "NCHW4c"})
    assert plan.optimal and plan.count(plan.choice) == 2 and plan.count(plan.unplanned) == 4
    assert lp.plan(plan.graph, {"conv": "NCHW4c"}).cost == plan.cost
    freed = lp.plan(EXAMPLES / "network.py", {"conv": "NCHW4c"}, free={"image": "NCHW4c"})
    assert freed.count(freed.choice) == 1
    with pytest.raises(lp.LayoutproofError, match="did you mean conv"):
        lp.plan(EXAMPLES / "network.py", {"cov": "NCHW4c"})


def test_explanations() -> None:
    """A code, an error and a verdict are explained with the text of `layoutproof explain`."""
    text = lp.explain("LP373")
    assert text == repr(text) == lp.explain(refusal()) and text.startswith("LP373 ")
    verdict = lp.check_map("lambda i: [i//4]", (8,)).injective
    assert lp.explain(verdict).startswith(f"{verdict.code} ")
    with pytest.raises(lp.LayoutproofError, match="there is no code 'LP999'"):
        lp.explain("LP999")


def test_what_a_schedule_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """The program without its records, the difference of a step, and blocks and loops as primitives take them."""
    schedule = scheduled()
    schedule.show()
    shown = capsys.readouterr().out
    assert (
        "T.grid(16, (m + 3) // 4, 4)" in shown
        and '"layoutproof.layout": ...' in shown
        and max(map(len, shown.splitlines())) < 120
    )
    assert schedule.mod.functions == (schedule.func,)
    assert schedule.get_block("sum") == "sum" and schedule.get_loops("sum") == ("i", "j_0", "j_1")
    schedule.split(schedule.get_block("sum"), schedule.get_loops("sum")[0], [4, None])
    changed = schedule.diff().splitlines()
    assert any(line.startswith("-    for i, j_0, j_1 in T.grid(16,") for line in changed)
    assert schedule.diff(1) == schedule.diff(-2) != schedule.diff()
    with pytest.raises(lp.LayoutproofError, match="no block called 'sun'"):
        schedule.get_block("sun")
    with pytest.raises(lp.LayoutproofError, match="there is no step 3: 3 steps are kept"):
        schedule.diff(3)


STEP = f"lp.Schedule(lp.load({str(EXAMPLES / 'row_sum.py')!r})).split('sum', 'j', ['four'])"


@one_in(4)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    ("call", "said"), [("lp.check_map('lambda i: [j]', (4,))", "`j` is not defined here"), (STEP, "LP313")]
)
def test_tracebacks_end_at_the_users_line(tmp_path: Path, call: str, said: str, full: bool) -> None:
    """A script that makes a mistake is told its own line and the message, no line of the package or of what that calls;
    the variable shows all frames.
    """
    script = tmp_path / "script.py"
    script.write_text(f"import layoutproof as lp\n\ndef check():\n    {call}\n\ncheck()\n")
    environment = {"LAYOUTPROOF_TRACEBACK": "full"} if full else {}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and said in done.stderr
    frames = re.findall(r'File "([^"]+)", line (\d+)', done.stderr)
    own = [(str(script), "6"), (str(script), "4")]
    # In full, an error that led to this one comes first.
    assert [frame for frame in frames if frame[0] == str(script)] == own and (len(frames) > 2) is full


def test_other_errors_are_told_as_ever(tmp_path: Path) -> None:
    """An error that is none of ours keeps its traceback, also after one of ours was caught."""
    script = tmp_path / "script.py"
    lines = ("try:", "    lp.check_map('lambda i: [j]', (4,))", "except lp.LayoutproofError:", "    1 / 0")
    script.write_text("\n".join(("import layoutproof as lp", *lines)) + "\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert "During handling of the above exception" in done.stderr and done.stderr.endswith("division by zero\n")
