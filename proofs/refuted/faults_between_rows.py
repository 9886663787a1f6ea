# about: a view reads what lies between the rows of a parameter with strides, which belongs to others
# clause: faults
# expect: refuted
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> none
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4, 4), "int32", strides=(8, 1)), B: T.Buffer((4,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        B[i] = A[i, 0]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 4), "int32", strides=(8, 1)), B: T.Buffer((4,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.decl_buffer((28,), "int32", data=A.data)
    D = T.alloc_buffer((4,), "int32")
    for i in range(4):
        B[i] = C[8 * i]
    for j in range(4):
        D[j] = C[j + 2]
