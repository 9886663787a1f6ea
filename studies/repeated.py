"""Padding that changes nothing by the number of its cells: the values that are no identity, and yet cancel in pairs.

The checker asks whether each extra iteration leaves an accumulator as it is. Where that fails, several in a row may:
two cells of INT_MIN add 2**32, which is nothing. For fixed extents this is decided here from two parts. The extra
iterations are enumerated, and read padding with a value: for each cell of the output they come in runs, with no other
iteration on that cell within a run. And the checker proves a lemma for each length of a run: the update, applied so
often to any value with padding as its operand, gives that value. Between two runs the program is the old one, so it
ends with the old values, if the loops hold nothing but the update, which the text shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, IntImm, Var, const, logical_and
from layoutproof.ir.interp.layout_cells import padding_cells
from layoutproof.ir.layout_record import Cell, layout_records
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Attributes, Block, BufferStore, For, ForKind
from layoutproof.ir.visit import free_variables, rewrite_bottom_up, stores_in, substitute, walk
from layoutproof.lowering.loops.nest import GuardKind, guard_sites, loops_of_block, own_path
from layoutproof.lowering.passes.find import find_block
from layoutproof.lowering.passes.witness_maps import rewrite_of
from layoutproof.lowering.proof_cache.remembered import verdicts_of
from layoutproof.verify.values.fast_math import FastMathSet
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import ClaimKind, Status, Verdict

MOST_POINTS = 1 << 14
ENGINE = "repeated update"
_ENDS = frozenset({ClaimKind.SAME_END, ClaimKind.SAME_VALUE})


def prove_repeated(
    rewrite: Rewrite, block: str, verdicts: Sequence[Verdict], allowed: FastMathSet
) -> tuple[Verdict, str] | None:
    """The lemma's verdict and a sentence, where the guard of a block may go because runs of extra updates cancel.

    None where that is not shown: another claim is open, extents are symbols, the block is no single update, or a lemma
    fails.
    """
    if any(v.status is not Status.PROVED and v.claim.kind not in _ENDS for v in verdicts):
        return None
    store = _only_update(rewrite.old, block)
    lengths = _runs(rewrite.old, block, store) if store is not None else None
    if store is None or not lengths:
        return None
    found: list[Verdict] = []
    for length in lengths:
        lemma = _lemma(rewrite.old, store, length)
        proof = verdicts_of(lemma, None, allowed, False, "study", {"claim": "lemma"}) if lemma is not None else ()
        if not proof or worst(v.status for v in proof) is not Status.PROVED:
            return None
        found += proof
    told = " and ".join(map(str, lengths))
    taking = [v for v in found if v.strictness]
    sentence = f"extra updates come in runs of {told} on a cell, and so many in a row give back any value"
    return (taking or found)[0], sentence


def _only_update(func: PrimFunc, name: str) -> BufferStore | None:
    """The store of a block that is alone in serial loops, makes one store, and reads of its buffer only that cell."""
    block = find_block(func, name)
    loops = loops_of_block(func, name)
    stores = list(stores_in(block))
    if not loops or len(stores) != 1 or block.init is not None:
        return None
    path = own_path(func, block)
    nest = path[next(n for n, step in enumerate(path) if step is loops[0]) :]
    serial = all(isinstance(step, For) and step.kind is ForKind.SERIAL for step in nest)
    if not serial or [n for n in walk(loops[0]) if isinstance(n, Block)] != [block]:
        return None
    own = [n for n in walk(stores[0].value) if isinstance(n, BufferLoad) and n.buffer == stores[0].buffer]
    return stores[0] if all(load.indices == stores[0].indices for load in own) else None


def _runs(func: PrimFunc, name: str, store: BufferStore) -> list[int] | None:
    """The lengths of runs of guarded-off iterations on a cell, in the order of the loops; None without numbers."""
    block, loops = find_block(func, name), loops_of_block(func, name)
    values = {iter_var.var: iter_var.binding for iter_var in block.iter_vars}
    sites = [s.condition for s in guard_sites(func, name) if s.kind is not GuardKind.VALUE]
    guard = substitute(logical_and(*sites), values)
    indices = [substitute(index, values) for index in store.indices]
    records = layout_records(func)
    padded = [n for n in walk(store.value) if isinstance(n, BufferLoad) and n.buffer.data.name in records]
    places = {load: [substitute(index, values) for index in load.indices] for load in padded}
    points = _points(loops)
    over = [guard, *indices, *(index for place in places.values() for index in place)]
    if points is None or not _over({loop.var for loop in loops}, over):
        return None
    kinds = padding_cells(func, {})
    lengths: set[int] = set()
    running: dict[tuple[int, ...], int] = {}
    for point in points:
        at = {loop.var.name: number for loop, number in zip(loops, point, strict=True)}
        cell = tuple(int(evaluate(index, at)) for index in indices)
        if evaluate(guard, at):
            lengths.add(running.pop(cell, 0))
            continue
        running[cell] = running.get(cell, 0) + 1
        for load, place in places.items():
            at_place = tuple(int(evaluate(index, at)) for index in place)
            if kinds[load.buffer.data.name][at_place] != Cell.PAD_VALUE:
                return None  # the lemma speaks of padding only
    return sorted((lengths | set(running.values())) - {0})


def _over(variables: set[Var], exprs: Sequence[Expr]) -> bool:
    loads = any(isinstance(n, BufferLoad) for expr in exprs for n in walk(expr))
    return not loads and all(set(free_variables(expr)) <= variables for expr in exprs)


def _points(loops: Sequence[For]) -> Iterator[tuple[int, ...]] | None:
    ranges: list[range] = []
    size = 1
    for loop in loops:
        if not (isinstance(loop.extent, IntImm) and isinstance(loop.start, IntImm)):
            return None
        ranges.append(range(loop.start.value, loop.start.value + loop.extent.value))
        size *= max(1, loop.extent.value)
    return product(*ranges) if size <= MOST_POINTS else None


def _lemma(func: PrimFunc, store: BufferStore, length: int) -> Rewrite | None:
    """`B[0] = B[0]` becomes so many updates of it with padding as the operand; None where that holds no value.

    Elements that are not padded stand for themselves: one value for the whole run, which they are if their index does
    not change within it.
    """
    dtype = store.buffer.dtype
    cell = BufferLoad(make_buffer("B", (1,), dtype), (const(0),))
    records = layout_records(func)
    others: dict[BufferLoad, Buffer] = {}

    def value_of(load: BufferLoad, now: Expr) -> Expr | None:
        if load.buffer == store.buffer:
            return now
        record = records.get(load.buffer.data.name)
        if record is not None and record.steps:
            contract = record.steps[-1].contract
            known = contract is not None and not contract.is_undef and not free_variables(contract.value)
            return contract.value if known and contract is not None and len(record.steps) == 1 else None
        if any(free_variables(index) for index in load.indices):
            return None
        buffer = others.setdefault(load, make_buffer(f"W{len(others)}", (1,), load.buffer.dtype))
        return BufferLoad(buffer, (const(0),))

    value: Expr = cell
    for _ in range(length):
        now, failed = value, list[BufferLoad]()

        def visit(node: Node, now: Expr = now, failed: list[BufferLoad] = failed) -> Node:
            if not isinstance(node, BufferLoad):
                return node
            found = value_of(node, now)
            if found is None:
                failed.append(node)
            return node if found is None else found

        value = rewrite_bottom_up(store.value, visit)
        if failed or any(variable.dtype != HANDLE for variable in free_variables(value)):
            return None
    buffers = [cell.buffer, *others.values()]
    old = _function(buffers, BufferStore(cell.buffer, cell.indices, cell))
    return rewrite_of(old, old.with_body(BufferStore(cell.buffer, cell.indices, value)))


def _function(buffers: Sequence[Buffer], body: BufferStore) -> PrimFunc:
    params = tuple(Var(buffer.name, HANDLE) for buffer in buffers)
    return PrimFunc("lemma", params, tuple(zip(params, buffers, strict=True)), body, Attributes({"tir.noalias": True}))
