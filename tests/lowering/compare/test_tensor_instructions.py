"""Products by tensor instructions against the loops that they are schedules of."""

from __future__ import annotations

import re

import pytest
from tests.oracle.warp_programs import HEAD, block, number, pointer, product, view, wmma
from tests.oracle.warp_tiles import judge
from tests.shares import one_in

import layoutproof as lp
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.verify.verdict.verdict import Status


def compare(before: str, after: str) -> Comparison:
    """The comparison of two functions, given from their signatures on."""
    return lp.compare(lp.loads(HEAD + before), lp.loads(HEAD + after))


RIGHT = {
    "rows": (product(), wmma()),
    "a transposed factor": (product(b="j, k"), wmma(layout="col_major")),
    "floats": (product("float16", "float32"), wmma("float16", "float32")),
}


@one_in(4)
@pytest.mark.parametrize("what", RIGHT)
def test_a_product_of_tiles_is_the_product(what: str) -> None:
    """By what TVM says that each instruction does; sums of floats have no fixed order."""
    found = compare(*RIGHT[what])
    assert found.status is Status.PROVED, found.verdicts[0].reason
    assert set(found.strictness) == ({"nsz", "reassoc"} if what == "floats" else set())


WRONG = {
    "a factor that is not transposed": (product(b="j, k"), wmma()),
    "a factor that is transposed": (product(), wmma(layout="col_major")),
    "another tile of the left factor": (product(), wmma().replace("P[(ty // 2)", "P[(ty % 2)")),
    "another tile of the right factor": (
        product(),
        wmma().replace("Q[(ko) * 16:(ko) * 16", "Q[(1 - ko) * 16:(1 - ko) * 16"),
    ),
    "another tile of the result": (
        product(),
        wmma().replace(
            "C[(ty // 2) * 16:(ty // 2) * 16 + 16, (ty % 2) * 16:(ty % 2)",
            "C[(ty % 2) * 16:(ty % 2) * 16 + 16, (ty // 2) * 16:(ty // 2)",
        ),
    ),
    "half of the sum": (product(), wmma().replace("for ko in range(2)", "for ko in range(1)")),
    "a sum that does not begin at zero": (product(), wmma().replace("T.float32(0)", "T.float32(1)")),
    "a sum that does not begin": (product(), wmma().replace("for ko in range(2)", "for ko in range(0)")),
    "factors in the other order": (
        product(),
        wmma().replace("X = ", "Z_ = ").replace("Y = ", "X = ").replace("Z_ = ", "Y = "),
    ),
    "rows of another length": (product(), wmma().replace("M.strides[0], ", "16, ", 1)),
    "the number of another fragment": (product(), wmma().replace("F.elem_offset //", "(F.elem_offset + 16) //", 1)),
    "tiles that are not aligned": (
        product(),
        wmma().replace("acc[(ty // 2) * 16:(ty // 2) * 16", "acc[(ty // 2) * 16 + 8 - 8:(ty // 2) * 16 + 8 - 8"),
    ),
    "tiles that overlap": (
        product(),
        wmma().replace("fa[(ty // 2) * 16:(ty // 2) * 16", "fa[(ty // 2) * 8:(ty // 2) * 8"),
    ),
    "half a warp": (
        product(),
        wmma().replace("binding(32, thread='threadIdx.x')", "binding(16, thread='threadIdx.x')"),
    ),
    "an instruction for some threads of a warp": (
        product(),
        wmma()
        .replace("for ty in", "for lane in T.thread_binding(32, thread='threadIdx.x'):\n      for ty in")
        .replace("range(2)", "range(lane // 16 * 2)"),
    ),
    "an element of a fragment": (product(), wmma() + "        C[0, 0] = acc[0, 0]\n"),
    "an instruction that is not known": (product(), wmma().replace("tvm_mma_sync", "tvm_bmma_sync")),
    "a tile in memory of a thread": (
        product(),
        wmma()
        .replace(
            'P = T.alloc_buffer((32, 32), "int8", scope="shared")',
            'P = T.alloc_buffer((32, 32), "int8", scope="local")',
        )
        .replace(
            '(16, 16), "int8", strides=("M_s0", "M_s1"), scope="shared"',
            '(16, 16), "int8", strides=("M_s0", "M_s1"), scope="local"',
            1,
        ),
    ),
    "a view that says itself how far its rows are apart": (
        product(),
        wmma().replace('strides=("M_s0", "M_s1")', "strides=(16, 1)", 1),
    ),
    "a view that says itself where it lies": (product(), wmma().replace("offset_factor=16", "elem_offset=0")),
    "one name for two distances": (product(), wmma().replace('("M_s0", "M_s1")', '("M_s0", "M_s0")')),
    "memory of fragments as shared memory": (product(), wmma().replace('scope="wmma.matrix_a"', 'scope="shared"')),
}


