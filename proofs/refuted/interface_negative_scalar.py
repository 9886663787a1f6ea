# about: elements of a parameter change places where the scalar that its extent is made of is negative
# clause: interface
# expect: unknown
# where: n >= -7 and n <= 8
# cells: A_data -> A_data: lambda i: [select(n < 0, n + 7 - i, i)]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(a: T.handle, B: T.Buffer((16,), "float32"), n: T.int32):
    T.func_attr({"tirx.noalias": True})
    A = T.match_buffer(a, (n + 8,), "float32")
    for i in range(n + 8):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(a: T.handle, B: T.Buffer((16,), "float32"), n: T.int32):
    T.func_attr({"tirx.noalias": True})
    A = T.match_buffer(a, (n + 8,), "float32")
    for i in range(n + 8):
        B[i] = A[T.Select(n < 0, n + 7 - i, i)]
