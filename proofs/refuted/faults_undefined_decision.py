# about: a condition that an undefined value decides, in a program that had none
# clause: faults
# expect: unknown
# theta: 0 -> none
# theta: 1 -> 0: lambda i: [i]
# theta: 2 -> none
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = 1


@T.prim_func(s_tir=True)
def after(B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.alloc_buffer((1,), "int32")
    U = T.alloc_buffer((8,), "int32")
    C[0] = T.undef()
    for i in range(8):
        B[i] = 1
    if C[0] > 0:
        U[0] = 1
