# The main loop is guarded by an `if`; the padding is filled behind it, in a loop of its own.
# expect: proved
# layout: B=lambda i: [i//4, i%4]
# pad: B=T.float32(0)
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        B[i] = T.max(A[i], T.float32(0))


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for a, b in T.grid(4, 4):
        if a*4 + b < 14:
            B[a, b] = T.max(A[a*4 + b], T.float32(0))
    for b in range(2):
        B[3, b + 2] = T.float32(0)
