# about: an index that an undefined value decides, which was stored to a parameter for a while
# clause: faults
# expect: unknown
# theta: 0 -> none
# theta: 1 -> none
# theta: 2 -> 0: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = 1


@T.prim_func(s_tir=True)
def after(B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    U = T.alloc_buffer((8,), "int32")
    B[0] = T.undef()
    U[B[0] & 7] = 1
    for i in range(8):
        B[i] = 1
