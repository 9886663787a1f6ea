"""A map in the normal form of the ring: what is proved equal by rewriting has one text."""

from __future__ import annotations

from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import IndexMap
from layoutproof.verify.algebra.lift import NumberTooWide, Renderer
from layoutproof.verify.maps.problem import Shape, make_problem


def simplified_map(index_map: IndexMap, shape: Shape) -> IndexMap:
    """An equal map on a shape, each output in its normal form where it has one. Raises LayoutproofError."""
    problem = make_problem(index_map, shape)
    renderer = Renderer(problem.ring, problem.shown)
    outputs: list[Expr] = []
    for form, written in zip(problem.outputs, problem.index_map.outputs, strict=True):
        try:
            outputs.append(written if form is None else renderer.expr(form))
        except NumberTooWide:
            outputs.append(written)
    return IndexMap(problem.index_map.inputs, tuple(outputs), index_map.separators).rename(
        [v.name for v in index_map.inputs]
    )
