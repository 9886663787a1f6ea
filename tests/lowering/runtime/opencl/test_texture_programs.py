"""The flattenings of TVM's RFC `buffer-physical-layout` run as textures, whole texels written by vectors, caches, types
and refusals.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.conftest import Golden
from tests.lowering.codegen.programs import Array
from tests.lowering.programs import program
from tests.lowering.runtime.opencl.textures import forms_of
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.runtime.opencl.build_opencl import build_opencl
from layoutproof.lowering.runtime.opencl.devices import find_device
from layoutproof.lowering.runtime.opencl.load_opencl import OpenCLKernel
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.verdict.verdict import Status

TYPES = ("float32", "float16", "int8", "int16", "int32", "uint8", "uint16", "uint32")


def copy(
    shape: tuple[int | str, ...], dtype: str = "float32", scopes: tuple[str, str] = ("global", "global.texture")
) -> Schedule:
    """`B = A`, of four axes, with `B` a texture."""
    extents = ", ".join(str(extent) for extent in shape)
    symbols = "".join(f"    {extent} = T.int32()\n" for extent in shape if isinstance(extent, str))
    first, second = scopes
    text = f"""def main(a: T.handle, b: T.handle):
    T.func_attr({{"tirx.noalias": True}})
{symbols}    A = T.match_buffer(a, ({extents}), "{dtype}", scope="{first}")
    B = T.match_buffer(b, ({extents}), "{dtype}", scope="{second}")
    for m, n, p, q in T.grid({extents}):
        with T.sblock("B"):
            vm, vn, vp, vq = T.axis.remap("SSSS", [m, n, p, q])
            T.reads(A[vm, vn, vp, vq])
            T.writes(B[vm, vn, vp, vq])
            B[vm, vn, vp, vq] = A[vm, vn, vp, vq]
