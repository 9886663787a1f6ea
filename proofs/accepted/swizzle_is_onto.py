# about: 64 elements swizzled into 8 by 8: no cell is padding
# expect: proved
# strictness: ieee
# functions: main, main
# cells: B_data -> B_data: lambda i: [i // 8, i // 8 ^ i % 8]
# interface: B
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(64):
        with T.sblock("copy"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((64,), "float32"), B: T.Buffer((8, 8), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"B_data": {"logical_shape": [64], "steps": [{"index_map": "lambda i: [i//8, i//8 ^ i%8]", "shape": [8, 8], "contract": None}]}}})
    for i in range(64):
        with T.sblock("copy"):
            vi = T.axis.spatial(64, i)
            B[vi // 8, vi // 8 ^ vi % 8] = A[vi]
