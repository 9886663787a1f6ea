"""Kernels from generated text: arguments, launches, limits before and at a call, the report, and everything that is
refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyopencl
import pytest
from tests.lowering.codegen.programs import function, loop
from tests.lowering.runtime.kernels import rows_of_four
from tests.lowering.runtime.opencl.sources import (
    argument,
    copied,
    copy_source,
    default_device,
    parameters,
    pointer_source,
    pointwise,
    texture,
)
from tests.shares import one_in

from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import FLOAT32
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, BufferStore, seq
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.opencl.cl_helpers import READ_WRITE_IMAGES, Launch, OpenCLSource
from layoutproof.lowering.runtime.kernel import LoweredFunc
from layoutproof.lowering.runtime.opencl import device_behaviour as formats
from layoutproof.lowering.runtime.opencl.devices import Device, ImageLimits, Profile, parse_profile
from layoutproof.lowering.runtime.opencl.load_opencl import OpenCLKernel, load_opencl

N = Var("n")


def load(func: PrimFunc, source: OpenCLSource, device: Device | None = None, **options: Any) -> OpenCLKernel:
    """A kernel on pocl."""
    lowered = LoweredFunc(func, options.pop("layouts", {}))
    return load_opencl(lowered, source, device if device is not None else default_device(), **options)


def refused(call: Callable[[], Any]) -> tuple[str, str]:
    """The code and the message of what a call raises."""
    with pytest.raises(LayoutproofError) as caught:
        call()
    first = caught.value.diagnostics[0]
    return first.code, first.message


def double(a: Expr) -> Expr:
    """Twice a number."""
    return a + a


def test_buffers_and_symbols() -> None:
    """One kernel for every length, 0 included, compared with the interpreter when it is built."""
    func = pointwise(N, double)
    kernel = load(func, pointer_source(func, "a + a"))
    for length in (0, 1, 5, 1000):
        x = np.arange(length, dtype=np.float32)
        assert np.array_equal(np.asarray(kernel(x)), x + x)
    assert kernel.report.self_check == "equal to the interpreter for n = 5, bit for bit"


def test_logical_calls_pack_and_unpack() -> None:
    """The face is that of a C kernel: logical arrays, padding by contract, what is known of buffers."""
    func = pointwise(16, double)
    pairs = zip("AB", func.buffers, strict=True)
    a, b = (make_buffer(name, (4, 4), "float32", data=buffer.data) for name, buffer in pairs)
    func = replace(func, buffer_map=tuple((p, new) for (p, _), new in zip(func.buffer_map, (a, b), strict=True)))
    source = replace(pointer_source(pointwise(16, double), "a + a"), parameters=parameters(func))
    layouts = {"A": rows_of_four(14, const(0.5, FLOAT32)), "B": rows_of_four(14)}
    kernel = load(func, source, layouts=layouts)
    x = np.arange(14, dtype=np.float32)
    assert np.array_equal(np.asarray(kernel(x)), x + x)
    assert kernel.buffers["A"].logical_shape == (14,) and kernel.buffers["A"].contracts == ("T.float32(0.5)",)
    physical = np.zeros((4, 4), dtype=np.float32)
    kernel.raw(np.ones((4, 4), dtype=np.float32), physical)
    assert (physical == 2).all() and repr(kernel) == "<kernel pointwise(A, B)>"


@pytest.mark.parametrize("rows", [1, 3])
def test_textures(rows: int) -> None:
    """Every texel of an image arrives where it was, at a size that is known and at one that is not."""
    for func in (copied(rows, 20), copied(N, 20)):
        kernel = load(func, copy_source(func))
        x = np.random.default_rng(1).standard_normal((rows, 20)).astype(np.float32)
        assert np.array_equal(np.asarray(kernel(x)), x)


def test_cells_that_are_not_written_stay() -> None:
    """An output keeps what the kernel leaves alone, in a buffer and in a texture."""
    a, b = make_buffer("A", (4,), "float32"), make_buffer("B", (6,), "float32")
    func = function("pointwise", [a, b], loop("i", 4, lambda i: BufferStore(b, (i,), BufferLoad(a, (i,)))))
    kernel = load(func, pointer_source(func, "a"))
    left = np.full(6, 9, dtype=np.float32)
    kernel.raw(np.zeros(4, dtype=np.float32), left)
    assert left.tolist() == [0, 0, 0, 0, 9, 9]
    func = copied(2, 8)
    source = copy_source(func)
    narrow = replace(source, launches=(replace(source.launches[0], global_size=(const(1), const(2))),))
    kernel = load(func, narrow, check=False)
    left = np.full((2, 8), 9, dtype=np.float32)
    kernel.raw(np.zeros((2, 8), dtype=np.float32), left)
    assert left.reshape(-1).tolist() == [0, 0, 0, 0, 9, 9, 9, 9] * 2


CHAIN = """
__kernel void first(__global const float *A, __global float *T, float factor) {
    int i = (int)get_global_id(0);
    T[i] = A[i] * factor;
}
__kernel void second(__global const float *T, __write_only image2d_t B) {
    int i = (int)get_global_id(0);
    write_imagef(B, (int2)(i, 0), (float4)(T[4 * i + 3], T[4 * i + 2], T[4 * i + 1], T[4 * i]));
}
"""


def chain() -> tuple[PrimFunc, OpenCLSource]:
    """A scaled copy in a temporary, then every four numbers turned round into a texture: two kernels and a scalar."""
    a, t = make_buffer("A", (N,), "float32"), make_buffer("T", (N,), "float32")
    b = make_buffer("B", (1, N), "float32", scope="global.texture")
    factor = Var("factor", FLOAT32)
    scale = loop("i", N, lambda i: BufferStore(t, (i,), BufferLoad(a, (i,)) * factor))
    turn = loop("i", N, lambda i: BufferStore(b, (const(0), i), BufferLoad(t, (i // 4 * 4 + 3 - i % 4,))))
    func = function("chain", [a, b], Allocate(t, seq(scale, turn)), scalars=[factor])
    image = texture(b)
    numbers = {p.name: p for p in parameters(func)}
    launches = (
        Launch("first", (argument(a, "read_only"), argument(t, "write_only"), numbers["factor"]), (N,), None),
        Launch("second", (argument(t, "read_only"), argument(b, "write_only", image)), (image.width,), None),
    )
    return func, OpenCLSource(CHAIN, launches, parameters(func), (t,), 32, ())


def test_launches_in_order() -> None:
    """The second kernel finds in the temporary what the first one left there; a scalar arrives."""
    func, source = chain()
    kernel = load(func, source, check=False)
    x = np.arange(8, dtype=np.float32)
    found = np.zeros((1, 8), dtype=np.float32)
    kernel.raw(x, found, 3.0)
    assert found.reshape(-1).tolist() == [9, 6, 3, 0, 21, 18, 15, 12]


@one_in(4)
def test_calls_from_several_threads() -> None:
    """Arguments belong to a kernel object, which threads share: calls take turns."""
    func = pointwise(N, double)
    kernel = load(func, pointer_source(func, "a + a"))
    wrong: list[int] = []

    def work(number: int) -> None:
        for length in range(number, number + 20):
            x = np.full(length, number, dtype=np.float32)
            if not np.array_equal(np.asarray(kernel(x)), x + x):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_arrays_in_one_memory_are_refused() -> None:
    """A device has copies: even where the function assumes nothing, an output that is an input cannot be had."""
    func = pointwise(4, double, noalias=False)
    kernel = load(func, pointer_source(func, "a + a"))
    x = np.zeros(4, dtype=np.float32)
    code, message = refused(lambda: kernel.raw(x, x))
    assert (code, message) == (codes.OVERLAP, "A and B overlap in memory, and B is written")


ARGUMENTS: list[tuple[str, Callable[[], Any], str, str]] = [
    (
        "shape",
        lambda: np.zeros((3, 8), np.float32),
        codes.ARGUMENT_SHAPE,
        "A has shape [3, 8]; its physical shape is [2, 8]",
    ),
    (
        "rank",
        lambda: np.zeros(16, np.float32),
        codes.ARGUMENT_SHAPE,
        "A has 1 axes, [16]; its physical shape is [2, 8], 2 axes",
    ),
    ("type", lambda: np.zeros((2, 8), np.float16), codes.ARGUMENT_TYPE, "A holds float16; float32 is expected"),
    (
        "gaps",
        lambda: np.zeros((2, 16), np.float32)[:, ::2],
        codes.ARGUMENT_MEMORY,
        "A is not contiguous (strides [64, 8])",
    ),
    ("list", lambda: [[0.0] * 8] * 2, codes.NOT_AN_ARRAY, "A is a list; an array is expected"),
]


@pytest.mark.parametrize(
    ("make", "code", "message"), [case[1:] for case in ARGUMENTS], ids=[case[0] for case in ARGUMENTS]
)
def test_wrong_arrays(make: Callable[[], Any], code: str, message: str) -> None:
    """What a C kernel refuses, this one does, before anything is copied."""
    func = copied(2, 8)
    kernel = load(func, copy_source(func), check=False)
    assert refused(lambda: kernel.raw(make(), np.zeros((2, 8), np.float32))) == (code, message)


def test_read_only_outputs() -> None:
    """An output that may not be written is refused."""
    func = copied(2, 8)
    kernel = load(func, copy_source(func), check=False)
    x = np.zeros((2, 8), dtype=np.float32)
    output = x.copy()
    output.flags.writeable = False
    assert refused(lambda: kernel.raw(x, output)) == (
        codes.READ_ONLY,
        "B is written by the kernel and is read-only",
    )


def test_images_that_are_too_wide_when_built() -> None:
    """Known sizes are compared with the device and with the profile before anything is compiled."""
    title = default_device().title
    for func, profile, message in (
        (copied(1, 4 * 16385), None, f"A is an image of RGBA texels of FLOAT 16385 texels wide; {title} takes 16384"),
        (copied(16385, 4), None, f"A is an image of RGBA texels of FLOAT 16385 texels high; {title} takes 16384"),
        (
            copied(2, 4 * 4097),
            "4096x8192",
            "A is an image of RGBA texels of FLOAT 4097 texels wide; the profile 4096x8192 takes 4096",
        ),
        (
            copied(8193, 8),
            "4096x8192",
            "A is an image of RGBA texels of FLOAT 8193 texels high; the profile 4096x8192 takes 8192",
        ),
    ):
        limits = parse_profile(profile) if profile is not None else None
        broken = replace(copy_source(func), text="this does not compile")
        assert refused(partial(load, func, broken, profile=limits)) == (codes.IMAGE_SIZE, message)
    func = copied(2, 4 * 4096)
    load(func, copy_source(func), profile=Profile(4096, 4096), check=False)


def test_images_that_are_too_wide_when_called() -> None:
    """A symbolic size is compared at each call: the one that just fits runs, the next one does not, and its output is
    as it was.
    """
    func = copied(1, N * 4)
    kernel = load(func, copy_source(func), profile=Profile(8, 8))
    assert kernel.report.self_check == "equal to the interpreter for n = 5, bit for bit"
    fitting = np.ones((1, 32), dtype=np.float32)
    assert np.array_equal(np.asarray(kernel(fitting)), fitting)
    wide, output = np.ones((1, 36), dtype=np.float32), np.zeros((1, 36), dtype=np.float32)
    message = "A is an image of RGBA texels of FLOAT 9 (n*4//4) texels wide; the profile 8x8 takes 8"
    assert refused(lambda: kernel.raw(wide, output)) == (codes.IMAGE_SIZE, message)
    assert refused(lambda: kernel(wide)) == (codes.IMAGE_SIZE, message)
    assert not output.any()


def test_memory_that_the_device_does_not_have() -> None:
    """An array larger than the device allocates at once, and arrays larger than its memory together, are refused by
    name.
    """
    device = default_device()
    func = pointwise(N, double)
    source = pointer_source(func, "a + a")
    x = np.zeros(1 << 20, dtype=np.float32)
    small = load(func, source, replace(device, largest_buffer=1 << 21, memory=1 << 30))
    assert refused(lambda: small(x)) == (
        codes.DEVICE_MEMORY,
        f"A takes 4.0 MB; {device.title} allocates 2.0 MB at once",
    )
    full = load(func, source, replace(device, largest_buffer=1 << 23, memory=6 << 20))
    assert refused(lambda: full(x)) == (
        codes.DEVICE_MEMORY,
        f"the arrays and temporaries take 8.0 MB; {device.title} has 6.0 MB",
    )


def test_what_a_device_lacks() -> None:
    """Images, types, images that are read and written, and work groups: each is refused with what would do."""
    device = default_device()
    func = copied(2, 8)
    source = copy_source(func)
    title = device.title
    for there, changed, message in (
        (replace(device, images=None), source, f"{title} has no images, and A is one"),
        (
            device,
            copy_source(func, extensions=["cl_khr_fp16"]),
            f"{title} has not what the program needs: arithmetic in float16",
        ),
        (
            replace(device, fp64=False),
            copy_source(func, extensions=["cl_khr_fp64"]),
            f"{title} has not what the program needs: arithmetic in float64",
        ),
        (
            device,
            copy_source(func, extensions=["cl_vendor_x"]),
            f"{title} has not what the program needs: the extension cl_vendor_x",
        ),
        (
            replace(device, read_write_images=False),
            copy_source(func, extensions=[READ_WRITE_IMAGES]),
            f"{title} has not what the program needs: images that one kernel both reads and writes",
        ),
        (
            replace(device, largest_group=64, group_sizes=(64, 32, 32)),
            copy_source(func, local=(2, 64)),
            f"{title} takes work groups of at most 64 in all and [64, 32, 32] by axis; the loops of copied are bound "
            "to [2, 64]",
        ),
    ):
        assert refused(partial(load, func, changed, there)) == (codes.LACKING, message)
    assert load(
        func, copy_source(func, extensions=["cl_khr_fp64", READ_WRITE_IMAGES], local=(2, 1))
    ).report.command.startswith("-cl-std=CL3.0")


def test_formats_that_a_device_gets_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A format that is not listed, and one that does not give back what was written, are not relied on."""
    func = copied(2, 8)
    message = f"A is an image of RGBA texels of FLOAT; {default_device().title}"
    with monkeypatch.context() as patch:
        patch.setattr(formats, "works", lambda *_: False)
        wrong = (codes.LACKING, f"{message} has them, but does not read there what was written")
        assert refused(lambda: load(func, copy_source(func))) == wrong
    with monkeypatch.context() as patch:
        patch.setattr(pyopencl, "get_supported_image_formats", lambda *_: [])
        assert refused(lambda: load(func, copy_source(func))) == (codes.LACKING, f"{message} has no such images")


