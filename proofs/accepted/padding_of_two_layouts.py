# about: padding of two layouts in one step, each with a contract of its own: what is assumed of it is what these state
# expect: proved
# theta: 0 -> 0
# cells: A_data -> A_data: lambda i: [(i//4)//3, i//4%3, i%4]
# interface: A
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((2, 3, 4), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": "T.float32(0)"}, {"index_map": "lambda a, b: [a//3, a%3, b]", "shape": [2, 3, 4], "contract": "T.float32(1)"}]}}})
    for a, b in T.grid(2, 3):
        for c in range(4):
            T.assume(not (a*3 + b == 3 and c >= 2) or A[a, b, c] == T.float32(0))
    for a, b in T.grid(2, 3):
        for c in range(4):
            T.assume(not (a*3 + b >= 4) or A[a, b, c] == T.float32(1))
    for i in range(14):
        B[i] = A[i//12, i//4%3, i%4]
