# about: what was assumed of a sum is assumed of one half of it, which has the place and the last step of the whole
# clause: assumptions
# expect: unknown
# theta: 0 -> 0: lambda: []
# theta: 1 -> 1: lambda k: [2*k + 1]
# theta: 2 -> 0: lambda: []
# theta: 3 -> 1: lambda k: [k]
# theta: 4 -> 2: lambda: []
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((1,), "int32")
    C[0] = 0
    for k in range(8):
        C[0] = C[0] + A[k]
    T.evaluate(T.assume(C[0] == 3))
    B[0] = C[0]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((1,), "int32")
    E = T.sblock_alloc_buffer((1,), "int32")
    C[0] = 0
    for k in range(4):
        C[0] = C[0] + A[2*k + 1]
    E[0] = 0
    for k in range(8):
        E[0] = E[0] + A[k]
    T.evaluate(T.assume(C[0] == 3))
    B[0] = E[0]
