import tvm
from tvm.script import tir as T


@tvm.script.ir_module
class Module:
    @T.prim_func
    def sum(input: T.Buffer[(32, 64, 56, 56), "float32"], output: T.Buffer[(32, 64), "float32"]) -> None:
        for i0, i1, i2, i3 in T.grid(32, 64, 56, 56):
            with T.block("reduce"):
                ax0, ax1, k2, k3 = T.axis.remap("SSRR", [i0, i1, i2, i3])
                T.reads(input[ax0, ax1, k2, k3])
                T.writes(output[ax0, ax1])
                with T.init():
                    output[ax0, ax1] = T.float32(0)
                output[ax0, ax1] = output[ax0, ax1] + input[ax0, ax1, k2, k3]

    @T.prim_func
    def sum_nhwc(input: T.Buffer[(32, 56, 56, 64), "float32"], output: T.Buffer[(32, 64), "float32"]) -> None:
        for ax0, ax1, ax2, ax3 in T.grid(32, 56, 56, 64):
            with T.block("reduce"):
                v0, v1, v2, v3 = T.axis.remap("SRRS", [ax0, ax1, ax2, ax3])
                T.reads(input[v0, v1, v2, v3])
                T.writes(output[v0, v3])
                with T.init():
                    output[v0, v3] = T.float32(0)
                output[v0, v3] = output[v0, v3] + input[v0, v1, v2, v3]

    @T.prim_func
    def layout_transform(arg: T.Buffer[(32, 64, 224, 224), "float32"], out: T.Buffer[(32, 16, 224, 224, 4), "float32"]) -> None:
        for i0, i1, i2, i3, i4 in T.grid(32, 16, 224, 224, 4):
            with T.block("T_layout_trans"):
                ax0, ax1, ax2, ax3, ax4 = T.axis.remap("SSSSS", [i0, i1, i2, i3, i4])
                T.reads(arg[ax0, ax1 * 4 + ax4, ax2, ax3])
                T.writes(out[ax0, ax1, ax2, ax3, ax4])
                out[ax0, ax1, ax2, ax3, ax4] = arg[ax0, ax1 * 4 + ax4, ax2, ax3]

    @T.prim_func
    def relu(input: T.Buffer[(32, 3, 224, 224), "float32"], output: T.Buffer[(32, 3, 224, 224), "float32"]) -> None:
        for i0, i1, i2, i3 in T.grid(32, 3, 224, 224):
            with T.block("compute"):
                i0_1, i1_1, i2_1, i3_1 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                T.reads(input[i0_1, i1_1, i2_1, i3_1])
                T.writes(output[i0_1, i1_1, i2_1, i3_1])
                output[i0_1, i1_1, i2_1, i3_1] = T.max(input[i0_1, i1_1, i2_1, i3_1], T.float32(0))

    @T.prim_func
    def matmul(A: T.Buffer[(16, 16), "float32"], B: T.Buffer[(16, 16), "float32"], C: T.Buffer[(16, 16), "float32"]) -> None:
        B_ = T.alloc_buffer([16, 4, 4], dtype="float32")
        for i0_o, i1_o in T.grid(16, 16):
            with T.block("layout_rewrite"):
                i0, i1 = T.axis.remap("SS", [i0_o, i1_o])
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                B_[i1, i0 // 4, i0 % 4] = B[i0, i1]
        for i0, j, k0, i1, k1 in T.grid(4, 16, 4, 4, 4):
            with T.block("matmul"):
                vi = T.axis.spatial(16, i0 * 4 + i1)
                vj = T.axis.spatial(16, j)
                vk = T.axis.reduce(16, k0 * 4 + k1)
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B_[vj, vk // 4, vk % 4]