def test_text_that_does_not_compile() -> None:
    """The device's compiler is quoted, with the options it was given."""
    func = pointwise(4, double)
    code, message = refused(lambda: load(func, pointer_source(func, "nonsense(a)")))
    assert code == codes.NOT_COMPILED and "nonsense" in message
    assert f"the compiler of {default_device().title} failed on pointwise" in message
    assert "options: -cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt" in message


def test_a_wrong_kernel_is_caught() -> None:
    """A kernel that computes something else is refused by its self check, and the device's compiler is named."""
    func = pointwise(4, double)
    with pytest.raises(LayoutproofError, match=r"disagree: B\[0\]") as caught:
        load(func, pointer_source(func, "a + a + 1.0f"))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == codes.SELF_CHECK
    assert diagnostic.help is not None and f"the compiler of {default_device().title} or layoutproof" in diagnostic.help


def test_kernels_that_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the driver says of a launch is passed on with the kernel's and the device's names, not thrown at the caller
    as it is.
    """
    func = pointwise(6, double)
    kernel = load(func, pointer_source(func, "a + a"), check=False)

    def refuse(*_: object) -> None:
        raise pyopencl.LogicError(pyopencl._cl._ErrorRecord(msg="", code=-54, routine="clEnqueueNDRangeKernel"))

    monkeypatch.setattr(pyopencl, "enqueue_nd_range_kernel", refuse)
    code, message = refused(lambda: kernel(np.zeros(6, dtype=np.float32)))
    assert code == codes.DID_NOT_RUN
    assert message.startswith(
        f"pointwise did not run on {default_device().title}: clEnqueueNDRangeKernel failed: INVALID_WORK_GROUP_SIZE"
    )


def test_options_and_report() -> None:
    """Correct division where the device has it; the report names the device and takes no fast-math assumption there."""
    device = default_device()
    func = pointwise(4, lambda a: a / const(3.0, FLOAT32))
    report = load(func, pointer_source(func, "a / 3.0f")).report
    assert (report.target, report.device, report.fast_math, report.notes) == ("opencl", device.title, (), ())
    assert report.command == "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
    assert report.self_check == "equal to the interpreter, bit for bit"
    fast = load(func, pointer_source(func, "a / 3.0f"), fast=True).report
    assert (
        fast.fast and fast.command == "-cl-std=CL1.2 -cl-fast-relaxed-math" and "built with fast math" in fast.notes[0]
    )


def test_fast_math_that_a_device_takes() -> None:
    """A device that flushes subnormals or divides approximately is told, where the program computes so, by name and in
    words.
    """
    device = default_device()
    lesser = replace(device, subnormals=False, correct_division=False)
    divided = pointwise(4, lambda a: a / const(3.0, FLOAT32))
    report = load(divided, pointer_source(divided, "a / 3.0f"), lesser).report
    assert report.fast_math == ("flush-subnormals", "approximate-division")
    assert report.notes == (
        f"fast-math assumption flush-subnormals: {device.title} has no float32 subnormals: operands and results below "
        "2**-126 may count as zero",
        f"fast-math assumption approximate-division: {device.title} does not round float32 division and square root "
        "correctly: they are up to 3 ulp off",
    )
    assert report.command == "-cl-std=CL1.2" and report.self_check == "equal to the interpreter, bit for bit"
    root = pointwise(4, lambda a: Call("sqrt", (Call("abs", (a,)),)))
    assert load(root, pointer_source(root, "sqrt(fabs(a))"), lesser).report.fast_math == (
        "flush-subnormals",
        "approximate-division",
    )
    added = pointwise(4, double)
    assert load(added, pointer_source(added, "a + a"), lesser).report.fast_math == ("flush-subnormals",)
    moved = pointwise(4, lambda a: a)
    assert load(moved, pointer_source(moved, "a"), lesser).report.fast_math == ()


@pytest.mark.parametrize(
    "text", ["16384", "0x5", "4096x", "x4096", "4096 x 4096", "-1x4", "4096x4096x4096", "9999999999x1", "wide"]
)
def test_profiles_that_are_none(text: str) -> None:
    """A profile is two numbers."""
    assert refused(lambda: parse_profile(text)) == (codes.PROFILE, f"the device profile {text!r} is not understood")


def test_arrays_of_images_have_so_many_layers() -> None:
    """More layers than the device has are refused."""
    device = default_device()
    assert device.images is not None
    few = replace(device, images=ImageLimits(16384, 16384, 2))
    a, b = (make_buffer(name, (3, 2, 8), "float32", scope="global.texture") for name in "AB")
    func = function(
        "layered", [a, b], BufferStore(b, (const(0), const(0), const(0)), BufferLoad(a, (const(0), const(0), const(0))))
    )
    images = [texture(buffer) for buffer in (a, b)]
    launch = Launch(
        "layered", (argument(a, "read_only", images[0]), argument(b, "write_only", images[1])), (const(1),), None
    )
    source = OpenCLSource("", (launch,), parameters(func), (), 32, ())
    message = f"A is an array of images of RGBA texels of FLOAT 3 layers deep; {device.title} takes 2"
    assert refused(lambda: load(func, source, few)) == (codes.IMAGE_SIZE, message)
