"""The checker without one of its clauses: the functions that check it, each with an answer that always accepts.

Only tests leave a clause out, to see that it alone refuses a wrong program; the checker itself has no switch for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from enum import StrEnum
from itertools import islice
from typing import Any
from unittest.mock import patch

from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.primfunc import Kept
from layoutproof.ir.visit import substitute, walk
from layoutproof.verify.faults import vacuity
from layoutproof.verify.flow.known_values import Fact, Knowledge
from layoutproof.verify.flow.matched_instances import Match, Matcher
from layoutproof.verify.flow.models import NEW, ProgramModel
from layoutproof.verify.flow.no_op_stores import NoOps
from layoutproof.verify.flow.observable import FinalState
from layoutproof.verify.flow.sources import Agreement
from layoutproof.verify.flow.stored_values import Form, StoredValues
from layoutproof.verify.isl.instance_sets import (
    Piece,
    Points,
    Region,
    Relation,
    function_between,
    part_of,
    pieces_said,
    relations,
)
from layoutproof.verify.isl.space import isl
from layoutproof.verify.lockstep.domains import has_calls
from layoutproof.verify.lockstep.walk import Walk
from layoutproof.verify.values.fast_math import IEEE
from layoutproof.verify.values.question import ValueAnswer
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Proved, Status, Verdict


class Clause(StrEnum):
    """One clause of the conditions under which a rewrite is accepted; it has a wrong program in `proofs/refuted`."""

    CELLS_INJECTIVE = "cells-injective"  # no two cells of one memory become one
    CELLS_INSIDE = "cells-inside"  # every cell gets a place in the new memory
    CELLS_APART = "cells-apart"  # no two memories become one
    INTERFACE = "interface"  # parameters keep their order, types and, declared changes aside, shapes and cells
    INPUTS_KEPT = "inputs-kept"  # a parameter that the old program never writes is never written
    RECORDS = "records"  # layout records go on where they were, and a changed interface is recorded
    FAULTS = "faults"  # bounds, index arithmetic, traps, readability, forbidden padding
    CONTENTS = "contents"  # a data-dependent index is in bounds only where the old program certainly uses it so
    RACES = "races"  # iterations of parallel and vector loops do not meet
    OPAQUE = "opaque"  # opaque calls run as often, with the same arguments, in the same order
    ORDER = "order"  # every read has the source that its counterpart has
    LOST_SOURCE = "lost-source"  # a source without an image is a refusal, not a pair dropped
    NO_OPS = "no-ops"  # an extra instance is deleted only when it stores the value that is there
    LAST_WRITER = "last-writer"  # a fact serves a read only if its origin is that read's last writer
    INVARIANT_START = "invariant-start"  # an invariant holds of entry values that may be read
    INVARIANT_KEPT = "invariant-kept"  # every write, extra ones included, preserves an invariant
    INLINED_SOURCES = "inlined-sources"  # what stands for a load has the sources that it had when it was stored
    INLINED_PARTS = "inlined-parts"  # what stands for a load is, on each part, what that load finds there
    INLINED_UNDEFINED = "inlined-undefined"  # an undefined value that was stored once does not stand for several loads
    INLINED_FAST_MATH = "inlined-fast-math"  # a free choice of an operation is made once, for all loads of its result
    VALUES = "values"  # matched instances compute the same value
    FAST_MATH_SCOPE = "fast-math-scope"  # fast-math assumptions restrict only values that the old program computes
    ZERO_SIGN = "zero-sign"  # what is equal but for the sign of a zero is not read by what tells the two apart
    REDUCTION_FORM = "reduction-form"  # only `acc (+) e` with `e` independent of `acc` is regrouped
    REDUCTION_LAW = "reduction-law"  # only operators that regroup under the fast-math assumptions in force
    CONTRIBUTIONS = "contributions"  # every reader of a reduction sees the same multiset of contributions
    PARTIAL_START = "partial-start"  # a partial result that is added later began with a neutral value
    PARTIAL_ONCE = "partial-once"  # no contribution to a partial result is added twice
    ASSUMPTIONS = "assumptions"  # a new assumption follows from old ones, or speaks of a parameter's padding only
    PADDING_POSTCONDITION = "padding-postcondition"  # padding whose contract is a value holds it at the end
    OBSERVABLE = "observable"  # output buffers are preserved
    VACUITY = "vacuity"  # some input satisfies all assumptions; on it the old program stores something observable


Answers = Mapping[str, Callable[..., object]]

ANYTHING = Claim(ClaimKind.OTHER, "anything")
PROVED = ValueAnswer(Status.PROVED)


def always(answer: object) -> Callable[..., object]:
    """A function that gives one answer whatever it is asked."""
    return lambda *_args, **_options: answer


def proved(*_asked: object) -> Verdict:
    """What a function says that proves whatever it is asked."""
    return Verdict(Status.PROVED, ANYTHING, "symbolic")


_stated, _of_flows, _compared = Knowledge._stated, Agreement.of_flows, Matcher._compared
_is_same, _through_load = Walk._is_same, StoredValues.through_load


def is_same_or_calls(self: Walk, old: Expr, new: Expr, domain: Any) -> bool:
    """Opaque calls are taken to be equal."""
    return (has_calls(old) and has_calls(new)) or _is_same(self, old, new, domain)


def agree_by_cell(self: Agreement, claim: Any, new: Any, old: Any, _step: Relation, region: Region) -> Points:
    """Loads agree where both are from one memory, in whatever order it is written."""
    moved = {cells.old_data: cells.new_data for cells in self.rewrite_model.rewrite.witness.cells}
    whole = region.named(f"{NEW}{claim.new.number}")
    return whole if moved.get(old.data.name, old.data.name) == new.data.name else whole.subtract(whole)


def end_alike(_self: Agreement, _data: Var, _new_data: Var, _step: Relation, region: Region, name: str) -> Points:
    """Every cell ends as it did."""
    return region.named(name)


def agree_where_lost(self: Agreement, found: Relation, wanted: Relation, name: str, region: Region) -> Points:
    """A source without an image is dropped."""
    lost = found.subtract_range(self.moved).subtract_range(self.rewrite_model.theta.domain()).domain()
    return _of_flows(self, found, wanted, name, region).union(part_of(lost, name, region.points))


def delete_all(half: ProgramModel, *_asked: object) -> list[NoOps]:
    """Every extra instance is taken for a no-op."""
    found = [NoOps(statement, half.unmatched(statement)) for statement in half.statements.statements]
    found = [each for each in found if not each.unmatched.is_empty]
    for each in found:
        each.deleted = each.unmatched
    return found


def state_by_cell(self: Knowledge, number: int, assumption: Any, condition: Expr) -> Fact | None:
    """A fact serves all reads of the cell, though another instance wrote it."""
    fact = _stated(self, number, assumption, condition)
    if fact is None:
        return None
    writes = relations(
        [self.flow.access(statement) for statement in self.statements.statements],
        self.rewrite_model.encoder(()).space.universe(),
    )
    cells = fact.sources.apply(writes).union(fact.sources)
    return replace(fact, sources=cells.union(writes.intersect_range(cells).domain()))


def compute_anew(_self: object, statement: Any, _source: object, inner: Any, _piece: Piece) -> tuple[Var, Any]:
    """A value that stands for a load finds what its cells hold when it is loaded."""
    return Var(f"{inner.var.name}'", inner.var.dtype), statement.reads[0].access.domain


def look_at_first_place(self: StoredValues, statement: Any, read: Any, points: Points) -> Iterator[Form]:
    """All that a load finds is taken to come from the first place that is met."""

    def whole(workspace: Any, link: Any, dims: Any, targets: Any) -> Iterator[Piece]:
        encoder, (start, end) = (
            workspace.boxed(dims).encoder,
            (link.get_tuple_name(kind) for kind in (isl.dim_type.in_, isl.dim_type.out)),
        )
        for piece in pieces_said(workspace, link, dims, targets):
            yield replace(piece, points=points, link=function_between(encoder, start, piece.outputs, end))

    with patch("layoutproof.verify.flow.stored_values.pieces_said", whole):
        yield from islice(_through_load(self, statement, read, points), 1)


def contribute_anything(value: Expr, _op: object, acc: Var) -> Expr:
    """Any update is one that adds something to the accumulator."""
    return substitute(value, {acc: Var("acc", value.dtype)})


def match_all_values(self: Matcher, claim: Any, bound: Any, *asked: Any) -> Match:
    """Values that are computed from the same loads are the same."""
    return _compared(self, claim, bound, *asked) if bound.unpaired else Match(claim, bound.region, PROVED)


def end_observed(
    _rewrite_model: object, _agreement: object, _new: object, _old: object, _values: object, data: Var
) -> FinalState:
    """Output buffers are preserved."""
    return FinalState(data.name, ANYTHING, PROVED)


PERMISSIVE: Mapping[Clause, Answers] = {
    Clause.CELLS_INJECTIVE: {"checker.prove_injective": proved},
    Clause.CELLS_INSIDE: {"checker._prove_inside": proved},
    Clause.CELLS_APART: {"checker._prove_apart": proved, "lockstep.memories._check_apart": always(Proved())},
    Clause.INTERFACE: {"checker._prove_parameters_kept": proved},
    Clause.INPUTS_KEPT: {"checker._prove_inputs_kept": always(())},
    Clause.RECORDS: {"checker._prove_records": always(())},
    Clause.FAULTS: {"faults.no_faults._prove_no_fault": always(()), "checker._prove_decisions": proved},
    Clause.CONTENTS: {"faults.no_faults._certainly_happens": always(True), "faults.no_faults._is_told": always(True)},
    Clause.RACES: {"faults.no_faults.prove_race_free": always(())},
    Clause.OPAQUE: {"lockstep.walk.Walk._is_same": is_same_or_calls, "lockstep.unmatched.has_calls": always(False)},
    Clause.ORDER: {"flow.sources.Agreement._compared": agree_by_cell, "flow.sources.Agreement.of_ends": end_alike},
    Clause.LOST_SOURCE: {"flow.sources.Agreement.of_flows": agree_where_lost},
    Clause.NO_OPS: {"flow.simulate.find_no_ops": delete_all},
    Clause.LAST_WRITER: {"flow.known_values.Knowledge._stated": state_by_cell},
    Clause.INVARIANT_START: {"flow.known_values.Invariants._is_written_before": always(True)},
    Clause.INVARIANT_KEPT: {"flow.known_values.Invariants._kept": always(PROVED)},
    Clause.INLINED_SOURCES: {
        "flow.stored_values.StoredValues._found_when_stored": compute_anew,
        "flow.forwarded._is_kept": always(True),
    },
    Clause.INLINED_PARTS: {
        "flow.stored_values.StoredValues.through_load": look_at_first_place,
        "flow.stored_values._is_exact": always(True),
        "flow.forwarded._stays_in_types": always(True),
    },
    Clause.INLINED_UNDEFINED: {
        "flow.stored_values._may_be_anything": lambda value: any(isinstance(node, OpaqueCall) for node in walk(value))
    },
    Clause.INLINED_FAST_MATH: {
        "flow.matched_instances.Matcher._choosing_once": lambda matcher: matcher,
        "flow.matched_instances.Matcher.chosen_twice": always(frozenset()),
        "flow.simulate.chooses_for_several": always(False),
        "flow.simulate._Simulator._regrouped_twice": always(()),
    },
    Clause.VALUES: {
        "flow.matched_instances.Matcher._compared": match_all_values,
        "flow.statement_cells.Memories._is_observed": always(False),
        "lockstep.items._wraps": always(False),
        "values.float_indices._stays_in_types": always(True),
        "lockstep.walk.Walk._stores_the_same": always(True),
    },
    Clause.FAST_MATH_SCOPE: {
        "flow.computed.Computed.is_computed": always(True),
        "flow.computed.Computed.where": lambda _self, _statement, _read, region: region.points,
        "flow.matched_instances.passing_on": always(frozenset()),
    },
    Clause.ZERO_SIGN: {"flow.simulate._may_change_zero_signs": always(False)},
    Clause.REDUCTION_FORM: {"flow.matched_instances.contribution": contribute_anything},
    Clause.REDUCTION_LAW: {"flow.sources._fast_math": always(IEEE)},
    Clause.CONTRIBUTIONS: {
        "flow.sources.Agreement._regrouped": lambda self, found, wanted, name, region: self.of_flows(
            found[0], wanted[0], name, region
        ),
        "flow.sources._one_to_one": always(True),
    },
    Clause.PARTIAL_START: {"flow.partial_sums.is_neutral": always(True)},
    Clause.PARTIAL_ONCE: {"flow.partial_sums.carries_once": always(True)},
    Clause.ASSUMPTIONS: {
        "checker._prove_assumptions": always(()),
        "flow.simulate.answer_assumption": always(PROVED),
        "lockstep.walk.Walk._assumes_the_same": always(True),
        "same_program._may_assume": always(True),
        "lockstep.unmatched.Assumptions.added": always(Proved()),
    },
    Clause.PADDING_POSTCONDITION: {
        "flow.observable._postconditions": always(()),
        "lockstep.prove.PaddingPostconditions.check": always(Proved()),
    },
    Clause.OBSERVABLE: {"flow.observable._observable": end_observed},
    Clause.VACUITY: {"checker._prove_runs": always(())},
}


@contextmanager
def without(*clauses: Clause) -> Iterator[None]:
    """Leave clauses out in this block. What is found of programs in it, whether they run, is not kept for later."""
    with ExitStack() as stack:
        for name in ("_ANSWERS", "_FAULTLESS"):
            stack.enter_context(patch.object(vacuity, name, Kept(64)))
        for clause in clauses:
            for name, answer in PERMISSIVE[clause].items():
                stack.enter_context(patch(f"layoutproof.verify.{name}", answer))
        yield
