"""Which runs count when fast-math assumptions are in force or values are undefined, and which differences refute.

An assumption leaves executions out, or lets the old program choose; a difference refutes only if no choice explains
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import HANDLE, INT8
from layoutproof.ir.expr import Binary, Compare, Expr, Logical, Var, const, logical_and
from layoutproof.ir.interp import Fault, Fill, Filling, all_fillings, run, same_values
from layoutproof.ir.interp.analysis import find_memories
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.intrinsics import Assume, Undef, assumed_undef, is_identity
from layoutproof.ir.layout_record import Cell, layout_records
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import NOTHING, Block, BufferStore, Evaluate, For, ForKind, IfThenElse, Seq, Stmt, seq
from layoutproof.ir.visit import children, loads_in, map_children, walk
from layoutproof.verify.replay.counterexample import Number
from layoutproof.verify.replay.watching import evaluated, exposed, may_regroup, own_expressions, watched
from layoutproof.verify.values.fast_math import FastMath, FastMathSet


def fillings_of(func: PrimFunc) -> tuple[Filling, ...]:
    """The fillings that a program runs with: one is enough where nothing is undefined."""
    declared = any(step.padding is Cell.PAD_UNDEF for record in layout_records(func).values() for step in record.steps)
    return all_fillings() if declared or any(isinstance(node, Undef) for node in walk(func.body)) else (Filling(),)


def more_fillings(func: PrimFunc) -> tuple[Filling, ...]:
    """Further random fillings for a program whose undefined values are to be seen cancelling out."""
    return (
        tuple(Filling(Fill.RANDOM, seed) for seed in range(2, 5))
        if len(fillings_of(func)) > 1 and is_only_arithmetic(func)
        else ()
    )


def is_only_arithmetic(func: PrimFunc) -> bool:
    """Whether data only goes through `+ - *`: then values that agree for a few random numbers agree for all."""
    for node in walk(func.body):
        plain = isinstance(node, Binary) and node.op in (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL)
        if isinstance(node, Expr) and not plain and not isinstance(node, BufferLoad | Assume | Logical):
            below = (part for child in children(node) for part in walk(child))
            if any(isinstance(part, BufferLoad | Undef) for part in below) and not _is_contract(node):
                return False
    return True


def _is_contract(node: Expr) -> bool:
    """Whether a comparison is one that says what a cell holds."""
    return isinstance(node, Compare) and (assumed_undef(node) is not None or is_identity(node))


@dataclass(slots=True)
class Tracker:
    """`func` notes in `notes`, a buffer for each float parameter, which elements were loaded, by assumptions apart."""

    func: PrimFunc
    notes: Mapping[str, Buffer]

    @staticmethod
    def of(func: PrimFunc) -> Tracker | None:
        """The tracker of a program; None if parameters are loaded through views, vectors or block conditions."""
        parameters = {b.data.name: b for b in func.buffers if b.dtype.is_float}
        root = find_memories(func).root
        for load in loads_in(func.body):
            data = load.buffer.data.name
            parameter = parameters.get(root.get(data, data))
            if parameter is not None and (
                load.buffer != parameter or parameter.dtype.lanes > 1 or any(i.dtype.lanes > 1 for i in load.indices)
            ):
                return None
        notes = {b.name: make_buffer(f"read_{b.name}'", b.shape, INT8) for b in parameters.values()}
        body = _noted(func.body, notes)
        if body is None:
            return None
        handles = tuple(Var(f"{b.name}_handle", HANDLE) for b in notes.values())
        buffer_map = (*func.buffer_map, *zip(handles, notes.values(), strict=True))
        return Tracker(replace(func, params=(*func.params, *handles), buffer_map=buffer_map, body=body), notes)

    def read(self, numbers: Mapping[str, Number], arrays: Mapping[str, Array], limit: int) -> dict[str, Array] | None:
        """By parameter, 1 for each element that a run loads; None where the run fails."""
        blank = {note.name: np.zeros(arrays[name].shape, dtype=np.int8) for name, note in self.notes.items()}
        try:
            after = run(self.func, {**numbers, **arrays, **blank}, limit=limit).arrays
        except (Fault, LayoutproofError):
            return None
        return {name: after[note.name] for name, note in self.notes.items()}


def _noted(body: Stmt, notes: Mapping[str, Buffer]) -> Stmt | None:
    """The statement with notes before each load, loops in order. None for a block whose condition loads."""
    refused = False

    def visit(node: Node) -> Node:
        nonlocal refused
        if not isinstance(node, Stmt):
            return node
        if isinstance(node, Seq):
            return seq(*(s for s in map(visit, node.body) if isinstance(s, Stmt)))
        if isinstance(node, Evaluate) and isinstance(node.value, Assume):
            return node
        if isinstance(node, Block) and any(load.buffer.name in notes for load in loads_in(node.where)):
            refused = True
        rebuilt = map_children(node, visit)
        if isinstance(rebuilt, For):
            rebuilt = replace(rebuilt, kind=ForKind.SERIAL, thread=None)
        found: dict[Stmt, None] = {}
        for expr in own_expressions(node):
            for part, path in evaluated(expr):
                if isinstance(part, BufferLoad) and part.buffer.name in notes:
                    note = BufferStore(notes[part.buffer.name], part.indices, const(1, INT8))
                    found[IfThenElse(logical_and(*path), note) if path else note] = None
        return seq(*found, rebuilt) if found else rebuilt

    result = visit(body)
    assert isinstance(result, Stmt)
    return None if refused or result == NOTHING else result


CONSTANTS = (float("nan"), float("inf"), 3, 0, -2)
"""What stands for undefined values in the runs of a new program that is watched."""

Mask = NDArray[np.bool_]

_LONG = 2_000  # nodes of a program that is watched, for which an iteration may take a few times as long as usual


@dataclass(frozen=True, slots=True)
class Strictness:
    """What is left out (`fast_math`); the old program watched, and, for `reassoc`, the new one, by what stands for
    undefined values; what tells, for `nnan` and `ninf`, what the old program reads, where that can be told.
    """

    fast_math: FastMathSet = frozenset()
    program: PrimFunc | None = None
    new_programs: tuple[tuple[int | float, PrimFunc], ...] = ()
    reading: Tracker | None = None

    @staticmethod
    def of(fast_math: FastMathSet, old: PrimFunc, new: PrimFunc) -> Strictness:
        """The strictness of a search. Raises NotWatched where the programs' values cannot be watched."""
        fast_math = relevant(fast_math, old, new)
        if not fast_math:
            return Strictness()
        program = watched(old, fast_math)
        reading = Tracker.of(old) if fast_math & {FastMath.NNAN, FastMath.NINF} else None
        if FastMath.REASSOC not in fast_math:
            return Strictness(fast_math, program, reading=reading)
        if any(isinstance(node, Undef) for node in walk(new.body)):
            return Strictness(fast_math, program, tuple((value, exposed(new, value)) for value in CONSTANTS), reading)
        same = exposed(new, 0)
        return Strictness(fast_math, program, tuple((value, same) for value in CONSTANTS), reading)

    @property
    def weight(self) -> int:
        """How much longer than usual an iteration takes, since checks of an operation repeat its operands."""
        programs = (self.program, *(program for _, program in self.new_programs[:1]))
        return 1 + sum(1 for program in programs if program is not None for _ in walk(program.body)) // _LONG

    @property
    def only_firm(self) -> bool:
        """Whether rounding is no evidence."""
        return FastMath.REASSOC in self.fast_math

    def same(self, a: Array, b: Array) -> Mask:
        """Scalar by scalar: value identity, up to a zero's sign where that is excused."""
        found = same_values(a, b)
        if FastMath.NSZ in self.fast_math:
            found = found | np.asarray((a == 0) & (b == 0))
        return found

    def left_out(self, arrays: Mapping[str, Array]) -> dict[str, Mask]:
        """The input scalars that fast-math assumptions exclude where the old program reads them; by buffer."""
        masks = {}
        for name, array in arrays.items():
            if array.dtype.kind in "biu":
                continue
            with np.errstate(invalid="ignore"):
                numbers = array.astype(np.float64)
            wrong = np.zeros(array.shape, dtype=np.bool_)
            if FastMath.NNAN in self.fast_math:
                wrong |= np.isnan(numbers)
            if FastMath.NINF in self.fast_math:
                wrong |= np.isinf(numbers)
            if wrong.any():
                masks[name] = wrong
        return masks


def relevant(fast_math: FastMathSet, old: PrimFunc, new: PrimFunc) -> FastMathSet:
    """The fast-math assumptions that can matter for two programs: none without floats, no `reassoc` without sums or
    products.
    """
    exprs = [node for func in (old, new) for node in walk(func) if isinstance(node, Expr)]
    if not any(expr.dtype.is_float for expr in exprs):
        return frozenset()
    return fast_math if any(may_regroup(expr) for expr in exprs) else fast_math - {FastMath.REASSOC}
