# Transforms of loops that are refused.

# ----- fuse_order
# step: fuse(block='root', loops=['j', 'i'])
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 5):
    # error[LP338] 5-5:35: loops that are fused are named outermost first
    # help: they stand as i, j
        B[i * 5 + j] = A[i * 5 + j]

# ----- fuse_twice
# step: fuse(block='root', loops=['i', 0])
# error[LP338] 4:5-5:35: loop i is named twice

# ----- fuse_apart
# step: fuse(block='root', loops=['i', 'j'])
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(19):
        B[i] = A[i]
    for j in range(19):
    # error[LP338] 5-7:23: between the loops j and i stands more than loops and branches
    # help: only loops that stand directly in one another can change places or become one
        A[j] = B[j + 1]

# ----- fuse_triangle
# step: fuse(block='root', loops=[0, 1])
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        for j in range(i):
        # error[LP338] 9-6:23: the range of loop j depends on i, which would be part of the same loop
            B[i] = A[j]

# ----- fuse_too_long
# step: fuse(block='root', loops=[0, 1])
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(65536, 65536):
    # error[LP337] 5-5:19: the loops i, j make 4294967296 iterations, which do not fit int32
        B[0] = A[0]

# ----- init_guarded_off_at_the_start
# step: transform_block_layout(block='sum', index_map='lambda i, k: [i, k + 3]')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
# error[LP222] 1-8: transform_block_layout(block='sum', index_map='lambda i, k: [i, k + 3]'): output buffer `B` is preserved is refuted: main with m = 0: `B[3]`: expected 0, got 1
#      before: line 9, at i = 3, k = 4, vi = 3, vk = 4: B[vi] = B[vi] + A[vk]; B[3] is 0; A[4] is 0
#      after: line 9, at ax0 = 3, ax1 = 7, v0 = 3, v1 = 7: B[vi] = B[vi] + A[vk]; B[3] is 1; A[4] is 0
#      A, int32 [20]: all 0
#      B, int32 [20]: all 0 but B[3] = 1
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(4, 5):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vk]

# ----- parallel_race
# step: parallel(block='root', loop='i')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(19):
    # error[LP220] 5-23: parallel(block='root', loop='i'): no two iterations of the parallel loop i touch one cell, one writing (line 4) is refuted: read B[i] (line 5) at i = 18 and write B[i + 1] (line 5) at i = 17 touch one cell
    # note 5:9-23: read B[i]
        B[i + 1] = B[i]

