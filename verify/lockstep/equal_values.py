"""Whether two expressions have one value when every cell holds what its counterpart holds.

Loads are taken out first: a load of the new program that touches the cell of one of the old program is the same
variable. An undefined value of the old program may be anything, so it is whatever the new program has in its place.
What is called and not looked into is only ever compared piece by piece, so that it runs as often and in the same order.
Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Binary, Cast, Expr, IfThenElseExpr, IntImm, Logical, Not, Select, Var
from layoutproof.ir.intrinsics import OpaqueCall, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, LogicalOp
from layoutproof.ir.visit import children, free_variables, holds_any, map_children, walk
from layoutproof.verify.lockstep.domains import has_calls, is_exact, is_exact_condition, is_speakable, where, zero
from layoutproof.verify.lockstep.memories import Cells, Memories, sees_bits
from layoutproof.verify.program.instances import IterationDomain, Unknown
from layoutproof.verify.values.fast_math import IEEE
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.values.question import Question

_MOST_QUESTIONS = 4


@dataclass(slots=True)
class _Loaded:
    """Something that the old program loads, and the variable that stands for its value."""

    cells: Cells
    var: Var


@dataclass(slots=True)
class ProgramPoint:
    """One moment of both programs, at which expressions are compared: no store lies between the loads of one moment."""

    memories: Memories
    prover: ValueProver
    domain: IterationDomain
    loaded: list[_Loaded] = field(default_factory=list)
    questions: int = 0

    def is_same(self, old: Expr, new: Expr, *, index: bool = False) -> bool:
        """Whether two expressions over the shared names agree; with `index`, over the integers."""
        before = self.take_old(old)
        after = self.take_new(new, self.domain)
        return self.agree(before, after, self.domain, index=index)

    def has_same_bits(self, old: Expr, new: Expr) -> bool:
        """Whether two expressions are the same operations on the same operands in order: NaN bits agree too."""
        return self.is_alike(self.take_old(old), self.take_new(new, self.domain))

    def is_alike(self, old: Expr, new: Expr) -> bool:
        """The same of expressions without loads."""
        if not (old.dtype.is_float or new.dtype.is_float):
            return self.agree(old, new, self.domain)
        if old == new or (isinstance(old, Var) and isinstance(new, Var)):
            return old == new or self._is_one_load(old, new, self.domain)
        if type(old) is not type(new) or not children(old) or map_children(old, _hole) != map_children(new, _hole):
            return False
        parts = zip(children(old), children(new), strict=True)
        return all(self.is_alike(a, b) for a, b in parts if isinstance(a, Expr) and isinstance(b, Expr))

    # Loads

    def take_old(self, expr: Expr) -> Expr:
        """An expression of the old program with a variable for each load."""

        def visit(node: Node) -> Node:
            rebuilt = map_children(node, visit) if not isinstance(node, Var) else node
            return self._loaded_old(rebuilt) if isinstance(rebuilt, BufferLoad) else rebuilt

        return _expr(visit(expr)) if _loads(expr) else expr

    def _loaded_old(self, load: BufferLoad) -> Var:
        cells = Cells(load.buffer, load.indices)
        for known in self.loaded:
            if known.cells == cells:
                return known.var
        var = self._variable(load)
        self.loaded.append(_Loaded(cells, var))
        return var

    def _variable(self, load: BufferLoad) -> Var:
        return Var(f"{load.buffer.name}@{next(self.memories.fresh)}", load.dtype)

    def take_new(self, expr: Expr, domain: IterationDomain) -> Expr:
        """An expression of the new program with the old one's variables for loads of the same cells."""
        if not _loads(expr):
            return expr
        match expr:
            case BufferLoad():
                return self._loaded_new(expr, domain)
            case Cast(dtype=dtype, value=BufferLoad() as load) if dtype.is_bool:
                found = self._find(load, domain)
                if found is not None and found.dtype.is_bool:
                    return found
                return replace(expr, value=self._loaded_new(load, domain))
            case (
                IfThenElseExpr(condition=condition, then=then, otherwise=otherwise)
                | Select(condition=condition, then=then, otherwise=otherwise)
            ):
                # Of a side that is not chosen the value makes no difference, even where it is evaluated.
                said = self.take_new(condition, domain)
                left, right = self._under(domain, said, True), self._under(domain, said, False)
                return replace(
                    expr, condition=said, then=self.take_new(then, left), otherwise=self.take_new(otherwise, right)
                )
            case Logical(op=op, lhs=lhs, rhs=rhs):
                first = self.take_new(lhs, domain)
                return replace(expr, lhs=first, rhs=self.take_new(rhs, self._under(domain, first, op is LogicalOp.AND)))
            case _:
                return map_children(expr, lambda n: self.take_new(n, domain) if isinstance(n, Expr) else n)

    def _loaded_new(self, load: BufferLoad, domain: IterationDomain) -> Expr:
        found = self._find(load, domain)
        if found is not None and found.dtype == load.dtype:
            return found
        return self._variable(load)

    def _find(self, load: BufferLoad, domain: IterationDomain) -> Var | None:
        indices = tuple(self.take_new(i, domain) for i in load.indices)
        cells = Cells(load.buffer, indices)
        for asked in (False, True):
            for known in self.loaded:
                inside = self.with_data(domain, *known.cells.indices, *indices) if asked else domain
                if self.memories.is_same_cell(known.cells, cells, inside, plainly=not asked):
                    return known.var
        return None

    def _is_one_load(self, a: Expr, b: Expr, domain: IterationDomain) -> bool:
        """Whether two loads of the old program find the same cell."""
        first, second = ([known.cells for known in self.loaded if known.var == v] for v in (a, b))
        if not first or not second:
            return False
        inside = self.with_data(domain, *first[0].indices, *second[0].indices)
        return self.memories.is_one_cell(first[0], second[0], inside)

    def with_data(self, domain: IterationDomain, *exprs: Expr) -> IterationDomain:
        """The iteration domain with the loaded integers in the expressions as dims of their types' ranges."""
        told = {u.var for u in domain.unknowns}
        used = dict.fromkeys(
            v for e in exprs for v in free_variables(e) if "@" in v.name and v.dtype.is_integer and v.dtype.lanes == 1
        )
        more = tuple(Unknown(v, v) for v in used if v not in told)
        return replace(domain, unknowns=(*domain.unknowns, *more)) if more else domain

    def _under(self, domain: IterationDomain, condition: Expr, holds: bool) -> IterationDomain:
        """The iteration domain where a condition is known; one on data says nothing there."""
        return domain if _data(condition) else where(domain, condition, holds)

    # Agreement

    def agree(self, old: Expr, new: Expr, domain: IterationDomain, *, index: bool = False) -> bool:
        """Whether expressions without loads have one value at every instance of the iteration domain."""
        if old == new:
            return True
        if index and old.dtype.is_integer and new.dtype.is_integer and old.dtype.lanes == new.dtype.lanes == 1:
            return self.memories.asking.equal(self.with_data(domain, old, new), old, new)
        if old.dtype != new.dtype:
            return False
        if isinstance(old, Var) and isinstance(new, Var):
            return self._is_one_load(old, new, domain)
        if may_be_anything(old) and not (has_calls(old) or has_calls(new)):
            return True
        if self._piece_by_piece(old, new, domain, index):
            return True
        if has_calls(old) or has_calls(new):
            return False
        return (
            self._by_index(old, new, domain) or self._by_choice(old, new, domain) or self._by_prover(old, new, domain)
        )

    def _piece_by_piece(self, old: Expr, new: Expr, domain: IterationDomain, index: bool) -> bool:
        """The same operation on parts that agree, each where it is evaluated."""
        if type(old) is not type(new) or not children(old):
            return False
        if map_children(old, _hole) != map_children(new, _hole):
            return False
        match old, new:
            case (IfThenElseExpr() as a, IfThenElseExpr() as b) | (Select() as a, Select() as b):
                if not self.agree(a.condition, b.condition, domain, index=index):
                    return False
                left, right = self._under(domain, a.condition, True), self._under(domain, a.condition, False)
                return self.agree(a.then, b.then, left, index=index) and self.agree(
                    a.otherwise, b.otherwise, right, index=index
                )
            case (Logical(), Logical()):
                inside = self._under(domain, old.lhs, old.op is LogicalOp.AND)
                return self.agree(old.lhs, new.lhs, domain, index=index) and self.agree(
                    old.rhs, new.rhs, inside, index=index
                )
            case _:
                parts = [
                    (a, b)
                    for a, b in zip(children(old), children(new), strict=True)
                    if isinstance(a, Expr) and isinstance(b, Expr)
                ]
                if isinstance(old, OpaqueCall) and sees_bits(old):
                    return all(self.is_alike(a, b) for a, b in parts)
                return all(self.agree(a, b, domain, index=index) for a, b in parts)

    def _by_index(self, old: Expr, new: Expr, domain: IterationDomain) -> bool:
        """Index arithmetic and conditions on it, by the engines; only where nothing wraps."""
        if not (is_speakable(old) and is_speakable(new)):
            return False
        inside = self.with_data(domain, old, new)
        facts, data = self.memories.old.facts, _data(old) | _data(new)
        asking = self.memories.asking
        if old.dtype.is_integer:
            return all(is_exact(e, inside, facts, data) for e in (old, new)) and asking.equal(inside, old, new)
        if not all(is_exact_condition(e, inside, facts, data) for e in (old, new)):
            return False
        return asking.never(inside, old, Not(new)) and asking.never(inside, Not(old), new)

    def _by_choice(self, old: Expr, new: Expr, domain: IterationDomain) -> bool:
        """A choice, or a connective, whose condition is decided at the iteration domain, on either side."""
        chosen = self._chosen(old, domain)
        if chosen is not old:
            return self.agree(chosen, new, domain)
        chosen = self._chosen(new, domain)
        return chosen is not new and self.agree(old, chosen, domain)

    def _chosen(self, expr: Expr, domain: IterationDomain) -> Expr:
        match expr:
            case (
                IfThenElseExpr(condition=condition, then=then, otherwise=otherwise)
                | Select(condition=condition, then=then, otherwise=otherwise)
            ) if condition.dtype.lanes == 1:
                decided = self.decided(condition, domain)
                return expr if decided is None else then if decided else otherwise
            case Logical(op=op, lhs=lhs, rhs=rhs) if expr.dtype.lanes == 1:
                decided = self.decided(lhs, domain)
                if decided is not None:
                    return rhs if decided == (op is LogicalOp.AND) else lhs
                # What stands right is evaluated only where it matters, and nothing here has an effect.
                decided = self.decided(rhs, self._under(domain, lhs, op is LogicalOp.AND))
                return lhs if decided == (op is LogicalOp.AND) and decided is not None else expr
            case _:
                return expr

    def decided(self, condition: Expr, domain: IterationDomain) -> bool | None:
        """The truth value of index arithmetic without loads; None if it is not constant on the iteration domain."""
        if isinstance(condition, IntImm):
            return bool(condition.value)
        if _data(condition) or not is_speakable(condition):
            return None
        asking = self.memories.asking
        if asking.always(domain, condition):
            return True
        return False if asking.never(domain, condition) else None

    def settled(self, expr: Expr, domain: IterationDomain) -> Expr:
        """An expression with the choices made that are decided where they stand."""
        chosen = self._chosen(expr, domain)
        if chosen is not expr:
            return self.settled(chosen, domain)
        match expr:
            case (
                IfThenElseExpr(condition=condition, then=then, otherwise=otherwise)
                | Select(condition=condition, then=then, otherwise=otherwise)
            ):
                left, right = self._under(domain, condition, True), self._under(domain, condition, False)
                return replace(
                    expr,
                    condition=self.settled(condition, domain),
                    then=self.settled(then, left),
                    otherwise=self.settled(otherwise, right),
                )
            case _:
                return map_children(expr, lambda n: self.settled(n, domain) if isinstance(n, Expr) else n)

    def _by_prover(self, old: Expr, new: Expr, domain: IterationDomain) -> bool:
        """Equal values of fixed width, bit for bit; an undefined old value is taken to be zero."""
        if old.dtype.lanes != 1 or self.questions >= _MOST_QUESTIONS:
            return False
        mine, theirs = self.settled(old, domain), self.settled(new, domain)
        if (mine, theirs) != (old, new):
            return self.agree(mine, theirs, domain)
        old = _expr(_replaced(old, lambda n: zero(n.dtype)))
        new = _expr(_replaced(new, self._arbitrary))
        old, new = _shortened(old, new)
        if old == new:
            return True
        self.questions += 1
        return self.prover.answer(Question(new, old), IEEE).is_proved

    def _arbitrary(self, node: Undef) -> Expr:
        return Var(f"undef@{next(self.memories.fresh)}", node.dtype)


