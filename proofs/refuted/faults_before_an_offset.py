# about: a view reads what lies before the first element of a parameter with an offset, which belongs to others
# clause: faults
# expect: refuted
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> none
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "int32", elem_offset=8), B: T.Buffer((4,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "int32", elem_offset=8), B: T.Buffer((4,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.decl_buffer((4,), "int32", data=A.data)
    D = T.alloc_buffer((4,), "int32")
    for i in range(4):
        B[i] = A[i]
    for j in range(4):
        D[j] = C[j]