@one_in(23)
@pytest.mark.parametrize("what", WRONG)
def test_other_tiles_are_not_taken_to_be_the_product(what: str) -> None:
    """Each change alters the product, or is nothing that TVM describes."""
    before, after = WRONG[what]
    assert after not in [right for b, right in RIGHT.values() if b == before], "the change is none"
    assert compare(before, after).status in (Status.UNKNOWN, Status.REFUTED)


SIMDGROUP = """tensor(A: T.Buffer((8, 8), "float16"), B: T.Buffer((8, 8), "float16")):
    T.func_attr({"tir.noalias": True})
    S = T.alloc_buffer((8, 8), "float16", scope="shared")
    D = T.alloc_buffer((8, 8), "float16", scope="metal.simdgroup")
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        for i in range(2):
            S[i * 4 + tx // 8, tx % 8] = A[i * 4 + tx // 8, tx % 8]
        LOAD
        STORE
"""


@one_in(4)
def test_tiles_of_metal_are_copied_and_transposed() -> None:
    """The last argument of a copy says whether it transposes."""

    def text(load: str, store: str) -> str:
        lines = [
            block(
                view("M", "S[0:8, 0:8]", 8, "float16", "shared"),
                view("F", "D[0:8, 0:8]", 8, "float16", "metal.simdgroup"),
                f"T.metal.simdgroup_load(F.data, {number('F', 8)}, {pointer('M', 8, 'float16', 1)}, "
                f"M.strides[0], 8, 8, {load})",
            ),
            block(
                view("M", "B[0:8, 0:8]", 8, "float16", "global"),
                view("F", "D[0:8, 0:8]", 8, "float16", "metal.simdgroup"),
                f"T.metal.simdgroup_store(F.data, {number('F', 8)}, {pointer('M', 8, 'float16', 2)}, "
                f"M.strides[0], 8, 8, {store})",
            ),
        ]
        found = SIMDGROUP
        for name, part in zip(("LOAD", "STORE"), lines, strict=True):
            found = found.replace(name, "\n        ".join(part))
        return found

    plain = """plain(A: T.Buffer((8, 8), "float16"), B: T.Buffer((8, 8), "float16")):
    T.func_attr({"tir.noalias": True})
    for i, j in T.grid(8, 8):
        B[i, j] = A[INDEX]
"""
    no, yes = "T.bool(False)", "T.bool(True)"
    for load, store, turned in ((no, no, False), (no, yes, True), (yes, no, True), (yes, yes, False)):
        for index, same in (("i, j", not turned), ("j, i", turned)):
            found = compare(plain.replace("INDEX", index), text(load, store))
            assert found.status is (Status.PROVED if same else Status.REFUTED), found.verdicts[0].reason


@one_in(14)
@pytest.mark.parametrize("seed", range(-1, 12))
def test_instructions_with_numbers_for_all_offsets(seed: int) -> None:
    """A changed kernel that is proved makes the product on flat memory, too."""
    found = judge(HEAD + product(), HEAD + wmma(), "ik,kj->ij", seed)
    assert found == "proved" if seed < 0 else found


@one_in(4)
@pytest.mark.parametrize("name", ["i", "j", "k"])
def test_loops_around_have_any_name(name: str) -> None:
    """What an instruction does is written with names of its own."""
    renamed = re.sub(r"\bko\b", name, HEAD + wmma())
    assert lp.compare(lp.loads(HEAD + product()), lp.loads(renamed)).status is Status.PROVED
