"""Where counterexamples are looked for: small instances of a question with a symbolic shape, and two indices with one
image in a window of the inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, IntImm, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.semantics import Trap
from layoutproof.ir.visit import free_variables, nodes_of, substitute
from layoutproof.verify.algebra.enumeration import Table, TooLarge, duplicate, tabulate
from layoutproof.verify.maps.decision import Collision
from layoutproof.verify.maps.problem import Part, Problem

MAX_INSTANCES = 400
_SMALL = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17)
_LARGEST = 4096
_TRIED = 1_500
_LARGE = (20, 24, 30, 32, 48, 64, 100, 128, 256, 1000, 1024)


@dataclass(frozen=True, slots=True)
class Instance:
    """Values of the symbols that satisfy the side condition, with the extents they give."""

    values: Mapping[str, int]
    extents: tuple[int, ...]

    @property
    def points(self) -> int:
        """The number of logical indices."""
        return prod(self.extents)


def constants_of(problem: Problem) -> list[int]:
    """The numbers in the question: extents just below, at and above them are good tests."""
    return _constants(problem, _LARGEST)


def _constants(problem: Problem, largest: int | None) -> list[int]:
    exprs = [*problem.index_map.outputs, problem.where, *problem.shape]
    found = {node.value for expr in exprs for node in nodes_of(expr, IntImm)}
    return sorted(n for n in found if 1 < n and (largest is None or n <= largest))


@lru_cache(maxsize=64)
def _choices(values: tuple[int, ...], count: int) -> tuple[tuple[int, ...], ...]:
    """Every choice of `count` values, those with small ones first."""
    return tuple(sorted(product(values, repeat=count), key=lambda t: (max(t), sum(t), t)))


def instances(problem: Problem, limit: int = MAX_INSTANCES, points: int | None = _LARGEST) -> Iterator[Instance]:
    """Small nonempty instances, smallest values first, deterministic: at most `limit`, of at most `points` indices."""
    if not problem.symbols:
        yield Instance({}, problem.numbers(range(len(problem.extents))))
        return
    special = constants_of(problem)[:6]
    values = sorted({*_SMALL, *(v + d for v in special for d in (-1, 0, 1)), *(2 * v for v in special)})
    values = values[: max(3, int(_TRIED ** (1 / len(problem.symbols))))]
    found = 0
    for choice in _choices(tuple(values), len(problem.symbols)):
        candidate = instance_at(problem, dict(zip(problem.symbols, choice, strict=True)))
        if candidate is not None and (points is None or candidate.points <= points):
            yield candidate
            found += 1
            if found >= limit:
                return


def lopsided_instances(problem: Problem, points: int) -> Iterator[Instance]:
    """Instances with one symbol larger than the others, deterministic: some hundreds, of at most `points` indices."""
    telling = [n + d for n in _constants(problem, None)[-8:] for d in (-1, 0, 1)]
    for large in dict.fromkeys([*_LARGE, *telling]):
        for name in problem.symbols:
            for small in (1, 0, 2, 3):
                values = {other: large if other == name else small for other in problem.symbols}
                candidate = instance_at(problem, values) if large > small else None
                if candidate is not None and candidate.points <= points:
                    yield candidate


def instance_at(problem: Problem, values: Mapping[str, int]) -> Instance | None:
    """The instance with these values, where they satisfy the side condition and every extent is at least 1."""
    try:
        if not evaluate(problem.where, values):
            return None
        extents = tuple(int(evaluate(e, values)) for e in problem.shape)
    except Trap:
        return None
    return Instance(dict(values), extents) if all(e >= 1 for e in extents) else None


def at_instance(problem: Problem, expr: Expr, instance: Instance) -> Expr:
    """An expression with the symbols replaced by the instance's values."""
    names = set(problem.symbols)
    return substitute(
        expr, {v: const(instance.values[v.name], v.dtype) for v in free_variables(expr) if v.name in names}
    )


def concrete_map(problem: Problem, instance: Instance) -> IndexMap:
    """The map with the symbols replaced by the instance's values."""
    given = problem.index_map
    return IndexMap(given.inputs, tuple(at_instance(problem, o, instance) for o in given.outputs), given.separators)


WINDOW = 1 << 12


def collision_in_window(part: Part) -> Collision | None:
    """Two indices with one image in a small window of the inputs, or in a small instance of a symbolic shape."""
    if part.problem.concrete:
        return _collision(part, part.outputs, part.extents, {})
    for instance in instances(part.problem, 200):
        outputs = [at_instance(part.problem, o, instance) for o in part.outputs]
        found = _collision(part, outputs, tuple(instance.extents[k] for k in part.inputs), dict(instance.values))
        if found is not None:
            return found
    return None


def _collision(part: Part, outputs: list[Expr], extents: tuple[int, ...], symbols: dict[str, int]) -> Collision | None:
    window = list(extents)
    while prod(window) > WINDOW:
        longest = window.index(max(window))
        window[longest] = (window[longest] + 1) // 2
    units = part.unit_names
    try:
        table = tabulate(outputs, [*part.names, *units], [*window, *(1 for _ in units)])
        box = [int(column.max()) + 1 for column in table.columns]
        twice = duplicate(table.flat(box))
    except TooLarge:
        return None
    if twice is None:
        return None
    return collision_at(part, table, twice, symbols)


def collision_at(part: Part, table: Table, twice: tuple[int, int], symbols: Mapping[str, int]) -> Collision:
    """The two points of a table at which it has one image."""
    count = len(part.inputs)
    first, second = (dict(zip(part.inputs, table.point(position)[:count], strict=True)) for position in twice)
    return Collision(first, second, symbols)


def two_values(k: int, part: Part) -> Collision | None:
    """Two values of an input that no output uses, in some instance."""
    for instance in instances(part.problem, points=None):
        if instance.extents[k] > 1:
            return Collision({k: 0}, {k: 1}, instance.values)
    return None
