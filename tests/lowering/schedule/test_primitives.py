"""Primitives: pass, section of the page, method and table agree, and what was generated is up to date."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from typing import Any, get_type_hints

import pytest
from docs.primitives import MODULE, PAGE, TYPES, ordered, primitives_module, primitives_page, text_of
from tests.conftest import Golden
from tests.tree import ROOT

from layoutproof.lowering.loops.tiling import Fuse, Split
from layoutproof.lowering.passes.base import ArgumentKind, Pass, kind_of
from layoutproof.lowering.schedule.primitives import PASSES
from layoutproof.lowering.schedule.schedule import LOWERING, Schedule


@pytest.mark.parametrize(("name", "made"), [(MODULE, primitives_module), (PAGE, primitives_page)])
def test_primitives_follow_from_the_passes(name: str, made: Callable[[], str], request: pytest.FixtureRequest) -> None:
    """The table of primitives, the schedule's methods and the page are what `python -m docs.generate` writes now."""
    Golden(ROOT, bool(request.config.getoption("--update-golden")))(name, made())


@pytest.mark.parametrize(
    ("passes", "sections", "words"),
    [
        ((Split, Fuse), ("split",), r"tiling.Fuse has no section: write `### fuse` where it belongs in docs/reference"),
        ((Split,), ("split", "fuse"), "has a section `### fuse`, and no pass is called that"),
        ((Split,), ("split", "split"), "has 2 sections `### split`"),
        ((Split, type("Cut", (Split,), {})), ("split",), r"tiling.Split and .*.Cut are both called 'split'"),
    ],
)
def test_passes_and_sections_agree(passes: Sequence[type[Pass]], sections: Sequence[str], words: str) -> None:
    """A pass without a section, a section without a pass, and a name that is taken are errors."""
    with pytest.raises(ValueError, match=words):
        ordered(passes, sections)


def test_a_primitive_has_documentation_and_typed_arguments() -> None:
    """A pass without a docstring is an error; every kind of argument has a type in the methods' signatures."""
    with pytest.raises(ValueError, match="Undocumented has no docstring"):
        text_of(type("Undocumented", (Split,), {}))
    assert [*TYPES] == [*ArgumentKind]


def test_each_primitive_is_a_method_with_its_arguments() -> None:
    """Traces, passes and methods agree about names and defaults, and methods have types and the pass's docstring."""
    for name, each in PASSES.items():
        method = getattr(Schedule, name)
        parameters = dict(list(inspect.signature(method).parameters.items())[1:])
        defaults = {f.name: inspect.Parameter.empty if f.default is MISSING else f.default for f in each.options()}
        assert {name: parameter.default for name, parameter in parameters.items()} == defaults
        assert list(parameters) == list(defaults)
        assert {*get_type_hints(method)} == {*parameters, "return"}
        assert (method.__doc__ or "").split() == (each.__doc__ or "").split()
    assert all(type(step) in PASSES.values() for step in LOWERING)


def test_passes_are_values() -> None:
    """A pass is equal to one with the same options, and its arguments build it again."""
    for each in PASSES.values():
        example = sample(each)
        assert each.from_arguments(example.arguments()) == example
        assert hash(each.from_arguments(example.arguments())) == hash(example)


SAMPLES: Mapping[ArgumentKind, Any] = {
    ArgumentKind.NAME: "copy",
    ArgumentKind.INDEX_MAP: "lambda i: [i//4, i%4]",
    ArgumentKind.PAD_VALUE: 0.5,
    ArgumentKind.PAD_VALUES: (("A", 0.5),),
    ArgumentKind.LAYOUT: "NHWC8c",
    ArgumentKind.INTEGER: 3,
    ArgumentKind.INTEGERS: (2, 1),
    ArgumentKind.LOOP: "i",
    ArgumentKind.LOOPS: (1, "i"),
    ArgumentKind.FACTORS: (None, 4),
    ArgumentKind.CHOICES: (0, -2),
    ArgumentKind.FLAG: True,
    ArgumentKind.NAMES: ("if_else_stmt",),
}


def sample(each: type[Pass]) -> Pass:
    """A pass of a type with some options."""
    return each(**{f.name: SAMPLES[kind_of(f)] for f in each.options()})
