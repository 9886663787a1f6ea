"""Constants that a sum gets besides what it sums, as padding with a value does, taken out of the sum and added where
the sum is read: `S += A[i]` over 96 cells, of which 16 hold 1, is the sum over 80 cells, plus 16. Part of the trust
base.

Why both programs are the same: integers wrap, so that updates commute. Let some updates `S[x] += e` be left out, where
`e` is known to be `c`. By induction over time, each cell then differs from what it was by `c` for each one that was
left out since the last other store to the cell. A load by any other statement gets that difference added, the same
number at all its instances, and so finds what it found; so that no other statement stores anything else, and another
store to the cell ends the difference. Nothing but those loads sees the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, Expr, IntImm, Var
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.semantics import wrap
from layoutproof.ir.visit import free_variables, substitute, walk
from layoutproof.verify.flow.known_values import Knowledge
from layoutproof.verify.flow.models import NEW, ProgramModel, RewriteModel
from layoutproof.verify.flow.sources import accumulator, contribution, update_operator
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.instance_sets import Points, Region, Relation, only
from layoutproof.verify.isl.operations import maps_of
from layoutproof.verify.isl.space import isl
from layoutproof.verify.program.statement import Read, ReadRole, Statement, Statements

_RING = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR)


@dataclass(frozen=True, slots=True)
class Constants:
    """Updates of one statement that add known numbers: their instances, by the number."""

    statement: Statement
    added: Mapping[int, Points]

    @property
    def points(self) -> Points:
        """All these instances."""
        first, *others = self.added.values()
        for each in others:
            first = first.union(each)
        return first


def without_constants(rewrite_model: RewriteModel, facts: Knowledge) -> list[Constants]:
    """Take such constants out of the new program of a model, and say which. Nothing else about it changes."""
    taken: list[Constants] = []
    for position in range(len(rewrite_model.new.statements)):
        # An earlier round may have changed what this statement adds.
        found = _constants_of(rewrite_model, facts, rewrite_model.new.statements[position])
        if found is None:
            continue
        loads = _adjusted(rewrite_model, found)
        if loads:
            taken.append(found)
            _take_out(rewrite_model, found, loads)
            facts = Knowledge.of(rewrite_model, rewrite_model.after, rewrite_model.new, NEW)
    return taken


def _constants_of(rewrite_model: RewriteModel, facts: Knowledge, statement: Statement) -> Constants | None:
    """The updates without a counterpart that add a number other than 0 to an integer sum which nothing else sees."""
    flow, dtype = rewrite_model.after, statement.value.dtype
    if not (dtype.is_integer and dtype.lanes == 1 and not dtype.is_bool) or statement.scatter:
        return None
    if update_operator(flow, statement) is not BinaryOp.ADD or not _is_hidden(rewrite_model.new, statement.data):
        return None
    acc = accumulator(flow, statement)
    added = None if acc is None else contribution(statement.value, BinaryOp.ADD, acc.var)
    if acc is None or added is None or any(r.data == acc.data for r in statement.reads if r is not acc):
        return None
    found: dict[int, Points] = {}
    for region, number in _numbers(facts, statement, added, ProgramModel.new(rewrite_model).unmatched(statement)):
        points = region.named(f"{NEW}{statement.number}")
        found[number] = found[number].union(points) if number in found else points
    return Constants(statement, found) if found else None


def _is_hidden(statements: Statements, data: Var) -> bool:
    """Whether a memory is looked at by loads of statements only: not at the end, and not by an assumption."""
    assumed = (read for assumption in statements.assumptions for read in assumption.reads)
    return data in statements.program.temporaries and not any(read.data == data for read in assumed)


def _numbers(facts: Knowledge, statement: Statement, added: Expr, unmatched: Region) -> Iterator[tuple[Region, int]]:
    """The parts of a region where what is added is a number other than 0."""
    if unmatched.is_empty:
        return
    for known in facts.evaluated(statement, unmatched, added):
        if known.value is None or not all(_is_ring(node) for node in walk(known.value)):
            continue
        number = evaluate(known.value, {})
        assert isinstance(number, int)
        if wrap(number, added.dtype) and not known.region.is_empty:
            yield known.region, wrap(number, added.dtype)


def _is_ring(node: object) -> bool:
    """Whether an operation has the same last bits whether or not its operands were wrapped."""
    return isinstance(node, IntImm) or (isinstance(node, Binary) and node.op in _RING)


def _adjusted(rewrite_model: RewriteModel, found: Constants) -> dict[int, dict[Var, int]]:
    """What has to be added to which loads, by statement; nothing if some load cannot be adjusted."""
    result: dict[int, dict[Var, int]] = {}
    for statement in rewrite_model.new.statements:
        for read in statement.reads:
            if read.data != found.statement.data or statement.number == found.statement.number:
                continue
            total = _total(rewrite_model.after, found, statement, read)
            if total is None:
                return {}
            result.setdefault(statement.number, {})[read.var] = total
    return result


def _total(flow: Dataflow, found: Constants, statement: Statement, read: Read) -> int | None:
    """What the updates left out add to what a load finds, if that is one number and only a value."""
    if read.role is not ReadRole.VALUE or read.anywhere or read.var.dtype != found.statement.value.dtype:
        return None
    if _is_used_elsewhere(statement, read):
        return None
    _, updates = flow.reduced(statement, read, frozenset((found.statement.number,)))
    total = 0
    for number, points in found.added.items():
        times = _repeated(updates, points, flow.domain(statement))
        if times is None:
            return None
        total += number * times
    return total


def _is_used_elsewhere(statement: Statement, read: Read) -> bool:
    """Whether a loaded value decides a place, or whether something happens."""
    places = [*statement.coordinates, *(guard.as_expr for guard in statement.domain.guards)]
    for other in statement.reads:
        places += [*other.coordinates, *other.access.indices]
        places += [guard.as_expr for guard in other.access.domain.guards]
    return any(read.var in free_variables(place) for place in places)


def _take_out(rewrite_model: RewriteModel, found: Constants, loads: Mapping[int, Mapping[Var, int]]) -> None:
    changed = {
        s.number: replace(s, value=_with_added(s.value, loads[s.number]))
        for s in rewrite_model.new.statements
        if s.number in loads
    }
    statements = replace(
        rewrite_model.new, statements=tuple(changed.get(s.number, s) for s in rewrite_model.new.statements)
    )
    removed = {**rewrite_model.after.removed, found.statement.number: found.points}
    rewrite_model.new = statements
    rewrite_model.after = Dataflow(rewrite_model.workspace, statements, NEW).without(removed)
    rewrite_model.pairs = {
        number: tuple(replace(claim, new=changed.get(number, claim.new)) for claim in claims)
        for number, claims in rewrite_model.pairs.items()
    }
    rewrite_model.matched = {
        number: [(replace(claim, new=changed.get(number, claim.new)), points) for claim, points in claims]
        for number, claims in rewrite_model.matched.items()
    }


def _with_added(value: Expr, loads: Mapping[Var, int]) -> Expr:
    """A value with numbers added to loads; a number that was added or subtracted before is joined with it."""
    match value:
        case Binary(op=BinaryOp.ADD | BinaryOp.SUB as op, lhs=Var() as load, rhs=IntImm(value=number)) if load in loads:
            own = number if op is BinaryOp.ADD else -number
            return _plus(load, loads[load] + own)
        case Binary(op=BinaryOp.ADD, lhs=IntImm(value=number), rhs=Var() as load) if load in loads:
            return _plus(load, loads[load] + number)
        case _:
            return substitute(value, {load: _plus(load, number) for load, number in loads.items()})


def _plus(load: Var, number: int) -> Expr:
    rest = wrap(number, load.dtype)
    return Binary(BinaryOp.ADD, load, IntImm(rest, load.dtype)) if rest else load


def _repeated(relation: Relation, targets: Points, sources: Points) -> int | None:
    """To how many of `targets` a relation leads from each of `sources`; None if that is not one number, known for
    all sizes.
    """
    common = relation.intersect_domain(only(sources)).intersect_range(only(targets))
    links = maps_of(common)
    if len(links) != 1:
        return 0 if not links else None
    (link,) = links
    # A coordinate that is a function of the source tells no two targets of it apart.
    for position in reversed(range(link.dim(isl.dim_type.out))):
        others = link.project_out(isl.dim_type.out, position + 1, link.dim(isl.dim_type.out) - position - 1)
        if others.project_out(isl.dim_type.out, 0, position).is_single_valued():
            link = link.project_out(isl.dim_type.out, position, 1)
    ends = link.range()
    if not link.is_equal(isl.Map.from_domain_and_range(sources, ends)) or not ends.is_bounded():
        return None
    if ends.involves_dims(isl.dim_type.param, 0, ends.dim(isl.dim_type.param)):
        return None
    return int(ends.project_out(isl.dim_type.param, 0, ends.dim(isl.dim_type.param)).count_val().to_python())
