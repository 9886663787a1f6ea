"""A rewrite rule as data: what it matches, what it becomes, and when. The simplifier applies rules; a prover proves each one.

A rule claims: for every value of its variables that satisfies `condition`, `lhs` has a value, and `rhs` has the same one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from layoutproof.ir.expr import TRUE, Expr, Var, require
from layoutproof.ir.visit import free_variables


class Domain(StrEnum):
    """What the integers of a rule are: mathematical ones (index arithmetic) or values of a fixed width, which wrap."""

    INDEX = "index"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Rule:
    """`lhs` becomes `rhs` where `condition` holds.

    `variables` stand for any expression of their type; in the index domain their integer type is a placeholder: they range over all
    integers. Truth values mean the same in both domains. `source` is the file and line that states the rule.
    Raises TypeError for sides of different types and for a variable of the right side or condition that `variables` lacks.
    """

    name: str
    variables: tuple[Var, ...]
    lhs: Expr
    rhs: Expr
    condition: Expr = TRUE
    domain: Domain = Domain.INDEX
    source: str = ""

    def __post_init__(self) -> None:
        require(self.lhs.dtype == self.rhs.dtype, f"rule {self.name} turns a {self.lhs.dtype} into a {self.rhs.dtype}")
        require(self.condition.dtype.is_bool, f"the condition of rule {self.name} is a {self.condition.dtype}")
        known = set(self.variables)
        for part in (self.lhs, self.rhs, self.condition):
            unknown = [v.name for v in free_variables(part) if v not in known]
            require(not unknown, f"rule {self.name} uses {', '.join(unknown)}, which it does not declare")
