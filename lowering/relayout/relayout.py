"""Layout changes as kernels that users call: `layoutproof.relayout`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutproof.ir.expr import Expr
from layoutproof.lowering.relayout.plan import schedule_copy
from layoutproof.lowering.relayout.program import Relayout, plain_program, read_relayout
from layoutproof.lowering.runtime.build import CKernel
from layoutproof.lowering.schedule import IllegalTransform, Schedule
from layoutproof.verify.maps.check_map import MapLike, ShapeLike
from layoutproof.verify.maps.map_report import MapReport

if TYPE_CHECKING:
    from layoutproof.verify.certificate.certificate import Certificate


class RelayoutKernel(CKernel):
    """A kernel that makes one layout change. `schedule` has the proved steps that made it, `map_report` what was proved of the map.

    Called with the array that is read it gives the one that is written; `raw(A=..., B=...)` takes both: A is logical, B physical.
    """

    def __init__(self, plain: CKernel, schedule: Schedule, map_report: MapReport) -> None:
        super().__init__(plain.name, plain.source, plain.library, {}, plain.report, plain.lowered, plain.assumptions)
        self.schedule = schedule
        self.map_report = map_report

    @property
    def certificate(self) -> Certificate:
        """Everything that was proved of the schedule and of its lowering, for others to check again."""
        return self.schedule.certificate


def relayout(
    index_map: MapLike,
    shape: ShapeLike,
    dtype: str = "float32",
    *,
    inverse: bool = False,
    pad_value: Any = 0,
    where: Expr | str | None = None,
    check: bool = True,
) -> RelayoutKernel:
    """The kernel of a pure layout change, by the best schedule that is proved.

    `index_map` is an IndexMap, a function, the text of a lambda, or two layout strings: `"NHWC->NCHW4c"`. `shape` is the logical shape,
    integers or names, of which `where` may say more: with names the kernel is for all of them. From the logical array to the physical
    one padding gets `pad_value`: a value, `undef` (anything), text or a function of the physical indices as pad values are, or None,
    which leaves it as it is; `inverse=True` is from the physical array to the logical one, without the padding.
    Large arrays are written past the cache, by as many threads as OpenMP has. `check` compares the kernel with the reference interpreter.
    Raises LayoutproofError for a map that is not proved to be injective, a shape that does not fit it, and an unknown type.
    """
    change = read_relayout(index_map, shape, dtype, inverse, pad_value, where)
    schedule = _scheduled(change)
    return RelayoutKernel(schedule.build("c", check=check), schedule, change.report)


def _scheduled(change: Relayout) -> Schedule:
    """The schedule of the plain program; of the one by the map's inverse, where what that does is shown and the other is not."""
    width = change.dtype.element.bytes
    try:
        return schedule_copy(plain_program(change), width)
    except IllegalTransform:
        if not change.inverse or change.report.inverse is None:
            raise
        return schedule_copy(plain_program(change, by_inverse=True), width)
