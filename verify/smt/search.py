"""The same questions as `verify.isl.model` answers, for what integer sets cannot state: products and quotients of variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layoutproof.ir.expr import Expr, Var
from layoutproof.verify.instances import Scene
from layoutproof.verify.search import Search, no_answer, nothing
from layoutproof.verify.smt.encode_int import IntEncoder, NotInteger
from layoutproof.verify.smt.session import Answer, Query

RLIMIT = 600_000
ENGINE = "z3"


def search_instances(
    scene: Scene,
    assumed: Sequence[Expr],
    ranges: Mapping[Var, tuple[int | None, int | None]],
    conditions: Sequence[Expr],
    rlimit: int = RLIMIT,
) -> Search:
    """An instance of the scene where every condition holds.

    A quotient by 0 may be anything here: that none is evaluated is an obligation of its own.
    """
    query = Query()
    encoder = IntEncoder(query)
    missing: str | None = None
    for variable, (low, high) in ranges.items():
        _bound(query, encoder, variable, low, high)
    for unknown in scene.unknowns:
        _bound(query, encoder, unknown.var, unknown.var.dtype.min_int, unknown.var.dtype.max_int)
    for dim in scene.dims:
        variable_term = encoder.variable(dim.var.name)
        try:
            start = encoder.integer(dim.start)
            query.add(variable_term >= start)
            query.add(variable_term < start + encoder.integer(dim.extent))
        except NotInteger as problem:
            missing = problem.reason
    for condition in (*assumed, *(g.as_expr for g in scene.guards)):
        try:
            query.add(encoder.condition(condition))
        except NotInteger as problem:
            missing = problem.reason
    for condition in conditions:
        try:
            query.add(encoder.condition(condition))
        except NotInteger as problem:
            # Without what was asked, any instance would do: that answers nothing.
            return no_answer(ENGINE, problem.reason)
    outcome = query.solve(rlimit=rlimit)
    if outcome.answer is Answer.UNSAT:
        return nothing(ENGINE)
    if outcome.answer is Answer.UNKNOWN:
        return no_answer(ENGINE, outcome.reason or "z3 does not know", *outcome.because)
    names = {v.name for v in ranges} | {u.var.name for u in scene.unknowns} | {d.var.name for d in scene.dims}
    # What the model leaves open may have any value.
    return Search({name: outcome.model.get(name, 0) for name in sorted(names)}, missing is None, missing, ENGINE)


def _bound(query: Query, encoder: IntEncoder, variable: Var, low: int | None, high: int | None) -> None:
    term = encoder.variable(variable.name)
    if low is not None:
        query.add(term >= low)
    if high is not None:
        query.add(term <= high)
