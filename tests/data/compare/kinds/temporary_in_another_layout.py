# The temporary lies transposed and in fours, with padding that nobody reads.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((6, 14), "float32"), B: T.Buffer((6, 14), "float32")):
    T.func_attr({"tirx.noalias": True})
    E = T.alloc_buffer((6, 14), "float32")
    for i, j in T.grid(6, 14):
        E[i, j] = T.exp(A[i, j])
    for i, j in T.grid(6, 14):
        B[i, j] = E[i, j] + E[i, 13 - j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((6, 14), "float32"), B: T.Buffer((6, 14), "float32")):
    T.func_attr({"tirx.noalias": True})
    E = T.alloc_buffer((4, 6, 4), "float32")
    for jo, i, ji in T.grid(4, 6, 4):
        if jo*4 + ji < 14:
            E[jo, i, ji] = T.exp(A[i, jo*4 + ji])
    for i, j in T.grid(6, 14):
        B[i, j] = E[j // 4, i, j % 4] + E[(13 - j) // 4, i, (13 - j) % 4]
