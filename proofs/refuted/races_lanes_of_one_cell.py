# about: the lanes of a vector store meet in the one cell that a view without a stride has
# clause: races
# expect: refuted
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> none
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    T.func_attr({"tirx.noalias": True})
    D = T.alloc_buffer((4,), "int32")
    C = T.decl_buffer((4,), "int32", data=D.data, strides=(0,))
    for i in range(4):
        B[i] = A[i]
    C[0:4] = A[0:4]
