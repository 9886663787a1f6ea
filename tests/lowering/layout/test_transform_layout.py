"""`transform_layout`: what it does to programs, and that the programs compute what they did."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.lowering.programs import copy, program, running_sum, two_stages
from tests.lowering.small_operators import CONCRETE, assert_same_results, random_map, small
from tests.shares import one_in

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import IntImm
from layoutproof.ir.interp import Fault, run
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import Block, For, Stmt
from layoutproof.ir.visit import walk
from layoutproof.lowering.layout.pad_value import PadText
from layoutproof.lowering.layout.separators import stated_separators
from layoutproof.lowering.layout.transform_layout import TransformLayout
from layoutproof.lowering.passes.find import all_buffers
from layoutproof.lowering.schedule.schedule import LOWERING

CELLS = 3000


def constant_shape(buffer: Buffer) -> list[int]:
    """The shape as numbers."""
    assert all(isinstance(extent, IntImm) for extent in buffer.shape)
    return [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]


def relaid(func: PrimFunc, *steps: tuple[str, str, PadText]) -> PrimFunc:
    """The function after transforms, each a buffer, a map and a pad value."""
    for buffer, index_map, pad in steps:
        func = TransformLayout("root", buffer, index_map, pad).propose(func).new
    return func


def blocks_of(func: PrimFunc) -> list[str]:
    """The names of the blocks, in order."""
    return [n.name for n in walk(func.body) if isinstance(n, Block) and not n.is_root]


def loops_around(stmt: Stmt, block: str) -> list[int]:
    """The extents of all loops of a program's statement that holds the block called `block`."""
    for node in walk(stmt):
        if isinstance(node, For) and any(isinstance(n, Block) and n.name == block for n in walk(node)):
            return [n.extent.value for n in walk(node) if isinstance(n, For) and isinstance(n.extent, IntImm)]
    return []


def random_steps(rng: Random, func: PrimFunc, count: int) -> tuple[PrimFunc, dict[str, list[Any]]]:
    """The function after random transforms of random buffers, and what the padding of each step holds."""
    pads: dict[str, list[Any]] = {}
    for _ in range(count):
        buffer = rng.choice(all_buffers(func))
        text = random_map(rng, buffer.rank)
        if math.prod(parse_index_map(text).map_shape(constant_shape(buffer))) > CELLS:
            continue
        number = rng.choice([0, 1, -3])
        pad: PadText = rng.choice([None, "T.undef()", float(number) if buffer.dtype.is_float else number])
        func = relaid(func, (buffer.name, text, pad))
        pads.setdefault(buffer.name, []).append(0 if pad is None or isinstance(pad, str) else pad)
    return func, pads


@one_in(10)
@pytest.mark.parametrize("name", CONCRETE)
def test_relaid_operators_compute_the_same(name: str) -> None:
    """Any buffer of an operator may be re-laid by any injective map, several times; the results stay the same bit for
    bit.
    """
    rng = Random(name)
    for _ in range(4):
        func, pads = random_steps(rng, small(name), rng.choice([1, 2, 3]))
        assert_same_results(small(name), func, pads)
        assert loads(print_func(func)) == func


@one_in(30)
@pytest.mark.parametrize("name", CONCRETE)
def test_relaid_operators_lower_to_the_same(name: str) -> None:
    """Each pass keeps what a re-laid operator computes, changes nothing the second time, and its result prints and
    reads back equal.
    """
    rng = Random(f"{name} lowered")
    for _ in range(2):
        func, pads = random_steps(rng, small(name), 2)
        for step in LOWERING:
            func = step.propose(func).new
            assert_same_results(small(name), func, pads)
            assert step.propose(func).new == func
            assert loads(print_func(func)) == func


@pytest.mark.campaign
@pytest.mark.parametrize("twenty", range(50))
def test_random_transforms_campaign(twenty: int) -> None:
    """The two tests above on many more random schedules."""
    for seed in range(20 * twenty, 20 * twenty + 20):
        rng = Random(seed)
        original = small(rng.choice(CONCRETE))
        func, pads = random_steps(rng, original, rng.choice([1, 2, 3]))
        assert_same_results(original, func, pads)
        for step in LOWERING:
            func = step.propose(func).new
            assert_same_results(original, func, pads)


@pytest.mark.parametrize("buffer", ["A", "B", "C"])
def test_only_the_layout_of_the_buffer_changes(buffer: str) -> None:
    """Fact 60: a buffer's shape and indices change, whatever its kind; loops and the other buffers stay."""
    old = two_stages()
    new = relaid(old, (buffer, "lambda i, j: [i//4, j//4, i%4, j%4]", None))
    changed = next(b for b in all_buffers(new) if b.name == buffer)
    assert constant_shape(changed) == [4, 3, 4, 4]
    assert [b for b in all_buffers(new) if b.name != buffer] == [b for b in all_buffers(old) if b.name != buffer]
    assert [n.var for n in walk(new.body) if isinstance(n, For)] == [
        n.var for n in walk(old.body) if isinstance(n, For)
    ]
    assert_same_results(old, new)


