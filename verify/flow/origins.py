"""Which values the old program computes: the only ones that licences restrict. Part of the trust base."""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.verify.flow.half import Half
from layoutproof.verify.flow.passing import passing_on
from layoutproof.verify.isl.coalesce import coalesced
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.pairing import Points, Region, Sources, no_points, only, part_of
from layoutproof.verify.statements import Read, ReadRole, Statement


@dataclass(slots=True)
class Computed:
    """The values that reads of one program find, as values of the old one: what a store that theta takes to one of the old
    program wrote (as long as matched stores store what their counterparts do, which is proved apart), and what the old program loads,
    whatever the data. Not what it may leave in place without looking, nor a literal infinity that is passed on, nor the results of
    updates of a reduction that is `regrouped`.
    """

    half: Half
    flow: Dataflow
    regrouped: Sources | None = None
    _values: Sources | None = None

    def is_computed(self, statement: Statement, read: Read, region: Region) -> bool:
        """Whether all values that a read finds on a region are values of the old program."""
        return region.outside(self.where(statement, read, region)).is_empty

    def where(self, statement: Statement, read: Read, region: Region) -> Points:
        """The part of a region on which what a read finds is a value of the old program."""
        if read.anywhere:
            return region.points.subtract(region.points)
        name = self.half.name(statement)
        flow = self.flow.sources(statement, read).intersect_domain(only(region.named(name)))
        known = self.half.in_old_terms(flow).intersect_range(self._of_the_old_program()).domain()
        return part_of(known, name, region.points)

    def _of_the_old_program(self) -> Sources:
        """The old instances that compute a value, and the places, initial cells too, where the old program surely looks."""
        if self._values is None:
            world = self.half.world
            values = written_down = no_points(world.encoder(()).space.universe())
            numbers = passing_on(world.old)
            for statement in world.old.statements:
                if statement.number in numbers:
                    written_down = written_down.union(only(world.before.domain(statement)))
                if all(read.role is not ReadRole.CURRENT for read in statement.reads):
                    values = values.union(only(world.before.domain(statement)))
                for read in statement.reads:
                    if read.sure and not read.anywhere:
                        values = values.union(world.before.sources(statement, read).range())
            values = values.subtract(written_down)
            self._values = coalesced(values if self.regrouped is None else values.subtract(self.regrouped))
        return self._values
