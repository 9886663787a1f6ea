"""The obligations of textures, proved where they hold, refused with the texel or the size where they do not."""

from __future__ import annotations

import pytest
from tests.shares import one_in
from tests.verify.programs import first, program, statuses

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.text import Style, expr_text
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.program.evidence import Gathered
from layoutproof.verify.smt.engines import ask
from layoutproof.verify.smt.smtlib import queries_of
from layoutproof.verify.smt.solver import Answer
from layoutproof.verify.textures.texture_checks import (
    PROFILES,
    DeviceLimits,
    check_texel_facts,
    check_texels,
    size_conditions,
)
from layoutproof.verify.verdict.verdict import Status, Verdict

LIMITS = PROFILES["16384x16384"]
COVERS, RACES, SIZE = "covers its texel", "is read by another", "is at most"
IMAGE, VALUE, INSIDE = "is an image", "stores a value", "stays"


def textured(
    body: str, *, shape: str = "(4, 32)", dtype: str = "float32", noalias: bool = True, more: str = ""
) -> PrimFunc:
    """A function over A (8 by 32, in plain memory), data I, and texture B; the body is indented by four."""
    lines = "\n".join("    " + line for line in body.splitlines())
    symbols = "".join(f"    {name} = T.int32()\n" for name in "nm" if f'"{name}"' in shape or f"{name} " in shape)
    return program(
        f'@T.prim_func\ndef main(A: T.Buffer((8, 32), "float32"), I: T.Buffer((8,), "int32"), '
        f'B: T.Buffer({shape}, "{dtype}", scope="global.texture"){more}):\n{symbols}'
        f'    T.func_attr({{"tirx.noalias": {noalias}}})\n{lines}\n'
    )


def told(func: PrimFunc, part: str, limits: DeviceLimits = LIMITS) -> tuple[Verdict, ...]:
    """The verdicts of one obligation."""
    return tuple(v for v in check_texels(func, limits) if part in v.claim.text)


FOUR = "T.broadcast(T.float32(1.0), 4)"
ONE = "T.float32(1.0)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            f"for i in T.parallel(4):\n    for j in T.parallel(8):\n        B[i, T.ramp(j * 4, 1, 4)] = {FOUR}",
            Status.PROVED,
        ),
        (
            "for i in T.parallel(4):\n    for j in T.parallel(4):\n"
            "        B[i, T.ramp(j * 8, 1, 8)] = A[i, T.ramp(j * 8, 1, 8)]",
            Status.PROVED,
        ),
        (f"for i in T.parallel(4):\n    for j in T.parallel(32):\n        B[i, j] = {ONE}", Status.REFUTED),
        (f"for i in T.parallel(4):\n    for j in range(32):\n        B[i, j] = {ONE}", Status.PROVED),
        (
            "for i in T.parallel(4):\n    for j in T.parallel(8):\n        for k in range(4):\n"
            f"            B[i, j * 4 + k] = {ONE}",
            Status.PROVED,
        ),
        (f"for i in T.parallel(4):\n    for j in T.parallel(8):\n        B[i, j * 4 + 1] = {ONE}", Status.PROVED),
        (
            f"for i in T.parallel(4):\n    for j in T.parallel(16):\n        B[i, T.ramp(j * 2, 1, 2)] = {FOUR[:-2]}2)",
            Status.REFUTED,
        ),
        (
            f"for i in T.parallel(4):\n    for j in T.parallel(7):\n        B[i, T.ramp(j * 4 + 2, 1, 4)] = {FOUR}",
            Status.REFUTED,
        ),
        (
            f"for i in T.parallel(4):\n    for j in T.parallel(4):\n        B[i, T.ramp(j * 8 + 2, 1, 4)] = {FOUR}",
            Status.PROVED,
        ),
        (
            f"for i in T.parallel(4):\n    for j in T.parallel(4):\n        B[i, T.ramp(j * 8, 2, 4)] = {FOUR}",
            Status.PROVED,
        ),
        (f"for j in T.parallel(32):\n    if j % 4 == 0:\n        B[0, j] = {ONE}", Status.PROVED),
        (f"for j in T.parallel(32):\n    if j % 2 == 0:\n        B[0, j] = {ONE}", Status.REFUTED),
        (f"for j in T.parallel(32):\n    if A[0, j] > {ONE}:\n        B[0, j] = {ONE}", Status.UNKNOWN),
        (f"for i in T.parallel(8):\n    B[0, I[i]] = {ONE}", Status.UNKNOWN),
        (f"for i in T.thread_binding(4, thread='blockIdx.x'):\n    B[0, i] = {ONE}", Status.REFUTED),
        (f"for i in range(4):\n    for j in range(32):\n        B[i, j] = {ONE}", Status.PROVED),
        (f"for j in T.parallel(4):\n    B[0, j] = {ONE}\nfor j in range(32):\n    B[0, j] = {ONE}", None),
    ],
)
def test_a_write_covers_its_texel_or_is_the_only_writer(body: str, expected: Status | None) -> None:
    """Work items may write parts of a texel only where each texel has one of them; what data decides is unknown."""
    assert statuses(told(textured(body), COVERS)) == (
        {expected} if expected is not None else {Status.REFUTED, Status.PROVED}
    )


