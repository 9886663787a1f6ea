# Caches that are refused.

# ----- read_unknown_buffer
# step: cache_read(block='second', buffer='b', scope='global')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 12), "int32"), C: T.Buffer((16, 12), "int32")):
    B = T.sblock_alloc_buffer((16, 12), "int32")
    for i, j in T.grid(16, 12):
        with T.sblock("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] + 1
    for i, j in T.grid(16, 12):
        with T.sblock("second"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] * 2
            # error[LP301]: main has no buffer called 'b'
            # help: available: A, C, B

# ----- read_unknown_block
# step: cache_read(block='secnod', buffer='B', scope='global')
# error[LP303]: main has no block called 'secnod'
# help: did you mean 'second'?

# ----- read_of_another_block
# step: cache_read(block='second', buffer='A', scope='global')
# error[LP308] 11:9-15:37: block second does not read A

# ----- read_through_another_view
# step: cache_read(block='copy', buffer='C', scope='global')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.alloc_buffer((20,), "int32")
    rows = T.decl_buffer((4, 4), "int32", data=C.data)
    for i in range(16):
        with T.sblock("copy"):
        # error[LP308] 9-10:38: block copy does not read C
        # help: it uses another view of that memory: rows
            v = T.axis.spatial(16, i)
            C[v] = A[v]
            B[v] = rows[v // 4, v % 4]

# ----- read_of_a_region_view
# step: cache_read(block='row', buffer='A', scope='global')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 8), "int32")):
    for i in range(8):
        with T.sblock("row"):
        # error[LP308] 9-8:24: block row does not read A
            vi = T.axis.spatial(8, i)
            row = T.match_buffer(A[vi, 0:8], (8,), "int32")
            row[0] = 0
            A[vi, 1] = 1

# ----- read_before_it_is_written
# step: cache_read(block='second', buffer='B', scope='global')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
# error[LP216] 1-8: cache_read(block='second', buffer='B', scope='global'): read `B[v0]` is initialised (in block B_global) is refuted: B[0] is read at ax0 = 0 before it is written
    T.func_attr({"tirx.noalias": True})
    B = T.sblock_alloc_buffer((6,), "int32")
    for i in range(6):
        with T.sblock("first"):
            v = T.axis.spatial(6, i)
            B[v] = A[v] + 1
        with T.sblock("second"):
            v = T.axis.spatial(6, i)
            C[v] = B[v] * 2

# ----- read_of_an_accumulator
# step: cache_read(block='sum', buffer='B', scope='global')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14, 5), "int32"), B: T.Buffer((14,), "int32")):
    for i, k in T.grid(14, 5):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
            # error[LP221] 13-37: cache_read(block='sum', buffer='B', scope='global'): `B[vi]` (line 10) stores the same value at the remapped index is refuted: main: `B[13]`: expected 0, got 1
            #      before: line 10, at i = 13, k = 4, vi = 13, vk = 4: B[vi] = B[vi] + A[vi, vk]; B[13] is 0; A[13, 4] is 0
            #      after: line 10, at i = 13, k = 4, vi = 13, vk = 4: B[vi] = B[vi] + A[vi, vk]; B_global[13] is 1; A[13, 4] is 0
            #      A, int32 [14, 5]: all 0
            #      B, int32 [14]: all 0 but B[13] = 1

# ----- write_of_another_block
# step: cache_write(block='first', buffer='A', scope='global')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 12), "int32"), C: T.Buffer((16, 12), "int32")):
    B = T.sblock_alloc_buffer((16, 12), "int32")
    for i, j in T.grid(16, 12):
        with T.sblock("first"):
        # error[LP308] 9-9:37: block first does not write A
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] + 1
    for i, j in T.grid(16, 12):
        with T.sblock("second"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] * 2

# ----- write_with_another_view
# step: cache_write(block='copy', buffer='C', scope='global')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.alloc_buffer((20,), "int32")
    rows = T.decl_buffer((4, 4), "int32", data=C.data)
    # error[LP315] 5-54: block copy uses rows too, which is another view of the memory of C
    for i in range(16):
        with T.sblock("copy"):
            v = T.axis.spatial(16, i)
            C[v] = A[v]
            B[v] = rows[v // 4, v % 4]

# ----- write_of_a_region_view
# step: cache_write(block='row', buffer='A', scope='global')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 8), "int32")):
    for i in range(8):
        with T.sblock("row"):
            vi = T.axis.spatial(8, i)
            row = T.match_buffer(A[vi, 0:8], (8,), "int32")
            # error[LP315] 13-59: row is a view of a region of A and would be left behind
            row[0] = 0
            A[vi, 1] = 1

# ----- write_handed_over
# step: cache_write(block='call', buffer='A', scope='global')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32")):
    with T.sblock("call"):
        A[0] = 0
        T.evaluate(T.call_extern("int32", "frobnicate", A.data))
        # error[LP317] 20-63: A is handed to call_extern, which cannot be given a copy

# ----- read_of_what_is_inside
# step: cache_read(block='outer', buffer='B', scope='global')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    T.func_attr({"tirx.noalias": True})
    D = T.sblock_alloc_buffer((6,), "int32")
    for i in range(6):
        with T.sblock("outer"):
        # error[LP308] 9-11:28: B is allocated inside the loops of block outer, and is not there before or after them
        # help: name a block that uses it
            vi = T.axis.spatial(6, i)
            B = T.sblock_alloc_buffer((1,), "int32")
            with T.sblock("inner"):
                B[0] = A[vi] + 1
                D[vi] = B[0]
    for i in range(6):
        with T.sblock("last"):
            v = T.axis.spatial(6, i)
            C[v] = D[v]

# ----- read_of_an_assumption
# step: cache_read(block='known', buffer='A', scope='global')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        with T.sblock("known"):
        # error[LP308] 9-7:51: block known does not read A
            v = T.axis.spatial(8, i)
            T.assume(v < 6 or A[v] == T.float32(0))
    for i in range(8):
        with T.sblock("copy"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]

# ----- write_in_place
# step: cache_write(block='more', buffer='A', scope='global')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((6,), "int32")):
    for i in range(6):
        with T.sblock("more"):
            v = T.axis.spatial(6, i)
            A[v] = A[v] + 1
            # error[LP216] 13-27: cache_write(block='more', buffer='A', scope='global'): read `A_global[v]` is initialised (line 6) is refuted: A_global[0] is read at i = 0 before it is written

# ----- write_that_is_read_too_soon
# step: cache_write(block='first', buffer='B', scope='global')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    T.func_attr({"tirx.noalias": True})
    B = T.sblock_alloc_buffer((6,), "int32")
    for i in range(6):
        with T.sblock("first"):
            v = T.axis.spatial(6, i)
            B[v] = A[v] + 1
        with T.sblock("second"):
            v = T.axis.spatial(6, i)
            C[v] = B[v] * 2
            # error[LP216] 13-27: cache_write(block='first', buffer='B', scope='global'): read `B[v]` is initialised (line 11) is refuted: B[0] is read at i = 0 before it is written

# ----- reindex_root
# step: reindex(block='root', buffer='B')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 12), "int32"), C: T.Buffer((16, 12), "int32")):
# error[LP353] 1-8: the body of a function has no iterators to index a buffer by
    B = T.sblock_alloc_buffer((16, 12), "int32")
    for i, j in T.grid(16, 12):
        with T.sblock("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] + 1
    for i, j in T.grid(16, 12):
        with T.sblock("second"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] * 2

# ----- reindex_of_another_block
# step: reindex(block='second', buffer='A')
# error[LP308] 11:9-15:37: block second neither reads nor writes A

# ----- reindex_of_an_assumption
# step: reindex(block='known', buffer='A')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        with T.sblock("known"):
        # error[LP308] 9-7:51: block known neither reads nor writes A
            v = T.axis.spatial(8, i)
            T.assume(v < 6 or A[v] == T.float32(0))
    for i in range(8):
        with T.sblock("copy"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]

# ----- reindex_two_places
# step: reindex(block='stencil', buffer='A')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((6,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(6):
        with T.sblock("stencil"):
            v = T.axis.spatial(6, i)
            B[v] = A[v] + A[v + 2]
            # error[LP352] 27-34: block stencil accesses A at two places, which one buffer over its iterators cannot hold
    for i in range(6):
        with T.sblock("window"):
            v = T.axis.spatial(6, i)
            for j in range(3):
                B[v] = B[v] + A[v + j]
    for i, j in T.grid(6, 2):
        with T.sblock("by_loop"):
            v = T.axis.spatial(6, i)
            B[v] = A[v + j]

# ----- reindex_by_an_outer_loop
# step: reindex(block='by_loop', buffer='A')
# error[LP353] 14:9-16:27: where block by_loop accesses A depends on j, which is none of its iterators; only its iterators may decide that

# ----- reindex_by_an_inner_loop
# step: reindex(block='window', buffer='A')
# error[LP353] 9:9-12:38: where block window accesses A depends on j, which is none of its iterators; only its iterators may decide that
