# A convolution that keeps three rows, each in the place of the oldest one.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((18, 18), "float32"), W: T.Buffer((3, 3), "float32"), Y: T.Buffer((16, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    for h, w, r, s in T.grid(16, 16, 3, 3):
        with T.sblock("Y"):
            vh, vw, vr, vs = T.axis.remap("SSRR", [h, w, r, s])
            with T.init():
                Y[vh, vw] = T.float32(0)
            Y[vh, vw] = Y[vh, vw] + X[vh + vr, vw + vs] * W[vr, vs]


@T.prim_func(s_tir=True)
def after(X: T.Buffer((18, 18), "float32"), W: T.Buffer((3, 3), "float32"), Y: T.Buffer((16, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    L = T.alloc_buffer((3, 18), "float32")
    for r, w in T.grid(2, 18):
        L[r, w] = X[r, w]
    for h in range(16):
        for w in range(18):
            L[(h + 2) % 3, w] = X[h + 2, w]
        for w in range(16):
            Y[h, w] = T.float32(0)
            for r, s in T.grid(3, 3):
                Y[h, w] = Y[h, w] + L[(h + r) % 3, w + s] * W[r, s]
