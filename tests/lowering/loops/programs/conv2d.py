@T.prim_func(s_tir=True)
def main(A: T.Buffer(("N", H + 2, W + 2, "C"), "float32"), F: T.Buffer((3, 3, "C", "K"), "float32"), B: T.Buffer(("N", "H", "W", "K"), "float32")):
    N, H, W, C, K = T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True})
    for n, y, x, k, ry, rx, c in T.grid(N, H, W, K, 3, 3, C):
        with T.sblock("conv2d"):
            vn, vy, vx, vk, vry, vrx, vc = T.axis.remap("SSSSRRR", [n, y, x, k, ry, rx, c])
            T.reads(A[vn, vy + vry, vx + vrx, vc], F[vry, vrx, vc, vk])
            T.writes(B[vn, vy, vx, vk])
            with T.init():
                B[vn, vy, vx, vk] = T.float32(0.0)
            B[vn, vy, vx, vk] = B[vn, vy, vx, vk] + A[vn, vy + vry, vx + vrx, vc] * F[vry, vrx, vc, vk]
