# about: a fused sum that begins at +0.0 can become -0.0, and then the padding changes it
# clause: invariant-kept
# expect: refuted
# strictness: ieee
# theta: 0 -> 0: lambda: []
# theta: 1 -> 1: lambda i: [i] where i < 2
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((3,), "float32"), W: T.Buffer((3,), "float32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [2], "steps": [{"index_map": "lambda i: [i]", "shape": [3], "contract": "T.float32(0.0)"}]}, "W_data": {"logical_shape": [2], "steps": [{"index_map": "lambda i: [i]", "shape": [3], "contract": "T.float32(0.0)"}]}}})
    for p in range(3):
        T.evaluate(T.assume(not p >= 2 or A[p] == T.float32(0)))
    for p in range(3):
        T.evaluate(T.assume(not p >= 2 or W[p] == T.float32(0)))
    B[0] = T.float32(0)
    for i in range(3):
        if i < 2:
            B[0] = T.fma(A[i], W[i], B[0])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((3,), "float32"), W: T.Buffer((3,), "float32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [2], "steps": [{"index_map": "lambda i: [i]", "shape": [3], "contract": "T.float32(0.0)"}]}, "W_data": {"logical_shape": [2], "steps": [{"index_map": "lambda i: [i]", "shape": [3], "contract": "T.float32(0.0)"}]}}})
    for p in range(3):
        T.evaluate(T.assume(not p >= 2 or A[p] == T.float32(0)))
    for p in range(3):
        T.evaluate(T.assume(not p >= 2 or W[p] == T.float32(0)))
    B[0] = T.float32(0)
    for i in range(3):
        B[0] = T.fma(A[i], W[i], B[0])
