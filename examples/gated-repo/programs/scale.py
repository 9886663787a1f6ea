# from tvm.script import tirx as T
# Each channel of an image by a factor of its own.

@T.prim_func(s_tir=True)
def scale(A: T.Buffer((2, 8, 8, 10), "float32"), S: T.Buffer((10,), "float32"), B: T.Buffer((2, 8, 8, 10), "float32")):
    T.func_attr({"tirx.noalias": True})
    for n, h, w, c in T.grid(2, 8, 8, 10):
        with T.sblock("scale"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            B[vn, vh, vw, vc] = A[vn, vh, vw, vc] * S[vc]