# ----- parallel_reduction
# step: parallel(block='sum', loop='k')
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def main(A: T.Buffer((14, 5), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(14, 5):
    # error[LP220] 5-30: parallel(block='sum', loop='k'): no two iterations of the parallel loop k touch one cell, one writing (line 6) is refuted: write B[vi] (line 12) at i = 13, k = 0 and read B[vi] (line 13) at i = 13, k = 4 touch one cell
    # note 13:13-37: read B[vi]
    # note 12:17-25: write B[vi]
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]

# ----- parallel_may_overlap
# step: parallel(block='copy', loop='i')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    for i in range(14):
    # error[LP230] 5-23: parallel(block='copy', loop='i'): no two iterations of the parallel loop i touch one cell, one writing (line 3) is not decided: parameters may overlap: the function does not assume noalias
    # help: state that parameters do not overlap: T.func_attr({"tirx.noalias": True})
        with T.sblock("copy"):
            v = T.axis.spatial(14, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v]

# ----- parallel_thread
# step: parallel(block='root', loop='i')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in T.thread_binding(20, thread="threadIdx.x"):
    # error[LP336] 5-5:19: loop i is bound to threadIdx.x; only loops without a thread can change
        B[i] = A[i]

# ----- vectorize_race
# step: vectorize(block='root', loop='i')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(19):
    # error[LP220] 5-23: vectorize(block='root', loop='i'): no two iterations of the vectorized loop i touch one cell, one writing (line 4) is refuted: read B[i] (line 5) at i = 18 and write B[i + 1] (line 5) at i = 17 touch one cell
    # note 5:9-23: read B[i]
        B[i + 1] = B[i]

# ----- vectorize_open
# step: vectorize(block='root', loop='i')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(T.min(T.max(m, 0), 20)):
    # error[LP361] 5-5:19: loop i has no constant number of iterations, so there is no number of lanes
    # help: split it first, by the number of lanes
        B[i] = A[i]

# ----- vectorize_twice
# step: vectorize(block='root', loop='i')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
    # error[LP361] 5-6:28: loops i and j would both be vectorized, one in the other
    # help: fuse them first
        for j in T.vectorized(5):
            B[i * 5 + j] = 1

# ----- unroll_open
# step: unroll(block='root', loop='i', expand=True)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(T.min(T.max(m, 0), 20)):
    # error[LP362] 5-5:19: loop i has no constant number of iterations, so it cannot be written out
    # help: it can be marked as unrolled all the same: expand=False
        B[i] = A[i]

# ----- unroll_too_many
# step: unroll(block='root', loop='i', expand=True)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(2000):
    # error[LP362] 5-5:21: loop i has 2000 iterations; at most 1024 are written out
    # help: split it, and expand the inner part
        B[i % 20] = i

# ----- unroll_no_loop
# step: unroll(block='root', loop='k', expand=False)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 5):
        B[i * 5 + j] = A[i * 5 + j]
        # error[LP334]: block root has no loop 'k'
        # help: its loops are i, j

# ----- merge_dependence
# step: merge_adjacent_loops(block='root', loop='i')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(19):
        B[i] = A[i]
    for j in range(19):
        A[j] = B[j + 1]
        # error[LP221] 9-23: merge_adjacent_loops(block='root', loop='i'): `A[i]` (line 7) stores the same value at the remapped index is refuted: main with m = 0: `A[17]`: expected 0, got 1
        #      before: line 7, at j = 17: A[j] = B[j + 1]; B[18] is 0
        #      after: line 7, at i = 17: A[j] = B[j + 1]; B[18] is 1
        #      A, int32 [20]: all 0
        #      B, int32 [20]: all 0 but B[18] = 1
        # help: the store to B[1] (line 5) at i = 1 came before the load of B[1] (line 7) at j = 0, and would come after it

# ----- merge_lengths
# step: merge_adjacent_loops(block='root', loop='i')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(20):
        B[i] = 1
    for j in range(19):
    # error[LP363] 5-7:16: loops i and j are not known to run equally often: 20 and 19 iterations
        A[j] = 1

# ----- merge_alone
# step: merge_adjacent_loops(block='root', loop='i')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(19):
    # error[LP363] 5-5:23: nothing stands behind loop i that it could be merged with
        B[i + 1] = B[i]

# ----- merge_behind
# step: merge_adjacent_loops(block='root', loop='i')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(20):
        B[i] = 1
    A[0] = 1
    # error[LP363] 5-12: behind loop i stands another statement, not a loop that it could be merged with

# ----- reduce_extents_no_block
# step: reduce_loop_extents(block='smu')
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def main(A: T.Buffer((14, 5), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(14, 5):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
            # error[LP303]: main has no block called 'smu'
            # help: did you mean 'sum'?

# ----- reduce_extents_undecided
# step: reduce_loop_extents(block='root')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
# error[LP230] 1-8: reduce_loop_extents(block='root'): output buffer `B` is preserved is not decided: what was stored last there is not what was (simulation: the old program has a loop (line 4), the new one a store (line 6))
    T.func_attr({"tirx.noalias": True})
    for i in range(20):
        if i * i * i < 50:
            B[i] = 1

# ----- block_layout_mixed
# step: transform_block_layout(block='sum', index_map='lambda i, k: [i*5 + k]')
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def main(A: T.Buffer((14, 5), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(14, 5):
        with T.sblock("sum"):
        # error[LP364] 9-13:37: output 0 of `lambda i, k: [i*5 + k]` mixes i (spatial) and k (reduction); a variable is of one kind
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]

# ----- block_layout_not_injective
# step: transform_block_layout(block='copy', index_map='lambda i: [i//4]')
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        with T.sblock("copy"):
        # error[LP314] 9-11:23: `lambda i: [i//4]` is not injective on the iterations of block copy: [0] and [1] both go to [0]
            v = T.axis.spatial(14, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v]

# ----- block_layout_arity
# step: transform_block_layout(block='copy', index_map='lambda i, j: [i, j]')
# error[LP309] 7:9-11:23: `lambda i, j: [i, j]` takes 2 indices, block copy has 1 iteration variable

# ----- block_layout_binding
# step: transform_block_layout(block='next', index_map='lambda i: [i]')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(19):
        with T.sblock("next"):
        # error[LP364] 9-7:23: v of block next is not bound to a loop that holds nothing but the block
            v = T.axis.spatial(20, i + 1)
            B[v] = A[v]