@pytest.mark.parametrize("pad", [None, 42, "lambda io, ii: io + ii"])
def test_without_padding_the_pad_value_changes_nothing(pad: PadText) -> None:
    """Fact 61: where a map leaves no padding, every pad value gives the identical program."""
    plain = relaid(copy("16", "int32"), ("B", "lambda i: [i//4, i%4]", None))
    assert relaid(copy("16", "int32"), ("B", "lambda i: [i//4, i%4]", pad)) == plain


def test_opaque_blocks_are_relaid_too() -> None:
    """Fact 61: a block without iteration variables, with its loop inside, is rewritten like any other."""
    func = program("""def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    with T.sblock("opaque"):
        T.reads(A[0:16])
        T.writes(B[0:16])
        for i in range(16):
            B[i] = A[i]
""")
    new = TransformLayout("opaque", "B", "lambda i: [i//4, i%4]").propose(func).new
    assert_same_results(func, new)
    assert "T.writes(B[0:4, 0:4])" in print_func(new)


def test_padding_without_a_pad_value_is_accepted_and_never_touched() -> None:
    """Fact 62: 14 elements in 4 by 4 without a pad value keep their loop of 14; the record says that the padding has no
    contract.
    """
    new = relaid(copy(), ("B", "lambda i: [i//4, i%4]", None))
    assert blocks_of(new) == ["copy"]
    assert loops_around(new.body, "copy") == [14]
    assert [s.contract for s in layout_records(new)["B_data"].steps] == [None]
    assert_same_results(copy(), new)


@pytest.mark.parametrize(
    "dtype, pad, cell", [("int32", 0, 0), ("int8", -7, -7), ("float32", 2.5, 2.5), ("bool", True, True)]
)
def test_owed_padding_is_written_after_the_last_write(dtype: str, pad: PadText, cell: object) -> None:
    """Facts 64 and 67: a producer's padding is filled by a block of its own, behind the one that writes the buffer."""
    new = relaid(copy("14", dtype), ("B", "lambda i: [i//4, i%4]", pad))
    assert blocks_of(new) == ["copy", "buffer_B_padding"]
    left = assert_same_results(copy("14", dtype), new)["B"]
    assert left[3, 2] == cell and left[3, 3] == cell


def test_a_single_store_still_owes_all_padding() -> None:
    """Fact 65: a function that writes one element fills all of its output's padding."""
    func = program("""def main(B: T.Buffer((14,), "int32")):
    with T.sblock("one"):
        B[0] = 5
""")
    new = relaid(func, ("B", "lambda i: [i//4, i%4]", 9))
    assert "T.where(p0 == 3 and p1 >= 2)" in print_func(new)
    left = run(new, {"B": np.zeros((4, 4), np.int32)})["B"]
    assert left.tolist() == [[5, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 9, 9]]


def test_reductions_keep_their_init_and_fill_padding_afterwards() -> None:
    """Fact 66: the layout of a reduction's output changes in init and update alike."""
    new = relaid(running_sum(), ("B", "lambda i: [i//4, i%4]", 77))
    left = assert_same_results(running_sum(), new)["B"]
    assert left[3, 2:].tolist() == [77, 77]
    assert blocks_of(new) == ["sum", "buffer_B_padding"]


def test_an_input_is_assumed_to_hold_its_pad_value() -> None:
    """Fact 68: a parameter that is only read gets an assumption at the start, in the words of the contract."""
    new = relaid(copy("14", "int32"), ("A", "lambda i: [i//4, i%4]", 42))
    assert blocks_of(new) == ["buffer_A_assumptions", "copy"]
    assert "T.assume(not (v_p0 == 3 and v_p1 >= 2) or A[v_p0, v_p1] == 42)" in print_func(new)
    assert_same_results(copy("14", "int32"), new, {"A": [42]})


def test_the_pad_value_may_depend_on_the_physical_index() -> None:
    """Fact 69: a pad value is a function of where in the box it stands."""
    new = relaid(copy("14", "int32"), ("B", "lambda i: [i//4, i%4]", "lambda i, j: i + 10*j"))
    assert assert_same_results(copy("14", "int32"), new)["B"][3].tolist()[2:] == [23, 33]