BLOCKS = "for i in T.thread_binding(4, thread='blockIdx.x'):\n    "
THREADS = "for j in T.thread_binding(8, thread='threadIdx.x'):\n        "


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (BLOCKS + THREADS + "B[i, j * 4] = T.float32(1.0)", [Status.PROVED]),
        (BLOCKS + THREADS + "B[i, j] = T.float32(1.0)", [Status.REFUTED]),
        (BLOCKS + THREADS + f"B[i, T.ramp(j * 4, 1, 4)] = {FOUR}", [Status.PROVED]),
        (BLOCKS + THREADS + "B[i, j * 4] = T.float32(1.0)\n    A[i, 0] = T.float32(1.0)", [Status.UNKNOWN]),
        (
            BLOCKS + "for k in range(2):\n        " + THREADS.replace("\n", "\n    ") + "B[i, j * 4] = T.float32(1.0)",
            [Status.UNKNOWN],
        ),
    ],
)
def test_work_items_by_their_axes(body: str, expected: list[Status]) -> None:
    """Loops bound to blocks and threads are work items where they enclose the whole kernel, only there."""
    assert [v.status for v in told(textured(body), COVERS)] == expected


def test_a_clobbered_texel_is_shown() -> None:
    """The counterexample has the texel, the two work items, and which channels the first of them writes."""
    (verdict,) = told(
        textured("for i in T.parallel(4):\n    for j in T.parallel(32):\n        B[i, j] = T.float32(1.0)"), COVERS
    )
    assert verdict.counterexample is not None
    shown = verdict.counterexample
    one, other = shown["first"], shown["second"]
    assert one["i"] == other["i"] == shown["texel"][0]
    assert one["j"] != other["j"] and one["j"] // 4 == other["j"] // 4 == shown["texel"][1]
    assert shown["channels"] == [one["j"] % 4]


def test_a_whole_write_and_a_part_of_it() -> None:
    """A store of one channel by another work item is refused, the store of the whole texel is not what is wrong."""
    body = f"for j in T.parallel(8):\n    B[0, T.ramp(j * 4, 1, 4)] = {FOUR}\n    B[0, (7 - j) * 4] = {ONE}"
    assert [v.status for v in told(textured(body), COVERS)] == [Status.PROVED, Status.REFUTED]


@pytest.mark.parametrize(("shape", "expected"), [("(4, 30)", Status.PROVED), ("(4, 32)", Status.REFUTED)])
def test_single_channel_texels_are_elements(shape: str, expected: Status) -> None:
    """Where the last extent is no multiple of 4, a texel is one element, and each store covers it."""
    body = f"for i in T.parallel(4):\n    for j in T.parallel(30):\n        B[i, j] = {ONE}"
    assert statuses(told(textured(body, shape=shape), COVERS)) == {expected}


