"""One question about values, in the form that every engine takes, and its answer: is the new expression the old one,
wherever the hypotheses hold? With the vocabulary of facts that hypotheses use, and undefined values taken out of a
question. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.node import Node
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables, holds_any, map_children, substitute, take_fresh
from layoutproof.verify.program.questions import Because, SmtQuery
from layoutproof.verify.values.fast_math import IEEE, FastMathSet
from layoutproof.verify.verdict.verdict import Status

_PLACEHOLDER = "value'"


@dataclass(frozen=True, slots=True)
class NotNan:
    """A float that is not NaN; true of other types."""

    def __str__(self) -> str:
        return "is not NaN"


@dataclass(frozen=True, slots=True)
class NotNegativeZero:
    """A float that is not -0.0; true of other types."""

    def __str__(self) -> str:
        return "is not -0.0"


@dataclass(frozen=True, slots=True)
class NotInfinite:
    """A float that is no infinity (a NaN is none); true of other types."""

    def __str__(self) -> str:
        return "is not infinite"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Not below `value`, as `<` compares: a NaN is not below anything, and -0.0 is not below +0.0."""

    value: Expr

    def __str__(self) -> str:
        return f"is not below {expr_text(self.value, Style.PLAIN)}"


@dataclass(frozen=True, slots=True)
class AtMost:
    """Not above `value`, as `>` compares: a NaN is not above anything, and +0.0 is not above -0.0."""

    value: Expr

    def __str__(self) -> str:
        return f"is not above {expr_text(self.value, Style.PLAIN)}"


@dataclass(frozen=True, slots=True)
class Identical:
    """The very value `value`: +0.0 is not -0.0, a NaN is any NaN."""

    value: Expr

    def __str__(self) -> str:
        return f"is {expr_text(self.value, Style.PLAIN)}"


@dataclass(frozen=True, slots=True)
class Holds:
    """A condition, true, in which `placeholder(dtype)` stands for the value; float comparisons in it are IEEE's."""

    condition: Expr

    def __str__(self) -> str:
        return f"satisfies {expr_text(self.condition, Style.PLAIN)}"


Property = NotNan | NotNegativeZero | NotInfinite | AtLeast | AtMost | Identical | Holds


@dataclass(frozen=True, slots=True)
class Given:
    """A fact: the variable's value has the property."""

    var: Var
    property: Property

    def __str__(self) -> str:
        return f"{self.var.name} {self.property}"


def placeholder(dtype: DType) -> Var:
    """The variable that stands for the value itself in the condition of `Holds`."""
    return Var(_PLACEHOLDER, dtype)


def condition_on(holds: Holds, value: Expr) -> Expr:
    """The condition of a `Holds` on `value`."""
    return substitute(holds.condition, {placeholder(value.dtype): value})


def operand_of(known: Property) -> Expr | None:
    """The expression in a property, or None."""
    match known:
        case AtLeast(value) | AtMost(value) | Identical(value):
            return value
        case Holds(condition):
            return condition
        case NotNan() | NotNegativeZero() | NotInfinite():
            return None


def with_operand(known: Property, operand: Expr) -> Property:
    """The property with another expression in it."""
    match known:
        case AtLeast():
            return AtLeast(operand)
        case AtMost():
            return AtMost(operand)
        case Identical():
            return Identical(operand)
        case Holds():
            return Holds(operand)
        case NotNan() | NotNegativeZero() | NotInfinite():
            return known


def substitute_in_property(known: Property, values: Mapping[Var, Expr]) -> Property:
    """The property with variables of its expression replaced."""
    operand = operand_of(known)
    return known if operand is None else with_operand(known, substitute(operand, values))


def variables_of(known: Property) -> tuple[Var, ...]:
    """The variables in a property's expression, the placeholder apart."""
    operand = operand_of(known)
    return () if operand is None else tuple(v for v in free_variables(operand) if v.name != _PLACEHOLDER)


