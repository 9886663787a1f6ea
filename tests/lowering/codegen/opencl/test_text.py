"""The generated text: golden, and accepted by a compiler of OpenCL C 1.2 without a warning."""

from collections.abc import Callable, Mapping

import pytest
from tests.conftest import Golden
from tests.lowering.codegen.opencl.programs import PLAIN, TEXTURE, compile_source, copied, program, texture
from tests.lowering.codegen.test_c_text import relu, strided_sum
from tests.shares import one_in

from layoutproof.ir.expr import Var
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.codegen.opencl.cl_emit import emit_opencl


def nhwc_to_texture() -> PrimFunc:
    """NHWC to rows of texels: `[n * 3 + h, (c // 4) * 5 + w]`, four channels a texel."""
    return program(
        f'A: T.Buffer((2, 3, 5, 8), "float32"), B: {texture("(6, 40)")}',
        """
for row in T.parallel(6):
    for block in T.parallel(2):
        for w in T.parallel(5):
            for c in T.vectorized(4):
                B[row, (block * 5 + w) * 4 + c] = A[row // 3, row % 3, w, block * 4 + c]
""",
        name="nhwc_to_texture",
    )


def single_channel() -> PrimFunc:
    """Rows of 7 elements: an image of one channel, which scalars are stored to."""
    return program(
        f'A: T.Buffer((7, 5), "float32"), B: {texture("(5, 7)")}',
        """
for y in T.parallel(5):
    for x in T.parallel(7):
        B[y, x] = T.max(A[x, y], T.float32(0))
""",
        name="single_channel",
    )


def image_array() -> PrimFunc:
    """Three axis groups, integers: an image for each n."""
    return program(
        f"A: {texture('(3, 5, 8)', 'int16')}, B: {texture('(3, 5, 8)', 'int16')}",
        """
for n in T.parallel(3):
    for y in T.parallel(5):
        for x in T.parallel(2):
            for c in T.unroll(4):
                B[n, y, x * 4 + c] = A[2 - n, y, x * 4 + c] * T.int16(3)
""",
        name="image_array",
    )


def row_means() -> PrimFunc:
    """A reduction into a temporary, which a second kernel reads; rows are symbolic."""
    return program(
        "a: T.handle, b: T.handle",
        """
A = T.match_buffer(a, (n, 32), "float32")
B = T.match_buffer(b, (n, 32), "float32")
total = T.alloc_buffer((n,), "float32")
for i in T.parallel(n):
    total[i] = T.float32(0)
    for k in range(32):
        total[i] = total[i] + A[i, k]
for i in T.parallel(n):
    for k in T.parallel(32):
        B[i, k] = A[i, k] - total[i] / T.float32(32)
""",
        name="row_means",
        symbols="n",
    )


def halves() -> PrimFunc:
    """float16: 16 bits in buffers, floats in images, rounded after each operation."""
    return copied(
        'T.Buffer((6, 8), "float16")', texture("(6, 8)", "float16"), "A[y, x * 4 + c] * T.float16(3) + T.float16(1)"
    )


GOLDENS: Mapping[str, Callable[[], PrimFunc]] = {
    "relu": relu,
    "strided_sum": lambda: strided_sum(Var("n"), 3),
    "nhwc_to_texture": nhwc_to_texture,
    "single_channel": single_channel,
    "image_array": image_array,
    "row_means": row_means,
    "halves": halves,
    "texture_to_texture": lambda: copied(
        TEXTURE, TEXTURE, "T.if_then_else(x < 1, A[y, x * 4 + c], A[y, 7 - x * 4 - c])"
    ),
    "read_write": lambda: copied(PLAIN, TEXTURE, "B[y, x * 4 + c] + A[y, x * 4 + c]"),
}


@one_in(10)
@pytest.mark.parametrize("name", GOLDENS)
def test_golden_text(name: str, golden: Golden) -> None:
    """Kernels as they are written, each of them compiled."""
    source = emit_opencl(GOLDENS[name]())
    golden(f"codegen/opencl/{name}.cl", source.text)
    compile_source(source)


def test_text_is_the_same_every_time() -> None:
    """Two emissions of equal functions give equal sources."""
    assert emit_opencl(row_means()) == emit_opencl(row_means())


def test_notes_stand_beside_the_parameters() -> None:
    """A remark on a buffer is read where the buffer is described."""
    text = emit_opencl(relu(), notes={"B": "logical [14] by lambda i: [i//4, i%4]"}).text
    assert " *   B  float32 [4, 4], written; logical [14] by lambda i: [i//4, i%4]\n" in text


def test_index_type_is_long_where_int_is_not_shown_to_do() -> None:
    """A symbolic row times 32 may pass 32 bits: indices are long unless the extent is bounded or the width given."""
    assert emit_opencl(row_means()).index_bits == 64
    assert emit_opencl(row_means(), bounds={"n": (1, 1000)}).index_bits == 32
    narrow = emit_opencl(row_means(), index_bits=32)
    assert narrow.index_bits == 32 and "long" not in narrow.text
    compile_source(narrow)


@one_in(7)
@pytest.mark.parametrize(
    "name", ["half", "kernel", "float4", "read_only", "as_float", "CLK_GLOBAL_MEM_FENCE", "expf", "int", "uint", "NAN"]
)
def test_names_of_the_language_are_not_taken(name: str) -> None:
    """A buffer, an extent or a function called like a word of OpenCL C is called otherwise in the text."""
    func = program(
        "a: T.handle, b: T.handle",
        f"""
A = T.match_buffer(a, ({name},), "float32")
B = T.match_buffer(b, ({name},), "float32")
for i in T.parallel({name}):
    B[i] = T.exp(A[i]) + T.float32("nan")
""",
        name=name,
        symbols=name,
    )
    compile_source(emit_opencl(func))
