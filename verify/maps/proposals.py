"""A proposal that is checked before use: an inverse through a fused index (`e // 7` and `e % 7` of `e = i*400 + j`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from layoutproof.ir.expr import Binary, Expr, Var
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.visit import free_variables, map_children, walk
from layoutproof.verify.algebra.lift import Lifter
from layoutproof.verify.algebra.polynomials import GiveUp, Poly, add, plus
from layoutproof.verify.maps.elimination import Equation, Solver
from layoutproof.verify.maps.extents import corner_value, input_ends
from layoutproof.verify.maps.inverse import Inversion, checked_inverse, try_invert
from layoutproof.verify.maps.problem import Part

if TYPE_CHECKING:
    pass
else:
    pass


_CUTS = {BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.SHR, BinaryOp.BITAND, BinaryOp.BITXOR}
_NAME = "e"
_WINDOW = 1 << 16


def try_invert_through_carrier(part: Part) -> Inversion | None:
    """The checked inverse of a component whose outputs are functions of one fused index, if there is one."""
    for carrier in _candidates(part):
        try:
            found = _through(part, carrier)
        except GiveUp:
            continue
        if found is not None:
            return found
    return None


def _candidates(part: Part) -> Iterator[Expr]:
    """The divided, wrapped or masked parts of the outputs that have more than one input; each once."""
    seen: set[Expr] = set()
    inputs = {part.problem.index_map.inputs[k] for k in part.inputs}
    for output in part.outputs:
        for node in walk(output):
            if isinstance(node, Binary) and node.op in _CUTS and node.lhs not in seen:
                seen.add(node.lhs)
                if len(inputs & set(free_variables(node.lhs))) > 1:
                    yield node.lhs


def _renamed(expr: Expr, carrier: Expr, name: Var) -> Expr:
    def visit(node: Any) -> Any:
        return name if node == carrier else map_children(node, visit)

    result = visit(expr)
    assert isinstance(result, Expr)
    return result


def _through(part: Part, carrier: Expr) -> Inversion | None:
    problem = part.problem
    ring = problem.ring
    inputs = {problem.index_map.inputs[k] for k in part.inputs}
    name = Var(_NAME, carrier.dtype)
    outputs = [_renamed(o, carrier, name) for o in part.outputs]
    if any(inputs & set(free_variables(o)) for o in outputs):
        return None
    forms: list[Poly] = []
    for axis in part.axes:
        form = problem.outputs[axis]
        if form is None:
            return None
        forms.append(form)
    lifter = Lifter(ring, problem.input_forms)
    fused = lifter.lift(carrier)
    lowest, highest = (corner_value(ring, fused, input_ends(problem), largest) for largest in (False, True))
    if lowest is None or highest is None:
        return None
    low, extent = lowest[0], plus(add(highest[0], lowest[0], -1), 1)
    _, number = ring.range_of(plus(extent, -1))
    position = ring.name(_NAME, 0, number, greatest=None if number is not None else plus(extent, -1), unknown=True)
    ((atom,),) = position
    over = Lifter(ring, {**problem.symbol_forms, _NAME: add(position, low)})
    cells = [part.cells[a] for a in part.axes]
    found = try_invert(ring, [over.lift(o) for o in outputs], cells, [atom], {atom: extent})
    if found is None:
        return None
    atoms = [a for k in part.inputs if (a := problem.atoms[k]) is not None]
    extents = {
        a: e for k in part.inputs if (a := problem.atoms[k]) is not None and (e := problem.extent_polys[k]) is not None
    }
    values = Solver(ring, [Equation(fused, add(found.totals[atom], low))]).solve(atoms)
    return None if values is None else checked_inverse(ring, forms, cells, extents, values)
