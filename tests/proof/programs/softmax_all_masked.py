# about: a mask of -inf instead of a guard: a row that is masked throughout gives NaN
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "float32"), D: T.Buffer((4,), "int32"), M: T.Buffer((1,), "float32"), S: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    M[0] = T.float32("-inf")
    for i in range(4):
        if D[i] > 0:
            M[0] = T.max(A[i], M[0])
    S[0] = T.float32(0)
    for i in range(4):
        if D[i] > 0:
            S[0] = S[0] + T.exp(A[i] - M[0])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "float32"), D: T.Buffer((4,), "int32"), M: T.Buffer((1,), "float32"), S: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    M[0] = T.float32("-inf")
    for i in range(4):
        M[0] = T.max(T.Select(D[i] > 0, A[i], T.float32("-inf")), M[0])
    S[0] = T.float32(0)
    for i in range(4):
        S[0] = S[0] + T.exp(T.Select(D[i] > 0, A[i], T.float32("-inf")) - M[0])