@pytest.mark.parametrize(
    ("dtype", "shape", "value", "expected"),
    [
        ("float32x4", "(4, 8)", "T.broadcast(T.float32(1.0), 4)", Status.PROVED),
        ("float32x8", "(4, 8)", "T.broadcast(T.float32(1.0), 8)", Status.PROVED),
        ("float32x2", "(4, 8)", "T.broadcast(T.float32(1.0), 2)", Status.REFUTED),
        ("float32x2", "(4, 9)", "T.broadcast(T.float32(1.0), 2)", Status.PROVED),
    ],
)
def test_elements_that_are_vectors(dtype: str, shape: str, value: str, expected: Status) -> None:
    """An element of four lanes is a texel; of two lanes half of one, unless the row holds no whole number of texels."""
    body = f"for i in T.parallel(4):\n    for j in T.parallel(8):\n        B[i, j] = {value}"
    func = textured(body, shape=shape, dtype=dtype)
    assert statuses(told(func, COVERS)) == {expected}
    assert statuses(told(func, IMAGE)) == {Status.PROVED}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for j in T.parallel(8):\n    B[0, T.ramp(j * 4, 1, 4)] = B[1, T.ramp(j * 4, 1, 4)]", Status.PROVED),
        ("for j in T.parallel(8):\n    B[0, T.ramp(j * 4, 1, 4)] = B[0, T.ramp(j * 4, 1, 4)]", Status.PROVED),
        ("for j in T.parallel(7):\n    B[0, T.ramp(j * 4, 1, 4)] = B[0, T.ramp(j * 4 + 4, 1, 4)]", Status.REFUTED),
        ("for j in T.parallel(8):\n    B[0, j * 4] = B[0, (7 - j) * 4 + 1]", Status.REFUTED),
        ("for j in T.parallel(8):\n    B[0, j * 4] = B[0, j * 4 + 1]", Status.PROVED),
        ("for j in T.parallel(8):\n    B[0, j * 4] = B[0, I[j]]", Status.UNKNOWN),
        ("for i in T.parallel(3):\n    for j in range(7):\n        B[i, j * 4] = B[i, j * 4 + 4]", Status.PROVED),
    ],
)
def test_reads_and_writes_of_one_image(body: str, expected: Status) -> None:
    """No texel of an image that a kernel reads and writes is written by one work item and read by another."""
    assert statuses(told(textured(body), RACES)) == {expected}


def test_an_image_race_between_other_channels() -> None:
    """Work items that touch different channels of one texel race; the counterexample has it."""
    (verdict,) = told(textured("for j in T.parallel(8):\n    B[0, j * 4] = B[0, (7 - j) * 4 + 1]"), RACES)
    assert verdict.counterexample is not None
    one, other = verdict.counterexample["first"]["j"], verdict.counterexample["second"]["j"]
    assert one + other == 7 and verdict.counterexample["texel"] == [0, one]


def test_without_parallel_loops_there_is_no_race() -> None:
    """One work item reads and writes in order: nothing is asked."""
    assert told(textured("for j in range(8):\n    B[0, j * 4] = B[0, j * 4 + 1]"), RACES) == ()


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("i, j", Status.PROVED),
        ("i + 1, j", Status.REFUTED),
        ("i, j + 1", Status.REFUTED),
        ("i, j - 1", Status.REFUTED),
        ("I[i], j", Status.UNKNOWN),
    ],
)
def test_coordinates_stay_inside(index: str, expected: Status) -> None:
    """No coordinate leaves the image, which would otherwise be clamped or read as a border."""
    body = f"for i in range(4):\n    for j in range(32):\n        A[i, j] = B[{index}]"
    assert statuses(told(textured(body), INSIDE)) == {expected}


