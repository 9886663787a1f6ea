"""Arrays with ground around them that nobody may step on: a kernel that writes beside its arguments is seen, whatever it leaves in them.

The ground is as large as the array itself, so that a loop that runs one row too far lands on it, within limits: what lies further away
is memory of somebody else, and only the sanitizers tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutproof.lowering.runtime.arrays import Array

_LEAST, _MOST = 256, 1 << 20  # bytes of ground on each side
_ALIGNMENT = 64
_PATTERN = 0xA5


class GuardedArrays:
    """Copies of some arrays, by name, each with ground on both sides. Values that are no arrays are kept as they are."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arrays: dict[str, Any] = {}
        self._grounds: dict[str, tuple[npt.NDArray[np.uint8], int]] = {}
        for name, value in arguments.items():
            self.arrays[name] = self._copy(name, value) if isinstance(value, np.ndarray) else value

    def _copy(self, name: str, array: Array) -> Array:
        ground = _ground(array.nbytes)
        whole = np.full(2 * ground + array.nbytes + _ALIGNMENT, _PATTERN, dtype=np.uint8)
        # numpy's own arrays begin at a multiple of 16 at least; the copy begins at one of a cache line.
        start = ground + -(whole.ctypes.data + ground) % _ALIGNMENT
        inside = whole[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        inside[...] = array
        self._grounds[name] = (whole, start)
        return inside

    def trespassed(self) -> tuple[str, int] | None:
        """The first array beside which something was written, and where, in bytes: below 0 before its first byte, else behind its last
        one (0 is the first behind). None where nothing was.
        """
        for name, (whole, start) in self._grounds.items():
            end = start + self.arrays[name].nbytes
            before, behind = (np.flatnonzero(part != _PATTERN) for part in (whole[:start], whole[end:]))
            if before.size:
                return name, int(before[-1]) - start
            if behind.size:
                return name, int(behind[0])
        return None


def _ground(size: int) -> int:
    return -(-min(max(size, _LEAST), _MOST) // _ALIGNMENT) * _ALIGNMENT
