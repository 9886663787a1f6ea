"""Preconditions of a call on its symbols, checked before anything runs, as data and as C.

They are evaluated over the integers, since the program's own arithmetic may overflow where they do not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from layoutproof.ir.dtype import INT64
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, IfThenElseExpr, IntImm, Logical, Not, Select, Var
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.semantics import Trap
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.lowering.codegen.writer import Writer, comment


@dataclass(frozen=True, slots=True)
class Requirement:
    """`expr`, over symbols alone, is true; with `fits`, it is a number that fits its type. `place` is the line that
    requires it.
    """

    expr: Expr
    fits: bool = False
    place: str = ""

    @property
    def text(self) -> str:
        """The requirement as text: `n % 4 == 0`, `n*m fits int32`."""
        said = expr_text(self.expr, Style.PLAIN)
        return f"{said} fits {self.expr.dtype}" if self.fits else said

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names in it, in order."""
        return tuple(dict.fromkeys(v.name for v in free_variables(self.expr)))

    @property
    def least(self) -> tuple[str, int] | None:
        """The symbol and the number if it is just `symbol >= number`."""
        match self.expr:
            case Compare(op=CompareOp.GE, lhs=Var(name=name), rhs=IntImm(value=value)) if not self.fits:
                return name, value
            case _:
                return None

    def failure(self, values: Mapping[str, int]) -> str | None:
        """Why it does not hold for these values, or None. Raises KeyError for a symbol without a value."""
        try:
            found = evaluate(self.expr, values)
        except Trap as trap:
            return f"it has no value: {trap}"
        if not self.fits:
            return None if found else "it does not hold"
        fitting = self.expr.dtype.min_int <= found <= self.expr.dtype.max_int
        return None if fitting else f"it is {found}"


@dataclass(frozen=True, slots=True)
class Contract:
    """The preconditions of a function's proofs: `requirements` are checked at every call, `promises` are left to the
    caller.
    """

    requirements: tuple[Requirement, ...] = ()
    promises: tuple[str, ...] = ()


NOTHING_ASSUMED = Contract()


# Names of the program never begin like these.
_BAD, _VALUE, _HOLDS = "lp_inexact", "lp_value", "lp_holds"

_EXACT: Mapping[BinaryOp, str] = {
    BinaryOp.ADD: "lp_exact_add",
    BinaryOp.SUB: "lp_exact_sub",
    BinaryOp.MUL: "lp_exact_mul",
    BinaryOp.FLOORDIV: "lp_exact_floordiv",
    BinaryOp.FLOORMOD: "lp_exact_floormod",
    BinaryOp.TRUNCDIV: "lp_exact_truncdiv",
    BinaryOp.TRUNCMOD: "lp_exact_truncmod",
}
_CHOICES: Mapping[BinaryOp, str] = {BinaryOp.MIN: "lp_min_i64", BinaryOp.MAX: "lp_max_i64"}
_BITS: Mapping[BinaryOp, str] = {BinaryOp.BITAND: "&", BinaryOp.BITOR: "|", BinaryOp.BITXOR: "^"}
_WORDS: Mapping[LogicalOp, str] = {LogicalOp.AND: "&&", LogicalOp.OR: "||"}


class NotExpressible(Exception):
    """The requirement contains something without a C form; it is left to the caller."""


