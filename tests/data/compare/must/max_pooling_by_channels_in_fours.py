# Maxima of windows of 3 by 3 with a border of the least number; 6 channels are stored in fours with 0 behind the last.
# expect: proved
# layout: B=lambda c, h, w: [c//4, h, w, c%4]
# pad: B=T.float32(0)
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((6, 14, 14), "float32"), B: T.Buffer((6, 7, 7), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((6, 16, 16), "float32")
    for c, h, w in T.grid(6, 16, 16):
        P[c, h, w] = T.if_then_else(1 <= h and h < 15 and 1 <= w and w < 15, A[c, h - 1, w - 1], T.min_value("float32"))
    for c, h, w, r, s in T.grid(6, 7, 7, 3, 3):
        with T.sblock("B"):
            vc, vh, vw, vr, vs = T.axis.remap("SSSRR", [c, h, w, r, s])
            with T.init():
                B[vc, vh, vw] = T.min_value("float32")
            B[vc, vh, vw] = T.max(B[vc, vh, vw], P[vc, vh*2 + vr, vw*2 + vs])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((6, 14, 14), "float32"), B: T.Buffer((2, 7, 7, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    m = T.alloc_buffer((1,), "float32", scope="local")
    for co, h, w, ci in T.grid(2, 7, 7, 4):
        if co*4 + ci < 6:
            m[0] = T.min_value("float32")
            for r, s in T.grid(3, 3):
                m[0] = T.max(m[0], T.if_then_else(1 <= h*2 + r and h*2 + r < 15 and 1 <= w*2 + s and w*2 + s < 15, A[co*4 + ci, h*2 + r - 1, w*2 + s - 1], T.min_value("float32")))
            B[co, h, w, ci] = m[0]
        else:
            B[co, h, w, ci] = T.float32(0)
