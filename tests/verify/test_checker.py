"""Rewrites are accepted when nothing faults and cells are right, and refused when a cell map, the interface or the new
program is wrong.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.clauses import Clause, without
from tests.shares import one_in
from tests.verify.programs import first, program, statuses

from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite, Witness
from layoutproof.ir.visit import stores_in
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.program.questions import Because
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import ClaimKind, Status

OLD = """
    @T.prim_func
    def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
        T.func_attr({"tirx.noalias": True})
        C = T.alloc_buffer((14,))
        for i in range(14):
            C[i] = A[i]
        for i in range(14):
            B[i] = C[i]
"""
NEW = """
    @T.prim_func
    def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
        T.func_attr({"tirx.noalias": True})
        C = T.alloc_buffer((4, 4))
        for i in range(14):
            C[i // 4, i % 4] = A[i]
        for i in range(14):
            B[i] = C[i // 4, i % 4]
"""
SPLIT = IndexMap.from_func(lambda i: [i // 4, i % 4])


def rewrite(new: str = NEW, cells: IndexMap = SPLIT, *, witness: Witness | None = None) -> Rewrite:
    """The rewrite of the temporary's layout, with something changed."""
    old, function = program(OLD), program(new)
    return Rewrite(
        old, function, witness if witness is not None else Witness(_instances(function), (CellMap("C", "C", cells),))
    )


def _instances(function: PrimFunc) -> tuple[InstanceMap, ...]:
    return tuple(InstanceMap(k, k, IndexMap.identity(1)) for k, _ in enumerate(stores_in(function.body)))


def _data(function: PrimFunc, name: str) -> str:
    return next(s.buffer.data.name for s in stores_in(function.body) if s.buffer.name == name)


@pytest.fixture
def good() -> Rewrite:
    """A rewrite that is right, its memories named as the reader names them."""
    proposed = rewrite()
    name = _data(proposed.new, "C")
    return replace(proposed, witness=replace(proposed.witness, cells=(CellMap(name, name, SPLIT),)))


def test_right_rewrite_is_accepted(good: Rewrite) -> None:
    """Injective cells inside the new box, the same interface, no fault."""
    assert statuses(check_rewrite(good)) == {Status.PROVED}


@pytest.mark.parametrize(
    ("cells", "part"),
    [
        (IndexMap.from_func(lambda i: [i // 4, i % 2]), ""),
        (IndexMap.from_func(lambda i: [i // 4 + 1, i % 4]), "lie within"),
        (IndexMap.identity(1), "lie within"),
    ],
)
def test_wrong_cells_are_refused(good: Rewrite, cells: IndexMap, part: str) -> None:
    """A cell map that is not injective, or leaves the box, or has the wrong rank, is not accepted."""
    name = good.witness.cells[0].old_data
    verdicts = check_rewrite(replace(good, witness=replace(good.witness, cells=(CellMap(name, name, cells),))))
    assert any(v.status is not Status.PROVED and part in v.claim.text for v in verdicts)


def test_memory_that_is_not_there(good: Rewrite) -> None:
    """A witness that speaks of unknown memory is not accepted."""
    verdicts = check_rewrite(replace(good, witness=replace(good.witness, cells=(CellMap("nowhere", "C", SPLIT),))))
    assert Status.UNKNOWN in statuses(verdicts)


def test_two_memories_may_not_become_one(good: Rewrite) -> None:
    """Two cell maps into one memory are not accepted."""
    (cells,) = good.witness.cells
    other = CellMap(_data(good.old, "B"), cells.new_data, SPLIT)
    verdicts = check_rewrite(replace(good, witness=replace(good.witness, cells=(cells, other))))
    assert first(verdicts, Status.UNKNOWN, "no two memories").reason is not None


def test_fault_in_the_new_program_is_refuted(good: Rewrite) -> None:
    """An access out of bounds in the new program refutes the rewrite."""
    wrong = program(NEW.replace("B[i] = C[i // 4, i % 4]", "B[i] = C[i // 4 + 1, i % 4]"))
    assert first(check_rewrite(replace(good, new=wrong)), Status.REFUTED, "read C").counterexample is not None


def test_undeclared_change_of_a_parameter(good: Rewrite) -> None:
    """A parameter's shape changes only where the step declares it."""
    relaid = program(NEW.replace("B: T.Buffer((14,)", "B: T.Buffer((15,)"))
    assert first(check_rewrite(replace(good, new=relaid)), Status.UNKNOWN, "parameters keep").reason is not None
    silent = replace(good.witness, changes_interface=("B",))
    assert (
        first(check_rewrite(replace(good, new=relaid, witness=silent)), Status.UNKNOWN, "layout metadata").reason
        is not None
    )
    step = '{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": None}'
    record = f'"layoutproof.layout": {{"B_data": {{"logical_shape": [14], "steps": [{step}]}}}}'
    said = (
        NEW.replace("B: T.Buffer((14,)", "B: T.Buffer((4, 4)")
        .replace("B[i]", "B[i // 4, i % 4]")
        .replace("True}", f"True, {record}}}")
    )
    declared = replace(silent, cells=(*good.witness.cells, CellMap("B_data", "B_data", SPLIT)))
    assert statuses(check_rewrite(replace(good, new=program(said), witness=declared))) == {Status.PROVED}


@pytest.mark.parametrize("declared", [(), ("B",)], ids=["not declared", "declared"])
def test_a_layout_change_that_is_stated_and_not_made(good: Rewrite, declared: tuple[str, ...]) -> None:
    """A record that says of a parameter whose cells stay that they moved is not accepted: it is what others read a
    layout from.
    """
    step = '{"index_map": "lambda i: [13 - i]", "shape": [14], "contract": None}'
    said = NEW.replace(
        "True}", f'True, "layoutproof.layout": {{"B_data": {{"logical_shape": [14], "steps": [{step}]}}}}}}'
    )
    witness = replace(good.witness, changes_interface=declared)
    invented = replace(good, new=program(said), witness=witness)
    (open_one,) = [verdict for verdict in check_rewrite(invented) if verdict.status is not Status.PROVED]
    assert open_one.claim.text == "layout metadata is consistent"
    with without(Clause.RECORDS):
        assert statuses(prove_rewrite(invented).verdicts) == {Status.PROVED}


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("", ", align=128", False),
        (", align=128", ", align=64", True),
        ("", ", align=64, offset_factor=1", True),  # what TVM takes where nothing is said
        ("", ', scope="global.texture"', False),
        ("", ", offset_factor=4", False),
    ],
)
def test_callers_promise_no_more_of_a_parameter(old: str, new: str, kept: bool) -> None:
    """Neither its alignment, nor what its offset is a multiple of, nor another kind of memory."""
    text = """
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"{more}), B: T.Buffer((8,), "float32")):
        T.func_attr({{"tir.noalias": True}})
        for i in range(8):
            B[i] = A[i]
    """
    before, after = (program(text.format(more=more)) for more in (old, new))
    found = statuses(check_rewrite(Rewrite(before, after, Witness(_instances(after)))))
    assert (found == {Status.PROVED}) is kept


def test_callers_promise_no_more_by_a_pointer() -> None:
    """A view by another name of its pointer promises alignment for the parameter, too."""
    text = """
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.func_attr({{"tir.noalias": True}})
        p: T.let[T.handle("float32")] = T.pointer_cast("float32", A.data)
        V = T.decl_buffer((8,), "float32", data=p{more})
        for i in range(8):
            B[i] = V[i]
    """
    before, after, other = (program(text.format(more=more)) for more in ("", ", align=128", ", align=32"))
    for new, kept in ((after, False), (other, True)):
        found = statuses(check_rewrite(Rewrite(before, new, Witness(_instances(new)))))
        assert (found == {Status.PROVED}) is kept


def test_input_that_comes_to_be_written(good: Rewrite) -> None:
    """A parameter that the old program only reads may not be written."""
    text = NEW.replace(
        "            C[i // 4, i % 4] = A[i]\n", "            C[i // 4, i % 4] = A[i]\n            A[i] = A[i]\n"
    )
    written = program(text)
    instances = tuple(
        InstanceMap(k, None if k == 1 else min(k, 1), None if k == 1 else IndexMap.identity(1)) for k in range(3)
    )
    verdicts = check_rewrite(replace(good, new=written, witness=replace(good.witness, instances=instances)))
    assert first(verdicts, Status.UNKNOWN, "is only read").reason is not None


POINTED = """
# theta: 0 -> 0: lambda i: [7 - i]
{theta}
@T.prim_func
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    p: T.let[T.handle("int32")] = T.pointer_cast("int32", A.data)
    V = T.decl_buffer((8,), "int32", data=p)
    for i in range(8):
        B[i] = A[i]
    {old}

@T.prim_func
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    p: T.let[T.handle("int32")] = T.pointer_cast("int32", A.data)
    V = T.decl_buffer((8,), "int32", data=p)
    for i in range(8):
        B[7 - i] = A[7 - i]
    {new}
"""
NOTHING = "T.evaluate(0)"
SAME = "# theta: 1 -> 1: lambda: []"


@pytest.mark.parametrize(
    ("old", "new", "theta", "status"),
    [
        (NOTHING, "V[3] = 77", "# theta: 1 -> none", Status.REFUTED),
        (NOTHING, "V[3] = V[3]", "# theta: 1 -> none", Status.UNKNOWN),
        ("V[3] = 77", NOTHING, "", Status.REFUTED),
        ("V[3] = 77", "V[3] = 78", SAME, Status.REFUTED),
        ("V[3] = 77", "V[3] = 77", SAME, Status.PROVED),
        (NOTHING, NOTHING, "", Status.PROVED),
    ],
)
def test_stores_by_a_pointer_are_stores(old: str, new: str, theta: str, status: Status) -> None:
    """A pointer of another name leads to the parameter's own cells, which callers see."""
    text = POINTED.format(old=old, new=new, theta=theta).replace("\n\n@T", "\n@T").strip()
    assert worst(v.status for v in check_rewrite(parse_rewrite(text))) is status


@one_in(4)
def test_witness_must_name_every_store(good: Rewrite) -> None:
    """A store that the witness leaves out, or an old one that is not there, is not accepted."""
    short = replace(good.witness, instances=good.witness.instances[:1])
    assert Status.UNKNOWN in statuses(check_rewrite(replace(good, witness=short)))
    wrong = replace(
        good.witness, instances=(good.witness.instances[0], replace(good.witness.instances[1], old_store=7))
    )
    assert Status.UNKNOWN in statuses(check_rewrite(replace(good, witness=wrong)))


def test_new_assumption_on_symbols_is_refused() -> None:
    """A rewrite may not assume more of the symbols than the old program does, only what follows from it."""
    text = """
    @T.prim_func
    def main(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
        n = T.int32()
        T.evaluate(T.assume(n >= 4))
        for i in range(n):
            B[i] = A[i]
    """
    old = program(text)
    for assumption, status in (("n >= 4", Status.PROVED), ("n >= 3", Status.PROVED), ("n >= 5", Status.REFUTED)):
        new = program(text.replace("n >= 4", assumption))
        verdicts = check_rewrite(Rewrite(old, new, Witness(_instances(new))))
        assert worst(statuses(verdicts)) is status


def test_a_fault_with_symbols_that_the_old_program_excludes_refutes_nothing() -> None:
    """A precondition that is dropped is one of the old program's calls, of which alone something is claimed."""
    text = """
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), n: T.int32):
        T.func_attr({"tir.noalias": True})
        T.evaluate(T.assume(n < 8 and n >= 0))
        B[n] = A[n]
    """
    old = program(text)
    for dropped, wrong in (("A[n]", False), ("A[n + 1]", True)):
        new = program(text.replace("T.evaluate(T.assume(n < 8 and n >= 0))", "pass").replace("A[n]", dropped))
        found = statuses(check_rewrite(Rewrite(old, new, Witness(_instances(new)))))
        assert (Status.REFUTED in found) is wrong and Status.UNKNOWN in found


def test_layout_record_may_not_change() -> None:
    """Padding without a contract does not get one by a rewrite; a record goes on where it was."""
    text = """
    @T.prim_func
    def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((14,), "float32")):
        T.func_attr({"layoutproof.layout": {"A_data": {"logical_shape": [14], "steps": [
            {"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": None}]}}})
        for i in range(14):
            B[i] = A[i // 4, i % 4]
    """
    old = program(text)
    assert statuses(check_rewrite(Rewrite(old, old, Witness(_instances(old))))) == {Status.PROVED}
    for other in (text.replace('"contract": None', '"contract": "undef"'), text.replace("[14], ", "[15], ")):
        new = program(other)
        assert Status.UNKNOWN in statuses(check_rewrite(Rewrite(old, new, Witness(_instances(new)))))


@pytest.mark.parametrize(
    ("shape", "steps", "store", "kept"),
    [
        # the second map puts padding of the first where elements 0 and 1 are
        ("(14,)", [("lambda i: [i]", [16]), ("lambda i: [i%14]", [14])], "B[i]", "range(2, 14)"),
        # elements 10 to 13 are in no place of the middle box
        ("(4, 4)", [("lambda i: [i]", [10]), ("lambda i: [i//4, i%4]", [4, 4])], "B[i//4, i%4]", "range(10)"),
    ],
)
def test_record_whose_padding_is_where_elements_are(
    shape: str, steps: list[tuple[str, list[int]]], store: str, kept: str
) -> None:
    """A store of elements that a record which is no layout takes for padding is missed."""
    stated = [{"index_map": text, "shape": box, "contract": "undef"} for text, box in steps]
    record = {"B_data": {"logical_shape": [14], "steps": stated}}
    texts = [
        f"""@T.prim_func(s_tir=True)
def {name}(A: T.Buffer((14,), "float32"), B: T.Buffer({shape}, "float32")):
    T.func_attr({{"tirx.noalias": True, "layoutproof.layout": {record}}})
    for i in {loop}:
        {store} = A[i]
"""
        for name, loop in (("before", "range(14)"), ("after", kept))
    ]
    rewrite = parse_rewrite("# theta: 0 -> 0: lambda i: [i]\n" + "\n".join(texts))
    found = {verdict.claim.kind: verdict for verdict in prove_rewrite(rewrite).verdicts}[ClaimKind.RECORDS]
    assert found.status is Status.UNKNOWN and found.reason is not None and "is no layout" in found.reason
    assert worst(verdict.status for verdict in check_rewrite(rewrite)) is Status.UNKNOWN


WHOLE = """\
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> 1: lambda i: [i]
@T.prim_func(s_tir=True)
def before(A: T.Buffer(("n",), "float32"), B: T.Buffer((4,), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((1,))
    for i in range(n):
        C[0] = A[i]
    for i in range(4):
        B[i] = C[0]


@T.prim_func(s_tir=True)
def after(A: T.Buffer(("n",), "float32"), B: T.Buffer((4,), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((1,))
    for i in range(n):
        C[0] = A[n - 1]
    for i in range(4):
        B[i] = C[0]
"""


def test_a_fault_that_the_old_program_has_too_refutes_nothing() -> None:
    """With n = 0 both programs read a cell that was never written: that is no difference between them."""
    verdicts = check_rewrite(parse_rewrite(WHOLE))
    assert Status.REFUTED not in statuses(verdicts)
    found = first(verdicts, Status.UNKNOWN, "read")
    assert "the program before has a fault of this kind" in str(found.reason) and Because.OLD_FAULT in found.because


def test_a_fault_of_its_own_refutes_a_program_whose_old_one_has_others() -> None:
    """The new program reads A[4] with n = 4, where the old one has no fault, although it has one with n = 0."""
    verdicts = check_rewrite(parse_rewrite(WHOLE.replace("A[n - 1]", "A[i + 1]")))
    assert "n = " in str(first(verdicts, Status.REFUTED).reason)


@pytest.mark.parametrize("index", ['i + T.Cast("int32", T.infinity("float32")) * 0', 'i + T.Cast("int32", A[i]) * 0'])
def test_a_conversion_in_an_index_may_trap(index: str) -> None:
    """Whatever it is multiplied by: a float without an integer has no conversion."""
    text = WHOLE.replace("C[0] = A[n - 1]", f"C[{index.replace('i +', '0 +')}] = A[i]")
    verdicts = check_rewrite(parse_rewrite(text))
    assert any(v.claim.kind is ClaimKind.HAS_RESULT and v.status is not Status.PROVED for v in verdicts)


RACING = """\
@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in T.parallel(8):
        B[i // 2] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in T.parallel(8):
        B[i // 2] = A[i]
"""


def test_a_race_that_the_old_program_has_too_refutes_nothing() -> None:
    """Two iterations of both programs write one cell."""
    found = [v for v in check_rewrite(parse_rewrite(RACING)) if v.claim.kind is ClaimKind.NO_RACE]
    assert [v.status for v in found] == [Status.UNKNOWN] and Because.OLD_FAULT in found[0].because


OVERFLOWING = """\
# theta: 0 -> 0: lambda i: [i]
@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), n: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = A[(OLD) % 8]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), n: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = A[(NEW) % 8]
"""


@pytest.mark.parametrize("index, other", [("i + 2147483647", "i + 7"), ("i * n", "i * 2 * n - i * n")])
def test_a_fault_that_is_not_new_stays_one(index: str, other: str) -> None:
    """What one step has from the step before is no fault of that step, but the next one starts with it: its answers are
    the same whether or not the step before was asked.
    """

    def pair(old: str, new: str) -> Rewrite:
        return parse_rewrite(OVERFLOWING.replace("OLD", old).replace("NEW", new))

    alone = pair(index, other)
    wanted = statuses(prove_rewrite(alone).verdicts)
    assert Status.UNKNOWN in wanted and Status.REFUTED not in wanted
    step = pair(index, index)
    prove_rewrite(step)
    assert statuses(prove_rewrite(replace(alone, old=step.new)).verdicts) == wanted
