# about: a store to a parameter by a pointer of another name is dropped
# clause: observable
# expect: refuted
# theta: 0 -> 0: lambda i: [7 - i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    p: T.let[T.handle("int32")] = T.pointer_cast("int32", A.data)
    V = T.decl_buffer((8,), "int32", data=p)
    for i in range(8):
        B[i] = A[i]
    V[3] = 77


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    p: T.let[T.handle("int32")] = T.pointer_cast("int32", A.data)
    V = T.decl_buffer((8,), "int32", data=p)
    for i in range(8):
        B[7 - i] = A[7 - i]
