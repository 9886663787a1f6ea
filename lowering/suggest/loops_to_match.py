"""Loops that match a layout: how the loops of a block are split as its buffers are, and their order afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from layoutproof.ir.expr import Binary, Expr, IntImm, Var
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import IterKind
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.lowering.layout.block_layouts import Layouts, Parts, Touched, parts_in
from layoutproof.lowering.loops.nest import loops_of_block


@dataclass(frozen=True, slots=True)
class Digit:
    """A part of a variable: its quotient by `step`, of which the remainder by `extent` is taken where there is one."""

    step: int
    extent: int | None


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """The loops to split, by name with their factors, and the order of all loops of the block after that.

    `kept` are variables whose loops stay whole, each with the reason.
    """

    splits: Mapping[str, tuple[int | None, ...]]
    order: tuple[str, ...]
    kept: Mapping[str, str]


def loop_plan(func: PrimFunc, touched: Touched, layouts: Layouts) -> LoopPlan:
    """The loops for buffers in these layouts: a variable that they take apart has a loop for each part.

    Outermost are the coarse parts of what indexes the result, in the order of its memory, then what is summed over, in
    its order, then the finer parts.
    """
    around = [loop.var for loop in loops_of_block(func, touched.block.name)]
    loops = {i.var: i.binding for i in touched.block.iter_vars if isinstance(i.binding, Var) and i.binding in around}
    reduced = {i.binding for i in touched.block.iter_vars if i.kind is IterKind.REDUCE}
    splits: dict[Var, tuple[Digit, ...]] = {}
    kept: dict[str, str] = {}
    for variable, parts in parts_in(touched, layouts).items():
        digits = digits_of(parts)
        if variable not in loops:
            kept[variable.name] = "it is not bound to a loop of its own"
        elif digits is None:
            kept[variable.name] = "its parts are not the digits of one number"
        else:
            splits[loops[variable]] = digits
    names = {loop: _names(loop, splits.get(loop)) for loop in around}
    inside = [
        name for loop, digit in _in_memory_order(touched, layouts, loops) for name in names[loop][digit : digit + 1]
    ]
    coarse = [name for name in inside if any(names[loop][0] == name for loop in around)]
    fine = [name for name in inside if name not in coarse]
    spatial = [name for loop in around if loop not in reduced for name in names[loop]]
    summed = [name for loop in around if loop in reduced for name in names[loop]]
    rest = [name for name in spatial if name not in inside]
    # What the result's memory does not tell keeps its place after the coarse loops.
    order = tuple(dict.fromkeys((*coarse, *rest, *summed, *fine)))
    factors = {loop.name: (None, *(digit.extent for digit in digits[1:])) for loop, digits in splits.items()}
    return LoopPlan(factors, order, kept)


def _names(loop: Var, digits: Sequence[Digit] | None) -> list[str]:
    """What the loops are called that `split` makes of one."""
    return [loop.name] if digits is None else [f"{loop.name}_{number}" for number in range(len(digits))]


def digits_of(parts: Parts) -> tuple[Digit, ...] | None:
    """The parts of a variable as the digits of a number, the coarsest first; None where they are not its digits."""
    found = sorted((_digit(output) for output in parts.outputs), key=lambda digit: -digit.step)
    whole = found[0].extent is None and found[-1].step == 1
    chained = all(coarse.step == fine.step * (fine.extent or 0) for coarse, fine in pairwise(found))
    return tuple(found) if whole and chained else None


def _digit(output: Expr) -> Digit:
    """The digit that an output is: `v`, `v//4`, `v%4` or `v//4%4`, a remainder last."""
    extent: int | None = None
    step = 1
    while isinstance(output, Binary) and isinstance(output.rhs, IntImm):
        number = output.rhs.value
        if output.op is BinaryOp.FLOORMOD:
            # What a quotient of a remainder leaves is a shorter remainder of the quotient.
            extent = number // step if extent is None else min(extent, number // step)
        else:
            step *= number
        output = output.lhs
    return Digit(step, extent)


def _in_memory_order(touched: Touched, layouts: Layouts, loops: Mapping[Var, Var]) -> Iterator[tuple[Var, int]]:
    """The loops, each with the number of its digit, that index the block's first result, as its memory has them."""
    if not touched.written:
        return
    result = touched.written[0]
    index_map = layouts.get(result.buffer.name)
    if index_map is None:
        image: Sequence[Expr] = result.index
    else:
        pairs = zip(index_map.inputs, result.index, strict=True)
        values: dict[Var, Expr] = {v: Var(each.name if isinstance(each, Var) else "") for v, each in pairs}
        image = [substitute(output, values) for output in index_map.outputs]
    known = {variable.name: loop for variable, loop in loops.items()}
    counts: dict[Var, list[Digit]] = {}
    places: list[tuple[Var, Digit]] = []
    for output in image:
        variables = free_variables(output)
        if len(variables) == 1 and variables[0].name in known:
            loop = known[variables[0].name]
            counts.setdefault(loop, []).append(_digit(output))
            places.append((loop, _digit(output)))
    for loop, digit in places:
        ordered = sorted(counts[loop], key=lambda each: -each.step)
        yield loop, ordered.index(digit)
