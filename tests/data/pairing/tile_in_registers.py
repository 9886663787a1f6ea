# A matrix product by tiles that are kept in registers, and so are its factors.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j, k in T.grid(16, 16, 16):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    acc = T.alloc_buffer((4, 4), "float32", scope="local")
    ra = T.alloc_buffer((4,), "float32", scope="local")
    rb = T.alloc_buffer((4,), "float32", scope="local")
    for io, jo in T.grid(4, 4):
        for ii, ji in T.grid(4, 4):
            acc[ii, ji] = T.float32(0)
        for k in range(16):
            for ii in range(4):
                ra[ii] = A[io*4 + ii, k]
            for ji in range(4):
                rb[ji] = B[k, jo*4 + ji]
            for ii, ji in T.grid(4, 4):
                acc[ii, ji] = acc[ii, ji] + ra[ii] * rb[ji]
        for ii, ji in T.grid(4, 4):
            C[io*4 + ii, jo*4 + ji] = acc[ii, ji]
