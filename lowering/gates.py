"""Gates: functions that prove what a repository relies on, each checked by `layoutproof check`, by pytest or by a call.

A gate is a function without effects that schedules programs, compares them, or asks about maps, and returns what it
proved. An error that it raises, above all an `IllegalTransform`, is what the run reports.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import update_wrapper
from types import FrameType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from layoutproof.ir.diagnostic import error
from layoutproof.lowering import codes
from layoutproof.verify.settings import settings, within
from layoutproof.verify.values.fast_math import ALL, FastMath, FastMathSet, names_of, parse_fast_math

if TYPE_CHECKING:
    from layoutproof.lowering.compare.comparison import Comparison
    from layoutproof.lowering.schedule.schedule import Schedule
    from layoutproof.verify.maps.map_report import MapReport
    from layoutproof.verify.verdict.verdict import Verdict

Given = Mapping[str, Any] | Sequence[Any]
P = ParamSpec("P")
R = TypeVar("R")
TRUSTED = (CHECKER, KERNEL) = ("checker", "kernel")
_DECORATORS = 200  # lines that decorators may take


@dataclass(frozen=True, slots=True)
class Case:
    """One call of a gate: its name (None if the gate has no cases) and the arguments."""

    name: str | None
    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)


class Gate:
    """A function that was decorated with `gate`. Calling it calls the function.

    `name` is the function's, `line` the line of its `def`, from 1; `calls` are those that made it, see `_calls`.
    `allowed` are the fast-math assumptions that its proofs may use besides those of the run; with `allow_unknown` an
    unknown verdict does not fail a run; with `trust="kernel"` the kernel has to accept every step.
    """

    def __init__(
        self, function: Callable[..., Any], cases: object, strictness: str | None, allow_unknown: bool, trust: str
    ) -> None:
        """Raises LayoutproofError for cases that are malformed or do not fit the function, and for an unknown
        strictness or trust.
        """
        update_wrapper(self, function)
        self.function = function
        self.name = function.__name__
        self.line = _line_of(inspect.unwrap(function))
        try:
            self.allowed = ALL if strictness is None else parse_fast_math(strictness)
        except ValueError as problem:
            raise error(codes.GATE_FORM, f"the gate {self.name}, strictness: {problem}") from problem
        if trust not in TRUSTED:
            raise error(codes.GATE_FORM, f"the gate {self.name}, trust: {' or '.join(TRUSTED)}, not {trust!r}")
        self.allow_unknown, self.trust = allow_unknown, trust
        self.cases = tuple(_cases(self.name, function, cases))
        if _recording is not None:
            _recording.append(self)
        self.calls = _calls()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function returns."""
        return self.function(*args, **kwargs)

    def case(self, name: str | None) -> Case:
        """The case of a name. Raises LayoutproofError if there is none."""
        for case in self.cases:
            if case.name == name:
                return case
        there = ", ".join(str(case.name) for case in self.cases)
        raise error(codes.GATE_FORM, f"the gate {self.name} has no case {name!r}", help=f"it has {there}")

    def results(self, case: Case) -> tuple[Schedule | Comparison | MapReport | Verdict, ...]:
        """What the gate proved in a case, each schedule and report of it.

        Raises LayoutproofError if it returns something else, or what was proved with fast-math assumptions that are not
        allowed here, and whatever the function raises.
        """
        with within(settings().under(self.allowed)):
            found = tuple(_results(self.name, self.function(*case.positional, **case.named)))
            _check_fast_math(self.name, found, settings().usable(self.allowed))
        return found


