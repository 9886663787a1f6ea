from tvm.script import tir as T


@T.prim_func
def row_summation(a: T.handle, b: T.handle):
    A = T.match_buffer(shape=(16, 14), dtype="float32")
    B = T.match_buffer(shape=(16,), dtype="float32")
    for i in T.serial(16):
        B[i] = 0.0
        for j in T.serial(14):
            B[i] = B[i] + A[i, j]


@T.prim_func
def row_summation_guarded(a: T.handle, b: T.handle):
    A = T.match_buffer(shape=(16, 4, 4), dtype="float32")
    B = T.match_buffer(shape=(16,), dtype="float32")
    for i in T.serial(16):
        B[i] = 0.0
        for j_outer, j_inner in T.grid(4, 4):
            if 4*j_outer + j_inner < 14:
                B[i] = B[i] + A[i, j_outer, j_inner]


@T.prim_func
def row_summation_overcomputed(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (16, 4, 4), "float32")
    B = T.match_buffer(b, (16,), "float32")
    for i in T.serial(16):
        B[i] = 0.0
        for j_outer, j_inner in T.grid(4, 4):
            B[i] = B[i] + A[i, j_outer, j_inner]
