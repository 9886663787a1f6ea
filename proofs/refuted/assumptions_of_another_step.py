# about: padding that a first layout leaves with 1 is said to hold what the contract of a second one states
# clause: assumptions
# expect: refuted
# theta: 0 -> 0: lambda: []
# theta: 1 -> 1: lambda a, b, c: [12*a + 4*b + c] where 12*a + 4*b + c < 14
# cells: A_data -> A_data: lambda i: [i//12, i//4%3, i%4]
# interface: A
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = 0
    for i in range(14):
        B[0] = B[0] + A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((2, 3, 4), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": "T.int32(1)"}, {"index_map": "lambda a, b: [a//3, a%3, b]", "shape": [2, 3, 4], "contract": "T.int32(0)"}]}}})
    for a, b, c in T.grid(2, 3, 4):
        T.evaluate(T.assume(not (3*a + b == 3 and c >= 2) or A[a, b, c] == 0))
    for a, b, c in T.grid(2, 3, 4):
        T.evaluate(T.assume(not (3*a + b >= 4) or A[a, b, c] == 0))
    B[0] = 0
    for a, b, c in T.grid(2, 3, 4):
        B[0] = B[0] + A[a, b, c]
