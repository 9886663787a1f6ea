# about: loops that follow a swizzled buffer
# expect: proved
# strictness: ieee
# functions: main, main
# theta: 0 -> 0: lambda i_0, i_1: [i_0 * 4 + (i_0 ^ i_1)]
# from tvm.script import tirx as T


@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"B_data": {"logical_shape": [16], "steps": [{"index_map": "lambda i: [i//4, i//4 ^ i%4]", "shape": [4, 4], "contract": None}]}}})
    for i in range(16):
        with T.sblock("copy"):
            vi = T.axis.spatial(16, i)
            B[vi // 4, vi // 4 ^ vi % 4] = A[vi]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"B_data": {"logical_shape": [16], "steps": [{"index_map": "lambda i: [i//4, i//4 ^ i%4]", "shape": [4, 4], "contract": None}]}}})
    for i_0, i_1 in T.grid(4, 4):
        with T.sblock("copy"):
            vi = T.axis.spatial(16, i_0 * 4 + (i_0 ^ i_1))
            B[vi // 4, vi // 4 ^ vi % 4] = A[vi]
