"""What a device does to float results of its own accord, whatever was proved: told in a kernel's report, by name and in words.

OpenCL leaves two things to a device in float32: whether numbers below the normal ones are kept, and whether `/` and `sqrt` are
rounded correctly. Everything else that IEEE 754 defines, OpenCL does; a compiler that regroups sums all the same is told of too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from layoutproof.ir.expr import Binary, BinaryOp, Cast
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import walk
from layoutproof.lowering.runtime.opencl.behaviour import Behaviour
from layoutproof.lowering.runtime.opencl.devices import Device

DIVISION_ULPS = 3
"""Units in the last place by which a device without correct rounding may be off: 2.5 for `/`, 3 for `sqrt`."""

_ROOTS = ("sqrt", "rsqrt")


@dataclass(frozen=True, slots=True)
class Taken:
    """A licence that a device takes: its name, and what it means for the results of this kernel."""

    name: str
    words: str


def licences_taken(func: PrimFunc, device: Device, seen: Behaviour) -> tuple[Taken, ...]:
    """Those that some operation of the function meets, by what the device says of itself and by what was seen of it."""
    return tuple(_taken(func, device, seen))


def _taken(func: PrimFunc, device: Device, seen: Behaviour) -> Iterator[Taken]:
    computed = list(computed_in_single(func))
    if computed and (seen.flushes or not device.subnormals):
        words = f"{device.title} has no float32 subnormals: operands and results below 2**-126 may count as zero"
        yield Taken("flush-subnormals", words)
    if any(_divides(node) for node in computed) and (seen.divides_inexactly or not device.correct_division):
        words = f"{device.title} does not round float32 division and square root correctly: they are up to {DIVISION_ULPS} ulp off"
        yield Taken("approximate-division", words)
    if seen.regroups and any(isinstance(node, Binary) for node in computed):
        words = f"the compiler of {device.title} regroups float32 sums, or fuses them with products, whatever it is told"
        yield Taken("reassoc", words)


def computed_in_single(func: PrimFunc) -> Iterator[Binary | Call | Cast]:
    """Everything that a function computes in float32: half-precision numbers are too."""
    for node in walk(func.body):
        if isinstance(node, Binary | Call | Cast) and node.dtype.is_float and node.dtype.bits <= 32:
            yield node


def _divides(node: Binary | Call | Cast) -> bool:
    match node:
        case Binary(op=BinaryOp.DIV):
            return True
        case Call(function=function):
            return function in _ROOTS
        case _:
            return False
