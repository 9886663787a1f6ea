# about: a record says that a parameter's elements were turned around, and they stay where they were
# clause: records
# expect: unknown
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"B_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [13 - i]", "shape": [14], "contract": None}]}}})
    for i in range(14):
        B[i] = A[i]
