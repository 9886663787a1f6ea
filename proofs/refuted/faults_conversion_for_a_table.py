# about: what is looked up in a table is the same everywhere, but a NaN has no place in it
# expect: refuted
# clause: faults
# strictness: ieee
# theta: 0 -> none
# theta: 1 -> 0: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(F: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = 7


@T.prim_func(s_tir=True)
def after(F: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.alloc_buffer((8,), "int32")
    for j in range(8):
        C[j] = 7
    for i in range(8):
        B[i] = C[T.Cast("int32", F[0]) % 8]
