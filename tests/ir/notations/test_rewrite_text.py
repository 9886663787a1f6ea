"""Rewrites as text: what is written reads back equal, and what is not understood is an error with its place."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from tests.lowering.small_operators import CONCRETE, NAMES, random_map, small
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import INT64
from layoutproof.ir.expr import IntImm, Var, logical_and
from layoutproof.ir.index_map import AXIS_SEPARATOR, IndexMap
from layoutproof.ir.notations.rewrite_text import LitmusHeader, parse_litmus, parse_rewrite, rewrite_text
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite, Witness
from layoutproof.lowering.layout.transform_layout import TransformLayout
from layoutproof.lowering.schedule.schedule import LOWERING

TEXT = """# about: a loop is split, and its guard kept
# expect: proved
# strictness: nnan ninf
# clause: order
# where: n >= 1
# theta: 0 -> 0: lambda io, ii: [4*io + ii] where 4*io + ii < n
# cells: A_data -> A_data: lambda i: [i//4, AXIS_SEPARATOR, i%4]
# interface: A, B
@T.prim_func
def before(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    for i in range(n):
        B[i] = A[i]
@T.prim_func
def after(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    for io, ii in T.grid((n + 3)//4, 4):
        if 4*io + ii < n:
            B[4*io + ii] = A[4*io + ii]
"""


def changed(old: str, new: str) -> str:
    """The text with one change."""
    assert old in TEXT
    return TEXT.replace(old, new, 1)


def test_every_line_of_the_header_is_read() -> None:
    """The witness and the header hold what the lines say."""
    litmus = parse_litmus(TEXT)
    n, io, ii = Var("n"), Var("io"), Var("ii")
    assert litmus.header == LitmusHeader(
        "proved", ("nnan", "ninf"), "order", "a loop is split, and its guard kept", n >= 1
    )
    split = IndexMap((io, ii), (IntImm(4) * io + ii,))
    cells = IndexMap.from_func(lambda i: [i // 4, AXIS_SEPARATOR, i % 4])
    witness = litmus.rewrite.witness
    assert witness == Witness(
        (InstanceMap(0, 0, split, IntImm(4) * io + ii < n),), (CellMap("A_data", "A_data", cells),), ("A", "B")
    )
    assert (litmus.rewrite.old.name, litmus.rewrite.new.name) == ("before", "after")
    assert parse_litmus(rewrite_text(litmus.rewrite, litmus.header)) == litmus
    assert parse_rewrite(rewrite_text(litmus.rewrite)) == litmus.rewrite


def test_without_theta_every_store_computes_its_namesake() -> None:
    """No theta line: same numbering, same loops. `none`: a witness that says nothing."""
    line = next(line for line in TEXT.splitlines() if "theta" in line)
    default = parse_rewrite(changed(line + "\n", ""))
    assert default.witness.instances == (InstanceMap(0, 0, IndexMap((Var("io"), Var("ii")), (Var("io"), Var("ii")))),)
    assert "theta" not in rewrite_text(default)
    silent = parse_rewrite(changed(line, "# theta: none"))
    assert silent.witness.instances == ()
    assert parse_rewrite(rewrite_text(silent)) == silent


def test_strictness_bit_for_bit_is_not_silence() -> None:
    """`ieee` is a proof without fast-math assumptions; no line says nothing."""
    exact = parse_litmus(changed("nnan ninf", "ieee"))
    assert exact.header.strictness == ()
    assert parse_litmus(rewrite_text(exact.rewrite, exact.header)).header.strictness == ()
    assert parse_litmus(changed("# strictness: nnan ninf\n", "")).header.strictness is None


def test_one_function_on_either_side() -> None:
    """A function's text is the same before and after but for its name, also where a block, a buffer or the function
    itself is called as a side is.
    """
    parsed = parse_rewrite(TEXT)
    named = [replace(parsed.old, name=name) for name in ("before", "after", "def")]
    for func in (parsed.old, *named):
        text = rewrite_text(Rewrite(func, func, Witness((), ())))
        first, *sides = text.split("\ndef ")
        names, rest = zip(*(side.split("(", 1) for side in sides), strict=True)
        assert names == ("before", "after")
        assert rest[0].removesuffix(first.splitlines()[-1]).rstrip() == rest[1].rstrip()
        assert text == rewrite_text(Rewrite(func, func, Witness((), ())))


def test_types_and_constants_of_a_witness_survive() -> None:
    """64-bit maps, arithmetic on constants, maps without inputs and conditions without maps read back equal."""
    rewrite = parse_rewrite(TEXT)
    i = Var("io", INT64)
    maps = [
        IndexMap((i, Var("ii")), (i // 4 + IntImm(0, INT64), IntImm(2) * IntImm(3) + IntImm(-1))),
        IndexMap((), (IntImm(0), IntImm(5, INT64))),
        IndexMap((Var("a"),), ()),
    ]
    for index_map in maps:
        pairs = (
            InstanceMap(0, 0, index_map, logical_and(IntImm(1) + IntImm(2) < Var("n"), Var("n") < 7)),
            InstanceMap(0, None, None),
        )
        cells = (CellMap("A_data", "B_data", index_map),)
        odd = replace(rewrite, witness=Witness((*pairs, InstanceMap(0, None, None, Var("io") < 2)), cells))
        assert parse_rewrite(rewrite_text(odd)) == odd


@one_in(4)
@pytest.mark.parametrize("name", NAMES)
def test_rewrites_of_the_lowering_round_trip(name: str) -> None:
    """Every rewrite that lowering proposes for the operators reads back equal, function names included."""
    func = small(name)
    for step in LOWERING:
        rewrite = step.propose(func)
        assert parse_rewrite(rewrite_text(rewrite)) == rewrite
        func = rewrite.new


@one_in(52)
@pytest.mark.parametrize("name", CONCRETE)
@pytest.mark.parametrize("pad", [None, "0", "T.undef()"])
def test_rewrites_of_layouts_round_trip(name: str, pad: str | None) -> None:
    """Rewrites with cell maps, pad stages and records read back equal."""
    rng = Random(f"{name} {pad}")
    func = small(name)
    for buffer in func.buffers:
        rewrite: Rewrite = TransformLayout("root", buffer.name, random_map(rng, buffer.rank), pad).propose(func)
        assert parse_rewrite(rewrite_text(rewrite)) == rewrite
        func = rewrite.new


WRONG = [
    ("# theta: 0", "# thta: 0", "LP186", ":6:3: ", "did you mean `theta`?"),
    ("# clause: order", "# expect: proved", "LP186", ":4:3: ", "twice"),
    ("# clause: order", "# a word", "LP186", ":4:1: ", "key: value"),
    ("expect: proved", "expect: maybe", "LP186", ":2:11: ", "proved, refuted, unknown"),
    ("0 -> 0", "0 -> 3", "LP188", ":6:15: ", "no old store 3"),
    ("0 -> 0", "2 -> 0", "LP188", ":6:10: ", "no new store 2"),
    ("0 -> 0", "0 to 0", "LP188", ":6:10: ", "new -> old"),
    (
        "0 -> 0: lambda io, ii: [4*io + ii]",
        "0 -> 0:",
        "LP188",
        ":6:10: ",
        "new store 0 stands in 2 loops, old store 0 in 1: a map is needed",
    ),
    ("0 -> 0", "0 -> none", "LP188", ":6:21: ", "computes no old store, so there is no map"),
    ("4*io + ii]", "4*ix + ii]", "LP116", ":6:36: ", "`ix`"),
    ("+ ii]", "+ ii)", "LP110", ":6:43: ", "does not match"),
    ("] where", "] wher", "LP188", ":6:44: ", "followed by nothing"),
    ("ii < n\n", "ii\n", "LP119", ":6:51: ", "a truth value is expected"),
    ("[4*io + ii]", "[4*io + ii] of int64", "LP188", "", "1 types for 2 inputs"),
    ("[4*io + ii]", "[4*io + ii] of int64, real", "LP188", "", "real"),
    ("A_data -> A_data: lambda i: [i//4, AXIS_SEPARATOR, i%4]", "A_data", "LP188", ":7:10: ", "old_data -> new_data"),
    ("interface: A, B", "interface: A, C", "LP188", ":8:14: ", "no parameter"),
    ("def after", "def other", "LP187", "", "before and after"),
    (
        "    n = T.int32()\n    for i in",
        "# theta: none\n    n = T.int32()\n    for i in",
        "LP186",
        ":11:1: ",
        "below the programs",
    ),
    ("B[i] = A[i]", "B[i] = A[j]", "LP116", ":13:18: ", "`j`"),
]


@pytest.mark.parametrize(("old", "new", "code", "place", "part"), WRONG)
def test_what_is_wrong_is_told_with_its_place(old: str, new: str, code: str, place: str, part: str) -> None:
    """Each mistake has its code, its line and column in the whole text, and says what was expected."""
    with pytest.raises(LayoutproofError) as caught:
        parse_litmus(changed(old, new), "case.py")
    message = str(caught.value)
    assert f"[{code}]" in message and part in message and f"case.py{place}" in message, message


def test_a_theta_line_without_a_map_means_the_same_loops() -> None:
    """`0 -> 0` is the identity, with a condition or without; it reads back as the map that it stands for."""
    plain = parse_rewrite(changed("0 -> 0: lambda io, ii: [4*io + ii] where 4*io + ii < n", "0 -> none"))
    twice = replace(plain, old=replace(plain.new, name="before"))
    text = rewrite_text(twice)
    io, ii = (Var(name) for name in ("io", "ii"))
    for line, where in (("0 -> 0", None), ("0 -> 0: where io < 2", io < 2)):
        read = parse_rewrite(text.replace("0 -> none", line))
        assert read.witness.instances == (InstanceMap(0, 0, IndexMap((io, ii), (io, ii)), where),)
        assert parse_rewrite(rewrite_text(read)) == read


@pytest.mark.parametrize(("old", "instances"), [(0, None), (None, IndexMap.identity(1))])
def test_what_a_store_computes_is_never_left_open(old: int | None, instances: IndexMap | None) -> None:
    """A counterpart without a map of instances, and a map without a counterpart, are refused where they are made."""
    with pytest.raises(ValueError, match=r"new store 3 has (no|a) map of instances"):
        InstanceMap(3, old, instances)


def test_stores_that_differ_need_a_theta() -> None:
    """Programs with different numbers of stores have no witness of their own."""
    text = "\n".join(line for line in TEXT.splitlines() if "theta" not in line) + "\n        B[0] = A[0]\n"
    with pytest.raises(LayoutproofError, match="1 and 2 stores"):
        parse_rewrite(text)


@one_in(10)
def test_garbage_is_never_a_traceback() -> None:
    """Texts with pieces cut out, doubled or exchanged are read or refused with a diagnostic."""
    rng = Random(5)
    pieces = "# : -> lambda [ ] ( ) where of none 0 9 io n , \n theta cells \x00 é A_data int64".split(" ")
    for _ in range(1500):
        text = TEXT
        for _ in range(rng.randint(1, 3)):
            start = rng.randrange(len(text))
            stop = min(len(text), start + rng.choice([0, 1, 1, 3, 9]))
            text = text[:start] + rng.choice(["", rng.choice(pieces), text[start:stop] * 2]) + text[stop:]
        try:
            litmus = parse_litmus(text)
        except LayoutproofError as problem:
            assert problem.diagnostics
        else:
            assert parse_litmus(rewrite_text(litmus.rewrite, litmus.header)) == litmus