@pytest.mark.parametrize(
    ("shape", "profile", "expected"),
    [
        ("(16384, 65536)", "16384x16384", Status.PROVED),
        ("(16385, 65536)", "16384x16384", Status.REFUTED),
        ("(16384, 65540)", "16384x16384", Status.REFUTED),
        ("(16384, 16385)", "16384x16384", Status.REFUTED),
        ("(8192, 32768)", "8192x8192", Status.PROVED),
        ("(8193, 32768)", "8192x8192", Status.REFUTED),
        ("(4096, 16388)", "4096x4096", Status.REFUTED),
        ("(2048, 64, 64)", "4096x4096", Status.PROVED),
        ("(2049, 64, 64)", "4096x4096", Status.REFUTED),
    ],
)
def test_fixed_sizes_within_the_limits(shape: str, profile: str, expected: Status) -> None:
    """Rows, texels of a row and layers are within what the device takes; a larger one is refused with its size."""
    zeros = "0, 0, 0" if shape.count(",") == 2 else "0, 0"
    func = textured(f"A[0, 0] = B[{zeros}]", shape=shape)
    (verdict,) = told(func, SIZE, PROFILES[profile])
    assert verdict.status is expected
    if verdict.counterexample is not None:
        assert verdict.counterexample["texels"] > verdict.counterexample["limit"]


def test_symbolic_sizes_are_asked_of_every_call() -> None:
    """Sizes that some calls exceed are asked of each; the conditions say which symbols are refused."""
    func = textured("A[0, 0] = B[0, 0]", shape='("n", 4 * m )')
    (verdict,) = told(func, SIZE)
    assert verdict.status is Status.PROVED and verdict.claim.text.startswith("precondition: ")
    conditions = size_conditions(func, LIMITS)
    assert [c.about for c in conditions] == [
        "the width of texture B, at most 16384 texels",
        "the height of texture B, at most 16384 texels",
    ]
    assert [expr_text(c.expr, Style.PLAIN) for c in conditions] == ["m <= 16384", "n <= 16384"]
    assert [bool(evaluate(c.expr, {"n": 16385, "m": 16384})) for c in conditions] == [True, False]


def test_symbolic_sizes_that_are_bounded_need_no_asking() -> None:
    """What the program assumes of its symbols keeps the texture within the limits."""
    func = textured(
        "T.evaluate(T.assume(n <= 100))\nT.evaluate(T.assume(m <= 4096))\nA[0, 0] = B[0, 0]", shape='("n", 4 * m )'
    )
    (verdict,) = told(func, SIZE)
    assert verdict.status is Status.PROVED and verdict.claim.text == "texture B is at most 16384 by 16384 texels"
    assert size_conditions(func, LIMITS) == ()


def test_symbolic_sizes_that_no_call_can_keep() -> None:
    """Where the assumptions force the texture past the limit, that is refused."""
    func = textured("T.evaluate(T.assume(n >= 20000))\nA[0, 0] = B[0, 0]", shape='("n", 4 * m )')
    (verdict,) = told(func, SIZE)
    assert verdict.status is Status.REFUTED and verdict.counterexample is not None
    assert (verdict.counterexample["direction"], verdict.counterexample["limit"]) == ("height", 16384)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("B[0, 0] = T.float32(1.0)", Status.PROVED),
        ('B[0, 0] = T.undef(dtype="float32")', Status.REFUTED),
        ('for i in range(4):\n    B[i, 0] = T.float32(1.0) + T.undef(dtype="float32")', Status.REFUTED),
        ('if A[0, 0] > T.float32(0.0):\n    B[0, 0] = T.undef(dtype="float32")', Status.UNKNOWN),
        ('for i in range(4):\n    if i > 5:\n        B[i, 0] = T.undef(dtype="float32")', Status.PROVED),
        ('with T.LetStmt(T.undef(dtype="float32")) as x:\n    B[0, 0] = x', Status.REFUTED),
    ],
)
def test_nothing_undefined_is_stored(body: str, expected: Status) -> None:
    """A store of `undef` to a texture that is executed is refused, by way of a name too."""
    assert statuses(told(textured(body), VALUE)) == {expected}


