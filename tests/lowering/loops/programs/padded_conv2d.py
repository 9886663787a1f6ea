@T.prim_func(s_tir=True)
def main(A: T.Buffer(("N", "H", "W", "C"), "float32"), F: T.Buffer((3, 3, "C", "K"), "float32"), B: T.Buffer(("N", "H", "W", "K"), "float32")):
    N, H, W, C, K = T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True})
    P = T.sblock_alloc_buffer((N, H + 2, W + 2, C))
    for n, y, x, c in T.grid(N, H + 2, W + 2, C):
        with T.sblock("halo"):
            vn, vy, vx, vc = T.axis.remap("SSSS", [n, y, x, c])
            T.reads(A[vn, vy - 1, vx - 1, vc])
            T.writes(P[vn, vy, vx, vc])
            P[vn, vy, vx, vc] = T.if_then_else(1 <= vy and vy < H + 1 and 1 <= vx and vx < W + 1, A[vn, vy - 1, vx - 1, vc], T.float32(0.0))
    for n, y, x, k, ry, rx, c in T.grid(N, H, W, K, 3, 3, C):
        with T.sblock("conv2d"):
            vn, vy, vx, vk, vry, vrx, vc = T.axis.remap("SSSSRRR", [n, y, x, k, ry, rx, c])
            T.reads(P[vn, vy + vry, vx + vrx, vc], F[vry, vrx, vc, vk])
            T.writes(B[vn, vy, vx, vk])
            with T.init():
                B[vn, vy, vx, vk] = T.float32(0.0)
            B[vn, vy, vx, vk] = B[vn, vy, vx, vk] + P[vn, vy + vry, vx + vrx, vc] * F[vry, vrx, vc, vk]
