# Both split the loop, by 3 and by 4: one guards its block by T.where, the other has an `if` with the padding in its else.
# expect: proved
# layout: B=lambda i: [i//4, i%4]
# pad: B=T.float32(0)
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for a, b in T.grid(5, 3):
        with T.sblock("B"):
            v = T.axis.spatial(14, a*3 + b)
            T.where(a*3 + b < 14)
            B[v] = T.exp(A[v])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for a, b in T.grid(4, 4):
        if a*4 + b < 14:
            B[a, b] = T.exp(A[a*4 + b])
        else:
            B[a, b] = T.float32(0)