@dataclass(frozen=True)
class Question:
    """Is `new` value-identical to `old` for all values that satisfy `given` and `conditions`?

    `computed` are variables whose values the old program computes; with `old_is_computed` so are the sub-expressions of
    `old`, each where it is evaluated, and then a variable of `computed` that stands in `old` counts only where it is
    evaluated there: what stands in a branch that is not taken may be a value that the old program never looks at.
    Fast-math assumptions restrict these and nothing else.

    `variants` are pairs of variables, the old program's and the new one's, whose values may differ in the sign of a
    zero and in nothing else; the first stands in `old` and the hypotheses, the second in `new`.

    With a `goal` the question is another: does `new`, where it does not trap, have that property? `old` is then `new`.
    """

    new: Expr
    old: Expr
    given: tuple[Given, ...] = ()
    conditions: tuple[Expr, ...] = ()
    computed: frozenset[Var] = frozenset()
    old_is_computed: bool = True
    variants: tuple[tuple[Var, Var], ...] = ()
    goal: Property | None = None

    @cached_property
    def variables(self) -> tuple[Var, ...]:
        """Every variable that is mentioned, in order of first appearance."""
        found: dict[Var, None] = {}
        for expr in (self.old, self.new, *self.conditions):
            found.update(dict.fromkeys(free_variables(expr)))
        if self.goal is not None:
            found.update(dict.fromkeys(variables_of(self.goal)))
        for given in self.given:
            found.setdefault(given.var)
            found.update(dict.fromkeys(variables_of(given.property)))
        for pair in self.variants:
            found.update(dict.fromkeys(pair))
        return tuple(found)

    def loosened(self, loose: Container[Var]) -> Question:
        """The question where the values of `loose` variables in `new` may differ in the sign of a zero."""
        names = {v.name for v in self.variables}
        variants = tuple(
            (var, Var(take_fresh(f"{var.name}'", names), var.dtype))
            for var in free_variables(self.new)
            if var in loose and var.dtype.is_float
        )
        values: dict[Var, Expr] = dict(variants)
        return replace(self, new=substitute(self.new, values), variants=variants)

    def renamed(self) -> tuple[Question, tuple[Var, ...]]:
        """The question in canonical form, variables named by their order, and the variables in that order."""
        variables = self.variables
        names = {v: Var(f"v{k}", v.dtype) for k, v in enumerate(variables)}
        values: dict[Var, Expr] = dict(names)
        given = tuple(Given(names[g.var], substitute_in_property(g.property, values)) for g in self.given)
        return (
            replace(
                self,
                new=substitute(self.new, values),
                old=substitute(self.old, values),
                given=given,
                conditions=tuple(substitute(c, values) for c in self.conditions),
                # A variable that is mentioned nowhere restricts nothing.
                computed=frozenset(names[v] for v in self.computed if v in names),
                variants=tuple((names[a], names[b]) for a, b in self.variants),
                goal=None if self.goal is None else substitute_in_property(self.goal, values),
            ),
            variables,
        )


def has_undef(expr: Expr) -> bool:
    """Whether an undefined value is evaluated somewhere in it."""
    return holds_any(expr, Undef)


def anything_will_do(question: Question) -> bool:
    """Whether the old program stores any value it likes."""
    return isinstance(question.old, Undef) and question.goal is None


def with_fresh_symbols(question: Question) -> Question:
    """The question with a new variable for each `undef` of the new expression."""
    taken = {v.name for v in question.variables}

    def visit(node: Node) -> Node:
        if isinstance(node, Undef):
            return Var(take_fresh("undef", taken), node.dtype)
        return map_children(node, visit)

    if not has_undef(question.new):
        return question
    new = visit(question.new)
    assert isinstance(new, Expr)
    return replace(question, new=new, old=new if question.goal is not None else question.old)


STRUCTURE = "symbolic"
LAWS = "laws"
ENUMERATION = "enumeration"
TRIALS = "trials"
REALS = "exact reals"


@dataclass(frozen=True, slots=True)
class ValueAnswer:
    """What is known of a claim about values.

    `proved`: under `fast_math`, none of which can be left out unless a smaller set was `unknown`; `reason` then says
    which were. `refuted`: under everything allowed; `model` was run, and refutes it. `unknown`: `reason` says why.
    `because`: BUDGET where a solver was not allowed to do more, CLOCK where one was stopped by the clock (or died) on
    the way; the latter is not to be kept.

    `model` gives variables by name the values (Python floats, integers, truth values) that refute the strictest
    question that failed: with a proof that needs fast-math assumptions, a case that shows that they are needed.
    `engine` names what decided. `queries` are what solvers answered, each self-contained; `laws` the named laws and
    axioms that were used.
    """

    status: Status
    fast_math: FastMathSet = IEEE
    engine: str = STRUCTURE
    reason: str | None = None
    model: Mapping[str, float | int] | None = None
    queries: tuple[SmtQuery, ...] = ()
    laws: tuple[str, ...] = ()
    because: frozenset[Because] = frozenset()

    @property
    def is_proved(self) -> bool:
        """Whether the claim holds."""
        return self.status is Status.PROVED

    @property
    def depends_on_clock(self) -> bool:
        """Whether it may come out otherwise next time."""
        return Because.CLOCK in self.because


def together(answers: Sequence[ValueAnswer]) -> ValueAnswer:
    """The first answer that is not proved, else that all are, under the fast-math assumptions that any of them
    needs.
    """
    failed = next((a for a in answers if not a.is_proved), None)
    if failed is not None:
        return failed
    return replace(
        next((a for a in answers if a.fast_math), answers[0]),
        fast_math=frozenset(flag for a in answers for flag in a.fast_math),
        queries=tuple(query for a in answers for query in a.queries),
        laws=tuple(dict.fromkeys(law for a in answers for law in a.laws)),
        because=frozenset[Because]().union(*(a.because for a in answers)),
    )
