"""The question that planning solves, as plain data: calls with their variants, values with their sizes, what is fixed.

A *variant* of a call gives each operand and result a layout. A value is made in the layout that its producer's variant has for it, and
rewritten, once for each other layout, where consumers want it otherwise; a rewrite may start from what another one made. Constants are
stored in any layout for nothing. An input or output whose layout may be chosen is a call too, of no function: it makes the value, or uses
it, in any of some layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from layoutproof.graph.planning.layouts import Layout
from layoutproof.graph.planning.moves import Move, cheapest_moves
from layoutproof.ir.primfunc import PrimFunc


@dataclass(frozen=True, slots=True)
class Variant:
    """Layouts of the operands and of the results of a call, in order, and of the temporaries that change, by name.

    Where results have padding that holds something, the function fills it, or, `through`, computes it from that of its operands.
    `function` is what a user gave in the operator's place.
    """

    operands: tuple[Layout, ...]
    results: tuple[Layout, ...]
    temporaries: tuple[tuple[str, Layout], ...] = ()
    through: bool = False
    function: PrimFunc | None = None


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call, by the roots of its values. `variants` are what may be chosen, in terms of the roots; there is at least one.

    `own` are the same in terms of the function's arrays, which differ where layout operators stand between. `costs` is what a variant
    costs by itself, the bytes of padding that it fills; nothing where it is empty.
    """

    operands: tuple[str, ...]
    results: tuple[str, ...]
    variants: tuple[Variant, ...]
    own: tuple[Variant, ...]
    costs: tuple[int, ...] = ()

    def cost(self, number: int) -> int:
        """What a variant costs by itself."""
        return self.costs[number] if self.costs else 0

    def needs(self, number: int, name: str) -> frozenset[Layout]:
        """The layouts in which a variant takes a value."""
        return frozenset(layout for operand, layout in zip(self.operands, self.variants[number].operands, strict=True) if operand == name)


@dataclass(frozen=True)
class Problem:
    """All of it. `fixed` says in which layouts values come in that no call makes; `free` are constants, which come in any.

    `outputs` are the values that go out, in order, each with the layout that it goes out in, None where that is chosen. `costs` has the
    cost of each rewrite that can be needed: (value, from, to). The first `entering` calls stand for inputs that are freed, the last
    `leaving` for outputs that are.
    """

    calls: tuple[PlannedCall, ...]
    fixed: Mapping[str, Layout]
    free: frozenset[str]
    outputs: tuple[tuple[str, Layout | None], ...]
    costs: Mapping[tuple[str, Layout, Layout], int]
    entering: int = 0
    leaving: int = 0

    @property
    def inner(self) -> slice:
        """Where the calls of the graph stand among the calls."""
        return slice(self.entering, len(self.calls) - self.leaving)

    @cached_property
    def moves(self) -> Mapping[str, Mapping[Move, int]]:
        """The cost of each rewrite, by values."""
        found: dict[str, dict[Move, int]] = {}
        for (name, source, target), cost in self.costs.items():
            found.setdefault(name, {})[source, target] = cost
        return found


Choice = Sequence[int]
"""The number of the variant of each call."""


def rewrites_of(problem: Problem, choice: Choice) -> Iterator[tuple[str, Layout, Layout]]:
    """The rewrites that a choice leaves, each once: (value, from, to); of a value, each after the one that makes what it starts from."""
    made: dict[str, Layout] = dict(problem.fixed)
    needed: dict[str, dict[Layout, None]] = {}
    for call, number in zip(problem.calls, choice, strict=True):
        variant = call.variants[number]
        made |= dict(zip(call.results, variant.results, strict=True))
        for name, layout in zip(call.operands, variant.operands, strict=True):
            needed.setdefault(name, {})[layout] = None
    for name, asked in problem.outputs:
        if asked is not None:
            needed.setdefault(name, {})[asked] = None
    for name, layouts in needed.items():
        if name not in problem.free:
            yield from ((name, *move) for move in cheapest_moves(problem.moves.get(name, {}), made[name], layouts))


def cost_of(problem: Problem, choice: Choice) -> int:
    """What a choice costs."""
    own = sum(call.cost(number) for call, number in zip(problem.calls, choice, strict=True))
    return own + sum(problem.costs[rewrite] for rewrite in rewrites_of(problem, choice))
