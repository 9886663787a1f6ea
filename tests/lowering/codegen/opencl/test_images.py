"""Textures as images: their sizes and formats, and how texels are read and written."""

import re

import pytest
from tests.lowering.codegen.opencl.programs import PLAIN, TEXTURE, compile_source, copied, kernel_text, program, texture
from tests.lowering.codegen.programs import function
from tests.shares import one_in

from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Ramp, Var, const
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, DeclBuffer, For, ForKind
from layoutproof.lowering.codegen.opencl.cl_emit import emit_opencl
from layoutproof.lowering.codegen.opencl.cl_helpers import Image, KernelArgument
from layoutproof.lowering.codegen.opencl.cl_images import TEXTURE as TEXTURES

CHANNELS = {
    "float32": ("FLOAT", "f"), "float16": ("HALF_FLOAT", "f"), "int8": ("SIGNED_INT8", "i"),
    "int16": ("SIGNED_INT16", "i"), "int32": ("SIGNED_INT32", "i"), "uint8": ("UNSIGNED_INT8", "ui"),
    "uint16": ("UNSIGNED_INT16", "ui"), "uint32": ("UNSIGNED_INT32", "ui"),
}  # fmt: skip


def images(func: PrimFunc) -> dict[str, Image]:
    """The images of a function's kernels by name."""
    arguments = [a for launch in emit_opencl(func).launches for a in launch.arguments]
    return {a.name: a.image for a in arguments if isinstance(a, KernelArgument) and a.image is not None}


def sizes(image: Image) -> list[int]:
    """Width, height and layers."""
    return [
        int(evaluate(size, {"n": 3, "m": 5})) for size in (image.width, image.height, image.layers) if size is not None
    ]


@one_in(28)
@pytest.mark.parametrize("dtype", CHANNELS)
def test_channel_types(dtype: str) -> None:
    """Each type that images hold has its channels and its functions, for four channels and for one."""
    kind, suffix = CHANNELS[dtype]
    for row, order in ((8, "RGBA"), (7, "R")):
        func = program(
            f"A: {texture(f'(6, {row})', dtype)}, B: {texture(f'(6, {row})', dtype)}",
            f"for y in T.parallel(6):\n    B[y, T.ramp(0, 1, {row})] = A[y, T.ramp(0, 1, {row})] * "
            f"T.broadcast(T.{dtype}(2), {row})",
        )
        found = images(func)["B"]
        assert (found.channel_order, found.channel_type, found.channels) == (order, kind, 4 if order == "RGBA" else 1)
        text = kernel_text(func)
        assert f"read_image{suffix}(A, " in text and f"write_image{suffix}(B, " in text


def test_symbolic_rows() -> None:
    """A row is texels of four channels where its extent is a multiple of 4 for all values of the symbols."""
    parameters = "a: T.handle, b: T.handle"
    body = """
A = T.match_buffer(a, (m, n), "float32")
B = T.match_buffer(b, (m, {row}), "float32", scope="global.texture", axis_separators=[1])
for y in T.parallel(m):
    for x in T.parallel(n):
        for c in T.vectorized(4):
            B[y, {index}] = A[y, x]
"""
    four = images(program(parameters, body.format(row="n * 8 + 4 * n", index="x * 12 + c"), symbols="n m"))["B"]
    assert (four.channels, sizes(four)) == (4, [9, 5])
    one = images(program(parameters, body.format(row="n * 6", index="x * 6 + c"), symbols="n m"))["B"]
    assert (one.channels, sizes(one)) == (1, [18, 5])


@one_in(4)
def test_layers() -> None:
    """Three axes are layers, rows and what stands in a row; coordinates are in the order x, y, layer."""
    func = program(
        f"A: {texture('(2, 3, 8)')}, B: {PLAIN}",
        """
for n in T.parallel(2):
    for y in T.parallel(3):
        B[n * 3 + y, T.ramp(0, 1, 8)] = A[n, y, T.ramp(0, 1, 8)]
""",
    )
    image = images(func)["A"]
    assert (image.kind, sizes(image)) == ("image2d_array", [2, 3, 2])
    text = kernel_text(func)
    assert "read_only image2d_array_t A" in text
    assert "read_imagef(A, (int4)(0, y, n, 0))" in text and "read_imagef(A, (int4)(1, y, n, 0))" in text


@one_in(4)
def test_elements_of_four_lanes_are_texels() -> None:
    """A buffer of float32x4 has one texel per element: the same image as four times as many float32."""
    a, b = make_buffer("A", (6, 8), "float32", scope=TEXTURES), make_buffer("B", (6, 2), "float32x4", scope=TEXTURES)
    view = make_buffer("V", (6, 2), "float32x4", data=a.data, scope=TEXTURES)
    y, x = Var("y"), Var("x")
    value = BufferLoad(view, (y, 1 - x)) + BufferLoad(a, (y, Ramp(const(0), const(1), 4)))
    body = For(
        y,
        const(0),
        const(6),
        ForKind.PARALLEL,
        For(x, const(0), const(2), ForKind.PARALLEL, BufferStore(b, (y, x), value)),
    )
    func = function("f", [a, b], DeclBuffer(view, body))
    assert [sizes(image) for image in images(func).values()] == [[2, 6], [2, 6]]
    assert "read_imagef(A, (int2)(1 - x, y))" in kernel_text(func)


