"""Answers of engines as SMT-LIB 2 texts whose `unsat` is the claim, in quantifier-free integer arithmetic.

A claim is "there is none", so a text states one: an instance that is out of bounds, an instance that no earlier write
reaches, two points with one image. A hypothesis that cannot be encoded is left out, which only makes the claim
stronger; a question that cannot be is reported (`Unwritten`). Certificates rest on this, verdicts do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, assert_never

from layoutproof.ir.expr import Binary, Expr, Var
from layoutproof.ir.interval import Interval, Ranges, interval_of, of_type
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.visit import free_variables, walk
from layoutproof.verify.program.evidence import (
    Covered,
    Digits,
    Evidence,
    NoInstance,
    OneToOne,
    Setting,
    Several,
    Unstated,
    Unwritten,
)
from layoutproof.verify.program.instances import Dim, IterationDomain, domain_ranges
from layoutproof.verify.program.questions import Cover, SmtQuery
from layoutproof.verify.smt.index_arithmetic import IntEncoder, NotInteger, add_bounds
from layoutproof.verify.smt.solver import Query

_BITWISE = frozenset((BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR))
# No solver finishes texts with more bits; such claims are listed instead.
_MOST_BITS = 12
_MOST_COVERS = 200


def queries_of(evidence: Iterable[Evidence]) -> tuple[tuple[SmtQuery, ...], tuple[Unwritten, ...]]:
    """The texts for one obligation's evidence, each once, and what no text was found for.

    Questions about one iteration domain become one text: none of what they look for is there.
    """
    texts: dict[str, SmtQuery] = {}
    missing: dict[tuple[str, str], Unwritten] = {}
    evidence = tuple(_put_together(evidence))
    for piece in _merged(evidence):
        try:
            for query in _texts(piece):
                texts.setdefault(query.text, query)
        except (NotInteger, Unstated) as problem:
            what = (
                f"{type(piece).__name__} by {piece.engine}"
                if isinstance(piece, NoInstance | Covered | OneToOne)
                else "digits"
            )
            missing.setdefault((what, problem.reason), Unwritten(what, problem.reason))
    for piece in evidence:
        if isinstance(piece, Unwritten):
            missing.setdefault((piece.what, piece.reason), piece)
    return tuple(texts.values()), tuple(missing.values())


class Writer(IntEncoder):
    """The encoder of searches, with portable names, and symbolic quotients by equations: cvc5 decides those better."""

    def __init__(self, query: Query, values: Mapping[str, Any] | None = None, width: int | None = None) -> None:
        super().__init__(query, values, width)
        self._quotients: dict[tuple[int, int], Any] = {}

    def floor_divide(self, a: Any, b: Any) -> Any:
        """The quotient rounded down; by 0 it may be anything."""
        if _is_number(self.z3, b) and not self.z3.simplify(b).eq(self.query.number(0)):
            return super().floor_divide(a, b)
        key = (a.get_id(), b.get_id())
        if key not in self._quotients:
            self.divisors.append(b)
            z3, query = self.z3, self.query
            quotient, rest = (query.integer(f"{word}.{len(query.assertions)}") for word in ("quotient", "rest"))
            query.add(z3.Implies(b != 0, a == quotient * b + rest))
            query.add(z3.Implies(b > 0, z3.And(rest >= 0, rest < b)), z3.Implies(b < 0, z3.And(rest <= 0, rest > b)))
            self._quotients[key] = quotient
        return self._quotients[key]

    def variable(self, name: str) -> Any:
        """The term a name stands for."""
        if name not in self._values:
            self._values[name] = self.query.integer(legal(name))
        return self._values[name]


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Reserved words of the language, and symbols of the theory of integers.
_RESERVED = frozenset(
    "abs as assert check declare define div exists exit false forall iff implies "
    "ite let match mod par push pop true xor".split()
)


def legal(name: str) -> str:
    """A name as a symbol of SMT-LIB, no two names the same."""
    if name in _RESERVED:
        return f"{name}!"
    if _PLAIN.fullmatch(name) is not None:
        return name
    return "".join(c if _PLAIN.fullmatch(f"_{c}") else f".{ord(c):x}." for c in name)


def _put_together(evidence: Iterable[Evidence]) -> Iterator[Evidence]:
    for piece in evidence:
        if not isinstance(piece, Several):
            yield piece
            continue
        try:
            yield from _put_together(piece.make())
        except Unstated as problem:
            yield Unwritten(piece.what, problem.reason)


def _merged(evidence: Iterable[Evidence]) -> Iterator[Evidence]:
    groups: dict[tuple[object, ...], list[NoInstance]] = {}
    for piece in evidence:
        if isinstance(piece, NoInstance):
            domain = piece.domain
            if not domain.dims and not piece.setting.bounds:
                # A claim of its own: only its conditions identify it.
                yield piece
                continue
            key = (domain.dims, domain.guards, domain.unknowns, piece.setting.assumed, piece.setting.bounds)
            groups.setdefault(key, []).append(piece)
        elif not isinstance(piece, Unwritten):
            yield piece
    for group in groups.values():
        first = group[0]
        either = tuple(dict.fromkeys(conditions for piece in group for conditions in piece.either))
        engines = {piece.engine: None for piece in group}
        yield NoInstance(first.setting, first.domain, either, "+".join(engines))


def _texts(piece: Evidence) -> Iterator[SmtQuery]:
    match piece:
        case NoInstance():
            yield no_instance(piece)
        case Covered():
            yield all_covered(piece)
        case OneToOne():
            yield one_to_one(piece)
        case Digits():
            yield mixed_radix_step()
            yield from digits_are_the_number(piece)
        case Unwritten() | Several():
            return
        case _:
            assert_never(piece)


def no_instance(claim: NoInstance) -> SmtQuery:
    """`unsat` when no instance satisfies one of the alternatives. Raises NotInteger where none can be encoded."""
    query = Query()
    exprs = [
        *claim.setting.assumed,
        *(g.condition for g in claim.domain.guards),
        *(c for conditions in claim.either for c in conditions),
    ]
    encoder = Writer(query, width=_width(claim.domain, claim.setting, exprs))
    _add_domain(query, encoder, claim.setting, claim.domain)
    alternatives = [_conjunction(encoder, conditions) for conditions in claim.either]
    query.add(query.z3.Or(*alternatives) if len(alternatives) > 1 else alternatives[0])
    return written(query, claim.engine)


def _conjunction(encoder: IntEncoder, conditions: Sequence[Expr]) -> Any:
    """The conditions that can be encoded; the others would only leave fewer instances."""
    terms, problem = [], None
    for condition in conditions:
        try:
            terms.append(encoder.condition(condition))
        except NotInteger as found:
            problem = found
    if problem is not None and not terms:
        raise problem
    z3 = encoder.z3
    return z3.And(*terms) if len(terms) > 1 else terms[0] if terms else z3.BoolVal(True, encoder.query.ctx)


def _add_domain(query: Query, encoder: IntEncoder, setting: Setting, domain: IterationDomain) -> None:
    for name, low, high in setting.bounds:
        add_bounds(query, encoder.variable(name), low, high)
    for unknown in domain.unknowns:
        add_bounds(query, encoder.variable(unknown.var.name), unknown.var.dtype.min_int, unknown.var.dtype.max_int)
    for condition in (
        *_inside(encoder, domain.dims),
        *_sayable(encoder, setting.assumed),
        *_sayable(encoder, _guards(domain)),
    ):
        query.add(condition)


def _guards(domain: IterationDomain) -> list[Expr]:
    return [guard.as_expr for guard in domain.guards]


def _inside(encoder: IntEncoder, dims: Sequence[Dim]) -> Iterator[Any]:
    for dim in dims:
        variable = encoder.variable(dim.var.name)
        try:
            start, extent = encoder.integer(dim.start), encoder.integer(dim.extent)
        except NotInteger:
            continue
        yield variable >= start
        yield variable < start + extent


def _sayable(encoder: IntEncoder, conditions: Iterable[Expr]) -> Iterator[Any]:
    for condition in conditions:
        try:
            yield encoder.condition(condition)
        except NotInteger:
            continue


def _width(domain: IterationDomain, setting: Setting, exprs: Iterable[Expr]) -> int | None:
    """The bits that operands of `& | ^` fit in, as intervals know; None where there are none or too many."""
    operands = _bitwise_operands(exprs)
    bounds = {name: (low, high) for name, low, high in setting.bounds}
    symbols: dict[Var, Interval] = {}
    for variable in {v for expr in operands for v in free_variables(expr)}:
        low, high = bounds.get(variable.name, (None, None))
        whole = of_type(variable.dtype)
        symbols[variable] = Interval(whole.low if low is None else low, whole.high if high is None else high)
    return _bits_of(operands, domain_ranges(domain, symbols))


def _bitwise_operands(exprs: Iterable[Expr]) -> list[Expr]:
    nodes = (node for expr in exprs for node in walk(expr) if isinstance(node, Binary) and node.op in _BITWISE)
    return [operand for node in nodes for operand in (node.lhs, node.rhs)]


def _bits_of(operands: Sequence[Expr], ranges: Ranges) -> int | None:
    """The bits that operands fit in; None where there are none or too many."""
    found = [interval_of(expr, ranges) for expr in operands]
    bits = max((max(i.high, -i.low - 1).bit_length() for i in found), default=0)
    return bits if found and bits <= _MOST_BITS else None


def all_covered(claim: Covered) -> SmtQuery:
    """`unsat` when at every instance some cover's conditions hold at its witness. Raises Unstated or NotInteger."""
    witnesses = claim.witnesses()
    if len(witnesses) > _MOST_COVERS:
        raise Unstated(f"the covers take {len(witnesses)} cases to tell")
    query = Query()
    guards = [g for cover in claim.covers for g in (*_guards(cover.domain), *cover.conditions)]
    width = _width(claim.domain, claim.setting, [*_guards(claim.domain), *claim.conditions, *guards])
    encoder = Writer(query, width=width)
    _add_domain(query, encoder, claim.setting, claim.domain)
    for condition in _sayable(encoder, claim.conditions):
        query.add(condition)
    names = _names(claim.domain)
    known = {name: encoder.variable(name) for name in (*names, *(name for name, _, _ in claim.setting.bounds))}
    for position, (number, values) in enumerate(witnesses):
        here = {**known, **{name: encoder.integer(value) for name, value in values.items()}}
        query.add(query.z3.Not(_reaches(query, claim.covers[number], here, names, width, f"{position}")))
    return written(query, claim.engine)


