# about: a name stands for a float whose bits callers see as an integer, where one NaN is not like another
# expect: unknown
# clause: values
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> 1: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    T.func_attr({"tirx.noalias": True})
    V = T.decl_buffer((4,), "float32", data=A.data)
    W = T.decl_buffer((4,), "float32", data=B.data)
    for i in range(4):
        x = T.bind(T.if_then_else(V[i] == V[i], V[i], T.float32("nan")))
        A[i] = 0
        W[i] = x


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    T.func_attr({"tirx.noalias": True})
    V = T.decl_buffer((4,), "float32", data=A.data)
    W = T.decl_buffer((4,), "float32", data=B.data)
    for i in range(4):
        x = T.bind(V[i])
        A[i] = 0
        W[i] = x