@one_in(4)
def test_a_texel_is_read_once() -> None:
    """Four channels of one texel, and the same texel in two places, are one read."""
    text = kernel_text(copied(TEXTURE, PLAIN, "A[y, x * 4 + c] * A[y, x * 4 + c] + A[y, 3 - c]"))
    assert text.count("read_imagef(") == 2
    assert "read_imagef(A, (int2)(x, y))" in text and "read_imagef(A, (int2)(0, y))" in text
    assert "vstore4(" in text


@one_in(10)
def test_whole_texels_are_handed_on() -> None:
    """A copy hands texels on; from memory four elements are loaded at a time, and into memory they are stored so."""
    assert "write_imagef(B, (int2)(x, y), A_texel);" in kernel_text(copied(TEXTURE, TEXTURE))
    assert "write_imagef(B, (int2)(x, y), vload4(0, A + (y * 8 + x * 4)));" in kernel_text(copied(PLAIN, TEXTURE))
    assert "vstore4(A_texel, 0, B + (y * 8 + x * 4));" in kernel_text(copied(TEXTURE, PLAIN))


@one_in(14)
@pytest.mark.parametrize(
    "index", ["T.Select(x < 1, y * 8, y * 8 + c)", "y * 8 + c * 2", "(y * 8 + c) ^ 1", "y * 8 + 3 - c"]
)
def test_four_elements_apart_are_not_loaded_as_neighbours(index: str) -> None:
    """Elements that are not one behind the other are read one by one."""
    func = copied('T.Buffer((48,), "float32")', TEXTURE, f"A[{index}]")
    assert "vload4" not in kernel_text(func)


@one_in(4)
def test_single_elements_are_channels() -> None:
    """An element of a texel by itself is its channel; which one, where the index does not say, is computed."""
    func = program(
        f"A: {TEXTURE}, B: {PLAIN}",
        """
for y in T.parallel(6):
    for x in T.parallel(8):
        B[y, x] = A[y, x] + A[y, 5]
""",
    )
    text = kernel_text(func)
    assert "lp_channel_f32(read_imagef(A, (int2)(x / 4, y)), x % 4)" in text
    assert "read_imagef(A, (int2)(1, y)).y" in text


@one_in(4)
def test_lanes_over_two_texels_are_read_from_both() -> None:
    """A vector load that begins inside a texel, or steps another way, takes each lane from where it is."""
    func = program(
        f"A: {TEXTURE}, B: {PLAIN}",
        """
for y in T.parallel(6):
    B[y, T.ramp(0, 1, 4)] = A[y, T.ramp(2, 1, 4)]
    B[y, T.ramp(4, 1, 4)] = A[y, T.ramp(6, -2, 4)]
""",
    )
    text = kernel_text(func)
    assert re.findall(r"vstore4\(\(float4\)\((.*?)\), 0", text) == [
        "A_texel.z, A_texel.w, A_texel_1.x, A_texel_1.y",
        "A_texel_2.z, A_texel_2.x, A_texel_3.z, A_texel_3.x",
    ]


@one_in(4)
def test_a_texel_under_a_condition_is_read_under_it() -> None:
    """What if_then_else leaves unread, because it may lie outside, is not read ahead of the choice."""
    text = kernel_text(copied(TEXTURE, TEXTURE, "T.if_then_else(y < 5, A[y + 1, x * 4 + c], T.float32(0))"))
    assert "const float4 A_texel = y < 5 ? read_imagef(A, (int2)(x, y + 1)) : (float4)(0);" in text
    assert text.count("read_imagef(") == 1


@one_in(14)
@pytest.mark.parametrize("kind", ["serial", "unroll", "vectorized", "parallel"])
def test_loops_over_four_lanes_are_one_write(kind: str) -> None:
    """A loop over a texel's elements, of whatever kind, is one write, unless each of its iterations is a work item."""
    func = program(
        f"A: {PLAIN}, B: {TEXTURE}",
        f"for y in T.serial(6):\n    for x in range(2):\n        for c in T.{kind}(4):\n"
        "            B[y, x * 4 + c] = A[y, x * 4 + c]",
    )
    text = kernel_text(func)
    assert text.count("write_imagef(") == 1 and text.count("for (") == 2


