"""Random schedule primitives and lowering passes of TVM, each tried, and left out where TVM refuses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import tvm
from tvm import s_tir, tirx

Schedule = Any
Step = Callable[[Schedule, Random], object]

PADS = (None, 0.0, 1.0)
FACTORS = (2, 3, 4, 5, 8)


def _block(s: Schedule, rng: Random) -> Any:
    """A block of those that compute something."""
    return rng.choice(s.get_child_blocks(s.get_sblock("root")))


def _loops(s: Schedule, rng: Random) -> list[Any]:
    return list(s.get_loops(_block(s, rng)))


def _loop(s: Schedule, rng: Random) -> Any:
    return rng.choice(_loops(s, rng))


def _operand(s: Schedule, block: Any, rng: Random) -> tuple[str, int]:
    """Which buffer of a block."""
    node = s.get(block)
    kind = rng.choice(["read", "write"]) if len(node.reads) > 0 else "write"
    return kind, rng.randrange(len(node.reads) if kind == "read" else len(node.writes))


def _index_map(rank: int, function: Callable[[Sequence[Any]], Sequence[Any]]) -> Any:
    """A map of `rank` indices: TVM counts the arguments of a function."""
    return tirx.IndexMap.from_func(lambda *i: list(function(i)), ndim=rank)


def split(s: Schedule, rng: Random) -> None:
    s.split(_loop(s, rng), [None, rng.choice(FACTORS)])


def fuse(s: Schedule, rng: Random) -> None:
    loops = _loops(s, rng)
    k = rng.randrange(len(loops) - 1)
    s.fuse(loops[k], loops[k + 1])


def reorder(s: Schedule, rng: Random) -> None:
    loops = _loops(s, rng)
    s.reorder(*rng.sample(loops, min(len(loops), rng.randint(2, 4))))


def tile(s: Schedule, rng: Random) -> None:
    loops = _loops(s, rng)
    k = rng.randrange(len(loops) - 1)
    y, x = (s.split(loop, [None, rng.choice(FACTORS)]) for loop in loops[k : k + 2])
    s.reorder(y[0], x[0], y[1], x[1])


def vectorize(s: Schedule, rng: Random) -> None:
    loop = _loops(s, rng)[-1]
    s.vectorize(s.split(loop, [None, rng.choice((2, 4))])[1] if rng.random() < 0.6 else loop)


def unroll(s: Schedule, rng: Random) -> None:
    s.unroll(_loops(s, rng)[-1])


def parallel(s: Schedule, rng: Random) -> None:
    s.parallel(_loops(s, rng)[0])


def compute_at(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    s.compute_at(block, rng.choice(s.get_loops(rng.choice(s.get_consumers(block)))))


def reverse_compute_at(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    s.reverse_compute_at(block, rng.choice(s.get_loops(rng.choice(s.get_producers(block)))))


def compute_inline(s: Schedule, rng: Random) -> None:
    s.compute_inline(_block(s, rng))


def reverse_compute_inline(s: Schedule, rng: Random) -> None:
    s.reverse_compute_inline(_block(s, rng))


def cache_read(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    cached = s.cache_read(block, rng.randrange(len(s.get(block).reads)), rng.choice(("global", "local")))
    if rng.random() < 0.5:
        s.compute_at(cached, rng.choice(s.get_loops(block)))


def cache_write(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    cached = s.cache_write(block, 0, "global")
    if rng.random() < 0.5:
        s.reverse_compute_at(cached, rng.choice(s.get_loops(block)))


def cache_index(s: Schedule, rng: Random) -> None:
    if not s.cache_index(_block(s, rng), "global"):
        raise ValueError("no index to cache")


def reindex(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    s.reindex(block, _operand(s, block, rng))


def reindex_cache_read(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    rank = len(s.get(block).iter_vars)
    order = list(range(rank))
    rng.shuffle(order)
    s.reindex_cache_read(block, 0, "global", _index_map(rank, lambda i: [i[k] for k in order]))


def reindex_cache_write(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    node = s.get(block)
    spatial = [k for k, v in enumerate(node.iter_vars) if v.iter_type == tirx.IterVar.DataPar]
    rng.shuffle(spatial)
    s.reindex_cache_write(block, 0, "global", _index_map(len(node.iter_vars), lambda i: [i[k] for k in spatial]))


def transform_layout(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    kind, number = operand = _operand(s, block, rng)
    node = s.get(block)
    region = (node.reads if kind == "read" else node.writes)[number]
    rank, dtype = len(region.source.shape), region.source.dtype
    axis, factor = rng.randrange(rank), rng.choice(FACTORS)
    order = list(range(rank))
    rng.shuffle(order)

    def packed(i: Sequence[Any]) -> list[Any]:
        cut = [tirx.floordiv(i[k], factor) if k == axis else i[k] for k in range(rank)]
        return [*cut, tirx.floormod(i[axis], factor)]

    def fused(i: Sequence[Any]) -> list[Any]:
        at = min(axis, rank - 2)
        return [*i[:at], i[at] * region.source.shape[at + 1] + i[at + 1], *i[at + 2 :]]

    maps: list[Callable[[Sequence[Any]], list[Any]]] = [packed, lambda i: [i[k] for k in order]]
    if rank > 1:
        maps.append(fused)
    pad = rng.choice(PADS)
    if pad is not None and not str(dtype).startswith("float"):
        pad = int(pad)
    s.transform_layout(block, operand, _index_map(rank, rng.choice(maps)), pad_value=pad)


def transform_block_layout(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    node = s.get(block)
    rank = len(node.iter_vars)
    order = list(range(rank))
    rng.shuffle(order)

    def flat(i: Sequence[Any]) -> list[Any]:
        whole: Any = 0
        for var, iter_var in zip(i, node.iter_vars, strict=True):
            whole = whole * iter_var.dom.extent + var
        return [whole]

    s.transform_block_layout(block, _index_map(rank, rng.choice([flat, lambda i: [i[k] for k in order]])))


def rfactor(s: Schedule, rng: Random) -> None:
    s.rfactor(_loop(s, rng), rng.choice((0, 0, 1)))


def split_rfactor(s: Schedule, rng: Random) -> None:
    s.rfactor(s.split(_loop(s, rng), [None, rng.choice(FACTORS)])[rng.randrange(2)], 0)


def decompose_reduction(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    s.decompose_reduction(block, rng.choice(s.get_loops(block)))


def decompose_padding(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    s.decompose_padding(block, rng.choice(s.get_loops(block)))


def blockize(s: Schedule, rng: Random) -> None:
    s.blockize(_loop(s, rng))


def merge(s: Schedule, rng: Random) -> None:
    blocks = s.get_child_blocks(s.get_sblock("root"))
    # TVM asks for no order: it also merges a loop into one before it whose results it reads.
    first, second = sorted(rng.sample(range(len(blocks)), 2))
    first, second = blocks[first], blocks[second]
    s.merge(s.get_loops(first)[0], s.get_loops(second)[0])


def pad_einsum(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    s.pad_einsum(block, [rng.choice((1, 2, 4, 8)) for _ in s.get(block).iter_vars])


def storage_align(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    s.storage_align(
        block, 0, rng.randrange(len(s.get(block).writes[0].source.shape)), rng.choice((4, 8)), rng.choice((0, 1))
    )


def set_scope(s: Schedule, rng: Random) -> None:
    s.set_scope(_block(s, rng), 0, rng.choice(("local", "shared")))


def rolling_buffer(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    s.compute_at(block, rng.choice(s.get_loops(rng.choice(s.get_consumers(block)))))
    s.rolling_buffer(block, 0)


def add_unit_loop(s: Schedule, rng: Random) -> None:
    s.add_unit_loop(rng.choice((_block, _loop))(s, rng))


def loop_partition(s: Schedule, rng: Random) -> None:
    s.loop_partition(_loop(s, rng), [rng.choice((1, 2, 3)), None])


def reorder_block_iter_var(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    order = list(range(len(s.get(block).iter_vars)))
    rng.shuffle(order)
    s.reorder_block_iter_var(block, order)


def fuse_reduction_epilogue(s: Schedule, rng: Random) -> None:
    block = _block(s, rng)
    s.fuse_reduction_epilogue(block, rng.choice(s.get_consumers(block)))


PRIMITIVES: Mapping[str, Step] = {
    step.__name__: step
    for step in (
        split,
        fuse,
        reorder,
        tile,
        vectorize,
        unroll,
        parallel,
        compute_at,
        reverse_compute_at,
        compute_inline,
        reverse_compute_inline,
        cache_read,
        cache_write,
        cache_index,
        reindex,
        reindex_cache_read,
        reindex_cache_write,
        transform_layout,
        transform_block_layout,
        rfactor,
        split_rfactor,
        decompose_reduction,
        decompose_padding,
        blockize,
        merge,
        pad_einsum,
        storage_align,
        set_scope,
        rolling_buffer,
        add_unit_loop,
        loop_partition,
        reorder_block_iter_var,
        fuse_reduction_epilogue,
    )
}

LOWERING: tuple[tuple[str, Callable[[], Any]], ...] = (
    ("CanonicalizeLoop", s_tir.transform.CanonicalizeLoop),
    ("LowerInitBlock", s_tir.transform.LowerInitBlock),
    ("PlanAndUpdateBufferAllocationLocation", s_tir.transform.PlanAndUpdateBufferAllocationLocation),
    ("ConvertBlocksToOpaque", s_tir.transform.ConvertBlocksToOpaque),
    ("CompactBufferAllocation", s_tir.transform.CompactBufferAllocation),
    ("LowerMatchBuffer", s_tir.transform.LowerMatchBuffer),
    ("s_tir.StmtSimplify", s_tir.transform.StmtSimplify),
    ("AnnotateIrregularLoop", s_tir.transform.AnnotateIrregularLoop),
    ("LowerOpaqueBlock", s_tir.transform.LowerOpaqueBlock),
    ("FlattenBuffer", tirx.transform.FlattenBuffer),
    ("NarrowDataType", lambda: tirx.transform.NarrowDataType(32)),
    ("LoopPartition", s_tir.transform.LoopPartition),
    ("VectorizeLoop", tirx.transform.VectorizeLoop),
    ("StorageRewrite", tirx.transform.StorageRewrite),
    ("HoistIfThenElse", s_tir.transform.HoistIfThenElse),
    ("UnrollLoop", tirx.transform.UnrollLoop),
    ("RenormalizeSplitPattern", s_tir.transform.RenormalizeSplitPattern),
    ("tirx.StmtSimplify", tirx.transform.StmtSimplify),
    ("RemoveNoOp", tirx.transform.RemoveNoOp),
    ("RewriteUnsafeSelect", s_tir.transform.RewriteUnsafeSelect),
    ("CommonSubexprElim", tirx.transform.CommonSubexprElim),
)
"""TVM's way from blocks to flat loops, in order; any beginning of it is taken."""

