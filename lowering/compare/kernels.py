"""Comparisons of functions with thread axes: as functions with parallel loops, which is what they mean.

There a loop over a multiple of a size whose index is only divided by that size, `v // n` and `v % n` for v below
32*n, becomes two loops, of which these are the indices: integer sets cannot represent a quotient by a size. Iterations
keep their order, and their number: if n is not positive, neither loop runs. The multiple has to be a literal, since two
negative factors would have a positive product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from layoutproof.ir.expr import Binary, Expr, IntImm, Var, const, equal, logical_and
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import MAY_OVERLAP, PrimFunc
from layoutproof.ir.stmt import For, ForKind, Stmt
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.threads.sequential import NoSequence, Sequential
from layoutproof.ir.visit import (
    bound_variables,
    descend,
    free_variables,
    mapped,
    names_in,
    rewrite_bottom_up,
    substitute,
    take_fresh,
    walk,
)
from layoutproof.lowering.arith.known_facts import constants_of
from layoutproof.lowering.compare.answers import ENGINE
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.lowering.compare.tuple_joins import packed
from layoutproof.lowering.compare.tuple_laws import NotPacked
from layoutproof.lowering.passes.as_loops import check_begun, check_domains, check_part, fast_math_needed, forms_of
from layoutproof.verify.lockstep.memories import ASKED
from layoutproof.verify.program.questions import Because
from layoutproof.verify.values.fast_math import FastMathSet
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.verdict.report import counterexample_text
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

_KINDS = (ForKind.SERIAL, ForKind.PARALLEL)


def with_split_loops(func: PrimFunc) -> tuple[PrimFunc, tuple[Expr, ...]]:
    """The function with such loops in two, and the extents that were split; the function itself if there are none.

    The extents are assumed not to overflow their types, as of any index arithmetic of sizes alone.
    """
    if not any(isinstance(node, For) and _multiple(node) is not None for node in walk(func.body)):
        return func, ()
    splitter = _Splitter(func)
    body = trampoline(splitter.visit, func.body)
    assert isinstance(body, Stmt)
    return (func.with_body(body), tuple(splitter.extents)) if splitter.extents else (func, ())


def _multiple(loop: For) -> tuple[IntImm, Var] | None:
    """The literal and the size of which the extent of a loop from 0 is the product."""
    match loop:
        case For(start=IntImm(value=0), extent=Binary(op=BinaryOp.MUL, lhs=a, rhs=b), kind=kind) if kind in _KINDS:
            number, size = (a, b) if isinstance(a, IntImm) else (b, a)
            if isinstance(number, IntImm) and number.value > 0 and isinstance(size, Var):
                return number, size
        case _:
            pass
    return None


class _Splitter:
    def __init__(self, func: PrimFunc) -> None:
        self.names = names_in(func.body) | {param.name for param in func.params}
        self.names |= {name for buffer in func.buffers for name in (buffer.name, buffer.data.name)}
        self.bound = frozenset(bound_variables(func.body))
        self.extents: list[Expr] = []

    def visit(self, node: Node) -> Node | Steps[Node, Node]:
        """A statement, its loops split wherever that is possible."""
        if isinstance(node, For):
            node = self._loop(node)
        return mapped(node) if isinstance(node, Stmt) else node

    def _loop(self, loop: For) -> For:
        found = _multiple(loop)
        if found is None or found[1] in self.bound:
            return loop
        number, size = found
        outer = Var(take_fresh(f"{loop.var.name}_outer", self.names), loop.var.dtype)
        inner = Var(take_fresh(f"{loop.var.name}_inner", self.names), loop.var.dtype)
        parts = {BinaryOp.FLOORDIV: outer, BinaryOp.FLOORMOD: inner}

        def divided(node: Node) -> Node | Steps[Node, Node]:
            if isinstance(node, Binary) and node.op in parts and node.rhs == size and _plain(node.lhs) == loop.var:
                return parts[node.op]
            return descend(node, divided)

        body = trampoline(divided, _without_single_loops(loop.body))
        assert isinstance(body, Stmt)
        if loop.var in {v for node in walk(body) if isinstance(node, Expr) for v in free_variables(node)}:
            return loop
        self.extents.append(loop.extent)
        zero = const(0, loop.var.dtype)
        return replace(
            loop, var=outer, extent=number, body=replace(loop, var=inner, start=zero, extent=size, body=body)
        )


def _without_single_loops(stmt: Stmt) -> Stmt:
    """A statement with the start of each loop of one iteration in the place of its index."""

    def visit(node: Node) -> Node:
        if isinstance(node, For) and node.extent == const(1, node.extent.dtype) and isinstance(node.start, IntImm):
            return replace(node, body=substitute(node.body, {node.var: node.start}))
        return node

    return rewrite_bottom_up(stmt, visit)


def _plain(expr: Expr) -> Expr:
    """A sum without zeros."""
    match expr:
        case Binary(op=BinaryOp.ADD, lhs=a, rhs=IntImm(value=0)) | Binary(op=BinaryOp.ADD, lhs=IntImm(value=0), rhs=a):
            return _plain(a)
        case Binary(op=BinaryOp.ADD, lhs=a, rhs=b):
            first, second = _plain(a), _plain(b)
            return _plain(first + second) if (first, second) != (a, b) else expr
        case _:
            return expr


_OTHER_TUPLES = "threads join tuples, and not known to be the same ones in both programs"
_ONE_VALUE = "threads may store one value by one statement, and whether these do is not decided"
_BARRIERS = "barriers are taken to stand where threads meet in shared memory, as TVM puts them"


@dataclass(frozen=True, slots=True)
class Question:
    """Two functions, thread axes written as parallel loops, and what was asked about."""

    before: PrimFunc
    after: PrimFunc
    asked: tuple[PrimFunc, PrimFunc]
    forms: tuple[Sequential, ...]
    obstacle: NoSequence | None = None
    joins: tuple[str, ...] | None = None

    @staticmethod
    def of(before: PrimFunc, after: PrimFunc, allowed: FastMathSet, *, plain: bool) -> Question:
        """The question as parallel loops, as far as it can be written so. Anything but functions is left as it is.
        `plain`: no layouts or names are stated.
        """
        asked = (before, after)
        if not all(isinstance(func, PrimFunc) for func in asked):
            return Question(before, after, asked, ())
        found = forms_of(before, after)
        forms = tuple(_with_split_loops(form) for form in found if isinstance(form, Sequential))
        obstacle = next((form for form in found if isinstance(form, NoSequence)), None)
        if obstacle is not None:
            return Question(before, after, asked, forms, obstacle)
        if not any(form.tuples for form in forms):
            return Question(forms[0].func, forms[1].func, asked, forms)
        try:
            if MAY_OVERLAP in before.attrs or not plain:
                raise NotPacked("with layouts that are stated, or parameters that may overlap")
            sums = packed(forms[0], forms[1], ValueProver(allowed))
        except NotPacked as problem:
            return Question(before, after, asked, forms, NoSequence(f"threads join tuples: {problem}", after.body))
        return Question(sums.before, sums.after, asked, forms, joins=sums.fast_math)

    def _disturbed(self) -> str | None:
        """Why threads of the function after may disturb one another in memory of the grid; None if they do not."""
        form = self.forms[1]
        for part, what in (
            (form.apart, "without a barrier between"),
            (form.under_way, "an asynchronous copy may still be under way"),
        ):
            for verdict in check_part(part):
                if verdict.status is not Status.PROVED:
                    claim = f", {verdict.claim}" if part is form.apart else ""
                    return f"{what}{claim}: {counterexample_text(verdict)}"
        return None

    def _empty(self, where: Expr | None) -> str | None:
        """Which values leave a reduction over threads empty, in either function; None if none do."""
        found = (verdict for func in self.asked for verdict in check_begun(func, where, self.asked[0]))
        verdict = next(found, None)
        return None if verdict is None else verdict.reason

    def _but_at_empty(self, answer: Comparison) -> Comparison:
        """The answer, nothing refuted by a run in which a reduction over threads has no part: the form of the kernel
        leaves out what TVM stores then.
        """
        said = tuple(self._unless_empty(verdict, answer.where) for verdict in answer.verdicts)
        return answer if said == answer.verdicts else replace(answer, verdicts=said)

    def _unless_empty(self, verdict: Verdict, where: Expr | None) -> Verdict:
        if verdict.status is not Status.REFUTED:
            return verdict
        seen = {} if verdict.counterexample is None else verdict.counterexample.get("symbols", {})
        known = [equal(v, const(seen[v.name], v.dtype)) for v in constants_of(self.asked[0]) if v.name in seen]
        empty = self._empty(logical_and(*known, *([] if where is None else [where])))
        if empty is None:
            return verdict
        return replace(verdict, status=Status.UNKNOWN, counterexample=None, reason=f"{empty}; {verdict.reason}")

    def _outside(self, where: Expr | None) -> str | None:
        """Which block variable of the function after may leave its domain; None if none does."""
        found = next(check_domains(self.asked[1], where, self.asked[0]), None)
        return None if found is None else f"{found.claim}: {found.reason}"

    def _but_one_value(self, answer: Comparison) -> Comparison:
        """The answer, nothing refuted by threads of which one statement may store one value: those are no race."""
        threads = {var.name for form in self.forms for var in form.axes}
        failed = [v for v in answer.verdicts[1:] if v.status is Status.REFUTED]
        if not failed or not all(Because.ONE_VALUE in v.because and threads & {*v.claim.about} for v in failed):
            return answer
        others = [v for v in answer.verdicts[1:] if v not in failed]
        open_ones = [replace(v, status=Status.UNKNOWN, reason=f"{_ONE_VALUE}: {v.reason}") for v in failed]
        why = f"{failed[0].claim}: {open_ones[0].reason}"
        said = Verdict(Status.UNKNOWN, answer.verdicts[0].claim, ENGINE, (), why)
        return replace(answer, verdicts=(said, *others, *(replace(v, counterexample=None) for v in open_ones)))

    def answered(self, answer: Comparison) -> Comparison:
        """The answer to what was asked, from the one for parallel loops."""
        if self.obstacle is not None:
            return _undecided(answer, self.obstacle)
        if (self.before, self.after) == self.asked:
            return answer
        answer = replace(answer, before=self.asked[0], after=self.asked[1])
        if self.joins is not None:
            # The programs with sums have other values: of a difference between them nothing follows.
            answer = replace(answer, rewrite=None)
            if answer.status is not Status.PROVED:
                said = Verdict(Status.UNKNOWN, answer.verdicts[0].claim, ENGINE, (), _OTHER_TUPLES)
                return replace(answer, verdicts=(said,))
        if answer.status is not Status.PROVED:
            return self._but_one_value(self._but_at_empty(answer))
        disturbed = self._disturbed() or self._outside(answer.where) or self._empty(answer.where)
        if disturbed is not None:
            return _with_first(answer, Status.UNKNOWN, disturbed, ())
        needed = fast_math_needed(self.forms)
        if not needed <= answer.allowed:
            missing = ", ".join(sorted(needed - answer.allowed))
            why = f"threads join floats in an order that is not fixed, which takes {missing}"
            return _with_first(answer, Status.UNKNOWN, why, ())
        first = answer.verdicts[0]
        notes = [first.reason] if first.reason is not None else []
        form = self.forms[1]
        apart = form.apart is not None or form.under_way is not None or form.overlaps or self.joins is not None
        if apart and not self.after.noalias and ASKED.text not in notes:
            notes.append(ASKED.text)
        fitting = dict.fromkeys(extent for form in self.forms for extent in form.fitting)
        notes += [f"precondition: `{expr_text(e, Style.PLAIN)}` does not overflow {e.dtype}" for e in fitting]
        notes += [_BARRIERS] if any(form.implied for form in self.forms) else []
        if self.joins is not None:
            claim = Claim(ClaimKind.OTHER, "tuples are joined alike in every order", about=("tuple-order",))
            answer = replace(answer, verdicts=(*answer.verdicts, Verdict(Status.PROVED, claim, ENGINE, self.joins)))
        fast_math = tuple(sorted({*first.strictness, *needed, *(self.joins or ())}))
        return _with_first(answer, first.status, "; ".join(notes) if notes else None, fast_math)


def _with_split_loops(form: Sequential) -> Sequential:
    func, extents = with_split_loops(form.func)
    if not extents:
        return form
    apart, under_way = (part and with_split_loops(part)[0] for part in (form.apart, form.under_way))
    return replace(form, func=func, apart=apart, under_way=under_way, fitting=extents)


def _with_first(answer: Comparison, status: Status, reason: str | None, fast_math: tuple[str, ...]) -> Comparison:
    first = replace(answer.verdicts[0], status=status, reason=reason, strictness=fast_math)
    return replace(answer, verdicts=(first, *answer.verdicts[1:]))


def _undecided(answer: Comparison, obstacle: NoSequence) -> Comparison:
    """Nothing is refuted of a kernel whose threads are not understood."""
    place = f" ({obstacle.stmt.span})" if obstacle.stmt.span is not None else ""
    why = f"thread axes: {obstacle.reason}{place}"
    if answer.status is Status.REFUTED:
        said = Verdict(Status.UNKNOWN, answer.verdicts[0].claim, ENGINE, (), why)
        return replace(answer, verdicts=(said,), rewrite=None)
    first = answer.verdicts[0]
    return _with_first(
        answer, first.status, why if first.reason is None else f"{why}; {first.reason}", first.strictness
    )
