# about: the same over padding of -inf: a row that is -inf throughout gives NaN, so finite values are needed
# expect: proved
# strictness: nnan ninf
# theta: 0 -> 0: lambda: []
# theta: 1 -> 1: lambda i, j: [i, j] where 4*i + j < 14
# theta: 2 -> 2: lambda: []
# theta: 3 -> 3: lambda i, j: [i, j] where 4*i + j < 14
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4, 4), "float32"), M: T.Buffer((1,), "float32"), S: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": 'T.float32("-inf")'}]}}})
    for p, q in T.grid(4, 4):
        T.evaluate(T.assume(not (p == 3 and q >= 2) or A[p, q] == T.float32("-inf")))
    M[0] = T.float32("-inf")
    for i, j in T.grid(4, 4):
        if 4 * i + j < 14:
            M[0] = T.max(A[i, j], M[0])
    S[0] = T.float32(0)
    for i, j in T.grid(4, 4):
        if 4 * i + j < 14:
            S[0] = S[0] + T.exp(A[i, j] - M[0])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 4), "float32"), M: T.Buffer((1,), "float32"), S: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": 'T.float32("-inf")'}]}}})
    for p, q in T.grid(4, 4):
        T.evaluate(T.assume(not (p == 3 and q >= 2) or A[p, q] == T.float32("-inf")))
    M[0] = T.float32("-inf")
    for i, j in T.grid(4, 4):
        M[0] = T.max(A[i, j], M[0])
    S[0] = T.float32(0)
    for i, j in T.grid(4, 4):
        S[0] = S[0] + T.exp(A[i, j] - M[0])