OTHERS: tuple[tuple[str, Callable[[], Any]], ...] = (
    ("HoistExpression", s_tir.transform.HoistExpression),
    ("RemoveWeightLayoutRewriteBlock", s_tir.transform.RemoveWeightLayoutRewriteBlock),
    ("ConvertSSA", tirx.transform.ConvertSSA),
    ("ForceNarrowIndexToInt32", tirx.transform.ForceNarrowIndexToInt32),
    ("UseAssumeToReduceBranches", s_tir.transform.UseAssumeToReduceBranches),
    ("UnifyThreadBinding", s_tir.transform.UnifyThreadBinding),
    ("s_tir.StmtSimplify", s_tir.transform.StmtSimplify),
    ("RemoveNoOp", tirx.transform.RemoveNoOp),
)

OPTIONS = {"s_tir.LoopPartition": {"partition_const_loop": True}, "tirx.UnrollLoop": {"auto_max_step": 16}}


def scheduled(func: Any, rng: Random, count: int) -> tuple[Any, list[str]]:
    """The function after up to `count` primitives that TVM took, and their names."""
    done: list[str] = []
    schedule = s_tir.Schedule(tvm.IRModule({"main": func}), seed=rng.getrandbits(30))
    for _ in range(8 * count):
        name = rng.choice(list(PRIMITIVES))
        trial = schedule.copy()
        try:
            PRIMITIVES[name](trial, rng)
        # Most draws are no legal step; TVM says so by many kinds of exceptions.
        except Exception:  # noqa: BLE001  # a refusal of TVM is not our concern
            continue
        schedule = trial
        done.append(name)
        if len(done) == count:
            break
    return schedule.mod["main"], done


def passed(func: Any, rng: Random) -> tuple[Any, list[str]]:
    """The function after the beginning of TVM's way to flat loops, or after another pass; and their names."""
    if rng.random() < 0.2:
        chosen: list[tuple[str, Callable[[], Any]]] = [rng.choice(OTHERS)]
    else:
        chosen = list(LOWERING[: rng.randint(1, len(LOWERING))])
    module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    with tvm.transform.PassContext(config=OPTIONS if rng.random() < 0.5 else {}):
        for _, make in chosen:
            module = make()(module)
    return module["main"], [name for name, _ in chosen]
