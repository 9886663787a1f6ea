"""A component of an index map together with its part of the physical box: what the engines are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.verify.polynomial import Poly, constant, multiply
from layoutproof.verify.problem import Problem


@dataclass(slots=True)
class Part:
    """A component with its box.

    `sizes` has the extents of the axes that have a closed form; `cells[axis]` is the form of `p<axis>`, 0 where the axis has one cell.
    """

    problem: Problem
    axes: tuple[int, ...]
    inputs: tuple[int, ...]
    sizes: Mapping[int, Poly]
    cells: Mapping[int, Poly]
    cell_type: DType

    @property
    def names(self) -> list[str]:
        """The names of the inputs."""
        return [self.problem.index_map.inputs[k].name for k in self.inputs]

    @property
    def unit_names(self) -> list[str]:
        """The names of all inputs of extent 1, which the outputs may be written with."""
        problem = self.problem
        return [v.name for v, atom in zip(problem.index_map.inputs, problem.atoms, strict=True) if atom is None]

    @property
    def outputs(self) -> list[Expr]:
        """The output expressions of the axes."""
        return [self.problem.index_map.outputs[a] for a in self.axes]

    @property
    def extents(self) -> tuple[int, ...]:
        """The inputs' extents; concrete problems only."""
        return self.problem.numbers(self.inputs)

    @property
    def box(self) -> tuple[int, ...]:
        """The axes' extents; concrete problems only."""
        return tuple(self.sizes[a].get((), 0) for a in self.axes)

    def cell(self, axis: int) -> Expr:
        """`p<axis>`, or 0 where the axis has one cell."""
        return Var(f"p{axis}", self.cell_type) if self.cells[axis] else const(0, self.cell_type)

    def box_size(self) -> Poly | None:
        """The number of cells of the component's axes; None where an extent has no closed form."""
        result: Poly = constant(1)
        for axis in self.axes:
            if axis not in self.sizes:
                return None
            result = multiply(result, self.sizes[axis])
        return result

    def domain_size(self) -> Poly | None:
        """The number of logical indices of the component."""
        result: Poly = constant(1)
        for k in self.inputs:
            extent = self.problem.extent_polys[k]
            if extent is None:
                return None
            result = multiply(result, extent)
        return result
