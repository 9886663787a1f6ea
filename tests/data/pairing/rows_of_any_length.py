# Shares of a sum over a symbolic axis, by tiles with a guard, nothing kept.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer(("n", "m"), "float32"), C: T.Buffer((n, m), "float32")):
    T.func_attr({"tirx.noalias": True})
    n, m = T.int32(), T.int32()
    s = T.alloc_buffer((n,), "float32")
    e = T.alloc_buffer((n, m), "float32")
    for i, j in T.grid(n, m):
        e[i, j] = T.exp(A[i, j])
    for i in range(n):
        s[i] = T.float32(0)
        for j in range(m):
            s[i] = s[i] + e[i, j]
    for i, j in T.grid(n, m):
        C[i, j] = e[i, j] / s[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer(("n", "m"), "float32"), C: T.Buffer((n, m), "float32")):
    T.func_attr({"tirx.noalias": True})
    n, m = T.int32(), T.int32()
    s = T.alloc_buffer((1,), "float32", scope="local")
    for i in range(n):
        s[0] = T.float32(0)
        for jo, ji in T.grid((m + 3) // 4, 4):
            if jo * 4 + ji < m:
                s[0] = s[0] + T.exp(A[i, jo * 4 + ji])
        for j in range(m):
            C[i, j] = T.exp(A[i, j]) / s[0]