@one_in(4)
def test_loops_that_do_more_are_gathered() -> None:
    """A loop over a texel's elements that computes each in steps collects them and writes the texel afterwards."""
    func = program(
        f"A: {PLAIN}, B: {TEXTURE}, C: {PLAIN}",
        """
for y in T.parallel(6):
    for x in T.parallel(2):
        for c in T.unroll(4):
            C[y, x * 4 + c] = T.float32(0)
            for k in range(8):
                C[y, x * 4 + c] = C[y, x * 4 + c] + A[y, k]
            B[y, x * 4 + c] = C[y, x * 4 + c] * T.float32(2)
""",
    )
    text = kernel_text(func)
    assert "B_lanes[c] = " in text
    write = "    }\n    write_imagef(B, (int2)(x, y), (float4)(B_lanes[0], B_lanes[1], B_lanes[2], B_lanes[3]));\n}\n"
    assert text.endswith(write) and text.count("write_imagef(") == 1


@one_in(4)
def test_a_guard_that_all_lanes_share_stands_around_the_write() -> None:
    """A condition inside the loop that does not depend on the lane is asked once."""
    func = program(
        f"A: {PLAIN}, B: {TEXTURE}",
        """
for y in T.parallel(8):
    for x in T.parallel(2):
        for c in T.vectorized(4):
            if y < 6:
                B[y, x * 4 + c] = A[y, x * 4 + c]
""",
    )
    text = kernel_text(func)
    assert text.index("if (y < 6)") < text.index("write_imagef(")
    assert "for (" not in text


@one_in(4)
def test_wide_stores_write_texels_in_order() -> None:
    """Eight lanes are two texels; where the image is also read, all lanes are computed before the first write."""
    func = program(f"B: {TEXTURE}", "for y in T.parallel(6):\n    B[y, T.ramp(0, 1, 8)] = B[y, T.ramp(7, -1, 8)]")
    text = kernel_text(func)
    assert text.count("write_imagef(") == 2
    assert text.rindex("read_imagef(") < text.index("write_imagef(")
    assert text.rindex("const float4") < text.index("write_imagef(")


@one_in(4)
def test_what_the_lanes_number_decides_is_decided() -> None:
    """A choice by the number of the lane is taken where the lanes are written apart, and only what it takes is read."""
    value = "T.if_then_else(c < 2 and y > 0, A[y, x * 4 + c], T.Select(c != 3, T.float32(5), A[5 - y, c]))"
    text = " ".join(kernel_text(copied(TEXTURE, TEXTURE, value)).split())
    assert "(float4)(y > 0 ? A_texel.x : 5.0f, y > 0 ? A_texel.y : 5.0f, 5.0f, A_texel_1.w)" in text


@one_in(4)
def test_sums_of_texels_are_vectors() -> None:
    """An accumulator of four elements that a loop over lanes adds texels to is loaded, added to and stored as one
    vector.
    """
    func = program(
        f"A: {TEXTURE}, W: {texture('(8, 4)')}, B: {texture('(6, 4)')}",
        """
total = T.alloc_buffer((6, 4), "float32")
for y in T.parallel(6):
    for c in T.vectorized(4):
        total[y, c] = T.float32(0)
    for k in range(8):
        for c in T.vectorized(4):
            total[y, c] = total[y, c] + A[y, k] * W[k, c]
    for c in T.vectorized(4):
        B[y, c] = total[y, c]
""",
    )
    text = kernel_text(func)
    added = "vload4(0, total + y * 4) + lp_channel_f32(A_texel, k % 4) * W_texel"
    assert f"vstore4({added}, 0, total + y * 4);" in " ".join(text.replace("(y * 4)", "y * 4").split())
    assert "write_imagef(B, (int2)(0, y), vload4(0, total + (y * 4)));" in text


@one_in(4)
def test_a_loop_that_hands_values_on_is_left_in_order() -> None:
    """Where an iteration reads what the one before it stored, values are not computed together."""
    func = program(
        f"A: {TEXTURE}, B: {PLAIN}",
        "for y in T.parallel(6):\n    for c in T.serial(4):\n        B[y, c + 1] = B[y, c] + A[y, c]",
    )
    text = kernel_text(func)
    assert "vstore4" not in text
    assert [line.split(" = ")[0].strip() for line in text.split("\n") if "] = " in line] == [
        f"B[y * 8 + 1{k}]" for k in ("", " + 1", " + 2", " + 3")
    ]


@one_in(4)
def test_texels_that_memory_points_to_are_read_in_turn() -> None:
    """Where a texel depends on memory that the loop writes, the loop stays: nothing is read before its iteration."""
    func = program(
        f'A: {TEXTURE}, B: T.Buffer((4,), "int32"), C: {texture("(6, 8)", "int32")}',
        "for y in T.serial(1):\n    for c in T.serial(4):\n        B[c] = C[B[0], c]",
    )
    text = kernel_text(func)
    assert "for (int c = 0; c < 4; ++c)" in text
    compile_source(emit_opencl(func))