def may_be_anything(expr: Expr) -> bool:
    """Whether an undefined value makes the whole any value of its type, whatever else stands in it.

    Sums and exclusive ors of integers wrap, so they only rename the values. Of floats nothing is claimed.
    """
    match expr:
        case Undef():
            return True
        case Binary(op=BinaryOp.ADD | BinaryOp.SUB | BinaryOp.BITXOR, lhs=lhs, rhs=rhs) if expr.dtype.is_integer:
            return may_be_anything(lhs) or may_be_anything(rhs)
        case Binary(op=BinaryOp.MUL, lhs=lhs, rhs=rhs) if expr.dtype.is_integer:
            odd = [e for e in (lhs, rhs) if isinstance(e, IntImm) and e.value % 2 != 0]
            return bool(odd) and (may_be_anything(lhs) or may_be_anything(rhs))
        case Select(then=then, otherwise=otherwise) | IfThenElseExpr(then=then, otherwise=otherwise):
            return may_be_anything(then) and may_be_anything(otherwise)
        case Cast(dtype=dtype, value=value) if (
            dtype.is_integer and value.dtype.is_integer and value.dtype.bits >= dtype.bits
        ):
            return may_be_anything(value)
        case _:
            return False


def _loads(expr: Node) -> bool:
    return holds_any(expr, BufferLoad)


