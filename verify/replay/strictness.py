"""Which runs count when float licences are in force, and which differences.

A licence leaves executions out, or lets the old program choose. A difference refutes only if no choice explains it. So the old program is
also run watched, and under `reassoc` the new one too (see `watching`); that leaves out more than the licences do, never less.

* `nnan`, `ninf`: no value that the old program computes is NaN, infinite; nor is an input that it reads. Literals are not computed.
* `nsz`: results are compared up to a zero's sign; where the sign of a zero can grow into something else (a division, a root, a power),
  no operation of the old program yields zero.
* `reassoc`: only cells count whose value rests on no rounding, in either program. They hold what exact real numbers would give, and what
  exact real numbers tell apart no grouping makes equal. NaN or an infinity that does not come from overflow is no rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.expr import Expr
from layoutproof.ir.interp import same_values
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import walk
from layoutproof.verify.replay.reading import Tracker
from layoutproof.verify.replay.watching import NotWatched, exposed, is_rounded, watched
from layoutproof.verify.values.licences import Licence, Licences

__all__ = ["CONSTANTS", "NotWatched", "Strictness"]

CONSTANTS = (float("nan"), float("inf"), 3, 0, -2)
"""What stands for undefined values in the runs of a new program that is watched."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Strictness:
    """What is left out (`licences`); the old program watched, and, for `reassoc`, the new one, by what stands for undefined values;
    what tells, for `nnan` and `ninf`, what the old program reads, where that can be told."""

    licences: Licences = frozenset()
    program: PrimFunc | None = None
    new_programs: tuple[tuple[int | float, PrimFunc], ...] = ()
    reading: Tracker | None = None

    @staticmethod
    def of(licences: Licences, old: PrimFunc, new: PrimFunc) -> Strictness:
        """The strictness of a search. Raises NotWatched where the programs' values cannot be watched."""
        licences = relevant(licences, old, new)
        if not licences:
            return Strictness()
        program = watched(old, licences)
        reading = Tracker.of(old) if licences & {Licence.NNAN, Licence.NINF} else None
        if Licence.REASSOC not in licences:
            return Strictness(licences, program, reading=reading)
        if any(isinstance(node, Undef) for node in walk(new.body)):
            return Strictness(licences, program, tuple((value, exposed(new, value)) for value in CONSTANTS), reading)
        same = exposed(new, 0)
        return Strictness(licences, program, tuple((value, same) for value in CONSTANTS), reading)

    @property
    def only_firm(self) -> bool:
        """Whether rounding is no evidence."""
        return Licence.REASSOC in self.licences

    def same(self, a: Array, b: Array) -> Mask:
        """Scalar by scalar: value identity, up to a zero's sign where that is licensed."""
        found = same_values(a, b)
        if Licence.NSZ in self.licences:
            found = found | np.asarray((a == 0) & (b == 0))
        return found

    def left_out(self, arrays: Mapping[str, Array]) -> dict[str, Mask]:
        """Which scalars of the inputs hold what the licences leave out where the old program reads it; nothing for other buffers."""
        masks = {}
        for name, array in arrays.items():
            if array.dtype.kind in "biu":
                continue
            with np.errstate(invalid="ignore"):
                numbers = array.astype(np.float64)
            wrong = np.zeros(array.shape, dtype=np.bool_)
            if Licence.NNAN in self.licences:
                wrong |= np.isnan(numbers)
            if Licence.NINF in self.licences:
                wrong |= np.isinf(numbers)
            if wrong.any():
                masks[name] = wrong
        return masks


def relevant(licences: Licences, old: PrimFunc, new: PrimFunc) -> Licences:
    """The licences that can explain anything in two programs: none where there are no floats, no `reassoc` where nothing is rounded."""
    exprs = [node for func in (old, new) for node in walk(func) if isinstance(node, Expr)]
    if not any(expr.dtype.is_float for expr in exprs):
        return frozenset()
    return licences if any(is_rounded(expr) for expr in exprs) else licences - {Licence.REASSOC}
