# A convolution becomes a matrix of windows and a product of matrices.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((13, 14, 14), "float32"), W: T.Buffer((20, 13, 3, 3), "float32"), O: T.Buffer((20, 12, 12), "float32")):
    T.func_attr({"tirx.noalias": True})
    for k, h, w, c, r, s in T.grid(20, 12, 12, 13, 3, 3):
        with T.sblock("O"):
            vk, vh, vw, vc, vr, vs = T.axis.remap("SSSRRR", [k, h, w, c, r, s])
            with T.init():
                O[vk, vh, vw] = T.float32(0)
            O[vk, vh, vw] = O[vk, vh, vw] + X[vc, vh + vr, vw + vs] * W[vk, vc, vr, vs]


@T.prim_func(s_tir=True)
def after(X: T.Buffer((13, 14, 14), "float32"), W: T.Buffer((20, 13, 3, 3), "float32"), O: T.Buffer((20, 12, 12), "float32")):
    T.func_attr({"tirx.noalias": True})
    M = T.alloc_buffer((117, 144), "float32")
    for x, y in T.grid(117, 144):
        M[x, y] = X[x // 9, y // 12 + x % 9 // 3, y % 12 + x % 3]
    for k, y in T.grid(20, 144):
        O[k, y // 12, y % 12] = T.float32(0)
        for x in range(117):
            O[k, y // 12, y % 12] = O[k, y // 12, y % 12] + W[k, x // 9, x % 9 // 3, x % 3] * M[x, y]
