# about: the same condition decides in both programs, but in the old one on what was stored since, so that it is defined
# clause: faults
# expect: unknown
# theta: 0 -> 0: lambda: []
# theta: 1 -> 2: lambda i: [i]
# theta: 2 -> none
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(D: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.alloc_buffer((1,), "int32")
    U = T.alloc_buffer((8,), "int32")
    C[0] = T.undef()
    C[0] = D[0]
    for i in range(8):
        B[i] = 1
    if C[0] > 0:
        U[0] = 1


@T.prim_func(s_tir=True)
def after(D: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.alloc_buffer((1,), "int32")
    U = T.alloc_buffer((8,), "int32")
    C[0] = T.undef()
    for i in range(8):
        B[i] = 1
    if C[0] > 0:
        U[0] = 1
