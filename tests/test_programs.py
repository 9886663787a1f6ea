"""Each case under tests/programs is refused with the diagnostics that stand in it, and with no others."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from layoutproof.cli.catalogue import all_codes
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.script.reader import loads
from layoutproof.ir.wellformed import require_wellformed
from layoutproof.lowering.schedule.primitives import PASSES
from layoutproof.lowering.schedule.schedule import Schedule
from tests.cases import ALL, Case, cases_of, rewrite

CODES = frozenset(all_codes())


def refused(case: Case) -> LayoutproofError:
    """What the program, or its step, is refused with. A step that is refused leaves the schedule as it was."""
    if case.step is None:
        with pytest.raises(LayoutproofError) as caught:
            require_wellformed(loads(case.source.text, case.source.name))
        assert all(each.span is not None for each in caught.value.diagnostics), (
            "what is wrong in a text has a place there"
        )
        return caught.value
    func = loads(case.source.text, case.source.name)
    schedule = Schedule(func, interface=case.interface)
    name, arguments = case.options
    with pytest.raises(LayoutproofError) as caught:
        getattr(schedule, name)(**arguments)
    assert schedule.func == func and not schedule.steps
    return caught.value


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_a_case_has_the_diagnostics_that_stand_in_it(case: Case, request: pytest.FixtureRequest) -> None:
    """Code, place, text, notes and help of every diagnostic are those beside the program; `--update-golden` writes them
    there.
    """
    diagnostics = refused(case).diagnostics
    assert {each.code for each in diagnostics} <= CODES
    found = case.stating(diagnostics)
    if request.config.getoption("--update-golden"):
        rewrite(case, found)
    elif found != list(case.lines):
        difference = "\n".join(difflib.unified_diff(case.lines, found, case.id, "what the test got", lineterm=""))
        pytest.fail(f"other diagnostics (rewrite them with --update-golden):\n{difference}", pytrace=False)


@pytest.mark.parametrize(
    "case", [case for case in ALL if case.path.stem in ("caching", "temporaries")], ids=lambda case: case.id
)
def test_options_stand_in_a_trace(case: Case) -> None:
    """A step is what its name and its options as JSON data say."""
    name, arguments = case.options
    step = PASSES[name].from_arguments(arguments)
    assert step.primitive == name and type(step).from_arguments(step.arguments()) == step


def test_names_are_given_once() -> None:
    """No two cases of a file have one name."""
    assert len({case.id for case in ALL}) == len(ALL)


def test_a_file_is_rewritten_in_place(tmp_path: Path) -> None:
    """Writing cases anew with the lines that they have changes nothing."""
    for path in sorted({case.path for case in ALL}):
        copied = tmp_path / path.name
        copied.write_bytes(path.read_bytes())
        for case in list(cases_of(copied))[:3]:
            rewrite(case, case.lines)
        assert copied.read_bytes() == path.read_bytes()
