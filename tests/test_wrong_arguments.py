"""Every function of the package answers an argument of another type with a diagnostic, not with a fault of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import layoutproof as lp

TEXT = """
@T.prim_func(s_tir=True)
def f(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    for i in range(14):
        with T.sblock("b"):
            vi = T.axis.spatial(14, i)
            B[vi] = A[vi]
"""
PROGRAM = lp.loads(TEXT)
MAP = "lambda i: [i//4, i%4]"
VALUES: dict[str, Any] = {
    "none": None,
    "number": 1,
    "fraction": 1.5,
    "word": "x",
    "empty": "",
    "broken": "lambda i: [i",
    "list": [],
    "dictionary": {},
    "pair": (1, 2),
    "bytes": b"q",
    "program": PROGRAM,
    "object": object(),
    "array": np.zeros(1),
    "function": lambda i: [i],
    "map": lp.IndexMap.from_func(lambda i: [i]),
}


def schedule() -> lp.Schedule:
    """A new schedule of the program."""
    return lp.Schedule(PROGRAM)


CALLS: dict[str, Callable[[Any], object]] = {
    "Schedule": lp.Schedule,
    "Schedule(interface)": lambda value: lp.Schedule(PROGRAM, interface=value),
    "loads": lp.loads,
    "load": lp.load,
    "from_func": lp.IndexMap.from_func,
    "check_map": lambda value: lp.check_map(value, shape=(4,)),
    "check_map(shape)": lambda value: lp.check_map("lambda i: [i]", shape=value),
    "check_map(where)": lambda value: lp.check_map("lambda i: [i]", shape=("n",), where=value),
    "compare(before)": lambda value: lp.compare(value, PROGRAM),
    "compare(after)": lambda value: lp.compare(PROGRAM, value),
    "compare(layouts)": lambda value: lp.compare(PROGRAM, PROGRAM, layouts=value),
    "compare(layout)": lambda value: lp.compare(PROGRAM, PROGRAM, layouts={"B": value}),
    "compare(pads)": lambda value: lp.compare(PROGRAM, PROGRAM, pads=value),
    "compare(match)": lambda value: lp.compare(PROGRAM, PROGRAM, match=value),
    "compare(where)": lambda value: lp.compare(PROGRAM, PROGRAM, where=value),
    "explain": lp.explain,
    "draw": lp.draw,
    "draw(of)": lambda value: lp.draw("lambda i: [i]", value),
    "draw(pad)": lambda value: lp.draw(MAP, (14,), pad=value),
    "draw(colour)": lambda value: lp.draw(MAP, (14,), colour=value),
    "draw(cells)": lambda value: lp.draw(MAP, (14,), cells=value),
    "draw(sizes)": lambda value: lp.draw(schedule(), "B", sizes=value),
    "suggest": lambda value: lp.suggest(value, "b", "N->N4n"),
    "suggest(block)": lambda value: lp.suggest(PROGRAM, value, "N->N4n"),
    "suggest(layout)": lambda value: lp.suggest(PROGRAM, "b", value),
    "suggest(layouts)": lambda value: lp.suggest(PROGRAM, "b", MAP, layouts=value),
    "plan": lambda value: lp.plan(value, {}),
    "plan(layouts)": lambda value: lp.plan("no such file.py", value),
    "plan(free)": lambda value: lp.plan("no such file.py", {}, value),
    "study": lp.study,
    "relayout": lambda value: lp.relayout(value, shape=(4,), dtype="float32"),
    "relayout(shape)": lambda value: lp.relayout("lambda i: [i]", shape=value, dtype="float32"),
    "relayout(dtype)": lambda value: lp.relayout("lambda i: [i]", shape=(4,), dtype=value),
    "gate": lambda value: None if value is None else lp.gate(value),
    "gate(cases)": lambda value: lp.gate(cases=value)(schedule),
    "gate(strictness)": lambda value: lp.gate(strictness=value)(schedule),
    "gate(allow_unknown)": lambda value: lp.gate(allow_unknown=value)(schedule),
    "gate(trust)": lambda value: lp.gate(trust=value)(schedule),
    "get_block": lambda value: schedule().get_block(value),
    "get_loops": lambda value: schedule().get_loops(value),
    "buffer": lambda value: schedule().buffer(value),
    "diff": lambda value: schedule().diff(value),
    "build": lambda value: schedule().build(value),
    "transform_layout": lambda value: schedule().transform_layout(value, "B", MAP),
    "transform_layout(buffer)": lambda value: schedule().transform_layout("b", value, MAP),
    "transform_layout(index_map)": lambda value: schedule().transform_layout("b", "B", value),
    "transform_layout(pad_value)": lambda value: schedule().transform_layout("b", "B", MAP, pad_value=value),
    "split": lambda value: schedule().split("b", value, [None, 2]),
    "split(factors)": lambda value: schedule().split("b", "i", value),
    "split(factor)": lambda value: schedule().split("b", "i", [None, value]),
    "reorder": lambda value: schedule().reorder("b", value),
    "bind": lambda value: schedule().bind("b", "i", value),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_only_diagnostics(call: Callable[[Any], object], value: Any) -> None:
    """A call with any value succeeds, or raises LayoutproofError with a code and a message."""
    try:
        call(value)
    except lp.LayoutproofError as problem:
        assert problem.diagnostics[0].code.startswith("LP")
        assert len(problem.diagnostics[0].message) > 10
