@T.prim_func(s_tir=True)
def main(A: T.Buffer(("N", H + 2, W + 2, "C"), "float32"), F: T.Buffer((3, 3, "C", "K"), "float32"), B: T.Buffer(("N", "H", "W", "K"), "float32")):
    N, H, W, C, K = T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True})
    for n, h, w, c in T.grid(N, H + 2, W + 2, C):
        T.evaluate(T.assume(1 <= h and h < H + 1 and 1 <= w and w < W + 1 or A[n, h, w, c] == T.float32(0)))
    for n, y, x, k, ry, rx, c in T.grid(N, H, W, K, 3, 3, C):
        with T.sblock("conv2d"):
            vn, vy, vx, vk, vry, vrx, vc = T.axis.remap("SSSSRRR", [n, y, x, k, ry, rx, c])
            T.reads(A[vn, vy + vry, vx + vrx, vc], F[vry, vrx, vc, vk])
            T.writes(B[vn, vy, vx, vk])
            with T.init():
                B[vn, vy, vx, vk] = T.float32(0.0)
            if 1 <= vy + vry and vy + vry < H + 1 and 1 <= vx + vrx and vx + vrx < W + 1:
                B[vn, vy, vx, vk] = B[vn, vy, vx, vk] + A[vn, vy + vry, vx + vrx, vc] * F[vry, vrx, vc, vk]
