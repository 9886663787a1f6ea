"""Arrays of other libraries go in and out without a copy; what cannot is refused by name before anything runs."""

import gc
import importlib.util
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.lowering.codegen.programs import TYPES, Array, numpy_type
from tests.lowering.runtime.exporters import MAKERS, Both, Copying, Exporter, Lazy, Old, OnCuda, OnCudaBoth
from tests.lowering.runtime.kernels import blocked_copy, rows_of_four, scaled_sum

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import DType
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.runtime.arrays import as_array
from layoutproof.lowering.runtime.build_c import build_c
from layoutproof.lowering.runtime.kernel import Kernel


@pytest.fixture(scope="module")
def copying() -> Kernel:
    """B is A, both of 4 rows of 4."""
    return build_c(blocked_copy(16))


def numbers(dtype: str = "float32") -> Array:
    """Sixteen of them."""
    return np.arange(16).reshape(4, 4).astype(dtype)


def torch_makers() -> dict[str, Callable[[Array], Any]]:
    """torch's tensors, where torch is installed."""
    if importlib.util.find_spec("torch") is None:
        return {}
    import torch  # type: ignore[import-not-found,unused-ignore]  # an optional extra

    return {"torch": torch.from_numpy}


@pytest.mark.parametrize("make", [*MAKERS.values(), *torch_makers().values()], ids=[*MAKERS, *torch_makers()])
def test_in_and_out_without_a_copy(make: Callable[[Array], Any], copying: Kernel) -> None:
    """An input is read where it lies, and an output is written where it lies, by a call and by raw()."""
    a, b = numbers(), np.zeros((4, 4), np.float32)
    assert as_array("A", make(a)).ctypes.data == a.ctypes.data
    copying.raw(make(a), make(b))
    assert np.array_equal(a, b)
    c = np.zeros((4, 4), np.float32)
    found = copying(A=make(a), B=make(c))
    assert np.array_equal(a, c) and np.shares_memory(np.asarray(found), c)


def test_outputs_in_another_layout_are_written_back() -> None:
    """Where the kernel works on a packed copy, the result arrives in the exporter's memory all the same."""
    kernel = build_c(blocked_copy(14), {"A": rows_of_four(14), "B": rows_of_four(14)})
    a, b = np.arange(14, dtype=np.float32), np.zeros(14, dtype=np.float32)
    kernel(Exporter(a), Exporter(b))
    assert np.array_equal(a, b)


def test_the_array_interface_is_asked_before_dlpack() -> None:
    """Who offers both is not asked for a capsule."""
    both = Both(numbers())
    as_array("A", both)
    assert set(both.asked) == {"interface"}


@pytest.mark.parametrize("form", [Exporter, Old])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_element_type(dtype: DType, form: type[Exporter]) -> None:
    """What programs have comes through DLPack with its bits, bfloat16 and bool too."""
    array = np.array([0, 1, 1, 0, 1]).astype(numpy_type(dtype))
    found = as_array("A", form(array))
    assert found.dtype == array.dtype and found.tobytes() == array.tobytes() and found.ctypes.data == array.ctypes.data


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (2, 3, 5)], ids=str)
def test_shapes(shape: tuple[int, ...]) -> None:
    """No axes, no elements, several axes."""
    array = np.ones(shape, dtype=np.int16)
    assert as_array("A", Exporter(array)).shape == shape


def test_offsets_and_strides() -> None:
    """An offset in bytes is followed; strides arrive as they are, so that gaps are refused by the same words as
    anybody's.
    """
    array = numbers()
    later = as_array("A", Exporter(array[:2], byte_offset=32))
    assert np.array_equal(later, array[2:])
    assert np.array_equal(as_array("A", Exporter(array, strides=0)), array)
    assert np.array_equal(as_array("A", Exporter(array.T)), array.T)
    with pytest.raises(LayoutproofError, match="A is not contiguous") as caught:
        build_c(blocked_copy(16)).raw(Exporter(array.T), array)
    assert caught.value.diagnostics[0].code == codes.ARGUMENT_MEMORY


def test_the_exporter_is_asked_without_a_copy() -> None:
    """A version and no copy are asked for, and less from those who know less."""
    new, old = Exporter(numbers()), Old(numbers())
    assert np.array_equal(as_array("A", new), as_array("A", old))
    assert new.asked == [{"max_version": (1, 0), "copy": False}]
    assert old.asked == [{"max_version": (1, 0), "copy": False}, {"max_version": (1, 0)}, {}]


@pytest.mark.parametrize("options", [{}, {"max_version": (1, 0)}], ids=["old", "versioned"])
def test_memory_is_given_back_with_the_last_array(options: dict[str, Any]) -> None:
    """The exporter's memory stays for as long as an array or a part of it is there, and no longer."""

    class Once:
        """An exporter that forgets its array."""

        def __init__(self, array: Array) -> None:
            self.capsule: object = array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **_: Any) -> object:
            capsule, self.capsule = self.capsule, None
            return capsule

    array = numbers()
    gone = weakref.ref(array)
    whole = as_array("A", Once(array))
    del array
    part = whole[1:]
    del whole
    gc.collect()
    assert gone() is not None and np.array_equal(part, numbers()[1:])
    del part
    gc.collect()
    assert gone() is None


