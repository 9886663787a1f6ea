"""Padded pipelines: buffers in tiles, loops over tiles with a guard, and the guard removed; the pad values decide
whether it may be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Binary, Expr, IntImm, Logical, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import Limit, LimitKind, Undef
from layoutproof.ir.operators import BinaryOp, LogicalOp
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.visit import free_variables
from tests.attack.nests import Loop, Nest, Program, Store, begun, rewrite_of
from tests.attack.relayout import Mapped, relayout
from tests.attack.rewrites import commute, split

N = Var("n")


@dataclass(frozen=True)
class Case:
    """A rewrite that removes a guard. `legal`: the pad values were chosen to be neutral (bit for bit, or under the
    named fast-math assumptions).
    """

    rewrite: Rewrite
    legal: bool
    what: str


def padded_case(rng: Random) -> Case:
    """A random one; about half of them legal."""
    return rng.choice([_reduction, _reduction, _element_wise, _two_stages])(rng)


def _extent(rng: Random) -> Expr:
    return N if rng.random() < 0.25 else IntImm(rng.choice([5, 6, 7, 9, 10, 11]))


def tiles(shape: tuple[Expr, ...], factor: int) -> Mapped:
    """The last axis in tiles."""
    inputs = tuple(Var(f"x{axis}") for axis in range(len(shape)))
    last, extent = inputs[-1], shape[-1]
    chunks: Expr = (
        IntImm(-(-extent.value // factor)) if isinstance(extent, IntImm) else (extent + (factor - 1)) // factor
    )
    box = (*shape[:-1], chunks, IntImm(factor))
    names = tuple(Var(f"q{axis}") for axis in range(len(box)))
    exact = isinstance(extent, IntImm) and extent.value % factor == 0
    padding = None if exact else names[-2] * factor + names[-1] >= extent
    return Mapped(IndexMap(inputs, (*inputs[:-1], last // factor, last % factor)), box, padding, names)


def _limit(kind: LimitKind, dtype: DType) -> Expr:
    wanted = LimitKind.INFINITY if dtype.is_float else kind
    value: Expr = Limit(wanted, dtype)
    return value * const(-1, dtype) if dtype.is_float and kind is LimitKind.MIN else value


def _reduction(rng: Random) -> Case:
    """`B[i] = start; B[i] = B[i] op A[i, k]` over padded rows."""
    dtype = DType.parse(rng.choice(["float32", "float32", "int32", "float16"]))
    shape = (IntImm(rng.choice([1, 2, 3])), _extent(rng))
    a, b = make_buffer("A", shape, dtype), make_buffer("B", shape[:1], dtype)
    i, k = Var("i"), Var("k")
    op = rng.choice([BinaryOp.ADD, BinaryOp.ADD, BinaryOp.ADD, BinaryOp.MUL, BinaryOp.MAX, BinaryOp.MIN])
    neutral = {
        BinaryOp.ADD: const(0, dtype),
        BinaryOp.MUL: const(1, dtype),
        BinaryOp.MAX: const(dtype.min_int, dtype) if dtype.is_integer else const(float("-inf"), dtype),
        BinaryOp.MIN: const(dtype.max_int, dtype) if dtype.is_integer else const(float("inf"), dtype),
    }[op]
    legal = rng.random() < 0.6
    wrong = [const(0, dtype), const(1, dtype), const(-1, dtype), Undef(dtype), const(7, dtype)]
    pad = neutral if legal else rng.choice([v for v in wrong if v != neutral])
    held, term = BufferLoad(b, (i,)), BufferLoad(a, (i, k))
    update = Binary(op, held, term) if rng.random() < 0.6 else Binary(op, term, held)
    init = Store(b, (i,), neutral if rng.random() < 0.8 else const(0, dtype), None)
    nest = Nest((Loop(i, shape[0]), Loop(k, shape[1], True)), (Store(b, (i,), update, None),), init=init, free=False)
    return _without_guard(Program((a, b), (), (nest,)), 1, [(a, pad)], rng, legal, f"{op} {dtype} pad {pad}")


def _map(rng: Random, dtype: DType) -> tuple[Callable[[Expr], Expr], bool]:
    """An element-wise function, and whether it keeps zero."""
    one = const(1, dtype)
    return rng.choice(
        [
            (lambda x: Binary(BinaryOp.MAX, x, const(0, dtype)), True),
            (lambda x: x * const(2, dtype), True),
            (lambda x: x * x, True),
            (lambda x: x + one, False),
            (lambda x: Binary(BinaryOp.MAX, x, one), False),
        ]
    )


def _element_wise(rng: Random) -> Case:
    """`B[i] = f(A[i])`, both in tiles; the stage that wrote the padding of B stays, or goes."""
    dtype = DType.parse(rng.choice(["float32", "int32", "int8"]))
    shape = (_extent(rng),)
    a, b = make_buffer("A", shape, dtype), make_buffer("B", shape, dtype)
    i = Var("i")
    function, keeps = _map(rng, dtype)
    nest = Nest((Loop(i, shape[0]),), (Store(b, (i,), function(BufferLoad(a, (i,))), None),))
    zero = const(0, dtype)
    pads = [(a, rng.choice([zero, zero, Undef(dtype), None])), (b, rng.choice([zero, zero, Undef(dtype), None]))]
    kept = rng.random() < 0.5
    legal = (
        pads[0][1] is not None
        and pads[1][1] is not None
        and (kept or isinstance(pads[1][1], Undef) or (pads[0][1] == zero and keeps))
    )
    case = _without_guard(
        Program((a, b), (), (nest,)),
        0,
        pads,
        rng,
        legal,
        f"element-wise {dtype} pads {pads} kept {kept}",
        drop_stage=not kept,
    )
    return case


def _two_stages(rng: Random) -> Case:
    """A temporary in tiles: `C[i] = f(A[i])`, then a sum over C, both without their guards."""
    dtype = DType.parse(rng.choice(["float32", "int32"]))
    shape = (_extent(rng),)
    a, b, c = make_buffer("A", shape, dtype), make_buffer("B", (IntImm(1),), dtype), make_buffer("C", shape, dtype)
    i, k = Var("i"), Var("k")
    function, keeps = _map(rng, dtype)
    zero, cell = const(0, dtype), (IntImm(0),)
    first = Nest((Loop(i, shape[0]),), (Store(c, (i,), function(BufferLoad(a, (i,))), None),))
    total = BufferLoad(b, cell) + BufferLoad(c, (k,))
    second = Nest(
        (Loop(k, shape[0], True),), (Store(b, cell, total, None),), init=Store(b, cell, zero, None), free=False
    )
    pad = rng.choice([zero, zero, const(1, dtype), Undef(dtype)])
    legal = pad == zero and keeps
    factor = rng.choice([2, 4])
    program = Program((a, b), (c,), (first, second))
    for buffer, value in ((a, pad), (c, None)):
        moved = relayout(program, rng, buffer=buffer, mapped=tiles(shape, factor), pad=value)
        assert moved is not None
        program = moved
    for number in range(len(program.nests)):
        if program.nests[number].stage is None:
            divided = split(program, rng, nest=number, position=0, factor=factor)
            assert divided is not None
            program = divided
    old = begun(replace(program, cells=(), interface=()))
    new = old.with_nests([_unguarded(nest) for nest in old.nests])
    return Case(rewrite_of(old, new), legal, f"two stages {dtype} pad {pad} keeps {keeps}")


def _without_guard(
    program: Program,
    position: int,
    pads: list[tuple[Buffer, Expr | None]],
    rng: Random,
    legal: bool,
    what: str,
    drop_stage: bool = False,
) -> Case:
    factor = rng.choice([2, 3, 4])
    for buffer, pad in pads:
        moved = relayout(program, rng, buffer=buffer, mapped=tiles(buffer.shape, factor), pad=pad)
        assert moved is not None
        program = moved
    number = next(k for k, nest in enumerate(program.nests) if nest.stage is None)
    divided = split(program, rng, nest=number, position=position, factor=factor)
    assert divided is not None
    old = begun(replace(divided, cells=(), interface=()))
    nests = [_unguarded(nest) for nest in old.nests]
    if drop_stage:
        nests = [nest for nest in nests if nest.stage is None or not nest.stores]
    new = old.with_nests(nests)
    if rng.random() < 0.2:
        new = commute(new, rng) or new
    return Case(rewrite_of(old, new), legal, what)


def _unguarded(nest: Nest) -> Nest:
    """The nest without its guards; theta is where they held."""
    if not nest.guards:
        return nest
    where = nest.guards[0]
    for guard in nest.guards[1:]:
        where = Logical(LogicalOp.AND, where, guard)
    assert free_variables(where)
    return replace(nest, guards=(), stores=tuple(replace(s, where=where) for s in nest.stores))
