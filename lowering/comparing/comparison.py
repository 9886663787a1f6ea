"""What a comparison of two programs found: plain data, and the rewrite that it proved, where it proved one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from layoutproof.ir.expr import Expr
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.lowering.pairing.question import Furthest
from layoutproof.verify.values.fast_math import Licences
from layoutproof.verify.verdict.verdict import Status, Verdict, worst

if TYPE_CHECKING:
    from layoutproof.verify.certificate.certificate import Certificate

PRIMITIVE = "compare"


@dataclass(frozen=True, slots=True)
class BufferLayout:
    """How a parameter of the program before lies in the program after.

    `buffer` is its name before, `stored_as` its name after. `index_map` is the map's text, from logical to physical indices, and
    `pad_value` the contract of the padding (None: there is none, or nobody may touch it; `undef`: it holds anything; else the text of its
    value). `layout_given` and `pad_given` say whether the caller stated them; what was not given was found.
    """

    buffer: str
    stored_as: str
    index_map: str
    pad_value: str | None
    layout_given: bool
    pad_given: bool

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "buffer": self.buffer,
            "stored_as": self.stored_as,
            "index_map": self.index_map,
            "pad_value": self.pad_value,
            "layout_given": self.layout_given,
            "pad_given": self.pad_given,
        }


@dataclass(frozen=True)
class Comparison:
    """The answer to whether `after` does what `before` does, up to layouts of parameters.

    `layouts` are those of the parameters that lie differently, as given or found. The first of `verdicts` answers the question as a whole;
    the others are the checker's on the rewrite from `before` to `after` (with the layout records that its callers are told of), and
    missing where no witness was found. `rewrite` is what they are about, None where no witness was found; `furthest` how far the search
    came then. `where` is what was taken for granted of symbols (what the caller vouched for, and what `before` assumes), `allowed` the
    float licences that proofs might use, `seconds` the wall-clock time of it all.
    """

    before: PrimFunc
    after: PrimFunc
    verdicts: tuple[Verdict, ...]
    layouts: tuple[BufferLayout, ...] = ()
    rewrite: Rewrite | None = None
    furthest: Furthest | None = None
    where: Expr | None = None
    allowed: Licences = frozenset()
    seconds: float = 0.0

    @property
    def status(self) -> Status:
        """The worst verdict's status."""
        return worst(verdict.status for verdict in self.verdicts)

    @cached_property
    def strictness(self) -> tuple[str, ...]:
        """The float licences that the proof rests on, by name; none where it holds bit for bit."""
        return tuple(sorted({licence for verdict in self.verdicts for licence in verdict.strictness}))

    @property
    def arguments(self) -> dict[str, Any]:
        """The layouts, as the arguments of a step in a report and a certificate."""
        return {"layouts": [layout.to_dict() for layout in self.layouts]}

    @property
    def certificate(self) -> Certificate:
        """What was proved, for others to check again. Raises ValueError where not all is proved."""
        from layoutproof.verify.certificate.certificate import certify
        from layoutproof.verify.checker import StepRecord

        if self.rewrite is None or self.status is not Status.PROVED:
            raise ValueError(f"there is no certificate of a comparison that is {self.status.value}")
        record = StepRecord(PRIMITIVE, self.arguments, self.rewrite, self.where, self.allowed)
        return certify([record], self.before.name)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: the keys of a schedule's report, with one step, and how far a search came that found nothing."""
        step = {"primitive": PRIMITIVE, "arguments": self.arguments, "obligations": [verdict.to_dict() for verdict in self.verdicts]}
        return {
            "program": self.before.name,
            "after": self.after.name,
            "verdict": self.status.value,
            "steps": [step],
            "layouts": [layout.to_dict() for layout in self.layouts],
            "strictness": list(self.strictness),
            "furthest": self.furthest.to_dict() if self.furthest is not None else None,
            "seconds": self.seconds,
            "certificate": None,
        }
