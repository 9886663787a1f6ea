# about: max reduction padded with 0, data all negative
# expect: refuted
# theta: 0 -> 0: lambda: []
# theta: 1 -> 1: lambda i: [i] where i < 3
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [3], "steps": [{"index_map": "lambda i: [i]", "shape": [4], "contract": "0"}]}}})
    for p in range(4):
        T.evaluate(T.assume(not (p == 3) or A[p] == 0))
    B[0] = T.min_value("int32")
    for i in range(4):
        if i < 3:
            B[0] = T.max(B[0], A[i])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [3], "steps": [{"index_map": "lambda i: [i]", "shape": [4], "contract": "0"}]}}})
    for p in range(4):
        T.evaluate(T.assume(not (p == 3) or A[p] == 0))
    B[0] = T.min_value("int32")
    for i in range(4):
        B[0] = T.max(B[0], A[i])
