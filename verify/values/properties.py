"""What may be known of a value: the vocabulary of facts and of invariants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.subst import substitute
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables

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
    """The condition of a `Holds`, said of `value`."""
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
