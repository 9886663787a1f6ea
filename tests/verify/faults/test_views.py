"""Views of one memory: inside it, and seen to be the same cells."""

from __future__ import annotations

import pytest
from tests.verify.programs import facts, first, statuses

from layoutproof.verify.faults.no_faults import prove_views
from layoutproof.verify.faults.races import prove_race_free
from layoutproof.verify.faults.reads import prove_readable
from layoutproof.verify.verdict.verdict import Status

VIEW = """
    @T.prim_func
    def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((24,), "float32")):
        T.func_attr({{"tirx.noalias": True}})
        V = T.decl_buffer(({shape}), "{dtype}", data=A.data{offset})
        for i in range({trip}):
            B[i % 24] = {value}
"""


@pytest.mark.parametrize(
    ("shape", "dtype", "offset", "trip", "value", "expected"),
    [
        ("24,", "float32", "", 24, "V[i]", Status.PROVED),
        ("25,", "float32", "", 24, "V[i]", Status.PROVED),
        ("25,", "float32", "", 25, "V[i]", Status.REFUTED),
        ("20,", "float32", ", elem_offset=4", 20, "V[i]", Status.PROVED),
        ("24,", "float32", ", elem_offset=4", 21, "V[i]", Status.REFUTED),
        ("12,", "float64", "", 12, "T.Cast('float32', V[i])", Status.PROVED),
        ("13,", "float64", "", 13, "T.Cast('float32', V[i])", Status.REFUTED),
    ],
)
def test_views_stay_inside_their_memory(
    shape: str, dtype: str, offset: str, trip: int, value: str, expected: Status
) -> None:
    """A view may promise more than there is as long as no access goes there."""
    verdicts = prove_views(facts(VIEW.format(shape=shape, dtype=dtype, offset=offset, trip=trip, value=value)))
    assert statuses(verdicts) == {expected}


def test_view_of_symbolic_extents() -> None:
    """A flat view has as many elements as the buffer it flattens, for every extent."""
    text = """
    @T.prim_func
    def main(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer(("n", "m"), "float32")):
        n, m = T.int32(), T.int32()
        V = T.decl_buffer((n * m,), "float32", data=A.data)
        for i, j in T.grid(n, m):
            B[i, j] = V[i * m + j]
    """
    assert statuses(prove_views(facts(text))) == {Status.PROVED}


BEFORE = """
    @T.prim_func
    def main(B: T.Buffer((4,), "int32"), s: T.int32):
        T.evaluate(T.assume(s {most}))
        C = T.alloc_buffer((8,), "int32")
        V = T.decl_buffer((4,), "int32", data=C.data, {place})
        for i in range(4):
            V[i] = B[i]
"""


@pytest.mark.parametrize("place", ["elem_offset=s", "strides=[s]", "strides=[s - 3]", "elem_offset=9, strides=[s]"])
def test_views_do_not_begin_before_their_memory(place: str) -> None:
    """An offset or a stride that is a symbol may be below zero, where nothing is said of it."""
    assert Status.PROVED not in statuses(prove_views(facts(BEFORE.format(most="<= 2", place=place))))


def test_views_from_a_symbol_on() -> None:
    """Within bounds of the symbol the view is inside, whichever way it is placed."""
    for place in ("elem_offset=s", "strides=[s]", "elem_offset=T.max(s, 0)"):
        assert statuses(prove_views(facts(BEFORE.format(most=">= 0 and s <= 2", place=place)))) == {Status.PROVED}


STRIDED = """
    @T.prim_func
    def main(a: T.handle, B: T.Buffer((64,), "float32")):
        n, s, o = T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, {shape}, "float32", {place})
        V = T.decl_buffer((64,), "{dtype}", data=A.data)
        for i, j in T.grid({extents}):
            {statement}
"""


