# A padded convolution, scaled and cut at zero, by rows, with packed weights and vector registers.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((1, 3, 10, 10), "float32"), W: T.Buffer((8, 3, 3, 3), "float32"), S: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), Y: T.Buffer((1, 8, 10, 10), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((1, 3, 12, 12), "float32")
    H = T.alloc_buffer((1, 8, 10, 10), "float32")
    M = T.alloc_buffer((1, 8, 10, 10), "float32")
    for n, c, h, w in T.grid(1, 3, 12, 12):
        P[n, c, h, w] = T.if_then_else(1 <= h and h < 11 and 1 <= w and w < 11, X[n, c, h - 1, w - 1], T.float32(0))
    for n, k, h, w, c, r, s in T.grid(1, 8, 10, 10, 3, 3, 3):
        with T.sblock("H"):
            vn, vk, vh, vw, vc, vr, vs = T.axis.remap("SSSSRRR", [n, k, h, w, c, r, s])
            with T.init():
                H[vn, vk, vh, vw] = T.float32(0)
            H[vn, vk, vh, vw] = H[vn, vk, vh, vw] + P[vn, vc, vh + vr, vw + vs] * W[vk, vc, vr, vs]
    for n, k, h, w in T.grid(1, 8, 10, 10):
        M[n, k, h, w] = H[n, k, h, w] * S[k] + B[k]
    for n, k, h, w in T.grid(1, 8, 10, 10):
        Y[n, k, h, w] = T.max(M[n, k, h, w], T.float32(0))


@T.prim_func(s_tir=True)
def after(X: T.Buffer((1, 3, 10, 10), "float32"), W: T.Buffer((8, 3, 3, 3), "float32"), S: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), Y: T.Buffer((1, 8, 10, 10), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((3, 4, 12), "float32", scope="local")
    Wp = T.alloc_buffer((2, 3, 3, 3, 4), "float32")
    acc = T.alloc_buffer((2, 10, 4), "float32", scope="local")
    for ko, c, r, s, ki in T.grid(2, 3, 3, 3, 4):
        Wp[ko, c, r, s, ki] = W[ko*4 + ki, c, r, s]
    for ho in range(5):
        for c, h, w in T.grid(3, 4, 12):
            if ho*2 + h >= 1 and ho*2 + h < 11 and w >= 1 and w < 11:
                P[c, h, w] = X[0, c, ho*2 + h - 1, w - 1]
            else:
                P[c, h, w] = T.float32(0)
        for ko in range(2):
            for hi, w, ki in T.grid(2, 10, 4):
                acc[hi, w, ki] = T.float32(0)
            for c, r, s in T.grid(3, 3, 3):
                for hi, w in T.grid(2, 10):
                    for ki in T.vectorized(4):
                        acc[hi, w, ki] = acc[hi, w, ki] + P[c, hi + r, w + s] * Wp[ko, c, r, s, ki]
            for hi, w, ki in T.grid(2, 10, 4):
                Y[0, ko*4 + ki, ho*2 + hi, w] = T.max(acc[hi, w, ki] * S[ko*4 + ki] + B[ko*4 + ki], T.float32(0))
