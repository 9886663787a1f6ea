"""What rewrites take on this machine, measured when a plan asks for it."""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.graph.kernels import Kernels
from layoutproof.graph.model import Value
from layoutproof.graph.planning.apply import rewriting
from layoutproof.graph.planning.costs import Move, from_table, measured
from layoutproof.graph.planning.layouts import Layout


class MeasuredCosts:
    """Costs for `plan`: those of a table, and what is not in it is measured with generated kernels, in nanoseconds, and kept in `table`.

    Without `measures` nothing is measured; what the table lacks is then refused.
    """

    def __init__(self, table: Mapping[Move, int] | None = None, *, measures: bool = True) -> None:
        self.table = dict(table) if table is not None else {}
        self.measured = 0
        self.measures = measures
        self._known = from_table(self.table)
        self._kernels = Kernels()

    def __call__(self, value: Value, source: Layout, target: Layout) -> int:
        """The cost of a rewrite. Raises LayoutproofError where nothing says what it costs, or no kernel for it can be built."""
        move = Move(value.shape, value.dtype, source, target)
        if self.measures and move not in self.table:
            self.table[move] = measured(move, rewriting(value, source, target), self._kernels.move)
            self.measured += 1
        return self._known(value, source, target)
