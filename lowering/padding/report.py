"""What a search for pad values found: by candidate, which guards may go, under which licences; as a table, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from layoutproof.lowering.padding.values import CandidateValue
from layoutproof.verify.verdict.verdict import Status


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a guard may go. `strictness` lists the licences that the proof needs, none for a proof bit for bit; `wrapped` says that
    loads must take their index modulo the extent; `claim` and `reason` are of what is not proved; `leaves` says that an access that
    leaves its buffer stands in the way: a wrapped index may help.
    """

    status: Status
    strictness: tuple[str, ...] = ()
    wrapped: bool = False
    claim: str | None = None
    reason: str | None = None
    leaves: bool = False

    @property
    def goes(self) -> bool:
        """Whether it is proved that the guard may go."""
        return self.status is Status.PROVED

    def __str__(self) -> str:
        if self.goes:
            under = f"goes with {' '.join(self.strictness)}" if self.strictness else "goes, bit for bit"
            return f"{under}, its accesses wrapped" if self.wrapped else under
        word = "refuted" if self.status is Status.REFUTED else "not decided"
        return f"stays: {word}: {self.claim}" if self.claim is not None else f"stays: {word}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "status": self.status.value,
            "strictness": list(self.strictness),
            "wrapped": self.wrapped,
            "claim": self.claim,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate: the outcome for each guard, by its text, and, where several may go, for all of these `together`.

    `refused` says why the buffer cannot even be stored so, or why a later step does not hold.
    """

    candidate: CandidateValue
    outcomes: Mapping[str, Outcome]
    together: Outcome | None = None
    refused: str | None = None

    @property
    def removed(self) -> tuple[str, ...]:
        """The guards that may go."""
        return tuple(guard for guard, outcome in self.outcomes.items() if outcome.goes)

    @property
    def cost(self) -> tuple[int, int]:
        """For comparisons: guards that stay, then licences that are needed."""
        licences = {word for outcome in (*self.outcomes.values(), *self._together) for word in outcome.strictness}
        apart = self.together is not None and not self.together.goes
        return len(self.outcomes) - (1 if apart else len(self.removed)), len(licences)

    @property
    def _together(self) -> tuple[Outcome, ...]:
        return () if self.together is None else (self.together,)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        outcomes = {guard: outcome.to_dict() for guard, outcome in self.outcomes.items()}
        together = None if self.together is None else self.together.to_dict()
        named = {"pad_value": self.candidate.pad, "why": self.candidate.why}
        return {**named, "guards": outcomes, "together": together, "refused": self.refused}


@dataclass(frozen=True, slots=True)
class PadValueReport:
    """The pad values tried for `buffer`, stored by `index_map`, and what each does to the guards of `block`."""

    block: str
    buffer: str
    index_map: str
    rows: tuple[Row, ...]

    @property
    def guards(self) -> tuple[str, ...]:
        """The guards that were tried, in the order of the text."""
        return tuple(dict.fromkeys(guard for row in self.rows for guard in row.outcomes))

    @property
    def best(self) -> Row | None:
        """The first row that removes the most guards with the fewest licences; None where no candidate removes any."""
        able = [row for row in self.rows if row.removed]
        return min(able, key=lambda row: row.cost) if able else None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        rows = [row.to_dict() for row in self.rows]
        return {"block": self.block, "buffer": self.buffer, "index_map": self.index_map, "guards": list(self.guards), "candidates": rows}

    def __str__(self) -> str:
        lines = [f"pad values for {self.buffer} in block {self.block}, stored by `{self.index_map}`"]
        guards = self.guards
        lines += [f"  guard {number}: {guard}" for number, guard in enumerate(guards)]
        width = max((len(str(row.candidate)) for row in self.rows), default=0)
        for row in self.rows:
            said = [f"guard {guards.index(guard)} {outcome}" for guard, outcome in row.outcomes.items()]
            if row.together is not None:
                said.append(f"all of these together: {row.together}")
            if row.refused is not None:
                said = [f"refused: {row.refused}"]
            for number, text in enumerate(said or ["no guard is left"]):
                name = str(row.candidate) if number == 0 else ""
                lines.append(f"  {name:<{width}}  {text}")
        best = self.best
        lines.append("no candidate removes a guard" if best is None else f"best: {best.candidate} ({best.candidate.why})")
        return "\n".join(lines)
