# about: a view with strides reaches padding without a contract by the index of a logical element
# clause: faults
# expect: refuted
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> none
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"B_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": None}]}}})
    for i in range(14):
        B[i // 4, i % 4] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"B_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": None}]}}})
    C = T.decl_buffer((4, 4), "float32", data=B.data, strides=(1, 4))
    for i in range(14):
        B[i // 4, i % 4] = A[i]
    C[2, 3] = T.float32(7)
