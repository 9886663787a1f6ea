"""What transforms refuse, and in which words: golden texts, one for each refusal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.conftest import Golden
from tests.lowering.programs import copy, program, two_stages

from layoutproof.ir.expr import const
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import replace_buffers
from layoutproof.lowering import codes
from layoutproof.lowering.layout import TransformLayout
from layoutproof.lowering.pad_value import PadText
from layoutproof.lowering.schedule import IllegalTransform, Schedule
from layoutproof.verify import codes as claims
from layoutproof.verify.verdict import Status

QUARTERS = "lambda i: [i//4, i%4]"


@dataclass(frozen=True)
class Refusal:
    """A transform that must be refused: the function, the step, and the code of the message."""

    code: str
    func: Callable[[], PrimFunc]
    step: TransformLayout
    interface: str = "free"


def of_copy(
    code: str, pad: PadText = None, index_map: str = QUARTERS, dtype: str = "float32", block: str = "copy", buffer: str = "B"
) -> Refusal:
    """A transform of `B[i] = A[i]` over 14 elements."""
    return Refusal(code, lambda: copy("14", dtype), TransformLayout(block, buffer, index_map, pad))


def aliased() -> PrimFunc:
    """A temporary with two further views of it."""
    return program("""def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    C = T.alloc_buffer((16,), "int32")
    rows = T.decl_buffer((4, 4), "int32", data=C.data)
    pairs = T.decl_buffer((8, 2), "int32", data=C.data)
    for i in range(16):
        with T.sblock("copy"):
            v = T.axis.spatial(16, i)
            C[v] = A[v]
            B[v] = rows[v // 4, v % 4] + pairs[v // 2, v % 2]
""")


def matched() -> PrimFunc:
    """A block with a view of a row."""
    return program("""def main(A: T.Buffer((8, 8), "int32")):
    for i in range(8):
        with T.sblock("row"):
            vi = T.axis.spatial(8, i)
            row = T.match_buffer(A[vi, 0:8], (8,), "int32")
            row[0] = 0
            A[vi, 1] = 1
""")


def handed_over() -> PrimFunc:
    """A buffer whose address goes to an extern function."""
    return program("""def main(A: T.Buffer((16,), "int32")):
    with T.sblock("call"):
        A[0] = 0
        T.evaluate(T.call_extern("int32", "frobnicate", A.data))
""")


def vector() -> PrimFunc:
    """A copy, four elements at a time."""
    return program("""def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(4):
        with T.sblock("copy"):
            v = T.axis.spatial(4, i)
            B[T.Ramp(v * 4, 1, 4)] = A[T.Ramp(v * 4, 1, 4)]
""")


def vector_elements() -> PrimFunc:
    """A copy of float32x4 elements."""
    return program("""def main(A: T.Buffer((14,), "float32x4"), B: T.Buffer((14,), "float32x4")):
    for i in range(14):
        with T.sblock("copy"):
            v = T.axis.spatial(14, i)
            B[v] = A[v]
""")


def strided() -> PrimFunc:
    """A parameter whose rows lie 17 apart."""
    func = program("""def main(A: T.Buffer((4, 16), "float32")):
    with T.sblock("one"):
        A[0, 0] = T.float32(0)
""")
    (param, buffer) = func.buffer_map[0]
    wide = replace(buffer, strides=(const(17), const(1)))
    return replace(func, buffer_map=((param, wide),), body=replace_buffers(func.body, {buffer: wide}))


def shifted() -> PrimFunc:
    """A program that reads one element too far."""
    return program("""def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    for i in range(14):
        with T.sblock("shift"):
            v = T.axis.spatial(14, i)
            B[v] = A[v + 1]
""")


REFUSALS: dict[str, Refusal] = {
    "not_injective": of_copy(codes.NOT_INJECTIVE, index_map="lambda i: [i//4]"),
    "not_injective_rotation": of_copy(codes.NOT_INJECTIVE, index_map="lambda i: [(4*i) % 14]"),
    "below_zero": of_copy("LP103", index_map="lambda i: [i - 1]"),
    "map_of_another_rank": of_copy(codes.MAP_ARITY, index_map="lambda i, j: [i, j]"),
    "map_is_no_lambda": of_copy("LP121", index_map="[i//4, i%4]"),
    "map_with_a_float": of_copy("LP119", index_map="lambda i: [i*0.5]"),
    "unknown_buffer": of_copy(codes.NO_BUFFER, buffer="b"),
    "unknown_block": of_copy(codes.NO_BLOCK, block="cpoy"),
    "block_without_the_buffer": Refusal(codes.NOT_IN_BLOCK, two_stages, TransformLayout("first", "C", "lambda i, j: [j, i]")),
    "pad_int8_for_int32": of_copy(codes.PAD_TYPE, "T.int8(0)", dtype="int32"),
    "pad_int32_for_float32": of_copy(codes.PAD_TYPE, "T.int32(0)"),
    "pad_half_for_int32": of_copy(codes.PAD_TYPE, 0.5, dtype="int32"),
    "pad_too_large_for_int8": of_copy(codes.PAD_TYPE, 300, dtype="int8"),
    "pad_not_a_float32": of_copy(codes.PAD_TYPE, 2**24 + 1),
    "pad_number_for_bool": of_copy(codes.PAD_TYPE, 1, dtype="bool"),
    "pad_bool_for_int32": of_copy(codes.PAD_TYPE, True, dtype="int32"),
    "pad_of_two_values": of_copy(codes.PAD_TYPE, "lambda i, j: [0.0, 1.0]"),
    "pad_of_one_index": of_copy(codes.PAD_TYPE, "lambda i: 0.0"),
    "pad_loads_another_buffer": of_copy(codes.PAD_LOADS, "lambda i, j: A[i]"),
    "pad_undef_in_an_index": of_copy(codes.PAD_UNDEF, 'lambda i, j: B[T.undef(dtype="int32"), j]'),
    "pad_undef_in_part": of_copy(codes.PAD_UNDEF, 'lambda i, j: T.undef(dtype="float32") + T.float32(1)'),
    "pad_undefined_name": of_copy("LP116", "lambda i, j: k"),
    "pad_not_python": of_copy("LP110", "lambda i, j:"),
    "pad_of_vectors": Refusal(codes.PAD_OF_VECTORS, vector_elements, TransformLayout("copy", "A", QUARTERS, 0.0)),
    "aliases": Refusal(codes.ALIASES, aliased, TransformLayout("copy", "C", QUARTERS)),
    "matched_region": Refusal(codes.ALIASES, matched, TransformLayout("row", "A", "lambda i, j: [j, i]")),
    "pointer": Refusal(codes.POINTER_USE, handed_over, TransformLayout("call", "A", QUARTERS)),
    "vector_index": Refusal(codes.VECTOR_INDEX, vector, TransformLayout("copy", "B", QUARTERS)),
    "strides": Refusal(codes.STRIDES, strided, TransformLayout("one", "A", "lambda i, j: [j, i]")),
    "fixed_interface": Refusal(codes.FIXED_INTERFACE, copy, TransformLayout("copy", "B", QUARTERS), "fixed"),
    "out_of_bounds": Refusal(claims.OUTSIDE, shifted, TransformLayout("shift", "B", "lambda i: [i//2, i%2]")),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_say_why(name: str, golden: Golden) -> None:
    """Facts 61 to 69 and the table of transforms: each refusal has its own message, and leaves the schedule as it was."""
    refusal = REFUSALS[name]
    schedule = Schedule(refusal.func(), interface=refusal.interface)
    with pytest.raises(IllegalTransform) as caught:
        schedule.apply(refusal.step)
    assert caught.value.diagnostics[0].code == refusal.code
    assert schedule.func == refusal.func() and not schedule.steps
    golden(f"refusals/{name}.txt", f"{caught.value}\n")


def test_refuted_maps_carry_their_counterexample() -> None:
    """Where something was refuted, the verdict is in the exception."""
    for name in ("not_injective", "not_injective_rotation", "out_of_bounds"):
        refusal = REFUSALS[name]
        with pytest.raises(IllegalTransform) as caught:
            Schedule(refusal.func()).apply(refusal.step)
        assert caught.value.status is Status.REFUTED and caught.value.verdicts[0].counterexample


def test_every_code_is_explained_and_used() -> None:
    """Codes are unique, each has its meaning, and each stands in some message."""
    named = {name: value for name, value in vars(codes).items() if name.isupper() and isinstance(value, str)}
    assert len(set(named.values())) == len(named)
    assert set(codes.MEANINGS) == set(named.values())
    folder = Path(codes.__file__).parent
    text = "".join(path.read_text() for path in folder.rglob("*.py") if path.name != "codes.py")
    assert [name for name in named if f"codes.{name}" not in text] == []


def test_aliases_in_the_message_are_all_of_them() -> None:
    """The list of aliases left behind is complete."""
    with pytest.raises(IllegalTransform, match="rows, pairs"):
        Schedule(aliased()).apply(REFUSALS["aliases"].step)
