# about: the same, the weight assumed to be finite
# expect: proved
# strictness: ieee
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> 1: lambda i, k: [i, k] where 1 <= i + k and i + k < 7
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), W: T.Buffer((3,), "float32"), B: T.Buffer((6,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [6], "steps": [{"index_map": "lambda i: [i + 1]", "shape": [8], "contract": "T.float32(0.0)"}]}}})
    for p in range(8):
        T.evaluate(T.assume(not (p < 1 or p >= 7) or A[p] == T.float32(0)))
    for k in range(3):
        T.evaluate(T.assume(T.abs(W[k]) < T.infinity("float32")))
    for i in range(6):
        B[i] = T.float32(0)
        for k in range(3):
            if 1 <= i + k and i + k < 7:
                B[i] = B[i] + A[i + k] * W[k]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), W: T.Buffer((3,), "float32"), B: T.Buffer((6,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [6], "steps": [{"index_map": "lambda i: [i + 1]", "shape": [8], "contract": "T.float32(0.0)"}]}}})
    for p in range(8):
        T.evaluate(T.assume(not (p < 1 or p >= 7) or A[p] == T.float32(0)))
    for k in range(3):
        T.evaluate(T.assume(T.abs(W[k]) < T.infinity("float32")))
    for i in range(6):
        B[i] = T.float32(0)
        for k in range(3):
            B[i] = B[i] + A[i + k] * W[k]