def _data(expr: Expr) -> frozenset[Var]:
    """The variables that stand for what was loaded. No program has a name with `@`."""
    return frozenset(v for v in free_variables(expr) if "@" in v.name)


def _expr(node: Node) -> Expr:
    assert isinstance(node, Expr)
    return node


def _hole(node: Node) -> Node:
    """One constant for every expression of a type, to compare operations without their operands."""
    return Undef(node.dtype) if isinstance(node, Expr) else node


def _replaced(node: Node, value: Callable[[Undef], Expr]) -> Node:
    def visit(current: Node) -> Node:
        return value(current) if isinstance(current, Undef) else map_children(current, visit)

    return visit(node)


def _shortened(old: Expr, new: Expr) -> tuple[Expr, Expr]:
    """Both with a variable for each larger part that stands in either: less for a solver to look at."""
    parts = {n for n in walk(old) if isinstance(n, Expr) and n.dtype.lanes == 1 and children(n)}
    names: dict[Expr, Var] = {}

    def visit(node: Node) -> Node:
        if isinstance(node, Expr) and node in parts and not isinstance(node, Cast | Undef):
            return names.setdefault(node, Var(f"part@{len(names)}", node.dtype))
        return map_children(node, visit)

    shorter = _expr(visit(new))

    def again(node: Node) -> Node:
        if isinstance(node, Expr) and node in names:
            return names[node]
        return map_children(node, again)

    return _expr(again(old)), shorter
