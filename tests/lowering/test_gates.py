"""Gates: what the decorator makes of a function and its cases, and what it refuses."""

from __future__ import annotations

import types
from typing import Any

import pytest
from tests.tree import ROOT

import layoutproof as lp
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering import codes
from layoutproof.lowering.gates import Gate, gates_made_by, recording
from layoutproof.verify.settings import Settings, settings, within
from layoutproof.verify.values.fast_math import ALL, IEEE, FastMath

ROW_SUM = ROOT / "examples" / "programs" / "row_sum.py"


def made(*, function: Any = lambda c=4: lp.check_map("lambda i: [i//4, i%4]", (16,)), **options: Any) -> Gate:
    """A gate of a function, by the decorator with options."""
    gate = lp.gate(**options)(function)
    assert isinstance(gate, Gate)
    return gate


def test_a_plain_gate() -> None:
    """Without options a gate has one case, has the function's name and line, and can be called as the function."""

    @lp.gate
    def blocked() -> Any:
        """Stored in fours."""
        return lp.check_map("lambda i: [i//4, i%4]", (16,))

    assert isinstance(blocked, Gate)
    assert (blocked.name, blocked.__doc__, [case.name for case in blocked.cases]) == (
        "blocked",
        "Stored in fours.",
        [None],
    )
    with open(__file__, encoding="utf-8") as file:
        assert "def blocked" in file.read().splitlines()[blocked.line - 1]
    assert blocked().injective.status is lp.Status.PROVED
    (report,) = blocked.results(blocked.case(None))
    assert isinstance(report, type(blocked()))


@pytest.mark.parametrize(
    ("cases", "names"),
    [
        ([4, 8], ["4", "8"]),
        ([(4,), {"c": 16}], ["4", "16"]),
        ({"small": (4,), "large": {"c": 64}, "one": 1}, ["small", "large", "one"]),
        ([object()], ["0"]),
        ([("x" * 60,)], ["0"]),
    ],
)
def test_names_of_cases(cases: Any, names: list[str]) -> None:
    """Cases are named by their key or by their arguments, where these are short; else by their number."""
    assert [case.name for case in made(cases=cases).cases] == names


def test_cases_are_passed_on() -> None:
    """Each case is a call with its arguments, in order or by name."""
    seen: list[Any] = []

    def remember(c: int, d: int = 0) -> Any:
        seen.append((c, d))
        return lp.check_map("lambda i: [i]", (4,))

    gate = made(function=remember, cases={"a": (1, 2), "b": {"d": 3, "c": 4}})
    for case in gate.cases:
        gate.results(case)
    assert seen == [(1, 2), (4, 3)]
    with pytest.raises(LayoutproofError, match=f"{codes.GATE_FORM}.*has no case 'c'"):
        gate.case("c")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"cases": []}, "prove nothing"),
        ({"cases": {}}, "prove nothing"),
        ({"cases": "ab"}, "a dictionary by name or a list, not str"),
        ({"cases": 5}, "not int"),
        ({"cases": [4, 4]}, "each given once"),
        ({"cases": {3: (1,)}}, "names are texts"),
        ({"cases": {"a\n": (1,)}}, "names are texts"),
        ({"cases": [(1, 2, 3)]}, "too many positional"),
        ({"cases": [{"q": 1}]}, "'q'"),
        ({"strictness": "exact"}, "strictness"),
    ],
)
def test_gates_that_are_none(options: dict[str, Any], part: str) -> None:
    """A gate whose cases cannot be called, or that has none, is refused where it is defined."""
    with pytest.raises(LayoutproofError, match=codes.GATE_FORM) as caught:
        made(**options)
    assert part in str(caught.value)


def test_a_gate_that_takes_something_has_cases() -> None:
    """A function with parameters and no case is refused: it would never be called."""
    with pytest.raises(LayoutproofError, match=codes.GATE_FORM):
        lp.gate(lambda c: None)


@pytest.mark.parametrize("result", [None, True, 1, "proved", [], [True], (), {"a": 1}])
def test_results_that_prove_nothing(result: Any) -> None:
    """What is no schedule and no report passes no gate, True least of all."""
    gate = made(function=lambda: result)
    with pytest.raises(LayoutproofError, match=codes.GATE_RESULT):
        gate.results(gate.case(None))


def test_several_results() -> None:
    """A list of schedules, reports and verdicts is as good as one."""
    report = lp.check_map("lambda i: [i]", (4,))
    schedule = lp.Schedule(lp.load(ROW_SUM))
    gate = made(function=lambda: [schedule, report, report.injective])
    assert gate.results(gate.case(None)) == (schedule, report, report.injective)


def test_fast_math_of_a_gate_and_a_run() -> None:
    """A schedule may use what its gate, the run around it and its own argument all allow."""
    assert settings().usable(ALL) == ALL and lp.Schedule(lp.load(ROW_SUM)).allowed == ALL
    seen: list[Any] = []

    def look() -> Any:
        seen.append(lp.Schedule(lp.load(ROW_SUM)).allowed)
        seen.append(lp.Schedule(lp.load(ROW_SUM), allowed=frozenset({FastMath.NSZ})).allowed)
        return lp.check_map("lambda i: [i]", (4,))

    gate = made(function=look, strictness="nnan nsz")
    with within(Settings(allowed=frozenset({FastMath.NNAN, FastMath.NINF}))):
        gate.results(gate.case(None))
    assert seen == [frozenset({FastMath.NNAN}), IEEE]
    assert settings() == Settings()


def test_gates_of_a_module() -> None:
    """The gates that a module makes come in their order, under whatever names; one that it imports is not its own."""
    code = "import layoutproof as lp\n@lp.gate\ndef b(): pass\n@lp.gate\ndef a(): pass\nc = a\ndel b\n"
    home, other = types.ModuleType("home"), types.ModuleType("other")
    with recording() as made:
        exec(compile("import layoutproof as lp\n@lp.gate\ndef d(): pass\n", "other.py", "exec"), other.__dict__)
        home.__dict__["d"] = other.__dict__["d"]
        exec(compile(code, "home.py", "exec"), home.__dict__)
    assert [gate.name for gate in gates_made_by("home", made)] == ["b", "a"]
    assert [gate.name for gate in gates_made_by("other", made)] == ["d"]


def test_a_function_of_another_module_makes_gates_for_its_caller() -> None:
    """A gate belongs to the module whose loading made it, wherever its function stands."""
    helper, home = types.ModuleType("helper"), types.ModuleType("home")
    makes = "import layoutproof as lp\ndef make():\n    @lp.gate\n    def g(): pass\n    return g\n"
    exec(compile(makes, "helper.py", "exec"), helper.__dict__)
    home.__dict__["make"] = helper.__dict__["make"]
    with recording() as made:
        exec(compile("one = make()\n", "home.py", "exec"), home.__dict__)
    exec(compile("late = make()\n", "home.py", "exec"), home.__dict__)
    assert len(made) == len(gates_made_by("home", made)) == 1