@pytest.mark.parametrize(
    ("shape", "expected", "hint"),
    [
        ("(4, 8)", Status.PROVED, None),
        ("(4, 8, 8)", Status.PROVED, None),
        ("(32,)", Status.REFUTED, "set_axis_separators"),
        ("(2, 4, 8, 8)", Status.REFUTED, "set_axis_separators"),
    ],
)
def test_an_image_has_two_or_three_axes(shape: str, expected: Status, hint: str | None) -> None:
    """Memory of another number of physical axes is refused, and what to add is said; nothing further is said of it."""
    zeros = ", ".join("0" for part in shape.strip("()").split(",") if part)
    verdicts = check_texels(textured(f"B[{zeros}] = T.float32(1.0)", shape=shape), LIMITS)
    (verdict,) = (v for v in verdicts if IMAGE in v.claim.text)
    assert verdict.status is expected
    if hint is not None:
        assert verdict.reason is not None and hint in verdict.reason
        assert not [v for v in verdicts if COVERS in v.claim.text]


@pytest.mark.parametrize(
    ("view", "part"),
    [
        ('(32,), "float32", data=B.data, scope="global.texture"', "other extents"),
        ('(4, 32), "int32", data=B.data, scope="global.texture"', "one type"),
        ('(4, 32), "float32", data=B.data', "sees it in scope global"),
        ('(4, 16), "float32", data=B.data, strides=(32, 1), scope="global.texture"', "strides"),
    ],
)
def test_views_of_an_image_agree(view: str, part: str) -> None:
    """An image has one shape, one type and one scope, whatever views the text declares."""
    index = "0" if view.startswith("(32") else "0, 0"
    value = "T.int32(1)" if "int32" in view else "T.float32(1.0)"
    func = textured(f"V = T.decl_buffer({view})\nA[0, 0] = B[0, 0]\nV[{index}] = {value}")
    (verdict,) = told(func, IMAGE)
    assert verdict.status is Status.REFUTED and verdict.reason is not None and part in verdict.reason


def test_views_by_texels_and_by_channels() -> None:
    """A view of the same image may have texels as elements; writes by both views are compared."""
    body = (
        'V = T.decl_buffer((4, 8), "float32x4", data=B.data, scope="global.texture")\n'
        f"for j in T.parallel(8):\n    V[0, j] = {FOUR}\n    B[0, {{}}] = {ONE}"
    )
    assert statuses(told(textured(body.format("j * 4 + 1")), COVERS)) == {Status.PROVED}
    assert [v.status for v in told(textured(body.format("(7 - j) * 4")), COVERS)] == [Status.PROVED, Status.REFUTED]


def test_an_image_is_made_before_the_kernel() -> None:
    """A texture that each work item would allocate for itself is refused."""
    text = """
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        for i in T.parallel(8):
            with T.block("b"):
                v = T.axis.spatial(8, i)
                B = T.alloc_buffer((1, 4), scope="global.texture")
                B[0, 0] = T.float32(1.0)
                A[v] = B[0, 0]
    """
    (verdict,) = told(program(text), IMAGE)
    assert verdict.status is Status.REFUTED and verdict.counterexample == {"buffer": "B", "loops": ["i"]}


ALIASED = """
    @T.prim_func
    def main(a: T.handle, b: T.handle):
        T.func_attr({{"tirx.noalias": {noalias}}})
        A = T.match_buffer(a, (4, 8), "float32", scope="global.texture")
        B = T.match_buffer(b, (4, 8), "float32"{data}, scope="global.texture")
        for i in T.parallel(4):
            for j in range(2):
                B[i, T.ramp(j * 4, 1, 4)] = A[i, T.ramp(j * 4, 1, 4)]
"""


