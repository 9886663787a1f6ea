# Any number of elements in fours, with zeros behind the last.
# expect: proved
# layout: B=lambda i: [i//4, i%4]
# pad: B=T.float32(0)
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n):
        B[i] = T.max(A[i], T.float32(0))


@T.prim_func(s_tir=True)
def after(A: T.Buffer(("n",), "float32"), B: T.Buffer(((n + 3) // 4, 4), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for a, b in T.grid((n + 3) // 4, 4):
        B[a, b] = T.if_then_else(a*4 + b < n, T.max(A[a*4 + b], T.float32(0)), T.float32(0))
