# about: rows are looked up by an input that may hold any number, in a table that is stored by blocks, eight at a time
# expect: proved
# strictness: ieee
# cells: A_data -> A_data: lambda r, c: [r//4, c, r%4]
# interface: A
# theta: 0 -> 0: lambda io, ii, j: [8*io + ii, j]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((12, 5), "float32"), I: T.Buffer((16,), "int32"), B: T.Buffer((16, 5), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 5):
        B[i, j] = A[I[i], j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((3, 5, 4), "float32"), I: T.Buffer((16,), "int32"), B: T.Buffer((16, 5), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [12, 5], "steps": [{"index_map": "lambda r, c: [r//4, c, r%4]", "shape": [3, 5, 4], "contract": None}]}}})
    for io, ii, j in T.grid(2, 8, 5):
        B[io * 8 + ii, j] = A[I[io * 8 + ii] // 4, j, I[io * 8 + ii] % 4]
