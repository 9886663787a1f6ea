# Padding is filled only where the last element is positive: the producer's condition was copied with its store.
# expect: refuted
# layout: B=lambda i: [i//4, i%4]
# pad: B=T.float32(0)
# unaided: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        B[i] = T.float32(0)
    for i in range(14):
        if A[i] > T.float32(0):
            B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for a, b in T.grid(4, 4):
        if a*4 + b < 14:
            B[a, b] = T.float32(0)
    for a, b in T.grid(4, 4):
        if a*4 + b < 14:
            if A[a*4 + b] > T.float32(0):
                B[a, b] = A[a*4 + b]
        else:
            if A[13] > T.float32(0):
                B[a, b] = T.float32(0)