@dataclass(slots=True)
class _Exact:
    """Writes an expression as a C expression of type int64_t or bool; `names` are the C names of symbols with their
    types' text.
    """

    names: Mapping[str, str]
    helpers: set[str] = field(default_factory=set)

    def write(self, expr: Expr) -> str:
        writer = _WRITERS.get(type(expr))
        if writer is None or expr.dtype.lanes > 1:
            raise NotExpressible
        return writer(self, expr)

    def constant(self, expr: IntImm) -> str:
        if not INT64.min_int < expr.value <= INT64.max_int:
            raise NotExpressible
        return str(expr.value) if expr.dtype.is_bool else f"INT64_C({expr.value})"

    def variable(self, expr: Var) -> str:
        if expr.name not in self.names or expr.dtype.is_float:
            raise NotExpressible
        name = self.names[expr.name]
        if str(expr.dtype) == "uint64":
            return self.call("lp_exact_u64", name, f"&{_BAD}")
        return name if expr.dtype.is_bool else f"(int64_t){name}"

    def call(self, helper: str, *arguments: str) -> str:
        self.helpers.add(helper)
        return f"{helper}({', '.join(arguments)})"

    def binary(self, expr: Binary) -> str:
        left, right = self.write(expr.lhs), self.write(expr.rhs)
        if expr.op in _EXACT:
            return self.call(_EXACT[expr.op], left, right, f"&{_BAD}")
        if expr.op in _CHOICES:
            return self.call(_CHOICES[expr.op], left, right)
        if expr.op in _BITS:
            return f"({left} {_BITS[expr.op]} {right})"
        raise NotExpressible  # shifts

    def comparison(self, expr: Compare) -> str:
        return f"({self.write(expr.lhs)} {expr.op.value} {self.write(expr.rhs)})"

    def logical(self, expr: Logical) -> str:
        return f"({self.write(expr.lhs)} {_WORDS[expr.op]} {self.write(expr.rhs)})"

    def negation(self, expr: Not) -> str:
        return f"!{self.write(expr.operand)}"

    def choice(self, expr: Select | IfThenElseExpr) -> str:
        return f"({self.write(expr.condition)} ? {self.write(expr.then)} : {self.write(expr.otherwise)})"

    def cast(self, expr: Cast) -> str:
        # Over the integers a cast changes nothing; that it does not was proved.
        if not expr.dtype.is_integer or not (expr.value.dtype.is_integer or expr.value.dtype.is_bool):
            raise NotExpressible
        return self.write(expr.value)


_WRITERS: Mapping[type[Expr], Callable[[_Exact, Any], str]] = {
    IntImm: _Exact.constant,
    Var: _Exact.variable,
    Binary: _Exact.binary,
    Compare: _Exact.comparison,
    Logical: _Exact.logical,
    Not: _Exact.negation,
    Select: _Exact.choice,
    IfThenElseExpr: _Exact.choice,
    Cast: _Exact.cast,
}


def is_expressible(requirement: Requirement, names: Mapping[str, str]) -> bool:
    """Whether the generated function can check it. `names` are the C names of the parameters that are integers."""
    try:
        _Exact(names).write(requirement.expr)
    except NotExpressible:
        return False
    return True


def write_requirement(requirement: Requirement, names: Mapping[str, str], writer: Writer) -> set[str]:
    """Write a check that returns LP_BAD_EXTENT; gives the helpers that it calls. Raises NotExpressible where C has no
    such check.

    A value that does not fit 64 bits on the way is refused.
    """
    exact = _Exact(names)
    text = exact.write(requirement.expr)
    writer.line(comment(requirement.text))
    if not exact.helpers and not requirement.fits:
        with writer.nested(f"if (!{text})"):
            writer.line("return LP_BAD_EXTENT;")
        return exact.helpers
    with writer.nested(""):
        writer.line(f"bool {_BAD} = false;")
        if not requirement.fits:
            writer.line(f"const bool {_HOLDS} = {text};")
            tests = [f"!{_HOLDS}"]
        else:
            tests = list(_outside(requirement))
            writer.line(f"const int64_t {_VALUE} = {text};" if tests else f"(void){text};")
        with writer.nested(f"if ({' || '.join([_BAD, *tests])})"):
            writer.line("return LP_BAD_EXTENT;")
    return exact.helpers


def _outside(requirement: Requirement) -> Iterator[str]:
    """C conditions under which a number of 64 bits is outside its type."""
    dtype = requirement.expr.dtype
    if dtype.min_int > INT64.min_int:
        yield f"{_VALUE} < INT64_C({dtype.min_int})"
    if dtype.max_int < INT64.max_int:
        yield f"{_VALUE} > INT64_C({dtype.max_int})"
