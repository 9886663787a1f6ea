# about: a buffer has other extents than the box that its layout record speaks of, and a logical element is taken for padding
# clause: observable
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//7, i%7 + T.min(i%7, 1)]", "shape": [2, 8], "contract": "undef"}]}}})
    for i, j in T.grid(4, 4):
        A[i, j] = B[i, j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//7, i%7 + T.min(i%7, 1)]", "shape": [2, 8], "contract": "undef"}]}}})
    for i, j in T.grid(4, 4):
        if i != 1 or j != 1:
            A[i, j] = B[i, j]
