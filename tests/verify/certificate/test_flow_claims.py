"""Where values were written, as questions for other solvers: only wrong answers have a counterexample."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import islpy as isl
import pytest
from tests.shares import one_in
from tests.verify.programs import facts

from layoutproof.verify.flow.statement_reader import read_statements
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.instance_sets import Workspace
from layoutproof.verify.isl.isl_evidence import evidence_of
from layoutproof.verify.isl.last_writer import LastWrite
from layoutproof.verify.program.evidence import Evidence, Gathered, Several
from layoutproof.verify.smt.engines import ask
from layoutproof.verify.smt.smtlib import queries_of
from layoutproof.verify.smt.solver import Answer

HEADER = """
from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
"""
SCAN = """    for i in range(15):
        B[i + 1] = B[i] + A[i]
"""
TWICE = """    for i in range(16):
        B[i] = A[i]
    for i in range(8):
        B[2 * i] = A[i]
    for i in range(16):
        A[i] = B[i]
"""
TILED = """    for i, j in T.grid(4, 4):
        B[i * 4 + j] = A[j * 4 + i]
    for i in range(16):
        A[i] = B[15 - i] + A[i]
"""
SUM = """    for i, j in T.grid(4, 4):
        with T.sblock("s"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi * 4 + vj]
"""
PROGRAMS = {"scan": SCAN, "twice": TWICE, "tiled": TILED, "sum": SUM}


def searches(body: str) -> list[LastWrite]:
    """Every search for last writes that the reads and the ends of a program take."""
    statements = read_statements(facts(HEADER + body).program)
    gathered = Gathered()
    flow = Dataflow(Workspace((), (), {}, gathered=gathered), statements, "n")
    for statement in statements.statements:
        for read in statement.reads:
            flow.sources(statement, read)
    for data in statements.cells:
        flow.final(data)
    return [search_of(piece) for piece in gathered.taken()]


def search_of(piece: Evidence) -> LastWrite:
    """The search behind a piece of evidence."""
    assert isinstance(piece, Several) and isinstance(piece.make, partial)
    (search,) = piece.make.args
    assert isinstance(search, LastWrite)
    return search


def answers(search: LastWrite) -> set[Answer]:
    """What z3 and cvc5 say of the claims behind a search."""
    queries, missing = queries_of(evidence_of(search))
    assert missing == () and queries
    return {ask(engine, query.text, 20.0).answer for query in queries for engine in ("z3", "cvc5")}


@one_in(7)
@pytest.mark.parametrize("name", PROGRAMS)
def test_right_answers_are_confirmed(name: str) -> None:
    """Of every read, and of every memory's end, both solvers confirm where the value was written."""
    found = searches(PROGRAMS[name])
    assert found and all(answers(search) == {Answer.UNSAT} for search in found)


@one_in(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_source_that_is_lost_shows(name: str) -> None:
    """Whoever says that a value was there from the start, though something wrote it, is contradicted."""
    for search in searches(PROGRAMS[name]):
        if search.found:
            lost = _changed(search, [], search.read.domain())
            assert Answer.SAT in answers(lost)
            hole = _changed(search, search.found[1:], search.todo)
            assert Answer.SAT in answers(hole)


@one_in(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_another_source_shows(name: str) -> None:
    """Whoever names another instance as the source, one earlier or later in its innermost loop, is contradicted."""
    for search in searches(PROGRAMS[name]):
        for position, (number, found) in enumerate(search.found):
            for step in (-1, 1):
                shifted = found.apply_range(_shift(found.range().get_space(), step))
                changed = [*search.found]
                changed[position] = (number, shifted)
                assert Answer.SAT in answers(_changed(search, changed, search.todo))


def _changed(search: LastWrite, found: list[tuple[int, isl.Map]], todo: isl.Set) -> LastWrite:
    other = replace(search)
    other.found, other.todo = found, todo
    return other


def _shift(space: isl.Space, step: int) -> isl.Map:
    """A point to the one `step` further in the last dim."""
    count = space.dim(isl.dim_type.set)
    names = [f"d{k}" for k in range(count)]
    ends = [*names[:-1], f"{names[-1]} + {step}"]
    return isl.Map.read_from_str(space.get_ctx(), f"{{ [{', '.join(names)}] -> [{', '.join(ends)}] }}")
