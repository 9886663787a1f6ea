# about: padding that may not be touched becomes padding that may hold anything
# clause: records
# expect: unknown
# theta: 0 -> none
# theta: 1 -> 0: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4, 4), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": None}]}}})
    for i in range(14):
        B[i] = A[i // 4, i % 4]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 4), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": "undef"}]}}})
    C = T.sblock_alloc_buffer((16,), "float32")
    for i in range(16):
        C[i] = A[i // 4, i % 4]
    for i in range(14):
        B[i] = A[i // 4, i % 4]
