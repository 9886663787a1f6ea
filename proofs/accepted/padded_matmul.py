# about: a matrix product padded on all axes: the copy of the padded result looks at updates that add zeros
# expect: proved
# functions: main, main
# theta: 0 -> none
# theta: 1 -> none
# theta: 2 -> none
# theta: 3 -> none
# theta: 4 -> 0: lambda ax0, ax1, k: [ax0, ax1, k] where ax0 < 10 and ax1 < 5
# theta: 5 -> 1: lambda ax0, ax1, k: [ax0, ax1, k] where ax0 < 10 and ax1 < 5 and k < 7
# theta: 6 -> none
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((10, 7), "float32"), B: T.Buffer((7, 5), "float32"), T_matmul: T.Buffer((10, 5), "float32")):
    T.func_attr({"tirx.noalias": True})
    for ax0, ax1, k in T.grid(10, 5, 7):
        with T.sblock("T_matmul"):
            v_ax0, v_ax1, v_k = T.axis.remap("SSR", [ax0, ax1, k])
            T.reads(A[v_ax0, v_k], B[v_k, v_ax1])
            T.writes(T_matmul[v_ax0, v_ax1])
            with T.init():
                T_matmul[v_ax0, v_ax1] = T.float32(0.0)
            T_matmul[v_ax0, v_ax1] = T_matmul[v_ax0, v_ax1] + A[v_ax0, v_k] * B[v_k, v_ax1]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((10, 7), "float32"), B: T.Buffer((7, 5), "float32"), T_matmul: T.Buffer((10, 5), "float32")):
    T.func_attr({"tirx.noalias": True})
    A_pad = T.sblock_alloc_buffer((12, 8))
    B_pad = T.sblock_alloc_buffer((8, 8))
    T_matmul_pad = T.sblock_alloc_buffer((12, 8))
    for ax0_1, ax1_1 in T.grid(12, 8):
        with T.sblock("A_pad"):
            v0, v1 = T.axis.remap("SS", [ax0_1, ax1_1])
            T.reads(A[v0, v1])
            T.writes(A_pad[v0, v1])
            if v0 < 10 and v1 < 7:
                A_pad[v0, v1] = A[v0, v1]
            else:
                A_pad[v0, v1] = T.float32(0.0)
    for ax0_2, ax1_2 in T.grid(8, 8):
        with T.sblock("B_pad"):
            v0_1, v1_1 = T.axis.remap("SS", [ax0_2, ax1_2])
            T.reads(B[v0_1, v1_1])
            T.writes(B_pad[v0_1, v1_1])
            if v0_1 < 7 and v1_1 < 5:
                B_pad[v0_1, v1_1] = B[v0_1, v1_1]
            else:
                B_pad[v0_1, v1_1] = T.float32(0.0)
    for ax0, ax1, k in T.grid(12, 8, 8):
        with T.sblock("T_matmul"):
            v_ax0, v_ax1, v_k = T.axis.remap("SSR", [ax0, ax1, k])
            T.reads(A_pad[v_ax0, v_k], B_pad[v_k, v_ax1])
            T.writes(T_matmul_pad[v_ax0, v_ax1])
            with T.init():
                T_matmul_pad[v_ax0, v_ax1] = T.float32(0.0)
            T_matmul_pad[v_ax0, v_ax1] = T_matmul_pad[v_ax0, v_ax1] + A_pad[v_ax0, v_k] * B_pad[v_k, v_ax1]
    for ax0_3, ax1_3 in T.grid(10, 5):
        with T.sblock("T_matmul_pad"):
            v0_2, v1_2 = T.axis.remap("SS", [ax0_3, ax1_3])
            T.reads(T_matmul_pad[v0_2, v1_2])
            T.writes(T_matmul[v0_2, v1_2])
            T_matmul[v0_2, v1_2] = T_matmul_pad[v0_2, v1_2]
