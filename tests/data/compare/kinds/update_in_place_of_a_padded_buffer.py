# An update in place of a buffer that lies in fours; nobody touches its padding.
# expect: proved
# layout: A=lambda i: [i//4, i%4]
# pad: A=None
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        A[i] = A[i] * T.float32(2)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for a, b in T.grid(4, 4):
        if a*4 + b < 14:
            A[a, b] = A[a, b] * T.float32(2)
