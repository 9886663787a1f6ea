"""The count of a run, and the exit code that follows from it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from layoutproof.cli.gate.outcome import Fate, Outcome

EXIT_PASSED, EXIT_REFUTED, EXIT_INPUT, EXIT_UNKNOWN = 0, 1, 2, 3


@dataclass(slots=True)
class Summary:
    """What a run came to: outcomes by verdict, findings by fate and code.

    The words under `verdicts` are those of verdicts, and `error` for an item that is no right input.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    fates: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    items: int = 0
    failing: int = 0
    cached: int = 0

    def add(self, outcome: Outcome) -> None:
        """Count one outcome, whose findings have their fate."""
        self.items += 1
        self.cached += outcome.cached
        self.verdicts[outcome.word] += 1
        for finding in outcome.findings:
            self.fates[finding.fate.value] += 1
            self.codes[finding.code] += 1
            if finding.fate is Fate.FAILS:
                self.failed["error" if finding.status is None else finding.status] += 1
        self.failing += not outcome.passes
        if not outcome.passes and all(finding.fate is not Fate.FAILS for finding in outcome.findings):
            # It does not say why it is not proved, which is no reason to let it pass.
            self.failed[outcome.word] += 1

    @property
    def exit_code(self) -> int:
        """0 where nothing fails the run; else of the worst that does: refuted, wrong input, unknown or vacuous."""
        if self.failed["refuted"]:
            return EXIT_REFUTED
        if self.failed["error"]:
            return EXIT_INPUT
        return EXIT_UNKNOWN if self.failed else EXIT_PASSED
