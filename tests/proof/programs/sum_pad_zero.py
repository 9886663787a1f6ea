# about: a row sum over padding of 0.0
# expect: proved
# strictness: ieee
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> 1: lambda i, jo, ji: [i, jo, ji] where 4*jo + ji < 14
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 4, 4), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [16, 14], "steps": [{"index_map": "lambda i, j: [i, j//4, j%4]", "shape": [16, 4, 4], "contract": "T.float32(0.0)"}]}}})
    for p, q, r in T.grid(16, 4, 4):
        T.evaluate(T.assume(not (q == 3 and r >= 2) or A[p, q, r] == T.float32(0)))
    for i in range(16):
        B[i] = T.float32(0)
        for jo, ji in T.grid(4, 4):
            if 4 * jo + ji < 14:
                B[i] = B[i] + A[i, jo, ji]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 4, 4), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [16, 14], "steps": [{"index_map": "lambda i, j: [i, j//4, j%4]", "shape": [16, 4, 4], "contract": "T.float32(0.0)"}]}}})
    for p, q, r in T.grid(16, 4, 4):
        T.evaluate(T.assume(not (q == 3 and r >= 2) or A[p, q, r] == T.float32(0)))
    for i in range(16):
        B[i] = T.float32(0)
        for jo, ji in T.grid(4, 4):
            B[i] = B[i] + A[i, jo, ji]
