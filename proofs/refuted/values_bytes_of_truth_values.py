# about: elements of a parameter of integers are seen as truth values, and storing one makes any byte 0 or 1
# expect: refuted
# clause: values
# theta: 0 -> 1: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int8"), B: T.Buffer((8,), "int8")):
    T.func_attr({"tirx.noalias": True})
    V = T.decl_buffer((8,), "bool", data=A.data)
    W = T.decl_buffer((8,), "bool", data=B.data)
    for i in range(8):
        W[i] = W[i]
    for i in range(4):
        W[i] = V[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int8"), B: T.Buffer((8,), "int8")):
    T.func_attr({"tirx.noalias": True})
    V = T.decl_buffer((8,), "bool", data=A.data)
    W = T.decl_buffer((8,), "bool", data=B.data)
    for i in range(4):
        W[i] = V[i]
