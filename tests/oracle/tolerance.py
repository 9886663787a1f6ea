"""How far TVM's math functions may be off, and what that leaves of a program's results: an interval for every float
cell.

Ours round correctly; TVM calls the C library, or writes a function out in terms of others, in the type of the operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from layoutproof.ir.intrinsics import Call
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import float_format
from layoutproof.lowering.runtime.enclosure import Enclosed, NoEnclosureError, enclose
from layoutproof.lowering.runtime.inexact import Bound, Inexact

Array = np.ndarray[Any, Any]

MATH_BOUND = 4.0
"""Units in the last place by which one of TVM's math functions may be off; measured, they stay below 2."""

_EXACT = frozenset({"abs", "floor", "ceil", "trunc", "round", "sqrt", "fmax", "fmin", "maximum", "minimum", "fma"})
_COMPOSED = frozenset({"tan", "tanh", "sigmoid", "rsqrt"})
_LIMIT = 2_000_000


@dataclass(frozen=True, slots=True)
class TvmMath(Inexact):
    """What TVM 0.27 makes of math functions, type by type."""

    def bound(self, call: Call) -> Bound | None:
        """`tanh` and `sigmoid` are quotients with `exp` in them: what is off in the tails is off by a part of 1, or of
        the range.
        """
        if call.function in _EXACT or not call.dtype.is_float:
            return None
        precision, least, _ = float_format(call.dtype.element)
        # Narrow types are counted in units of float32, in which all but the composed functions of float16 are computed.
        ulps = (
            MATH_BOUND * 2.0 ** (24 - precision) if call.dtype.bits == 16 and call.function in _COMPOSED else MATH_BOUND
        )
        if call.function == "tanh":
            return Bound(ulps, absolute=MATH_BOUND * 2.0 ** (1 - precision))
        return Bound(ulps, absolute=2.0 ** (least + 2)) if call.function == "sigmoid" else Bound(ulps)


def enclosures(func: PrimFunc, runs: Sequence[Sequence[Array]]) -> list[tuple[Enclosed, ...]] | None:
    """Between which numbers TVM's results of a lowered function may lie, for each run and parameter.

    None where a math function decides on a branch, an index or an integer: then nothing is known of the rest.
    """
    try:
        found = [
            enclose(func, dict(zip((b.name for b in func.buffers), run, strict=True)), TvmMath(), limit=_LIMIT)
            for run in runs
        ]
    except NoEnclosureError:
        return None
    return [tuple(each[b.name] for b in func.buffers) for each in found]