def test_wrap_around_pad_values_load_from_the_buffer_itself() -> None:
    """Fact 69: padding that repeats the buffer's start, which TVM never managed."""
    wrap = "lambda io, ii: B[(4*io + ii) % 14 // 4, (4*io + ii) % 14 % 4]"
    new = relaid(copy("14", "int32"), ("B", "lambda i: [i//4, i%4]", wrap))
    left = assert_same_results(copy("14", "int32"), new)["B"]
    assert left[3, 2:].tolist() == left[0, :2].tolist()


def test_the_roadmaps_wrap_around_pad_value_repeats_one_cell() -> None:
    """The RFC's `B[0, (io-14)%4]` gives (0, 1) twice where (0, 0), (0, 1) was meant: it is written as it stands, not
    as it was meant.
    """
    new = relaid(copy("14", "int32"), ("B", "lambda i: [i//4, i%4]", "lambda io, ii: B[0, (io - 14) % 4]"))
    left = assert_same_results(copy("14", "int32"), new)["B"]
    assert left[3, 2:].tolist() == [left[0, 1], left[0, 1]]


def test_three_ways_to_say_a_constant() -> None:
    """The roadmap's equivalent calls give one program: a number, text, and a function that ignores its indices."""
    index_map = "lambda i: [i//4, i%4]"
    one = relaid(copy(), ("B", index_map, 0.0))
    assert (
        one
        == relaid(copy(), ("B", index_map, "T.float32(0)"))
        == relaid(copy(), ("B", index_map, "lambda io, ii: 0.0"))
    )
    none = relaid(copy(), ("B", index_map, None))
    assert none == relaid(copy(), ("B", index_map, "lambda io, ii: None"))


def test_an_input_may_be_assumed_to_repeat_itself() -> None:
    """A wrap-around contract of an input is checked against its own cells."""
    wrap = "lambda io, ii: A[(4*io + ii) % 14 // 4, (4*io + ii) % 14 % 4]"
    new = relaid(copy("14", "int32"), ("A", "lambda i: [i//4, i%4]", wrap))
    good = np.arange(16, dtype=np.int32) % 14
    given = {"A": good.reshape(4, 4), "B": np.zeros(14, np.int32)}
    assert run(new, given)["B"].tolist() == list(range(14))
    with pytest.raises(Fault, match="assumption"):
        run(new, {**given, "A": np.arange(16, dtype=np.int32).reshape(4, 4)})


def test_tiles_that_do_not_divide_are_padded() -> None:
    """Fact 76: upstream must refuse `c//4` of three channels; here they get a fourth lane of padding."""
    func = program("""def main(A: T.Buffer((1, 3, 8, 8), "int32"), B: T.Buffer((1, 3, 8, 8), "int32")):
    for n, c, h, w in T.grid(1, 3, 8, 8):
        B[n, c, h, w] = A[n, c, h, w]
""")
    new = relaid(func, ("B", "lambda n, c, h, w: [n, c//4, h, w, c%4]", -1))
    assert (assert_same_results(func, new)["B"][..., 3] == -1).all()


