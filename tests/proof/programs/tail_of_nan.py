# about: a bf16 product whose tail is 0 in one operand and NaN in the other
# expect: refuted
# theta: 0 -> 0: lambda: []
# theta: 1 -> 1: lambda k: [k] where k < 3
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "bfloat16"), W: T.Buffer((4,), "bfloat16"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [3], "steps": [{"index_map": "lambda i: [i]", "shape": [4], "contract": "T.bfloat16(0.0)"}]}, "W_data": {"logical_shape": [3], "steps": [{"index_map": "lambda i: [i]", "shape": [4], "contract": 'T.bfloat16("nan")'}]}}})
    for p in range(4):
        T.evaluate(T.assume(not p >= 3 or A[p] == T.bfloat16(0)))
    for p in range(4):
        T.evaluate(T.assume(not p >= 3 or W[p] == T.bfloat16("nan")))
    B[0] = T.float32(0)
    for k in range(4):
        if k < 3:
            B[0] = B[0] + T.Cast("float32", A[k]) * T.Cast("float32", W[k])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "bfloat16"), W: T.Buffer((4,), "bfloat16"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [3], "steps": [{"index_map": "lambda i: [i]", "shape": [4], "contract": "T.bfloat16(0.0)"}]}, "W_data": {"logical_shape": [3], "steps": [{"index_map": "lambda i: [i]", "shape": [4], "contract": 'T.bfloat16("nan")'}]}}})
    for p in range(4):
        T.evaluate(T.assume(not p >= 3 or A[p] == T.bfloat16(0)))
    for p in range(4):
        T.evaluate(T.assume(not p >= 3 or W[p] == T.bfloat16("nan")))
    B[0] = T.float32(0)
    for k in range(4):
        B[0] = B[0] + T.Cast("float32", A[k]) * T.Cast("float32", W[k])