@overload
def gate(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def gate(
    *,
    cases: Mapping[str, Given] | Sequence[Given] | None = None,
    strictness: str | None = None,
    allow_unknown: bool = False,
    trust: str = CHECKER,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def gate(
    function: Any = None,
    /,
    *,
    cases: Any = None,
    strictness: Any = None,
    allow_unknown: Any = False,
    trust: Any = CHECKER,
) -> Any:
    """Make a function a gate, which `layoutproof check FILE.py` and `pytest --layoutproof` find.

    It returns a `Schedule`, what `compare` returns, the report of `check_map`, a verdict, or a list of these. `cases`
    are the arguments of several calls, each a gate of its own: a dictionary by name, `{"small": {"n": 14}, "wide":
    (64,)}`, or a list. `strictness` bounds the fast-math assumptions of its proofs: "ieee", "finite", "reals", or names
    such as "nnan ninf". With `allow_unknown`, unknown verdicts are reported without failing the run.
    With `trust="kernel"` the gate passes only if the kernel accepts every claim of every step.

    Raises LayoutproofError if the function does not take its cases.
    """
    if not isinstance(allow_unknown, bool) or not isinstance(strictness, str | None):
        raise error(
            codes.GATE_FORM,
            f"of a gate, allow_unknown is True or False ({allow_unknown!r} is given), and strictness is text",
        )
    if function is not None:
        if not callable(function) or isinstance(function, type):
            raise error(codes.GATE_FORM, f"a gate is made of a function, not of {type(function).__name__}")
        return Gate(function, None, None, False, CHECKER)
    return lambda decorated: Gate(decorated, cases, strictness, allow_unknown, trust)


_recording: list[Gate] | None = None


@contextmanager
def recording() -> Iterator[list[Gate]]:
    """Within it, every gate that is made goes to the list, in this order: also one that no name leads to."""
    global _recording
    before, _recording = _recording, []
    try:
        yield _recording
    finally:
        _recording = before


def _calls() -> tuple[tuple[str, int], ...]:
    """Module and line of each call that is under way, innermost first, up to the top level of the module that is being
    loaded; empty in a thread of its own.
    """
    found: list[tuple[str, int]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        found.append((str(frame.f_globals.get("__name__")), frame.f_lineno))
        if frame.f_code.co_name == "<module>":
            return tuple(found)
        frame = frame.f_back
    return ()


def gates_made_by(module: str, made: Iterable[Gate]) -> tuple[Gate, ...]:
    """Those of the gates that the code of a module made when it was loaded, also through functions of other modules."""
    return tuple(gate for gate in made if (gate.calls[-1][0] if gate.calls else gate.function.__module__) == module)


def _line_of(function: Callable[..., Any]) -> int:
    """The line of a function's `def`, below its decorators."""
    if not inspect.isfunction(function):
        return 1
    code = function.__code__
    first = code.co_firstlineno
    lines = (linecache.getline(code.co_filename, line).lstrip() for line in range(first, first + _DECORATORS))
    return next((first + k for k, line in enumerate(lines) if line.startswith(("def ", "async def "))), first)


def _cases(name: str, function: Callable[..., Any], cases: object) -> Iterator[Case]:
    if cases is None:
        yield _checked(name, function, Case(None))
        return
    if isinstance(cases, Mapping):
        named = [(key, given) for key, given in cases.items()]
    elif isinstance(cases, Sequence) and not isinstance(cases, str):
        named = [(_name_of(given, number), given) for number, given in enumerate(cases)]
    else:
        raise error(
            codes.GATE_FORM,
            f"the cases of the gate {name} are a dictionary by name or a list, not {type(cases).__name__}",
        )
    if not named:
        raise error(codes.GATE_FORM, f"the gate {name} has no case, so it would prove nothing")
    seen: set[str] = set()
    for key, given in named:
        if not isinstance(key, str) or not key.isprintable() or not key or key in seen:
            raise error(codes.GATE_FORM, f"the gate {name} has a case called {key!r}; names are texts, each given once")
        seen.add(key)
        positional, by_name = ((), dict(given)) if isinstance(given, Mapping) else (_positional(given), {})
        yield _checked(name, function, Case(key, positional, by_name))


def _positional(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, list | tuple) else (given,)


def _name_of(given: Any, number: int) -> str:
    """`14-64` of arguments that are short; the number of the case otherwise."""
    values = list(given.values()) if isinstance(given, Mapping) else list(_positional(given))
    text = "-".join(str(value) for value in values)
    return (
        text
        if values and all(isinstance(v, int | float | str) for v in values) and text.isprintable() and len(text) <= 40
        else str(number)
    )


def _checked(name: str, function: Callable[..., Any], case: Case) -> Case:
    try:
        inspect.signature(function).bind(*case.positional, **case.named)
    except TypeError as problem:
        which = "" if case.name is None else f", case {case.name!r}"
        raise error(codes.GATE_FORM, f"the gate {name}{which}: {problem}") from problem
    return case


# What a gate may return, and where it is defined.
_RESULTS = {
    "Schedule": "layoutproof.lowering.schedule.schedule",
    "Comparison": "layoutproof.lowering.compare.comparison",
    "MapReport": "layoutproof.verify.maps.map_report",
    "Verdict": "layoutproof.verify.verdict.verdict",
}


def _loaded(*names: str) -> tuple[type[Any], ...]:
    """Those of these classes that are loaded. Of others there is no instance, and loading them all takes half of the
    time of a gate that asks about a map.
    """
    found = (getattr(sys.modules.get(_RESULTS[name]), name, None) for name in names)
    return tuple(each for each in found if each is not None)


def _results(name: str, found: object) -> Iterable[Any]:
    kinds = _loaded(*_RESULTS)
    if isinstance(found, kinds):
        return (found,)
    several = found if isinstance(found, list | tuple) else ()
    if not several or not all(isinstance(one, kinds) for one in several):
        what = "nothing" if found is None else "an empty list" if found in ([], ()) else type(found).__name__
        hint = "return the schedule, the report of check_map, what compare returns, or a list of such"
        raise error(codes.GATE_RESULT, f"the gate {name} returned {what}", help=hint)
    return several


def _check_fast_math(name: str, found: Iterable[Any], allowed: FastMathSet) -> None:
    """Schedules made before the gate was called, or in another thread, are not bounded by the gate's fast-math
    assumptions.
    """
    for result in found:
        schedule = isinstance(result, _loaded("Schedule"))
        verdicts = [verdict for step in result.steps for verdict in step.verdicts] if schedule else []
        verdicts += result.verdicts if isinstance(result, _loaded("Comparison")) else []
        verdicts += [result] if isinstance(result, _loaded("Verdict")) else []
        taken = frozenset(FastMath(word) for verdict in verdicts for word in verdict.strictness) - allowed
        if taken:
            words = " ".join(names_of(taken))
            hint = "schedule in the gate itself, in its own thread: what is allowed holds there"
            raise error(
                codes.GATE_RESULT,
                f"the gate {name} returned what holds with {words} only, which is not allowed",
                help=hint,
            )


__all__ = ["Case", "Gate", "gate", "gates_made_by", "recording"]
