# about: padding that callers are promised to find 0 in ends as -0, which no fast-math assumption makes up for
# clause: padding-postcondition
# expect: refuted
# theta: 0 -> 0: lambda i0, i1: [4*i0 + i1] where 4*i0 + i1 < 14
# cells: B_data -> B_data: lambda i: [i//4, i%4]
# interface: B
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        B[i] = T.exp(A[i])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"B_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": "T.float32(0)"}]}}})
    for i0, i1 in T.grid(4, 4):
        B[i0, i1] = T.if_then_else(4 * i0 + i1 < 14, T.exp(A[i0 * 4 + i1]), T.float32(-0.0))
