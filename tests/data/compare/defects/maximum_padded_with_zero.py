# The rows of a maximum are padded with 0, and rows of negative numbers come out 0.
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4, 14), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(4, 14):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.min_value("float32")
            B[vi] = T.max(B[vi], A[vi, vk])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 14), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((4, 16), "float32")
    for i, k in T.grid(4, 16):
        P[i, k] = T.if_then_else(k < 14, A[i, k], T.float32(0))
    for i, k in T.grid(4, 16):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.min_value("float32")
            B[vi] = T.max(B[vi], P[vi, vk])
