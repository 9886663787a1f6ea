"""Small relations as isl has them and as lists of points, found without isl: with existential variables that nothing
explains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

import islpy as isl

Point = tuple[int, ...]
Rows = Sequence[Sequence[int]]
_D = isl.dim_type
_HIDDEN = (-24, 24)
_GRAINS = ((4, 3), (3, 4), (2, 3), (3, 2), (5, 2), (5, 3), (3, 5), (2, 2), (4, 4), (4, 2), (2, 4))


@dataclass(frozen=True)
class Small:
    """`rows` (constant, inputs, output, existential variable) are at least 0; `points` are inputs and output."""

    inputs: int
    rows: Rows
    points: frozenset[Point]

    def relation(self, ctx: isl.Context) -> isl.Map:
        """The relation, made anew."""
        rows = isl.Mat.alloc(ctx, len(self.rows), self.inputs + 3)
        for i, row in enumerate(self.rows):
            for j, number in enumerate(row):
                rows = rows.set_element_val(i, j, isl.Val(number, ctx))
        space = isl.Space.alloc(ctx, 0, self.inputs, 1)
        none = isl.Mat.alloc(ctx, 0, self.inputs + 3)
        return isl.Map.from_basic_map(
            isl.BasicMap.from_constraint_matrices(space, none, rows, _D.cst, _D.param, _D.in_, _D.out, _D.div)
        )

    def partners(self) -> Mapping[Point, list[Point]]:
        """The outputs of each input."""
        found: dict[Point, list[Point]] = defaultdict(list)
        for point in self.points:
            found[point[: self.inputs]].append(point[self.inputs :])
        return found


def _is_explained(known: Iterable[tuple[int, int]]) -> bool:
    """Whether an integer x has number + factor * x >= 0 for each pair: what each leaves of x, met."""
    low, high = _HIDDEN
    for number, factor in known:
        if factor > 0:
            low = max(low, -(number // factor))
        elif factor < 0:
            high = min(high, number // -factor)
        elif number < 0:
            return False
    return low <= high


def from_rows(inputs: int, rows: Rows, box: Sequence[range]) -> Small:
    """The relation of some rows, whose points lie in a box."""
    points = (
        point
        for point in product(*box)
        if _is_explained((row[0] + sum(a * b for a, b in zip(row[1:-1], point, strict=True)), row[-1]) for row in rows)
    )
    return Small(inputs, rows, frozenset(points))


def random_small(rng: Random) -> Small:
    """One or two inputs, one output, and an existential variable tied to them at one or two granularities."""
    inputs = rng.choice((1, 1, 2))
    width = inputs + 3
    box = [range(rng.randint(3, 6)) for _ in range(inputs + 1)]
    rows = []
    for axis, values in enumerate(box):
        rows.append([1 if k == axis + 1 else 0 for k in range(width)])
        rows.append([values[-1] if k == 0 else -1 if k == axis + 1 else 0 for k in range(width)])

    def window(row: list[int], size: int) -> None:
        rows.append(row)
        rows.append([size - row[0], *(-number for number in row[1:])])

    for _ in range(rng.randint(1, 2)):
        fine, coarse = rng.choice(_GRAINS)
        sign = rng.choice((1, -1))
        sides = [
            rng.choice((1, -1)) * rng.choice((coarse, coarse, 1, 2)) if rng.random() < 0.8 else 0 for _ in range(inputs)
        ]
        window(
            [rng.randint(-8, 8), *sides, sign * fine, -fine * coarse],
            rng.choice((fine - 1, coarse - 1, rng.randint(0, fine * coarse - 1))),
        )
        if rng.random() < 0.85:
            window([rng.randint(-1, coarse), *(0 for _ in sides), sign, -coarse], rng.randint(0, coarse - 1))
    rng.shuffle(rows)
    return from_rows(inputs, rows, box)


def points_of(points: isl.Set | isl.Map) -> set[Point]:
    """The points of a bounded set without parameters; of a relation, inputs then outputs."""
    flat = points.wrap().flatten() if isinstance(points, isl.Map) else points
    count = flat.dim(_D.set)
    found: list[isl.Point] = []
    flat.foreach_point(found.append)
    return {tuple(int(p.get_coordinate_val(_D.set, k).to_str()) for k in range(count)) for p in found}
