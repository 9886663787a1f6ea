"""One question about values, in the form that every engine takes: is the new expression the old one, wherever the hypotheses hold?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.subst import substitute, take_fresh
from layoutproof.ir.visit import free_variables
from layoutproof.verify.values.properties import Given, Property, substitute_in_property, variables_of


@dataclass(frozen=True)
class Question:
    """Is `new` value-identical to `old` for all values that satisfy `given` and `conditions`?

    `computed` are variables whose values the old program computes; with `old_is_computed` so are the sub-expressions of `old`, each
    where it is evaluated, and then a variable of `computed` that stands in `old` counts only where it is evaluated there: what stands in
    a branch that is not taken may be a value that the old program never looks at. Licences restrict these and nothing else.

    `twins` are pairs of variables, the old program's and the new one's, whose values may differ in the sign of a zero and in nothing
    else; the first stands in `old` and the hypotheses, the second in `new`.

    With a `goal` the question is another: does `new`, where it does not trap, have that property? `old` is then `new`.
    """

    new: Expr
    old: Expr
    given: tuple[Given, ...] = ()
    conditions: tuple[Expr, ...] = ()
    computed: frozenset[Var] = frozenset()
    old_is_computed: bool = True
    twins: tuple[tuple[Var, Var], ...] = ()
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
        for pair in self.twins:
            found.update(dict.fromkeys(pair))
        return tuple(found)

    def renamed(self) -> tuple[Question, tuple[Var, ...]]:
        """The same question with variables named by their order, and the variables in that order: the cache's canonical form."""
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
                computed=_renamed(self.computed, names),
                twins=tuple((names[a], names[b]) for a, b in self.twins),
                goal=None if self.goal is None else substitute_in_property(self.goal, values),
            ),
            variables,
        )


def _renamed(variables: Iterable[Var], names: dict[Var, Var]) -> frozenset[Var]:
    # A variable that is mentioned nowhere restricts nothing.
    return frozenset(names[v] for v in variables if v in names)


def make_question(
    new: Expr,
    old: Expr,
    given: Sequence[Given] = (),
    conditions: Sequence[Expr] = (),
    computed: Iterable[Var] = frozenset(),
    old_is_computed: bool = True,
    loose: Iterable[Var] = frozenset(),
) -> Question:
    """A question from what callers have. Raises ValueError where the two expressions have different types."""
    if new.dtype != old.dtype:
        raise ValueError(f"a {new.dtype} is compared with a {old.dtype}")
    twins = _twins(new, (new, old, *conditions, *(v for g in given for v in (g.var, *variables_of(g.property)))), frozenset(loose))
    values: dict[Var, Expr] = dict(twins)
    return Question(substitute(new, values), old, tuple(given), tuple(conditions), frozenset(computed), old_is_computed, twins)


def _twins(new: Expr, mentioned: Iterable[Expr], loose: frozenset[Var]) -> tuple[tuple[Var, Var], ...]:
    """For each loose variable of `new`, the one that stands for its value in the new program."""
    names = {v.name for expr in mentioned for v in free_variables(expr)}
    twins: list[tuple[Var, Var]] = []
    for var in free_variables(new):
        if var in loose and var.dtype.is_float:
            name = take_fresh(f"{var.name}'", names)
            twins.append((var, Var(name, var.dtype)))
    return tuple(twins)