def _names(domain: IterationDomain) -> list[str]:
    return [*(dim.var.name for dim in domain.dims), *(unknown.var.name for unknown in domain.unknowns)]


def _reaches(
    query: Query, cover: Cover, values: Mapping[str, Any], outer: Sequence[str], width: int | None, mark: str
) -> Any:
    """That a cover holds at given values of its dims; those of `outer` are in their ranges already."""
    z3, domain = query.z3, cover.domain
    encoder = Writer(query, values, width)
    holds = list(_inside_all(encoder, [dim for dim in domain.dims if dim.var.name not in outer]))
    for unknown in domain.unknowns:
        if unknown.var.name not in outer:
            term, dtype = encoder.variable(unknown.var.name), unknown.var.dtype
            holds += [term >= query.number(dtype.min_int), term <= query.number(dtype.max_int)]
    holds += [encoder.condition(condition) for condition in (*_guards(domain), *cover.conditions)]
    names = _names(domain)
    for position, inner in enumerate(cover.without):
        if inner.without:
            raise Unstated("what is covered is told by three alternating quantifiers")
        further = [name for name in _names(inner.domain) if name not in names]
        fresh = {name: query.integer(f"{legal(name)}.{mark}.{position}") for name in further}
        holds.append(z3.Not(_reaches(query, inner, {**values, **fresh}, names, width, f"{mark}.{position}")))
    return z3.And(*holds) if len(holds) > 1 else holds[0] if holds else z3.BoolVal(True, query.ctx)


