"""The choice that a greedy walk makes, for comparison: what other tools do, here with layouts that are maps and rewrites that are proved.

TVM's pass ConvertLayout, like the one of Relay that the seed `relax-layout-transformation` describes, goes through the calls once, in
order. Those that were asked for get their layouts. Every other call follows what comes: the first operand in blocks, if there is one, else
the first operand; what else it takes is rewritten to fit, whatever that costs, and its result goes on as it is made. A call that cannot
follow takes and makes everything plain. Inputs and outputs are plain, constants are free.

Two differences make this walk better than that one. Where several operands need one value in one layout it is rewritten once; there it is
rewritten for each use, and left to a later pass. And layouts in blocks flow through whatever accesses let them through; there each operator
has a rule of its own, or none.
"""

from __future__ import annotations

from layoutproof.graph.planning.layouts import Layout, implies, map_of_layout
from layoutproof.graph.planning.moves import cheapest_moves
from layoutproof.graph.planning.problem import Choice, PlannedCall, Problem


def greedy(problem: Problem) -> Choice:
    """For each call, in order, the variant that takes the operand that it follows as it comes; of several, that which costs least then."""
    made: dict[str, Layout] = dict(problem.fixed)
    choice: list[int] = []
    for call in problem.calls:
        choice.append(_followed(problem, call, made))
        made |= dict(zip(call.results, call.variants[choice[-1]].results, strict=True))
    return choice


def _followed(problem: Problem, call: PlannedCall, made: dict[str, Layout]) -> int:
    for name in _leaders(problem, call, made):
        fitting = [k for k in range(len(call.variants)) if all(implies(made[name], layout) for layout in call.needs(k, name))]
        if fitting:
            return min(fitting, key=lambda k: (_cost(problem, call, k, made), k))
    return 0


def _leaders(problem: Problem, call: PlannedCall, made: dict[str, Layout]) -> list[str]:
    """The operands in the order in which a call tries to follow them: those in blocks first."""
    names = [name for name in dict.fromkeys(call.operands) if name not in problem.free]
    return sorted(names, key=lambda name: not _in_blocks(made[name]))


def _in_blocks(layout: Layout) -> bool:
    index_map = map_of_layout(layout)
    return index_map.rank > len(index_map.inputs)


def _cost(problem: Problem, call: PlannedCall, number: int, made: dict[str, Layout]) -> int:
    """What the rewrites of a variant's operands cost, with the padding that it fills."""
    cost = call.cost(number)
    for name in dict.fromkeys(call.operands):
        moves = problem.moves.get(name)
        if moves is not None:
            cost += sum(moves[move] for move in cheapest_moves(moves, made[name], sorted(call.needs(number, name))))
    return cost
