# Sums of windows of 2 by 2 divided by 4, from channels first to channels last, and both stages in one.
# expect: proved
# layout: A=lambda c, h, w: [h, w, c]
# layout: B=lambda c, h, w: [h, w, c]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((6, 14, 14), "float32"), B: T.Buffer((6, 7, 7), "float32")):
    T.func_attr({"tirx.noalias": True})
    S = T.alloc_buffer((6, 7, 7), "float32")
    for c, h, w, r, s in T.grid(6, 7, 7, 2, 2):
        with T.sblock("S"):
            vc, vh, vw, vr, vs = T.axis.remap("SSSRR", [c, h, w, r, s])
            with T.init():
                S[vc, vh, vw] = T.float32(0)
            S[vc, vh, vw] = S[vc, vh, vw] + A[vc, vh*2 + vr, vw*2 + vs]
    for c, h, w in T.grid(6, 7, 7):
        B[c, h, w] = S[c, h, w] / T.float32(4)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14, 14, 6), "float32"), B: T.Buffer((7, 7, 6), "float32")):
    T.func_attr({"tirx.noalias": True})
    acc = T.alloc_buffer((6,), "float32", scope="local")
    for h, w in T.grid(7, 7):
        for c in range(6):
            acc[c] = T.float32(0)
        for r, s, c in T.grid(2, 2, 6):
            acc[c] = acc[c] + A[h*2 + r, w*2 + s, c]
        for c in range(6):
            B[h, w, c] = acc[c] / T.float32(4)