def _inside_all(encoder: IntEncoder, dims: Sequence[Dim]) -> Iterator[Any]:
    for dim in dims:
        variable, start = encoder.variable(dim.var.name), encoder.integer(dim.start)
        yield variable >= start
        yield variable < start + encoder.integer(dim.extent)


def one_to_one(claim: OneToOne) -> SmtQuery:
    """`unsat` when no two points of the box have one image. Raises NotInteger."""
    query = Query()
    z3 = query.z3
    domain = IterationDomain()
    ranges = {v: _index_range(extent) for v, extent in zip(claim.inputs, claim.extents, strict=True)}
    width = _bits_of(_bitwise_operands(claim.outputs), ranges)
    marks = ("", "'")
    sides = [
        Writer(query, {v.name: query.integer(legal(v.name + mark)) for v in claim.inputs}, width) for mark in marks
    ]
    _add_domain(query, sides[0], Setting((claim.where,)), domain)
    for encoder in sides:
        for v, extent in zip(claim.inputs, claim.extents, strict=True):
            query.add(encoder.variable(v.name) >= 0, encoder.variable(v.name) < encoder.integer(extent))
    for output in claim.outputs:
        query.add(sides[0].integer(output) == sides[1].integer(output))
    query.add(
        z3.Or(
            *(sides[0].variable(v.name) != sides[1].variable(v.name) for v in claim.inputs),
            z3.BoolVal(False, query.ctx),
        )
    )
    return written(query, claim.engine)


