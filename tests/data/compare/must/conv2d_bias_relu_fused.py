# Padding, convolution, bias and relu are four stages before; after, one loop nest with sums in registers, and channels in fours with zeros behind the last.
# expect: proved
# layout: O=lambda k, h, w: [k//4, h, w, k%4]
# pad: O=T.float32(0)
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((5, 8, 8), "float32"), W: T.Buffer((6, 5, 3, 3), "float32"), b: T.Buffer((6,), "float32"), O: T.Buffer((6, 8, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((5, 10, 10), "float32")
    S = T.alloc_buffer((6, 8, 8), "float32")
    D = T.alloc_buffer((6, 8, 8), "float32")
    for c, h, w in T.grid(5, 10, 10):
        P[c, h, w] = T.if_then_else(1 <= h and h < 9 and 1 <= w and w < 9, X[c, h - 1, w - 1], T.float32(0))
    for k, h, w, c, r, s in T.grid(6, 8, 8, 5, 3, 3):
        with T.sblock("S"):
            vk, vh, vw, vc, vr, vs = T.axis.remap("SSSRRR", [k, h, w, c, r, s])
            with T.init():
                S[vk, vh, vw] = T.float32(0)
            S[vk, vh, vw] = S[vk, vh, vw] + P[vc, vh + vr, vw + vs] * W[vk, vc, vr, vs]
    for k, h, w in T.grid(6, 8, 8):
        D[k, h, w] = S[k, h, w] + b[k]
    for k, h, w in T.grid(6, 8, 8):
        O[k, h, w] = T.max(D[k, h, w], T.float32(0))


@T.prim_func(s_tir=True)
def after(X: T.Buffer((5, 8, 8), "float32"), W: T.Buffer((6, 5, 3, 3), "float32"), b: T.Buffer((6,), "float32"), O: T.Buffer((2, 8, 8, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((10, 10, 5), "float32")
    acc = T.alloc_buffer((1,), "float32", scope="local")
    for h, w, c in T.grid(10, 10, 5):
        P[h, w, c] = T.if_then_else(1 <= h and h < 9 and 1 <= w and w < 9, X[c, h - 1, w - 1], T.float32(0))
    for ko, h, w, ki in T.grid(2, 8, 8, 4):
        if ko*4 + ki < 6:
            acc[0] = T.float32(0)
            for c, r, s in T.grid(5, 3, 3):
                acc[0] = acc[0] + P[h + r, w + s, c] * W[ko*4 + ki, c, r, s]
            O[ko, h, w, ki] = T.max(acc[0] + b[ko*4 + ki], T.float32(0))
        else:
            O[ko, h, w, ki] = T.float32(0)
