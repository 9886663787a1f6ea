"""Whether two programs access each cell in one order, against all pairs of their instances, and against the exact flow;
and that sets which programs share are those of what is known of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest
from tests.shares import one_in
from tests.verify.flow.test_simulation import holds, program, simulated

from layoutproof.ir.expr import Var, const, equal
from layoutproof.ir.notations.rewrite_text import parse_litmus
from layoutproof.ir.stmt import ForKind
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.flow.kept_order import KeptOrder
from layoutproof.verify.flow.models import RewriteModel
from layoutproof.verify.flow.sources import Agreement
from layoutproof.verify.isl.instance_search import Model
from layoutproof.verify.isl.instance_sets import Points, Workspace
from layoutproof.verify.isl.space import BudgetExceeded
from layoutproof.verify.program.instances import Dim, Guard, IterationDomain

CELLS = ("{i}", "{j}", "{i} + {j}", "2 * {i} + {j}", "3 - {i} + {j}", "6 - 2 * {i} + {j}", "3 * {i} + {j}")
ROWS, COLUMNS = 4, 3


@dataclass(frozen=True)
class Order:
    """Loops of the new program, outermost first, and where it is in the old one's."""

    loops: str
    row: str
    column: str

    @property
    def theta(self) -> str:
        """The line of the witness."""
        return f"# theta: 0 -> 0: lambda {', '.join(self.loops)}: [{self.row}, {self.column}]"

    def body(self, stored: str, loaded: str) -> str:
        """An update in these loops."""
        lines, place = [], {"i": f"({self.row})", "j": f"({self.column})"}
        for depth, loop in enumerate(self.loops):
            lines.append(f"{'    ' * depth}for {loop} in range({ROWS if loop == 'i' else COLUMNS}):")
        said = f"A[{self.row}, {self.column}]"
        lines.append(f"        B[{stored.format(**place)}] = B[{loaded.format(**place)}] + {said}")
        return "\n".join(lines)

    def instances(self) -> list[tuple[int, int]]:
        """The old program's instances in the order of the new one."""
        found = []
        for first, second in product(*(range(ROWS if loop == "i" else COLUMNS) for loop in self.loops)):
            names = dict(zip(self.loops, (first, second), strict=True))
            found.append((eval(self.row, {}, names), eval(self.column, {}, names)))
        return found


OLD = Order("ij", "i", "j")
ORDERS = (OLD, Order("ji", "i", "j"), Order("ij", "3 - i", "j"), Order("ij", "i", "2 - j"), Order("ji", "3 - i", "j"))


def keeps(order: Order, stored: str, loaded: str, *, loads: bool) -> bool:
    """Whether of two accesses of a cell the same comes first, looking at each pair: writes, and with `loads` loads and
    writes.
    """

    def events(instances: list[tuple[int, int]]) -> dict[tuple[str, int, int], tuple[int, int]]:
        found = {}
        for time, (i, j) in enumerate(instances):
            found["load", i, j] = (2 * time, eval(loaded.format(i=i, j=j)))
            found["store", i, j] = (2 * time + 1, eval(stored.format(i=i, j=j)))
        return found

    before, after = events(OLD.instances()), events(order.instances())
    for first, second in product(before, repeat=2):
        kinds = {first[0], second[0]}
        if before[first][1] != before[second][1] or kinds == {"load"} or ("load" in kinds and not loads):
            continue
        if (before[first] < before[second]) != (after[first] < after[second]):
            return False
    return True


def model_of(text: str) -> RewriteModel:
    """Both programs of a rewrite's text."""
    litmus = parse_litmus(text, "test")
    return RewriteModel.of(litmus.rewrite, Facts.of(litmus.rewrite.old), Facts.of(litmus.rewrite.new))


class Nothing:
    """What never knows that an order is kept."""

    def of_read(self, *_: object) -> Points | None:
        """Nothing."""
        return None

    def of_ends(self, *_: object) -> bool:
        """Nothing."""
        return False


@one_in(9)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("stored", CELLS)
@pytest.mark.parametrize("loaded", CELLS)
def test_an_order_is_kept_where_all_pairs_are(order: Order, stored: str, loaded: str) -> None:
    """What is found is what pairs of instances show, and where an order is kept, the exact flow agrees everywhere."""
    params = f"A: {ROWS} {COLUMNS} int32; B: 12 int32"
    bodies = program("before", OLD.body(stored, loaded), params), program("after", order.body(stored, loaded), params)
    model = model_of("\n".join((order.theta, *bodies)))
    kept, exact = KeptOrder(model, model.after), Agreement(model, model.after)
    exact._kept = Nothing()  # type: ignore[assignment]  # it stands in for one
    ((claim, points),) = model.matched[0]
    region = model.of_points(claim.new, points)
    new, old = (next(r for r in s.reads if r.data.name == "B_data") for s in (claim.new, claim.old))
    found = kept.of_read(claim, new, old, region)
    assert (found is not None) == keeps(order, stored, loaded, loads=True)
    assert kept.of_ends(old.data, new.data) == keeps(order, stored, loaded, loads=False)
    if found is not None:
        assert found.is_equal(exact.of_reads(claim, new, old, region)) and found.is_equal(region.named("n0"))
    if kept.of_ends(old.data, new.data):
        old_data, new_data, step = model.ends_of(model.entry("B_data"))
        box = model.cells_region(model.before, old_data)
        assert box.outside(exact.of_ends(old_data, new_data, step, box, "oout_B_data")).is_empty