def _index_range(extent: Expr) -> Interval:
    most = interval_of(extent, {}).high
    return Interval(0, max(0, most - 1))


def mixed_radix_step() -> SmtQuery:
    """The lemma of mixed radices: a number below P and a digit below r make a number below P*r."""
    query = Query()
    head, digit, most, radix = (query.integer(name) for name in ("head", "digit", "most", "radix"))
    query.add(head >= 0, head < most, digit >= 0, digit < radix)
    number = head * radix + digit
    query.add(query.z3.Or(number < 0, number >= most * radix))
    return written(query, "mixed-radix")


def digits_are_the_number(claim: Digits) -> Iterator[SmtQuery]:
    """That the digits make the index, and the radices the extent, as identities. Raises NotInteger."""
    query = Query()
    encoder = Writer(query)
    number = query.number(0)
    for digit, radix in zip(claim.digits, claim.radices, strict=True):
        number = number * encoder.integer(radix) + encoder.integer(digit)
    query.add(encoder.integer(claim.index) != number)
    yield written(query, "mixed-radix")
    query = Query()
    encoder = Writer(query)
    product = query.number(1)
    for radix in claim.radices:
        product = product * encoder.integer(radix)
    query.add(encoder.integer(claim.extent) != product)
    yield written(query, "mixed-radix")


_LINEAR, _NONLINEAR = "QF_LIA", "QF_NIA"


def written(query: Query, engine: str) -> SmtQuery:
    """A query of integers as text, in the smallest logic that has it."""
    logic = _NONLINEAR if _is_nonlinear(query) else _LINEAR
    return SmtQuery(query.text(logic), logic, engine=engine)


def _is_nonlinear(query: Query) -> bool:
    # By the C interface: Python objects for all terms would take a quarter of a certificate's time.
    z3, ctx = query.z3, query.ctx.ref()
    seen: set[int] = set()
    stack = [term.as_ast() for term in query.assertions]
    while stack:
        term = stack.pop()
        count, key = z3.Z3_get_app_num_args(ctx, term), z3.Z3_get_ast_id(ctx, term)
        if count == 0 or key in seen:
            continue
        seen.add(key)
        kind = z3.Z3_get_decl_kind(ctx, z3.Z3_get_app_decl(ctx, term))
        children = [z3.Z3_get_app_arg(ctx, term, k) for k in range(count)]
        if kind == z3.Z3_OP_MUL and sum(not _is_literal(z3, ctx, child) for child in children) > 1:
            return True
        if kind in (z3.Z3_OP_IDIV, z3.Z3_OP_MOD) and not _is_literal(z3, ctx, children[1]):
            return True
        stack += children
    return False


def _is_literal(z3: Any, ctx: Any, term: Any) -> bool:
    """`_is_number`, of a pointer to a term of integers."""
    if z3.Z3_is_numeral_ast(ctx, term):
        return True
    is_negative = z3.Z3_get_decl_kind(ctx, z3.Z3_get_app_decl(ctx, term)) == z3.Z3_OP_UMINUS
    return is_negative and bool(z3.Z3_is_numeral_ast(ctx, z3.Z3_get_app_arg(ctx, term, 0)))


def _is_number(z3: Any, term: Any) -> bool:
    return bool(
        z3.is_int_value(term)
        or (z3.is_app(term) and term.decl().kind() == z3.Z3_OP_UMINUS and z3.is_int_value(term.arg(0)))
    )
