# about: a view of a temporary counts down from its start, where a symbol is small
# clause: faults
# expect: refuted
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> 1: lambda i: [i]
# from tvm.script import tirx as T


@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), s: T.int32):
    T.func_attr({"tirx.noalias": True})
    T.evaluate(T.assume(s <= 2))
    C = T.alloc_buffer((8,), "int32")
    for i in range(4):
        C[i] = A[i]
        B[i] = C[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), s: T.int32):
    T.func_attr({"tirx.noalias": True})
    T.evaluate(T.assume(s <= 2))
    C = T.alloc_buffer((8,), "int32")
    V = T.decl_buffer((4,), "int32", data=C.data, strides=[s - 3])
    for i in range(4):
        V[i] = A[i]
        B[i] = V[i]
