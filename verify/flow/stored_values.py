"""What a statement stores on a set of its instances, as an expression over loaded values alone: conditions on indices
are decided by splitting the set, and loads of what was stored before are replaced by the stored value. Part of the
trust base.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from layoutproof.ir.expr import FALSE, TRUE, Compare, Expr, IfThenElseExpr, IntImm, Logical, Not, Select, Var
from layoutproof.ir.intrinsics import OpaqueCall, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.operators import LogicalOp
from layoutproof.ir.visit import children, free_variables, holds_any, map_children, substitute, walk
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.instance_sets import (
    Piece,
    Points,
    Region,
    Relation,
    Sources,
    in_types,
    links_of,
    only,
    part_of,
    pieces_said,
    tuples_of,
    unnamed,
)
from layoutproof.verify.isl.isl_evidence import note_agreement, note_function
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.program.instances import IterationDomain, is_index_like, is_larger
from layoutproof.verify.program.statement import Read, ReadRole, Statement


def decided(region: Region, values: frozenset[Var], *exprs: Expr) -> Iterator[tuple[Region, tuple[Expr, ...]]]:
    """The expressions on the parts of `region` where each condition on indices has one truth value, which is put in its
    place.

    `values` are the variables that stand for loaded values. A condition that integer sets cannot say stays as it is.
    """
    stack: list[tuple[Region, tuple[Expr, ...], frozenset[Expr]]] = [(region, exprs, frozenset())]
    while stack:
        current, terms, undecidable = stack.pop()
        if current.is_empty:
            continue
        condition = next((c for term in terms for c in _index_conditions(term, values) if c not in undecidable), None)
        if condition is None:
            yield current, terms
            continue
        try:
            inside, outside = current.split(condition)
        except NotQuasiAffine:
            stack.append((current, terms, undecidable | {condition}))
            continue
        stack.append((outside, tuple(folded(_replaced(t, condition, FALSE)) for t in terms), undecidable))
        stack.append((inside, tuple(folded(_replaced(t, condition, TRUE)) for t in terms), undecidable))


def _index_conditions(expr: Expr, values: frozenset[Var]) -> Iterator[Expr]:
    """The largest truth values in an expression that speak of indices only."""
    stack: list[Node] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Compare | Logical | Not) and _is_index_condition(node, values):
            yield node
            continue
        stack.extend(children(node))


def _is_index_condition(expr: Expr, values: frozenset[Var]) -> bool:
    if expr.dtype.lanes != 1:
        return False
    match expr:
        case Compare(lhs=lhs, rhs=rhs):
            return all(is_index_like(side) or side.dtype.is_bool for side in (lhs, rhs)) and not _loads(expr, values)
        case Logical(lhs=lhs, rhs=rhs):
            return _is_index_condition(lhs, values) and _is_index_condition(rhs, values)
        case Not(operand=operand):
            return _is_index_condition(operand, values)
        case IntImm():
            return True
        case _:
            return False


def _loads(expr: Expr, values: frozenset[Var]) -> bool:
    return any(v in values for v in free_variables(expr))


def _replaced(expr: Expr, what: Expr, by: Expr) -> Expr:
    def visit(node: Node) -> Node:
        return by if node == what else map_children(node, visit)

    result = visit(expr)
    assert isinstance(result, Expr)
    return result


def folded(expr: Expr) -> Expr:
    """The expression with choices and connectives of known truth values resolved."""

    def visit(node: Node) -> Node:
        return _fold(map_children(node, visit))

    result = visit(expr)
    assert isinstance(result, Expr)
    return result


def _fold(node: Node) -> Node:
    match node:
        case Select(condition=IntImm(value=value), then=then, otherwise=otherwise):
            return then if value else otherwise
        case IfThenElseExpr(condition=IntImm(value=value), then=then, otherwise=otherwise):
            return then if value else otherwise
        case Not(operand=IntImm(value=value)):
            return FALSE if value else TRUE
        case Logical(op=op, lhs=IntImm(value=value), rhs=other) | Logical(op=op, lhs=other, rhs=IntImm(value=value)):
            neutral = bool(value) == (op is LogicalOp.AND)
            return other if neutral else (TRUE if value else FALSE)
        case _:
            return node


@dataclass(slots=True)
class Leaves:
    """The index arithmetic of one question, with the variable that each stands for on a region."""

    region: Region
    values: frozenset[Var]
    known: list[tuple[Expr, Var]] = field(default_factory=list)

    def abstract(self, expr: Expr) -> Expr:
        """The expression with every largest part that speaks of indices only replaced."""

        def visit(node: Node) -> Node:
            if (
                isinstance(node, Expr)
                and not isinstance(node, IntImm)
                and is_index_like(node)
                and not _loads(node, self.values)
            ):
                return self._leaf(node)
            return map_children(node, visit)

        result = visit(expr)
        assert isinstance(result, Expr)
        return result

    def are_alike(self, first: Expr, second: Expr) -> bool:
        """Whether two expressions are the same up to index arithmetic that has one value."""
        return self.abstract(first) == self.abstract(second)

    def _leaf(self, expr: Expr) -> Expr:
        if not free_variables(expr):
            return expr
        for other, variable in self.known:
            if other == expr:
                return variable
        try:
            # Index arithmetic in a value wraps: it is the integer that it looks like only where nothing leaves its
            # type.
            if not self.region.fits(expr):
                return expr
            number = self.region.constant(expr)
            if number is not None and expr.dtype.min_int <= number <= expr.dtype.max_int:
                return IntImm(number, expr.dtype)
            for other, variable in self.known:
                if other.dtype == expr.dtype and self.region.always_equal(other, expr):
                    self.known.append((expr, variable))
                    return variable
        except NotQuasiAffine:
            return expr
        variable = Var(f"index{len(self.known)}'", expr.dtype)
        self.known.append((expr, variable))
        return variable


# So many loads are replaced on the way to one form of a statement, and so many forms may there be.
_ROUNDS, _FORMS = 48, 24
_LARGEST = 2000


@dataclass(frozen=True, slots=True)
class Form:
    """A statement on some of its instances (`points`), with stored values in place of some of its loads."""

    statement: Statement
    points: Points


@dataclass(frozen=True, slots=True)
class StoredValues:
    """Looks through what one program stores. A load stays that finds what an instance in `kept` stored, or, without
    `updates`, what a statement did that loads what it stored before.

    `loose`: instances that were taken out of the flow may have changed the sign of a zero, so floats of their memories
    stay loads. `used` has the numbers of the statements that were looked through.
    """

    flow: Dataflow
    kept: Sources
    updates: bool = True
    loose: bool = False
    used: set[int] = field(default_factory=set)

    def through(self, statement: Statement, points: Points, *, stay: frozenset[Var] = frozenset()) -> list[Form]:
        """A statement with a value in the place of each load, and so on in these values. The forms' points are all of
        `points`, each once. Loads in `stay` are not replaced.

        A load that cannot be replaced stays. Where it would take too many forms, or too large ones, the statement stays
        what it is. Raises NotModelled or BudgetExceeded where sources are not known.
        """
        done: list[Form] = []
        todo: list[tuple[Form, frozenset[Var], int]] = [(Form(statement, points), stay, 0)]
        while todo:
            form, settled, rounds = todo.pop()
            read = next((each for each in form.statement.reads if each.var not in settled), None)
            if read is None:
                done.append(form)
                continue
            rest, forms = form.points, list(self.through_load(form.statement, read, form.points))
            for each in forms:
                rest = rest.subtract(each.points)
                todo.append((each, settled, rounds + 1))
            rest = coalesced(rest)
            if not rest.is_empty():
                todo.append((replace(form, points=rest), settled | {read.var}, rounds))
            if (
                rounds >= _ROUNDS
                or len(todo) + len(done) > _FORMS
                or any(is_larger(each.statement.value, _LARGEST) for each in forms)
            ):
                return [Form(statement, points)]
        return done

    def through_load(self, statement: Statement, read: Read, points: Points) -> Iterator[Form]:
        """A statement with one of its loads replaced, on the parts of `points` on which that finds what one statement
        stored. The parts do not meet; the load stays on the rest of `points`.

        `statement` may be a form that came of this already. Raises NotModelled or BudgetExceeded where sources are not
        known.
        """
        if not self._is_replaceable(statement, read):
            return
        flow = self.flow
        stores = {f"{flow.tag}{each.number}": each for each in flow.statements.statements}
        found = flow.sources(statement, read).intersect_domain(only(points)).subtract_range(self.kept)
        for origin, link in links_of(found, f"{flow.tag}{statement.number}"):
            source = stores.get(origin)
            if source is None or not self._is_value(source, read):
                continue
            self.used.add(source.number)
            for piece in pieces_said(flow.workspace, link, statement.dims, source.dims):
                if self._compares_alike(statement, read, source, piece):
                    yield self._replaced(statement, read, source, piece)

    def _is_replaceable(self, statement: Statement, read: Read) -> bool:
        """Whether a load certainly happens, at a cell that no data decides, and decides no other load's cell."""
        if read.anywhere or not read.sure or read.role is ReadRole.CURRENT:
            return False
        if self.loose and read.var.dtype.is_float and not self.flow.is_whole(read.data):
            return False
        return not any(read.var in free_variables(index) for other in statement.reads for index in other.access.indices)

    def _is_value(self, source: Statement, read: Read) -> bool:
        """Whether a statement stores its value whenever it happens, and one value wherever that is written down."""
        if source.scatter or source.value.dtype != read.var.dtype:
            return False
        if any(each.anywhere or each.role is ReadRole.CURRENT for each in source.reads):
            return False
        return (self.updates or not self._is_update(source)) and not _may_be_anything(source.value)

    def _is_update(self, source: Statement) -> bool:
        """Whether a statement loads what it stored before."""
        name = f"{self.flow.tag}{source.number}"
        own = [self.flow.sources(source, each).range() for each in source.reads if each.data == source.data]
        return any(origin == name for sources in own for origin, _ in tuples_of(sources))

    def _replaced(self, statement: Statement, read: Read, source: Statement, piece: Piece) -> Form:
        """The statement with the value that `source` stores, at the piece's instances, in the place of the load."""
        at = {dim.var: output for dim, output in zip(source.dims, piece.outputs, strict=True)}
        what = f"of {source.access.text} in the place of {read.access.text}"
        dims = [dim.var for dim in statement.dims]
        note_function(
            self.flow.workspace.gathered,
            f"where the value {what} was stored",
            piece.link,
            dims,
            piece.outputs,
            piece.points,
        )
        reads: list[Read] = []
        names: dict[Var, Expr] = {}
        for inner in source.reads:
            var, domain = self._found_when_stored(statement, source, inner, piece)
            indices, cell = (
                tuple(substitute(index, at) for index in indices)
                for indices in (inner.access.indices, inner.coordinates)
            )
            put = replace(
                inner, var=var, access=replace(inner.access, indices=indices, domain=domain), coordinates=cell
            )
            names[inner.var] = var
            reads.append(put)
            self._note(statement, put, source, inner, piece, what)
        value = substitute(statement.value, {read.var: substitute(source.value, {**at, **names})})
        reads = [*(each for each in statement.reads if each.var != read.var), *reads]
        return Form(replace(statement, value=value, reads=tuple(reads)), piece.points)

    def _compares_alike(self, statement: Statement, read: Read, source: Statement, piece: Piece) -> bool:
        """Whether comparisons of what `read` loads are the same of the value: what is stored, and what is computed from
        a load, wraps, and where nothing is loaded any more integers are compared.
        """
        asked = [
            node for node in walk(statement.value) if isinstance(node, Compare) and read.var in free_variables(node)
        ]
        values = frozenset(each.var for each in (*statement.reads, *source.reads) if each is not read)
        value = substitute(source.value, dict(zip((d.var for d in source.dims), piece.outputs, strict=True)))
        found = [each for node in asked if not _loads(each := substitute(node, {read.var: value}), values)]
        if not found:
            return True
        workspace = self.flow.workspace
        encoder = workspace.boxed(statement.dims).encoder
        region = Region(encoder, in_types(encoder, workspace, unnamed(piece.points)))
        return all(_is_exact(side, region) for each in found for side in (each.lhs, each.rhs))

    def _found_when_stored(
        self, statement: Statement, source: Statement, inner: Read, piece: Piece
    ) -> tuple[Var, IterationDomain]:
        """A load in a value, in place of `read`, as a variable and domain: what it found when the value was stored."""
        return self.flow.carried(statement, piece.link, source, inner), IterationDomain(statement.dims)

    def _note(self, statement: Statement, put: Read, source: Statement, inner: Read, piece: Piece, what: str) -> None:
        """Record for certificates that a load in place of another finds what it found when the value was computed."""
        gathered = self.flow.workspace.gathered
        if gathered.is_recording:
            found, wanted = Relation.from_map(piece.link), self.flow.sources(statement, put)
            points = part_of(wanted.domain(), f"{self.flow.tag}{statement.number}", piece.points)
            note_agreement(
                gathered,
                f"what {inner.access.text} found, {what}",
                found,
                self.flow.sources(source, inner),
                wanted,
                points,
            )


def _is_exact(expr: Expr, region: Region) -> bool:
    """Whether index arithmetic in an expression is the same where it wraps; also where integer sets cannot say it, and
    so will not be asked.
    """
    try:
        return region.fits(expr)
    except NotQuasiAffine:
        return True


def _may_be_anything(value: Expr) -> bool:
    """Whether a value may come out differently each time that it is computed."""
    return holds_any(value, Undef, OpaqueCall)


def unfolded(flow: Dataflow, statement: Statement, read: Read, points: Points, kept: Sources) -> Iterator[Form]:
    """The forms of a statement in which one of its loads is the stored value, where instances outside `kept` stored it;
    nothing of the rest of `points`. Proposals, which `StoredValues` confirms.
    """
    return StoredValues(flow, kept).through_load(statement, read, points)
