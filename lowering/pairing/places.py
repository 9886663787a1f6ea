"""Which instances of two statements look at the same places: the same cells of parameters, the same values of index arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from layoutproof.ir.expr import Expr, Var
from layoutproof.lowering.pairing.sides import Side
from layoutproof.lowering.pairing.trees import Way
from layoutproof.verify.flow.models import NEW, OLD, World
from layoutproof.verify.flow.statement_reader import Read, Statement
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.instance_sets import Link, function_between
from layoutproof.verify.isl.proposing import every_pair

_AT = "at"


@dataclass(slots=True)
class Places:
    """Both programs, and where the cells of parameters went."""

    world: World
    new: Side
    old: Side

    def shared(self, new: Statement, old: Statement, way: Way, link: Link) -> Link:
        """The pairs of instances of a link whose loads of parameters, index arithmetic and written cells of parameters agree."""
        for mine, theirs in self.reads_of(new, old, way):
            found = self.of_loads(new, mine, old, theirs)
            if found is not None:
                link = link.intersect(found)
        for number, other in way.indices:
            found = self.of_indices(new, number, old, other)
            if found is not None:
                link = link.intersect(found)
        step = self.cells_of(old.data)
        if step is not None and new.data.name == self.world.entry(old.data.name).new_data:
            link = link.intersect(self.new.access(new).apply_range(step.reverse()).apply_range(self.old.access(old).reverse()))
        return link

    @staticmethod
    def reads_of(new: Statement, old: Statement, way: Way) -> Iterator[tuple[Read, Read]]:
        """The pairs of loads of a way, without those of which integer sets do not know where they look."""
        mine, theirs = {read.var: read for read in new.reads}, {read.var: read for read in old.reads}
        for first, second in way.loads:
            if first in mine and second in theirs and not mine[first].anywhere and not theirs[second].anywhere:
                yield mine[first], theirs[second]

    def of_loads(self, new: Statement, mine: Read, old: Statement, theirs: Read) -> Link | None:
        """All pairs of instances in which two loads of a parameter that nobody writes look at one cell; a load that does not happen looks
        nowhere and allows all. None where this says nothing.
        """
        if mine.data in self.new.written or theirs.data in self.old.written:
            return None
        step = self.cells_of(theirs.data)
        if step is None:
            return None
        together = self.new.access(new, mine).apply_range(step.reverse()).apply_range(self.old.access(old, theirs).reverse())
        return together.union(self.idle(new, mine, old))

    def idle(self, new: Statement, read: Read, old: Statement) -> Link:
        """All pairs of instances in which a load of the new statement does not happen."""
        return every_pair(self.new.domain(new).subtract(self.new.access(new, read).domain()), self.old.domain(old))

    def cells_of(self, data: Var) -> Link | None:
        """Where the cells of a parameter went; None for a temporary."""
        if all(data != buffer.data for buffer in self.world.rewrite.old.buffers):
            return None
        return self.world.cells(self.world.entry(data.name), f"{OLD}in_", f"{NEW}in_")

    def of_indices(self, new: Statement, first: Expr, old: Statement, second: Expr) -> Link | None:
        """All pairs of instances in which two numbers are equal; None where integer sets cannot say them."""
        try:
            mine = function_between(self.world.encoder_of(new.dims), self.new.name(new), [first], _AT)
            theirs = function_between(self.world.encoder_of(old.dims), self.old.name(old), [second], _AT)
        except NotQuasiAffine:
            return None
        return mine.apply_range(theirs.reverse())
