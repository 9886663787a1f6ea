# Walks over a memory that would change what is computed.

# ----- cumulative_14
# step: sequential_buffer_access(block='root', buffer='A')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((15,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, f in T.grid(14, 3):
        B[i + 1] = B[i + 1] + (A[i + f] + B[i]) * F[f]
        # error[LP221] 9-54: sequential_buffer_access(block='root', buffer='A'): `B[i_0 - f + 1]` (line 5) stores the same value at the remapped index is refuted: main: `B[14]`: expected 4.0 (0x1p+2), got 3.0 (0x1.8p+1)
        #      before: line 5, at i = 13, f = 2: B[i + 1] = B[i + 1] + (A[i + f] + B[i]) * F[f]; B[14] is 2.0 (0x1p+1); A[15] is 0.0 (0x0p+0); B[13] is 2.0 (0x1p+1); F[2] is 1.0 (0x1p+0)
        #      after: line 5, at i_0 = 15, f = 2: B[i + 1] = B[i + 1] + (A[i + f] + B[i]) * F[f]; B[14] is 1.0 (0x1p+0); A[15] is 0.0 (0x0p+0); B[13] is 2.0 (0x1p+1); F[2] is 1.0 (0x1p+0)
        #      A, float32 [16]: all 0.0
        #      F, float32 [3]: 0.0, 1.0, 1.0
        #      B, float32 [15]: all 0.0 but B[12] = 1.0
        # help: the store to B[1] (line 5) at i = 0, f = 1 came before the load of B[1] (line 5) at i = 1, f = 0, and would come after it

# ----- cumulative_n
# step: sequential_buffer_access(block='root', buffer='A')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((n + 2,), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((n + 1,), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i, f in T.grid(n, 3):
        B[i + 1] = B[i + 1] + (A[i + f] + B[i]) * F[f]
        # error[LP221] 9-54: sequential_buffer_access(block='root', buffer='A'): `B[i_0 - f + 1]` (line 6) stores the same value at the remapped index is refuted: main with n = 2: `B[2]`: expected 4.0 (0x1p+2), got 3.0 (0x1.8p+1)
        #      before: line 6, at i = 1, f = 2: B[i + 1] = B[i + 1] + (A[i + f] + B[i]) * F[f]; B[2] is 4.0 (0x1p+2); A[3] is 0.0 (0x0p+0); B[1] is 2.0 (0x1p+1); F[2] is 0.0 (0x0p+0)
        #      after: line 6, at i_0 = 3, f = 2: B[i + 1] = B[i + 1] + (A[i + f] + B[i]) * F[f]; B[2] is 3.0 (0x1.8p+1); A[3] is 0.0 (0x0p+0); B[1] is 2.0 (0x1p+1); F[2] is 0.0 (0x0p+0)
        #      A, float32 [4]: 0.0, 0.0, 0.0, 0.0
        #      F, float32 [3]: 1.0, 1.0, 0.0
        #      B, float32 [3]: 1.0, 0.0, 0.0
        # help: the store to B[1] (line 6) at i = 0, f = 1 came before the load of B[1] (line 6) at i = 1, f = 0, and would come after it
