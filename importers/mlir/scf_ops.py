"""`scf`: structured control flow. A `while` that counts becomes a loop; others are not translated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from layoutproof.importers.mlir.builder import Builder
from layoutproof.importers.mlir.loops import (
    Bounds,
    branch_with_results,
    carried,
    counted_loop,
    final_value,
    iterate,
    parallel_loops,
    put_all,
)
from layoutproof.importers.mlir.memref_ops import mixed
from layoutproof.importers.mlir.model import INDEX, Block, Op, Value, add
from layoutproof.importers.mlir.reductions import of_scf, reduce_in_parallel
from layoutproof.importers.mlir.tensor_ops import destination, insert, new_tensor, shaped
from layoutproof.importers.mlir.values import Vector, View, number, value_of
from layoutproof.ir.expr import Expr, IfThenElseExpr, IntImm, Var
from layoutproof.ir.stmt import ForKind


def _for(b: Builder, op: Op) -> None:
    if op.operands[0].type != INDEX:
        raise op.fail("an induction variable that is no index is not translated")
    lower, upper, step = (b.expr(op, value) for value in op.operands[:3])
    counted_loop(b, op, (lower, upper, step), op.operands[3:])


def _if(b: Builder, op: Op) -> None:
    branch_with_results(b, op, b.expr(op, op.operands[0]))


def _parallel(b: Builder, op: Op) -> None:
    lower, upper, steps, inits = op.segments()
    bounds = [
        (b.expr(op, low), b.expr(op, high), b.expr(op, step))
        for low, high, step in zip(lower, upper, steps, strict=True)
    ]
    if op.results:
        end = op.block().ops[-1]
        reduce_in_parallel(b, op, bounds, of_scf(b, op, end, inits), end)
        return
    parallel_loops(b, op, bounds)


def _forall(b: Builder, op: Op) -> None:
    lower_values, upper_values, step_values, outs = op.segments()
    lower = mixed(b, op, op.attribute("staticLowerBound"), lower_values)
    upper = mixed(b, op, op.attribute("staticUpperBound"), upper_values)
    steps = mixed(b, op, op.attribute("staticStep"), step_values)
    bounds: list[Bounds] = list(zip(lower, upper, steps, strict=True))
    shared = op.block().arguments[len(bounds) :]
    views: list[View] = []
    for out, argument, result in zip(outs, shared, op.results, strict=True):
        views.append(destination(b, op, out))
        for meaning in (argument, result):
            b.bind(meaning, views[-1])
    inside = _Inserts(b, dict(zip(shared, views, strict=True)))
    # Only what is inserted at the end is in the result: inside, no new tensor is made in this memory.
    taken = {view.buffer for view in views}
    b.own -= taken
    inside.loops(op, bounds)
    b.own |= taken


class _Inserts:
    """The slices that the iterations of a `forall` insert at its end.

    They are stored at once: an iteration that reads what another one inserts is a race, which the checker refuses.
    """

    def __init__(self, b: Builder, targets: Mapping[Value, View]) -> None:
        self.b = b
        self.targets = targets

    def loops(self, op: Op, bounds: Sequence[Bounds]) -> None:
        block = op.block()

        def level(axis: int) -> None:
            if axis < len(bounds):
                b = self.b

                def inside(induction: Expr) -> None:
                    b.bind(block.arguments[axis], induction)
                    level(axis + 1)

                iterate_axis(b, op, bounds[axis], inside)
                return
            end = self.b.block(block)
            for region in end.regions:
                for each in region:
                    self.insert_all(each)

        level(0)

    def insert_all(self, block: Block) -> None:
        for op in block.ops:
            if op.name != "tensor.parallel_insert_slice" or op.operands[1] not in self.targets:
                raise op.fail("this operation has no translation here")
            insert(self.b, op, self.targets[op.operands[1]])


def iterate_axis(b: Builder, op: Op, bounds: Bounds, body: Callable[[Expr], None]) -> None:
    """A parallel loop over one axis."""
    iterate(b, op, bounds, body, ForKind.PARALLEL)


# ---- while


def _while(b: Builder, op: Op) -> None:
    before, after = op.block(0), op.block(1)
    position, bound, step = _counting(b, op, before, after)
    others = [k for k in range(len(op.operands)) if k != position]
    cells = [carried(b, op, op.results[k], op.operands[k]) for k in others]
    put_all(b, op, cells, [op.operands[k] for k in others])
    start = b.expr(op, op.operands[position])
    if value_of(step) is None:
        # Nothing is asked of the step of a loop that is not entered.
        step = IfThenElseExpr(start < bound, step, number(1))
    bounds = (start, bound, step)

    def body(induction: Expr) -> None:
        for arguments in (before.arguments, after.arguments):
            b.bind(arguments[position], induction)
            for k, cell in zip(others, cells, strict=True):
                b.bind(arguments[k], cell.meaning(b, op))
        end = b.block(after)
        put_all(b, end, cells, [end.operands[k] for k in others], again=True)

    iterate(b, op, bounds, body, ForKind.SERIAL)
    b.bind(op.results[position], final_value(op, bounds))
    for k, cell in zip(others, cells, strict=True):
        b.bind(op.results[k], cell.meaning(b, op))


def _counting(b: Builder, op: Op, before: Block, after: Block) -> tuple[int, Expr, Expr]:
    """The argument that is counted up by a step while it is below a bound, the bound and the step.

    Raises LayoutproofError for other loops.
    """
    refused = op.fail("a loop that does not count up to a bound from outside is not translated")
    condition = before.ops[-1]
    test = condition.operands[0].owner if condition.name == "scf.condition" else None
    if condition.operands[1:] != before.arguments or test is None or before.ops[:-1] != (test,):
        raise refused
    if test.name != "arith.cmpi":
        raise refused
    # `%i < %n`, or `%n > %i`.
    swapped = test.operands[0] not in before.arguments
    counted, bound = test.operands[::-1] if swapped else test.operands
    beyond = (_BEYOND_SWAPPED if swapped else _BEYOND).get(test.attribute("predicate"))
    if beyond is None or counted not in before.arguments:
        raise refused
    position = before.arguments.index(counted)
    advance = after.ops[-1].operands[position].owner
    if advance is None or advance.name != "arith.addi" or after.arguments[position] not in advance.operands:
        raise refused
    step = advance.operands[1 if advance.operands[0] is after.arguments[position] else 0]
    outside = bound in b.meanings and bound not in before.arguments and step in b.meanings
    if not outside or before.arguments[position].type != INDEX:
        raise refused
    return position, add(b.expr(op, bound), beyond), b.expr(op, step)


# How far the first number that ends a loop is beyond the bound: of `slt` and `sle`, and of `sgt` and `sge`.
_BEYOND = {2: number(0), 3: number(1)}
_BEYOND_SWAPPED = {4: number(0), 5: number(1)}


def _execute_region(b: Builder, op: Op) -> None:
    """What is yielded is read where the region ends; a tensor is copied, as others may be the same memory."""
    end = b.block(op.block())
    for result, value in zip(op.results, end.operands, strict=True):
        meaning = b.meanings[value]
        if isinstance(meaning, Expr) and not isinstance(meaning, Var | IntImm):
            meaning = b.named(result, meaning, op.span)
        elif isinstance(meaning, Vector):
            meaning = b.kept(meaning, op.span)
        elif isinstance(meaning, View) and shaped(op, result).kind == "tensor":
            view = new_tensor(b, op, result, meaning.shape)
            b.copy(meaning, view, op.span)
            meaning = view
        b.bind(result, meaning)


TABLE: Mapping[str, Callable[[Builder, Op], None]] = {
    "scf.for": _for,
    "scf.if": _if,
    "scf.parallel": _parallel,
    "scf.forall": _forall,
    "scf.while": _while,
    "scf.execute_region": _execute_region,
}
