# about: the layout of a result changes and no record tells the next step where its padding is
# clause: records
# expect: unknown
# cells: B_data -> B_data: lambda i: [i//4, i%4]
# interface: B
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        B[i // 4, i % 4] = A[i]
