"""One of the two programs of a rewrite, as its no-ops are looked for: its flow, and which of its instances have a counterpart.

New instances that compute no old one are extra, old ones that no new one computes are dropped. What changes nothing may be left out on
either side. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutproof.verify.flow.world import NEW, OLD, World
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.pairing import Points, Region, Relation, part_of
from layoutproof.verify.statements import Statement, Statements


@dataclass(frozen=True, slots=True)
class Half:
    """A program with its flow. `kept` are, by statement number, the instances that have a counterpart in the other program."""

    world: World
    statements: Statements
    flow: Dataflow
    tag: str
    kept: Mapping[int, Sequence[Points]]

    @staticmethod
    def new(world: World) -> Half:
        """The new program of a rewrite."""
        kept = {number: [points for _, points in pairs] for number, pairs in world.matched.items()}
        return Half(world, world.new, world.after, NEW, kept)

    @staticmethod
    def old(world: World) -> Half:
        """The old program of a rewrite."""
        kept: dict[int, list[Points]] = {}
        for pairs in world.matched.values():
            for claim, _ in pairs:
                like = world.before.domain(claim.old)
                reached = part_of(world.step(claim).range(), f"{OLD}{claim.old.number}", like)
                kept.setdefault(claim.old.number, []).append(reached)
        return Half(world, world.old, world.before, OLD, kept)

    @property
    def is_old(self) -> bool:
        """Whether this is the old program."""
        return self.tag == OLD

    def name(self, statement: Statement) -> str:
        """The tuple name of a statement's instances."""
        return f"{self.tag}{statement.number}"

    def region(self, statement: Statement) -> Region:
        """All instances of a statement."""
        return self.world.region(self.flow, statement)

    def unmatched(self, statement: Statement) -> Region:
        """The instances of a statement without a counterpart."""
        region = self.region(statement)
        for points in self.kept.get(statement.number, ()):
            region = region.outside(points)
        return region

    def in_old_terms(self, origins: Relation) -> Relation:
        """What leads to this program's instances and initial cells, as leading to those of the old one."""
        return origins if self.is_old else origins.apply_range(self.world.theta)