REFUSED: list[tuple[str, Callable[[Array], Any], str, str]] = [
    ("cuda", OnCuda, codes.OTHER_MEMORY, "B is in the memory of a CUDA device; "),
    ("cuda by both", OnCudaBoth, codes.OTHER_MEMORY, r"B is in the memory of a CUDA device \(number 1\)"),
    ("opencl", lambda a: Exporter(a, device=(4, 0)), codes.OTHER_MEMORY, "an OpenCL device"),
    ("vulkan", lambda a: Exporter(a, device=(7, 0)), codes.OTHER_MEMORY, "a Vulkan device"),
    ("unheard of", lambda a: Exporter(a, device=(99, 0)), codes.OTHER_MEMORY, r"unknown \(type 99\)"),
    ("two stories", lambda a: Exporter(a, device_type=2), codes.NOT_AN_ARRAY, "another device than it says"),
    ("read-only", lambda a: Exporter(a, flags=1), codes.READ_ONLY, "B is written by the kernel and is read-only"),
    ("copied", lambda a: Exporter(a, flags=2), codes.READ_ONLY, "B is written .* a copy of its memory"),
    ("other memory", Copying, codes.READ_ONLY, "B is written .* a copy of its memory"),
    ("new version", lambda a: Exporter(a, version=(2, 1)), codes.NOT_AN_ARRAY, r"version 2\.1 of DLPack; version 1"),
    ("four bits", lambda a: Exporter(a, bits=4), codes.NOT_AN_ARRAY, "4 bits"),
    ("lanes", lambda a: Exporter(a, lanes=4), codes.NOT_AN_ARRAY, "4 lanes"),
    ("complex", lambda a: Exporter(a, code=5), codes.NOT_AN_ARRAY, "code 5"),
    ("doubles", lambda a: Exporter(a.astype(np.float64)), codes.ARGUMENT_TYPE, "B holds float64"),
    ("gaps", lambda a: Exporter(np.zeros((4, 8), np.float32)[:, ::2]), codes.ARGUMENT_MEMORY, "B is not contiguous"),
    ("shape", lambda a: Exporter(a.reshape(2, 8)), codes.ARGUMENT_SHAPE, r"B has shape \[2, 8\]"),
    ("in between", lambda a: Exporter(a, byte_offset=2), codes.ARGUMENT_MEMORY, "B is not aligned"),
    ("lazy", lambda a: Lazy(), codes.NOT_AN_ARRAY, "B is a Lazy; an array is expected"),
    ("masked", lambda a: np.ma.masked_array(a, mask=a == 0), codes.NOT_AN_ARRAY, "masked"),
]


@pytest.mark.parametrize(("make", "code", "words"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
@pytest.mark.parametrize("raw", [False, True], ids=["logical", "physical"])
def test_refused(raw: bool, make: Callable[[Array], Any], code: str, words: str, copying: Kernel) -> None:
    """Device, direction, version, type, strides, shape: named before anything runs."""
    b = np.zeros((4, 4), np.float32)
    with pytest.raises(LayoutproofError, match=words) as caught:
        (copying.raw if raw else copying)(A=numbers(), B=make(b))
    assert caught.value.diagnostics[0].code == code
    assert not b.any()


def test_inputs_may_be_read_only_or_copies(copying: Kernel) -> None:
    """What is only read need not be writable, nor the exporter's own memory."""
    for make in (lambda a: Exporter(a, flags=1), lambda a: Exporter(a, flags=2), Copying):
        assert np.array_equal(np.asarray(copying(make(numbers()))), numbers())


def test_pinned_memory_is_the_processor_s(copying: Kernel) -> None:
    """What CUDA or ROCm pin on the host is taken."""
    for kind in (3, 11):
        assert np.array_equal(np.asarray(copying(Exporter(numbers(), device=(kind, 0)))), numbers())


def test_a_capsule_that_is_none(copying: Kernel) -> None:
    """Something else than a capsule, and one that was used, are named."""

    class Odd(Exporter):
        """An exporter that gives a number."""

        def __dlpack__(self, **options: Any) -> object:
            return 7

    with pytest.raises(LayoutproofError, match="no DLPack capsule") as caught:
        copying(Odd(numbers()))
    assert caught.value.diagnostics[0].code == codes.NOT_AN_ARRAY


def test_overlap_is_seen_through_other_arrays() -> None:
    """Two exporters of one memory are one memory."""
    kernel = build_c(scaled_sum())
    memory = np.zeros(8, np.float32)
    given = {
        "A": Exporter(memory),
        "B": Both(memory),
        "total": np.zeros(1, np.float32),
        "count": np.zeros(1, np.int32),
        "factor": 1.0,
    }
    with pytest.raises(LayoutproofError, match="A and B overlap"):
        kernel.raw(**given)
