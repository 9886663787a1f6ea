"""Where two programs may differ, read off from where a proof got stuck: cells of parameters, and sizes, for runs to try
first. Nothing rests on any of this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from layoutproof.ir.expr import Var
from layoutproof.verify.flow.matched_instances import Match
from layoutproof.verify.flow.models import NEW, RewriteModel
from layoutproof.verify.flow.observable import FinalState
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.instance_sets import Points, only, part_of
from layoutproof.verify.isl.proposing import Sampled, only_at, some_points
from layoutproof.verify.isl.space import BudgetExceeded
from layoutproof.verify.program.statement import NotModelled


@dataclass(frozen=True, slots=True)
class SuspectCell:
    """A cell of a parameter: its data variable's name and the index, with `is_new` in the new program's array."""

    data: str
    index: tuple[int, ...]
    is_new: bool


_OPERATIONS = 300_000  # of isl, for everything here
_POINTS, _FOLLOWED = 12, 4  # of a set at the beginning, and of each one on the way
_MEMORIES = 6  # on a way to a parameter


@dataclass(slots=True)
class Suspicion:
    """What failed where; `found` tells it in numbers."""

    rewrite_model: RewriteModel
    failed: list[FinalState | Match] = field(default_factory=list)
    cells: list[SuspectCell] = field(default_factory=list)
    sizes: list[dict[str, int]] = field(default_factory=list)

    def found(self) -> tuple[list[SuspectCell], list[dict[str, int]]]:
        """Cells to look at first, and values of the symbols by name; as far as isl gets."""
        workspace = self.rewrite_model.workspace
        usual, workspace.operations = workspace.operations, _OPERATIONS
        try:
            with workspace.limited():
                for each in self.failed:
                    self._look(each)
        except (NotModelled, NotQuasiAffine, BudgetExceeded):
            pass  # what was found until then is good enough
        finally:
            workspace.operations = usual
        return list(dict.fromkeys(self.cells)), self.sizes

    def _look(self, failed: FinalState | Match) -> None:
        if isinstance(failed, FinalState):
            if failed.where is not None:
                for part in (self._not_written(failed, failed.where.points), failed.where.points):
                    self._tell(failed.name, some_points(part, _POINTS), is_new=failed.is_new)
            return
        statement, after = failed.claim.new, self.rewrite_model.after
        points = some_points(failed.region.points, _POINTS)
        self._sized(points)
        instances = only_at(failed.region.points, points).set_tuple_name(f"{NEW}{statement.number}")
        self._follow(statement.data, instances.apply(after.access(statement)), ())

    def _not_written(self, failed: FinalState, where: Points) -> Points:
        """The cells that the new program leaves as they are, of a memory whose cells stay where they are."""
        model = self.rewrite_model
        data = next((data for data in model.new.cells if data.name == failed.name), None)
        if data is None or model.moved(failed.name):
            return where.subtract(where)
        kept = only(model.after.cell_set(data))
        found = part_of(model.after.final(data).intersect_range(kept).domain(), f"{NEW}out_{data.name}", where)
        name = where.get_tuple_name() if where.has_tuple_name() else None
        found = found.set_tuple_name(name) if name is not None else found.reset_tuple_id()
        return where.intersect(found)

    def _follow(self, data: Var, cells: Points, seen: tuple[Var, ...]) -> None:
        """From cells of a memory to cells of parameters that depend on them."""
        if cells.is_empty():
            return
        if data not in self.rewrite_model.new.program.temporaries:
            self._tell(data.name, some_points(cells, _POINTS), is_new=True)
            return
        few = only_at(cells, some_points(cells, _FOLLOWED))
        if data not in seen and len(seen) < _MEMORIES:
            for target, reached in self._readers(data, few):
                self._follow(target, reached, (*seen, data))

    def _readers(self, data: Var, cells: Points) -> Iterator[tuple[Var, Points]]:
        """What is written where these cells are read."""
        after = self.rewrite_model.after
        for statement in self.rewrite_model.new.statements:
            for read in statement.reads:
                if read.data == data and not read.anywhere:
                    instances = after.access(read, statement).intersect_range(cells).domain()
                    yield statement.data, instances.apply(after.access(statement))

    def _tell(self, name: str, points: Sequence[Sampled], *, is_new: bool) -> None:
        self._sized(points)
        self.cells += [SuspectCell(name, point.coordinates, is_new) for point in points if not point.symbols]

    def _sized(self, points: Sequence[Sampled]) -> None:
        self.sizes += [dict(point.symbols) for point in points if point.symbols and point.symbols not in self.sizes]
