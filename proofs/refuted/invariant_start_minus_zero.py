# about: a sum that the caller begins may begin at -0.0, which adding the padding's +0.0 changes
# clause: invariant-start
# expect: refuted
# strictness: ieee
# theta: 0 -> 0: lambda i, j: [i, j] where 2*i + j < 3
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((2, 2), "float32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [3], "steps": [{"index_map": "lambda i: [i//2, i%2]", "shape": [2, 2], "contract": "T.float32(0.0)"}]}}})
    for p, q in T.grid(2, 2):
        T.evaluate(T.assume(not (p == 1 and q == 1) or A[p, q] == T.float32(0)))
    for i, j in T.grid(2, 2):
        if 2 * i + j < 3:
            B[0] = B[0] + A[i, j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((2, 2), "float32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [3], "steps": [{"index_map": "lambda i: [i//2, i%2]", "shape": [2, 2], "contract": "T.float32(0.0)"}]}}})
    for p, q in T.grid(2, 2):
        T.evaluate(T.assume(not (p == 1 and q == 1) or A[p, q] == T.float32(0)))
    for i, j in T.grid(2, 2):
        B[0] = B[0] + A[i, j]