def test_symbolic_tiles() -> None:
    """Fact 70: 16 elements in rows of n, for every n of at least 1, with the padding where n does not divide 16."""
    func = program("""def main(A: T.Buffer((16,), "int32"), n: T.int32):
    T.assume(n >= 1)
    for i in range(16):
        with T.sblock("fill"):
            v = T.axis.spatial(16, i)
            A[v] = v
""")
    new = relaid(func, ("A", "lambda i: [i//n, i%n]", -1))
    for n in (1, 2, 3, 5, 16, 17, 20):
        rows = -(-16 // n)
        left = run(new, {"A": np.zeros((rows, n), np.int32), "n": n})["A"]
        assert left.reshape(-1).tolist() == [*range(16), *[-1] * (rows * n - 16)]


@pytest.mark.parametrize("text, pad", [("lambda h: [h//8, h%8]", None), ("lambda i: [0, (i + 1)//8, (i + 1)%8]", 0)])
def test_buffers_with_64_bit_extents(text: str, pad: PadText) -> None:
    """Fact 71: extents of 64 bits stay 64 bits wide, constant axes included."""
    func = copy("T.int64(58)", "int32")
    new = relaid(func, ("A", text, pad), ("B", text, pad))
    assert all(extent.dtype.bits == 64 for buffer in new.buffers for extent in buffer.shape)
    assert_same_results(func, new, {"A": [0], "B": [0]})
    for step in LOWERING:
        new = step.propose(new).new
        assert_same_results(func, new, {"A": [0], "B": [0]})


DTYPES = ["int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float64", "bool"]


@one_in(4)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type(dtype: str) -> None:
    """Transforms, pad values and the lowering work for every type of element."""
    func = copy("14", dtype)
    pad: PadText = True if dtype == "bool" else 2.0 if "float" in dtype else 2
    new = relaid(func, ("A", "lambda i: [i//4, i%4]", pad), ("B", "lambda i: [(i + 1)//5, (i + 1)%5]", pad))
    assert assert_same_results(func, new, {"A": [pad]})["B"][0, 0] == pad
    for step in LOWERING:
        new = step.propose(new).new
        assert assert_same_results(func, new, {"A": [pad]})["B"][0, 0] == pad


def test_several_transforms_apply_in_order_each_with_its_contract() -> None:
    """Each padding cell holds the value of the transform that introduced it, also after a later transform moved it."""
    new = relaid(copy("14", "int32"), ("B", "lambda i: [i//4, i%4]", 7), ("B", "lambda i, j: [i//3, j, i%3]", 8))
    left = assert_same_results(copy("14", "int32"), new)["B"]
    assert left[1, 2, 0] == 7 and left[1, 3, 0] == 7
    assert left[1, :, 1:].tolist() == [[8, 8]] * 4
    assert [str(s.contract) for s in layout_records(new)["B_data"].steps] == ["7", "8"]


def test_a_temporary_is_filled_where_it_is_written() -> None:
    """The padding of a temporary is written behind its last write, before the stage that reads it."""
    new = relaid(two_stages(), ("B", "lambda i, j: [i//5, i%5, j]", 3))
    assert blocks_of(new) == ["first", "buffer_B_padding", "second"]
    assert_same_results(two_stages(), new)


def test_a_temporary_inside_a_loop_is_filled_inside_that_loop() -> None:
    """Padding is filled where the buffer lives: in each iteration that allocates it."""
    func = program("""def main(A: T.Buffer((3, 5), "int32"), B: T.Buffer((3, 5), "int32")):
    for i in range(3):
        row = T.alloc_buffer((5,), "int32")
        for j in range(5):
            row[j] = A[i, j]
        for k in range(5):
            B[i, k] = row[k] + 1
""")
    new = relaid(func, ("row", "lambda j: [j//4, j%4]", 0))
    outer = next(n for n in walk(new.body) if isinstance(n, For))
    assert any(isinstance(n, Block) and n.name == "buffer_row_padding" for n in walk(outer))
    assert_same_results(func, new)


@pytest.mark.parametrize(
    "pad, text", [("T.undef()", 'T.undef(dtype="int32")'), ('T.undef(dtype="int32")', 'T.undef(dtype="int32")')]
)
def test_undef_is_a_contract_in_the_text(pad: str, text: str) -> None:
    """`undef` is stored by a producer and assumed by a consumer, so that padding may be read."""
    new = relaid(copy("14", "int32"), ("A", "lambda i: [i//4, i%4]", pad), ("B", "lambda i: [i//4, i%4]", pad))
    assert f"A[v_p0, v_p1] == {text})" in print_func(new)
    assert f"= {text}\n" in print_func(new)
    assert_same_results(copy("14", "int32"), new)


def test_separators_of_the_map_become_those_of_the_buffer() -> None:
    """AXIS_SEPARATOR in a map stands in the buffer and in the function's attribute, as the RFC counts."""
    new = relaid(copy(), ("B", "lambda i: [i//4, AXIS_SEPARATOR, i%4]", 0.0))
    buffer = next(b for b in new.buffers if b.name == "B")
    assert buffer.axis_separators == (0,)
    assert stated_separators(new) == {"B_data": (0,)}
    assert "axis_separators" in print_func(new)
    assert loads(print_func(new)) == new


def test_symbolic_shapes_carry_their_names_into_the_contract() -> None:
    """Shapes, stage and assumption have the symbol, for every extent."""
    func = copy_symbolic()
    new = relaid(func, ("A", "lambda i: [i//4, i%4]", 1.0), ("B", "lambda i: [i//4, i%4]", 2.0))
    for n in (1, 2, 3, 4, 5, 8, 11):
        logical = np.arange(n, dtype=np.float32)
        physical = parse_index_map("lambda i: [i//4, i%4]").map_array(logical, fill=np.float32(1.0))
        left = run(new, {"A": physical, "B": np.zeros_like(physical), "n": n})["B"]
        assert left.reshape(-1).tolist() == [*range(n), *[2.0] * (-n % 4)]


def copy_symbolic() -> PrimFunc:
    """`B[i] = A[i]` for every n."""
    return program("""def main(A: T.Buffer(("n",), "float32"), B: T.Buffer((n,), "float32")):
    n = T.int32()
    for i in range(n):
        with T.sblock("copy"):
            v = T.axis.spatial(n, i)
            B[v] = A[v]
""")
