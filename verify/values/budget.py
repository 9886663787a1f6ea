"""How much work questions about values may cost, in units that do not depend on the machine, its load, or what was asked before."""

from __future__ import annotations

from dataclasses import dataclass

# How often bitwuzla asks whether to stop, in z3's units of work: about equal times on float queries.
POLL = 500


@dataclass(frozen=True, slots=True)
class ValueBudget:
    """`rlimit` bounds one query to z3, in z3's own units of work; `polls` one to bitwuzla, by how often it asks whether to go on. Both
    are a part of a second.

    A question asks no solver any more once it spent `question` units (z3's; a poll counts as `POLL`), and a check once its questions
    spent `check`: what is left gets what can be said without solvers. `seconds` is the wall-clock limit of one query, a safety net far
    above what the units allow. `trials` is the number of points tried before a solver is asked; `solvers` which are asked, in order,
    among those that are installed.
    """

    rlimit: int = 2_500_000
    polls: int = 1_000
    question: int = 3_000_000
    check: int = 6_000_000
    trials: int = 600
    seconds: float = 30.0
    solvers: tuple[str, ...] = ("bitwuzla", "z3")

    def units_of(self, engine: str) -> int:
        """The limit of one query, in the engine's own units."""
        return self.polls if engine == "bitwuzla" else self.rlimit

    def cost_of(self, engine: str, units: int) -> int:
        """An engine's own units as z3's."""
        return units * POLL if engine == "bitwuzla" else units


DEFAULT = ValueBudget()
QUICK = ValueBudget(rlimit=600_000, polls=300, question=700_000, check=2_000_000)
"""For questions of which many are asked and most do not matter."""
