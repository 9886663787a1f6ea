"""Windows: what long programs share is left out of a proof only where that changes no answer."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest
from tests.shares import one_in

from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite, Witness
from layoutproof.ir.script.reader import loads
from layoutproof.ir.visit import loops_of_stores
from layoutproof.verify import checker
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.program import window
from layoutproof.verify.program.window import try_window
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status

MEMORIES = "CDEFGH"


@pytest.fixture(autouse=True)
def short_programs() -> Iterator[None]:
    """Windows are looked for in programs of few statements, too."""
    with patch.object(window, "FEWEST", 2):
        yield


def program(*statements: str, parameters: str = "", attrs: str = '{"tirx.noalias": True}') -> PrimFunc:
    """A function of statements over elements `i` of arrays of eight: inputs A and B, outputs O and P, temporaries."""
    head = ", ".join(f'{name}: T.Buffer((8,), "float32")' for name in "ABOP")
    lines = ["@T.prim_func", f"def f({head}{parameters}):", f"    T.func_attr({attrs})"]
    lines += [f'    {name} = T.alloc_buffer((8,), "float32")' for name in MEMORIES]
    for number, statement in enumerate(statements):
        lines.append("    " + statement.replace("\n", "\n    ").replace("%", f"i{number}"))
    return loads("\n".join(lines) + "\n")


def every(store: str, count: int = 8) -> str:
    """A store at each of the first elements."""
    return f"for % in range({count}):\n    {store}"


def rewrite(old: PrimFunc, new: PrimFunc, *cells: CellMap) -> Rewrite:
    """The rewrite in which each store computes the one of its number."""
    maps = [
        InstanceMap(number, number, IndexMap(tuple(x.var for x in loops), tuple(x.var for x in before)))
        for number, (loops, before) in enumerate(zip(loops_of_stores(new.body), loops_of_stores(old.body), strict=True))
    ]
    return Rewrite(old, new, Witness(tuple(maps), cells))


CHAIN = tuple(
    every(f"{target}[%] = {source}[%] + T.float32({k})")
    for k, (source, target) in enumerate(zip("ACDEFG", "CDEFGO", strict=True))
)


def with_part(number: int, part: str) -> tuple[str, ...]:
    """The chain with another statement in one place."""
    return (*CHAIN[:number], part, *CHAIN[number + 1 :])


def test_a_window_has_what_touches_the_memories_of_the_difference() -> None:
    """Of a chain in which one statement changes the window has it and its neighbours; the memories at both ends are
    parameters there.
    """
    new = program(*with_part(3, every("F[7 - %] = E[7 - %] + T.float32(3)")))
    found = try_window(rewrite(program(*CHAIN), new))
    assert found is not None and len(found.shared) == 3
    assert [buffer.name for buffer in found.rewrite.old.buffers] == ["A", "B", "O", "P", "D", "G"]
    assert found.rewrite.new.buffers == found.rewrite.old.buffers


def test_what_is_right_is_proved_in_the_window() -> None:
    """A change that is right is proved without the other statements, and a verdict says how many these are."""
    new = program(*with_part(3, every("F[%] = T.float32(3) + E[%]")))
    verdicts = prove_rewrite(rewrite(program(*CHAIN), new)).verdicts
    assert worst(v.status for v in verdicts) is Status.PROVED
    assert verdicts[0].claim.text == "3 statements that both programs share are left out"


WRONG = {
    "another value": with_part(3, every("F[%] = E[%] + T.float32(4)")),
    "a part of the elements": with_part(3, every("F[%] = E[%] + T.float32(3)", 7)),
    "another source": with_part(3, every("F[%] = D[%] + T.float32(3)")),
    "before it is written": (*CHAIN[:2], CHAIN[3], CHAIN[2], *CHAIN[4:]),
    "twice": with_part(1, every("D[%] = C[%] + T.float32(1) + T.float32(1)")),
}


@pytest.mark.parametrize("statements", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_not_proved(statements: tuple[str, ...]) -> None:
    """A change that is wrong is left to the check of the whole, which does not prove it."""
    question = rewrite(program(*CHAIN), program(*statements))
    assert checker._prove_in_window(question, None) is None
    assert worst(v.status for v in prove_rewrite(question).verdicts) is not Status.PROVED


def test_cells_that_were_not_written_are_not_read() -> None:
    """Half of a temporary is written before: a statement that reads the other half, too, is not proved."""
    old = [every("C[%] = A[%]", 4), every("D[%] = C[%]", 4), every("O[%] = D[%]", 4), every("P[%] = A[%]"), CHAIN[0]]
    new = [*old[:1], every("D[%] = C[%]"), *old[2:]]
    question = rewrite(program(*old, CHAIN[1]), program(*new, CHAIN[1]))
    assert checker._prove_in_window(question, None) is None


def test_data_that_decides_what_is_read_brings_the_memory_in() -> None:
    """A shared statement reads a temporary where data says so: the temporary is in the window whole."""
    reads = every("G[%] = T.if_then_else(F[%] > T.float32(0), D[%], T.float32(0))")
    statements = [*CHAIN[:2], CHAIN[4].replace("F[%]", "A[%]"), every("F[%] = A[%] + B[%]"), reads, CHAIN[5]]
    changed = [*statements[:3], every("F[%] = B[%] + A[%]"), *statements[4:]]
    with patch.object(window, "FEWEST", 1):
        found = try_window(rewrite(program(*statements), program(*changed)))
    assert found is not None and len(found.shared) == 1
    assert "D" not in [buffer.name for buffer in found.rewrite.old.buffers]


def test_a_memory_that_moves_is_in_the_window() -> None:
    """The witness says that a temporary is stored the other way round, and its shape is the same: what touches it is
    looked at, although it is the same text in both programs.
    """
    turned = CellMap("E_data", "E_data", parse_index_map("lambda c: [7 - c]"))
    new = program(*with_part(3, every("F[%] = E[7 - %] + T.float32(3)")))
    question = rewrite(program(*CHAIN), new, turned)
    found = try_window(question)
    assert found is not None and "E" not in [buffer.name for buffer in found.rewrite.old.buffers]
    assert checker._prove_in_window(question, None) is None


@one_in(4)
def test_a_difference_that_a_fast_math_allows_is_left_to_the_whole() -> None:
    """What is equal but for the sign of a zero is not the same to later statements."""
    question = rewrite(program(*CHAIN), program(*with_part(0, every("C[%] = A[%]"))))
    assert try_window(question) is not None and checker._prove_in_window(question, None) is None


OTHERS = {
    "an opaque call": 'T.evaluate(T.call_extern("int32", "f", A.data))',
    "a pointer": "q: T.handle = A.data\nx = T.decl_buffer((8,), data=q)\nx[0] = T.float32(1)",
    "another type": 'x = T.decl_buffer((8,), "int32", data=P.data)\nfor % in range(8):\n    x[%] = 1',
}


@pytest.mark.parametrize("statement", OTHERS.values(), ids=OTHERS)
def test_programs_of_another_kind_have_no_window(statement: str) -> None:
    """Statements whose effects do not follow from the contents of memories that they name are not left out."""
    statements = [*CHAIN, statement]
    changed = [*with_part(3, every("F[%] = T.float32(3) + E[%]")), statement]
    question = rewrite(program(*statements), program(*changed))
    assert try_window(question) is None


def test_a_program_with_a_fault_is_looked_at_as_a_whole() -> None:
    """What is not proved to run without faults is not proved in a window: the whole says what is wrong."""
    fault = every("P[% + 1] = A[%]")
    new = [*with_part(3, every("F[%] = T.float32(3) + E[%]")), fault]
    question = rewrite(program(*CHAIN, fault), program(*new))
    assert try_window(question) is not None and checker._prove_in_window(question, None) is None


def test_a_program_that_stores_nothing_outside_is_looked_at_as_a_whole() -> None:
    """That something is observable is shown by a shared statement that stores to a parameter."""
    body = [*CHAIN[:5], every("H[%] = G[%]")]
    new = [*body[:2], every("E[%] = T.float32(2) + D[%]"), *body[3:]]
    assert checker._prove_in_window(rewrite(program(*body), program(*new)), None) is None


@pytest.mark.parametrize("memory", ["C", "P"])
def test_undefined_values_come_into_a_window(memory: str) -> None:
    """What is undefined before the window, a temporary or an output, decides nothing in it, also through a copy."""
    undefined = every(f"{memory}[%] = T.undef(dtype='float32')")
    rest = [every(f"O[%] = A[%] + T.float32({k})") for k in range(3)]
    old = [undefined, *rest, every(f"D[%] = {memory}[%]"), every("O[%] = A[%]")]
    chosen = every("O[%] = T.if_then_else(D[%] > T.float32(0), A[%], A[%])")
    question = rewrite(program(*old), program(*old[:-1], chosen))
    assert checker._prove_in_window(question, None) is None
    assert worst(v.status for v in prove_rewrite(question).verdicts) is Status.UNKNOWN
    swapped = rewrite(program(*old, every("P[%] = D[%] + A[%]")), program(*old, every("P[%] = A[%] + D[%]")))
    assert checker._prove_in_window(swapped, None) is not None
