# The left input is read from a transposed copy, and tiles of the result are summed in registers.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 12), "float32"), B: T.Buffer((12, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j, k in T.grid(16, 8, 12):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 12), "float32"), B: T.Buffer((12, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    A_p = T.alloc_buffer((12, 16), "float32")
    C_l = T.alloc_buffer((4, 4), "float32", scope="local")
    for k, i in T.grid(12, 16):
        A_p[k, i] = A[i, k]
    for io, jo in T.grid(4, 2):
        for ii, ji in T.grid(4, 4):
            C_l[ii, ji] = T.float32(0)
        for k, ii, ji in T.grid(12, 4, 4):
            C_l[ii, ji] = C_l[ii, ji] + A_p[k, io*4 + ii] * B[k, jo*4 + ji]
        for ii, ji in T.grid(4, 4):
            C[io*4 + ii, jo*4 + ji] = C_l[ii, ji]
