# from tvm.script import tirx as T
# A 3x3 convolution of 28x28 pixels, NHWC, 32 channels in and 64 out. The image comes with its border.

@T.prim_func(s_tir=True)
def conv2d(A: T.Buffer((1, 30, 30, 32), "float32"), W: T.Buffer((64, 32, 3, 3), "float32"), C: T.Buffer((1, 28, 28, 64), "float32")):
    T.func_attr({"tirx.noalias": True})
    for n, y, x, o, i, ry, rx in T.grid(1, 28, 28, 64, 32, 3, 3):
        with T.sblock("conv"):
            vn, vy, vx, vo, vi, vry, vrx = T.axis.remap("SSSSRRR", [n, y, x, o, i, ry, rx])
            T.reads(A[vn, vy + vry, vx + vrx, vi], W[vo, vi, vry, vrx])
            T.writes(C[vn, vy, vx, vo])
            with T.init():
                C[vn, vy, vx, vo] = T.float32(0)
            C[vn, vy, vx, vo] = C[vn, vy, vx, vo] + A[vn, vy + vry, vx + vrx, vi] * W[vo, vi, vry, vrx]
