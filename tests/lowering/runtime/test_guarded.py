"""Arrays with ground around them: what is written beside them is found, with its place, and nothing else is."""

import ml_dtypes
import numpy as np
import pytest

from layoutproof.lowering.runtime.selfcheck import GuardedArrays


def beside(array: np.ndarray, offset: int) -> np.ndarray:
    """The bytes of the memory that an array is a part of, from `offset` bytes away from its first one on."""
    whole = array
    while whole.base is not None:
        assert isinstance(whole.base, np.ndarray)
        whole = whole.base
    place = array.ctypes.data - whole.ctypes.data + offset
    return whole[place : place + 1]


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "bool", ml_dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (100, 7)], ids=str)
def test_copies_are_the_arrays(dtype: object, shape: tuple[int, ...]) -> None:
    """Values, type, shape and contiguity are kept, memory is another, and writing inside is no trespass."""
    array = np.ones(shape, dtype=dtype)  # type: ignore[call-overload]  # one of several types
    guarded = GuardedArrays({"A": array, "n": 3})
    copy = guarded.arrays["A"]
    assert (
        guarded.arrays["n"] == 3 and copy.dtype == array.dtype and copy.shape == shape and np.array_equal(copy, array)
    )
    assert copy.flags.c_contiguous and copy.flags.aligned and copy.flags.writeable and not np.shares_memory(copy, array)
    assert copy.size == 0 or copy.ctypes.data % 64 == 0
    copy[...] = 0
    assert guarded.trespassed() is None


@pytest.mark.parametrize(("offset", "told"), [(-1, -1), (-200, -200), (60, 0), (61, 1), (60 + 255, 255)])
def test_what_is_written_beside_is_found(offset: int, told: int) -> None:
    """The byte before the first, the byte behind the last, and those some way off."""
    guarded = GuardedArrays({"A": np.zeros(4, np.float32), "B": np.zeros((3, 5), np.float32)})
    beside(guarded.arrays["B"], offset)[0] ^= 1
    assert guarded.trespassed() == ("B", told)


def test_the_nearest_is_told() -> None:
    """Of several places before an array the last one, of several behind it the first."""
    guarded = GuardedArrays({"A": np.zeros(8, np.int64)})
    for offset in (64, 70, 100):
        beside(guarded.arrays["A"], offset)[0] = 0
    assert guarded.trespassed() == ("A", 0)
    beside(guarded.arrays["A"], -30)[0] = 0
    beside(guarded.arrays["A"], -3)[0] = 0
    assert guarded.trespassed() == ("A", -3)
