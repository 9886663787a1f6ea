"""How a kernel's results may differ from the program: error bounds of functions in units in the last place, and the
like.

A kernel without liberties equals the interpreter bit for bit. Bounds of OpenCL are those of its specification (full
profile, and for fast arithmetic the table of relaxed functions); those of a C library's `float` functions are above
what libraries state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from layoutproof.ir.functions.definitions import DEFINITIONS
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import walk


@dataclass(frozen=True, slots=True)
class Bound:
    """An error bound: `ulps` of the result, plus `grows` per unit of the argument, or `absolute` if that is larger."""

    ulps: float
    grows: float = 0.0
    absolute: float = 0.0

    @property
    def text(self) -> str:
        """The bound as text."""
        more = f" + {self.grows:g} |x|" if self.grows else ""
        return f"{self.ulps:g}{more}" + (f" (or {self.absolute:g})" if self.absolute else "")


@dataclass(frozen=True, slots=True)
class Inexact:
    """The liberties of a kernel: error bounds of functions by name, on narrower types and on float64.

    `division` is the bound of `/` on float32 and narrower types; `regroups` allows sums and products in any order, and
    fused; `flushes` takes subnormals for zero.
    """

    functions: Mapping[str, Bound] = field(default_factory=dict)
    doubles: Mapping[str, Bound] = field(default_factory=dict)
    division: float = 0.0
    regroups: bool = False
    flushes: bool = False

    def bound(self, call: Call) -> Bound | None:
        """The bound of a call; None where it is exact."""
        return (self.doubles if call.dtype.bits == 64 else self.functions).get(call.function)

    def meets(self, func: PrimFunc) -> bool:
        """Whether some liberty concerns a function."""
        if self.division or self.regroups or self.flushes:
            return True
        return any(isinstance(node, Call) and self.bound(node) is not None for node in walk(func.body))


EXACT = Inexact()


def function_notes(func: PrimFunc, inexact: Inexact, library: str) -> tuple[str, ...]:
    """The notes of a kernel's report on functions without a definition of ours, which are the `library`'s, with their
    bounds.
    """
    calls = [node for node in walk(func.body) if isinstance(node, Call) and node.dtype.is_float]
    bounds = {call.function: bound for call in calls if (bound := inexact.bound(call)) is not None}
    notes = []
    own = sorted({_words(call) for call in calls if call.function not in bounds} - {""})
    if own:
        notes.append(f"not defined by a sequence, but by the float64 function of {library}: {', '.join(own)}")
    if bounds:
        listed = ", ".join(f"{name} {bound.text}" for name, bound in sorted(bounds.items()))
        notes.append(
            f"within these bounds, in units in the last place: {listed}; results lie within the enclosure of the "
            "program"
        )
    return tuple(notes)


def _words(call: Call) -> str:
    """A function where it is the library's: on float64, `pow`, and angles beyond a limit; else nothing."""
    definition = DEFINITIONS.get(call.function)
    if call.function == "pow" or (call.dtype.bits == 64 and definition is not None):
        return f"{call.function} of {call.dtype.element}"
    return (
        f"{call.function} beyond {definition.limit:,.0f}"
        if definition is not None and definition.limit is not None
        else ""
    )


def _table(text: str) -> dict[str, Bound]:
    words = text.split()
    return {name: Bound(float(ulps)) for name, ulps in zip(words[::2], words[1::2], strict=True)}


_NO_SIGMOID = 2.0**-127
"""Composed of `exp`, which overflows there, a sigmoid below this may be 0."""

_LIBRARY = {
    **_table("exp 4 exp2 4 log 4 log2 4 log10 4 tanh 4 sinh 4 cosh 4 erf 4 atan 4 sin 4 cos 4 tan 4 pow 4 rsqrt 4"),
    "sigmoid": Bound(8.0, absolute=_NO_SIGMOID),
}
_OPENCL = {
    **_table("exp 3 exp2 3 log 3 log2 3 log10 3 tanh 5 sinh 4 cosh 4 erf 16 atan 5 sin 4 cos 4 tan 5 pow 16 rsqrt 4"),
    "sigmoid": Bound(8.0, absolute=_NO_SIGMOID),
}
_BY_DEVICE = _table("pow 1 sin 1 cos 1 tan 1")
"""A device's own functions on `double`, rounded: `pow`, and the others at large arguments."""

_RELAXED = {
    **_OPENCL,
    **{name: Bound(3.0, grows=2.0) for name in ("exp", "exp2")},
    **{name: Bound(3.0, absolute=2.0**-21) for name in ("log", "log2", "log10")},
    **{name: Bound(4.0, absolute=2.0**-11) for name in ("sin", "cos")},
    "sigmoid": Bound(16.0, grows=2.0, absolute=_NO_SIGMOID),
    "tan": Bound(float("inf")),
    "atan": Bound(4096.0),
    "pow": Bound(8192.0),
    "sqrt": Bound(3.0),
}

FAST_C = Inexact(_LIBRARY, _LIBRARY, division=2.0, regroups=True)


def of_device(*, doubles: bool, fast: bool, division: float, regroups: bool, flushes: bool) -> Inexact:
    """The liberties of an OpenCL device."""
    if fast:
        return Inexact(_RELAXED, _RELAXED, division=3.0, regroups=True, flushes=True)
    narrow = {**(_BY_DEVICE if doubles else _OPENCL), **({"sqrt": Bound(division)} if division else {})}
    return Inexact(narrow, _OPENCL, division, regroups, flushes)
