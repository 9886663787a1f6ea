# about: the same, every cell of padding filled
# expect: proved
# strictness: ieee
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> none
# cells: B_data -> B_data: lambda i: [(i + 2)//8, (i + 2)%8]
# interface: B
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((18,), "float32"), B: T.Buffer((18,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(18):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((18,), "float32"), B: T.Buffer((3, 8), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"B_data": {"logical_shape": [18], "steps": [{"index_map": "lambda i: [(i + 2)//8, (i + 2)%8]", "shape": [3, 8], "contract": "T.float32(0.0)"}]}}})
    for i in range(18):
        B[(i + 2) // 8, (i + 2) % 8] = A[i]
    for p, q in T.grid(3, 8):
        if (p == 0 and q < 2) or (p == 2 and q >= 4):
            B[p, q] = T.float32(0)
