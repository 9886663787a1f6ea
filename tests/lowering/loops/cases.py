"""Programs with the schedules that people write for them: the roadmap's examples, and a convolution stored by channels
in fours.

A case is a program over symbols and the steps of a schedule. `Case.program` gives it for chosen sizes or for all of
them; `Case.schedule` applies the steps, each proved; `Case.proposals` makes the steps' rewrites and proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.tree import ROOT

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.lowering.schedule.trace import passes_of

PROGRAMS = ROOT / "tests" / "lowering" / "loops" / "programs"
_DECLARATION = re.compile(r"^ *[\w, ]+ = T\.int32\(\)(, T\.int32\(\))*\n", re.MULTILINE)

Sizes = Mapping[str, int]
Steps = tuple[tuple[str, Mapping[str, Any]], ...]


@dataclass(frozen=True)
class Case:
    """A program and a schedule for it. `pads` gives, by buffer, what the padding of each of its transforms may be
    filled with.
    """

    name: str
    file: str
    sizes: Sizes
    steps: Steps
    pads: Mapping[str, tuple[float, ...]]

    def program(self, sizes: Sizes | None = None) -> PrimFunc:
        """The program with its symbols replaced by `sizes`; for all sizes where that is None."""
        text = (PROGRAMS / f"{self.file}.py").read_text(encoding="utf-8")
        if sizes is not None:
            text = _DECLARATION.sub("", text)
            for name, size in sizes.items():
                text = re.sub(rf"\b{name}\b", str(size), text)
            # Names stood in quotes, and extents now are sums of numbers.
            text = re.sub(r'"(\d+)"', r"\1", text)
            text = re.sub(r"\b(\d+) \+ (\d+)\b", lambda m: str(int(m[1]) + int(m[2])), text)
        return loads(text, f"{self.file}.py")

    @property
    def trace(self) -> list[list[Any]]:
        """The steps as a trace."""
        return [[name, dict(arguments)] for name, arguments in self.steps]

    def schedule(self, sizes: Sizes | None = None) -> Schedule:
        """The schedule with every step applied. Raises IllegalTransform at the first that is not proved."""
        return Schedule.replay(self.program(sizes), self.trace)

    def proposals(self, sizes: Sizes | None = None) -> Iterator[Rewrite]:
        """The rewrite of each step, one after the other, nothing proved."""
        func = self.program(sizes)
        for transform in passes_of(self.trace):
            rewrite = transform.propose(func)
            yield rewrite
            func = rewrite.new

    def result(self, sizes: Sizes | None = None) -> PrimFunc:
        """The program after all steps, nothing proved."""
        *_, last = self.proposals(sizes)
        return last.new


def _layout(block: str, buffer: str, index_map: str, pad_value: object = None) -> tuple[str, dict[str, Any]]:
    return ("transform_layout", {"block": block, "buffer": buffer, "index_map": index_map, "pad_value": pad_value})


def _follow(block: str, buffer: str) -> tuple[str, dict[str, Any]]:
    return ("sequential_buffer_access", {"block": block, "buffer": buffer})


def _drop(block: str, *guards: int, wrap: bool = False) -> tuple[str, dict[str, Any]]:
    return ("remove_branching_through_overcompute", {"block": block, "guards": list(guards), "wrap": wrap})


_UNDEF = "T.undef()"
_TILE = "lambda i: [i//4, i%4]"
_ROWS = "lambda i, j: [i, j//4, j%4]"
_NCHW4C = "lambda n, h, w, c: [n, c//4, h, w, c%4]"
_FILTER = "lambda r, s, i, o: [o//4, i//4, r, s, i%4, o%4]"


_CONV2D: Steps = (
    _layout("conv2d", "F", _FILTER, 0.0),
    _layout("conv2d", "B", _NCHW4C, _UNDEF),
    _follow("conv2d", "B"),
    ("split", {"block": "conv2d", "loop": "c", "factors": [None, 4]}),
    ("reorder", {"block": "conv2d", "loops": ["ry", "rx", "c_0", "c_1", "k_1"]}),
    _drop("conv2d", 0, 1),
)
_IMAGE = {"N": 1, "H": 56, "W": 56, "C": 70, "K": 70}

CASES: Mapping[str, Case] = {
    case.name: case
    for case in (
        Case(
            "row_sum",
            "row_sum",
            {"n": 16, "m": 14},
            (_layout("sum", "A", _ROWS, 0.0), _follow("sum", "A"), _drop("sum", 0)),
            {"A": (0.0,)},
        ),
        Case(
            "row_sum_of_loops",
            "row_sum_loops",
            {"n": 16, "m": 14},
            (
                _layout("root", "A", _ROWS, 0.0),
                ("split", {"block": "root", "loop": "j", "factors": [None, 4]}),
                _drop("root", 0),
            ),
            {"A": (0.0,)},
        ),
        Case(
            "convolution",
            "convolution",
            {"n": 14},
            (
                _layout("conv", "A", _TILE, _UNDEF),
                _layout("conv", "B", _TILE, _UNDEF),
                _follow("conv", "B"),
                _drop("conv", 0, wrap=True),
            ),
            {"A": (7.0,)},
        ),
        Case(
            "convolution_by_its_input",
            "convolution",
            {"n": 14},
            (_layout("conv", "A", _TILE), _follow("conv", "A")),
            {},
        ),
        Case(
            "double",
            "double",
            {"n": 14},
            (
                _layout("double", "A", _TILE, _UNDEF),
                _layout("double", "B", _TILE, _UNDEF),
                _follow("double", "B"),
                _drop("double", 0),
            ),
            {"A": (7.0,)},
        ),
        Case(
            "two_contracts",
            "previous",
            {"n": 13},
            (
                _layout("previous", "A", "lambda i: [i + 1]", 0.0),
                _layout("previous", "A", _TILE, _UNDEF),
                _layout("previous", "B", _TILE, _UNDEF),
                _follow("previous", "B"),
                _drop("previous", 0, 1),
            ),
            {"A": (0.0, 7.0)},
        ),
        Case(
            "conv2d",
            "conv2d",
            _IMAGE,
            (_layout("conv2d", "A", _NCHW4C, 0.0), *_CONV2D),
            {"A": (0.0,), "F": (0.0,)},
        ),
        Case(
            "padded_conv2d",
            "padded_conv2d",
            _IMAGE,
            (_layout("halo", "A", _NCHW4C, 0.0), _layout("conv2d", "P", _NCHW4C, 0.0), *_CONV2D),
            {"A": (0.0,), "F": (0.0,)},
        ),
        *(
            Case(
                name,
                name,
                _IMAGE,
                (_drop("conv2d", 0, 1, 2, 3), _layout("conv2d", "A", _NCHW4C, 0.0), *_CONV2D),
                {"A": (0.0,), "F": (0.0,)},
            )
            for name in ("halo_conv2d", "halo_conv2d_finite")
        ),
    )
}

REFUSED: Mapping[str, Case] = {
    case.name: case
    for case in (
        Case(
            "convolution_out_of_bounds",
            "convolution",
            {"n": 14},
            (_layout("conv", "A", _TILE), _layout("conv", "B", _TILE, _UNDEF), _follow("conv", "B"), _drop("conv", 0)),
            {},
        ),
        # With one row, the first and the last row of weights meet the halo only: the old program never reads them.
        Case(
            "halo_conv2d_of_one_row",
            "halo_conv2d_any_size",
            {**_IMAGE, "H": 1, "C": 3, "K": 2},
            (_drop("conv2d", 0, 1, 2, 3),),
            {},
        ),
        Case("cumulative_by_its_input", "cumulative", {"n": 14}, (_follow("root", "A"),), {}),
        Case(
            "row_sum_padded_with_one",
            "row_sum",
            {"n": 16, "m": 14},
            (_layout("sum", "A", _ROWS, 1.0), _follow("sum", "A"), _drop("sum", 0)),
            {},
        ),
        Case(
            "row_sum_without_contract",
            "row_sum",
            {"n": 16, "m": 14},
            (_layout("sum", "A", _ROWS), _follow("sum", "A"), _drop("sum", 0)),
            {},
        ),
    )
}
"""Schedules whose last step must be refused."""
