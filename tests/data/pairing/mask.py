# A choice by a mask against the opposite one.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), M: T.Buffer((16,), "bool"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        C[i] = T.if_then_else(M[i], A[i], T.float32(0))


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), M: T.Buffer((16,), "bool"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for io, ii in T.grid(4, 4):
        C[io*4 + ii] = T.Select(not M[io*4 + ii], T.float32(0), A[io*4 + ii])
