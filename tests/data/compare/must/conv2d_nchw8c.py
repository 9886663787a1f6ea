# conv2d from NCHW to channels in eights: 13 input and 20 output channels are padded to 16 and 24, weights lie as OIHW8i8o.
# Inputs are padded with zeros; the sums in the output's padding are sums over them, of which nobody says what they are.
# expect: proved
# layout: X=lambda n, c, h, w: [n, c//8, h, w, c%8]
# pad: X=T.float32(0)
# layout: W=lambda o, i, r, s: [o//8, i//8, r, s, i%8, o%8]
# pad: W=T.float32(0)
# layout: O=lambda n, k, h, w: [n, k//8, h, w, k%8]
# pad: O=T.undef()
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((1, 13, 14, 14), "float32"), W: T.Buffer((20, 13, 3, 3), "float32"), O: T.Buffer((1, 20, 12, 12), "float32")):
    T.func_attr({"tirx.noalias": True})
    for n, k, h, w, c, r, s in T.grid(1, 20, 12, 12, 13, 3, 3):
        with T.sblock("O"):
            vn, vk, vh, vw, vc, vr, vs = T.axis.remap("SSSSRRR", [n, k, h, w, c, r, s])
            with T.init():
                O[vn, vk, vh, vw] = T.float32(0)
            O[vn, vk, vh, vw] = O[vn, vk, vh, vw] + X[vn, vc, vh + vr, vw + vs] * W[vk, vc, vr, vs]


@T.prim_func(s_tir=True)
def after(X: T.Buffer((1, 2, 14, 14, 8), "float32"), W: T.Buffer((3, 2, 3, 3, 8, 8), "float32"), O: T.Buffer((1, 3, 12, 12, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for co, h, w, ci in T.grid(2, 14, 14, 8):
        T.assume(not (co == 1 and 5 <= ci) or X[0, co, h, w, ci] == T.float32(0))
    for ko, co, r, s in T.grid(3, 2, 3, 3):
        for ci, ki in T.grid(8, 8):
            T.assume(not (co == 1 and 5 <= ci or ko == 2 and 4 <= ki) or W[ko, co, r, s, ci, ki] == T.float32(0))
    for ko, h, wo in T.grid(3, 12, 3):
        for wi, ki in T.grid(4, 8):
            O[0, ko, h, wo*4 + wi, ki] = T.float32(0)
        for co, ci, r, s, wi, ki in T.grid(2, 8, 3, 3, 4, 8):
            O[0, ko, h, wo*4 + wi, ki] = O[0, ko, h, wo*4 + wi, ki] + W[ko, co, r, s, ci, ki] * X[0, co, h + r, wo*4 + wi + s, ci]
