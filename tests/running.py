"""Running programs both ways in tests: text in, the outcome of both evaluators compared, out."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from layoutproof.ir.interp.memory import Fault, FaultKind, Filling
from layoutproof.ir.interp.run import Result, run, same_values
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads

HEAD = "@T.prim_func(s_tir=True)\n"


def program(text: str) -> PrimFunc:
    """A function from its text; the decorator is put in front of a bare `def`."""
    body = textwrap.dedent(text).strip() + "\n"
    return loads(body if body.startswith("@") else HEAD + body)


def both(func: PrimFunc, arguments: Any, **options: Any) -> Result | Fault:
    """What the fast evaluator makes of a run; the plain one must make the same: arrays, states, or kind and place of
    the fault.
    """
    fast, plain = (outcome(func, arguments, plain=p, **options) for p in (False, True))
    if isinstance(fast, Fault) or isinstance(plain, Fault):
        assert isinstance(fast, Fault) and isinstance(plain, Fault), f"{fast}\nagainst\n{plain}"
        assert fast.kind == plain.kind, f"{fast}\nagainst\n{plain}"
        assert (fast.buffer, fast.indices) == (plain.buffer, plain.indices), f"{fast}\nagainst\n{plain}"
        return fast
    for name, array in fast.arrays.items():
        assert np.array_equal(fast.states[name], plain.states[name]), name
        assert bool(same_values(array, plain.arrays[name]).all()), name
    return fast


def outcome(func: PrimFunc, arguments: Any, *, plain: bool, **options: Any) -> Result | Fault:
    """The result of a run, or its fault; fillings start anew."""
    if isinstance(options.get("filling"), Filling):
        options["filling"].restart()
    try:
        return run(func, arguments, plain=plain, **options)
    except Fault as fault:
        return fault


def result(func: PrimFunc, arguments: Any, **options: Any) -> Result:
    """A run that must end well, both ways."""
    found = both(func, arguments, **options)
    assert isinstance(found, Result), str(found)
    return found


def fault(func: PrimFunc, arguments: Any, kind: FaultKind, **options: Any) -> Fault:
    """A run that must end with a fault of a kind, both ways."""
    found = both(func, arguments, **options)
    assert isinstance(found, Fault), f"no fault: {found.arrays}"
    assert found.kind == kind, str(found)
    return found


def floats(*values: float, dtype: str = "float32") -> np.ndarray[Any, Any]:
    """A one-dimensional array."""
    return np.array(values, dtype=dtype)


def arrays_of(found: Result) -> Mapping[str, list[Any]]:
    """A result's arrays as lists."""
    return {name: array.tolist() for name, array in found.arrays.items()}