@pytest.mark.parametrize(
    ("data", "noalias", "expected"),
    [
        ("", True, Status.PROVED),
        (", data=A.data", True, Status.REFUTED),
        (", data=A.data", False, Status.REFUTED),
        ("", False, Status.UNKNOWN),
    ],
)
def test_parameters_are_apart(data: str, noalias: bool, expected: Status) -> None:
    """Two `restrict` parameters that are one memory are refused by name; without `noalias` they may overlap."""
    (verdict,) = told(program(ALIASED.format(data=data, noalias=noalias)), "no two parameters")
    assert verdict.status is expected
    if expected is Status.REFUTED:
        assert verdict.counterexample == {"first": "A", "second": "B", "data": "A_data"}


def test_plain_restrict_parameters_are_apart_too() -> None:
    """Without textures only two parameters that are one memory are refused."""
    plain = ALIASED.format(data=", data=A.data", noalias=True).replace(', scope="global.texture"', "")
    (verdict,) = check_texels(program(plain), LIMITS)
    assert verdict.status is Status.REFUTED


def test_opaque_calls() -> None:
    """A call that could reach a texture by itself leaves everything open that depends on who writes what."""
    body = "T.call_extern('int32', 'paint', B.data)\nfor j in T.parallel(8):\n    B[0, j * 4] = T.float32(1.0)"
    verdicts = check_texels(textured(body), LIMITS)
    unknown = {v.claim.text.partition(" (")[0] for v in verdicts if v.status is Status.UNKNOWN}
    assert unknown == {
        "textures are reached by loads and stores only",
        "write B[0, j*4] covers its texel or is the only writer of it",
    }


SYMBOLIC = """
    @T.prim_func
    def main(A: T.Buffer(("n", "h", "w", 4 * c)), B: T.Buffer((n * h, c * w * 4), scope="global.texture")):
        n, h, w, c = T.int32(), T.int32(), T.int32(), T.int32()
        T.func_attr({{"tirx.noalias": True}})
        for i in T.parallel(n):
            for y in T.parallel(h):
                for q in T.parallel(c):
                    for x in {kind}(w):
                        {store}
"""
STORES = {
    "whole": "B[i * h + y, T.ramp((q * w + x) * 4, 1, 4)] = A[i, y, x, T.ramp(q * 4, 1, 4)]",
    "part": "B[i * h + y, (q * w + x) * 4 + 1] = A[i, y, x, q * 4]",
    "shared": "B[i * h + y, (q * w + x) * 4 // 2] = A[i, y, x, q * 4]",
    "rows": "B[i * h, (q * w + x) * 4] = A[i, y, x, q * 4]",
}


@one_in(52)
@pytest.mark.parametrize("kind", ["T.parallel", "range"])
@pytest.mark.parametrize(
    ("store", "expected"),
    [("whole", Status.PROVED), ("part", Status.PROVED), ("shared", Status.REFUTED), ("rows", Status.REFUTED)],
)
def test_symbolic_shapes(kind: str, store: str, expected: Status) -> None:
    """Rows of n*h and columns of c*w texels, whatever the sizes: products are taken apart into digits."""
    func = program(SYMBOLIC.format(kind=kind, store=STORES[store]))
    assert statuses(told(func, COVERS)) == {expected}
    assert statuses(told(func, "stays within [n*h")) == {Status.PROVED}


def test_proofs_can_be_asked_again() -> None:
    """What engines answered is written down for other solvers, which say the same."""
    facts = Facts.of(program(SYMBOLIC.format(kind="T.parallel", store=STORES["part"])), gathered=Gathered())
    verdicts = check_texel_facts(facts, LIMITS)
    covers = first(verdicts, Status.PROVED, COVERS)
    queries, missing = queries_of([piece for verdict in verdicts for piece in verdict.evidence])
    assert queries and not missing
    assert covers.engine in ("isl", "symbolic")
    for query in queries:
        assert {ask(engine, query.text, 20.0).answer for engine in ("z3", "cvc5")} == {Answer.UNSAT}


def test_programs_without_textures_are_asked_nothing() -> None:
    """Plain memory has no texels."""
    text = '@T.prim_func\ndef main(A: T.Buffer((8,), "float32")):\n    A[0] = T.float32(1.0)\n'
    assert check_texels(program(text), LIMITS) == ()
