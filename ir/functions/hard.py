"""Arguments at which a sequence comes out on the wrong side of a middle between two float32 numbers, with the right one.

They were found by going through all arguments: `python -m tests.ir.functions.exhaustive` does so again.
"""

from __future__ import annotations

from collections.abc import Mapping


def _pairs(text: str) -> tuple[tuple[float, float], ...]:
    numbers = [float.fromhex(word) for word in text.split()]
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


HARD: Mapping[str, tuple[tuple[float, float], ...]] = {
    "exp2": _pairs("0x1.853a6ep-9 0x1.00870ap+0  -0x1.e7526ep-6 0x1.f58d62p-1"),
    "log": _pairs(
        "0x1.827a74p-7 -0x1.1c2b1ep+2  0x1.2f1fd6p+3 0x1.1fcbcep+1  0x1.bacb4ap+25 0x1.1e0696p+4"
        "  0x1.b121a6p+76 0x1.a9a3f2p+5  0x1.6351d8p+95 0x1.08b512p+6"
    ),
    "sigmoid": _pairs("-0x1.250c02p-10 0x1.ffb6bep-2"),
    "sinh": _pairs("0x1.250bfep-11 0x1.250bfep-11  -0x1.250bfep-11 -0x1.250bfep-11"),
    "atan": _pairs("0x1.1ad646p-4 0x1.1a6386p-4  -0x1.1ad646p-4 -0x1.1a6386p-4"),
}
