# about: the same, dividing by the logical count
# expect: proved
# strictness: ieee
# theta: 0 -> 0: lambda: []
# theta: 1 -> 1: lambda i: [i] where i < 3
# theta: 2 -> 2: lambda: []
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [3], "steps": [{"index_map": "lambda i: [i]", "shape": [4], "contract": "T.float32(0.0)"}]}}})
    for p in range(4):
        T.evaluate(T.assume(not (p == 3) or A[p] == T.float32(0)))
    S = T.sblock_alloc_buffer((1,))
    S[0] = T.float32(0)
    for i in range(3):
        S[0] = S[0] + A[i]
    B[0] = S[0] / T.float32(3)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [3], "steps": [{"index_map": "lambda i: [i]", "shape": [4], "contract": "T.float32(0.0)"}]}}})
    for p in range(4):
        T.evaluate(T.assume(not (p == 3) or A[p] == T.float32(0)))
    S = T.sblock_alloc_buffer((1,))
    S[0] = T.float32(0)
    for i in range(4):
        S[0] = S[0] + A[i]
    B[0] = S[0] / T.float32(3)
