"""ONNX's own tests, all of them: what is read makes what it should, and what is not read stands in a list, with the
reason.

The list is `tests/golden/onnx/refused.txt`: each reason, and below it the tests that are refused for it. An operator
that is no longer read, or not in all of its uses, makes a line more, and so cannot go unseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import combinations, islice

import onnx
import pytest
from tests.conftest import GOLDEN
from tests.importers.onnx.conformance import Case, file_cases, node_cases, outcome, read
from tests.shares import one_in

from layoutproof.graph.tuning.kernels import Kernels
from layoutproof.importers.onnx.constant_nodes import SHAPES
from layoutproof.importers.onnx.convert import OPERATORS
from layoutproof.importers.onnx.elementwise_nodes import ELEMENTWISE
from layoutproof.importers.onnx.indexing_nodes import TAKING
from layoutproof.importers.onnx.moving_nodes import MOVING
from layoutproof.importers.onnx.quantized_nodes import QUANTIZED
from layoutproof.importers.onnx.reduction_nodes import LINEAR, NORMALISE, REDUCING
from layoutproof.importers.onnx.resizing_nodes import RESIZING
from layoutproof.importers.onnx.window_nodes import CONVOLUTIONS, POOLING

LIST = GOLDEN / "onnx" / "refused.txt"
MANY = re.compile(r"test_(attention|causal_conv|flex_attention|linear_attention|rotary|sce_|nllloss|.*_expanded)")
"""Tests of operators that ONNX defines by others, of which there are many."""
LARGE = ("test_MaxPool1d_stride_padding_dilation", "test_MaxPool2d_stride_padding_dilation", "test_operator_conv")
"""What takes the interpreter long."""


def refusals(cases: Iterable[Case]) -> dict[str, str]:
    """By the names of tests why they are refused, the names of nodes left out. Raises AssertionError where one makes
    anything else.
    """
    told = {case.name: read(case) for case in cases}
    return {
        name: re.sub(r"^error\[(LP\d+)\]: (?:.*? that makes [^:]*: )*", r"\1 ", message)
        for name, message in told.items()
        if message
    }


def listed() -> tuple[str, dict[str, str]]:
    """The version of ONNX that the list is for, and the reason of each test in it."""
    version, *lines = LIST.read_text(encoding="utf-8").splitlines()
    found, reason = dict[str, str](), ""
    for line in filter(None, lines):
        if line.startswith("    "):
            found[line.strip()] = reason
        else:
            reason = line
    return version.removeprefix("onnx "), found


def as_text(found: Mapping[str, str]) -> str:
    """The list as text."""
    parts = [f"onnx {onnx.__version__}"]
    for reason in sorted(set(found.values())):
        parts.append("\n".join([reason, *(f"    {name}" for name in sorted(found) if found[name] == reason)]))
    return "\n\n".join(parts) + "\n"


def check_listed(found: Mapping[str, str], whole: bool) -> None:
    """Fail for a refusal that is not in the list; as `whole`, also for one in the list that is none any more.

    Another version of ONNX has other tests: those that the list has not are refused for reasons that it has.
    """
    version, known = listed()
    if version == onnx.__version__:
        assert sorted(set(found) - set(known)) == []
        assert not whole or dict(found) == known
    else:
        reasons = set(known.values())
        assert {name for name, reason in found.items() if name not in known and reason not in reasons} == set()


@one_in(10)
def test_what_is_read_is_right_and_the_rest_is_listed() -> None:
    """Each test of one operator makes what it should, or is refused for the reason in the list; every run looks at a
    sixth of them.
    """
    cases = (case for case in node_cases() if not MANY.match(case.name))
    check_listed(refusals(islice(cases, 0, None, 6)), whole=False)


@pytest.mark.campaign
def test_all_that_is_read_is_right_and_the_rest_is_listed(request: pytest.FixtureRequest) -> None:
    """So do the tests of operators that ONNX defines by others; with --update-golden the list is written."""
    found = refusals(node_cases())
    if request.config.getoption("--update-golden"):
        LIST.parent.mkdir(exist_ok=True)
        LIST.write_text(as_text(found), encoding="utf-8")
    check_listed(found, whole=True)


@one_in(9)
def test_models_that_others_exported() -> None:
    """Of the models in files, as other tools exported them long ago, those that are read make what they should; few are
    not.
    """
    refused = [case.name for case in file_cases() if case.name not in LARGE and outcome(case)]
    assert all(re.match(r"test_(expand_shape|gradient|sequence|strnorm)_", name) for name in refused)


@pytest.mark.campaign
def test_models_that_others_exported_in_kernels() -> None:
    """They make the same in generated C, the large ones too."""
    for case in file_cases():
        kernels = Kernels()
        outcome(case, runner=kernels, mover=kernels.move)


def test_each_operator_stands_in_one_table() -> None:
    """No table hides what another one says."""
    tables = (
        CONVOLUTIONS,
        ELEMENTWISE,
        LINEAR,
        MOVING,
        NORMALISE,
        POOLING,
        QUANTIZED,
        REDUCING,
        RESIZING,
        SHAPES,
        TAKING,
    )
    assert {*OPERATORS} == {name for table in tables for name in table}
    assert [set(first) & set(second) for first, second in combinations(tables, 2) if set(first) & set(second)] == []
