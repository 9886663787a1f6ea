# about: relu of padding 0 is the 0 that is owed, so that its loop may go
# expect: proved
# strictness: ieee
# theta: 0 -> 0: lambda i, j: [i, j] where 4*i + j < 14
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": "T.float32(0.0)"}]}, "B_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": "T.float32(0.0)"}]}}})
    for p, q in T.grid(4, 4):
        T.evaluate(T.assume(not (p == 3 and q >= 2) or A[p, q] == T.float32(0)))
    for i, j in T.grid(4, 4):
        if 4 * i + j < 14:
            B[i, j] = T.max(A[i, j], T.float32(0))
    for p, q in T.grid(4, 4):
        if p == 3 and q >= 2:
            B[p, q] = T.float32(0)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": "T.float32(0.0)"}]}, "B_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": "T.float32(0.0)"}]}}})
    for p, q in T.grid(4, 4):
        T.evaluate(T.assume(not (p == 3 and q >= 2) or A[p, q] == T.float32(0)))
    for i, j in T.grid(4, 4):
        B[i, j] = T.max(A[i, j], T.float32(0))