UPDATES = """
for i in range(16):
    B[i] = 0
for i in range(16):
    for k in range(8):
        B[i] = B[i] + A[i, k]
"""
FUSED = """
for i in range(16):
    B[i] = 0
    for k in range(8):
        B[i] = B[i] + A[i, k]
"""
LATE = """
for i in range(16):
    for k in range(8):
        B[i] = B[i] + A[i, k]
    B[i] = 0
"""


@pytest.mark.parametrize("after, where, kept", [(FUSED, (0, 1), True), (LATE, (1, 0), False)])
def test_two_statements_in_one_loop(after: str, where: tuple[int, int], kept: bool) -> None:
    """An init that joins its reduction stays before it; one that comes after it does not."""
    theta = f"# theta: {where[0]} -> 0: lambda i: [i]\n# theta: {where[1]} -> 1: lambda i, k: [i, k]"
    params = "A: 16 8 int32; B: 16 int32"
    model = model_of("\n".join((theta, program("before", UPDATES, params), program("after", after, params))))
    found = KeptOrder(model, model.after)
    data = next(d for d in model.old.cells if d.name == "B_data")
    assert found.of_ends(data, data) == kept
    assert holds(simulated(theta, UPDATES, after, params)) == kept


def test_an_order_that_is_kept_of_fewer_writes_is_nothing() -> None:
    """A write of the old program without a counterpart may have been the last one."""
    before = "for i in range(8):\n    B[0] = A[i]"
    after = "for i in range(7):\n    B[0] = A[i]"
    theta, params = "# theta: 0 -> 0: lambda i: [i]", "A: 8 int32; B: 1 int32"
    model = model_of("\n".join((theta, program("before", before, params), program("after", after, params))))
    data = next(d for d in model.old.cells if d.name == "B_data")
    assert not KeptOrder(model, model.after).of_ends(data, data)
    assert not holds(simulated(theta, before, after, params))


def test_cells_that_become_one_are_not_in_order() -> None:
    """Writes of two cells, in any order, are not writes of one."""
    before = "for i in range(8):\n    B[i] = A[i]"
    after = "for i in range(8):\n    B[i // 2] = A[i]"
    theta, params = "# theta: 0 -> 0: lambda i: [i]", "A: 8 int32; B: 8 int32"
    model = model_of("\n".join((theta, program("before", before, params), program("after", after, params))))
    data = next(d for d in model.old.cells if d.name == "B_data")
    assert not KeptOrder(model, model.after).of_ends(data, data)


# What programs share

N, AT = Var("n"), Var("i")


def loop(extent: int | Var, *guards: Guard) -> IterationDomain:
    """One loop, with conditions."""
    end = const(extent, AT.dtype) if isinstance(extent, int) else extent
    return IterationDomain((Dim(AT, const(0, AT.dtype), end, ForKind.SERIAL),), guards)


@pytest.mark.parametrize("operations", [100_000, 200_000])
def test_models_are_shared_by_all_that_is_known(operations: int) -> None:
    """Neighbours that differ in one thing that is assumed, in a range, an extent or a guard have answers of their own,
    whichever was asked first.
    """

    def answers() -> list[bool]:
        at_one = equal(AT, 1)
        found = []
        for assumed, bounds in (
            ((N >= 1,), {}),
            ((equal(N, 1),), {}),
            ((N >= 1,), {N: (1, 1)}),
            ((N >= 1,), {N: (1, 2)}),
        ):
            model = Model.of((N,), assumed, bounds, operations)
            assert Model.of((N,), assumed, bounds, operations) is model
            for domain in (loop(N), loop(1), loop(2), loop(N, Guard(AT < 1)), loop(N, Guard(AT < 1, False))):
                found.append(model.search(domain, at_one).is_empty)
        return found

    wanted = [
        *(False, True, False, True, False),
        *(True, True, False, True, True),
        *(True, True, False, True, True),
        *(False, True, False, True, False),
    ]
    assert answers() == wanted and answers() == wanted


def test_workspaces_share_sets_by_all_that_is_known() -> None:
    """The same for the sets of a rewrite; and one whose budget was spent is of no use to the next."""
    one, two = (Workspace((N,), (N >= low,), {}) for low in (1, 2))
    again = Workspace((N,), (N >= 1,), {})
    assert again.ctx is one.ctx and two.ctx is not one.ctx
    assert again.instances(loop(N)) is one.instances(loop(N))
    for guards in ((), (Guard(AT < 1),), (Guard(AT < 1, False),)):
        sets = [each.instances(loop(N, *guards)).points for each in (one, two)]
        texts = [text.replace("i", "d0") for text in (str(s) for s in sets)]
        assert texts[0] != texts[1]
    assert not one.instances(loop(N)).points.is_equal(one.instances(loop(N, Guard(AT < 1))).points)
    with pytest.raises(BudgetExceeded), one.limited():
        raise BudgetExceeded(1)
    fresh = Workspace((N,), (N >= 1,), {})
    assert fresh.ctx is not one.ctx
    assert not fresh.instances(loop(N)).points.is_empty()