"""
    return Schedule(program(text))


def in_vectors(schedule: Schedule) -> Schedule:
    """Whole texels: the last loop by four, its four lanes at once; the first loop in parallel."""
    schedule.split("B", "q", [None, 4])
    schedule.vectorize("B", "q_1")
    schedule.parallel("B", "m")
    return schedule


def numbers(shape: tuple[int, ...], dtype: str) -> Array:
    """Different bits everywhere, special floats among them, no signalling NaN: a kernel that copies one may make it
    quiet.
    """
    kind = np.dtype(dtype)
    bits = np.random.default_rng(11).integers(0, 256, int(np.prod(shape)) * kind.itemsize, dtype=np.uint8).view(kind)
    if kind.kind == "f":
        bits[np.isnan(bits)] = 1.5
        tiny = np.finfo(kind).smallest_subnormal
        bits[:8] = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, np.finfo(kind).max], dtype=kind)
    return bits.reshape(shape)


# The documents' examples: the index map, the shape of the image's array, and where an element is in it.
FLATTENINGS: list[tuple[str, tuple[int, int, int, int], Any, Any]] = [
    (
        "lambda m, n, p, q: [m, n, AXIS_SEPARATOR, p, q]",
        (3, 4, 5, 7),
        lambda M, N, P, Q: (M * N, P * Q),
        lambda m, n, p, q, M, N, P, Q: (m * N + n, p * Q + q),
    ),
    (
        "lambda m, n, p, q: [m, AXIS_SEPARATOR, n, p, AXIS_SEPARATOR, q]",
        (3, 4, 5, 7),
        lambda M, N, P, Q: (M, N * P, Q),
        lambda m, n, p, q, M, N, P, Q: (m, n * P + p, q),
    ),
    (
        "lambda m, n, p, q: [m, n, AXIS_SEPARATOR, p, q]",
        (2, 3, 5, 8),
        lambda M, N, P, Q: (M * N, P * Q),
        lambda m, n, p, q, M, N, P, Q: (m * N + n, p * Q + q),
    ),
    (
        "lambda m, n, p, q: [m, AXIS_SEPARATOR, n, p, AXIS_SEPARATOR, q]",
        (2, 3, 5, 8),
        lambda M, N, P, Q: (M, N * P, Q),
        lambda m, n, p, q, M, N, P, Q: (m, n * P + p, q),
    ),
    (
        "lambda m, n, p, q: [m, q//4, n, AXIS_SEPARATOR, p, q%4]",
        (2, 3, 5, 8),
        lambda M, N, P, Q: (M * (Q // 4) * N, P * 4),
        lambda m, n, p, q, M, N, P, Q: (m * (Q // 4) * N + (q // 4) * N + n, p * 4 + q % 4),
    ),
    (
        "lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]",
        (3, 64, 64, 128),
        lambda N, H, W, C: (N * (C // 4) * 64, W * 4),
        lambda n, h, w, c, N, H, W, C: ((128 // 4) * 64 * n + 64 * (c // 4) + h, 4 * w + c % 4),
    ),
]


@one_in(28)
@pytest.mark.parametrize(
    ("index_map", "shape", "flat", "place"), FLATTENINGS, ids=[f"{f[0][8:]}-{f[1][-1]}" for f in FLATTENINGS]
)
def test_the_flattenings_of_the_document(
    index_map: str, shape: tuple[int, int, int, int], flat: Any, place: Any
) -> None:
    """Each example as a texture: every element stands in the image where the document's formula puts it, and comes back
    from there.
    """
    schedule = copy(shape)
    schedule.transform_layout("B", "B", index_map, None)
    kernel = (in_vectors(schedule) if shape[-1] % 4 == 0 else schedule).build("opencl")
    order = "RGBA" if shape[-1] % 4 == 0 else "R"
    assert forms_of(kernel) == {"B": (order, len(flat(*shape)))}
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    physical = np.full(kernel.physical_shape("B", {}), -1, dtype=np.float32)
    kernel.raw(x, physical)
    wanted = np.full(flat(*shape), -1, dtype=np.float32)
    indices = np.meshgrid(*(np.arange(extent) for extent in shape), indexing="ij")
    wanted[place(*indices, *shape)] = x
    assert (wanted >= 0).all() and np.array_equal(physical.reshape(wanted.shape), wanted)
    assert np.array_equal(np.asarray(kernel(x)), x)
    back = copy(shape, scopes=("global.texture", "global"))
    back.transform_layout("B", "A", index_map, None)
    reader = back.build("opencl")
    assert forms_of(reader) == {"A": (order, len(flat(*shape)))}
    found = np.zeros(shape, dtype=np.float32)
    reader.raw(physical, found)
    assert np.array_equal(found, x)


def test_the_document_s_own_element() -> None:
    """Element [11, 37, 23, 101] of a tensor of 64 by 64 by 128 channels is where the document computes it to be."""
    row, column = (128 // 4) * 64 * 11 + 64 * (101 // 4) + 37, 4 * 23 + 101 % 4
    schedule = copy((1, 64, 64, 128))
    schedule.transform_layout("B", "B", "lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]", None)
    kernel = in_vectors(schedule).build("opencl", check=False)
    x = np.zeros((1, 64, 64, 128), dtype=np.float32)
    x[0, 37, 23, 101] = 5
    physical = np.zeros(kernel.physical_shape("B", {}), dtype=np.float32)
    kernel.raw(x, physical)
    # The image of one of the 16: its rows begin where the 11 before it end.
    assert np.argwhere(physical.reshape(-1, 64 * 4)).tolist() == [[row - (128 // 4) * 64 * 11, column]]


def test_the_document_s_image_is_too_high_for_devices() -> None:
    """All 16 at once are 32,768 rows: more than the largest profile, which is refuted with the number of texels."""
    schedule = copy((16, 64, 64, 128))
    schedule.transform_layout("B", "B", "lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]", None)
    with pytest.raises(IllegalTransform) as caught:
        in_vectors(schedule).build("opencl", profile="16384x16384")
    assert caught.value.verdict is not None and caught.value.verdict.status is Status.REFUTED
    assert caught.value.verdict.counterexample is not None
    shown = {key: caught.value.verdict.counterexample[key] for key in ("buffer", "direction", "texels", "limit")}
    assert shown == {"buffer": "B", "direction": "height", "texels": 32768, "limit": 16384}


@one_in(33)
@pytest.mark.parametrize(("dtype", "layers"), list(product(TYPES, (False, True))))
def test_every_type_of_texel(dtype: str, layers: bool) -> None:
    """Each type through a kernel, from one RGBA texture to another: every bit arrives, and NaN as some NaN."""
    index_map = f"lambda n, h, w, c: [n, {'AXIS_SEPARATOR, ' if layers else ''}c//4, h, AXIS_SEPARATOR, w, c%4]"
    schedule = copy((2, 3, 5, 8), dtype, ("global.texture", "global.texture"))
    for name in "AB":
        schedule.transform_layout("B", name, index_map, None)
    kernel = in_vectors(schedule).build("opencl")
    assert forms_of(kernel) == dict.fromkeys("AB", ("RGBA", 3 if layers else 2))
    x = numbers((2, 3, 5, 8), dtype)
    found = np.asarray(kernel(x))
    if x.dtype.kind == "f":
        assert np.array_equal(np.isnan(found), np.isnan(x))
        found = np.where(np.isnan(x), x, found)
    assert found.tobytes() == x.tobytes()


@one_in(21)
@pytest.mark.parametrize("dtype", [name for name in TYPES if name != "float16"])
def test_every_type_of_one_channel(dtype: str) -> None:
    """The same with one channel to a texel, which rows of odd length have."""
    schedule = copy((2, 3, 5, 7), dtype, ("global.texture", "global.texture"))
    for name in "AB":
        schedule.transform_layout("B", name, "lambda n, h, w, c: [n, h, AXIS_SEPARATOR, w, c]", None)
    kernel = schedule.build("opencl")
    assert forms_of(kernel) == {"A": ("R", 2), "B": ("R", 2)}
    x = numbers((2, 3, 5, 7), dtype)
    found = np.asarray(kernel(x))
    assert np.array_equal(found, x, equal_nan=x.dtype.kind == "f") and np.array_equal(np.signbit(found), np.signbit(x))


@one_in(4)
def test_a_cache_in_textures() -> None:
    """The document's way: a copy in texture memory between buffers, laid out by a map, read by the next stage;
    interface unchanged.
    """
    schedule = Schedule(
        program("""def main(A: T.Buffer((2, 3, 5, 8), "float32"), B: T.Buffer((2, 3, 5, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for n, h, w, c in T.grid(2, 3, 5, 8):
        with T.sblock("B"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            B[vn, vh, vw, vc] = A[vn, vh, 4 - vw, vc] * T.float32(3)
""")
    )
    schedule.cache_read("B", "A", "global.texture")
    schedule.transform_layout("B", "A_global_texture", "lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]", None)
    schedule.split("A_global_texture", 3, [None, 4])
    schedule.vectorize("A_global_texture", 4)
    schedule.parallel("A_global_texture", 0)
    schedule.parallel("B", "n")
    kernel = schedule.build("opencl")
    assert isinstance(kernel, OpenCLKernel) and len(kernel.source.launches) == 2
    assert forms_of(kernel) == {"A_global_texture": ("RGBA", 2)}
    x = numbers((2, 3, 5, 8), "int32").astype(np.float32)
    assert np.array_equal(np.asarray(kernel(x)), x[:, :, ::-1] * np.float32(3))


def test_an_image_that_is_read_and_written() -> None:
    """A texture doubled in place, each texel by one work item: allowed with `read_write`, in OpenCL C of a version that
    has it.
    """
    schedule = Schedule(
        program("""def main(B: T.Buffer((6, 8), "float32", scope="global.texture")):
    for y, x in T.grid(6, 8):
        with T.sblock("B"):
            vy, vx = T.axis.remap("SS", [y, x])
            B[vy, vx] = B[vy, vx] + B[vy, vx]
""")
    )
    schedule.set_axis_separators("B", [0])
    schedule.split("B", "x", [None, 4])
    schedule.vectorize("B", "x_1")
    schedule.parallel("B", "y")
    kernel = schedule.build("opencl")
    assert kernel.report.command.startswith("-cl-std=CL3.0") and "read_write image2d_t" in kernel.source.text
    x = np.arange(48, dtype=np.float32).reshape(6, 8)
    assert np.array_equal(np.asarray(kernel(x.copy())), x + x)


def refusal(call: Any) -> str:
    """What a build that is refused says."""
    with pytest.raises(LayoutproofError) as caught:
        call()
    return str(caught.value).replace(find_device().title, "DEVICE") + "\n"


def test_part_of_a_texel_written_by_two_work_items(golden: Golden) -> None:
    """Work items that each write one lane of the same texel would undo each other's: refuted with two of them."""
    schedule = copy((2, 3, 5, 8))
    schedule.transform_layout("B", "B", "lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]", None)
    schedule.parallel("B", "q")
    golden.entry("opencl.txt", "partial_texel", refusal(lambda: schedule.build("opencl")))


LOWERED: dict[str, str] = {
    "racing_image": """def main(B: T.Buffer((6, 8), "float32", scope="global.texture", axis_separators=[1])):
    for y in T.parallel(5):
        for x in T.vectorized(8):
            B[y, x] = B[y + 1, x]
""",
    "undef_in_a_texture": """def main(B: T.Buffer((6, 8), "float32", scope="global.texture", axis_separators=[1])):
    for y in T.parallel(6):
        for x in T.vectorized(8):
            B[y, x] = T.undef("float32")
""",
    "outside_the_image": """def main(
    A: T.Buffer((48,), "float32"), B: T.Buffer((6, 8), "float32", scope="global.texture", axis_separators=[1])
):
    for y in T.parallel(6):
        for x in T.vectorized(8):
            A[y * 8 + x] = B[y + 1, x]
""",
}


@pytest.mark.parametrize("name", LOWERED)
def test_lowered_programs_that_are_no_kernels(golden: Golden, name: str) -> None:
    """A read-write image with a race, an undefined value in a texture, a coordinate outside: refuted with the place,
    nothing compiled.
    """
    golden.entry("opencl.txt", name, refusal(lambda: build_opencl(program(LOWERED[name]))))


def test_an_image_wider_than_the_profile(golden: Golden) -> None:
    """The profile's width is an obligation like the others."""
    schedule = copy((1, 1, 1, 4 * 4097))
    schedule.set_axis_separators("B", [2])
    golden.entry("opencl.txt", "wide_image", refusal(lambda: in_vectors(schedule).build("opencl", profile="4096x4096")))


def test_a_texture_without_separators(golden: Golden) -> None:
    """Four axes flatten to one, and an image has two: the message says what to add."""
    golden.entry("opencl.txt", "no_separators", refusal(lambda: copy((2, 3, 5, 8)).build("opencl")))


def test_symbolic_textures_are_asked_at_each_call() -> None:
    """A texture of any width is proved but for its size, for which the call that is too wide is refused before anything
    runs.
    """
    schedule = copy((1, 1, 1, "k"))
    schedule.set_axis_separators("B", [2])
    kernel = schedule.build("opencl", profile="4096x4096")
    assert kernel.report.self_check == "equal to the interpreter for k = 5, bit for bit"
    for width in (0, 1, 4096):
        x = np.arange(width, dtype=np.float32).reshape(1, 1, 1, width)
        assert np.array_equal(np.asarray(kernel(x)), x)
    wide, output = np.ones((1, 1, 1, 4097), dtype=np.float32), np.zeros((1, 1, 1, 4097), dtype=np.float32)
    message = "B is an image of R texels of FLOAT 4097 (k) texels wide; the profile 4096x4096 takes 4096"
    for call in (lambda: kernel(wide), lambda: kernel.raw(wide, output)):
        with pytest.raises(LayoutproofError) as caught:
            call()
        assert [(d.code, d.message) for d in caught.value.diagnostics] == [(codes.IMAGE_SIZE, message)]
    assert not output.any()


def test_symbolic_rows_of_whole_texels() -> None:
    """A row of any number of RGBA texels, indices in 64 bits: proved, run, and refused where it is too wide."""
    schedule = copy((1, 1, "k", 4))
    schedule.set_axis_separators("B", [1])
    kernel = in_vectors(schedule).build("opencl", profile="64x64")
    assert forms_of(kernel) == {"B": ("RGBA", 2)}
    x = np.arange(256, dtype=np.float32).reshape(1, 1, 64, 4)
    assert np.array_equal(np.asarray(kernel(x)), x)
    with pytest.raises(
        LayoutproofError,
        match=r"B is an image of RGBA texels of FLOAT 65 \(.*\) texels wide; the profile 64x64 takes 64",
    ):
        kernel(np.zeros((1, 1, 65, 4), dtype=np.float32))


def test_one_array_for_two_textures() -> None:
    """An output that is the input, or lies over a part of it, is refused before anything runs."""
    schedule = copy((2, 3, 5, 8), scopes=("global.texture", "global.texture"))
    for name in "AB":
        schedule.set_axis_separators(name, [1])
    kernel = in_vectors(schedule).build("opencl")
    memory = np.zeros(300, dtype=np.float32)
    for start in (0, 7):
        with pytest.raises(LayoutproofError, match="A and B overlap in memory, and B is written") as caught:
            kernel.raw(memory[:240].reshape(2, 3, 5, 8), memory[start : start + 240].reshape(2, 3, 5, 8))
        assert caught.value.diagnostics[0].code == codes.OVERLAP


def test_halves_of_one_channel() -> None:
    """pocl 3.0 reads them from the wrong place: a program that needs them is refused there, not run."""
    schedule = copy((2, 3, 5, 7), "float16")
    schedule.transform_layout("B", "B", "lambda n, h, w, c: [n, h, AXIS_SEPARATOR, w, c]", None)
    with pytest.raises(
        LayoutproofError, match=r"B is an image of R texels of HALF_FLOAT; .* does not read there what was written"
    ) as caught:
        schedule.build("opencl", device="pocl")
    assert caught.value.diagnostics[0].code == codes.LACKING


def test_options_of_the_other_target() -> None:
    """A device named for C, a target that is none, and a profile that is none are errors."""
    schedule = copy((2, 3, 5, 8), scopes=("global", "global"))
    for options, words in (
        ({"target": "c", "device": "pocl"}, "the C target runs on the processor"),
        ({"target": "metal"}, 'available: "c", "opencl"'),
    ):
        with pytest.raises(LayoutproofError, match=words):
            schedule.build(**options)  # type: ignore[call-overload]  # what a person may write
    with pytest.raises(LayoutproofError, match="the device profile 'huge' is not understood"):
        schedule.build("opencl", profile="huge")
    with pytest.raises(LayoutproofError) as caught:
        copy((2, 3, 5, 8)).build("c")
    assert caught.value.diagnostics[0].code == codes.UNSUPPORTED
