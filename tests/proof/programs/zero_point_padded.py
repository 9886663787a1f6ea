# about: the same, padded with the zero point
# expect: proved
# strictness: ieee
# theta: 0 -> 0: lambda: []
# theta: 1 -> 1: lambda k: [k] where k < 3
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "int8"), W: T.Buffer((4,), "int8"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [3], "steps": [{"index_map": "lambda i: [i]", "shape": [4], "contract": "T.int8(5)"}]}}})
    for p in range(4):
        T.evaluate(T.assume(not p >= 3 or A[p] == 5))
    B[0] = 0
    for k in range(4):
        if k < 3:
            B[0] = B[0] + (T.Cast("int32", A[k]) - 5) * T.Cast("int32", W[k])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "int8"), W: T.Buffer((4,), "int8"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [3], "steps": [{"index_map": "lambda i: [i]", "shape": [4], "contract": "T.int8(5)"}]}}})
    for p in range(4):
        T.evaluate(T.assume(not p >= 3 or A[p] == 5))
    B[0] = 0
    for k in range(4):
        B[0] = B[0] + (T.Cast("int32", A[k]) - 5) * T.Cast("int32", W[k])
