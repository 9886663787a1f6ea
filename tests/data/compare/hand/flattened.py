# One dimension for every buffer, by decl_buffer over the same data.
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
    A_1 = T.decl_buffer((192,), data=A.data)
    B_1 = T.decl_buffer((96,), data=B.data)
    C_1 = T.decl_buffer((128,), data=C.data)
    for i, j, k in T.grid(16, 8, 12):
        if k == 0:
            C_1[i*8 + j] = T.float32(0)
        C_1[i*8 + j] = C_1[i*8 + j] + A_1[i*12 + k] * B_1[k*8 + j]
