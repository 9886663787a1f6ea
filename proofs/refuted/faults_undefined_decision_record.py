# about: a branch depends on padding of which only the layout record says that it may hold anything
# clause: faults
# expect: unknown
# theta: 0 -> 0: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"C_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": "undef"}]}}})
    C = T.alloc_buffer((4, 4), "int32")
    for i in range(14):
        if C[3, 3] == C[3, 3]:
            B[i] = A[i]
