# The windows are copied into the rows of a matrix before they are summed.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), W: T.Buffer((3,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(14, 3):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi + vk] * W[vk]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), W: T.Buffer((3,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    M = T.alloc_buffer((14, 3), "float32")
    for i, k in T.grid(14, 3):
        M[i, k] = A[i + k]
    for i in range(14):
        B[i] = T.float32(0)
    for i, k in T.grid(14, 3):
        B[i] = B[i] + W[k] * M[i, k]