@pytest.mark.parametrize(
    ("shape", "place", "dtype", "extents", "statement", "inside"),
    [
        ("(4, 6)", "strides=(8, 1)", "float32", "4, 6", "B[i % 64] = V[8 * i + j]", True),
        ("(4, 6)", "strides=(8, 1)", "float32", "24, 1", "B[i % 64] = V[i // 6 * 8 + i % 6]", True),
        ("(4, 6)", "strides=(8, 1)", "float32", "4, 7", "B[i % 64] = V[8 * i + j]", False),
        ("(4, 6)", "strides=(1, 8)", "float32", "4, 6", "B[i % 64] = V[i + 8 * j]", True),
        ("(4, 6)", "strides=(2, 8)", "float32", "48, 1", "B[i % 64] = V[i // 8 * 8 + i % 4 * 2]", True),
        ("(4, 6)", "strides=(2, 8)", "float32", "4, 6", "B[i % 64] = V[i + 8 * j]", False),
        ("(n, 6)", "strides=(s, 1)", "float32", "n, 6", "B[i % 64] = V[s * i + j]", True),
        ("(n, 6)", "strides=(s, 1)", "float32", "n, 6", "B[i % 64] = V[s * i + j + 1]", False),
        ("(4, 6)", "elem_offset=8", "float32", "24, 1", "B[i % 64] = V[8 + i]", True),
        ("(4, 6)", "elem_offset=8", "float32", "24, 1", "B[i % 64] = V[7 + i]", False),
        ("(n, 6)", "elem_offset=o", "float32", "n, 6", "B[i % 64] = V[o + 6 * i + j]", True),
        ("(4, 6)", "strides=(8, 1)", "float32x2", "4, 3", "V[4 * i + j] = T.Broadcast(T.float32(0), 2)", True),
        ("(4, 6)", "strides=(8, 1)", "float32x2", "4, 4", "V[4 * i + j] = T.Broadcast(T.float32(0), 2)", False),
        ("(4, 6)", "strides=(8, 1)", "float16", "4, 6", "B[i % 64] = T.Cast('float32', V[16 * i + j])", False),
    ],
)
def test_views_touch_elements_of_a_parameter(
    shape: str, place: str, dtype: str, extents: str, statement: str, inside: bool
) -> None:
    """What lies before or between the elements of a parameter with an offset or strides is not its own."""
    text = STRIDED.format(shape=shape, place=place, dtype=dtype, extents=extents, statement=statement)
    assert (statuses(prove_views(facts(text))) == {Status.PROVED}) is inside


ALIASED = """
    @T.prim_func
    def main(A: T.Buffer((24,), "float32"), B: T.Buffer((24,), "float32")):
        T.func_attr({{"tirx.noalias": True}})
        C = T.alloc_buffer((4, 6))
        V = T.decl_buffer(({view}), "{dtype}", data=C.data)
        for i, j in T.grid(4, 6):
            C[i, j] = A[i * 6 + j]
        for i in range({trip}):
            B[i] = {value}
"""


@pytest.mark.parametrize(
    ("view", "dtype", "trip", "value", "expected"),
    [
        ("24,", "float32", 24, "V[i]", Status.PROVED),
        ("6, 4", "float32", 24, "V[i // 4, i % 4]", Status.PROVED),
        ("12,", "float64", 12, "T.Cast('float32', V[i])", Status.PROVED),
        ("48,", "float16", 24, "T.Cast('float32', V[i])", Status.PROVED),
    ],
)
def test_what_is_written_through_one_view_is_read_through_another(
    view: str, dtype: str, trip: int, value: str, expected: Status
) -> None:
    """Cells are told by their place in memory, whatever shape or element type they are seen in."""
    whole = prove_readable(facts(ALIASED.format(view=view, dtype=dtype, trip=trip, value=value)))
    assert next(v for v in whole if v.claim.text.startswith("read `V")).status is expected
    part = prove_readable(
        facts(
            ALIASED.format(view=view, dtype=dtype, trip=trip, value=value).replace(
                "T.grid(4, 6):\n            C", "T.grid(3, 6):\n            C"
            )
        )
    )
    verdict = next(v for v in part if v.claim.text.startswith("read `V"))
    assert verdict.status in ({Status.PROVED} if dtype == "float16" else {Status.REFUTED})


def test_race_through_two_views() -> None:
    """Iterations that meet through different views race."""
    text = """
    @T.prim_func
    def main(A: T.Buffer((4, 6), "float32")):
        V = T.decl_buffer((24,), "float32", data=A.data)
        for i in T.parallel(4):
            A[i, 0] = V[OFFSET]
    """
    assert statuses(prove_race_free(facts(text.replace("OFFSET", "i * 6 + 5")))) == {Status.PROVED}
    assert (
        first(prove_race_free(facts(text.replace("OFFSET", "18 - i * 6"))), Status.REFUTED).counterexample is not None
    )
