"""When the initial values of reductions are stored, as integer sets: before the first executed update of a spatial instance, or when
the reduction is over. Part of the trust base.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.verify.isl.coalesce import coalesced
from layoutproof.verify.isl.extremes import least
from layoutproof.verify.isl.library import isl
from layoutproof.verify.isl.moments import Moment, Time
from layoutproof.verify.isl.workspace import Instances, Workspace
from layoutproof.verify.statement import Reduction


@dataclass(frozen=True, slots=True)
class Beginning:
    """The instances (over the dims around the init) that happen at an update, `first` leading to it, and those that happen `late`;
    both disjoint.
    """

    workspace: Workspace
    reduction: Reduction
    first: isl.Map
    late: isl.Set

    @property
    def around(self) -> int:
        """How many dims are around the init."""
        return int(self.late.dim(isl.dim_type.set))

    def restrict(self, points: isl.Set) -> isl.Set:
        """The instances of a statement in the init that happen."""
        inner = int(points.dim(isl.dim_type.set)) - self.around
        happens = coalesced(self.first.domain().union(self.late))
        return coalesced(points.intersect(happens.add_dims(isl.dim_type.set, inner)))

    def moments(self, instances: Instances, time: Time) -> list[Moment]:
        """The two times of something that happens in the init."""
        inner = instances.space.dims[self.around :]
        reach = self.first
        if inner:
            reach = reach.flat_product(isl.Map.identity(isl.Space.map_from_set(self.workspace.space(inner).space)))
        whole = self.workspace.space((*(dim.var.name for dim in self.reduction.updates.dims), *inner))
        early = instances.points.intersect(reach.domain())
        found = [Moment(whole, (0, *time), early, reach.intersect_domain(early))]
        if self.reduction.late is not None:
            late = instances.points.intersect(self.late.add_dims(isl.dim_type.set, len(inner)))
            if not late.is_empty():
                found.append(Moment(instances.space, (0, *self.reduction.late.time, *time[len(self.reduction.updates.time) :]), late))
        return found


def beginning_of(workspace: Workspace, reduction: Reduction) -> Beginning:
    """When the initial values of a reduction are stored. Raises NotModelled."""
    updates = workspace.instances(reduction.updates)
    around = workspace.space([dim.var.name for dim in reduction.dims])
    towards = updates.map_to([dim.var for dim in reduction.dims])
    late = workspace.instances(reduction.late) if reduction.late is not None else None
    if all(dim.var in reduction.key for dim in reduction.dims[reduction.outer :]):
        first = least(towards.reverse())
        rest = coalesced(late.points.subtract(first.domain())) if late is not None else around.empty()
        return Beginning(workspace, reduction, first, rest)
    # Several instances may have one key: the earliest counts.
    told = [*(dim.var for dim in reduction.dims[: reduction.outer]), *reduction.key]
    keys = updates.map_to(told)
    first = coalesced(towards.intersect_domain(least(keys.reverse()).range()).reverse())
    if late is None:
        return Beginning(workspace, reduction, first, around.empty())
    others = late.map_to(told)
    others = coalesced(others.subtract(others.intersect_range(keys.range())))
    return Beginning(workspace, reduction, first, coalesced(least(others.reverse()).range()))
