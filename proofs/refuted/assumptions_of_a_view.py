# about: what is assumed of padding is said by the indices of a view, the contract by those of the box
# clause: assumptions
# expect: refuted
# theta: 0 -> 0: lambda i: [i]
# cells: A_data -> A_data: lambda i: [i//4, i%4]
# interface: A
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        B[i] = A[i]

@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 4), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": "lambda p, q: p"}]}}})
    V = T.decl_buffer((2, 8), "int32", data=A.data)
    for p, q in T.grid(2, 8):
        T.evaluate(T.assume(8*p+q < 14 or V[p, q] == p))
    for i in range(14):
        B[i] = A[i//4, i%4]
